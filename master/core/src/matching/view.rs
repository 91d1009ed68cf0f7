//! What `qhost -F` and `qstat -F` show: each attribute once, the most restrictive level winning (SEMANTICS section 3.4).

use super::demand::Value;
use super::offer::{Offer, Source};
use super::{Cluster, Mode};
use crate::ledger::Level;
use crate::observe::Observations;
use crate::state::State;
use proto::amount::{Amount, Type};
use proto::complex::{Attribute, Relop};
use proto::id::{AttributeName, HostName, QueueInstanceName};
use proto::wire::view::{Dominance, ResourceValue, ResourceView};

/// The attributes of a queue instance, resolved over its levels, in the order of their names.
///
/// `attributes` limits them to those names or shortcuts; an empty list shows all that any level defines.
pub fn resources_of_instance(
    state: &State,
    observations: &Observations,
    instance: &QueueInstanceName,
    attributes: &[AttributeName],
) -> Vec<ResourceView> {
    let cluster = Cluster::of(state, observations, Mode::Now);
    cluster.resources(&Level::Instance(instance.clone()), attributes)
}

/// The attributes of a host, or of the cluster where `host` is `global`; as [`resources_of_instance`].
pub fn resources_of_host(
    state: &State,
    observations: &Observations,
    host: &HostName,
    attributes: &[AttributeName],
) -> Vec<ResourceView> {
    let level = if host.is_global() { Level::Global } else { Level::Host(host.clone()) };
    Cluster::of(state, observations, Mode::Now).resources(&level, attributes)
}

impl Cluster<'_> {
    fn resources(&self, level: &Level, attributes: &[AttributeName]) -> Vec<ResourceView> {
        let is_named = |attribute: &Attribute| {
            attributes.iter().any(|name| *name == attribute.name || name.as_str() == attribute.shortcut)
        };
        let shown = self.config.complex.iter().filter(|attribute| attributes.is_empty() || is_named(attribute));
        shown.filter_map(|attribute| self.resource(level, attribute)).collect()
    }

    fn resource(&self, level: &Level, attribute: &Attribute) -> Option<ResourceView> {
        let (dominance, value) = self.resolved(level, attribute)?;
        let value = match value {
            Value::Amount(amount) => ResourceValue::Amount(amount),
            Value::Text(text) => ResourceValue::Text(text),
        };
        Some(ResourceView { name: attribute.name.clone(), r#type: attribute.r#type, dominance, value })
    }

    /// The value of an attribute at a level and all above it, with the two letters that tell where it comes from.
    ///
    /// Where nothing is more or less restrictive, the nearest level counts.
    pub fn resolved(&self, level: &Level, attribute: &Attribute) -> Option<(Dominance, Value)> {
        let mut best: Option<(Dominance, Value)> = None;
        for level in above(level) {
            for (dominance, value) in self.shown(&level, attribute) {
                if best.as_ref().is_none_or(|(_, best)| is_stricter(attribute, &value, best)) {
                    best = Some((dominance, value));
                }
            }
        }
        best
    }

    /// What a level offers, as it is shown.
    fn shown(&self, level: &Level, attribute: &Attribute) -> Vec<(Dominance, Value)> {
        if attribute.is_exclusive() {
            let offer = self.has_exclusive(level, attribute).then(|| self.exclusive_offer(level));
            return offer.into_iter().filter_map(|offer| Some((offer.dominance(level), offer.value?))).collect();
        }
        self.offers(level, attribute).filter_map(|offer| Some((offer.dominance(level), offer.value?))).collect()
    }

    /// One less the slots in use, as 8.1.9 shows it: below zero where a parallel job is alone.
    fn exclusive_offer(&self, level: &Level) -> Offer {
        let left = 1 - i64::from(self.slots_taken(level));
        let value = Some(Value::Amount(Amount::from_base(left)));
        Offer { value, shared: true, source: Source::Consumable, capacity: Some(Amount::TRUE) }
    }
}

/// A level and those above it, nearest first.
fn above(level: &Level) -> Vec<Level> {
    match level {
        Level::Global => vec![Level::Global],
        Level::Host(host) => vec![Level::Host(host.clone()), Level::Global],
        Level::Instance(instance) => vec![level.clone(), Level::Host(instance.host.clone()), Level::Global],
    }
}

fn is_stricter(attribute: &Attribute, value: &Value, best: &Value) -> bool {
    match (value, best, attribute.relop) {
        (Value::Amount(value), Value::Amount(best), Relop::Less | Relop::LessEqual) => value < best,
        (Value::Amount(value), Value::Amount(best), Relop::Greater | Relop::GreaterEqual) => value > best,
        (Value::Amount(value), Value::Amount(best), Relop::Exclusive) => value < best,
        (Value::Amount(_), Value::Amount(_), Relop::Equal | Relop::NotEqual)
        | (Value::Text(_), Value::Amount(_) | Value::Text(_), _)
        | (Value::Amount(_), Value::Text(_), _) => false,
    }
}

/// How a value is printed in the scheduler's messages: `2.000000`, `1.000G`, `true`.
pub fn message_text(value: &Value, r#type: Type) -> String {
    match value {
        Value::Text(text) => text.clone(),
        Value::Amount(amount) if r#type == Type::Bool => {
            if *amount == Amount::ZERO { "false" } else { "true" }.to_owned()
        }
        Value::Amount(amount) => amount.qhost_text(r#type),
    }
}
