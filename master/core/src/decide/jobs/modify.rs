//! `qmod` on jobs: suspend, resume, clear an error, run again.

use crate::decide::jobs::select::{self, Owners, SelectedJob};
use crate::decide::tasks::attempt_end;
use crate::decide::tasks::{self, TaskEnd};
use crate::decide::{Caller, Turn, objects};
use crate::event::Event;
use crate::state::job::{Job, TaskPlace};
use proto::diagnostic::{Code, Diagnostic};
use proto::id::{SubmitSeq, TaskId, TaskKey};
use proto::usage::{FailedCode, TaskResult};
use proto::wire::agent::TaskSignal;
use proto::wire::client::{Answer, JobSelection, ModifyAction, Reply};

/// What is to be done to jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JobAction {
    ToPlaced(TaskAction),
    ClearError,
}

/// What is to be done to tasks on hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TaskAction {
    Suspend,
    Unsuspend,
    Reschedule,
}

const SUSPEND: JobAction = JobAction::ToPlaced(TaskAction::Suspend);
const UNSUSPEND: JobAction = JobAction::ToPlaced(TaskAction::Unsuspend);
const RESCHEDULE: JobAction = JobAction::ToPlaced(TaskAction::Reschedule);

/// Which kinds of targets an action takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TargetKinds {
    Jobs(JobAction),
    Queues,
    Both(JobAction),
}

fn scope(action: ModifyAction) -> TargetKinds {
    match action {
        ModifyAction::DisableQueue
        | ModifyAction::EnableQueue
        | ModifyAction::SuspendQueue
        | ModifyAction::UnsuspendQueue
        | ModifyAction::ClearQueueError
        | ModifyAction::RescheduleQueue => TargetKinds::Queues,
        ModifyAction::SuspendJob => TargetKinds::Jobs(SUSPEND),
        ModifyAction::UnsuspendJob => TargetKinds::Jobs(UNSUSPEND),
        ModifyAction::ClearJobError => TargetKinds::Jobs(JobAction::ClearError),
        ModifyAction::RescheduleJob => TargetKinds::Jobs(RESCHEDULE),
        ModifyAction::Suspend => TargetKinds::Both(SUSPEND),
        ModifyAction::Unsuspend => TargetKinds::Both(UNSUSPEND),
        ModifyAction::ClearError => TargetKinds::Both(JobAction::ClearError),
        ModifyAction::Reschedule => TargetKinds::Both(RESCHEDULE),
    }
}

/// Decides `qmod`, target by target.
pub(crate) fn modify(
    turn: &mut Turn<'_>,
    caller: &Caller,
    action: ModifyAction,
    targets: &[String],
    force: bool,
) -> Reply {
    if let Err(refusal) = caller.must_be_on_known_host(turn.state()) {
        return Reply::refusal(refusal);
    }
    let mut answers = Vec::new();
    for target in targets {
        let found = match scope(action) {
            TargetKinds::Jobs(action) => modify_jobs(turn, caller, action, target, force),
            TargetKinds::Queues => objects::modify_queue(turn, caller, action, target, force),
            // Queues first, as in 8.1.9: anybody can give a job the name of a queue.
            TargetKinds::Both(on_jobs) => objects::modify_queue(turn, caller, action, target, force)
                .or_else(|| modify_jobs(turn, caller, on_jobs, target, force)),
        };
        answers.extend(found.unwrap_or_else(|| vec![Answer::Refused(unknown(scope(action), target))]));
    }
    Reply::answers(answers)
}

fn unknown(scope: TargetKinds, target: &str) -> Diagnostic {
    match scope {
        TargetKinds::Queues => Diagnostic::new(Code::UnknownObject, format!("invalid queue \"{target}\""))
            .fix("qstat -f lists the queue instances"),
        TargetKinds::Jobs(_) | TargetKinds::Both(_) => {
            Diagnostic::new(Code::UnknownJob, format!("invalid queue or job \"{target}\""))
        }
    }
}

/// None if the target names no job.
fn modify_jobs(
    turn: &mut Turn<'_>,
    caller: &Caller,
    action: JobAction,
    target: &str,
    force: bool,
) -> Option<Vec<Answer>> {
    let selection = JobSelection {
        targets: vec![select::target(target)?],
        ..JobSelection::default()
    };
    let found: Vec<SelectedJob> = select::select(turn.state(), caller, Owners::Everybody, &selection)
        .into_iter()
        .filter_map(Result::ok)
        .collect();
    let answers = found
        .iter()
        .flat_map(|selected| modify_one(turn, caller, action, selected, force))
        .collect();
    (!found.is_empty()).then_some(answers)
}

fn modify_one(
    turn: &mut Turn<'_>,
    caller: &Caller,
    action: JobAction,
    selected: &SelectedJob,
    force: bool,
) -> Vec<Answer> {
    let job = &turn.state().jobs[&selected.seq];
    if !caller.may_act_for(&job.spec.owner.user) {
        let what = format!(
            "{} - you have no permission to modify job \"{}\"",
            caller.user(),
            job.number
        );
        return vec![Answer::Refused(Diagnostic::new(Code::NotPermitted, what))];
    }
    match action {
        JobAction::ClearError => vec![clear_error(turn, caller, selected)],
        JobAction::ToPlaced(action) => modify_placed(turn, caller, action, selected, force),
    }
}

fn modify_placed(
    turn: &mut Turn<'_>,
    caller: &Caller,
    action: TaskAction,
    selected: &SelectedJob,
    force: bool,
) -> Vec<Answer> {
    let job = &turn.state().jobs[&selected.seq];
    let (number, tasks) = (job.number, job.select(&selected.tasks));
    let placed: Vec<TaskKey> = job
        .placements()
        .filter(|(task, _)| tasks.contains(*task))
        .map(|(_, placement)| placement.key)
        .collect();
    if placed.is_empty() {
        let task = tasks.first().unwrap_or(TaskId(1));
        let what =
            format!("Modify operation can not be applied on job-array task {number}.{task} in pending/hold state");
        return vec![Answer::Refused(Diagnostic::new(Code::WrongState, what))];
    }
    let act = |key| match action {
        TaskAction::Suspend => suspend(turn, caller, key, true),
        TaskAction::Unsuspend => suspend(turn, caller, key, false),
        TaskAction::Reschedule => reschedule(turn, key, force),
    };
    placed.into_iter().map(act).collect()
}

fn suspend(turn: &mut Turn<'_>, caller: &Caller, key: TaskKey, suspended: bool) -> Answer {
    let (job, _, placement) = turn.state().placed(key).expect("it was found just now");
    let (name, user) = (job.task_name(key.task), caller.user());
    let word = if suspended { "suspended" } else { "unsuspended" };
    if placement.suspended == suspended {
        return Answer::Done(format!("{user} - {name} is already {word}"));
    }
    let before = tasks::is_stopped(turn, key);
    turn.record(Event::TaskSuspended { key, suspended });
    tasks::signal_change(turn, key, before);
    Answer::Done(format!("{user} - {word} {name}"))
}

/// Ends a task so that it runs again: when its host has ended it, or at once by force.
pub(crate) fn reschedule(turn: &mut Turn<'_>, key: TaskKey, force: bool) -> Answer {
    let state = turn.state();
    let (job, _, placement) = state.placed(key).expect("it was found just now");
    let (name, host, queue) = (
        job.task_name(key.task),
        placement.host().clone(),
        placement.master().queue.clone(),
    );
    if placement.deleting {
        let what = format!("{name} is being deleted and is not run again");
        return Answer::Refused(Diagnostic::new(Code::WrongState, what));
    }
    if !force && !attempt_end::is_rerunnable(state, job, placement) {
        if let Some(checkpoint) = &job.spec.checkpoint {
            let what = format!(
                "{} requests ckpt object {checkpoint}. Therefore this job is not restartable.",
                job.number
            );
            return Answer::Refused(Diagnostic::new(Code::WrongState, what).fix("submit with -c r, or use -f"));
        }
        let what = format!(
            "The job {} is running in queue {queue} where jobs are not rerunable.",
            job.number
        );
        return Answer::Refused(Diagnostic::new(Code::WrongState, what).fix("submit with -r y, or use -f"));
    }
    let done = Answer::Done(format!("Pushed rescheduling of {name} on host {host}"));
    let is_new = !placement.rescheduling;
    if is_new {
        turn.record(Event::TaskRescheduleRequested { key });
    }
    if is_new || force {
        tasks::signal(turn, key, TaskSignal::Terminate);
    }
    if force {
        let result = TaskResult::not_started(FailedCode::RESCHEDULING, "rescheduled by force");
        tasks::end(turn, key, TaskEnd::lost(result));
    }
    done
}

fn clear_error(turn: &mut Turn<'_>, caller: &Caller, selected: &SelectedJob) -> Answer {
    let job = &turn.state().jobs[&selected.seq];
    let name = match (selected.tasks.as_slice(), job.spec.array) {
        ([range], Some(_)) if range.count() == 1 => job.task_name(TaskId(range.first())),
        (_, _) => format!("job {}", job.number),
    };
    let failed = in_error(job, selected);
    if failed.is_empty() {
        let what = format!("J{} is not in error state", &name[1..]);
        return Answer::Refused(Diagnostic::new(Code::WrongState, what));
    }
    clear(turn, selected.seq, &failed);
    Answer::Done(format!("{} cleared error state of {name}", caller.at_host()))
}

fn in_error(job: &Job, selected: &SelectedJob) -> Vec<TaskId> {
    let meant = |task: TaskId| selected.tasks.is_empty() || selected.tasks.iter().any(|range| range.contains(task));
    let is_error = |place: &TaskPlace| place.error().is_some();
    job.tasks
        .iter()
        .filter(|(task, state)| meant(**task) && is_error(&state.place))
        .map(|(task, _)| *task)
        .collect()
}

fn clear(turn: &mut Turn<'_>, seq: SubmitSeq, failed: &[TaskId]) {
    let mut tasks = crate::collections::ranges::TaskRanges::none(turn.state().jobs[&seq].spec.array);
    failed.iter().for_each(|task| {
        tasks.insert(*task);
    });
    turn.record(Event::ErrorCleared {
        seq,
        tasks: tasks.ranges(),
    });
}
