//! The offers of one level for one attribute (ALGORITHMS.md section 3.1).

use super::demand::Demand;
use super::load::Load;
use super::{Cluster, InstanceView, LevelView, Mode};
use crate::ledger::{CountRule, LevelRef, SLOTS, ill_and_idle};
use crate::reason::Value;
use proto::amount::Amount;
use proto::complex::{Attribute, Relop};
use proto::id::{HostName, QueueInstanceName};
use proto::queue::QueueInstanceSettings;
use proto::wire::view::Dominance;
use std::sync::Arc;

/// Where an offer comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// A load value as reported.
    Load,
    /// A load value that was scaled or adjusted.
    CorrectedLoad,
    /// The free amount of a consumable.
    Consumable,
    /// A configured value.
    Fixed,
}

impl Source {
    /// The second letter of `hl:mem_free`.
    pub fn letter(self) -> char {
        match self {
            Source::Load => 'l',
            Source::CorrectedLoad => 'L',
            Source::Consumable => 'c',
            Source::Fixed => 'f',
        }
    }
}

impl LevelRef<'_> {
    /// The first letter of `hl:mem_free`.
    pub fn letter(self) -> char {
        match self {
            LevelRef::Global => 'g',
            LevelRef::Host(_) => 'h',
            LevelRef::Instance(_) => 'q',
        }
    }
}

/// An offer of one level for an attribute, from one source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The amount or text. `None` means that it is not known and counts as enough.
    pub value: Option<Value>,
    /// Whether all slots of a job share it, so that a request counts per slot.
    pub shared: bool,
    /// Where it comes from.
    pub source: Source,
    /// The capacity of a consumable.
    pub capacity: Option<Amount>,
}

impl Offer {
    /// The two letters before a shown value; the first is the level's.
    pub fn dominance(&self, level: char) -> Dominance {
        Dominance {
            level,
            source: self.source.letter(),
        }
    }

    fn fixed(value: Value) -> Offer {
        Offer {
            value: Some(value),
            shared: false,
            source: Source::Fixed,
            capacity: None,
        }
    }

    fn load(load: Load, shared: bool) -> Offer {
        let (value, source) = match load {
            Load::Known {
                value,
                corrected: false,
            } => (Some(value), Source::Load),
            Load::Known { value, corrected: true } => (Some(value), Source::CorrectedLoad),
            Load::Presumed => (None, Source::Load),
        };
        Offer {
            value,
            shared,
            source,
            capacity: None,
        }
    }
}

impl<'a> Cluster<'a> {
    /// All offers of a level for an attribute. Each limits by itself. Empty if the attribute is not
    /// defined.
    ///
    /// EXCL attributes are not among them: they depend on who else is there.
    pub fn offers(&self, view: &LevelView<'_, '_>, attribute: &Attribute) -> impl Iterator<Item = Offer> + use<> {
        let (first, second) = self.two_offers(view, attribute);
        first.into_iter().chain(second)
    }

    /// The offers of a level, of which there are at most two.
    pub(super) fn two_offers(&self, view: &LevelView<'_, '_>, attribute: &Attribute) -> (Option<Offer>, Option<Offer>) {
        match view.level {
            LevelRef::Global | LevelRef::Host(_) => self.host_offers(view, attribute),
            LevelRef::Instance(instance) => self.instance_offers(view, instance, attribute),
        }
    }

    /// Whether everything that a job requests is defined at a queue instance or above it, or may be
    /// later because some host reports it.
    pub fn may_define(&self, site: &InstanceView<'_, '_>, demand: &Demand) -> bool {
        demand.hard.iter().filter(|request| !request.implied).all(|request| {
            let attribute = &request.attribute;
            let is_set = |view: &LevelView<'_, '_>| view.value(&attribute.name).is_some();
            let is_setting = |settings| queue_value(site.instance, settings, attribute).is_some();
            let above = [site.host.view, self.global()];
            is_set(&site.view)
                || above.iter().any(is_set)
                || self.observations.is_reported(&attribute.name)
                || attribute.name.as_str() == SLOTS
                || site.view.settings.is_some_and(is_setting)
                || above.iter().any(|view| self.load(view, attribute).is_some())
        })
    }

    /// The settings of a queue instance. `None` if it does not exist.
    pub fn settings(&self, instance: &QueueInstanceName) -> Option<&'a QueueInstanceSettings> {
        self.config.settings_in(instance).map(Arc::as_ref)
    }

    fn host_offers(&self, view: &LevelView<'_, '_>, attribute: &Attribute) -> (Option<Offer>, Option<Offer>) {
        let configured = view
            .value(&attribute.name)
            .and_then(|text| self.configured(view, attribute, text));
        let load = self
            .load(view, attribute)
            .map(|load| Offer::load(load, self.is_shared(attribute)));
        match (configured, load) {
            // A configured value of the same level wins over the load where nothing is more or less
            // restrictive.
            (Some(configured), Some(_)) if !is_ordered(attribute) => (Some(configured), None),
            // A fixed number that restricts a load value restricts all slots together, as the load
            // does.
            (Some(configured), load @ Some(_)) => (
                Some(Offer {
                    shared: self.is_shared(attribute),
                    ..configured
                }),
                load,
            ),
            (configured, load) => (configured, load),
        }
    }

    /// Whether slots share a load value, so that each slot needs the requested amount.
    fn is_shared(&self, attribute: &Attribute) -> bool {
        is_ordered(attribute) && self.counted(attribute) == CountRule::EachSlot
    }

    fn instance_offers(
        &self,
        view: &LevelView<'_, '_>,
        instance: &QueueInstanceName,
        attribute: &Attribute,
    ) -> (Option<Offer>, Option<Offer>) {
        let Some(settings) = view.settings else {
            return (None, None);
        };
        if attribute.name.as_str() == SLOTS {
            return (
                Some(self.left(view, attribute, Amount::from_base(i64::from(settings.slots)))),
                None,
            );
        }
        let text = settings.complex_values.value(&attribute.name);
        let configured = text.and_then(|text| self.configured(view, attribute, text));
        (configured, queue_value(instance, settings, attribute).map(Offer::fixed))
    }

    /// The offer of a value in `complex_values`: the free amount of a consumable, or the value
    /// itself.
    fn configured(&self, view: &LevelView<'_, '_>, attribute: &Attribute, text: &str) -> Option<Offer> {
        match Value::read(attribute, text)? {
            Value::Amount(capacity) if attribute.consumable.is_consumable() => {
                let capacity = capacity
                    .checked_sub(self.ill(view, attribute, text))
                    .unwrap_or(capacity);
                Some(self.left(view, attribute, capacity))
            }
            value @ (Value::Amount(_) | Value::Text(_)) => Some(Offer::fixed(value)),
        }
    }

    /// How many ids of a resource map nobody gets because their devices are ill. An id that a task
    /// still has is booked already.
    fn ill(&self, view: &LevelView<'_, '_>, attribute: &Attribute, text: &str) -> Amount {
        let host = match view.level {
            LevelRef::Host(host) => host.clone(),
            LevelRef::Global => HostName::global(),
            LevelRef::Instance(_) => return Amount::ZERO,
        };
        let Some((map, ill)) = self.observations.ill_of(&host, attribute, text) else {
            return Amount::ZERO;
        };
        let count = ill_and_idle(self.ledgers(), &attribute.name, &host, &map, &ill);
        Amount::from_base(i64::try_from(count).expect("a map has at most IDS_MAX ids"))
    }

    /// The free part of a capacity. It is negative where more is booked than there is.
    fn left(&self, view: &LevelView<'_, '_>, attribute: &Attribute, capacity: Amount) -> Offer {
        let capacity = match self.within() {
            Some(reservation) => reservation.block.amount(view.level, attribute.name.as_str()),
            None => self.less_used_by_others(view, attribute, capacity),
        };
        let booked = self.booked_at(view, &attribute.name);
        let left = capacity.checked_sub(booked).unwrap_or(Amount::from_base(i64::MIN));
        let (value, capacity) = (Some(Value::Amount(left)), Some(capacity));
        Offer {
            value,
            shared: true,
            source: Source::Consumable,
            capacity,
        }
    }
}

impl Cluster<'_> {
    /// The part of a capacity that counts at a later time: the present use by others than jobs, as
    /// the load shows it, is assumed to stay (ALGORITHMS.md section 4.2).
    fn less_used_by_others(&self, view: &LevelView<'_, '_>, attribute: &Attribute, capacity: Amount) -> Amount {
        if self.mode != Mode::Later {
            return capacity;
        }
        let now = Cluster {
            mode: Mode::Now,
            window: None,
            ..*self
        };
        let Some(Load::Known {
            value: Value::Amount(free),
            ..
        }) = now.load(view, attribute)
        else {
            return capacity;
        };
        let others = capacity
            .checked_sub(now.booked_at(view, &attribute.name))
            .and_then(|left| left.checked_sub(free));
        let others = others.filter(|others| is_ordered(attribute) && *others > Amount::ZERO && !others.is_infinite());
        others
            .and_then(|others| capacity.checked_sub(others))
            .unwrap_or(capacity)
    }
}

/// Whether the attribute measures an amount. Only then do requests add up over slots: a job with
/// four slots and `num_proc=8` does not want 32 processors.
pub fn is_ordered(attribute: &Attribute) -> bool {
    match attribute.relop {
        Relop::Less | Relop::LessEqual | Relop::Greater | Relop::GreaterEqual => attribute.r#type.is_numeric(),
        Relop::Equal | Relop::NotEqual | Relop::Exclusive => false,
    }
}

/// The attributes that every queue instance has by its settings.
fn queue_value(instance: &QueueInstanceName, settings: &QueueInstanceSettings, attribute: &Attribute) -> Option<Value> {
    let text = |text: &str| Some(Value::Text(text.to_owned()));
    let number = |number: i64| Some(Value::Amount(Amount::from_base(number)));
    match attribute.name.as_str() {
        "qname" => text(instance.queue.as_str()),
        "hostname" => text(instance.host.as_str()),
        "tmpdir" => text(&settings.tmpdir.to_string()),
        "calendar" => text(settings.calendar.value().map_or("NONE", |calendar| calendar.as_str())),
        "seq_no" => number(i64::from(settings.seq_no)),
        "rerun" => number(i64::from(settings.rerun.0)),
        "min_cpu_interval" => Some(Value::Amount(settings.min_cpu_interval.amount())),
        name => limit(settings, name).map(Value::Amount),
    }
}

/// A resource limit of a queue instance.
fn limit(settings: &QueueInstanceSettings, name: &str) -> Option<Amount> {
    Some(match name {
        "s_rt" => settings.s_rt.amount(),
        "h_rt" => settings.h_rt.amount(),
        "s_cpu" => settings.s_cpu.amount(),
        "h_cpu" => settings.h_cpu.amount(),
        "s_fsize" => settings.s_fsize.amount(),
        "h_fsize" => settings.h_fsize.amount(),
        "s_data" => settings.s_data.amount(),
        "h_data" => settings.h_data.amount(),
        "s_stack" => settings.s_stack.amount(),
        "h_stack" => settings.h_stack.amount(),
        "s_core" => settings.s_core.amount(),
        "h_core" => settings.h_core.amount(),
        "s_rss" => settings.s_rss.amount(),
        "h_rss" => settings.h_rss.amount(),
        "s_vmem" => settings.s_vmem.amount(),
        "h_vmem" => settings.h_vmem.amount(),
        _ => return None,
    })
}
