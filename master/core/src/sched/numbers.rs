//! The numbers behind a job's place in the order, as `qstat -ext`, `-urg` and `-pri` show them.

use super::order_phase::{Queue, Rests, fine_priority, normalised_tickets, posix_part};
use super::urgency::{FINE, ONE, Range, parts};
use crate::policy::{Prices, Tickets};
use crate::state::State;
use crate::state::job::{Job, Place};
use proto::id::SubmitSeq;
use proto::time::Now;
use proto::wire::view::PriorityNumbers;

/// Whose numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// Of the next task to start.
    Pending,
    /// Of each task that runs.
    Running,
}

/// The numbers of a job. Of one that is held or waits only `npprior` counts, of one in error its tickets too.
pub(super) fn numbers(
    state: &State,
    queue: &Queue,
    seq: SubmitSeq,
    of: Of,
    range: Option<Range>,
    now: Now,
) -> PriorityNumbers {
    let Some(job) = state.jobs.get(&seq) else { return PriorityNumbers::default() };
    let prices = queue.prices();
    let npprior = shown(posix_part(job.spec.priority));
    let (Some(filed), Some(range)) = (queue.filed(seq).filter(|filed| filed.rests != Rests::Apart), range) else {
        let ntckts = if is_in_error(job) { normalised_tickets(prices, Tickets::default()) / FINE } else { 0 };
        let prior = rounded(i128::from(state.config.scheduler.weight_ticket.millionths()) * ntckts, ONE);
        return PriorityNumbers { prior: shown(prior), npprior, ntckts: shown(ntckts), ..PriorityNumbers::default() };
    };
    let parts = parts(state, seq, filed.bucket.urgency, now);
    let urgency = range.normalised(parts.sum());
    let tickets = match of {
        Of::Pending => prices.of_pending(filed.bucket.class, seq),
        Of::Running => prices.of_running(filed.bucket.class),
    };
    let normalised = normalised_tickets(prices, tickets);
    let numbers = PriorityNumbers {
        prior: shown(rounded(fine_priority(state, job.spec.priority, urgency, normalised), ONE * FINE)),
        npprior,
        nurg: shown(rounded(urgency, FINE)),
        ntckts: shown(rounded(normalised, FINE)),
        urg: shown(parts.sum()),
        rrcontr: shown(parts.resources),
        wtcontr: shown(parts.waiting),
        dlcontr: shown(parts.deadline),
        otckt: whole(tickets.overriding),
        ftckt: whole(tickets.functional),
        stckt: whole(tickets.share),
        tckts: whole(tickets.sum()),
        share: share(prices, tickets, of),
    };
    let is_shown = of == Of::Running || state.config.scheduler.report_pjob_tickets.0;
    if is_shown { numbers } else { without_tickets(numbers) }
}

/// `report_pjob_tickets FALSE`: what tickets are in is not told of pending jobs (TIX-20). They are ordered by it all the same.
fn without_tickets(numbers: PriorityNumbers) -> PriorityNumbers {
    PriorityNumbers { prior: 0, ntckts: 0, otckt: 0, ftckt: 0, stckt: 0, tckts: 0, share: 0, ..numbers }
}

/// The part of a task of what all pending, or all running tasks have, in millionths.
fn share(prices: &Prices, tickets: Tickets, of: Of) -> i64 {
    let all = match of {
        Of::Pending => prices.pending,
        Of::Running => prices.running,
    };
    if all > 0.0 { (tickets.sum() / all * 1e6).round() as i64 } else { 0 }
}

/// Tickets as they are shown: the part behind the point is left out.
fn whole(tickets: f64) -> i64 {
    tickets as i64
}

fn is_in_error(job: &Job) -> bool {
    job.tasks.values().any(|task| matches!(task.place, Place::Pending { error: Some(_) }))
}

fn shown(millionths: i128) -> i64 {
    i64::try_from(millionths).unwrap_or(if millionths > 0 { i64::MAX } else { i64::MIN })
}

/// The quotient of a number that is not negative, rounded to nearest.
fn rounded(number: i128, divisor: i128) -> i128 {
    (number + divisor / 2) / divisor
}
