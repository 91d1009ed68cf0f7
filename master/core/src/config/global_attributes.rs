//! What the whole cluster offers, as passes of the scheduler ask for it at each order.

use crate::config::Configuration;
use crate::event::StoredObject;
use proto::id::{AttributeName, HostName};
use proto::object::ObjectKind;
use proto::object::value::Assignments;
use proto::queue::Setting;
use std::collections::BTreeSet;

/// What follows from the values that the host `global` has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GlobalAttributes {
    /// The attributes of which the whole cluster has a value, by their full names.
    pub names: BTreeSet<AttributeName>,
    /// Whether which queue instances take jobs, and in which order, follows from how much is left
    /// of one of them.
    pub moves_standings: bool,
}

impl GlobalAttributes {
    /// Whether it follows from an object.
    pub(crate) fn follows(object: &StoredObject) -> bool {
        match object.kind {
            ObjectKind::ComplexTable | ObjectKind::Queue | ObjectKind::SchedulerConf => true,
            ObjectKind::ExecHost => HostName::new(&object.name) == HostName::global(),
            ObjectKind::HostGroup
            | ObjectKind::Pe
            | ObjectKind::ClusterConf
            | ObjectKind::AdminHosts
            | ObjectKind::SubmitHosts
            | ObjectKind::Managers
            | ObjectKind::Operators
            | ObjectKind::Checkpoint
            | ObjectKind::Calendar
            | ObjectKind::UserSet
            | ObjectKind::Project
            | ObjectKind::User
            | ObjectKind::ResourceQuota
            | ObjectKind::ShareTree => false,
        }
    }

    pub(crate) fn from_config(config: &Configuration) -> Self {
        let full = |name: &str| config.complex.lookup(name).map(|attribute| attribute.name.clone());
        let global = config.exec_hosts.get(&HostName::global());
        let values = global.into_iter().flat_map(|global| global.complex_values.iter());
        let names: BTreeSet<AttributeName> = values.filter_map(|(name, _)| full(name.as_str())).collect();
        let is_shared = |name: &str| full(name).is_some_and(|name| names.contains(&name));
        let is_in = |list: &Setting<Assignments>| {
            list.values()
                .flat_map(|list| list.iter())
                .any(|(used, _)| is_shared(used.as_str()))
        };
        let moves_standings = !names.is_empty()
            && (config
                .queues
                .values()
                .any(|queue| is_in(&queue.load_thresholds) || is_in(&queue.suspend_thresholds))
                || config
                    .scheduler
                    .load_formula
                    .attributes()
                    .any(|used| is_shared(used.as_str())));
        Self { names, moves_standings }
    }
}
