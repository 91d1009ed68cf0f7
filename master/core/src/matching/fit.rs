//! How many slots of a job fit at a level, and why not more.

use super::demand::{Demand, Request, WantedValue};
use super::offer::Offer;
use super::{Cluster, InstanceView, LevelView, Mode};
use crate::config::pattern::is_host;
use crate::ledger::{Level, LevelRef};
use crate::reason::Value;
use crate::reason::{Obstacle, Reason, Shortage};
use proto::amount::{Amount, Type};
use proto::complex::{Attribute, Consumable, Relop};
use proto::id::AttributeName;

/// The role of slots at a level: whether the master is among them, where JOB consumables are
/// charged, and what the others count as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotRole {
    /// The master, and perhaps others.
    Master,
    /// Others only.
    Slave,
    /// The master, and perhaps others that are spared what only slaves request
    /// (`ign_sreq_on_mhost`).
    MasterWithCompanions,
    /// Only others that are spared so.
    Companion,
}

impl SlotRole {
    /// Whether the master is among them.
    pub fn has_master(self) -> bool {
        matches!(self, SlotRole::Master | SlotRole::MasterWithCompanions)
    }

    /// Whether requests of slaves apply to slots other than the master's.
    pub fn has_slaves(self) -> bool {
        matches!(self, SlotRole::Master | SlotRole::Slave)
    }
}

/// How many slots of a job fit at a level and those above it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fit {
    /// The most slots that fit. Every smaller number fits too.
    pub slots: u32,
    /// Why fewer fit than were asked about, if reasons are wanted. Empty if so many fit.
    pub reasons: Vec<Reason>,
    /// Which hard requests are defined at one of the levels.
    defined: Marks,
}

/// A set of the numbers of hard requests, counted from 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Marks {
    /// The first 64, which are all of most rows.
    first: u64,
    rest: Vec<bool>,
}

impl Marks {
    fn set(&mut self, index: usize) {
        let Some(later) = index.checked_sub(64) else {
            return self.first |= 1 << index;
        };
        if later >= self.rest.len() {
            self.rest.resize(later + 1, false);
        }
        self.rest[later] = true;
    }

    fn contains(&self, index: usize) -> bool {
        let later = |index: usize| self.rest.get(index).is_some_and(|is_meant| *is_meant);
        index.checked_sub(64).map_or(self.first >> (index & 63) & 1 == 1, later)
    }
}

impl Fit {
    /// The fit before any level was looked at: everything fits.
    pub fn anywhere() -> Fit {
        Fit {
            slots: u32::MAX,
            reasons: Vec::new(),
            defined: Marks::default(),
        }
    }

    /// The fit as if every number of slots did fit.
    pub fn unlimited(&self) -> Fit {
        Fit {
            slots: u32::MAX,
            reasons: Vec::new(),
            defined: self.defined.clone(),
        }
    }

    /// Whether so many slots fit.
    pub fn holds(&self, slots: u32) -> bool {
        self.slots >= slots
    }

    /// Whether a level that was looked at defines the attribute of a hard request, by its number.
    pub(super) fn defines(&self, index: usize) -> bool {
        self.defined.contains(index)
    }

    /// Notes that a level defines the attribute of a hard request, by its number.
    pub(super) fn define(&mut self, index: usize) {
        self.defined.set(index);
    }

    /// Limits the slots at a level, with a reason if these are too few.
    pub(super) fn limit(
        &mut self,
        cluster: &Cluster<'_>,
        level: LevelRef<'_>,
        most: u32,
        slots: u32,
        why: impl FnOnce() -> Option<Obstacle>,
    ) {
        self.slots = self.slots.min(most);
        if most < slots && cluster.explains {
            self.reasons
                .extend(why().map(|what| Reason::new(level.to_level(), what)));
        }
    }

    fn deny(&mut self, cluster: &Cluster<'_>, level: LevelRef<'_>, what: impl FnOnce() -> Obstacle) {
        self.slots = 0;
        if cluster.explains {
            self.reasons.push(Reason::new(level.to_level(), what()));
        }
    }
}

impl Cluster<'_> {
    /// The fit at a level, given the fit above it. `slots` is the wanted number: reasons say why
    /// fewer fit.
    ///
    /// All shortages of a level are reported, but nothing after a level above has failed.
    pub fn fit_level(&self, above: Fit, view: &LevelView<'_, '_>, demand: &Demand, slots: u32, role: SlotRole) -> Fit {
        let mut fit = above;
        if !fit.holds(slots) {
            return fit;
        }
        if let Some(what) = self.denied(view, demand) {
            fit.deny(self, view.level, || what);
            return fit;
        }
        if view.is_bare() {
            return fit;
        }
        for attribute in demand
            .not_asked
            .iter()
            .filter(|attribute| view.value(*attribute).is_some())
        {
            fit.deny(self, view.level, || Obstacle::Forced {
                attribute: attribute.clone(),
            });
        }
        for (index, request) in demand.hard.iter().enumerate() {
            if !self.explains && !fit.holds(slots) {
                break;
            }
            self.fit_request(&mut fit, index, view, request, slots, role);
        }
        for (index, apart) in demand.apart.iter().enumerate() {
            self.fit_apart(&mut fit, demand.hard.len() + index, view, apart, slots, role);
        }
        fit
    }

    /// The fit in a queue instance, given the fit on its host and above: queue lists, kinds of
    /// jobs, and attributes that no level defines are judged too.
    pub fn fit_instance(
        &self,
        above: Fit,
        site: &InstanceView<'_, '_>,
        demand: &Demand,
        slots: u32,
        role: SlotRole,
    ) -> Fit {
        let mut fit = self.fit_level(above, &site.view, demand, slots, role);
        if !fit.holds(slots) {
            return fit;
        }
        if let Some(name) = demand.unknown.first() {
            fit.deny(self, site.view.level, || Obstacle::UnknownResource {
                attribute: name.clone(),
            });
            return fit;
        }
        let undefined = demand.hard.iter().enumerate().find(|(index, request)| {
            let is_of_master = request.attribute.consumable == Consumable::Job && !role.has_master();
            !request.implied && !is_of_master && !fit.defines(*index) && !self.may_be_load(&request.attribute.name)
        });
        if let Some(attribute) = undefined.map(|(_, request)| request.attribute.name.to_string()) {
            fit.deny(self, site.view.level, || Obstacle::UnknownResource { attribute });
        }
        if !demand.apart.is_empty() {
            let (most, what) = self.most_defined(&fit, demand, role);
            fit.limit(self, site.view.level, most, slots, || what);
        }
        fit
    }

    /// Whether a host and a queue instance there have enough for one slot of a job, for one of its
    /// requests.
    pub(super) fn serves_at(
        &self,
        views: [&LevelView<'_, '_>; 2],
        index: usize,
        request: &Request,
        above: &Fit,
    ) -> bool {
        let mut fit = above.clone();
        views
            .into_iter()
            .for_each(|view| self.fit_request(&mut fit, index, view, request, 1, SlotRole::Master));
        fit.holds(1) && (request.implied || fit.defines(index))
    }

    /// The most hosts over which a job may be spread: HOST consumables are charged globally for
    /// each of them.
    pub fn hosts_at_most(&self, demand: &Demand) -> u32 {
        let most = self
            .charged_each_host(demand)
            .map(|(request, offer)| hosts(request, &offer));
        most.min().unwrap_or(u32::MAX)
    }

    /// Global shortages of a job on so many hosts.
    pub fn missing_for_hosts(&self, demand: &Demand, count: u32) -> Vec<Reason> {
        let short = self
            .charged_each_host(demand)
            .filter(|(request, offer)| hosts(request, offer) < count);
        let shortage = |(request, offer): (&Request, Offer)| {
            let WantedValue::Amount(amount) = request.wanted else {
                return None;
            };
            Some(Obstacle::Offers(Shortage {
                attribute: request.attribute.name.clone(),
                r#type: request.attribute.r#type,
                dominance: offer.dominance(LevelRef::Global.letter()),
                needed: Value::Amount(amount.times(count)),
                free: offer.value?,
                capacity: offer.capacity,
            }))
        };
        short
            .filter_map(shortage)
            .map(|what| Reason::new(Level::Global, what))
            .collect()
    }

    /// The requests of kind HOST that a capacity of the cluster limits.
    fn charged_each_host<'a>(&'a self, demand: &'a Demand) -> impl Iterator<Item = (&'a Request, Offer)> {
        let view = self.global();
        let is_meant = |attribute: &Attribute| attribute.consumable == Consumable::Host && !attribute.is_exclusive();
        let requests = demand.hard.iter().filter(move |request| is_meant(&request.attribute));
        let offers = requests.flat_map(move |request| {
            self.offers(&view, &request.attribute)
                .map(move |offer| (request, offer))
        });
        let offers = offers.chain(self.charged_each_slave_host(&demand.apart));
        offers.filter(|(_, offer)| offer.capacity.is_some())
    }

    /// Whether an attribute that is not defined may be a load value: these come and go, and an
    /// order does not fail because a host did not report one at the moment.
    pub(super) fn may_be_load(&self, attribute: &AttributeName) -> bool {
        matches!(self.mode, Mode::Order | Mode::Later) && self.observations.is_reported(attribute)
    }

    fn fit_request(
        &self,
        fit: &mut Fit,
        index: usize,
        view: &LevelView<'_, '_>,
        request: &Request,
        slots: u32,
        role: SlotRole,
    ) {
        if request.attribute.is_exclusive() {
            if self.has_exclusive(view, &request.attribute) {
                fit.defined.set(index);
                if let Some(what) = self.excluded(view, request, role) {
                    fit.deny(self, view.level, || what);
                }
            }
            return;
        }
        let mut count = |offer: Offer| {
            // An implied request asks only where a capacity is set.
            if request.implied && offer.capacity.is_none() && view.value(&request.attribute.name).is_none() {
                return;
            }
            fit.defined.set(index);
            let room = room(request, &offer, role);
            fit.slots = fit.slots.min(room);
            if room < slots && self.explains {
                let what = shortage(view.level, request, &offer, slots, role);
                fit.reasons
                    .extend(what.map(|what| Reason::new(view.level.to_level(), what)));
            }
        };
        let (first, second) = self.two_offers(view, &request.attribute);
        first.into_iter().for_each(&mut count);
        second.into_iter().for_each(count);
    }
}

/// How many slots an offer serves.
pub(super) fn room(request: &Request, offer: &Offer, role: SlotRole) -> u32 {
    let attribute = &request.attribute;
    let (wanted, offered) = match (&request.wanted, &offer.value) {
        (_, None) => return u32::MAX,
        (WantedValue::Text(expression), Some(Value::Text(offered))) => {
            let negated = attribute.relop == Relop::NotEqual;
            let matches = if attribute.r#type == Type::Host {
                is_host(expression, offered)
            } else {
                expression.matches(offered, attribute.r#type)
            };
            return all_or_none(matches != negated);
        }
        (WantedValue::Text(_), Some(Value::Amount(_))) | (WantedValue::Amount(_), Some(Value::Text(_))) => return 0,
        (WantedValue::Amount(wanted), Some(Value::Amount(offered))) => (*wanted, *offered),
    };
    match charge(request, offer, role) {
        Charge::Nothing => u32::MAX,
        Charge::Once => all_or_none(attribute.relop.holds(wanted, offered)),
        Charge::EachSlot => times(attribute.relop, wanted, offered),
    }
}

/// How a request counts against an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Charge {
    /// It does not count.
    Nothing,
    /// Once for all slots.
    Once,
    /// Once for each slot.
    EachSlot,
}

/// How a request counts.
pub(super) fn charge(request: &Request, offer: &Offer, role: SlotRole) -> Charge {
    match (request.attribute.consumable, offer.capacity.is_some()) {
        (Consumable::Job, true) if !role.has_master() => Charge::Nothing,
        (Consumable::Job | Consumable::Host, true) => Charge::Once,
        (Consumable::Yes | Consumable::No, true) => Charge::EachSlot,
        (_, false) if offer.shared => Charge::EachSlot,
        (_, false) => Charge::Once,
    }
}

/// For how many hosts a request that counts per host is served.
fn hosts(request: &Request, offer: &Offer) -> u32 {
    match (&request.wanted, &offer.value) {
        (WantedValue::Amount(wanted), Some(Value::Amount(offered))) => {
            times(request.attribute.relop, *wanted, *offered)
        }
        (WantedValue::Amount(_) | WantedValue::Text(_), Some(Value::Amount(_) | Value::Text(_)) | None) => u32::MAX,
    }
}

/// For how many slots a request that counts per slot is served.
fn times(relop: Relop, wanted: Amount, offered: Amount) -> u32 {
    match relop {
        Relop::Less | Relop::LessEqual => {
            let fits = |slots: u32| relop.holds(wanted.times(slots), offered);
            let Some((wanted, offered)) = wanted.finite().zip(offered.finite()) else {
                return all_or_none(fits(1));
            };
            if wanted <= 0 || !fits(1) {
                return all_or_none(fits(1));
            }
            let most = u32::try_from(offered / wanted).unwrap_or(u32::MAX);
            if fits(most) { most } else { most - 1 }
        }
        // With these operators more slots ask for more: a value that serves one slot serves all.
        Relop::Greater | Relop::GreaterEqual | Relop::Equal | Relop::NotEqual | Relop::Exclusive => {
            all_or_none(relop.holds(wanted, offered))
        }
    }
}

fn all_or_none(fits: bool) -> u32 {
    if fits { u32::MAX } else { 0 }
}

/// The shortage with its numbers. `None` if the offer is not known.
pub(super) fn shortage(
    level: LevelRef<'_>,
    request: &Request,
    offer: &Offer,
    slots: u32,
    role: SlotRole,
) -> Option<Obstacle> {
    let needed = match (&request.wanted, charge(request, offer, role)) {
        (WantedValue::Amount(amount), Charge::EachSlot) => Value::Amount(amount.times(slots)),
        (wanted, _) => wanted.value(),
    };
    Some(Obstacle::Offers(Shortage {
        attribute: request.attribute.name.clone(),
        r#type: request.attribute.r#type,
        dominance: offer.dominance(level.letter()),
        needed,
        free: offer.value.clone()?,
        capacity: offer.capacity,
    }))
}

/// Whether an offer serves one slot.
pub(super) fn serves(request: &Request, offer: &Offer) -> bool {
    room(request, offer, SlotRole::Master) > 0
}
