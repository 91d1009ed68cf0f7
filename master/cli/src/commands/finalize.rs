//! `gridwright finalize`: the cell may use the features of the release that now runs, and the
//! release before it can no longer open the cell.

use crate::args::{CommandDef, Operands, ValueCount, flag, with};
use crate::cell_address::CellAddress;
use crate::cell_address::place::{self, Purpose};
use crate::client::Client;
use crate::commands::ask::{data, unexpected};
use crate::commands::{Outcome, backup, up};
use crate::fail::Fail;
use crate::output::time;
use crate::{exit, output};
use jiff::Timestamp;
use proto::cell_version::CellVersion;
use proto::diagnostic::{Code, Diagnostic};
use proto::time::Wall;
use proto::wire::client::{Command, Query};
use proto::wire::view::{CellStatus, Data};
use std::path::{Path, PathBuf};

pub const FINALIZE: CommandDef = CommandDef {
    name: "gridwright finalize",
    summary: "Ends an upgrade, on the master's host: brings the cell to the newest version that its master knows, so that the features \
              of this release can be used. Before that, it makes a backup. After it, the release before this one can no longer open \
              the cell, and agents of that release are turned away.",
    operand_placeholder: "",
    operands: Operands::None,
    options: &[
        place::DIR,
        with(
            "--backup",
            ValueCount::One,
            "FILE",
            "the file of the backup (default: before-version-N-TIME.backup in the directory of the cell)",
        ),
        flag("--check", "only ask if the cell can be finalized, and change nothing"),
        flag("-help", "print this help"),
        flag("--help", "print this help"),
    ],
    exit_codes: "0 done, or there was nothing to do; 1 refused, the message says why, and nothing has changed; 2 wrong option",
};

/// Runs `gridwright finalize`.
pub fn run(words: Vec<String>) -> Outcome {
    let parsed = FINALIZE.parse(words)?;
    if parsed.has("-help") || parsed.has("--help") {
        output::data(&FINALIZE.help());
        return Ok(exit::OK);
    }
    let dir = up::directory(&parsed, Purpose::Use)?;
    backup::check_cell(&dir)?;
    let address = CellAddress::at(&dir);
    let mut client = Client::connect(&address, "gridwright finalize")?;
    let (present, newest) = versions(&mut client)?;
    if present >= newest {
        output::data(&format!(
            "the cell has version {present}, the newest of this release: there is nothing to do\n"
        ));
        return Ok(exit::OK);
    }
    let command = |is_trial| Command::Finalize {
        version: newest,
        is_trial,
    };
    let asked = client.change(command(true))?;
    let is_refused = asked.answers.iter().any(|answer| answer.refusal().is_some());
    if is_refused || parsed.has("--check") {
        return Ok(output::answers(&asked.answers));
    }
    let file = match parsed.value("--backup") {
        Some(file) => PathBuf::from(file),
        None => backup_file(&dir, newest, time::now()),
    };
    backup::write(&dir, &file)?;
    // A backup of a large cell takes longer than an idle connection may.
    let reply = Client::connect(&address, "gridwright finalize")?.change(command(false))?;
    Ok(output::answers(&reply.answers))
}

/// The version of the cell, and the newest one that its master knows.
fn versions(client: &mut Client) -> Result<(CellVersion, CellVersion), Fail> {
    let status = match data(client, Query::Status)? {
        Some(Data::Status(status)) => *status,
        other => unexpected::<CellStatus>(other.as_ref())?,
    };
    // The programs were replaced, and the master was not started again.
    if status.newest_cell_version < CellVersion::NEWEST {
        let what = "error: the master that runs is of an older release than this command";
        let fix = "start it with the programs of this release: systemctl restart gridwright-master, or gridwright down and \
                   gridwright up";
        return Err(Diagnostic::new(Code::WrongState, what).fix(fix).into());
    }
    Ok((status.cell_version, status.newest_cell_version))
}

/// The file of the backup, in the directory of the cell, under a name that no other one has.
fn backup_file(dir: &Path, version: CellVersion, now: Wall) -> PathBuf {
    let time = Timestamp::from_millisecond(now.0).unwrap_or_default();
    dir.join(format!(
        "before-version-{version}-{}.backup",
        time.strftime("%Y%m%dT%H%M%SZ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_backup_is_named_by_version_and_time() {
        assert_eq!(
            backup_file(Path::new("/cell"), CellVersion(2), Wall(1_800_000_000_000)),
            Path::new("/cell/before-version-2-20270115T080000Z.backup")
        );
    }
}
