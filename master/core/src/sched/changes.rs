//! What may have become possible, and since when: so that a failed category looks only at what changed.

use proto::id::{HostName, QueueInstanceName};
use std::collections::{BTreeSet, VecDeque};

/// Changes that are kept; who is further behind looks at everything.
const CHANGES_KEPT: usize = 50_000;

/// A place in the log of changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark(u64);

/// One change.
#[derive(Clone, Debug)]
enum Change {
    Host(HostName),
    Removed(QueueInstanceName),
}

/// Hosts on which something may have become possible and queue instances that are gone, oldest first.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    kept: VecDeque<Change>,
    /// The place of the first kept change.
    first: u64,
    /// How often something of a quota was given back.
    quotas: u64,
}

/// What changed since a mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Since {
    /// These hosts, and these queue instances that were there, perhaps none.
    Some {
        /// The hosts.
        hosts: BTreeSet<HostName>,
        /// Instances that went; they may be there again.
        removed: BTreeSet<QueueInstanceName>,
    },
    /// Perhaps everything.
    Everything,
}

impl Changes {
    /// The place of now.
    pub fn mark(&self) -> Mark {
        Mark(self.first + self.kept.len() as u64)
    }

    /// A host changed.
    pub fn host(&mut self, host: &HostName) {
        self.push(Change::Host(host.clone()));
    }

    /// A queue instance is no longer configured.
    pub fn removed(&mut self, instance: &QueueInstanceName) {
        self.push(Change::Removed(instance.clone()));
    }

    fn push(&mut self, change: Change) {
        self.kept.push_back(change);
        if self.kept.len() > CHANGES_KEPT {
            self.kept.pop_front();
            self.first += 1;
        }
    }

    /// Something of a quota was given back.
    pub fn quota(&mut self) {
        self.quotas += 1;
    }

    /// How often something of a quota was given back.
    pub fn quotas(&self) -> u64 {
        self.quotas
    }

    /// Everything changed.
    pub fn everything(&mut self) {
        self.first = self.mark().0 + 1;
        self.kept.clear();
    }

    /// What changed since a mark.
    pub fn since(&self, mark: Mark) -> Since {
        match mark.0.checked_sub(self.first) {
            None => Since::Everything,
            Some(seen) => {
                let seen = usize::try_from(seen).unwrap_or(usize::MAX).min(self.kept.len());
                let (mut hosts, mut removed) = (BTreeSet::new(), BTreeSet::new());
                for change in self.kept.range(seen..) {
                    match change {
                        Change::Host(host) => hosts.insert(host.clone()),
                        Change::Removed(instance) => removed.insert(instance.clone()),
                    };
                }
                Since::Some { hosts, removed }
            }
        }
    }
}
