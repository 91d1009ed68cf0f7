//! The share tree tickets of pending tasks (ALGORITHMS.md section 11.4, as 8.1.9 does it).
//!
//! The tasks below a node stand in a line; the k-th of them has the k-th part of what the node is
//! to get. At a leaf they stand in the order of submission, further up in the order of what they
//! have so far. So each node hands its tasks up one by one, best first, and only as many are looked
//! at as are asked for.

use super::class::{ClassId, Classes};
use super::greedy::TicketValue;
use super::line::Line;
use super::prices::Ladder;
use super::targets::Targets;
use proto::id::SubmitSeq;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// What a job share counts beside tickets in the order of the tasks of a leaf.
const JOB_SHARE: f64 = 0.01;

/// A task on its way up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RisingTask {
    /// What it is sorted by: tickets of policies that this one rests on, and those it has so far.
    key: TicketValue,
    seq: Reverse<SubmitSeq>,
    /// Its place in its class, so that the tasks of a job stay in order.
    at: Reverse<usize>,
    class: ClassId,
    slots: u32,
    /// What it has of the policies that this one rests on.
    before: TicketValue,
    /// What it has at the last node that it passed.
    tickets: TicketValue,
}

/// The line of a node.
#[derive(Default)]
struct NodeLine {
    /// The best task of each node below, or of each class, with where it came from.
    heads: BinaryHeap<(RisingTask, usize)>,
    is_begun: bool,
    /// Slots of the tasks that run or stood in front.
    ahead: f64,
}

/// The lines of all nodes.
struct Lines<'a, 'b, F> {
    targets: &'a Targets,
    classes: &'a Classes,
    lines: &'a mut BTreeMap<ClassId, Line<'b>>,
    before: F,
    /// The classes of each leaf.
    of_leaf: BTreeMap<usize, Vec<ClassId>>,
    standings: Vec<NodeLine>,
}

impl<F: Fn(ClassId, usize) -> f64> Lines<'_, '_, F> {
    /// The node whose parts compete: the first from the root down that has more than one part with
    /// tasks.
    fn root(&self) -> usize {
        let mut root = 0;
        while let [only] = self.targets.nodes[root].children[..] {
            if self.targets.nodes[only].children.is_empty() {
                break;
            }
            root = only;
        }
        root
    }

    /// The classes with pending tasks at the leaves below a node.
    fn below(&self, node: usize, found: &mut Vec<ClassId>) {
        found.extend(self.of_leaf.get(&node).into_iter().flatten());
        self.targets.nodes[node]
            .children
            .iter()
            .for_each(|child| self.below(*child, found));
    }

    /// A task of a class as it stands at its leaf.
    fn waiting(&mut self, class: ClassId, at: usize) -> Option<RisingTask> {
        let task = self.lines.get_mut(&class)?.get(at)?;
        let before = (self.before)(class, at);
        let key = before + JOB_SHARE * self.classes.get(class).job_shares;
        Some(RisingTask {
            key: TicketValue(key),
            seq: Reverse(task.seq),
            at: Reverse(at),
            class,
            slots: task.slots,
            before: TicketValue(before),
            tickets: TicketValue(0.0),
        })
    }

    /// The next task of a part of a node: of a class at a leaf, else of a node below.
    fn next_of(&mut self, node: usize, part: usize, last: Option<&RisingTask>) -> Option<RisingTask> {
        match self.of_leaf.get(&node).map(|classes| classes[part]) {
            Some(class) => self.waiting(class, last.map_or(0, |last| last.at.0 + 1)),
            None => self.next(self.targets.nodes[node].children[part]),
        }
    }

    /// The best task below a node that has not been handed up yet, with what it has there.
    fn next(&mut self, node: usize) -> Option<RisingTask> {
        if !std::mem::replace(&mut self.standings[node].is_begun, true) {
            let parts = self
                .of_leaf
                .get(&node)
                .map_or(self.targets.nodes[node].children.len(), Vec::len);
            for part in 0..parts {
                if let Some(head) = self.next_of(node, part, None) {
                    self.standings[node].heads.push((head, part));
                }
            }
            self.standings[node].ahead = self.targets.nodes[node].running_slots;
        }
        let (best, part) = self.standings[node].heads.pop()?;
        if let Some(next) = self.next_of(node, part, Some(&best)) {
            self.standings[node].heads.push((next, part));
        }
        let standing = &mut self.standings[node];
        // In this order, because 8.1.9 rounds in this order.
        let tickets = self.targets.nodes[node].short / (standing.ahead + 1.0) * self.targets.pool;
        standing.ahead += f64::from(best.slots);
        Some(RisingTask {
            key: TicketValue(best.before.0 + tickets),
            tickets: TicketValue(tickets),
            ..best
        })
    }
}

/// The share tree tickets of pending tasks: of the best `most` each of their own. `before` is what
/// a pending task of a class has of the policies that this one rests on.
pub fn of_pending(
    targets: &Targets,
    classes: &Classes,
    lines: &mut BTreeMap<ClassId, Line<'_>>,
    before: impl Fn(ClassId, usize) -> f64,
    most: usize,
) -> BTreeMap<ClassId, Ladder> {
    let mut of_leaf: BTreeMap<usize, Vec<ClassId>> = BTreeMap::new();
    for (id, members) in classes.iter().filter(|(_, members)| members.is_waiting()) {
        if let Some(place) = targets.place_of(members) {
            of_leaf.entry(place).or_default().push(id);
        }
    }
    let standings = targets.nodes.iter().map(|_| NodeLine::default()).collect();
    let mut lines = Lines {
        targets,
        classes,
        lines,
        before,
        of_leaf,
        standings,
    };
    let root = lines.root();
    let tops = targets.nodes[root].children.clone();
    let mut heads: BinaryHeap<(RisingTask, usize)> =
        tops.iter().filter_map(|top| Some((lines.next(*top)?, *top))).collect();
    let mut found: BTreeMap<ClassId, Ladder> = BTreeMap::new();
    for _ in 0..most {
        let Some((best, top)) = heads.pop() else { break };
        found.entry(best.class).or_default().push(best.tickets.0);
        heads.extend(lines.next(top).map(|next| (next, top)));
    }
    // Who was not reached stands behind all who were.
    for (top, standing) in tops.iter().map(|top| (*top, &lines.standings[*top])) {
        let rest = targets.pool * targets.nodes[top].short / (standing.ahead + 1.0);
        let mut classes = Vec::new();
        lines.below(top, &mut classes);
        classes
            .into_iter()
            .for_each(|class| found.entry(class).or_default().rest = rest);
    }
    found
}
