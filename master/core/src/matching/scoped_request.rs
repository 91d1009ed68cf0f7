//! Separate requests of the master of a parallel job and of its other slots (`-scope`).

use crate::ledger::default_apart;
use crate::matching::demand::{Request, WantedValue, implied, resolved};
use crate::matching::fit::{Charge, Fit, SlotRole, charge, room, shortage};
use crate::matching::offer::Offer;
use crate::matching::{Cluster, LevelView};
use crate::reason::Obstacle;
use crate::reason::Value;
use proto::amount::Amount;
use proto::complex::{Attribute, Complex, Consumable, Relop, Requestable};
use proto::job::Requests;
use std::sync::Arc;

/// An attribute for which the master and the other slots have different requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopedRequest {
    /// The attribute.
    pub attribute: Arc<Attribute>,
    /// The request of the master's slot, if any.
    pub master: Option<Request>,
    /// The request of each other slot, if any.
    pub slaves: Option<Request>,
}

impl ScopedRequest {
    /// The separate requests of a job, in the order given. Names of requests that cannot be read go
    /// into `unknown`.
    pub(super) fn all(complex: &Complex, requests: &Requests, unknown: &mut Vec<String>) -> Vec<ScopedRequest> {
        let mut all: Vec<ScopedRequest> = Vec::new();
        for (list, is_master) in [(&requests.master, true), (&requests.slaves, false)] {
            let (known, not_known) = resolved(complex, list);
            unknown.extend(not_known);
            for request in known {
                let at = all
                    .iter()
                    .position(|apart| apart.attribute.name == request.attribute.name);
                let at = at.unwrap_or_else(|| {
                    all.push(ScopedRequest {
                        attribute: request.attribute.clone(),
                        master: None,
                        slaves: None,
                    });
                    all.len() - 1
                });
                let side = if is_master {
                    &mut all[at].master
                } else {
                    &mut all[at].slaves
                };
                side.get_or_insert(request);
            }
        }
        for apart in &mut all {
            let default = Some(&apart.attribute).filter(|attribute| attribute.consumable.is_consumable());
            let default = default.and_then(|attribute| {
                let amount = attribute.default_amount();
                // A slot that does not ask to be alone is not where another job is alone.
                let counts = attribute.is_exclusive() || default_apart(attribute, amount).is_some();
                implied((attribute, amount)).filter(|_| counts)
            });
            apart.master = apart.master.take().or_else(|| default.clone());
            apart.slaves = apart.slaves.take().or(default);
        }
        all
    }

    /// The requests of the job itself, for the master and for the others.
    fn asked(&self) -> [Option<&Request>; 2] {
        [&self.master, &self.slaves].map(|side| side.as_ref().filter(|request| !request.implied))
    }
}

impl Cluster<'_> {
    /// What a level offers for separate requests, in the sense of [`Cluster::fit_level`]. `index`
    /// is the number of the attribute among all requests.
    pub(super) fn fit_apart(
        &self,
        fit: &mut Fit,
        index: usize,
        view: &LevelView<'_, '_>,
        apart: &ScopedRequest,
        slots: u32,
        role: SlotRole,
    ) {
        let attribute = &apart.attribute;
        let [of_master, of_slaves] = apart.asked();
        if attribute.requestable == Requestable::Forced && view.value(&attribute.name).is_some() {
            let is_short = [of_master.is_none(), of_slaves.is_none()];
            let what = || Obstacle::Forced {
                attribute: attribute.name.clone(),
            };
            fit.limit(self, view.level, role.most_without(is_short), slots, || Some(what()));
        }
        if attribute.is_exclusive() {
            if self.has_exclusive(view, attribute) {
                fit.define(index);
                self.fit_exclusive_apart(fit, view, apart, slots, role);
            }
            return;
        }
        for offer in self.offers(view, attribute) {
            // An implied request asks only where a capacity is set.
            let is_set = offer.capacity.is_some() || view.value(&attribute.name).is_some();
            fit.define(index);
            let master = apart
                .master
                .as_ref()
                .filter(|request| role.has_master() && (is_set || !request.implied));
            let slaves = apart
                .slaves
                .as_ref()
                .filter(|request| role.has_slaves() && (is_set || !request.implied));
            let left = master.and_then(|master| beside(master, &offer));
            let left = left.as_ref().unwrap_or(&offer);
            let most = if master.is_some_and(|master| room(master, &offer, role) == 0) {
                0
            } else {
                let others = slaves.map_or(u32::MAX, |slaves| room(slaves, left, SlotRole::Slave));
                others.saturating_add(u32::from(role.has_master()))
            };
            fit.limit(self, view.level, most, slots, || match (master, slaves) {
                (Some(master), _) if most == 0 => shortage(view.level, master, &offer, 1, role),
                (_, Some(slaves)) => {
                    let others = slots - u32::from(role.has_master());
                    shortage(view.level, slaves, left, others, SlotRole::Slave)
                }
                (_, None) => None,
            });
        }
    }

    /// What a level offers for separate requests to be alone there, as [`Cluster::fit_apart`].
    fn fit_exclusive_apart(
        &self,
        fit: &mut Fit,
        view: &LevelView<'_, '_>,
        apart: &ScopedRequest,
        slots: u32,
        role: SlotRole,
    ) {
        let mut why = [&apart.master, &apart.slaves].map(|side| {
            side.as_ref()
                .and_then(|request| self.excluded(view, request, SlotRole::Master))
        });
        let most = match role {
            // A companion does not ask to be alone, and is not where another job is alone.
            SlotRole::Companion => {
                let nothing = Request {
                    attribute: apart.attribute.clone(),
                    wanted: WantedValue::Amount(Amount::ZERO),
                    implied: true,
                };
                why = [None, self.excluded(view, &nothing, SlotRole::Slave)];
                if why[1].is_some() { 0 } else { u32::MAX }
            }
            SlotRole::Master | SlotRole::MasterWithCompanions | SlotRole::Slave => {
                role.most_without([why[0].is_some(), why[1].is_some()])
            }
        };
        let [master, slaves] = why;
        fit.limit(self, view.level, most, slots, || {
            master.filter(|_| role.has_master()).or(slaves)
        });
    }

    /// How many slots fit, as far as separately requested attributes are defined above a queue
    /// instance, and which is not.
    pub(super) fn most_defined(
        &self,
        fit: &Fit,
        demand: &crate::matching::Demand,
        role: SlotRole,
    ) -> (u32, Option<Obstacle>) {
        let first = demand.hard.len();
        let is_missing = |index: &usize, side: Option<&Request>| {
            side.is_some_and(|request| !fit.defines(first + index) && !self.may_be_load(&request.attribute.name))
        };
        let (mut most, mut what) = (u32::MAX, None);
        for (index, apart) in demand.apart.iter().enumerate() {
            let [master, slaves] = apart.asked().map(|side| is_missing(&index, side));
            let here = role.most_without([master, slaves]);
            if here < most {
                let attribute = apart.attribute.name.to_string();
                (most, what) = (here, Some(Obstacle::UnknownResource { attribute }));
            }
        }
        (most, what)
    }

    /// The separate HOST requests of slaves that a capacity of the cluster limits, each with what
    /// the cluster offers and the master leaves.
    pub(super) fn charged_each_slave_host<'a>(
        &'a self,
        apart: &'a [ScopedRequest],
    ) -> impl Iterator<Item = (&'a Request, Offer)> {
        let view = self.global();
        let requests = apart
            .iter()
            .filter(|apart| apart.attribute.consumable == Consumable::Host);
        let requests = requests.filter(|apart| !apart.attribute.is_exclusive());
        requests
            .filter_map(|apart| Some((apart.slaves.as_ref()?, apart.master.as_ref())))
            .flat_map(move |(request, master)| {
                let left = move |offer| master.and_then(|master| beside(master, &offer)).unwrap_or(offer);
                self.offers(&view, &request.attribute)
                    .map(move |offer| (request, left(offer)))
            })
    }
}

impl SlotRole {
    /// The most slots if the master, or each slot that counts as a slave, cannot be served.
    fn most_without(self, [master, slaves]: [bool; 2]) -> u32 {
        match self {
            SlotRole::Master | SlotRole::MasterWithCompanions if master => 0,
            SlotRole::Master if slaves => 1,
            SlotRole::Slave if slaves => 0,
            SlotRole::Master | SlotRole::MasterWithCompanions | SlotRole::Slave | SlotRole::Companion => u32::MAX,
        }
    }
}

/// What the master leaves of an offer. `None` if it leaves all of it.
fn beside(master: &Request, offer: &Offer) -> Option<Offer> {
    let Request {
        attribute,
        wanted: WantedValue::Amount(wanted),
        ..
    } = master
    else {
        return None;
    };
    let Some(Value::Amount(offered)) = offer.value else {
        return None;
    };
    let is_taken = match charge(master, offer, SlotRole::Master) {
        Charge::EachSlot => true,
        Charge::Once => offer.capacity.is_some(),
        Charge::Nothing => false,
    };
    // With these operators more slots ask for more, and nothing adds up.
    if !is_taken || !matches!(attribute.relop, Relop::Less | Relop::LessEqual) {
        return None;
    }
    let left = offered.checked_sub(*wanted).unwrap_or(Amount::from_base(i64::MIN));
    Some(Offer {
        value: Some(Value::Amount(left)),
        ..*offer
    })
}
