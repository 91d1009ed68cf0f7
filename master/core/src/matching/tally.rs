//! The amounts that a job requests and takes with one slot, close together in memory, because each
//! placed task reads them. This exists only for speed.

use super::demand::{Demand, WantedValue};
use crate::ledger::Charges;
use proto::amount::Amount;
use proto::complex::{Attribute, Complex};
use std::sync::Arc;

/// The amounts of a job.
#[derive(Clone, Debug)]
pub struct Tally {
    /// Those of its hard requests in their order, then those that it takes without a request.
    items: Box<[Item]>,
    /// How many are hard requests.
    asked: usize,
    /// Whether only admission decides besides where the job may run.
    is_all: bool,
    /// Its charges, for any number of slots.
    pub charges: Arc<Charges>,
}

/// The amount that a job requests, and the one that it takes, of one attribute.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub attribute: Arc<Attribute>,
    pub wanted: Amount,
    /// Whether the job does not request it itself.
    pub implied: bool,
    /// Its charge, or if that is nothing, its request.
    pub taken: Amount,
    pub is_charged: bool,
}

impl Tally {
    /// The amounts of a demand.
    pub fn new(complex: &Complex, demand: &Demand) -> Tally {
        let item = |attribute: &Arc<Attribute>, wanted, implied| Item {
            attribute: attribute.clone(),
            wanted,
            implied,
            taken: demand.charges.asked_for_one_slot(&attribute.name),
            is_charged: demand.charges.of_one_slot(&attribute.name) > Amount::ZERO,
        };
        let asked = demand.hard.iter().filter_map(|request| match request.wanted {
            WantedValue::Amount(wanted) => Some(item(&request.attribute, wanted, request.implied)),
            WantedValue::Text(_) => None,
        });
        let mut items: Vec<Item> = asked.collect();
        let asked = items.len();
        for attribute in demand
            .charges
            .attributes()
            .filter_map(|name| complex.shared(name.as_str()))
        {
            if !items.iter().any(|item| Arc::ptr_eq(&item.attribute, attribute)) {
                items.push(item(attribute, Amount::ZERO, true));
            }
        }
        let is_all = asked == demand.hard.len() && has_only_numbers(demand);
        Tally {
            items: items.into(),
            asked,
            is_all,
            charges: demand.charges.clone(),
        }
    }

    /// The hard requests, if only admission decides besides where the job may run.
    pub(super) fn requests(&self) -> Option<&[Item]> {
        self.is_all.then(|| &self.items[..self.asked])
    }

    /// The amounts of an attribute. It most likely has this number.
    pub(super) fn item(&self, index: usize, attribute: &Arc<Attribute>) -> Option<&Item> {
        let is_meant = |item: &&Item| Arc::ptr_eq(&item.attribute, attribute);
        self.items
            .get(index)
            .filter(is_meant)
            .or_else(|| self.items.iter().find(is_meant))
    }
}

/// Whether a demand is for one slot and consists of amounts only.
fn has_only_numbers(demand: &Demand) -> bool {
    let Demand {
        apart,
        soft,
        unknown,
        not_asked,
        hard_queues,
        soft_queues,
        pe,
        ..
    } = demand;
    let Demand {
        checkpoint,
        immediate,
        avoided_hosts,
        reservation,
        ..
    } = demand;
    let has_queues = !hard_queues.is_empty() || !soft_queues.is_empty();
    let is_special = *immediate || pe.is_some() || checkpoint.is_some() || reservation.is_some();
    let has_more = !apart.is_empty() || !soft.is_empty() || !unknown.is_empty() || !not_asked.is_empty();
    !has_queues && !is_special && !has_more && avoided_hosts.is_empty()
}
