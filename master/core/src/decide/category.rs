//! The requests of a job as one line of `qsub` options: the `category` of accounting(5).

use proto::job::JobSpec;
use proto::request::ResourceRequest;

/// The category of a job: hard and soft requests, those of master and slaves, environment and its rule, queues, project; empty if it asks for nothing.
pub(super) fn text(spec: &JobSpec) -> String {
    let requests = &spec.requests;
    let mut parts = Vec::new();
    if let Some(project) = &spec.project {
        parts.push(format!("-P {project}"));
    }
    push(&mut parts, "-l", &requests.hard);
    push(&mut parts, "-soft -l", &requests.soft);
    if let Some(pe) = &requests.pe {
        parts.push(format!("-pe {} {}", pe.name, pe.slots));
    }
    if let Some(rule) = &requests.allocation_rule {
        parts.push(format!("-par {rule}"));
    }
    if let Some(checkpoint) = &spec.checkpoint {
        parts.push(format!("-ckpt {checkpoint}"));
    }
    push_queues(&mut parts, "-q", &requests.hard_queues);
    push_queues(&mut parts, "-soft -q", &requests.soft_queues);
    push_queues(&mut parts, "-masterq", &requests.master_queues);
    // What stands behind -soft or -scope goes by it.
    let (before, is_soft) = (parts.len(), !requests.soft.is_empty() || !requests.soft_queues.is_empty());
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
