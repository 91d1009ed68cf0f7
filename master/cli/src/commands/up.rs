//! `gridwright up`: a whole cluster on this machine in one command.

pub mod copy;
mod reach;
mod reporting;
mod restarts;
mod signals;
mod watching;

use crate::accounts::{self, RecordedAccounts};
use crate::args::{CommandDef, CommandLine, Operands, ValueCount, flag, with};
use crate::cell_address::CellAddress;
use crate::cell_address::place::{self, Purpose, is_cell};
use crate::client::Client;
use crate::commands::Outcome;
use crate::daemons::{self, Daemon, POLL, State, earlier};
use crate::fail::Fail;
use crate::folder::Folder;
use crate::keys::{self, OpenKey};
use crate::{exit, output};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::HostName;
use proto::wire::client::Query;
use proto::wire::view::{CellStatus, Data};
use reporting::HostReports;
use restarts::Restarts;
use signals::Signals;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

pub const UP: CommandDef = CommandDef {
    name: "gridwright up",
    summary: "Brings up a cell on this machine: creates it if it is new, starts master, launcher and agent. Without --detach it stays \
              in the foreground, restarts what dies, and Ctrl-C ends the daemons; running jobs go on.",
    operand_placeholder: "",
    operands: Operands::None,
    options: &[
        place::DIR,
        with(
            "--slots",
            ValueCount::One,
            "N",
            "slots of this host in a new cell, and of each simulated host (default: processors)",
        ),
        with(
            "--sim-hosts",
            ValueCount::One,
            "N",
            "run N more hosts that only pretend to run jobs",
        ),
        with(
            "--sim-load",
            ValueCount::One,
            "FILE",
            "load values of the simulated hosts, name=value a line",
        ),
        with(
            "--port",
            ValueCount::One,
            "PORT",
            "UDP port of a new cell (default: $SGE_QMASTER_PORT if it is of this cell, else 6444, else a free one)",
        ),
        flag(
            "--as-copy",
            "make a copied directory a cell of its own: no job runs, queues disabled, another port",
        ),
        flag(
            "--as-original",
            "take the place of the original, which is gone: a restored backup, a new disk",
        ),
        flag(
            "--detach",
            "return when the first load report is in; a daemon that dies later stays down (the systemd units restart it)",
        ),
        with(
            "--wait",
            ValueCount::One,
            "SECONDS",
            "how long the first load report may take (default: 60)",
        ),
        flag("-help", "print this help"),
        flag("--help", "print this help"),
    ],
    exit_codes: "0 the cell is up; 1 it is not, the message says why; 2 wrong option",
};

/// How long the first load report may take where `--wait` does not say, also on a machine that is
/// busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// The most simulated hosts of a cell, as the master has it.
const SIMULATED_MAX: u32 = 9_999;

/// How long a daemon may take to end that was started for a cell which did not come up.
const END_PATIENCE: Duration = Duration::from_secs(20);

/// Runs `gridwright up`.
pub fn run(words: Vec<String>) -> Outcome {
    let parsed = UP.parse(words.clone())?;
    if parsed.has("-help") || parsed.has("--help") {
        output::data(&UP.help());
        return Ok(exit::OK);
    }
    daemons::check_environment()?;
    let dir = directory(&parsed, Purpose::Make)?;
    accounts::check_place(&dir)?;
    if parsed.has("--as-original") {
        copy::replace_original(&dir)?;
    }
    let original = copy::original_of(&dir, parsed.has("--as-copy"))?;
    if original.is_some() {
        copy::forget_processes(&dir);
    }
    reach::check(&dir)?;
    let mut cell = Cell::new(&parsed)?;
    go_where_all_reach_us("up", &dir, words)?;
    let mut signals = Signals::catch()?;
    cell.create_if_new(&parsed)?;
    match original {
        Some(original) => copy::part(&cell, &original, &parsed)?,
        None => copy::follow_move(&cell.dir)?,
    }
    let status = cell.bring_up(&mut signals)?;
    output::data(&format!(
        "cell up in {}: master {} udp/{}, {} of {} hosts report\nuse it: eval \"$(gridwright env --dir {})\"\n",
        cell.dir.display(),
        status.host,
        status.port,
        status.hosts_reporting,
        status.hosts,
        cell.dir.display()
    ));
    super::doctor::warn(&cell.dir);
    if parsed.has("--detach") {
        return Ok(exit::OK);
    }
    output::note(
        "in the foreground: Ctrl-C ends the daemons of the cell, and running jobs go on (--detach returns at once)",
    );
    cell.watch(&mut signals)
}

/// Goes on as the same command in a place that the daemons' accounts can reach, if this one is
/// closed to them.
///
/// # Errors
/// If the programs cannot be put or started there.
pub fn go_where_all_reach_us(verb: &str, dir: &Path, words: Vec<String>) -> Result<(), Fail> {
    accounts::check_place(dir)?;
    let own = daemons::program("gridwright")?;
    let reachable = crate::programs::reachable(dir, &["bin", "programs"])?.join("gridwright");
    let is_same = std::fs::canonicalize(&own).ok() == std::fs::canonicalize(&reachable).ok();
    if is_same {
        return Ok(());
    }
    let error = Command::new(&reachable).arg(verb).args(words).exec();
    let refusal = Diagnostic::new(
        Code::SystemRefused,
        "error: cannot start the programs where everybody reaches them",
    );
    Err(refusal
        .at(reachable.display().to_string())
        .why(error.to_string())
        .into())
}

/// A number given to an option.
fn number(parsed: &CommandLine, name: &str) -> Result<Option<u32>, Fail> {
    let Some(text) = parsed.value(name) else {
        return Ok(None);
    };
    text.parse().map(Some).map_err(|_| {
        Fail::bad_value(format!("gridwright up: {name} {text} is not a number")).fix("give a whole number")
    })
}

/// The state directory that is meant, with an absolute path.
///
/// # Errors
/// The path is relative and there is no current directory.
pub fn directory(parsed: &CommandLine, purpose: Purpose) -> Result<PathBuf, Fail> {
    let dir = place::directory(parsed.value("--dir"), purpose);
    std::path::absolute(&dir).map_err(|error| {
        let refusal = Diagnostic::new(Code::SystemRefused, "error: the state directory has no absolute path");
        refusal
            .at(dir.display().to_string())
            .why(error.to_string())
            .fix("name one with --dir")
            .into()
    })
}

/// The cell that is brought up.
struct Cell {
    dir: PathBuf,
    accounts: Option<RecordedAccounts>,
    simulated: u32,
    sim_args: Vec<String>,
    children: Vec<(Daemon, Child)>,
    patience: Duration,
    /// When the agent was started, if this command did it.
    agent_started: Option<Instant>,
    restarts: Restarts,
}

impl Cell {
    fn new(parsed: &CommandLine) -> Result<Self, Fail> {
        let dir = directory(parsed, Purpose::Make)?;
        let simulated = number(parsed, "--sim-hosts")?.unwrap_or(0);
        if simulated > SIMULATED_MAX {
            let what = format!("gridwright up: --sim-hosts {simulated} is too many");
            return Err(Fail::bad_value(what).fix(format!("at most {SIMULATED_MAX}")));
        }
        if number(parsed, "--slots")? == Some(0) {
            return Err(
                Fail::bad_value("gridwright up: --slots 0 would leave no room for a job").fix("give at least 1"),
            );
        }
        if let Some((file, error)) = parsed
            .value("--sim-load")
            .and_then(|file| Some((file, std::fs::File::open(file).err()?)))
        {
            let refusal = Diagnostic::new(
                Code::SystemRefused,
                "error: the load values of --sim-load cannot be read",
            );
            return Err(refusal
                .at(file)
                .why(error.to_string())
                .fix("name a file with name=value lines")
                .into());
        }
        let mut sim_args = Vec::new();
        for (option, argument) in [("--slots", "--slots"), ("--sim-load", "--load")] {
            if let Some(value) = parsed.value(option) {
                sim_args.extend([argument.to_owned(), value.to_owned()]);
            }
        }
        Ok(Self {
            simulated,
            sim_args,
            ..Self::at(&dir, patience(parsed, "gridwright up")?)
        })
    }

    /// What is there already.
    fn at(dir: &Path, patience: Duration) -> Self {
        Self {
            dir: dir.to_owned(),
            accounts: None,
            simulated: 0,
            sim_args: Vec::new(),
            children: Vec::new(),
            patience,
            agent_started: None,
            restarts: Restarts::default(),
        }
    }

    fn create_if_new(&mut self, parsed: &CommandLine) -> Result<(), Fail> {
        if !is_cell(&self.dir) {
            let mut command = Command::new(daemons::program("gridwright-master")?);
            command.arg("init").arg("--dir").arg(&self.dir);
            if let Some(slots) = parsed.value("--slots") {
                command.args(["--slots", slots]);
            }
            let wanted = parsed.value("--port").map(str::to_owned);
            let wanted = wanted.or_else(|| place::port_of_environment(&self.dir));
            command.args(["--port", &free_port(wanted)?.to_string()]);
            run_init(command, &self.dir)?;
            reach::warn_of_localhost();
            output::note(
                "new cell: no load thresholds and no load adjustments are set; set them with qconf -mq and qconf -msconf",
            );
        } else if !parsed.has("--as-copy") {
            reach::warn_of_port(&self.dir, parsed.value("--port"));
        }
        self.settle_accounts()
    }

    /// Root gives the daemons accounts of their own.
    fn settle_accounts(&mut self) -> Result<(), Fail> {
        if let Some((daemon, pid)) = earlier::living(&self.dir) {
            let what = format!(
                "error: the {} of an earlier release runs here as process {pid}",
                daemon.name()
            );
            let fix = format!(
                "end it first, its jobs go on: gridwright down --dir {}",
                self.dir.display()
            );
            return Err(Diagnostic::new(Code::WrongState, what)
                .at(self.dir.display().to_string())
                .fix(fix)
                .into());
        }
        for OpenKey { path, mode } in keys::close(&self.dir)? {
            let advice =
                "a user who has read it can go on using it: gridwright host revoke HOST ends that for a host key";
            output::note(&format!(
                "{} had rights {mode:o} and has none for others now; {advice}",
                path.display()
            ));
        }
        if nix::unistd::getuid().is_root() {
            let recorded = RecordedAccounts::read_or_choose(&self.dir)?;
            recorded.hand_over(&self.dir)?;
            self.accounts = Some(recorded);
        }
        Ok(())
    }

    /// Starts the daemons that are gone.
    fn start(&mut self) -> Result<(), Fail> {
        self.gone().into_iter().try_for_each(|daemon| self.spawn(daemon))
    }

    /// The daemons that are gone and that this command has not started already: one that has just
    /// been started has no lock yet.
    fn gone(&self) -> Vec<Daemon> {
        let is_ours = |daemon: Daemon| self.children.iter().any(|(ours, _)| *ours == daemon);
        // Simulated hosts ask the master for their certificates.
        let has_master = || Daemon::Master.is_alive(&self.dir) && self.status().is_some();
        let may_start = |daemon: Daemon| daemon != Daemon::Simulated || has_master();
        let is_gone =
            |daemon: &Daemon| !is_ours(*daemon) && daemon.state(&self.dir) == State::Gone && may_start(*daemon);
        self.daemons().into_iter().filter(is_gone).collect()
    }

    /// The daemons of this machine, in the order of their start: a host that joined has no master.
    fn daemons(&self) -> Vec<Daemon> {
        let mut daemons = vec![Daemon::Launcher, Daemon::Agent];
        if self.dir.join("etc/master.toml").exists() {
            daemons.insert(0, Daemon::Master);
        }
        if self.simulated > 0 {
            daemons.push(Daemon::Simulated);
        }
        daemons
    }

    fn spawn(&mut self, daemon: Daemon) -> Result<(), Fail> {
        self.restarts.note_start(daemon, Instant::now());
        let dir = self.dir.display().to_string();
        let accounts = self.accounts.map(RecordedAccounts::daemons);
        let agent = accounts.map(|accounts| (accounts.agent.to_string(), accounts.group.to_string()));
        let sensor = self.accounts.map(RecordedAccounts::sensor_user);
        let mut args = match daemon {
            Daemon::Master | Daemon::Agent => vec!["run", "--dir", &dir, "--daemon"],
            Daemon::Launcher => vec!["launch", "--dir", &dir, "--daemon"],
            Daemon::Simulated => vec!["sim", "--dir", &dir, "--daemon", "--count"],
        };
        let count = self.simulated.to_string();
        match (daemon, &agent, &sensor) {
            (Daemon::Launcher, Some((uid, gid)), _) => args.extend(["--agent-uid", uid, "--agent-gid", gid]),
            (Daemon::Launcher, None, _) => args.push("--single-user"),
            (Daemon::Agent, _, Some(user)) => args.extend(["--sensor-user", user]),
            (Daemon::Simulated, _, _) => {
                args.push(&count);
                args.extend(self.sim_args.iter().map(String::as_str));
            }
            (Daemon::Master | Daemon::Agent, _, _) => {}
        }
        let account = accounts.and_then(|accounts| match daemon {
            Daemon::Master => Some((accounts.master, accounts.group)),
            Daemon::Agent => Some((accounts.agent, accounts.group)),
            // Simulated hosts ask the master for their certificates over its socket, as a manager;
            // the launcher runs jobs.
            Daemon::Launcher | Daemon::Simulated => None,
        });
        let child = daemons::spawn(daemon, &self.dir, &args, account)?;
        self.children.push((daemon, child));
        if daemon == Daemon::Agent {
            self.agent_started = Some(Instant::now());
        }
        Ok(())
    }

    /// Waits until the cell is up; where it does not come up, what was started for it is ended
    /// again.
    fn bring_up(&mut self, signals: &mut Signals) -> Result<CellStatus, Fail> {
        let outcome = self.wait_until_reporting(signals);
        if outcome.is_err() {
            self.end_started();
        }
        outcome
    }

    /// Ends the daemons that this command has started and that live, the last one first.
    fn end_started(&mut self) {
        for (_, child) in self.children.iter_mut().rev() {
            if matches!(child.try_wait(), Ok(None)) {
                // A child that was not waited for: the number is nobody else's.
                let _ = kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGTERM);
            }
        }
        for (_, child) in &mut self.children {
            if !daemons::wait_for(END_PATIENCE, || !matches!(child.try_wait(), Ok(None))) {
                let _ = child.kill().and_then(|()| child.wait());
            }
        }
    }

    /// Starts what does not live, also what ends meanwhile, and waits until this host reports, and
    /// the simulated ones.
    fn wait_until_reporting(&mut self, signals: &mut Signals) -> Result<CellStatus, Fail> {
        let wanted = 1 + self.simulated;
        let end = Instant::now() + self.patience;
        // A `down` that was itself ended may have left it.
        let _ = stop_folder(&self.dir).and_then(|folder| folder.remove(STOP_MARK));
        loop {
            if is_marked(&self.dir) {
                return Err(self.ended_meanwhile());
            }
            self.start()?;
            if let Some(status) = self.reporting(wanted) {
                return Ok(status);
            }
            self.report_deaths()?;
            if Instant::now() >= end {
                return Err(self.not_up(Daemon::Agent));
            }
            if signals.comes_within(POLL) {
                let refusal = Diagnostic::new(Code::WrongState, "error: interrupted: what was started is ended again");
                return Err(refusal
                    .at(self.dir.display().to_string())
                    .fix("repeat the command")
                    .into());
            }
        }
    }

    /// The state of the cell if all daemons live and all hosts report. Nobody is asked before:
    /// where the master is away, an agent keeps questions until it knows that.
    fn reporting(&self, wanted: u32) -> Option<CellStatus> {
        if !self.daemons().iter().all(|daemon| daemon.serves(&self.dir)) {
            return None;
        }
        // A master that has not yet noticed the end of an agent still counts its host.
        let is_in = HostReports::of_directory(&self.dir, self.agent_started).is_some_and(|own| own.is_in() == Ok(true));
        self.status().filter(|status| is_in && status.hosts_reporting >= wanted)
    }

    fn ended_meanwhile(&self) -> Fail {
        let refusal = Diagnostic::new(
            Code::WrongState,
            "error: gridwright down ends the cell that is to come up",
        );
        refusal
            .at(self.dir.display().to_string())
            .fix("repeat one of them, alone")
            .into()
    }

    fn status(&self) -> Option<CellStatus> {
        status_of(&self.dir)
    }

    /// A daemon that ends while the cell comes up is an error; what it said is in its log. Where
    /// another one lives, which somebody else has started at the same time, ours was one too many.
    fn report_deaths(&mut self) -> Result<(), Fail> {
        for (daemon, child) in &mut self.children {
            if let Ok(Some(status)) = child.try_wait()
                && !daemon.is_alive(&self.dir)
            {
                let (name, log) = (daemon.name(), daemon.log(&self.dir));
                let what = format!("error: the {name} ended while the cell came up ({status})");
                let why = tail(&log);
                let fix = reach::remedy(&self.dir, *daemon, &why);
                let refusal = Diagnostic::new(Code::SystemRefused, what).at(log.display().to_string());
                return Err(refusal.why(why).fix(fix).into());
            }
        }
        Ok(())
    }

    fn not_up(&self, daemon: Daemon) -> Fail {
        let host = HostReports::of_directory(&self.dir, None)
            .map(|own| format!(" of host {}", own.host()))
            .unwrap_or_default();
        let what = format!("error: no load report{host} within {} s", self.patience.as_secs());
        let log = daemon.log(&self.dir);
        let fix = format!(
            "gridwright doctor --dir {} examines this host; the log is {}",
            self.dir.display(),
            log.display()
        );
        Diagnostic::new(Code::NoMaster, what)
            .at(self.dir.display().to_string())
            .why(self.why_not(daemon))
            .fix(fix)
            .into()
    }

    /// What keeps this host from reporting: a daemon that does not live, the master's refusal, or
    /// the last words in the log.
    fn why_not(&self, daemon: Daemon) -> String {
        for daemon in self.daemons() {
            match daemon.state(&self.dir) {
                State::Alive => {}
                State::Ending => return format!("the {} was killed and has not ended yet", daemon.name()),
                State::Gone => return format!("the {} does not run. {}", daemon.name(), tail(&daemon.log(&self.dir))),
            }
        }
        let refusal = HostReports::of_directory(&self.dir, None).and_then(|own| own.is_in().err());
        let words = tail(&daemon.log(&self.dir));
        match refusal {
            Some(refusal) if words.is_empty() => refusal.to_string(),
            Some(_) | None => words,
        }
    }
}

/// The file by which `gridwright down` says that what ends is not to be started again.
pub const STOP_MARK: &str = "down";

/// Where that file is: where root alone makes files, or the one user whose cell it is.
///
/// # Errors
/// Errors of the file system.
pub fn stop_folder(dir: &Path) -> std::io::Result<Folder> {
    Folder::below(dir, &["run"])?.make("launcher", 0o755)
}

fn is_marked(dir: &Path) -> bool {
    stop_folder(dir).is_ok_and(|folder| folder.has(STOP_MARK))
}

/// Starts the daemons of a directory that is a cell already and waits for the first load report.
///
/// # Errors
/// If a daemon does not start or no report comes.
pub fn start_existing(dir: &Path, patience: Duration) -> Result<CellStatus, Fail> {
    let mut cell = Cell::at(dir, patience);
    cell.settle_accounts()?;
    cell.bring_up(&mut Signals::catch()?)
}

/// How long `--wait` says that the first load report may take.
///
/// # Errors
/// If it is no number of seconds.
pub fn patience(parsed: &CommandLine, command: &str) -> Result<Duration, Fail> {
    let Some(text) = parsed.value("--wait") else {
        return Ok(PATIENCE);
    };
    let seconds = text
        .parse::<u32>()
        .map_err(|_| Fail::bad_value(format!("{command}: --wait {text} is not a number")).fix("give whole seconds"))?;
    Ok(Duration::from_secs(seconds.into()))
}

/// The name that the cell has for the host whose state directory is `dir`.
pub fn host_of(dir: &Path) -> Option<HostName> {
    HostReports::of_directory(dir, None).map(|own| own.host().clone())
}

/// Whether the master has a load report of the host whose state directory is `dir`.
///
/// # Errors
/// Why the master could not be asked, or its refusal.
pub fn has_reported(dir: &Path) -> Result<bool, Diagnostic> {
    HostReports::of_directory(dir, None).map_or(Ok(false), |own| own.is_in())
}

/// The state of the cell, if its master answers.
pub fn status_of(dir: &Path) -> Option<CellStatus> {
    let reply = Client::connect(&CellAddress::at(dir), "gridwright")
        .ok()?
        .query(Query::Status)
        .ok()?;
    match reply.data {
        Some(Data::Status(status)) => Some(*status),
        _ => None,
    }
}

/// The last line of a log.
fn tail(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    text.lines()
        .rev()
        .find(|line| !line.trim().is_empty())
        .unwrap_or_default()
        .to_owned()
}

fn run_init(mut command: Command, dir: &Path) -> Result<(), Fail> {
    let refuse = |why: String| {
        let refusal = Diagnostic::new(Code::SystemRefused, "error: the cell cannot be created");
        Fail::from(
            refusal
                .at(dir.display().to_string())
                .why(why)
                .fix("name a new directory that you may write with --dir"),
        )
    };
    let made = command.output().map_err(|error| refuse(error.to_string()))?;
    if made.status.success() {
        Ok(())
    } else {
        Err(refuse(String::from_utf8_lossy(&made.stderr).trim().to_owned()))
    }
}

/// The port of a new cell, which must be free: a cell remembers its port.
fn free_port(wanted: Option<String>) -> Result<u16, Fail> {
    let port = port(wanted)?;
    match std::net::UdpSocket::bind(("0.0.0.0", port)) {
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
            let refusal = Diagnostic::new(
                Code::SystemRefused,
                format!("error: udp port {port} is in use, no cell is created"),
            );
            Err(refusal
                .why(error.to_string())
                .fix("name another one with --port; --port 0 takes any that is free")
                .into())
        }
        // Whatever else is wrong, the master says.
        Ok(_) | Err(_) => Ok(port),
    }
}

/// The port that is asked for; else 6444 if it is free, else any free one. `0` asks for any free
/// one.
fn port(wanted: Option<String>) -> Result<u16, Fail> {
    let parse = |text: String| {
        text.parse().map_err(|_| {
            Fail::bad_value(format!("gridwright up: {text} is not a UDP port"))
                .fix("give a number from 1 to 65535, or 0 for a free one")
        })
    };
    let candidates = match wanted.map(parse).transpose()? {
        Some(0) => vec![0],
        Some(port) => return Ok(port),
        None => vec![6444, 0],
    };
    let bound = candidates
        .into_iter()
        .find_map(|port| std::net::UdpSocket::bind(("0.0.0.0", port)).ok());
    let port = bound
        .and_then(|socket| socket.local_addr().ok())
        .map(|address| address.port());
    port.ok_or_else(|| {
        Diagnostic::new(Code::SystemRefused, "error: no free UDP port")
            .fix("name one with --port")
            .into()
    })
}
