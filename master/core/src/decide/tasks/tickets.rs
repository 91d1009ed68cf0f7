//! Hosts are told what their running tasks are worth, so that they share themselves out by it
//! (`reprioritize`, ALGORITHMS.md section 13).

use crate::config::Configuration;
use crate::decide::Turn;
use crate::effect::ConnectionId;
use crate::state::State;
use proto::id::{HostName, TaskKey};
use proto::wire::agent::{MasterMessage, NiceRange};
use std::collections::BTreeMap;

/// The nice values on Linux unless `PTF_MAX_PRIORITY` and `PTF_MIN_PRIORITY` of `execd_params` say
/// otherwise.
const RANGE: NiceRange = NiceRange {
    most_urgent: 0,
    least_urgent: 20,
};

/// The nice values by which a host shares itself out; none unless `reprioritize` and
/// `reprioritize_interval` are both set.
pub(crate) fn range(config: &Configuration, host: &HostName) -> Option<NiceRange> {
    let params = config.settings_of(host).execd();
    is_on(config).then(|| NiceRange {
        most_urgent: params.ptf_max_priority.unwrap_or(RANGE.most_urgent),
        least_urgent: params.ptf_min_priority.unwrap_or(RANGE.least_urgent),
    })
}

/// Whether tickets of running tasks are sent.
pub fn is_on(config: &Configuration) -> bool {
    config.settings.reprioritize.0
        && config
            .scheduler
            .reprioritize_interval
            .seconds()
            .is_some_and(|seconds| seconds > 0)
}

/// A scheduler says what the running tasks are worth. Only agents hear of it for which that is
/// news.
pub(crate) fn take(turn: &mut Turn<'_>, tickets: &[(TaskKey, i64)]) {
    if !is_on(&turn.state().config) {
        return;
    }
    let mut by_host = by_host(turn.state(), tickets);
    let connected: Vec<(HostName, ConnectionId)> = turn.agents().connected().collect();
    for (host, connection) in connected {
        let tickets = by_host.remove(&host).unwrap_or_default();
        if turn.agents_mut().set_tickets(&host, &tickets) {
            turn.send(connection, MasterMessage::Tickets(tickets));
        }
    }
}

/// A parallel job divides its tickets among its hosts by the slots that it has there.
fn by_host(state: &State, tickets: &[(TaskKey, i64)]) -> BTreeMap<HostName, Vec<(TaskKey, i64)>> {
    let mut by_host: BTreeMap<HostName, Vec<(TaskKey, i64)>> = BTreeMap::new();
    for (key, tickets) in tickets {
        let Some((_, _, placement)) = state.placed(*key) else {
            continue;
        };
        let mut slots: BTreeMap<&HostName, u32> = BTreeMap::new();
        for (index, granted) in placement.granted.iter().enumerate() {
            // A master that is no task has one slot even where no task is.
            *slots.entry(&granted.instance.host).or_default() += granted.slots.max(u32::from(index == 0));
        }
        let all = i128::from(slots.values().sum::<u32>().max(1));
        for (host, slots) in slots {
            let part = i128::from(*tickets) * i128::from(slots) / all;
            by_host
                .entry(host.clone())
                .or_default()
                .push((*key, i64::try_from(part).unwrap_or(i64::MAX)));
        }
    }
    by_host
}
