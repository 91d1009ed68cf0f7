//! Ways to find things in a [`State`] without walking over it. Everything here follows from the
//! rest of the state.

pub mod bytes;

use super::State;
use super::commons::Commons;
use super::job::{Job, Placement};
use super::reservation::AdvanceReservation;
use crate::collections::paged::PagedMap;
use proto::complex::Complex;
use proto::id::{HostName, RequestId, ReservationId, SubmitSeq, TaskId, TaskKey, UserName};
use proto::job::JobSpec;
use proto::time::Wall;
use proto::wire::client::Reply;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Derived ways into a state; empty sets are not kept, so that equal states have equal indexes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Index {
    by_owner: BTreeMap<UserName, PagedMap<SubmitSeq, ()>>,
    active_of: BTreeMap<UserName, u32>,
    on_host: BTreeMap<HostName, BTreeSet<TaskKey>>,
    successors: BTreeMap<SubmitSeq, BTreeSet<SubmitSeq>>,
    by_reservation: BTreeMap<ReservationId, BTreeSet<SubmitSeq>>,
    /// When advance reservations begin, of those that have begun when they end.
    reservation_times: BTreeSet<(Wall, ReservationId)>,
    /// Advance reservations that are deleted and go with their last job.
    deleted_reservations: BTreeSet<ReservationId>,
    start_times: BTreeSet<(Wall, SubmitSeq)>,
    threshold_suspended: BTreeSet<TaskKey>,
    /// Tasks that people or thresholds have suspended: they have no tickets.
    suspended: BTreeSet<(SubmitSeq, TaskId)>,
    answers: BTreeMap<RequestId, Arc<Reply>>,
    bytes: bytes::Bytes,
    /// What the descriptions of jobs have in common.
    pub commons: Commons,
}

impl Index {
    /// The index of a state, made anew.
    pub fn of_state(state: &State) -> Self {
        let mut index = Self::default();
        for job in state.jobs.values() {
            index.add_job(&state.config.complex, job);
            let owner = &job.spec.owner.user;
            job.placements()
                .for_each(|(_, placement)| index.add_placement(owner, placement));
        }
        for (id, reply) in &state.answers {
            index.answers.insert(*id, reply.clone());
        }
        state
            .reservations
            .values()
            .for_each(|reservation| index.add_reservation(reservation));
        index
    }

    /// The jobs of a user, oldest first.
    pub fn jobs_of<'a>(&'a self, user: &UserName) -> impl Iterator<Item = SubmitSeq> + use<'a> {
        self.by_owner.get(user).into_iter().flat_map(PagedMap::keys).copied()
    }

    /// How many jobs a user has.
    pub fn job_count(&self, user: &UserName) -> usize {
        self.by_owner.get(user).map_or(0, PagedMap::len)
    }

    /// Bytes of what is long in the jobs of a user: scripts, which count once however many jobs
    /// have them, and what is more than [`FREE_BYTES`](bytes::FREE_BYTES) in arguments, environment
    /// and lists of each job.
    pub fn bytes_of(&self, user: &UserName) -> u64 {
        self.bytes.of_user(user)
    }

    /// How many of these bytes a further job would add.
    pub fn bytes_with(&self, spec: &JobSpec) -> u64 {
        self.bytes.with(spec)
    }

    /// How many tasks are on hosts.
    pub fn running(&self) -> u64 {
        self.active_of.values().map(|active| u64::from(*active)).sum()
    }

    /// How many tasks of a user are on hosts, for `maxujobs`.
    pub fn active_of(&self, user: &UserName) -> u32 {
        self.active_of.get(user).copied().unwrap_or(0)
    }

    /// Everybody who has jobs.
    pub fn owners(&self) -> impl Iterator<Item = &UserName> {
        self.by_owner.keys()
    }

    /// How many tasks of a job people or thresholds have suspended.
    pub fn suspended_of(&self, job: SubmitSeq) -> u32 {
        let of_job = self.suspended.range((job, TaskId(0))..=(job, TaskId(u32::MAX)));
        u32::try_from(of_job.count()).unwrap_or(u32::MAX)
    }

    /// The attempts that have slots on a host, oldest job first.
    pub fn on_host<'a>(&'a self, host: &HostName) -> impl Iterator<Item = TaskKey> + use<'a> {
        self.on_host.get(host).into_iter().flatten().copied()
    }

    /// The hosts that have tasks.
    pub fn hosts(&self) -> impl Iterator<Item = &HostName> {
        self.on_host.keys()
    }

    /// The jobs that wait for a job or for tasks of it.
    pub fn successors(&self, job: SubmitSeq) -> impl Iterator<Item = SubmitSeq> + '_ {
        self.successors.get(&job).into_iter().flatten().copied()
    }

    /// The jobs of an advance reservation, oldest first.
    pub fn jobs_within(&self, id: ReservationId) -> impl Iterator<Item = SubmitSeq> + '_ {
        self.by_reservation.get(&id).into_iter().flatten().copied()
    }

    /// When an advance reservation begins or ends for the next time, and which.
    pub fn next_reservation(&self) -> Option<(Wall, ReservationId)> {
        self.reservation_times.first().copied()
    }

    /// The advance reservations that begin or end until `now`, and those that are deleted and have
    /// no job left; by number.
    pub fn due_reservations(&self, now: Wall) -> Vec<ReservationId> {
        let due = self
            .reservation_times
            .iter()
            .take_while(|(at, _)| *at <= now)
            .map(|(_, id)| *id);
        let gone = self
            .deleted_reservations
            .iter()
            .copied()
            .filter(|id| !self.by_reservation.contains_key(id));
        let mut ids: Vec<ReservationId> = due.chain(gone).collect();
        ids.sort_unstable();
        ids
    }

    /// The first start time (`-a`) after `now`.
    pub fn next_start(&self, now: Wall) -> Option<Wall> {
        self.start_times
            .range((Wall(now.0.saturating_add(1)), SubmitSeq(0))..)
            .next()
            .map(|(at, _)| *at)
    }

    /// The jobs with this start time, oldest first.
    pub fn starting_at(&self, at: Wall) -> impl Iterator<Item = SubmitSeq> + '_ {
        self.start_times
            .range((at, SubmitSeq(0))..=(at, SubmitSeq(u64::MAX)))
            .map(|(_, seq)| *seq)
    }

    /// The attempts that suspend thresholds have suspended.
    pub fn threshold_suspended(&self) -> impl Iterator<Item = TaskKey> + '_ {
        self.threshold_suspended.iter().copied()
    }

    /// The answer that a request got.
    pub fn answer(&self, id: RequestId) -> Option<&Arc<Reply>> {
        self.answers.get(&id)
    }

    pub(super) fn add_job(&mut self, complex: &Complex, job: &Job) {
        self.commons.enter(complex, &job.spec);
        self.bytes.add(&job.spec);
        self.by_owner
            .entry(job.spec.owner.user.clone())
            .or_default()
            .insert(job.seq, ());
        for predecessor in job.waits_for.union(&job.array_waits_for) {
            self.successors.entry(*predecessor).or_default().insert(job.seq);
        }
        if let Some(id) = job.spec.reservation {
            self.by_reservation.entry(id).or_default().insert(job.seq);
        }
        self.start_times.extend(job.spec.start_after.map(|at| (at, job.seq)));
    }

    pub(super) fn remove_job(&mut self, job: &Job) {
        self.commons.leave(&job.spec);
        self.bytes.remove(&job.spec);
        let owner = &job.spec.owner.user;
        if let Some(jobs) = self.by_owner.get_mut(owner) {
            jobs.remove(&job.seq);
            if jobs.is_empty() {
                self.by_owner.remove(owner);
            }
        }
        for predecessor in job.waits_for.union(&job.array_waits_for) {
            remove(&mut self.successors, predecessor, &job.seq);
        }
        if let Some(id) = job.spec.reservation {
            remove(&mut self.by_reservation, &id, &job.seq);
        }
        if let Some(at) = job.spec.start_after {
            self.start_times.remove(&(at, job.seq));
        }
    }

    /// Files an advance reservation as it is now; [`Index::remove_reservation`] took it out before
    /// it changed.
    pub(super) fn add_reservation(&mut self, reservation: &AdvanceReservation) {
        match reservation.next_time() {
            Some(at) => self.reservation_times.insert((at, reservation.id)),
            None => self.deleted_reservations.insert(reservation.id),
        };
    }

    pub(super) fn remove_reservation(&mut self, reservation: &AdvanceReservation) {
        match reservation.next_time() {
            Some(at) => self.reservation_times.remove(&(at, reservation.id)),
            None => self.deleted_reservations.remove(&reservation.id),
        };
    }

    pub(super) fn add_placement(&mut self, owner: &UserName, placement: &Placement) {
        *self.active_of.entry(owner.clone()).or_default() += 1;
        for granted in &placement.granted {
            self.on_host
                .entry(granted.instance.host.clone())
                .or_default()
                .insert(placement.key);
        }
        self.set_suspended(placement);
    }

    /// How a placement is suspended may have changed.
    pub(super) fn set_suspended(&mut self, placement: &Placement) {
        let (key, by_threshold) = (placement.key, placement.suspended_by_threshold);
        if by_threshold {
            self.threshold_suspended.insert(key)
        } else {
            self.threshold_suspended.remove(&key)
        };
        if by_threshold || placement.suspended {
            self.suspended.insert((key.seq, key.task))
        } else {
            self.suspended.remove(&(key.seq, key.task))
        };
    }

    pub(super) fn remove_placement(&mut self, owner: &UserName, placement: &Placement) {
        let active = self
            .active_of
            .get_mut(owner)
            .expect("the owner of a placed task has one");
        *active -= 1;
        if *active == 0 {
            self.active_of.remove(owner);
        }
        for granted in &placement.granted {
            remove(&mut self.on_host, &granted.instance.host, &placement.key);
        }
        self.threshold_suspended.remove(&placement.key);
        self.suspended.remove(&(placement.key.seq, placement.key.task));
    }

    pub(super) fn add_answer(&mut self, id: RequestId, reply: Arc<Reply>) {
        self.answers.insert(id, reply);
    }

    pub(super) fn remove_answer(&mut self, id: RequestId) {
        self.answers.remove(&id);
    }
}

/// Takes a value out of the set of a key, and the set with its last value.
fn remove<K: Ord, V: Ord>(sets: &mut BTreeMap<K, BTreeSet<V>>, key: &K, value: &V) {
    if let Some(set) = sets.get_mut(key) {
        set.remove(value);
        if set.is_empty() {
            sets.remove(key);
        }
    }
}
