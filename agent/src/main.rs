//! The agent daemon of one execution host.
//!
//! The network-facing process of a host: unprivileged, it never starts a job itself. One task, [`driver`], owns the core and
//! performs what it decides; around it [`link`] talks to the master, [`launcher_link`] to the launcher, [`sensors`] and
//! [`reports`] say how the host fares, and [`users`] passes the commands of the host's users on.

mod backoff;
mod clock;
mod config;
mod driver;
mod identity;
mod launcher_link;
mod layout;
mod link;
mod notify;
mod reports;
mod run;
mod sensors;
mod users;

use lexopt::{Arg, Parser, ValueExt};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tracing_subscriber::EnvFilter;

const USAGE: &str = "\
usage: gridwright-agent run --dir DIR [--daemon] [--log-file FILE] [--sensor-user UID:GID|NAME]

  run            the agent of this host, until SIGTERM; jobs go on without it
  --dir DIR      the state directory of the cell on this host
  --daemon       in a session of its own
  --log-file F   append the log to F instead of standard error
  --sensor-user  under whom load sensors run (default: gridwright-sensor)

exit codes: 0 ended as asked, 1 failed, 2 wrong usage
";

/// What ends the program with exit code 1.
#[derive(Debug)]
pub struct Failure(String);

impl Failure {
    /// With the causes of the error behind it.
    pub fn new(error: impl std::error::Error) -> Self {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            text.push_str(&format!(": {error}"));
            cause = error.source();
        }
        Self(text)
    }
}

/// The options that every daemon of this program has.
#[derive(Debug, Default)]
struct Daemon {
    dir: Option<PathBuf>,
    daemon: bool,
    log_file: Option<PathBuf>,
}

/// Wrong usage, for exit code 2.
struct Usage(String);

impl From<lexopt::Error> for Usage {
    fn from(error: lexopt::Error) -> Self {
        Self(error.to_string())
    }
}

fn main() -> ExitCode {
    let mut parser = Parser::from_env();
    match dispatch(&mut parser) {
        Ok(Ok(code)) => code,
        Ok(Err(Failure(text))) => {
            eprintln!("gridwright-agent: {text}");
            ExitCode::FAILURE
        }
        Err(Usage(text)) => {
            eprint!("gridwright-agent: {text}\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn dispatch(parser: &mut Parser) -> Result<Result<ExitCode, Failure>, Usage> {
    match parser.next()? {
        Some(Arg::Value(command)) => match command.to_str() {
            Some("run") => run_command(parser),
            Some(_) | None => Err(Usage(format!("unknown command {}", command.display()))),
        },
        Some(Arg::Long("help") | Arg::Short('h')) => {
            print!("{USAGE}");
            Ok(Ok(ExitCode::SUCCESS))
        }
        Some(Arg::Long("version")) => {
            println!("gridwright-agent {}", env!("CARGO_PKG_VERSION"));
            Ok(Ok(ExitCode::SUCCESS))
        }
        Some(argument) => Err(argument.unexpected().into()),
        None => Err(Usage("a command is missing".to_owned())),
    }
}

fn run_command(parser: &mut Parser) -> Result<Result<ExitCode, Failure>, Usage> {
    let (mut daemon, mut sensor_user) = (Daemon::default(), None);
    while let Some(argument) = parser.next()? {
        match argument {
            Arg::Long("sensor-user") => sensor_user = Some(parser.value()?.string()?),
            Arg::Long("dir") => daemon.dir = Some(parser.value()?.into()),
            Arg::Long("daemon") => daemon.daemon = true,
            Arg::Long("log-file") => daemon.log_file = Some(parser.value()?.into()),
            Arg::Short(_) | Arg::Long(_) | Arg::Value(_) => return Err(argument.unexpected().into()),
        }
    }
    let options = run::Options { dir: dir_of(&daemon)?, sensor_user };
    Ok(begin(&daemon).and_then(|()| run::run(&options)).map(|()| ExitCode::SUCCESS))
}

fn dir_of(daemon: &Daemon) -> Result<PathBuf, Usage> {
    daemon.dir.clone().ok_or_else(|| Usage("--dir is missing".to_owned()))
}

/// What comes before a daemon does anything: its session and its log.
fn begin(daemon: &Daemon) -> Result<(), Failure> {
    if daemon.daemon {
        // Fails only for the leader of a process group, which has a session to itself as a rule.
        let _ = nix::unistd::setsid();
    }
    start_log(daemon.log_file.as_deref())
}

fn start_log(file: Option<&Path>) -> Result<(), Failure> {
    let filter = EnvFilter::try_from_env("GRIDWRIGHT_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).with_target(false);
    match file {
        None => log.with_writer(std::io::stderr).init(),
        Some(path) => {
            let opened = std::fs::OpenOptions::new().create(true).append(true).open(path);
            let file = opened.map_err(|error| Failure(format!("cannot write {}: {error}", path.display())))?;
            log.with_writer(std::sync::Mutex::new(file)).init();
        }
    }
    Ok(())
}

/// A number that no other start of an agent has.
fn random() -> u128 {
    let mut bytes = [0; 16];
    let read = std::fs::File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut bytes));
    match read {
        Ok(()) => u128::from_ne_bytes(bytes),
        // Without a source of randomness the clock and the process have to do: starts of one host are told apart by them.
        Err(_) => (u128::from(clock::boot_ms()) << 64) | u128::from(std::process::id()),
    }
}

/// How many processors this process may use.
fn processors() -> u32 {
    std::thread::available_parallelism().map_or(1, |count| u32::try_from(count.get()).unwrap_or(u32::MAX))
}
