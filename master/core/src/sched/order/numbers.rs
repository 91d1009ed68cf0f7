//! The numbers behind a job's place in the order, as `qstat -ext`, `-urg` and `-pri` show them.

use crate::policy::{Prices, Tickets};
use crate::sched::order::queue::{FiledJob, JobStanding, Queue, fine_priority, normalised_tickets, posix_part};
use crate::sched::order::urgency::{FINE, ONE, Range, parts};
use crate::state::State;
use crate::state::job::{Job, TaskPlace};
use proto::id::SubmitSeq;
use proto::time::Now;
use proto::wire::view::PriorityNumbers;

/// Whose numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskPhase {
    /// Of the next task to start.
    Pending,
    /// Of each task that runs.
    Running,
}

/// The numbers of a job. Of one that is held or waits only `npprior` counts, of one in error its
/// tickets too. Pending tasks have none while nothing of the job may start: as many tasks of it run
/// as `-tc` allows, or of its owner as `maxujobs` allows.
pub(crate) fn numbers(
    state: &State,
    queue: &Queue,
    seq: SubmitSeq,
    of: TaskPhase,
    range: Option<Range>,
    now: Now,
) -> PriorityNumbers {
    let Some(job) = state.jobs.get(&seq) else {
        return PriorityNumbers::default();
    };
    let prices = queue.prices();
    let npprior = shown(posix_part(job.spec.priority));
    let filed = queue.filed(seq);
    let is_kept_back = |filed: FiledJob| filed.rests == JobStanding::Running || queue.is_shut(filed.bucket);
    if of == TaskPhase::Pending && filed.is_some_and(is_kept_back) {
        return PriorityNumbers::default();
    }
    let (Some(filed), Some(range)) = (filed.filter(|filed| filed.rests != JobStanding::Apart), range) else {
        let ntckts = if is_in_error(job) {
            normalised_tickets(prices, Tickets::default()) / FINE
        } else {
            0
        };
        let prior = rounded(
            i128::from(state.config.scheduler.weight_ticket.millionths()) * ntckts,
            ONE,
        );
        return PriorityNumbers {
            prior: shown(prior),
            npprior,
            ntckts: shown(ntckts),
            ..PriorityNumbers::default()
        };
    };
    let bucket = queue.at(filed.bucket);
    let parts = parts(state, seq, bucket.urgency, now);
    let urgency = range.normalised(parts.sum());
    let tickets = match of {
        TaskPhase::Pending => prices.of_pending(bucket.class, seq),
        TaskPhase::Running => prices.of_running(bucket.class),
    };
    let normalised = normalised_tickets(prices, tickets);
    let numbers = PriorityNumbers {
        prior: shown(printable(
            fine_priority(state, job.spec.priority, urgency, normalised),
            ONE * FINE,
        )),
        npprior,
        nurg: shown(printable(urgency, FINE)),
        ntckts: shown(printable(normalised, FINE)),
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
    let is_shown = of == TaskPhase::Running || state.config.scheduler.report_pjob_tickets.0;
    if is_shown { numbers } else { without_tickets(numbers) }
}

/// With `report_pjob_tickets FALSE`, tickets and all numbers computed from them are shown as 0 for
/// pending jobs. The jobs are ordered by the true numbers all the same.
fn without_tickets(numbers: PriorityNumbers) -> PriorityNumbers {
    PriorityNumbers {
        prior: 0,
        ntckts: 0,
        otckt: 0,
        ftckt: 0,
        stckt: 0,
        tckts: 0,
        share: 0,
        ..numbers
    }
}

/// A task's part of the tickets of all pending tasks, or of all running tasks, in millionths.
fn share(prices: &Prices, tickets: Tickets, of: TaskPhase) -> i64 {
    let all = match of {
        TaskPhase::Pending => prices.pending,
        TaskPhase::Running => prices.running,
    };
    if all > 0.0 {
        shown(printable((tickets.sum() / all * (ONE * FINE) as f64) as i128, FINE))
    } else {
        0
    }
}

/// Tickets as they are shown: the part behind the point is left out.
fn whole(tickets: f64) -> i64 {
    tickets as i64
}

fn is_in_error(job: &Job) -> bool {
    job.tasks
        .values()
        .any(|task| matches!(task.place, TaskPlace::Pending { error: Some(_) }))
}

fn shown(millionths: i128) -> i64 {
    i64::try_from(millionths).unwrap_or(if millionths > 0 { i64::MAX } else { i64::MIN })
}

/// The quotient of a number that is not negative, in millionths that come out right when they are
/// rounded once more, to five or to two places: to nearest, but never to the middle of two such
/// numbers, unless it is the middle.
fn printable(number: i128, divisor: i128) -> i128 {
    let near = rounded(number, divisor);
    let is_middle = near % 10 == 5 || near % 10_000 == 5_000;
    if is_middle {
        near + (number - near * divisor).signum()
    } else {
        near
    }
}

/// The quotient of a number that is not negative, rounded to nearest.
fn rounded(number: i128, divisor: i128) -> i128 {
    (number + divisor / 2) / divisor
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_rounded_twice_is_what_it_is_when_rounded_once() {
        // 0.4289254 is 0.42893, 0.5154545 is 0.51545 and 0.0349999 is 0.03; 0.125 is the middle.
        for (number, expected) in [
            (4_289_254, 428_926),
            (5_154_545, 515_454),
            (349_996, 34_999),
            (1_250_000, 125_000),
        ] {
            assert_eq!(printable(number, 10), expected, "{number}");
        }
        assert_eq!(printable(3_333_333, 10), 333_333);
    }
}
