//! Where a start may have become possible, and since when: a category that failed looks only at
//! changed queue instances.

use crate::sched::filter::instance_ids::InstanceId;
use std::collections::VecDeque;

/// Changes that are kept. A category that is further behind looks at everything.
const CHANGES_KEPT: usize = 50_000;

/// A position in the log of changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark(u64);

/// A log of queue instances where a start may have become possible, or whose settings changed,
/// oldest first.
///
/// The model writes it; each category reads it from its own mark on. Planned starts are never
/// written here, because they only take.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    kept: VecDeque<InstanceId>,
    /// The position of the first kept change.
    first: u64,
    /// How often something of a quota was given back.
    quotas: u64,
    /// How often something was given back that the whole cluster shares.
    shared: u64,
}

impl Changes {
    /// The present position.
    pub fn mark(&self) -> Mark {
        Mark(self.first + self.kept.len() as u64)
    }

    /// Notes a changed queue instance.
    pub fn instance(&mut self, id: InstanceId) {
        self.kept.push_back(id);
        if self.kept.len() > CHANGES_KEPT {
            self.kept.pop_front();
            self.first += 1;
        }
    }

    /// Notes that something of a quota was given back.
    pub fn quota(&mut self) {
        self.quotas += 1;
    }

    /// How often something of a quota was given back.
    pub fn quotas(&self) -> u64 {
        self.quotas
    }

    /// Notes that something was given back that the whole cluster shares.
    pub fn shared(&mut self) {
        self.shared += 1;
    }

    /// How often something was given back that the whole cluster shares.
    pub fn given_back(&self) -> u64 {
        self.shared
    }

    /// Notes that everything may have changed.
    pub fn everything(&mut self) {
        self.first = self.mark().0 + 1;
        self.kept.clear();
    }

    /// The instances that changed since a mark. `None` means that everything may have changed.
    pub fn since(&self, mark: Mark) -> Option<impl Iterator<Item = InstanceId>> {
        let seen = usize::try_from(mark.0.checked_sub(self.first)?).unwrap_or(usize::MAX);
        Some(self.kept.range(seen.min(self.kept.len())..).copied())
    }
}
