//! What really happened on the pretended hosts and in the durable log, noted apart from the code
//! under test.

use super::agenda::HostIndex;
use master_core::event::{Actor, Event, Record, TaskFate};
use proto::id::{HostName, JobNumber, RequestId, SubmitSeq, TaskId, TaskKey, UserName};
use proto::job::{GrantedSlots, JobSpec};
use proto::request::TaskRange;
use proto::wire::client::Reply;
use std::collections::{BTreeMap, BTreeSet};

/// A job of which not all has left.
#[derive(Debug)]
pub(super) struct PresentJob {
    pub(super) number: JobNumber,
    pub(super) owner: UserName,
    /// Its tasks that have not left.
    pub(super) tasks: BTreeSet<TaskId>,
}

/// What the log says was given to an attempt.
#[derive(Debug)]
pub(super) struct PlacedAttempt {
    pub(super) granted: Vec<GrantedSlots>,
    pub(super) is_parallel: bool,
}

/// The facts against which the cluster is judged.
#[derive(Debug, Default)]
pub(super) struct Witness {
    /// How often each attempt was executed: once.
    executed: BTreeMap<TaskKey, HostIndex>,
    /// The attempts that have processes now.
    running: BTreeSet<TaskKey>,
    /// Slots on each host that processes occupy now.
    occupied: BTreeMap<HostName, u32>,
    /// What the log says was given to each attempt.
    placed: BTreeMap<TaskKey, PlacedAttempt>,
    /// Attempts that ended with an accounting record.
    accounted: BTreeSet<TaskKey>,
    /// Attempts that were taken back before they reached a host.
    withdrawn: BTreeSet<TaskKey>,
    /// Attempts that ended without the word of their host: by force, or because it was away for too
    /// long. They may still run.
    forced: BTreeSet<TaskKey>,
    /// Jobs that have not left, as the events add them up.
    present: BTreeMap<SubmitSeq, PresentJob>,
    /// The durable answers, and what submitted a job.
    answers: BTreeMap<RequestId, Reply>,
    submitted: BTreeSet<RequestId>,
    /// Whether slave tasks have no records of their own.
    is_summed_up: bool,
}

impl Witness {
    pub(super) fn new(is_summed_up: bool) -> Witness {
        Witness {
            is_summed_up,
            ..Witness::default()
        }
    }

    /// Notes a durable event.
    pub(super) fn read(&mut self, record: &Record) {
        match &record.event {
            Event::JobSubmitted { seq, number, spec, .. } => self.submit(record.request, *seq, *number, spec),
            Event::TaskPlaced { key, granted, pe, .. } => self.place(*key, granted, pe.is_some()),
            // Its slots are those of its job.
            Event::SlavePlaced { key, instance, .. } => {
                self.place(
                    *key,
                    &[GrantedSlots {
                        instance: instance.clone(),
                        slots: 0,
                    }],
                    false,
                );
            }
            Event::SlaveEnded { key, record: kept, .. } => self.end_slave(*key, kept.is_some(), &record.actor),
            Event::TaskEnded {
                key,
                record: kept,
                then,
                ..
            } => {
                self.end(*key, kept.is_some(), then, matches!(record.actor, Actor::Agent(_)));
            }
            Event::TasksDeleted { seq, tasks } => self.delete(*seq, tasks),
            Event::JobFinished { seq } => {
                let left = self.present.remove(seq).expect("a job finishes once").tasks;
                assert!(left.is_empty(), "{seq:?} finished with tasks left: {left:?}");
            }
            Event::RequestAnswered { id, reply } => {
                assert!(
                    self.answers.insert(*id, (**reply).clone()).is_none(),
                    "request {id:?} was decided twice"
                );
            }
            Event::CellCreated { .. }
            | Event::CellVersionRaised { .. }
            | Event::EpochRaised { .. }
            | Event::WallJumped { .. }
            | Event::JobAltered { .. }
            | Event::HoldsChanged { .. }
            | Event::TaskStarted { .. }
            | Event::SlaveStarted { .. }
            | Event::TaskDeletionRequested { .. }
            | Event::TaskRescheduleRequested { .. }
            | Event::UsageCharged { .. }
            | Event::UsageCleared { .. }
            | Event::TaskUnconfirmed { .. }
            | Event::TaskConfirmedGone { .. }
            | Event::TaskSuspended { .. }
            | Event::TaskThresholdSuspended { .. }
            | Event::TaskRebooked { .. }
            | Event::TaskMigrationRequested { .. }
            | Event::TaskPreempted { .. }
            | Event::ErrorCleared { .. }
            | Event::InstanceChanged { .. }
            | Event::ReservationGranted { .. }
            | Event::ReservationChanged { .. }
            | Event::ReservationEnded { .. }
            | Event::ObjectsChanged(_)
            | Event::CertificateIssued { .. }
            | Event::HostRevoked { .. }
            | Event::HostTasksBound { .. }
            | Event::TokenCreated(_)
            | Event::TokenRevoked { .. }
            | Event::NumbersContinued { .. }
            | Event::TokenUsed { .. } => {}
        }
    }

    fn submit(&mut self, request: Option<RequestId>, seq: SubmitSeq, number: JobNumber, spec: &JobSpec) {
        if let Some(id) = request {
            assert!(self.submitted.insert(id), "request {id:?} submitted two jobs");
        }
        let tasks: BTreeSet<TaskId> = match spec.array {
            Some(range) => range.iter().collect(),
            None => BTreeSet::from([TaskId(1)]),
        };
        let present = PresentJob {
            number,
            owner: spec.owner.user.clone(),
            tasks,
        };
        assert!(
            self.present.insert(seq, present).is_none(),
            "{seq:?} was submitted twice"
        );
    }

    fn delete(&mut self, seq: SubmitSeq, tasks: &[TaskRange]) {
        let present = &mut self.present.get_mut(&seq).expect("a deleted job was submitted").tasks;
        for range in tasks {
            for task in range.iter() {
                assert!(present.remove(&task), "{seq:?}.{task} was deleted without being there");
            }
        }
    }

    fn place(&mut self, key: TaskKey, granted: &[GrantedSlots], is_parallel: bool) {
        let placed = PlacedAttempt {
            granted: granted.to_vec(),
            is_parallel,
        };
        assert!(self.placed.insert(key, placed).is_none(), "{key} was placed twice");
    }

    /// What an attempt was given that has not ended.
    pub(super) fn placed(&self, key: TaskKey) -> Option<&PlacedAttempt> {
        self.placed.get(&key).filter(|_| !self.is_over(key))
    }

    fn end_slave(&mut self, key: TaskKey, has_record: bool, actor: &Actor) {
        let host = &self.placed.get(&key).expect("what ends was placed").granted[0]
            .instance
            .host;
        let by_host = matches!(actor, Actor::Agent(by) if by == host);
        self.end(key, has_record || self.is_summed_up, &TaskFate::Requeued, by_host);
    }

    fn is_over(&self, key: TaskKey) -> bool {
        self.accounted.contains(&key) || self.withdrawn.contains(&key)
    }

    fn end(&mut self, key: TaskKey, has_record: bool, then: &TaskFate, by_host: bool) {
        let granted = self.placed.get(&key);
        assert!(granted.is_some(), "{key} ended and was never placed");
        assert!(!self.is_over(key), "{key} ended twice");
        if !by_host {
            self.forced.insert(key);
        }
        assert!(
            !by_host || !self.running.contains(&key),
            "{key} ended by the word of its host and still runs"
        );
        if has_record {
            self.accounted.insert(key);
        } else {
            assert!(
                !self.executed.contains_key(&key),
                "{key} was taken back although it was executed"
            );
            self.withdrawn.insert(key);
        }
        if *then == TaskFate::Done {
            let present = self.present.get_mut(&key.seq).expect("the job of a task is there");
            assert!(present.tasks.remove(&key.task), "{key} left twice");
        }
    }

    /// A shepherd calls execve.
    pub(super) fn execute(&mut self, key: TaskKey, host: HostIndex, host_name: &HostName) {
        let placed = self
            .placed
            .get(&key)
            .unwrap_or_else(|| panic!("{key} runs and its placement is not durable"));
        let granted = &placed.granted;
        assert_eq!(
            granted[0].instance.host, *host_name,
            "{key} runs on another host than it was given to"
        );
        assert!(!self.withdrawn.contains(&key), "{key} runs although it was taken back");
        assert!(
            !self.is_over(key) || self.forced.contains(&key),
            "{key} runs although its host said that it has ended"
        );
        let before = self.executed.insert(key, host);
        assert!(before.is_none(), "{key} was executed twice");
        let others = TaskKey { attempt: 0, ..key }..=TaskKey {
            attempt: u32::MAX,
            ..key
        };
        let other = self.running.range(others).find(|other| !self.forced.contains(other));
        assert!(
            other.is_none() || self.forced.contains(&key),
            "{key} runs beside {}, and nobody forced either",
            other.expect("there is one")
        );
        self.running.insert(key);
        for granted in granted {
            *self.occupied.entry(granted.instance.host.clone()).or_default() += granted.slots;
        }
    }

    /// The last process of a task is gone.
    pub(super) fn exit(&mut self, key: TaskKey) {
        if self.running.remove(&key) {
            for granted in &self.placed[&key].granted {
                *self.occupied.get_mut(&granted.instance.host).expect("it was counted") -= granted.slots;
            }
        }
    }

    /// A host lost its disk: it does not know any more what it has run, and may run again what the
    /// master has no news of.
    pub(super) fn forgets(&mut self, host: HostIndex) {
        let (accounted, withdrawn) = (&self.accounted, &self.withdrawn);
        self.executed
            .retain(|key, at| *at != host || accounted.contains(key) || withdrawn.contains(key));
    }

    /// Slots on a host that are occupied by processes.
    pub(super) fn occupied(&self, host: &HostName) -> u32 {
        self.occupied.get(host).copied().unwrap_or(0)
    }

    /// The jobs that have not left.
    pub(super) fn present(&self) -> &BTreeMap<SubmitSeq, PresentJob> {
        &self.present
    }

    /// The durable answer to a request, if it changed something.
    pub(super) fn answer(&self, id: RequestId) -> Option<&Reply> {
        self.answers.get(&id)
    }

    /// How many attempts were executed, and how many were accounted.
    pub(super) fn attempts(&self) -> (u64, u64) {
        (self.executed.len() as u64, self.accounted.len() as u64)
    }

    /// At the end of a run: nothing is left, and whatever was executed is accounted.
    pub(super) fn assert_all_over(&self) {
        assert!(self.present.is_empty(), "jobs are left: {:?}", self.present);
        assert!(self.running.is_empty(), "processes are left: {:?}", self.running);
        for key in self.executed.keys() {
            assert!(
                self.accounted.contains(key),
                "{key} was executed and has no accounting record"
            );
        }
        for key in self.placed.keys() {
            assert!(self.is_over(*key), "{key} was placed and never ended");
        }
    }
}
