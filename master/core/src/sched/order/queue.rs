//! The phase that says which pending job is next: by dispatch priority (ALGORITHMS.md section 1).
//!
//! Jobs that differ only in their submission are in one bucket, oldest first, which is their order
//! at any time: an older job never has fewer tickets than a younger one of its class. So a pass
//! compares buckets, of which there are few, and not jobs.

use crate::collections::paged::PagedMap;
use crate::policy::class::ClassTasks;
use crate::policy::{ClassId, Classes, Prices, TaskCounts, TicketRules, Tickets, TreeTargets, price};
use crate::sched::filter::categories::CategoryId;
use crate::sched::order::heads::{Head, Heads};
use crate::sched::order::open_urgencies::{EndJobs, OpenUrgencies};
use crate::sched::order::urgency::{FINE, ONE, Range, Urgency, parts};
use crate::state::State;
use proto::id::{SubmitSeq, UserName};
use proto::object::value::Weight;
use proto::time::Now;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Jobs whose order among each other is that of their submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bucket {
    /// Their class: the ticket policies do not tell jobs of one class apart.
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

/// The number of a bucket. That of a bucket without jobs is given out again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BucketId(u32);

impl BucketId {
    /// Its place in tables.
    pub fn index(self) -> usize {
        self.0 as usize
    }

    #[cfg(test)]
    pub(crate) fn of_test(number: u32) -> BucketId {
        BucketId(number)
    }
}

/// A bucket with its jobs.
#[derive(Clone, Debug)]
struct BucketJobs {
    bucket: Bucket,
    pending: Jobs,
    /// How many jobs are filed here, whether they are pending or not.
    filed: usize,
    /// Whose jobs they are, while `maxujobs` limits what each user runs.
    owner: Option<UserName>,
    /// Whether the owner runs as many tasks as that allows: as in 8.1.9 the jobs have no tickets
    /// and no priority then, and their urgency is among those by which others are normalised.
    is_shut: bool,
}

/// Jobs, in the order of their submission.
type Jobs = PagedMap<SubmitSeq, ()>;

/// The pending jobs that may be started, and the urgencies among which theirs are normalised.
///
/// Invariants: `by_bucket` leads to every entry of `buckets` whose number is not in `free`; `filed`
/// holds the bucket of each job.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    buckets: Vec<BucketJobs>,
    by_bucket: BTreeMap<Bucket, BucketId>,
    free: Vec<BucketId>,
    /// The pending jobs that are eligible, also those whose owner may start no more.
    open_urgencies: OpenUrgencies,
    /// Every job that runs, also one of which other tasks are pending.
    running_urgencies: BTreeMap<Urgency, Jobs>,
    /// Users who run as many tasks as `maxujobs` allows.
    full_owners: BTreeSet<UserName>,
    /// The buckets of each user, while `maxujobs` limits what each runs.
    by_owner: BTreeMap<UserName, BTreeSet<BucketId>>,
    filed: PagedMap<SubmitSeq, FiledJob>,
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

/// The priority of jobs of a user who may start nothing more. All others are at least 0.
const LAST: i128 = -1;

/// Where a job is filed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FiledJob {
    pub bucket: BucketId,
    pub rests: JobStanding,
    pub tasks: ClassTasks,
}

/// How a job counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobStanding {
    /// It waits to be started now.
    Pending,
    /// It runs: only its urgency counts, among which others are normalised.
    Running,
    /// It does not count at all: it is held, or its time has not come.
    Apart,
}

impl BucketJobs {
    /// The oldest and the youngest of its pending jobs. `None` if no job of it is pending.
    fn open_ends(&self) -> Option<EndJobs> {
        let ((oldest, ()), (youngest, ())) = (self.pending.first()?, self.pending.last()?);
        Some(EndJobs {
            oldest: *oldest,
            youngest: *youngest,
        })
    }
}

impl Queue {
    /// The number of a bucket, for a job that is filed there next. `owner` is whose jobs the bucket
    /// has, if they are of one.
    pub fn number(&mut self, bucket: Bucket, owner: Option<&UserName>) -> BucketId {
        if let Some(id) = self.by_bucket.get(&bucket) {
            return *id;
        }
        let is_shut = owner.is_some_and(|owner| self.full_owners.contains(owner));
        self.classes.shut(bucket.class, is_shut);
        let bucket_jobs = BucketJobs {
            bucket,
            pending: Jobs::new(),
            filed: 0,
            owner: owner.cloned(),
            is_shut,
        };
        let id = self
            .free
            .pop()
            .unwrap_or(BucketId(u32::try_from(self.buckets.len()).unwrap_or(u32::MAX)));
        match self.buckets.get_mut(id.index()) {
            Some(known) => *known = bucket_jobs,
            None => self.buckets.push(bucket_jobs),
        }
        self.by_bucket.insert(bucket, id);
        if let Some(owner) = owner {
            self.by_owner.entry(owner.clone()).or_default().insert(id);
        }
        id
    }

    /// Files a job in a bucket, and takes it out of the one where it was filed before. `tasks` are
    /// the tasks of the job that tickets are for: none for a job that is [`JobStanding::Apart`].
    pub fn file(&mut self, seq: SubmitSeq, id: BucketId, rests: JobStanding, tasks: ClassTasks) {
        let old = self.filed.insert(
            seq,
            FiledJob {
                bucket: id,
                rests,
                tasks,
            },
        );
        let bucket = *self.at(id);
        self.classes.count(
            bucket.class,
            seq,
            old.map_or_else(ClassTasks::default, |old| old.tasks),
            tasks,
        );
        let before = old.filter(|old| old.bucket == id);
        if before.is_none() {
            self.buckets[id.index()].filed += 1;
        }
        self.count(
            seq,
            id,
            before.map_or(Presence::NONE, Presence::of_filed),
            Presence {
                rests,
                runs: tasks.running > 0,
            },
        );
        if let Some(old) = old.filter(|old| old.bucket != id) {
            self.leave(seq, old);
        }
    }

    /// A user runs as many tasks as `maxujobs` allows, or no longer.
    pub(crate) fn set_full(&mut self, owner: &UserName, is_full: bool) {
        let was_full = if is_full {
            !self.full_owners.insert(owner.clone())
        } else {
            self.full_owners.remove(owner)
        };
        if was_full == is_full {
            return;
        }
        let Queue {
            by_owner,
            buckets,
            heads,
            classes,
            ..
        } = self;
        for id in by_owner.get(owner).into_iter().flatten() {
            let bucket_jobs = &mut buckets[id.index()];
            bucket_jobs.is_shut = is_full;
            heads.changed(*id);
            classes.shut(bucket_jobs.bucket.class, is_full);
        }
    }

    /// Whether the jobs of a bucket are those of a user who runs as many tasks as `maxujobs`
    /// allows.
    pub(crate) fn is_shut(&self, id: BucketId) -> bool {
        self.buckets[id.index()].is_shut
    }

    /// Takes a job out, and says where it was.
    pub fn take(&mut self, seq: SubmitSeq) -> Option<Bucket> {
        let filed = self.filed.remove(&seq)?;
        let bucket = *self.at(filed.bucket);
        self.leave(seq, filed);
        self.classes
            .count(bucket.class, seq, filed.tasks, ClassTasks::default());
        self.classes.leave(bucket.class);
        Some(bucket)
    }

    /// Where a job is filed.
    pub fn bucket(&self, seq: SubmitSeq) -> Option<BucketId> {
        self.filed.get(&seq).map(|filed| filed.bucket)
    }

    /// What the jobs of a bucket have in common.
    pub fn at(&self, id: BucketId) -> &Bucket {
        &self.buckets[id.index()].bucket
    }

    /// How a job is filed.
    pub(crate) fn filed(&self, seq: SubmitSeq) -> Option<FiledJob> {
        self.filed.get(&seq).copied()
    }

    /// A job leaves its bucket.
    fn leave(&mut self, seq: SubmitSeq, filed: FiledJob) {
        let id = filed.bucket;
        self.count(seq, id, Presence::of_filed(filed), Presence::NONE);
        let bucket_jobs = &mut self.buckets[id.index()];
        bucket_jobs.filed -= 1;
        if bucket_jobs.filed > 0 {
            return;
        }
        let bucket = bucket_jobs.bucket;
        if let Some(owner) = bucket_jobs.owner.take()
            && let Some(buckets) = self.by_owner.get_mut(&owner)
        {
            buckets.remove(&id);
            if buckets.is_empty() {
                self.by_owner.remove(&owner);
            }
        }
        self.by_bucket.remove(&bucket);
        self.free.push(id);
    }

    /// A job of a bucket counts otherwise than before.
    fn count(&mut self, seq: SubmitSeq, id: BucketId, before: Presence, now: Presence) {
        let bucket = *self.at(id);
        let counts = |standing: Presence| usize::from(standing.rests != JobStanding::Apart);
        if counts(before) != counts(now) && bucket.urgency.deadline.is_some() {
            self.timed = self.timed - counts(before) + counts(now);
        }
        count_urgency(
            &mut self.running_urgencies,
            bucket.urgency,
            seq,
            before.is_running(),
            now.is_running(),
        );
        let waits = |standing: Presence| usize::from(standing.is_pending());
        if waits(before) == waits(now) {
            return;
        }
        if bucket.reserve {
            self.reserving = self.reserving - waits(before) + waits(now);
        }
        if bucket.immediate {
            self.immediate = self.immediate - waits(before) + waits(now);
        }
        if self.first(id).is_none_or(|first| seq <= first) {
            self.heads.changed(id);
        }
        let bucket_jobs = &mut self.buckets[id.index()];
        let ends = bucket_jobs.open_ends();
        _ = if waits(now) == 1 {
            bucket_jobs.pending.insert(seq, ())
        } else {
            bucket_jobs.pending.remove(&seq)
        };
        self.open_urgencies
            .change(bucket.urgency, id, ends, bucket_jobs.open_ends());
    }

    /// Brings the tickets to what they are now. Of each array `most` tasks have some.
    pub fn price(&mut self, rules: &TicketRules, aims: Option<&TreeTargets>, most: usize) {
        let known = FiledTaskCounts {
            filed: &self.filed,
            most,
        };
        let prices = price(rules, &self.classes, aims, &known);
        if prices.largest != self.prices.largest {
            self.heads.all_changed();
        } else {
            let of = |prices: &Prices, at: usize| prices.classes.get(at).cloned().unwrap_or_default();
            let sizes = prices.classes.len().max(self.prices.classes.len());
            let others: BTreeSet<usize> = (0..sizes)
                .filter(|at| of(&prices, *at) != of(&self.prices, *at))
                .collect();
            let changed = self
                .by_bucket
                .iter()
                .filter(|(bucket, _)| others.contains(&bucket.class.index()));
            changed.for_each(|(_, id)| self.heads.changed(*id));
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

    /// The next task of a job of a bucket is planned: the one after it is next to have tickets.
    pub fn planned(&mut self, id: BucketId, seq: SubmitSeq) {
        self.prices.take(self.at(id).class, seq);
    }

    /// Brings the order of the buckets to what it is now.
    pub fn refresh(&mut self, state: &State, range: Option<Range>, now: Now) {
        let is_timed = self.timed > 0 || state.config.scheduler.weight_waiting_time.millionths() != 0;
        let Queue {
            buckets,
            by_bucket,
            heads,
            prices,
            ..
        } = self;
        let head = |id: BucketId| {
            let bucket_jobs = &buckets[id.index()];
            let (seq, ()) = bucket_jobs.pending.first()?;
            Some(Head {
                priority: priority(state, prices, *seq, bucket_jobs, range?, now),
                seq: Reverse(*seq),
                bucket: id,
            })
        };
        heads.refresh(range, is_timed, by_bucket.values().copied(), head);
    }

    /// A job of a bucket with its priority.
    pub fn head(&self, state: &State, id: BucketId, seq: SubmitSeq, range: Range, now: Now) -> Head {
        let priority = priority(state, &self.prices, seq, &self.buckets[id.index()], range, now);
        Head {
            priority,
            seq: Reverse(seq),
            bucket: id,
        }
    }

    /// The first job of the first bucket, or of the next after one, as of the last
    /// [`Queue::refresh`].
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

    /// The buckets.
    pub fn buckets(&self) -> impl Iterator<Item = (&Bucket, BucketId)> {
        self.by_bucket.iter().map(|(bucket, id)| (bucket, *id))
    }

    /// The first pending job of a bucket.
    pub fn first(&self, id: BucketId) -> Option<SubmitSeq> {
        self.buckets[id.index()].pending.first().map(|(seq, ())| *seq)
    }

    /// The pending jobs of a bucket, in order.
    pub fn jobs(&self, id: BucketId) -> impl Iterator<Item = SubmitSeq> + '_ {
        self.buckets[id.index()].pending.keys().copied()
    }

    /// The pending job of a bucket after another.
    pub fn after(&self, id: BucketId, seq: SubmitSeq) -> Option<SubmitSeq> {
        self.buckets[id.index()].pending.after(&seq).map(|(seq, ())| *seq)
    }

    /// The least and the largest urgency of the jobs that count now, between which urgencies are
    /// normalised. `None` if no job counts.
    pub fn range(&self, state: &State, now: Now) -> Option<Range> {
        // Jobs under one `Urgency` differ only in how long they have waited, so the oldest and the
        // youngest of them are enough.
        let running = self.running_urgencies.iter().flat_map(|(urgency, jobs)| {
            let ends = [jobs.first(), jobs.last()];
            ends.into_iter().flatten().map(|(seq, ())| (*urgency, *seq))
        });
        let ends = running.chain(self.open_urgencies.ends());
        let urgencies = ends.map(|(urgency, seq)| parts(state, seq, urgency, now).sum());
        urgencies.fold(None, |range, urgency| Some(Range::with(range, urgency)))
    }
}

/// What the pricing asks of jobs.
struct FiledTaskCounts<'a> {
    filed: &'a PagedMap<SubmitSeq, FiledJob>,
    most: usize,
}

impl TaskCounts for FiledTaskCounts<'_> {
    fn waiting(&self, seq: SubmitSeq) -> (usize, u32) {
        let tasks = self
            .filed
            .get(&seq)
            .map_or_else(ClassTasks::default, |filed| filed.tasks);
        (self.most.min(tasks.waiting as usize), tasks.slots)
    }
}

/// How a job counts for the urgencies among which others are normalised.
#[derive(Clone, Copy, Debug)]
struct Presence {
    rests: JobStanding,
    /// Whether tasks of it run.
    runs: bool,
}

impl Presence {
    /// It does not count.
    const NONE: Presence = Presence {
        rests: JobStanding::Apart,
        runs: false,
    };

    fn of_filed(filed: FiledJob) -> Presence {
        Presence {
            rests: filed.rests,
            runs: filed.tasks.running > 0,
        }
    }

    fn is_pending(self) -> bool {
        self.rests == JobStanding::Pending
    }

    fn is_running(self) -> bool {
        self.rests == JobStanding::Running || (self.is_pending() && self.runs)
    }
}

/// Adds a job to those of an urgency, or removes it. `before` says whether it was among them, `now`
/// whether it is to be.
fn count_urgency(urgencies: &mut BTreeMap<Urgency, Jobs>, urgency: Urgency, seq: SubmitSeq, before: bool, now: bool) {
    if before == now {
        return;
    }
    let jobs = urgencies.entry(urgency).or_default();
    if now {
        jobs.insert(seq, ());
        return;
    }
    jobs.remove(&seq);
    if jobs.is_empty() {
        urgencies.remove(&urgency);
    }
}

/// The dispatch priority of a pending job, fine enough to order jobs by. Jobs of a user who may
/// start nothing more come last.
fn priority(state: &State, prices: &Prices, seq: SubmitSeq, bucket_jobs: &BucketJobs, range: Range, now: Now) -> i128 {
    let BucketJobs { bucket, is_shut, .. } = bucket_jobs;
    if *is_shut {
        return LAST;
    }
    let urgency = range.normalised(parts(state, seq, bucket.urgency, now).sum());
    let tickets = normalised_tickets(prices, prices.of_pending(bucket.class, seq));
    fine_priority(state, bucket.priority, urgency, tickets)
}

/// The sum of the three parts of a priority, with urgency and tickets in fine parts.
pub(crate) fn fine_priority(state: &State, posix: i32, urgency: i128, tickets: i128) -> i128 {
    let conf = &state.config.scheduler;
    let weighted = |weight: Weight, value: i128| i128::from(weight.millionths()) * value;
    weighted(conf.weight_priority, posix_part(posix) * FINE)
        + weighted(conf.weight_urgency, urgency)
        + weighted(conf.weight_ticket, tickets)
}

/// `-p` on its fixed scale, in millionths, rounded to nearest.
pub(crate) fn posix_part(priority: i32) -> i128 {
    ((i128::from(priority) + 1024) * ONE + 1024) / 2048
}

/// Tickets as a part of the most that any task has, in fine parts; a half for everybody where
/// nobody has any.
pub(crate) fn normalised_tickets(prices: &Prices, tickets: Tickets) -> i128 {
    if prices.largest <= 0.0 {
        return ONE * FINE / 2;
    }
    ((tickets.sum() / prices.largest) * (ONE * FINE) as f64) as i128
}
