//! A copied cell: refused by `gridwright up`, and with `--as-copy` made a cell of its own.

use super::{Cell, port};
use crate::args::CommandLine;
use crate::cell_address::place::is_cell;
use crate::directory::{self, DirectoryRelation};
use crate::fail::Fail;
use crate::folder::Folder;
use crate::{daemons, output};
use proto::diagnostic::{Code, Diagnostic};
use proto::directory::FILE;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// Returns the original of `dir` if the copy becomes a cell of its own. `None` means that `dir`
/// comes up as it is.
///
/// # Errors
/// `dir` is a copy without `--as-copy`, or a copy of a host; or `--as-copy` is given for a
/// directory that is not a copy.
pub fn original_of(dir: &Path, as_copy: bool) -> Result<Option<String>, Fail> {
    let is_host_alone = is_cell(dir) && !dir.join("etc/master.toml").exists();
    match directory::relation(dir) {
        DirectoryRelation::Copy(recorded) if !as_copy || is_host_alone => Err(recorded.refusal(dir).into()),
        DirectoryRelation::Copy(recorded) => Ok(Some(recorded.path)),
        DirectoryRelation::Original | DirectoryRelation::Unknown if !as_copy => Ok(None),
        DirectoryRelation::Unknown if is_cell(dir) && !is_host_alone => Ok(Some("another directory".to_owned())),
        DirectoryRelation::Original | DirectoryRelation::Unknown => {
            let refusal = Diagnostic::new(
                Code::WrongState,
                "error: the directory is not a copy of a cell: --as-copy is not needed",
            );
            let fix = format!("bring it up as it is: gridwright up --dir {}", dir.display());
            Err(refusal.at(dir.display().to_string()).fix(fix).into())
        }
    }
}

/// Makes a copy the original, whose directory is gone. Its tasks are kept: the launcher takes over
/// those whose shepherds live, and the others are accounted as lost. The launcher records the
/// directory at its next start.
///
/// # Errors
/// `dir` is not a copy, or a daemon or task of the original runs on this machine.
pub fn replace_original(dir: &Path) -> Result<(), Fail> {
    let refuse = |what: &str, why: String, fix: String| {
        let refusal = Diagnostic::new(Code::WrongState, format!("error: {what}"));
        Err(refusal.at(dir.display().to_string()).why(why).fix(fix).into())
    };
    let DirectoryRelation::Copy(recorded) = directory::relation(dir) else {
        let fix = format!("bring it up as it is: gridwright up --dir {}", dir.display());
        return refuse(
            "the directory is not a copy of a cell: --as-original is not needed",
            "etc/directory names this directory, or nothing".to_owned(),
            fix,
        );
    };
    if directory::is_at_work(&recorded) {
        let why = format!("daemons or tasks run in {}", recorded.path);
        let fix = format!(
            "end them there (gridwright down --kill-jobs), or make this a cell of its own: gridwright up --dir {} --as-copy",
            dir.display()
        );
        return refuse("the original is not gone", why, fix);
    }
    forget_processes(dir);
    let removed = Folder::below(dir, &["etc"]).and_then(|etc| etc.remove("directory"));
    removed.or_else(|error| {
        refuse(
            "the record of the original cannot be removed",
            format!("{FILE}: {error}"),
            "mend that and repeat".into(),
        )
    })
}

/// Makes the copy a cell of its own. Its directory is recorded last: until then all of it can be
/// repeated.
///
/// # Errors
/// A step fails. The refusal names it.
pub(super) fn part(cell: &Cell, original: &str, parsed: &CommandLine) -> Result<(), Fail> {
    let dir = &cell.dir;
    let accounts = cell.accounts.map(|recorded| recorded.daemons());
    let account = accounts.map(|accounts| (accounts.master, accounts.group));
    let done = run("gridwright-master", &["part", "--original", original], dir, account)?;
    let wanted = parsed.value("--port").unwrap_or("0").to_owned();
    let port = port(Some(wanted))?.to_string();
    for name in ["cell.toml", "agent.toml"] {
        set_port(dir, name, &port)?;
    }
    run("gridwright-master", &["tree"], dir, None)?;
    run("gridwright-shepherd", &["adopt"], dir, None)?;
    output::note(&format!(
        "a copy of {original}: {}; qmod -e '*' lets its jobs start",
        done.trim()
    ));
    Ok(())
}

/// Writes what `gridwright env`, the q* commands and site scripts need, where the directory has
/// moved.
///
/// # Errors
/// If it cannot be written.
pub fn follow_move(dir: &Path) -> Result<(), Fail> {
    let settings = std::fs::read_to_string(dir.join("default/common/settings.sh")).unwrap_or_default();
    if directory::stale_root(dir, &settings).is_some() {
        run("gridwright-master", &["tree"], dir, None)?;
    }
    Ok(())
}

/// Makes a copied host's directory its own, once it has joined under a name of its own.
///
/// # Errors
/// A step fails. The refusal names it.
pub fn adopt(dir: &Path) -> Result<(), Fail> {
    run("gridwright-shepherd", &["adopt"], dir, None).map(drop)
}

/// The locks and pid files of a copy name processes of the original.
pub fn forget_processes(dir: &Path) {
    // What is missing is what is wanted.
    let Ok(run) = Folder::below(dir, &["run"]) else { return };
    for name in ["master", "launcher", "agent", "sim"] {
        let own = run.enter(name);
        for kind in ["lock", "pid"] {
            let _ = own.as_ref().map(|own| own.remove(kind));
            let _ = run.remove(&format!("{name}.{kind}"));
        }
    }
}

fn run(program: &str, words: &[&str], dir: &Path, account: Option<(u32, u32)>) -> Result<String, Fail> {
    let refuse = |why: String| {
        let refusal = Diagnostic::new(Code::SystemRefused, "error: the copy cannot be made a cell of its own");
        let fix = format!(
            "mend that and repeat the command; nothing runs in {} until then",
            dir.display()
        );
        Fail::from(refusal.at(dir.display().to_string()).why(why).fix(fix))
    };
    let mut command = Command::new(daemons::program(program)?);
    command.args(words).arg("--dir").arg(dir).current_dir("/");
    if let Some((uid, gid)) = account {
        command.uid(uid).gid(gid);
    }
    let done = command.output().map_err(|error| refuse(error.to_string()))?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    Err(refuse(String::from_utf8_lossy(&done.stderr).trim().to_owned()))
}

/// Sets the port in a file of settings, `etc/NAME`. It is read and replaced below a descriptor of
/// its directory: nothing is followed.
fn set_port(dir: &Path, name: &str, port: &str) -> Result<(), Fail> {
    let set = || {
        let etc = Folder::below(dir, &["etc"])?;
        let text = etc.read(name)?;
        etc.write(name, &with_port(&text, port), etc.facts(name)?.st_mode & 0o777)
    };
    set().map_err(|error| {
        let refusal = Diagnostic::new(Code::SystemRefused, "error: the port of the copy cannot be written");
        Fail::from(
            refusal
                .at(dir.join("etc").join(name).display().to_string())
                .why(error.to_string()),
        )
    })
}

fn with_port(settings: &str, port: &str) -> String {
    let is_port = |line: &str| line.split('=').next().is_some_and(|key| key.trim() == "port");
    let kept = settings.lines().filter(|line| !is_port(line));
    kept.chain([format!("port = {port}").as_str()])
        .fold(String::new(), |all, line| all + line + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_set_once_whatever_was_there() {
        let check = |settings: &str, expected: &str| assert_eq!(with_port(settings, "7"), expected);
        check(
            "cell = \"a\"\nport = 6444\n# port = 1\n",
            "cell = \"a\"\n# port = 1\nport = 7\n",
        );
        check("a = 1\nport=6444", "a = 1\nport = 7\n");
        check("ports = 3\n", "ports = 3\nport = 7\n");
    }

    #[test]
    fn the_port_is_set_in_the_cell_itself_and_never_through_a_link() {
        let base = std::env::temp_dir().join(format!("gridwright-copy-port-{}", std::process::id()));
        std::fs::create_dir_all(base.join("etc")).unwrap();
        std::fs::write(base.join("victim"), "port = 1\n").unwrap();
        std::fs::write(base.join("etc/cell.toml"), "port = 6444\n").unwrap();
        for name in ["agent.toml", "cell.new", ".cell.toml.new"] {
            std::os::unix::fs::symlink("../victim", base.join("etc").join(name)).unwrap();
        }
        set_port(&base, "cell.toml", "7").unwrap();
        assert!(set_port(&base, "agent.toml", "7").is_err());
        let text = |name: &str| std::fs::read_to_string(base.join(name)).unwrap();
        assert_eq!([text("etc/cell.toml"), text("victim")], ["port = 7\n", "port = 1\n"]);
        std::fs::remove_dir_all(&base).unwrap();
    }

    #[test]
    fn the_locks_of_another_cell_are_not_removed_through_a_link() {
        let base = std::env::temp_dir().join(format!("gridwright-copy-forget-{}", std::process::id()));
        for cell in ["copy", "other"] {
            std::fs::create_dir_all(base.join(cell).join("run/master")).unwrap();
            std::fs::write(base.join(cell).join("run/master/lock"), "7 12 1\n").unwrap();
        }
        forget_processes(&base.join("copy"));
        std::fs::rename(base.join("copy/run"), base.join("copy/old")).unwrap();
        std::os::unix::fs::symlink("../other/run", base.join("copy/run")).unwrap();
        forget_processes(&base.join("copy"));
        let has_lock = |run: &str| base.join(run).join("master/lock").exists();
        assert_eq!([has_lock("copy/old"), has_lock("other/run")], [false, true]);
        std::fs::remove_dir_all(&base).unwrap();
    }
}
