//! Whether an order of a scheduler may be believed (ARCHITECTURE.md "The scheduler on one page").

use crate::config::pattern::is_in_queue_list;
use crate::ledger::{Grant, Level};
use crate::matching::quota::QuotaBudget;
use crate::matching::{Cluster, Demand, Fit, Mode, SlotRole, may_use_pe};
use crate::observe::Observations;
use crate::reason::{Obstacle, Reason};
use crate::state::State;
use proto::amount::Type;
use proto::id::{HostName, PeName};
use proto::job::GrantedSlots;
use proto::pe::AllocationRule;
use proto::restring::Expression;
use proto::time::Now;
use std::collections::BTreeMap;

/// Whether a start that a scheduler wants is possible as the cluster is now: access, hard requests,
/// exclusivity, the ledger, and the rules of the parallel environment. Load, rank and soft requests
/// are never judged here.
///
/// [`eligible`](crate::state::eligible::eligible) decides whether the task may be started at all,
/// and the core whether its hosts are connected.
///
/// # Errors
/// With everything that stands against it.
pub fn check_grant(
    state: &State,
    observations: &Observations,
    demand: &Demand,
    grant: Grant<'_>,
    now: Now,
) -> Result<(), Vec<Reason>> {
    let (granted, pe) = (grant.slots, grant.pe);
    let cluster = Cluster {
        now: now.tick,
        ..Cluster::of_state(state, observations, Mode::Order).of_demand(state, demand)
    };
    let mut reasons = Vec::new();
    check_shape(&cluster, demand, granted, pe, &mut reasons);
    if reasons.is_empty() {
        check_instances(&cluster, demand, granted, pe, &mut reasons);
        check_amounts(&cluster, demand, granted, pe, &mut reasons);
    }
    if reasons.is_empty() { Ok(()) } else { Err(reasons) }
}

/// Checks the number of slots, that each instance is named once, and the parallel environment's
/// rules for both.
fn check_shape(
    cluster: &Cluster<'_>,
    demand: &Demand,
    granted: &[GrantedSlots],
    pe: Option<&PeName>,
    reasons: &mut Vec<Reason>,
) {
    let slots = granted.iter().map(|granted| granted.slots).fold(0, u32::saturating_add);
    let once: BTreeMap<_, _> = granted.iter().map(|granted| (&granted.instance, ())).collect();
    let own = pe
        .and_then(|pe| cluster.config.pes.get(pe))
        .map_or(1, |pe| demand.own_slots(pe));
    let is_used = |(index, granted): (usize, &GrantedSlots)| granted.slots > 0 || index == 0 && own == 0;
    let sound = once.len() == granted.len() && !granted.is_empty() && granted.iter().enumerate().all(is_used);
    let fits = sound
        && match (&demand.pe, pe) {
            (None, None) => slots == 1,
            (Some(wanted), Some(pe)) => {
                wanted.slots.contains(slots) && keeps_pe_rules(cluster, demand, &wanted.name, pe, granted)
            }
            (None, Some(_)) | (Some(_), None) => false,
        };
    if !fits {
        reasons.push(Reason::new(Level::Global, Obstacle::WrongSlots { slots }));
    }
}

fn keeps_pe_rules(
    cluster: &Cluster<'_>,
    demand: &Demand,
    wanted: &str,
    name: &PeName,
    granted: &[GrantedSlots],
) -> bool {
    let Some(pe) = cluster.config.pes.get(name) else {
        return false;
    };
    let meant = Expression::parse(wanted).is_ok_and(|pattern| pattern.matches(name.as_str(), Type::String));
    let slots: u32 = granted.iter().map(|granted| granted.slots).sum();
    let by_host = slots_by_host(granted, 0, SlotRole::Master);
    let placed = match demand.allocation_rule(pe) {
        AllocationRule::PeSlots => by_host.len() == 1,
        // A master without a slot of its own may be where no task is.
        AllocationRule::Fixed(each) => by_host.values().all(|(slots, _)| *slots == each || *slots == 0),
        AllocationRule::FillUp | AllocationRule::RoundRobin => true,
    };
    meant && may_use_pe(pe, demand) && placed && cluster.pe_slots_taken(name).saturating_add(slots) <= pe.slots
}

/// Checks each queue instance, whatever the amounts.
fn check_instances(
    cluster: &Cluster<'_>,
    demand: &Demand,
    granted: &[GrantedSlots],
    pe: Option<&PeName>,
    reasons: &mut Vec<Reason>,
) {
    let environment = pe.and_then(|pe| cluster.config.pes.get(pe)).map(AsRef::as_ref);
    let (_, beside_master) = demand.roles(environment);
    let extra = u32::from(environment.is_some_and(|pe| !pe.job_is_first_task.0));
    for (index, GrantedSlots { instance, slots }) in granted.iter().enumerate() {
        let level = Level::Instance(instance.clone());
        let site = cluster.site(instance);
        if site.view.settings.is_none() {
            reasons.push(Reason::new(level, Obstacle::NoInstances));
            continue;
        }
        let what = cluster
            .unsuitable(&site, demand, pe)
            .or_else(|| cluster.out_of_service(&site));
        reasons.extend(what.map(|what| Reason::new(level.clone(), what)));
        if index == 0 && pe.is_some() && !is_in_queue_list(cluster.config, &demand.master_queues, instance) {
            reasons.push(Reason::new(level.clone(), Obstacle::NotInMasterQueues));
        }
        let is_beside_master = granted
            .first()
            .is_some_and(|master| master.instance.host == instance.host);
        let holds_others = index > 0 || slots + extra > 1;
        let is_spared = is_beside_master && beside_master == SlotRole::Companion;
        if holds_others && !is_spared && !cluster.takes_slaves(instance, demand) {
            reasons.push(Reason::new(level, Obstacle::NotInSlaveQueues));
        }
    }
}

/// Checks what each level offers for its slots.
fn check_amounts(
    cluster: &Cluster<'_>,
    demand: &Demand,
    granted: &[GrantedSlots],
    pe: Option<&PeName>,
    reasons: &mut Vec<Reason>,
) {
    let pe = pe.and_then(|pe| cluster.config.pes.get(pe));
    let extra = u32::from(pe.is_some_and(|pe| !pe.job_is_first_task.0));
    let (as_master, beside_master) = demand.roles(pe.map(AsRef::as_ref));
    let by_host = slots_by_host(granted, extra, as_master);
    let all = by_host.values().map(|(slots, _)| *slots).sum::<u32>();
    let denials = QuotaBudget::new(cluster, demand, pe.map(|pe| &pe.name)).take_all(granted, extra);
    reasons.extend(denials.err().into_iter().flatten());
    let globally = cluster.fit_level(Fit::anywhere(), &cluster.global(), demand, all, as_master);
    reasons.extend(globally.reasons.iter().cloned());
    if !globally.holds(all) {
        return;
    }
    if beside_master == SlotRole::Companion {
        // Companions take nothing that only slaves request: the master and the slaves count,
        // without them.
        let slaves = by_host
            .values()
            .filter(|(_, role)| *role == SlotRole::Slave)
            .map(|(slots, _)| *slots)
            .sum::<u32>();
        let fit = cluster.fit_level(Fit::anywhere(), &cluster.global(), demand, 1 + slaves, SlotRole::Master);
        reasons.extend(fit.reasons.iter().filter(|_| !fit.holds(1 + slaves)).cloned());
    }
    reasons.extend(cluster.missing_for_hosts(demand, u32::try_from(by_host.len()).unwrap_or(u32::MAX)));
    for (host, (slots, role)) in by_host {
        let host_view = cluster.host_view(host);
        let on_host = cluster.fit_level(globally.clone(), &host_view.view, demand, slots, role);
        if !on_host.holds(slots) {
            reasons.extend(on_host.reasons);
            continue;
        }
        for (index, part) in granted
            .iter()
            .enumerate()
            .filter(|(_, part)| part.instance.host == *host)
        {
            let (slots, role) = match index {
                0 => (part.slots + extra, as_master),
                _ if role == as_master => (part.slots, beside_master),
                _ => (part.slots, SlotRole::Slave),
            };
            let fit = cluster.fit_instance(
                on_host.clone(),
                &cluster.site_on(host_view, &part.instance),
                demand,
                slots,
                role,
            );
            reasons.extend(fit.reasons.iter().filter(|_| !fit.holds(slots)).cloned());
        }
    }
}

/// The slots on each host with their role, `extra` more where the master is, with the role
/// `as_master`.
fn slots_by_host(granted: &[GrantedSlots], extra: u32, as_master: SlotRole) -> BTreeMap<&HostName, (u32, SlotRole)> {
    let mut hosts: BTreeMap<&HostName, (u32, SlotRole)> = BTreeMap::new();
    for (index, part) in granted.iter().enumerate() {
        let (slots, role) = hosts.entry(&part.instance.host).or_insert((0, SlotRole::Slave));
        *slots += part.slots;
        if index == 0 {
            *slots += extra;
            *role = as_master;
        }
    }
    hosts
}
