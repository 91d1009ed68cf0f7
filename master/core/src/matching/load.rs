//! Load values as the matcher counts them: scaled, adjusted for jobs that have just started, and
//! reduced by later bookings (ALGORITHMS.md section 6).

use super::{Cluster, LevelView, Share};
use crate::ledger::sum;
use crate::ledger::{CountRule, LevelBookings, LevelRef};
use crate::observe::LoadEntry;
use crate::reason::Value;
use proto::amount::{Amount, Millionths};
use proto::complex::{Attribute, Relop};
use proto::id::AttributeName;
use proto::time::Tick;

/// Hundredths in the adjustment of one slot that has just started.
const HUNDREDTHS: u64 = 100;

/// Whether a load value never changes while its host runs: it describes the host and not its use.
/// It stays known on an empty cluster, and nothing is ever subtracted from it.
pub fn is_static_load(name: &str) -> bool {
    matches!(
        name,
        "arch"
            | "hostname"
            | "m_core"
            | "m_socket"
            | "m_thread"
            | "m_topology"
            | "m_topology_numa"
            | "mem_total"
            | "num_proc"
            | "swap_total"
            | "virtual_total"
            | "display_win_gui"
    )
}

/// A load value at one level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Load {
    /// It is reported and counts.
    Known {
        /// The remaining value.
        value: Value,
        /// Whether it is scaled or adjusted. Subtracted bookings do not count here, because 8.1.9
        /// does not subtract any.
        corrected: bool,
    },
    /// It is reported, but its value does not count in this mode.
    Presumed,
}

impl Cluster<'_> {
    /// The load value of an attribute at a level. `None` if it is not reported, or is not a value
    /// of its type.
    pub fn load(&self, view: &LevelView<'_, '_>, attribute: &Attribute) -> Option<Load> {
        let entry = self.reported(view, &attribute.name)?;
        let is_static = is_static_load(attribute.name.as_str());
        if !self.mode.counts_load() && !is_static {
            return Some(Load::Presumed);
        }
        let in_use = self.topology_in_use(view, attribute);
        let reported = Value::read(attribute, in_use.as_deref().unwrap_or(&entry.text))?;
        let Value::Amount(amount) = reported else {
            return Some(Load::Known {
                value: reported,
                corrected: false,
            });
        };
        let scaled = self.scaled(view, attribute.name.as_str(), amount);
        let (expected, left) = if is_static {
            (scaled, scaled)
        } else {
            let expected = self.expected(view, attribute, scaled);
            (expected, self.less_booked(view, attribute, expected, entry))
        };
        Some(Load::Known {
            value: Value::Amount(left),
            corrected: expected != amount,
        })
    }

    /// `m_topology_inuse` of a host of which tasks have cores: the master gives the cores out, and
    /// the host does not know of them. `None` for all else, which is as reported.
    fn topology_in_use(&self, view: &LevelView<'_, '_>, attribute: &Attribute) -> Option<String> {
        let LevelRef::Host(host) = view.level else { return None };
        if attribute.name.as_str() != "m_topology_inuse" || !self.mode.counts_bookings() {
            return None;
        }
        let is_bound = match self.share {
            Share::InUse(state) => state.has_cores(host),
            Share::Open | Share::Within(_) => self.ledgers().any(|ledger| ledger.has_cores(host)),
        };
        let mut topology = is_bound.then(|| self.observations.topology(host))??;
        match self.share {
            Share::InUse(state) => state.mark_cores(host, &mut topology),
            Share::Open | Share::Within(_) => {
                self.ledgers().for_each(|ledger| ledger.mark_cores(host, &mut topology));
            }
        }
        Some(topology.to_string())
    }

    /// The load value as reported, whatever the mode. `None` for a host that is not heard.
    fn reported<'b>(&self, view: &LevelView<'b, '_>, name: &AttributeName) -> Option<&'b LoadEntry> {
        let entry = view.loads?.get(name)?;
        let reporter = match view.level {
            // Most hosts report their own values.
            LevelRef::Host(host) if *host == entry.reporter => view.contact,
            LevelRef::Host(_) | LevelRef::Global | LevelRef::Instance(_) => {
                self.observations.hosts.get(&entry.reporter)
            }
        };
        let unheard = reporter.is_some_and(|reporter| reporter.unheard);
        (!unheard).then_some(entry)
    }

    /// The value that is expected once jobs that have just started show in it.
    fn expected(&self, view: &LevelView<'_, '_>, attribute: &Attribute, scaled: Amount) -> Amount {
        let adjustment = self.adjustment(view, attribute);
        match attribute.relop {
            Relop::Greater | Relop::GreaterEqual => scaled.saturating_add(adjustment),
            Relop::Less | Relop::LessEqual | Relop::Equal | Relop::NotEqual | Relop::Exclusive => {
                less(scaled, adjustment)
            }
        }
    }

    /// The value without what was booked since it was sampled.
    fn less_booked(
        &self,
        view: &LevelView<'_, '_>,
        attribute: &Attribute,
        amount: Amount,
        entry: &LoadEntry,
    ) -> Amount {
        match is_subtracted(attribute) {
            true => less(amount, self.requested_since(view, attribute, entry)),
            false => amount,
        }
    }

    /// Whether bookings may change what a level offers of an attribute.
    pub fn follows_bookings(&self, view: &LevelView<'_, '_>, attribute: &Attribute) -> bool {
        let is_reported = || view.loads.is_some_and(|loads| loads.get(&attribute.name).is_some());
        attribute.consumable.is_consumable()
            || attribute.is_exclusive()
            || (is_subtracted(attribute) || self.is_adjusted(attribute)) && is_reported()
    }

    /// Whether jobs that have just started are expected to change the load value of an attribute.
    pub(super) fn is_adjusted(&self, attribute: &Attribute) -> bool {
        self.config
            .scheduler
            .job_load_adjustments
            .value(&attribute.name)
            .is_some()
    }

    fn scaled(&self, view: &LevelView<'_, '_>, name: &str, amount: Amount) -> Amount {
        let factor = view.host.map_or(Millionths::ONE, |host| host.load_scaling.factor(name));
        if factor == Millionths::ONE {
            amount
        } else {
            amount.scaled(factor)
        }
    }

    /// The bookings that the value does not show: those since it was sampled, those so shortly
    /// before that the jobs had not taken their share, and all planned ones.
    fn requested_since(&self, view: &LevelView<'_, '_>, attribute: &Attribute, entry: &LoadEntry) -> Amount {
        if view.books.iter().all(Option::is_none) {
            return Amount::ZERO;
        }
        let (name, counted) = (&attribute.name, self.counted(attribute));
        let [placed, planned] = view.books;
        let since = |book: Option<&LevelBookings>, since| {
            book.map_or(Amount::ZERO, |book| {
                book.requested_since(view.level, name, counted, since)
            })
        };
        sum([since(placed, self.settled(name, entry)), since(planned, Tick(0))].into_iter())
    }

    /// How a job's request for a load value counts at a level. Consumables are requested per slot
    /// in any case. A static value describes the host, which all slots of the job have as it is.
    pub(super) fn counted(&self, attribute: &Attribute) -> CountRule {
        let is_divided = || self.config.scheduler.load_per_slot() && !is_static_load(attribute.name.as_str());
        match attribute.consumable.is_consumable() || is_divided() {
            true => CountRule::EachSlot,
            false => CountRule::Once,
        }
    }

    /// Whether planned starts are subtracted from the load value of an attribute now.
    pub(super) fn is_subtracted_now(&self, view: &LevelView<'_, '_>, attribute: &Attribute) -> bool {
        is_subtracted(attribute) && view.loads.is_some_and(|loads| loads.get(&attribute.name).is_some())
    }

    /// The time from which on bookings are not in a value.
    fn settled(&self, name: &AttributeName, entry: &LoadEntry) -> Tick {
        Tick(
            entry
                .sampled
                .0
                .saturating_sub(self.config.scheduler.settle_ms(name.as_str())),
        )
    }

    /// The expected change of the value by jobs that have just started (`job_load_adjustments`).
    fn adjustment(&self, view: &LevelView<'_, '_>, attribute: &Attribute) -> Amount {
        let name = attribute.name.as_str();
        let per_slot = self.config.scheduler.job_load_adjustments.value(&attribute.name);
        let Some(per_slot) = per_slot.and_then(|text| Amount::parse(text, attribute.r#type).ok()) else {
            return Amount::ZERO;
        };
        let factor = i64::try_from(self.started_hundredths(view)).unwrap_or(i64::MAX);
        let millionths = factor.saturating_mul(Millionths::ONE.0 / HUNDREDTHS.cast_signed());
        per_slot.scaled(Millionths(millionths / shares(view, name)))
    }

    /// The expected change of a host's value by one slot that starts, in base units. `None` if
    /// nothing is set.
    pub(super) fn adjustment_of_one(&self, host: &LevelView<'_, '_>, attribute: &Attribute) -> Option<i64> {
        let name = attribute.name.as_str();
        let per_slot = self.config.scheduler.job_load_adjustments.value(&attribute.name)?;
        let per_slot = Amount::parse(per_slot, attribute.r#type).ok()?.finite()?;
        Some(per_slot / shares(host, name))
    }

    /// The slots that have just started at a level, in hundredths rounded down. A slot counts less
    /// as it gets older.
    ///
    /// At the level of the cluster each queue instance of a task counts once, whatever its slots.
    fn started_hundredths(&self, view: &LevelView<'_, '_>) -> u64 {
        let decay_ms = self
            .config
            .scheduler
            .load_adjustment_decay_time
            .seconds()
            .unwrap_or(0)
            .saturating_mul(1000);
        if decay_ms == 0 {
            return 0;
        }
        let since = Tick(self.now.0.saturating_sub(decay_ms));
        let mut weighted = 0u128;
        for (at, booking) in view.books.iter().flatten().flat_map(|book| book.since(since)) {
            let weight = match view.level {
                LevelRef::Global => booking.granted().len() as u128,
                LevelRef::Host(_) | LevelRef::Instance(_) => u128::from(booking.slots_at(view.level)),
            };
            weighted += weight * u128::from(decay_ms.saturating_sub(self.now.since_ms(at)));
        }
        u64::try_from(weighted * u128::from(HUNDREDTHS) / u128::from(decay_ms)).unwrap_or(u64::MAX)
    }
}

/// Whether bookings are subtracted from the load value of an attribute until it shows them.
fn is_subtracted(attribute: &Attribute) -> bool {
    match attribute.relop {
        Relop::Less | Relop::LessEqual => !is_static_load(attribute.name.as_str()),
        Relop::Greater | Relop::GreaterEqual | Relop::Equal | Relop::NotEqual | Relop::Exclusive => false,
    }
}

/// The divisor of an adjustment: the host's processors if the value is per processor, else one.
fn shares(host: &LevelView<'_, '_>, name: &str) -> i64 {
    let entry = host
        .loads
        .filter(|_| name.starts_with("np_"))
        .and_then(|values| values.named("num_proc"));
    let processors = entry.and_then(|entry| entry.text.trim().parse::<i64>().ok());
    processors.unwrap_or(1).max(1)
}

/// The difference, not below the least number.
fn less(amount: Amount, other: Amount) -> Amount {
    amount.checked_sub(other).unwrap_or(Amount::from_base(i64::MIN))
}
