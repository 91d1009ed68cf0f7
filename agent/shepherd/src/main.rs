//! `gridwright-shepherd launch`: the launcher of one host.

use gridwright_shepherd::launcher::{self, Options};
use gridwright_shepherd::log;
use nix::unistd::{Group, User};
use proto::program::SHEPHERD;
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
    if let Some(dir) = copy_to_adopt() {
        return end(&dir, launcher::adopt(&dir));
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

/// The directory of `adopt --dir DIR`.
fn copy_to_adopt() -> Option<PathBuf> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.as_slice() {
        [command, option, dir] if command == "adopt" && option == "--dir" => Some(PathBuf::from(dir)),
        _ => None,
    }
}

fn parse(mut args: impl Iterator<Item = String>) -> Result<Options, String> {
    match args.next().as_deref() {
        Some("launch") => {}
        other => return Err(format!("unknown command {:?}", other.unwrap_or_default())),
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
        let value = args.next().ok_or_else(|| format!("{name}: a value is missing"))?;
        match name.as_str() {
            "--dir" => dir = Some(PathBuf::from(value)),
            "--agent-uid" => options.agent_uid = uid(&name, &value)?,
            "--agent-gid" => options.agent_gid = Some(gid(&name, &value)?),
            "--log-file" => options.log_file = Some(PathBuf::from(value)),
            "--fd" => options.fd = Some(number(&name, &value)?),
            _ => return Err(format!("unknown option {name:?}")),
        }
    }
    options.dir = dir.ok_or("--dir is missing")?;
    Ok(options)
}

fn number<T: std::str::FromStr>(name: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|_| format!("{name}: {value:?} is not a number"))
}

/// A user by number or name. The name service is asked once, before anything is served.
fn uid(option: &str, value: &str) -> Result<u32, String> {
    value.parse().or_else(|_| {
        let user = User::from_name(value).map_err(|errno| format!("{option}: user {value:?}: {errno}"))?;
        user.map(|user| user.uid.as_raw())
            .ok_or_else(|| format!("{option}: there is no user {value:?}"))
    })
}

/// A group by number or name, as [`uid`].
fn gid(option: &str, value: &str) -> Result<u32, String> {
    value.parse().or_else(|_| {
        let group = Group::from_name(value).map_err(|errno| format!("{option}: group {value:?}: {errno}"))?;
        group
            .map(|group| group.gid.as_raw())
            .ok_or_else(|| format!("{option}: there is no group {value:?}"))
    })
}
