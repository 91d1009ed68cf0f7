//! `qhost` and the health of load sensors.

use super::Model;
use super::select::Patterns;
use master_core::matching;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::{AttributeName, HostName};
use proto::wire::client::{Answer, HostFilter, Reply};
use proto::wire::view::{Data, HostView};
use std::collections::BTreeMap;

/// The answer to [`proto::wire::client::Query::Hosts`].
pub(super) fn views(model: &Model, filter: &HostFilter) -> Reply {
    let HostFilter { hosts, resources: _, attributes } = filter;
    let patterns = Patterns::new(&hosts.iter().map(|host| host.to_ascii_lowercase()).collect::<Vec<_>>());
    let named = |host: &HostName| host.is_global() || patterns.admit(host.as_str()) || patterns.any(host.short());
    let execution_hosts = model.state.config.exec_hosts.keys();
    let mut shown: Vec<&HostName> = execution_hosts.filter(|host| named(host)).collect();
    // The cluster as a whole comes first, whatever its name sorts as.
    shown.sort_by_key(|host| !host.is_global());
    let views = shown.into_iter().map(|host| view(model, host, attributes.as_deref())).collect();
    Reply { answers: unknown(model, hosts), ..Reply::data(Data::Hosts(views)) }
}

/// A refusal for each name, not a pattern, that is no execution host.
fn unknown(model: &Model, hosts: &[String]) -> Vec<Answer> {
    let is_known = |name: &str| {
        let name = HostName::new(name);
        model.state.config.exec_hosts.keys().any(|host| *host == name || host.short() == name.short())
    };
    let unknown = hosts.iter().filter(|name| !name.contains(['*', '?', '[']) && !is_known(name));
    let refuse = |name: &String| Diagnostic::new(Code::UnknownObject, format!("{name} is not an execution host"));
    unknown.map(|name| Answer::Refused(refuse(name))).collect()
}

fn view(model: &Model, host: &HostName, attributes: Option<&[String]>) -> HostView {
    let Model { state, observations, statics, .. } = model;
    let observed = observations.hosts.get(host);
    let values = observations.load.get(host).into_iter().flatten();
    let names = attributes.map(|names| names.iter().map(|name| AttributeName::from(name.as_str())).collect::<Vec<_>>());
    HostView {
        host: host.clone(),
        load: values.map(|(name, entry)| (name.clone(), entry.text.clone())).collect(),
        report_age_ms: observed.and_then(|host| host.reported).map(|at| statics.clock.tick().since_ms(at)),
        connected: observed.is_some_and(|host| host.connected),
        resources: names
            .map(|names| matching::resources_of_host(state, observations, host, &names))
            .unwrap_or_default(),
    }
}

/// The answer to [`proto::wire::client::Query::Sensors`].
pub(super) fn sensors(model: &Model, hosts: &[String]) -> Reply {
    let patterns = Patterns::new(hosts);
    let of_hosts = model.observations.hosts.iter().filter(|(host, _)| patterns.admit(host.as_str()));
    let sensors: BTreeMap<_, _> = of_hosts.map(|(host, known)| (host.clone(), known.sensors.clone())).collect();
    Reply::data(Data::Sensors(sensors))
}
