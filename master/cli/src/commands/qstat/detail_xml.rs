//! `qstat -j LIST -xml`: the elements of 8.1.9 in its order, which is that of its lists in memory.

mod binding;
mod resources;

use super::reasons::Reasons;
use crate::job::description::{self, interval_s};
use crate::output::value::{fraction, millionths};
use crate::output::xml::{XmlDocument, escape};
use proto::binding::HostBinding;
use proto::checkpoint::{CheckpointOccasions, Occasion};
use proto::id::{JobNumber, TaskId};
use proto::job::{HostPath, JobSpec, Phase, Program, Requests, VariableOrigin};
use proto::rsmap::GrantedIds;
use proto::time::Wall;
use proto::usage::Usage;
use proto::wire::view::{JobDetail, RequestedAttribute, TaskRow};
use resources::resources;

/// The document. Its times are seconds since the epoch.
pub fn render(details: &[JobDetail]) -> String {
    let mut document = XmlDocument::new("detailed_job_info", "detailed_job_info");
    document.open("djob_info");
    for detail in details {
        document.open("element");
        job(&mut document, detail);
        document.close();
    }
    document.close();
    document.open("messages");
    Reasons::from_details(details).element(&mut document);
    document.finish()
}

/// What stands in its place where none of the jobs exists. It is not well indented: that is how
/// 8.1.9 prints it.
pub fn unknown(jobs: &[String]) -> String {
    let names: String = jobs
        .iter()
        .map(|job| format!("    <ST_name>{}</ST_name>\n", escape(job)))
        .collect();
    format!("<?xml version='1.0'?>\n<unknown_jobs >\n{names}</unknown_jobs>\n")
}

fn job(document: &mut XmlDocument, detail: &JobDetail) {
    submission(document, detail);
    requests(document, detail);
    program(document, &detail.spec);
    tasks(document, detail);
    surroundings(document, &detail.spec);
    dependencies(document, detail);
    attributes(document, detail);
    parallel(document, detail);
    structure(document, detail);
}

fn submission(document: &mut XmlDocument, detail: &JobDetail) {
    let (row, spec) = (&detail.row, &*detail.spec);
    document.leaf("JB_job_number", row.number);
    document.leaf("JB_ar", spec.reservation.map_or(0, |reservation| reservation.0));
    document.leaf("JB_exec_file", format_args!("job_scripts/{}", row.number));
    document.leaf("JB_submission_time", row.submitted.seconds());
    document.leaf("JB_owner", &spec.owner.user);
    document.leaf("JB_uid", spec.owner.uid);
    document.leaf("JB_group", &spec.owner.group);
    document.leaf("JB_gid", spec.owner.gid);
    document.leaf("JB_account", &row.account);
    document.leaf("JB_merge_stderr", spec.merge_stderr);
    // 8.1.9 names the entries of a list that was given otherwise than those of the one that it
    // makes itself.
    let entry = if spec.mail_to.is_empty() {
        "element"
    } else {
        "mail_list"
    };
    document.open("JB_mail_list");
    for address in description::mail_list(spec) {
        let (user, host) = address.split_once('@').unwrap_or((&address, ""));
        document.open(entry);
        document.leaf("MR_user", user);
        document.leaf("MR_host", host);
        document.close();
    }
    document.close();
    if let Some(project) = &spec.project {
        document.leaf("JB_project", project);
    }
    document.leaf("JB_notify", spec.notify);
    document.leaf("JB_job_name", &spec.name);
    paths(document, "JB_stdout_path_list", &spec.stdout);
    document.leaf("JB_jobshare", spec.job_share);
}

fn requests(document: &mut XmlDocument, detail: &JobDetail) {
    let (spec, known) = (&detail.spec, &detail.attributes);
    resources(document, "JB_hard_resource_list", &spec.requests.hard, known);
    resources(document, "JB_soft_resource_list", &spec.requests.soft, known);
    queues(document, "JB_hard_queue_list", &spec.requests.hard_queues);
    queues(document, "JB_soft_queue_list", &spec.requests.soft_queues);
    scopes(document, &spec.requests, known);
    paths(document, "JB_shell_list", &spec.shell);
}

/// The numbers of Open Cluster Scheduler for the scopes of the master and of the slaves.
const SCOPES: [u32; 2] = [1, 2];

/// What `-scope` asks for apart, in the elements of Open Cluster Scheduler; left out where there is
/// none. The queues of the master are where 8.1.9 has them.
fn scopes(document: &mut XmlDocument, requests: &Requests, known: &[RequestedAttribute]) {
    let lists = [
        (&requests.master, &[][..]),
        (&requests.slaves, &requests.slave_queues[..]),
    ];
    let scopes = SCOPES
        .into_iter()
        .zip(lists)
        .filter(|(_, (list, queues))| !list.is_empty() || !queues.is_empty());
    let scopes: Vec<_> = scopes.collect();
    if scopes.is_empty() {
        return;
    }
    document.open("JB_request_set_list");
    for (scope, (list, asked_queues)) in scopes {
        document.open("ulong_sublist");
        document.leaf("JRS_scope", scope);
        resources(document, "JRS_hard_resource_list", list, known);
        queues(document, "JRS_hard_queue_list", asked_queues);
        document.close();
    }
    document.close();
}

fn program(document: &mut XmlDocument, spec: &JobSpec) {
    document.open("JB_env_list");
    for (origin, (name, value)) in spec.variables() {
        document.open("job_sublist");
        match name
            .strip_prefix("SGE_O_")
            .filter(|_| origin == VariableOrigin::Submission)
        {
            Some(inner) => document.leaf("VA_variable", format_args!("__SGE_PREFIX__O_{inner}")),
            None => document.leaf("VA_variable", name),
        }
        if !value.is_empty() {
            document.leaf("VA_value", value);
        }
        document.close();
    }
    document.close();
    if !spec.args.is_empty() {
        document.open("JB_job_args");
        for argument in &spec.args {
            document.open("element");
            if !argument.is_empty() {
                document.leaf("ST_name", argument);
            }
            document.close();
        }
        document.close();
    }
    document.leaf("JB_script_file", description::script_file(spec));
}

/// Its context, its directory, and where its errors go.
fn surroundings(document: &mut XmlDocument, spec: &JobSpec) {
    if !spec.context.is_empty() {
        document.open("JB_context");
        for (name, value) in &spec.context {
            document.open("context_list");
            document.leaf("VA_variable", name);
            if !value.is_empty() {
                document.leaf("VA_value", value);
            }
            document.close();
        }
        document.close();
    }
    if let Some(directory) = &spec.directory {
        document.leaf("JB_cwd", directory);
    }
    paths(document, "JB_stderr_path_list", &spec.stderr);
}

/// The jobs that it waits for, those by which it said so, and those that wait for it.
fn dependencies(document: &mut XmlDocument, detail: &JobDetail) {
    let (row, spec) = (&detail.row, &detail.spec);
    numbers(document, PREDECESSORS, &row.waits_for);
    numbers(document, ARRAY_PREDECESSORS, &row.array_waits_for);
    requested_predecessors(document, spec);
    if !spec.array_predecessors.is_empty() {
        // 8.1.9 leaves out the names here.
        document.open("JB_ja_ad_request_list");
        for _ in &spec.array_predecessors {
            document.open("element");
            document.leaf("JRE_job_number", 0);
            document.close();
        }
        document.close();
    }
    numbers(document, SUCCESSORS, &detail.successors);
}

fn requested_predecessors(document: &mut XmlDocument, spec: &JobSpec) {
    if spec.predecessors.is_empty() {
        return;
    }
    document.open("JB_jid_request_list");
    for name in &spec.predecessors {
        document.open("element");
        document.leaf("JRE_job_number", 0);
        document.leaf("JRE_job_name", name);
        document.close();
    }
    document.close();
}

/// The names of a list of jobs and of its entries.
struct JobListNames {
    list: &'static str,
    entry: &'static str,
}

const PREDECESSORS: JobListNames = JobListNames {
    list: "JB_jid_predecessor_list",
    entry: "job_predecessors",
};
const ARRAY_PREDECESSORS: JobListNames = JobListNames {
    list: "JB_ja_ad_predecessor_list",
    entry: "job_predecessors_ad",
};
const SUCCESSORS: JobListNames = JobListNames {
    list: "JB_jid_successor_list",
    entry: "ulong_sublist",
};

/// Writes a list of job numbers; left out where there is none.
fn numbers(document: &mut XmlDocument, names: JobListNames, jobs: &[JobNumber]) {
    if jobs.is_empty() {
        return;
    }
    document.open(names.list);
    for job in jobs {
        document.open(names.entry);
        document.leaf("JRE_job_number", job);
        document.close();
    }
    document.close();
}

/// Tasks on hosts and tasks in error; the list is left out where there are none.
fn tasks(document: &mut XmlDocument, detail: &JobDetail) {
    let on_hosts: Vec<&TaskRow> = detail
        .row
        .tasks
        .iter()
        .filter(|task| task.condition.phase != Phase::Finished)
        .collect();
    if on_hosts.is_empty() && detail.errors.is_empty() {
        return;
    }
    let ntckts = millionths(detail.row.priority.ntckts, 6);
    document.open("JB_ja_tasks");
    for task in on_hosts {
        document.open("ulong_sublist");
        document.leaf(
            "JAT_status",
            if task.condition.phase == Phase::Running {
                128
            } else {
                64
            },
        );
        document.leaf("JAT_task_number", task.task);
        usage(document, &task.usage, &task.binding);
        document.leaf("JAT_start_time", task.started.seconds());
        document.leaf("JAT_ntix", millionths(task.priority.ntckts, 6));
        granted_resources(document, &task.maps);
        document.close();
    }
    for (task, reason) in &detail.errors {
        failed_task(document, *task, reason, &ntckts);
    }
    document.close();
}

/// As Open Cluster Scheduler has it: of each map the ids, each once with how often the task has it.
fn granted_resources(document: &mut XmlDocument, maps: &[GrantedIds]) {
    if maps.is_empty() {
        return;
    }
    document.open("JAT_granted_resources_list");
    for map in maps {
        document.open("element");
        document.leaf("GRU_type", 2);
        document.leaf("GRU_name", &map.attribute);
        document.leaf(
            "GRU_amount",
            fraction(i128::try_from(map.ids.len()).unwrap_or_default(), 1, 6),
        );
        document.open("GRU_resource_map_list");
        let mut once: Vec<&String> = Vec::new();
        map.ids.iter().for_each(|id| {
            if !once.contains(&id) {
                once.push(id)
            }
        });
        for id in once {
            document.open("element");
            document.leaf("RESL_value", id);
            document.leaf("RESL_amount", map.ids.iter().filter(|other| *other == id).count());
            document.close();
        }
        document.close();
        document.leaf("GRU_host", &map.host);
        document.close();
    }
    document.close();
}

fn failed_task(document: &mut XmlDocument, task: TaskId, reason: &str, ntckts: &str) {
    document.open("ulong_sublist");
    document.leaf("JAT_status", 0);
    document.leaf("JAT_task_number", task);
    document.open("JAT_message_list");
    document.open("ulong_sublist");
    document.leaf("QIM_type", 1);
    document.leaf("QIM_message", reason);
    document.close();
    document.close();
    document.leaf("JAT_start_time", 0);
    document.leaf("JAT_ntix", ntckts);
    document.close();
}

fn usage(document: &mut XmlDocument, usage: &Usage, cores: &[HostBinding]) {
    let seconds = |ms: u64| fraction(i128::from(ms), 1000, 6);
    let bytes = |bytes: u64| fraction(i128::from(bytes), 1, 6);
    document.open("JAT_scaled_usage_list");
    binding::in_use(document, cores);
    for (name, value) in [
        ("cpu", seconds(usage.cpu_ms)),
        ("mem", fraction(i128::from(usage.mem_kib_ms), 1024 * 1024 * 1000, 6)),
        ("io", fraction(i128::from(usage.io_bytes), 1 << 30, 6)),
        ("iow", seconds(usage.iow_ms)),
        ("vmem", bytes(usage.vmem_bytes)),
        ("maxvmem", bytes(usage.maxvmem_bytes)),
    ] {
        document.open("scaled");
        document.leaf("UA_name", name);
        document.leaf("UA_value", value);
        document.close();
    }
    document.close();
}

fn attributes(document: &mut XmlDocument, detail: &JobDetail) {
    let spec = &*detail.spec;
    let seconds = |moment: Option<Wall>| moment.map_or(0, Wall::seconds);
    document.leaf("JB_deadline", seconds(spec.deadline));
    document.leaf("JB_execution_time", seconds(spec.start_after));
    if let Some(checkpoint) = &spec.checkpoint {
        document.leaf("JB_checkpoint_name", checkpoint);
    }
    document.leaf("JB_checkpoint_attr", occasion_bits(detail));
    document.leaf("JB_checkpoint_interval", interval_s(spec).unwrap_or(0));
    if let Some(prefix) = &spec.directive_prefix {
        document.leaf("JB_directive_prefix", prefix);
    }
    document.leaf("JB_reserve", spec.reserve);
    document.leaf("JB_mail_options", mail_bits(spec));
    paths(document, "JB_stdin_path_list", &spec.stdin);
    document.leaf("JB_priority", 1024 + i64::from(spec.priority));
    document.leaf(
        "JB_restart",
        spec.rerunnable.map_or(0, |rerunnable| if rerunnable { 1 } else { 2 }),
    );
    document.leaf("JB_verify", 0);
    queues(document, "JB_master_hard_queue_list", &spec.requests.master_queues);
    // The master of 8.1.9 has put the script into a file of its own.
    document.leaf("JB_script_size", 0);
}

/// Its parallel environment, its predecessors once more as 8.1.9 has them, and how it is verified.
fn parallel(document: &mut XmlDocument, detail: &JobDetail) {
    let spec = &*detail.spec;
    if let Some(pe) = &spec.requests.pe {
        document.leaf("JB_pe", &pe.name);
        document.open("JB_pe_range");
        for part in pe.slots.parts() {
            range(document, "ranges", *part.start(), *part.end(), 1);
        }
        document.close();
    }
    requested_predecessors(document, spec);
    document.leaf(
        "JB_verify_suitable_queues",
        description::verified(spec.validation).unwrap_or(0),
    );
    for name in ["JB_soft_wallclock_gmt", "JB_hard_wallclock_gmt"] {
        document.leaf(name, 0);
    }
    document.leaf("JB_override_tickets", spec.override_tickets);
    document.leaf("JB_version", detail.version);
}

fn occasion_bits(detail: &JobDetail) -> u32 {
    if detail.spec.checkpoint.is_none() && detail.spec.occasion == Some(Occasion::Never) {
        return 8;
    }
    let CheckpointOccasions {
        suspended,
        shutdown,
        periodic,
        unknown,
    } = detail.checkpoint_when.unwrap_or_default();
    [(periodic, 1), (shutdown, 2), (suspended, 4), (unknown, 16)]
        .into_iter()
        .map(|(is_set, bit)| u32::from(is_set) * bit)
        .sum()
}

fn structure(document: &mut XmlDocument, detail: &JobDetail) {
    let spec = &*detail.spec;
    document.open("JB_ja_structure");
    let (first, last, step) = spec
        .array
        .map_or((1, 1, 1), |array| (array.first(), array.last(), array.step()));
    range(document, "task_id_range", first, last, step);
    document.close();
    let binary = if matches!(spec.program, Program::Command { .. }) {
        64
    } else {
        0
    };
    document.leaf("JB_type", binary + if spec.array.is_some() { 128 } else { 0 });
    binding::request(document, spec.requests.binding.as_deref());
    document.leaf("JB_ja_task_concurrency", spec.task_concurrency.unwrap_or_default());
    document.leaf("JB_nurg", millionths(detail.row.priority.nurg, 6));
}

fn range(document: &mut XmlDocument, name: &str, first: u32, last: u32, step: u32) {
    document.open(name);
    document.leaf("RN_min", first);
    document.leaf("RN_max", last);
    document.leaf("RN_step", step);
    document.close();
}

fn paths(document: &mut XmlDocument, name: &str, paths: &[HostPath]) {
    if paths.is_empty() {
        return;
    }
    document.open(name);
    for path in paths {
        document.open("path_list");
        document.leaf("PN_path", &path.path);
        document.leaf(
            "PN_host",
            path.host.as_ref().map(|host| host.as_str()).unwrap_or_default(),
        );
        document.leaf("PN_file_host", "");
        document.leaf("PN_file_staging", false);
        document.close();
    }
    document.close();
}

fn queues(document: &mut XmlDocument, name: &str, queues: &[String]) {
    if queues.is_empty() {
        return;
    }
    document.open(name);
    for queue in queues {
        document.open("destin_ident_list");
        document.leaf("QR_name", queue);
        document.close();
    }
    document.close();
}

/// The events of `-m` as bits of 8.1.9: abort 1 << 18, begin 1 << 19, end 1 << 20, suspension 1 <<
/// 22.
fn mail_bits(spec: &JobSpec) -> u32 {
    let mail = spec.mail;
    let bits = [(mail.abort, 18), (mail.begin, 19), (mail.end, 20), (mail.suspend, 22)];
    bits.into_iter()
        .filter(|(is_set, _)| *is_set)
        .map(|(_, bit)| 1_u32 << bit)
        .sum()
}
