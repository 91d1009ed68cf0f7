//! `qhost` and the health of load sensors.

use super::select::{self, Patterns};
use crate::model::Model;
use master_core::event::JoinGrant;
use master_core::ledger::Level;
use master_core::matching::{Cluster, Mode};
use master_core::observe::{HostObservation, Loads};
use proto::amount::Type;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::HostName;
use proto::load::SensorStatus;
use proto::wire::client::{HostFilter, Reply};
use proto::wire::view::{Data, HostView, ResourceView, TokenView};
use std::collections::BTreeMap;

/// The answer to [`proto::wire::client::Query::Hosts`]: a request is asked of hosts, so the cluster
/// as a whole is not in it.
pub(super) fn views(model: &Model, filter: &HostFilter) -> Reply {
    let HostFilter {
        hosts,
        resources,
        attributes,
    } = filter;
    if let Some(name) = hosts.iter().find(|name| !is_known(model, name)) {
        return Reply::refusal(unresolved(name));
    }
    let requests = match select::requests(model, resources) {
        Ok(requests) => requests,
        Err(refusal) => return Reply::refusal(*refusal),
    };
    let cluster = model.cluster(Mode::Now);
    let patterns = Patterns::new(&hosts.iter().map(|host| host.to_ascii_lowercase()).collect::<Vec<_>>());
    let named = |host: &HostName| host.is_global() || patterns.admit(host.as_str()) || patterns.any(host.short());
    let offers = |host: &HostName| requests.is_empty() || (!host.is_global() && cluster.has(&level(host), &requests));
    let execution_hosts = model.state.config.exec_hosts.keys();
    let mut shown: Vec<&HostName> = execution_hosts.filter(|host| named(host) && offers(host)).collect();
    // The cluster as a whole comes first, whatever its name sorts as.
    shown.sort_by_key(|host| !host.is_global());
    let views = shown
        .into_iter()
        .map(|host| view(model, &cluster, host, attributes.as_deref()))
        .collect();
    Reply::data(Data::Hosts(views))
}

/// Whether a name is a pattern or that of an execution host.
fn is_known(model: &Model, name: &str) -> bool {
    let mut known = model.state.config.exec_hosts.keys();
    name.contains(['*', '?', '[']) || known.any(|known| known.is_called(name))
}

fn unresolved(name: &str) -> Diagnostic {
    Diagnostic::new(Code::UnknownObject, format!("error: can't resolve hostname \"{name}\""))
        .why("it is not an execution host")
        .fix("qconf -sel lists them")
}

fn level(host: &HostName) -> Level {
    if host.is_global() {
        Level::Global
    } else {
        Level::Host(host.clone())
    }
}

fn view(model: &Model, cluster: &Cluster<'_>, host: &HostName, attributes: Option<&[String]>) -> HostView {
    let Model {
        observations, statics, ..
    } = model;
    let observed = observations.hosts.get(host);
    let values = observations.load.get(host).into_iter().flat_map(Loads::iter);
    HostView {
        host: host.clone(),
        load: values.map(|(name, entry)| (name.clone(), entry.text.clone())).collect(),
        report_age_ms: observed
            .and_then(|host| host.reported)
            .map(|at| statics.clock.tick().since_ms(at)),
        agent_up_ms: observed
            .and_then(|host| host.agent_started)
            .map(|at| statics.clock.tick().since_ms(at)),
        connected: observed.is_some_and(|host| host.connected),
        certified_until: model
            .state
            .certificates
            .get(host)
            .and_then(|own| own.values().max().copied()),
        resources: attributes.map_or_else(Vec::new, |names| resources(model, cluster, host, names)),
    }
}

/// The attributes of a host, with the ids that are free of its resource maps.
fn resources(model: &Model, cluster: &Cluster<'_>, host: &HostName, names: &[String]) -> Vec<ResourceView> {
    let mut found = cluster.resources(&level(host), names);
    for resource in found.iter_mut().filter(|resource| resource.r#type == Type::RsMap) {
        let place = match resource.dominance.level {
            'g' => HostName::global(),
            _ => host.clone(),
        };
        resource.free_ids = model.state.free_ids(&model.observations, &resource.name, &place);
    }
    found
}

/// How much of a token's hash names it: more than any two tokens of a cell have in common.
const TOKEN_ID: usize = 12;

/// The answer to [`proto::wire::client::Query::Tokens`].
pub(super) fn tokens(model: &Model) -> Reply {
    let view = |grant: &JoinGrant| TokenView {
        id: grant.hash.chars().take(TOKEN_ID).collect(),
        uses_left: grant.uses_left,
        expires: grant.expires,
        host_pattern: grant.host_pattern.clone(),
    };
    let mut tokens: Vec<TokenView> = model.state.tokens.values().map(view).collect();
    tokens.sort_by(|one, other| (one.expires, &one.id).cmp(&(other.expires, &other.id)));
    Reply::data(Data::Tokens(tokens))
}

/// The answer to [`proto::wire::client::Query::Sensors`].
pub(super) fn sensors(model: &Model, hosts: &[String]) -> Reply {
    let patterns = Patterns::new(hosts);
    let of_hosts = model
        .observations
        .hosts
        .iter()
        .filter(|(host, _)| patterns.admit(host.as_str()));
    let sensors: BTreeMap<_, _> = of_hosts.map(|(host, known)| (host.clone(), health(known))).collect();
    Reply::data(Data::Sensors(sensors))
}

/// The sensors of a host and, where values were refused, a line about that.
fn health(known: &HostObservation) -> Vec<SensorStatus> {
    let refused = (known.refused > 0).then(|| SensorStatus {
        command: "(load report)".to_owned(),
        health: "refused".to_owned(),
        last_error: format!(
            "{} values are too many or too long (load_values of etc/master.toml)",
            known.refused
        ),
        ..SensorStatus::default()
    });
    known.sensors.iter().cloned().chain(refused).collect()
}
