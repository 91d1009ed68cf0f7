//! `-sync` and `-now y`: waiting for what becomes of the job.

use crate::client::Client;
use crate::commands::Outcome;
use crate::interrupt::Interrupt;
use crate::job::request::AwaitedState;
use crate::{exit, output};
use proto::diagnostic::{Code, Diagnostic};
use proto::id::JobNumber;
use proto::wire::client::{Answer, Command, JobSelection, JobTarget, Query};
use proto::wire::view::{Data, EndedTask};
use std::time::Duration;

/// How long an interrupted command waits for the answer to the deletion of its job.
const LAST_WORD: Duration = Duration::from_secs(2);

/// What to wait for.
#[derive(Clone, Copy)]
pub struct WaitRequest {
    /// The job.
    pub job: JobNumber,
    /// Whether it is an array: then tasks are told one by one.
    pub is_array: bool,
    /// `-now y`.
    pub immediate: bool,
    /// `-sync`.
    pub sync: AwaitedState,
}

impl WaitRequest {
    /// Waits, and tells what became of the job; the exit code is the job's: of an array the first
    /// that is not 0. An interrupt deletes the job.
    pub fn run(self, client: &mut Client, interrupt: Interrupt) -> Outcome {
        let job = self.job;
        let until_end = self.sync == AwaitedState::Ended;
        if self.immediate && !until_end {
            output::note("Waiting for immediate job to be scheduled.");
        }
        let query = if until_end {
            Query::Wait { job }
        } else {
            Query::WaitPlaced { job }
        };
        let Some(reply) = client.wait(query, &interrupt)? else {
            return self.interrupted(client, interrupt);
        };
        match reply.data {
            Some(Data::Ended(tasks)) if until_end => Ok(self.ended(&tasks)),
            Some(Data::Ended(tasks)) if self.immediate => Ok(self.placed(&tasks)),
            Some(Data::Ended(tasks)) => Ok(self.started(&tasks)),
            _ => {
                let what = format!("error: job {job} is not known any more");
                let refusal = Diagnostic::new(Code::UnknownJob, what)
                    .why("it left while the master was away, and no accounting record tells of it")
                    .fix("keep more of them with finished_jobs in qconf -mconf");
                Err(refusal.into())
            }
        }
    }

    fn ended(self, tasks: &[EndedTask]) -> u8 {
        if self.immediate && tasks.iter().all(|task| task.deleted) {
            return not_scheduled();
        }
        if tasks.is_empty() {
            output::note(&format!("No information available on job {}'s exit status.", self.job));
            return exit::FAILED;
        }
        for task in tasks {
            tell(self.job, self.is_array, task);
        }
        tasks
            .iter()
            .map(exit_code)
            .find(|code| *code != exit::OK)
            .unwrap_or(exit::OK)
    }

    /// A task of the job is on its host or has ended, or all tasks were deleted before that.
    fn started(self, tasks: &[EndedTask]) -> u8 {
        if tasks.is_empty() || tasks.iter().any(|task| !task.deleted) {
            return exit::OK;
        }
        output::note(&format!("Unable to run job {}", self.job));
        exit::FAILED
    }

    /// An immediate job runs, or all of it was given up.
    fn placed(self, tasks: &[EndedTask]) -> u8 {
        if !tasks.is_empty() && tasks.iter().all(|task| task.deleted) {
            return not_scheduled();
        }
        output::note(&format!(
            "\nYour immediate job {} has been successfully scheduled.",
            self.job
        ));
        exit::OK
    }

    /// Deletes the job, as 8.1.9 does. A second interrupt ends the command at once.
    fn interrupted(self, client: &mut Client, interrupt: Interrupt) -> Outcome {
        drop(interrupt);
        output::note("\nInterrupted!\nPlease wait while qsub shuts down.");
        let target = JobTarget {
            job: self.job.to_string(),
            tasks: Vec::new(),
        };
        let jobs = JobSelection {
            targets: vec![target],
            ..JobSelection::default()
        };
        let deleted = client
            .hurried(LAST_WORD)
            .and_then(|mut last| last.change(Command::Delete { jobs, force: false }));
        let reply = deleted.map_err(|error| {
            let what = format!("error: it is not known whether job {} was deleted", self.job);
            let refusal = Diagnostic::new(Code::OutcomeUnknown, what).why(error.what);
            refusal.fix(format!("once the master answers: qdel {}", self.job))
        })?;
        for answer in &reply.answers {
            match answer {
                Answer::Done(text) => output::note(text),
                Answer::Warning(diagnostic) | Answer::Refused(diagnostic) => output::diagnostic(diagnostic),
            }
        }
        Ok(exit::FAILED)
    }
}

fn not_scheduled() -> u8 {
    output::note("\nYour qsub request could not be scheduled; try again later.");
    exit::FAILED
}

/// The task's own code; 1 if it was deleted or a signal ended it, as in 8.1.9.
fn exit_code(task: &EndedTask) -> u8 {
    if task.deleted || task.signal.is_some() {
        return exit::FAILED;
    }
    u8::try_from(task.exit_status).unwrap_or(u8::MAX)
}

fn tell(job: JobNumber, is_array: bool, task: &EndedTask) {
    let name = if is_array {
        format!("{job}.{}", task.task)
    } else {
        job.to_string()
    };
    if task.deleted {
        output::note(&format!("Unable to run job {name}"));
    } else if let Some(signal) = task.signal {
        output::note(&format!(
            "Job {name} exited because of signal SIG{}",
            signal_name(signal)
        ));
    } else if task.exit_status == 0 {
        output::data(&format!("Job {name} exited with exit code 0.\n"));
    } else {
        output::note(&format!("Job {name} exited with exit code {}.", task.exit_status));
    }
}

/// The signal's name without `SIG`.
fn signal_name(number: u8) -> String {
    let known = nix::sys::signal::Signal::try_from(i32::from(number)).ok();
    known.map_or_else(
        || number.to_string(),
        |signal| signal.as_str().trim_start_matches("SIG").to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::id::TaskId;
    use proto::usage::FailedCode;

    #[test]
    fn a_signal_and_a_deletion_are_a_failure() {
        let ended = |exit_status, signal, deleted| {
            let (task, failed) = (TaskId(1), FailedCode::default());
            exit_code(&EndedTask {
                task,
                exit_status,
                signal,
                failed,
                deleted,
            })
        };
        assert_eq!(
            (ended(0, None, false), ended(3, None, false), ended(300, None, false)),
            (0, 3, 255)
        );
        assert_eq!(
            (
                ended(137, Some(9), false),
                ended(143, Some(15), false),
                ended(0, None, true)
            ),
            (1, 1, 1)
        );
    }
}
