//! The algorithm `fcfs`: first come, first served. It is small on purpose: the example for authors
//! of another one.
//!
//! The order: highest `-p`; with `user_sort=TRUE` in `params`, the user with the fewest running
//! tasks; earliest submission. A job that fits nowhere is passed over. Urgency, tickets and
//! reservations do not count here.
//!
//! An algorithm has to do this and nothing more: look at the [`Model`] for pending jobs, ask it for
//! slots ([`Model::assign`], with the matcher and the ledger behind it), report planned starts to
//! it, and return orders in slices. The reasons why other jobs wait are found without it, by the
//! same matcher.

use super::model::Model;
use super::reserve::ReservationMode;
use crate::sched::filter::categories::CategoryId;
use crate::sched::order::queue::BucketId;
use crate::sched::pass::ready::ReadyQueue;
use crate::sched::pass::{Slice, immediate};
use proto::id::SubmitSeq;
use proto::time::Now;
use proto::wire::stream::Order;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// A pass under way. It holds no part of the model, so the model follows the stream between two
/// slices.
#[derive(Clone, Debug)]
pub struct Fcfs {
    now: Now,
    /// The model's count of rebuilds when the pass began.
    rebuilds: u64,
    /// The first job of each bucket, the next one on top. An entry may be stale: it is checked when
    /// its turn comes.
    turns: BinaryHeap<FcfsKey>,
    ready: ReadyQueue,
    /// Orders for the first slice: suspend thresholds are judged whatever the algorithm.
    suspensions: Vec<Order>,
    /// Categories of which a job found no place: the other jobs of the category would find none
    /// either.
    failed: BTreeSet<CategoryId>,
}

/// The first job of a bucket, in the order in which jobs are served: the largest is next.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct FcfsKey {
    priority: i32,
    running: Reverse<u32>,
    seq: Reverse<SubmitSeq>,
    bucket: BucketId,
}

impl Fcfs {
    /// A pass over what is pending now.
    pub fn new(model: &mut Model, now: Now) -> Fcfs {
        model.pass_time(now, ReservationMode::Anew);
        let suspensions = model.threshold_orders(now);
        let turns = model.queue.buckets().filter_map(|(_, id)| turn(model, id)).collect();
        let (rebuilds, failed) = (model.rebuilds, BTreeSet::new());
        Fcfs {
            now,
            rebuilds,
            turns,
            ready: ReadyQueue::default(),
            suspensions,
            failed,
        }
    }

    /// Tries about `budget` tasks.
    pub fn next(&mut self, model: &mut Model, budget: usize) -> Slice {
        let mut orders = std::mem::take(&mut self.suspensions);
        // After a change of the configuration another pass is due at once, and it does the rest.
        if self.rebuilds != model.rebuilds {
            return Slice { orders, finished: true };
        }
        for _ in 0..budget.max(1) {
            if !self.turns.is_empty() && model.is_full(self.now) {
                // Only immediate jobs are still to be rejected, and jobs of advance reservations
                // have slots of their own.
                self.turns.retain(|FcfsKey { bucket, .. }| {
                    let category = model.queue.at(*bucket).category;
                    model.is_immediate(category) || model.is_within(category)
                });
            }
            let Some(next) = self.turns.pop() else {
                return Slice { orders, finished: true };
            };
            orders.extend(self.serve(model, next));
        }
        Slice {
            orders,
            finished: false,
        }
    }

    /// Starts the next task of a job, or passes its category over.
    fn serve(&mut self, model: &mut Model, next: FcfsKey) -> Vec<Order> {
        let (bucket, seq) = (next.bucket, next.seq.0);
        let category = model.queue.at(bucket).category;
        if self.failed.contains(&category) {
            return Vec::new();
        }
        let current = turn(model, bucket);
        if current.as_ref() != Some(&next) {
            // Since the head was pushed, the stream may have changed which job is first, or its
            // user has started more.
            self.turns.extend(current);
            return Vec::new();
        }
        let Some(task) = self.ready.next(model, seq, self.now) else {
            // No task of the job is ready any more: a start time or a limit that no event reports.
            model.set_aside(seq, self.now);
            self.turns.extend(turn(model, bucket));
            return Vec::new();
        };
        let orders = if model.is_owner_full(seq) {
            Vec::new()
        } else if model.starts_whole(seq) {
            self.ready.forget(seq);
            immediate::start_whole(model, seq, category, self.now)
        } else {
            let assignment = model.assign(category, self.now);
            assignment
                .map(|assignment| model.plan_start(seq, task, assignment, self.now))
                .into_iter()
                .collect()
        };
        if orders.is_empty() {
            self.failed.insert(category);
            return immediate::reject(model, category);
        }
        self.turns.extend(turn(model, bucket));
        orders
    }
}

/// The first job of a bucket with its place in the order. While users are sorted, all jobs of a
/// bucket are of one user.
fn turn(model: &Model, bucket: BucketId) -> Option<FcfsKey> {
    let seq = model.queue.first(bucket)?;
    let is_sorted = model.state.config.scheduler.user_sort();
    let running = if is_sorted { model.running_of_owner(seq) } else { 0 };
    Some(FcfsKey {
        priority: model.queue.at(bucket).priority,
        running: Reverse(running),
        seq: Reverse(seq),
        bucket,
    })
}
