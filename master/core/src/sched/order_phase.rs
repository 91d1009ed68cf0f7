//! The phase that says which pending job is next: by dispatch priority (SEMANTICS section 1).
//!
//! Jobs that differ only in their submission are in one bucket, oldest first, which is their order at any time. So a pass
//! compares buckets, of which there are few, and not jobs. The ticket policies are not here yet: all have equal tickets.

use super::categories::CategoryId;
use super::heads::{Head, Heads};
use crate::matching::{Demand, Request, Wanted};
use crate::state::State;
use crate::state::config::Configuration;
use crate::state::job::{Job, Place};
use proto::id::{PeName, SubmitSeq};
use proto::job::PeRequest;
use proto::pe::UrgencySlots;
use proto::time::{Now, Wall};
use proto::wire::view::PriorityNumbers;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Everything is computed in these parts of one.
const ONE: i128 = 1_000_000;
/// Finer parts, so that priorities that print alike still order jobs.
const FINE: i128 = 1_000_000;
/// Normalised tickets where nobody has any: a half for everybody.
const EQUAL_TICKETS: i128 = ONE / 2;
/// Milliseconds of a second.
const MS_IN_S: u64 = 1000;

/// Jobs whose order among each other is that of their submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bucket {
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

/// What the urgency of a job rests on, apart from when it was submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Urgency {
    /// The contribution of its requests, in millionths.
    pub resources: i128,
    /// `-dl`.
    pub deadline: Option<Wall>,
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
}

/// Where a job is filed.
#[derive(Clone, Copy, Debug)]
struct Filed {
    bucket: Bucket,
    rests: Rests,
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

/// The least and the largest urgency, in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    least: i128,
    largest: i128,
}

impl Queue {
    /// Files a job, anew if it was.
    pub fn file(&mut self, seq: SubmitSeq, bucket: Bucket, rests: Rests) {
        let filed = Filed { bucket, rests };
        if let Some(old) = self.filed.insert(seq, filed) {
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
        Some(filed.bucket)
    }

    /// Where a job is filed.
    pub fn bucket(&self, seq: SubmitSeq) -> Option<Bucket> {
        self.filed.get(&seq).map(|filed| filed.bucket)
    }

    fn uncount(&mut self, seq: SubmitSeq, Filed { bucket, rests }: Filed) {
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

    /// Brings the order of the buckets to what it is now.
    pub fn refresh(&mut self, state: &State, range: Option<Range>, now: Now) {
        let is_timed = self.timed > 0 || state.config.scheduler.weight_waiting_time.millionths() != 0;
        let Queue { buckets, heads, .. } = self;
        let head = |bucket: Bucket| {
            let seq = *buckets.get(&bucket)?.first()?;
            Some(Head { priority: priority(state, seq, &bucket, range?, now), seq: Reverse(seq), bucket })
        };
        heads.refresh(range, is_timed, buckets.keys().copied(), head);
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
        ends.fold(None, |range: Option<Range>, urgency| {
            let range = range.unwrap_or(Range { least: urgency, largest: urgency });
            Some(Range { least: range.least.min(urgency), largest: range.largest.max(urgency) })
        })
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

/// The parts of an urgency, in millionths.
#[derive(Clone, Copy, Debug)]
struct Parts {
    resources: i128,
    waiting: i128,
    deadline: i128,
}

impl Parts {
    fn sum(self) -> i128 {
        self.resources + self.waiting + self.deadline
    }
}

fn parts(state: &State, seq: SubmitSeq, urgency: Urgency, now: Now) -> Parts {
    let conf = &state.config.scheduler;
    let weight = i128::from(conf.weight_waiting_time.millionths());
    let submitted = || state.jobs.get(&seq).map_or(now.tick, |job| job.submitted_tick);
    // Without a weight nobody needs to know how long.
    let waited_s = if weight == 0 { 0 } else { i128::from(now.tick.since_ms(submitted()) / MS_IN_S) };
    Parts {
        resources: urgency.resources,
        waiting: weight * waited_s,
        deadline: deadline_part(i128::from(conf.weight_deadline.millionths()), urgency.deadline, now.wall),
    }
}

/// `weight / seconds left`, the whole weight once there are none.
fn deadline_part(weight: i128, deadline: Option<Wall>, now: Wall) -> i128 {
    let Some(deadline) = deadline else { return 0 };
    let left_s = i128::from(deadline.seconds() - now.seconds());
    if left_s <= 0 { weight } else { weight / left_s }
}

/// The dispatch priority of a job, fine enough to order jobs by.
pub fn priority(state: &State, seq: SubmitSeq, bucket: &Bucket, range: Range, now: Now) -> i128 {
    fine_priority(state, bucket.priority, normalised(parts(state, seq, bucket.urgency, now).sum(), range))
}

fn fine_priority(state: &State, posix: i32, urgency: i128) -> i128 {
    let conf = &state.config.scheduler;
    let weighted = |weight: proto::object::value::Weight, value: i128| i128::from(weight.millionths()) * value;
    weighted(conf.weight_priority, posix_part(posix) * FINE)
        + weighted(conf.weight_urgency, urgency)
        + weighted(conf.weight_ticket, EQUAL_TICKETS * FINE)
}

/// `-p` on its fixed scale, in millionths, rounded to nearest.
fn posix_part(priority: i32) -> i128 {
    ((i128::from(priority) + 1024) * ONE + 1024) / 2048
}

/// An urgency between 0 and 1 in fine parts; a half where all are equal.
fn normalised(urgency: i128, range: Range) -> i128 {
    let width = range.largest - range.least;
    if width == 0 { ONE * FINE / 2 } else { (urgency - range.least) * ONE * FINE / width }
}

/// The numbers that `qstat -ext`, `-urg` and `-pri` show for a job. Of one that is held or waits only `npprior` counts, of one in
/// error its tickets too.
pub fn numbers(state: &State, queue: &Queue, seq: SubmitSeq, range: Option<Range>, now: Now) -> PriorityNumbers {
    let Some(job) = state.jobs.get(&seq) else { return PriorityNumbers::default() };
    let npprior = shown(posix_part(job.spec.priority));
    let (Some(filed), Some(range)) = (queue.filed.get(&seq).filter(|filed| filed.rests != Rests::Apart), range) else {
        let ntckts = if is_in_error(job) { EQUAL_TICKETS } else { 0 };
        let prior = rounded(i128::from(state.config.scheduler.weight_ticket.millionths()) * ntckts, ONE);
        return PriorityNumbers { prior: shown(prior), npprior, ntckts: shown(ntckts), ..PriorityNumbers::default() };
    };
    let parts = parts(state, seq, filed.bucket.urgency, now);
    let urgency = normalised(parts.sum(), range);
    PriorityNumbers {
        prior: shown(rounded(fine_priority(state, job.spec.priority, urgency), ONE * FINE)),
        npprior,
        nurg: shown(rounded(urgency, FINE)),
        ntckts: shown(EQUAL_TICKETS),
        urg: shown(parts.sum()),
        rrcontr: shown(parts.resources),
        wtcontr: shown(parts.waiting),
        dlcontr: shown(parts.deadline),
        otckt: 0,
        ftckt: 0,
        stckt: 0,
    }
}

fn is_in_error(job: &Job) -> bool {
    job.tasks.values().any(|task| matches!(task.place, Place::Pending { error: Some(_) }))
}

fn shown(millionths: i128) -> i64 {
    i64::try_from(millionths).unwrap_or(if millionths > 0 { i64::MAX } else { i64::MIN })
}

/// The quotient of a number that is not negative, rounded to nearest.
fn rounded(number: i128, divisor: i128) -> i128 {
    (number + divisor / 2) / divisor
}

/// What the hard requests of a job contribute to its urgency, in millionths: the implicit slots too, defaults not.
pub fn resource_urgency(config: &Configuration, demand: &Demand) -> i128 {
    let slots = urgency_slots(config, demand.pe.as_ref());
    let asked = demand
        .hard
        .iter()
        .filter(|request| !request.implied || request.attribute.name.as_str() == crate::ledger::SLOTS);
    asked.map(|request| contribution(request, slots)).sum()
}

/// What one request contributes to the urgency of a job that counts with so many slots, in millionths.
pub fn contribution(request: &Request, slots: u32) -> i128 {
    let urgency = i128::from(request.attribute.urgency.0);
    match &request.wanted {
        Wanted::Text(_) => urgency,
        Wanted::Amount(amount) => {
            let units = i128::from(amount.finite().unwrap_or(i64::MAX));
            urgency * i128::from(slots) * units / i128::from(request.attribute.r#type.base_units_in_one())
        }
    }
}

/// The slots with which a job counts in its urgency.
pub fn urgency_slots(config: &Configuration, pe: Option<&PeRequest>) -> u32 {
    pe.map_or(1, |pe| assumed_slots(config, pe))
}

/// The slots that a parallel job is taken to have while it waits; the first environment that its name means decides.
fn assumed_slots(config: &Configuration, request: &PeRequest) -> u32 {
    let range = &request.slots;
    let pattern = proto::restring::Expression::parse(&request.name).ok();
    let matches = |name: &PeName| {
        pattern.as_ref().is_some_and(|pattern| pattern.matches(name.as_str(), proto::amount::Type::String))
    };
    let Some(pe) = config.pes.values().find(|pe| matches(&pe.name)) else { return range.least() };
    let most = range.largest().min(pe.slots).max(range.least());
    match pe.urgency_slots {
        UrgencySlots::Min => range.least(),
        UrgencySlots::Max => most,
        UrgencySlots::Avg => mean(range, most),
        UrgencySlots::Fixed(slots) => slots,
    }
}

/// The mean of the numbers of a range up to `most`, rounded down.
fn mean(range: &proto::request::SlotRange, most: u32) -> u32 {
    let (mut count, mut sum) = (0u64, 0u64);
    for part in range.parts().filter(|part| *part.start() <= most) {
        let (first, last) = (u64::from(*part.start()), u64::from(*part.end().min(&most)));
        count += last - first + 1;
        sum += (first + last) * (last - first + 1) / 2;
    }
    u32::try_from(sum.checked_div(count).unwrap_or(0)).unwrap_or(u32::MAX)
}
