//! `qmod` on queues: disable, suspend, clear errors, run the jobs of a queue again.

use crate::config::pattern::QueuePattern;
use crate::decide::hosts::fitness;
use crate::decide::jobs::modify;
use crate::decide::{Caller, Turn, causes};
use proto::diagnostic::{Code, Diagnostic};
use proto::id::{QueueInstanceName, TaskKey};
use proto::wire::client::{Answer, ModifyAction};

/// What is to be done to a queue instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum QueueAction {
    Disable,
    Enable,
    Suspend,
    Unsuspend,
    ClearError,
    Reschedule,
}

/// None for what is done to jobs alone.
fn queue_action(action: ModifyAction) -> Option<QueueAction> {
    Some(match action {
        ModifyAction::DisableQueue => QueueAction::Disable,
        ModifyAction::EnableQueue => QueueAction::Enable,
        ModifyAction::SuspendQueue | ModifyAction::Suspend => QueueAction::Suspend,
        ModifyAction::UnsuspendQueue | ModifyAction::Unsuspend => QueueAction::Unsuspend,
        ModifyAction::ClearQueueError | ModifyAction::ClearError => QueueAction::ClearError,
        ModifyAction::RescheduleQueue | ModifyAction::Reschedule => QueueAction::Reschedule,
        ModifyAction::SuspendJob
        | ModifyAction::UnsuspendJob
        | ModifyAction::ClearJobError
        | ModifyAction::RescheduleJob => return None,
    })
}

/// Changes queue instances, those among them that have left their queue and still have tasks. None
/// if the target names none.
pub(crate) fn modify_queue(
    turn: &mut Turn<'_>,
    caller: &Caller,
    action: ModifyAction,
    target: &str,
    force: bool,
) -> Option<Vec<Answer>> {
    let action = queue_action(action)?;
    let config = &turn.state().config;
    let pattern = QueuePattern::new(target);
    let orphans = turn.state().orphans();
    let known = config.resolved.keys().chain(&orphans);
    let instances: Vec<QueueInstanceName> = known
        .filter(|instance| pattern.matches(config, instance))
        .cloned()
        .collect();
    let mut answers = Vec::new();
    for instance in &instances {
        answers.extend(modify_instance(turn, caller, action, instance, force));
    }
    (!instances.is_empty()).then_some(answers)
}

fn modify_instance(
    turn: &mut Turn<'_>,
    caller: &Caller,
    action: QueueAction,
    instance: &QueueInstanceName,
    force: bool,
) -> Vec<Answer> {
    if let Err(refusal) = permit(turn, caller, instance) {
        return vec![Answer::Refused(refusal)];
    }
    let before = turn.state().instances.get(instance).cloned().unwrap_or_default();
    let mut after = before.clone();
    let word = match action {
        QueueAction::Disable => {
            after.disabled = true;
            "disabled"
        }
        QueueAction::Enable => {
            after.disabled = false;
            "enabled"
        }
        QueueAction::Suspend => {
            after.suspended = true;
            "suspended"
        }
        QueueAction::Unsuspend => {
            after.suspended = false;
            "unsuspended"
        }
        QueueAction::ClearError => {
            after.errors.clear();
            "no error"
        }
        QueueAction::Reschedule => return reschedule(turn, instance, force),
    };
    let (forgiven, unwell) = match action {
        QueueAction::ClearError => fitness::forgive(turn, &instance.host),
        QueueAction::Disable
        | QueueAction::Enable
        | QueueAction::Suspend
        | QueueAction::Unsuspend
        | QueueAction::Reschedule => (false, None),
    };
    let stays = unwell.map(|why| {
        let what = format!(
            "\"{instance}\" stays in error: host {} cannot start jobs: {why}",
            instance.host
        );
        Diagnostic::new(Code::WrongState, what).fix("mend that; it opens by itself then")
    });
    if after == before && !forgiven && (!force || stays.is_some()) {
        if let Some(stays) = stays {
            return vec![Answer::Refused(stays)];
        }
        let text = format!("Queue instance \"{instance}\" is already in the specified state: {word}");
        return vec![Answer::Done(text)];
    }
    if after != before {
        causes::set(turn, instance, after);
    }
    let done = if force {
        "forced state change of"
    } else {
        "changed state of"
    };
    let done = Answer::Done(format!("{} {done} \"{instance}\" ({word})", caller.at_host()));
    std::iter::once(done).chain(stays.map(Answer::Warning)).collect()
}

/// Refuses a caller who is neither an operator nor an owner of the queue.
fn permit(turn: &Turn<'_>, caller: &Caller, instance: &QueueInstanceName) -> Result<(), Diagnostic> {
    let settings = turn.state().config.resolved.get(instance);
    let is_owner = settings.is_some_and(|settings| settings.owner_list.contains(caller.user()));
    if caller.is_operator() || is_owner {
        return Ok(());
    }
    let what = format!(
        "{} - you have no permission to modify queue \"{instance}\"",
        caller.user()
    );
    Err(Diagnostic::new(Code::NotPermitted, what).fix("ask an operator, or an owner of the queue (owner_list)"))
}

/// Runs all jobs again whose master task is in the instance.
fn reschedule(turn: &mut Turn<'_>, instance: &QueueInstanceName, force: bool) -> Vec<Answer> {
    let state = turn.state();
    let is_master = |key: &TaskKey| {
        state
            .placed(*key)
            .is_some_and(|(_, _, placement)| placement.master() == instance)
    };
    let keys: Vec<TaskKey> = state.tasks_in(instance).into_iter().filter(is_master).collect();
    if keys.is_empty() {
        return vec![Answer::Done(format!("Queue instance \"{instance}\" contains no jobs"))];
    }
    keys.into_iter()
        .map(|key| modify::reschedule(turn, key, force))
        .collect()
}
