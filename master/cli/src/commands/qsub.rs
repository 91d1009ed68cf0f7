//! `qsub`: submits a job.

pub mod build;
pub mod template;
mod wait;

use crate::args::CommandLine;
use crate::cell_address::CellAddress;
use crate::client::Client;
use crate::commands::Outcome;
use crate::fail::Fail;
use crate::interrupt::Interrupt;
use crate::job::options::QSUB;
use crate::job::request::{AwaitedState, JobRequest, rejected};
use crate::job::script;
use crate::job::sources::{self, Origin, Source};
use crate::job::verifiers;
use crate::output::time::Clock;
use crate::{exit, output};
use proto::diagnostic::{Code, Diagnostic};
use proto::job::{Program, confirmed_name};
use proto::wire::client::{Answer, Command, Reply};
use proto::wire::view::Data;
use wait::WaitRequest;

/// Runs `qsub` with the words behind its name.
pub fn run(words: Vec<String>) -> Outcome {
    let command_line = sources::expand_files(QSUB.parse(words)?)?;
    if command_line.has("-help") {
        output::data(&QSUB.help());
        return Ok(exit::OK);
    }
    refuse_bad_options(&command_line)?;
    let address = CellAddress::from_environment();
    let Submission {
        request,
        program,
        sources,
    } = submission(&address, &command_line)?;
    let args = command_line.operands.get(1..).unwrap_or_default().to_vec();
    let spec = build::specification(&request, program, args);
    if request.verify {
        output::data(&build::verification(&spec, &Clock::local()));
        return Ok(exit::OK);
    }
    let scripts = request.verifiers.as_deref().unwrap_or_default();
    let spec = verifiers::verify("qsub", scripts, address.dir(), spec).map_err(rejected)?;
    let mut client = Client::connect(&address, "qsub")?;
    // From before the job exists: a Ctrl-C while it is being submitted must not leave it behind.
    let interrupt = if request.immediate || request.sync != AwaitedState::Submitted {
        Some(Interrupt::hold()?)
    } else {
        None
    };
    let submission = Command::Submit(Box::new(spec));
    let reply = match &interrupt {
        None => client.change(submission)?,
        Some(interrupt) => client.change_unless(submission, interrupt)?.ok_or_else(interrupted)?,
    };
    let reply = sources::with_lines(reply, &sources);
    match accepted(&reply)? {
        Some(Data::Submitted { number, name, array }) => {
            output::data(&confirmation(*number, name, *array, request.terse));
            let Some(interrupt) = interrupt else {
                return Ok(exit::OK);
            };
            let JobRequest { immediate, sync, .. } = request;
            WaitRequest {
                job: *number,
                is_array: array.is_some(),
                immediate,
                sync,
            }
            .run(&mut client, interrupt)
        }
        _ => Ok(exit::OK),
    }
}

/// A signal ended the command before the master had answered.
fn interrupted() -> Diagnostic {
    Diagnostic::new(
        Code::OutcomeUnknown,
        "error: interrupted: it is not known whether the job was submitted",
    )
    .fix("qstat shows whether it is there, qdel deletes it")
}

/// Refuses what the command line gets wrong before a script is looked for, which a missing argument
/// may have swallowed.
fn refuse_bad_options(command_line: &CommandLine) -> Result<(), Fail> {
    if command_line.operands == ["--"] {
        let refusal = Diagnostic::new(Code::BadSyntax, "qsub: -- option must be followed by job arguments");
        return Err(Fail::new(
            exit::USAGE,
            refusal.fix("leave -- out for a script without arguments"),
        ));
    }
    JobRequest::new("qsub").apply_line(&command_line.given)
}

/// What is to be submitted.
#[derive(Debug)]
struct Submission {
    /// What all sources ask for together.
    request: JobRequest,
    /// What is to run.
    program: Program,
    /// Where the options come from, weakest first, without those that `-clear` drops.
    sources: Vec<Source>,
}

/// Reads the request files and the script, and adds up what they and the command line say.
fn submission(address: &CellAddress, command_line: &CommandLine) -> Result<Submission, Fail> {
    let files = sources::request_files(&address.dir().join("default/common"))?;
    let mut submission = merged(files, command_line)?;
    submission.request.map_directory(address)?;
    Ok(submission)
}

/// Adds up what the request files, the script and the command line say. The request files and the
/// command line say whether there is a script to read; the lines of a script that was read may make
/// its path a command.
fn merged(files: Source, command_line: &CommandLine) -> Result<Submission, Fail> {
    let line = Source::command_line(command_line.given.clone());
    let without_script = sources::after_clear(vec![files.clone(), line.clone()]);
    let binary = last_yes_no(&without_script, "-b");
    if binary.is_none() && last_yes_no(std::slice::from_ref(&line), "-b") == Some(true) {
        return Err(binary_was_cleared());
    }
    let mut program = program(command_line, binary == Some(true))?;
    let prefix = directive_prefix(&without_script);
    let script = match &program {
        Program::Script { path, content } => {
            sources::directives(content, prefix.as_deref().unwrap_or(script::DIRECTIVE_PREFIX), path)?
        }
        Program::Stored { .. } | Program::Command { .. } => Source {
            origin: Origin::Script,
            lines: Vec::new(),
        },
    };
    let mut request = JobRequest::new("qsub");
    let sources = sources::after_clear(vec![files, script, line]);
    request.apply_sources(&sources)?;
    request.directive_prefix = prefix;
    if let Program::Script { path, .. } = &program
        && request.binary
    {
        let is_file = command_line
            .operands
            .first()
            .is_some_and(|word| !sources::is_standard_input(word));
        program = if is_file {
            Program::Command { command: path.clone() }
        } else {
            return Err(command_required());
        };
    }
    Ok(Submission {
        request,
        program,
        sources,
    })
}

/// The last `-C` of the command line. As in 8.1.9, that of a request file or of a script has no
/// effect.
fn directive_prefix(sources: &[Source]) -> Option<String> {
    let line = sources.iter().find(|source| source.origin == Origin::CommandLine)?;
    line.given().rfind(|given| given.name == "-C")?.values.first().cloned()
}

/// 8.1.9 has not read the script at this point, and rejects the job with these words.
fn binary_was_cleared() -> Fail {
    let refusal = Diagnostic::new(Code::JobRejected, "job rejected: no script in your request")
        .at("-clear")
        .why("-clear drops the -b y in front of it")
        .fix("write -b y behind -clear");
    rejected(refusal)
}

/// `-b y` without a command; a script on standard input may say it as well.
fn command_required() -> Fail {
    let refusal = Diagnostic::new(Code::BadSyntax, "qsub: command required for a binary job");
    Fail::new(exit::USAGE, refusal.fix("name the command behind the options"))
}

/// What is to run: the file or command named first, or standard input.
fn program(command_line: &CommandLine, binary: bool) -> Result<Program, Fail> {
    match command_line.operands.first() {
        Some(command) if binary && command == "-" => {
            let refusal = Diagnostic::new(Code::BadSyntax, "qsub: invalid option argument \"-\"");
            Err(Fail::new(
                exit::USAGE,
                refusal
                    .why("standard input is no command")
                    .fix("leave -b y out for a script"),
            ))
        }
        Some(command) if binary && command == "--" => Err(command_required()),
        Some(command) if binary => Ok(Program::Command {
            command: command.clone(),
        }),
        None if binary => Err(command_required()),
        None => Ok(Program::Script {
            path: "STDIN".to_owned(),
            content: script::read_stdin()?.into(),
        }),
        Some(name) if sources::is_standard_input(name) => Ok(Program::Script {
            path: "STDIN".to_owned(),
            content: script::read_stdin()?.into(),
        }),
        Some(path) => Ok(Program::Script {
            path: path.clone(),
            content: script::read_file(path)?.into(),
        }),
    }
}

/// What the last use of an option says.
fn last_yes_no(sources: &[Source], name: &str) -> Option<bool> {
    let last = sources
        .iter()
        .rev()
        .find_map(|source| source.given().rfind(|given| given.name == name))?;
    Some(last.values.first()?.to_ascii_lowercase().starts_with('y'))
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
    let Some((last, earlier)) = refusals.split_last() else {
        return Ok(reply.data.as_ref());
    };
    if last.code == Code::NoMaster || last.code == Code::OutcomeUnknown {
        return Err((*last).clone().into());
    }
    let lines: Vec<&str> = earlier
        .iter()
        .chain([last])
        .map(|refusal| refusal.what.as_str())
        .collect();
    Err(rejected(Diagnostic {
        what: lines.join("\n"),
        ..(*last).clone()
    }))
}

/// The line that programs parse.
pub fn confirmation(
    number: proto::id::JobNumber,
    name: &str,
    array: Option<proto::request::TaskRange>,
    terse: bool,
) -> String {
    let name = confirmed_name(name);
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
    fn a_confirmation_has_the_first_hundred_characters_of_a_name() {
        let text = confirmation(JobNumber(1), &"ä".repeat(101), None, false);
        assert_eq!(
            text,
            format!("Your job 1 (\"{}\") has been submitted\n", "ä".repeat(100))
        );
    }

    #[test]
    fn the_prefix_that_is_used_is_the_one_that_is_shown() {
        let path = std::env::temp_dir().join(format!("gridwright-prefix-{}.sh", std::process::id()));
        std::fs::write(&path, "#$ -C @@ -N dollar\n@@ -N at\n%% -N percent\n").unwrap();
        for (files, line, name, prefix) in [
            ("", &[][..], "dollar", None),
            ("-C %%", &[], "dollar", None),
            ("-C %%", &["-C", "@@"], "at", Some("@@")),
            ("", &["-C", "#$"], "dollar", Some("#$")),
            ("", &["-C", "@@", "-C", "%%"], "percent", Some("%%")),
        ] {
            let lines = vec![Origin::RequestFiles.line(files.as_bytes(), String::new()).unwrap()];
            let words = line
                .iter()
                .map(|word| (*word).to_owned())
                .chain([path.display().to_string()]);
            let command_line = QSUB.parse(words.collect()).unwrap();
            let Submission { request, .. } = merged(
                Source {
                    origin: Origin::RequestFiles,
                    lines,
                },
                &command_line,
            )
            .unwrap();
            let used_and_shown = (request.changes.name.as_deref(), request.directive_prefix.as_deref());
            assert_eq!(used_and_shown, (Some(name), prefix), "{files:?} {line:?}");
        }
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn two_dashes_stand_for_a_script_on_standard_input_with_arguments() {
        let words = |line: &[&str]| line.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let parsed = QSUB
            .parse(words(&["-N", "dd", "-cwd", "--", "a", "b c", "-N"]))
            .unwrap();
        assert_eq!(parsed.operands, ["--", "a", "b c", "-N"]);
        assert_eq!(parsed.given.len(), 2);
        let fail = program(&parsed, true).unwrap_err();
        assert_eq!(
            (fail.exit, fail.diagnostic.what.as_str()),
            (2, "qsub: command required for a binary job")
        );
        assert_eq!(Origin::Script.line(b"-N x --", String::new()).unwrap_err().exit, 5);
        let fail = refuse_bad_options(&QSUB.parse(words(&["--"])).unwrap()).unwrap_err();
        assert_eq!(
            (fail.exit, fail.diagnostic.what.as_str()),
            (2, "qsub: -- option must be followed by job arguments")
        );
    }

    #[test]
    fn confirmations_are_those_that_programs_parse() {
        let range = TaskRange::parse("1-10:2").ok();
        for (array, terse, text) in [
            (None, false, "Your job 14 (\"plain.sh\") has been submitted\n"),
            (None, true, "14\n"),
            (
                range,
                false,
                "Your job-array 14.1-10:2 (\"plain.sh\") has been submitted\n",
            ),
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
