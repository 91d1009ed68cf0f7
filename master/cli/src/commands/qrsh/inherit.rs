//! `qrsh -inherit`: a slave task of the parallel job that this command is a process of.

use super::talk::{self, TalkEnd, TalkRequest};
use crate::args::{CommandDef, Operands, OptionDef, ValueCount, flag, with};
use crate::cell_address::CellAddress;
use crate::client::Client;
use crate::commands::Outcome;
use crate::fail::Fail;
use crate::job::environment::{exported, named};
use crate::job::request::variables;
use crate::{exit, output};
use proto::diagnostic::{Code, Diagnostic};
use proto::id::TaskKey;
use proto::wire::client::{Command, SlaveRequest};
use proto::wire::slave::SlaveSpec;
use proto::wire::view::Data;
use std::sync::Arc;

/// The variable in which every process of a task finds the task's key.
const TASK: &str = "GRIDWRIGHT_TASK_KEY";

const OPTIONS: &[OptionDef] = &[
    flag(
        "-inherit",
        "start a task of the parallel job that this command runs in, on a host that was granted to it",
    ),
    flag("-noshell", "start the command without a shell"),
    flag("-nostdin", "the command's standard input is /dev/null"),
    with(
        "-v",
        ValueCount::One,
        "variable_list",
        "export these environment variables",
    ),
    flag("-verbose", "say on stderr what is done"),
    flag("-V", "export all environment variables"),
];

const INHERIT: CommandDef = CommandDef {
    name: "qrsh",
    summary: "Inside of a parallel job with control_slaves TRUE: runs a command on another host of the job.",
    operand_placeholder: "-inherit host command [args]",
    operands: Operands::EndOptions,
    options: OPTIONS,
    exit_codes: "that of the command, 128 plus the signal's number for a signal; 1 refused; 2 wrong option; 75 outcome unknown",
};

/// Runs `qrsh -inherit`.
pub fn run(words: Vec<String>) -> Outcome {
    let parsed = INHERIT.parse(words)?;
    let (host, command) = match parsed.operands.split_first() {
        Some((host, command)) if !command.is_empty() => (host.clone(), command.to_vec()),
        _ => return Err(Fail::new(exit::USAGE, no_command())),
    };
    let task = own_task()?;
    let mut environment: Vec<(String, String)> = if parsed.has("-V") {
        exported().collect()
    } else {
        Vec::new()
    };
    for given in parsed.given.iter().filter(|given| given.name == "-v") {
        environment.extend(named(&variables(INHERIT.name, &given.values[0])?));
    }
    let (use_shell, has_input) = (!parsed.has("-noshell"), !parsed.has("-nostdin"));
    let spec = Arc::new(SlaveSpec {
        command,
        environment,
        use_shell,
        has_input,
    });
    let address = CellAddress::from_environment();
    let request = SlaveRequest {
        task: TaskKey { pe_task: 0, ..task },
        host: host.clone(),
        spec,
    };
    let key = start(&address, task, request)?;
    if parsed.has("-verbose") {
        output::note(&format!("slave task {} is started on host {host}", key.pe_task));
    }
    let request = TalkRequest {
        key,
        inside: Some(task),
        has_input,
        has_terminal: false,
    };
    match talk::until_over(&address, request, None)? {
        TalkEnd::Over { status, reason } => {
            if !reason.is_empty() {
                output::note(&format!("error: the slave task failed: {reason}"));
            }
            Ok(u8::try_from(status).unwrap_or(u8::MAX))
        }
        TalkEnd::ReaderGone | TalkEnd::Interrupted | TalkEnd::Left => Ok(exit::FAILED),
    }
}

fn no_command() -> Diagnostic {
    Diagnostic::new(Code::BadSyntax, "qrsh: -inherit needs a host and a command")
        .fix("write: qrsh -inherit [-nostdin] [-noshell] [-V] [-v list] HOST COMMAND [ARGS]")
}

/// The task that this command is a process of, as its environment says; the agent of this host
/// checks it.
fn own_task() -> Result<TaskKey, Diagnostic> {
    let outside = |why: String| {
        Diagnostic::new(
            Code::NotPermitted,
            "error: qrsh -inherit works inside of a running parallel job only",
        )
        .why(why)
        .fix("call it in the script of a job that was submitted with qsub -pe")
    };
    let variable = |name: &str| std::env::var(name).map_err(|_| outside(format!("{name} is not set")));
    variable("JOB_ID")?;
    variable(TASK)?
        .parse()
        .map_err(|error: proto::id::BadTaskKey| outside(format!("{TASK}: {error}")))
}

/// Has the slave task started. The connection ends here: one host has few ways to the master, and a
/// job may start many.
fn start(address: &CellAddress, task: TaskKey, request: SlaveRequest) -> Result<TaskKey, Diagnostic> {
    let mut client = Client::inside(address, INHERIT.name, task)?.with_raw_values();
    let reply = client.change(Command::StartSlave(Box::new(request)))?;
    match (reply.data, reply.answers.iter().find_map(|answer| answer.refusal())) {
        (Some(Data::Slave(key)), None) => Ok(key),
        (_, Some(refusal)) => Err(refusal.clone()),
        (_, None) => Err(Diagnostic::new(
            Code::BadMessage,
            "error: the master answered something else",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inherit_needs_a_host_and_a_command() {
        let fail = |words: &[&str]| run(words.iter().map(|word| (*word).to_owned()).collect()).unwrap_err();
        assert_eq!(
            (fail(&["-inherit"]).exit, fail(&["-inherit", "h1"]).exit),
            (exit::USAGE, exit::USAGE)
        );
    }
}
