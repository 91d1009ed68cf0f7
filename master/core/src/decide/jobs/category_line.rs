//! The requests of a job as one line of `qsub` options: the `category` of accounting(5).

use proto::job::{JobSpec, Requests};
use proto::request::ResourceRequest;

/// The category of a job: queues, hard and soft requests, environment and its rule, checkpointing
/// environment, in the order of 8.1.9; then the requests of master and slaves, and the project.
/// Empty if it asks for nothing. Requests are ordered by name.
pub(crate) fn text(spec: &JobSpec) -> String {
    let mut requests = (*spec.requests).clone();
    let Requests {
        hard,
        soft,
        master,
        slaves,
        ..
    } = &mut requests;
    for list in [hard, soft, master, slaves] {
        list.sort_by(|one, other| one.name.cmp(&other.name));
    }
    let asked = asked(&requests, spec.checkpoint.as_deref());
    let project = spec.project.iter().map(|project| format!("-P {project}"));
    Some(asked)
        .filter(|asked| !asked.is_empty())
        .into_iter()
        .chain(project)
        .collect::<Vec<_>>()
        .join(" ")
}

/// What a job asks for, as options of `qsub`; empty if it asks for nothing.
pub(crate) fn asked(requests: &Requests, checkpoint: Option<&str>) -> String {
    let mut parts = Vec::new();
    push_queues(&mut parts, "-q", &requests.hard_queues);
    push_queues(&mut parts, "-masterq", &requests.master_queues);
    push(&mut parts, "-l", &requests.hard);
    push(&mut parts, "-soft -l", &requests.soft);
    if let Some(pe) = &requests.pe {
        parts.push(format!("-pe {} {}", pe.name, pe.slots));
    }
    if let Some(rule) = &requests.allocation_rule {
        parts.push(format!("-par {rule}"));
    }
    if let Some(checkpoint) = checkpoint {
        parts.push(format!("-ckpt {checkpoint}"));
    }
    push_queues(&mut parts, "-soft -q", &requests.soft_queues);
    // What stands behind -soft or -scope goes by it.
    let (before, is_soft) = (
        parts.len(),
        !requests.soft.is_empty() || !requests.soft_queues.is_empty(),
    );
    push(&mut parts, "-scope master -l", &requests.master);
    push(&mut parts, "-scope slave -l", &requests.slaves);
    push_queues(&mut parts, "-scope slave -q", &requests.slave_queues);
    if is_soft && parts.len() > before {
        parts.insert(before, "-hard".to_owned());
    }
    parts.join(" ")
}

fn push(parts: &mut Vec<String>, option: &str, requests: &[ResourceRequest]) {
    let texts: Vec<String> = requests.iter().map(ToString::to_string).collect();
    push_queues(parts, option, &texts);
}

fn push_queues(parts: &mut Vec<String>, option: &str, names: &[String]) {
    if !names.is_empty() {
        parts.push(format!("{option} {}", names.join(",")));
    }
}
