//! The state of the cell at a glance: `qping`, `up`, `doctor`.

use super::Model;
use proto::wire::client::Reply;
use proto::wire::view::{CellStatus, Data};

/// The answer to [`proto::wire::client::Query::Status`].
pub(super) fn status(model: &Model) -> Reply {
    let Model { state, observations, scheduling, statics, load_reports, started } = model;
    let execution_hosts = || state.config.exec_hosts.keys().filter(|host| !host.is_global());
    let observed = || execution_hosts().filter_map(|host| observations.hosts.get(host));
    let running: u64 = state.jobs.values().map(|job| u64::from(job.active)).sum();
    let present: u64 = state.jobs.values().map(|job| u64::from(job.untouched.len()) + job.tasks.len() as u64).sum();
    Reply::data(Data::Status(Box::new(CellStatus {
        software: env!("CARGO_PKG_VERSION").to_owned(),
        host: statics.host.clone(),
        port: statics.port,
        uptime_ms: statics.clock.uptime_ms(),
        event_seq: state.last.0,
        hosts: count(execution_hosts()),
        hosts_connected: count(observed().filter(|host| host.connected)),
        hosts_reporting: count(observed().filter(|host| host.connected && host.reported.is_some())),
        pending: present - running,
        running,
        started: *started,
        passes: scheduling.passes,
        load_reports: *load_reports,
    })))
}

fn count(things: impl Iterator) -> u32 {
    u32::try_from(things.count()).unwrap_or(u32::MAX)
}
