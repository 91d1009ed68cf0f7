//! `qsub`: submits a job.

mod build;
mod wait;

use crate::args::{Given, Parsed};
use crate::client::Client;
use crate::commands::Outcome;
use crate::fail::Fail;
use crate::interrupt::Interrupt;
use crate::job::options::QSUB;
use crate::job::request::{JobRequest, rejected};
use crate::job::{script, sources};
use crate::output::time::Clock;
use crate::site::Site;
use crate::{exit, output};
use proto::diagnostic::{Code, Diagnostic};
use proto::job::Program;
use proto::wire::client::{Answer, Command, Reply};
use proto::wire::view::Data;
use wait::Wait;

/// Runs `qsub` with the words behind its name.
pub fn run(words: Vec<String>) -> Outcome {
    let command_line = sources::expand_files(QSUB.parse(words)?)?;
    if command_line.has("-help") {
        output::data(&QSUB.help());
        return Ok(exit::OK);
    }
    refuse_bad_options(&command_line)?;
    let site = Site::from_environment();
    let command_line_binary = last_yes_no(&command_line.given, "-b");
    let program = program(&command_line, command_line_binary)?;
    let options = all_options(&site, &command_line, &program)?;
    let mut request = JobRequest::new("qsub");
    options.iter().try_for_each(|source| request.apply_source(source))?;
    request.map_directory(&site)?;
    let args = command_line.operands.get(1..).unwrap_or_default().to_vec();
    let spec = build::specification(&request, program, args);
    if request.verify {
        output::data(&build::verification(&spec, &Clock::local()));
        return Ok(exit::OK);
    }
    let mut client = Client::connect(&site, "qsub")?;
    // From before the job exists: a Ctrl-C while it is being submitted must not leave it behind.
    let interrupt = if request.immediate || request.sync { Some(Interrupt::hold()?) } else { None };
    let submission = Command::Submit(Box::new(spec));
    let reply = match &interrupt {
        None => client.change(submission)?,
        Some(interrupt) => client.change_unless(submission, interrupt)?.ok_or_else(interrupted)?,
    };
    match accepted(&reply)? {
        Some(Data::Submitted { number, name, array }) => {
            output::data(&confirmation(*number, name, *array, request.terse));
            let Some(interrupt) = interrupt else { return Ok(exit::OK) };
            let JobRequest { immediate, sync, .. } = request;
            Wait { job: *number, is_array: array.is_some(), immediate, sync }.run(&mut client, interrupt)
        }
        _ => Ok(exit::OK),
    }
}

/// A signal ended the command before the master had answered.
fn interrupted() -> Diagnostic {
    Diagnostic::new(Code::OutcomeUnknown, "error: interrupted: it is not known whether the job was submitted")
        .fix("qstat shows whether it is there, qdel deletes it")
}

/// Refuses what the command line gets wrong before a script is looked for, which a missing argument may have swallowed.
fn refuse_bad_options(command_line: &Parsed) -> Result<(), Fail> {
    JobRequest::new("qsub").apply_source(&command_line.given)
}

/// What is to run: the file or command named first, or standard input.
fn program(command_line: &Parsed, binary: bool) -> Result<Program, Fail> {
    match command_line.operands.first() {
        Some(command) if binary => Ok(Program::Command { command: command.clone() }),
        None if binary => {
            let refusal = Diagnostic::new(Code::BadSyntax, "qsub: command required for a binary job");
            Err(Fail::new(exit::USAGE, refusal.fix("name the command behind the options")))
        }
        None => Ok(Program::Script { path: "STDIN".to_owned(), content: script::read_stdin()?.into() }),
        Some(name) if name == "-" => {
            Ok(Program::Script { path: "STDIN".to_owned(), content: script::read_stdin()?.into() })
        }
        Some(path) => Ok(Program::Script { path: path.clone(), content: script::read_file(path)?.into() }),
    }
}

/// The options of each source, weakest first, behind the last `-clear`. Each line of a file and of the script is one, as in 8.1.9: what `-soft`
/// and `-scope` say ends with it.
fn all_options(site: &Site, command_line: &Parsed, program: &Program) -> Result<Vec<Vec<Given>>, Fail> {
    let mut options = sources::request_files(&site.dir().join("default/common"))?;
    if let Program::Script { content, .. } = program {
        let prefix = command_line.value("-C").unwrap_or(script::DIRECTIVE_PREFIX);
        for given in script::directives(content, prefix)? {
            options.push(sources::expand_files(Parsed { given, operands: Vec::new() })?.given);
        }
    }
    options.push(command_line.given.clone());
    Ok(sources::after_clear(options))
}

fn last_yes_no(given: &[Given], name: &str) -> bool {
    let last = given.iter().rev().find(|given| given.name == name).and_then(|given| given.values.first());
    last.is_some_and(|value| value.to_ascii_lowercase().starts_with('y'))
}

/// The data of a reply that accepts the job; a refusal in the frame of 8.1.9 otherwise.
fn accepted(reply: &Reply) -> Result<Option<&Data>, Fail> {
    let refusals: Vec<&Diagnostic> = reply
        .answers
        .iter()
        .filter_map(|answer| match answer {
            Answer::Refused(refusal) => Some(refusal),
            Answer::Warning(warning) => {
                output::diagnostic(warning);
                None
            }
            Answer::Done(text) => {
                output::data(&format!("{text}\n"));
                None
            }
        })
        .collect();
    let Some((last, earlier)) = refusals.split_last() else { return Ok(reply.data.as_ref()) };
    if last.code == Code::NoMaster || last.code == Code::OutcomeUnknown {
        return Err((*last).clone().into());
    }
    let lines: Vec<&str> = earlier.iter().chain([last]).map(|refusal| refusal.what.as_str()).collect();
    Err(rejected(Diagnostic { what: lines.join("\n"), ..(*last).clone() }))
}

/// The line that programs parse.
pub fn confirmation(
    number: proto::id::JobNumber,
    name: &str,
    array: Option<proto::request::TaskRange>,
    terse: bool,
) -> String {
    let range = array.map(|range| format!(".{}-{}:{}", range.first(), range.last(), range.step()));
    match (terse, range) {
        (true, range) => format!("{number}{}\n", range.unwrap_or_default()),
        (false, None) => format!("Your job {number} (\"{name}\") has been submitted\n"),
        (false, Some(range)) => format!("Your job-array {number}{range} (\"{name}\") has been submitted\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::id::JobNumber;
    use proto::request::TaskRange;

    #[test]
    fn confirmations_are_those_that_programs_parse() {
        let range = TaskRange::parse("1-10:2").ok();
        for (array, terse, text) in [
            (None, false, "Your job 14 (\"plain.sh\") has been submitted\n"),
            (None, true, "14\n"),
            (range, false, "Your job-array 14.1-10:2 (\"plain.sh\") has been submitted\n"),
            (range, true, "14.1-10:2\n"),
        ] {
            assert_eq!(confirmation(JobNumber(14), "plain.sh", array, terse), text);
        }
    }

    #[test]
    fn a_refusal_is_framed_as_in_8_1_9() {
        let refusal = Diagnostic::new(Code::UnknownResource, "unknown resource \"x\"");
        let fail = accepted(&Reply::refusal(refusal)).unwrap_err();
        assert_eq!(
            (fail.exit, fail.diagnostic.what.as_str()),
            (1, "Unable to run job: unknown resource \"x\"\nExiting.")
        );
    }
}
