//! Reasons about a job itself: errors, holds, predecessors, times and limits on how many of its
//! tasks run; and what its running tasks do.

use super::advice::{plain, wall};
use crate::collections::ranges::TaskRanges;
use crate::ledger::timeline::NEVER;
use crate::observe::Observations;
use crate::sched::expected_end;
use crate::state::State;
use crate::state::eligible::{IneligibleReason, eligible, eligible_tasks, job_eligible, user_eligible};
use crate::state::job::{Job, Placement};
use proto::calendar::CalendarState;
use proto::id::{JobNumber, SubmitSeq, TaskId};
use proto::job::Holds;
use proto::request::TaskRange;
use proto::time::{Now, Wall};
use proto::wire::view::{Predecessor, ReasonContext, WaitReason};

/// Predecessors, and tasks as examples, that are named with a reason.
const NAMED: usize = 5;

/// Tasks whose errors and states are looked at.
const TASKS_LOOKED_AT: usize = 1000;

/// The tasks of a job that are asked about.
pub(super) struct TaskSelection {
    /// The tasks that wait.
    pub pending: TaskRanges,
    /// The tasks on hosts, in ascending order.
    pub on_hosts: Vec<TaskId>,
    /// Whether all are meant.
    is_whole: bool,
}

impl TaskSelection {
    /// The tasks in these ranges; no range means all.
    pub(super) fn from_ranges(job: &Job, ranges: &[TaskRange]) -> TaskSelection {
        let chosen = job.select(ranges);
        let on_hosts = job
            .placements()
            .map(|(task, _)| task)
            .filter(|task| chosen.contains(*task))
            .collect();
        TaskSelection {
            pending: job.pending_of(chosen),
            on_hosts,
            is_whole: ranges.is_empty(),
        }
    }

    /// Whether one of the tasks may be started, as far as the task itself goes.
    fn has_eligible(&self, state: &State, job: &Job, now: Now) -> bool {
        let mut eligible = eligible_tasks(state, job, now);
        if self.is_whole {
            eligible.next().is_some()
        } else {
            eligible.any(|task| self.pending.contains(task))
        }
    }
}

/// The reasons against a job that do not depend on the cluster.
pub(super) struct JobReasons {
    /// Set if it may not start for one of the reasons, whatever is free.
    pub summary: Option<String>,
    pub reasons: Vec<WaitReason>,
}

/// Returns the reasons against the waiting tasks that hold on every host.
pub(super) fn of_job(state: &State, job: &Job, part: &TaskSelection, now: Now) -> JobReasons {
    let mut reasons = errors(job, part);
    let has_eligible = part.has_eligible(state, job, now);
    let (in_error, is_array) = (
        reasons.iter().map(|reason| reason.count).sum::<u32>(),
        job.spec.array.is_some(),
    );
    if !has_eligible && in_error > 0 && in_error >= part.pending.len() {
        let summary = if is_array {
            "Its tasks are in error."
        } else {
            "It is in error."
        };
        return JobReasons {
            summary: Some(summary.to_owned()),
            reasons,
        };
    }
    let mut waits = Vec::new();
    if let Err(why) = job_eligible(state, job, now.wall).and_then(|()| user_eligible(state, job)) {
        waits.push(not_eligible(state, job, &why, now));
    }
    if !has_eligible {
        waits.extend(holds(job, part));
        if let (true, Some(first)) = (waits.is_empty(), part.pending.first())
            && let Err(why) = eligible(state, job, first, now)
        {
            waits.push(not_eligible(state, job, &why, now));
        }
    }
    let summary = (!waits.is_empty()).then(|| "It may not start yet.".to_owned());
    reasons.splice(0..0, waits);
    JobReasons { summary, reasons }
}

/// The errors of tasks, those with equal words together.
fn errors(job: &Job, part: &TaskSelection) -> Vec<WaitReason> {
    let in_error = job.tasks.iter().filter(|(task, _)| part.pending.contains(**task));
    let errors = in_error.filter_map(|(task, state)| Some((*task, state.place.error()?)));
    let mut reasons = Vec::new();
    for (task, error) in errors.take(TASKS_LOOKED_AT) {
        let hint = format!("clear it with qmod -cj {} once the cause is gone", job.number);
        add(&mut reasons, job, task, without_head(error), &hint);
    }
    reasons
}

/// Adds a task to the reason with the same text, or adds a new reason.
fn add(reasons: &mut Vec<WaitReason>, job: &Job, task: TaskId, text: &str, hint: &str) {
    let name = task_name(job, task);
    match reasons.iter_mut().find(|reason| reason.text == text) {
        Some(reason) => {
            reason.count += 1;
            if reason.examples.len() < NAMED {
                reason.examples.push(name);
            }
        }
        None => {
            let hint = (!hint.is_empty()).then(|| hint.to_owned());
            reasons.push(WaitReason {
                examples: vec![name],
                ..plain(text.to_owned(), hint)
            });
        }
    }
}

fn task_name(job: &Job, task: TaskId) -> String {
    match job.spec.array {
        Some(_) => format!("{}.{task}", job.number),
        None => job.number.to_string(),
    }
}

/// An error without the date and the ids that a shepherd puts in front:
/// `11/25/2026 19:46:07 [2004:17602]: error: …`.
fn without_head(error: &str) -> &str {
    let Some((head, rest)) = error.split_once("]: ") else {
        return error;
    };
    let is_head = head.starts_with(|first: char| first.is_ascii_digit())
        && head.contains(" [")
        && head
            .chars()
            .all(|letter| letter.is_ascii_digit() || " /:[".contains(letter));
    if is_head { rest } else { error }
}

/// The holds that people set, with who releases each.
fn holds(job: &Job, part: &TaskSelection) -> Vec<WaitReason> {
    let of_fresh = job
        .untouched
        .iter()
        .any(|task| part.pending.contains(task))
        .then_some(job.spec.holds);
    let of_tasks = job
        .tasks
        .iter()
        .filter(|(task, _)| part.pending.contains(**task))
        .map(|(_, task)| task.holds);
    let all = of_fresh
        .into_iter()
        .chain(of_tasks)
        .fold(Holds::default(), |all, holds| Holds {
            user: all.user || holds.user,
            operator: all.operator || holds.operator,
            system: all.system || holds.system,
        });
    let (number, owner) = (job.number, &job.spec.owner.user);
    let kinds = [
        (
            all.user,
            "user hold (u)",
            format!("{owner}, an operator or a manager releases it: qrls {number}"),
        ),
        (
            all.operator,
            "operator hold (o)",
            format!("an operator or a manager releases it: qrls -h o {number}"),
        ),
        (
            all.system,
            "system hold (s)",
            format!("a manager releases it: qrls -h s {number}"),
        ),
    ];
    let set = kinds.into_iter().filter(|(is_set, _, _)| *is_set);
    set.map(|(_, kind, hint)| plain(format!("it is held: {kind}"), Some(hint)))
        .collect()
}

fn not_eligible(state: &State, job: &Job, why: &IneligibleReason, now: Now) -> WaitReason {
    let text = why.text(state);
    let reason = |hint: Option<String>| plain(text.clone(), hint);
    let until = |at: Wall| ReasonContext {
        until: Some(at),
        ..ReasonContext::default()
    };
    let number = job.number;
    match why {
        IneligibleReason::Held | IneligibleReason::NotPending | IneligibleReason::Error => reason(None),
        IneligibleReason::WaitsFor(jobs) => {
            let predecessors = jobs
                .iter()
                .take(NAMED)
                .filter_map(|seq| predecessor(state, *seq, now))
                .collect();
            let context = ReasonContext {
                predecessors,
                ..ReasonContext::default()
            };
            WaitReason {
                context,
                ..reason(None)
            }
        }
        IneligibleReason::StartTime(at) => {
            let hint = format!("qalter -a gives it another time: qalter -a [CC]YYMMDDhhmm {number}");
            WaitReason {
                context: until(*at),
                ..reason(Some(hint))
            }
        }
        IneligibleReason::AskedAgain(at) => {
            let hint = "the job, its prolog or its epilog ended with exit status 99; the pause grows if that goes on";
            WaitReason {
                context: until(*at),
                ..reason(Some(hint.to_owned()))
            }
        }
        IneligibleReason::TaskConcurrency(_) => reason(Some("more of its tasks may run with qalter -tc".to_owned())),
        IneligibleReason::ArrayInstances(_) => {
            let hint = "it goes on when one of them ends; a manager changes max_aj_instances with qconf -mconf";
            reason(Some(hint.to_owned()))
        }
        IneligibleReason::UserJobs(_) => {
            let hint = "it goes on when one of them ends; a manager changes maxujobs with qconf -msconf";
            reason(Some(hint.to_owned()))
        }
        IneligibleReason::ReservationTime(_, at) => WaitReason {
            context: until(*at),
            ..reason(None)
        },
        IneligibleReason::NoReservation(_) => reason(Some("qalter -ar 0 lets it run without one".to_owned())),
        IneligibleReason::ReservationBroken(id) => reason(Some(format!("qrstat -explain -ar {id} names what fails"))),
    }
}

/// A job that is waited for, and what it does.
fn predecessor(state: &State, seq: SubmitSeq, now: Now) -> Option<Predecessor> {
    let Some(job) = state.jobs.get(&seq) else {
        return ended_predecessor(state, seq);
    };
    let named = |what: &str| Predecessor {
        job: job.number,
        name: job.spec.name.clone(),
        owner: job.spec.owner.user.to_string(),
        state: what.to_owned(),
        place: None,
        since: None,
        until: None,
    };
    if let Some((_, placement)) = job.placements().next() {
        let booking = state.ledger.booking(placement.key);
        let until = booking
            .map(|booking| expected_end(&state.config, booking))
            .filter(|at| *at != NEVER);
        return Some(Predecessor {
            place: Some(placement.master().to_string()),
            since: placement.started,
            until: until.filter(|at| *at > now.tick).map(|at| wall(now, at)),
            ..named("runs")
        });
    }
    let is_in_error = job.tasks.iter().any(|(_, task)| task.place.error().is_some());
    let is_held = eligible_tasks(state, job, now).next().is_none();
    Some(named(match (is_in_error, is_held) {
        (true, _) => "is in error",
        (false, true) => "is held",
        (false, false) => "waits",
    }))
}

/// A job that has ended so that its successors stay held: with exit status 100.
fn ended_predecessor(state: &State, seq: SubmitSeq) -> Option<Predecessor> {
    let job = state.finished.iter().find(|job| job.seq == seq)?;
    Some(Predecessor {
        job: job.number,
        name: job.spec.name.clone(),
        owner: job.spec.owner.user.to_string(),
        state: "has ended with exit status 100, which holds its successors".to_owned(),
        place: None,
        since: None,
        until: None,
    })
}

/// Describes the tasks on hosts: one sentence, and the reasons that stop them.
pub(super) fn on_hosts(
    state: &State,
    observations: &Observations,
    job: &Job,
    part: &TaskSelection,
) -> (String, Vec<WaitReason>) {
    let placements: Vec<(TaskId, &Placement)> = part
        .on_hosts
        .iter()
        .filter_map(|task| Some((*task, job.tasks.get(task)?.place.placement()?)))
        .collect();
    let mut reasons = Vec::new();
    for (task, placement) in placements.iter().take(TASKS_LOOKED_AT) {
        for (text, hint) in stops(state, job.number, placement)
            .into_iter()
            .chain(stuck(observations, placement))
        {
            add(&mut reasons, job, *task, &text, &hint);
        }
    }
    let is_started = placements.iter().any(|(_, placement)| placement.started.is_some());
    let summary = match (placements.len(), is_started) {
        (0, _) => "None of these tasks is there any more.",
        (1, true) if !reasons.is_empty() => "It is on its host, but it does not go on.",
        (1, true) => "It runs.",
        (1, false) => "It has been given to its host, which has not said yet that it runs.",
        (_, true) => "All of its tasks have been given to hosts.",
        (_, false) => "All of its tasks have been given to hosts, which have not said yet that they run.",
    };
    (summary.to_owned(), reasons)
}

/// Why a task does not begin that was given to a host: it begins there, or comes back, once the
/// host can tell.
fn stuck(observations: &Observations, placement: &Placement) -> Option<(String, String)> {
    let host = placement.host();
    let known = observations.hosts.get(host).filter(|known| known.connected);
    let why = match known {
        _ if placement.started.is_some() => return None,
        Some(known) => format!("cannot start jobs: {}", known.unfit.as_deref()?),
        None => "is not connected".to_owned(),
    };
    let hint = format!("gridwright doctor on {host} says what is wrong; qdel -f ends it without the host");
    Some((format!("it waits for host {host}, which {why}"), hint))
}

/// Returns the reasons that stop a task on its host, each with advice.
fn stops(state: &State, number: JobNumber, placement: &Placement) -> Vec<(String, String)> {
    let instance = placement.master();
    let queue = state.instances.get(instance);
    let by_queue = |is_set: bool, text: &str, hint: String| is_set.then(|| (format!("{text} {instance}"), hint));
    let own = [
        placement
            .suspended
            .then(|| ("it is suspended".to_owned(), format!("qmod -usj {number} resumes it"))),
        placement.suspended_by_threshold.then(|| {
            let hint = format!("qconf -sq {instance} shows suspend_thresholds; it goes on when the load has fallen");
            (format!("a suspend threshold of {instance} suspends it"), hint)
        }),
        placement.preempted.then(|| {
            (
                format!("it gives way to a superordinate queue of {instance}"),
                String::new(),
            )
        }),
        placement
            .deleting
            .then(|| ("it is being deleted".to_owned(), String::new())),
    ];
    let Some(queue) = queue else {
        return own.into_iter().flatten().collect();
    };
    let of_queue = [
        by_queue(
            queue.suspended,
            "an operator has suspended",
            format!("qmod -usq {instance} resumes it"),
        ),
        by_queue(
            queue.calendar == CalendarState::Suspended,
            "a calendar has suspended",
            String::new(),
        ),
        by_queue(queue.subordinate, "a superordinate queue has suspended", String::new()),
    ];
    own.into_iter().chain(of_queue).flatten().collect()
}
