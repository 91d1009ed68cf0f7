//! What a category remembers from try to try, and how it knows that this still holds.
//!
//! The contract of these caches: what is remembered may keep an instance closed only while nothing
//! has changed that could let a task of the category in. Three things tell of changes, and a
//! [`Stamp`] holds how far each was read: the log of changed instances, the count of returned
//! quotas, and the count of kept slots that were given up. What only takes (planned starts, new
//! bookings) is in none of them: it opens nothing. After a try the stamp is the present one; a try
//! with the same stamp, after one in vain, is in vain.

use super::changes::{Changes, Mark};
use super::instance_ids::{InstanceId, InstanceSet};

/// How far changes were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The log of queue instances.
    pub instances: Mark,
    /// How often something of a quota was given back.
    pub quotas: u64,
    /// How often slots that were kept for later were given up.
    pub kept: u64,
}

impl Stamp {
    /// The present one. `kept` is
    /// [`Lookahead::generation`](crate::sched::reserve::ahead::Lookahead::generation).
    pub fn now(changes: &Changes, kept: u64) -> Stamp {
        Stamp {
            instances: changes.mark(),
            quotas: changes.quotas(),
            kept,
        }
    }
}

/// How the last try ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CategoryVerdict {
    /// There was none.
    #[default]
    Unknown,
    /// It found a place.
    Open,
    /// It found none; some instances were not looked at.
    Failed,
    /// It closed every instance that takes jobs, so that only later changes can open one.
    Exhausted,
}

impl CategoryVerdict {
    /// Whether the try was in vain.
    pub fn is_in_vain(self) -> bool {
        match self {
            CategoryVerdict::Failed | CategoryVerdict::Exhausted => true,
            CategoryVerdict::Unknown | CategoryVerdict::Open => false,
        }
    }
}

/// The queue instances that are closed to a category.
#[derive(Clone, Debug, Default)]
pub struct ClosedInstances {
    all: InstanceSet,
    /// Those that only a quota keeps closed, wherever it is given back.
    by_quota: InstanceSet,
    /// Those on whose hosts slots are kept for later: they are closed only until these are given
    /// up.
    by_reservation: Vec<InstanceId>,
}

impl ClosedInstances {
    /// Whether an instance is closed.
    pub fn contains(&self, id: InstanceId) -> bool {
        self.all.contains(id)
    }

    /// Closes an instance until it changes.
    pub fn close(&mut self, id: InstanceId) {
        self.all.insert(id);
    }

    /// Closes an instance until it changes or something of a quota is given back.
    pub fn close_by_quota(&mut self, id: InstanceId) {
        self.by_quota.insert(id);
        self.all.insert(id);
    }

    /// Notes of a closed instance that slots of its host are kept for later.
    pub fn is_kept_for_later(&mut self, id: InstanceId) {
        self.by_reservation.push(id);
    }

    /// The slots that were kept for later are given up. Returns the instances that they closed.
    pub fn take_kept_for_later(&mut self) -> Vec<InstanceId> {
        std::mem::take(&mut self.by_reservation)
    }

    /// Opens what changed; `None` means everything.
    pub fn open(&mut self, changed: Option<&[InstanceId]>) {
        let Some(ids) = changed else {
            self.all.clear();
            self.by_quota.clear();
            return;
        };
        for id in ids {
            self.all.remove(*id);
            self.by_quota.remove(*id);
        }
    }

    /// Opens what only a quota keeps closed. Returns whether there was any.
    pub fn open_by_quota(&mut self) -> bool {
        let has_any = !self.by_quota.is_empty();
        self.all.remove_all(&self.by_quota);
        self.by_quota.clear();
        has_any
    }
}

/// Unmet soft requests by queue instance, where they were counted since the instance changed.
#[derive(Clone, Debug, Default)]
pub struct UnmetWishes {
    counts: Vec<Option<u32>>,
    /// How often something that the whole cluster shares was given back when they were counted.
    given_back: u64,
}

impl UnmetWishes {
    /// Forgets what may have changed; `None` means everything.
    pub fn catch_up(&mut self, changed: Option<&[InstanceId]>, changes: &Changes) {
        if self.given_back != changes.given_back() || changed.is_none() {
            self.given_back = changes.given_back();
            self.counts.clear();
        }
        for id in changed.into_iter().flatten() {
            self.counts.get_mut(id.index()).map(Option::take);
        }
    }

    /// The count of an instance, made by `count` where it is not known.
    pub fn of(&mut self, id: InstanceId, count: impl FnOnce() -> u32) -> u32 {
        let index = id.index();
        if index >= self.counts.len() {
            self.counts.resize(index + 1, None);
        }
        *self.counts[index].get_or_insert_with(count)
    }

    /// Keeps a newer count.
    pub fn set(&mut self, id: InstanceId, count: u32) {
        self.counts[id.index()] = Some(count);
    }
}
