//! `qdel`: deletes jobs and tasks.

use crate::args::{CommandDef, Operands, ValueCount, flag, with};
use crate::cell_address::CellAddress;
use crate::client::Client;
use crate::commands::Outcome;
use crate::fail::Fail;
use crate::job::selection::{join_task_options, selection};
use crate::{exit, output};
use proto::wire::client::Command;

pub const QDEL: CommandDef = CommandDef {
    name: "qdel",
    summary: "Deletes jobs and tasks: numbers, NUMBER.TASKS, names, patterns. A running one is ended on its host first.",
    operand_placeholder: "job_task_list",
    operands: Operands::Anywhere,
    options: &[
        flag(
            "-f",
            "force: do not wait for the host (own jobs; the job may still run there for a while)",
        ),
        flag("-help", "print this help"),
        with(
            "-t",
            ValueCount::One,
            "task_id_range",
            "delete only these tasks of the preceding JOB",
        ),
        with(
            "-u",
            ValueCount::One,
            "user_list",
            "delete the jobs of these users; * is everybody",
        ),
    ],
    exit_codes: "0 all deleted or registered for deletion; 1 something was refused, or a wrong option or value",
};

/// Runs `qdel`.
pub fn run(words: Vec<String>) -> Outcome {
    let parsed = QDEL.parse(join_task_options(&QDEL, words).map_err(refused)?)?;
    if parsed.has("-help") {
        output::data(&QDEL.help());
        return Ok(exit::OK);
    }
    if parsed.operands.is_empty() && !parsed.has("-u") {
        output::note(&QDEL.help());
        return Ok(exit::FAILED);
    }
    let jobs = selection("qdel", &parsed.operands, parsed.value("-u")).map_err(refused)?;
    let command = Command::Delete {
        jobs,
        force: parsed.has("-f"),
    };
    let reply = Client::connect(&CellAddress::from_environment(), "qdel")?.change(command)?;
    Ok(output::answers(&reply.answers))
}

/// `qdel` of 8.1.9 has one exit code for all that it refuses.
fn refused(fail: Fail) -> Fail {
    Fail {
        exit: exit::FAILED,
        ..fail
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_tasks_that_does_not_read_deletes_nothing_and_ends_with_1() {
        for line in ["-t 1 5", "5 -t", "5.x", "5 -t x"] {
            let words = line.split(' ').map(str::to_owned).collect();
            assert_eq!(run(words).unwrap_err().exit, exit::FAILED, "{line}");
        }
    }
}
