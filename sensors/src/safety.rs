//! Whether a sensor's file may be run, and whether it is still the same file, decided on what
//! stat(2) said (sensors/README.md "As whom a sensor runs").

use proto::diagnostic::{Code, Diagnostic};

/// The user id under which something is owned or run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uid(pub u32);

/// What is at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// An ordinary file.
    Regular,
    /// A directory.
    Directory,
    /// A device, socket or pipe.
    Special,
}

/// What stat(2), which follows links, said about a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileFacts {
    /// What it is.
    pub kind: FileKind,
    /// Who owns it.
    pub owner: Uid,
    /// The permission bits, with the sticky bit.
    pub mode: u32,
}

/// Decides whether the sensor at `path` may run as `user`.
///
/// The file must be an ordinary one that belongs to root or to `user`, and that its group and
/// others cannot write. Its directories, `parents`, must not let others replace it: same owners,
/// and not writable by group or others unless sticky.
///
/// # Errors
/// With the remedy, where a condition is not met.
pub fn judge(path: &str, file: &FileFacts, parents: &[(&str, FileFacts)], user: Uid) -> Result<(), Diagnostic> {
    if file.kind != FileKind::Regular {
        return Err(refusal(path, "it is not an ordinary file").fix("give the path of a program or script"));
    }
    if file.mode & 0o111 == 0 {
        return Err(refusal(path, "it is not executable").fix(format!("chmod +x {path}")));
    }
    judge_owner(path, file, user)?;
    if file.mode & 0o022 != 0 {
        return Err(refusal(path, "others than its owner can write it").fix(format!("chmod go-w {path}")));
    }
    parents
        .iter()
        .try_for_each(|(directory, facts)| judge_directory(path, directory, facts, user))
}

fn judge_directory(path: &str, directory: &str, facts: &FileFacts, user: Uid) -> Result<(), Diagnostic> {
    const STICKY: u32 = 0o1000;
    judge_owner(directory, facts, user)?;
    if facts.mode & 0o022 != 0 && facts.mode & STICKY == 0 {
        let why = format!("others can replace it, because they can write {directory}");
        return Err(refusal(path, &why).fix(format!("chmod go-w {directory}")));
    }
    Ok(())
}

fn judge_owner(path: &str, facts: &FileFacts, user: Uid) -> Result<(), Diagnostic> {
    if facts.owner == Uid(0) || facts.owner == user {
        return Ok(());
    }
    let why = format!(
        "it belongs to uid {}, which is neither root nor the sensor's user (uid {})",
        facts.owner.0, user.0
    );
    Err(refusal(path, &why).fix(format!("chown root {path}")))
}

fn refusal(path: &str, why: &str) -> Diagnostic {
    Diagnostic::new(Code::SystemRefused, format!("load sensor \"{path}\" is not started")).why(why)
}

/// What tells one version of a file from the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStamp {
    /// Device and inode: a file that was moved into place has another one.
    pub identity: (u64, u64),
    /// Time of the last change of the contents, in nanoseconds since the epoch.
    pub modified_ns: i128,
}

/// What happened to a sensor's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileChange {
    /// Nothing that matters.
    Same,
    /// It is another version, or there again: restart the sensor at once.
    Changed,
    /// It is not there. A running sensor goes on until it ends; it is not started again.
    Gone,
}

/// Compares the stamp at the start of a sensor with the one of now; `None` where there is no file.
pub fn file_change(at_start: Option<&FileStamp>, now: Option<&FileStamp>) -> FileChange {
    match (at_start, now) {
        (_, None) => FileChange::Gone,
        (Some(old), Some(new)) if old == new => FileChange::Same,
        (Some(_) | None, Some(_)) => FileChange::Changed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENSOR: Uid = Uid(990);

    fn file(owner: u32, mode: u32) -> FileFacts {
        FileFacts {
            kind: FileKind::Regular,
            owner: Uid(owner),
            mode,
        }
    }

    fn directory(owner: u32, mode: u32) -> FileFacts {
        FileFacts {
            kind: FileKind::Directory,
            owner: Uid(owner),
            mode,
        }
    }

    fn check(facts: FileFacts, parent: FileFacts, expected: Option<&str>) {
        let verdict = judge("/opt/s", &facts, &[("/opt", parent)], SENSOR);
        match (verdict, expected) {
            (Ok(()), None) => {}
            (Err(refusal), Some(words)) => {
                assert!(refusal.why.contains(words), "{refusal}");
                assert!(!refusal.fix.is_empty());
            }
            (verdict, expected) => panic!("{facts:?}: {verdict:?}, expected {expected:?}"),
        }
    }

    #[test]
    fn t20_files_of_root_or_the_sensor_user_run_and_what_others_can_write_does_not() {
        let opt = directory(0, 0o755);
        check(file(0, 0o755), opt, None);
        check(file(990, 0o700), opt, None);
        check(file(1000, 0o755), opt, Some("uid 1000"));
        check(file(0, 0o775), opt, Some("can write"));
        check(file(0, 0o757), opt, Some("can write"));
        check(file(0, 0o644), opt, Some("not executable"));
        check(directory(0, 0o755), opt, Some("not an ordinary file"));
    }

    #[test]
    fn t20_a_directory_in_which_others_can_replace_the_file_is_refused() {
        check(file(0, 0o755), directory(0, 0o777), Some("replace"));
        check(file(0, 0o755), directory(0, 0o1777), None);
        check(file(0, 0o755), directory(1000, 0o755), Some("uid 1000"));
        check(file(0, 0o755), directory(990, 0o700), None);
    }

    #[test]
    fn t16_a_new_time_or_a_new_inode_is_a_change() {
        let stamp = FileStamp {
            identity: (1, 7),
            modified_ns: 5,
        };
        let touched = FileStamp {
            modified_ns: 6,
            ..stamp
        };
        let moved = FileStamp {
            identity: (1, 8),
            ..stamp
        };
        assert_eq!(file_change(Some(&stamp), Some(&stamp)), FileChange::Same);
        assert_eq!(file_change(Some(&stamp), Some(&touched)), FileChange::Changed);
        assert_eq!(file_change(Some(&stamp), Some(&moved)), FileChange::Changed);
        assert_eq!(file_change(Some(&stamp), None), FileChange::Gone);
        assert_eq!(file_change(None, Some(&stamp)), FileChange::Changed);
    }
}
