//! What may have become possible, and since when: so that a failed category looks only at what changed.

use super::places::Place;
use std::collections::VecDeque;

/// Changes that are kept; who is further behind looks at everything.
const CHANGES_KEPT: usize = 50_000;

/// A place in the log of changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark(u64);

/// Queue instances where something may have become possible, or that are others now, oldest first.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    kept: VecDeque<Place>,
    /// The place of the first kept change.
    first: u64,
    /// How often something of a quota was given back.
    quotas: u64,
    /// How often something was given back that the whole cluster shares.
    shared: u64,
}

impl Changes {
    /// The place of now.
    pub fn mark(&self) -> Mark {
        Mark(self.first + self.kept.len() as u64)
    }

    /// A queue instance changed.
    pub fn place(&mut self, place: Place) {
        self.kept.push_back(place);
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

    /// Something was given back that the whole cluster shares.
    pub fn shared(&mut self) {
        self.shared += 1;
    }

    /// How often something was given back that the whole cluster shares.
    pub fn given_back(&self) -> u64 {
        self.shared
    }

    /// Everything changed.
    pub fn everything(&mut self) {
        self.first = self.mark().0 + 1;
        self.kept.clear();
    }

    /// What changed since a mark; none if that may be everything.
    pub fn since(&self, mark: Mark) -> Option<impl Iterator<Item = Place>> {
        let seen = usize::try_from(mark.0.checked_sub(self.first)?).unwrap_or(usize::MAX);
        Some(self.kept.range(seen.min(self.kept.len())..).copied())
    }
}
