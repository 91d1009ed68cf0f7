//! One pass: the phases for one task after the other, best job first, until nothing more can start.

pub(crate) mod immediate;
pub(crate) mod ready;
mod shortcut;

use super::model::Model;
use super::reserve::ReservationMode;
use crate::sched::filter::categories::CategoryId;
use crate::sched::order::heads::Head;
use crate::sched::order::queue::{Bucket, BucketId};
use crate::sched::order::urgency::Range;
use proto::id::SubmitSeq;
use proto::time::Now;
use proto::wire::stream::Order;
use ready::ReadyQueue;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// The result of one part of a pass.
#[derive(Clone, Debug, PartialEq)]
pub struct Slice {
    /// Orders for the core.
    pub orders: Vec<Order>,
    /// Whether the pass is over.
    pub finished: bool,
}

/// Steps that one reservation counts for: its search takes about that many times longer than a try.
const STEPS_TO_RESERVE: usize = 100;

/// A pass under way. It holds no part of the model, so the model follows the stream between two
/// slices.
#[derive(Clone, Debug)]
pub struct Pass {
    now: Now,
    /// The model's count of rebuilds when the pass began.
    rebuilds: u64,
    range: Option<Range>,
    /// The best head of the queue that had no turn yet. It may be stale, which is checked when its
    /// turn comes.
    next: Option<Head>,
    /// The next jobs of buckets that had a turn already.
    again: BinaryHeap<Head>,
    ready: ReadyQueue,
    /// Orders to suspend and resume tasks because of the load. They leave with the first slice.
    suspensions: Vec<Order>,
    /// Categories of which a job found no place: the other jobs of the category would find none
    /// either.
    failed: BTreeSet<CategoryId>,
    /// Categories for which no start time exists at all.
    hopeless: BTreeSet<CategoryId>,
    /// The job whose turn it is, and how many of its tasks have a reservation.
    reserved: (SubmitSeq, usize),
    /// The jobs of the last orders of the slice whose starts the model has not filed. Empty between
    /// two slices.
    unfiled: Vec<(BucketId, SubmitSeq)>,
}

impl Pass {
    /// Begins a pass over the jobs that are pending now.
    pub fn new(model: &mut Model, now: Now, reserving: ReservationMode) -> Pass {
        model.pass_time(now, reserving);
        let range = model.queue.range(&model.state, now);
        let suspensions = model.threshold_orders(now);
        model.refresh_queue(range, now);
        let (failed, hopeless, reserved) = (BTreeSet::new(), BTreeSet::new(), (SubmitSeq(0), 0));
        let next = model.queue.head_after(None);
        let (again, ready, unfiled) = (BinaryHeap::new(), ReadyQueue::default(), Vec::new());
        let rebuilds = model.rebuilds;
        Pass {
            now,
            rebuilds,
            range,
            next,
            again,
            ready,
            suspensions,
            failed,
            hopeless,
            reserved,
            unfiled,
        }
    }

    /// Tries about `budget` tasks.
    pub fn next(&mut self, model: &mut Model, budget: usize) -> Slice {
        let orders = std::mem::take(&mut self.suspensions);
        let mut slice = Slice {
            orders,
            finished: false,
        };
        // After a change of the configuration another pass is due at once, and it does the rest.
        if self.rebuilds != model.rebuilds {
            slice.finished = true;
            return slice;
        }
        let mut left = budget.max(1);
        while left > 0 {
            left -= 1;
            if model.owes_pricing() {
                self.file(model, &slice);
                model.refresh_queue(self.range, self.now);
                self.next = model.queue.head_after(None);
                self.again.clear();
            }
            // When nothing takes jobs any more, immediate jobs are still rejected, and some jobs
            // get a reservation.
            let is_full = model.is_full(self.now);
            let may_reserve = model.queue.is_reserving() && model.reservations_left() > 0;
            let is_over = is_full && !may_reserve && !model.queue.is_immediate();
            let Some(head) = self.next_head(model).filter(|_| !is_over) else {
                slice.finished = true;
                break;
            };
            let bucket = model.queue.at(head.bucket);
            if is_full && !(may_reserve && bucket.reserve || bucket.immediate) {
                continue;
            }
            if self.start_known(model, head, &mut slice) {
                continue;
            }
            self.file(model, &slice);
            let reserved = model.reservations().len();
            self.step(model, head, &mut slice);
            if model.reservations().len() > reserved {
                left = left.saturating_sub(STEPS_TO_RESERVE);
            }
        }
        self.file(model, &slice);
        slice
    }

    /// The first job of a bucket that was not started in this pass.
    fn first(&self, model: &Model, bucket: BucketId) -> Option<SubmitSeq> {
        match self.unfiled.iter().rfind(|(of, _)| *of == bucket) {
            Some((_, last)) => model.queue.after(bucket, *last),
            None => model.queue.first(bucket),
        }
    }

    /// Takes the best head that waits for a turn.
    fn next_head(&mut self, model: &Model) -> Option<Head> {
        if self
            .again
            .peek()
            .is_some_and(|again| self.next.is_none_or(|next| next < *again))
        {
            return self.again.pop();
        }
        let next = self.next?;
        self.next = model.queue.head_after(Some(&next));
        Some(next)
    }

    /// Tries the next task of the job at the head of a bucket.
    fn step(&mut self, model: &mut Model, head: Head, slice: &mut Slice) {
        let Head {
            seq: Reverse(seq),
            bucket,
            ..
        } = head;
        let Bucket {
            category, immediate, ..
        } = *model.queue.at(bucket);
        if self.failed.contains(&category) {
            return self.reserve(model, seq, bucket);
        }
        // The stream may have changed which job is first since the head was pushed.
        if model.queue.first(bucket) != Some(seq) {
            return self.push(model, bucket);
        }
        if model.is_owner_full(seq) {
            // While `maxujobs` is set, all jobs of a bucket have one owner.
            return self.reject_immediate(model, bucket, slice);
        }
        let Some(task) = self.ready.next(model, seq, self.now) else {
            // No task of the job is ready any more: a start time or a limit that no event reports.
            model.set_aside(seq, self.now);
            return self.push(model, bucket);
        };
        if immediate && model.starts_whole(seq) {
            self.ready.forget(seq);
            return self.start_whole(model, seq, bucket, slice);
        }
        // Slots that an earlier pass keeps for the task must not be in its own way.
        let kept = model.give_up_reservation(seq, task);
        match model.assign(category, self.now) {
            Some(assignment) => {
                model.plan(seq, task, &assignment, self.now);
                slice.orders.push(Order::Start {
                    seq,
                    task,
                    granted: assignment.granted,
                    pe: assignment.pe,
                });
                self.push(model, bucket);
            }
            None => {
                kept.into_iter().for_each(|kept| model.keep_again(seq, task, kept));
                self.fail(model, bucket, slice);
                self.reserve(model, seq, bucket);
            }
        }
    }

    /// Makes a reservation for the next task of a job that cannot start now, if the job asks for
    /// one (ALGORITHMS.md section 5.5).
    fn reserve(&mut self, model: &mut Model, seq: SubmitSeq, bucket: BucketId) {
        let Bucket { category, reserve, .. } = *model.queue.at(bucket);
        if !reserve || self.hopeless.contains(&category) {
            return;
        }
        // The stream may have moved the job to another bucket since its turn was noted.
        if model.queue.bucket(seq) != Some(bucket) {
            return self.push(model, bucket);
        }
        let known = if self.reserved.0 == seq { self.reserved.1 } else { 0 };
        let job = model.state.jobs.get(&seq).filter(|_| !model.is_owner_full(seq));
        let most = job.map_or(0, |job| model.room_in(job));
        let task = job
            .filter(|_| known < most)
            .and_then(|job| model.startable(job, self.now, known + 1).into_iter().nth(known));
        let next = match task {
            Some(task) if model.reservations().contains_key(&(seq, task)) => {
                self.reserved = (seq, known + 1);
                Some(seq)
            }
            Some(_) if model.reservations_left() == 0 => None,
            Some(task) if model.reserve(category, seq, task, self.now) => {
                self.reserved = (seq, known + 1);
                Some(seq)
            }
            Some(_) => {
                self.hopeless.insert(category);
                None
            }
            None => model.queue.after(bucket, seq),
        };
        self.again
            .extend(next.and_then(|seq| head(model, bucket, seq, self.range, self.now)));
    }

    /// Starts all tasks of an immediate array or none, in one step whatever the budget.
    fn start_whole(&mut self, model: &mut Model, seq: SubmitSeq, bucket: BucketId, slice: &mut Slice) {
        let mut orders = immediate::start_whole(model, seq, model.queue.at(bucket).category, self.now);
        if orders.is_empty() {
            return self.fail(model, bucket, slice);
        }
        slice.orders.append(&mut orders);
        self.push(model, bucket);
    }

    /// Notes that no job of the category starts in this pass.
    fn fail(&mut self, model: &mut Model, bucket: BucketId, slice: &mut Slice) {
        self.failed.insert(model.queue.at(bucket).category);
        self.reject_immediate(model, bucket, slice);
    }

    /// Rejects the immediate jobs of a category.
    fn reject_immediate(&mut self, model: &mut Model, bucket: BucketId, slice: &mut Slice) {
        slice
            .orders
            .append(&mut immediate::reject(model, model.queue.at(bucket).category));
    }

    /// Puts the first job of a bucket among the heads.
    fn push(&mut self, model: &Model, bucket: BucketId) {
        let first = self.first(model, bucket);
        self.again
            .extend(first.and_then(|seq| head(model, bucket, seq, self.range, self.now)));
    }
}

/// A job of a bucket with its priority. `None` if no job counts.
fn head(model: &Model, bucket: BucketId, seq: SubmitSeq, range: Option<Range>, now: Now) -> Option<Head> {
    Some(model.queue.head(&model.state, bucket, seq, range?, now))
}
