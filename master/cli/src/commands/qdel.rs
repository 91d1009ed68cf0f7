//! `qdel`: deletes jobs and tasks.

use crate::args::{CommandDef, Operands, Values, flag, with};
use crate::client::Client;
use crate::commands::Outcome;
use crate::job::selection::{join_task_options, selection};
use crate::site::Site;
use crate::{exit, output};
use proto::wire::client::Command;

const QDEL: CommandDef = CommandDef {
    name: "qdel",
    summary: "Deletes jobs and tasks: numbers, NUMBER.TASKS, names, patterns. A running one is ended on its host first.",
    operand_placeholder: "job_task_list",
    operands: Operands::Anywhere,
    options: &[
        flag("-f", "force: do not wait for the host (own jobs; the job may still run there for a while)"),
        flag("-help", "print this help"),
        with("-t", Values::One, "task_id_range", "delete only these tasks of the preceding JOB"),
        with("-u", Values::One, "user_list", "delete the jobs of these users; * is everybody"),
    ],
    exit_codes: "0 all deleted or registered for deletion; 1 something was refused, or a wrong option; 7 value does not parse",
};

/// Runs `qdel`.
pub fn run(words: Vec<String>) -> Outcome {
    let parsed = QDEL.parse(join_task_options(&QDEL, words)?)?;
    if parsed.has("-help") {
        output::data(&QDEL.help());
        return Ok(exit::OK);
    }
    if parsed.operands.is_empty() && !parsed.has("-u") {
        output::note(&QDEL.help());
        return Ok(exit::FAILED);
    }
    let jobs = selection("qdel", &parsed.operands, parsed.value("-u"))?;
    let command = Command::Delete { jobs, force: parsed.has("-f") };
    let reply = Client::connect(&Site::from_environment(), "qdel")?.change(command)?;
    Ok(output::answers(&reply.answers))
}
