//! What tasks take over time, as lines of the file `schedule` (sge_schedule(5)) and as `qsched`
//! shows it.
//!
//! Only what has a capacity is told: where nothing limits, nothing is planned.

use crate::config::Configuration;
use crate::ledger::timeline::NEVER;
use crate::ledger::{Booking, Grant, LevelRef, SLOTS};
use crate::sched::duration;
use crate::sched::model::Model;
use crate::sched::reserve::ahead::grace_ms;
use crate::state::State;
use crate::state::job::Job;
use proto::amount::{Amount, Type};
use proto::id::{JobNumber, SubmitSeq, TaskId};
use proto::object::value::Assignments;
use proto::time::{Now, Tick, Wall};
use proto::wire::stream::Order;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Bytes of the lines of one entry of the file; tasks beyond that are left out.
const ENTRY_BYTES_MAX: usize = 32 << 20;

/// What has no end is told to end here, in seconds of the epoch.
const NEVER_S: i64 = 0xffff_ffff;

/// The line with which an entry begins.
const BEGIN: &str = "::::::::\n";

/// What a task takes of one thing that has a capacity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleUse {
    /// `P` of a parallel environment, `G` of the cluster, `H` of a host, `Q` of a queue instance.
    pub level: char,
    /// The name of that.
    pub object: String,
    /// The attribute.
    pub resource: String,
    /// How much, for all slots of the task there.
    pub amount: Amount,
    /// In which the amount is counted.
    pub r#type: Type,
}

/// What a booking takes: of its parallel environment, of the cluster, and of each of its hosts and
/// queue instances, the master's first.
pub fn uses(config: &Configuration, booking: &Booking) -> Vec<ScheduleUse> {
    let slots_at = |at: LevelRef<'_>| Amount::from_base(i64::from(booking.slots_at(at)));
    let slots = |level, object: String, at| ScheduleUse {
        level,
        object,
        resource: SLOTS.to_owned(),
        amount: slots_at(at),
        r#type: Type::Int,
    };
    let of = |level, object: &str, at: LevelRef<'_>, capacities: &Assignments| -> Vec<ScheduleUse> {
        let attributes = capacities
            .0
            .iter()
            .filter_map(|(name, _)| config.complex.lookup(name.as_str()));
        let consumables = attributes.filter(|attribute| attribute.consumable.is_consumable());
        let uses = consumables.map(|attribute| ScheduleUse {
            level,
            object: object.to_owned(),
            resource: attribute.name.to_string(),
            amount: booking.amount(at, attribute.name.as_str()),
            r#type: attribute.r#type,
        });
        uses.filter(|one| one.amount != Amount::ZERO).collect()
    };
    let pe = booking.pe().map(|pe| slots('P', pe.to_string(), LevelRef::Global));
    let mut uses: Vec<ScheduleUse> = pe.into_iter().collect();
    uses.extend(
        config
            .exec_hosts
            .get("global")
            .into_iter()
            .flat_map(|global| of('G', "global", LevelRef::Global, &global.complex_values)),
    );
    let mut hosts = BTreeSet::new();
    for instance in booking.granted().iter().map(|part| &part.instance) {
        if let Some(host) = config
            .exec_hosts
            .get(&instance.host)
            .filter(|_| hosts.insert(&instance.host))
        {
            uses.extend(of(
                'H',
                instance.host.as_str(),
                LevelRef::Host(&instance.host),
                &host.complex_values,
            ));
        }
        let (name, at) = (instance.to_string(), LevelRef::Instance(instance));
        if let Some(settings) = config.resolved.get(instance) {
            uses.extend(of('Q', &name, at, &settings.complex_values));
        }
        uses.push(slots('Q', name, at));
    }
    uses
}

/// When it will be, or was, so late on the clock that never jumps, unless the wall clock does.
pub fn wall(now: Now, at: Tick) -> Wall {
    let ahead_ms = i64::try_from(at.since_ms(now.tick)).unwrap_or(i64::MAX);
    let ago_ms = i64::try_from(now.tick.since_ms(at)).unwrap_or(i64::MAX);
    Wall(now.wall.0.saturating_add(ahead_ms).saturating_sub(ago_ms))
}

/// One entry of the file in the making: everything that takes something, with what was started
/// since the entry before.
#[derive(Clone, Debug, Default)]
pub struct ScheduleEntry {
    starting: String,
    started: BTreeSet<(SubmitSeq, TaskId)>,
}

impl ScheduleEntry {
    /// Notes what a slice of a pass starts, as soon as it is planned.
    pub fn start(&mut self, model: &Model, orders: &[Order], now: Now) {
        if !model.plans_ahead() {
            return;
        }
        for order in orders {
            let Order::Start { seq, task, .. } = order else {
                continue;
            };
            let (Some(job), Some(booking)) = (model.state().jobs.get(seq), model.planned(*seq, *task)) else {
                continue;
            };
            // What has no room here is told as running in the next entry.
            if self.starting.len() < ENTRY_BYTES_MAX && self.started.insert((*seq, *task)) {
                let start_s = wall(now, booking.at()).seconds();
                let length_s = length_s(&model.state().config, booking, start_s, now);
                write(
                    &mut self.starting,
                    (job.number, *task),
                    "STARTING",
                    (start_s, length_s),
                    &uses_of(&model.state().config, job, booking),
                );
            }
        }
    }

    /// The entry. Nothing but its first line while nobody plans ahead, as in 8.1.9. The next one
    /// begins empty.
    pub fn finish(&mut self, model: &Model, now: Now) -> String {
        let ScheduleEntry { starting, started } = std::mem::take(self);
        let mut text = BEGIN.to_owned();
        if !model.plans_ahead() {
            return text;
        }
        let config = &model.state().config;
        let mut suspended = String::new();
        running(model.state(), &started, now, &mut text, &mut suspended);
        text.push_str(&suspended);
        text.push_str(&starting);
        let mut reservations: Vec<_> = model.reservations().iter().collect();
        reservations.sort_by_key(|((seq, task), reservation)| (reservation.at, *seq, *task));
        for ((seq, task), reservation) in reservations {
            let Some(job) = model.state().jobs.get(seq).filter(|_| text.len() < ENTRY_BYTES_MAX) else {
                continue;
            };
            let start_s = wall(now, reservation.at).seconds();
            let length_s = reservation
                .length_ms
                .map_or(NEVER_S - start_s, |length_ms| (length_ms / 1000).cast_signed());
            let grant = Grant::of_slots(&reservation.granted, reservation.pe.as_ref());
            let uses = uses(config, &model.state().booking(&job.spec, grant, reservation.at));
            write(&mut text, (job.number, *task), "RESERVING", (start_s, length_s), &uses);
        }
        text
    }
}

/// What tasks have that were not started since the entry before, by job; those that are suspended
/// apart.
fn running(
    state: &State,
    started: &BTreeSet<(SubmitSeq, TaskId)>,
    now: Now,
    text: &mut String,
    suspended: &mut String,
) {
    let ledgers = || std::iter::once(&state.ledger).chain(state.reservations.values().map(|advance| &advance.ledger));
    let bookings = ledgers().flat_map(|ledger| ledger.keys().filter_map(|key| Some((key, ledger.booking(key)?))));
    let mut bookings: Vec<_> = bookings
        .filter(|(key, _)| !started.contains(&(key.seq, key.task)))
        .collect();
    bookings.sort_by_key(|(key, _)| *key);
    for (key, booking) in bookings {
        // What an advance reservation holds belongs to no job.
        let Some((job, _, placement)) = state.placed(key) else {
            continue;
        };
        if text.len() + suspended.len() >= ENTRY_BYTES_MAX {
            return;
        }
        let is_suspended = placement.suspended || placement.suspended_by_threshold || placement.preempted;
        let (out, word) = if is_suspended {
            (&mut *suspended, "SUSPENDED")
        } else {
            (&mut *text, "RUNNING")
        };
        let start_s = placement.placed.seconds();
        let length_s = length_s(&state.config, booking, start_s, now);
        write(
            out,
            (job.number, key.task),
            word,
            (start_s, length_s),
            &uses_of(&state.config, job, booking),
        );
    }
}

/// What a task takes. Within an advance reservation only what is left of its queue instances
/// counts.
fn uses_of(config: &Configuration, job: &Job, booking: &Booking) -> Vec<ScheduleUse> {
    let mut uses = uses(config, booking);
    uses.retain(|one| job.spec.reservation.is_none() || one.level == 'Q');
    uses
}

/// How long a task is expected to hold what it has, in seconds.
fn length_s(config: &Configuration, booking: &Booking, start_s: i64, now: Now) -> i64 {
    let end = duration::end(config, booking);
    if end == NEVER {
        return NEVER_S - start_s;
    }
    let end = if end <= now.tick {
        now.tick.plus_ms(grace_ms(config))
    } else {
        end
    };
    (end.since_ms(booking.at()) / 1000).cast_signed()
}

fn write(
    out: &mut String,
    (job, task): (JobNumber, TaskId),
    word: &str,
    (start_s, length_s): (i64, i64),
    uses: &[ScheduleUse],
) {
    for ScheduleUse {
        level,
        object,
        resource,
        amount,
        r#type,
    } in uses
    {
        let amount = amount.decimal_text(*r#type);
        // A string takes everything.
        let _ = writeln!(
            out,
            "{job}:{task}:{word}:{start_s}:{length_s}:{level}:{object}:{resource}:{amount}"
        );
    }
}
