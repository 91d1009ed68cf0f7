//! A scheduler that is not to be trusted: its orders are stale, doubled, greedy or forbidden. The
//! core refuses each that is wrong, singly; [`Rules`](super::rules::Rules) judge what it lets
//! through.

use super::agenda::Happening;
use super::world::World;
use proto::id::{PeName, QueueInstanceName, SubmitSeq, TaskId, TaskKey};
use proto::job::GrantedSlots;
use proto::wire::stream::Order;
use std::collections::VecDeque;

/// Its name as a scheduler.
pub(super) const RIVAL: &str = "rival";

/// How many orders of the real scheduler are remembered, to be repeated.
const OVERHEARD: usize = 24;

/// What it has overheard.
#[derive(Debug, Default)]
pub(super) struct Rival {
    orders: VecDeque<Order>,
}

impl Rival {
    pub(super) fn overhear(&mut self, orders: &[Order]) {
        self.orders.extend(orders.iter().cloned());
        while self.orders.len() > OVERHEARD {
            self.orders.pop_front();
        }
    }
}

/// A start that an honest scheduler might order.
#[derive(Clone, Debug)]
struct Start {
    seq: SubmitSeq,
    task: TaskId,
    granted: Vec<GrantedSlots>,
    pe: Option<PeName>,
}

impl From<Start> for Order {
    fn from(Start { seq, task, granted, pe }: Start) -> Order {
        Order::Start { seq, task, granted, pe }
    }
}

impl World {
    /// Orders that nobody should give.
    pub(super) fn rival_orders(&mut self) {
        self.plan_meddling(Happening::RivalOrders);
        if self.healed {
            return;
        }
        let orders = self.draw_orders();
        self.counts.rival_orders += orders.len() as u64;
        self.trace(|| format!("rival orders {orders:?}"));
        let life = self.master_life;
        self.soon(
            1,
            Happening::OrdersArrive {
                life,
                scheduler: RIVAL,
                orders,
            },
        );
    }

    fn draw_orders(&mut self) -> Vec<Order> {
        let Some(start) = self.draw_task().and_then(|(seq, task)| self.draw_start_of(seq, task)) else {
            return Vec::new();
        };
        match self.random.below(8) {
            0 => {
                let overheard: Vec<Order> = self.rival.orders.iter().cloned().collect();
                self.random.pick(&overheard).into_iter().collect()
            }
            1 => vec![Order::RejectImmediate { seq: start.seq }],
            2 => vec![self.draw_suspension(&start)],
            3 => vec![start.clone().into(), start.into()],
            4 | 5 => self.flood(&start.granted),
            _ => vec![self.distorted(start).into()],
        }
    }

    /// A task of a job that is there, whether it may start or not.
    fn draw_task(&mut self) -> Option<(SubmitSeq, TaskId)> {
        let jobs: Vec<SubmitSeq> = self.state().jobs.keys().copied().collect();
        let seq = self.random.pick(&jobs)?;
        let tasks: Vec<TaskId> = self.state().jobs[&seq].present().iter().collect();
        Some((seq, self.random.pick(&tasks)?))
    }

    /// As the job asks for it, on any queue instance at all.
    fn draw_start_of(&mut self, seq: SubmitSeq, task: TaskId) -> Option<Start> {
        let instances: Vec<QueueInstanceName> = self.state().config.resolved.keys().cloned().collect();
        let instance = self.random.pick(&instances)?;
        let pe = self.state().jobs[&seq].spec.requests.pe.clone();
        let slots = pe.as_ref().map_or(1, |_| 2);
        Some(Start {
            seq,
            task,
            granted: vec![GrantedSlots { instance, slots }],
            pe: pe.map(|pe| pe.name.as_str().into()),
        })
    }

    /// The same with something wrong, or nothing.
    fn distorted(&mut self, mut start: Start) -> Start {
        let first = start.granted[0].clone();
        let elsewhere = |queue: &str, host: &str| QueueInstanceName {
            queue: queue.into(),
            host: host.into(),
        };
        match self.random.below(14) {
            0 => start.granted[0].slots = 0,
            1 => start.granted.clear(),
            2 => start.granted.push(first),
            3 => start.granted[0].slots += self.random.between(1, 9) as u32,
            4 => start.granted[0].instance = elsewhere("no.q", first.instance.host.as_str()),
            5 => start.granted[0].instance = elsewhere("all.q", "nowhere"),
            6 => start.pe = Some("smp".into()),
            7 => start.pe = None,
            8 => start.pe = Some("none".into()),
            9 => start.seq = SubmitSeq(start.seq.0 + 1_000),
            10 => start.task = TaskId(start.task.0 + 9),
            11 => start.granted = self.everywhere(),
            _ => {}
        }
        start
    }

    /// A slot of each queue instance.
    fn everywhere(&self) -> Vec<GrantedSlots> {
        let resolved = self.state().config.resolved.keys();
        resolved
            .map(|instance| GrantedSlots {
                instance: instance.clone(),
                slots: 1,
            })
            .collect()
    }

    /// Everything that waits, at one place at once.
    fn flood(&self, granted: &[GrantedSlots]) -> Vec<Order> {
        let jobs = self.state().jobs.values();
        let tasks = jobs.flat_map(|job| job.present().iter().map(|task| (job, task)).collect::<Vec<_>>());
        tasks
            .map(|(job, task)| {
                let pe = job.spec.requests.pe.as_ref().map(|pe| PeName::from(pe.name.as_str()));
                let slots = pe.as_ref().map_or(1, |_| 2);
                let instance = granted[0].instance.clone();
                Start {
                    seq: job.seq,
                    task,
                    granted: vec![GrantedSlots { instance, slots }],
                    pe,
                }
                .into()
            })
            .collect()
    }

    /// A threshold that concerns an attempt which is over, or has not begun.
    fn draw_suspension(&mut self, start: &Start) -> Order {
        let state = &self.state();
        let attempts = state.jobs[&start.seq]
            .tasks
            .get(&start.task)
            .map_or(0, |task| task.attempts);
        let attempt = if self.random.chance(500) {
            attempts + 7
        } else {
            attempts.saturating_sub(1)
        };
        let key = TaskKey {
            cell: self.state().cell,
            seq: start.seq,
            task: start.task,
            pe_task: 0,
            attempt,
        };
        Order::SuspendByThreshold { key, suspended: true }
    }
}
