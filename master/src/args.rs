//! The command line of `gridwright-master`.

use crate::backup::restore::Moment;
use crate::init::{self, DEFAULT_PORT, Plan};
use crate::verifiers::relay::RelayOptions;
use lexopt::prelude::*;
use proto::id::{EventSeq, HostName, UserName};
use proto::time::Wall;
use std::io;
use std::path::PathBuf;

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Print the help.
    Help,
    /// Make a cell.
    Init(Plan),
    /// Run the master.
    Run(RunOptions),
    /// Replay the log.
    Check {
        /// The state directory.
        dir: PathBuf,
    },
    /// Make a copied cell one of its own.
    Part {
        /// The state directory.
        dir: PathBuf,
        /// The directory that it is a copy of.
        original: String,
    },
    /// Write a backup to standard output.
    Backup {
        /// The state directory.
        dir: PathBuf,
    },
    /// Make the cell of a backup on standard input.
    Restore {
        /// The directory of the new cell.
        dir: PathBuf,
        /// The moment at which it begins.
        moment: Moment,
        /// The user who administers the cell.
        user: UserName,
    },
    /// Run the mailer for a letter on standard input.
    Mail {
        /// The mailers that may be run.
        mailers: Vec<String>,
    },
    /// Run job submission verifiers for the master of another account.
    Verifiers(RelayOptions),
    /// Write what site scripts look for.
    Tree {
        /// The state directory of a host that has joined.
        dir: PathBuf,
        /// The user who administers the host.
        user: UserName,
    },
}

/// How the master is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunOptions {
    /// The state directory.
    pub dir: PathBuf,
    /// Whether to lead a session of its own.
    pub daemon: bool,
    /// Whether to log to the cell's directory.
    pub log_file: bool,
}

/// The options of all subcommands, as far as they were given.
#[derive(Default)]
struct CommandOptions {
    dir: Option<PathBuf>,
    port: Option<u16>,
    slots: Option<u32>,
    host: Option<HostName>,
    original: Option<String>,
    mailers: Vec<String>,
    until_event: Option<u64>,
    until_ms: Option<i64>,
    scripts: Vec<String>,
    master: Option<String>,
    listen: Option<PathBuf>,
    daemon: bool,
    log_file: bool,
}

/// The command line cannot be understood.
#[derive(Debug, thiserror::Error)]
pub enum ArgsError {
    /// An option is unknown, or its value is missing or wrong.
    #[error(transparent)]
    Option(#[from] lexopt::Error),
    /// The first word names no subcommand.
    #[error("no subcommand {0:?}: init, run, check, tree, part, backup, restore, mail or jsv")]
    UnknownSubcommand(String),
    /// A subcommand needs this option.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// The directory has no absolute path.
    #[error("{}: {reason}", dir.display())]
    Directory {
        /// The directory as it was given.
        dir: PathBuf,
        /// The system's reason.
        reason: io::Error,
    },
    /// The value of `--host` is not the name of a host.
    #[error("{0:?} is not a host name")]
    HostName(String),
    /// A restored cell begins at one moment.
    #[error("--until-event and --until-ms exclude each other")]
    TwoMoments,
    /// The environment has a port that is not a number below 65536.
    #[error("SGE_QMASTER_PORT is {0:?}, no port")]
    Port(String),
}

/// Reads the command line.
///
/// # Errors
/// As [`ArgsError`].
pub fn parse(args: impl IntoIterator<Item = std::ffi::OsString>) -> Result<Action, ArgsError> {
    let mut parser = lexopt::Parser::from_args(args);
    let subcommand = match parser.next()? {
        Some(Value(word)) => word.string()?,
        None => return Ok(Action::Help),
        Some(other) => return Err(other.unexpected().into()),
    };
    let allowed: &[&str] = match subcommand.as_str() {
        "init" => &["dir", "port", "slots", "host"],
        "run" => &["dir", "daemon", "log-file"],
        "check" | "tree" | "backup" => &["dir"],
        "restore" => &["dir", "until-event", "until-ms"],
        "part" => &["dir", "original"],
        "mail" => &["mailer"],
        "jsv" => &["script", "for", "listen"],
        other => return Err(ArgsError::UnknownSubcommand(other.to_owned())),
    };
    let Some(given) = options(&mut parser, allowed)? else {
        return Ok(Action::Help);
    };
    if subcommand == "mail" {
        return match given.mailers.is_empty() {
            true => Err(ArgsError::Missing("--mailer PATH")),
            false => Ok(Action::Mail { mailers: given.mailers }),
        };
    }
    if subcommand == "jsv" {
        return Ok(Action::Verifiers(RelayOptions {
            scripts: given.scripts,
            master: given.master.ok_or(ArgsError::Missing("--for ACCOUNT"))?,
            listen: given.listen,
        }));
    }
    let dir = given.dir.clone().ok_or(ArgsError::Missing("--dir DIR"))?;
    let dir = std::path::absolute(&dir).map_err(|reason| ArgsError::Directory { dir, reason })?;
    Ok(match subcommand.as_str() {
        "init" => Action::Init(plan(given, dir)?),
        "run" => Action::Run(RunOptions {
            dir,
            daemon: given.daemon,
            log_file: given.log_file,
        }),
        "part" => Action::Part {
            dir,
            original: given.original.ok_or(ArgsError::Missing("--original PATH"))?,
        },
        "backup" => Action::Backup { dir },
        "restore" => Action::Restore {
            dir,
            moment: moment(&given)?,
            user: this_user(),
        },
        "tree" => Action::Tree { dir, user: this_user() },
        _ => Action::Check { dir },
    })
}

fn options(parser: &mut lexopt::Parser, allowed: &[&str]) -> Result<Option<CommandOptions>, ArgsError> {
    let mut given = CommandOptions::default();
    while let Some(option) = parser.next()? {
        let name = match &option {
            Long("help") | Short('h') => return Ok(None),
            Long(name) if allowed.contains(name) => (*name).to_owned(),
            Long(_) | Short(_) | Value(_) => return Err(option.unexpected().into()),
        };
        match name.as_str() {
            "dir" => given.dir = Some(parser.value()?.into()),
            "port" => given.port = Some(parser.value().and_then(|value| value.parse())?),
            "slots" => given.slots = Some(parser.value().and_then(|value| value.parse())?),
            "host" => {
                let name = parser.value().and_then(|value| value.string())?;
                given.host = Some(proto::hostgroup::host_name(&name).map_err(|_| ArgsError::HostName(name))?);
            }
            "original" => {
                given.original = Some(parser.value().and_then(|value| value.string())?);
            }
            "until-event" => given.until_event = Some(parser.value().and_then(|value| value.parse())?),
            "until-ms" => given.until_ms = Some(parser.value().and_then(|value| value.parse())?),
            "mailer" => given.mailers.push(parser.value().and_then(|value| value.string())?),
            "script" => given.scripts.push(parser.value().and_then(|value| value.string())?),
            "for" => given.master = Some(parser.value().and_then(|value| value.string())?),
            "listen" => given.listen = Some(parser.value()?.into()),
            "daemon" => given.daemon = true,
            _ => given.log_file = true,
        }
    }
    Ok(Some(given))
}

fn moment(given: &CommandOptions) -> Result<Moment, ArgsError> {
    match (given.until_event, given.until_ms) {
        (None, None) => Ok(Moment::Newest),
        (Some(event), None) => Ok(Moment::Event(EventSeq(event))),
        (None, Some(ms)) => Ok(Moment::Time(Wall(ms))),
        (Some(_), Some(_)) => Err(ArgsError::TwoMoments),
    }
}

fn plan(given: CommandOptions, dir: PathBuf) -> Result<Plan, ArgsError> {
    let vmem = init::vmem_of_host(&dir);
    Ok(Plan {
        dir,
        port: given.port.map_or_else(port_of_environment, Ok)?,
        slots: given.slots.unwrap_or_else(init::processors),
        host: given.host.unwrap_or_else(init::this_host),
        user: this_user(),
        vmem,
    })
}

fn port_of_environment() -> Result<u16, ArgsError> {
    match std::env::var("SGE_QMASTER_PORT") {
        Ok(port) if !port.is_empty() => port.parse().map_err(|_| ArgsError::Port(port)),
        Ok(_) | Err(_) => Ok(DEFAULT_PORT),
    }
}

fn this_user() -> UserName {
    let uid = nix::unistd::getuid();
    let user = nix::unistd::User::from_uid(uid).ok().flatten();
    UserName::from(user.map_or_else(|| uid.to_string(), |user| user.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str) -> Result<Action, String> {
        parse(line.split_whitespace().map(Into::into)).map_err(|error| error.to_string())
    }

    #[test]
    fn subcommands_and_options_are_read() {
        let run = RunOptions {
            dir: "/d".into(),
            daemon: true,
            log_file: false,
        };
        assert_eq!(check("run --dir /d --daemon"), Ok(Action::Run(run)));
        assert_eq!(check("check --dir=/d"), Ok(Action::Check { dir: "/d".into() }));
        assert_eq!(
            check("tree --dir /d"),
            Ok(Action::Tree {
                dir: "/d".into(),
                user: this_user()
            })
        );
        let part = Action::Part {
            dir: "/d".into(),
            original: "/a".to_owned(),
        };
        assert_eq!(check("part --dir /d --original /a"), Ok(part));
        let mailers = vec!["/bin/mail".to_owned(), "/bin/mailx".to_owned()];
        let mail = "mail --mailer /bin/mail --mailer /bin/mailx";
        assert_eq!(check(mail), Ok(Action::Mail { mailers }));
        assert_eq!(check("backup --dir /d"), Ok(Action::Backup { dir: "/d".into() }));
        let restore = |moment| Action::Restore {
            dir: "/d".into(),
            moment,
            user: this_user(),
        };
        assert_eq!(check("restore --dir /d"), Ok(restore(Moment::Newest)));
        assert_eq!(
            check("restore --dir /d --until-event 7"),
            Ok(restore(Moment::Event(EventSeq(7))))
        );
        assert_eq!(
            check("restore --dir /d --until-ms 7"),
            Ok(restore(Moment::Time(Wall(7))))
        );
        let jsv = RelayOptions {
            scripts: vec!["/opt/a.sh".to_owned(), "/opt/b.sh".to_owned()],
            master: "gridwright-master".to_owned(),
            listen: Some("/run/x.sock".into()),
        };
        let line = "jsv --for gridwright-master --script /opt/a.sh --script /opt/b.sh --listen /run/x.sock";
        assert_eq!(check(line), Ok(Action::Verifiers(jsv)));
        assert_eq!(check("run --help"), Ok(Action::Help));
        let Ok(Action::Init(plan)) = check("init --dir /d --port 7000 --slots 3 --host Node1") else {
            panic!("init is read")
        };
        assert_eq!((plan.port, plan.slots, plan.host.as_str()), (7000, 3, "node1"));
    }

    #[test]
    fn wrong_command_lines_are_refused() {
        for (line, expected) in [
            ("fly", "no subcommand \"fly\""),
            ("run", "--dir DIR is missing"),
            ("mail", "--mailer PATH is missing"),
            ("jsv --script /opt/a.sh", "--for ACCOUNT is missing"),
            ("run --dir /d --slots 3", "invalid option '--slots'"),
            ("init --dir /d --port 70000", "cannot parse argument"),
            ("init --dir /d --owner-uids 1,2,3", "invalid option '--owner-uids'"),
        ] {
            let message = check(line).unwrap_err();
            assert!(message.starts_with(expected), "{line}: {message}");
        }
    }
}
