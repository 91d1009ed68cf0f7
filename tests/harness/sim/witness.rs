//! What really happened on the pretended hosts and in the durable log, noted apart from the code under test.

use super::agenda::HostIndex;
use master_core::event::{Event, Record, Then};
use proto::id::{HostName, RequestId, SubmitSeq, TaskId, TaskKey};
use proto::job::Granted;
use proto::wire::client::Reply;
use std::collections::{BTreeMap, BTreeSet};

/// The facts against which the cluster is judged.
#[derive(Debug, Default)]
pub(super) struct Witness {
    /// How often each attempt was executed: once.
    executed: BTreeMap<TaskKey, HostIndex>,
    /// The attempt of each task that has processes now.
    running: BTreeMap<(SubmitSeq, TaskId), TaskKey>,
    /// Slots on each host that processes occupy now.
    occupied: BTreeMap<HostName, u32>,
    /// What the log says was given to each attempt.
    placed: BTreeMap<TaskKey, Vec<Granted>>,
    /// Attempts that ended with an accounting record.
    accounted: BTreeSet<TaskKey>,
    /// Attempts that were taken back before they reached a host.
    withdrawn: BTreeSet<TaskKey>,
    /// Tasks that have not left, as the events add them up.
    present: BTreeMap<SubmitSeq, BTreeSet<TaskId>>,
    /// For what each job waits as submitted or altered last.
    waits: BTreeMap<SubmitSeq, (Vec<SubmitSeq>, Vec<SubmitSeq>)>,
    concurrency: BTreeMap<SubmitSeq, u32>,
    /// The durable answers, and what submitted a job.
    answers: BTreeMap<RequestId, Reply>,
    submitted: BTreeSet<RequestId>,
}

impl Witness {
    /// Notes a durable event.
    pub(super) fn read(&mut self, record: &Record) {
        match &record.event {
            Event::JobSubmitted { seq, spec, waits_for, array_waits_for, .. } => {
                if let Some(id) = record.request {
                    assert!(self.submitted.insert(id), "request {id:?} submitted two jobs");
                }
                let tasks: BTreeSet<TaskId> = match spec.array {
                    Some(range) => range.iter().collect(),
                    None => BTreeSet::from([TaskId(1)]),
                };
                assert!(self.present.insert(*seq, tasks).is_none(), "{seq:?} was submitted twice");
                self.waits.insert(*seq, (waits_for.clone(), array_waits_for.clone()));
                self.limit_concurrency(*seq, spec.task_concurrency);
            }
            Event::JobAltered { seq, spec, waits_for, array_waits_for } => {
                self.waits.insert(*seq, (waits_for.clone(), array_waits_for.clone()));
                self.limit_concurrency(*seq, spec.task_concurrency);
            }
            Event::TaskPlaced { key, granted, .. } => self.place(*key, granted),
            Event::TaskEnded { key, record, then } => self.end(*key, record.is_some(), then),
            Event::TasksDeleted { seq, tasks } => {
                let present = self.present.get_mut(seq).expect("a deleted job was submitted");
                for range in tasks {
                    for task in range.iter() {
                        assert!(present.remove(&task), "{seq:?}.{task} was deleted without being there");
                    }
                }
            }
            Event::JobFinished { seq } => {
                let left = self.present.remove(seq).expect("a job finishes once");
                assert!(left.is_empty(), "{seq:?} finished with tasks left: {left:?}");
            }
            Event::RequestAnswered { id, reply } => {
                assert!(self.answers.insert(*id, (**reply).clone()).is_none(), "request {id:?} was decided twice");
            }
            Event::CellCreated { .. }
            | Event::EpochRaised { .. }
            | Event::WallJumped { .. }
            | Event::HoldsChanged { .. }
            | Event::TaskStarted { .. }
            | Event::TaskDeletionRequested { .. }
            | Event::TaskRescheduleRequested { .. }
            | Event::TaskUnconfirmed { .. }
            | Event::TaskConfirmedGone { .. }
            | Event::TaskSuspended { .. }
            | Event::TaskThresholdSuspended { .. }
            | Event::ErrorCleared { .. }
            | Event::InstanceChanged { .. }
            | Event::ObjectsChanged(_)
            | Event::CertificateIssued { .. }
            | Event::HostRevoked { .. }
            | Event::TokenCreated(_)
            | Event::TokenUsed { .. } => {}
        }
    }

    fn limit_concurrency(&mut self, seq: SubmitSeq, limit: Option<u32>) {
        self.concurrency.insert(seq, limit.filter(|limit| *limit > 0).unwrap_or(u32::MAX));
    }

    fn place(&mut self, key: TaskKey, granted: &[Granted]) {
        assert!(self.placed.insert(key, granted.to_vec()).is_none(), "{key} was placed twice");
        let (jobs, arrays) = &self.waits[&key.seq];
        let waited = jobs.iter().find(|job| self.present.contains_key(job));
        assert!(waited.is_none(), "{key} was placed while {waited:?}, for which it waits, has not finished");
        let is_there = |job: &&SubmitSeq| self.present.get(job).is_some_and(|tasks| tasks.contains(&key.task));
        let waited = arrays.iter().find(is_there);
        assert!(waited.is_none(), "{key} was placed while its task of {waited:?} has not finished");
        let current = self.placed.keys().filter(|other| other.seq == key.seq && !self.is_over(**other)).count();
        assert!(current <= self.concurrency[&key.seq] as usize, "{key} is one task too many for -tc");
    }

    fn is_over(&self, key: TaskKey) -> bool {
        self.accounted.contains(&key) || self.withdrawn.contains(&key)
    }

    fn end(&mut self, key: TaskKey, has_record: bool, then: &Then) {
        let granted = self.placed.get(&key);
        assert!(granted.is_some(), "{key} ended and was never placed");
        assert!(!self.is_over(key), "{key} ended twice");
        if has_record {
            self.accounted.insert(key);
        } else {
            assert!(!self.executed.contains_key(&key), "{key} was taken back although it was executed");
            self.withdrawn.insert(key);
        }
        if *then == Then::Done {
            let present = self.present.get_mut(&key.seq).expect("the job of a task is there");
            assert!(present.remove(&key.task), "{key} left twice");
        }
    }

    /// A shepherd calls execve.
    pub(super) fn execute(&mut self, key: TaskKey, host: HostIndex, host_name: &HostName) {
        let granted = self.placed.get(&key).unwrap_or_else(|| panic!("{key} runs and its placement is not durable"));
        assert_eq!(granted[0].instance.host, *host_name, "{key} runs on another host than it was given to");
        assert!(!self.withdrawn.contains(&key), "{key} runs although it was taken back");
        let before = self.executed.insert(key, host);
        assert!(before.is_none(), "{key} was executed twice");
        let other = self.running.insert((key.seq, key.task), key);
        assert!(other.is_none(), "{key} runs beside {}", other.expect("there is one"));
        for granted in granted {
            *self.occupied.entry(granted.instance.host.clone()).or_default() += granted.slots;
        }
    }

    /// The last process of a task is gone.
    pub(super) fn exit(&mut self, key: TaskKey) {
        // A result of an earlier attempt that is not forgotten yet says nothing about the present one.
        if self.running.get(&(key.seq, key.task)) == Some(&key) {
            self.running.remove(&(key.seq, key.task));
            for granted in &self.placed[&key] {
                *self.occupied.get_mut(&granted.instance.host).expect("it was counted") -= granted.slots;
            }
        }
    }

    /// Slots on a host that are occupied by processes.
    pub(super) fn occupied(&self, host: &HostName) -> u32 {
        self.occupied.get(host).copied().unwrap_or(0)
    }

    /// The tasks that have not left.
    pub(super) fn present(&self) -> &BTreeMap<SubmitSeq, BTreeSet<TaskId>> {
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
            assert!(self.accounted.contains(key), "{key} was executed and has no accounting record");
        }
        for key in self.placed.keys() {
            assert!(self.is_over(*key), "{key} was placed and never ended");
        }
    }
}
