//! Load reports: which are believed, and what of them.

use super::{Turn, agents};
use crate::effect::ConnectionId;
use crate::names;
use crate::observe::Observation;
use proto::id::HostName;
use proto::load::LoadReport;

/// Takes a load report unless it is late, or comes over a connection that was replaced.
///
/// A host may report for itself, for `global`, and for other execution hosts (SENSORS); the rest is dropped.
pub(super) fn report(turn: &mut Turn<'_>, connection: ConnectionId, mut report: LoadReport) {
    let Some(host) = turn.agents().host_of(connection).cloned() else { return };
    agents::heard(turn, &host);
    let known = turn.observations().hosts.get(&host);
    let (last, has_reported) = known.map_or((0, false), |known| (known.sequence, known.reported.is_some()));
    if report.sequence <= last || (!report.full && !has_reported) {
        return;
    }
    let config = &turn.state().config;
    let canonical = config.host_names(&turn.site().naming, &host);
    names::load_report(&mut report, |subject| canonical.canonical(subject.as_str()));
    let hosts = &config.exec_hosts;
    let is_subject = |subject: &HostName| *subject == host || hosts.contains_key(subject);
    report.values.retain(|subject, _| is_subject(subject));
    report.withdrawn.retain(|subject, _| is_subject(subject));
    let at = turn.now.tick;
    turn.observe(Observation::Load { host, at, report: Box::new(report) });
}
