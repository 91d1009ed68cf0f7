//! Private keys of a cell on this machine: nobody but their owner may read them.

use crate::fail::Fail;
use crate::folder::Folder;
use nix::errno::Errno;
use proto::diagnostic::{Code, Diagnostic};
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The keys, each with its directory.
const KEYS: [(&str, &str); 4] = [
    ("agent", "host.key"),
    ("master", "ca.key"),
    ("master", "master.key"),
    ("master", "tickets.key"),
];

/// Every right of group and others.
const OTHERS: u32 = 0o077;

/// A key that others than its owner could use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenKey {
    /// The file.
    pub path: PathBuf,
    /// Its rights.
    pub mode: u32,
}

/// The keys that are open to others; a directory that this user may not enter is closed to others,
/// too.
pub fn open_to_others(dir: &Path) -> Vec<OpenKey> {
    let look = |(folder, name): (&str, &str)| {
        let facts = Folder::open(&dir.join(folder)).ok()?.facts(name).ok()?;
        let mode = facts.st_mode & 0o777;
        (mode & OTHERS != 0).then(|| OpenKey {
            path: dir.join(folder).join(name),
            mode,
        })
    };
    KEYS.into_iter().filter_map(look).collect()
}

/// Takes the rights of others away, and answers which keys had been open.
///
/// # Errors
/// If a key is not a regular file with one name that belongs to the owner of its directory.
pub fn close(dir: &Path) -> Result<Vec<OpenKey>, Fail> {
    let mut closed = Vec::new();
    for (folder, name) in KEYS {
        let path = dir.join(folder).join(name);
        match close_one(&dir.join(folder), name) {
            Ok(None) => {}
            Ok(Some(mode)) => closed.push(OpenKey { path, mode }),
            Err(error) if is_passed_over(&error) => {}
            Err(error) => {
                let refusal = Diagnostic::new(Code::SystemRefused, "error: a private key is not as it must be");
                let fix = "give it to the owner of its directory, with rights 0600; if others may have it, join again";
                return Err(refusal
                    .at(path.display().to_string())
                    .why(error.to_string())
                    .fix(fix)
                    .into());
            }
        }
    }
    Ok(closed)
}

/// A host that joined has no keys of a master, and a user sees only what is closed to others
/// anyway.
fn is_passed_over(error: &io::Error) -> bool {
    // By the system's own number: a key that is not a regular file is refused with the same kind of
    // error.
    [Errno::ENOENT, Errno::EACCES]
        .iter()
        .any(|errno| error.raw_os_error() == Some(*errno as i32))
}

fn close_one(folder: &Path, name: &str) -> io::Result<Option<u32>> {
    let folder = Folder::open(folder)?;
    let file = folder.file(name)?;
    let (found, owner) = (file.metadata()?, folder.owner()?);
    if found.uid() != owner || found.nlink() != 1 {
        let (uid, names) = (found.uid(), found.nlink());
        return Err(io::Error::other(format!(
            "it belongs to uid {uid} and has {names} names; uid {owner} and one are right"
        )));
    }
    let mode = found.mode() & 0o777;
    if mode & OTHERS == 0 {
        return Ok(None);
    }
    file.set_permissions(Permissions::from_mode(mode & !OTHERS))?;
    Ok(Some(mode))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_others_can_read_is_found_and_closed_once() {
        let dir = std::env::temp_dir().join(format!("gridwright-keys-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("agent")).unwrap();
        let key = dir.join("agent/host.key");
        std::fs::write(&key, "secret").unwrap();
        std::fs::set_permissions(&key, Permissions::from_mode(0o644)).unwrap();
        let expected = vec![OpenKey {
            path: key.clone(),
            mode: 0o644,
        }];
        assert_eq!(open_to_others(&dir), expected);
        assert_eq!(close(&dir).unwrap(), expected);
        assert_eq!(std::fs::metadata(&key).unwrap().mode() & 0o777, 0o600);
        assert!(open_to_others(&dir).is_empty() && close(&dir).unwrap().is_empty());
        std::fs::hard_link(&key, dir.join("second-name")).unwrap();
        assert!(close(&dir).is_err());
        std::fs::remove_file(&key).unwrap();
        assert!(close(&dir).unwrap().is_empty());
        std::fs::create_dir(&key).unwrap();
        assert!(close(&dir).is_err());
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
