//! The task's temporary directory: made and removed under the user's uid, following no links.

use crate::sys::{self, Fork};
use nix::dir::{Dir, Type};
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, renameat};
use nix::sys::signal::{SigSet, SigmaskHow, sigprocmask};
use nix::sys::stat::{Mode, SFlag, fstat, fstatat};
use nix::unistd::{UnlinkatFlags, unlinkat};
use proto::id::TaskKey;
use proto::launch::{FailedCodes, Failure, TmpDir};
use std::ffi::CStr;
use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The directory's path; `None` for a name that leaves the base.
pub fn path(tmpdir: &TmpDir) -> Option<PathBuf> {
    let name = tmpdir.name.as_str();
    let plain = !name.is_empty() && name != "." && name != ".." && !name.contains('/');
    plain.then(|| Path::new(&tmpdir.base).join(name))
}

/// The name taken where somebody else has the planned one: names in a shared directory can be
/// guessed and taken.
fn spare(tmpdir: &TmpDir, key: &TaskKey) -> TmpDir {
    TmpDir {
        base: tmpdir.base.clone(),
        name: format!("{}.{key}", tmpdir.name),
    }
}

/// Makes the directory as this process's user and says which: the planned one, or a spare one where
/// something that is not the user's has its name. One that a step before made is taken, if it is
/// the user's own.
///
/// # Errors
/// [`FailedCodes::BEFORE_JOB`] with the path.
pub fn create(tmpdir: &TmpDir, uid: u32, key: &TaskKey) -> Result<TmpDir, Failure> {
    let mut refusal = None;
    for candidate in [tmpdir.clone(), spare(tmpdir, key)] {
        match create_one(&candidate, uid) {
            Ok(()) => return Ok(candidate),
            Err(failure) if failure.errno == libc::EEXIST => refusal = Some(failure),
            Err(failure) => return Err(failure),
        }
    }
    Err(refusal.expect("the loop ended without one only if both names were taken"))
}

fn create_one(tmpdir: &TmpDir, uid: u32) -> Result<(), Failure> {
    let cannot = |text: String, errno: i32| Failure {
        failed: failed_code(errno, Path::new(&tmpdir.base), uid),
        text: format!(
            "cannot make the temporary directory {}/{}: {text}",
            tmpdir.base, tmpdir.name
        ),
        errno,
        path: tmpdir.base.clone(),
    };
    let path = path(tmpdir).ok_or_else(|| cannot("its name is not a plain name".into(), 0))?;
    match DirBuilder::new().mode(0o700).create(&path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => match fs::symlink_metadata(&path) {
            Ok(found) if found.is_dir() && found.uid() == uid => Ok(()),
            _ => Err(cannot("something that is not the user's is there".into(), libc::EEXIST)),
        },
        other => other.map_err(|error| cannot(error.to_string(), error.raw_os_error().unwrap_or(0))),
    }
}

/// Says who is to blame that user `uid` cannot make a directory in `base`.
///
/// The queue is to blame if it names a place that is not there or is closed to everybody. The host
/// is to blame if the place is full, broken or read-only, or the system has no more to give. The
/// job is to blame if only its user cannot: nobody else's jobs may wait for that.
fn failed_code(errno: i32, base: &Path, uid: u32) -> u8 {
    match errno {
        libc::ENOENT | libc::ENOTDIR | libc::ELOOP if !is_of_user(base, uid) => FailedCodes::QUEUE_SETTING,
        libc::EACCES if is_closed(base) && !is_of_user(base, uid) => FailedCodes::QUEUE_SETTING,
        libc::ENAMETOOLONG => FailedCodes::QUEUE_SETTING,
        libc::ENOSPC | libc::EDQUOT | libc::EROFS | libc::EIO | libc::ESTALE => FailedCodes::BEFORE_PROLOG,
        errno if sys::is_exhaustion(errno) => FailedCodes::BEFORE_PROLOG,
        _ => FailedCodes::BEFORE_JOB,
    }
}

/// The deepest part of a path that is there and can be reached.
fn deepest<T>(path: &Path, find: impl Fn(&Path) -> io::Result<T>) -> Option<(&Path, T)> {
    path.ancestors().find_map(|part| Some((part, find(part).ok()?)))
}

/// Whether the place was made by an ordinary user, who may have removed or closed it.
fn is_of_user(base: &Path, uid: u32) -> bool {
    uid != 0 && deepest(base, |part| fs::symlink_metadata(part)).is_some_and(|(_, found)| found.uid() == uid)
}

/// Whether no rights of others, and no group but root's, lead into the place. One user alone may
/// lack the rights of a group or of an access list, which shows in the rights of the group.
fn is_closed(base: &Path) -> bool {
    let Some((part, found)) = deepest(base, |part| fs::metadata(part)) else {
        return true;
    };
    let needed = if part == base { 0o3 } else { 0o1 };
    let has = |rights: u32| rights & needed == needed;
    let is_open = has(found.mode()) || (found.gid() != 0 && has(found.mode() >> 3));
    !is_open
}

/// The depth to which directories are held open at once; deeper ones are moved up first.
const MAX_DEPTH: usize = 64;

/// The name of a process that removes a directory.
pub const REMOVER: &CStr = c"gw-remover";

/// The longest that a removal goes on: behind a file system that hangs, or a user who makes files
/// faster than they go.
const REMOVAL_S: u32 = 3600;

/// The pause before a directory that somebody filled meanwhile is emptied again.
const REFILLED_PAUSE: Duration = Duration::from_millis(200);

/// Starts to remove the directory with the file permissions of `uid`, in a process of its own: a
/// file system that hangs holds up nothing else. What cannot be removed stays, and the process says
/// so.
///
/// # Errors
/// Errors of fork(2).
pub fn start_removal(tmpdir: &TmpDir, uid: u32, gid: u32, key: &TaskKey) -> io::Result<i32> {
    match sys::fork()? {
        Fork::Parent(pid) => Ok(pid),
        Fork::Child => {
            sys::set_name(REMOVER);
            sys::end_after(REMOVAL_S);
            // Not with the priority of a shepherd; without the right to that there was none to give
            // up.
            let _ = sys::set_nice(0);
            sys::default_signals();
            let unblocked = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None);
            let closed = sys::close_all_except(&mut []).and(unblocked.map_err(io::Error::from));
            let outcome = closed.and_then(|()| remove(tmpdir, uid, gid, key));
            if let Err(error) = &outcome {
                crate::log::line(format_args!(
                    "task {key}: {}/{} stays: {error}",
                    tmpdir.base, tmpdir.name
                ));
            }
            // The exit code tells the shepherd why: error numbers are small.
            let errno = |error: &io::Error| {
                error
                    .raw_os_error()
                    .filter(|errno| (1..255).contains(errno))
                    .unwrap_or(255)
            };
            sys::exit_now(outcome.as_ref().err().map_or(0, errno))
        }
    }
}

/// Removes the directory with the file permissions of `uid`. What cannot be removed stays.
///
/// # Errors
/// The first error that was not "not there".
pub fn remove(tmpdir: &TmpDir, uid: u32, gid: u32, key: &TaskKey) -> io::Result<()> {
    remove_one(tmpdir, uid, gid).and(remove_one(&spare(tmpdir, key), uid, gid))
}

fn remove_one(tmpdir: &TmpDir, uid: u32, gid: u32) -> io::Result<()> {
    let Some(path) = path(tmpdir) else { return Ok(()) };
    let before = sys::file_uid();
    sys::set_file_ids(uid, gid);
    // What has the name and is another user's was not made for this task.
    let is_own = fs::symlink_metadata(&path).is_ok_and(|found| found.uid() == uid);
    let outcome = if is_own { remove_tree(&path) } else { Ok(()) };
    sys::set_file_ids(before, nix::unistd::Gid::effective().as_raw());
    outcome
}

fn remove_tree(path: &Path) -> io::Result<()> {
    loop {
        // An empty directory, the common case, costs one call.
        match fs::remove_dir(path) {
            Err(error) if error.raw_os_error() == Some(libc::ENOTEMPTY) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            // The job put a link or a file of its own in the place of the directory.
            Err(error) if error.kind() == ErrorKind::NotADirectory => return fs::remove_file(path),
            other => return other,
        }
        let top = open_folder_at(nix::fcntl::AT_FDCWD, path)?;
        Sweep { top: &top, moved: 0 }.empty(&top, 0)?;
        match fs::remove_dir(path) {
            Err(error) if error.raw_os_error() == Some(libc::ENOTEMPTY) => std::thread::sleep(REFILLED_PAUSE),
            other => return other,
        }
    }
}

fn folder_flags() -> OFlag {
    OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC
}

/// Opens a directory, also one that its user has closed to everybody.
fn open_folder_at<P: nix::NixPath + ?Sized>(folder: impl AsFd, name: &P) -> io::Result<OwnedFd> {
    match openat(folder.as_fd(), name, folder_flags(), Mode::empty()) {
        Ok(opened) if is_open_to_user(&opened) => return Ok(opened),
        Err(Errno::EACCES) | Ok(_) => {}
        Err(errno) => return Err(errno.into()),
    }
    let closed = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let found = openat(folder.as_fd(), name, closed, Mode::empty())?;
    // fchmod(2) takes no descriptor of O_PATH; the link in /proc leads to the directory itself,
    // whatever its name means by now.
    fs::set_permissions(
        format!("/proc/self/fd/{}", found.as_raw_fd()),
        fs::Permissions::from_mode(0o700),
    )?;
    Ok(openat(folder.as_fd(), name, folder_flags(), Mode::empty())?)
}

/// Whether names in a directory can be found and removed by its owner.
fn is_open_to_user(folder: &OwnedFd) -> bool {
    fstat(folder).is_ok_and(|found| found.st_mode & 0o700 == 0o700)
}

/// One removal; counts the directories moved up, each of which needs a name of its own.
struct Sweep<'a> {
    top: &'a OwnedFd,
    moved: u64,
}

impl Sweep<'_> {
    /// Empties a directory, again while deeper ones are moved into it. What cannot be removed keeps
    /// nothing else: the first error is returned in the end.
    fn empty(&mut self, folder: &OwnedFd, depth: usize) -> io::Result<()> {
        loop {
            let moved_before = self.moved;
            let mut outcome = Ok(());
            for (name, kind) in entries(folder)? {
                let removed = self.remove_entry(folder, &name, kind, depth);
                outcome = outcome.and(removed);
            }
            if depth > 0 || self.moved == moved_before {
                return outcome;
            }
        }
    }

    fn remove_entry(&mut self, folder: &OwnedFd, name: &CStr, is_folder: bool, depth: usize) -> io::Result<()> {
        if !is_folder {
            return Ok(unlinkat(folder, name, UnlinkatFlags::NoRemoveDir)?);
        }
        match unlinkat(folder, name, UnlinkatFlags::RemoveDir) {
            Err(Errno::ENOTEMPTY | Errno::EEXIST) => {}
            other => return Ok(other?),
        }
        if depth >= MAX_DEPTH {
            self.moved += 1;
            let up = format!(".gridwright-removed-{}", self.moved);
            return Ok(renameat(folder, name, self.top, up.as_str())?);
        }
        let inner = open_folder_at(folder, name)?;
        self.empty(&inner, depth + 1)?;
        Ok(unlinkat(folder, name, UnlinkatFlags::RemoveDir)?)
    }
}

fn entries(folder: &OwnedFd) -> io::Result<Vec<(std::ffi::CString, bool)>> {
    let mut listing = Dir::from_fd(folder.try_clone()?)?;
    let mut found = Vec::new();
    for entry in listing.iter() {
        let entry = entry?;
        let name = entry.file_name();
        if name.to_bytes() != b"." && name.to_bytes() != b".." {
            let is_folder = match entry.file_type() {
                Some(kind) => kind == Type::Directory,
                None => is_directory(folder, name)?,
            };
            found.push((name.to_owned(), is_folder));
        }
    }
    Ok(found)
}

fn is_directory(folder: &OwnedFd, name: &CStr) -> io::Result<bool> {
    let found = fstatat(folder.as_fd(), name, AtFlags::AT_SYMLINK_NOFOLLOW)?;
    Ok(SFlag::from_bits_truncate(found.st_mode) & SFlag::S_IFMT == SFlag::S_IFDIR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deep_tree_with_links_goes_and_what_the_links_name_stays() {
        let base = std::env::temp_dir().join(format!("gridwright-tmpdir-{}", std::process::id()));
        fs::create_dir_all(base.join("kept")).expect("made");
        fs::write(base.join("kept/file"), "x").expect("written");
        let mut deep = base.join("7.1.all.q");
        fs::create_dir(&deep).expect("made");
        std::os::unix::fs::symlink(base.join("kept"), deep.join("link")).expect("linked");
        for _ in 0..200 {
            deep = deep.join("d");
            fs::create_dir(&deep).expect("made");
        }
        let tmpdir = TmpDir {
            base: base.to_string_lossy().into_owned(),
            name: "7.1.all.q".into(),
        };
        let ids = (
            nix::unistd::Uid::effective().as_raw(),
            nix::unistd::Gid::effective().as_raw(),
        );
        remove(&tmpdir, ids.0, ids.1, &key()).expect("removed");
        assert!(!base.join("7.1.all.q").exists() && base.join("kept/file").exists());
        fs::remove_dir_all(&base).expect("cleaned");
    }

    fn key() -> TaskKey {
        "00000000000000ab.7.1.0.1"
            .parse()
            .expect("it is the form that a key prints")
    }

    #[test]
    fn a_name_that_somebody_took_is_replaced_by_a_spare_one_and_both_are_left_clean() {
        let base = std::env::temp_dir().join(format!("gridwright-spare-{}", std::process::id()));
        fs::create_dir_all(&base).expect("made");
        // A file is something that is not the user's directory, whoever runs this.
        fs::write(base.join("7.1.all.q"), "taken").expect("written");
        let planned = TmpDir {
            base: base.to_string_lossy().into_owned(),
            name: "7.1.all.q".into(),
        };
        let ids = (
            nix::unistd::Uid::effective().as_raw(),
            nix::unistd::Gid::effective().as_raw(),
        );
        let made = create(&planned, ids.0, &key()).expect("made under another name");
        assert_eq!(made.name, "7.1.all.q.00000000000000ab.7.1.0.1");
        assert!(path(&made).expect("a plain name").is_dir());
        fs::remove_file(base.join("7.1.all.q")).expect("gone");
        remove(&planned, ids.0, ids.1, &key()).expect("removed");
        assert_eq!(fs::read_dir(&base).expect("there").count(), 0);
        fs::remove_dir_all(&base).expect("cleaned");
    }

    #[test]
    fn a_place_that_is_not_there_is_the_queues_fault_and_a_full_one_the_hosts() {
        let missing = TmpDir {
            base: "/nonexistent".into(),
            name: "7.1.all.q".into(),
        };
        assert_eq!(
            create(&missing, 0, &key()).expect_err("missing").failed,
            FailedCodes::QUEUE_SETTING
        );
        // A place that is closed to all but root.
        let closed = Path::new("/proc/1/fd");
        for (errno, expected) in [
            (libc::EACCES, FailedCodes::QUEUE_SETTING),
            (libc::ENOSPC, FailedCodes::BEFORE_PROLOG),
            (libc::EMFILE, FailedCodes::BEFORE_PROLOG),
            (libc::EEXIST, FailedCodes::BEFORE_JOB),
        ] {
            assert_eq!(failed_code(errno, closed, 2_000), expected, "{errno}");
        }
    }

    #[test]
    fn a_place_that_only_one_user_cannot_use_is_not_the_queues_fault() {
        let base = std::env::temp_dir().join(format!("gridwright-closed-{}", std::process::id()));
        fs::create_dir_all(&base).expect("made");
        let own = nix::unistd::Uid::effective().as_raw();
        let code = |errno: i32, path: &Path, uid: u32| failed_code(errno, path, uid);
        for (mode, expected) in [
            (0o777, FailedCodes::BEFORE_JOB),
            (0o1777, FailedCodes::BEFORE_JOB),
            (0o755, FailedCodes::QUEUE_SETTING),
            (0o700, FailedCodes::QUEUE_SETTING),
        ] {
            fs::set_permissions(&base, fs::Permissions::from_mode(mode)).expect("set");
            assert_eq!(code(libc::EACCES, &base, own + 1), expected, "{mode:o}");
        }
        // The rights of a group, or of an access list.
        if nix::unistd::Uid::effective().is_root() {
            std::os::unix::fs::chown(&base, None, Some(64_990)).expect("given");
            fs::set_permissions(&base, fs::Permissions::from_mode(0o770)).expect("set");
            assert_eq!(code(libc::EACCES, &base, 2_000), FailedCodes::BEFORE_JOB);
            // A place that its user made and removed.
            std::os::unix::fs::chown(&base, Some(2_000), None).expect("given");
            for errno in [libc::EACCES, libc::ENOENT, libc::ENOTDIR, libc::ELOOP] {
                assert_eq!(
                    code(errno, &base.join("gone/deep"), 2_000),
                    FailedCodes::BEFORE_JOB,
                    "{errno}"
                );
            }
            assert_eq!(
                code(libc::ENOENT, &base.join("gone"), 2_001),
                FailedCodes::QUEUE_SETTING
            );
        }
        fs::remove_dir_all(&base).expect("cleaned");
    }

    #[test]
    fn names_that_leave_the_base_are_refused() {
        for name in ["", "..", "a/b", "."] {
            assert!(
                create(
                    &TmpDir {
                        base: "/tmp".into(),
                        name: name.into()
                    },
                    0,
                    &key()
                )
                .is_err(),
                "{name}"
            );
        }
    }
}
