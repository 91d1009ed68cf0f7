//! Advance reservations, and how their jobs and all others share the cluster.
//!
//! While a reservation runs, everything that it was granted is booked for it in the ledger of the
//! cell, whether its jobs use it or not. Its jobs are booked in a ledger of its own. So nothing is
//! counted twice, and others see what they cannot have. After its end, jobs of it that are still
//! there count like all others.

use super::State;
use super::requests::kept_reservation;
use crate::config::Configuration;
use crate::event::InstanceState;
use crate::ledger::keys::block_key;
use crate::ledger::{Booking, Charges, Grant, Ledger, Level, LevelRef, choose_ids, free_ids};
use crate::observe::Observations;
use proto::amount::Amount;
use proto::id::{AttributeName, HostName, PeName, QueueInstanceName, ReservationId, SubmitSeq};
use proto::job::{GrantedSlots, JobSpec};
use proto::reservation::{ReservationSpec, ReservationState};
use proto::rsmap::GrantedIds;
use proto::time::{Now, Tick, Wall};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// An advance reservation that was granted and is not gone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdvanceReservation {
    /// Its number.
    pub id: ReservationId,
    /// The request.
    pub spec: Arc<ReservationSpec>,
    /// When it begins.
    pub start: Wall,
    /// When it ends.
    pub end: Wall,
    /// When it was granted.
    pub submitted: Wall,
    /// Its slots; the first entry is the master's.
    pub granted: Vec<GrantedSlots>,
    /// The parallel environment, if any.
    pub pe: Option<PeName>,
    /// Its state.
    pub state: ReservationState,
    /// Everything that it was granted.
    pub block: Arc<Booking>,
    /// What its jobs have of it, while it runs.
    #[serde(default)]
    pub ledger: Ledger,
}

/// The booking of a reservation's grant. No quota counts it, and it does not change the expected
/// load.
fn block(
    config: &Configuration,
    spec: &ReservationSpec,
    granted: &[GrantedSlots],
    pe: Option<&PeName>,
) -> Arc<Booking> {
    let charges = Arc::new(Charges::new(&config.complex, &spec.requests));
    Arc::new(Booking::new(config, charges, Grant::of_slots(granted, pe), Tick(0)))
}

impl AdvanceReservation {
    /// Whether its time has come.
    pub fn is_running(&self) -> bool {
        self.state == ReservationState::Running
    }

    /// Whether it has slots in a queue instance.
    pub fn has(&self, instance: &QueueInstanceName) -> bool {
        self.granted.iter().any(|granted| granted.instance == *instance)
    }

    /// Whether one of its queue instances was closed by hand or by a failure, so that its jobs wait
    /// if it is meant to be strict (`-he y`).
    pub fn is_broken(&self, state: &State) -> bool {
        let is_closed = |closed: &InstanceState| closed.disabled || closed.suspended || !closed.errors.is_empty();
        let fails = |granted: &GrantedSlots| {
            !state.config.resolved.contains_key(&granted.instance)
                || state.instances.get(&granted.instance).is_some_and(is_closed)
        };
        self.granted.iter().any(fails)
    }

    /// When it begins or, once it has, when it ends.
    pub fn next_time(&self) -> Option<Wall> {
        match self.state {
            ReservationState::Waiting => Some(self.start),
            ReservationState::Running => Some(self.end),
            ReservationState::Deleted => None,
        }
    }

    /// When it begins and ends by the monotone clock.
    pub fn span(&self, now: Now) -> (Tick, Tick) {
        (tick(now, self.start), tick(now, self.end))
    }
}

/// The tick at which the wall clock shows a time, unless it jumps.
pub fn tick(now: Now, at: Wall) -> Tick {
    let ahead_ms = at.0.saturating_sub(now.wall.0);
    match u64::try_from(ahead_ms) {
        Ok(ahead_ms) => now.tick.plus_ms(ahead_ms),
        Err(_) => Tick(now.tick.0.saturating_sub(ahead_ms.unsigned_abs())),
    }
}

impl State {
    /// How much of an attribute tasks have at a level, without amounts that are only kept for
    /// reservations.
    pub fn in_use<'l>(&self, level: impl Into<LevelRef<'l>>, attribute: &str) -> Amount {
        let level = level.into();
        let mut amount = self.ledger.booked(level, attribute);
        for reservation in self
            .reservations
            .values()
            .filter(|reservation| reservation.is_running())
        {
            let kept = reservation.block.amount(level, attribute);
            amount = amount.checked_sub(kept).unwrap_or(Amount::ZERO);
            let used = reservation.ledger.booked(level, attribute);
            amount = amount.saturating_add(used);
        }
        amount
    }

    /// The ids of resource maps that a task of this description gets with these slots. `None` if
    /// too few are free. A reservation keeps an amount: the ids of its jobs are found when they
    /// start.
    pub fn choose_ids(&self, observations: &Observations, spec: &JobSpec, grant: Grant<'_>) -> Option<Vec<GrantedIds>> {
        choose_ids(self.ledgers(), &self.config, observations, spec, grant)
    }

    /// The ids of a resource map of a host, or of the cluster, that a task could get now. `None` if
    /// it has no such map.
    pub fn free_ids(
        &self,
        observations: &Observations,
        attribute: &AttributeName,
        host: &HostName,
    ) -> Option<Vec<String>> {
        free_ids(self.ledgers(), &self.config, observations, attribute, host)
    }

    fn ledgers(&self) -> impl Iterator<Item = &Ledger> + Clone {
        let within = self.reservations.values().map(|reservation| &reservation.ledger);
        std::iter::once(&self.ledger).chain(within)
    }

    /// The slots of a level that tasks have.
    pub fn slots_in_use(&self, level: &Level) -> u32 {
        let slots = self.in_use(level, crate::ledger::SLOTS);
        slots
            .finite()
            .and_then(|slots| u32::try_from(slots).ok())
            .unwrap_or(u32::MAX)
    }

    /// The slots of a level that running reservations have.
    pub fn slots_reserved(&self, level: &Level) -> u32 {
        let running = self
            .reservations
            .values()
            .filter(|reservation| reservation.is_running());
        running
            .map(|reservation| reservation.block.slots_at(level))
            .fold(0, u32::saturating_add)
    }

    /// The jobs of strict reservations with slots in a queue instance. They wait while it fails.
    pub fn strict_jobs(&self, instance: &QueueInstanceName) -> Vec<SubmitSeq> {
        let strict = self
            .reservations
            .values()
            .filter(|known| known.spec.hard_error && known.has(instance));
        strict
            .flat_map(|reservation| self.index.jobs_within(reservation.id))
            .collect()
    }

    pub(super) fn grant(
        &mut self,
        id: ReservationId,
        spec: &Arc<ReservationSpec>,
        (start, end): (Wall, Wall),
        granted: &[GrantedSlots],
        pe: Option<&PeName>,
    ) {
        assert!(
            id.0 > 0 && !self.reservations.contains_key(&id),
            "a reservation gets a number that is free"
        );
        self.last_reservation = id.0;
        let spec = kept_reservation(&self.config.complex, spec);
        let reservation = AdvanceReservation {
            id,
            start,
            end,
            submitted: self.now.wall,
            granted: granted.to_vec(),
            pe: pe.cloned(),
            state: ReservationState::Waiting,
            block: block(&self.config, &spec, granted, pe),
            spec,
            ledger: Ledger::default(),
        };
        self.index.add_reservation(&reservation);
        self.reservations.insert(id, reservation);
    }

    pub(super) fn change_reservation(&mut self, id: ReservationId, state: ReservationState) {
        let reservation = self
            .reservations
            .get_mut(&id)
            .expect("an event names a reservation that is there");
        self.index.remove_reservation(reservation);
        let before = std::mem::replace(&mut reservation.state, state);
        self.index.add_reservation(reservation);
        match (before, state) {
            (ReservationState::Waiting, ReservationState::Running) => {
                self.ledger.hold(block_key(id), reservation.block.clone());
            }
            (ReservationState::Running, ReservationState::Deleted) => {
                let ledger = std::mem::take(&mut reservation.ledger);
                self.ledger.release(block_key(id));
                self.ledger.adopt(&self.config, &ledger);
            }
            (ReservationState::Waiting, ReservationState::Deleted) => {}
            (before, after) => unreachable!("a reservation goes from {before:?} to {after:?}"),
        }
    }

    pub(super) fn end_reservation(&mut self, id: ReservationId) {
        let reservation = self
            .reservations
            .get(&id)
            .expect("an event names a reservation that is there");
        if reservation.state != ReservationState::Deleted {
            self.change_reservation(id, ReservationState::Deleted);
        }
        let gone = self.reservations.remove(&id);
        gone.iter()
            .for_each(|reservation| self.index.remove_reservation(reservation));
    }
}
