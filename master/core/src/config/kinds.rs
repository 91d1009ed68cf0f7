//! How the objects of each kind are kept: a row for each.

use crate::config::Configuration;
use proto::calendar::Calendar;
use proto::checkpoint::Checkpoint;
use proto::complex::Complex;
use proto::conf::ClusterConf;
use proto::host::ExecHost;
use proto::hostgroup::HostGroup;
use proto::id::{CalendarName, HostGroupName, HostName, PeName, QueueName, QuotaName, UserName};
use proto::object::{Fields, Object, ObjectKind};
use proto::pe::ParallelEnvironment;
use proto::policy::SchedulerConf;
use proto::project::{Project, User};
use proto::queue::ClusterQueue;
use proto::quota::QuotaSet;
use proto::sharetree::ShareTree;
use proto::userset::UserSet;
use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How the objects of one kind are found and changed.
pub(crate) struct KindStore {
    /// Their names in order.
    pub names: fn(&Configuration) -> Vec<String>,
    /// The attributes of one, none if it does not exist; no attributes for a name in a list.
    pub fields: fn(&Configuration, &str) -> Option<Fields>,
    /// Sets one, or removes it if there are no fields.
    pub put: fn(&mut Configuration, &str, Option<&Fields>),
}

/// Objects that are kept by their names.
trait NamedObject: Object {
    /// What they are called by.
    type Name: Ord + Borrow<str> + for<'a> From<&'a str>;

    /// All there are.
    fn all(config: &Configuration) -> &BTreeMap<Self::Name, Arc<Self>>;

    /// All there are, to be changed.
    fn all_mut(config: &mut Configuration) -> &mut BTreeMap<Self::Name, Arc<Self>>;
}

/// Declares where the objects of a type are kept: two accessors that differ in `mut` alone.
macro_rules! kept {
    ($type:ty, $name:ty, $field:ident) => {
        impl NamedObject for $type {
            type Name = $name;

            fn all(config: &Configuration) -> &BTreeMap<$name, Arc<Self>> {
                &config.$field
            }

            fn all_mut(config: &mut Configuration) -> &mut BTreeMap<$name, Arc<Self>> {
                &mut config.$field
            }
        }
    };
}

kept!(ExecHost, HostName, exec_hosts);
kept!(ClusterQueue, QueueName, queues);
kept!(HostGroup, HostGroupName, host_groups);
kept!(ParallelEnvironment, PeName, pes);
kept!(QuotaSet, QuotaName, quotas);
kept!(ClusterConf, HostName, host_confs);
kept!(Calendar, CalendarName, calendars);
kept!(UserSet, String, user_sets);
kept!(Project, String, projects);
kept!(User, String, users);
kept!(Checkpoint, String, checkpoints);

impl KindStore {
    const fn kept<T: NamedObject>() -> KindStore {
        KindStore {
            names: names::<T>,
            fields: fields::<T>,
            put: put::<T>,
        }
    }
}

fn names<T: NamedObject>(config: &Configuration) -> Vec<String> {
    T::all(config).keys().map(|name| name.borrow().to_owned()).collect()
}

fn fields<T: NamedObject>(config: &Configuration, name: &str) -> Option<Fields> {
    T::all(config).get(name).map(|object| object.write())
}

fn put<T: NamedObject>(config: &mut Configuration, name: &str, fields: Option<&Fields>) {
    let all = T::all_mut(config);
    match fields {
        Some(fields) => all.insert(name.into(), Arc::new(read(name, fields))),
        None => all.remove(name),
    };
}

fn read<T: Object>(name: &str, fields: &Fields) -> T {
    T::read(name, fields).expect("stored objects read")
}

/// What exists once is never deleted.
fn once<T: Object>(fields: Option<&Fields>) -> Arc<T> {
    Arc::new(read("global", fields.expect("what exists once is never deleted")))
}

fn texts<K: ToString>(names: &BTreeSet<K>) -> Vec<String> {
    names.iter().map(K::to_string).collect()
}

fn is_in(is_there: bool) -> Option<Fields> {
    is_there.then(Fields::new)
}

/// Adds a name to a list, or removes it if it has no fields.
fn list<K: Ord>(set: &mut BTreeSet<K>, name: K, fields: Option<&Fields>) {
    match fields {
        Some(_) => set.insert(name),
        None => set.remove(&name),
    };
}

/// Whether a name of a cluster configuration is that of the global one.
fn is_global(name: &str) -> bool {
    name.is_empty() || name == HostName::global().as_str()
}

const COMPLEX: KindStore = KindStore {
    names: |config| {
        config
            .complex
            .iter()
            .map(|attribute| attribute.name.to_string())
            .collect()
    },
    fields: |config, _| Some(config.complex.write()),
    put: |config, _, fields| config.complex = once::<Complex>(fields),
};

const EXEC_HOST: KindStore = KindStore {
    names: |config| {
        config
            .exec_hosts
            .keys()
            .filter(|host| !host.is_global())
            .map(HostName::to_string)
            .collect()
    },
    ..KindStore::kept::<ExecHost>()
};

const CLUSTER_CONF: KindStore = KindStore {
    fields: |config, name| match is_global(name) {
        true => Some(config.cluster.write()),
        false => fields::<ClusterConf>(config, name),
    },
    put: |config, name, fields| match is_global(name) {
        true => config.cluster = once(fields),
        false => put::<ClusterConf>(config, name, fields),
    },
    ..KindStore::kept::<ClusterConf>()
};

const SCHEDULER_CONF: KindStore = KindStore {
    names: |_| vec![String::new()],
    fields: |config, _| Some(config.scheduler.write()),
    put: |config, _, fields| config.scheduler = once::<SchedulerConf>(fields),
};

const ADMIN_HOSTS: KindStore = KindStore {
    names: |config| texts(&config.admin_hosts),
    fields: |config, name| is_in(config.admin_hosts.contains(name)),
    put: |config, name, fields| list(&mut config.admin_hosts, HostName::new(name), fields),
};

const SUBMIT_HOSTS: KindStore = KindStore {
    names: |config| texts(&config.submit_hosts),
    fields: |config, name| is_in(config.submit_hosts.contains(name)),
    put: |config, name, fields| list(&mut config.submit_hosts, HostName::new(name), fields),
};

const MANAGERS: KindStore = KindStore {
    names: |config| texts(&config.managers),
    fields: |config, name| is_in(config.managers.contains(name)),
    put: |config, name, fields| list(&mut config.managers, UserName::from(name), fields),
};

const OPERATORS: KindStore = KindStore {
    names: |config| texts(&config.operators),
    fields: |config, name| is_in(config.operators.contains(name)),
    put: |config, name, fields| list(&mut config.operators, UserName::from(name), fields),
};

const SHARE_TREE: KindStore = KindStore {
    names: |config| config.share_tree.iter().map(|_| String::new()).collect(),
    fields: |config, _| config.share_tree.as_ref().map(|tree| tree.write()),
    put: |config, name, fields| config.share_tree = fields.map(|fields| Arc::new(read::<ShareTree>(name, fields))),
};

/// How the objects of a kind are kept.
pub(crate) const fn row(kind: ObjectKind) -> &'static KindStore {
    match kind {
        ObjectKind::ComplexTable => &COMPLEX,
        ObjectKind::ExecHost => &EXEC_HOST,
        ObjectKind::Queue => const { &KindStore::kept::<ClusterQueue>() },
        ObjectKind::HostGroup => const { &KindStore::kept::<HostGroup>() },
        ObjectKind::Pe => const { &KindStore::kept::<ParallelEnvironment>() },
        ObjectKind::ResourceQuota => const { &KindStore::kept::<QuotaSet>() },
        ObjectKind::ClusterConf => &CLUSTER_CONF,
        ObjectKind::SchedulerConf => &SCHEDULER_CONF,
        ObjectKind::AdminHosts => &ADMIN_HOSTS,
        ObjectKind::SubmitHosts => &SUBMIT_HOSTS,
        ObjectKind::Managers => &MANAGERS,
        ObjectKind::Operators => &OPERATORS,
        ObjectKind::Calendar => const { &KindStore::kept::<Calendar>() },
        ObjectKind::Checkpoint => const { &KindStore::kept::<Checkpoint>() },
        ObjectKind::UserSet => const { &KindStore::kept::<UserSet>() },
        ObjectKind::Project => const { &KindStore::kept::<Project>() },
        ObjectKind::User => const { &KindStore::kept::<User>() },
        ObjectKind::ShareTree => &SHARE_TREE,
    }
}
