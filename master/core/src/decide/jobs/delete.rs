//! `qdel`: pending tasks leave at once, tasks on hosts when their hosts have ended them.

use crate::collections::ranges::TaskRanges;
use crate::decide::jobs::bulk_commands::{self, BulkAction};
use crate::decide::jobs::select::{self, MissingTarget, Owners, SelectedJob};
use crate::decide::requests::RequestOrigin;
use crate::decide::tasks::{self, TaskEnd};
use crate::decide::{Caller, Turn};
use crate::event::Event;
use crate::state::job::{Job, Placement};
use proto::diagnostic::{Code, Diagnostic};
use proto::id::{JobNumber, SubmitSeq, TaskKey};
use proto::wire::agent::TaskSignal;
use proto::wire::client::{Answer, JobSelection, Reply};

/// Decides a deletion. None if it is answered later.
pub(crate) fn delete(
    turn: &mut Turn<'_>,
    request: RequestOrigin,
    caller: &Caller,
    jobs: &JobSelection,
    force: bool,
) -> Option<Reply> {
    if let Err(refusal) = caller.must_be_on_known_host(turn.state()) {
        return Some(Reply::refusal(refusal));
    }
    let selected = select::select(turn.state(), caller, Owners::Caller, jobs);
    bulk_commands::begin(turn, request, caller, BulkAction::Delete { force }, selected)
}

fn unknown(missing: &MissingTarget) -> Diagnostic {
    let what = match missing {
        MissingTarget::Number(number) => format!("denied: job \"{number}\" does not exist"),
        MissingTarget::Name { name, users } => format!("The job {name} of user(s) {users} does not exist"),
        MissingTarget::Users(users) => format!("There is no job registered for the following users: {users}"),
        MissingTarget::Tasks { job, tasks } => {
            format!("job \"{job}\" task \"{}\" does not exist", select::task_words(*tasks))
        }
    };
    Diagnostic::new(Code::UnknownJob, what)
}

/// Deletes what is meant of one job.
pub(crate) fn delete_one(
    turn: &mut Turn<'_>,
    caller: &Caller,
    selected: &Result<SelectedJob, MissingTarget>,
    force: bool,
    answers: &mut Vec<Answer>,
) {
    let selected = match selected {
        Ok(selected) => selected,
        Err(missing) => return answers.push(Answer::Refused(unknown(missing))),
    };
    let Some(job) = turn.state().jobs.get(&selected.seq) else {
        return;
    };
    if let Err(refusal) = may_delete(caller, job) {
        return answers.push(Answer::Refused(refusal));
    }
    let may_force = may_force(turn, caller);
    let number = job.number;
    let tasks = job.select(&selected.tasks);
    let is_whole = selected.tasks.is_empty();
    let placed: Vec<TaskKey> = job
        .placements()
        .filter(|(task, _)| tasks.contains(*task))
        .map(|(_, placement)| placement.key)
        .collect();
    let pending = job.pending_of(tasks);
    if force && !may_force && !placed.is_empty() {
        answers.push(Answer::Warning(not_forced(number)));
    }
    for key in placed {
        answers.push(Answer::Done(delete_placed(turn, caller, key, force && may_force)));
    }
    if !pending.is_empty() {
        answers.push(Answer::Done(delete_pending(
            turn,
            caller,
            selected.seq,
            &pending,
            is_whole,
        )));
    }
    tasks::finish_if_empty(turn, selected.seq);
}

/// Ends all that is left of a job because the cell wants it so; with a reason without waiting for
/// its hosts.
pub(crate) fn remove(turn: &mut Turn<'_>, seq: SubmitSeq, force: Option<String>) {
    let Some(job) = turn.state().jobs.get(&seq) else { return };
    let placed: Vec<(TaskKey, bool)> = job
        .placements()
        .map(|(_, placement)| (placement.key, placement.deleting))
        .collect();
    let pending = job.pending_of(job.present());
    if !pending.is_empty() {
        turn.record(Event::TasksDeleted {
            seq,
            tasks: pending.ranges(),
        });
    }
    for (key, is_deleting) in placed {
        match &force {
            Some(reason) => {
                tasks::signal(turn, key, TaskSignal::Terminate);
                let end = TaskEnd::forced(turn, key, reason.clone());
                tasks::end(turn, key, end);
            }
            None if is_deleting => {}
            None => {
                turn.record(Event::TaskDeletionRequested { key });
                tasks::signal(turn, key, TaskSignal::Terminate);
            }
        }
    }
    tasks::finish_if_empty(turn, seq);
}

fn may_delete(caller: &Caller, job: &Job) -> Result<(), Diagnostic> {
    if caller.may_act_for(&job.spec.owner.user) {
        return Ok(());
    }
    let what = format!(
        "{} - you do not have the necessary privileges to delete the job \"{}\"",
        caller.user(),
        job.number
    );
    Err(Diagnostic::new(Code::NotPermitted, what))
}

fn may_force(turn: &Turn<'_>, caller: &Caller) -> bool {
    caller.is_operator() || turn.state().config.settings.qmaster().enable_forced_qdel
}

/// Programs give `-f` to every deletion: without the right to force it, the deletion waits for the
/// host as usual.
fn not_forced(job: JobNumber) -> Diagnostic {
    let what = format!("warning: the deletion of job {job} is not forced: its host ends it first");
    Diagnostic::new(Code::NotPermitted, what)
        .why("only operators and managers force deletions, unless qmaster_params has ENABLE_FORCED_QDEL")
        .fix("ask an operator if the host does not answer")
}

fn delete_pending(
    turn: &mut Turn<'_>,
    caller: &Caller,
    seq: SubmitSeq,
    pending: &TaskRanges,
    is_whole: bool,
) -> String {
    let job = &turn.state().jobs[&seq];
    let (user, number) = (caller.user(), job.number);
    let text = match (is_whole || job.spec.array.is_none(), pending.len()) {
        (true, _) => format!("{user} has deleted job {number}"),
        (false, 1) => format!("{user} has deleted job-array task {}", named(pending, number)),
        (false, _) => format!("{user} has deleted job-array tasks {} of job {number}", listed(pending)),
    };
    turn.record(Event::TasksDeleted {
        seq,
        tasks: pending.ranges(),
    });
    text
}

fn named(pending: &TaskRanges, number: JobNumber) -> String {
    pending
        .first()
        .map_or_else(String::new, |task| format!("{number}.{task}"))
}

/// `5,6,9`, as 8.1.9 lists them; long runs as ranges.
fn listed(pending: &TaskRanges) -> String {
    let text = |range: proto::request::TaskRange| match range.count() {
        1 => range.first().to_string(),
        2 => format!("{},{}", range.first(), range.last()),
        _ => range.to_string(),
    };
    pending.ranges().into_iter().map(text).collect::<Vec<_>>().join(",")
}

/// `ENABLE_FORCED_QDEL_IF_UNKNOWN`: nobody waits for a host that nothing is known of.
fn is_forced_by_silence(turn: &Turn<'_>, placement: &Placement) -> bool {
    let host = turn.observations().hosts.get(placement.host());
    let is_unknown = host.is_none_or(|host| host.unheard);
    is_unknown && turn.state().config.settings.qmaster().enable_forced_qdel_if_unknown
}

fn delete_placed(turn: &mut Turn<'_>, caller: &Caller, key: TaskKey, force: bool) -> String {
    let (job, _, placement) = turn.state().placed(key).expect("it was found just now");
    let (name, number, is_deleting) = (job.task_name(key.task), job.number, placement.deleting);
    let user = caller.user();
    if force || is_forced_by_silence(turn, placement) {
        tasks::signal(turn, key, TaskSignal::Terminate);
        let reason = format!("{} forced the deletion", caller.at_host());
        let end = TaskEnd::forced(turn, key, reason);
        tasks::end(turn, key, end);
        return format!("{user} forced the deletion of {name}");
    }
    if is_deleting {
        return format!("job {number} is already in deletion");
    }
    turn.record(Event::TaskDeletionRequested { key });
    tasks::signal(turn, key, TaskSignal::Terminate);
    format!("{user} has registered the {name} for deletion")
}
