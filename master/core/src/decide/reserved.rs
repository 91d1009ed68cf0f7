//! `ACCT_RESERVED_USAGE` of `execd_params`: accounting charges what was reserved in place of what was used (CATALOGUE ACC-03).

use crate::state::State;
use crate::state::job::{Job, Placement};
use crate::state::slaves::Slave;
use proto::request::ResourceList;
use proto::usage::{TaskResult, Usage};

/// The use that accounting tells of an attempt.
///
/// Processor time is the time between start and end for each slot. Memory is that of the request of `h_vmem`, else `s_vmem`, for
/// each slot and for the same time; without such a request it stays what was measured.
pub(super) fn charged(state: &State, job: &Job, placement: &Placement, result: &TaskResult) -> Usage {
    let used = result.usage;
    if !state.config.settings_of(placement.host()).execd().acct_reserved_usage {
        return used;
    }
    let slots = u64::from(placement.slots());
    let charged = Usage { cpu_ms: result.wallclock_ms.saturating_mul(slots), ..used };
    match requested_bytes(state, job) {
        Some(bytes) => {
            let bytes = bytes.saturating_mul(slots);
            let mem_kib_ms = (bytes / 1024).saturating_mul(result.wallclock_ms);
            Usage { mem_kib_ms, maxvmem_bytes: bytes, ..charged }
        }
        None => charged,
    }
}

/// The use that accounting tells of a slave task: nothing where all slots of the job are charged to the job itself.
pub(super) fn of_slave(state: &State, slave: &Slave, result: &TaskResult) -> Usage {
    let is_charged = state.config.settings_of(&slave.instance.host).execd().acct_reserved_usage;
    if is_charged { Usage::default() } else { result.usage }
}

/// The memory that the job asked for in each slot.
fn requested_bytes(state: &State, job: &Job) -> Option<u64> {
    let of = |name: &str| {
        let requests = job.spec.requests.hard.iter().rev();
        let resolve = |request: &proto::request::ResourceRequest| {
            ResourceList::from(vec![request.clone()]).resolve(&state.config.complex).ok()
        };
        let mut asked = requests.filter_map(resolve).flatten().filter(|resolved| resolved.attribute.as_str() == name);
        asked.find_map(|resolved| u64::try_from(resolved.value.amount()?.finite()?).ok())
    };
    of("h_vmem").or_else(|| of("s_vmem"))
}
