//! Which task directory a host has: an agent that brings another one than the last is not believed
//! about tasks that run.
//!
//! An agent's list of tasks is taken for the truth: a task of ours that it leaves out is lost. A
//! clone of the host, or the host itself with an older state of its disk, has a list that is true
//! of another directory. The marks beside its journal tell that. Where nothing of ours would be
//! lost the agent is let in, so that hosts whose disks do not outlive a boot need nobody.

use crate::decide::Turn;
use crate::event::Event;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::{HostName, TaskKey};
use proto::wire::agent::{AgentHello, TasksMark};
use std::collections::BTreeSet;

/// The most bytes of a mark; one of ours has 32. A longer one is not remembered: every event is
/// kept for ever.
const MARK_BYTES: usize = 64;

/// Refuses an agent whose task directory is not the one that the host had, if a task would be lost
/// by that.
pub(crate) fn check(turn: &Turn<'_>, host: &HostName, hello: &AgentHello) -> Result<(), Diagnostic> {
    let state = turn.state();
    let is_of_the_host = |mark: &TasksMark| hello.marks.is_empty() || hello.marks.contains(mark);
    if state.task_marks.get(host).is_none_or(is_of_the_host) {
        return Ok(());
    }
    let reported: BTreeSet<TaskKey> = hello.tasks.iter().map(|report| report.key).collect();
    let ours = state.slaves_on(host).into_iter().chain(state.index.on_host(host));
    let missing: BTreeSet<TaskKey> = ours
        .filter(|key| state.host_of(*key) == Some(host) && !reported.contains(key))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let what = format!("the task directory of this agent is not the one that host {host} had");
    let why = format!(
        "it does not know {} tasks that run on {host}, which would be lost: a clone of the host, or an older state of its disk",
        missing.len()
    );
    let fix = format!(
        "end this agent if {host} itself is there; if its directory tasks/ is lost for good: gridwright host rebind {host}, \
         which gives up what ran there"
    );
    Err(Diagnostic::new(Code::WrongState, what).why(why).fix(fix))
}

/// Remembers the newest mark of an agent that was let in.
pub(crate) fn bind(turn: &mut Turn<'_>, host: &HostName, marks: &[TasksMark]) {
    let Some(newest) = marks.first().filter(|mark| mark.0.len() <= MARK_BYTES) else {
        return;
    };
    if turn.state().task_marks.get(host) != Some(newest) {
        turn.record(Event::HostTasksBound {
            host: host.clone(),
            mark: Some(newest.clone()),
        });
    }
}
