//! What each part of the share tree is entitled to, and what it is to get now (ALGORITHMS.md
//! section 11.2).
//!
//! Only parts with tasks take part: the others leave what is theirs to their siblings. What pending
//! tasks get is divided among parts with pending or running tasks, what running tasks get among
//! those with running ones alone.

use super::class::{Classes, Members};
use super::rules::ShareTreePolicy;
use super::tree::{Leaf, Tree};
use std::collections::BTreeMap;

/// A node of the tree itself.
fn place(node: usize) -> Leaf {
    Leaf { node, user: None }
}

/// What was used below each node of the tree, weighted; of a user without a leaf of their own at a
/// copy of the `default` leaf.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LeafUsage(BTreeMap<Leaf, f64>);

impl LeafUsage {
    /// Adds what a user has used in a project. Where nothing in the tree stands for that, it counts
    /// nowhere.
    pub fn add(&mut self, tree: &Tree, user: &str, project: Option<&str>, amount: f64) {
        let mut at = tree.leaf(user, project);
        while let Some(leaf) = at {
            at = tree.nodes[leaf.node].parent.map(place);
            *self.0.entry(leaf).or_default() += amount;
        }
    }

    /// What was used below a node.
    pub fn of_leaf(&self, leaf: &Leaf) -> f64 {
        self.0.get(leaf).copied().unwrap_or(0.0)
    }
}

/// Which tasks make a part of the tree take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Participants {
    /// Those that wait or run.
    All,
    /// Those that run.
    Running,
}

/// A node with tasks below it. A `default` leaf is one for each user that it stands for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ActiveNode {
    /// Its shares.
    pub shares: f64,
    /// What was used below it, weighted.
    pub usage: f64,
    /// Long-term target among its siblings, and of the whole.
    pub long: f64,
    /// The same of the whole.
    pub long_total: f64,
    /// Short-term target among its siblings, and of the whole.
    pub short: f64,
    /// The same of the whole.
    pub short_total: f64,
    /// The nodes below it that have tasks.
    pub children: Vec<usize>,
    /// Tasks that run below it.
    pub running: f64,
    /// The slots that those asked for at least.
    pub running_slots: f64,
    /// Tasks that wait below it.
    pub pending: f64,
    /// At a leaf: the job shares of its running tasks together.
    pub job_shares: f64,
}

/// The targets of a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Targets {
    /// All tickets of the policy.
    pub pool: f64,
    /// The nodes with tasks, each after the one above it; the root first.
    pub nodes: Vec<ActiveNode>,
    /// Which of them a node of the tree is.
    by_leaf: BTreeMap<Leaf, usize>,
}

impl Targets {
    /// The targets of what has such tasks.
    pub fn new(sharing: &ShareTreePolicy, classes: &Classes, usage: &LeafUsage, among: Participants) -> Targets {
        let mut targets = Targets {
            pool: sharing.pool,
            nodes: Vec::new(),
            by_leaf: BTreeMap::new(),
        };
        targets.node(&sharing.tree, usage, place(0));
        for (_, members) in classes.iter() {
            targets.count(&sharing.tree, usage, members, among);
        }
        targets.aim(0, sharing.compensation);
        targets
    }

    /// The number of a node; it and those above it become active.
    fn node(&mut self, tree: &Tree, usage: &LeafUsage, leaf: Leaf) -> usize {
        if let Some(known) = self.by_leaf.get(&leaf) {
            return *known;
        }
        let written = &tree.nodes[leaf.node];
        let above = written.parent.map(|parent| self.node(tree, usage, place(parent)));
        let number = self.nodes.len();
        let mut node = ActiveNode {
            shares: written.shares,
            usage: usage.of_leaf(&leaf),
            ..ActiveNode::default()
        };
        match above {
            Some(above) => self.nodes[above].children.push(number),
            None => (node.long, node.long_total, node.short, node.short_total) = (1.0, 1.0, 1.0, 1.0),
        }
        self.nodes.push(node);
        self.by_leaf.insert(leaf, number);
        number
    }

    fn count(&mut self, tree: &Tree, usage: &LeafUsage, members: &Members, among: Participants) {
        let pending = if among == Participants::All {
            members.waiting_tasks() as f64
        } else {
            0.0
        };
        let running = f64::from(members.running);
        let Some(leaf) = members.leaf.as_ref().filter(|_| running + pending > 0.0) else {
            return;
        };
        let number = self.node(tree, usage, leaf.clone());
        self.nodes[number].job_shares += members.job_shares * running;
        let mut at = Some(leaf.clone());
        while let Some(node) = at {
            let number = self.by_leaf[&node];
            self.nodes[number].running += running;
            self.nodes[number].running_slots += members.running_slots as f64;
            self.nodes[number].pending += pending;
            at = tree.nodes[node.node].parent.map(place);
        }
    }

    /// Sets the targets of what is below a node, from the top down.
    fn aim(&mut self, above: usize, compensation: f64) {
        let children = self.nodes[above].children.clone();
        let ActiveNode {
            long_total,
            short_total,
            ..
        } = self.nodes[above];
        let shares: f64 = children.iter().map(|child| self.nodes[*child].shares).sum();
        for child in &children {
            let node = &mut self.nodes[*child];
            node.long = if shares > 0.0 { node.shares / shares } else { 0.0 };
            node.long_total = long_total * node.long;
        }
        let mut parts: Vec<f64> = children.iter().map(|child| self.nodes[*child].part()).collect();
        self.divide(&children, &parts, short_total);
        if compensation > 0.0 {
            let mut is_compensated = false;
            for (child, part) in children.iter().zip(&mut parts) {
                let node = &self.nodes[*child];
                let most = compensation * node.long_total;
                if node.short_total > most && most > 0.0 {
                    *part /= node.short_total / most;
                    is_compensated = true;
                }
            }
            if is_compensated {
                self.divide(&children, &parts, short_total);
            }
        }
        children.into_iter().for_each(|child| self.aim(child, compensation));
    }

    fn divide(&mut self, children: &[usize], parts: &[f64], short_total: f64) {
        let sum: f64 = parts.iter().sum();
        for (child, part) in children.iter().zip(parts) {
            let node = &mut self.nodes[*child];
            node.short = if sum > 0.0 { part / sum } else { 0.0 };
            node.short_total = short_total * node.short;
        }
    }

    /// The place of a class among the nodes.
    pub fn place_of(&self, members: &Members) -> Option<usize> {
        self.by_leaf.get(members.leaf.as_ref()?).copied()
    }

    /// The tickets of each running task of a class: what its leaf is to get, divided among all that
    /// run there, by job shares where any of them has some.
    pub fn of_running(&self, members: &Members) -> f64 {
        let Some(leaf) = self.place_of(members).map(|place| &self.nodes[place]) else {
            return 0.0;
        };
        let tickets = leaf.short_total * self.pool;
        // Whole tickets, as 8.1.9 has it.
        let by_shares = || (tickets * (members.job_shares / leaf.job_shares)).floor();
        if leaf.job_shares > 0.0 {
            by_shares()
        } else {
            tickets / leaf.running.max(1.0)
        }
    }

    /// The active nodes, as places in the tree.
    pub fn leaves(&self) -> impl Iterator<Item = &Leaf> {
        self.by_leaf.keys()
    }

    /// An active node of the tree, if it is one.
    pub fn active(&self, leaf: &Leaf) -> Option<&ActiveNode> {
        self.by_leaf.get(leaf).map(|number| &self.nodes[*number])
    }
}

impl ActiveNode {
    /// How much it is to get in comparison with its siblings.
    fn part(&self) -> f64 {
        let used = self.usage.max(self.long_total);
        if self.long_total > 0.0 {
            self.shares * self.shares / used
        } else {
            0.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The short-term targets of two parts with these shares and usages.
    fn short_targets(shares: [f64; 2], usage: [f64; 2], compensation: f64) -> [f64; 2] {
        let root = ActiveNode {
            long_total: 1.0,
            short_total: 1.0,
            children: vec![1, 2],
            ..ActiveNode::default()
        };
        let part = |at: usize| ActiveNode {
            shares: shares[at],
            usage: usage[at],
            ..ActiveNode::default()
        };
        let mut targets = Targets {
            pool: 1.0,
            nodes: vec![root, part(0), part(1)],
            by_leaf: BTreeMap::new(),
        };
        targets.aim(0, compensation);
        [targets.nodes[1].short, targets.nodes[2].short]
    }

    /// The numbers of ALGORITHMS.md section 11.2.
    #[test]
    fn parts_that_used_less_get_more_and_compensation_pulls_softly() {
        for (shares, usage, compensation, expected) in [
            ([50.0, 50.0], [3000.0, 1000.0], 0.0, [0.25, 0.75]),
            ([10.0, 90.0], [10.0, 100_000.0], 0.0, [0.99197, 0.00803]),
            ([10.0, 90.0], [10.0, 100_000.0], 5.0, [0.98418, 0.01582]),
            ([10.0, 90.0], [0.0, 0.0], 0.0, [0.1, 0.9]),
        ] {
            let found = short_targets(shares, usage, compensation);
            let is_near = |(found, expected): (&f64, &f64)| (found - expected).abs() < 0.000_006;
            assert!(
                found.iter().zip(&expected).all(is_near),
                "{found:?} is not {expected:?}"
            );
        }
    }
}
