//! Urgency: what the requests of a job, its waiting and its deadline contribute (ALGORITHMS.md
//! section 1.3).

use crate::config::Configuration;
use crate::matching::{Demand, Request, WantedValue};
use crate::state::State;
use proto::id::{PeName, SubmitSeq};
use proto::job::PeRequest;
use proto::pe::UrgencySlots;
use proto::request::RANGE_MAX;
use proto::time::{Now, Wall};

/// Everything is computed in these parts of one.
pub(crate) const ONE: i128 = 1_000_000;
/// Finer parts, so that priorities that print alike still order jobs.
pub(crate) const FINE: i128 = 1_000_000;
/// Milliseconds of a second.
const MS_IN_S: u64 = 1000;

/// What the urgency of a job rests on, apart from when it was submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Urgency {
    /// The contribution of its requests, in millionths.
    pub resources: i128,
    /// `-dl`.
    pub deadline: Option<Wall>,
}

/// The least and the largest urgency, in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    least: i128,
    largest: i128,
}

impl Range {
    /// With one more urgency.
    pub fn with(known: Option<Range>, urgency: i128) -> Range {
        let range = known.unwrap_or(Range {
            least: urgency,
            largest: urgency,
        });
        Range {
            least: range.least.min(urgency),
            largest: range.largest.max(urgency),
        }
    }

    /// An urgency between 0 and 1 in fine parts; a half where all are equal.
    pub fn normalised(self, urgency: i128) -> i128 {
        let width = self.largest - self.least;
        if width == 0 {
            ONE * FINE / 2
        } else {
            (urgency - self.least) * ONE * FINE / width
        }
    }
}

/// The parts of an urgency, in millionths.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts {
    pub resources: i128,
    pub waiting: i128,
    pub deadline: i128,
}

impl Parts {
    /// All together.
    pub fn sum(self) -> i128 {
        self.resources + self.waiting + self.deadline
    }
}

/// The parts of the urgency of a job now.
pub(crate) fn parts(state: &State, seq: SubmitSeq, urgency: Urgency, now: Now) -> Parts {
    let conf = &state.config.scheduler;
    let weight = i128::from(conf.weight_waiting_time.millionths());
    let submitted = || state.jobs.get(&seq).map_or(now.tick, |job| job.submitted_tick);
    // Without a weight nobody needs to know how long.
    let waited_s = if weight == 0 {
        0
    } else {
        i128::from(now.tick.since_ms(submitted()) / MS_IN_S)
    };
    Parts {
        resources: urgency.resources,
        waiting: weight * waited_s,
        deadline: deadline_part(
            i128::from(conf.weight_deadline.millionths()),
            urgency.deadline,
            now.wall,
        ),
    }
}

/// `weight / seconds left`, the whole weight once there are none.
fn deadline_part(weight: i128, deadline: Option<Wall>, now: Wall) -> i128 {
    let Some(deadline) = deadline else { return 0 };
    let left_s = i128::from(deadline.seconds() - now.seconds());
    if left_s <= 0 { weight } else { weight / left_s }
}

/// What the hard requests of a job contribute to its urgency, in millionths: the implicit slots
/// too, defaults not.
pub fn resource_urgency(config: &Configuration, demand: &Demand) -> i128 {
    let slots = urgency_slots(config, demand.pe.as_ref());
    let asked = demand
        .hard
        .iter()
        .filter(|request| !request.implied || request.attribute.name.as_str() == crate::ledger::SLOTS);
    let of_all: i128 = asked.map(|request| contribution(request, slots)).sum();
    let side = |request: &Option<Request>, slots: u32| {
        let asked = request.as_ref().filter(|request| !request.implied && slots > 0);
        asked.map_or(0, |request| contribution(request, slots))
    };
    let apart = demand.apart.iter();
    of_all
        + apart
            .map(|apart| side(&apart.master, 1) + side(&apart.slaves, slots.saturating_sub(1)))
            .sum::<i128>()
}

/// What one request contributes to the urgency of a job that counts with so many slots, in
/// millionths.
pub fn contribution(request: &Request, slots: u32) -> i128 {
    let urgency = i128::from(request.attribute.urgency.0);
    match &request.wanted {
        WantedValue::Text(_) => urgency,
        WantedValue::Amount(amount) => {
            let units = i128::from(amount.finite().unwrap_or(i64::MAX));
            urgency * i128::from(slots) * units / i128::from(request.attribute.r#type.base_units_in_one())
        }
    }
}

/// The slots with which a job counts in its urgency.
pub fn urgency_slots(config: &Configuration, pe: Option<&PeRequest>) -> u32 {
    pe.map_or(1, |pe| assumed_slots(config, pe))
}

/// The slots that a parallel job is taken to have while it waits: the number that it asks for; of a
/// range the first environment that its name means decides.
fn assumed_slots(config: &Configuration, request: &PeRequest) -> u32 {
    let range = &request.slots;
    if range.least() == range.largest() {
        return range.least();
    }
    let pattern = proto::restring::Expression::parse(&request.name).ok();
    let matches = |name: &PeName| {
        pattern
            .as_ref()
            .is_some_and(|pattern| pattern.matches(name.as_str(), proto::amount::Type::String))
    };
    let Some(pe) = config.pes.values().find(|pe| matches(&pe.name)) else {
        return range.least();
    };
    let most = range.largest().min(pe.slots).max(range.least());
    match pe.urgency_slots {
        UrgencySlots::Min => range.least(),
        // As in 8.1.9 the slots of the environment count for a range without an end alone.
        UrgencySlots::Max if range.largest() < RANGE_MAX => range.largest(),
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
