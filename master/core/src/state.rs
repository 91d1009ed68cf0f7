//! The state of a cell: the fold of its events (ARCHITECTURE.md "One input").
//!
//! The core, the query side and the scheduler's model each fold the same events into a `State` of
//! their own with [`State::apply`]; descriptions that are large are shared, not copied. Load
//! values, contact and what tasks use while they run are not here: they are
//! [`Observations`](crate::observe::Observations).

pub mod apply;
pub mod check;
pub mod commons;
mod cores;
pub mod decay;
pub mod eligible;
pub mod index;
pub mod job;
pub mod ready;
mod requests;
pub mod reservation;
pub mod slaves;
pub mod usage;

use crate::collections::paged::SharedMap;
use crate::config::Configuration;
use crate::event::{InstanceState, JoinGrant};
use crate::ledger::{Booking, Grant, Ledger};
use commons::Commons;
use index::Index;
use job::{FinishedJob, Job, Placement, Task};
use proto::cell_version::CellVersion;
use proto::id::{
    CellId, Epoch, EventSeq, HostName, JobNumber, QueueInstanceName, RequestId, ReservationId, SubmitSeq, TaskId,
    TaskKey,
};
use proto::job::JobSpec;
use proto::time::{Now, Tick, Wall};
use proto::wire::agent::TasksMark;
use proto::wire::client::Reply;
use reservation::AdvanceReservation;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use usage::Accounts;

/// Everything that is true of a cell: the fold of its events.
///
/// [`State::apply`] changes it. The core, the reader, the scheduler and replay all call it with the
/// same events in the same order and come to equal states, so nothing that is applied may depend on
/// anything but the event and the state: not on time that passes, not on load, not on the version
/// of the program. It panics on an event that cannot be true; the core checks that before it
/// records one. `settle`, by which the scheduler finds tasks quickly whose pause is over, changes
/// an index and nothing that is compared or stored.
///
/// What can be computed from the rest is not stored: [`State::image`] leaves it out of a snapshot,
/// and [`State::restored`] makes it anew. A copy is cheap, because the large tables share what did
/// not change; so readers get copies, and there are no locks.
///
/// What changes without an event (load, contact, use of running tasks) is in
/// [`Observations`](crate::observe::Observations), and what a master only remembers in
/// [`Core`](crate::core::Core).
///
/// Invariants, checked by [`State::check`]: `by_number` names exactly the jobs in `jobs`; the
/// ledger equals the sum over the placed tasks; a job in `jobs` has at least one task that is
/// pending or on a host; requests are in the form in which they are kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// The cell; 0 before the first event.
    pub cell: CellId,
    /// How new its events may be.
    #[serde(default)]
    pub version: CellVersion,
    /// The master's epoch.
    pub epoch: Epoch,
    /// The last event that was applied.
    pub last: EventSeq,
    /// When that was.
    pub now: Now,
    /// The configuration objects, with the queue instances they resolve to.
    pub config: Configuration,
    /// Queue instances that are not in the default state.
    pub instances: BTreeMap<QueueInstanceName, InstanceState>,
    /// Jobs that are not finished.
    pub jobs: SharedMap<SubmitSeq, Job>,
    /// Their numbers.
    pub by_number: SharedMap<JobNumber, SubmitSeq>,
    /// The last submission.
    pub last_submit: SubmitSeq,
    /// The last job number given out.
    pub last_number: JobNumber,
    /// The last number of an advance reservation that was given out.
    #[serde(default)]
    pub last_reservation: u32,
    /// Advance reservations that are not gone.
    #[serde(default)]
    pub reservations: BTreeMap<ReservationId, AdvanceReservation>,
    /// The last finished jobs, oldest first, at most `finished_jobs`.
    pub finished: VecDeque<FinishedJob>,
    /// What running tasks take from the consumables.
    pub ledger: Ledger,
    /// Attempts that were given up with their hosts and may still run there, of jobs that are not
    /// finished.
    #[serde(default)]
    pub unconfirmed: BTreeMap<HostName, BTreeSet<TaskKey>>,
    /// What was used, and who was charged for it.
    #[serde(default)]
    pub usage: Accounts,
    /// Certificates that are admitted, by host: serial and end of validity.
    pub certificates: BTreeMap<HostName, BTreeMap<String, Wall>>,
    /// The newest mark of each host's task directory, as its agent showed it.
    #[serde(default)]
    pub task_marks: BTreeMap<HostName, TasksMark>,
    /// Join tokens by hash.
    pub tokens: BTreeMap<String, JoinGrant>,
    /// Answers to changing requests, newest last, at most [`ANSWERS_KEPT`].
    pub answers: VecDeque<(RequestId, Arc<Reply>)>,
    /// Ways to find things quickly: derived, kept current by `apply`, rebuilt by
    /// [`State::restored`].
    #[serde(skip)]
    pub index: Index,
}

/// How many answers are kept for repeats: a client repeats for 60 s, and this is more than a busy
/// minute of changes.
pub const ANSWERS_KEPT: usize = 100_000;

impl State {
    /// The state before the first event.
    pub fn new() -> Self {
        Self {
            cell: CellId(0),
            version: CellVersion::FIRST,
            epoch: Epoch::default(),
            last: EventSeq::default(),
            now: Now::default(),
            config: Configuration::new(),
            instances: BTreeMap::new(),
            jobs: SharedMap::new(),
            by_number: SharedMap::new(),
            last_submit: SubmitSeq(0),
            last_number: JobNumber(0),
            last_reservation: 0,
            reservations: BTreeMap::new(),
            finished: VecDeque::new(),
            ledger: Ledger::with_takers(),
            unconfirmed: BTreeMap::new(),
            usage: Accounts::default(),
            certificates: BTreeMap::new(),
            task_marks: BTreeMap::new(),
            tokens: BTreeMap::new(),
            answers: VecDeque::new(),
            index: Index::default(),
        }
    }

    /// What is stored of it, to be written while this one goes on. Descriptions of jobs are shared;
    /// nothing can be found or applied in it before it is [`State::restored`].
    pub fn image(&self) -> Self {
        Self {
            cell: self.cell,
            version: self.version,
            epoch: self.epoch,
            last: self.last,
            now: self.now,
            config: self.config.clone(),
            instances: self.instances.clone(),
            jobs: self.jobs.clone(),
            by_number: self.by_number.clone(),
            last_submit: self.last_submit,
            last_number: self.last_number,
            last_reservation: self.last_reservation,
            reservations: self.reservations.clone(),
            finished: self.finished.clone(),
            ledger: self.ledger.image(),
            unconfirmed: self.unconfirmed.clone(),
            usage: self.usage.clone(),
            certificates: self.certificates.clone(),
            task_marks: self.task_marks.clone(),
            tokens: self.tokens.clone(),
            answers: self.answers.clone(),
            index: Index::default(),
        }
    }

    /// A state as it was read from a snapshot, made whole: what is derived is not stored.
    pub fn restored(mut self) -> Self {
        self.config.resolve();
        for job in self.jobs.values() {
            job.placements()
                .for_each(|(_, placement)| self.ledger.own(placement.key, &job.spec));
        }
        self.rebook();
        self.ledger.recount(&self.config);
        self.ledger.keep_takers(&self.config.shared.names);
        let mut commons = Commons::default();
        for job in self.jobs.values_mut() {
            job.spec = commons.kept(&self.config.complex, &job.spec);
            commons.enter(&self.config.complex, &job.spec);
            job.ready = job.found_ready(self.now.tick);
        }
        self.renew_others();
        self.index = Index::of_state(&self);
        self
    }

    /// Looks at the pauses of a job that are over by now, so that its tasks are found quickly. The
    /// state stays the same.
    pub(crate) fn settle(&mut self, seq: SubmitSeq, now: Tick) {
        if self.jobs.get(&seq).is_some_and(|job| job.ready.is_due(now))
            && let Some(job) = self.jobs.get_mut(&seq)
        {
            job.ready.settle(now);
        }
    }

    /// Books all that is booked anew by the complex as it is now. What quotas count is forgotten.
    fn rebook(&mut self) {
        self.ledger.rebook(&self.config.complex);
        for reservation in self.reservations.values_mut() {
            reservation.block = Arc::new(Booking::clone(&reservation.block).rebooked(&self.config.complex));
            reservation.ledger.rebook(&self.config.complex);
        }
    }

    /// What a task of a job takes of what it is given at `at`, or would.
    pub fn booking(&self, spec: &JobSpec, grant: Grant<'_>, at: Tick) -> Arc<Booking> {
        self.index.commons.booking(&self.config, spec, grant, at)
    }

    /// What a placed task takes.
    pub fn booked_for(&self, key: TaskKey) -> Option<&Arc<Booking>> {
        let within = || self.reservations.values().find_map(|within| within.ledger.booking(key));
        self.ledger.booking(key).or_else(within)
    }

    /// The job of that number, if it is not finished.
    pub fn job(&self, number: JobNumber) -> Option<&Job> {
        self.by_number.get(&number).map(|seq| &self.jobs[seq])
    }

    /// The task of an attempt with where it is, if that attempt is on a host now.
    pub fn placed(&self, key: TaskKey) -> Option<(&Job, &Task, &Placement)> {
        let job = self.jobs.get(&key.seq).filter(|_| key.cell == self.cell)?;
        let task = job.tasks.get(&key.task)?;
        let placement = task.place.placement().filter(|placement| placement.key == key)?;
        Some((job, task, placement))
    }

    /// The hosts on which an attempt of a task of this job may still run that was given up.
    pub fn unconfirmed_hosts(&self, seq: SubmitSeq) -> impl Iterator<Item = &HostName> {
        let has_job = move |keys: &BTreeSet<TaskKey>| keys.iter().any(|key| key.seq == seq);
        self.unconfirmed
            .iter()
            .filter(move |(_, keys)| has_job(keys))
            .map(|(host, _)| host)
    }

    /// Whether an attempt of this very task may still run on a host.
    pub fn is_unconfirmed(&self, host: &HostName, seq: SubmitSeq, task: TaskId) -> bool {
        let keys = self.unconfirmed.get(host).into_iter().flatten();
        keys.into_iter().any(|key| key.seq == seq && key.task == task)
    }

    /// Whether anything stops a placed task: people, a threshold, a superordinate queue, or one of
    /// its queue instances.
    pub fn is_stopped(&self, placement: &Placement) -> bool {
        placement.is_stopped() || self.is_queue_stopped(placement)
    }

    /// Whether one of a placed task's queue instances is suspended.
    pub fn is_queue_stopped(&self, placement: &Placement) -> bool {
        placement.granted.iter().any(|granted| {
            self.instances
                .get(&granted.instance)
                .is_some_and(InstanceState::stops_tasks)
        })
    }
}

impl State {
    /// The attempts that have slots in a queue instance, oldest job first.
    pub fn tasks_in(&self, instance: &QueueInstanceName) -> Vec<TaskKey> {
        let is_here = |key: &TaskKey| {
            let placement = self.placed(*key).map(|(_, _, placement)| placement);
            placement.is_some_and(|placement| placement.granted.iter().any(|granted| granted.instance == *instance))
        };
        self.index.on_host(&instance.host).filter(is_here).collect()
    }

    /// The queue instances that tasks have slots in.
    pub fn used_instances(&self) -> BTreeSet<QueueInstanceName> {
        self.in_use_anywhere().collect()
    }

    /// The queue instances that are no longer configured while tasks still have slots in them
    /// (state `o`).
    pub fn orphans(&self) -> BTreeSet<QueueInstanceName> {
        self.in_use_anywhere()
            .filter(|instance| !self.config.resolved.contains_key(instance))
            .collect()
    }

    /// The queue instances that tasks have slots in, one perhaps more than once: those of jobs in
    /// reservations are booked there.
    fn in_use_anywhere(&self) -> impl Iterator<Item = QueueInstanceName> {
        let within = self
            .reservations
            .values()
            .flat_map(|reservation| reservation.ledger.used_instances());
        self.ledger.used_instances().chain(within)
    }
}

impl Default for State {
    fn default() -> Self {
        Self::new()
    }
}
