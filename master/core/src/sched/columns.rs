//! What is left of consumables in each queue instance, in columns by number: those that have too little are turned down at a
//! glance, without being matched.
//!
//! A column is kept of what kinds of jobs were turned down for. It tells at least what there is: load values, access and what is kept
//! for later only make it less, and are a matter of the match.

use super::places::Place;
use crate::matching::{Cluster, Demand, Site, Value, Wanted};
use proto::amount::Amount;
use proto::complex::{Attribute, Consumable, Relop};

/// So many columns are kept at most: each is brought up to date whenever a host changes.
const MOST_COLUMNS: usize = 8;

/// What is left of one attribute.
#[derive(Clone, Debug)]
struct Column {
    attribute: Attribute,
    /// By place, for one slot; INFINITY where nothing limits it.
    left: Vec<Amount>,
}

/// The columns of a cluster.
#[derive(Clone, Debug, Default)]
pub struct Columns(Vec<Column>);

/// What a demand needs of the columns that there are.
#[derive(Clone, Debug)]
pub struct Sieve<'a>(Vec<(&'a [Amount], Relop, Amount)>);

impl Columns {
    /// Begins columns for what a demand takes, while there are few; false if none is new. New ones are empty until every host is noted.
    pub fn begin(&mut self, demand: &Demand) -> bool {
        let before = self.0.len();
        for (attribute, _) in limited(demand) {
            let is_known = self.0.iter().any(|column| column.attribute.name == attribute.name);
            if !is_known && self.0.len() < MOST_COLUMNS {
                self.0.push(Column { attribute: attribute.clone(), left: Vec::new() });
            }
        }
        self.0.len() > before
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Notes what is left in the queue instances of a host.
    pub fn note(&mut self, cluster: &Cluster<'_>, sites: &[Site<'_, '_>], places: &[Place]) {
        for Column { attribute, left } in &mut self.0 {
            for (site, place) in sites.iter().zip(places) {
                if place.index() >= left.len() {
                    left.resize(place.index() + 1, Amount::INFINITY);
                }
                left[place.index()] = least_left(cluster, site, attribute);
            }
        }
    }

    /// What a demand needs of the columns that there are.
    pub fn sieve(&self, demand: &Demand) -> Sieve<'_> {
        let needs = self.0.iter().flat_map(|Column { attribute, left }| {
            let wanted = limited(demand).filter(|(asked, _)| asked.name == attribute.name);
            wanted.map(|(asked, wanted)| (left.as_slice(), asked.relop, wanted))
        });
        Sieve(needs.collect())
    }
}

impl Sieve<'_> {
    /// Whether there may be enough for one slot in a queue instance.
    pub fn lets_through(&self, place: Place) -> bool {
        let holds = |(left, relop, wanted): &(&[Amount], Relop, Amount)| {
            left.get(place.index()).is_none_or(|left| relop.holds(*wanted, *left))
        };
        self.0.iter().all(holds)
    }
}

/// The requests of a demand that each of its slots needs something left for, wherever it is: not those that only the master is charged
/// for.
fn limited(demand: &Demand) -> impl Iterator<Item = (&Attribute, Amount)> {
    let requests = demand.hard.iter().filter(|request| {
        let Attribute { consumable, relop, .. } = request.attribute.as_ref();
        matches!(consumable, Consumable::Yes | Consumable::Host) && matches!(relop, Relop::Less | Relop::LessEqual)
    });
    requests.filter_map(|request| match request.wanted {
        Wanted::Amount(wanted) => Some((request.attribute.as_ref(), wanted)),
        Wanted::Text(_) => None,
    })
}

/// The least that a queue instance and its host have left of a consumable.
fn least_left(cluster: &Cluster<'_>, site: &Site<'_, '_>, attribute: &Attribute) -> Amount {
    let spots = [site.spot, site.host.spot];
    let offers = spots.iter().flat_map(|spot| cluster.offers(spot, attribute));
    let left = offers.filter(|offer| offer.capacity.is_some()).filter_map(|offer| match offer.value {
        Some(Value::Amount(left)) => Some(left),
        Some(Value::Text(_)) | None => None,
    });
    left.min().unwrap_or(Amount::INFINITY)
}
