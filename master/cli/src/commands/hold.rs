//! `qhold` and `qrls`: set and release holds of jobs and tasks.

use crate::args::{CommandDef, Operands, OptionDef, ValueCount, flag, with};
use crate::cell_address::CellAddress;
use crate::client::Client;
use crate::commands::Outcome;
use crate::fail::Fail;
use crate::job::selection::{join_task_options, selection};
use crate::{exit, output};
use proto::diagnostic::Code;
use proto::job::{HoldChange, Holds, JobChanges};
use proto::wire::client::{Answer, Command};

/// Exit codes of these two commands, as recorded of 8.1.9.
const UNKNOWN: u8 = 3;
const NO_ARRAY: u8 = 4;
/// For a hold that an operator or manager has to set or release.
pub const NOT_OPERATOR: u8 = 10;
const NOT_OWNER: u8 = 18;

const OPTIONS: &[OptionDef] = &[
    with(
        "-h",
        ValueCount::One,
        "hold_list",
        "which holds: letters of u (user, the default), o (operator), s (system)",
    ),
    flag("-help", "print this help"),
    with(
        "-t",
        ValueCount::One,
        "task_id_range",
        "only these tasks of the preceding JOB",
    ),
    with(
        "-u",
        ValueCount::One,
        "user_list",
        "jobs of these users; * is everybody",
    ),
];

const EXIT_CODES: &str = "0 done; 3 no such job; 4 several tasks of a job that is not an array; \
    10 operator or manager needed; 18 not your job; 7 value does not parse";

pub const QHOLD: CommandDef = CommandDef {
    name: "qhold",
    summary: "Holds pending jobs and tasks.",
    operand_placeholder: "job_task_list",
    operands: Operands::AnywhereWithoutDash,
    options: OPTIONS,
    exit_codes: EXIT_CODES,
};

pub const QRLS: CommandDef = CommandDef {
    name: "qrls",
    summary: "Releases held jobs and tasks.",
    ..QHOLD
};

/// Runs `qhold`.
pub fn hold(words: Vec<String>) -> Outcome {
    run(&QHOLD, words, |holds| HoldChange {
        set: holds,
        release: Holds::default(),
    })
}

/// Runs `qrls`.
pub fn release(words: Vec<String>) -> Outcome {
    run(&QRLS, words, |holds| HoldChange {
        set: Holds::default(),
        release: holds,
    })
}

fn run(command: &CommandDef, words: Vec<String>, change: fn(Holds) -> HoldChange) -> Outcome {
    let parsed = command.parse(join_task_options(command, words)?)?;
    if parsed.has("-help") {
        output::data(&command.help());
        return Ok(exit::OK);
    }
    if parsed.operands.is_empty() && !parsed.has("-u") {
        output::note(&command.help());
        return Ok(exit::FAILED);
    }
    let holds = holds(parsed.value("-h").unwrap_or("u"))?;
    let jobs = selection(command.name, &parsed.operands, parsed.value("-u"))?;
    let changes = Box::new(JobChanges {
        holds: Some(change(holds)),
        ..JobChanges::default()
    });
    let reply =
        Client::connect(&CellAddress::from_environment(), command.name)?.change(Command::Alter { jobs, changes })?;
    output::answers(&reply.answers);
    Ok(reply
        .answers
        .iter()
        .filter_map(exit_code)
        .next_back()
        .unwrap_or(exit::OK))
}

#[allow(clippy::wildcard_enum_match_arm, reason = "all other codes have their own exit code")]
fn exit_code(answer: &Answer) -> Option<u8> {
    let Answer::Refused(refusal) = answer else { return None };
    Some(match refusal.code {
        Code::UnknownJob => UNKNOWN,
        Code::BadValue => NO_ARRAY,
        Code::NotPermitted => NOT_OWNER,
        Code::HoldNotPermitted => NOT_OPERATOR,
        code => code.exit_code(),
    })
}

fn holds(text: &str) -> Result<Holds, Fail> {
    let mut holds = Holds::default();
    for letter in text.chars() {
        match letter {
            'u' => holds.user = true,
            'o' => holds.operator = true,
            's' => holds.system = true,
            _ => {
                let what = format!("qalter: Unknown hold list \"{text}\" specified to -h option");
                return Err(Fail::bad_value(what).fix("write letters of u, o, s"));
            }
        }
    }
    Ok(holds)
}
