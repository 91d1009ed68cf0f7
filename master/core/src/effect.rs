//! What goes into the core and what comes out beside events.

use crate::event::Record;
use proto::diagnostic::Diagnostic;
use proto::host::names::Naming;
use proto::id::{HostName, JobNumber, RequestId, TaskKey};
use proto::job::{JobSpec, Owner};
use proto::jsv::JsvUrl;
use proto::load::LoadReport;
use proto::time::Zone;
use proto::wire::agent::{AgentHello, AgentMessage, MasterMessage};
use proto::wire::client::{Command, Reply};
use proto::wire::stream::Order;
use std::sync::Arc;

/// Where an answer goes; made by the shell, opaque here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReplyTo(pub u64);

/// One connection of one agent; a host that reconnects gets a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

/// Everything that can happen to the master.
#[derive(Clone, Debug)]
pub enum Input {
    /// A changing command of a user.
    Command {
        /// Where the answer goes.
        reply_to: ReplyTo,
        /// The client's id of the request.
        id: RequestId,
        /// The user, as the kernel or the vouching agent says.
        owner: Owner,
        /// The host the user is on.
        host: HostName,
        /// What commands that need randomness get of the shell; the core has none of its own. For
        /// `CreateToken` it is the hash of a token that the shell has ready: the core stores it in
        /// lower-case hex as the grant's hash and answers
        /// [`Data::Token`](proto::wire::view::Data::Token) with the same hex, which the shell
        /// replaces by the token itself.
        entropy: [u8; 32],
        /// The command.
        command: Box<Command>,
    },
    /// An agent connected, its certificate is good, and it said hello.
    AgentConnected {
        /// The connection.
        connection: ConnectionId,
        /// The host of the certificate.
        host: HostName,
        /// What it said.
        hello: Box<AgentHello>,
    },
    /// A connection ended.
    AgentLost {
        /// The connection.
        connection: ConnectionId,
    },
    /// A message on a control stream.
    AgentMessage {
        /// The connection.
        connection: ConnectionId,
        /// The message.
        message: Box<AgentMessage>,
    },
    /// A load report.
    LoadReport {
        /// The connection.
        connection: ConnectionId,
        /// The report.
        report: Box<LoadReport>,
    },
    /// Orders of a scheduler.
    Orders {
        /// The scheduler's algorithm.
        scheduler: String,
        /// What it wants.
        orders: Vec<Order>,
    },
    /// What a scheduler says that the tasks on hosts are worth: all of them, in millionths of
    /// tickets. Soft.
    Tickets(Vec<(TaskKey, i64)>),
    /// The verifier of the cell has looked at a job ([`Effect::Verify`]).
    Verified {
        /// Which job.
        id: VerificationId,
        /// The job as the verifier wants it, or why it is refused.
        outcome: Result<Box<JobSpec>, Diagnostic>,
    },
    /// A host asks to join with a token. The shell issues the certificate when told to.
    Join {
        /// Where the answer goes.
        reply_to: ReplyTo,
        /// Hash of the token.
        token_hash: String,
        /// The name the host claims.
        host: HostName,
        /// Serial of the certificate that the shell is ready to hand out, in lower-case hex.
        serial: String,
        /// End of its validity.
        not_after: proto::time::Wall,
    },
    /// An admitted host renewed its certificate.
    CertificateRenewed {
        /// The host.
        host: HostName,
        /// The new serial.
        serial: String,
        /// End of its validity.
        not_after: proto::time::Wall,
    },
    /// Time passed: at the latest when [`Core::next_timer`](crate::core::Core::next_timer) says.
    Tick,
}

/// A job that waits for the verifier of the cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct VerificationId {
    /// The number of the request, counted since the master started.
    pub submission: u64,
    /// The place of the job in the request, from 0.
    pub copy: u32,
}

/// What the verifier of the cell is to be asked.
#[derive(Clone, Debug, PartialEq)]
pub struct VerificationOrder {
    /// Which job waits for the answer.
    pub id: VerificationId,
    /// The verifier.
    pub verifier: JsvUrl,
    /// How long one attempt may take, in seconds.
    pub patience_s: u32,
    /// From how many milliseconds on the log tells how long it took.
    pub threshold_ms: u32,
    /// The number that the job gets if it is accepted.
    pub number: JobNumber,
    /// The job.
    pub spec: Arc<JobSpec>,
}

/// Who places jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placer {
    /// The scheduler of the master.
    BuiltIn,
    /// A program outside, which sends orders.
    External,
}

/// What an operator must act on, by kind: many of one must not hide another.
#[derive(Clone, Debug, PartialEq)]
pub enum Alarm {
    /// A host was closed, because starts failed there again and again.
    HostClosed(Diagnostic),
    /// An agent with another task directory than its host had was refused.
    OtherTasks(Diagnostic),
}

/// What the shell is to do, once the events that came with it are durable.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Answer a command.
    Reply {
        /// Whom.
        to: ReplyTo,
        /// With what.
        reply: Box<Reply>,
    },
    /// Send a message on the control stream of a connection.
    Send {
        /// The connection.
        connection: ConnectionId,
        /// The message.
        message: Box<MasterMessage>,
    },
    /// End a connection.
    Disconnect {
        /// The connection.
        connection: ConnectionId,
        /// Why.
        why: Diagnostic,
    },
    /// Answer a join: hand out the certificate, or the refusal.
    Joined {
        /// Whom.
        to: ReplyTo,
        /// The outcome.
        outcome: Result<(), Diagnostic>,
    },
    /// Ask the verifier of the cell about a job. The answer is [`Input::Verified`], in bounded
    /// time.
    Verify(Box<VerificationOrder>),
    /// Issue a certificate to each simulated host and answer with them.
    IssueSimulated {
        /// Whom.
        to: ReplyTo,
        /// The hosts.
        hosts: Vec<HostName>,
    },
    /// Close connections of hosts that were revoked.
    Revoked(HostName),
    /// A soft value changed that clients of the stream want to know at once.
    Observed(crate::observe::Observation),
    /// The core did not believe an order: the scheduler takes it back in its model.
    OrderRefused {
        /// The scheduler's algorithm.
        scheduler: String,
        /// The order.
        order: Box<Order>,
        /// Why.
        why: Diagnostic,
    },
    /// From now on others place jobs, the built-in scheduler or a program.
    Placing {
        /// Who.
        by: Placer,
        /// Why that has changed, for the log.
        why: String,
    },
    /// Cut event clients off and answer with what became of it (`qconf -kec`).
    CutOff {
        /// Whom to answer.
        to: ReplyTo,
        /// Which; empty is all.
        ids: Vec<u32>,
        /// Whether the caller may end those of others.
        is_manager: bool,
        /// The caller, as `user@host`.
        by: String,
    },
    /// A scheduling pass is wanted now: a start time has come.
    TriggerScheduling,
    /// A scheduling pass is wanted now, and what it finds out is to be written down (`qconf -tsm`).
    MonitorScheduling,
    /// End the master.
    Shutdown,
    /// Something an operator must act on.
    Alarm(Alarm),
    /// Something an operator should read in the log.
    Warn(Diagnostic),
    /// Something for the log that asks nothing of anybody.
    Note(String),
}

/// What one input led to. The effects are performed once its events and all earlier ones are
/// durable, and not before.
///
/// All earlier ones: the answer to a repeated request, or a repeated *forget*, comes with no events
/// of its own and rests on those of an input before it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    /// What became true, already applied. Whoever keeps one or hands it on shares it.
    pub events: Vec<Arc<Record>>,
    /// What the shell is to do, in order.
    pub effects: Vec<Effect>,
}

/// What a cell's machine tells the core once and events do not: decisions rest on it, replay does
/// not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MasterHost {
    /// The host that the master runs on; none where there is just one machine to think of, as in a
    /// simulation.
    pub master_host: Option<HostName>,
    /// Other names of hosts, and what their domains mean.
    pub naming: Naming,
    /// What one host may report.
    pub load: LoadLimits,
    /// Limits for the jobs of one user.
    pub users: UserLimits,
    /// The time zone of the machine, by whose clock calendars go.
    pub zone: Zone,
}

/// What one host may report: beyond it single values are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadLimits {
    /// Load values, those for `global` and for other hosts included.
    pub values: usize,
    /// Bytes of one value, and of one name.
    pub bytes: usize,
}

impl Default for LoadLimits {
    fn default() -> Self {
        Self {
            values: 1_000,
            bytes: 1_024,
        }
    }
}

/// Limits for the unfinished jobs of one user. A submission beyond them is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserLimits {
    /// Jobs; an array is one.
    pub jobs: u64,
    /// Bytes, as [`Index::bytes_of`](crate::state::index::Index::bytes_of) counts them.
    pub job_bytes: u64,
}

impl Default for UserLimits {
    fn default() -> Self {
        Self {
            jobs: u64::MAX,
            job_bytes: u64::MAX,
        }
    }
}
