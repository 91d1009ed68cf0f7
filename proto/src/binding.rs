//! Core binding: what a job asks for (`-binding`), what the processors of a host look like, and
//! which cores a task gets.
//!
//! Everything here is pure. [`choice`] is the only place where cores are chosen: from the
//! processors of a host, those in use marked, and a request. Deliberately absent: where the
//! topology comes from (`sensors`), who has which cores (the master's ledger), and how a task is
//! bound (the shepherd).

pub mod choice;
pub mod processors;
pub mod request;
pub mod topology;

#[cfg(test)]
mod tests;

pub use choice::{BindingObstacle, choose};
pub use processors::{BadProcessorList, ProcessorList, ProcessorMap};
pub use request::{BindingError, BindingInstance, BindingRequest, BindingStrategy, CoreAmount};
pub use topology::{CoreKind, CorePlace, CoreUnit, Topology, TopologyError};

use crate::id::HostName;
use serde::{Deserialize, Serialize};

/// What came of a request for cores on one host of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostBinding {
    /// The host.
    pub host: HostName,
    /// The cores, or why the task has none.
    pub outcome: BindingOutcome,
}

/// What came of a request for cores.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BindingOutcome {
    /// The processors of the host, those of the task in lower case: `ScC`.
    Bound(String),
    /// The task runs on all processors.
    Unbound(BindingObstacle),
}

impl HostBinding {
    /// The processors of the host, those of the task in lower case. `None` if it is not bound.
    pub fn bound(&self) -> Option<&str> {
        match &self.outcome {
            BindingOutcome::Bound(cores) => Some(cores),
            BindingOutcome::Unbound(_) => None,
        }
    }

    /// The host's topology with the task's processors marked. `None` if it is not bound.
    pub fn topology(&self) -> Option<Topology> {
        Topology::parse(self.bound()?).ok()
    }
}
