//! The assign phase: slots for a job, on one queue instance or spread over hosts by the rule of a
//! parallel environment (ALGORITHMS.md section 9).
//!
//! The filter and the ranking decide before which instances are tried, and in which order.

mod enough;
mod hosts;
mod quotas;
mod scarcity;
mod spread;
mod supply;

use crate::ledger::Level;
use crate::matching::quota::QuotaBudget;
use crate::matching::{Cluster, Demand, Fit, Headroom, InstanceView, SlotRole, may_use_pe};
use crate::reason::{Obstacle, Reason};
use enough::SpreadCutoff;
pub use hosts::{HostRoom, portion, room_on, usable};
use hosts::{HostSearch, Rooms, roomiest};
use proto::amount::Type;
use proto::id::{HostName, PeName, QueueInstanceName};
use proto::job::GrantedSlots;
use proto::pe::ParallelEnvironment;
use proto::restring::Expression;
use scarcity::Scarcity;
use spread::{SlotMaximum, spread};
use std::cmp::Reverse;
use std::collections::BTreeSet;
pub use supply::{Supply, WholeSupply};

/// Slots for one task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The slots; the first entry holds the master.
    pub granted: Vec<GrantedSlots>,
    /// The parallel environment, if any.
    pub pe: Option<PeName>,
}

/// How much of a job fits at the level of the cluster, for the least number of slots that it
/// accepts.
pub fn fit_globally(cluster: &Cluster<'_>, demand: &Demand) -> Fit {
    let slots = demand.least();
    if demand.pe.is_none() && cluster.config.enabled_quotas().next().is_some() {
        // For a parallel job the environment counts too, and it is not chosen yet.
        let mut budget = QuotaBudget::new(cluster, demand, None);
        if budget.most_anywhere(1) < 1 {
            let mut fit = Fit::anywhere();
            (fit.slots, fit.reasons) = (0, budget.into_denials());
            return fit;
        }
    }
    // Some environments spare slots beside the master what only slaves request; which environment
    // it will be is not known yet.
    let role = if demand.is_apart() {
        SlotRole::MasterWithCompanions
    } else {
        SlotRole::Master
    };
    cluster.fit_level(Fit::anywhere(), &cluster.global(), demand, slots, role)
}

/// One slot in a queue instance for a job without a parallel environment.
///
/// # Errors
/// With everything that is missing at the first level that fails.
pub fn assign_serial(
    cluster: &Cluster<'_>,
    demand: &Demand,
    globally: &Fit,
    site: &InstanceView<'_, '_>,
) -> Result<Assignment, Vec<Reason>> {
    admit(cluster, demand, site)?;
    let fit = fit_serial(cluster, demand, globally, site);
    if fit.holds(1) {
        Ok(one_slot(site.instance))
    } else {
        Err(fit.reasons)
    }
}

/// One slot in a queue instance that is being filled, whose free amounts are known.
///
/// # Errors
/// With what keeps the job away. Shortages of its levels are not reported.
pub fn assign_filling(
    cluster: &Cluster<'_>,
    demand: &Demand,
    globally: &Fit,
    site: &InstanceView<'_, '_>,
    headroom: &mut Headroom,
) -> Result<Assignment, Vec<Reason>> {
    admit(cluster, demand, site)?;
    let fits = cluster.fits_in(headroom, globally, site, demand);
    debug_assert_eq!(
        fits,
        fit_serial(cluster, demand, globally, site).holds(1),
        "{headroom:?}"
    );
    if fits {
        Ok(one_slot(site.instance))
    } else {
        Err(Vec::new())
    }
}

/// Whether a queue instance takes jobs of a kind, and quotas leave a slot there.
fn admit(cluster: &Cluster<'_>, demand: &Demand, site: &InstanceView<'_, '_>) -> Result<(), Vec<Reason>> {
    if let Some(what) = cluster
        .unsuitable(site, demand, None)
        .or_else(|| cluster.out_of_service(site))
    {
        return Err(vec![Reason::new(site.view.level.to_level(), what)]);
    }
    match cluster.config.enabled_quotas().next() {
        Some(_) => QuotaBudget::new(cluster, demand, None).take_all(&one_slot(site.instance).granted, 0),
        None => Ok(()),
    }
}

fn fit_serial(cluster: &Cluster<'_>, demand: &Demand, globally: &Fit, site: &InstanceView<'_, '_>) -> Fit {
    let on_host = cluster.fit_level(globally.clone(), &site.host.view, demand, 1, SlotRole::Master);
    cluster.fit_instance(on_host, site, demand, 1, SlotRole::Master)
}

/// One slot in a queue instance.
pub fn one_slot(instance: &QueueInstanceName) -> Assignment {
    Assignment {
        granted: vec![GrantedSlots {
            instance: instance.clone(),
            slots: 1,
        }],
        pe: None,
    }
}

/// Slots for a parallel job in the environment that gives it most. Among equals, in the one that
/// leaves fewest soft requests unmet, counted per slot; then in the first by name.
///
/// `order` holds the queue instances to be tried, best first.
///
/// # Errors
/// With what each environment or instance is short of.
pub fn assign_parallel(
    cluster: &Cluster<'_>,
    demand: &Demand,
    globally: &Fit,
    order: &[QueueInstanceName],
) -> Result<Assignment, Vec<Reason>> {
    let order: Vec<InstanceView<'_, '_>> = order.iter().map(|instance| cluster.site(instance)).collect();
    try_parallel(cluster, demand, globally, &mut WholeSupply::new(&order))
        .found
        .map_err(|failure| failure.reasons)
}

/// The result of a search for the slots of a parallel job.
pub struct SlotSearchResult {
    /// The slots, or why there are none.
    pub found: Result<Assignment, Failure>,
    /// Hosts that have too few slots for it in any environment: they need not be looked at again
    /// before something changes there.
    pub roomless: BTreeSet<HostName>,
}

/// Why a parallel job has no slots.
#[derive(Default)]
pub struct Failure {
    /// What each environment or instance is short of.
    pub reasons: Vec<Reason>,
    /// For each environment, what limits the slots on the host that has most, for answers to why it
    /// waits.
    pub no_more: Vec<Reason>,
}

/// Does what [`assign_parallel`] does, and looks queue instances up only as far as they are needed.
pub fn try_parallel<'a, 'l>(
    cluster: &Cluster<'a>,
    demand: &Demand,
    globally: &Fit,
    supply: &mut impl Supply<'a, 'l>,
) -> SlotSearchResult {
    let mut roomless: Option<BTreeSet<HostName>> = None;
    let mut failure = Failure::default();
    let mut best: Option<((u32, Reverse<u64>), Assignment)> = None;
    let mut found = false;
    let Some(wanted) = &demand.pe else {
        return SlotSearchResult {
            found: Err(failure),
            roomless: BTreeSet::new(),
        };
    };
    for pe in environments(cluster, &wanted.name) {
        found = true;
        if !may_use_pe(pe, demand) {
            failure.reasons.extend(no_access(pe, wanted.slots.least()));
            continue;
        }
        // No other environment could give more.
        let is_best = |worth: &(u32, Reverse<u64>)| *worth == (wanted.slots.largest(), Reverse(0));
        if supply.is_short() && best.as_ref().is_some_and(|(worth, _)| is_best(worth)) {
            roomless = None;
            break;
        }
        let mut without = BTreeSet::new();
        let assigned = assign_in(cluster, demand, globally, supply, pe, &mut without);
        roomless = Some(roomless.map_or_else(|| without.clone(), |known| &known & &without));
        match assigned {
            Ok(granted) => {
                let slots = granted.iter().map(|granted| granted.slots).sum();
                let worth = (slots, Reverse(violations(cluster, demand, &granted)));
                let pe = Some(pe.name.clone());
                if best.as_ref().is_none_or(|(most, _)| worth > *most) {
                    best = Some((worth, Assignment { granted, pe }));
                }
            }
            Err((why, scarce)) => {
                failure.reasons.extend(why);
                failure.no_more.extend(scarce);
            }
        }
    }
    if !found {
        let pe = wanted.name.clone();
        let unknown = Reason::new(Level::Global, Obstacle::NoSuchPe { pe });
        failure.reasons.push(unknown);
    }
    let found = best.map(|(_, assignment)| assignment).ok_or(failure);
    SlotSearchResult {
        found,
        roomless: roomless.unwrap_or_default(),
    }
}

/// The reasons of a job whose owner has no access to an environment: it offers no slots.
fn no_access(pe: &ParallelEnvironment, needed: u32) -> [Reason; 2] {
    let none = Obstacle::PeOffers {
        pe: pe.name.clone(),
        slots: 0,
        needed,
        of: None,
    };
    let denied = Obstacle::NoPeAccess { pe: pe.name.clone() };
    [denied, none].map(|what| Reason::new(Level::Global, what))
}

fn violations(cluster: &Cluster<'_>, demand: &Demand, granted: &[GrantedSlots]) -> u64 {
    let open =
        |granted: &GrantedSlots| u64::from(cluster.violations(&granted.instance, demand)) * u64::from(granted.slots);
    granted.iter().map(open).sum()
}

/// The parallel environments that a name or pattern means.
pub fn environments<'a>(cluster: &Cluster<'a>, name: &str) -> impl Iterator<Item = &'a ParallelEnvironment> {
    let pattern = Expression::parse(name).ok();
    let all = cluster.config.pes.values().map(AsRef::as_ref);
    all.filter(move |pe: &&ParallelEnvironment| {
        pattern
            .as_ref()
            .is_some_and(|pattern| pattern.matches(pe.name.as_str(), Type::String))
    })
}

/// The slots of a job in one environment; else the reasons, and what limits the host that has most.
fn assign_in<'a, 'l>(
    cluster: &Cluster<'a>,
    demand: &Demand,
    globally: &Fit,
    supply: &mut impl Supply<'a, 'l>,
    pe: &ParallelEnvironment,
    roomless: &mut BTreeSet<HostName>,
) -> Result<Vec<GrantedSlots>, (Vec<Reason>, Vec<Reason>)> {
    let limits = ParallelLimits::new(cluster, demand, globally, pe).map_err(|why| (why, Vec::new()))?;
    let mut enough = if supply.is_short() {
        limits.enough(cluster, demand, pe)
    } else {
        None
    };
    let (look, mut rooms) = (
        HostSearch {
            cluster,
            demand,
            globally,
            pe,
        },
        Rooms::default(),
    );
    rooms.look(
        &look,
        supply,
        |room| enough.as_mut().is_some_and(|enough| enough.add(room)),
        roomless,
    );
    // Quotas may leave less than the hosts have.
    while !rooms.are_all && !limits.leave_enough(demand, pe, &rooms.hosts) {
        let mut more = rooms.hosts.len();
        let is_last = |_: &HostRoom| {
            more -= 1;
            more == 0
        };
        rooms.look(&look, supply, is_last, roomless);
    }
    let hosts = std::mem::take(&mut rooms.hosts);
    let known = if cluster.explains { hosts.clone() } else { Vec::new() };
    lay_out(cluster, demand, pe, limits, hosts).map_err(|why| {
        let reasons = rooms.into_reasons().into_iter().chain(why).collect();
        (
            reasons,
            Scarcity {
                cluster,
                demand,
                globally,
                pe,
            }
            .no_more(&known),
        )
    })
}

/// The most that a parallel job may have, wherever it runs.
pub struct ParallelLimits<'a> {
    budget: QuotaBudget<'a>,
    most: u32,
    /// The slot of a master that is no task of the environment.
    extra: u32,
    /// The most slots on other hosts than the master's.
    most_elsewhere: u32,
}

impl<'a> ParallelLimits<'a> {
    /// The limits of the cluster, the quotas and the environment.
    ///
    /// # Errors
    /// With what is missing, if they are below the least that the job accepts.
    pub fn new(
        cluster: &'a Cluster<'a>,
        demand: &'a Demand,
        globally: &Fit,
        pe: &'a ParallelEnvironment,
    ) -> Result<ParallelLimits<'a>, Vec<Reason>> {
        let least = demand.least();
        let view = cluster.global();
        let as_role = |role| cluster.fit_level(Fit::anywhere(), &view, demand, least, role);
        let (of_pe, most_elsewhere) = match demand.roles(Some(pe)) {
            (SlotRole::Master, _) if demand.is_apart() => (Some(as_role(SlotRole::Master)), u32::MAX),
            (SlotRole::MasterWithCompanions, _) => (None, as_role(SlotRole::Master).slots.saturating_sub(1)),
            (SlotRole::Master | SlotRole::Slave | SlotRole::Companion, _) => (None, u32::MAX),
        };
        let globally = of_pe.as_ref().unwrap_or(globally);
        if !globally.holds(least) {
            return Err(globally.reasons.clone());
        }
        let left = pe.slots.saturating_sub(cluster.pe_slots_taken(&pe.name));
        let extra = u32::from(!pe.job_is_first_task.0);
        let most = left.min(globally.slots).saturating_sub(extra);
        let mut budget = QuotaBudget::new(cluster, demand, Some(&pe.name));
        let within = budget.most_anywhere(least.saturating_add(extra)).saturating_sub(extra);
        if within < least {
            let what = Obstacle::PeOffers {
                pe: pe.name.clone(),
                slots: within.min(most),
                needed: least,
                of: None,
            };
            let offers = Reason::new(Level::Global, what);
            return Err(budget.into_denials().into_iter().chain([offers]).collect());
        }
        Ok(ParallelLimits {
            budget,
            most,
            extra,
            most_elsewhere,
        })
    }

    /// When the first hosts are enough, apart from quotas. `None` if all hosts count.
    fn enough(&self, cluster: &Cluster<'_>, demand: &Demand, pe: &ParallelEnvironment) -> Option<SpreadCutoff> {
        let wanted = demand
            .pe
            .as_ref()
            .filter(|_| cluster.hosts_at_most(demand) == u32::MAX)?;
        SpreadCutoff::new(demand.allocation_rule(pe), &wanted.slots, self.most())
    }

    /// Whether the quotas leave so much on these hosts that further hosts change nothing.
    fn leave_enough(&self, demand: &Demand, pe: &ParallelEnvironment, hosts: &[HostRoom]) -> bool {
        demand.pe.as_ref().is_none_or(|wanted| {
            quotas::leave_enough(
                &self.budget,
                demand.allocation_rule(pe),
                &wanted.slots,
                self.most(),
                self.extra,
                hosts,
            )
        })
    }

    fn most(&self) -> SlotMaximum {
        SlotMaximum {
            in_all: self.most,
            elsewhere: self.most_elsewhere,
        }
    }
}

/// The slots of a parallel job on hosts with room, as its environment spreads them.
///
/// # Errors
/// With what is missing.
pub fn lay_out(
    cluster: &Cluster<'_>,
    demand: &Demand,
    pe: &ParallelEnvironment,
    limits: ParallelLimits<'_>,
    hosts: Vec<HostRoom>,
) -> Result<Vec<GrantedSlots>, Vec<Reason>> {
    let Some(wanted) = &demand.pe else {
        return Err(Vec::new());
    };
    let most = limits.most();
    let ParallelLimits { mut budget, extra, .. } = limits;
    let most_hosts = cluster.hosts_at_most(demand);
    let rule = demand.allocation_rule(pe);
    let few = roomiest(hosts, rule, most_hosts);
    let few = quotas::within(&mut budget, rule, &wanted.slots, most, (extra, demand.is_apart()), few);
    spread(rule, &wanted.slots, most, &few).map_err(|slots| {
        let mut reasons = budget.into_denials();
        reasons.extend(cluster.missing_for_hosts(demand, most_hosts.saturating_add(1)));
        let needed = wanted.slots.least();
        let is_full = cluster
            .pe_slots_taken(&pe.name)
            .saturating_add(needed)
            .saturating_add(extra)
            > pe.slots;
        let what = Obstacle::PeOffers {
            pe: pe.name.clone(),
            slots,
            needed,
            of: is_full.then_some(pe.slots),
        };
        reasons.push(Reason::new(Level::Global, what));
        reasons
    })
}
