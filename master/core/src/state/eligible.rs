//! Whether a pending task may be started at all, before any resource is looked at (ALGORITHMS.md
//! section 17).
//!
//! One pure function for the scheduler, which skips what is not eligible, and for the check of its
//! orders, so that they never disagree. Access, requests and capacities are deliberately not asked
//! here: see [`crate::matching`].

use super::State;
use super::job::{Job, TaskPlace};
use super::ready::merged;
use crate::collections::ranges::TaskRanges;
use proto::id::{JobNumber, ReservationId, SubmitSeq, TaskId};
use proto::request::TaskRange;
use proto::reservation::ReservationState;
use proto::time::{Now, Tick, Wall};
use std::fmt;

/// Why a task may not be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IneligibleReason {
    /// It left, or it is on a host already.
    NotPending,
    /// A person holds it.
    Held,
    /// It is in error.
    Error,
    /// It waits for these jobs, or for tasks of them (`-hold_jid`, `-hold_jid_ad`).
    WaitsFor(Vec<SubmitSeq>),
    /// Its start time has not come (`-a`).
    StartTime(Wall),
    /// It asked to be run again, by exit status 99, and may start from this time on.
    AskedAgain(Wall),
    /// As many tasks of the job as `-tc` allows are on hosts.
    TaskConcurrency(u32),
    /// As many tasks of the job as `max_aj_instances` allows are on hosts.
    ArrayInstances(u32),
    /// The advance reservation that it belongs to is gone.
    NoReservation(ReservationId),
    /// The time of its advance reservation has not come.
    ReservationTime(ReservationId, Wall),
    /// A queue instance of its advance reservation fails, which is meant to be strict (`-he y`).
    ReservationBroken(ReservationId),
    /// As many tasks of the user as `maxujobs` allows are on hosts.
    UserJobs(u32),
}

impl IneligibleReason {
    /// The reason in words, with the numbers of the jobs that are waited for.
    pub fn text(&self, state: &State) -> String {
        let IneligibleReason::WaitsFor(jobs) = self else {
            return self.to_string();
        };
        let numbers: Vec<String> = jobs
            .iter()
            .filter_map(|seq| Some(number_of(state, *seq)?.to_string()))
            .collect();
        format!("it waits for job {}", numbers.join(", "))
    }
}

fn number_of(state: &State, seq: SubmitSeq) -> Option<JobNumber> {
    let running = state.jobs.get(&seq).map(|job| job.number);
    running.or_else(|| state.finished.iter().find(|job| job.seq == seq).map(|job| job.number))
}

impl fmt::Display for IneligibleReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IneligibleReason::NotPending => f.write_str("it is not pending"),
            IneligibleReason::Held => f.write_str("it is held"),
            IneligibleReason::Error => f.write_str("it is in error"),
            IneligibleReason::WaitsFor(jobs) => write!(f, "it waits for {} other jobs", jobs.len()),
            IneligibleReason::StartTime(_) => f.write_str("its start time has not come"),
            IneligibleReason::AskedAgain(_) => {
                f.write_str("it asked to be run again (exit status 99), and a pause is not over")
            }
            IneligibleReason::TaskConcurrency(limit) => write!(f, "{limit} of its tasks run, as many as -tc allows"),
            IneligibleReason::ArrayInstances(limit) => {
                write!(f, "{limit} of its tasks run, as many as max_aj_instances allows")
            }
            IneligibleReason::NoReservation(id) => write!(f, "advance reservation {id} is over"),
            IneligibleReason::ReservationTime(id, _) => write!(f, "advance reservation {id} has not started"),
            IneligibleReason::ReservationBroken(id) => {
                write!(
                    f,
                    "a queue instance of advance reservation {id} is in error, and -he y was asked for"
                )
            }
            IneligibleReason::UserJobs(limit) => {
                write!(
                    f,
                    "{limit} jobs of its owner run, as many as maxujobs of the scheduler configuration allows"
                )
            }
        }
    }
}

/// Whether a task of a job may be started now.
///
/// # Errors
/// With the first reason why not.
pub fn eligible(state: &State, job: &Job, task: TaskId, now: Now) -> Result<(), IneligibleReason> {
    task_eligible(job, task, now)?;
    job_eligible(state, job, now.wall)?;
    user_eligible(state, job)?;
    array_dependency(state, job, task)
}

/// Whether the owner of a job may run one more task (`maxujobs`; each task of an array is one).
///
/// # Errors
/// With the limit.
pub fn user_eligible(state: &State, job: &Job) -> Result<(), IneligibleReason> {
    let limit = state.config.scheduler.maxujobs;
    let is_full = limit > 0 && state.index.active_of(&job.spec.owner.user) >= limit;
    if is_full {
        Err(IneligibleReason::UserJobs(limit))
    } else {
        Ok(())
    }
}

/// Whether any task of a job may be started now: what all of its tasks share.
///
/// # Errors
/// With the first reason why not.
pub fn job_eligible(state: &State, job: &Job, now: Wall) -> Result<(), IneligibleReason> {
    if !job.waits_for.is_empty() {
        return Err(IneligibleReason::WaitsFor(job.waits_for.iter().copied().collect()));
    }
    if let Some(at) = job.spec.start_after.filter(|at| *at > now) {
        return Err(IneligibleReason::StartTime(at));
    }
    if let Some(id) = job.spec.reservation {
        reservation_eligible(state, id)?;
    }
    if let Some(limit) = job
        .spec
        .task_concurrency
        .filter(|limit| *limit > 0 && job.active >= *limit)
    {
        return Err(IneligibleReason::TaskConcurrency(limit));
    }
    let instances = state.config.settings.max_aj_instances;
    if job.spec.array.is_some() && instances > 0 && job.active >= instances {
        return Err(IneligibleReason::ArrayInstances(instances));
    }
    Ok(())
}

/// Whether jobs of an advance reservation may start: its time is now, and nothing in it fails that
/// must not.
fn reservation_eligible(state: &State, id: ReservationId) -> Result<(), IneligibleReason> {
    let reservation = state.reservations.get(&id).ok_or(IneligibleReason::NoReservation(id))?;
    match reservation.state {
        ReservationState::Waiting => Err(IneligibleReason::ReservationTime(id, reservation.start)),
        ReservationState::Deleted => Err(IneligibleReason::NoReservation(id)),
        ReservationState::Running if reservation.spec.hard_error && reservation.is_broken(state) => {
            Err(IneligibleReason::ReservationBroken(id))
        }
        ReservationState::Running => Ok(()),
    }
}

/// The tasks of a job that may be started now, rising, without the limits on how many run at a
/// time.
///
/// Lazy: the first tasks of a large array are found without looking at the rest, unless array
/// dependencies hold them.
pub fn eligible_tasks<'a>(state: &'a State, job: &'a Job, now: Now) -> impl Iterator<Item = TaskId> + 'a {
    eligible_beside(state, job, None, now)
}

/// Those of them that are not among others, such as the ones that are planned, of which there may
/// be thousands.
pub fn eligible_beside<'a>(
    state: &'a State,
    job: &'a Job,
    others: Option<&'a TaskRanges>,
    now: Now,
) -> impl Iterator<Item = TaskId> + 'a {
    let fresh = job.untouched.without(others).take_while(|_| !job.spec.holds.any());
    let known = job.ready.startable(now.tick);
    let known = known.filter(move |task| others.is_none_or(|others| !others.contains(*task)));
    merged(fresh, known).filter(move |task| array_dependency(state, job, *task).is_ok())
}

/// At least so many are in [`eligible_tasks`], by the job's counts alone: those in the condition of
/// the whole job.
pub fn least_eligible(job: &Job) -> u32 {
    if job.spec.holds.any() || !job.array_waits_for.is_empty() {
        0
    } else {
        job.untouched.len()
    }
}

/// Why a job none of whose tasks may start now has some that only wait for the end of a pause, if
/// it has.
pub fn resting(job: &Job, now: Now) -> Option<IneligibleReason> {
    job.pause_ends(now.tick).map(|end| asked_again(end, now))
}

/// A task waits for the end of its pause. People are told what the clock shows then.
fn asked_again(end: Tick, now: Now) -> IneligibleReason {
    IneligibleReason::AskedAgain(Wall(now.wall.0.saturating_add_unsigned(end.since_ms(now.tick))))
}

/// What the task itself says.
fn task_eligible(job: &Job, task: TaskId, now: Now) -> Result<(), IneligibleReason> {
    let holds = match job.tasks.get(&task) {
        None if job.untouched.contains(task) => job.spec.holds,
        None => return Err(IneligibleReason::NotPending),
        Some(state) => match &state.place {
            TaskPlace::OnHost(_) => return Err(IneligibleReason::NotPending),
            TaskPlace::Pending { error: Some(_) } => return Err(IneligibleReason::Error),
            TaskPlace::Pending { error: None } => state.holds,
        },
    };
    if holds.any() {
        return Err(IneligibleReason::Held);
    }
    job.paused_until(task, now.tick)
        .map_or(Ok(()), |end| Err(asked_again(end, now)))
}

/// `-hold_jid_ad`: a task waits for the tasks of the other job whose part of the range overlaps its
/// own.
fn array_dependency(state: &State, job: &Job, task: TaskId) -> Result<(), IneligibleReason> {
    let waits = |other: &SubmitSeq| state.jobs.get(other).is_some_and(|other| blocks(other, job, task));
    let blocking: Vec<SubmitSeq> = job.array_waits_for.iter().copied().filter(waits).collect();
    if blocking.is_empty() {
        Ok(())
    } else {
        Err(IneligibleReason::WaitsFor(blocking))
    }
}

fn blocks(other: &Job, job: &Job, task: TaskId) -> bool {
    let (Some(theirs), Some(ours)) = (other.spec.array, job.spec.array) else {
        return !other.is_empty();
    };
    counterparts(theirs, ours, task).any(|task| other.has_task(task))
}

/// The tasks of `theirs` that cover part of what `task` of `ours` covers: itself up to the next
/// step.
fn counterparts(theirs: TaskRange, ours: TaskRange, task: TaskId) -> impl Iterator<Item = TaskId> {
    let low = task.0.saturating_sub(theirs.step() - 1).max(theirs.first());
    let high = (task.0 + (ours.step() - 1)).min(theirs.last());
    let offset = (low - theirs.first()).next_multiple_of(theirs.step());
    (theirs.first() + offset..=high)
        .step_by(theirs.step() as usize)
        .map(TaskId)
}
