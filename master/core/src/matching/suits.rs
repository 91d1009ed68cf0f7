//! Whether a queue instance takes jobs of a kind by its configuration, whatever runs.

use super::demand::Demand;
use super::{Cluster, InstanceView};
use crate::config::pattern::is_in_queue_list;
use crate::reason::Obstacle;
use proto::id::{PeName, QueueInstanceName};

impl Cluster<'_> {
    /// Why a queue instance never takes a job as it is configured, if so: queue list, kind of job,
    /// parallel environment.
    pub fn unsuitable(&self, site: &InstanceView<'_, '_>, demand: &Demand, pe: Option<&PeName>) -> Option<Obstacle> {
        let (settings, instance) = (site.view.settings?, site.instance);
        if !self.is_named(instance, demand) {
            return Some(Obstacle::NotInQueueList);
        }
        if let Some(reservation) = self.within()
            && (!reservation.has(instance) || pe.is_some() && pe != reservation.pe.as_ref())
        {
            return Some(Obstacle::NotReserved {
                reservation: reservation.id,
            });
        }
        if demand.avoided_hosts.contains(&instance.host) {
            return Some(Obstacle::MayRunThere);
        }
        if let Some(checkpoint) = &demand.checkpoint
            && !settings.ckpt_list.contains(checkpoint)
        {
            let name = Some(checkpoint.clone()).filter(|_| !settings.ckpt_list.is_empty());
            return Some(name.map_or(Obstacle::WrongType { kind: "checkpointing" }, |name| {
                Obstacle::NotInCkptList { name }
            }));
        }
        if pe.is_some_and(|pe| demand.is_apart() && self.takes_none(instance, demand, pe)) {
            return Some(Obstacle::NotInSlaveQueues);
        }
        match (pe, demand.immediate) {
            (Some(pe), _) if settings.pe_list.contains(pe) => None,
            (Some(pe), _) => Some(Obstacle::NotInPe { pe: pe.to_string() }),
            (None, true) if !settings.is_interactive() => Some(Obstacle::WrongType { kind: "interactive" }),
            (None, false) if !settings.is_batch() => Some(Obstacle::WrongType { kind: "batch" }),
            (None, true | false) => None,
        }
    }

    /// Whether any slot of a job may be in a queue instance by the queues that it names: `-q` for
    /// its slots, `-masterq` for its master, also outside of `-q`.
    fn is_named(&self, instance: &QueueInstanceName, demand: &Demand) -> bool {
        is_in_queue_list(self.config, &demand.hard_queues, instance)
            || demand.parts_queues() && self.takes_master(instance, demand)
    }

    /// Whether the master of a job may be in a queue instance (`-masterq`).
    pub fn takes_master(&self, instance: &QueueInstanceName, demand: &Demand) -> bool {
        is_in_queue_list(self.config, &demand.master_queues, instance)
    }

    /// Whether slots of a job that are not the master's may be in a queue instance
    /// (`-scope slave -q`, and `-q` beside `-masterq`).
    pub fn takes_slaves(&self, instance: &QueueInstanceName, demand: &Demand) -> bool {
        is_in_queue_list(self.config, &demand.slave_queues, instance)
            && (!demand.parts_queues() || is_in_queue_list(self.config, &demand.hard_queues, instance))
    }

    /// Whether neither the master nor another slot of a job may be in a queue instance.
    fn takes_none(&self, instance: &QueueInstanceName, demand: &Demand, pe: &PeName) -> bool {
        !self.takes_slaves(instance, demand)
            && !self.takes_master(instance, demand)
            && !self.config.pes.get(pe).is_some_and(|pe| pe.ign_sreq_on_mhost.0)
    }
}
