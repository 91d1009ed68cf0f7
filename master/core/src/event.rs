//! The facts of a cell, in the order in which they became true. The master's state is their fold.
//!
//! Events say what happened, never what to do: replay decides nothing. Arrays are stored as ranges,
//! so a million-task array is one event. Every field that a later version adds has a default.
//! [`Event::feature`] says from which version of the cell on an event may be written.

mod feature;

pub use feature::feature_of_job;

use proto::accounting::AccountingRecord;
use proto::binding::HostBinding;
use proto::calendar::CalendarState;
use proto::cell_version::CellVersion;
use proto::id::{
    CellId, Epoch, EventSeq, HostName, JobNumber, PeName, QueueInstanceName, RequestId, ReservationId, SubmitSeq,
    TaskKey, UserName,
};
use proto::job::{GrantedSlots, HoldChange, JobSpec};
use proto::object::{Fields, ObjectKind};
use proto::request::TaskRange;
use proto::reservation::{ReservationSpec, ReservationState};
use proto::rsmap::GrantedIds;
use proto::time::{Now, Wall};
use proto::usage::{Consumption, Rusage, Usage};
use proto::wire::agent::TasksMark;
use proto::wire::client::Reply;
use proto::wire::slave::SlaveSpec;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// Who caused an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Actor {
    /// A user on a host.
    User {
        /// Login name.
        user: UserName,
        /// The host that vouches for the user.
        host: HostName,
    },
    /// The agent of a host.
    Agent(HostName),
    /// A scheduler, by the name of its algorithm.
    Scheduler(String),
    /// The master itself: timers, start-up.
    Master,
}

impl fmt::Display for Actor {
    /// A name as other programs and accounting have it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User { user, host } => write!(f, "{user}@{host}"),
            Self::Agent(host) => write!(f, "{host}"),
            Self::Scheduler(name) => write!(f, "scheduler {name}"),
            Self::Master => f.write_str("master"),
        }
    }
}

/// A stored record: an event with its number, time and cause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Its number in the log, from 1 without gaps.
    pub seq: EventSeq,
    /// When it became true.
    pub now: Now,
    /// Who caused it.
    pub actor: Actor,
    /// The changing request behind it, if one was.
    #[serde(default)]
    pub request: Option<RequestId>,
    /// The event.
    pub event: Event,
}

/// A fact of the cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// The first event of every log.
    CellCreated {
        /// The cell.
        cell: CellId,
        /// Its version: the newest one of the release that made it.
        #[serde(default)]
        version: CellVersion,
    },
    /// The cell may use the features of a later version (`gridwright finalize`). Older releases
    /// stop here, so it is the first event that they do not know.
    CellVersionRaised {
        /// The new version.
        version: CellVersion,
    },
    /// The master was restored or taken over: agents must not obey an older one.
    EpochRaised {
        /// The new epoch.
        epoch: Epoch,
    },
    /// The wall clock differs by more than a minute from what the monotone clock says it should be.
    WallJumped {
        /// The time that it should have shown.
        expected: Wall,
    },

    /// A job was accepted.
    JobSubmitted {
        /// Its place among all submissions.
        seq: SubmitSeq,
        /// The number people see.
        number: JobNumber,
        /// The submitted specification, with names resolved and shortcuts replaced.
        spec: Arc<JobSpec>,
        /// Jobs it waits for (`-hold_jid`), as far as they existed.
        waits_for: Vec<SubmitSeq>,
        /// Jobs whose equal task each of its tasks waits for (`-hold_jid_ad`).
        array_waits_for: Vec<SubmitSeq>,
    },
    /// `qalter` changed a job.
    JobAltered {
        /// The job.
        seq: SubmitSeq,
        /// The whole new specification.
        spec: Arc<JobSpec>,
        /// As in `JobSubmitted`.
        waits_for: Vec<SubmitSeq>,
        /// As in `JobSubmitted`.
        array_waits_for: Vec<SubmitSeq>,
    },
    /// People set or released holds of tasks.
    HoldsChanged {
        /// The job.
        seq: SubmitSeq,
        /// Which of its tasks.
        tasks: Vec<TaskRange>,
        /// What changed.
        change: HoldChange,
    },
    /// A task was given to hosts. Its consumables are booked from here on.
    TaskPlaced {
        /// The attempt.
        key: TaskKey,
        /// Its slots; the first entry holds the master.
        granted: Vec<GrantedSlots>,
        /// The parallel environment, if any.
        pe: Option<PeName>,
        /// The ids that it gets of resource maps.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        maps: Vec<GrantedIds>,
        /// What came of its request for cores on each of its hosts; empty if it asked for none.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        binding: Vec<HostBinding>,
    },
    /// The host confirmed that the job process runs.
    TaskStarted {
        /// The attempt.
        key: TaskKey,
        /// When, by the master's clock.
        at: Wall,
    },
    /// The task is gone from its hosts: consumables are free again.
    TaskEnded {
        /// The attempt.
        key: TaskKey,
        /// The accounting record. `None` if the order never reached a host (a withdrawn placement).
        record: Option<Box<AccountingRecord>>,
        /// The fate of the task.
        then: TaskFate,
        /// The main process of a job whose state a command wrote during the attempt: its next start
        /// goes on from there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        saved_pid: Option<i32>,
        /// The usage that its owner is charged with, without slave tasks, if it differs from the
        /// record.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        charged: Option<Consumption>,
    },
    /// A process of a parallel job started a slave task on one of the job's hosts
    /// (`qrsh -inherit`).
    SlavePlaced {
        /// The slave task: `pe_task` is its number in the attempt.
        key: TaskKey,
        /// The queue instance in which it runs.
        instance: QueueInstanceName,
        /// The host of the process that started it.
        from: HostName,
        /// The specification.
        spec: Arc<SlaveSpec>,
    },
    /// Its host confirmed that it runs.
    SlaveStarted {
        /// The slave task.
        key: TaskKey,
        /// When, by the master's clock.
        at: Wall,
    },
    /// A slave task has ended, or was given up with its job.
    SlaveEnded {
        /// The slave task.
        key: TaskKey,
        /// The accounting record. `None` if the job's own record includes it
        /// (`accounting_summary`).
        record: Option<Box<AccountingRecord>>,
        /// The exit status of its command; not 0 if the task never started.
        exit_status: u32,
        /// The fault on its host, if any.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reason: String,
        /// Its usage.
        usage: Usage,
        /// Its usage as getrusage(2) numbers.
        rusage: Rusage,
        /// The usage that its owner is charged with, if it differs from `usage`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        charged: Option<Consumption>,
    },
    /// Running attempts and slave tasks were charged with their usage so far. The rest is charged
    /// when they end.
    UsageCharged {
        /// The usage of each since its start.
        tasks: Vec<(TaskKey, Consumption)>,
    },
    /// The usage of users was forgotten (`qconf -clearusage`).
    UsageCleared {
        /// The users. If none is named, all, also those without an object.
        users: Vec<UserName>,
    },
    /// A host that is not heard may still run an attempt that was given up. The task does not go
    /// there again until the host has confirmed that the attempt is gone.
    TaskUnconfirmed {
        /// The attempt.
        key: TaskKey,
        /// The host.
        host: HostName,
    },
    /// The host has confirmed that such an attempt is gone.
    TaskConfirmedGone {
        /// The attempt.
        key: TaskKey,
        /// The host.
        host: HostName,
    },
    /// Pending tasks were deleted.
    TasksDeleted {
        /// The job.
        seq: SubmitSeq,
        /// Which.
        tasks: Vec<TaskRange>,
    },
    /// The deletion of a task on a host was asked for.
    TaskDeletionRequested {
        /// The attempt.
        key: TaskKey,
    },
    /// A task on a host is to run again: it will be ended and requeued.
    TaskRescheduleRequested {
        /// The attempt.
        key: TaskKey,
    },
    /// The state of a checkpointing task on a host is written and the task ended there: it is
    /// requeued.
    TaskMigrationRequested {
        /// The attempt.
        key: TaskKey,
    },
    /// A task on a host was suspended or resumed by people.
    TaskSuspended {
        /// The attempt.
        key: TaskKey,
        /// Whether it is suspended now.
        suspended: bool,
    },
    /// A task on a host was suspended or resumed by a suspend threshold of its queue.
    TaskThresholdSuspended {
        /// The attempt.
        key: TaskKey,
        /// Whether it is suspended now.
        suspended: bool,
    },
    /// A task on a host gives its slots to those of a superordinate queue, or goes on (slot-wise
    /// subordination).
    TaskPreempted {
        /// The attempt.
        key: TaskKey,
        /// Whether it is suspended now.
        suspended: bool,
    },
    /// A task on a host takes what its job asks for now, which is less than before.
    TaskRebooked {
        /// The attempt.
        key: TaskKey,
    },
    /// The error state of tasks was cleared.
    ErrorCleared {
        /// The job.
        seq: SubmitSeq,
        /// Which tasks.
        tasks: Vec<TaskRange>,
    },
    /// The last task of a job has left. Jobs that wait for it may start.
    JobFinished {
        /// The job.
        seq: SubmitSeq,
    },

    /// The state of a queue instance changed: by hand, by a failure, by its calendar or by a
    /// superordinate queue.
    InstanceChanged {
        /// The instance.
        instance: QueueInstanceName,
        /// Its whole state.
        state: InstanceState,
    },
    /// Numbers continue after those of another cell, which was taken over.
    NumbersContinued {
        /// The last job number, if it was raised.
        job: Option<JobNumber>,
        /// The last number of an advance reservation, if it was raised.
        reservation: Option<u32>,
    },
    /// An advance reservation was granted.
    ReservationGranted {
        /// Its number.
        id: ReservationId,
        /// The request.
        spec: Arc<ReservationSpec>,
        /// When it begins.
        start: Wall,
        /// When it ends.
        end: Wall,
        /// Its slots; the first entry is the master's.
        granted: Vec<GrantedSlots>,
        /// The parallel environment, if any.
        pe: Option<PeName>,
    },
    /// The time of an advance reservation has come, or is over while jobs of it are still there.
    ReservationChanged {
        /// Which.
        id: ReservationId,
        /// Its state.
        state: ReservationState,
    },
    /// An advance reservation and its jobs are gone.
    ReservationEnded {
        /// Which.
        id: ReservationId,
    },
    /// Configuration objects changed, all at once.
    ObjectsChanged(Vec<StoredObject>),

    /// A host got a certificate.
    CertificateIssued {
        /// The host.
        host: HostName,
        /// The serial, in lower-case hex.
        serial: String,
        /// End of its validity.
        not_after: Wall,
    },
    /// The certificates of a host are no longer admitted.
    HostRevoked {
        /// The host.
        host: HostName,
    },
    /// The agent of a host showed the mark of its task directory for the first time, or a later one
    /// of the same directory.
    HostTasksBound {
        /// The host.
        host: HostName,
        /// The newest mark; `None` if the next agent of the host is let in whatever directory it
        /// has.
        mark: Option<TasksMark>,
    },
    /// A join token was created.
    TokenCreated(JoinGrant),
    /// A join token is not accepted any more.
    TokenRevoked {
        /// Hash of the token.
        hash: String,
    },
    /// A host joined with a token.
    TokenUsed {
        /// Hash of the token.
        hash: String,
        /// The host.
        host: HostName,
    },

    /// A changing request was answered; a repeat gets the same.
    RequestAnswered {
        /// The request.
        id: RequestId,
        /// The answer, which may name many jobs: every state that keeps it shares it.
        reply: Arc<Reply>,
    },
}

impl Event {
    /// What an event is about.
    pub fn subject(&self) -> EventSubject<'_> {
        match self {
            Event::JobSubmitted { seq, .. }
            | Event::JobAltered { seq, .. }
            | Event::HoldsChanged { seq, .. }
            | Event::TasksDeleted { seq, .. }
            | Event::ErrorCleared { seq, .. }
            | Event::JobFinished { seq } => EventSubject::Job(*seq),
            Event::TaskPlaced { key, .. }
            | Event::TaskStarted { key, .. }
            | Event::TaskEnded { key, .. }
            | Event::TaskUnconfirmed { key, .. }
            | Event::TaskConfirmedGone { key, .. }
            | Event::TaskDeletionRequested { key }
            | Event::TaskRescheduleRequested { key }
            | Event::TaskMigrationRequested { key }
            | Event::TaskRebooked { key }
            | Event::TaskSuspended { key, .. }
            | Event::TaskThresholdSuspended { key, .. }
            | Event::TaskPreempted { key, .. } => EventSubject::Task(*key),
            Event::SlavePlaced { key, .. } | Event::SlaveStarted { key, .. } | Event::SlaveEnded { key, .. } => {
                EventSubject::SlaveTask(*key)
            }
            Event::InstanceChanged { instance, .. } => EventSubject::Instance(instance),
            Event::ReservationGranted { id, .. }
            | Event::ReservationChanged { id, .. }
            | Event::ReservationEnded { id } => EventSubject::Reservation(*id),
            Event::ObjectsChanged(_) => EventSubject::Objects,
            Event::CertificateIssued { host, .. }
            | Event::HostRevoked { host }
            | Event::HostTasksBound { host, .. }
            | Event::TokenUsed { host, .. } => EventSubject::Host(host),
            Event::CellCreated { .. }
            | Event::CellVersionRaised { .. }
            | Event::EpochRaised { .. }
            | Event::WallJumped { .. }
            | Event::NumbersContinued { .. }
            | Event::UsageCharged { .. }
            | Event::UsageCleared { .. }
            | Event::TokenCreated(_)
            | Event::TokenRevoked { .. }
            | Event::RequestAnswered { .. } => EventSubject::Cell,
        }
    }

    /// The accounting record that an event brings.
    pub fn accounting(&self) -> Option<&AccountingRecord> {
        let (Event::TaskEnded { record, .. } | Event::SlaveEnded { record, .. }) = self else {
            return None;
        };
        record.as_deref()
    }
}

/// What an event is about: one table for all who sort events by that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventSubject<'a> {
    /// A job, or some of its tasks that are on no host.
    Job(SubmitSeq),
    /// A task on a host.
    Task(TaskKey),
    /// A task that a parallel job started on one of its hosts.
    SlaveTask(TaskKey),
    /// A queue instance.
    Instance(&'a QueueInstanceName),
    /// An advance reservation.
    Reservation(ReservationId),
    /// Configuration objects.
    Objects,
    /// A host as a machine that is let in.
    Host(&'a HostName),
    /// The cell as a whole.
    Cell,
}

impl EventSubject<'_> {
    /// The job that it belongs to.
    pub fn job(self) -> Option<SubmitSeq> {
        match self {
            EventSubject::Job(seq) => Some(seq),
            EventSubject::Task(key) | EventSubject::SlaveTask(key) => Some(key.seq),
            EventSubject::Instance(_)
            | EventSubject::Reservation(_)
            | EventSubject::Objects
            | EventSubject::Host(_)
            | EventSubject::Cell => None,
        }
    }
}

/// The fate of a task after an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskFate {
    /// It is done.
    Done,
    /// It waits for its next start.
    Requeued,
    /// It waits in error until people clear it.
    Error {
        /// The reason, as `qstat -j` shows it.
        reason: String,
    },
}

/// The stored states of a queue instance. Alarms and contact are observations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InstanceState {
    /// `d`
    pub disabled: bool,
    /// `s`
    pub suspended: bool,
    /// `E`, with the reasons.
    pub errors: Vec<String>,
    /// `D` and `C`: the state that its calendar says.
    pub calendar: CalendarState,
    /// `S`: a queue instance of its host to which it is subordinate has reached its threshold.
    pub subordinate: bool,
    /// `P`: a task that came now would give way at once to tasks of a superordinate queue.
    pub preempted: bool,
}

impl InstanceState {
    /// Whether the tasks in the instance are stopped. Each cause counts by itself: they go on when
    /// none is left.
    pub fn stops_tasks(&self) -> bool {
        let InstanceState {
            disabled: _,
            suspended,
            errors: _,
            calendar,
            subordinate,
            preempted: _,
        } = self;
        *suspended || *subordinate || *calendar == CalendarState::Suspended
    }
}

/// A configuration object as it is from now on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredObject {
    /// Its kind.
    pub kind: ObjectKind,
    /// Its name; empty for kinds that exist once.
    pub name: String,
    /// Its fields. `None` if it was deleted.
    pub fields: Option<Fields>,
}

/// The right to join, as stored: the token itself is never kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinGrant {
    /// Hash of the token.
    pub hash: String,
    /// The number of further uses.
    pub uses_left: u32,
    /// When it ends.
    pub expires: Wall,
    /// A pattern that the host's name must match.
    pub host_pattern: String,
}
