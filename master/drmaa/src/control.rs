//! What `drmaa_control` does to jobs, and what `drmaa_job_ps` says of them.

use crate::ended::{EndKind, TaskEnd};
use crate::error::{DrmaaError, Errno};
use crate::ids::JobId;
use proto::diagnostic::Code;
use proto::id::TaskId;
use proto::job::{Condition, HoldChange, Holds, JobChanges, Phase};
use proto::request::TaskRange;
use proto::wire::client::{Answer, Command, JobSelection, JobTarget, ModifyAction, Reply};
use proto::wire::view::JobRow;

/// What `drmaa_control` can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Stops running tasks.
    Suspend,
    /// Lets them go on.
    Resume,
    /// Sets the hold of the user.
    Hold,
    /// Takes it away.
    Release,
    /// Deletes.
    Terminate,
}

/// The states of `drmaa_job_ps`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum ProgramState {
    /// It waits.
    Queued = 0x10,
    /// A manager, or another job, holds it.
    SystemHold = 0x11,
    /// Its user holds it.
    UserHold = 0x12,
    /// Both hold it.
    UserSystemHold = 0x13,
    /// It runs.
    Running = 0x20,
    /// Its queue, or a threshold, has stopped it.
    SystemSuspended = 0x21,
    /// Its user has stopped it.
    UserSuspended = 0x22,
    /// Both have stopped it.
    UserSystemSuspended = 0x23,
    /// It has ended by itself, whatever it returned.
    Done = 0x30,
    /// It was aborted.
    Failed = 0x40,
}

/// The state of a task that has ended.
pub fn state_of_end(end: &TaskEnd) -> ProgramState {
    match end.kind {
        EndKind::Exited(_) | EndKind::Signaled(_) => ProgramState::Done,
        EndKind::Aborted => ProgramState::Failed,
    }
}

/// The state of a job or task in a row of `qstat`. An array has none as a whole.
pub fn state_in(row: &JobRow, id: JobId) -> Option<ProgramState> {
    if row.array.is_some() != id.task.is_some() {
        return None;
    }
    let task = id.task.unwrap_or(TaskId(1));
    if let Some(found) = row.tasks.iter().find(|found| found.task == task) {
        return Some(state_on_host(&found.condition));
    }
    let is_in = |tasks: &[TaskRange]| tasks.iter().any(|range| range.contains(task));
    let pending = row.pending.iter().find(|pending| is_in(&pending.tasks))?;
    if pending.error.is_some() {
        return Some(ProgramState::Failed);
    }
    Some(state_of_hold(pending.condition.held, pending.holds))
}

fn state_of_hold(is_held: bool, holds: Holds) -> ProgramState {
    let is_system = holds.operator || holds.system || (is_held && !holds.any());
    match (holds.user, is_system) {
        (true, true) => ProgramState::UserSystemHold,
        (true, false) => ProgramState::UserHold,
        (false, true) => ProgramState::SystemHold,
        (false, false) => ProgramState::Queued,
    }
}

fn state_on_host(condition: &Condition) -> ProgramState {
    if condition.phase == Phase::Finished {
        return ProgramState::Done;
    }
    let by_system = condition.queue_suspended || condition.threshold_suspended;
    match (condition.suspended, by_system, condition.held) {
        (true, true, _) => ProgramState::UserSystemSuspended,
        (true, false, _) => ProgramState::UserSuspended,
        (false, true, _) => ProgramState::SystemSuspended,
        (false, false, true) => ProgramState::UserHold,
        (false, false, false) => ProgramState::Running,
    }
}

/// The command that carries an action out.
pub fn command(id: JobId, action: Action) -> Command {
    let target = JobTarget {
        job: id.number.to_string(),
        tasks: id
            .task
            .and_then(|task| TaskRange::new(task.0, task.0, 1).ok())
            .into_iter()
            .collect(),
    };
    let jobs = JobSelection {
        targets: vec![target],
        ..JobSelection::default()
    };
    let user = Holds {
        user: true,
        ..Holds::default()
    };
    let alter = |jobs, change| Command::Alter {
        jobs,
        changes: Box::new(JobChanges {
            holds: Some(change),
            ..JobChanges::default()
        }),
    };
    let modify = |action| Command::Modify {
        action,
        targets: vec![id.to_string()],
        force: false,
    };
    match action {
        Action::Terminate => Command::Delete { jobs, force: false },
        Action::Suspend => modify(ModifyAction::SuspendJob),
        Action::Resume => modify(ModifyAction::UnsuspendJob),
        Action::Hold => alter(
            jobs,
            HoldChange {
                set: user,
                release: Holds::default(),
            },
        ),
        Action::Release => alter(
            jobs,
            HoldChange {
                set: Holds::default(),
                release: user,
            },
        ),
    }
}

/// Whether an action was carried out. The master does not refuse to suspend what is suspended
/// already; the binding does.
///
/// # Errors
/// The error of the action if the state of the job does not allow it; else as the refusal says.
pub fn judge(reply: &Reply, action: Action) -> Result<(), DrmaaError> {
    let (errno, already) = match action {
        Action::Suspend => (Errno::SuspendState, "is already suspended"),
        Action::Resume => (Errno::ResumeState, "is already unsuspended"),
        Action::Hold => (Errno::HoldState, ""),
        Action::Release => (Errno::ReleaseState, ""),
        Action::Terminate => (Errno::Internal, ""),
    };
    for answer in &reply.answers {
        match answer {
            Answer::Refused(refusal) if refusal.code == Code::WrongState => {
                return Err(DrmaaError::new(errno, refusal.what.clone()));
            }
            Answer::Refused(refusal) => return Err(DrmaaError::of_refusal(refusal)),
            Answer::Done(text) if !already.is_empty() && text.ends_with(already) => {
                return Err(DrmaaError::new(errno, text.clone()));
            }
            Answer::Done(_) | Answer::Warning(_) => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::diagnostic::Diagnostic;

    #[test]
    fn a_state_follows_from_holds_and_suspensions() {
        let holds = |user, operator| Holds {
            user,
            operator,
            ..Holds::default()
        };
        for (is_held, holds, state) in [
            (false, holds(false, false), ProgramState::Queued),
            (true, holds(true, false), ProgramState::UserHold),
            (true, holds(false, true), ProgramState::SystemHold),
            (true, holds(true, true), ProgramState::UserSystemHold),
            // It waits for another job.
            (true, holds(false, false), ProgramState::SystemHold),
        ] {
            assert_eq!(state_of_hold(is_held, holds), state);
        }
        let running = Condition {
            phase: Phase::Running,
            ..Condition::default()
        };
        for (condition, state) in [
            (running, ProgramState::Running),
            (Condition { held: true, ..running }, ProgramState::UserHold),
            (
                Condition {
                    suspended: true,
                    held: true,
                    ..running
                },
                ProgramState::UserSuspended,
            ),
            (
                Condition {
                    queue_suspended: true,
                    ..running
                },
                ProgramState::SystemSuspended,
            ),
            (
                Condition {
                    suspended: true,
                    threshold_suspended: true,
                    ..running
                },
                ProgramState::UserSystemSuspended,
            ),
        ] {
            assert_eq!(state_on_host(&condition), state);
        }
    }

    #[test]
    fn an_action_that_the_state_does_not_allow_has_an_error_of_its_own() {
        let refused = |code| Reply::refusal(Diagnostic::new(code, "no"));
        let done = |text: &str| Reply::answers(vec![Answer::Done(text.to_owned())]);
        for (reply, action, errno) in [
            (refused(Code::WrongState), Action::Suspend, Some(Errno::SuspendState)),
            (refused(Code::WrongState), Action::Resume, Some(Errno::ResumeState)),
            (refused(Code::UnknownJob), Action::Hold, Some(Errno::InvalidJob)),
            (
                refused(Code::NotPermitted),
                Action::Terminate,
                Some(Errno::Authorization),
            ),
            (
                done("u - job 1 is already suspended"),
                Action::Suspend,
                Some(Errno::SuspendState),
            ),
            (
                done("u - job 1 is already unsuspended"),
                Action::Resume,
                Some(Errno::ResumeState),
            ),
            (done("u - suspended job 1"), Action::Suspend, None),
            (done("u has deleted job 1"), Action::Terminate, None),
        ] {
            assert_eq!(
                judge(&reply, action).err().map(|error| error.errno),
                errno,
                "{action:?}"
            );
        }
    }
}
