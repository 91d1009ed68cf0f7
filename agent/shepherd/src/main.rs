//! `gridwright-shepherd launch`: the launcher of one host.

use gridwright_shepherd::launcher::{self, Options};
use gridwright_shepherd::log;
use nix::errno::Errno;
use nix::unistd::{Group, User};
use proto::program::SHEPHERD;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let first = std::env::args_os().nth(1);
    if let Some(text) = SHEPHERD.answer(
        first.as_ref().and_then(|word| word.to_str()),
        &version::line(SHEPHERD.name),
    ) {
        print!("{text}");
        return ExitCode::SUCCESS;
    }
    if let Err(refusal) = log::check_variable() {
        eprintln!(
            "gridwright-shepherd: {}\n{}",
            refusal.what,
            refusal.detail_lines().join("\n")
        );
        return ExitCode::FAILURE;
    }
    if let Some(dir) = directory_of("adopt") {
        return end(&dir, launcher::adopt(&dir));
    }
    if let Some(dir) = directory_of("hold") {
        return end(&dir, launcher::holder::run(&dir));
    }
    let options = match parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(message) => {
            eprint!("gridwright-shepherd: {message}\n{}", SHEPHERD.help());
            return ExitCode::from(2);
        }
    };
    end(&options.dir, launcher::run(&options))
}

fn end(dir: &Path, outcome: std::io::Result<()>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("gridwright-shepherd: {}: {error}", dir.display());
            ExitCode::FAILURE
        }
    }
}

/// The directory of `COMMAND --dir DIR`.
fn directory_of(wanted: &str) -> Option<PathBuf> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.as_slice() {
        [command, option, dir] if command == wanted && option == "--dir" => Some(PathBuf::from(dir)),
        _ => None,
    }
}

/// The command line of the launcher is wrong.
enum OptionsError {
    UnknownCommand(String),
    UnknownOption(String),
    NoDirectory,
    NoValue(String),
    NotANumber {
        option: String,
        value: String,
    },
    NoUser {
        option: String,
        name: String,
    },
    NoGroup {
        option: String,
        name: String,
    },
    /// The name service gave an error.
    Lookup {
        option: String,
        what: String,
        errno: Errno,
    },
}

impl fmt::Display for OptionsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OptionsError::UnknownCommand(word) => write!(f, "unknown command {word:?}"),
            OptionsError::UnknownOption(word) => write!(f, "unknown option {word:?}"),
            OptionsError::NoDirectory => f.write_str("--dir is missing"),
            OptionsError::NoValue(option) => write!(f, "{option}: a value is missing"),
            OptionsError::NotANumber { option, value } => write!(f, "{option}: {value:?} is not a number"),
            OptionsError::NoUser { option, name } => write!(f, "{option}: there is no user {name:?}"),
            OptionsError::NoGroup { option, name } => write!(f, "{option}: there is no group {name:?}"),
            OptionsError::Lookup { option, what, errno } => write!(f, "{option}: {what}: {errno}"),
        }
    }
}

fn parse(mut args: impl Iterator<Item = String>) -> Result<Options, OptionsError> {
    match args.next().as_deref() {
        Some("launch") => {}
        other => return Err(OptionsError::UnknownCommand(other.unwrap_or_default().to_owned())),
    }
    let mut dir = None;
    let mut options = Options {
        dir: PathBuf::new(),
        agent_uid: nix::unistd::Uid::effective().as_raw(),
        agent_gid: None,
        single_user: false,
        fd: None,
        log_file: None,
    };
    while let Some(name) = args.next() {
        match name.as_str() {
            "--single-user" => {
                options.single_user = true;
                continue;
            }
            "--daemon" => {
                // Fails only for the leader of a process group, which has a session to itself as a
                // rule.
                let _ = nix::unistd::setsid();
                continue;
            }
            _ => {}
        }
        let value = args.next().ok_or_else(|| OptionsError::NoValue(name.clone()))?;
        match name.as_str() {
            "--dir" => dir = Some(PathBuf::from(value)),
            "--agent-uid" => options.agent_uid = uid(&name, &value)?,
            "--agent-gid" => options.agent_gid = Some(gid(&name, &value)?),
            "--log-file" => options.log_file = Some(PathBuf::from(value)),
            "--fd" => options.fd = Some(number(&name, &value)?),
            _ => return Err(OptionsError::UnknownOption(name)),
        }
    }
    options.dir = dir.ok_or(OptionsError::NoDirectory)?;
    Ok(options)
}

fn number<T: std::str::FromStr>(option: &str, value: &str) -> Result<T, OptionsError> {
    value.parse().map_err(|_| OptionsError::NotANumber {
        option: option.to_owned(),
        value: value.to_owned(),
    })
}

/// A user by number or name. The name service is asked once, before anything is served.
fn uid(option: &str, value: &str) -> Result<u32, OptionsError> {
    value.parse().or_else(|_| {
        let (option, name) = (option.to_owned(), value.to_owned());
        match User::from_name(value) {
            Ok(Some(user)) => Ok(user.uid.as_raw()),
            Ok(None) => Err(OptionsError::NoUser { option, name }),
            Err(errno) => Err(OptionsError::Lookup {
                option,
                what: format!("user {name:?}"),
                errno,
            }),
        }
    })
}

/// A group by number or name, as [`uid`].
fn gid(option: &str, value: &str) -> Result<u32, OptionsError> {
    value.parse().or_else(|_| {
        let (option, name) = (option.to_owned(), value.to_owned());
        match Group::from_name(value) {
            Ok(Some(group)) => Ok(group.gid.as_raw()),
            Ok(None) => Err(OptionsError::NoGroup { option, name }),
            Err(errno) => Err(OptionsError::Lookup {
                option,
                what: format!("group {name:?}"),
                errno,
            }),
        }
    })
}
