//! `qstat -f`, `-g c`, `qhost -q`, `qselect`: queue instances with their slots, load and states.

use super::select::Patterns;
use crate::model::Model;
use master_core::config::pattern::{QueuePattern, is_in_queue_list};
use master_core::explain;
use master_core::ledger::Level;
use master_core::matching::{Cluster, Mode, Request};
use master_core::state::State;
use proto::amount::Millionths;
use proto::diagnostic::Diagnostic;
use proto::id::{HostName, QueueInstanceName, QueueName};
use proto::queue::QueueInstanceSettings;
use proto::request::ResourceRequest;
use proto::wire::client::{QueueFilter, Reply};
use proto::wire::view::{Data, QueueView};
use std::collections::{BTreeMap, BTreeSet};

/// The answer to [`proto::wire::client::Query::Queues`].
pub(super) fn views(model: &Model, filter: &QueueFilter) -> Reply {
    let selection = match Selection::new(model, &filter.queues, &filter.pes, &filter.resources) {
        Ok(selection) => selection,
        Err(refusal) => return Reply::refusal(*refusal),
    };
    let cluster = model.cluster(Mode::Now);
    let orphans = orphans(model);
    let config = &model.state.config;
    let present = config.resolved.iter().map(|(name, settings)| (name, &**settings));
    let mut views: Vec<QueueView> = present
        .chain(&orphans)
        .filter(|(name, settings)| selection.admits(name, settings))
        .filter(|(name, _)| {
            filter.users.is_empty() || cluster.admits_users(&Level::Instance((*name).clone()), &filter.users)
        })
        .map(|(name, settings)| view(&model.state, &cluster, name, settings, filter))
        .filter(|view| filter.states.is_empty() || view.states.contains(|state| filter.states.contains(state)))
        .collect();
    views.sort_by(|a, b| (a.seq_no, &a.queue, &a.host).cmp(&(b.seq_no, &b.queue, &b.host)));
    Reply::data(Data::Queues(views))
}

/// The answer to [`proto::wire::client::Query::QueuesWithoutHosts`].
pub(super) fn without_hosts(model: &Model) -> Reply {
    let (config, orphans) = (&model.state.config, model.state.orphans());
    let with_hosts: BTreeSet<&QueueName> = config
        .resolved
        .keys()
        .chain(&orphans)
        .map(|instance| &instance.queue)
        .collect();
    let names = config.queues.keys().filter(|name| !with_hosts.contains(name));
    Reply::data(Data::Names(names.map(ToString::to_string).collect()))
}

/// Queue instances that `-q`, `-pe` and `-l` mean.
pub(super) struct Selection<'a> {
    /// Empty: by what a queue instance is, not by what runs there.
    cluster: Cluster<'a>,
    queues: Vec<QueuePattern>,
    pes: Option<Patterns>,
    requests: Vec<Request>,
}

impl<'a> Selection<'a> {
    /// A selection; an empty list admits every queue instance.
    ///
    /// # Errors
    /// A resource that the complex does not know.
    pub(super) fn new(
        model: &'a Model,
        queues: &[String],
        pes: &[String],
        resources: &[ResourceRequest],
    ) -> Result<Self, Box<Diagnostic>> {
        Ok(Self {
            cluster: model.cluster(Mode::EmptyCluster),
            queues: queues.iter().map(|text| QueuePattern::new(text)).collect(),
            pes: (!pes.is_empty()).then(|| Patterns::new(pes)),
            requests: super::select::requests(model, resources)?,
        })
    }

    /// Whether every queue instance is meant.
    pub(super) fn is_all(&self) -> bool {
        self.queues.is_empty() && self.pes.is_none() && self.requests.is_empty()
    }

    /// Whether a queue instance with these settings is meant.
    pub(super) fn admits(&self, name: &QueueInstanceName, settings: &QueueInstanceSettings) -> bool {
        let in_pe = |pes: &Patterns| settings.pe_list.iter().any(|pe| pes.any(pe.as_str()));
        is_in_queue_list(self.cluster.config, &self.queues, name)
            && self.pes.as_ref().is_none_or(in_pe)
            && self.cluster.has(&Level::Instance(name.clone()), &self.requests)
    }
}

/// Queue instances that their cluster queue has no longer, and which run tasks still (`o`), with
/// what they would be.
fn orphans(model: &Model) -> BTreeMap<QueueInstanceName, QueueInstanceSettings> {
    let queues = &model.state.config.queues;
    let settings = |instance: &QueueInstanceName| {
        Some(
            queues
                .get(&instance.queue)?
                .resolve(&instance.host, &Default::default())
                .0,
        )
    };
    let gone = model.state.orphans().into_iter();
    gone.filter_map(|instance| settings(&instance).map(|settings| (instance, settings)))
        .collect()
}

fn view(
    state: &State,
    cluster: &Cluster<'_>,
    name: &QueueInstanceName,
    settings: &QueueInstanceSettings,
    filter: &QueueFilter,
) -> QueueView {
    let level = Level::Instance(name.clone());
    let load = |attribute: &str| load_value(cluster, &name.host, attribute);
    QueueView {
        queue: name.queue.clone(),
        host: name.host.clone(),
        kinds: kinds(settings),
        used: state.slots_in_use(&level),
        reserved: state.slots_reserved(&level),
        total: settings.slots,
        load_avg: load(if filter.load_value.is_empty() {
            "load_avg"
        } else {
            &filter.load_value
        }),
        np_load_avg: load("np_load_avg")
            .and_then(|text| Millionths::parse(&text).ok())
            .map(|value| value.0),
        arch: load("arch"),
        states: explain::state_letters(cluster, name),
        explain: explain::state_reasons(cluster, name, &filter.explain),
        resources: filter
            .attributes
            .as_ref()
            .map_or_else(Vec::new, |names| cluster.resources(&level, names)),
        seq_no: i64::from(settings.seq_no),
        pes: settings.pe_list.iter().map(ToString::to_string).collect(),
    }
}

/// A load value of a host as it was reported; none while the host is unknown.
fn load_value(cluster: &Cluster<'_>, host: &HostName, attribute: &str) -> Option<String> {
    cluster
        .observations
        .load
        .get(host)?
        .named(attribute)
        .map(|entry| entry.text.clone())
}

/// `qtype` letters: B, I, P, C; N where there is none.
fn kinds(settings: &QueueInstanceSettings) -> String {
    let is_checkpointing = !settings.ckpt_list.is_empty();
    let letters = [
        ('B', settings.qtype.batch),
        ('I', settings.is_interactive()),
        ('P', settings.is_parallel()),
        ('C', is_checkpointing),
    ];
    let letters: String = letters
        .into_iter()
        .filter_map(|(letter, is_set)| is_set.then_some(letter))
        .collect();
    if letters.is_empty() { "N".to_owned() } else { letters }
}
