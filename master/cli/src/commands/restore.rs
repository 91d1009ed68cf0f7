//! `gridwright restore`: a cell out of a backup.

use crate::accounts::{self, RecordedAccounts};
use crate::args::{CommandDef, Operands, ValueCount, flag, with};
use crate::cell_address::place::{self, Purpose};
use crate::commands::{Outcome, up};
use crate::fail::Fail;
use crate::{daemons, exit, output};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use proto::diagnostic::{Code, Diagnostic};
use std::fs::File;
use std::path::Path;
use std::process::Command;

pub const RESTORE: CommandDef = CommandDef {
    name: "gridwright restore",
    summary: "Makes the cell of a backup in DIR, which has no cell yet, on this or another machine. Job numbers go on, nodes connect \
              again by themselves, and the old master is refused by them from then on. It starts nothing.",
    operand_placeholder: "FILE",
    operands: Operands::Anywhere,
    options: &[
        place::DIR,
        with(
            "--until",
            ValueCount::One,
            "SEQ|TIME",
            "leave out what happened later: after an event of gridwright events, or after a time such as 2027-01-31T13:00 or \
             2027-01-31T12:00:00Z",
        ),
        flag("-help", "print this help"),
        flag("--help", "print this help"),
    ],
    exit_codes: "0 restored; 1 it is not, the message says why, and DIR has no cell; 2 wrong option, or no file",
};

/// Runs `gridwright restore`.
pub fn run(words: Vec<String>) -> Outcome {
    let parsed = RESTORE.parse(words)?;
    if parsed.has("-help") || parsed.has("--help") {
        output::data(&RESTORE.help());
        return Ok(exit::OK);
    }
    let [file] = parsed.operands.as_slice() else {
        let refusal = Diagnostic::new(Code::BadSyntax, "gridwright restore: name one file");
        let fix = "gridwright restore FILE --dir DIR";
        return Err(Fail::new(exit::USAGE, refusal.fix(fix)));
    };
    let until = parsed.value("--until").map(|text| until(text, &TimeZone::system()));
    let dir = up::directory(&parsed, Purpose::Make)?;
    accounts::check_place(&dir)?;
    let refuse = |why: String| {
        let refusal = Diagnostic::new(Code::SystemRefused, "error: no cell is restored");
        let fix = "name a backup that is whole, and a directory that has no cell and room for one";
        Fail::from(refusal.at(format!("{file} into {}", dir.display())).why(why).fix(fix))
    };
    let backup = File::open(file).map_err(|error| refuse(error.to_string()))?;
    let mut command = Command::new(daemons::program("gridwright-master")?);
    command
        .arg("restore")
        .arg("--dir")
        .arg(&dir)
        .current_dir("/")
        .stdin(backup);
    command.args(until.transpose()?.into_iter().flatten());
    let done = command.output().map_err(|error| refuse(error.to_string()))?;
    if !done.status.success() {
        return Err(refuse(String::from_utf8_lossy(&done.stderr).trim().to_owned()));
    }
    give_to_daemons(&dir)?;
    let said = String::from_utf8_lossy(&done.stdout);
    output::data(&format!("restored in {}: {}\n", dir.display(), said.trim()));
    output::note(&format!(
        "end the old master before this one starts: gridwright up --dir {}, or where the units are installed: systemctl start \
         gridwright-master",
        dir.display()
    ));
    Ok(exit::OK)
}

/// Root gives the daemons accounts of their own, and their files.
fn give_to_daemons(dir: &Path) -> Result<(), Fail> {
    if nix::unistd::getuid().is_root() {
        let accounts = RecordedAccounts::read_or_choose(dir)?;
        let refuse = |error: std::io::Error| {
            let refusal = Diagnostic::new(Code::SystemRefused, "error: sensors cannot be admitted");
            Fail::from(refusal.at("etc/launcher.conf").why(error.to_string()))
        };
        accounts.readmit_sensors(dir).map_err(refuse)?;
        accounts.hand_over(dir)?;
    }
    Ok(())
}

/// The words for the master's program.
fn until(text: &str, zone: &TimeZone) -> Result<[String; 2], Fail> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty() {
        return Ok(["--until-event".to_owned(), text.to_owned()]);
    }
    let local = |time: DateTime| time.to_zoned(zone.clone()).map(|zoned: Zoned| zoned.timestamp());
    let time = text
        .parse::<Timestamp>()
        .or_else(|_| text.parse::<DateTime>().and_then(local))
        .map_err(|error| {
            let refused = Fail::bad_value(format!(
                "gridwright restore: --until {text} is neither an event nor a time: {error}"
            ));
            refused.fix("give the number of an event, or a time such as 2027-01-31T13:00")
        })?;
    Ok(["--until-ms".to_owned(), time.as_millisecond().to_string()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_an_event_or_a_time() {
        let zone = TimeZone::fixed(jiff::tz::offset(1));
        let check = |text: &str, expected: [&str; 2]| {
            assert_eq!(until(text, &zone).ok(), Some(expected.map(str::to_owned)), "{text}");
        };
        check("17", ["--until-event", "17"]);
        check("1970-01-01T00:00:02Z", ["--until-ms", "2000"]);
        check("1970-01-01T01:00:02", ["--until-ms", "2000"]);
        check("1970-01-01 01:01", ["--until-ms", "60000"]);
        for wrong in ["", "yesterday", "-3", "1970-13-01"] {
            assert!(until(wrong, &zone).is_err(), "{wrong}");
        }
    }
}
