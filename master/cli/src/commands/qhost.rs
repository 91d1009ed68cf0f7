//! `qhost`: hosts with their load, resources, queues and jobs, in the layouts that programs parse
//! (master/cli/README.md "What programs may rely on").

mod columns;
#[cfg(test)]
mod tests;
mod text;
mod xml;

use crate::args::{CommandDef, CommandLine, Operands, ValueCount, flag, with};
use crate::client::Client;
use crate::commands::Outcome;
use crate::commands::ask::{self, Format};
use crate::commands::qstat::with_letters;
use crate::fail::Fail;
use crate::output::json;
use crate::output::time::Clock;
use crate::{exit, output};
use proto::id::HostName;
use proto::wire::client::{HostFilter, JobFilter, Query, QueueFilter};
use proto::wire::view::{HostView, JobRow, QueueView};
use std::collections::BTreeMap;

pub const QHOST: CommandDef = CommandDef {
    name: "qhost",
    summary: "Shows hosts with their load.",
    operand_placeholder: "",
    operands: Operands::None,
    options: &[
        with(
            "-F",
            ValueCount::Optional,
            "[resource_attribute]",
            "show (selected) resources",
        ),
        with("-h", ValueCount::One, "hostlist", "display only selected hosts"),
        flag("-help", "print this help"),
        flag("-j", "display jobs hosted by host"),
        with("-l", ValueCount::One, "attr=val,...", "request the given resources"),
        flag("-ncb", "suppress host topology based information"),
        flag("-cb", "view host topology based information (the default)"),
        flag("-q", "display queues hosted by host"),
        with(
            "-u",
            ValueCount::One,
            "user[,user,...]",
            "display jobs of these users (implies -j)",
        ),
        flag("-xml", "display the information in XML format"),
        with("-fmt", ValueCount::One, "text|xml|json", "how to write the answer"),
    ],
    exit_codes: "0 printed; 1 refused, a wrong option, or a host of -h does not exist",
};

/// What is shown beside the host's own line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// `-q`.
    pub queues: bool,
    /// `-j` or `-u`.
    pub jobs: bool,
    /// Whether sockets, cores and threads have columns; `-ncb` leaves them out.
    pub topology: bool,
    /// Whether `-F` named attributes.
    pub named_resources: bool,
}

impl Parts {
    fn from_command_line(parsed: &CommandLine) -> Self {
        Self {
            queues: parsed.has("-q"),
            // Who names users wants to see their jobs.
            jobs: parsed.has("-j") || parsed.has("-u"),
            topology: !parsed.has("-ncb"),
            named_resources: !ask::list(parsed, "-F").is_empty(),
        }
    }
}

/// Everything that is shown.
#[derive(Clone, Debug, Default)]
pub struct HostListing {
    /// In display order.
    pub hosts: Vec<HostView>,
    /// In display order, of all hosts.
    pub queues: Vec<QueueView>,
    /// Jobs of all hosts.
    pub jobs: Vec<JobRow>,
}

/// Runs `qhost`.
pub fn run(words: Vec<String>) -> Outcome {
    let parsed = QHOST.parse(words)?;
    if parsed.has("-help") {
        output::data(&QHOST.help());
        return Ok(exit::OK);
    }
    let format = Format::from_command_line(&parsed)?;
    let filter = HostFilter {
        hosts: ask::list(&parsed, "-h"),
        resources: ask::resources(&parsed)?,
        attributes: ask::optional_list(&parsed, "-F"),
    };
    let parts = Parts::from_command_line(&parsed);
    let mut client = ask::connect("qhost", format)?;
    let shown = ask_all(&mut client, &parsed, filter, parts)?;
    let clock = Clock::local();
    output::data(&match format {
        Format::Text => text::render(&shown, parts, &clock),
        Format::Xml => xml::render(&shown, parts),
        Format::Json => as_json(&shown, parts),
    });
    Ok(exit::OK)
}

fn ask_all(client: &mut Client, parsed: &CommandLine, filter: HostFilter, parts: Parts) -> Result<HostListing, Fail> {
    ask::check_resources(client, &filter.resources)?;
    let selects = !filter.resources.is_empty();
    let mut hosts = ask::hosts(client, Query::Hosts(filter))?;
    // A request is asked of hosts: the cluster as a whole is none.
    hosts.retain(|view| !(selects && view.host.is_global()));
    let queues = match parts.queues {
        true => ask::queues(client, QueueFilter::default())?,
        false => Vec::new(),
    };
    let of_users = JobFilter {
        users: ask::list(parsed, "-u"),
        ..JobFilter::default()
    };
    let jobs = match parts.jobs {
        true => ask::jobs(client, Query::Jobs(of_users))?,
        false => Vec::new(),
    };
    Ok(HostListing { hosts, queues, jobs })
}

/// Queue instances by their hosts, in display order.
fn queues_by_host(queues: &[QueueView]) -> BTreeMap<&HostName, Vec<&QueueView>> {
    let mut by_host: BTreeMap<&HostName, Vec<&QueueView>> = BTreeMap::new();
    for queue in queues {
        by_host.entry(&queue.host).or_default().push(queue);
    }
    by_host
}

fn as_json(shown: &HostListing, parts: Parts) -> String {
    let mut document = json::JsonDocument::new().with("hosts", &shown.hosts);
    if parts.queues {
        document = document.with("queues", &shown.queues);
    }
    if parts.jobs {
        document = document.with("jobs", &with_letters(&shown.jobs));
    }
    document.finish()
}
