//! The configuration objects of a cell and what they resolve to.

mod derived;

pub use derived::Touched;

use crate::event::StoredObject;
use proto::complex::Complex;
use proto::conf::{ClusterConf, Settings};
use proto::host::ExecHost;
use proto::host::names::{HostNames, Naming};
use proto::hostgroup::{HostGroup, HostGroupTable, HostOrGroup};
use proto::id::{HostGroupName, HostName, PeName, QueueInstanceName, QueueName, UserName};
use proto::object::{Fields, ObjectKind};
use proto::pe::ParallelEnvironment;
use proto::policy::SchedulerConf;
use proto::queue::{Ambiguity, ClusterQueue, QueueInstanceSettings};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Every configuration object that exists, by kind and name.
///
/// Invariant: `resolved`, `settings` and `host_settings` are exactly what the objects resolve to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Configuration {
    /// The table of resource attributes.
    pub complex: Arc<Complex>,
    /// Execution hosts, `global` among them.
    pub exec_hosts: BTreeMap<HostName, Arc<ExecHost>>,
    /// Cluster queues.
    pub queues: BTreeMap<QueueName, Arc<ClusterQueue>>,
    /// Host groups.
    pub host_groups: BTreeMap<HostGroupName, Arc<HostGroup>>,
    /// Parallel environments.
    pub pes: BTreeMap<PeName, Arc<ParallelEnvironment>>,
    /// The global cluster configuration.
    pub cluster: Arc<ClusterConf>,
    /// What hosts override of it.
    pub host_confs: BTreeMap<HostName, Arc<ClusterConf>>,
    /// The scheduler configuration.
    pub scheduler: Arc<SchedulerConf>,
    /// Hosts whose managers and operators are believed.
    pub admin_hosts: BTreeSet<HostName>,
    /// Hosts whose users may submit.
    pub submit_hosts: BTreeSet<HostName>,
    /// Managers.
    pub managers: BTreeSet<UserName>,
    /// Operators.
    pub operators: BTreeSet<UserName>,
    /// Settings of every queue instance: derived, kept current by `apply`.
    #[serde(skip)]
    pub resolved: BTreeMap<QueueInstanceName, Arc<QueueInstanceSettings>>,
    /// The queue instances for which host groups disagree, with the attributes (QUE-03): derived likewise.
    #[serde(skip)]
    pub ambiguous: BTreeMap<QueueInstanceName, Vec<Ambiguity>>,
    /// The host groups that contain each host, directly or through others: derived likewise.
    #[serde(skip)]
    pub groups_of: BTreeMap<HostName, BTreeSet<HostGroupName>>,
    /// The global cluster configuration as typed values: derived likewise.
    #[serde(skip, default = "shipped_settings")]
    pub settings: Arc<Settings>,
    /// The same for hosts with a configuration of their own.
    #[serde(skip)]
    pub host_settings: BTreeMap<HostName, Arc<Settings>>,
}

fn shipped_settings() -> Arc<Settings> {
    Arc::new(Settings::template())
}

impl Configuration {
    /// The configuration before the first event: the built-in complex, `global`, and the shipped settings.
    pub fn new() -> Self {
        let global = ExecHost::template(HostName::global());
        Self {
            complex: Arc::new(Complex::built_in()),
            exec_hosts: BTreeMap::from([(HostName::global(), Arc::new(global))]),
            queues: BTreeMap::new(),
            host_groups: BTreeMap::new(),
            pes: BTreeMap::new(),
            cluster: Arc::new(ClusterConf::template()),
            host_confs: BTreeMap::new(),
            scheduler: Arc::new(SchedulerConf::template()),
            admin_hosts: BTreeSet::new(),
            submit_hosts: BTreeSet::new(),
            managers: BTreeSet::new(),
            operators: BTreeSet::new(),
            resolved: BTreeMap::new(),
            ambiguous: BTreeMap::new(),
            groups_of: BTreeMap::new(),
            settings: shipped_settings(),
            host_settings: BTreeMap::new(),
        }
    }

    /// The hosts that are known by what people call them; `here` is the host on which the names were written.
    pub fn host_names<'a>(&'a self, naming: &'a Naming, here: &'a HostName) -> HostNames<'a> {
        HostNames::new(vec![&self.exec_hosts, &self.admin_hosts, &self.submit_hosts], naming, here)
    }

    /// Makes one stored object true; what is derived stays as it was.
    ///
    /// # Panics
    /// If its fields do not read: they were read before they were stored.
    pub fn put(&mut self, object: &StoredObject) {
        let StoredObject { kind, name, fields } = object;
        let (name, fields) = (name.as_str(), fields.as_ref());
        let once = || fields.expect("what exists once is never deleted");
        match kind {
            ObjectKind::ComplexTable => self.complex = Arc::new(complex_of(once())),
            ObjectKind::ExecHost => put(&mut self.exec_hosts, HostName::new(name), fields, ExecHost::from_fields),
            ObjectKind::Queue => put(&mut self.queues, name.into(), fields, ClusterQueue::from_fields),
            ObjectKind::HostGroup => put(&mut self.host_groups, name.into(), fields, HostGroup::from_fields),
            ObjectKind::Pe => put(&mut self.pes, name.into(), fields, ParallelEnvironment::from_fields),
            ObjectKind::ClusterConf if name.is_empty() || name == "global" => {
                self.cluster =
                    Arc::new(ClusterConf::from_fields(&HostName::global(), once()).expect("stored objects read"));
            }
            ObjectKind::ClusterConf => {
                let host = HostName::new(name);
                put(&mut self.host_confs, host.clone(), fields, |fields| ClusterConf::from_fields(&host, fields));
            }
            ObjectKind::SchedulerConf => {
                self.scheduler = Arc::new(SchedulerConf::from_fields(once()).expect("stored objects read"));
            }
            ObjectKind::AdminHosts => list(&mut self.admin_hosts, HostName::new(name), fields),
            ObjectKind::SubmitHosts => list(&mut self.submit_hosts, HostName::new(name), fields),
            ObjectKind::Managers => list(&mut self.managers, name.into(), fields),
            ObjectKind::Operators => list(&mut self.operators, name.into(), fields),
            ObjectKind::Checkpoint
            | ObjectKind::Calendar
            | ObjectKind::UserSet
            | ObjectKind::Project
            | ObjectKind::User
            | ObjectKind::ResourceQuota
            | ObjectKind::ShareTree => unreachable!("objects that are not supported are refused, never stored"),
        }
    }

    /// The objects alone, for changes to be tried on: nothing is derived from them. At little cost, the objects are shared.
    pub fn objects(&self) -> Configuration {
        Configuration {
            complex: self.complex.clone(),
            exec_hosts: self.exec_hosts.clone(),
            queues: self.queues.clone(),
            host_groups: self.host_groups.clone(),
            pes: self.pes.clone(),
            cluster: self.cluster.clone(),
            host_confs: self.host_confs.clone(),
            scheduler: self.scheduler.clone(),
            admin_hosts: self.admin_hosts.clone(),
            submit_hosts: self.submit_hosts.clone(),
            managers: self.managers.clone(),
            operators: self.operators.clone(),
            ..Configuration::new()
        }
    }

    /// The cluster configuration that holds on a host.
    pub fn settings_of(&self, host: &HostName) -> &Arc<Settings> {
        self.host_settings.get(host).unwrap_or(&self.settings)
    }

    /// The host groups, to be resolved.
    pub fn groups(&self) -> HostGroupTable {
        let mut groups = HostGroupTable::default();
        self.host_groups.values().for_each(|group| groups.insert(group.clone()));
        groups
    }

    /// Whether a host is the one named, or in the group named.
    pub fn is_in(&self, host: &HostName, domain: &HostOrGroup) -> bool {
        match domain {
            HostOrGroup::Host(name) => name == host,
            HostOrGroup::Group(group) => self.groups_of.get(host).is_some_and(|groups| groups.contains(group)),
        }
    }

    /// An object as it is stored; no fields for a name in a list. None if there is no such object.
    pub fn object_fields(&self, kind: ObjectKind, name: &str) -> Option<Fields> {
        let in_list = |is_there: bool| is_there.then(Fields::new);
        match kind {
            ObjectKind::ComplexTable => Some(complex_fields(&self.complex)),
            ObjectKind::ExecHost => self.exec_hosts.get(name).map(|host| host.to_fields()),
            ObjectKind::Queue => self.queues.get(name).map(|queue| queue.to_fields()),
            ObjectKind::HostGroup => self.host_groups.get(name).map(|group| group.to_fields()),
            ObjectKind::Pe => self.pes.get(name).map(|pe| pe.to_fields()),
            ObjectKind::ClusterConf if name.is_empty() || name == "global" => Some(self.cluster.to_fields()),
            ObjectKind::ClusterConf => self.host_confs.get(name).map(|conf| conf.to_fields()),
            ObjectKind::SchedulerConf => Some(self.scheduler.to_fields()),
            ObjectKind::AdminHosts => in_list(self.admin_hosts.contains(name)),
            ObjectKind::SubmitHosts => in_list(self.submit_hosts.contains(name)),
            ObjectKind::Managers => in_list(self.managers.contains(name)),
            ObjectKind::Operators => in_list(self.operators.contains(name)),
            ObjectKind::Checkpoint
            | ObjectKind::Calendar
            | ObjectKind::UserSet
            | ObjectKind::Project
            | ObjectKind::User
            | ObjectKind::ResourceQuota
            | ObjectKind::ShareTree => None,
        }
    }
}

impl Default for Configuration {
    fn default() -> Self {
        Self::new()
    }
}

/// The table of attributes as it is stored and travels: one field for each, its name and the other seven columns.
pub fn complex_fields(complex: &Complex) -> Fields {
    let columns = |line: String| line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ");
    complex.iter().map(|attribute| (attribute.name.to_string(), columns(attribute.to_string()))).collect()
}

/// The table of its fields.
fn complex_of(fields: &Fields) -> Complex {
    let lines: Vec<String> = fields.iter().map(|field| format!("{} {}", field.key, field.value)).collect();
    Complex::parse(&lines.join("\n")).expect("stored objects read")
}

/// Sets an object, or removes it if it has no fields.
fn put<K: Ord, V, E: std::fmt::Debug>(
    map: &mut BTreeMap<K, Arc<V>>,
    name: K,
    fields: Option<&Fields>,
    read: impl Fn(&Fields) -> Result<V, E>,
) {
    match fields {
        Some(fields) => map.insert(name, Arc::new(read(fields).expect("stored objects read"))),
        None => map.remove(&name),
    };
}

/// Adds a name to a list, or removes it if it has no fields.
fn list<K: Ord>(set: &mut BTreeSet<K>, name: K, fields: Option<&Fields>) {
    match fields {
        Some(_) => set.insert(name),
        None => set.remove(&name),
    };
}
