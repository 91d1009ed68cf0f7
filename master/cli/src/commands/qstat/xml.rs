//! `qstat -xml`: element names and their order are those that programs parse.

use super::columns::ColumnSet;
use super::options::Options;
use super::requests::{binding_text, contributions, granted_pe};
use super::shown::{self, JobLine};
use crate::output::time::Clock;
use crate::output::value::{self, Form, fraction, memory_seconds, millionths, transferred};
use crate::output::xml::XmlDocument;
use proto::wire::view::{JobRow, PriorityNumbers, QueueView};

/// Plain listing: tasks on hosts in `queue_info`, in the `order` of these queue instances, the
/// others in `job_info`; both are always there.
pub fn list(rows: &[JobRow], order: &[QueueView], options: &Options, clock: &Clock) -> String {
    let mut document = XmlDocument::new("job_info", "qstat");
    document.open("queue_info");
    for line in shown::listed(rows, options.columns.per_slot, order) {
        job(&mut document, &line, "running", options.columns, clock);
    }
    document.close();
    others(&mut document, rows, options, options.columns, clock);
    document.finish()
}

/// `-f` and `-F`: a `Queue-List` for each queue instance.
pub fn full(queues: &[QueueView], rows: &[JobRow], options: &Options, clock: &Clock) -> String {
    let columns = ColumnSet {
        queue: false,
        ..options.columns
    };
    let mut document = XmlDocument::new("job_info", "qstat");
    document.open("queue_info");
    let mut by_instance = shown::by_instance(rows, columns.per_slot);
    for queue in queues {
        let tasks = by_instance.remove(&shown::instance_of(queue)).unwrap_or_default();
        if options.hide_empty && tasks.is_empty() {
            continue;
        }
        document.open("Queue-List");
        queue_elements(&mut document, queue);
        for line in &tasks {
            job(&mut document, line, "running", columns, clock);
        }
        document.close();
    }
    document.close();
    others(&mut document, rows, options, columns, clock);
    document.finish()
}

fn others(document: &mut XmlDocument, rows: &[JobRow], options: &Options, columns: ColumnSet, clock: &Clock) {
    document.open("job_info");
    for line in shown::pending(rows, options.per_task) {
        job(document, &line, "pending", columns, clock);
    }
    for line in shown::finished(rows) {
        job(document, &line, "zombie", columns, clock);
    }
    document.close();
}

fn queue_elements(document: &mut XmlDocument, queue: &QueueView) {
    document.leaf("name", format_args!("{}@{}", queue.queue, queue.host));
    document.leaf("qtype", &queue.kinds);
    document.leaf("slots_used", queue.used);
    document.leaf("slots_resv", queue.reserved);
    document.leaf("slots_total", queue.total);
    if let Some(load) = queue.load_avg.as_deref().and_then(|text| value::load(text, 5)) {
        document.leaf("load_avg", load);
    }
    if let Some(arch) = &queue.arch {
        document.leaf("arch", arch);
    }
    if !queue.states.is_empty() {
        document.leaf("state", &queue.states);
    }
    for reason in &queue.explain {
        document.leaf("message", reason);
    }
    for resource in &queue.resources {
        let dominance = value::dominance(resource);
        let attributes = [("name", resource.name.as_str()), ("type", &dominance)];
        document.leaf_with("resource", &attributes, value::resource(resource, Form::Qstat));
    }
}

fn job(document: &mut XmlDocument, line: &JobLine<'_>, state: &str, columns: ColumnSet, clock: &Clock) {
    let row = line.job;
    document.open_with("job_list", &[("state", state)]);
    document.leaf("JB_job_number", row.number);
    document.leaf("JAT_prio", millionths(line.priority.prior, 5));
    priority_numbers(document, line, columns);
    document.leaf("JB_name", &row.name);
    document.leaf("JB_owner", &row.owner);
    if columns.extended {
        document.leaf("JB_project", row.project.as_deref().unwrap_or_default());
        document.leaf("JB_department", &row.department);
    }
    document.leaf("state", &line.letters);
    if columns.time() {
        let name = if line.task.is_some() {
            "JAT_start_time"
        } else {
            "JB_submission_time"
        };
        document.leaf(name, clock.iso(line.moment));
    }
    if let Some(deadline) = row.deadline.filter(|_| columns.urgency) {
        document.leaf("JB_deadline", clock.iso(deadline));
    }
    if columns.extended && !line.has_left {
        usage_and_tickets(document, line);
    }
    if columns.queue {
        document.leaf("queue_name", line.instance.map(ToString::to_string).unwrap_or_default());
    }
    if columns.per_slot {
        document.leaf("master", line.role.text());
    }
    document.leaf("slots", line.slots);
    if let Some(tasks) = &line.tasks {
        document.leaf("tasks", tasks);
    }
    if columns.requests {
        requests(document, line, columns.binding);
    }
    document.close();
}

fn priority_numbers(document: &mut XmlDocument, line: &JobLine<'_>, columns: ColumnSet) {
    let PriorityNumbers {
        npprior,
        nurg,
        ntckts,
        rrcontr,
        wtcontr,
        dlcontr,
        ..
    } = line.priority;
    let ColumnSet {
        extended,
        urgency,
        priority,
        ..
    } = columns;
    for (is_shown, name, number, decimals) in [
        (extended || priority, "JAT_ntix", ntckts, 5),
        (priority, "JB_nppri", npprior, 5),
        (urgency || priority, "JB_nurg", nurg, 5),
        (urgency, "JB_rrcontr", rrcontr, 0),
        (urgency, "JB_wtcontr", wtcontr, 0),
        (urgency, "JB_dlcontr", dlcontr, 0),
    ] {
        if is_shown {
            document.leaf(name, millionths(number, decimals));
        }
    }
    if priority {
        document.leaf("JB_priority", line.job.posix_priority);
    }
}

fn usage_and_tickets(document: &mut XmlDocument, line: &JobLine<'_>) {
    if let Some(usage) = line.usage() {
        document.leaf("cpu_usage", fraction(i128::from(usage.cpu_ms), 1000, 5));
        document.leaf("mem_usage", memory_seconds(usage));
        document.leaf("io_usage", transferred(usage));
    }
    let PriorityNumbers {
        otckt,
        ftckt,
        stckt,
        tckts,
        share,
        ..
    } = line.priority;
    document.leaf("tickets", tckts);
    document.leaf("JB_override_tickets", line.job.override_tickets);
    document.leaf("JB_jobshare", line.job.job_share);
    document.leaf("otickets", otckt);
    document.leaf("ftickets", ftckt);
    document.leaf("stickets", stckt);
    document.leaf("JAT_share", millionths(share, 5));
}

/// `-r`.
fn requests(document: &mut XmlDocument, line: &JobLine<'_>, binding: bool) {
    let row = line.job;
    document.leaf("full_job_name", &row.name);
    if let Some(pe) = &row.requests.pe {
        document.leaf_with("requested_pe", &[("name", &pe.name)], &pe.slots);
    }
    if let Some((name, slots)) = granted_pe(line) {
        document.leaf_with("granted_pe", &[("name", name)], slots);
    }
    for (request, contribution) in contributions(row) {
        let attributes = [
            ("name", request.name.as_str()),
            ("resource_contribution", contribution.as_str()),
        ];
        document.leaf_with("hard_request", &attributes, request.value.as_deref().unwrap_or("TRUE"));
    }
    let others = [
        ("soft_request", &row.requests.soft),
        ("master_hard_request", &row.requests.master),
        ("slave_hard_request", &row.requests.slaves),
    ];
    for (name, request) in others
        .into_iter()
        .flat_map(|(name, list)| list.iter().map(move |entry| (name, entry)))
    {
        let value = request.value.as_deref().unwrap_or("TRUE");
        document.leaf_with(name, &[("name", &request.name)], value);
    }
    let lists = [
        ("hard_req_queue", &row.requests.hard_queues),
        ("soft_req_queue", &row.requests.soft_queues),
        ("master_hard_req_queue", &row.requests.master_queues),
        ("slave_hard_req_queue", &row.requests.slave_queues),
        ("predecessor_jobs_req", &row.predecessors),
    ];
    for (name, entry) in lists
        .into_iter()
        .flat_map(|(name, list)| list.iter().map(move |entry| (name, entry)))
    {
        document.leaf(name, entry);
    }
    for number in &row.waits_for {
        document.leaf("predecessor_jobs", number);
    }
    for name in &row.array_predecessors {
        document.leaf("ad_predecessor_jobs_req", name);
    }
    for number in &row.array_waits_for {
        document.leaf("ad_predecessor_jobs", number);
    }
    if binding {
        document.leaf("binding", binding_text(row));
    }
}
