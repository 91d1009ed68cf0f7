//! `gridwright finalize`: the cell may use the features of a later version, and older releases can
//! no longer open it.

use crate::decide::{Caller, Turn};
use crate::event::Event;
use proto::cell_version::CellVersion;
use proto::diagnostic::{Code, Diagnostic};
use proto::wire::client::{Answer, Reply};

/// The most hosts that a refusal names.
const HOSTS_NAMED: usize = 10;

/// Decides [`Command::Finalize`](proto::wire::client::Command::Finalize).
pub(super) fn finalize(turn: &mut Turn<'_>, caller: &Caller, version: CellVersion, is_trial: bool) -> Reply {
    if let Err(refusal) = check(turn, version) {
        return Reply::refusal(refusal);
    }
    let before = turn.state().version;
    if is_trial {
        let text = format!("the cell can be brought from version {before} to version {version}");
        return Reply::answers(vec![Answer::Done(text)]);
    }
    turn.record(Event::CellVersionRaised { version });
    let text = format!(
        "{} brought the cell from version {before} to version {version}",
        caller.at_host()
    );
    Reply::answers(vec![Answer::Done(text)])
}

fn check(turn: &Turn<'_>, version: CellVersion) -> Result<(), Diagnostic> {
    let present = turn.state().version;
    if version > CellVersion::NEWEST {
        let what = format!(
            "denied: this master knows no version of a cell after {}",
            CellVersion::NEWEST
        );
        let fix = "install the newer release on the master's host, and start its master";
        return Err(Diagnostic::new(Code::WrongState, what).fix(fix));
    }
    if version <= present {
        let what = format!("denied: the cell has version {present} already");
        let why = "the version of a cell is never lowered";
        let fix = "to go back to an older release, restore the backup that gridwright finalize made";
        return Err(Diagnostic::new(Code::WrongState, what).why(why).fix(fix));
    }
    let older: Vec<&str> = turn.agents().older_than(version).map(|host| host.as_str()).collect();
    if older.is_empty() {
        return Ok(());
    }
    let named = older[..older.len().min(HOSTS_NAMED)].join(", ");
    let others = match older.len().saturating_sub(HOSTS_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let what = format!("denied: {} agents are of an older release", older.len());
    let fix =
        "install this release on these hosts, restart gridwright-launcher and gridwright-agent there, and try again";
    Err(Diagnostic::new(Code::WrongState, what)
        .at(format!("{named}{others}"))
        .why(format!("they do not know version {version} of a cell"))
        .fix(fix))
}
