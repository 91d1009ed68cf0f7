//! What running tasks use is charged now and then while they run, so that it decays and no crash of
//! the master loses it (ARCHITECTURE.md "One input").

use crate::config::Configuration;
use crate::decide::tasks::charged_usage;
use crate::decide::{Caller, Turn};
use crate::event::Event;
use crate::state::decay::Decay;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::{TaskKey, UserName};
use proto::time::Tick;
use proto::usage::{Consumption, TaskResult};
use proto::wire::client::{Answer, Reply};
use std::collections::BTreeSet;

/// The parts of the shortest half-life in which running tasks are charged once each.
const PARTS_OF_HALF_LIFE: u64 = 60;

/// The time between two charges of running tasks is at least the first, and at most the second.
const INTERVAL_MS: (u64, u64) = (10_000, 300_000);

/// Tasks in one event.
const TASKS_AT_ONCE: usize = 1_000;

/// The running tasks of which more use is known than was charged. Volatile: after a restart the
/// agents tell it again.
#[derive(Debug, Default)]
pub(crate) struct Checkpoints {
    changed: BTreeSet<TaskKey>,
    due: Option<Tick>,
}

impl Checkpoints {
    /// When the next ones are to be made.
    pub fn next_timer(&self) -> Option<Tick> {
        self.due
    }
}

/// Use of running tasks has become known.
pub(crate) fn observed(turn: &mut Turn<'_>, keys: impl Iterator<Item = TaskKey>) {
    if is_wanted(&turn.state().config) {
        turn.checkpoints_mut().changed.extend(keys);
    }
}

/// Charges running tasks if it is time.
pub(crate) fn follow(turn: &mut Turn<'_>) {
    let config = &turn.state().config;
    if !is_wanted(config) {
        *turn.checkpoints_mut() = Checkpoints::default();
        return;
    }
    let (now, latest) = (turn.now.tick, turn.now.tick.plus_ms(interval_ms(config)));
    let checkpoints = turn.checkpoints_mut();
    if checkpoints.changed.is_empty() {
        checkpoints.due = None;
        return;
    }
    let due = checkpoints.due.map_or(latest, |due| due.min(latest));
    checkpoints.due = Some(due);
    if due <= now {
        charge_all(turn);
    }
}

/// Charges every running task with what is known of its use.
fn charge_all(turn: &mut Turn<'_>) {
    let checkpoints = std::mem::take(turn.checkpoints_mut());
    let known = |key: TaskKey| Some((key, to_charge(turn, key)?));
    let tasks: Vec<(TaskKey, Consumption)> = checkpoints.changed.into_iter().filter_map(known).collect();
    for tasks in tasks.chunks(TASKS_AT_ONCE) {
        turn.record(Event::UsageCharged { tasks: tasks.to_vec() });
    }
}

/// Decides `qconf -clearusage`: what running tasks have used up to now is forgotten with the rest.
pub(crate) fn clear(turn: &mut Turn<'_>, caller: &Caller, users: &[String]) -> Reply {
    let config = &turn.state().config;
    let modified =
        |name: &str, list: &str| Answer::Done(format!("{} modified \"{name}\" in {list} list", caller.at_host()));
    let is_known = |user: &String| config.users.contains_key(user) || turn.state().usage.has_user(user);
    let mut answers: Vec<Answer> = if users.is_empty() {
        let of_users = config.users.keys().map(|user| modified(user, "user"));
        of_users
            .chain(config.projects.keys().map(|project| modified(project, "project")))
            .collect()
    } else {
        users
            .iter()
            .map(|user| {
                if is_known(user) {
                    modified(user, "user")
                } else {
                    unknown(user)
                }
            })
            .collect()
    };
    if answers.is_empty() {
        answers.push(Answer::Done(format!(
            "{} cleared the usage of all users and projects",
            caller.at_host()
        )));
    }
    let known: Vec<UserName> = users
        .iter()
        .filter(|user| is_known(user))
        .map(|user| user.as_str().into())
        .collect();
    if users.is_empty() || !known.is_empty() {
        charge_all(turn);
        turn.record(Event::UsageCleared { users: known });
    }
    Reply::answers(answers)
}

fn unknown(user: &str) -> Answer {
    let what = format!("denied: user \"{user}\" does not exist");
    let fix = "qconf -suserl lists the users; what a project used is cleared with its users";
    Answer::Refused(Diagnostic::new(Code::UnknownObject, what).fix(fix))
}

/// What a task that runs is to be charged with, if that is more than it was.
fn to_charge(turn: &Turn<'_>, key: TaskKey) -> Option<Consumption> {
    let (state, measured) = (turn.state(), Consumption::from(*turn.observations().usage.get(&key)?));
    let consumed = match key.pe_task {
        0 => {
            let (job, _, placement) = state.placed(key)?;
            let elapsed_ms = turn.now.wall.0.saturating_sub(placement.started?.0);
            charged_usage::charged(state, job, placement, u64::try_from(elapsed_ms).unwrap_or(0), measured)
        }
        _ => {
            let (_, _, slave) = state.slave(key)?;
            slave.started?;
            charged_usage::charged_of_slave(state, slave, measured)
        }
    };
    (state.usage.beyond_paid(key, consumed) != Consumption::default()).then_some(consumed)
}

/// A result with at least the use that was known or charged before: no host takes back what it has
/// told.
pub(crate) fn with_known(turn: &Turn<'_>, key: TaskKey, result: &TaskResult) -> TaskResult {
    let state = turn.state();
    let observed = turn
        .observations()
        .usage
        .get(&key)
        .map_or_else(Consumption::default, |usage| (*usage).into());
    let is_measured = state
        .host_of(key)
        .is_some_and(|host| !charged_usage::is_charged_as_reserved(state, host));
    let known = if is_measured {
        observed.max(state.usage.paid(key))
    } else {
        observed
    };
    TaskResult {
        usage: result.usage.at_least(known),
        ..result.clone()
    }
}

/// Whether anything rests on what running tasks use: the share tree, while it gives tickets.
fn is_wanted(config: &Configuration) -> bool {
    config.share_tree.is_some() && config.scheduler.weight_tickets_share > 0
}

fn interval_ms(config: &Configuration) -> u64 {
    let (least, most) = INTERVAL_MS;
    Decay::from_conf(&config.scheduler)
        .shortest_ms()
        .map_or(most, |ms| (ms / PARTS_OF_HALF_LIFE).clamp(least, most))
}
