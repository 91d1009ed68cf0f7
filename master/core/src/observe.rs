//! Observations: soft facts, latest wins, never logged, brought again by the agents after a restart (DESIGN section 3).

use proto::id::{AttributeName, HostName, TaskKey};
use proto::load::{LoadReport, SensorStatus};
use proto::time::Tick;
use proto::usage::Usage;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One soft fact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Observation {
    /// A load report was accepted.
    Load {
        /// The host that sent it.
        host: HostName,
        /// When it arrived.
        at: Tick,
        /// The report.
        report: Box<LoadReport>,
    },
    /// A host connected or its connection ended.
    Contact {
        /// The host.
        host: HostName,
        /// When.
        at: Tick,
        /// Whether it is connected now.
        connected: bool,
    },
    /// Nothing was heard of a host for `max_unheard`: its values count no longer.
    Unheard {
        /// The host.
        host: HostName,
    },
    /// Use of running tasks.
    Usage(Vec<(TaskKey, Usage)>),
    /// Health of a host's sensors.
    Sensors {
        /// The host.
        host: HostName,
        /// One entry a sensor.
        sensors: Vec<SensorStatus>,
    },
}

/// Everything soft that is known, as each reader folds it for itself.
#[derive(Clone, Debug, Default)]
pub struct Observations {
    /// By execution host.
    pub hosts: BTreeMap<HostName, HostObservation>,
    /// Load values by subject and attribute: hosts and `global`.
    pub load: BTreeMap<HostName, BTreeMap<AttributeName, LoadEntry>>,
    /// Use of running tasks, last known.
    pub usage: BTreeMap<TaskKey, Usage>,
}

/// What is known of one execution host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostObservation {
    /// Whether its agent is connected.
    pub connected: bool,
    /// Whether it counts as unknown: never heard, or not for `max_unheard`.
    pub unheard: bool,
    /// When it was last heard.
    pub heard: Option<Tick>,
    /// When its last load report arrived on the present connection.
    pub reported: Option<Tick>,
    /// Sequence number of that report.
    pub sequence: u64,
    /// Its load sensors.
    pub sensors: Vec<SensorStatus>,
}

/// One load value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadEntry {
    /// The text as reported.
    pub text: String,
    /// The host that reported it: it withdraws only its own values.
    pub reporter: HostName,
    /// When it was sampled, on the master's clock: what was booked later is not in it yet.
    pub sampled: Tick,
}
