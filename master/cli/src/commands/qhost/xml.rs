//! `qhost -xml`. Its layout, its apostrophes and the apostrophes inside priorities are those of
//! 8.1.9.

use super::columns::HostColumns;
use super::{HostListing, Parts, queues_by_host};
use crate::commands::qstat::{JobLine as Line, by_host};
use crate::output::value::{self, Form, millionths};
use crate::output::xml::escape;
use proto::wire::view::{HostView, QueueView};
use std::fmt::Write as _;

/// The document.
pub fn render(shown: &HostListing, parts: Parts) -> String {
    let mut text = String::from(
        "<?xml version='1.0'?>\n<qhost xmlns:xsd=\"http://arc.liv.ac.uk/repos/darcs/sge/source/dist/util/resources/schemas/qhost/qhost.xsd\">\n",
    );
    let (mut jobs, mut queues) = (by_host(&shown.jobs), queues_by_host(&shown.queues));
    for host in &shown.hosts {
        let _ = writeln!(text, " <host name='{}'>", escape(host.host.as_str()));
        values(&mut text, host, parts);
        let jobs = jobs.remove(&host.host).unwrap_or_default();
        let queues = queues.remove(&host.host).unwrap_or_default();
        if parts.queues {
            for queue in queues {
                queue_element(&mut text, queue);
                let here = jobs
                    .iter()
                    .filter(|job| job.instance.is_some_and(|instance| instance.queue == queue.queue));
                here.for_each(|job| job_element(&mut text, job, JobPlace::Queue));
            }
        } else {
            jobs.iter().for_each(|job| job_element(&mut text, job, JobPlace::Host));
        }
        text.push_str(" </host>\n");
    }
    text.push_str("</qhost>\n");
    text
}

fn values(text: &mut String, host: &HostView, parts: Parts) {
    for (name, value) in HostColumns::of_host(host).named() {
        if parts.topology || !matches!(*name, "m_socket" | "m_core" | "m_thread") {
            let _ = writeln!(text, "   <hostvalue name='{name}'>{}</hostvalue>", escape(value));
        }
    }
    for resource in &host.resources {
        let (name, dominance) = (escape(resource.name.as_str()), value::dominance(resource));
        let shown = escape(&value::resource(resource, Form::Qhost));
        let free = resource
            .free_ids
            .as_ref()
            .map(|ids| format!(" free_ids='{}'", escape(&ids.join(" "))));
        let free = free.unwrap_or_default();
        let _ = writeln!(
            text,
            "   <resourcevalue name='{name}' dominance='{dominance}'{free}>{shown}</resourcevalue>"
        );
    }
}

fn queue_element(text: &mut String, queue: &QueueView) {
    let name = escape(queue.queue.as_str());
    let _ = writeln!(text, " <queue name='{name}'>");
    for (key, value) in [
        ("qtype_string", escape(&queue.kinds)),
        ("slots_used", queue.used.to_string()),
        ("slots", queue.total.to_string()),
        ("slots_resv", queue.reserved.to_string()),
        ("state_string", escape(&queue.states)),
    ] {
        let _ = writeln!(text, "   <queuevalue qname='{name}' name='{key}'>{value}</queuevalue>");
    }
    text.push_str(" </queue>\n");
}

/// The element in front of the one of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JobPlace {
    /// Its queue instance, with `-q`.
    Queue,
    /// Its host. The job has its queue instance a second time, under the name of its column in the
    /// text.
    Host,
}

fn job_element(text: &mut String, line: &Line<'_>, place: JobPlace) {
    let job = line.job;
    let queue = line.instance.map(ToString::to_string).unwrap_or_default();
    let mut body = vec![
        ("priority", format!("'{}'", millionths(line.priority.prior, 6))),
        ("qinstance_name", escape(&queue)),
        ("job_name", escape(&job.name)),
        ("job_owner", escape(job.owner.as_str())),
        ("job_state", line.letters.clone()),
        ("start_time", line.moment.seconds().to_string()),
    ];
    if place == JobPlace::Host {
        body.push(("queue_name", escape(&queue)));
    }
    body.push(("pe_master", line.role.text().to_owned()));
    body.extend(line.tasks.clone().map(|tasks| ("taskid", tasks)));
    let _ = writeln!(text, " <job name='{}'>", job.number);
    for (key, value) in body {
        let _ = writeln!(
            text,
            "   <jobvalue jobid='{}' name='{key}'>{value}</jobvalue>",
            job.number
        );
    }
    text.push_str(" </job>\n");
}
