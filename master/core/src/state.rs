//! The state of a cell: the fold of its events (DESIGN section 3).
//!
//! The core, the query side and the scheduler's model each fold the same events into a `State` of their own with
//! [`State::apply`]; descriptions that are large are shared, not copied. Load values, contact and usage are not here: they are
//! [`Observations`](crate::observe::Observations).

pub mod apply;
pub mod config;
pub mod job;
pub mod ranges;

use crate::event::{InstanceState, JoinGrant};
use crate::ledger::Ledger;
use config::Configuration;
use job::{FinishedJob, Job};
use proto::id::{CellId, Epoch, EventSeq, HostName, JobNumber, QueueInstanceName, RequestId, SubmitSeq};
use proto::time::{Now, Wall};
use proto::wire::client::Reply;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Everything that is true of a cell.
///
/// Invariants, checked by [`State::check`]: `by_number` names exactly the jobs in `jobs`; the ledger equals the sum over the
/// placed tasks; a job in `jobs` has at least one task that is pending or on a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// The cell; 0 before the first event.
    pub cell: CellId,
    /// The master's epoch.
    pub epoch: Epoch,
    /// The last event that was applied.
    pub last: EventSeq,
    /// When that was.
    pub now: Now,
    /// The configuration objects, with the queue instances they resolve to.
    pub config: Configuration,
    /// Queue instances that are not in the default state.
    pub instances: BTreeMap<QueueInstanceName, InstanceState>,
    /// Jobs that are not finished.
    pub jobs: BTreeMap<SubmitSeq, Job>,
    /// Their numbers.
    pub by_number: BTreeMap<JobNumber, SubmitSeq>,
    /// The last submission.
    pub last_submit: SubmitSeq,
    /// The last job number given out.
    pub last_number: JobNumber,
    /// The last finished jobs, oldest first, at most `finished_jobs`.
    pub finished: VecDeque<FinishedJob>,
    /// What running tasks take from the consumables.
    pub ledger: Ledger,
    /// Certificates that are admitted, by host: serial and end of validity.
    pub certificates: BTreeMap<HostName, BTreeMap<String, Wall>>,
    /// Join tokens by hash.
    pub tokens: BTreeMap<String, JoinGrant>,
    /// Answers to changing requests, newest last, at most [`ANSWERS_KEPT`].
    pub answers: VecDeque<(RequestId, Arc<Reply>)>,
}

/// How many answers are kept for repeats: a client repeats for 60 s, and this is more than a busy minute of changes.
pub const ANSWERS_KEPT: usize = 100_000;
