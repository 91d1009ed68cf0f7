//! What decisions rest on beside the state and the observations: who is connected, what was begun
//! and not ended, and answers that are kept. None of it is in the log; a master that starts makes
//! it anew.

use super::Verdicts;
use super::external::ExternalScheduler;
use crate::decide::hosts::agents::Agents;
use crate::decide::hosts::fitness::Fitness;
use crate::decide::jobs::bulk_commands::BulkCommands;
use crate::decide::submit::verification::WaitingSubmissions;
use crate::decide::tasks::limits::StartTemplate;
use crate::decide::tasks::usage::Checkpoints;
use proto::time::Wall;

/// What the core remembers from one input to the next and does not log.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// Who is connected.
    pub(crate) agents: Agents,
    /// Who places jobs beside the built-in scheduler.
    pub(crate) external: ExternalScheduler,
    /// When a calendar that a queue uses says something else for the first time.
    pub(crate) next_calendar: Option<Wall>,
    /// Running tasks that are to be charged for what they have used.
    pub(crate) checkpoints: Checkpoints,
    /// Commands that have jobs left to look at.
    pub(crate) bulk_commands: BulkCommands,
    /// Submissions whose jobs the verifier of the cell looks at.
    pub(crate) submissions: WaitingSubmissions,
    /// How well hosts start tasks.
    pub(crate) fitness: Fitness,
    /// What was told of the last start.
    pub(crate) last_start: StartTemplate,
    /// Which requests can never be had.
    pub(crate) verdicts: Verdicts,
    /// Whether an input was handled.
    pub(crate) has_begun: bool,
}
