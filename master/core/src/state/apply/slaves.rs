//! What events make of the slave tasks of parallel jobs.

use super::super::State;
use super::super::slaves::{ENDED_SLAVES_KEPT, Slave, Slaves, task_of};
use proto::accounting::AccountingRecord;
use proto::id::{HostName, QueueInstanceName, TaskKey};
use proto::time::Wall;
use proto::usage::{Rusage, Usage};
use proto::wire::slave::SlaveSpec;
use std::sync::Arc;

impl State {
    fn slaves_mut(&mut self, key: TaskKey) -> &mut Slaves {
        assert!(key.pe_task > 0, "the event is about a slave task");
        self.placement_mut(task_of(key)).own_slaves.get_or_insert_default()
    }

    fn slave_mut(&mut self, key: TaskKey) -> &mut Slave {
        self.slaves_mut(key)
            .live
            .get_mut(&key.pe_task)
            .expect("an event names a slave task that has not ended")
    }

    pub(super) fn place_slave(
        &mut self,
        key: TaskKey,
        instance: &QueueInstanceName,
        from: &HostName,
        spec: &Arc<SlaveSpec>,
    ) {
        let placement = self.placement_mut(task_of(key));
        let is_granted = placement.granted.iter().any(|granted| granted.instance == *instance);
        assert!(is_granted, "a slave task runs where its job has slots");
        let slaves = placement.own_slaves.get_or_insert_default();
        assert_eq!(key.pe_task, slaves.next(), "slave tasks are counted");
        let given = slaves.given.entry(instance.host.clone()).or_default();
        *given += 1;
        let (number, instance, from) = (*given, instance.clone(), from.clone());
        let slave = Slave {
            instance,
            from,
            number,
            spec: spec.clone(),
            started: None,
        };
        slaves.live.insert(key.pe_task, slave);
    }

    pub(super) fn start_slave(&mut self, key: TaskKey, at: Wall) {
        let slave = self.slave_mut(key);
        assert!(slave.started.is_none(), "a slave task starts once");
        slave.started = Some(at);
    }

    pub(super) fn end_slave(
        &mut self,
        key: TaskKey,
        record: Option<&AccountingRecord>,
        exit_status: u32,
        (usage, rusage): (Usage, Rusage),
    ) {
        assert!(
            record.is_none_or(|record| record.key == key),
            "an accounting record is of the task that ended"
        );
        let slaves = self.slaves_mut(key);
        let slave = slaves
            .live
            .remove(&key.pe_task)
            .expect("an event names a slave task that has not ended");
        if record.is_none() {
            slaves.used = slaves.used.plus(usage);
            slaves.rusage = slaves.rusage.plus(rusage);
        }
        slaves.ended.push_back((key.pe_task, slave.from, exit_status));
        if slaves.ended.len() > ENDED_SLAVES_KEPT {
            slaves.ended.pop_front();
        }
    }
}
