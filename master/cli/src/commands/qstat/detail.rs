//! `qstat -j LIST`: everything about jobs, a line for each field.

use super::shown;
use crate::output::json;
use crate::output::time::Clock;
use crate::output::value::{bytes, memory_seconds, transferred};
use proto::amount::{Amount, Type};
use proto::checkpoint::{Occasion, When};
use proto::job::{HostPath, JobSpec, MailEvents, Phase, Program};
use proto::request::ResourceRequest;
use proto::wire::view::{JobDetail, TaskRow};
use serde_json::Value;
use std::fmt::{Display, Write as _};

/// All blocks.
pub fn render(details: &[JobDetail], binding: bool, clock: &Clock) -> String {
    details.iter().map(|detail| block(detail, binding, clock)).collect()
}

/// The same as JSON, with what does not exist.
pub fn json(details: &[JobDetail], missing: &[String]) -> String {
    let jobs: Vec<Value> = details
        .iter()
        .map(|detail| {
            let mut value = json::value(detail);
            value["row"] = shown::row_with_letters(&detail.row);
            value
        })
        .collect();
    json::Document::new().with("jobs", &jobs).with("unknown_jobs", &missing).finish()
}

/// A block that is being written.
struct Block {
    text: String,
}

impl Block {
    fn put(&mut self, key: &str, value: impl Display) {
        let _ = writeln!(self.text, "{:<27} {value}", format!("{key}:"));
    }

    fn put_some(&mut self, key: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.put(key, value);
        }
    }

    fn put_list(&mut self, key: &str, entries: Vec<String>) {
        if !entries.is_empty() {
            self.put(key, entries.join(","));
        }
    }

    /// A line about one task.
    fn put_task(&mut self, key: &str, task: impl Display, value: impl Display) {
        let label = format!("{key:<12}{task:>3}:");
        let _ = writeln!(self.text, "{label:<27} {value}");
    }
}

fn block(detail: &JobDetail, binding: bool, clock: &Clock) -> String {
    let mut block = Block { text: format!("{}\n", "=".repeat(62)) };
    submission(&mut block, detail, clock);
    requests(&mut block, detail);
    program(&mut block, detail);
    dependencies(&mut block, detail);
    if binding {
        block.put("binding", "NONE");
    }
    let is_binary = matches!(detail.spec.program, Program::Command { .. });
    block.put("job_type", if is_binary { "binary" } else { "NONE" });
    tasks(&mut block, detail, binding);
    let mut label = "scheduling info:";
    for line in &detail.scheduling_info {
        let _ = writeln!(block.text, "{label:<27} {line}");
        label = "";
    }
    block.text
}

fn submission(block: &mut Block, detail: &JobDetail, clock: &Clock) {
    let (row, spec) = (&detail.row, &*detail.spec);
    block.put("job_number", row.number);
    block.put("exec_file", format_args!("job_scripts/{}", row.number));
    block.put("submission_time", clock.asctime(row.submitted));
    block.put_some("deadline", spec.deadline.map(|deadline| clock.asctime(deadline)));
    block.put("owner", &spec.owner.user);
    block.put("uid", spec.owner.uid);
    block.put("group", &spec.owner.group);
    block.put("gid", spec.owner.gid);
    for (key, name) in [
        ("sge_o_home", "SGE_O_HOME"),
        ("sge_o_log_name", "SGE_O_LOGNAME"),
        ("sge_o_path", "SGE_O_PATH"),
        ("sge_o_shell", "SGE_O_SHELL"),
        ("sge_o_tz", "SGE_O_TZ"),
    ] {
        block.put_some(key, carried(spec, name));
    }
    block.put("sge_o_workdir", &spec.submit_directory);
    block.put("sge_o_host", &spec.submit_host);
    block.put_some("execution_time", spec.start_after.map(|start| clock.asctime(start)));
    block.put("account", &row.account);
    block.put_some("cwd", spec.directory.as_ref());
    block.put_list("stderr_path_list", file_paths(&spec.stderr));
    block.put_some("reserve", spec.reserve.then_some("y"));
    block.put_some("merge", spec.merge_stderr.then_some("y"));
}

fn requests(block: &mut Block, detail: &JobDetail) {
    let (row, spec) = (&detail.row, &*detail.spec);
    if let Some(checkpoint) = &spec.checkpoint {
        block.put("checkpoint_object", checkpoint);
        block.put_some("checkpoint_attr", detail.checkpoint_when.map(occasions));
        block.put_some("checkpoint_interval", interval_s(spec).map(|seconds| format!("{seconds} seconds")));
    }
    let texts = |list: &[ResourceRequest]| list.iter().map(resource).collect::<Vec<_>>();
    block.put_list("hard resource_list", texts(&spec.requests.hard));
    block.put_list("soft resource_list", texts(&spec.requests.soft));
    block.put_list("master_hard_resource_list", texts(&spec.requests.master));
    block.put_list("slave_hard_resource_list", texts(&spec.requests.slaves));
    block.put_some("mail_options", mail_letters(spec.mail));
    block.put_list("mail_list", mail_list(spec));
    block.put("notify", if spec.notify { "TRUE" } else { "FALSE" });
    block.put("job_name", &row.name);
    block.put_list("stdout_path_list", file_paths(&spec.stdout));
    block.put_list("stdin_path_list", file_paths(&spec.stdin));
    block.put_some("priority", Some(spec.priority).filter(|priority| *priority != 0));
    block.put("jobshare", spec.job_share);
    block.put_some("oticket", Some(spec.override_tickets).filter(|tickets| *tickets != 0));
    block.put_some("restart", spec.rerunnable.map(|rerunnable| if rerunnable { "y" } else { "n" }));
    block.put_list("hard_queue_list", spec.requests.hard_queues.clone());
    block.put_list("soft_queue_list", spec.requests.soft_queues.clone());
    block.put_list("master_queue_list", spec.requests.master_queues.clone());
    block.put_list("slave_hard_queue_list", spec.requests.slave_queues.clone());
    block.put_list("shell_list", spec.shell.iter().map(shell).collect());
    block.put_some("ar_id", spec.reservation);
}

/// The letters in the order of 8.1.9's job, which is not that of its environments, in a field of its own width.
fn occasions(When { suspended, shutdown, periodic, unknown }: When) -> String {
    let letters = [('m', periodic), ('s', shutdown), ('x', suspended), ('r', unknown)];
    letters.into_iter().filter_map(|(letter, is_set)| is_set.then_some(letter)).chain("    ".chars()).collect()
}

/// The time of `-c`.
pub fn interval_s(spec: &JobSpec) -> Option<u64> {
    match spec.occasion {
        Some(Occasion::EverySeconds(seconds)) => Some(seconds),
        Some(Occasion::Never | Occasion::When(_)) | None => None,
    }
}

fn program(block: &mut Block, detail: &JobDetail) {
    let spec = &*detail.spec;
    block.put_list("env_list", environment(spec).map(|(name, value)| format!("{name}={}", or_none(value))).collect());
    block.put_list("job_args", spec.args.clone());
    block.put("script_file", script_file(spec));
    block.put_some("project", spec.project.as_ref());
    if let Some(pe) = &spec.requests.pe {
        // 8.1.9 has this one label in a form of its own.
        let _ = writeln!(block.text, "parallel environment:  {} range: {}", pe.name, pe.slots);
    }
    block.put_some("allocation rule", spec.requests.allocation_rule);
}

fn dependencies(block: &mut Block, detail: &JobDetail) {
    let (row, spec) = (&detail.row, &*detail.spec);
    let texts = |jobs: &[proto::id::JobNumber]| jobs.iter().map(ToString::to_string).collect::<Vec<_>>();
    if !spec.predecessors.is_empty() {
        let _ = writeln!(block.text, "{:<27} {}", "jid_predecessor_list (req):", spec.predecessors.join(","));
    }
    if !spec.array_predecessors.is_empty() {
        let _ = writeln!(block.text, "{:<27} {}", "ja_predecessor_list (req):", spec.array_predecessors.join(","));
    }
    block.put_list("jid_predecessor_list", texts(&row.waits_for));
    block.put_list("jid_successor_list", texts(&detail.successors));
    let context = spec.context.iter().map(|(name, value)| format!("{name}={value}"));
    block.put_list("context", context.collect());
    block.put_some("job-array tasks", spec.array);
    block.put_some("maximum concurrency", spec.task_concurrency);
}

fn tasks(block: &mut Block, detail: &JobDetail, binding: bool) {
    let on_hosts = || detail.row.tasks.iter().filter(|task| task.condition.phase != Phase::Finished);
    for task in on_hosts() {
        block.put_task("usage", task.task, usage(task));
    }
    for task in on_hosts().filter(|task| !task.maps.is_empty()) {
        let maps: Vec<String> = task.maps.iter().map(ToString::to_string).collect();
        block.put_task("resource_map", task.task, maps.join(","));
    }
    for task in on_hosts().filter(|_| binding) {
        block.put_task("binding", task.task, "NONE");
    }
    for (task, reason) in &detail.errors {
        let _ = writeln!(block.text, "error reason {task:>10}:      {reason}");
    }
}

fn usage(task: &TaskRow) -> String {
    let usage = &task.usage;
    let seconds = i64::try_from(usage.cpu_ms / 1000).unwrap_or(i64::MAX - 1);
    let cpu = Amount::from_base(seconds).qhost_text(Type::Time);
    let memory = |amount: u64| if amount == 0 { "N/A".to_owned() } else { bytes(amount) };
    format!(
        "cpu={cpu}, mem={} GB s, io={} GB, vmem={}, maxvmem={}",
        memory_seconds(usage),
        transferred(usage),
        memory(usage.vmem_bytes),
        memory(usage.maxvmem_bytes)
    )
}

/// A request with its value; TRUE where none was given, as the master reads it.
fn resource(request: &ResourceRequest) -> String {
    format!("{}={}", request.name, request.value.as_deref().unwrap_or("TRUE"))
}

fn carried<'a>(spec: &'a JobSpec, name: &str) -> Option<&'a str> {
    spec.environment.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// What was exported: the environment without what always travels.
pub fn environment(spec: &JobSpec) -> impl Iterator<Item = (&str, &str)> {
    let exported = spec.environment.iter().filter(|(name, _)| !name.starts_with("SGE_O_"));
    exported.map(|(name, value)| (name.as_str(), value.as_str()))
}

/// The script's or command's name.
pub fn script_file(spec: &JobSpec) -> &str {
    match &spec.program {
        Program::Script { path, .. } => path,
        Program::Command { command } => command,
    }
}

/// Users with their hosts; by default the owner on the submitting host.
pub fn mail_list(spec: &JobSpec) -> Vec<String> {
    if spec.mail_to.is_empty() {
        return vec![format!("{}@{}", spec.owner.user, spec.submit_host)];
    }
    spec.mail_to.clone()
}

fn mail_letters(mail: MailEvents) -> Option<String> {
    let MailEvents { begin, end, abort, suspend } = mail;
    let letters = [(abort, 'a'), (begin, 'b'), (end, 'e'), (suspend, 's')];
    let letters: String = letters.into_iter().filter_map(|(is_set, letter)| is_set.then_some(letter)).collect();
    (!letters.is_empty()).then_some(letters)
}

fn file_paths(paths: &[HostPath]) -> Vec<String> {
    paths.iter().map(|path| format!("{}:NONE:{}", host_of(path), path.path)).collect()
}

fn shell(path: &HostPath) -> String {
    format!("{}:{}", host_of(path), path.path)
}

fn host_of(path: &HostPath) -> &str {
    path.host.as_ref().map_or("NONE", |host| host.as_str())
}

fn or_none(value: &str) -> &str {
    if value.is_empty() { "NONE" } else { value }
}
