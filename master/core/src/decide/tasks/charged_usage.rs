//! What was reserved in place of what was used: in accounting with `ACCT_RESERVED_USAGE` of
//! `execd_params`, for the share tree with `SHARETREE_RESERVED_USAGE`.

use crate::state::State;
use crate::state::job::{Job, Placement};
use crate::state::slaves::Slave;
use proto::conf::ExecdParams;
use proto::id::HostName;
use proto::job::{GrantedSlots, Requests};
use proto::request::{ResourceList, ResourceRequest};
use proto::usage::{Consumption, TaskResult, Usage};

/// The use that accounting tells of an attempt.
pub(crate) fn accounted(state: &State, job: &Job, placement: &Placement, result: &TaskResult) -> Usage {
    if params(state, placement.host()).acct_reserved_usage {
        reserved(state, job, placement, result.wallclock_ms, result.usage)
    } else {
        result.usage
    }
}

/// The use that the owner of an attempt is charged with, that of its slave tasks apart.
pub(crate) fn charged(
    state: &State,
    job: &Job,
    placement: &Placement,
    wallclock_ms: u64,
    used: Consumption,
) -> Consumption {
    if !is_charged_as_reserved(state, placement.host()) {
        return used;
    }
    let used = Usage::default().at_least(used);
    reserved(state, job, placement, wallclock_ms, used).into()
}

/// Whether the share tree counts what tasks on a host reserve.
pub(crate) fn is_charged_as_reserved(state: &State, host: &HostName) -> bool {
    params(state, host).sharetree_reserved_usage
}

/// Processor time is the time between start and end for each slot. Memory is that of the request of
/// `h_vmem`, else `s_vmem`, for each slot and for the same time; without such a request it stays
/// what was measured.
fn reserved(state: &State, job: &Job, placement: &Placement, wallclock_ms: u64, used: Usage) -> Usage {
    let slots = u64::from(placement.slots());
    let charged = Usage {
        cpu_ms: wallclock_ms.saturating_mul(slots),
        ..used
    };
    match requested_bytes(state, job, placement) {
        Some(bytes) => {
            let mem_kib_ms = (bytes / 1024).saturating_mul(wallclock_ms);
            Usage {
                mem_kib_ms,
                maxvmem_bytes: bytes,
                ..charged
            }
        }
        None => charged,
    }
}

/// The use that accounting tells of a slave task: nothing where all slots of the job are charged to
/// the job itself.
pub(crate) fn of_slave(state: &State, slave: &Slave, result: &TaskResult) -> Usage {
    let is_charged = params(state, &slave.instance.host).acct_reserved_usage;
    if is_charged { Usage::default() } else { result.usage }
}

/// The use that the owner of a slave task is charged with: nothing likewise.
pub(crate) fn charged_of_slave(state: &State, slave: &Slave, used: Consumption) -> Consumption {
    if is_charged_as_reserved(state, &slave.instance.host) {
        Consumption::default()
    } else {
        used
    }
}

fn params(state: &State, host: &HostName) -> ExecdParams {
    state.config.settings_of(host).execd()
}

/// The memory that the job asked for in all its slots; in those for which it asks for none, where
/// others have a request of their own, nothing.
fn requested_bytes(state: &State, job: &Job, placement: &Placement) -> Option<u64> {
    let of = |list: &[ResourceRequest], name: &str| {
        let requests = list.iter().rev();
        let resolve = |request: &ResourceRequest| {
            ResourceList::from(vec![request.clone()])
                .resolve(&state.config.complex)
                .ok()
        };
        let mut asked = requests
            .filter_map(resolve)
            .flatten()
            .filter(|resolved| resolved.attribute.as_str() == name);
        asked.find_map(|resolved| u64::try_from(resolved.value.amount()?.finite()?).ok())
    };
    let Requests {
        hard, master, slaves, ..
    } = &*job.spec.requests;
    let pe = placement.pe.as_ref().and_then(|pe| state.config.pes.get(pe));
    let is_spared = |granted: &&GrantedSlots| {
        pe.is_some_and(|pe| pe.ign_sreq_on_mhost.0) && granted.instance.host == *placement.host()
    };
    let spared: u32 = placement
        .granted
        .iter()
        .filter(is_spared)
        .map(|granted| granted.slots)
        .sum();
    // The slot of a master that is no task was not granted.
    let of_master = u32::from(spared == 0 && pe.is_none_or(|pe| pe.job_is_first_task.0));
    let others = u64::from(placement.slots() - spared - of_master);
    let asked = |name: &str| {
        let each = of(hard, name).map(|bytes| bytes.saturating_mul(u64::from(placement.slots())));
        let of_others = of(slaves, name).map(|bytes| bytes.saturating_mul(others));
        let parts = [each, of(master, name), of_others];
        parts.into_iter().flatten().reduce(u64::saturating_add)
    };
    asked("h_vmem").or_else(|| asked("s_vmem"))
}
