//! `qrdel`: deletes advance reservations.

use crate::args::{CommandDef, Operands, ValueCount, flag, with};
use crate::cell_address::CellAddress;
use crate::client::Client;
use crate::commands::{Outcome, ask};
use crate::{exit, output};
use proto::wire::client::Command;

pub const QRDEL: CommandDef = CommandDef {
    name: "qrdel",
    summary: "Deletes advance reservations and the jobs in them: numbers, names, patterns.",
    operand_placeholder: "ar_id_list",
    operands: Operands::Anywhere,
    options: &[
        flag("-f", "force: do not wait for the hosts of their jobs"),
        flag("-help", "print this help"),
        with(
            "-u",
            ValueCount::One,
            "user_list",
            "delete the reservations of these users; * is everybody",
        ),
    ],
    exit_codes: "0 all deleted or registered for deletion; 1 something was refused, or a wrong option",
};

/// Runs `qrdel`.
pub fn run(words: Vec<String>) -> Outcome {
    let parsed = QRDEL.parse(words)?;
    if parsed.has("-help") {
        output::data(&QRDEL.help());
        return Ok(exit::OK);
    }
    if parsed.operands.is_empty() && !parsed.has("-u") {
        output::note(&QRDEL.help());
        return Ok(exit::FAILED);
    }
    let targets = parsed.operands.iter().flat_map(|operand| operand.split(','));
    let targets = targets.filter(|target| !target.is_empty()).map(str::to_owned).collect();
    let command = Command::DeleteReservations {
        targets,
        users: ask::list(&parsed, "-u"),
        force: parsed.has("-f"),
    };
    let reply = Client::connect(&CellAddress::from_environment(), "qrdel")?.change(command)?;
    Ok(output::answers(&reply.answers))
}
