//! `qstat -r`: what a job asked for, below its line.

use super::shown::{JobLine, numbers};
use crate::output::value::millionths;
use proto::request::ResourceRequest;
use proto::wire::view::JobRow;
use std::fmt::Write as _;

/// The lines, each with its newline.
pub fn text(shown: &JobLine<'_>, binding: bool) -> String {
    let job = shown.job;
    let mut text = String::new();
    put(&mut text, "Full jobname:", &job.name);
    if let Some(queue) = shown.master_queue() {
        put(&mut text, "Master Queue:", &queue.to_string());
    }
    if let Some(pe) = &job.requests.pe {
        put(&mut text, "Requested PE:", &format!("{} {}", pe.name, pe.slots));
    }
    if let Some((name, slots)) = granted_pe(shown) {
        put(&mut text, "Granted PE:", &format!("{name} {slots}"));
    }
    if let Some(checkpoint) = &job.checkpoint {
        put(&mut text, "Checkpoint Env.:", checkpoint);
    }
    let hard = contributions(job).map(|(request, contribution)| format!("{request} ({contribution})"));
    resources(&mut text, "Hard Resources:", hard);
    resources(
        &mut text,
        "Soft Resources:",
        job.requests.soft.iter().map(ResourceRequest::to_string),
    );
    for (label, list) in [
        ("Master Hard Resources:", &job.requests.master),
        ("Slave Hard Resources:", &job.requests.slaves),
    ] {
        if !list.is_empty() {
            resources(&mut text, label, list.iter().map(ResourceRequest::to_string));
        }
    }
    for (label, list) in [
        ("Hard requested queues:", job.requests.hard_queues.join(", ")),
        ("Soft requested queues:", job.requests.soft_queues.join(", ")),
        (
            "Master task hard requested queues:",
            job.requests.master_queues.join(", "),
        ),
        (
            "Slave task hard requested queues:",
            job.requests.slave_queues.join(", "),
        ),
        ("Predecessor Jobs (request):", job.predecessors.join(", ")),
        ("Predecessor Jobs:", numbers(&job.waits_for)),
        ("Predecessor Array Jobs (request):", job.array_predecessors.join(", ")),
        ("Predecessor Array Jobs:", numbers(&job.array_waits_for)),
    ] {
        if !list.is_empty() {
            let _ = writeln!(text, "       {label} {list}");
        }
    }
    if binding {
        put(&mut text, "Binding:", &binding_text(job));
    }
    text
}

/// The request for cores; `NONE` if there is none.
pub fn binding_text(job: &JobRow) -> String {
    let request = job.requests.binding.as_ref();
    request.map_or_else(|| "NONE".to_owned(), ToString::to_string)
}

/// The hard requests, each with what it contributes to the urgency.
pub fn contributions(job: &JobRow) -> impl Iterator<Item = (&ResourceRequest, String)> {
    let known = job.contributions.iter().copied().chain(std::iter::repeat(0));
    job.requests
        .hard
        .iter()
        .zip(known.map(|contribution| millionths(contribution, 6)))
}

/// The parallel environment and all slots of a task that has one.
pub fn granted_pe<'a>(shown: &JobLine<'a>) -> Option<(&'a str, u32)> {
    let task = shown.task?;
    let slots = task.granted.iter().map(|granted| granted.slots).sum();
    task.pe.as_deref().map(|pe| (pe, slots))
}

fn put(text: &mut String, label: &str, value: &str) {
    let _ = writeln!(text, "       {label:<17} {value}");
}

/// The first on the line of the label, the others below it; the line is there even for none.
fn resources(text: &mut String, label: &str, mut requests: impl Iterator<Item = String>) {
    put(text, label, &requests.next().unwrap_or_default());
    let below = " ".repeat(label.len());
    for request in requests {
        put(text, &below, &request);
    }
}
