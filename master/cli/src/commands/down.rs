//! `gridwright down`: ends the daemons of the cell on this machine.

use crate::args::{CommandDef, Operands, Values, flag, with};
use crate::client::Client;
use crate::commands::{Outcome, up};
use crate::daemons::{Daemon, earlier, wait_for};
use crate::directory::{self, Standing};
use crate::site::Site;
use crate::{exit, output};
use proto::diagnostic::{Code, Diagnostic};
use proto::wire::client::{Command, JobSelection};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

const DOWN: CommandDef = CommandDef {
    name: "gridwright down",
    summary: "Ends master, launcher and agent of the cell on this machine. Running jobs go on unless --kill-jobs is given.",
    operand_placeholder: "",
    operands: Operands::None,
    options: &[
        with("--dir", Values::One, "DIR", "state directory (default: $GRIDWRIGHT_DIR, else per user)"),
        flag("--kill-jobs", "delete all jobs first and wait until they are gone"),
        flag("-help", "print this help"),
        flag("--help", "print this help"),
    ],
    exit_codes: "0 nothing of the cell runs here any more; 1 something does, the message says what",
};

/// How long one daemon may take to end.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long jobs may take to end with `--kill-jobs`.
const JOB_PATIENCE: Duration = Duration::from_secs(90);

/// Runs `gridwright down`.
pub fn run(words: Vec<String>) -> Outcome {
    let parsed = DOWN.parse(words)?;
    if parsed.has("-help") || parsed.has("--help") {
        output::data(&DOWN.help());
        return Ok(exit::OK);
    }
    let dir = up::directory(&parsed)?;
    if !up::is_cell(&dir) {
        let refusal = Diagnostic::new(Code::UnknownObject, "error: there is no cell").at(dir.display().to_string());
        return Err(refusal.fix("name its state directory with --dir").into());
    }
    check_caller(&dir)?;
    // Its locks and pid files name the daemons of the original.
    if let Standing::Copy(recorded) = directory::standing(&dir) {
        output::data(&format!("nothing runs in {}: it is a copy of {}\n", dir.display(), recorded.path));
        return Ok(exit::OK);
    }
    if parsed.has("--kill-jobs") {
        kill_jobs(&dir)?;
    }
    end_daemons(&dir)?;
    output::data(&format!("cell down in {}\n", dir.display()));
    Ok(exit::OK)
}

/// Ends the daemons of this machine. What a foreground `up` looks after is not started again.
///
/// # Errors
/// A daemon that does not end.
pub fn end_daemons(dir: &Path) -> Result<(), crate::fail::Fail> {
    // A foreground `up` must not start again what ends now.
    let stop = up::stop_folder(dir);
    let marked = stop.as_ref().is_ok_and(|folder| folder.write(up::STOP_MARK, "", 0o644).is_ok());
    if !earlier::end(dir, PATIENCE) {
        let refusal = Diagnostic::new(Code::SystemRefused, "error: a daemon of an earlier release does not end");
        return Err(refusal.at(dir.display().to_string()).fix("kill it: its jobs and data survive that").into());
    }
    for daemon in [Daemon::Simulated, Daemon::Agent, Daemon::Launcher, Daemon::Master] {
        daemon.end(dir, PATIENCE)?;
    }
    if marked {
        // The next `up` begins afresh; one in the foreground looks ten times a second.
        std::thread::sleep(Duration::from_millis(250));
        let _ = stop.and_then(|folder| folder.remove(up::STOP_MARK));
    }
    Ok(())
}

/// The daemons are root's and their accounts', or one user's: nobody else can end them.
fn check_caller(dir: &Path) -> Result<(), crate::fail::Fail> {
    let owner = std::fs::metadata(dir).map_or(0, |found| found.uid());
    let caller = nix::unistd::geteuid();
    if caller.is_root() || caller.as_raw() == owner {
        return Ok(());
    }
    let name =
        nix::unistd::User::from_uid(owner.into()).ok().flatten().map_or(format!("uid {owner}"), |user| user.name);
    let refusal =
        Diagnostic::new(Code::NotPermitted, "error: this cell is not yours to end").at(dir.display().to_string());
    Err(refusal.why(format!("it belongs to {name}")).fix("run it as that user, or as root").into())
}

fn kill_jobs(dir: &Path) -> Result<(), crate::fail::Fail> {
    let mut client = Client::connect(&Site::at(dir), "gridwright down")?;
    let everybody = JobSelection { users: vec!["*".to_owned()], ..JobSelection::default() };
    client.change(Command::Delete { jobs: everybody, force: false })?;
    let gone = || up::status_of(dir).is_some_and(|status| status.running == 0 && status.pending == 0);
    if wait_for(JOB_PATIENCE, gone) {
        return Ok(());
    }
    let refusal = Diagnostic::new(Code::WrongState, "error: jobs are still running");
    Err(refusal.fix("look with qstat -u '*'; their hosts may be away: qdel -f removes them").into())
}
