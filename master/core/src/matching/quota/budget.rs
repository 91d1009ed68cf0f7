//! The rest of the quotas for one job, while its slots are laid out.

use crate::ledger::quota::{QuotaLimits, Scope};
use crate::ledger::{Level, RequestScope};
use crate::matching::quota::claim::{Claim, Side, SlotGroup, claims};
use crate::matching::{Cluster, Demand, SlotRole};
use crate::reason::{Obstacle, QuotaDenial, Reason};
use proto::id::{HostName, PeName, QueueInstanceName};
use proto::job::GrantedSlots;
use proto::pe::AllocationRule;
use proto::quota::{QuotaSet, Rule};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

/// The limits of a queue instance: each set with its scope there.
type Scopes = Rc<[(Arc<QuotaSet>, Arc<Scope>)]>;

/// The rest of each quota that is about a job, after what the job has taken so far.
#[derive(Clone, Debug)]
pub struct QuotaBudget<'a> {
    cluster: &'a Cluster<'a>,
    demand: &'a Demand,
    pe: Option<&'a PeName>,
    limits: Arc<QuotaLimits>,
    claims: BTreeMap<Arc<Scope>, Vec<Claim<'a>>>,
    scopes: BTreeMap<QueueInstanceName, Scopes>,
    hosts: BTreeSet<HostName>,
    /// The hosts where the job has slots that are not the master's.
    other_hosts: BTreeSet<HostName>,
    master_host: Option<HostName>,
    /// Whether slots beside the master are spared what only slaves request.
    spares_companions: bool,
    denials: BTreeMap<Arc<Scope>, Reason>,
}

impl<'a> QuotaBudget<'a> {
    /// The quotas for a job before it has taken anything.
    pub fn new(cluster: &'a Cluster<'a>, demand: &'a Demand, pe: Option<&'a PeName>) -> QuotaBudget<'a> {
        QuotaBudget {
            cluster,
            demand,
            pe,
            limits: if demand.is_exempt || cluster.config.enabled_quotas().next().is_none() {
                Arc::default()
            } else {
                cluster.ledger.quotas().limits(cluster.config, &demand.who, pe)
            },
            claims: BTreeMap::new(),
            scopes: BTreeMap::new(),
            hosts: BTreeSet::new(),
            other_hosts: BTreeSet::new(),
            master_host: None,
            spares_companions: demand.is_apart() && {
                let pe = pe.and_then(|pe| cluster.config.pes.get(pe));
                demand.roles(pe.map(AsRef::as_ref)).1 == SlotRole::Companion
            },
            denials: BTreeMap::new(),
        }
    }

    /// Whether all reasons against the job are wanted.
    pub fn explains(&self) -> bool {
        self.cluster.explains
    }

    /// Whether no set limits the job.
    pub fn is_boundless(&self) -> bool {
        self.limits.is_empty()
    }

    /// How many slots, of so many at most, the rules leave that do not depend on the place. Reasons
    /// for fewer go into the denials.
    pub fn most_anywhere(&mut self, slots: u32) -> u32 {
        if self.is_boundless() {
            return slots;
        }
        let scopes: Vec<_> = self
            .limits
            .anywhere()
            .map(|(set, limited)| (set.clone(), limited.scope.clone()))
            .collect();
        self.most_of(&scopes, None, slots, Side::Master)
    }

    /// How many slots, of so many at most, the quotas leave in an instance. `is_master` if the
    /// master is among them.
    pub fn most(&mut self, instance: &QueueInstanceName, slots: u32, is_master: bool) -> u32 {
        let scopes = self.scopes_of(instance);
        self.most_of(&scopes, Some(&instance.host), slots, side(is_master))
    }

    /// How many slots, of so many at most, the limits of its host alone leave in an instance at
    /// best; and the other limits that it is under. Both change only with the use there.
    pub fn most_on_host(&mut self, instance: &QueueInstanceName, slots: u32) -> (u32, Vec<Arc<Scope>>) {
        let scopes = self.scopes_of(instance);
        let (own, shared): (Vec<_>, Vec<_>) = scopes.iter().cloned().partition(|(_, scope)| scope.host.is_some());
        let most = self.most_of(&own, Some(&instance.host), slots, Side::Any);
        (most, shared.into_iter().map(|(_, scope)| scope).collect())
    }

    /// How many slots, of so many at most, the limits that hosts share leave at best. Limits with
    /// another value on each host do not count.
    pub fn most_shared(&mut self, scopes: &[Arc<Scope>], slots: u32) -> u32 {
        let set = |scope: &Scope| {
            self.cluster
                .config
                .quotas
                .get(&scope.set)
                .filter(|set| set.enabled.0)
                .cloned()
        };
        let scopes: Vec<_> = scopes
            .iter()
            .filter_map(|scope| Some((set(scope)?, scope.clone())))
            .collect();
        self.most_of(&scopes, None, slots, Side::Any)
    }

    /// Takes slots in an instance. Returns false, with nothing taken, if there is no room for all
    /// of them.
    pub fn take(&mut self, instance: &QueueInstanceName, slots: u32, is_master: bool) -> bool {
        if self.most(instance, slots, is_master) < slots {
            return false;
        }
        if is_master {
            self.master_host = Some(instance.host.clone());
        }
        let part = self.part(Some(&instance.host), slots, side(is_master));
        self.hosts.insert(instance.host.clone());
        if slots > u32::from(is_master) {
            self.other_hosts.insert(instance.host.clone());
        }
        for (_, scope) in self.scopes_of(instance).iter() {
            for claim in self.claims.get_mut(scope).into_iter().flatten() {
                if let Claim::Takes(takes) = claim {
                    takes.take(part);
                }
            }
        }
        true
    }

    /// Gives back slots that were taken in an instance and are not the master's.
    pub fn give_back(&mut self, instance: &QueueInstanceName, slots: u32) {
        let part = self.part(Some(&instance.host), slots, Side::Others);
        for (_, scope) in self.scopes_of(instance).iter() {
            for claim in self.claims.get_mut(scope).into_iter().flatten() {
                if let Claim::Takes(takes) = claim {
                    takes.give_back(part);
                }
            }
        }
    }

    /// Whether slots in two instances are taken from the same quotas.
    pub fn are_alike(&mut self, one: &QueueInstanceName, other: &QueueInstanceName) -> bool {
        let (one, other) = (self.scopes_of(one), self.scopes_of(other));
        one.iter()
            .map(|(_, scope)| scope)
            .eq(other.iter().map(|(_, scope)| scope))
    }

    /// Takes all slots of a job, the master's instance first, which takes `extra` more slots.
    ///
    /// # Errors
    /// With the rules that stand against it.
    pub fn take_all(mut self, granted: &[GrantedSlots], extra: u32) -> Result<(), Vec<Reason>> {
        if self.is_boundless() {
            return Ok(());
        }
        for (index, part) in granted.iter().enumerate() {
            let slots = if index == 0 { part.slots + extra } else { part.slots };
            // Nothing is taken after the last one.
            let is_last = index + 1 == granted.len();
            let has_room = match is_last {
                true => self.most(&part.instance, slots, index == 0) == slots,
                false => self.take(&part.instance, slots, index == 0),
            };
            if !has_room {
                return Err(self.into_denials());
            }
        }
        Ok(())
    }

    /// Takes over the reasons from a trial: a copy in which slots were taken to see whether they
    /// fit.
    pub fn note(&mut self, trial: QuotaBudget<'_>) {
        for (scope, reason) in trial.denials {
            self.denials.entry(scope).or_insert(reason);
        }
    }

    /// The rules that refused something, each scope once.
    pub fn into_denials(self) -> Vec<Reason> {
        self.denials.into_values().collect()
    }

    fn scopes_of(&mut self, instance: &QueueInstanceName) -> Scopes {
        if let Some(scopes) = self.scopes.get(instance) {
            return scopes.clone();
        }
        let limits = self.limits.at(self.cluster.config, &self.demand.who, self.pe, instance);
        let scopes: Scopes = limits
            .map(|(set, limited)| (set.clone(), limited.scope.clone()))
            .collect();
        self.scopes.insert(instance.clone(), scopes.clone());
        scopes
    }

    fn most_of(
        &mut self,
        scopes: &[(Arc<QuotaSet>, Arc<Scope>)],
        host: Option<&HostName>,
        slots: u32,
        side: Side,
    ) -> u32 {
        let part = self.part(host, slots, side);
        let mut most = slots;
        for (set, scope) in scopes {
            if !self.claims.contains_key(scope) {
                let limits = set.rules[scope.rule].limits.iter();
                let spares = self.spares_companions;
                let claims =
                    limits.flat_map(|limit| claims(self.cluster, self.demand, spares, (set, scope), limit, host));
                self.claims.insert(scope.clone(), claims.collect());
            }
            let claims = &self.claims[scope];
            for claim in claims {
                let room = match claim {
                    Claim::Denied(whose, _) => match self.most_without(*whose, part) {
                        room if room == slots => continue,
                        room => room,
                    },
                    Claim::Takes(takes) => match takes.most(part) {
                        room if room == slots => continue,
                        room => room,
                    },
                };
                most = most.min(room);
                if self.denials.contains_key(scope) {
                    continue;
                }
                let denial = match claim {
                    Claim::Denied(_, denial) => (**denial).clone(),
                    Claim::Takes(takes) => {
                        let (needed, is_whole) = self.needed(set, scope, side);
                        QuotaDenial {
                            is_whole,
                            ..takes.denial(set, scope, needed)
                        }
                    }
                };
                let level = scope.host.clone().map_or(Level::Global, Level::Host);
                let reason = Reason::new(level, Obstacle::Quota(Box::new(denial)));
                self.denials.insert(scope.clone(), reason);
            }
        }
        most
    }

    /// For how many slots of the job a limit needs room, if all were there that can be; and whether
    /// all of them have to be.
    fn needed(&self, set: &QuotaSet, scope: &Scope, side: Side) -> (u32, bool) {
        let Some(pe) = self.pe.and_then(|pe| self.cluster.config.pes.get(pe)) else {
            return (1, true);
        };
        let Rule { queues, hosts, .. } = &set.rules[scope.rule];
        let (least, extra) = (self.demand.least(), u32::from(!pe.job_is_first_task.0));
        let whole = least.saturating_add(extra);
        match self.demand.allocation_rule(pe) {
            AllocationRule::Fixed(each) if scope.host.is_some() => {
                let has_master = side == Side::Master || scope.host == self.master_host;
                (
                    each.saturating_add(if has_master { extra } else { 0 }),
                    queues.is_none(),
                )
            }
            AllocationRule::PeSlots => (whole, queues.is_none()),
            AllocationRule::Fixed(_) | AllocationRule::FillUp | AllocationRule::RoundRobin => {
                (whole, queues.is_none() && hosts.is_none())
            }
        }
    }

    /// Slots as limits see them.
    fn part(&self, host: Option<&HostName>, slots: u32, side: Side) -> SlotGroup {
        let is_new = |known: &BTreeSet<HostName>| host.is_none_or(|host| !known.contains(host));
        SlotGroup {
            slots,
            side,
            is_new_host: is_new(&self.hosts),
            is_first_other: is_new(&self.other_hosts),
            is_beside: host.is_some() && self.master_host.as_ref() == host,
        }
    }

    /// The number of a part's slots without those that have no room.
    fn most_without(&self, whose: RequestScope, part: SlotGroup) -> u32 {
        let is_spared = self.spares_companions && (part.is_beside || part.side != Side::Others);
        match (whose, part.side) {
            (RequestScope::All, _) | (RequestScope::Master, Side::Master) => 0,
            (RequestScope::Master, Side::Others | Side::Any) => part.slots,
            (RequestScope::Slaves, _) if is_spared => part.slots,
            (RequestScope::Slaves, Side::Others) => 0,
            (RequestScope::Slaves, Side::Master | Side::Any) => part.slots.min(1),
        }
    }
}

/// Whose the slots in an instance are.
fn side(is_master: bool) -> Side {
    if is_master { Side::Master } else { Side::Others }
}
