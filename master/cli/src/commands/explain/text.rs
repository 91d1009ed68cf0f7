//! An explanation in lines for people.

use super::Style;
use crate::output::time::Clock;
use crate::output::value::millionths;
use proto::amount::Millionths;
use proto::binding::BindingOutcome;
use proto::wire::view::{
    Comparison, Explanation, Holder, OrderPosition, Predecessor, PriorityTerm, TaskRow, WaitReason,
};
use std::fmt::Write as _;

/// The summary, the tasks on hosts, the reasons, and the order where that is the reason or was
/// asked for.
pub(super) fn explanation(explanation: &Explanation, style: &Style) -> String {
    let clock = &style.clock;
    let mut text = format!("job {}: {}\n", explanation.job, explanation.summary);
    if explanation.on_hosts > 0 && explanation.pending > 0 {
        let Explanation { on_hosts, pending, .. } = explanation;
        let _ = writeln!(text, "  on hosts: {on_hosts} of its tasks, waiting: {pending}");
    }
    if let Some(at) = explanation.starts {
        let slots = explanation
            .kept
            .iter()
            .map(|part| format!("{} on {}", part.slots, part.instance));
        let slots: Vec<String> = slots.collect();
        let _ = writeln!(
            text,
            "  slots are kept for it from {} on: {}",
            clock.slashes(at),
            slots.join(", ")
        );
    }
    let is_array =
        explanation.on_hosts + explanation.pending > 1 || explanation.tasks.iter().any(|task| task.task.0 > 1);
    explanation
        .tasks
        .iter()
        .for_each(|task| text.push_str(&task_text(task, is_array, clock)));
    let more = (explanation.on_hosts as usize).saturating_sub(explanation.tasks.len());
    if more > 0 {
        let _ = writeln!(text, "  and {more} more on hosts: qstat -g d shows each");
    }
    explanation
        .reasons
        .iter()
        .for_each(|reason| text.push_str(&reason_text(reason, clock)));
    let order = explanation
        .order
        .as_ref()
        .filter(|_| style.has_order || explanation.by_order);
    text + &order.map(order_text).unwrap_or_default()
}

/// `  task 3: state r on all.q@node1 since 11/25/2026 20:16:34`.
fn task_text(task: &TaskRow, is_array: bool, clock: &Clock) -> String {
    let name = if is_array {
        format!("task {}: ", task.task)
    } else {
        String::new()
    };
    let slots: u32 = task.granted.iter().map(|part| part.slots).sum();
    let place = task
        .granted
        .first()
        .map_or_else(|| "no host".to_owned(), |part| part.instance.to_string());
    let others = task.granted.len().saturating_sub(1);
    let others = if others > 0 {
        format!(" and {others} other queue instances")
    } else {
        String::new()
    };
    let slots = if slots > 1 {
        format!(", {slots} slots")
    } else {
        String::new()
    };
    let (state, since) = (task.condition.letters(), clock.slashes(task.started));
    format!(
        "  {name}state {state} on {place}{others}{slots}, since {since}\n{}",
        unbound_text(task)
    )
}

/// ` not bound to cores on node1: it asks for 3 free cores, and the host has
/// 2`, for each such host.
fn unbound_text(task: &TaskRow) -> String {
    let lines = task.binding.iter().filter_map(|binding| match &binding.outcome {
        BindingOutcome::Bound(_) => None,
        BindingOutcome::Unbound(why) => Some(format!("    not bound to cores on {}: {why}\n", binding.host)),
    });
    lines.collect()
}

fn reason_text(reason: &WaitReason, clock: &Clock) -> String {
    let mut text = format!("  {}\n", reason.text);
    let numbers = [
        ("needed", &reason.needed),
        ("free", &reason.free),
        ("of", &reason.capacity),
    ];
    let known: Vec<String> = numbers
        .iter()
        .filter_map(|(name, value)| Some(format!("{name} {}", value.as_ref()?)))
        .collect();
    if !known.is_empty() && reason.context.comparison == Comparison::Amount {
        let _ = writeln!(
            text,
            "    {}: {}",
            reason.attribute.as_deref().unwrap_or(&reason.level),
            known.join(", ")
        );
    }
    if reason.count > 1 {
        let what = if reason.level == "job" {
            "of its tasks"
        } else {
            "of this kind"
        };
        let _ = writeln!(
            text,
            "    this holds for {} {what}, such as {}",
            reason.count,
            reason.examples.join(", ")
        );
    }
    if let Some(until) = reason.context.until {
        let _ = writeln!(text, "    until {}", clock.slashes(until));
    }
    text.push_str(&holders_text(reason, clock));
    reason
        .context
        .predecessors
        .iter()
        .for_each(|job| text.push_str(&predecessor_text(job, clock)));
    if let Some(hint) = &reason.hint {
        let _ = writeln!(text, "    hint: {hint}");
    }
    text
}

/// `    held by: job 70 of ann (1, free by 11/25/2026 20:16:34), and 3 more`.
fn holders_text(reason: &WaitReason, clock: &Clock) -> String {
    let holders = &reason.context.holders;
    if holders.is_empty() {
        return String::new();
    }
    let named: Vec<String> = holders.iter().map(|holder| holder_text(holder, clock)).collect();
    let more = (reason.context.holders_count as usize).saturating_sub(holders.len());
    let more = if more > 0 {
        format!(", and {more} more")
    } else {
        String::new()
    };
    format!("    held by: {}{more}\n", named.join(", "))
}

fn holder_text(holder: &Holder, clock: &Clock) -> String {
    let name = match (holder.job, holder.task, holder.reservation) {
        (Some(job), Some(task), _) => format!("job {job}.{task}"),
        (Some(job), None, _) => format!("job {job}"),
        (None, _, Some(reservation)) => format!("advance reservation {reservation}"),
        (None, _, None) => "a job that has ended".to_owned(),
    };
    let owner = if holder.owner.is_empty() {
        String::new()
    } else {
        format!(" of {}", holder.owner)
    };
    let until = holder
        .until
        .map_or_else(String::new, |at| format!(", free by {}", clock.slashes(at)));
    format!("{name}{owner} ({}{until})", holder.amount)
}

/// `    job 70 "first" of ann: runs in all.q@node1 since 11/25/2026 20:16:34, ends by 11/25/2026
/// 21:16:34`.
fn predecessor_text(job: &Predecessor, clock: &Clock) -> String {
    let Predecessor {
        job,
        name,
        owner,
        state,
        place,
        since,
        until,
    } = job;
    let mut text = format!("    job {job} \"{name}\" of {owner}: {state}");
    if let Some(place) = place {
        let _ = write!(text, " in {place}");
    }
    if let Some(since) = since {
        let _ = write!(text, " since {}", clock.slashes(*since));
    }
    if let Some(until) = until {
        let _ = write!(text, ", ends by {}", clock.slashes(*until));
    }
    text + "\n"
}

/// The place in the order, each term of the priority, and who is in front.
fn order_text(place: &OrderPosition) -> String {
    let mut text = match place.place {
        Some(at) => format!(
            "  order: place {at} of {}, priority {}\n",
            place.of,
            millionths(place.prior, 5)
        ),
        None => format!("  order: {}\n", place.remark.as_deref().unwrap_or("none")),
    };
    place.terms.iter().for_each(|term| text.push_str(&term_text(term)));
    if !place.in_front.is_empty() {
        let jobs = place
            .in_front
            .iter()
            .map(|job| format!("{} of {} ({})", job.job, job.owner, millionths(job.prior, 5)));
        let _ = writeln!(text, "    nearest in front: {}", jobs.collect::<Vec<_>>().join(", "));
        let users = place
            .users_in_front
            .iter()
            .map(|(user, count)| format!("{user} {count}"));
        let _ = writeln!(text, "    in front by user: {}", users.collect::<Vec<_>>().join(", "));
    }
    text
}

/// `urgency 1000 (resources 1000, waiting 0, deadline 0): 0.50000 * 0.1 = 0.05000`
fn term_text(term: &PriorityTerm) -> String {
    let parts = term
        .parts
        .iter()
        .map(|(name, number)| format!("{name} {}", millionths(*number, 0)));
    let parts = parts.collect::<Vec<_>>().join(", ");
    let parts = if parts.is_empty() { parts } else { format!(" ({parts})") };
    let [normalised, value] = [term.normalised, term.value].map(|number| millionths(number, 5));
    let (raw, weight) = (millionths(term.raw, 0), Millionths(term.weight));
    format!("    {} {raw}{parts}: {normalised} * {weight} = {value}\n", term.name)
}
