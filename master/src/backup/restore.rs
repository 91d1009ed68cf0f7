//! A cell out of a backup, on this machine or another.

use super::archive;
use super::{ArchivedFile, BackupError, DATABASE, Manifest};
use crate::clock::Clock;
use crate::config::CellConfig;
use crate::digest::digest;
use crate::init;
use crate::layout::Layout;
use crate::replay::replay;
use crate::store::{Store, StoreError};
use master_core::core::Core;
use master_core::state::State;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use nix::sys::statvfs::statvfs;
use proto::id::{EventSeq, UserName};
use proto::job::Program;
use proto::time::Wall;
use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// The moment at which a restored cell begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// After the last event of the backup.
    Newest,
    /// After this event.
    Event(EventSeq),
    /// After the last event until this time.
    Time(Wall),
}

/// Directories that a host may have before it has a cell.
const MADE_BEFORE: [&str; 4] = ["run", "log", "tasks", "lost+found"];

/// Directories of the backup, in the order in which they get their place: `etc` makes a directory a
/// cell.
const RESTORED: [&str; 3] = ["master", "agent", "etc"];

/// The most jobs without a script that are named.
const NAMED_JOBS: usize = 10;

/// Makes the cell of a backup in `dir`. Returns what it is, for people.
///
/// # Errors
/// As [`BackupError`]: nothing of the backup is in `dir` then, and what others made there is.
pub fn restore(dir: &Path, from: impl Read, moment: Moment, user: &UserName) -> Result<String, BackupError> {
    let is_made_here = make_directory(dir)?;
    let made = check_free(dir).and_then(|()| make(dir, from, moment, user));
    if made.is_err() && is_made_here {
        // It stays if somebody else has made something in it.
        let _ = std::fs::remove_dir(dir);
    }
    made
}

/// Makes the directory unless it exists. Returns whether it was made.
fn make_directory(dir: &Path) -> Result<bool, BackupError> {
    let unwritable = |source| BackupError::Unwritable {
        path: dir.to_owned(),
        source,
    };
    dir.parent()
        .map_or(Ok(()), std::fs::create_dir_all)
        .map_err(unwritable)?;
    match std::fs::create_dir(dir) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(unwritable(error)),
    }
}

/// The directory below that of the cell in which the cell is made, and which is removed with
/// whatever did not get its place.
struct Staging(PathBuf);

impl Staging {
    fn new(dir: &Path) -> Result<Self, BackupError> {
        let path = dir.join(format!("restored.{}", std::process::id()));
        match std::fs::create_dir(&path) {
            Ok(()) => Ok(Self(path)),
            Err(source) => Err(BackupError::Unwritable { path, source }),
        }
    }

    /// Gives the directories of the backup their places. None takes the place of one that another
    /// process has made meanwhile.
    fn take_places(&self, dir: &Path) -> Result<(), BackupError> {
        for (index, name) in RESTORED.iter().enumerate() {
            let flags = RenameFlags::RENAME_NOREPLACE;
            let moved = renameat2(AT_FDCWD, &self.0.join(name), AT_FDCWD, &dir.join(name), flags);
            if let Err(errno) = moved {
                // Those that were moved are ours.
                RESTORED[..index].iter().for_each(|name| {
                    let _ = std::fs::remove_dir_all(dir.join(name));
                });
                return Err(not_moved(dir, name, errno));
            }
        }
        Ok(())
    }
}

/// Why a part of the cell could not be put where it belongs.
fn not_moved(dir: &Path, name: &str, errno: Errno) -> BackupError {
    let path = dir.to_owned();
    if errno == Errno::EEXIST {
        let what = name.to_owned();
        return BackupError::InUse { path, what };
    }
    BackupError::Unwritable {
        path,
        source: errno.into(),
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Refuses a directory in which anything of a cell is.
fn check_free(dir: &Path) -> Result<(), BackupError> {
    let failed = |source| BackupError::Unreadable {
        path: dir.to_owned(),
        source,
    };
    let entries = std::fs::read_dir(dir).map_err(failed)?;
    for entry in entries {
        let name = entry.map_err(failed)?.file_name().to_string_lossy().into_owned();
        let is_empty = |name: &str| std::fs::read_dir(dir.join(name)).is_ok_and(|mut inside| inside.next().is_none());
        let is_made_before = MADE_BEFORE.contains(&name.as_str()) && (name != "tasks" || is_empty(&name));
        if !is_made_before {
            return Err(BackupError::InUse {
                path: dir.to_owned(),
                what: name,
            });
        }
    }
    Ok(())
}

fn make(dir: &Path, from: impl Read, moment: Moment, user: &UserName) -> Result<String, BackupError> {
    let staging = Staging::new(dir)?;
    let layout = Layout::new(&staging.0);
    let begin = |manifest: &Manifest| {
        init::make_directories(&layout)?;
        check_room(dir, manifest)
    };
    let manifest = archive::read(from, begin, |file, content| unpack(&staging.0, file, content))?;
    let mut store = Store::open(&layout.database())?;
    let state = check_state(&store, &manifest)?;
    cut(&mut store, &state, moment)?;
    let state = replay(&store)?.state;
    let cell = CellConfig::read(&layout.etc("cell.toml"))?;
    if cell.cell != state.cell {
        let why = "etc/cell.toml and the database are of different cells";
        return Err(BackupError::Damaged(why.to_owned()));
    }
    let missing = without_script(&state, &store)?;
    let (jobs, clock) = (state.jobs.len(), Clock::continue_from(state.now));
    let mut core = Core::new(state);
    let step = core.restore(&cell.master_host, clock.now());
    store.append(&step.events)?;
    store.forget_accounting_file()?;
    drop(store);
    staging.take_places(dir)?;
    init::make_directories(&Layout::new(dir))?;
    init::write_tree_of_master(dir, user)?;
    let state = core.state();
    Ok(format!(
        "cell {} of {}: {jobs} jobs after event {}, epoch {}{missing}",
        manifest.cell, cell.master_host, state.last.0, state.epoch.0
    ))
}

/// Refuses a backup that the disk has no room for, whatever it says to hold.
fn check_room(dir: &Path, manifest: &Manifest) -> Result<(), BackupError> {
    let unwritable = |source| BackupError::Unwritable {
        path: dir.to_owned(),
        source,
    };
    let disk = statvfs(dir).map_err(|errno| unwritable(errno.into()))?;
    let free = disk.blocks_available() as u64 * disk.fragment_size() as u64;
    let needed = manifest
        .files
        .iter()
        .fold(0_u64, |sum, file| sum.saturating_add(file.bytes));
    if needed <= free {
        return Ok(());
    }
    let why = format!("the backup holds {} MiB, and {} MiB are free", needed >> 20, free >> 20);
    Err(unwritable(io::Error::new(ErrorKind::StorageFull, why)))
}

fn unpack(dir: &Path, file: &ArchivedFile, content: &mut dyn Read) -> Result<(), BackupError> {
    let path = dir.join(&file.path);
    let unwritable = |source| BackupError::Unwritable {
        path: path.clone(),
        source,
    };
    let mut options = OpenOptions::new();
    let made = options.write(true).create_new(true).mode(0o600).open(&path);
    let mut made = made.map_err(unwritable)?;
    let copied = io::copy(content, &mut made).map_err(|error| match error.raw_os_error() {
        Some(_) => unwritable(error),
        None => BackupError::Broken(error),
    })?;
    if copied != file.bytes {
        return Err(BackupError::Damaged(format!("{} is cut off", file.path)));
    }
    // Nobody but its owner writes a file of the cell, whatever the archive says.
    let mode = std::fs::Permissions::from_mode(file.mode & 0o755);
    made.set_permissions(mode)
        .and_then(|()| made.sync_all())
        .map_err(unwritable)
}

/// The state of the database, which must be the one that the manifest names.
fn check_state(store: &Store, manifest: &Manifest) -> Result<State, BackupError> {
    let state = super::verify(store)?;
    let refuse = |why: String| Err(BackupError::Damaged(why));
    if format!("{:016x}", state.state.cell.0) != manifest.cell || state.state.last.0 != manifest.last_event {
        return refuse(format!(
            "{DATABASE} ends with event {} of cell {:016x}",
            state.state.last.0, state.state.cell.0
        ));
    }
    let is_of_this_version = manifest.version == version::line("gridwright-master");
    if is_of_this_version && digest(&state.state) != manifest.state {
        return refuse(format!("{DATABASE} replays to another state than when it was written"));
    }
    Ok(state.state)
}

fn cut(store: &mut Store, state: &State, moment: Moment) -> Result<(), BackupError> {
    let (first, last) = (store.first()?, state.last);
    let none = BackupError::NoSuchMoment { first, last: last.0 };
    let at = match moment {
        Moment::Newest => return Ok(()),
        Moment::Event(at) => at,
        Moment::Time(wall) => store.last_until(wall)?.ok_or(none)?,
    };
    if at.0 < first || at > last {
        return Err(BackupError::NoSuchMoment { first, last: last.0 });
    }
    store.cut_after(at)?;
    match replay(store) {
        // Without its beginning, a log is of use only behind a snapshot.
        Err(StoreError::Gap { .. }) => Err(BackupError::NoSuchMoment { first, last: last.0 }),
        Err(error) => Err(error.into()),
        Ok(_) => Ok(()),
    }
}

/// Words about jobs whose script was dropped because they ended after the moment.
fn without_script(state: &State, store: &Store) -> Result<String, BackupError> {
    let scripts = store.scripts()?;
    let lacks = |program: &Program| match program {
        Program::Stored { script, .. } => !scripts.contains(&script.digest),
        Program::Script { .. } | Program::Command { .. } => false,
    };
    let lacking = state.jobs.values().filter(|job| lacks(&job.spec.program));
    let numbers: Vec<String> = lacking.map(|job| job.number.to_string()).collect();
    if numbers.is_empty() {
        return Ok(String::new());
    }
    let named = &numbers[..numbers.len().min(NAMED_JOBS)];
    Ok(format!(
        "; {} jobs had ended when the backup was made, and their scripts are gone: qdel {}",
        numbers.len(),
        named.join(" ")
    ))
}
