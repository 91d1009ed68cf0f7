//! `gridwright explain`: why a job waits.

use crate::args::{CommandDef, Operands, Values, flag, with};
use crate::client::Client;
use crate::commands::Outcome;
use crate::commands::ask::{self, Format};
use crate::fail::Fail;
use crate::output::json;
use crate::output::value::millionths;
use crate::{exit, output};
use proto::amount::Millionths;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::JobNumber;
use proto::wire::client::Query;
use proto::wire::view::{Data, Explanation, Place, PriorityTerm, WaitReason};
use std::fmt::Write as _;

const EXPLAIN: CommandDef = CommandDef {
    name: "gridwright explain",
    summary: "Says why a job waits: per attribute and level what is needed, free and there in all, nearest miss first.",
    operand_placeholder: "JOB|NAME",
    operands: Operands::Anywhere,
    options: &[
        with("-fmt", Values::One, "text|json", "how to print (default: text)"),
        flag("-help", "print this help"),
        flag("--help", "print this help"),
    ],
    exit_codes: "0 explained; 1 no such job; 2 wrong option",
};

/// Runs `gridwright explain`.
pub fn run(words: Vec<String>) -> Outcome {
    let parsed = EXPLAIN.parse(words)?;
    if parsed.has("-help") || parsed.has("--help") {
        output::data(&EXPLAIN.help());
        return Ok(exit::OK);
    }
    let [job] = parsed.operands.as_slice() else {
        let what = format!("gridwright explain: one job is expected, {} are named", parsed.operands.len());
        return Err(Fail::new(
            exit::USAGE,
            Diagnostic::new(Code::BadSyntax, what).fix("gridwright explain JOB; qstat lists them"),
        ));
    };
    let json = super::sensor::is_json(&parsed)?;
    let mut client = ask::connect("gridwright explain", if json { Format::Json } else { Format::Text })?;
    let numbers = match job.parse() {
        Ok(number) => vec![JobNumber(number)],
        Err(_) => named(&mut client, job)?,
    };
    let mut code = exit::OK;
    for job in numbers {
        let reply = client.query(Query::Explain { job })?;
        if let Some(Data::Explanation(explanation)) = &reply.data {
            output::data(&if json { in_json(explanation) } else { in_text(explanation) });
        }
        code = code.max(output::answers(&reply.answers));
    }
    Ok(code)
}

/// The jobs of a name or pattern.
fn named(client: &mut Client, name: &str) -> Result<Vec<JobNumber>, Fail> {
    let reply = client.query(Query::JobDetails { targets: vec![name.to_owned()] })?;
    let found = match reply.data {
        Some(Data::JobDetails(found)) => found.iter().map(|detail| detail.row.number).collect(),
        _ => Vec::new(),
    };
    if !found.is_empty() {
        return Ok(found);
    }
    let refusal = Diagnostic::new(Code::UnknownJob, format!("job \"{name}\" does not exist"));
    Err(Fail::new(exit::FAILED, refusal.fix("qstat lists the jobs; of one that has ended: qacct -j JOB")))
}

fn in_json(explanation: &Explanation) -> String {
    json::line(&serde_json::json!({ "version": 1, "explanation": explanation }))
}

fn in_text(explanation: &Explanation) -> String {
    let mut text = format!("job {}: {}\n", explanation.job, explanation.summary);
    if let Some(at) = explanation.starts {
        let slots = explanation.kept.iter().map(|part| format!("{} on {}", part.slots, part.instance));
        let slots: Vec<String> = slots.collect();
        let _ = writeln!(
            text,
            "  slots are kept for it from {} on: {}",
            output::time::Clock::local().slashes(at),
            slots.join(", ")
        );
    }
    for reason in &explanation.reasons {
        text.push_str(&reason_text(reason));
    }
    text + &explanation.order.as_ref().map(order_text).unwrap_or_default()
}

/// The place in the order, each term of the priority, and who is in front.
fn order_text(place: &Place) -> String {
    let mut text = match place.place {
        Some(at) => format!("  order: place {at} of {}, priority {}\n", place.of, millionths(place.prior, 5)),
        None => format!("  order: {}\n", place.remark.as_deref().unwrap_or("none")),
    };
    place.terms.iter().for_each(|term| text.push_str(&term_text(term)));
    if !place.in_front.is_empty() {
        let jobs =
            place.in_front.iter().map(|job| format!("{} of {} ({})", job.job, job.owner, millionths(job.prior, 5)));
        let _ = writeln!(text, "    nearest in front: {}", jobs.collect::<Vec<_>>().join(", "));
        let users = place.users_in_front.iter().map(|(user, count)| format!("{user} {count}"));
        let _ = writeln!(text, "    in front by user: {}", users.collect::<Vec<_>>().join(", "));
    }
    text
}

/// `urgency 1000 (resources 1000, waiting 0, deadline 0): 0.50000 * 0.1 = 0.05000`
fn term_text(term: &PriorityTerm) -> String {
    let parts = term.parts.iter().map(|(name, number)| format!("{name} {}", millionths(*number, 0)));
    let parts = parts.collect::<Vec<_>>().join(", ");
    let parts = if parts.is_empty() { parts } else { format!(" ({parts})") };
    let [normalised, value] = [term.normalised, term.value].map(|number| millionths(number, 5));
    let (raw, weight) = (millionths(term.raw, 0), Millionths(term.weight));
    format!("    {} {raw}{parts}: {normalised} * {weight} = {value}\n", term.name)
}

fn reason_text(reason: &WaitReason) -> String {
    let mut text = format!("  {}\n", reason.text);
    let numbers = [("needed", &reason.needed), ("free", &reason.free), ("of", &reason.capacity)];
    let known: Vec<String> =
        numbers.iter().filter_map(|(name, value)| Some(format!("{name} {}", value.as_ref()?))).collect();
    if !known.is_empty() {
        let _ = writeln!(text, "    {}: {}", reason.attribute.as_deref().unwrap_or(&reason.level), known.join(", "));
    }
    if reason.count > 1 {
        let _ = writeln!(text, "    so for {} of this kind, such as {}", reason.count, reason.examples.join(", "));
    }
    if let Some(hint) = &reason.hint {
        let _ = writeln!(text, "    hint: {hint}");
    }
    text
}
