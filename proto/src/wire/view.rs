//! What the master tells about jobs, queues and hosts: enough for every text, XML and JSON form
//! that the commands print.

mod changes;
mod explanation;

pub use changes::{ChangeAction, ChangeHistory, ChangeView, FieldChange, LogBeginning};
pub use explanation::{
    Comparison, Explanation, Holder, JobInFront, OrderPosition, Predecessor, PriorityTerm, ReasonContext, WaitReason,
};

use crate::accounting::AccountingRecord;
use crate::amount::{Amount, Type};
use crate::binding::HostBinding;
use crate::cell_version::CellVersion;
use crate::checkpoint::CheckpointOccasions;
use crate::complex::Consumable;
use crate::diagnostic::Diagnostic;
use crate::id::{AttributeName, HostName, JobNumber, QueueName, ReservationId, SubmitSeq, TaskId, TaskKey, UserName};
use crate::job::{Condition, GrantedSlots, Holds, JobSpec, Requests};
use crate::load::SensorStatus;
use crate::object::Fields;
use crate::request::TaskRange;
use crate::reservation::ReservationView;
use crate::rsmap::GrantedIds;
use crate::time::Wall;
use crate::usage::{FailedCode, Usage};
use crate::wire::stream::{EventClient, Item, Verdict};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The data of a reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Data {
    /// A job was accepted.
    Submitted {
        /// Its number.
        number: JobNumber,
        /// Its name as accepted.
        name: String,
        /// Its range if it is an array.
        array: Option<TaskRange>,
    },
    /// An advance reservation was granted.
    Reserved(ReservationId),
    /// Advance reservations, by number.
    Reservations(Vec<ReservationView>),
    /// What is kept for tasks that wait, by the time from which it is.
    Kept(Vec<KeptTask>),
    /// Rows of `qstat`.
    Jobs(Vec<JobRow>),
    /// Blocks of `qstat -j`.
    JobDetails(Vec<JobDetail>),
    /// Queue instances in display order.
    Queues(Vec<QueueView>),
    /// Hosts in display order, `global` first.
    Hosts(Vec<HostView>),
    /// A configuration object.
    Object(Fields),
    /// Names in display order.
    Names(Vec<String>),
    /// A host group: direct members, and all hosts in it.
    HostGroupTree(HostGroupTree),
    /// Accounting records, oldest first.
    Accounting(Vec<AccountingRecord>),
    /// Who changed what in the cell.
    Changes(ChangeHistory),
    /// Rows of `qquota`.
    Quotas(Vec<QuotaRow>),
    /// How the tasks of a job ended.
    Ended(Vec<EndedTask>),
    /// Where an interactive job has been placed.
    Session(SessionPlace),
    /// Why a job waits.
    Explanation(Box<Explanation>),
    /// Nodes of the share tree, a parent before its children.
    Shares(Vec<ShareNode>),
    /// Categories of jobs, by number.
    Categories(Vec<CategoryView>),
    /// Sensors by host.
    Sensors(BTreeMap<HostName, Vec<SensorStatus>>),
    /// The state of the cell.
    Status(Box<CellStatus>),
    /// What is worth knowing, one for each place.
    Warnings(Vec<Diagnostic>),
    /// A new join token; it is shown once and stored only as a hash.
    Token(String),
    /// Join tokens, the one that ends first before the others.
    Tokens(Vec<TokenView>),
    /// Elements of the event stream, in order.
    Events(Vec<Item>),
    /// What became of orders, one for each in their order.
    Verdicts(Vec<Verdict>),
    /// Who reads the event stream, the built-in scheduler first.
    EventClients(Vec<EventClient>),
    /// Certificates for simulated hosts.
    Certificates(Vec<IssuedCertificate>),
    /// A slave task was given to its host.
    Slave(TaskKey),
    /// Why jobs wait: lines about the cluster, without a job, and those about jobs.
    Reasons(Vec<SchedulingLines>),
}

/// The eight numbers behind `prior`, in millionths, and the ticket shares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub struct PriorityNumbers {
    /// The dispatch priority.
    pub prior: i64,
    /// Normalised POSIX priority.
    pub npprior: i64,
    /// Normalised urgency.
    pub nurg: i64,
    /// Normalised tickets.
    pub ntckts: i64,
    /// Urgency.
    pub urg: i64,
    /// Its resource part.
    pub rrcontr: i64,
    /// Its waiting time part.
    pub wtcontr: i64,
    /// Its deadline part.
    pub dlcontr: i64,
    /// Override tickets.
    pub otckt: i64,
    /// Functional tickets.
    pub ftckt: i64,
    /// Share tree tickets.
    pub stckt: i64,
    /// All tickets together, rounded after they were added.
    #[serde(default)]
    pub tckts: i64,
    /// Their part of the tickets of all pending, or of all running tasks, in millionths.
    #[serde(default)]
    pub share: i64,
}

/// Jobs that ask for the same, of which one answer holds for all: `qconf -scat`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CategoryView {
    /// The number of the category while it lasts.
    pub id: u64,
    /// How many jobs are in it, pending and running.
    pub jobs: u64,
    /// What they have in common, as options of `qsub`.
    pub text: String,
}

/// One node of the share tree with its part of the cell, as `sge_share_mon` shows it. A user
/// without a leaf of its own who is served by a `default` leaf is a node of its own below the
/// parent of that leaf. Parts are millionths of one, usage is in millionths of its unit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ShareNode {
    /// `/` of the root, else the names from below the root to the node: `/grp/u2`.
    pub path: String,
    /// How far below the root: 0 of the root itself.
    pub depth: u32,
    /// The user, where the node stands for one.
    pub user: Option<UserName>,
    /// The project, where the node stands for one or lies below the node of one.
    pub project: Option<String>,
    /// The shares that it is configured with.
    pub shares: u32,
    /// Active tasks below it, pending and running.
    pub job_count: u64,
    /// Its part among its siblings by shares alone, active or not.
    pub level: i64,
    /// Its part of the whole tree by shares alone: `level` of all nodes on the way from the root,
    /// multiplied.
    pub total: i64,
    /// The part of the cell that it ought to have over time, active siblings only; 0 where nothing
    /// below it is active.
    pub long_target_share: i64,
    /// The part that it gets now, to make up for past use; 0 where nothing below it is active.
    pub short_target_share: i64,
    /// The part that it has of the decayed usage of the whole tree.
    pub actual_share: i64,
    /// Its decayed usage: cpu, mem and io weighted by `usage_weight_list`.
    pub usage: i128,
    /// Decayed processor time in seconds.
    pub cpu: i128,
    /// Decayed integral memory in GB seconds.
    pub mem: i128,
    /// Decayed data transferred in GB.
    pub io: i128,
    /// Processor time in seconds, never decayed.
    pub ltcpu: i128,
    /// Integral memory in GB seconds, never decayed.
    pub ltmem: i128,
    /// Data transferred in GB, never decayed.
    pub ltio: i128,
    /// When usage was last booked or decayed, in seconds since 1970; 0 if never.
    pub usage_time: i64,
}

/// One limit of a resource quota set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuotaRow {
    /// The rule, as `set/rule`.
    pub rule: String,
    /// The attribute.
    pub resource: AttributeName,
    /// The limit, a formula computed.
    pub limit: String,
    /// What is in use of it; none of what cannot be used up.
    pub used: Option<String>,
    /// What the rule is about: `users`, `projects`, `pes`, `queues`, `hosts`, as far as it names
    /// any, each with its names.
    pub filters: Vec<(String, Vec<String>)>,
    /// The filters whose names each have the limit for themselves and are all shown: `users {*}`.
    #[serde(default)]
    pub expanded: Vec<String>,
}

/// One job in `qstat`: what all of its rows share, then its tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobRow {
    /// The job.
    pub seq: SubmitSeq,
    /// Its number.
    pub number: JobNumber,
    /// Full name.
    pub name: String,
    /// Owner.
    pub owner: UserName,
    /// Owner's primary group.
    pub group: String,
    /// Project, if any.
    pub project: Option<String>,
    /// Department.
    pub department: String,
    /// `-A`.
    pub account: String,
    /// `-p`.
    pub posix_priority: i32,
    /// `-js`.
    pub job_share: u32,
    /// `-ot`.
    pub override_tickets: u32,
    /// When it was submitted.
    pub submitted: Wall,
    /// `-dl`.
    pub deadline: Option<Wall>,
    /// `-a`.
    #[serde(default)]
    pub start_after: Option<Wall>,
    /// `-t`, if it is an array.
    pub array: Option<TaskRange>,
    /// `-tc`.
    pub task_concurrency: Option<u32>,
    /// What it asks for.
    pub requests: Requests,
    /// `-ckpt`.
    #[serde(default)]
    pub checkpoint: Option<String>,
    /// What each of the hard requests contributes to its urgency, in their order, in millionths;
    /// empty of a job that has left.
    #[serde(default)]
    pub contributions: Vec<i64>,
    /// The slots with which it counts while it waits: by `urgency_slots` of its environment where
    /// it asks for a range.
    pub slots: u32,
    /// `-hold_jid` as given.
    pub predecessors: Vec<String>,
    /// Numbers of the predecessors it still waits for.
    pub waits_for: Vec<JobNumber>,
    /// `-hold_jid_ad` as given.
    pub array_predecessors: Vec<String>,
    /// Numbers of the array jobs whose tasks its tasks still wait for.
    #[serde(default)]
    pub array_waits_for: Vec<JobNumber>,
    /// Priority numbers of its next pending task.
    pub priority: PriorityNumbers,
    /// Pending tasks, grouped by equal condition, in order.
    pub pending: Vec<PendingTasks>,
    /// Tasks on hosts and (where asked for) finished ones, in order.
    pub tasks: Vec<TaskRow>,
}

impl JobRow {
    /// Whether it waits for other jobs, or for tasks of them.
    pub fn waits(&self) -> bool {
        !self.waits_for.is_empty() || !self.array_waits_for.is_empty()
    }
}

/// Pending tasks that are in one condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingTasks {
    /// Which.
    pub tasks: Vec<TaskRange>,
    /// Their common condition.
    pub condition: Condition,
    /// Holds that people set.
    pub holds: Holds,
    /// Why the first of them is in error, if they are.
    pub error: Option<String>,
    /// When the last of them was rescheduled; the submission time otherwise.
    pub since: Wall,
    /// Whether a limit of the array (`-tc`, `max_aj_instances`) is all that keeps the first from
    /// being looked at.
    pub concurrency_blocked: bool,
}

/// One task on a host, or one that has left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskRow {
    /// Its number.
    pub task: TaskId,
    /// State.
    pub condition: Condition,
    /// Its slots; the first entry holds the master.
    pub granted: Vec<GrantedSlots>,
    /// The parallel environment, if any.
    pub pe: Option<String>,
    /// The ids that it has of resource maps; empty once it has left.
    #[serde(default)]
    pub maps: Vec<GrantedIds>,
    /// The cores that it has on each host, if it asked for any; empty once it has left.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub binding: Vec<HostBinding>,
    /// When it started; the time of the order while it is transferring.
    pub started: Wall,
    /// Use so far.
    pub usage: Usage,
    /// Priority numbers.
    pub priority: PriorityNumbers,
    /// Exit status, once finished.
    pub exit_status: Option<u32>,
    /// Where it failed, once finished.
    pub failed: Option<FailedCode>,
}

/// `qstat -j`: everything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobDetail {
    /// The rows.
    pub row: JobRow,
    /// The specification. The script's content is left out.
    pub spec: Arc<JobSpec>,
    /// The attributes that it asks for, each once.
    #[serde(default)]
    pub attributes: Vec<RequestedAttribute>,
    /// How often it was altered, holds apart.
    #[serde(default)]
    pub version: u32,
    /// Size of the script in bytes.
    pub script_bytes: u64,
    /// Jobs that wait for this one.
    pub successors: Vec<JobNumber>,
    /// `error reason`, by task.
    pub errors: Vec<(TaskId, String)>,
    /// `scheduling info`: lines about the cluster, then about the job.
    pub scheduling_info: Vec<String>,
    /// When the state of a checkpointing job is written, by its `-c` or its environment; none of
    /// other jobs.
    #[serde(default)]
    pub checkpoint_when: Option<CheckpointOccasions>,
    /// Whether the values of the environment are left out: only the owner, operators and managers
    /// see them.
    #[serde(default)]
    pub hides_environment: bool,
}

/// What the complex says of an attribute for which a job asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestedAttribute {
    /// The attribute.
    pub name: AttributeName,
    /// The type of its values.
    pub r#type: Type,
    /// Whether and how it is used up.
    pub consumable: Consumable,
}

/// Lines of `scheduling info`, and the jobs that they are about: those that have the same lines
/// together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchedulingLines {
    /// The lines, in order.
    pub lines: Vec<String>,
    /// The jobs, oldest first; none where the lines are about the cluster.
    pub jobs: Vec<JobNumber>,
}

/// Where a shown value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dominance {
    /// `g`, `h` or `q`.
    pub level: char,
    /// `l` load, `L` scaled or corrected load, `c` consumable, `f` fixed, `v` unreadable load
    /// value.
    pub source: char,
}

/// One attribute of a queue instance or host, resolved over the levels (ALGORITHMS.md section 3.4).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceView {
    /// The attribute.
    pub name: AttributeName,
    /// Its type, which decides how it is printed.
    pub r#type: Type,
    /// Where the value comes from.
    pub dominance: Dominance,
    /// The value.
    pub value: ResourceValue,
    /// The ids of a resource map that a task could get, where `qhost -F` shows them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free_ids: Option<Vec<String>>,
}

/// A resolved value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResourceValue {
    /// A number in the type's base unit; negative where more is booked than there is.
    Amount(Amount),
    /// A text.
    Text(String),
}

/// One queue instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueView {
    /// The cluster queue.
    pub queue: QueueName,
    /// The host.
    pub host: HostName,
    /// `qtype` letters: B, I, P, C, N.
    pub kinds: String,
    /// Slots in use.
    pub used: u32,
    /// Slots that reservations hold.
    pub reserved: u32,
    /// All slots.
    pub total: u32,
    /// The load value that the question named, by default `load_avg`, as reported; none while
    /// unknown.
    pub load_avg: Option<String>,
    /// `np_load_avg` in millionths, for `-g c`; none while unknown.
    pub np_load_avg: Option<i64>,
    /// `arch`; none while unknown.
    pub arch: Option<String>,
    /// State letters, as `qstat -f` shows them.
    pub states: String,
    /// Lines of `-explain`.
    pub explain: Vec<String>,
    /// Attributes of `-F`.
    pub resources: Vec<ResourceView>,
    /// Sequence number.
    pub seq_no: i64,
    /// Parallel environments.
    pub pes: Vec<String>,
}

/// What the scheduler keeps for a task that waits (`-R y`), as `qsched` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptTask {
    /// Its job.
    pub job: JobNumber,
    /// The task; 1 of a job that is no array.
    pub task: TaskId,
    /// The owner of the job.
    pub user: UserName,
    /// When it starts at the latest, unless something fails.
    pub start: Wall,
    /// When it is expected to have ended; none is never.
    pub end: Option<Wall>,
    /// Its slots.
    pub slots: u32,
    /// What it asks for of `h_vmem`, for each slot; 0 if nothing.
    pub h_vmem: String,
    /// What it takes of everything that has a capacity.
    pub uses: Vec<KeptUse>,
}

/// A part of [`KeptTask`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptUse {
    /// `P` of a parallel environment, `G` of the cluster, `H` of a host, `Q` of a queue instance.
    pub level: char,
    /// The name of that.
    pub object: String,
    /// The attribute.
    pub resource: String,
    /// How much, such as `400M`.
    pub amount: String,
}

/// A join token. The token itself is kept nowhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenView {
    /// The beginning of its hash, which names it.
    pub id: String,
    /// How many hosts may still join with it.
    pub uses_left: u32,
    /// When it ends.
    pub expires: Wall,
    /// The names with which hosts may join.
    pub host_pattern: String,
}

/// One host, or `global`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostView {
    /// The host.
    pub host: HostName,
    /// Load values as reported; empty while unknown.
    pub load: BTreeMap<AttributeName, String>,
    /// Milliseconds since the last report; none if there was none.
    pub report_age_ms: Option<u64>,
    /// For how many milliseconds its agent has run; none before its first report, and of an older
    /// agent.
    #[serde(default)]
    pub agent_up_ms: Option<u64>,
    /// Whether its agent is connected.
    pub connected: bool,
    /// The end of the last certificate. `None` for a host that has not joined, or was revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certified_until: Option<Wall>,
    /// Attributes of `-F`.
    pub resources: Vec<ResourceView>,
}

/// A host group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostGroupTree {
    /// Its name.
    pub name: String,
    /// Hosts that it names itself.
    pub hosts: Vec<HostName>,
    /// Groups that it names.
    pub groups: Vec<HostGroupTree>,
}

/// The attempt of an interactive job that a command talks to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionPlace {
    /// The attempt.
    pub key: TaskKey,
    /// The host that it is on.
    pub host: HostName,
}

/// The end of one task, for `-sync y`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedTask {
    /// The task.
    pub task: TaskId,
    /// Exit status.
    pub exit_status: u32,
    /// Signal that ended it, if one did.
    pub signal: Option<u8>,
    /// Where it failed.
    pub failed: FailedCode,
    /// Whether it was deleted before it ran.
    pub deleted: bool,
}

/// The state of the cell at a glance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CellStatus {
    /// Software version of the master.
    pub software: String,
    /// The master's host.
    pub host: String,
    /// UDP port.
    pub port: u16,
    /// Milliseconds since the master started.
    pub uptime_ms: u64,
    /// Last event.
    pub event_seq: u64,
    /// Hosts defined.
    pub hosts: u32,
    /// Hosts connected.
    pub hosts_connected: u32,
    /// Hosts that have sent a load report on their present connection.
    pub hosts_reporting: u32,
    /// Pending tasks.
    pub pending: u64,
    /// Tasks on hosts.
    pub running: u64,
    /// Starts that hosts have confirmed, since the master started.
    pub started: u64,
    /// Scheduling passes since the start.
    pub passes: u64,
    /// Accepted load reports since the start.
    pub load_reports: u64,
    /// The version of the cell.
    pub cell_version: CellVersion,
    /// The newest version that the master knows. An older master does not say: the first.
    pub newest_cell_version: CellVersion,
}

/// A certificate with its key, for a simulated host on the master's own machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssuedCertificate {
    /// The host.
    pub host: HostName,
    /// PEM of the certificate.
    pub certificate: String,
    /// PEM of the key.
    pub key: String,
}
