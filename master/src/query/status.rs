//! The state of the cell at a glance: `qping`, `up`, `doctor`.

use crate::model::Model;
use crate::model::tasks;
use proto::cell_version::CellVersion;
use proto::wire::client::Reply;
use proto::wire::view::{CellStatus, Data};

/// The answer to [`proto::wire::client::Query::Status`].
pub(super) fn status(model: &Model) -> Reply {
    let Model {
        state,
        observations,
        scheduling,
        statics,
        load_reports,
        started,
        present,
    } = model;
    let (mut hosts, mut hosts_connected, mut hosts_reporting) = (0, 0, 0);
    for host in state.config.exec_hosts.keys().filter(|host| !host.is_global()) {
        hosts += 1;
        if let Some(host) = observations.hosts.get(host).filter(|host| host.connected) {
            hosts_connected += 1;
            hosts_reporting += u32::from(host.reported.is_some());
        }
    }
    debug_assert_eq!(
        *present,
        state.jobs.values().map(tasks).sum::<u64>(),
        "no event is missed"
    );
    let running = state.index.running();
    Reply::data(Data::Status(Box::new(CellStatus {
        software: env!("CARGO_PKG_VERSION").to_owned(),
        host: statics.host.clone(),
        port: statics.port,
        uptime_ms: statics.clock.uptime_ms(),
        event_seq: state.last.0,
        hosts,
        hosts_connected,
        hosts_reporting,
        pending: present - running,
        running,
        started: *started,
        passes: scheduling.passes,
        load_reports: *load_reports,
        cell_version: state.version,
        newest_cell_version: CellVersion::NEWEST,
    })))
}
