//! Whether a queue instance takes jobs at all at the moment, whoever asks (ALGORITHMS.md section
//! 6.3).

use super::{Cluster, InstanceView, Mode, count};
use crate::event::InstanceState;
use crate::ledger::sum;
use crate::ledger::{LevelRef, SLOTS};
use crate::reason::Value;
use crate::reason::{Obstacle, Overload};
use proto::calendar::CalendarState;
use proto::complex::{Attribute, Relop};
use proto::id::{AttributeName, QueueInstanceName};
use proto::object::value::Assignments;
use proto::queue::QueueInstanceSettings;
use proto::restring::Expression;
use proto::wire::view::Dominance;

impl Cluster<'_> {
    /// Why a queue instance takes no job now, if so: its state, its host's contact, its slots. Load
    /// does not count.
    ///
    /// On an empty cluster every instance takes jobs. An order is checked without contact: the
    /// master's core knows its own.
    pub fn out_of_service(&self, site: &InstanceView<'_, '_>) -> Option<Obstacle> {
        let settings = site.view.settings?;
        if self.mode == Mode::EmptyCluster {
            return None;
        }
        if let Some(what) = self.shut(site) {
            return Some(what);
        }
        if self.is_closing(settings) {
            return Some(Obstacle::ClosedByCalendar);
        }
        if self.will_give_way(site.instance) {
            return Some(Obstacle::Subordinate);
        }
        let slots = self.within().map_or(settings.slots, |reservation| {
            reservation.block.slots_at(site.view.level)
        });
        (self.slots_taken(&site.view) >= slots).then_some(Obstacle::Full { slots })
    }

    /// Why a queue instance takes no job, whatever runs there and whatever the time: its state, its
    /// host's contact. For a later time the state that a calendar has set does not count.
    pub fn shut(&self, site: &InstanceView<'_, '_>) -> Option<Obstacle> {
        if let Some(state) = self.instances.get(site.instance) {
            let what = out_of_service(state).filter(|what| self.mode != Mode::Later || !is_by_calendar(what));
            if what.is_some() {
                return what;
            }
        }
        if self.config.ambiguous.contains_key(site.instance) {
            return Some(Obstacle::Ambiguous);
        }
        if !matches!(self.mode, Mode::Now | Mode::Later) {
            return None;
        }
        let Some(host) = site.host.view.contact.filter(|host| host.connected && !host.unheard) else {
            return Some(Obstacle::NoContact);
        };
        host.unfit.clone().map(|why| Obstacle::HostUnfit { why })
    }

    /// Whether planned tasks will make another queue instance of the host suspend this one. For
    /// running tasks its state says so.
    fn will_give_way(&self, instance: &QueueInstanceName) -> bool {
        let Some(planned) = self.planned.filter(|_| self.mode == Mode::Now) else {
            return false;
        };
        if self.config.causes.superordinates.is_empty() || planned.level(LevelRef::Host(&instance.host)).is_none() {
            return false;
        }
        let used = |above: &QueueInstanceName| match planned.level(LevelRef::Instance(above)) {
            Some(_) => count(sum(self
                .ledgers()
                .map(|ledger| ledger.booked(LevelRef::Instance(above), SLOTS)))),
            None => 0,
        };
        self.config
            .suspended_on(&instance.host, used)
            .any(|queue| *queue == instance.queue)
    }

    /// Whether the calendar of a queue instance closes it before a job would end.
    fn is_closing(&self, settings: &QueueInstanceSettings) -> bool {
        let calendar = || settings.calendar.value().map(|calendar| calendar.as_str());
        self.window
            .is_some_and(|window| calendar().is_some_and(|calendar| window.closing.contains(calendar)))
    }

    /// Why the load of its host keeps jobs away from a queue instance: load and suspend thresholds
    /// that are reached.
    pub fn alarms(&self, instance: &QueueInstanceName) -> Vec<Obstacle> {
        let overloads = self.overloads(instance).into_iter().map(Obstacle::Overloaded);
        overloads
            .chain(self.suspend_alarms(instance).into_iter().map(Obstacle::SuspendAlarm))
            .collect()
    }

    /// Whether a load or suspend threshold of a queue instance is reached.
    pub fn is_in_alarm(&self, site: &InstanceView<'_, '_>) -> bool {
        let Some(settings) = site.view.settings else {
            return false;
        };
        let lists = [&settings.load_thresholds, &settings.suspend_thresholds];
        lists
            .iter()
            .any(|list| !list.is_empty() && !self.reached(site, list).is_empty())
    }

    /// The suspend thresholds of a queue instance that are reached.
    pub fn suspend_alarms(&self, instance: &QueueInstanceName) -> Vec<Overload> {
        let site = self.site(instance);
        site.view
            .settings
            .map_or_else(Vec::new, |settings| self.reached(&site, &settings.suspend_thresholds))
    }

    /// The load thresholds of a queue instance that are reached.
    pub fn overloads(&self, instance: &QueueInstanceName) -> Vec<Overload> {
        let site = self.site(instance);
        site.view
            .settings
            .map_or_else(Vec::new, |settings| self.reached(&site, &settings.load_thresholds))
    }

    /// The most slots that one parallel job may take in a queue instance before its load thresholds
    /// are reached, given what jobs are expected to add to the load (ALGORITHMS.md section 6.4).
    pub fn threshold_cap(&self, site: &InstanceView<'_, '_>) -> u32 {
        let Some(settings) = site.view.settings.filter(|_| self.mode == Mode::Now) else {
            return u32::MAX;
        };
        let caps = settings
            .load_thresholds
            .iter()
            .filter_map(|(name, limit)| self.slots_to(site, name, limit));
        caps.min().unwrap_or(u32::MAX)
    }

    /// The load threshold behind [`Cluster::threshold_cap`], with its present value.
    pub fn nearest_threshold(&self, site: &InstanceView<'_, '_>) -> Option<Overload> {
        let thresholds = site.view.settings?.load_thresholds.iter();
        let capped = thresholds.filter_map(|(name, limit)| Some((self.slots_to(site, name, limit)?, name, limit)));
        let (_, name, limit) = capped.min_by_key(|(slots, _, _)| *slots)?;
        let attribute = self.config.complex.get(name)?;
        let (dominance, value) = self.resolved(&site.above(self), attribute)?;
        Some(overload_at(attribute, dominance, value, limit))
    }

    /// The slots that reach one threshold. `None` if slots do not change it.
    fn slots_to(&self, site: &InstanceView<'_, '_>, name: &AttributeName, limit: &str) -> Option<u32> {
        let attribute = self.config.complex.get(name)?;
        let per_slot = self
            .adjustment_of_one(&site.host.view, attribute)
            .filter(|units| *units > 0)?;
        let (_, value) = self.resolved(&site.above(self), attribute)?;
        let (Value::Amount(value), Some(Value::Amount(limit))) = (value, Value::read(attribute, limit)) else {
            return None;
        };
        let distance = match attribute.relop {
            Relop::Greater | Relop::GreaterEqual => limit.checked_sub(value),
            Relop::Less | Relop::LessEqual => value.checked_sub(limit),
            Relop::Equal | Relop::NotEqual | Relop::Exclusive => return None,
        };
        let distance = u64::try_from(distance?.finite()?).unwrap_or(0);
        u32::try_from(distance.div_ceil(per_slot.unsigned_abs())).ok()
    }

    /// The thresholds of a list that the values of a queue instance reach.
    pub fn reached(&self, site: &InstanceView<'_, '_>, thresholds: &Assignments) -> Vec<Overload> {
        thresholds
            .iter()
            .filter_map(|(name, limit)| self.overload(site, name, limit))
            .collect()
    }

    fn overload(&self, site: &InstanceView<'_, '_>, name: &AttributeName, limit: &str) -> Option<Overload> {
        let Some(attribute) = self.config.complex.get(name) else {
            return Some(unknown(name, limit));
        };
        let Some((dominance, value)) = self.resolved(&site.above(self), attribute) else {
            return Some(Overload {
                r#type: attribute.r#type,
                relop: attribute.relop,
                ..unknown(&attribute.name, limit)
            });
        };
        is_reached(attribute, &value, limit).then(|| overload_at(attribute, dominance, value, limit))
    }
}

fn overload_at(attribute: &Attribute, dominance: Dominance, value: Value, limit: &str) -> Overload {
    Overload {
        attribute: attribute.name.clone(),
        r#type: attribute.r#type,
        relop: attribute.relop,
        value: Some(value),
        dominance,
        limit: limit.to_owned(),
    }
}

/// Why an instance takes no jobs in a state.
fn out_of_service(state: &InstanceState) -> Option<Obstacle> {
    let InstanceState {
        disabled,
        suspended,
        errors,
        calendar,
        subordinate,
        preempted,
    } = state;
    let causes = [
        (*disabled, Obstacle::Disabled),
        (*calendar == CalendarState::Off, Obstacle::ClosedByCalendar),
        (*suspended, Obstacle::Suspended),
        (*calendar == CalendarState::Suspended, Obstacle::SuspendedByCalendar),
        (*subordinate, Obstacle::Subordinate),
        (*preempted, Obstacle::Preempted),
        (!errors.is_empty(), Obstacle::InError),
    ];
    causes.into_iter().find(|(is_set, _)| *is_set).map(|(_, what)| what)
}

/// Whether the cause is a calendar: it ends some day.
fn is_by_calendar(what: &Obstacle) -> bool {
    matches!(what, Obstacle::ClosedByCalendar | Obstacle::SuspendedByCalendar)
}

/// An alarm by a threshold whose value is not known.
fn unknown(name: &AttributeName, limit: &str) -> Overload {
    Overload {
        attribute: name.clone(),
        r#type: proto::amount::Type::String,
        relop: Relop::Equal,
        value: None,
        dominance: Dominance {
            level: 'h',
            source: 'l',
        },
        limit: limit.to_owned(),
    }
}

/// Whether a threshold is reached: `load relop limit` for a number, no match for a text. A limit
/// that cannot be read is reached.
fn is_reached(attribute: &Attribute, value: &Value, limit: &str) -> bool {
    match (value, Value::read(attribute, limit)) {
        (Value::Amount(value), Some(Value::Amount(limit))) => attribute.relop.holds(*value, limit),
        (Value::Text(value), _) => {
            !Expression::parse(limit).is_ok_and(|expression| expression.matches(value, attribute.r#type))
        }
        (Value::Amount(_), Some(Value::Text(_)) | None) => true,
    }
}
