//! Commands and queries: what `qsub`, `qstat`, `qconf` and the others ask the master.
//!
//! A client sends [`ClientHello`], then [`ClientMessage`]s in
//! [`Kind::Request`](super::frame::Kind::Request) frames. Each is answered by one or more [`Reply`]
//! frames of the same id; all but the last say `more`.

use super::slave::SlaveSpec;
use super::stream::{Orders, Subscription};
use super::view::Data;
use crate::cell_version::CellVersion;
use crate::diagnostic::Diagnostic;
use crate::id::{JobNumber, RequestId, ReservationId, TaskKey};
use crate::job::{JobChanges, JobSpec};
use crate::object::{Fields, ObjectKind};
use crate::request::{ResourceRequest, TaskRange};
use crate::reservation::ReservationSpec;
use crate::time::Wall;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// First from a client. Who it is comes from the socket, not from here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientHello {
    /// [`PROTOCOL_VERSION`](super::agent::PROTOCOL_VERSION) of the client.
    pub version: u32,
    /// The command's name, for the log.
    pub program: String,
    /// The task that the command says it is a process of, where that matters (`qrsh -inherit`).
    #[serde(default)]
    pub task: Option<TaskKey>,
}

/// One request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClientMessage {
    /// Changes something. Repeated with the same id it gets the first answer.
    Change {
        /// Made by the client at random.
        id: RequestId,
        /// What to change.
        command: Command,
    },
    /// Changes nothing.
    Query(Query),
}

/// Everything that changes the cell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Command {
    /// `qsub`. Answered with [`Data::Submitted`]; with `-w v` and `-w p` by answers alone.
    Submit(Box<JobSpec>),
    /// `qresub`: submits copies.
    Resubmit {
        /// The originals.
        jobs: JobSelection,
        /// What is different in the copies.
        changes: Box<JobChanges>,
    },
    /// `qalter`, `qhold`, `qrls`.
    Alter {
        /// Which jobs or tasks.
        jobs: JobSelection,
        /// What changes.
        changes: Box<JobChanges>,
    },
    /// `qdel`.
    Delete {
        /// Which jobs or tasks.
        jobs: JobSelection,
        /// `-f`: forget them without waiting for their hosts.
        force: bool,
    },
    /// `qmod`.
    Modify {
        /// What to do.
        action: ModifyAction,
        /// Jobs, tasks, queues and queue instances as given, with patterns.
        targets: Vec<String>,
        /// `-f`.
        force: bool,
    },
    /// `qrsub`. Answered with [`Data::Reserved`]; with `-w v` by answers alone.
    Reserve(Box<ReservationSpec>),
    /// `qrdel`.
    DeleteReservations {
        /// Numbers, names and patterns; empty is all of `users`.
        targets: Vec<String>,
        /// `-u`: those of these users; with targets both must hold.
        users: Vec<String>,
        /// `-f`: do not wait for the hosts of their jobs.
        force: bool,
    },
    /// `qconf`: changes of configuration objects, all of them or none.
    Objects(Vec<ObjectChange>),
    /// `qconf -import`: the objects of a cell that is taken over, all of them or none. What they
    /// say and Gridwright does not do is kept and warned about, where `Objects` refuses it.
    Import(Import),
    /// `qconf --dry-run`: decides changes of objects as if they were meant, answers as if they were
    /// made, and makes none.
    DryRun(Box<Command>),
    /// `gridwright token create`. Answered with [`Data::Token`].
    CreateToken {
        /// How many hosts may use it.
        uses: u32,
        /// How long it is valid, in seconds.
        valid_s: u64,
        /// A pattern that the host's name must match.
        host_pattern: String,
    },
    /// `gridwright token revoke`: no host joins with it any more.
    RevokeToken {
        /// The beginning of its hash, as [`Data::Tokens`] has it.
        id: String,
    },
    /// `gridwright host revoke`: its certificates are no longer admitted.
    RevokeHost {
        /// The host.
        host: String,
    },
    /// `gridwright host rebind`: the next agent of the host is let in with whatever task directory
    /// it has.
    RebindHost {
        /// The host.
        host: String,
    },
    /// Issues certificates for simulated hosts of this machine; managers on the master's host only.
    /// Answered with [`Data::Certificates`].
    SimulatedHosts {
        /// How many, named `sim0001` upwards.
        count: u32,
        /// Slots of each; none leaves them to the queue.
        #[serde(default)]
        slots: Option<u32>,
    },
    /// `qconf -ke`, `-kej`, `-km`.
    Shutdown {
        /// Hosts whose agents end; empty is the master.
        hosts: Vec<String>,
        /// Whether agents terminate their jobs first.
        kill_jobs: bool,
    },
    /// `qconf -clearusage`: what users have used is forgotten.
    ClearUsage {
        /// Which; none named are all users and projects.
        users: Vec<String>,
    },
    /// `gridwright finalize`: the cell may use the features of a later version.
    Finalize {
        /// The version.
        version: CellVersion,
        /// Whether it is only asked if that can be done.
        #[serde(default)]
        is_trial: bool,
    },
    /// `qconf -tsm`: a scheduling pass now.
    TriggerScheduling,
    /// Orders of a scheduler outside the master. Answered with [`Data::Verdicts`], one for each in
    /// their order.
    Orders(Orders),
    /// `qconf -kec`: cuts event clients off.
    KillEventClients {
        /// Their numbers; empty is all but the built-in scheduler.
        ids: Vec<u32>,
    },
    /// `qrsh -inherit`: a slave task of the parallel job that the caller is a process of. Answered
    /// with [`Data::Slave`].
    StartSlave(Box<SlaveRequest>),
}

/// What `qrsh -inherit` asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlaveRequest {
    /// The task that the caller says it is a process of; the agent of its host has to agree
    /// ([`Vouch`](super::agent::Vouch)).
    pub task: TaskKey,
    /// The host that is to run the slave task.
    pub host: String,
    /// What it is to run.
    pub spec: Arc<SlaveSpec>,
}

/// What `qmod` can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModifyAction {
    /// `-d`
    DisableQueue,
    /// `-e`
    EnableQueue,
    /// `-sq`
    SuspendQueue,
    /// `-usq`
    UnsuspendQueue,
    /// `-cq`
    ClearQueueError,
    /// `-rq`
    RescheduleQueue,
    /// `-sj`
    SuspendJob,
    /// `-usj`
    UnsuspendJob,
    /// `-cj`
    ClearJobError,
    /// `-rj`
    RescheduleJob,
    /// `-s`: job or queue.
    Suspend,
    /// `-us`
    Unsuspend,
    /// `-c`
    ClearError,
    /// `-r`
    Reschedule,
}

/// Jobs and tasks as people name them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobSelection {
    /// Numbers, `number.tasks`, names and patterns, in the order given.
    pub targets: Vec<JobTarget>,
    /// `-u`: jobs of these users (patterns); with targets both must hold. Empty is the caller's own
    /// jobs where targets are patterns.
    pub users: Vec<String>,
    /// `-t`: tasks of the targets that name none themselves.
    pub tasks: Vec<TaskRange>,
}

/// One job named by number, name or pattern.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobTarget {
    /// A number, a name or a pattern.
    pub job: String,
    /// Tasks behind the dot; empty is the whole job.
    pub tasks: Vec<TaskRange>,
}

/// What `qconf -import` brings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Import {
    /// The objects, what is named before what names it.
    pub changes: Vec<ObjectChange>,
    /// The last job number that the other cell gave out; numbers go on behind it if it is the
    /// higher one.
    #[serde(default)]
    pub last_job: Option<u32>,
    /// The same of advance reservations.
    #[serde(default)]
    pub last_reservation: Option<u32>,
}

/// One change of one configuration object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectChange {
    /// What kind of object.
    pub kind: ObjectKind,
    /// Its name; `cq`, `cq@host` and `cq@@group` for queue attributes; empty for kinds that exist
    /// once.
    pub name: String,
    /// What to do.
    pub action: ObjectAction,
}

/// What `qconf` can do to an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ObjectAction {
    /// `-a`, `-A`: it must not exist. For lists (hosts, managers) the fields are empty.
    Add(Fields),
    /// `-m`, `-M`: it must exist and becomes this.
    Replace(Fields),
    /// `-d`.
    Delete,
    /// `-aattr`, `-dattr`, `-mattr`, `-rattr` of one attribute.
    Attribute {
        /// Which of the four.
        edit: AttributeEdit,
        /// The attribute, such as `complex_values`.
        attribute: String,
        /// The value as given.
        value: String,
    },
    /// `-purge queue ATTRIBUTES cq@host`: removes overrides; `*` is all.
    Purge {
        /// Attribute names.
        attributes: Vec<String>,
    },
    /// `-cq`: clean the queue of jobs.
    Clean,
    /// `-au`: a user, or with `@` a group, comes into an access list, which is made if there is
    /// none.
    Enlist {
        /// Who.
        entry: String,
    },
    /// `-du`: the reverse.
    Strike {
        /// Who.
        entry: String,
    },
}

/// The four edits of one attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AttributeEdit {
    /// `-aattr`: append to a list.
    Add,
    /// `-dattr`: remove from a list.
    Delete,
    /// `-mattr`: change, or add if absent.
    Modify,
    /// `-rattr`: replace the whole.
    Replace,
}

/// Everything that can be asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Query {
    /// Rows of `qstat`. Answered with [`Data::Jobs`].
    Jobs(JobFilter),
    /// `qstat -j`. Answered with [`Data::JobDetails`]; what does not exist is refused by name.
    JobDetails {
        /// Numbers, names, patterns; empty is all.
        targets: Vec<String>,
    },
    /// `qstat -f`, `-g c`, `qhost -q`, `qselect`. Answered with [`Data::Queues`].
    Queues(QueueFilter),
    /// Cluster queues without a queue instance. Answered with [`Data::Names`].
    QueuesWithoutHosts,
    /// `qhost`. Answered with [`Data::Hosts`].
    Hosts(HostFilter),
    /// One configuration object. Answered with [`Data::Object`].
    Object {
        /// What kind.
        kind: ObjectKind,
        /// Which one.
        name: String,
    },
    /// What `qconf -a…` opens in the editor. Answered with [`Data::Object`].
    Template {
        /// What kind.
        kind: ObjectKind,
        /// The name it will have.
        name: String,
    },
    /// Names of all objects of a kind. Answered with [`Data::Names`].
    Names {
        /// What kind.
        kind: ObjectKind,
    },
    /// `qconf -shgrp_resolved`, `-shgrp_tree`. Answered with [`Data::HostGroupTree`].
    HostGroupTree {
        /// The group.
        name: String,
    },
    /// `qacct`. Answered with [`Data::Accounting`].
    Accounting(AccountingFilter),
    /// `gridwright changes`. Answered with [`Data::Changes`].
    Changes(ChangeFilter),
    /// Answered with [`Data::Ended`] when every task of the job has left (`qsub -sync y`).
    Wait {
        /// The job.
        job: JobNumber,
    },
    /// Answered with [`Data::Ended`] of no task once a task of the job is on a host, or of the
    /// deleted tasks once the job has been given up (`-now y`). For an interactive job that is on a
    /// host, answered with [`Data::Session`].
    WaitPlaced {
        /// The job.
        job: JobNumber,
    },
    /// Why does it wait. Answered with [`Data::Explanation`].
    Explain {
        /// The job.
        job: JobNumber,
        /// Its tasks that are meant; empty is all.
        #[serde(default)]
        tasks: Vec<TaskRange>,
    },
    /// The share tree with what each part of it is entitled to, ought to get and has. Answered with
    /// [`Data::Shares`].
    Shares,
    /// The categories of jobs with these numbers; none means all. Answered with
    /// [`Data::Categories`].
    Categories {
        /// Their numbers.
        ids: Vec<u64>,
    },
    /// Health of load sensors. Answered with [`Data::Sensors`].
    Sensors {
        /// Hosts; empty is all.
        hosts: Vec<String>,
    },
    /// What the cell calls hosts. Answered with [`Data::Names`], one for each.
    HostNames {
        /// Names and patterns as people write them.
        names: Vec<String>,
    },
    /// `doctor`: what the objects of the cell say and that has no effect. Answered with
    /// [`Data::Warnings`].
    WithoutEffect,
    /// `qrstat`. Answered with [`Data::Reservations`].
    Reservations {
        /// `-ar`: numbers; empty is all. Those that do not exist are just not answered.
        ids: Vec<ReservationId>,
        /// `-u`: names and patterns of owners; empty is everybody.
        users: Vec<String>,
    },
    /// `qsched`. Answered with [`Data::Kept`].
    Kept,
    /// `qquota`. Answered with [`Data::Quotas`].
    Quotas(QuotaFilter),
    /// The event stream. Answered with [`Data::Events`], part by part until the client goes or is
    /// cut off.
    Events(Subscription),
    /// `qconf -secl`. Answered with [`Data::EventClients`].
    EventClients,
    /// `qping`, `up`, `doctor`. Answered with [`Data::Status`].
    Status,
    /// `gridwright token list`: tokens that are not used up.
    Tokens,
    /// `qstat -j` without a list: why jobs wait. Answered with [`Data::Reasons`].
    Reasons,
}

/// Which limits of `qquota`. Empty lists do not filter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct QuotaFilter {
    /// `-u`: names and patterns.
    pub users: Vec<String>,
    /// `-P`: names and patterns.
    pub projects: Vec<String>,
    /// `-pe`: names and patterns.
    pub pes: Vec<String>,
    /// `-q`: names and patterns of cluster queues.
    pub queues: Vec<String>,
    /// `-h`: names and patterns of hosts, and groups.
    pub hosts: Vec<String>,
    /// `-l`: names of attributes.
    pub resources: Vec<String>,
}

/// Which rows of `qstat`. Empty lists do not filter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobFilter {
    /// `-u`: user names and patterns.
    pub users: Vec<String>,
    /// `-s`: which states.
    pub states: JobStates,
    /// `-q`: queue patterns. A running task must be in a queue instance that this and the next two
    /// select, a pending one fit into one.
    pub queues: Vec<String>,
    /// `-l`: resources that a queue instance must offer.
    pub resources: Vec<ResourceRequest>,
    /// `-pe`: patterns, one of which a parallel environment of the queue instance must match.
    pub pes: Vec<String>,
    /// Numbers, names or patterns of jobs.
    pub jobs: Vec<String>,
}

/// `-s p|r|s|z|h…`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobStates {
    /// `p`: pending.
    pub pending: bool,
    /// `r`: running.
    pub running: bool,
    /// `s`: suspended.
    pub suspended: bool,
    /// `z`: finished.
    pub finished: bool,
    /// Of the pending, only those in one of these holds (`hu ho hs hd hj ha h`), where any is
    /// given.
    pub only_holds: HoldFilter,
    /// Tasks on hosts in one of these holds, whatever `running` and `suspended` say (`hu ho hs h`).
    /// Dependencies and start times do not count: they keep no task that is on a host.
    pub held_on_hosts: HoldFilter,
}

impl Default for JobStates {
    fn default() -> Self {
        let (only_holds, held_on_hosts) = (HoldFilter::default(), HoldFilter::default());
        Self {
            pending: true,
            running: true,
            suspended: true,
            finished: false,
            only_holds,
            held_on_hosts,
        }
    }
}

/// The holds that `-s h…` selects by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HoldFilter {
    /// `hu`
    pub user: bool,
    /// `ho`
    pub operator: bool,
    /// `hs`
    pub system: bool,
    /// `hd`: waits for a predecessor.
    pub dependency: bool,
    /// `ha`: waits for its start time.
    pub start_time: bool,
}

/// Which queue instances, and what to tell about them. Empty lists do not filter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct QueueFilter {
    /// `-q`: patterns.
    pub queues: Vec<String>,
    /// `-l`: resources that the instance must offer now.
    pub resources: Vec<ResourceRequest>,
    /// `-pe`: patterns.
    pub pes: Vec<String>,
    /// `-U`: users that must have access.
    pub users: Vec<String>,
    /// `-qs`: state letters, any of which the instance must be in.
    pub states: String,
    /// `-F`: attributes to tell; `Some` and empty is all.
    pub attributes: Option<Vec<String>>,
    /// `-explain`: letters of states to explain.
    pub explain: String,
    /// `SGE_LOAD_AVG`: the load value to tell as that of the instance; empty is `load_avg`.
    pub load_value: String,
}

/// Which hosts, and what to tell about them. Empty lists do not filter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostFilter {
    /// `-h`: names.
    pub hosts: Vec<String>,
    /// `-l`: resources that the host must offer now.
    pub resources: Vec<ResourceRequest>,
    /// `-F`: attributes to tell; `Some` and empty is all.
    pub attributes: Option<Vec<String>>,
}

/// Which accounting records. Empty lists do not filter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AccountingFilter {
    /// `-j`: numbers, names, patterns.
    pub jobs: Vec<String>,
    /// `-t`: tasks.
    pub tasks: Vec<TaskRange>,
    /// `-o`.
    pub owners: Vec<String>,
    /// `-b`: started not before.
    pub begin: Option<Wall>,
    /// `-e`: started not after.
    pub end: Option<Wall>,
}

/// Which changes of the cell. Empty lists do not filter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChangeFilter {
    /// Not before this time.
    pub since: Option<Wall>,
    /// Names and patterns of the users who made them.
    pub users: Vec<String>,
    /// Names and patterns of objects and hosts, kinds of objects, and numbers of jobs.
    pub objects: Vec<String>,
    /// The number of changes at most: older ones are left out. The master has a limit of its own.
    pub most: u32,
}

/// An answer to a request, or a part of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reply {
    /// Whether another part follows under the same id.
    pub more: bool,
    /// What was done, warned of and refused, in order.
    pub answers: Vec<Answer>,
    /// What was asked for.
    pub data: Option<Data>,
}

/// One line of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Done, in the words of 8.1.9.
    Done(String),
    /// Done, but something is worth knowing.
    Warning(Diagnostic),
    /// Not done.
    Refused(Diagnostic),
}

impl Answer {
    /// Whether this is a refusal.
    pub fn is_refusal(&self) -> bool {
        self.refusal().is_some()
    }

    /// The refusal, if this is one.
    pub fn refusal(&self) -> Option<&Diagnostic> {
        match self {
            Answer::Refused(refusal) => Some(refusal),
            Answer::Done(_) | Answer::Warning(_) => None,
        }
    }
}

impl Reply {
    /// An answer without data.
    pub fn answers(answers: Vec<Answer>) -> Self {
        Self {
            answers,
            ..Self::default()
        }
    }

    /// An answer that is data alone.
    pub fn data(data: Data) -> Self {
        Self {
            data: Some(data),
            ..Self::default()
        }
    }

    /// A single refusal.
    pub fn refusal(diagnostic: Diagnostic) -> Self {
        Self::answers(vec![Answer::Refused(diagnostic)])
    }
}
