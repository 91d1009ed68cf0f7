//! What a scheduler asks the core to do.

use proto::id::{PeName, SubmitSeq, TaskId, TaskKey};
use proto::job::Granted;
use serde::{Deserialize, Serialize};

/// One order. The core checks it against the state before it becomes an event (DESIGN section 6).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Start a task.
    Start {
        /// The job.
        seq: SubmitSeq,
        /// The task.
        task: TaskId,
        /// Where; the first entry holds the master.
        granted: Vec<Granted>,
        /// The parallel environment, if any.
        pe: Option<PeName>,
    },
    /// Give up a `-now y` job that could not start.
    RejectImmediate {
        /// The job.
        seq: SubmitSeq,
    },
    /// Suspend or resume a running task by threshold.
    SuspendByThreshold {
        /// The attempt.
        key: TaskKey,
        /// Whether it is to be suspended.
        suspended: bool,
    },
}
