//! The agent daemon of one execution host.
//!
//! The network-facing process of a host: unprivileged, it never starts a job itself. One task,
//! [`driver`], owns the core and performs what it decides; around it [`link`] talks to the master,
//! [`launcher_link`] to the launcher, [`sensors`] and [`reports`] say how the host fares, and
//! [`users`] passes the commands of the host's users on.

#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod backoff;
mod clock;
mod config;
mod directory;
mod disk;
mod driver;
mod identity;
mod join;
mod launcher_link;
mod launcher_process;
mod layout;
mod link;
mod load_check;
mod messages;
mod notify;
mod reports;
mod run;
mod sensor_check;
mod sensors;
mod sim;
mod slaves;
mod users;

use ::sensors::check::CellFacts;
use lexopt::{Arg, Parser, ValueExt};
use proto::diagnostic::Diagnostic;
use proto::program::AGENT;
use std::io::{BufRead, Read};
use std::path::PathBuf;
use std::process::ExitCode;

/// Bytes of facts about the cell that are read: a million hosts have fewer.
const FACTS_MAX: u64 = 64 << 20;

/// More than any token has.
const TOKEN_BYTES: u64 = 64 << 10;

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

    /// In these words.
    pub fn text(text: String) -> Self {
        Self(text)
    }

    /// A refusal with its remedy, a line each.
    pub fn refusal(refusal: &Diagnostic) -> Self {
        let mut lines = vec![refusal.what.clone()];
        lines.extend(refusal.detail_lines());
        Self(lines.join("\n"))
    }
}

/// Wrong usage, for exit code 2.
struct Usage(String);

impl From<lexopt::Error> for Usage {
    fn from(error: lexopt::Error) -> Self {
        Self(error.to_string())
    }
}

/// The name of the program below `utilbin`, and the command.
const LOAD_CHECK: &str = "loadcheck";

/// The words behind `loadcheck`. `None` if that is not what is called.
fn load_check_words() -> Option<Vec<String>> {
    let mut words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    let called_as = words.next()?;
    let is_meant = called_as.rsplit('/').next() == Some(LOAD_CHECK) || words.next()? == LOAD_CHECK;
    is_meant.then(|| words.collect())
}

fn main() -> ExitCode {
    if let Some(words) = load_check_words() {
        return ExitCode::from(load_check::run(&words));
    }
    let first = std::env::args_os().nth(1);
    if let Some(text) = AGENT.answer(
        first.as_ref().and_then(|word| word.to_str()),
        &version::line(AGENT.name),
    ) {
        print!("{text}");
        return ExitCode::SUCCESS;
    }
    let mut parser = Parser::from_env();
    match dispatch(&mut parser) {
        Ok(Ok(code)) => code,
        Ok(Err(Failure(text))) => {
            eprintln!("gridwright-agent: {text}");
            ExitCode::FAILURE
        }
        Err(Usage(text)) => {
            eprint!("gridwright-agent: {text}\n{}", AGENT.help());
            ExitCode::from(2)
        }
    }
}

fn dispatch(parser: &mut Parser) -> Result<Result<ExitCode, Failure>, Usage> {
    match parser.next()? {
        Some(Arg::Value(command)) => match command.to_str() {
            Some("run") => run_command(CommandOptions::parse(parser)?),
            Some("sim") => sim_command(CommandOptions::parse(parser)?),
            Some("join") => join_command(CommandOptions::parse(parser)?),
            Some("sensor-check") => sensor_check_command(CommandOptions::parse(parser)?),
            Some(_) | None => Err(Usage(format!("unknown command {}", command.display()))),
        },
        Some(argument) => Err(argument.unexpected().into()),
        None => Err(Usage("a command is missing".to_owned())),
    }
}

/// What stands behind the command.
#[derive(Debug, Default)]
struct CommandOptions {
    dir: Option<PathBuf>,
    daemon: bool,
    log_file: Option<PathBuf>,
    sensor_user: Option<String>,
    user: Option<String>,
    count: Option<u32>,
    slots: Option<u32>,
    load: Option<PathBuf>,
    host: Option<String>,
    deadline: Option<u32>,
    cell_facts: bool,
    words: Vec<String>,
}

impl CommandOptions {
    fn parse(parser: &mut Parser) -> Result<Self, Usage> {
        let mut given = Self::default();
        while let Some(argument) = parser.next()? {
            match argument {
                Arg::Long("dir") => given.dir = Some(parser.value()?.into()),
                Arg::Long("daemon") => given.daemon = true,
                Arg::Long("log-file") => given.log_file = Some(parser.value()?.into()),
                Arg::Long("sensor-user") => given.sensor_user = Some(parser.value()?.string()?),
                Arg::Long("user") => given.user = Some(parser.value()?.string()?),
                Arg::Long("count") => given.count = Some(parser.value()?.parse()?),
                Arg::Long("slots") => given.slots = Some(parser.value()?.parse()?),
                Arg::Long("load") => given.load = Some(parser.value()?.into()),
                Arg::Long("host") => given.host = Some(parser.value()?.string()?),
                Arg::Long("cell-facts") => given.cell_facts = true,
                Arg::Long("deadline") => given.deadline = Some(parser.value()?.parse()?),
                Arg::Value(word) => given.words.push(word.string()?),
                Arg::Short(_) | Arg::Long(_) => return Err(argument.unexpected().into()),
            }
        }
        Ok(given)
    }

    fn dir(&self) -> Result<PathBuf, Usage> {
        self.dir.clone().ok_or_else(|| Usage("--dir is missing".to_owned()))
    }

    /// The words behind the command, which must be that many.
    fn words<const N: usize>(&self, names: &str) -> Result<[String; N], Usage> {
        self.words
            .clone()
            .try_into()
            .map_err(|_| Usage(format!("expected {names}")))
    }
}

fn run_command(given: CommandOptions) -> Result<Result<ExitCode, Failure>, Usage> {
    given.words::<0>("no argument")?;
    let options = run::RunOptions {
        dir: given.dir()?,
        sensor_user: given.sensor_user.clone(),
    };
    Ok(begin(&given)
        .and_then(|()| run::run(&options))
        .map(|()| ExitCode::SUCCESS))
}

fn sim_command(given: CommandOptions) -> Result<Result<ExitCode, Failure>, Usage> {
    given.words::<0>("no argument")?;
    let count = given.count.ok_or_else(|| Usage("--count is missing".to_owned()))?;
    let options = sim::SimOptions {
        dir: given.dir()?,
        count,
        slots: given.slots,
        load: given.load.clone(),
    };
    Ok(begin(&given)
        .and_then(|()| sim::run(&options))
        .map(|()| ExitCode::SUCCESS))
}

fn join_command(given: CommandOptions) -> Result<Result<ExitCode, Failure>, Usage> {
    let [master, token] = given.words("MASTER TOKEN")?;
    let dir = given.dir()?;
    let joined = token_of(token).and_then(|token| {
        join::run(&join::JoinOptions {
            master,
            token,
            dir,
            host: given.host.clone(),
        })
        .map(|()| ExitCode::SUCCESS)
    });
    Ok(joined)
}

/// The token as it was given; `-` is the first line of standard input, which no other user of the
/// machine sees.
fn token_of(word: String) -> Result<String, Failure> {
    if word != "-" {
        return Ok(word);
    }
    let mut line = String::new();
    let read = std::io::stdin().lock().take(TOKEN_BYTES).read_line(&mut line);
    read.map_err(|error| Failure(format!("cannot read the token from standard input: {error}")))?;
    Ok(line.trim().to_owned())
}

fn sensor_check_command(given: CommandOptions) -> Result<Result<ExitCode, Failure>, Usage> {
    if given.words.is_empty() {
        return Err(Usage("expected SCRIPT".to_owned()));
    }
    let dir = given
        .dir
        .clone()
        .or_else(|| std::env::var_os("SGE_ROOT").map(PathBuf::from));
    let options = sensor_check::SensorCheckOptions {
        sensor: given.words.join(" "),
        dir: dir.unwrap_or_else(|| "/var/lib/gridwright".into()),
        user: given.user,
        deadline_s: given.deadline,
        cell: if given.cell_facts { Some(cell_facts()?) } else { None },
    };
    Ok(sensor_check::run(&options))
}

/// Reads the facts about the cell from standard input.
fn cell_facts() -> Result<CellFacts, Usage> {
    let mut text = String::new();
    let read = std::io::stdin().lock().take(FACTS_MAX).read_to_string(&mut text);
    read.map_err(|error| Usage(format!("cannot read the facts about the cell: {error}")))?;
    Ok(CellFacts::parse(&text))
}

/// What comes before a daemon does anything: its session and its log.
fn begin(given: &CommandOptions) -> Result<(), Failure> {
    if given.daemon {
        // Fails only for the leader of a process group, which has a session to itself as a rule.
        let _ = nix::unistd::setsid();
    }
    logging::start(given.log_file.as_deref()).map_err(|refusal| Failure::refusal(&refusal))
}

/// A number that nobody has drawn before.
fn random() -> u128 {
    let mut bytes = [0; 16];
    let read = std::fs::File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut bytes));
    match read {
        Ok(()) => u128::from_ne_bytes(bytes),
        // Without a source of randomness the clock and the process have to do.
        Err(_) => (u128::from(clock::boot_ms()) << 64) | u128::from(std::process::id()),
    }
}

/// How many processors this process may use.
fn processors() -> u32 {
    std::thread::available_parallelism().map_or(1, |count| u32::try_from(count.get()).unwrap_or(u32::MAX))
}
