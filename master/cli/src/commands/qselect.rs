//! `qselect`: names of queue instances, for `qmod`, `qconf -mattr` and the like.

use crate::args::{CommandDef, Operands, ValueCount, flag, with};
use crate::commands::Outcome;
use crate::commands::ask::{self, Format};
use crate::output::json;
use crate::{exit, output};
use proto::wire::client::QueueFilter;
use proto::wire::view::QueueView;

pub const QSELECT: CommandDef = CommandDef {
    name: "qselect",
    summary: "Prints the names of queue instances, one a line.",
    operand_placeholder: "",
    operands: Operands::None,
    options: &[
        flag("-help", "print this help"),
        with("-l", ValueCount::One, "resource_list", "request the given resources"),
        with(
            "-pe",
            ValueCount::One,
            "pe_list",
            "only queues with one of these parallel environments",
        ),
        with("-q", ValueCount::One, "wc_queue_list", "only these queues"),
        with(
            "-qs",
            ValueCount::One,
            "{a|c|d|o|s|u|A|C|D|E|S}",
            "only queues in the given state(s)",
        ),
        with(
            "-U",
            ValueCount::One,
            "user_list",
            "only queues where these users have access",
        ),
        with("-fmt", ValueCount::One, "text|json", "how to write the answer"),
    ],
    exit_codes: "0 printed; 1 nothing matches, refused, or a wrong option",
};

/// Runs `qselect`. It says nothing without a match, and ends with 1 unless the cell has a cluster
/// queue without hosts.
pub fn run(words: Vec<String>) -> Outcome {
    let parsed = QSELECT.parse(words)?;
    if parsed.has("-help") {
        output::data(&QSELECT.help());
        return Ok(exit::OK);
    }
    let format = Format::from_command_line(&parsed)?;
    let filter = ask::queue_filter(&parsed)?;
    let mut client = ask::connect("qselect", format)?;
    ask::check_pes(&mut client, &filter.pes)?;
    ask::check_resources(&mut client, &filter.resources)?;
    let named = QueueFilter {
        queues: filter.queues.clone(),
        ..QueueFilter::default()
    };
    let views = ask::queues(&mut client, filter)?;
    output::data(&render(&views, format));
    // As in 8.1.9, a cluster queue without hosts is never left out, though it is not printed.
    let is_nothing = views.is_empty()
        && (ask::queues(&mut client, named)?.is_empty() || ask::queues_without_hosts(&mut client)?.is_empty());
    Ok(if is_nothing { exit::FAILED } else { exit::OK })
}

fn render(views: &[QueueView], format: Format) -> String {
    let names: Vec<String> = views
        .iter()
        .map(|view| format!("{}@{}", view.queue, view.host))
        .collect();
    match format {
        Format::Json => json::JsonDocument::new().with("queue_instances", &names).finish(),
        Format::Text | Format::Xml => names.iter().map(|name| format!("{name}\n")).collect(),
    }
}
