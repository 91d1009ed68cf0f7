//! What follows from the objects: settings of queue instances, groups of hosts, typed
//! configurations. It is kept current by what changed; only a snapshot that is read makes all of it
//! anew.

use crate::config::{Access, Configuration, GlobalAttributes};
use crate::event::StoredObject;
use proto::conf::Settings;
use proto::host::ExecHost;
use proto::hostgroup::{HostGroupTable, HostOrGroup};
use proto::id::{HostGroupName, HostName, QueueInstanceName, QueueName};
use proto::object::ObjectKind;
use proto::queue::QueueInstanceSettings;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

/// From how many hosts on one walk over all groups is cheaper than a search for each of them.
const MANY_HOSTS: usize = 16;

/// What changed objects led to in what is derived from them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DerivedChanges {
    /// Hosts that changed themselves, that came into a group or left one, or of which a queue
    /// instance changed.
    pub hosts: BTreeSet<HostName>,
    /// Queue instances that are new.
    pub added: Vec<QueueInstanceName>,
    /// Queue instances that are no longer configured.
    pub removed: Vec<QueueInstanceName>,
    /// Whether somebody came into an access list in use, left one, or such a list came into use.
    pub access: bool,
}

/// What is to be derived anew.
#[derive(Default)]
struct StaleParts {
    hosts: BTreeSet<HostName>,
    queues: BTreeSet<QueueName>,
    settings: bool,
    sets: bool,
}

impl Configuration {
    /// Makes stored objects true, and derives anew what they touch.
    ///
    /// # Panics
    /// If the fields of an object do not read: they were read before they were stored.
    pub fn store(&mut self, objects: &[StoredObject]) -> DerivedChanges {
        let mut stale = StaleParts::default();
        let (mut touched, mut groups) = (DerivedChanges::default(), BTreeSet::new());
        let before = self.groups();
        for object in objects {
            if object.kind == ObjectKind::Queue {
                stale.queues.insert(object.name.as_str().into());
            } else if object.kind == ObjectKind::HostGroup {
                groups.insert(HostGroupName::from(object.name.as_str()));
            } else if object.kind == ObjectKind::ExecHost {
                let host = HostName::new(&object.name);
                if self.exec_hosts.contains_key(&host) != object.fields.is_some() {
                    stale.hosts.insert(host.clone());
                }
                touched.hosts.insert(host);
            }
            stale.settings |= object.kind == ObjectKind::ClusterConf;
            stale.sets |= object.kind == ObjectKind::UserSet;
            if object.kind == ObjectKind::User {
                self.forget_expiry(&object.name);
            }
            self.put(object);
            if object.kind == ObjectKind::ExecHost {
                self.note_host(&HostName::new(&object.name));
            }
            if object.kind == ObjectKind::User {
                self.note_expiry(&object.name);
            }
        }
        let after = self.groups();
        for group in &groups {
            let (old, new) = (before.hosts_of(group), after.hosts_of(group));
            stale.hosts.extend(old.symmetric_difference(&new).cloned());
        }
        self.regroup(&after, &stale.hosts);
        if let Some(access) = self.access.renewed(self, stale.sets) {
            (self.access, touched.access) = (access, true);
        }
        if objects.iter().any(GlobalAttributes::follows) {
            self.shared = GlobalAttributes::from_config(self);
        }
        self.refresh(&after, stale, &mut touched);
        touched
    }

    /// Derives everything from the objects.
    pub fn resolve(&mut self) {
        let groups = self.groups();
        self.access = Access::from_config(self);
        self.shared = GlobalAttributes::from_config(self);
        let users: Vec<String> = self.users.keys().cloned().collect();
        users.iter().for_each(|user| self.note_expiry(user));
        self.groups_of = groups.groups_by_host();
        (self.resolved, self.ambiguous, self.causes) = (BTreeMap::new(), BTreeMap::new(), Default::default());
        let of_host = |(host, object): (&HostName, &Arc<ExecHost>)| {
            (
                host.clone(),
                HostSite {
                    host: Some(object.clone()),
                    instances: Vec::new(),
                },
            )
        };
        self.sites = self.exec_hosts.iter().map(of_host).collect();
        let stale = StaleParts {
            hosts: BTreeSet::new(),
            queues: self.queues.keys().cloned().collect(),
            settings: true,
            ..StaleParts::default()
        };
        self.refresh(&groups, stale, &mut DerivedChanges::default());
    }

    fn note_expiry(&mut self, user: &str) {
        let expiry = self.users.get(user).map(|user| user.delete_time).filter(|at| *at > 0);
        self.expiring.extend(expiry.map(|at| (at, user.to_owned())));
    }

    fn forget_expiry(&mut self, user: &str) {
        if let Some(known) = self.users.get(user) {
            self.expiring.remove(&(known.delete_time, user.to_owned()));
        }
    }

    /// Notes the groups of hosts anew.
    fn regroup(&mut self, groups: &HostGroupTable, hosts: &BTreeSet<HostName>) {
        let mut all = (hosts.len() >= MANY_HOSTS).then(|| groups.groups_by_host());
        for host in hosts {
            let of_host = match &mut all {
                Some(all) => all.remove(host).unwrap_or_default(),
                None => groups.groups_of(host),
            };
            match of_host.is_empty() {
                true => self.groups_of.remove(host),
                false => self.groups_of.insert(host.clone(), of_host),
            };
        }
    }

    fn refresh(&mut self, groups: &HostGroupTable, stale: StaleParts, touched: &mut DerivedChanges) {
        if stale.settings {
            self.settings = Arc::new(Settings::effective(&self.cluster, None));
            let effective = |local: &Arc<_>| Arc::new(Settings::effective(&self.cluster, Some(local)));
            self.host_settings = self
                .host_confs
                .iter()
                .map(|(host, local)| (host.clone(), effective(local)))
                .collect();
        }
        let others: Vec<QueueName> = self
            .queues
            .keys()
            .filter(|queue| !stale.queues.contains(*queue))
            .cloned()
            .collect();
        for host in &stale.hosts {
            touched.hosts.insert(host.clone());
            for queue in &others {
                let is_member = self.is_member(queue, host);
                self.settle(queue, host, is_member, touched);
            }
        }
        for queue in &stale.queues {
            self.causes.note(queue, self.queues.get(queue).map(Arc::as_ref));
            let members = self
                .queues
                .get(queue)
                .map(|queue| queue.hosts(groups))
                .unwrap_or_default();
            let first = QueueInstanceName {
                queue: queue.clone(),
                host: HostName::new(""),
            };
            let known = self.resolved.range(first..).map(|(instance, _)| instance);
            let known: Vec<HostName> = known
                .take_while(|known| known.queue == *queue)
                .map(|known| known.host.clone())
                .collect();
            for host in known.iter().filter(|host| !members.contains(*host)) {
                self.settle(queue, host, false, touched);
            }
            for host in &members {
                self.settle(queue, host, true, touched);
            }
        }
    }

    /// Whether a queue's host list names a host, itself or by a group.
    fn is_member(&self, queue: &QueueName, host: &HostName) -> bool {
        let groups = self.groups_of.get(host);
        self.queues.get(queue).is_some_and(|queue| {
            queue.hostlist.iter().any(|member| match member {
                HostOrGroup::Host(member) => member == host,
                HostOrGroup::Group(group) => groups.is_some_and(|groups| groups.contains(group)),
            })
        })
    }

    /// Sets the settings of one instance, or removes it if its host does not belong to its queue or
    /// to the cell.
    fn settle(&mut self, queue: &QueueName, host: &HostName, is_member: bool, touched: &mut DerivedChanges) {
        let instance = QueueInstanceName {
            queue: queue.clone(),
            host: host.clone(),
        };
        let Some(queue) = self
            .queues
            .get(queue)
            .filter(|_| is_member && self.exec_hosts.contains_key(host))
        else {
            self.ambiguous.remove(&instance);
            self.note_instance(&instance, None);
            if self.resolved.remove(&instance).is_some() {
                touched.hosts.insert(host.clone());
                touched.removed.push(instance);
            }
            return;
        };
        let none = BTreeSet::new();
        let (settings, ambiguities) = queue.resolve(host, self.groups_of.get(host).unwrap_or(&none));
        let is_same_ambiguity = self
            .ambiguous
            .get(&instance)
            .map_or(ambiguities.is_empty(), |old| *old == ambiguities);
        let known = self.resolved.get(&instance);
        if is_same_ambiguity && known.is_some_and(|known| **known == settings) {
            return;
        }
        touched.hosts.insert(host.clone());
        if known.is_none() {
            touched.added.push(instance.clone());
        }
        match ambiguities.is_empty() {
            true => self.ambiguous.remove(&instance),
            false => self.ambiguous.insert(instance.clone(), ambiguities),
        };
        let settings = self.shared(&instance, settings);
        self.note_instance(&instance, Some(settings.clone()));
        self.resolved.insert(instance, settings);
    }

    /// The settings of a queue instance: those of a neighbour where they are equal, for most of a
    /// queue are, and there may be ten thousand.
    fn shared(&self, instance: &QueueInstanceName, settings: QueueInstanceSettings) -> Arc<QueueInstanceSettings> {
        let before = self.resolved.range(..instance).next_back();
        let after = self
            .resolved
            .range((Bound::Excluded(instance), Bound::Unbounded))
            .next();
        let equal = before.into_iter().chain(after).find(|(_, known)| ***known == settings);
        equal.map_or_else(|| Arc::new(settings), |(_, known)| known.clone())
    }

    /// An execution host object has been set or removed.
    pub(crate) fn note_host(&mut self, host: &HostName) {
        self.sites.or_default(host).host = self.exec_hosts.get(host).cloned();
        self.tidy_site(host);
    }

    fn note_instance(&mut self, instance: &QueueInstanceName, settings: Option<Arc<QueueInstanceSettings>>) {
        let instances = &mut self.sites.or_default(&instance.host).instances;
        instances.retain(|(queue, _)| *queue != instance.queue);
        if let Some(settings) = settings {
            let at = instances.partition_point(|(queue, _)| *queue < instance.queue);
            instances.insert(at, (instance.queue.clone(), settings));
        }
        self.tidy_site(&instance.host);
    }

    fn tidy_site(&mut self, host: &HostName) {
        if self
            .sites
            .get(host)
            .is_some_and(|site| site.host.is_none() && site.instances.is_empty())
        {
            self.sites.remove(host);
        }
    }
}

/// An execution host with its queue instances.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostSite {
    /// Its object, if it has one.
    pub host: Option<Arc<ExecHost>>,
    /// The settings of its queue instances, by queue.
    pub instances: Vec<(QueueName, Arc<QueueInstanceSettings>)>,
}

impl HostSite {
    /// The settings of the instance of a queue there.
    pub fn settings(&self, queue: &QueueName) -> Option<&Arc<QueueInstanceSettings>> {
        self.instances
            .iter()
            .find(|(known, _)| known == queue)
            .map(|(_, settings)| settings)
    }
}
