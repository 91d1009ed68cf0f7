//! The configuration objects of a cell and what they resolve to.

use proto::complex::Complex;
use proto::conf::ClusterConf;
use proto::host::ExecHost;
use proto::hostgroup::HostGroup;
use proto::id::{HostGroupName, HostName, PeName, QueueInstanceName, QueueName, UserName};
use proto::pe::ParallelEnvironment;
use proto::policy::SchedulerConf;
use proto::queue::{ClusterQueue, QueueInstanceSettings};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Every configuration object that exists, by kind and name.
///
/// Invariant: `resolved` is exactly what `queues`, `host_groups` and `exec_hosts` resolve to.
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
}
