//! An interactive job from its submission to its end: what `qrsh` and `qlogin` do.

use super::options::SessionCommand;
use super::specification::{SessionRequest, read_line, request, specification, verified, with_own_exit};
use super::talk::{self, TalkEnd, TalkRequest};
use crate::cell_address::CellAddress;
use crate::client::Client;
use crate::commands::Outcome;
use crate::commands::qsub::build;
use crate::fail::Fail;
use crate::interrupt::Interrupt;
use crate::job::sources;
use crate::output::time::Clock;
use crate::{exit, output};
use proto::diagnostic::{Code, Diagnostic};
use proto::id::JobNumber;
use proto::job::SessionSpec;
use proto::wire::client::{Answer, Command, JobSelection, JobTarget, Query, Reply};
use proto::wire::view::{Data, EndedTask, SessionPlace};
use std::io::Write;
use std::time::Duration;

/// How long the deletion of the job may take when this command ends before it.
const LAST_WORD: Duration = Duration::from_secs(2);

/// The exit code of a command whose reader has gone, as the shell shows one that SIGPIPE ended.
const READER_GONE: u8 = 128 + 13;

/// Runs an interactive job.
pub fn run(command: SessionCommand, words: Vec<String>) -> Outcome {
    let command_line = read_line(command, words)?;
    if command_line.has("-help") {
        output::data(&command.def().help());
        return Ok(exit::OK);
    }
    let address = CellAddress::from_environment();
    let SessionRequest {
        request,
        sources,
        script,
    } = request(&address, &command_line).map_err(with_own_exit)?;
    let spec = specification(command, &command_line, &request, script)?;
    if request.verify {
        output::data(&build::verification(&spec, &Clock::local()));
        return Ok(exit::OK);
    }
    let spec = verified(command, &address, &request, spec)?;
    let session = spec.session.as_deref().cloned().unwrap_or_default();
    let is_verbose = command.is_always_verbose() || command_line.has("-verbose");
    let mut client = Client::connect(&address, command.name())?;
    // From before the job exists: a Ctrl-C while it is being submitted must not leave it behind.
    let interrupt = Interrupt::hold()?;
    let submission = Command::Submit(Box::new(spec));
    let reply = client
        .change_unless(submission, &interrupt)?
        .ok_or_else(interrupted_early)?;
    let Some(job) = submitted(&sources::with_lines(reply, &sources), is_verbose)? else {
        return Ok(exit::OK);
    };
    InteractiveJob {
        client,
        command,
        job,
        is_verbose,
        session,
    }
    .run(&address, interrupt)
}

/// A signal ended the command before the master had answered.
pub(super) fn interrupted_early() -> Diagnostic {
    Diagnostic::new(
        Code::OutcomeUnknown,
        "error: interrupted: it is not known whether the job was submitted",
    )
    .fix("qstat shows whether it is there, qdel deletes it")
}

/// The number of the submitted job; `None` where only something was verified (`-w v`).
pub(super) fn submitted(reply: &Reply, is_verbose: bool) -> Result<Option<JobNumber>, Fail> {
    let mut refusals = Vec::new();
    for answer in &reply.answers {
        match answer {
            Answer::Refused(refusal) => refusals.push(refusal),
            Answer::Warning(warning) => output::diagnostic(warning),
            Answer::Done(text) => output::data(&format!("{text}\n")),
        }
    }
    if let Some((last, earlier)) = refusals.split_last() {
        let lines = earlier.iter().chain([last]).map(|refusal| refusal.what.as_str());
        let refusal = Diagnostic {
            what: lines.collect::<Vec<_>>().join("\n"),
            ..(*last).clone()
        };
        return Err(refusal.into());
    }
    let Some(Data::Submitted { number, name, .. }) = &reply.data else {
        return Ok(None);
    };
    if is_verbose {
        output::data(&crate::commands::qsub::confirmation(*number, name, None, false));
    }
    Ok(Some(*number))
}

/// A job that has been submitted.
pub(super) struct InteractiveJob {
    pub(super) client: Client,
    pub(super) command: SessionCommand,
    pub(super) job: JobNumber,
    pub(super) is_verbose: bool,
    /// What it is; nothing for `qsh`, which talks to nobody.
    pub(super) session: SessionSpec,
}

/// What became of it for the moment.
pub(super) enum Placing {
    Placed(SessionPlace),
    Ended(Vec<EndedTask>),
    Interrupted,
}

impl InteractiveJob {
    /// Waits for its place, talks to it, and returns its exit code.
    fn run(mut self, address: &CellAddress, interrupt: Interrupt) -> Outcome {
        self.say_waiting();
        let place = match self.place(&interrupt)? {
            Placing::Placed(place) => place,
            Placing::Ended(tasks) => return Ok(self.ended(&tasks)),
            Placing::Interrupted => return self.interrupted(),
        };
        if self.is_verbose {
            output::note(&format!(
                "\nYour interactive job {} has been successfully scheduled.\nEstablishing builtin session to host {} ...",
                self.job, place.host
            ));
        }
        let request = TalkRequest {
            key: place.key,
            inside: None,
            has_input: self.session.has_input,
            has_terminal: self.session.terminal.is_some(),
        };
        match talk::until_over(address, request, Some(interrupt)) {
            Ok(TalkEnd::Over { status, reason }) => Ok(over(status, &reason)),
            Ok(TalkEnd::ReaderGone) => {
                self.delete()?;
                Ok(READER_GONE)
            }
            // As in 8.1.9, whose command ends with 0.
            Ok(TalkEnd::Interrupted) => {
                self.delete()?;
                Ok(exit::OK)
            }
            Ok(TalkEnd::Left) => {
                output::note(&format!("Connection to job {} closed.", self.job));
                self.delete()?;
                Ok(exit::FAILED)
            }
            Err(refusal) if refusal.code == Code::UnknownJob => self.late_end(refusal),
            Err(refusal) => Err(refusal.into()),
        }
    }

    /// Says that the job waits, at the beginning of a line that goes on.
    pub(super) fn say_waiting(&self) {
        if self.is_verbose {
            eprint!("waiting for interactive job to be scheduled ...");
            // Nobody may read it.
            let _ = std::io::stderr().flush();
        }
    }

    /// Waits until the job has a place, or has been given up.
    pub(super) fn place(&mut self, interrupt: &Interrupt) -> Result<Placing, Fail> {
        let query = Query::WaitPlaced { job: self.job };
        let Some(reply) = self.client.wait(query, interrupt)? else {
            return Ok(Placing::Interrupted);
        };
        match reply.data {
            Some(Data::Session(place)) => Ok(Placing::Placed(place)),
            Some(Data::Ended(tasks)) => Ok(Placing::Ended(tasks)),
            _ => {
                let refusal = reply.answers.iter().find_map(|answer| answer.refusal()).cloned();
                let unknown = || {
                    Diagnostic::new(
                        Code::UnknownJob,
                        format!("error: job {} is not known any more", self.job),
                    )
                };
                Err(refusal.unwrap_or_else(unknown).into())
            }
        }
    }

    /// The master does not know the attempt any more: it has ended, and its record says how.
    fn late_end(mut self, refusal: Diagnostic) -> Outcome {
        let interrupt = Interrupt::hold()?;
        match self.place(&interrupt)? {
            Placing::Ended(tasks) if !tasks.is_empty() => Ok(self.ended(&tasks)),
            Placing::Ended(_) | Placing::Placed(_) | Placing::Interrupted => Err(refusal.into()),
        }
    }

    /// A signal before the job had a place.
    pub(super) fn interrupted(self) -> Outcome {
        self.delete()?;
        output::note("error: error while waiting for builtin IJS connection: \"got select timeout\"");
        Ok(exit::FAILED)
    }

    /// The exit code of a job that this command did not see running.
    pub(super) fn ended(&self, tasks: &[EndedTask]) -> u8 {
        if let [task] = tasks
            && !task.deleted
        {
            return u8::try_from(task.exit_status).unwrap_or(u8::MAX);
        }
        let name = self.command.name();
        output::note(&format!(
            "Your \"{name}\" request could not be scheduled, try again later."
        ));
        exit::FAILED
    }

    fn delete(&self) -> Result<(), Fail> {
        let target = JobTarget {
            job: self.job.to_string(),
            tasks: Vec::new(),
        };
        let jobs = JobSelection {
            targets: vec![target],
            ..JobSelection::default()
        };
        let deleted = self
            .client
            .hurried(LAST_WORD)
            .and_then(|mut last| last.change(Command::Delete { jobs, force: false }));
        deleted.map(drop).map_err(|error| {
            let what = format!("error: it is not known whether job {} was deleted", self.job);
            let refusal = Diagnostic::new(Code::OutcomeUnknown, what).why(error.what);
            refusal
                .fix(format!("once the master answers: qdel {}", self.job))
                .into()
        })
    }
}

/// The exit code of the command. A fault on its host is told, and never ends with 0.
fn over(status: u32, reason: &str) -> u8 {
    let code = u8::try_from(status).unwrap_or(u8::MAX);
    if reason.is_empty() || code != exit::OK {
        return code;
    }
    output::note(reason);
    exit::FAILED
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_code_is_the_commands_and_a_fault_of_the_host_never_0() {
        assert_eq!((over(0, ""), over(255, ""), over(137, "killed")), (0, 255, 137));
        assert_eq!(over(0, "cannot enter the directory"), 1);
    }
}
