//! The share tree as `gridwright shares` shows it: entitlement, use and target of each node.

use crate::policy::targets::{ActiveNode, Participants, Targets};
use crate::policy::tree::{Leaf, Tree};
use crate::sched::model::Model;
use crate::state::usage::DecayedUsage;
use proto::time::Now;
use proto::wire::view::ShareNode;
use std::collections::BTreeMap;

/// A fraction as it is shown, in millionths.
fn millionths(part: f64) -> i64 {
    (part * 1e6).round() as i64
}

/// The rows, as they are put together.
struct ShareNodeBuilder<'a> {
    tree: &'a Tree,
    targets: Targets,
    used: BTreeMap<Leaf, DecayedUsage>,
    weighted: Box<dyn Fn(&DecayedUsage) -> i128 + 'a>,
    usage_time: i64,
    nodes: Vec<ShareNode>,
}

impl Model {
    /// The nodes of the share tree, each after the one above it. Empty while the policy is off.
    /// Users without a leaf stand below the `default` leaf that serves them.
    pub fn share_nodes(&self, now: Now) -> Vec<ShareNode> {
        let Some(sharing) = &self.rules.sharing else {
            return Vec::new();
        };
        let usage = self.usage(&sharing.tree, now);
        let targets = Targets::new(sharing, &self.queue.classes, &usage, Participants::All);
        let mut used: BTreeMap<Leaf, DecayedUsage> = BTreeMap::new();
        for account in self.accounts() {
            let amount = self.used(account, now);
            let mut at = sharing.tree.leaf(account.user.as_str(), account.project.as_deref());
            while let Some(leaf) = at {
                at = match (&leaf.user, sharing.tree.nodes[leaf.node].parent) {
                    (Some(_), _) => Some(Leaf {
                        node: leaf.node,
                        user: None,
                    }),
                    (None, parent) => parent.map(|node| Leaf { node, user: None }),
                };
                let sum = used.entry(leaf).or_default();
                *sum = sum.plus(amount);
            }
        }
        let weights = self.state.config.scheduler.usage_weight_list;
        let weighted = Box::new(move |used: &DecayedUsage| used.weighted(&weights));
        let usage_time = now.wall.seconds();
        let mut shown = ShareNodeBuilder {
            tree: &sharing.tree,
            targets,
            used,
            weighted,
            usage_time,
            nodes: Vec::new(),
        };
        shown.add(0, 0, (1.0, 1.0));
        shown.nodes
    }
}

impl ShareNodeBuilder<'_> {
    /// Adds a node and everything below it, with its entitlement by shares alone, among its
    /// siblings and in all.
    fn add(&mut self, node: usize, depth: u32, (level, total): (f64, f64)) {
        let tree = self.tree;
        let (written, path) = (&tree.nodes[node], tree.path(node));
        let is_user = written.children.is_empty() && !written.is_project && node != 0;
        let user = is_user.then(|| written.name.clone());
        self.push(Leaf { node, user: None }, path.clone(), user, depth, (level, total));
        let own = |leaf: &&Leaf| leaf.node == node && leaf.user.is_some();
        let served: Vec<Leaf> = self
            .targets
            .leaves()
            .chain(self.used.keys())
            .filter(own)
            .cloned()
            .collect();
        let served: std::collections::BTreeSet<Leaf> = served.into_iter().collect();
        let part = 1.0 / served.len().max(1) as f64;
        for leaf in served {
            let path = format!("{path}/{}", leaf.user.as_deref().unwrap_or_default());
            let user = leaf.user.clone();
            self.push(leaf, path, user, depth + 1, (part, total * part));
        }
        let all: f64 = written.children.iter().map(|child| tree.nodes[*child].shares).sum();
        for child in &written.children {
            let level = if all > 0.0 {
                tree.nodes[*child].shares / all
            } else {
                0.0
            };
            self.add(*child, depth + 1, (level, total * level));
        }
    }

    fn push(&mut self, leaf: Leaf, path: String, user: Option<String>, depth: u32, (level, total): (f64, f64)) {
        let used = self.used.get(&leaf).copied().unwrap_or_default();
        let all = self.used.get(&Leaf { node: 0, user: None }).map_or(0, &self.weighted);
        let usage = (self.weighted)(&used);
        let active = self.active(&leaf);
        self.nodes.push(ShareNode {
            path,
            depth,
            user: user.map(Into::into),
            project: self.tree.project_of(leaf.node).map(str::to_owned),
            shares: self.tree.nodes[leaf.node].shares as u32,
            job_count: (active.running + active.pending) as u64,
            level: millionths(level),
            total: millionths(total),
            long_target_share: millionths(active.long_total),
            short_target_share: millionths(active.short_total),
            actual_share: if all > 0 {
                millionths(usage as f64 / all as f64)
            } else {
                0
            },
            usage,
            cpu: used.cpu,
            mem: used.mem,
            io: used.io,
            ltcpu: used.lifetime.cpu,
            ltmem: used.lifetime.mem,
            ltio: used.lifetime.io,
            usage_time: if used.lifetime == Default::default() {
                0
            } else {
                self.usage_time
            },
        });
    }

    /// The targets of a node. A `default` leaf has those of all users that it serves together.
    fn active(&self, leaf: &Leaf) -> ActiveNode {
        let mut sum = self.targets.active(leaf).cloned().unwrap_or_default();
        for served in self
            .targets
            .leaves()
            .filter(|other| other.node == leaf.node && other.user.is_some())
        {
            if let Some(active) = self.targets.active(served).filter(|_| leaf.user.is_none()) {
                sum.running += active.running;
                sum.pending += active.pending;
                sum.long_total += active.long_total;
                sum.short_total += active.short_total;
            }
        }
        sum
    }
}
