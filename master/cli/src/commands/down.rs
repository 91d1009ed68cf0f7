//! `gridwright down`: ends the daemons of the cell on this machine.

use crate::accounts;
use crate::args::{CommandDef, Operands, flag};
use crate::cell_address::CellAddress;
use crate::cell_address::place::{self, Purpose};
use crate::client::Client;
use crate::commands::{Outcome, up};
use crate::daemons::{self, Daemon, earlier, wait_for};
use crate::directory::{self, DirectoryRelation};
use crate::fail::Fail;
use crate::{exit, output};
use proto::diagnostic::{Code, Diagnostic};
use proto::wire::client::{Command, JobSelection};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

pub const DOWN: CommandDef = CommandDef {
    name: "gridwright down",
    summary: "Ends master, launcher and agent of the cell on this machine. Running jobs go on unless --kill-jobs is given.",
    operand_placeholder: "",
    operands: Operands::None,
    options: &[
        place::DIR,
        flag(
            "--kill-jobs",
            "end all jobs first and wait; on a host without the master those of the host alone",
        ),
        flag("-help", "print this help"),
        flag("--help", "print this help"),
    ],
    exit_codes: "0 nothing of the cell runs here any more; 1 something does, the message says what",
};

/// How long one daemon may take to end.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long the ends of a host's tasks may take to be known to the master.
const REPORT_PATIENCE: Duration = Duration::from_secs(5);

/// How long jobs may take to end with `--kill-jobs`.
const JOB_PATIENCE: Duration = Duration::from_secs(90);

/// Runs `gridwright down`.
pub fn run(words: Vec<String>) -> Outcome {
    let parsed = DOWN.parse(words)?;
    if parsed.has("-help") || parsed.has("--help") {
        output::data(&DOWN.help());
        return Ok(exit::OK);
    }
    let dir = up::directory(&parsed, Purpose::Use)?;
    if !place::is_cell(&dir) {
        let refusal = Diagnostic::new(Code::UnknownObject, "error: there is no cell").at(dir.display().to_string());
        return Err(refusal.fix("name its state directory with --dir").into());
    }
    check_caller(&dir)?;
    accounts::check_place(&dir)?;
    // Its locks and pid files name the daemons of the original.
    if let DirectoryRelation::Copy(recorded) = directory::relation(&dir) {
        output::data(&format!(
            "nothing runs in {}: it is a copy of {}\n",
            dir.display(),
            recorded.path
        ));
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
pub fn end_daemons(dir: &Path) -> Result<(), Fail> {
    // A foreground `up` must not start again what ends now.
    let stop = up::stop_folder(dir);
    let marked = stop
        .as_ref()
        .is_ok_and(|folder| folder.write(up::STOP_MARK, "", 0o644).is_ok());
    if !earlier::end(dir, PATIENCE) {
        let refusal = Diagnostic::new(
            Code::SystemRefused,
            "error: a daemon of an earlier release does not end",
        );
        return Err(refusal
            .at(dir.display().to_string())
            .fix("kill it: its jobs and data survive that")
            .into());
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

/// The daemons are root's and their accounts', or one user's: nobody else can end them. Root's case
/// is judged by the place.
fn check_caller(dir: &Path) -> Result<(), Fail> {
    let owner = std::fs::metadata(dir).map_or(0, |found| found.uid());
    let caller = nix::unistd::geteuid();
    if caller.is_root() || caller.as_raw() == owner {
        return Ok(());
    }
    let name = nix::unistd::User::from_uid(owner.into())
        .ok()
        .flatten()
        .map_or(format!("uid {owner}"), |user| user.name);
    let refusal =
        Diagnostic::new(Code::NotPermitted, "error: the cell belongs to another user").at(dir.display().to_string());
    Err(refusal
        .why(format!("it belongs to {name}"))
        .fix("run it as that user")
        .into())
}

/// Ends all jobs of the cell on the master's host, and on other hosts the jobs of that host. Does
/// nothing if the cell is down; fails if tasks run here without the daemon that could end them.
fn kill_jobs(dir: &Path) -> Result<(), Fail> {
    let is_master = dir.join("etc/master.toml").exists();
    let asked = if is_master { Daemon::Master } else { Daemon::Agent };
    if asked.is_alive(dir) {
        return if is_master {
            kill_jobs_of_the_cell(dir)
        } else {
            kill_jobs_of_the_host(dir)
        };
    }
    match daemons::running_tasks(dir) {
        0 => Ok(()),
        tasks => {
            let what = format!(
                "error: {tasks} tasks run on this host, and the {} does not",
                asked.name()
            );
            let fix = format!("bring it up first: gridwright up --dir {} --detach", dir.display());
            Err(Diagnostic::new(Code::WrongState, what)
                .at(dir.display().to_string())
                .fix(fix)
                .into())
        }
    }
}

fn kill_jobs_of_the_cell(dir: &Path) -> Result<(), Fail> {
    let mut client = Client::connect(&CellAddress::at(dir), "gridwright down")?;
    let everybody = JobSelection {
        users: vec!["*".to_owned()],
        ..JobSelection::default()
    };
    client.change(Command::Delete {
        jobs: everybody,
        force: false,
    })?;
    let gone = || up::status_of(dir).is_some_and(|status| status.running == 0 && status.pending == 0);
    if wait_for(JOB_PATIENCE, gone) {
        return Ok(());
    }
    let refusal = Diagnostic::new(Code::WrongState, "error: jobs are still running");
    Err(refusal
        .fix("look with qstat -u '*'; their hosts may be away: qdel -f removes them")
        .into())
}

fn kill_jobs_of_the_host(dir: &Path) -> Result<(), Fail> {
    let refuse = |what: &str| Diagnostic::new(Code::SystemRefused, what).at(dir.display().to_string());
    Daemon::end_tasks(dir).map_err(|error| {
        let refusal = refuse("error: the tasks of this host may not be ended by this user").why(error.to_string());
        Fail::from(refusal.fix("run it as root, or as the user the cell runs as"))
    })?;
    if wait_for(JOB_PATIENCE, || daemons::running_tasks(dir) == 0) {
        // A master that is away hears of the ends from the next agent.
        wait_for(REPORT_PATIENCE, || daemons::kept_tasks(dir).next().is_none());
        return Ok(());
    }
    let fix = format!("{} says what keeps them", Daemon::Launcher.log(dir).display());
    Err(refuse("error: tasks still run on this host").fix(fix).into())
}
