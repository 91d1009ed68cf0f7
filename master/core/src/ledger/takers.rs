//! Ways to the tasks that take something of the whole cluster: without them, every question about
//! who holds a licence would walk over all bookings.

use super::{Booking, LevelRef};
use proto::id::{AttributeName, PeName, TaskKey};
use std::collections::{BTreeMap, BTreeSet};

/// The tasks with slots in each parallel environment, and those that take an attribute of which the
/// whole cluster has a value.
///
/// It follows from the bookings and from `names`, and is kept current by [`Ledger`](super::Ledger).
/// Empty sets are not kept. An attribute that is not in `names` has no set: the host `global` sets
/// no bound for it, so nobody asks.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Takers {
    names: BTreeSet<AttributeName>,
    of_pe: BTreeMap<PeName, BTreeSet<TaskKey>>,
    of_cluster: BTreeMap<AttributeName, BTreeSet<TaskKey>>,
}

impl Takers {
    /// Nobody yet, for these attributes of the cluster.
    pub(super) fn new(names: BTreeSet<AttributeName>) -> Self {
        Self {
            names,
            ..Self::default()
        }
    }

    /// The attributes of the cluster whose takers are kept.
    pub(super) fn names(&self) -> &BTreeSet<AttributeName> {
        &self.names
    }

    /// The tasks with slots in a parallel environment.
    pub(super) fn of_pe(&self, pe: &PeName) -> impl Iterator<Item = TaskKey> + use<'_> {
        self.of_pe.get(pe).into_iter().flatten().copied()
    }

    /// The tasks that take an attribute of the cluster. `None` if it is not one of the names.
    pub(super) fn of_cluster(&self, attribute: &str) -> Option<impl Iterator<Item = TaskKey> + use<'_>> {
        let name = self.names.iter().find(|name| *name == attribute)?;
        Some(self.of_cluster.get(name).into_iter().flatten().copied())
    }

    /// Adds a task that was booked.
    pub(super) fn add(&mut self, key: TaskKey, booking: &Booking) {
        if let Some(pe) = booking.pe() {
            self.of_pe.entry(pe.clone()).or_default().insert(key);
        }
        for name in self.names.iter().filter(|name| takes(booking, name)) {
            self.of_cluster.entry(name.clone()).or_default().insert(key);
        }
    }

    /// Removes a task with the booking under which it was added.
    pub(super) fn remove(&mut self, key: TaskKey, booking: &Booking) {
        if let Some(pe) = booking.pe() {
            remove(&mut self.of_pe, pe, key);
        }
        for name in self.names.iter().filter(|name| takes(booking, name)) {
            remove(&mut self.of_cluster, name, key);
        }
    }
}

fn takes(booking: &Booking, name: &AttributeName) -> bool {
    booking.amount(LevelRef::Global, name) > proto::amount::Amount::ZERO
}

fn remove<N: Ord>(sets: &mut BTreeMap<N, BTreeSet<TaskKey>>, name: &N, key: TaskKey) {
    if let Some(set) = sets.get_mut(name) {
        set.remove(&key);
        if set.is_empty() {
            sets.remove(name);
        }
    }
}
