//! The use of resources over time: by tasks until they are expected to end, and by slots that are
//! kept for later (ALGORITHMS.md section 5).
//!
//! As time goes on, tasks only give back. So the largest use within a stretch of time is where the
//! stretch begins, or where a kept booking begins within it. For a host or queue instance it is
//! computed when somebody asks, since few tasks are there. For what the whole cluster shares it is
//! kept, ordered by the time at which it ends.

use crate::collections::by_host::ByHost;
use crate::ledger::keys::block_of;
use crate::ledger::quota::Scope;
use crate::ledger::sum;
use crate::ledger::{Booking, Entry, Ledger, Level, LevelRef, SLOTS, Total};
use proto::amount::Amount;
use proto::id::{AttributeName, HostName, PeName, QueueInstanceName, TaskKey};
use proto::time::Tick;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

/// The end of a stretch without end.
pub const NEVER: Tick = Tick(u64::MAX);

/// A stretch of time. It ends before `until`, so two that touch do not overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its first moment.
    pub from: Tick,
    /// The moment after its last; [`NEVER`] if it has no end.
    pub until: Tick,
}

impl Span {
    /// A stretch of so many milliseconds. `None` means without end.
    pub fn new(from: Tick, length_ms: Option<u64>) -> Span {
        Span {
            from,
            until: length_ms.map_or(NEVER, |length_ms| from.plus_ms(length_ms)),
        }
    }

    /// Whether both have a moment in common.
    pub fn overlaps(&self, other: &Span) -> bool {
        self.from < other.until && other.from < self.until
    }
}

/// Something that all hosts share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClusterResource {
    /// A consumable of the cluster.
    Global(AttributeName),
    /// The slots of a parallel environment.
    Pe(PeName),
    /// A quota.
    Quota(Scope, AttributeName),
}

/// Amounts that one task has of what all hosts share.
type Shares = Vec<(ClusterResource, Total)>;

/// A task that runs, or is about to.
#[derive(Clone, Debug)]
struct RunningTask {
    end: Tick,
    booking: Arc<Booking>,
    shares: Shares,
}

/// A kept booking.
#[derive(Clone, Debug, PartialEq)]
struct KeptBooking {
    span: Span,
    hosts: Vec<HostName>,
}

/// The use of one host by one task, now or later.
#[derive(Clone, Debug)]
pub struct HostUse {
    key: TaskKey,
    /// Only the end counts for a running task.
    span: Span,
    is_kept: bool,
    /// Its slots, if all of those on the host are in one queue instance. They are asked for most.
    slots: Option<(QueueInstanceName, Amount)>,
    takes: HostCharge,
}

impl HostUse {
    fn new(key: TaskKey, span: Span, is_kept: bool, takes: HostCharge) -> HostUse {
        let slots = takes.slots();
        HostUse {
            key,
            span,
            is_kept,
            slots,
            takes,
        }
    }
}

/// The amounts that a task takes of one host and of the queue instances there.
#[derive(Clone, Debug)]
enum HostCharge {
    /// Everything that it takes anywhere: it has one queue instance.
    All(Arc<Booking>),
    /// A part of what it takes. Searching all of it for each host would cost the square of its
    /// hosts.
    Part(Vec<Entry>),
}

impl HostCharge {
    /// The slots, and the queue instance, if there is only one.
    fn slots(&self) -> Option<(QueueInstanceName, Amount)> {
        match self {
            HostCharge::All(booking) => match booking.granted() {
                [only] => Some((
                    only.instance.clone(),
                    booking.amount(LevelRef::Instance(&only.instance), SLOTS),
                )),
                _ => None,
            },
            HostCharge::Part(entries) => {
                let of_slots = entries.iter().filter(|entry| entry.attribute == *SLOTS);
                let mut of_slots = of_slots.filter_map(|entry| match &entry.level {
                    Level::Instance(instance) => Some((instance.clone(), entry.amount)),
                    Level::Global | Level::Host(_) => None,
                });
                of_slots.next().filter(|_| of_slots.next().is_none())
            }
        }
    }

    fn amount<N: ?Sized>(&self, level: LevelRef<'_>, attribute: &N) -> Amount
    where
        AttributeName: PartialEq<N>,
    {
        match self {
            HostCharge::All(booking) => booking.amount(level, attribute),
            HostCharge::Part(entries) => {
                let is_it = |entry: &&Entry| entry.attribute == *attribute && LevelRef::from(&entry.level) == level;
                entries.iter().find(is_it).map_or(Amount::ZERO, |entry| entry.amount)
            }
        }
    }
}

/// The amount that tasks have of one thing, and when it ends.
#[derive(Clone, Debug, Default, PartialEq)]
struct EndingAmount {
    all: Total,
    at: BTreeMap<Tick, Total>,
}

/// The running tasks with their ends, and the kept bookings.
///
/// Invariants: `ends`, with the hosts of each task, and `ending` follow from `running`;
/// `kept_shares` and the bookings of `ledger` follow from `kept`; `hosts` holds both by host.
/// Everything is empty while nobody plans ahead.
///
/// [`Lookahead`](crate::sched::reserve::ahead::Lookahead) is the only owner: it reports tasks that
/// run or end, and keeps and gives up bookings.
#[derive(Clone, Debug, Default)]
pub struct TimeLine {
    is_on: bool,
    now: Tick,
    /// How long an overdue task is expected to continue.
    grace_ms: u64,
    running: BTreeMap<TaskKey, RunningTask>,
    ends: BTreeMap<(Tick, TaskKey), Vec<HostName>>,
    ending: BTreeMap<ClusterResource, EndingAmount>,
    hosts: ByHost<Vec<HostUse>>,
    kept: BTreeMap<TaskKey, KeptBooking>,
    kept_shares: BTreeMap<ClusterResource, BTreeMap<TaskKey, (Span, Total)>>,
    ledger: Ledger,
    generation: u64,
}

impl TimeLine {
    /// An empty time line at the same moment. If `is_on`, it is kept current from now on. Its
    /// generation is the next one, because kept bookings are given up.
    pub fn emptied(&self, is_on: bool) -> TimeLine {
        let (now, grace_ms, generation) = (self.now, self.grace_ms, self.generation + 1);
        TimeLine {
            is_on,
            now,
            grace_ms,
            generation,
            ..TimeLine::default()
        }
    }

    /// Whether anybody plans ahead.
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// How often kept bookings were given up.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Sets the time. Overdue tasks are expected to continue for `grace_ms`.
    pub fn pass_time(&mut self, now: Tick, grace_ms: u64) {
        (self.now, self.grace_ms) = (now, grace_ms);
    }

    /// Notes that a task runs until `end`, as far as is known.
    pub fn run(&mut self, key: TaskKey, end: Tick, booking: &Arc<Booking>, ledger: &Ledger) {
        if !self.is_on {
            return;
        }
        self.over(key);
        let shares = shares(key, booking, ledger);
        for (shared, amount) in &shares {
            let ending = match self.ending.get_mut(shared) {
                Some(ending) => ending,
                None => self.ending.entry(shared.clone()).or_default(),
            };
            ending.all.add_all(*amount);
            ending.at.entry(end).or_default().add_all(*amount);
        }
        let hosts = self.enter_hosts(
            key,
            Span {
                from: Tick(0),
                until: end,
            },
            booking,
            false,
        );
        self.ends.insert((end, key), hosts);
        self.running.insert(
            key,
            RunningTask {
                end,
                booking: booking.clone(),
                shares,
            },
        );
    }

    /// Whether a task is known to run until `end` with this booking.
    pub fn is_running(&self, key: TaskKey, end: Tick, booking: &Arc<Booking>) -> bool {
        let known = self.running.get(&key);
        known.is_some_and(|known| known.end == end && Arc::ptr_eq(&known.booking, booking))
    }

    /// Forgets tasks that do not run any more.
    pub fn retain(&mut self, runs: impl Fn(TaskKey) -> bool) {
        let over: Vec<TaskKey> = self.running.keys().copied().filter(|key| !runs(*key)).collect();
        over.into_iter().for_each(|key| self.over(key));
    }

    /// Whether two lines are equal, however they were made.
    pub fn is_like(&self, other: &TimeLine) -> bool {
        let tenants = |line: &TimeLine| {
            let of_host = line.hosts.iter().map(|(host, tenants)| {
                let keys: BTreeSet<(TaskKey, bool)> = tenants.iter().map(|one| (one.key, one.is_kept)).collect();
                (host.clone(), keys)
            });
            of_host.collect::<BTreeMap<_, _>>()
        };
        self.ends == other.ends
            && self.ending == other.ending
            && self.kept == other.kept
            && self.kept_shares == other.kept_shares
            && tenants(self) == tenants(other)
    }

    /// Notes the amounts of a booking at each of its hosts.
    fn enter_hosts(&mut self, key: TaskKey, span: Span, booking: &Arc<Booking>, is_kept: bool) -> Vec<HostName> {
        let tenant = |takes| HostUse::new(key, span, is_kept, takes);
        if let [part] = booking.granted() {
            let host = &part.instance.host;
            self.hosts
                .or_default(host)
                .push(tenant(HostCharge::All(booking.clone())));
            return vec![host.clone()];
        }
        let mut hosts: BTreeMap<HostName, Vec<Entry>> = BTreeMap::new();
        for part in booking.granted() {
            hosts.entry(part.instance.host.clone()).or_default();
        }
        for entry in booking.entries() {
            if let Some(entries) = LevelRef::from(&entry.level).host().and_then(|host| hosts.get_mut(host)) {
                entries.push(entry);
            }
        }
        let enter = |(host, entries)| {
            self.hosts.or_default(&host).push(tenant(HostCharge::Part(entries)));
            host
        };
        hosts.into_iter().map(enter).collect()
    }

    /// Forgets a running task or a kept booking on a host.
    fn leave_host(&mut self, key: TaskKey, host: &HostName, is_kept: bool) {
        let tasks = self.hosts.get_mut(host).expect("what a task has is noted at its hosts");
        tasks.retain(|task| task.key != key || task.is_kept != is_kept);
        if tasks.is_empty() {
            self.hosts.remove(host);
        }
    }

    /// Notes that a task has ended, or does not start after all.
    pub fn over(&mut self, key: TaskKey) {
        let Some(RunningTask { end, shares, .. }) = self.running.remove(&key) else {
            return;
        };
        let hosts = self.ends.remove(&(end, key)).expect("what runs has an end");
        hosts.iter().for_each(|host| self.leave_host(key, host, false));
        for (shared, amount) in shares {
            let ending = self.ending.get_mut(&shared).expect("what a task has is counted");
            ending.all.subtract_all(amount);
            let at = ending.at.get_mut(&end).expect("what a task has is counted");
            at.subtract_all(amount);
            if at.is_zero() {
                ending.at.remove(&end);
                if ending.at.is_empty() {
                    self.ending.remove(&shared);
                }
            }
        }
    }

    /// Keeps the booking that `book` makes under a key, for a stretch of time.
    pub fn keep(&mut self, key: TaskKey, span: Span, book: impl FnOnce(&mut Ledger)) {
        book(&mut self.ledger);
        let Some(booking) = self.ledger.booking(key).cloned() else {
            return;
        };
        for (shared, amount) in shares(key, &booking, &self.ledger) {
            self.kept_shares.entry(shared).or_default().insert(key, (span, amount));
        }
        let hosts = self.enter_hosts(key, span, &booking, true);
        self.kept.insert(key, KeptBooking { span, hosts });
    }

    /// Gives up all kept bookings except advance reservations.
    pub fn give_up(&mut self) {
        let given_up: Vec<TaskKey> = self
            .kept
            .keys()
            .copied()
            .filter(|key| block_of(*key).is_none())
            .collect();
        given_up.into_iter().for_each(|key| self.give_up_one(key));
    }

    /// Gives up all kept bookings, advance reservations too.
    pub fn give_up_all(&mut self) {
        let given_up: Vec<TaskKey> = self.kept.keys().copied().collect();
        given_up.into_iter().for_each(|key| self.give_up_one(key));
        self.generation += 1;
    }

    /// Gives up the booking that is kept under one key.
    pub fn give_up_one(&mut self, key: TaskKey) {
        let Some(KeptBooking { hosts, .. }) = self.kept.remove(&key) else {
            return;
        };
        let booking = self.ledger.booking(key).cloned().expect("what is kept is booked");
        self.generation += 1;
        for (shared, _) in shares(key, &booking, &self.ledger) {
            let kept = self.kept_shares.get_mut(&shared).expect("what is kept is noted");
            kept.remove(&key);
            if kept.is_empty() {
                self.kept_shares.remove(&shared);
            }
        }
        hosts.iter().for_each(|host| self.leave_host(key, host, true));
        self.ledger.release(key);
    }

    /// Whether something is kept without end.
    pub fn keeps_for_ever(&self) -> bool {
        self.kept.values().any(|kept| kept.span.until == NEVER)
    }

    /// Whether something is kept on a host.
    pub fn keeps_on(&self, host: &HostName) -> bool {
        !self.kept.is_empty()
            && self
                .hosts
                .get(host)
                .is_some_and(|tasks| tasks.iter().any(|task| task.is_kept))
    }

    /// The times after `after`, which is not before now, at which something is given back, in order
    /// and with the hosts concerned: by tasks that end, and by kept bookings that end.
    pub fn releases(&self, after: Tick) -> impl Iterator<Item = (Tick, &[HostName])> {
        let first_after = |at: Tick| (Tick(at.0.saturating_add(1)), Ledger::FIRST_KEY);
        let overdue = self.ends.range(..first_after(self.now));
        let overdue = overdue.map(|(_, hosts)| (self.now.plus_ms(self.grace_ms), hosts.as_slice()));
        let kept = self.kept.values().map(|kept| (kept.span.until, kept.hosts.as_slice()));
        let mut others: Vec<(Tick, &[HostName])> = overdue.chain(kept).filter(|(at, _)| *at > after).collect();
        others.sort_by_key(|(at, _)| *at);
        let ends = self
            .ends
            .range(first_after(after)..)
            .map(|((at, _), hosts)| (*at, hosts.as_slice()));
        let (mut ends, mut others) = (ends.peekable(), others.into_iter().peekable());
        let merged = std::iter::from_fn(move || match (ends.peek(), others.peek()) {
            (Some((end, _)), Some((other, _))) if other < end => others.next(),
            (Some(_), _) => ends.next(),
            (None, _) => others.next(),
        });
        merged.take_while(|(at, _)| *at < NEVER)
    }

    /// The first moment at or after `from` at which a kept booking begins on a host.
    pub fn next_kept(&self, host: &HostName, from: Tick) -> Option<Tick> {
        let kept = self.hosts.get(host).into_iter().flatten().filter(|task| task.is_kept);
        kept.map(|task| task.span.from).filter(|at| *at >= from).min()
    }

    /// The largest use of an attribute at a level within a stretch of time. `ledgers` hold the
    /// present use.
    pub fn booked<'a>(
        &self,
        ledgers: impl Iterator<Item = &'a Ledger> + Clone,
        level: LevelRef<'_>,
        attribute: &str,
        span: Span,
    ) -> Amount {
        if level == LevelRef::Global {
            return self.shared(
                || ClusterResource::Global(attribute.into()),
                || now_booked(ledgers.clone(), level, attribute),
                span,
            );
        }
        let tenants = level.host().map_or(&[][..], |host| self.tenants(host));
        self.booked_by(
            tenants,
            || now_booked(ledgers.clone(), level, attribute),
            level,
            attribute,
            span,
        )
    }

    /// The use of a host over time.
    pub fn tenants(&self, host: &HostName) -> &[HostUse] {
        self.hosts.get(host).map_or(&[], Vec::as_slice)
    }

    /// Does what [`TimeLine::booked`] does, for a host whose uses were looked up before
    /// ([`TimeLine::tenants`]), or a queue instance there. `now` returns the present use.
    pub fn booked_by<N: AsRef<str> + ?Sized>(
        &self,
        tenants: &[HostUse],
        now: impl FnOnce() -> Amount,
        level: LevelRef<'_>,
        attribute: &N,
        span: Span,
    ) -> Amount
    where
        AttributeName: PartialEq<N>,
    {
        let of_slots = if let LevelRef::Instance(instance) = level {
            Some(instance)
        } else {
            None
        };
        let of_slots = of_slots.filter(|_| attribute.as_ref() == SLOTS);
        let amount = |task: &HostUse| {
            Total::from_amount(match (of_slots, &task.slots) {
                (Some(instance), Some((only, slots))) if only == instance => *slots,
                (Some(_), Some(_)) => Amount::ZERO,
                _ => task.takes.amount(level, attribute),
            })
        };
        let kept = tenants.iter().filter(|task| task.is_kept && task.span.overlaps(&span));
        let kept: Vec<(Span, Total)> = kept.map(|task| (task.span, amount(task))).collect();
        if kept.is_empty() && span.from <= self.now {
            return now();
        }
        let running = tenants
            .iter()
            .filter(|task| !task.is_kept && self.still_runs(task, span.from));
        let mut running: Vec<(&HostUse, Total)> = running.map(|task| (task, amount(task))).collect();
        most(kept, span, |at| {
            running.retain(|(task, _)| self.still_runs(task, at));
            running
                .iter()
                .fold(Total::default(), |sum, (_, amount)| sum.and(*amount))
        })
    }

    /// The largest use of something that all hosts share, within a stretch of time. `now` returns
    /// the present use.
    pub fn shared(&self, name: impl Fn() -> ClusterResource, now: impl Fn() -> Amount, span: Span) -> Amount {
        if span.from <= self.now && self.kept.is_empty() {
            return now();
        }
        let name = name();
        let kept = self.kept_shares.get(&name).into_iter().flat_map(BTreeMap::values);
        let kept: Vec<(Span, Total)> = kept.filter(|(kept, _)| kept.overlaps(&span)).copied().collect();
        if span.from <= self.now && kept.is_empty() {
            return now();
        }
        let Some(ending) = self.ending.get(&name) else {
            return most(kept, span, |_| Total::default());
        };
        let (mut total, mut known) = (ending.all, self.now);
        most(kept, span, |at| {
            if at > known {
                self.ended(ending, known, at)
                    .for_each(|ended| total.subtract_all(*ended));
                known = at;
            }
            total
        })
    }

    /// The amounts of something that ending tasks give back after a time, which is not before now,
    /// until another time and with it. Overdue tasks continue for a while.
    fn ended<'e>(
        &self,
        ending: &'e EndingAmount,
        after: Tick,
        until: Tick,
    ) -> impl Iterator<Item = &'e Total> + use<'e> {
        let overdue_end = self.now.plus_ms(self.grace_ms);
        let overdue = (after < overdue_end && overdue_end <= until).then(|| ending.at.range(..=self.now));
        let others = ending.at.range((Bound::Excluded(after), Bound::Included(until)));
        overdue.into_iter().flatten().chain(others).map(|(_, ended)| ended)
    }

    /// Whether a task is expected to run at a time, as far as is known.
    fn still_runs(&self, task: &HostUse, at: Tick) -> bool {
        let end = task.span.until;
        if end <= self.now {
            self.now.plus_ms(self.grace_ms) > at
        } else {
            end > at
        }
    }
}

/// The amounts that a booking takes of what all hosts share.
fn shares(key: TaskKey, booking: &Booking, ledger: &Ledger) -> Shares {
    let global = booking.entries_at(LevelRef::Global).into_iter();
    let global = global.map(|entry| {
        (
            ClusterResource::Global(entry.attribute),
            Total::from_amount(entry.amount),
        )
    });
    let slots = Amount::from_base(i64::from(booking.slots_at(&Level::Global)));
    let pe = booking
        .pe()
        .map(|pe| (ClusterResource::Pe(pe.clone()), Total::from_amount(slots)));
    let quotas = ledger.quotas().of_task(key);
    let quotas = quotas.map(|(scope, name, amount)| (ClusterResource::Quota(scope.clone(), name.clone()), amount));
    global.chain(pe).chain(quotas).collect()
}

fn now_booked<'a>(ledgers: impl Iterator<Item = &'a Ledger>, level: LevelRef<'_>, attribute: &str) -> Amount {
    sum(ledgers.map(|ledger| ledger.booked(level, attribute)))
}

/// The largest sum within a stretch of time: of running tasks, which only gets less, and of kept
/// bookings, all of which have a moment in it. `running` is asked for rising times.
fn most(mut kept: Vec<(Span, Total)>, span: Span, mut running: impl FnMut(Tick) -> Total) -> Amount {
    let mut ends = kept.clone();
    kept.sort_unstable_by_key(|(kept, _)| kept.from);
    ends.sort_unstable_by_key(|(kept, _)| kept.until);
    let (mut begins, mut ends) = (kept.into_iter().peekable(), ends.into_iter().peekable());
    let (mut total, mut at) = (Total::default(), span.from);
    let mut most = Amount::ZERO;
    loop {
        while let Some((_, amount)) = begins.next_if(|(kept, _)| kept.from <= at) {
            total.add_all(amount);
        }
        while let Some((_, amount)) = ends.next_if(|(kept, _)| kept.until <= at) {
            total.subtract_all(amount);
        }
        most = most.max(running(at).and(total).amount());
        let Some((next, _)) = begins.peek() else { return most };
        at = next.from;
    }
}

/// A stretch of time for which slots are searched.
#[derive(Clone, Copy, Debug)]
pub struct Window<'a> {
    /// The time line.
    pub line: &'a TimeLine,
    /// The stretch.
    pub span: Span,
    /// The calendars that close their queue instances within it.
    pub closing: &'a BTreeSet<String>,
}

impl Window<'_> {
    /// Whether only the present use counts: the stretch begins now, and nothing is kept.
    pub fn is_now(&self) -> bool {
        self.span.from <= self.line.now && self.line.kept.is_empty()
    }

    /// Whether only the present use counts on the host of a queue instance.
    pub fn is_now_on(&self, instance: &QueueInstanceName) -> bool {
        self.span.from <= self.line.now && !self.keeps_on(instance)
    }

    /// Whether something is kept on the host of a queue instance.
    pub fn keeps_on(&self, instance: &QueueInstanceName) -> bool {
        self.line.keeps_on(&instance.host)
    }
}
