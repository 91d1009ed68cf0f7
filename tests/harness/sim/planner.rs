//! The scheduler's thread beside the core, as `master/src/scheduler.rs` does it: the stream is
//! taken between slices, orders go into the core's queue behind what came meanwhile.

use super::agenda::Happening;
use super::apart::{ThreadedValue, Worker};
use super::promises::Promises;
use super::world::World;
use master_core::effect::Input;
use master_core::event::{Event, Record};
use master_core::observe::Observation;
use master_core::sched::{ReservationMode, Scheduler, Slice};
use master_core::state::State;
use proto::time::{Now, Zone};
use proto::wire::stream::Order;
use std::sync::Arc;

/// The longest time between two passes.
const INTERVAL_MS: u64 = 15_000;

/// What the scheduler is told.
#[derive(Debug)]
pub(super) enum News {
    Record(Arc<Record>),
    Observation(Observation),
    Refusal(Box<Order>),
}

/// The scheduler, which keeps up with the news.
#[derive(Debug)]
pub(super) struct Mind {
    scheduler: Scheduler,
    is_wanted: bool,
    is_planning: bool,
    /// Whether the pass that is under way makes reservations anew.
    is_anew: bool,
    /// Whether news came between its slices.
    had_news: bool,
    promises: Promises,
}

/// When the scheduler acts.
#[derive(Debug)]
pub(super) struct Planner {
    mind: ThreadedValue<Mind>,
    planned: u64,
    next: Option<u64>,
    tickets_after: u64,
    /// When the next pass may begin.
    not_before: u64,
    /// Before that passes keep the reservations that there are.
    reserve_after: u64,
}

impl Planner {
    pub(super) fn new(state: State, is_apart: bool) -> Self {
        let mind = Mind {
            scheduler: Scheduler::new(state, Zone::utc()),
            is_wanted: true,
            is_planning: false,
            is_anew: true,
            had_news: false,
            promises: Promises::default(),
        };
        let mind = ThreadedValue::new(mind, is_apart);
        Self {
            mind,
            planned: 0,
            next: None,
            tickets_after: 0,
            not_before: 0,
            reserve_after: 0,
        }
    }

    /// Hears everything at once from now on.
    pub(super) fn stay_home(&mut self) {
        self.mind.stay_home();
    }

    pub(super) fn tell(&mut self, news: News) {
        self.mind.tell(news);
    }

    /// The scheduler's own idea of what is true, once it has heard everything.
    pub(super) fn state(&mut self) -> &State {
        self.mind.home().scheduler.model().state()
    }
}

impl Worker for Mind {
    type Word = News;

    const BUNDLE: usize = 64;

    fn obey(&mut self, news: News) {
        self.had_news |= self.is_planning;
        match news {
            News::Record(record) => {
                self.is_wanted |= is_trigger(&record.event);
                self.scheduler.apply(&record);
            }
            News::Observation(observation) => {
                self.is_wanted |= !matches!(observation, Observation::Usage(_) | Observation::Sensors { .. });
                self.scheduler.observe(&observation);
            }
            News::Refusal(order) => {
                self.is_wanted = true;
                self.scheduler.refused(&order);
            }
        }
    }
}

impl Mind {
    /// A slice of a pass, if one is under way or wanted.
    fn step(&mut self, now: Now, budget: usize, reserving: ReservationMode) -> Option<Slice> {
        if !self.is_planning && !std::mem::take(&mut self.is_wanted) {
            return None;
        }
        if !std::mem::replace(&mut self.is_planning, true) {
            self.scheduler.begin(now, reserving);
            (self.is_anew, self.had_news) = (reserving == ReservationMode::Anew, false);
        }
        let slice = self.scheduler.next(budget);
        self.is_planning = !slice.finished;
        Some(slice)
    }
}

fn is_trigger(event: &Event) -> bool {
    !matches!(
        event,
        Event::TaskPlaced { .. }
            | Event::TaskStarted { .. }
            | Event::UsageCharged { .. }
            | Event::TaskDeletionRequested { .. }
            | Event::TaskRescheduleRequested { .. }
            | Event::RequestAnswered { .. }
    )
}

impl World {
    /// The scheduler looks at its inbox soon.
    pub(super) fn plan_pass(&mut self, wait: u64) {
        let at = self.time + self.random.between(0, wait);
        let life = self.master_life;
        let Some(master) = &mut self.master else { return };
        let at = at.max(master.planner.not_before);
        if master.planner.next.is_some_and(|next| next <= at) {
            return;
        }
        master.planner.next = Some(at);
        master.planner.planned += 1;
        let planned = master.planner.planned;
        self.agenda.plan(at, Happening::SchedulerSteps { life, planned });
    }

    pub(super) fn orders_arrive(&mut self, life: u64, scheduler: &str, orders: Vec<Order>) {
        if life == self.master_life {
            self.input(Input::Orders {
                scheduler: scheduler.to_owned(),
                orders,
            });
        }
    }

    pub(super) fn scheduler_steps(&mut self, life: u64, planned: u64) {
        let budget = self.random.between(1, 30) as usize;
        let Some(now) = self.master.as_ref().map(|master| self.master_now(master)) else {
            return;
        };
        let Some(master) = self.master.as_mut().filter(|_| life == self.master_life) else {
            return;
        };
        if master.planner.planned != planned {
            return;
        }
        master.planner.next = None;
        let reserving = if self.time < master.planner.reserve_after {
            ReservationMode::Keep
        } else {
            ReservationMode::Anew
        };
        let mind = master.planner.mind.home();
        match mind.step(now, budget, reserving) {
            Some(slice) => {
                if slice.finished && mind.is_anew {
                    if self.plan.calm && !mind.had_news {
                        mind.promises.read(mind.scheduler.model(), now);
                        self.counts.promises = mind.promises.judged();
                    }
                    master.planner.reserve_after = self.time + self.plan.pace.reserve_ms;
                }
                if slice.finished {
                    master.planner.not_before = self.time + self.plan.pace.pass_ms;
                }
                if !slice.orders.is_empty() {
                    self.trace(|| format!("scheduler orders {:?}", slice.orders));
                    // What came in between makes some of them stale.
                    let wait = self.random.between(0, 20);
                    self.rival.overhear(&slice.orders);
                    self.soon(
                        wait,
                        Happening::OrdersArrive {
                            life,
                            scheduler: "default",
                            orders: slice.orders,
                        },
                    );
                }
                self.plan_pass(10);
            }
            None => {
                let at = self.time + INTERVAL_MS;
                mind.is_wanted = true;
                master.planner.next = Some(at);
                master.planner.planned += 1;
                let planned = master.planner.planned;
                self.agenda.plan(at, Happening::SchedulerSteps { life, planned });
                if self.time >= master.planner.tickets_after {
                    master.planner.tickets_after = self.time + self.plan.pace.tickets_ms;
                    let tickets = master.planner.mind.home().scheduler.model().running_tickets();
                    self.input(Input::Tickets(tickets));
                }
            }
        }
    }
}
