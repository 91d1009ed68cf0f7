//! The slave tasks of a parallel job on its hosts (`qrsh -inherit`, `control_slaves` of sge_pe(5)).

use super::State;
use super::job::{Job, Placement};
use proto::id::{HostName, QueueInstanceName, TaskKey};
use proto::time::Wall;
use proto::usage::{Rusage, Usage};
use proto::wire::slave::SlaveSpec;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// How many ends of slave tasks a task remembers, for commands that ask late.
pub const ENDED_SLAVES_KEPT: usize = 1000;

/// The slave tasks of one task of a parallel job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Slaves {
    /// Those that have not ended, by number (`pe_task` of their keys).
    pub live: BTreeMap<u32, Slave>,
    /// How many each host was ever given.
    pub given: BTreeMap<HostName, u32>,
    /// What those used that ended without an accounting record of their own.
    pub used: Usage,
    /// The same as getrusage(2) numbers.
    pub rusage: Rusage,
    /// Number, command's host and exit status of those that ended last, oldest first, at most
    /// [`ENDED_SLAVES_KEPT`].
    pub ended: VecDeque<(u32, HostName, u32)>,
}

/// A slave task that has not ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Slave {
    /// The queue instance in which it runs.
    pub instance: QueueInstanceName,
    /// The host of the command that started it and that it talks to.
    pub from: HostName,
    /// Its number on its host, from 1 in each attempt.
    pub number: u32,
    /// What it is.
    pub spec: Arc<SlaveSpec>,
    /// When the host confirmed that it runs.
    pub started: Option<Wall>,
}

impl Slave {
    /// Its name in accounting: `1.node2`.
    pub fn name(&self) -> String {
        format!("{}.{}", self.number, self.instance.host.short())
    }
}

impl Slaves {
    /// None yet.
    pub const NONE: &Self = &Self {
        live: BTreeMap::new(),
        given: BTreeMap::new(),
        used: Usage::NONE,
        rusage: Rusage::NONE,
        ended: VecDeque::new(),
    };

    /// The number of the next one.
    pub fn next(&self) -> u32 {
        self.given.values().sum::<u32>() + 1
    }

    /// How many in a queue instance have not ended.
    pub fn live_in(&self, instance: &QueueInstanceName) -> u32 {
        let count = self.live.values().filter(|slave| slave.instance == *instance).count();
        u32::try_from(count).unwrap_or(u32::MAX)
    }
}

/// The task that a slave task belongs to.
pub fn task_of(key: TaskKey) -> TaskKey {
    TaskKey { pe_task: 0, ..key }
}

impl State {
    /// A slave task that has not ended, with its job and where that is.
    pub fn slave(&self, key: TaskKey) -> Option<(&Job, &Placement, &Slave)> {
        let (job, _, placement) = self.placed(task_of(key))?;
        Some((job, placement, placement.slaves().live.get(&key.pe_task)?))
    }

    /// The slave tasks on a host that have not ended.
    pub fn slaves_on(&self, host: &HostName) -> Vec<TaskKey> {
        let mut keys = Vec::new();
        for key in self.index.on_host(host) {
            let live = self
                .placed(key)
                .into_iter()
                .flat_map(|(_, _, placement)| &placement.slaves().live);
            let here = live.filter(|(_, slave)| slave.instance.host == *host);
            keys.extend(here.map(|(number, _)| TaskKey {
                pe_task: *number,
                ..key
            }));
        }
        keys
    }

    /// The host that runs a task or slave task.
    pub fn host_of(&self, key: TaskKey) -> Option<&HostName> {
        match key.pe_task {
            0 => self.placed(key).map(|(_, _, placement)| placement.host()),
            _ => self.slave(key).map(|(_, _, slave)| &slave.instance.host),
        }
    }
}
