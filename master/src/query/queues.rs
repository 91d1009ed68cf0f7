//! `qstat -f`, `-g c`, `qhost -q`, `qselect`: queue instances with their slots, load and states.

use super::Model;
use super::select::Patterns;
use master_core::ledger::Level;
use master_core::matching::{self, QueuePattern};
use proto::amount::Millionths;
use proto::id::{AttributeName, HostName, QueueInstanceName};
use proto::queue::QueueInstanceSettings;
use proto::wire::client::{QueueFilter, Reply};
use proto::wire::view::{Data, QueueView};

/// The answer to [`proto::wire::client::Query::Queues`].
pub(super) fn views(model: &Model, filter: &QueueFilter) -> Reply {
    let QueueFilter { queues, resources: _, pes, users: _, states, attributes, explain } = filter;
    let patterns: Vec<QueuePattern> = queues.iter().map(|text| QueuePattern::new(text)).collect();
    let pes = Patterns::new(pes);
    let config = &model.state.config;
    let mut views: Vec<QueueView> = config
        .resolved
        .iter()
        .filter(|(name, _)| patterns.is_empty() || patterns.iter().any(|pattern| pattern.matches(config, name)))
        .filter(|(_, settings)| filter.pes.is_empty() || settings.pe_list.iter().any(|pe| pes.any(pe.as_str())))
        .map(|(name, settings)| view(model, name, settings, attributes.as_deref(), explain))
        .filter(|view| states.is_empty() || view.states.contains(|state| states.contains(state)))
        .collect();
    views.sort_by(|a, b| (a.seq_no, &a.queue, &a.host).cmp(&(b.seq_no, &b.queue, &b.host)));
    Reply::data(Data::Queues(views))
}

fn view(
    model: &Model,
    name: &QueueInstanceName,
    settings: &QueueInstanceSettings,
    attributes: Option<&[String]>,
    explain: &str,
) -> QueueView {
    let Model { state, observations, .. } = model;
    let load = |attribute: &str| load_value(model, &name.host, attribute);
    let names = attributes.map(|names| names.iter().map(|name| AttributeName::from(name.as_str())).collect::<Vec<_>>());
    QueueView {
        queue: name.queue.clone(),
        host: name.host.clone(),
        kinds: kinds(settings),
        used: state.ledger.slots(&Level::Instance(name.clone())),
        reserved: 0,
        total: settings.slots,
        load_avg: load("load_avg"),
        np_load_avg: load("np_load_avg").and_then(|text| Millionths::parse(&text).ok()).map(|value| value.0),
        arch: load("arch"),
        states: states(model, name),
        explain: explanations(model, name, explain),
        resources: names
            .map(|names| matching::resources_of_instance(state, observations, name, &names))
            .unwrap_or_default(),
        seq_no: i64::from(settings.seq_no),
        pes: settings.pe_list.iter().map(ToString::to_string).collect(),
    }
}

/// A load value of a host as it was reported; none while the host is unknown.
fn load_value(model: &Model, host: &HostName, attribute: &str) -> Option<String> {
    model.observations.load.get(host)?.get(attribute).map(|entry| entry.text.clone())
}

/// `qtype` letters: B, I, P; N where there is none.
fn kinds(settings: &QueueInstanceSettings) -> String {
    let letters = [('B', settings.qtype.batch), ('I', settings.is_interactive()), ('P', settings.is_parallel())];
    let letters: String = letters.into_iter().filter_map(|(letter, is_set)| is_set.then_some(letter)).collect();
    if letters.is_empty() { "N".to_owned() } else { letters }
}

/// State letters in the order of `qstat -f`: alarms, unknown, then what people and failures set.
fn states(model: &Model, name: &QueueInstanceName) -> String {
    let set = model.state.instances.get(name);
    let observed = model.observations.hosts.get(&name.host);
    let is_unknown = observed.is_none_or(|host| host.unheard || host.reported.is_none());
    let letters = [
        ('u', is_unknown),
        ('s', set.is_some_and(|state| state.suspended)),
        ('d', set.is_some_and(|state| state.disabled)),
        ('c', model.state.config.ambiguous.contains_key(name)),
        ('E', set.is_some_and(|state| !state.errors.is_empty())),
    ];
    letters.into_iter().filter_map(|(letter, is_set)| is_set.then_some(letter)).collect()
}

fn explanations(model: &Model, name: &QueueInstanceName, explain: &str) -> Vec<String> {
    let errors = model.state.instances.get(name).into_iter().flat_map(|state| &state.errors);
    let errors = errors.map(|error| format!("queue {} marked QERROR: {error}", name.queue));
    let ambiguities = model.state.config.ambiguous.get(name).into_iter().flatten().map(ToString::to_string);
    let wanted = |letter| explain.contains(letter);
    errors.filter(|_| wanted('E')).chain(ambiguities.filter(|_| wanted('c'))).collect()
}
