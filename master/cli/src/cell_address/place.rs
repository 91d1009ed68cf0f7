//! Where the directory of the cell is looked for: one rule for all commands.
//!
//! `--dir`, else `GRIDWRIGHT_DIR`, else the first of `SGE_ROOT`, the user's own directory and
//! [`DEFAULT_DIR`] that holds a cell. The own directory is `gridwright` below `$XDG_STATE_HOME`,
//! which is `~/.local/state` by default; root's is [`DEFAULT_DIR`]. Where none holds a cell, the
//! own one is meant. Commands that make a cell leave [`DEFAULT_DIR`] to root: it is the machine's.

use super::DEFAULT_DIR;
use crate::args::{OptionDef, ValueCount, with};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The option of every command of `gridwright` that names the directory.
pub const DIR: OptionDef = with(
    "--dir",
    ValueCount::One,
    "DIR",
    "state directory of the cell (default: $GRIDWRIGHT_DIR, else $SGE_ROOT, ~/.local/state/gridwright, /var/lib/gridwright)",
);

/// The purpose for which a command needs the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A cell that is there.
    Use,
    /// A cell that may have to be made.
    Make,
}

/// The sources that name a cell's directory.
#[derive(Clone, Debug, Default)]
struct Surroundings {
    named: Option<PathBuf>,
    gridwright_dir: Option<PathBuf>,
    sge_root: Option<PathBuf>,
    own: PathBuf,
    is_root: bool,
}

/// The directory that is meant.
pub fn directory(named: Option<&str>, purpose: Purpose) -> PathBuf {
    let variable = |name: &str| {
        std::env::var_os(name)
            .filter(|value: &OsString| !value.is_empty())
            .map(PathBuf::from)
    };
    let is_root = nix::unistd::getuid().is_root();
    let state = || {
        let home = variable("HOME").unwrap_or_else(|| "/".into());
        variable("XDG_STATE_HOME")
            .unwrap_or_else(|| home.join(".local/state"))
            .join("gridwright")
    };
    let surroundings = Surroundings {
        named: named.map(PathBuf::from),
        gridwright_dir: variable("GRIDWRIGHT_DIR"),
        sge_root: variable("SGE_ROOT"),
        own: if is_root { DEFAULT_DIR.into() } else { state() },
        is_root,
    };
    choose(surroundings, purpose, is_cell)
}

/// The variable that names the master's port for the cell of a shell.
pub const PORT_VARIABLE: &str = "SGE_QMASTER_PORT";

/// The master's port for the cell in `dir`, as the environment has it. `None` if it has none, or
/// that of another cell.
pub fn port_of_environment(dir: &Path) -> Option<String> {
    let port = std::env::var(PORT_VARIABLE).ok().filter(|port| !port.is_empty());
    port.filter(|_| !is_environment_of_other(dir))
}

/// Whether the environment is that of a cell in another directory than `dir`: what it says about
/// ports is not for the cell there.
pub fn is_environment_of_other(dir: &Path) -> bool {
    let root = std::env::var_os("SGE_ROOT").filter(|root| !root.is_empty());
    root.is_some_and(|root| is_other(Path::new(&root), dir))
}

fn is_other(root: &Path, dir: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().or_else(|_| std::path::absolute(path));
    match (real(root), real(dir)) {
        (Ok(root), Ok(dir)) => root != dir,
        _ => root != dir,
    }
}

/// Whether a directory holds a cell, or the part of one that a joined host has.
pub fn is_cell(dir: &Path) -> bool {
    dir.join("etc/cell.toml").exists() || dir.join("etc/agent.toml").exists()
}

fn choose(surroundings: Surroundings, purpose: Purpose, holds_cell: impl Fn(&Path) -> bool) -> PathBuf {
    let Surroundings {
        named,
        gridwright_dir,
        sge_root,
        own,
        is_root,
    } = surroundings;
    if let Some(dir) = named.or(gridwright_dir) {
        return dir;
    }
    let machine = (is_root || purpose == Purpose::Use).then(|| PathBuf::from(DEFAULT_DIR));
    let candidates = sge_root.into_iter().chain([own.clone()]).chain(machine);
    candidates.into_iter().find(|dir| holds_cell(dir)).unwrap_or(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_of_a_cell_is_that_of_its_directory_by_whatever_name() {
        for (root, dir, expected) in [
            ("/tmp", "/tmp", false),
            ("/tmp/", "/tmp/../tmp", false),
            ("/tmp", "/usr", true),
            ("/tmp", "/tmp/no-such-cell", true),
            ("/tmp/no-such-cell", "/tmp/no-such-cell", false),
        ] {
            assert_eq!(is_other(Path::new(root), Path::new(dir)), expected, "{root} {dir}");
        }
    }

    #[test]
    fn the_first_directory_that_is_named_or_holds_a_cell_is_meant() {
        let user = || Surroundings {
            sge_root: Some("/sge".into()),
            own: "/own".into(),
            ..Surroundings::default()
        };
        let check = |surroundings, purpose, cells: &[&str], expected: &str| {
            let found = choose(surroundings, purpose, |dir| {
                cells.iter().any(|cell| Path::new(cell) == dir)
            });
            assert_eq!(found, Path::new(expected), "{cells:?}");
        };
        let all = ["/sge", "/own", DEFAULT_DIR];
        check(
            Surroundings {
                named: Some("/n".into()),
                gridwright_dir: Some("/g".into()),
                ..user()
            },
            Purpose::Use,
            &all,
            "/n",
        );
        check(
            Surroundings {
                gridwright_dir: Some("/g".into()),
                ..user()
            },
            Purpose::Make,
            &all,
            "/g",
        );
        check(user(), Purpose::Use, &all, "/sge");
        check(user(), Purpose::Use, &all[1..], "/own");
        check(user(), Purpose::Use, &all[2..], DEFAULT_DIR);
        check(user(), Purpose::Make, &all[2..], "/own");
        check(user(), Purpose::Use, &[], "/own");
        let root = Surroundings {
            own: DEFAULT_DIR.into(),
            is_root: true,
            ..user()
        };
        check(root, Purpose::Make, &[], DEFAULT_DIR);
    }
}
