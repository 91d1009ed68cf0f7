//! The phase that says which pending job is next: by dispatch priority (SEMANTICS section 1).
//!
//! Jobs that differ only in their submission are in one bucket, oldest first, which is their order at any time: an older job never
//! has fewer tickets than a younger one of its class. So a pass compares buckets, of which there are few, and not jobs.

use super::categories::CategoryId;
use super::heads::{Head, Heads};
use super::urgency::{FINE, ONE, Range, Urgency, parts};
use crate::policy::class::Tasks;
use crate::policy::{Aims, ClassId, Classes, Known, Prices, Rules, Tickets, price};
use crate::state::State;
use proto::id::SubmitSeq;
use proto::object::value::Weight;
use proto::time::Now;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Jobs whose order among each other is that of their submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bucket {
    /// What the ticket policies know them as.
    pub class: ClassId,
    /// Their category.
    pub category: CategoryId,
    /// Their urgency, but for waiting.
    pub urgency: Urgency,
    /// `-p`.
    pub priority: i32,
    /// `-R y`.
    pub reserve: bool,
    /// `-now y`, or of an advance reservation: looked at where nothing else starts any more.
    pub immediate: bool,
}

/// The pending jobs that may be started, and the urgencies among which theirs are normalised.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    buckets: BTreeMap<Bucket, BTreeSet<SubmitSeq>>,
    /// Every job that counts: pending and eligible, or running.
    urgencies: BTreeMap<Urgency, BTreeSet<SubmitSeq>>,
    filed: BTreeMap<SubmitSeq, Filed>,
    heads: Heads,
    /// How many jobs in buckets ask for a reservation, and how many start at once or never.
    reserving: usize,
    immediate: usize,
    /// How many jobs that count have a deadline.
    timed: usize,
    /// What the ticket policies tell apart; jobs enter and leave with their bucket.
    pub classes: Classes,
    prices: Prices,
    /// Of how many tasks of an array they tell.
    priced_tasks: usize,
}

/// Where a job is filed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Filed {
    pub bucket: Bucket,
    pub rests: Rests,
    pub tasks: Tasks,
}

/// How a job counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rests {
    /// It waits to be started now.
    Pending,
    /// It runs: only its urgency counts, among which others are normalised.
    Running,
    /// It does not count at all: it is held, or its time has not come.
    Apart,
}

impl Queue {
    /// Files a job, anew if it was. `tasks` are those of it that tickets are for; none of one that rests apart.
    pub fn file(&mut self, seq: SubmitSeq, bucket: Bucket, rests: Rests, tasks: Tasks) {
        let old = self.filed.insert(seq, Filed { bucket, rests, tasks });
        self.classes.count(bucket.class, seq, old.map_or_else(Tasks::default, |old| old.tasks), tasks);
        if let Some(old) = old {
            if (old.bucket, old.rests) == (bucket, rests) {
                return;
            }
            self.uncount(seq, old);
        }
        if rests != Rests::Apart {
            self.timed += usize::from(bucket.urgency.deadline.is_some());
            self.urgencies.entry(bucket.urgency).or_default().insert(seq);
        }
        if rests == Rests::Pending {
            self.reserving += usize::from(bucket.reserve);
            self.immediate += usize::from(bucket.immediate);
            let jobs = self.buckets.entry(bucket).or_default();
            if jobs.first().is_none_or(|first| seq < *first) {
                self.heads.changed(bucket);
            }
            jobs.insert(seq);
        }
    }

    /// Takes a job out, and says where it was.
    pub fn take(&mut self, seq: SubmitSeq) -> Option<Bucket> {
        let filed = self.filed.remove(&seq)?;
        self.uncount(seq, filed);
        self.classes.count(filed.bucket.class, seq, filed.tasks, Tasks::default());
        self.classes.leave(filed.bucket.class);
        Some(filed.bucket)
    }

    /// Where a job is filed.
    pub fn bucket(&self, seq: SubmitSeq) -> Option<Bucket> {
        self.filed.get(&seq).map(|filed| filed.bucket)
    }

    /// How a job is filed.
    pub(super) fn filed(&self, seq: SubmitSeq) -> Option<Filed> {
        self.filed.get(&seq).copied()
    }

    fn uncount(&mut self, seq: SubmitSeq, Filed { bucket, rests, tasks: _ }: Filed) {
        if rests != Rests::Apart {
            self.timed -= usize::from(bucket.urgency.deadline.is_some());
            remove(&mut self.urgencies, &bucket.urgency, seq);
        }
        if rests == Rests::Pending {
            self.reserving -= usize::from(bucket.reserve);
            self.immediate -= usize::from(bucket.immediate);
            if self.first(&bucket) == Some(seq) {
                self.heads.changed(bucket);
            }
            remove(&mut self.buckets, &bucket, seq);
        }
    }

    /// Brings the tickets to what they are now. Of each array `most` tasks have some.
    pub fn price(&mut self, rules: &Rules, aims: Option<&Aims>, most: usize) {
        let known = Filing { filed: &self.filed, most };
        let prices = price(rules, &self.classes, aims, &known);
        if prices.largest != self.prices.largest {
            self.heads.all_changed();
        } else {
            let of = |prices: &Prices, at: usize| prices.classes.get(at).cloned().unwrap_or_default();
            let sizes = prices.classes.len().max(self.prices.classes.len());
            let others: BTreeSet<usize> = (0..sizes).filter(|at| of(&prices, *at) != of(&self.prices, *at)).collect();
            let changed = self.buckets.keys().filter(|bucket| others.contains(&bucket.class.index()));
            changed.for_each(|bucket| self.heads.changed(*bucket));
        }
        (self.prices, self.priced_tasks) = (prices, most);
    }

    /// Whether tickets were found for other numbers of tasks of an array.
    pub fn has_other_room(&self, most: usize) -> bool {
        most != self.priced_tasks
    }

    /// The tickets of all tasks, as they were found last.
    pub fn prices(&self) -> &Prices {
        &self.prices
    }

    /// The next task of a job is planned: the one after it is next to have tickets.
    pub fn planned(&mut self, seq: SubmitSeq) {
        if let Some(filed) = self.filed.get(&seq) {
            self.prices.take(filed.bucket.class, seq);
        }
    }

    /// Brings the order of the buckets to what it is now.
    pub fn refresh(&mut self, state: &State, range: Option<Range>, now: Now) {
        let is_timed = self.timed > 0 || state.config.scheduler.weight_waiting_time.millionths() != 0;
        let Queue { buckets, heads, prices, .. } = self;
        let head = |bucket: Bucket| {
            let seq = *buckets.get(&bucket)?.first()?;
            Some(Head { priority: priority(state, prices, seq, &bucket, range?, now), seq: Reverse(seq), bucket })
        };
        heads.refresh(range, is_timed, buckets.keys().copied(), head);
    }

    /// A job of a bucket with its priority.
    pub fn head(&self, state: &State, bucket: Bucket, seq: SubmitSeq, range: Range, now: Now) -> Head {
        Head { priority: priority(state, &self.prices, seq, &bucket, range, now), seq: Reverse(seq), bucket }
    }

    /// The first job of the first bucket, or of the next after one, as of the last [`Queue::refresh`].
    pub fn head_after(&self, last: Option<&Head>) -> Option<Head> {
        self.heads.after(last)
    }

    /// Whether any job that waits asks for a reservation.
    pub fn is_reserving(&self) -> bool {
        self.reserving > 0
    }

    /// Whether any job that waits starts at once or never.
    pub fn is_immediate(&self) -> bool {
        self.immediate > 0
    }

    /// The buckets that hold pending jobs, each with its first.
    pub fn buckets(&self) -> impl Iterator<Item = (Bucket, SubmitSeq)> {
        self.buckets.iter().filter_map(|(bucket, jobs)| Some((*bucket, *jobs.first()?)))
    }

    /// The first job of a bucket.
    pub fn first(&self, bucket: &Bucket) -> Option<SubmitSeq> {
        self.buckets.get(bucket)?.first().copied()
    }

    /// The jobs of a bucket, in order.
    pub fn jobs(&self, bucket: Bucket) -> impl Iterator<Item = SubmitSeq> + '_ {
        self.buckets.get(&bucket).into_iter().flatten().copied()
    }

    /// The job of a bucket after another.
    pub fn after(&self, bucket: &Bucket, seq: SubmitSeq) -> Option<SubmitSeq> {
        let later = (std::ops::Bound::Excluded(seq), std::ops::Bound::Unbounded);
        self.buckets.get(bucket)?.range(later).next().copied()
    }

    /// Among which urgencies one is normalised now; none if no job counts.
    pub fn range(&self, state: &State, now: Now) -> Option<Range> {
        // Within one urgency the oldest has waited longest: the ends are enough.
        let ends = self.urgencies.iter().flat_map(|(urgency, jobs)| {
            let ends = [jobs.first(), jobs.last()].into_iter().flatten();
            ends.map(|seq| parts(state, *seq, *urgency, now).sum())
        });
        ends.fold(None, |range, urgency| Some(Range::with(range, urgency)))
    }
}

/// What the pricing asks of jobs.
struct Filing<'a> {
    filed: &'a BTreeMap<SubmitSeq, Filed>,
    most: usize,
}

impl Known for Filing<'_> {
    fn waiting(&self, seq: SubmitSeq) -> (usize, u32) {
        let tasks = self.filed.get(&seq).map_or_else(Tasks::default, |filed| filed.tasks);
        (self.most.min(tasks.waiting as usize), tasks.slots)
    }
}

fn remove<K: Ord>(sets: &mut BTreeMap<K, BTreeSet<SubmitSeq>>, key: &K, seq: SubmitSeq) {
    if let Some(set) = sets.get_mut(key) {
        set.remove(&seq);
        if set.is_empty() {
            sets.remove(key);
        }
    }
}

/// The dispatch priority of a pending job, fine enough to order jobs by.
fn priority(state: &State, prices: &Prices, seq: SubmitSeq, bucket: &Bucket, range: Range, now: Now) -> i128 {
    let urgency = range.normalised(parts(state, seq, bucket.urgency, now).sum());
    let tickets = normalised_tickets(prices, prices.of_pending(bucket.class, seq));
    fine_priority(state, bucket.priority, urgency, tickets)
}

/// The sum of the three parts of a priority, with urgency and tickets in fine parts.
pub(super) fn fine_priority(state: &State, posix: i32, urgency: i128, tickets: i128) -> i128 {
    let conf = &state.config.scheduler;
    let weighted = |weight: Weight, value: i128| i128::from(weight.millionths()) * value;
    weighted(conf.weight_priority, posix_part(posix) * FINE)
        + weighted(conf.weight_urgency, urgency)
        + weighted(conf.weight_ticket, tickets)
}

/// `-p` on its fixed scale, in millionths, rounded to nearest.
pub(super) fn posix_part(priority: i32) -> i128 {
    ((i128::from(priority) + 1024) * ONE + 1024) / 2048
}

/// Tickets as a part of the most that any task has, in fine parts; a half for everybody where nobody has any.
pub(super) fn normalised_tickets(prices: &Prices, tickets: Tickets) -> i128 {
    if prices.largest <= 0.0 {
        return ONE * FINE / 2;
    }
    ((tickets.sum() / prices.largest) * (ONE * FINE) as f64) as i128
}
