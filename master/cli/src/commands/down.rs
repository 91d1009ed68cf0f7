//! `gridwright down`: ends the daemons of the cell on this machine.

use crate::args::{CommandDef, Operands, Values, flag, with};
use crate::client::Client;
use crate::commands::{Outcome, up};
use crate::daemons::{Daemon, wait_for};
use crate::site::Site;
use crate::{exit, output};
use proto::diagnostic::{Code, Diagnostic};
use proto::wire::client::{Command, JobSelection};
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
    if parsed.has("--kill-jobs") {
        kill_jobs(&dir)?;
    }
    // A foreground `up` must not start again what ends now.
    let stop = up::stop_mark(&dir);
    let marked = std::fs::write(&stop, "").is_ok();
    for daemon in [Daemon::Simulated, Daemon::Agent, Daemon::Launcher, Daemon::Master] {
        daemon.end(&dir, PATIENCE)?;
    }
    if marked {
        // The next `up` begins afresh; one in the foreground looks ten times a second.
        std::thread::sleep(Duration::from_millis(250));
        let _ = std::fs::remove_file(&stop);
    }
    output::data(&format!("cell down in {}\n", dir.display()));
    Ok(exit::OK)
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
