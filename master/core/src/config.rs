//! The configuration objects of a cell and what they resolve to.

mod access;
mod causes;
mod containers;
mod derived;
mod devices;
mod global_attributes;
mod kinds;
pub mod pattern;

pub use access::Access;
pub use causes::Causes;
pub use derived::{DerivedChanges, HostSite};
pub use global_attributes::GlobalAttributes;

use crate::collections::by_host::ByHost;
use crate::event::StoredObject;
use proto::calendar::Calendar;
use proto::checkpoint::{Checkpoint, CheckpointOccasions, Occasion};
use proto::complex::Complex;
use proto::conf::{ClusterConf, Settings};
use proto::host::ExecHost;
use proto::host::names::{HostNames, Naming};
use proto::hostgroup::{HostGroup, HostGroupTable, HostOrGroup};
use proto::id::{CalendarName, HostGroupName, HostName, PeName, QueueInstanceName, QueueName, QuotaName, UserName};
use proto::job::JobSpec;
use proto::object::{Fields, ObjectKind};
use proto::pe::ParallelEnvironment;
use proto::policy::SchedulerConf;
use proto::project::{Project, User};
use proto::queue::{Ambiguity, ClusterQueue, QueueInstanceSettings};
use proto::quota::QuotaSet;
use proto::sharetree::ShareTree;
use proto::userset::UserSet;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Every configuration object that exists, by kind and name.
///
/// Invariant: `resolved`, `sites`, `settings` and `host_settings` are exactly what the objects
/// resolve to.
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
    /// Calendars.
    #[serde(default)]
    pub calendars: BTreeMap<CalendarName, Arc<Calendar>>,
    /// Resource quota sets.
    #[serde(default)]
    pub quotas: BTreeMap<QuotaName, Arc<QuotaSet>>,
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
    /// Access lists and departments.
    #[serde(default)]
    pub user_sets: BTreeMap<String, Arc<UserSet>>,
    /// Projects.
    #[serde(default)]
    pub projects: BTreeMap<String, Arc<Project>>,
    /// Users with shares.
    #[serde(default)]
    pub users: BTreeMap<String, Arc<User>>,
    /// Checkpointing environments.
    #[serde(default)]
    pub checkpoints: BTreeMap<String, Arc<Checkpoint>>,
    /// The share tree, if there is one.
    #[serde(default)]
    pub share_tree: Option<Arc<ShareTree>>,
    /// Settings of every queue instance: derived, kept current by `apply`.
    #[serde(skip)]
    pub resolved: BTreeMap<QueueInstanceName, Arc<QueueInstanceSettings>>,
    /// Hosts with the settings of their queue instances, to be found at once: derived likewise.
    #[serde(skip)]
    pub sites: ByHost<HostSite>,
    /// The queue instances for which host groups disagree, with the attributes: derived likewise.
    #[serde(skip)]
    pub ambiguous: BTreeMap<QueueInstanceName, Vec<Ambiguity>>,
    /// The host groups that contain each host, directly or through others: derived likewise.
    #[serde(skip)]
    pub groups_of: BTreeMap<HostName, BTreeSet<HostGroupName>>,
    /// The queues whose instances are suspended or closed by something else than people: derived
    /// likewise.
    #[serde(skip)]
    pub causes: Causes,
    /// The global cluster configuration as typed values: derived likewise.
    #[serde(skip, default = "shipped_settings")]
    pub settings: Arc<Settings>,
    /// The same for hosts with a configuration of their own.
    #[serde(skip)]
    pub host_settings: BTreeMap<HostName, Arc<Settings>>,
    /// When users are to be deleted by themselves, in seconds since 1970, with their names: derived
    /// likewise.
    #[serde(skip)]
    pub expiring: BTreeSet<(u32, String)>,
    /// Who is in which access list and department: derived likewise.
    #[serde(skip)]
    pub access: Access,
    /// What the whole cluster offers: derived likewise.
    #[serde(skip)]
    pub shared: GlobalAttributes,
}

fn shipped_settings() -> Arc<Settings> {
    Arc::new(Settings::template())
}

impl Configuration {
    /// The configuration before the first event: the built-in complex, `global`, and the shipped
    /// settings.
    pub fn new() -> Self {
        let global = Arc::new(ExecHost::template(HostName::global()));
        let mut new = Self {
            complex: Arc::new(Complex::built_in()),
            exec_hosts: BTreeMap::from([(HostName::global(), global)]),
            queues: BTreeMap::new(),
            host_groups: BTreeMap::new(),
            pes: BTreeMap::new(),
            calendars: BTreeMap::new(),
            quotas: BTreeMap::new(),
            cluster: Arc::new(ClusterConf::template()),
            host_confs: BTreeMap::new(),
            scheduler: Arc::new(SchedulerConf::template()),
            admin_hosts: BTreeSet::new(),
            submit_hosts: BTreeSet::new(),
            managers: BTreeSet::new(),
            operators: BTreeSet::new(),
            user_sets: BTreeMap::new(),
            projects: BTreeMap::new(),
            users: BTreeMap::new(),
            checkpoints: BTreeMap::new(),
            share_tree: None,
            resolved: BTreeMap::new(),
            sites: ByHost::new(),
            ambiguous: BTreeMap::new(),
            groups_of: BTreeMap::new(),
            causes: Causes::default(),
            settings: shipped_settings(),
            host_settings: BTreeMap::new(),
            expiring: BTreeSet::new(),
            access: Access::default(),
            shared: GlobalAttributes::default(),
        };
        new.note_host(&HostName::global());
        new
    }

    /// The hosts that are known by what people call them; `here` is the host on which the names
    /// were written.
    pub fn host_names<'a>(&'a self, naming: &'a Naming, here: &'a HostName) -> HostNames<'a> {
        HostNames::new(
            vec![&self.exec_hosts, &self.admin_hosts, &self.submit_hosts],
            naming,
            here,
        )
    }

    /// Makes one stored object true; what is derived stays as it was.
    ///
    /// # Panics
    /// If its fields do not read: they were read before they were stored.
    pub fn put(&mut self, object: &StoredObject) {
        (kinds::row(object.kind).put)(self, &object.name, object.fields.as_ref());
    }

    /// The objects alone, for changes to be tried on: nothing is derived from them. At little cost,
    /// the objects are shared.
    pub fn objects(&self) -> Configuration {
        let Configuration {
            complex,
            exec_hosts,
            queues,
            host_groups,
            pes,
            calendars,
            quotas,
            cluster,
            host_confs,
            scheduler,
            admin_hosts,
            submit_hosts,
            managers,
            operators,
            user_sets,
            projects,
            users,
            checkpoints,
            share_tree,
            resolved: _,
            sites: _,
            ambiguous: _,
            groups_of: _,
            causes: _,
            settings: _,
            host_settings: _,
            expiring: _,
            access: _,
            shared: _,
        } = self;
        Configuration {
            complex: complex.clone(),
            exec_hosts: exec_hosts.clone(),
            queues: queues.clone(),
            host_groups: host_groups.clone(),
            pes: pes.clone(),
            calendars: calendars.clone(),
            quotas: quotas.clone(),
            cluster: cluster.clone(),
            host_confs: host_confs.clone(),
            scheduler: scheduler.clone(),
            admin_hosts: admin_hosts.clone(),
            submit_hosts: submit_hosts.clone(),
            managers: managers.clone(),
            operators: operators.clone(),
            user_sets: user_sets.clone(),
            projects: projects.clone(),
            users: users.clone(),
            checkpoints: checkpoints.clone(),
            share_tree: share_tree.clone(),
            ..Configuration::new()
        }
    }

    /// The checkpointing environment that a job has; none of a job that has none.
    pub fn checkpoint_of(&self, spec: &JobSpec) -> Option<&Checkpoint> {
        spec.checkpoint
            .as_ref()
            .and_then(|name| self.checkpoints.get(name))
            .map(AsRef::as_ref)
    }

    /// When the state of a job is written: never, for a job without a checkpointing environment.
    pub fn checkpoint_when(&self, spec: &JobSpec) -> CheckpointOccasions {
        self.checkpoint_of(spec)
            .map_or_else(CheckpointOccasions::default, |ckpt| {
                Occasion::when(spec.occasion, ckpt.when)
            })
    }

    /// The resource quota sets that limit something now.
    pub fn enabled_quotas(&self) -> impl Iterator<Item = &QuotaSet> {
        self.quotas.values().map(AsRef::as_ref).filter(|set| set.enabled.0)
    }

    /// The settings of a queue instance.
    pub fn settings_in(&self, instance: &QueueInstanceName) -> Option<&Arc<QueueInstanceSettings>> {
        self.sites.get(&instance.host)?.settings(&instance.queue)
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
        (kinds::row(kind).fields)(self, name)
    }

    /// The names of the objects of a kind, in order: of the complex its attributes, of the hosts
    /// not `global`, and an empty name for what exists once.
    pub fn object_names(&self, kind: ObjectKind) -> Vec<String> {
        (kinds::row(kind).names)(self)
    }
}

impl Default for Configuration {
    fn default() -> Self {
        Self::new()
    }
}
