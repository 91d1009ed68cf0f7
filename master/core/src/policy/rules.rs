//! The part of the configuration that decides about tickets, in the form in which it is needed.

use super::pricing::PRICED_TASKS;
use super::tree::Tree;
use crate::config::Configuration;
use proto::object::value::Weight;
use proto::policy::{PolicyHierarchy, TicketPolicy};

/// The kinds of objects that have shares and override tickets, as places in arrays.
pub const USER: usize = 0;
/// Projects.
pub const PROJECT: usize = 1;
/// Departments.
pub const DEPARTMENT: usize = 2;
/// The share of the job itself (`-js`): functional only.
pub const JOB: usize = 3;

/// The functional policy, if it is on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FunctionalPolicy {
    /// All its tickets.
    pub pool: f64,
    /// The weights of users, projects, departments and jobs, as configured.
    pub weights: [f64; 4],
    /// Whether the shares of an object are divided among its tasks.
    pub is_shared: bool,
    /// The number of pending tasks that get tickets of their own.
    pub most: usize,
}

/// The share tree, if it is on.
#[derive(Clone, Debug, PartialEq)]
pub struct ShareTreePolicy {
    /// All its tickets.
    pub pool: f64,
    /// How many times its long-term target a node may get; 0 means without bound.
    pub compensation: f64,
    /// The tree.
    pub tree: Tree,
}

/// The rules for tickets.
#[derive(Clone, Debug, PartialEq)]
pub struct TicketRules {
    /// The functional policy.
    pub functional: Option<FunctionalPolicy>,
    /// The share tree.
    pub sharing: Option<ShareTreePolicy>,
    /// Whether the override tickets of an object are divided among its tasks.
    pub is_override_shared: bool,
    /// The number of tasks of an array that get tickets of their own.
    pub most_tasks: usize,
    /// The policies that depend on those before them, in order.
    pub hierarchy: Vec<TicketPolicy>,
}

/// A weight as a number.
fn number(weight: Weight) -> f64 {
    weight.millionths() as f64 / 1e6
}

impl TicketRules {
    /// The rules of a configuration.
    pub fn from_config(config: &Configuration) -> TicketRules {
        let conf = &config.scheduler;
        let weights = [
            conf.weight_user,
            conf.weight_project,
            conf.weight_department,
            conf.weight_job,
        ]
        .map(number);
        let functional = (conf.weight_tickets_functional > 0).then(|| FunctionalPolicy {
            pool: f64::from(conf.weight_tickets_functional),
            weights,
            is_shared: conf.share_functional_shares.0,
            most: usize::try_from(conf.max_functional_jobs_to_schedule).unwrap_or(usize::MAX),
        });
        let tree = config.share_tree.as_ref().filter(|_| conf.weight_tickets_share > 0);
        let sharing = tree.map(|tree| ShareTreePolicy {
            pool: f64::from(conf.weight_tickets_share),
            compensation: number(conf.compensation_factor),
            tree: Tree::from_share_tree(tree),
        });
        let PolicyHierarchy(hierarchy) = &conf.policy_hierarchy;
        TicketRules {
            functional,
            sharing,
            is_override_shared: conf.share_override_tickets.0,
            most_tasks: usize::try_from(conf.max_pending_tasks_per_job)
                .unwrap_or(usize::MAX)
                .max(1),
            hierarchy: hierarchy.clone(),
        }
    }

    /// The number of starts after which a pass computes tickets anew: as many tasks have tickets of
    /// their own.
    pub fn priced_tasks(&self) -> usize {
        self.functional
            .map_or(PRICED_TASKS, |functional| functional.most.clamp(1, PRICED_TASKS))
    }
}
