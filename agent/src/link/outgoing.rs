//! What is to leave for the master, and when. That a task has started leaves a moment late: of a
//! task that is over by then the end is told alone, which says all that the start does, and spares
//! both sides a message, and a packet each way, for every short task.

use proto::wire::agent::{AgentMessage, TaskReport, TaskReportState};
use std::time::Duration;
use tokio::time::Instant;

/// How long the news of a start may wait for the end of its task. A task counts as on its way for
/// so much longer; nothing waits for it to be told that it runs.
pub(super) const MOMENT: Duration = Duration::from_millis(5);

/// Starts that have not been told.
///
/// Invariant: in the order of `due`, no task twice.
#[derive(Debug, Default)]
pub(super) struct Starts {
    waiting: Vec<Start>,
}

#[derive(Debug)]
struct Start {
    due: Instant,
    /// When the report was made: a duration in it counts up to then.
    made: Instant,
    report: TaskReport,
}

impl Starts {
    /// Takes a message in, and gives it back if it is to leave at once. What it says of a task
    /// stands for what waited of that task.
    pub(super) fn sift(&mut self, message: AgentMessage, now: Instant) -> Option<AgentMessage> {
        let AgentMessage::Task(report) = message else {
            return Some(message);
        };
        let place = self.waiting.iter().position(|start| start.report.key == report.key);
        match (report.state.is_start(), place) {
            (true, Some(place)) => {
                let start = &mut self.waiting[place];
                (start.made, start.report) = (now, report);
                None
            }
            (true, None) => {
                self.waiting.push(Start {
                    due: now + MOMENT,
                    made: now,
                    report,
                });
                None
            }
            (false, place) => {
                place.map(|place| self.waiting.remove(place));
                Some(AgentMessage::Task(report))
            }
        }
    }

    /// When the next one leaves.
    pub(super) fn due(&self) -> Option<Instant> {
        self.waiting.first().map(|start| start.due)
    }

    /// What leaves now.
    pub(super) fn leave(&mut self, now: Instant) -> impl Iterator<Item = AgentMessage> {
        let count = self.waiting.partition_point(|start| start.due <= now);
        self.waiting
            .drain(..count)
            .map(move |start| AgentMessage::Task(start.told_at(now)))
    }
}

impl Start {
    fn told_at(self, now: Instant) -> TaskReport {
        let TaskReport { key, state } = self.report;
        let state = match state {
            TaskReportState::Running { for_ms } => {
                let waited_ms = u64::try_from((now - self.made).as_millis()).unwrap_or(u64::MAX);
                TaskReportState::Running {
                    for_ms: for_ms.saturating_add(waited_ms),
                }
            }
            TaskReportState::Accepted | TaskReportState::Ended(_) | TaskReportState::Unknown => state,
        };
        TaskReport { key, state }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::id::{CellId, SubmitSeq, TaskId, TaskKey};
    use proto::usage::{FailedCode, TaskResult};

    const HALF: Duration = Duration::from_millis(2);

    fn report(task: u32, state: TaskReportState) -> AgentMessage {
        let key = TaskKey {
            cell: CellId(1),
            seq: SubmitSeq(1),
            task: TaskId(task),
            pe_task: 0,
            attempt: 1,
        };
        AgentMessage::Task(TaskReport { key, state })
    }

    fn accepted(task: u32) -> AgentMessage {
        report(task, TaskReportState::Accepted)
    }

    fn running(task: u32, for_ms: u64) -> AgentMessage {
        report(task, TaskReportState::Running { for_ms })
    }

    fn ended(task: u32) -> AgentMessage {
        report(
            task,
            TaskReportState::Ended(Box::new(TaskResult::not_started(FailedCode::NO, ""))),
        )
    }

    fn leave(starts: &mut Starts, now: Instant) -> Vec<AgentMessage> {
        starts.leave(now).collect()
    }

    #[test]
    fn a_start_is_told_after_a_moment_with_the_time_that_has_passed() {
        let (mut starts, begin) = (Starts::default(), Instant::now());
        assert_eq!(starts.sift(accepted(1), begin), None);
        assert_eq!(starts.sift(running(1, 3), begin + HALF), None);
        assert_eq!(
            starts.due(),
            Some(begin + MOMENT),
            "not later because there is more to say"
        );
        assert_eq!(leave(&mut starts, begin + HALF), []);
        assert_eq!(leave(&mut starts, begin + MOMENT), [running(1, 6)]);
        assert_eq!(starts.due(), None);
        assert_eq!(starts.sift(accepted(2), begin), None);
        assert_eq!(
            leave(&mut starts, begin + MOMENT),
            [accepted(2)],
            "what takes long to prepare is known to be in hand"
        );
    }

    #[test]
    fn an_end_leaves_at_once_and_alone() {
        let (mut starts, begin) = (Starts::default(), Instant::now());
        assert_eq!(starts.sift(running(1, 0), begin), None);
        assert_eq!(starts.sift(running(2, 0), begin + HALF), None);
        assert_eq!(starts.sift(ended(1), begin + HALF), Some(ended(1)));
        assert_eq!(
            starts.sift(report(3, TaskReportState::Unknown), begin),
            Some(report(3, TaskReportState::Unknown))
        );
        assert_eq!(starts.due(), Some(begin + HALF + MOMENT));
        assert_eq!(leave(&mut starts, begin + HALF + MOMENT), [running(2, 5)]);
    }

    #[test]
    fn what_is_no_news_of_a_task_does_not_wait() {
        let usage = AgentMessage::Usage(Vec::new());
        assert_eq!(Starts::default().sift(usage.clone(), Instant::now()), Some(usage));
    }
}
