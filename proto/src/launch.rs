//! What the agent tells the launcher and hears back: launch documents, results and the messages on
//! the Unix socket.
//!
//! One format for all of them, written for a reader that runs as root: length-prefixed key/value
//! pairs behind a magic and a version, parsed by hand, bounded, without serde. [`pairs`] is that
//! format; the other modules are the typed values in it. Scripts and descriptors travel beside a
//! message (`SCM_RIGHTS`), never in it.
//!
//! A reader ignores keys that it does not know. A setting that an older launcher must not ignore
//! raises [`pairs::VERSION`], and the older launcher refuses the document.

pub mod document;
pub mod message;
pub mod pairs;
pub mod result;
pub mod terminal;

pub use document::{
    Account, BoundValue, Checkpointing, LaunchDocument, Method, OutputPath, Procedure, ProcessLimit, Resource,
    Security, SessionShell, Start, StartMode, Streams, TaskLimits, Termination, TmpDir,
};
pub use message::{FRAME_PREFIX_BYTES, Notice, Request, SensorSpec, TaskOrder, TaskState, TaskSummary, frame, unframe};
pub use pairs::{DecodeError, MAX_DOCUMENT_BYTES, VERSION};
pub use result::{
    EndCause, ExecRecord, FailedCodes, Failure, HostEvidence, HostLimitHit, HostRefusedLimit, LaunchResult,
    ProcedureEnd, ProcedureKind, TaskUsage,
};

pub use crate::container::{Container, ContainerRuntime};
pub use crate::usage::Blame;

/// The largest script of a job, in bytes: `qsub` takes no larger one, and no launcher does.
pub const MAX_SCRIPT_BYTES: u64 = 32 << 20;

/// The variables of every task that say what it is, where it runs and which slots it has. Nothing
/// acts upon their values by itself.
pub const TASK_VARIABLES: [&str; 20] = [
    "ARC",
    "ENVIRONMENT",
    "HOSTNAME",
    "JOB_ID",
    "JOB_NAME",
    "JOB_SCRIPT",
    "NHOSTS",
    "NQUEUES",
    "NSLOTS",
    "QUEUE",
    "REQNAME",
    "REQUEST",
    "RESTARTED",
    "SGE_ACCOUNT",
    "SGE_ARCH",
    "SGE_CELL",
    "SGE_TASK_FIRST",
    "SGE_TASK_ID",
    "SGE_TASK_LAST",
    "SGE_TASK_STEPSIZE",
];

/// The end of a refusal to run a command of root whose program the host does not list. The master
/// finds by it which queue instances are mended by a new list.
pub const NOT_LISTED: &str = "not listed in etc/root-commands of this host";

/// A part of a refusal to run a command of root with these arguments. The master finds by it which
/// queue instances may be mended by a new list.
pub const LISTED_OTHERWISE: &str = "etc/root-commands of this host lists it with other arguments";

#[cfg(test)]
mod tests;
