//! The scheduler thread: a client of the stream with a model of its own (ARCHITECTURE.md "The
//! scheduler on one page").
//!
//! It folds events and observations, plans a pass in slices, and hands orders to the core, which
//! checks them. Priorities go to the reader thread as soft state. Triggers that come while a pass
//! runs are merged into one pass after it.

mod monitor;
mod profile;

use crate::clock::Clock;
use crate::messages::{DriverInput, ReaderInput, SchedulerInput};
use crate::model::{Monitoring, SchedulingUpdate};
use crate::reserve::DiskRoom;
use master_core::decide::tasks::tickets;
use master_core::effect::{Input, Placer};
use master_core::event::Event;
use master_core::observe::Observation;
use master_core::sched::algorithm::Algorithm;
use master_core::sched::{Listing, ReservationMode, Scheduler, Slice};
use master_core::state::State;
use monitor::Monitor;
use profile::Profile;
use proto::time::Zone;
use proto::wire::stream::Order;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

/// The name of this scheduler in the log.
const ALGORITHM: &str = "default";

/// Tasks that one slice of a pass tries: about a millisecond. The stream is applied between slices.
const BUDGET: usize = 1_000;

/// The longest time from a trigger to its pass while nothing else is planned.
const DEBOUNCE_MAX: Duration = Duration::from_millis(10);

/// The most inputs that are taken at once.
const BATCH: usize = 1_024;

/// The share of time for passes that make reservations, one part in so many and one, so that jobs
/// that fit start at once.
const RESERVING_SHARE: u32 = 4;

/// The share of time for priority numbers that people look at: one part in so many.
const PRIORITIES_SHARE: u32 = 20;

/// Jobs whose priority numbers are computed at a time: about a millisecond.
const LISTED: usize = 2_000;

/// The state of the thread.
pub struct SchedulerThread {
    scheduler: Scheduler,
    clock: Clock,
    orders: mpsc::Sender<DriverInput>,
    reader: mpsc::Sender<ReaderInput>,
    is_wanted: bool,
    /// A program outside places jobs: no pass is made.
    stands_by: bool,
    /// Whether the disk has room. Without it nothing is started.
    room: DiskRoom,
    is_ending: bool,
    /// When the next pass may begin: a pass is followed by a pause as long as itself, at most
    /// [`DEBOUNCE_MAX`].
    not_before: Instant,
    /// When the next pass begins at the latest (`schedule_interval`).
    at_latest: Instant,
    /// When a pass may make all reservations anew. Until then passes keep those there are.
    reserve_after: Instant,
    /// Whether the last pass kept its reservations.
    owes_reserving: bool,
    /// When hosts are told the tickets of their tasks next.
    tickets_after: Instant,
    /// When priority numbers may be computed again.
    priorities_after: Instant,
    /// Numbers that are being computed, and the time that they have taken so far.
    listing: Option<(Listing, Duration)>,
    /// Whether the next pass is to be written down.
    monitoring: Monitoring,
    /// The next entry of the file `schedule`.
    monitor: Monitor,
    /// Messages that the reader thread has not got yet.
    update: SchedulingUpdate,
}

impl SchedulerThread {
    /// A scheduler over the state that the core starts with.
    pub fn new(
        state: State,
        zone: Zone,
        clock: Clock,
        orders: mpsc::Sender<DriverInput>,
        reader: mpsc::Sender<ReaderInput>,
    ) -> Self {
        let now = Instant::now();
        // No pass before the core says so: a program outside may place jobs already.
        let stands_by = Algorithm::from_conf(&state.config.scheduler) == Algorithm::External;
        Self {
            scheduler: Scheduler::new(state, zone),
            clock,
            orders,
            reader,
            is_wanted: true,
            stands_by,
            room: DiskRoom::Enough,
            is_ending: false,
            not_before: now,
            at_latest: now,
            reserve_after: now,
            owes_reserving: false,
            tickets_after: now,
            priorities_after: now,
            listing: None,
            monitoring: Monitoring::Off,
            monitor: Monitor::default(),
            update: SchedulingUpdate::default(),
        }
    }

    /// Works until it is told to stop.
    pub fn run(mut self, mut inputs: mpsc::UnboundedReceiver<SchedulerInput>, runtime: &Handle) {
        let mut waiting = Vec::with_capacity(BATCH);
        while !self.is_ending {
            let due = if self.is_wanted {
                self.not_before
            } else {
                self.at_latest
            };
            let is_listing = self.listing.is_some();
            runtime.block_on(async {
                tokio::select! {
                    biased;
                    count = inputs.recv_many(&mut waiting, BATCH) => self.is_ending |= count == 0,
                    () = sleep_until(due) => self.is_wanted = true,
                    () = std::future::ready(()), if is_listing => {}
                }
            });
            waiting.drain(..).for_each(|input| self.take(input));
            if self.is_wanted && !self.is_ending && inputs.is_empty() && Instant::now() >= self.not_before {
                self.pass(&mut inputs, runtime);
            } else if is_listing && inputs.is_empty() {
                self.list();
                self.tell();
            }
        }
    }

    fn take(&mut self, input: SchedulerInput) {
        match input {
            SchedulerInput::Events(records) => {
                for record in records {
                    self.scheduler.apply(&record);
                    self.is_wanted |= is_trigger(&record.event);
                }
            }
            SchedulerInput::Observed(observation) => {
                self.scheduler.observe(&observation);
                self.is_wanted |= match observation {
                    Observation::Load { .. }
                    | Observation::Contact { .. }
                    | Observation::Unheard { .. }
                    | Observation::Unfit { .. } => true,
                    Observation::Usage(_) | Observation::Sensors { .. } | Observation::LoadRefused { .. } => false,
                };
            }
            SchedulerInput::Refused { order, why } => {
                tracing::debug!("order {order:?} was refused: {why}");
                self.scheduler.refused(&order);
                self.is_wanted = true;
            }
            SchedulerInput::Trigger(monitoring) => {
                if monitoring == Monitoring::On {
                    self.monitoring = Monitoring::On;
                }
                self.is_wanted = true;
                self.not_before = Instant::now();
            }
            SchedulerInput::Room(room) => {
                self.room = room;
                self.is_wanted = true;
            }
            SchedulerInput::Placing(by) => {
                self.stands_by = by == Placer::External;
                self.is_wanted = true;
            }
            SchedulerInput::Stop => self.is_ending = true,
        }
    }

    /// One pass, slice by slice, with the stream in between.
    fn pass(&mut self, inputs: &mut mpsc::UnboundedReceiver<SchedulerInput>, runtime: &Handle) {
        let began = Instant::now();
        self.is_wanted = false;
        // Requests during this pass are for the next one.
        let monitoring = std::mem::take(&mut self.monitoring);
        if self.stands_by || self.room == DiskRoom::Short {
            self.scheduler.stand_by(self.clock.now());
        } else {
            self.plan(inputs, runtime);
        }
        let ended = Instant::now();
        self.not_before = ended + (ended - began).min(DEBOUNCE_MAX);
        self.at_latest = ended + self.interval();
        if self.owes_reserving {
            self.at_latest = self.at_latest.min(self.reserve_after);
        }
        self.at_latest = self.monitor.due().map_or(self.at_latest, |due| due.min(self.at_latest));
        self.update.passes += 1;
        self.update.reservations = Arc::new(self.scheduler.model().reservations().clone());
        if monitoring == Monitoring::On {
            self.update.monitoring = Monitoring::On;
        }
        // The core may wait a moment for this message, so it is not sent if its queue is full.
        let _ = self.orders.try_send(DriverInput::Planned);
        self.reprioritize(ended);
        if ended >= self.priorities_after && self.listing.is_none() {
            self.listing = Some(Default::default());
        }
        self.list();
        // A pass that is written down needs its numbers.
        if monitoring == Monitoring::On {
            self.listing = Some(Default::default());
            while self.listing.is_some() {
                self.list();
            }
        }
        self.tell();
    }

    /// Plans slice by slice and hands the orders over.
    fn plan(&mut self, inputs: &mut mpsc::UnboundedReceiver<SchedulerInput>, runtime: &Handle) {
        let (mut profile, now) = (Profile::begin(), self.clock.now());
        let began = Instant::now();
        let reserving = if began < self.reserve_after {
            ReservationMode::Keep
        } else {
            ReservationMode::Anew
        };
        self.scheduler.begin(now, reserving);
        let is_monitored = self.scheduler.model().state().config.scheduler.monitor();
        while !self.stands_by && self.room == DiskRoom::Enough && !self.is_ending {
            let began = Instant::now();
            let Slice { orders, finished } = self.scheduler.next(BUDGET);
            profile.planned(began, &orders);
            if is_monitored {
                self.monitor.planned(self.scheduler.model(), &orders, now);
            }
            if !orders.is_empty() {
                let began = Instant::now();
                self.give(orders, inputs, runtime);
                profile.handed(began);
            }
            while let Ok(input) = inputs.try_recv() {
                self.take(input);
            }
            if finished {
                break;
            }
        }
        let (ended, model) = (Instant::now(), self.scheduler.model());
        if reserving == ReservationMode::Anew && !model.reservations().is_empty() {
            self.reserve_after = ended + (ended - began) * RESERVING_SHARE;
        }
        self.owes_reserving = reserving == ReservationMode::Keep;
        if is_monitored {
            let entry = self
                .monitor
                .over(model, self.clock.now(), self.update.schedule.is_none());
            self.update.schedule = self.update.schedule.take().or(entry);
        } else {
            self.monitor.stop();
        }
        if model.state().config.scheduler.profile() {
            profile
                .lines(model, now)
                .iter()
                .for_each(|line| tracing::info!("{line}"));
        }
    }

    /// `schedule_interval`, at least a second.
    fn interval(&self) -> Duration {
        let conf = &self.scheduler.model().state().config.scheduler;
        Duration::from_secs(conf.schedule_interval.seconds().unwrap_or(1).max(1))
    }

    /// Hands orders to the core. While its queue is full, the stream is read, so that the two never
    /// wait for each other.
    fn give(&mut self, orders: Vec<Order>, inputs: &mut mpsc::UnboundedReceiver<SchedulerInput>, runtime: &Handle) {
        let input = DriverInput::Core(Input::Orders {
            scheduler: ALGORITHM.to_owned(),
            orders,
        });
        let sender = self.orders.clone();
        runtime.block_on(async {
            loop {
                tokio::select! {
                    biased;
                    permit = sender.reserve() => {
                        match permit {
                            Ok(permit) => permit.send(input),
                            Err(_) => self.is_ending = true,
                        }
                        return;
                    }
                    next = inputs.recv() => match next {
                        Some(next) => self.take(next),
                        None => return self.is_ending = true,
                    },
                }
            }
        });
    }

    /// Sends the tickets of running tasks to the core every `reprioritize_interval`. If its queue
    /// is full, the next pass does it.
    fn reprioritize(&mut self, now: Instant) {
        let model = self.scheduler.model();
        let config = &model.state().config;
        if now < self.tickets_after || !tickets::is_on(config) {
            return;
        }
        let interval = Duration::from_secs(config.scheduler.reprioritize_interval.seconds().unwrap_or(0));
        if let Ok(permit) = self.orders.try_reserve() {
            permit.send(DriverInput::Core(Input::Tickets(model.running_tickets())));
            self.tickets_after = now + interval;
        }
    }

    /// Continues the priority numbers, if they are being computed: a few jobs at a time, so that
    /// jobs that fit start meanwhile.
    fn list(&mut self) {
        let Some((listing, spent)) = &mut self.listing else {
            return;
        };
        let (began, moment) = (Instant::now(), self.clock.now());
        let is_whole = self.scheduler.list(listing, LISTED, moment);
        if !is_whole {
            *spent += began.elapsed();
        }
        if let Some((listing, spent)) = self.listing.take_if(|_| is_whole) {
            self.update.priorities = Some(listing.finish());
            self.update.shares = Some(self.scheduler.model().share_nodes(moment));
            self.update.categories = Some(self.scheduler.model().listed_categories());
            self.priorities_after = Instant::now() + (spent + began.elapsed()) * PRIORITIES_SHARE;
        }
    }

    /// Sends the reader thread what it has room for. The rest is sent with the next pass.
    fn tell(&mut self) {
        // A full queue is behind by thousands of events, so a message would arrive late anyway.
        if let Ok(permit) = self.reader.try_reserve() {
            let (passes, reservations) = (self.update.passes, self.update.reservations.clone());
            let update = std::mem::take(&mut self.update);
            (self.update.passes, self.update.reservations) = (passes, reservations);
            permit.send(ReaderInput::Scheduling(Box::new(update)));
        }
    }
}

/// Whether an event may make something startable, or changes the order.
pub fn is_trigger(event: &Event) -> bool {
    match event {
        Event::JobSubmitted { .. }
        | Event::JobAltered { .. }
        | Event::HoldsChanged { .. }
        | Event::TaskEnded { .. }
        | Event::TaskConfirmedGone { .. }
        | Event::TasksDeleted { .. }
        | Event::TaskSuspended { .. }
        | Event::TaskThresholdSuspended { .. }
        | Event::TaskMigrationRequested { .. }
        | Event::TaskPreempted { .. }
        | Event::TaskRebooked { .. }
        | Event::ErrorCleared { .. }
        | Event::JobFinished { .. }
        | Event::InstanceChanged { .. }
        | Event::ObjectsChanged(_)
        | Event::ReservationChanged { .. }
        | Event::ReservationEnded { .. }
        | Event::UsageCleared { .. }
        | Event::WallJumped { .. } => true,
        Event::CellCreated { .. }
        | Event::CellVersionRaised { .. }
        | Event::EpochRaised { .. }
        | Event::TaskPlaced { .. }
        | Event::TaskStarted { .. }
        | Event::SlavePlaced { .. }
        | Event::SlaveStarted { .. }
        | Event::SlaveEnded { .. }
        | Event::UsageCharged { .. }
        | Event::TaskDeletionRequested { .. }
        | Event::TaskRescheduleRequested { .. }
        | Event::TaskUnconfirmed { .. }
        | Event::ReservationGranted { .. }
        | Event::CertificateIssued { .. }
        | Event::HostRevoked { .. }
        | Event::HostTasksBound { .. }
        | Event::TokenCreated(_)
        | Event::TokenRevoked { .. }
        | Event::TokenUsed { .. }
        | Event::NumbersContinued { .. }
        | Event::RequestAnswered { .. } => false,
    }
}
