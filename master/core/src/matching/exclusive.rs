//! Exclusive attributes: a job has an object alone (ALGORITHMS.md section 14).

use super::demand::{Request, WantedValue};
use super::fit::SlotRole;
use super::{Cluster, LevelView};
use crate::reason::Value;
use crate::reason::{Obstacle, Shortage};
use proto::amount::{Amount, Type};
use proto::complex::{Attribute, Consumable};
use proto::wire::view::Dominance;

impl Cluster<'_> {
    /// Whether an object can be had alone: an exclusive attribute is TRUE in its `complex_values`.
    pub fn has_exclusive(&self, view: &LevelView<'_, '_>, attribute: &Attribute) -> bool {
        let text = view.value(&attribute.name);
        text.and_then(|text| Amount::parse(text, Type::Bool).ok()) == Some(Amount::TRUE)
    }

    /// Why a job may not use an object because of an exclusive attribute, if so.
    ///
    /// A job that asks for it needs an object that nobody uses; every other job needs one that
    /// nobody has alone.
    pub fn excluded(&self, view: &LevelView<'_, '_>, request: &Request, role: SlotRole) -> Option<Obstacle> {
        let attribute = &request.attribute;
        let wanted = request.wanted == WantedValue::Amount(Amount::TRUE) && !request.implied;
        let alone = wanted && (attribute.consumable != Consumable::Job || role.has_master());
        // A job that has a part of an object by a reservation has it alone only if the reservation
        // has.
        let name = attribute.name.as_str();
        let shared = self
            .within()
            .is_some_and(|within| within.block.amount(view.level, name) == Amount::ZERO);
        let taken = self.booked_at(view, &attribute.name) > Amount::ZERO;
        if alone && !shared && !taken && self.slots_taken(view) > 0 {
            return Some(Obstacle::InUse {
                attribute: attribute.name.clone(),
                is_asked: true,
            });
        }
        if alone && (shared || self.slots_taken(view) > 0) {
            return Some(Obstacle::Offers(Shortage {
                attribute: attribute.name.clone(),
                r#type: attribute.r#type,
                dominance: Dominance {
                    level: view.level.letter(),
                    source: 'c',
                },
                needed: Value::Amount(Amount::TRUE),
                free: Value::Amount(Amount::FALSE),
                capacity: Some(Amount::TRUE),
            }));
        }
        taken.then(|| Obstacle::InUse {
            attribute: attribute.name.clone(),
            is_asked: false,
        })
    }
}
