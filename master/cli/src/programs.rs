//! Where the programs lie, and whether the accounts of daemons and users can reach them there.
//!
//! Root may have built them below a home directory that is closed to everybody else. Then they are
//! put below the cell's own directory, where daemons under their accounts and the links of the q*
//! names find them.

use crate::fail::Fail;
use crate::folder::Folder;
use proto::diagnostic::{Code, Diagnostic};
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The programs that belong together.
const ALL: [&str; 4] = [
    "gridwright",
    "gridwright-master",
    "gridwright-agent",
    "gridwright-shepherd",
];

/// The library that lies beside them where it was built.
const LIBRARY: &str = "libdrmaa.so";

/// A directory with all programs that everybody can reach: the one of this program, or else a
/// directory below `dir`, filled from there. `below` names it, one directory in the other. Whoever
/// is not root reaches what they run themselves, and nobody else has to.
///
/// # Errors
/// If a program is missing or cannot be put there, or somebody else can make names on the way from
/// `dir` to it.
pub fn reachable(dir: &Path, below: &[&str]) -> Result<PathBuf, Fail> {
    let refuse = |place: &Path, error: &std::io::Error| {
        let refusal = Diagnostic::new(
            Code::SystemRefused,
            "error: the programs cannot be put where everybody reaches them",
        );
        Fail::from(refusal.at(place.display().to_string()).why(error.to_string()))
    };
    let own = std::env::current_exe()
        .and_then(std::fs::canonicalize)
        .map_err(|error| refuse(Path::new("/proc/self/exe"), &error))?;
    let home = own.parent().unwrap_or(Path::new("/")).to_owned();
    if !nix::unistd::getuid().is_root() || is_open(&own) {
        return Ok(home);
    }
    let spare = make_ours(dir, below).map_err(|(place, error)| refuse(&place, &error))?;
    let library = Some(LIBRARY).filter(|name| home.join(name).is_file());
    for name in ALL.into_iter().chain(library) {
        let (from, to) = (home.join(name), spare.join(name));
        put(&from, &to).map_err(|error| refuse(&from, &error))?;
    }
    Ok(spare)
}

/// Makes `dir` and the directories below it, from the top, and checks each one after it was made:
/// root runs what lies there. Another user may have made `dir` while it was still missing.
fn make_ours(dir: &Path, below: &[&str]) -> Result<PathBuf, (PathBuf, io::Error)> {
    let mut place = dir.to_owned();
    let fail = |place: &Path| {
        let place = place.to_owned();
        move |error| (place, error)
    };
    DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(dir)
        .map_err(fail(dir))?;
    // The cell's directory may be reached by a link.
    let mut folder = Folder::open(&dir.join(".")).map_err(fail(dir))?;
    folder.check_ours().map_err(fail(dir))?;
    for name in below {
        place.push(name);
        folder = folder.make(name, 0o755).map_err(fail(&place))?;
        folder.check_ours().map_err(fail(&place))?;
    }
    Ok(place)
}

/// Whether everybody may pass every directory on the way to a file.
fn is_open(file: &Path) -> bool {
    let passable = |dir: &Path| std::fs::metadata(dir).is_ok_and(|meta| meta.permissions().mode() & 0o001 != 0);
    file.ancestors().skip(1).all(passable)
}

/// Puts a program in place of an older one, which may be running: by name, never into the old file.
fn put(from: &Path, to: &Path) -> std::io::Result<()> {
    let fresh = to.with_extension("new");
    let _ = std::fs::remove_file(&fresh);
    std::fs::copy(from, &fresh)?;
    std::fs::set_permissions(&fresh, std::fs::Permissions::from_mode(0o755))?;
    std::fs::rename(&fresh, to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_directory_on_the_way_to_the_programs_is_judged_after_it_was_made() {
        let base = std::env::temp_dir().join(format!("gridwright-programs-way-{}", std::process::id()));
        let with_mode = |name: &str, mode| {
            std::fs::set_permissions(base.join(name), std::fs::Permissions::from_mode(mode)).unwrap();
        };
        let below = ["bin", "programs"];
        assert_eq!(make_ours(&base, &below).unwrap(), base.join("bin/programs"));
        for open in ["", "bin", "bin/programs"] {
            with_mode(open, 0o777);
            let (place, error) = make_ours(&base, &below).unwrap_err();
            assert_eq!(
                (place, error.kind()),
                (base.join(open), io::ErrorKind::PermissionDenied),
                "{open}"
            );
            with_mode(open, 0o755);
        }
        std::fs::remove_dir_all(&base).unwrap();
    }

    #[test]
    fn a_closed_directory_on_the_way_keeps_others_out() {
        let base = std::env::temp_dir().join(format!("gridwright-programs-{}", std::process::id()));
        let inner = base.join("inner");
        std::fs::create_dir_all(&inner).unwrap();
        std::fs::set_permissions(&base, std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::write(inner.join("p"), "x").unwrap();
        let open = is_open(&inner.join("p"));
        std::fs::set_permissions(&base, std::fs::Permissions::from_mode(0o700)).unwrap();
        let closed = is_open(&inner.join("p"));
        put(&inner.join("p"), &inner.join("q")).unwrap();
        let put_there = std::fs::read_to_string(inner.join("q")).unwrap();
        std::fs::remove_dir_all(&base).unwrap();
        assert_eq!(
            (open, closed, put_there.as_str()),
            (is_open(&std::env::temp_dir().join("p")), false, "x")
        );
    }
}
