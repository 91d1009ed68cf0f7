//! `qalter` changes jobs, `qresub` submits copies of them.

use super::hold::NOT_OPERATOR;
use super::qsub::build;
use crate::args::{CommandDef, CommandLine, GivenOption, OptionDef};
use crate::cell_address::CellAddress;
use crate::client::Client;
use crate::commands::Outcome;
use crate::fail::Fail;
use crate::job::options::{JobOption, JobOptionRow, QALTER, QRESUB, TABLE, Taker};
use crate::job::request::JobRequest;
use crate::job::selection::{join_task_options, selection};
use crate::output::time::Clock;
use crate::{exit, output};
use proto::diagnostic::{Code, Diagnostic};
use proto::job::{HoldChange, Holds, JobChanges, Validation};
use proto::wire::client::{Answer, Command, JobSelection};
use proto::wire::view::Data;
use std::sync::LazyLock;

/// Exit code of `qresub` for a job that is unknown or not the caller's.
const NOT_RESUBMITTED: u8 = 4;
/// Exit code of `qalter` for an option that works on whole jobs and was given for tasks.
const JOBS_ONLY: u8 = 4;

/// The options of `qsub` that 8.1.9 does not know at all as options of `qalter`. It calls the
/// others unknown with exit code 5.
const ONLY_OF_BINARIES: [JobOption; 2] = [JobOption::Binary, JobOption::UseShell];

/// Reads the words of `qalter`.
static QALTER_PARSER: LazyLock<CommandDef> = LazyLock::new(|| parser(&QALTER, Taker::Qalter));

/// Reads the words of `qresub`.
static QRESUB_PARSER: LazyLock<CommandDef> = LazyLock::new(|| parser(&QRESUB, Taker::Qresub));

/// A command with the options of the others that are about jobs besides its own, which are called
/// unknown by name.
fn parser(command: &CommandDef, taker: Taker) -> CommandDef {
    let is_taken = |row: &JobOptionRow| row.takers.contains(&taker);
    let is_read = |row: &&JobOptionRow| {
        let is_named = TABLE
            .iter()
            .any(|other| is_taken(other) && other.def.name == row.def.name);
        let is_of_jobs = row.takers.iter().any(|taker| *taker != Taker::Qrsub);
        is_taken(row) || is_of_jobs && !is_named && !ONLY_OF_BINARIES.contains(&row.option)
    };
    let options: Vec<OptionDef> = TABLE.iter().filter(is_read).map(|row| row.def).collect();
    CommandDef {
        options: options.leak(),
        ..*command
    }
}

/// Runs `qalter`.
pub fn alter(words: Vec<String>) -> Outcome {
    let parsed = only_of(&QALTER, QALTER_PARSER.parse(join_task_options(&QALTER_PARSER, words)?)?)?;
    if parsed.has("-help") {
        output::data(&QALTER.help());
        return Ok(exit::OK);
    }
    let (operands, args) = script_arguments(parsed.operands.clone());
    if operands.is_empty() && !parsed.has("-u") && !parsed.has("-uall") {
        output::note(&QALTER.help());
        return Ok(exit::FAILED);
    }
    let mut request = JobRequest::new("qalter");
    request.apply_line(&parsed.given)?;
    let address = CellAddress::from_environment();
    request.map_directory(&address)?;
    let users = if parsed.has("-uall") {
        Some("*")
    } else {
        parsed.value("-u")
    };
    let jobs = selection("qalter", &operands, users)?;
    if request.verify {
        output::data(&build::verified_changes(&request, &Clock::local()));
        return Ok(exit::OK);
    }
    let changes = changes(request, args);
    must_suit_tasks(&changes, &jobs)?;
    let verifies = matches!(changes.validation, Some(Validation::Verify | Validation::Poke));
    let reply = Client::connect(&address, "qalter")?.change(Command::Alter {
        jobs,
        changes: Box::new(changes),
    })?;
    let code = output::answers(&reply.answers);
    Ok(if verifies && code != exit::OK {
        exit::FAILED
    } else {
        code
    })
}

/// Refuses tasks, unless holds are changed and nothing else.
fn must_suit_tasks(changes: &JobChanges, jobs: &JobSelection) -> Result<(), Fail> {
    let of_tasks = jobs.targets.iter().any(|target| !target.tasks.is_empty());
    let others = JobChanges {
        holds: None,
        ..changes.clone()
    };
    if !of_tasks || (changes.holds.is_some() && others == JobChanges::default()) {
        return Ok(());
    }
    let refusal = Diagnostic::new(
        Code::WrongState,
        "denied: the selected option works only on jobs and not on tasks",
    );
    Err(Fail::new(
        JOBS_ONLY,
        refusal.fix("name the job without its tasks; -h alone works on tasks"),
    ))
}

/// Words behind a lone `-` are new arguments of the script.
fn script_arguments(mut operands: Vec<String>) -> (Vec<String>, Option<Vec<String>>) {
    match operands.iter().position(|word| word == "-") {
        Some(at) => {
            let args = operands.split_off(at).into_iter().skip(1).collect();
            (operands, Some(args))
        }
        None => (operands, None),
    }
}

/// What changes; `-v` and `-V` become all exported variables.
fn changes(request: JobRequest, args: Option<Vec<String>>) -> JobChanges {
    let exports = request.export_all || request.variables.is_some();
    let environment = exports.then(|| build::exported(&request));
    JobChanges {
        args,
        environment,
        ..request.changes
    }
}

/// A command line without options that the command does not have.
fn only_of(command: &CommandDef, parsed: CommandLine) -> Result<CommandLine, Fail> {
    let is_known = |given: &&GivenOption| command.options.iter().any(|option| option.name == given.name);
    let others: Vec<String> = parsed
        .given
        .iter()
        .filter(|given| !is_known(given))
        .map(unknown_option)
        .collect();
    match others.is_empty() {
        true => Ok(parsed),
        false => {
            let refusal = Diagnostic::new(Code::BadSyntax, others.join("\n\n"));
            Err(Fail::new(
                exit::UNKNOWN_OPTION,
                refusal.fix(format!("all options: {} -help", command.name)),
            ))
        }
    }
}

fn unknown_option(given: &GivenOption) -> String {
    format!("Unknown option {} {}", given.name, given.values.join(" "))
        .trim_end()
        .to_owned()
}

/// Runs `qresub`.
pub fn resubmit(words: Vec<String>) -> Outcome {
    let parsed = only_of(&QRESUB, QRESUB_PARSER.parse(words)?)?;
    if parsed.has("-help") {
        output::data(&QRESUB.help());
        return Ok(exit::OK);
    }
    let jobs = selection("qresub", &parsed.operands, parsed.value("-u"))?;
    let set = match parsed.value("-h") {
        Some(text) => JobRequest::new("qalter").hold_change(text)?.set,
        None => Holds::default(),
    };
    let holds = set.any().then_some(HoldChange {
        set,
        release: Holds::default(),
    });
    let changes = Box::new(JobChanges {
        holds,
        ..JobChanges::default()
    });
    let reply =
        Client::connect(&CellAddress::from_environment(), "qresub")?.change(Command::Resubmit { jobs, changes })?;
    output::answers(&reply.answers);
    if let Some(Data::Submitted { number, name, array }) = &reply.data {
        output::data(&super::qsub::confirmation(*number, name, *array, false));
    }
    Ok(exit_code_of_copies(&reply.answers))
}

/// The exit code of `qresub`: a hold that the caller may not set has one of its own.
fn exit_code_of_copies(answers: &[Answer]) -> u8 {
    let code = |answer: &Answer| match answer {
        Answer::Refused(refusal) if refusal.code == Code::HoldNotPermitted => Some(NOT_OPERATOR),
        Answer::Refused(_) => Some(NOT_RESUBMITTED),
        Answer::Done(_) | Answer::Warning(_) => None,
    };
    answers.iter().rev().find_map(code).unwrap_or(exit::OK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_qresub_are_read_by_its_own_rules() {
        let read = |line: &str| {
            let words = line.split(' ').map(str::to_owned).collect();
            only_of(&QRESUB, QRESUB_PARSER.parse(words)?)
        };
        for line in ["5 - -h u", "- 5", "5 -"] {
            let fail = read(line).unwrap_err();
            assert_eq!(
                (fail.exit, &*fail.diagnostic.what),
                (exit::USAGE, "qalter: invalid option argument \"-\"")
            );
        }
        for (line, what) in [("-N x 5", "Unknown option -N x"), ("-uall", "Unknown option -uall")] {
            let fail = read(line).unwrap_err();
            assert_eq!((fail.exit, &*fail.diagnostic.what), (exit::UNKNOWN_OPTION, what));
        }
        assert_eq!(read("5 -h u 6").unwrap().operands, ["5", "6"]);
    }

    #[test]
    fn a_copy_with_a_hold_that_the_caller_may_not_set_is_refused_with_10() {
        let refused = |code, what: &str| Answer::Refused(Diagnostic::new(code, what));
        let hold = refused(Code::HoldNotPermitted, "denied: \"u1\" must be operator");
        assert_eq!(exit_code_of_copies(&[hold]), 10);
        let unknown = refused(Code::UnknownJob, "denied: job \"7\" does not exist");
        assert_eq!(exit_code_of_copies(&[unknown]), 4);
        let owner = refused(Code::NotPermitted, "denied: must be owner of job 7");
        assert_eq!(exit_code_of_copies(&[owner, Answer::Done(String::new())]), 4);
        assert_eq!(exit_code_of_copies(&[]), 0);
    }

    #[test]
    fn tasks_suit_an_alteration_of_holds_alone() {
        let exit_code = |changes: &JobChanges, operand: &str| {
            let jobs = selection("qalter", &[operand.to_owned()], None).unwrap();
            must_suit_tasks(changes, &jobs).err().map(|fail| fail.exit)
        };
        let holds = JobChanges {
            holds: Some(HoldChange::default()),
            ..JobChanges::default()
        };
        let name = JobChanges {
            name: Some("x".to_owned()),
            ..holds.clone()
        };
        assert_eq!(exit_code(&holds, "5.1-2"), None);
        assert_eq!(exit_code(&name, "5.1"), Some(4));
        assert_eq!(exit_code(&JobChanges::default(), "5.1"), Some(4));
        assert_eq!(exit_code(&name, "5"), None);
    }

    #[test]
    fn a_lone_dash_ends_the_options_of_qalter() {
        let parsed = QALTER_PARSER
            .parse(["5", "-", "-h", "u"].map(str::to_owned).to_vec())
            .unwrap();
        assert_eq!(
            script_arguments(parsed.operands).1,
            Some(vec!["-h".to_owned(), "u".to_owned()])
        );
    }
}
