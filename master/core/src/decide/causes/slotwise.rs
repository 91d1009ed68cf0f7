//! Slot-wise subordination: where a queue and those below it have more slots at work on a host than
//! the list of the queue allows, single tasks give way.
//!
//! What is at work is what nothing suspends. A task over several hosts counts on each and never
//! gives way: the trees of its hosts would have to agree.

use super::{set, state_of};
use crate::decide::Turn;
use crate::decide::tasks::{is_stopped, signal_change};
use crate::event::{Event, InstanceState};
use crate::state::State;
use crate::state::job::Placement;
use proto::id::{CellId, HostName, QueueInstanceName, QueueName, SubmitSeq, TaskId, TaskKey};
use proto::queue::{PreemptionOrder, Subordinates};
use proto::time::Tick;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A queue with its list, and all queues below it.
struct QueueTree {
    most: u32,
    members: Vec<Member>,
}

/// A queue in a tree.
struct Member {
    queue: QueueName,
    /// Steps below the queue with the list, which has 0 and gives nothing.
    depth: u32,
    seq_no: u32,
    action: PreemptionOrder,
}

/// A task on the host.
#[derive(Clone, Debug)]
struct HostTask {
    key: TaskKey,
    placed: Tick,
    slots: BTreeMap<QueueName, u32>,
    /// Whether it is suspended for another cause.
    stopped: bool,
    preempted: bool,
    may_give_way: bool,
}

/// Brings the tasks and instances of a host to what its trees say.
pub(super) fn follow(turn: &mut Turn<'_>, host: &HostName) {
    let trees = trees(turn.state(), host);
    let tasks = tasks(turn.state(), host);
    let settled = settle(&trees, tasks.clone());
    for (before, after) in tasks.iter().zip(&settled) {
        if before.preempted != after.preempted {
            let stopped = is_stopped(turn, before.key);
            turn.record(Event::TaskPreempted {
                key: before.key,
                suspended: after.preempted,
            });
            signal_change(turn, before.key, stopped);
        }
    }
    let queues: Vec<QueueName> = turn.state().config.queues.keys().cloned().collect();
    for queue in queues {
        let preempted = is_subordinate(&trees, &queue) && would_give_way(&trees, &settled, &queue);
        let instance = QueueInstanceName {
            queue,
            host: host.clone(),
        };
        let preempted = preempted && turn.state().config.resolved.contains_key(&instance);
        let before = state_of(turn, &instance);
        if before.preempted != preempted {
            set(turn, &instance, InstanceState { preempted, ..before });
        }
    }
}

/// The trees of a host, each before those that contain it.
fn trees(state: &State, host: &HostName) -> Vec<QueueTree> {
    let config = &state.config;
    let list_of = |queue: &QueueName| {
        let instance = QueueInstanceName {
            queue: queue.clone(),
            host: host.clone(),
        };
        match config.resolved.get(&instance)?.subordinate_list.value()? {
            Subordinates::Slots { most, queues } => Some((*most, queues)),
            Subordinates::Queues(_) => None,
        }
    };
    let mut trees = Vec::new();
    for queue in &config.causes.superordinates {
        let Some((most, _)) = list_of(queue) else { continue };
        let top = Member {
            queue: queue.clone(),
            depth: 0,
            seq_no: 0,
            action: PreemptionOrder::default(),
        };
        let mut members = vec![top];
        let mut at = 0;
        while let Some((depth, queue)) = members.get(at).map(|member| (member.depth, member.queue.clone())) {
            for below in list_of(&queue).into_iter().flat_map(|(_, queues)| queues) {
                if members.iter().all(|known| known.queue != below.queue) {
                    let (seq_no, action) = (below.seq_no, below.action);
                    members.push(Member {
                        queue: below.queue.clone(),
                        depth: depth + 1,
                        seq_no,
                        action,
                    });
                }
            }
            at += 1;
        }
        trees.push(QueueTree { most, members });
    }
    trees.sort_by_key(|tree| tree.members.len());
    trees
}

fn tasks(state: &State, host: &HostName) -> Vec<HostTask> {
    let placements = state.index.on_host(host).filter_map(|key| state.placed(key));
    placements
        .map(|(_, _, placement)| task(state, host, placement))
        .collect()
}

fn task(state: &State, host: &HostName, placement: &Placement) -> HostTask {
    let mut slots: BTreeMap<QueueName, u32> = BTreeMap::new();
    for granted in placement
        .granted
        .iter()
        .filter(|granted| granted.instance.host == *host)
    {
        *slots.entry(granted.instance.queue.clone()).or_default() += granted.slots;
    }
    HostTask {
        key: placement.key,
        placed: placement.placed_tick,
        slots,
        stopped: placement.suspended || placement.suspended_by_threshold || state.is_queue_stopped(placement),
        preempted: placement.preempted,
        may_give_way: placement.granted.iter().all(|granted| granted.instance.host == *host),
    }
}

/// The tasks as they are to be: first tasks give way where there are too many, then others go on
/// where there is room.
fn settle(trees: &[QueueTree], mut tasks: Vec<HostTask>) -> Vec<HostTask> {
    for tree in trees {
        while at_work(tree, &tasks) > u64::from(tree.most) {
            let Some(victim) = victim(tree, &tasks) else { break };
            tasks[victim].preempted = true;
        }
    }
    for at in waiting(trees, &tasks) {
        let fits = |tree: &QueueTree| {
            let slots = slots_in(tree, &tasks[at]);
            slots == 0 || at_work(tree, &tasks) + slots <= u64::from(tree.most)
        };
        if trees.iter().all(fits) {
            tasks[at].preempted = false;
        }
    }
    tasks
}

fn slots_in(tree: &QueueTree, task: &HostTask) -> u64 {
    tree.members
        .iter()
        .filter_map(|member| task.slots.get(&member.queue))
        .map(|slots| u64::from(*slots))
        .sum()
}

fn at_work(tree: &QueueTree, tasks: &[HostTask]) -> u64 {
    tasks
        .iter()
        .filter(|task| task.is_at_work())
        .map(|task| slots_in(tree, task))
        .sum()
}

/// The task that gives way first: of the deepest queues the one with the highest number that has
/// any at work.
fn victim(tree: &QueueTree, tasks: &[HostTask]) -> Option<usize> {
    let mut members: Vec<&Member> = tree.members.iter().filter(|member| member.depth > 0).collect();
    members.sort_by_key(|member| (Reverse((member.depth, member.seq_no)), &member.queue));
    members.into_iter().find_map(|member| {
        let here = tasks
            .iter()
            .enumerate()
            .filter(|(_, task)| task.is_at_work() && task.may_give_way && task.slots.contains_key(&member.queue));
        let found = match member.action {
            PreemptionOrder::ShortestRunning => here.max_by_key(|(_, task)| task.age()),
            PreemptionOrder::LongestRunning => here.min_by_key(|(_, task)| task.age()),
        };
        found.map(|(at, _)| at)
    })
}

/// The tasks that have given way, in the order in which they go on: the reverse of that in which
/// they gave way.
fn waiting(trees: &[QueueTree], tasks: &[HostTask]) -> Vec<usize> {
    let place = |task: &HostTask| {
        let members = trees.iter().rev().flat_map(|tree| &tree.members);
        let found = members
            .into_iter()
            .find(|member| member.depth > 0 && task.slots.contains_key(&member.queue));
        found.map_or((0, 0, PreemptionOrder::default()), |member| {
            (member.depth, member.seq_no, member.action)
        })
    };
    let mut waiting: Vec<usize> = (0..tasks.len()).filter(|at| tasks[*at].preempted).collect();
    waiting.sort_by(|one, other| {
        let ((depth, seq_no, action), theirs) = (place(&tasks[*one]), place(&tasks[*other]));
        let by_age = tasks[*one].age().cmp(&tasks[*other].age());
        let by_age = if action == PreemptionOrder::LongestRunning {
            by_age.reverse()
        } else {
            by_age
        };
        (depth, seq_no).cmp(&(theirs.0, theirs.1)).then(by_age)
    });
    waiting
}

fn is_subordinate(trees: &[QueueTree], queue: &QueueName) -> bool {
    trees.iter().any(|tree| {
        tree.members
            .iter()
            .any(|member| member.depth > 0 && member.queue == *queue)
    })
}

/// Whether one more task of one slot in a queue would give way at once.
fn would_give_way(trees: &[QueueTree], tasks: &[HostTask], queue: &QueueName) -> bool {
    let nobody = TaskKey {
        cell: CellId(0),
        seq: SubmitSeq(u64::MAX),
        task: TaskId(0),
        pe_task: 0,
        attempt: 0,
    };
    let newest = HostTask {
        key: nobody,
        placed: Tick(u64::MAX),
        slots: BTreeMap::from([(queue.clone(), 1)]),
        stopped: false,
        preempted: false,
        may_give_way: true,
    };
    let with = tasks.iter().cloned().chain([newest]).collect();
    settle(trees, with).last().is_some_and(|task| task.preempted)
}

impl HostTask {
    fn is_at_work(&self) -> bool {
        !self.stopped && !self.preempted
    }

    /// Tasks that began earlier come first.
    fn age(&self) -> (Tick, TaskKey) {
        (self.placed, self.key)
    }
}

#[cfg(test)]
mod tests;
