//! Load reports: what a host tells the master about itself, and sensors about hosts and the
//! cluster.

use crate::id::{AttributeName, HostName};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The load value by which a sensor says which devices are ill: `NAME=REASON;NAME=REASON…`. A name
/// is the `uuid` or a file of an id of a resource map, or `ATTRIBUTE:ID`. The complex does not list
/// it. A value has a limited length, so there may be several: `devices_ill.1` and so on.
pub const DEVICES_ILL: &str = "devices_ill";

/// Whether a load value of this name lists ill devices.
pub fn lists_ill_devices(name: &str) -> bool {
    let rest = name.strip_prefix(DEVICES_ILL);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// One report of one agent. The first after a connection is full; later ones hold what changed.
///
/// Values are texts as Grid Engine transports them (`23196.035156M`, `0.250000`); the master reads
/// them by the type of the attribute, because only it knows the complex.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadReport {
    /// Counts the reports of one connection from 1; the master drops what is not newer.
    pub sequence: u64,
    /// Whether this replaces everything known, or changes it.
    pub full: bool,
    /// How long before sending the values were taken, in milliseconds.
    #[serde(default)]
    pub sampled_ago_ms: u64,
    /// New and changed values by subject: the sending host, `global`, or another host that a sensor
    /// reports for.
    #[serde(default)]
    pub values: BTreeMap<HostName, BTreeMap<AttributeName, String>>,
    /// Values that are no longer reported, by subject. Empty in a full report.
    #[serde(default)]
    pub withdrawn: BTreeMap<HostName, Vec<AttributeName>>,
    /// Values that were taken earlier than `sampled_ago_ms` says, changed or not: those of sensors
    /// that were not asked for this report. All others that the host reports were taken anew, those
    /// that the report leaves out with the same result.
    #[serde(default)]
    pub older: Vec<OlderValues>,
    /// For how long the agent has run, in milliseconds; 0 from one that does not say.
    #[serde(default)]
    pub up_ms: u64,
}

/// Values that were taken together, before the others of a report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OlderValues {
    /// How long before sending they were taken, in milliseconds.
    pub sampled_ago_ms: u64,
    /// Their names by subject.
    pub names: BTreeMap<HostName, Vec<AttributeName>>,
}

/// The health of one load sensor, as its host sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SensorStatus {
    /// The command line from the configuration.
    pub command: String,
    /// `running`, `failing`, `timed out`, `buffering suspected`, or `refused`.
    pub health: String,
    /// The user it runs as.
    #[serde(default)]
    pub user: String,
    /// Its process, while it has one.
    #[serde(default)]
    pub pid: Option<u32>,
    /// Seconds between requests.
    #[serde(default)]
    pub interval_s: u64,
    /// Seconds after which a request without a block counts as timed out.
    #[serde(default)]
    pub deadline_s: u64,
    /// Seconds until it is started again, while it is failing.
    #[serde(default)]
    pub back_off_s: Option<u64>,
    /// Seconds since the last complete block.
    #[serde(default)]
    pub age_s: Option<u64>,
    /// How often it was started again.
    #[serde(default)]
    pub restarts: u64,
    /// What went wrong last.
    #[serde(default)]
    pub last_error: String,
    /// The last lines of its standard error.
    #[serde(default)]
    pub stderr: Vec<String>,
    /// How many values its last block held.
    #[serde(default)]
    pub values: u64,
    /// Values of the last block that the cell cannot use.
    #[serde(default)]
    pub faults: ValueFaults,
}

/// Values of a sensor that the cell cannot use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ValueFaults {
    /// How many there are.
    pub count: u64,
    /// The faults of the first few values, one text for each.
    pub examples: Vec<String>,
    /// Hosts other than its own that the sensor reports for, and how many values: the master knows
    /// which of them are hosts of the cell.
    pub other_hosts: BTreeMap<HostName, u64>,
}
