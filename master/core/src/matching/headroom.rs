//! The free amounts of a queue instance that gets one task after the other: read once, and reduced
//! by each task. This exists only for speed.

use super::demand::{Demand, Request, WantedValue};
use super::fit::Fit;
use super::offer::{Offer, Source};
use super::tally::{Item, Tally};
use super::{Cluster, InstanceView, LevelView};
use crate::reason::Value;
use proto::amount::Amount;
use proto::complex::Attribute;
use proto::queue::QueueInstanceSettings;
use std::sync::Arc;

/// The free amounts of a queue instance and its host, of attributes that were requested there.
///
/// Invariant: the amounts are what both offer, if nothing happened there except planned starts,
/// each reported to [`Headroom::take`].
#[derive(Clone, Debug, Default)]
pub struct Headroom {
    rows: Vec<AttributeHeadroom>,
    /// Whether everybody who asks for one slot is admitted, if that was looked up.
    admits_all: Option<bool>,
}

/// The free amounts of one attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
struct AttributeHeadroom {
    attribute: Arc<Attribute>,
    /// One number per offer. `None` if an offer is not a number, or if more than the charges of
    /// tasks changes it.
    numbers: Option<Vec<Number>>,
}

/// The free amount of one offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Number {
    left: Amount,
    shrinks: Reduction,
    /// Whether it also limits jobs that do not request the attribute.
    is_set: bool,
}

/// How a task reduces an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reduction {
    /// Not at all.
    Never,
    /// By its charge.
    ByCharge,
    /// By its charge, or if that is nothing, by its request: the load does not show it yet.
    ByRequest,
}

impl Cluster<'_> {
    /// Whether one slot of a job without a parallel environment fits in a queue instance now, given
    /// the global fit, as [`Cluster::fit_level`] and [`Cluster::fit_instance`] decide it.
    pub fn fits_in(&self, headroom: &mut Headroom, above: &Fit, site: &InstanceView<'_, '_>, demand: &Demand) -> bool {
        let views = [&site.host.view, &site.view];
        let is_forced =
            |view: &LevelView<'_, '_>| demand.not_asked.iter().any(|attribute| view.value(attribute).is_some());
        let is_shut = |view: &&LevelView<'_, '_>| self.denied(view, demand).is_some() || is_forced(view);
        headroom.admits_all.get_or_insert_with(|| self.admits_all(site));
        let mut requests = demand.hard.iter().enumerate();
        above.holds(1)
            && !views.iter().any(is_shut)
            && demand.unknown.is_empty()
            && requests.all(|(index, request)| {
                match headroom.serves(self, views, (index, request), above.defines(index)) {
                    Some(serves) => serves,
                    None => self.serves_at(views, index, request, above),
                }
            })
    }

    /// Whether a queue instance and its host admit everybody who asks for one slot.
    fn admits_all(&self, site: &InstanceView<'_, '_>) -> bool {
        let takes_batch = site.view.settings.is_some_and(QueueInstanceSettings::is_batch);
        takes_batch && self.is_open_to_all(&site.host.view) && self.is_open_to_all(&site.view)
    }

    /// The free amounts of an attribute at these levels.
    fn numbers(&self, views: [&LevelView<'_, '_>; 2], attribute: &Attribute) -> Option<Vec<Number>> {
        if attribute.is_exclusive() || self.is_adjusted(attribute) {
            return None;
        }
        let mut numbers = Vec::new();
        for view in views {
            for offer in self.offers(view, attribute) {
                numbers.push(self.number(view, attribute, &offer)?);
            }
        }
        Some(numbers)
    }

    fn number(&self, view: &LevelView<'_, '_>, attribute: &Attribute, offer: &Offer) -> Option<Number> {
        let Some(Value::Amount(left)) = offer.value else {
            return None;
        };
        let shrinks = match offer.source {
            Source::Consumable => Reduction::ByCharge,
            Source::Load | Source::CorrectedLoad if self.is_subtracted_now(view, attribute) => Reduction::ByRequest,
            Source::Load | Source::CorrectedLoad | Source::Fixed => Reduction::Never,
        };
        let is_set = offer.capacity.is_some() || view.value(&attribute.name).is_some();
        Some(Number { left, shrinks, is_set })
    }
}

impl Headroom {
    /// Forgets everything.
    pub fn clear(&mut self) {
        self.admits_all = None;
        self.rows.clear();
    }

    /// Notes that one slot was planned for a task with these amounts.
    pub fn take(&mut self, tally: &Tally) {
        let mut index = 0..;
        let mut of = |row: &AttributeHeadroom| index.next().and_then(|index| tally.item(index, &row.attribute));
        self.rows.retain_mut(|row| of(row).is_none_or(|item| row.take(item)));
    }

    /// Whether one slot of a job with these amounts is known to fit, where nothing is offered
    /// globally.
    pub fn holds(&self, tally: &Tally) -> bool {
        let has = |(index, item): (usize, &Item)| {
            let row = self.row(index, &item.attribute);
            row.is_some_and(|row| row.serves(item.wanted, item.implied, false) == Some(true))
        };
        let is_open = self.admits_all == Some(true);
        is_open
            && tally
                .requests()
                .is_some_and(|requests| requests.iter().enumerate().all(has))
    }

    /// Whether enough is left for the request with this number. `None` if numbers cannot decide.
    /// `is_defined` says whether a level above defines its attribute.
    fn serves(
        &mut self,
        cluster: &Cluster<'_>,
        views: [&LevelView<'_, '_>; 2],
        (index, request): (usize, &Request),
        is_defined: bool,
    ) -> Option<bool> {
        let WantedValue::Amount(wanted) = request.wanted else {
            return None;
        };
        if self.row(index, &request.attribute).is_none() {
            let numbers = cluster.numbers(views, &request.attribute);
            self.rows.push(AttributeHeadroom {
                attribute: request.attribute.clone(),
                numbers,
            });
        }
        self.row(index, &request.attribute)?
            .serves(wanted, request.implied, is_defined)
    }

    /// The row of an attribute. It most likely has this number, because many jobs request the same
    /// in the same order.
    fn row(&self, index: usize, attribute: &Arc<Attribute>) -> Option<&AttributeHeadroom> {
        let is_meant = |row: &&AttributeHeadroom| Arc::ptr_eq(&row.attribute, attribute);
        // Many jobs request the same attributes in the same order.
        self.rows
            .get(index)
            .filter(is_meant)
            .or_else(|| self.rows.iter().find(is_meant))
    }
}

impl AttributeHeadroom {
    /// Whether enough is left for a wanted amount. `None` if numbers cannot decide.
    fn serves(&self, wanted: Amount, implied: bool, is_defined: bool) -> Option<bool> {
        let mut counted = self
            .numbers
            .as_ref()?
            .iter()
            .filter(|number| number.is_set || !implied)
            .peekable();
        let is_defined = is_defined || implied || counted.peek().is_some();
        Some(is_defined && counted.all(|number| self.attribute.relop.holds(wanted, number.left)))
    }

    /// Subtracts the amounts of a task with one slot. Returns false if the row has to be read anew.
    fn take(&mut self, item: &Item) -> bool {
        self.numbers.iter_mut().flatten().all(|number| {
            let takes = match number.shrinks {
                Reduction::Never => false,
                Reduction::ByCharge => item.is_charged,
                Reduction::ByRequest => true,
            };
            // Below zero a sum may have become INFINITY.
            let taken = if takes { item.taken } else { Amount::ZERO };
            let left = number
                .left
                .checked_sub(taken)
                .filter(|left| !takes || !left.is_negative());
            number.left = left.unwrap_or_default();
            left.is_some()
        })
    }
}
