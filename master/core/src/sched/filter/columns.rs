//! The free amounts of consumables by queue instance, in columns: an instance with too little is
//! refused without being matched. This exists only for speed.
//!
//! A column exists for an attribute for which kinds of jobs were refused. It holds an upper bound:
//! load values, access and kept slots only make less available, and the match judges them.

use crate::matching::{Cluster, Demand, InstanceView, WantedValue};
use crate::reason::Value;
use crate::sched::filter::instance_ids::InstanceId;
use proto::amount::Amount;
use proto::complex::{Attribute, Consumable, Relop};

/// The most columns: each is updated whenever a host changes.
const MOST_COLUMNS: usize = 8;

/// The free amount of one attribute.
#[derive(Clone, Debug)]
struct Column {
    attribute: Attribute,
    /// For one slot, by number of the queue instance. INFINITY where nothing limits it.
    left: Vec<Amount>,
}

/// The columns of a cluster.
#[derive(Clone, Debug, Default)]
pub struct Columns(Vec<Column>);

/// The amounts that a demand needs, beside the columns that exist for them.
#[derive(Clone, Debug)]
pub struct Sieve<'a>(Vec<(&'a [Amount], Relop, Amount)>);

impl Columns {
    /// Begins columns for the requests of a demand, while there are few. Returns false if none is
    /// new. New columns are empty until every host is noted.
    pub fn begin(&mut self, demand: &Demand) -> bool {
        let before = self.0.len();
        for (attribute, _) in limited(demand) {
            let is_known = self.0.iter().any(|column| column.attribute.name == attribute.name);
            if !is_known && self.0.len() < MOST_COLUMNS {
                self.0.push(Column {
                    attribute: attribute.clone(),
                    left: Vec::new(),
                });
            }
        }
        self.0.len() > before
    }

    /// Whether there are no columns.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Notes the free amounts of the queue instances of a host.
    pub fn note(&mut self, cluster: &Cluster<'_>, sites: &[InstanceView<'_, '_>], ids: &[InstanceId]) {
        for Column { attribute, left } in &mut self.0 {
            for (site, id) in sites.iter().zip(ids) {
                if id.index() >= left.len() {
                    left.resize(id.index() + 1, Amount::INFINITY);
                }
                left[id.index()] = least_left(cluster, site, attribute);
            }
        }
    }

    /// The amounts that a demand needs, beside the columns that exist for them.
    pub fn sieve(&self, demand: &Demand) -> Sieve<'_> {
        let needs = self.0.iter().flat_map(|Column { attribute, left }| {
            let wanted = limited(demand).filter(|(asked, _)| asked.name == attribute.name);
            wanted.map(|(asked, wanted)| (left.as_slice(), asked.relop, wanted))
        });
        Sieve(needs.collect())
    }
}

impl Sieve<'_> {
    /// Whether a queue instance may have enough for one slot.
    pub fn lets_through(&self, id: InstanceId) -> bool {
        let holds = |(left, relop, wanted): &(&[Amount], Relop, Amount)| {
            left.get(id.index()).is_none_or(|left| relop.holds(*wanted, *left))
        };
        self.0.iter().all(holds)
    }
}

/// The requests of which each slot of the demand needs something, wherever it is. Requests that are
/// charged for the master alone are not among them.
fn limited(demand: &Demand) -> impl Iterator<Item = (&Attribute, Amount)> {
    let requests = demand.hard.iter().filter(|request| {
        let Attribute { consumable, relop, .. } = request.attribute.as_ref();
        matches!(consumable, Consumable::Yes | Consumable::Host) && matches!(relop, Relop::Less | Relop::LessEqual)
    });
    requests.filter_map(|request| match request.wanted {
        WantedValue::Amount(wanted) => Some((request.attribute.as_ref(), wanted)),
        WantedValue::Text(_) => None,
    })
}

/// The least that a queue instance and its host have left of a consumable.
fn least_left(cluster: &Cluster<'_>, site: &InstanceView<'_, '_>, attribute: &Attribute) -> Amount {
    let views = [site.view, site.host.view];
    let offers = views.iter().flat_map(|view| cluster.offers(view, attribute));
    let left = offers
        .filter(|offer| offer.capacity.is_some())
        .filter_map(|offer| match offer.value {
            Some(Value::Amount(left)) => Some(left),
            Some(Value::Text(_)) | None => None,
        });
    left.min().unwrap_or(Amount::INFINITY)
}
