//! What is left where one task after the other is placed: read once, and less by what each of them takes.

use super::demand::{Demand, Request, Value, Wanted};
use super::fit::Fit;
use super::offer::{Offer, Source};
use super::{Cluster, Site, Spot};
use crate::ledger::Charges;
use proto::amount::Amount;
use proto::complex::Attribute;
use proto::id::AttributeName;

/// What a queue instance and its host have left of the attributes that were asked for there.
///
/// Invariant: what is kept is what they offer, if nothing happened there but that tasks were planned of which [`Headroom::take`] was told.
#[derive(Clone, Debug, Default)]
pub struct Headroom(Vec<Row>);

/// What is left of one attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    attribute: AttributeName,
    /// One for each offer; none if an offer is no number, or more than what tasks take changes it.
    numbers: Option<Vec<Number>>,
}

/// What is left of one offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Number {
    left: Amount,
    shrinks: Shrinks,
    /// Whether it limits also jobs that do not ask for the attribute themselves.
    is_set: bool,
}

/// What a task takes of an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shrinks {
    /// Nothing.
    Never,
    /// What it is charged.
    ByCharge,
    /// What it is charged, or if that is nothing, what it asks for: the load does not show it yet.
    ByRequest,
}

impl Cluster<'_> {
    /// Whether one slot of a job without parallel environment fits in a queue instance, given what fits globally: as
    /// [`Cluster::fit_level`] and [`Cluster::fit_instance`] say of what is there now.
    pub fn fits_in(&self, headroom: &mut Headroom, above: &Fit, site: &Site<'_, '_>, demand: &Demand) -> bool {
        let spots = [&site.host.spot, &site.spot];
        let is_forced = |spot: &Spot<'_, '_>| demand.not_asked.iter().any(|attribute| spot.value(attribute).is_some());
        let is_shut = |spot: &&Spot<'_, '_>| self.denied(spot, demand).is_some() || is_forced(spot);
        let mut requests = demand.hard.iter().enumerate();
        above.holds(1)
            && !spots.iter().any(is_shut)
            && demand.unknown.is_empty()
            && requests.all(|(index, request)| {
                match headroom.serves(self, spots, (index, request), above.defines(index)) {
                    Some(serves) => serves,
                    None => self.serves_at(spots, index, request, above),
                }
            })
    }

    /// What is left of an attribute at these levels.
    fn numbers(&self, spots: [&Spot<'_, '_>; 2], attribute: &Attribute) -> Option<Vec<Number>> {
        if attribute.is_exclusive() || self.is_adjusted(attribute) {
            return None;
        }
        let mut numbers = Vec::new();
        for spot in spots {
            for offer in self.offers(spot, attribute) {
                numbers.push(self.number(spot, attribute, &offer)?);
            }
        }
        Some(numbers)
    }

    fn number(&self, spot: &Spot<'_, '_>, attribute: &Attribute, offer: &Offer) -> Option<Number> {
        let Some(Value::Amount(left)) = offer.value else { return None };
        let shrinks = match offer.source {
            Source::Consumable => Shrinks::ByCharge,
            Source::Load | Source::CorrectedLoad if self.is_subtracted_now(spot, attribute) => Shrinks::ByRequest,
            Source::Load | Source::CorrectedLoad | Source::Fixed => Shrinks::Never,
        };
        let is_set = offer.capacity.is_some() || spot.value(&attribute.name).is_some();
        Some(Number { left, shrinks, is_set })
    }
}

impl Headroom {
    /// Nothing is known any more.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// One slot was planned for a task that is charged this.
    pub fn take(&mut self, charges: &Charges) {
        self.0.retain_mut(|row| row.take(charges));
    }

    /// Whether enough is left for a request, which has a number among all of its job; none if numbers do not tell. `is_defined` if a
    /// level above defines its attribute.
    fn serves(
        &mut self,
        cluster: &Cluster<'_>,
        spots: [&Spot<'_, '_>; 2],
        (index, request): (usize, &Request),
        is_defined: bool,
    ) -> Option<bool> {
        let Wanted::Amount(wanted) = request.wanted else { return None };
        let Attribute { name, relop, .. } = request.attribute.as_ref();
        // Many jobs ask for the same, in the same order.
        let is_there = self.0.get(index).is_some_and(|row| row.attribute == *name);
        let at = if is_there { index } else { self.find(cluster, spots, &request.attribute) };
        let numbers = self.0[at].numbers.as_ref()?.iter();
        let mut counted = numbers.filter(|number| number.is_set || !request.implied).peekable();
        let is_defined = is_defined || request.implied || counted.peek().is_some();
        Some(is_defined && counted.all(|number| relop.holds(wanted, number.left)))
    }

    /// The row of an attribute.
    fn find(&mut self, cluster: &Cluster<'_>, spots: [&Spot<'_, '_>; 2], attribute: &Attribute) -> usize {
        let known = self.0.iter().position(|row| row.attribute == attribute.name);
        known.unwrap_or_else(|| {
            let numbers = cluster.numbers(spots, attribute);
            self.0.push(Row { attribute: attribute.name.clone(), numbers });
            self.0.len() - 1
        })
    }
}

impl Row {
    /// Subtracts what a task takes with one slot; false if what is left then is to be read anew.
    fn take(&mut self, charges: &Charges) -> bool {
        self.numbers.iter_mut().flatten().all(|number| {
            let taken = match number.shrinks {
                Shrinks::Never => return true,
                Shrinks::ByCharge => charges.of_one_slot(&self.attribute),
                Shrinks::ByRequest => charges.asked_for_one_slot(&self.attribute),
            };
            // Below zero a sum may have become INFINITY.
            let left = number.left.checked_sub(taken).filter(|left| !left.is_negative());
            number.left = left.unwrap_or_default();
            left.is_some()
        })
    }
}
