//! The scheduler's model of the cell: a state folded from the events, the observations, what is
//! planned, and ways to find what a pass needs without walking over jobs or hosts.

pub(crate) mod alarms;
pub(crate) mod cluster_resources;
pub mod concerned;
pub(crate) mod filing;
mod following;
mod planning;
pub(crate) mod plans;
pub(crate) mod running_tickets;
pub(crate) mod thresholds;
pub(crate) mod uncharged_usage;

use super::reserve::ReservationMode;
use super::reserve::Search;
use crate::collections::by_host::ByHost;
use crate::ledger::keys::plan_key;
use crate::ledger::{Booking, Ledger};
use crate::matching::{Cluster, Mode};
use crate::observe::Observations;
use crate::policy::TicketRules;
use crate::sched::assign::Assignment;
use crate::sched::filter::categories::{Categories, CategoryId, CategoryRow};
use crate::sched::filter::changes::Changes;
use crate::sched::filter::instance_ids::InstanceIds;
use crate::sched::filter::recent_instances::RecentInstances;
use crate::sched::filter::standings::Standings;
use crate::sched::order::queue::Queue;
use crate::sched::reserve::advance::assign_within;
use crate::sched::reserve::ahead::{Lookahead, Reservation, Reservations};
use crate::state::State;
use crate::state::eligible::{
    IneligibleReason, eligible, eligible_beside, eligible_tasks, job_eligible, least_eligible,
};
use crate::state::job::Job;
use alarms::Alarms;
use plans::Plans;
use proto::id::{HostName, QueueInstanceName, ReservationId, SubmitSeq, TaskId};
use proto::time::{Now, Tick, Zone};
use proto::wire::stream::Order;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use thresholds::Rhythm;
use uncharged_usage::UnchargedUsage;

/// The least time between two looks at hosts whose load is adjusted for jobs that have just
/// started.
const COOLING_LOOK_MS: u64 = 5_000;

/// How long a job is left alone after the core refused an order for it: model and core disagree
/// about something that no event has told yet, and the same order would be refused again.
const REFUSED_PAUSE_MS: u64 = 1_000;

/// What the scheduler knows.
///
/// Three kinds of methods, in files by duty:
///
/// - Following (`model/following.rs`): [`Model::apply`] for each event, [`Model::observe`] for each
///   observation, [`Model::refused`] for each order that the core did not take. They keep the state
///   and tell the caches what changed; they never look for a place.
/// - Passing (`pass_time`, `assign`, `reserve`, `startable`, `plan_start`, `take_back`): what an
///   [algorithm](super::algorithm) calls. `pass_time` begins a pass; `assign` and `reserve` look
///   for slots for one task of a category, and bring the standings up to date themselves. A start
///   that is planned counts as taken until its event or its refusal comes.
/// - Telling (`listed_categories`, `findings`, `reservations`): for `qstat`, `qsched` and
///   `explain`. They take no part in a pass, and a pass keeps nothing for them.
///
/// Records of the log come in between two slices, at any time and in any number; a pass under way
/// therefore holds no part of the model and looks at `rebuilds` before it uses a number of a bucket
/// or category again. Whoever adds a fact that may let a job start writes it to `changes` (one
/// instance, something shared, or everything); forgetting that leaves jobs waiting, which
/// `sched/tests/reference.rs` finds by comparing with a scheduler without caches.
///
/// Invariants: `queue` holds exactly the jobs of the state; `categories` are those of these jobs,
/// with how many there are; `planned` books exactly the tasks in `plans`, which the core has not
/// judged yet; `standings` are right but for hosts that it calls stale.
#[derive(Clone, Debug)]
pub struct Model {
    pub(super) state: State,
    pub(super) observations: Observations,
    pub(super) instance_ids: InstanceIds,
    pub(super) queue: Queue,
    /// How often everything was made anew: numbers of buckets and categories from before mean
    /// nothing any more.
    pub(super) rebuilds: u64,
    pub(super) rules: TicketRules,
    pub(super) categories: Categories,
    pub(super) standings: Standings,
    pub(super) filling: RecentInstances,
    /// Whether queue instances and their hosts alone decide who starts, where that was looked up
    /// since something happened.
    pub(super) is_local: Option<bool>,
    pub(super) changes: Changes,
    pub(super) planned: Ledger,
    /// The planned tasks of advance reservations: a ledger for each reservation. They are not in
    /// `planned`.
    planned_within: BTreeMap<ReservationId, Ledger>,
    plans: Plans,
    /// Jobs that were given up because they could not start at once.
    given_up: BTreeSet<SubmitSeq>,
    /// Jobs for which an order was refused, with the end of their pause.
    paused: BTreeMap<SubmitSeq, Tick>,
    /// Hosts on which jobs started a short while ago, with when that ends to matter.
    cooling: ByHost<Tick>,
    looked: Tick,
    rhythm: Rhythm,
    pub(super) ahead: Lookahead,
    /// Jobs for which time alone changes something.
    pub(super) alarms: Alarms,
    /// What running tasks have used and were not charged with yet.
    pub(super) live: UnchargedUsage,
    /// The latest time that is known.
    pub(super) time: Now,
}

impl Model {
    /// The model of a state, before anything is observed. Calendars go by the clock of `zone`.
    pub fn new(state: State, zone: Zone) -> Model {
        let mut model = Model {
            time: state.now,
            alarms: Alarms::default(),
            rules: TicketRules::from_config(&state.config),
            state,
            observations: Observations::default(),
            instance_ids: InstanceIds::default(),
            queue: Queue::default(),
            rebuilds: 0,
            categories: Categories::default(),
            standings: Standings::new(),
            filling: RecentInstances::default(),
            is_local: None,
            changes: Changes::default(),
            planned: Ledger::default(),
            planned_within: BTreeMap::new(),
            plans: Plans::default(),
            given_up: BTreeSet::new(),
            paused: BTreeMap::new(),
            cooling: ByHost::new(),
            looked: Tick::default(),
            rhythm: Rhythm::default(),
            ahead: Lookahead::new(zone),
            live: UnchargedUsage::default(),
        };
        model.rebuild();
        model
    }

    /// The state as of the last record.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The categories of all jobs, by number.
    pub fn listed_categories(&self) -> Vec<CategoryRow> {
        self.categories.listed()
    }

    /// What was observed.
    pub fn observations(&self) -> &Observations {
        &self.observations
    }

    /// Takes a plan back that the core refused. The job is not looked at for a moment.
    pub fn refused(&mut self, order: &Order) {
        match order {
            Order::Start { seq, .. } => {
                self.paused.insert(*seq, self.time.tick.plus_ms(REFUSED_PAUSE_MS));
                self.take_back(order);
            }
            Order::RejectImmediate { seq } => {
                self.given_up.remove(seq);
                self.paused.insert(*seq, self.time.tick.plus_ms(REFUSED_PAUSE_MS));
                self.refile(*seq);
            }
            Order::SuspendByThreshold { .. } => {}
        }
    }

    /// What time has changed by itself: start times that have come, pauses that are over, load
    /// adjustments that have decayed.
    pub(super) fn pass_time(&mut self, now: Now, reserving: ReservationMode) {
        self.time = now;
        self.disturbed();
        self.draw_ahead();
        match reserving {
            ReservationMode::Anew => self.ahead.pass_time(&self.state.config, now),
            ReservationMode::Keep if self.ahead.pass_time_keeping(&self.state.config, now) => {
                self.give_up_unwanted(now)
            }
            ReservationMode::Keep => {}
        }
        while let Some(seq) = self.alarms.pop(now) {
            self.state.settle(seq, now.tick);
            self.refile(seq);
        }
        let over: Vec<SubmitSeq> = self
            .paused
            .iter()
            .filter(|(_, end)| **end <= now.tick)
            .map(|(seq, _)| *seq)
            .collect();
        for seq in over {
            self.paused.remove(&seq);
            self.refile(seq);
        }
        if now.tick.since_ms(self.looked) < COOLING_LOOK_MS {
            return;
        }
        self.looked = now.tick;
        let cooling: Vec<HostName> = self.cooling.keys().cloned().collect();
        cooling.iter().for_each(|host| self.host_changed(host));
        let is_cold = |host: &&HostName| self.cooling.get(*host).is_some_and(|until| *until <= now.tick);
        for host in cooling.iter().filter(is_cold).collect::<Vec<_>>() {
            self.cooling.remove(host);
        }
    }

    /// What suspend thresholds want done now.
    pub(super) fn threshold_orders(&mut self, now: Now) -> Vec<Order> {
        let mut rhythm = std::mem::take(&mut self.rhythm);
        let orders = thresholds::orders(self, &mut rhythm, now);
        self.rhythm = rhythm;
        orders
    }

    /// Slots for a task of a category, if there are any.
    pub(super) fn assign(&mut self, category: CategoryId, now: Now) -> Option<Assignment> {
        let cluster = Cluster {
            planned: Some(&self.planned),
            now: now.tick,
            ..Cluster::of_state(&self.state, &self.observations, Mode::Now).untold()
        };
        let category = self.categories.get_mut(category)?;
        if let Some(id) = category.demand.reservation {
            let planned = self.planned_within.get(&id);
            return assign_within(
                &cluster.of_demand(&self.state, &category.demand),
                planned,
                &category.demand,
            );
        }
        self.standings.refresh(&cluster, &self.instance_ids);
        let closing = self.ahead.closing(now, category.length_ms);
        let window = self.ahead.window(now, category.length_ms, &closing);
        let cluster = Cluster { window, ..cluster };
        category.assign(
            &cluster,
            &self.instance_ids,
            &mut self.standings,
            &self.changes,
            &mut self.filling,
        )
    }

    /// Gives up what is kept for tasks that no longer wait for it.
    fn give_up_unwanted(&mut self, now: Now) {
        let is_wanted = |(seq, task): &(SubmitSeq, TaskId)| {
            let job = self.state.jobs.get(seq).filter(|job| job.spec.reserve);
            job.is_some_and(|job| self.is_startable(job, *task, now))
        };
        let unwanted: Vec<_> = self
            .ahead
            .reservations()
            .keys()
            .filter(|key| !is_wanted(key))
            .copied()
            .collect();
        unwanted
            .into_iter()
            .for_each(|(seq, task)| drop(self.ahead.give_up(seq, task)));
    }

    /// Gives up what is kept for a task, which may start now.
    pub(super) fn give_up_reservation(&mut self, seq: SubmitSeq, task: TaskId) -> Option<Reservation> {
        self.ahead.give_up(seq, task)
    }

    /// Keeps for a task again what was given up.
    pub(super) fn keep_again(&mut self, seq: SubmitSeq, task: TaskId, reservation: Reservation) {
        if let Some(job) = self.state.jobs.get(&seq) {
            self.ahead.keep(&self.state, &job.spec, (seq, task), reservation);
        }
    }

    /// How many more tasks may have a reservation.
    pub(super) fn reservations_left(&self) -> usize {
        let most = usize::try_from(self.state.config.scheduler.max_reservation).unwrap_or(usize::MAX);
        most.saturating_sub(self.ahead.reservations().len())
    }

    /// Keeps slots for a task of a category from the earliest time on at which it could start;
    /// false if there is none.
    pub(super) fn reserve(&mut self, id: CategoryId, seq: SubmitSeq, task: TaskId, now: Now) -> bool {
        let (Some(job), Some(category)) = (self.state.jobs.get(&seq), self.categories.get(id)) else {
            return false;
        };
        let cluster = Cluster {
            planned: Some(&self.planned),
            now: now.tick,
            ..Cluster::of_state(&self.state, &self.observations, Mode::Now).untold()
        };
        self.standings.refresh(&cluster, &self.instance_ids);
        let open = || category.not_closed(&self.standings);
        let (demand, length_ms, before) = (category.demand.as_ref(), category.length_ms, self.ahead.last_search(id));
        let is_doubtful = self.ahead.is_doubtful(id);
        let earliest = Search {
            cluster,
            ahead: &self.ahead,
            demand,
            length_ms,
            now,
            is_doubtful,
        }
        .earliest(open, before);
        self.ahead.searched(id, earliest.is_some());
        let Some((at, assignment, found)) = earliest else {
            return false;
        };
        let reservation = Reservation::new(at, length_ms, assignment);
        if let Some(found) = found {
            self.ahead.keep_search(id, found);
        }
        self.ahead.keep(&self.state, &job.spec, (seq, task), reservation);
        true
    }

    /// The reservations that the last pass has made.
    pub fn reservations(&self) -> &Reservations {
        self.ahead.reservations()
    }

    /// Whether the time to come counts: reservations may be made, or there is an advance
    /// reservation.
    pub fn plans_ahead(&self) -> bool {
        self.ahead.is_on()
    }

    /// What a pass looks at, with what is planned.
    pub(super) fn cluster(&self, now: Now) -> Cluster<'_> {
        let cluster = Cluster::of_state(&self.state, &self.observations, Mode::Now).untold();
        Cluster {
            planned: Some(&self.planned),
            now: now.tick,
            ..cluster
        }
    }

    /// What is booked for a task that is planned and not judged by the core yet.
    pub fn planned(&self, seq: SubmitSeq, task: TaskId) -> Option<&Booking> {
        let mut ledgers = std::iter::once(&self.planned).chain(self.planned_within.values());
        ledgers
            .find_map(|ledger| ledger.booking(plan_key(seq, task)))
            .map(AsRef::as_ref)
    }

    /// Whether no queue instance takes jobs now.
    pub(super) fn is_full(&mut self, now: Now) -> bool {
        let cluster = Cluster {
            planned: Some(&self.planned),
            now: now.tick,
            ..Cluster::of_state(&self.state, &self.observations, Mode::Now).untold()
        };
        self.standings.refresh(&cluster, &self.instance_ids);
        self.standings.is_empty()
    }

    /// Whether slots that are taken for all others may be free for the jobs of a category.
    pub(super) fn is_within(&self, category: CategoryId) -> bool {
        self.categories
            .get(category)
            .is_some_and(|category| category.demand.reservation.is_some())
    }

    /// Whether the jobs of a category start at once or never.
    pub(super) fn is_immediate(&self, category: CategoryId) -> bool {
        self.categories
            .get(category)
            .is_some_and(|category| category.demand.immediate)
    }

    /// Whether a job is immediate and nothing of it has started: where the core has refused a part,
    /// the rest waits as others do.
    pub(super) fn starts_whole(&self, seq: SubmitSeq) -> bool {
        self.state
            .jobs
            .get(&seq)
            .is_some_and(|job| job.spec.immediate && job.active == 0 && self.plans_of(seq) == 0)
    }

    /// The tasks of a job that nothing of the job itself keeps from starting, rising.
    pub(super) fn eligible(&self, seq: SubmitSeq) -> Vec<TaskId> {
        self.state
            .jobs
            .get(&seq)
            .map_or_else(Vec::new, |job| eligible_tasks(&self.state, job, self.time).collect())
    }

    /// Gives a job up that should have started at once.
    pub(super) fn give_up(&mut self, seq: SubmitSeq) {
        self.given_up.insert(seq);
        self.refile(seq);
    }

    /// Tasks of a job that may be started now and are not planned, at most so many, rising.
    pub(super) fn startable(&self, job: &Job, now: Now, most: usize) -> Vec<TaskId> {
        self.all_startable(job, now).take(most).collect()
    }

    /// The first task of a job that may be started now and is not planned.
    pub(super) fn first_startable(&self, job: &Job, now: Now) -> Option<TaskId> {
        // Most tasks are the only one of their job and were never started.
        if job.spec.array.is_none() && least_eligible(job) > 0 {
            let is_free = || self.plans_of(job.seq) == 0 && self.may_start(job, now);
            let only = job.untouched.first().filter(|_| is_free());
            debug_assert_eq!(only, self.all_startable(job, now).next());
            return only;
        }
        self.all_startable(job, now).next()
    }

    /// Whether nothing that all tasks of a job share keeps them from being started now.
    fn may_start(&self, job: &Job, now: Now) -> bool {
        let is_apart = self.given_up.contains(&job.seq) || self.paused.contains_key(&job.seq);
        !is_apart && self.job_eligible(job, now).is_ok()
    }

    fn all_startable<'a>(&'a self, job: &'a Job, now: Now) -> impl Iterator<Item = TaskId> + 'a {
        let planned = self.plans.of_array(job.seq);
        let is_planned = job.spec.array.is_none() && self.plans_of(job.seq) > 0;
        let may_start = !is_planned && self.may_start(job, now);
        may_start
            .then(|| eligible_beside(&self.state, job, planned, now))
            .into_iter()
            .flatten()
    }

    /// How many tasks of a job of which so many are planned may be started now beside them, `most`
    /// if there are more. The tasks themselves are looked at only where counts do not tell.
    pub(super) fn count_startable(&self, job: &Job, planned: u32, now: Now, most: usize) -> usize {
        if job.spec.array.is_none() && planned > 0 {
            return 0;
        }
        let least = least_eligible(job).saturating_sub(planned) as usize;
        if least >= most && self.may_start(job, now) {
            return most;
        }
        self.startable(job, now, most).len()
    }

    /// Whether a task may still be started.
    pub(super) fn is_startable(&self, job: &Job, task: TaskId, now: Now) -> bool {
        !self.plans.contains(job.seq, task)
            && self.job_eligible(job, now).is_ok()
            && eligible(&self.state, job, task, now).is_ok()
    }

    /// Whether the owner of a job runs as many tasks as `maxujobs` allows, planned ones among them.
    ///
    /// Asked when a job's turn comes and not when it is filed: the end of one task would move all
    /// jobs of its owner.
    pub(super) fn is_owner_full(&self, seq: SubmitSeq) -> bool {
        let limit = self.state.config.scheduler.maxujobs;
        limit > 0 && self.running_of_owner(seq) >= limit
    }

    /// How many tasks the owner of a job runs, planned ones among them.
    pub(super) fn running_of_owner(&self, seq: SubmitSeq) -> u32 {
        let Some(job) = self.state.jobs.get(&seq) else { return 0 };
        let owner = &job.spec.owner.user;
        self.state
            .index
            .active_of(owner)
            .saturating_add(self.plans.of_owner(owner))
    }

    /// How many more tasks of a job may run at a time.
    pub(super) fn room_in(&self, job: &Job) -> usize {
        self.room_beside(job, self.plans_of(job.seq))
    }

    /// How many more tasks of a job of which so many are planned may run at a time.
    pub(super) fn room_beside(&self, job: &Job, planned: u32) -> usize {
        let limits = [
            job.spec.task_concurrency,
            Some(self.state.config.settings.max_aj_instances),
        ];
        let limits = limits
            .into_iter()
            .flatten()
            .filter(|limit| *limit > 0 && job.spec.array.is_some());
        let active = job.active.saturating_add(planned);
        limits
            .min()
            .map_or(usize::MAX, |limit| limit.saturating_sub(active) as usize)
    }

    /// As [`job_eligible`], with planned tasks counted as running.
    fn job_eligible(&self, job: &Job, now: Now) -> Result<(), IneligibleReason> {
        job_eligible(&self.state, job, now.wall)?;
        let active = job.active.saturating_add(self.plans_of(job.seq));
        let limits = &self.state.config.settings;
        if let Some(limit) = job.spec.task_concurrency.filter(|limit| *limit > 0 && active >= *limit) {
            return Err(IneligibleReason::TaskConcurrency(limit));
        }
        if job.spec.array.is_some() && limits.max_aj_instances > 0 && active >= limits.max_aj_instances {
            return Err(IneligibleReason::ArrayInstances(limits.max_aj_instances));
        }
        Ok(())
    }

    /// Looks again at the time to come, where what it follows from has changed. Due before a pass
    /// and before each slice of it.
    pub(super) fn draw_ahead(&mut self) {
        self.ahead.draw(&self.state, &self.planned);
    }

    pub(super) fn drawn_ahead(&self) -> Cow<'_, Lookahead> {
        let mut ahead = Cow::Borrowed(&self.ahead);
        if self.ahead.is_outdated() {
            ahead.to_mut().draw(&self.state, &self.planned);
        }
        ahead
    }

    pub(super) fn plans_of(&self, seq: SubmitSeq) -> u32 {
        self.plans.of_job(seq)
    }

    /// Something may have become possible on a host.
    fn host_changed(&mut self, host: &HostName) {
        self.standings.host(host);
        let ids = self.instance_ids.site(host).map_or(&[][..], |site| &site.ids);
        ids.iter().for_each(|id| self.changes.instance(*id));
    }

    /// Something may have become possible anywhere.
    pub(super) fn everything_changed(&mut self) {
        self.standings.everything();
        self.changes.everything();
    }

    /// Something of a quota may be free again, and of what the whole cluster shares.
    fn gave_back(&mut self, is_shared: bool) {
        if is_shared {
            self.gave_back_shared();
        }
        if self.state.config.enabled_quotas().next().is_some() {
            self.changes.quota();
        }
    }

    /// Makes everything anew that follows from the configuration.
    fn rebuild(&mut self) {
        self.planned.recount(&self.state.config);
        self.instance_ids = InstanceIds::default();
        let mut by_host: BTreeMap<HostName, Vec<QueueInstanceName>> = BTreeMap::new();
        for instance in self.state.config.resolved.keys() {
            by_host.entry(instance.host.clone()).or_default().push(instance.clone());
        }
        by_host
            .into_iter()
            .for_each(|(host, instances)| drop(self.instance_ids.set(&host, instances)));
        self.ahead.outdate(&self.state);
        self.standings = Standings::new();
        self.changes.everything();
        self.queue = Queue::default();
        self.rebuilds += 1;
        self.rules = TicketRules::from_config(&self.state.config);
        self.categories.clear();
        let jobs: Vec<SubmitSeq> = self.state.jobs.keys().copied().collect();
        jobs.into_iter().for_each(|seq| self.refile(seq));
    }
}
