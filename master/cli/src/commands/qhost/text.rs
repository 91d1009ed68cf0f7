//! `qhost` as a table.

use super::columns::HostColumns;
use super::{HostListing, Parts, queues_by_host};
use crate::commands::qstat::{JobLine as Line, Role, by_host};
use crate::output::time::Clock;
use crate::output::value::{self, Form, cut, millionths};
use proto::wire::view::{HostView, QueueView};
use std::fmt::Write as _;

const HEADING: &str = "HOSTNAME                ARCH         NCPU NSOC NCOR NTHR  LOAD  MEMTOT  MEMUSE  SWAPTO  SWAPUS";
const HEADING_WITHOUT_TOPOLOGY: &str =
    "HOSTNAME                ARCH         NCPU  LOAD  MEMTOT  MEMUSE  SWAPTO  SWAPUS";
const JOB_HEADING: &str =
    "   job-ID  prior   name       user         state submit/start at     queue      master ja-task-ID ";

/// The whole table; empty without hosts.
pub fn render(shown: &HostListing, parts: Parts, clock: &Clock) -> String {
    if shown.hosts.is_empty() {
        return String::new();
    }
    let heading = if parts.topology {
        HEADING
    } else {
        HEADING_WITHOUT_TOPOLOGY
    };
    let mut text = format!("{heading}\n{}\n", "-".repeat(heading.len()));
    let (mut jobs, mut queues) = (by_host(&shown.jobs), queues_by_host(&shown.queues));
    for host in &shown.hosts {
        host_line(&mut text, host, parts);
        resources(&mut text, host, parts);
        let jobs = jobs.remove(&host.host).unwrap_or_default();
        let queues = queues.remove(&host.host).unwrap_or_default();
        if parts.queues {
            queue_lines(&mut text, &queues, &jobs, clock);
        } else if !jobs.is_empty() {
            let _ = writeln!(text, "{JOB_HEADING}\n   {}", "-".repeat(94));
            for job in &jobs {
                job_line(&mut text, job, true, clock);
            }
        }
    }
    text
}

fn host_line(text: &mut String, host: &HostView, parts: Parts) {
    let columns = HostColumns::of_host(host);
    let [
        arch,
        cpus,
        sockets,
        cores,
        threads,
        load,
        mem_total,
        mem_used,
        swap_total,
        swap_used,
    ] = columns.texts();
    let _ = write!(
        text,
        "{:<23} {:<12} {cpus:>4}",
        cut(host.host.as_str(), 23),
        cut(arch, 12)
    );
    for count in [sockets, cores, threads].into_iter().filter(|_| parts.topology) {
        let _ = write!(text, " {count:>4}");
    }
    let _ = writeln!(
        text,
        " {load:>5} {mem_total:>7} {mem_used:>7} {swap_total:>7} {swap_used:>7}"
    );
}

/// `-F`: a line for each; where attributes were named, the first has a label, as in 8.1.9.
fn resources(text: &mut String, host: &HostView, parts: Parts) {
    for (at, resource) in host.resources.iter().enumerate() {
        let label = if at == 0 && parts.named_resources {
            "    Host Resource(s):      "
        } else {
            "   "
        };
        let shown = value::resource(resource, Form::Qhost);
        let free = resource.free_ids.as_ref().map(|ids| format!(" ({})", ids.join(" ")));
        let free = free.unwrap_or_default();
        let _ = writeln!(
            text,
            "{label}{}:{}={shown}{free}",
            value::dominance(resource),
            resource.name
        );
    }
}

fn queue_lines(text: &mut String, queues: &[&QueueView], jobs: &[Line<'_>], clock: &Clock) {
    for queue in queues {
        let slots = format!("{}/{}/{}", queue.reserved, queue.used, queue.total);
        let (name, kinds) = (cut(queue.queue.as_str(), 20), cut(&queue.kinds, 5));
        let _ = writeln!(text, "   {name:<20} {kinds:<5} {slots:<13} {}", queue.states);
        for job in jobs
            .iter()
            .filter(|job| job.instance.is_some_and(|instance| instance.queue == queue.queue))
        {
            job_line(text, job, false, clock);
        }
    }
}

fn job_line(text: &mut String, line: &Line<'_>, with_queue: bool, clock: &Clock) {
    let job = line.job;
    let mut head = format!(
        "   {:>7} {:>7} {:<10} {:<12} {:<5} {} ",
        job.number,
        millionths(line.priority.prior, 5),
        cut(&job.name, 10),
        cut(job.owner.as_str(), 12),
        cut(&line.letters, 5),
        clock.slashes(line.moment)
    );
    if line.is_repeat && line.role == Role::Slave {
        head = " ".repeat(head.chars().count());
    }
    if with_queue {
        let queue = line.instance.map(ToString::to_string).unwrap_or_default();
        let _ = write!(head, "{:<10} ", cut(&queue, 10));
    }
    let tasks = line.tasks.as_deref().unwrap_or("       ");
    let _ = writeln!(text, "{head}{:<6} {tasks}", line.role.text());
}
