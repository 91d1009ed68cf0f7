//! Slave tasks of parallel jobs: the commands that start them from within their jobs, and what must
//! hold of them.

use super::agenda::{Happening, HostIndex};
use super::world::World;
use master_core::event::{Event, Record};
use master_core::state::State;
use proto::id::{HostName, QueueInstanceName, TaskKey};
use proto::wire::client::{Command, SlaveRequest};
use proto::wire::slave::SlaveSpec;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The task to which a slave task belongs.
pub(super) fn task_of(key: TaskKey) -> TaskKey {
    TaskKey { pe_task: 0, ..key }
}

/// The slave tasks that have not ended, as the events tell them.
#[derive(Debug, Default)]
pub(super) struct Slaves {
    live: BTreeMap<TaskKey, BTreeMap<u32, QueueInstanceName>>,
    /// The last number that a task gave to one.
    last: BTreeMap<TaskKey, u32>,
}

impl Slaves {
    /// Judges a durable event against the state before it.
    pub(super) fn judge(&self, record: &Record, before: &State) {
        match &record.event {
            Event::SlavePlaced {
                key, instance, from, ..
            } => self.may_be_placed(*key, instance, from, before),
            Event::TaskEnded { key, .. } => {
                assert!(
                    !self.live.contains_key(key),
                    "{key} ended before its slave tasks: {:?}",
                    self.live[key]
                );
            }
            _ => {}
        }
    }

    fn may_be_placed(&self, key: TaskKey, instance: &QueueInstanceName, from: &HostName, before: &State) {
        let task = task_of(key);
        let (_, _, placement) = before
            .placed(task)
            .unwrap_or_else(|| panic!("{key} was placed, and its job does not run"));
        let pe = placement
            .pe
            .as_ref()
            .unwrap_or_else(|| panic!("{task} is no parallel job and got {key}"));
        let pe = before
            .config
            .pes
            .get(pe)
            .unwrap_or_else(|| panic!("{key} was placed, and {pe} is gone"));
        assert!(
            pe.control_slaves.0,
            "{} does not control slave tasks, and {key} was placed",
            pe.name
        );
        let granted = placement.granted.iter().find(|part| part.instance == *instance);
        let granted = granted.unwrap_or_else(|| panic!("{key} was placed in {instance}, which its job was not given"));
        let is_its = |host: &HostName| placement.granted.iter().any(|part| part.instance.host == *host);
        assert!(
            is_its(from),
            "{key} was started from {from}, which its job was not given"
        );
        let beside = self
            .live
            .get(&task)
            .into_iter()
            .flatten()
            .filter(|(_, other)| *other == instance)
            .count();
        let is_job = pe.job_is_first_task.0 && placement.granted[0].instance == *instance;
        let taken = beside as u32 + u32::from(is_job) + 1;
        assert!(
            taken <= granted.slots,
            "{key} makes {taken} tasks in {instance}, of which its job has {}",
            granted.slots
        );
        assert_eq!(
            key.pe_task,
            self.last.get(&task).copied().unwrap_or(0) + 1,
            "slave tasks are counted"
        );
    }

    /// Notes a durable event; `after` is the state that it led to.
    pub(super) fn read(&mut self, record: &Record, after: &State) {
        let key = match &record.event {
            Event::SlavePlaced { key, instance, .. } => {
                self.live
                    .entry(task_of(*key))
                    .or_default()
                    .insert(key.pe_task, instance.clone());
                self.last.insert(task_of(*key), key.pe_task);
                *key
            }
            Event::SlaveEnded { key, .. } => {
                let live = self.live.get_mut(&task_of(*key)).expect("what ends was placed");
                assert!(live.remove(&key.pe_task).is_some(), "{key} ended twice");
                if live.is_empty() {
                    self.live.remove(&task_of(*key));
                }
                *key
            }
            Event::TaskEnded { key, .. } => {
                self.last.remove(key);
                return;
            }
            _ => return,
        };
        let (_, _, placement) = after
            .placed(task_of(key))
            .expect("slave tasks are those of a task that is placed");
        let theirs = placement
            .slaves()
            .live
            .iter()
            .map(|(number, slave)| (*number, &slave.instance));
        let ours = self
            .live
            .get(&task_of(key))
            .into_iter()
            .flatten()
            .map(|(number, instance)| (*number, instance));
        assert!(theirs.eq(ours), "the slave tasks of {}", task_of(key));
    }
}

impl World {
    /// A parallel job that has just started is going to start slave tasks.
    pub(super) fn plan_slaves(&mut self, host: HostIndex, key: TaskKey, boot: u64) {
        let is_parallel = self.witness.placed(key).is_some_and(|placed| placed.is_parallel);
        if key.pe_task == 0 && is_parallel {
            let wait = self.random.around(self.plan.pace.run_ms / 8);
            self.soon(wait, Happening::SlaveWanted { host, key, boot });
        }
    }

    /// A process of a parallel job says `qrsh -inherit`: mostly as it may, now and then to a
    /// foreign host or as somebody else.
    pub(super) fn slave_wanted(&mut self, host: HostIndex, key: TaskKey, boot: u64) {
        if self.healed || !self.is_running(host, key, boot) {
            return;
        }
        let granted = self.witness.placed(key).into_iter().flat_map(|placed| &placed.granted);
        let granted: Vec<HostName> = granted.map(|part| part.instance.host.clone()).collect();
        let is_foreign = self.random.chance(100);
        let to = if is_foreign {
            Some(self.draw_host())
        } else {
            self.random.pick(&granted)
        };
        let Some(to) = to else { return };
        let is_other = self.random.chance(30);
        let from = if is_foreign && is_other {
            self.draw_host()
        } else {
            self.nodes[host].name.clone()
        };
        let Some(job) = self.witness.present().get(&key.seq) else {
            return;
        };
        let user = if is_other { "boss".into() } else { job.owner.clone() };
        let spec = Arc::new(SlaveSpec {
            command: vec!["work".to_owned()],
            ..SlaveSpec::default()
        });
        let request = SlaveRequest {
            task: key,
            host: to.to_string(),
            spec,
        };
        self.counts.slaves_wanted += 1;
        self.command_from(from, user.as_str(), Command::StartSlave(Box::new(request)));
        let wait = self.random.around(self.plan.pace.run_ms / 4);
        self.soon(wait, Happening::SlaveWanted { host, key, boot });
    }
}

/// Whether parallel environments sum slave tasks up in the record of their job.
pub(super) fn is_summed_up(seed: u64) -> bool {
    seed.is_multiple_of(2)
}

/// The settings of a parallel environment that concern slave tasks.
pub(super) fn settings(seed: u64) -> [(&'static str, String); 2] {
    let text = |is_so: bool| if is_so { "TRUE" } else { "FALSE" }.to_owned();
    // Of the workload's environments, the one over several hosts starts slave tasks.
    [
        ("control_slaves", text(true)),
        ("accounting_summary", text(is_summed_up(seed))),
    ]
}
