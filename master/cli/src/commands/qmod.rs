//! `qmod`: enables, disables, suspends, resumes, clears errors and reschedules.

use crate::args::{CommandDef, Operands, OptionDef, ValueCount, flag, with};
use crate::cell_address::CellAddress;
use crate::client::Client;
use crate::commands::Outcome;
use crate::fail::Fail;
use crate::job::empty;
use crate::{exit, output};
use proto::diagnostic::{Code, Diagnostic};
use proto::wire::client::{Command, ModifyAction};

/// Option, action, help.
const ACTIONS: [(&str, ModifyAction); 14] = [
    ("-c", ModifyAction::ClearError),
    ("-cj", ModifyAction::ClearJobError),
    ("-cq", ModifyAction::ClearQueueError),
    ("-d", ModifyAction::DisableQueue),
    ("-e", ModifyAction::EnableQueue),
    ("-r", ModifyAction::Reschedule),
    ("-rj", ModifyAction::RescheduleJob),
    ("-rq", ModifyAction::RescheduleQueue),
    ("-s", ModifyAction::Suspend),
    ("-sj", ModifyAction::SuspendJob),
    ("-sq", ModifyAction::SuspendQueue),
    ("-us", ModifyAction::Unsuspend),
    ("-usj", ModifyAction::UnsuspendJob),
    ("-usq", ModifyAction::UnsuspendQueue),
];

const fn list(name: &'static str, placeholder: &'static str, help: &'static str) -> OptionDef {
    with(name, ValueCount::AtLeast(1), placeholder, help)
}

pub const QMOD: CommandDef = CommandDef {
    name: "qmod",
    summary: "Changes the state of jobs and queues. Lists are names, patterns, NUMBER.TASKS, QUEUE@HOST.",
    operand_placeholder: "",
    operands: Operands::None,
    options: &[
        list("-c", "job_wc_queue_list", "clear error state"),
        list("-cj", "job_list", "clear job error state"),
        list("-cq", "wc_queue_list", "clear queue error state"),
        list("-d", "wc_queue_list", "disable"),
        list("-e", "wc_queue_list", "enable"),
        flag("-f", "force action"),
        flag("-help", "print this help"),
        list("-r", "job_wc_queue_list", "reschedule jobs (running jobs only)"),
        list("-rj", "job_list", "reschedule jobs (running jobs only)"),
        list("-rq", "wc_queue_list", "reschedule all jobs in a queue"),
        list("-s", "job_wc_queue_list", "suspend"),
        list("-sj", "job_list", "suspend jobs"),
        list("-sq", "wc_queue_list", "suspend queues"),
        list("-us", "job_wc_queue_list", "unsuspend"),
        list("-usj", "job_list", "unsuspend jobs"),
        list("-usq", "wc_queue_list", "unsuspend queues"),
    ],
    exit_codes: "0 done or already so; 1 something was refused, or a wrong option",
};

/// Runs `qmod`.
pub fn run(words: Vec<String>) -> Outcome {
    let parsed = QMOD.parse(words)?;
    if parsed.has("-help") {
        output::data(&QMOD.help());
        return Ok(exit::OK);
    }
    let actions: Vec<_> = parsed.given.iter().filter(|given| given.name != "-f").collect();
    if actions.is_empty() {
        output::note(&QMOD.help());
        return Ok(exit::FAILED);
    }
    let mut client = Client::connect(&CellAddress::from_environment(), "qmod")?;
    let mut code = exit::OK;
    for given in actions {
        let action = action(given.name)?;
        let command = Command::Modify {
            action,
            targets: targets(&given.values),
            force: parsed.has("-f"),
        };
        code = code.max(output::answers(&client.change(command)?.answers));
    }
    Ok(code)
}

/// The parts of all lists; a list without a part stands for itself, and names nothing.
fn targets(words: &[String]) -> Vec<String> {
    let parts = |word: &String| match empty::is_empty(word) {
        true => vec![word.clone()],
        false => word
            .split(',')
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect(),
    };
    words.iter().flat_map(parts).collect()
}

fn action(option: &str) -> Result<ModifyAction, Fail> {
    let found = ACTIONS
        .iter()
        .find(|(name, _)| *name == option)
        .map(|(_, action)| *action);
    found.ok_or_else(|| Diagnostic::new(Code::BadSyntax, format!("qmod: invalid option argument \"{option}\"")).into())
}
