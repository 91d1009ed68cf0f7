//! `qstat`: jobs and queues, in the layouts that programs parse (master/cli/README.md "What
//! programs may rely on").
//!
//! Options become questions ([`options`]), answers become lines ([`shown`]), lines become text, XML
//! or JSON. Every renderer is a function of the views, so that the layouts are tested without a
//! daemon.

mod columns;
mod detail;
mod detail_xml;
mod full;
mod list;
mod options;
mod reasons;
mod requests;
mod shown;
mod summary;
#[cfg(test)]
mod tests;
mod xml;

pub use shown::{JobLine, Role, by_host, with_letters};

use crate::args::{CommandDef, Operands, ValueCount, detailed, flag, with};
use crate::client::Client;
use crate::commands::ask::{self, Format};
use crate::commands::{Outcome, ask::unexpected};
use crate::fail::Fail;
use crate::output::json;
use crate::output::time::{self, Clock};
use crate::{exit, output};
use options::{Options, View};
use proto::diagnostic::{Code, Diagnostic};
use proto::wire::client::{Answer, Query, QueueFilter};
use proto::wire::view::{Data, JobRow, QueueView};

pub const QSTAT: CommandDef = CommandDef {
    name: "qstat",
    summary: "Shows jobs and queues; without -u the caller's own jobs.",
    operand_placeholder: "",
    operands: Operands::None,
    options: &[
        flag("-ext", "view additional attributes"),
        with(
            "-explain",
            ValueCount::One,
            "a|c|A|E",
            "reason for queue a(larm), c(onfiguration), suspend A(larm), E(rror)",
        ),
        flag("-f", "full output"),
        with(
            "-F",
            ValueCount::Optional,
            "[resource_attributes]",
            "full output and (selected) resources of queues",
        ),
        with("-fmt", ValueCount::One, "text|xml|json", "how to write the answer"),
        with(
            "-g",
            ValueCount::One,
            "{c|d|t}",
            "c: cluster queue summary, d: every array task, t: every slot",
        ),
        flag("-help", "print this help"),
        with(
            "-j",
            ValueCount::Optional,
            "[job_identifier_list]",
            "everything about jobs, and why they wait",
        ),
        with("-l", ValueCount::One, "resource_list", "request the given resources"),
        flag("-ne", "hide empty queues"),
        flag("-ncb", "suppress binding"),
        flag("-cb", "view binding (the default)"),
        with(
            "-pe",
            ValueCount::One,
            "pe_list",
            "only queues with one of these parallel environments",
        ),
        with("-q", ValueCount::One, "wc_queue_list", "only these queues"),
        detailed(
            with(
                "-qs",
                ValueCount::One,
                "{a|c|d|o|s|u|A|C|D|E|S}",
                "only queues in the given state(s)",
            ),
            "Several letters select instances in any of the states. Example: `qstat -f -qs E`.",
        ),
        flag("-r", "show requested resources of jobs"),
        detailed(
            with(
                "-s",
                ValueCount::One,
                "{p|r|s|z|h[uosdja]|a}",
                "only pending, running, suspended, finished or held jobs",
            ),
            "`h` with a letter names one hold: `u`, `o`, `s` of user, operator and system; `j` and `d` of other jobs and \
             arrays; `a` of a start time. `a` alone is `psr`, the default. Example: `-s rs`.",
        ),
        flag("-t", "show task information (implies -g t)"),
        detailed(
            with("-u", ValueCount::One, "user_list", "jobs of these users, '*' for all"),
            "Default: the jobs of the caller.",
        ),
        with(
            "-U",
            ValueCount::One,
            "user_list",
            "only queues where these users have access",
        ),
        flag("-urg", "display job urgency information"),
        flag("-pri", "display job priority information"),
        flag("-xml", "display the information in XML format"),
    ],
    exit_codes: "0 printed, also when nothing matches; 1 refused, a wrong option, or a job of -j that does not exist",
};

/// Runs `qstat`.
pub fn run(words: Vec<String>) -> Outcome {
    let parsed = QSTAT.parse(words)?;
    if parsed.has("-help") {
        output::data(&QSTAT.help());
        return Ok(exit::OK);
    }
    let mut options = Options::from_command_line(&parsed, &ask::login_name())?;
    options.queues.load_value = std::env::var("SGE_LOAD_AVG").unwrap_or_default();
    let mut client = ask::connect("qstat", options.format)?;
    ask::check_pes(&mut client, &options.queues.pes)?;
    ask::check_resources(&mut client, &options.queues.resources)?;
    match &options.view {
        View::Details(targets) => details(&mut client, &options, targets),
        View::Reasons => every_reason(&mut client, &options),
        View::Summary => cluster_queues(&mut client, &options),
        View::List => jobs(&mut client, &options),
        View::Full => jobs_by_queue(&mut client, &options),
    }
}

/// Jobs alone. Where queues are selected, tasks elsewhere are left out.
fn jobs(client: &mut Client, options: &Options) -> Outcome {
    let mut rows = job_rows(client, options)?;
    let order = if options.by_queue {
        selected_queues(client, options)?
    } else {
        Vec::new()
    };
    if options.selects_queues() {
        shown::keep_tasks_in(&mut rows, &order);
    }
    let clock = Clock::local();
    output::data(&match options.format {
        Format::Text => list::render(&rows, &order, options, &clock),
        Format::Xml => xml::list(&rows, &order, options, &clock),
        Format::Json => json::JsonDocument::new()
            .with("jobs", &shown::with_letters(&rows))
            .finish(),
    });
    Ok(exit::OK)
}

fn jobs_by_queue(client: &mut Client, options: &Options) -> Outcome {
    let rows = job_rows(client, options)?;
    let queues = selected_queues(client, options)?;
    let clock = Clock::local();
    output::data(&match options.format {
        Format::Text => full::render(&queues, &rows, options, &clock),
        Format::Xml => xml::full(&queues, &rows, options, &clock),
        Format::Json => json::JsonDocument::new()
            .with("queues", &queues)
            .with("jobs", &shown::with_letters(&rows))
            .finish(),
    });
    Ok(exit::OK)
}

fn cluster_queues(client: &mut Client, options: &Options) -> Outcome {
    let queues = selected_queues(client, options)?;
    // As in 8.1.9 they are in the summary whatever else is selected, also by -pe.
    let summaries = summary::cluster_queues(&queues, &ask::queues_without_hosts(client)?);
    output::data(&match options.format {
        Format::Text => summary::text(&summaries, options.columns),
        Format::Xml => summary::xml(&summaries, options.columns),
        Format::Json => json::JsonDocument::new().with("cluster_queues", &summaries).finish(),
    });
    Ok(exit::OK)
}

fn job_rows(client: &mut Client, options: &Options) -> Result<Vec<JobRow>, Fail> {
    let mut rows = ask::jobs(client, Query::Jobs(options.jobs.clone()))?;
    options.keep_holds(&mut rows, time::now());
    Ok(rows)
}

/// The queue instances that the options select. A pattern of `-q` that matches none is an error, as
/// in 8.1.9.
fn selected_queues(client: &mut Client, options: &Options) -> Result<Vec<QueueView>, Fail> {
    let views = ask::queues(client, options.queues.clone())?;
    let patterns = &options.queues.queues;
    if !views.is_empty() || patterns.is_empty() {
        return Ok(views);
    }
    let named = QueueFilter {
        queues: patterns.clone(),
        ..QueueFilter::default()
    };
    if !ask::queues(client, named)?.is_empty() {
        return Ok(views);
    }
    let what = format!("error: no queue instance matches \"{}\"", patterns.join(","));
    Err(Diagnostic::new(Code::UnknownObject, what)
        .at("-q")
        .fix("qselect lists them")
        .into())
}

fn details(client: &mut Client, options: &Options, targets: &[String]) -> Outcome {
    let reply = client.query(Query::JobDetails {
        targets: targets.to_vec(),
    })?;
    let mut missing = Vec::new();
    for answer in reply.answers {
        match answer {
            Answer::Refused(refusal) if refusal.code == Code::UnknownJob => missing.push(refusal.what),
            Answer::Refused(refusal) => return Err(refusal.into()),
            Answer::Warning(warning) => output::diagnostic(&warning),
            Answer::Done(text) => output::note(&text),
        }
    }
    let found = match reply.data {
        Some(Data::JobDetails(found)) => found,
        other => unexpected(other.as_ref())?,
    };
    let clock = Clock::local();
    match options.format {
        // 8.1.9 ends with 0 here, and programs read the document only then.
        Format::Xml if found.is_empty() && !missing.is_empty() => {
            output::data(&detail_xml::unknown(&missing));
            return Ok(exit::OK);
        }
        Format::Xml => output::data(&detail_xml::render(&found)),
        Format::Text => output::data(&detail::render(&found, options.columns.binding, &clock)),
        Format::Json => output::data(&detail::json(&found, &missing)),
    }
    if missing.is_empty() {
        return Ok(exit::OK);
    }
    output::note("Following jobs do not exist: ");
    output::note(&missing.join(", "));
    Ok(exit::FAILED)
}

fn every_reason(client: &mut Client, options: &Options) -> Outcome {
    let waiting = match ask::data(client, Query::Reasons)? {
        Some(Data::Reasons(waiting)) => waiting,
        other => unexpected(other.as_ref())?,
    };
    let reasons = reasons::Reasons::of_list(&waiting);
    output::data(&match options.format {
        Format::Text => reasons.text(),
        Format::Xml => reasons.xml(),
        Format::Json => json::JsonDocument::new().with("scheduling_info", &reasons).finish(),
    });
    Ok(exit::OK)
}
