//! The numbers of a reason, as people write them.

use crate::matching::{Cluster, is_ordered, message_text};
use crate::reason::facts::ReasonSubject;
use crate::reason::{QuotaDenial, Shortage, Value};
use proto::amount::{Amount, Type};
use proto::wire::view::Comparison;

/// The needed and the free amount of an attribute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Numbers {
    pub attribute: Option<String>,
    pub needed: Option<String>,
    pub free: Option<String>,
    /// The total, if the attribute is an amount.
    pub capacity: Option<String>,
    pub comparison: Comparison,
}

/// A value as people write it: counts without decimals, other numbers without zeros at their end.
pub(super) fn number(value: &Value, r#type: Type) -> String {
    match (value, r#type) {
        (Value::Amount(amount), Type::Int | Type::RsMap) => amount
            .finite()
            .map_or_else(|| message_text(value, r#type), |count| count.to_string()),
        (Value::Amount(amount), Type::Double) if !amount.is_infinite() => {
            let text = message_text(value, r#type);
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        (Value::Amount(_) | Value::Text(_), _) => message_text(value, r#type),
    }
}

/// Returns the numbers of a reason. They are empty for a reason without an attribute.
pub(super) fn numbers(cluster: &Cluster<'_>, about: ReasonSubject<'_>) -> Numbers {
    match about {
        ReasonSubject::Shortage(shortage) => of_shortage(cluster, shortage),
        ReasonSubject::Threshold(overload) => Numbers {
            attribute: Some(overload.attribute.to_string()),
            needed: Some(overload.limit.clone()),
            free: overload.value.as_ref().map(|value| number(value, overload.r#type)),
            capacity: None,
            comparison: Comparison::Threshold,
        },
        ReasonSubject::Slots(slots) => of_slots(1, 0, Some(slots)),
        ReasonSubject::PeSlots { slots, needed, of, .. } => of_slots(needed, slots, of),
        ReasonSubject::Room(room) => numbers(cluster, room.why.facts().about),
        ReasonSubject::Quota(denial) => of_quota(denial),
        ReasonSubject::Attribute(attribute) => of_attribute(attribute),
        ReasonSubject::Exclusive { attribute, .. } => of_attribute(attribute.as_str()),
        ReasonSubject::Nothing => Numbers::default(),
    }
}

fn of_attribute(attribute: &str) -> Numbers {
    Numbers {
        attribute: Some(attribute.to_owned()),
        ..Numbers::default()
    }
}

fn of_slots(needed: u32, free: u32, capacity: Option<u32>) -> Numbers {
    Numbers {
        attribute: Some("slots".to_owned()),
        needed: Some(needed.to_string()),
        free: Some(free.to_string()),
        capacity: capacity.map(|slots| slots.to_string()),
        comparison: Comparison::Amount,
    }
}

fn of_shortage(cluster: &Cluster<'_>, shortage: &Shortage) -> Numbers {
    let Shortage {
        attribute,
        r#type,
        needed,
        free,
        capacity,
        ..
    } = shortage;
    let comparison = if is_of_amount(cluster, shortage) {
        Comparison::Amount
    } else {
        Comparison::Value
    };
    let capacity = capacity.filter(|_| comparison == Comparison::Amount);
    Numbers {
        attribute: Some(attribute.to_string()),
        needed: Some(number(needed, *r#type)),
        free: Some(number(free, *r#type)),
        capacity: capacity.map(|capacity| number(&Value::Amount(capacity), *r#type)),
        comparison,
    }
}

/// Whether a shortage is one of an amount, so that less or more of it would do: not of a text, a
/// truth value or a property.
pub(super) fn is_of_amount(cluster: &Cluster<'_>, shortage: &Shortage) -> bool {
    let attribute = cluster.config.complex.get(&shortage.attribute);
    shortage.r#type != Type::Bool && attribute.is_some_and(is_ordered)
}

/// The numbers of a limit of a quota: what is free is what is left of the limit.
fn of_quota(denial: &QuotaDenial) -> Numbers {
    let text = |value: &Value| number(value, denial.r#type);
    let free = match (&denial.limit, denial.used) {
        (Value::Amount(limit), Some(used)) => {
            let left = limit.checked_sub(used).unwrap_or(Amount::ZERO).max(Amount::ZERO);
            Some(text(&Value::Amount(left)))
        }
        (_, _) => None,
    };
    Numbers {
        attribute: Some(denial.attribute.to_string()),
        needed: denial.needed.as_ref().map(text),
        free,
        capacity: Some(text(&denial.limit)),
        comparison: Comparison::Amount,
    }
}
