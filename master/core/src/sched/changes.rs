//! What may have become possible, and since when: so that a failed category looks only at what changed.

use proto::id::HostName;
use std::collections::{BTreeSet, VecDeque};

/// Changes that are kept; who is further behind looks at everything.
const CHANGES_KEPT: usize = 50_000;

/// A place in the log of changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark(u64);

/// Hosts on which something may have become possible, oldest first.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    hosts: VecDeque<HostName>,
    /// The place of the first kept change.
    first: u64,
}

/// What changed since a mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Since {
    /// These hosts, perhaps none.
    Hosts(BTreeSet<HostName>),
    /// Perhaps everything.
    Everything,
}

impl Changes {
    /// The place of now.
    pub fn mark(&self) -> Mark {
        Mark(self.first + self.hosts.len() as u64)
    }

    /// A host changed.
    pub fn host(&mut self, host: &HostName) {
        self.hosts.push_back(host.clone());
        if self.hosts.len() > CHANGES_KEPT {
            self.hosts.pop_front();
            self.first += 1;
        }
    }

    /// Everything changed.
    pub fn everything(&mut self) {
        self.first = self.mark().0 + 1;
        self.hosts.clear();
    }

    /// What changed since a mark.
    pub fn since(&self, mark: Mark) -> Since {
        match mark.0.checked_sub(self.first) {
            None => Since::Everything,
            Some(seen) => {
                let seen = usize::try_from(seen).unwrap_or(usize::MAX).min(self.hosts.len());
                Since::Hosts(self.hosts.range(seen..).cloned().collect())
            }
        }
    }
}
