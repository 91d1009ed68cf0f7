//! `gridwright-shepherd launch`: the launcher of one host.

use gridwright_shepherd::launcher::{self, Options};
use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "\
usage: gridwright-shepherd launch --dir DIR [--agent-uid N] [--agent-gid N] [--single-user] [--fd N]

  --dir DIR      the state directory; tasks are kept in DIR/tasks, the socket is DIR/run/launcher.sock
  --agent-uid N  the only uid that may give orders (default: this process's own)
  --agent-gid N  the group that may read what tasks leave behind
  --single-user  run every task as this process's own user
  --fd N         take orders on this inherited socket as well
";

fn main() -> ExitCode {
    let options = match parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(message) => {
            eprint!("gridwright-shepherd: {message}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match launcher::run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("gridwright-shepherd: {}: {error}", options.dir.display());
            ExitCode::FAILURE
        }
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
    };
    while let Some(name) = args.next() {
        if name == "--single-user" {
            options.single_user = true;
            continue;
        }
        let value = args.next().ok_or_else(|| format!("{name}: a value is missing"))?;
        match name.as_str() {
            "--dir" => dir = Some(PathBuf::from(value)),
            "--agent-uid" => options.agent_uid = number(&name, &value)?,
            "--agent-gid" => options.agent_gid = Some(number(&name, &value)?),
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
