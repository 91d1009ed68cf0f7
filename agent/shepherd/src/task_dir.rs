//! `tasks/KEY/`: what a task leaves on disk, and who holds it.
//!
//! Files: `record` (launch document, exec record and result, one behind the other), `sock` (orders,
//! of tasks that live for a moment), `job_scripts/NUMBER` (the user's), `active/` ([`spool`]). The
//! live shepherd holds a lock on the directory itself. All paths are relative to the launcher's
//! directory, so that sockets work whatever the length of its name is.
//!
//! One file, and directories that are used again ([`SpareDirectories`]): a file system takes much
//! longer to make and remove files than to rename and write them, and an array of short tasks would
//! spend most of its time there.

pub mod record;
pub mod spool;

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, Flock, FlockArg, fallocate};
use proto::id::TaskKey;
use proto::launch::pairs::Record;
use proto::launch::{ExecRecord, LaunchDocument, LaunchResult};
use record::{Contents, Part};
use spool::{ACTIVE, Spool};
use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::PathBuf;

/// The directory of all tasks below the launcher's directory.
pub const TASKS: &str = "tasks";

/// What is known of a task, in its directory.
const RECORD: &str = "record";

/// Others pass through the directory to what they may read and know by name. Who could open it
/// could hold its lock.
const MODE: u32 = 0o711;

/// Room that a record keeps for its later parts: many times what an exec record and a result take.
const RESERVED_BYTES: i64 = 16 << 10;

/// The directory of one task.
#[derive(Clone, Debug)]
pub struct TaskDir {
    path: PathBuf,
}

impl TaskDir {
    /// Names the directory; nothing is made.
    pub fn new(key: &TaskKey) -> Self {
        TaskDir {
            path: PathBuf::from(TASKS).join(key.to_string()),
        }
    }

    /// A file in the directory.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Makes the directory.
    ///
    /// # Errors
    /// `AlreadyExists` for a task that is known already.
    pub fn create(&self) -> io::Result<()> {
        DirBuilder::new().mode(MODE).create(&self.path)
    }

    /// Whether the directory exists.
    pub fn exists(&self) -> bool {
        self.path.is_dir()
    }

    /// Writes the launch document. Not made durable: it serves a shepherd that lives, and people.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn write_launch(&self, document: &LaunchDocument) -> io::Result<()> {
        append(&self.open_record()?, Part::Launch, &document.encode())
    }

    /// Sets room aside for what is still to be written here, the exec record and the result, so
    /// that a disk that fills up while the task runs does not keep its end from being recorded. A
    /// file system that cannot do that does without.
    ///
    /// # Errors
    /// Errors of the file system; a full one has no room to set aside.
    pub fn reserve(&self) -> io::Result<()> {
        let record = self.open_record()?;
        let used = i64::try_from(record.metadata()?.len()).unwrap_or(i64::MAX);
        match fallocate(&record, FallocateFlags::FALLOC_FL_KEEP_SIZE, used, RESERVED_BYTES) {
            Err(Errno::EOPNOTSUPP | Errno::ENOSYS | Errno::EINVAL) | Ok(()) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Writes `pe_hostfile` of a parallel task, which its user reads.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn write_host_file(&self, document: &LaunchDocument) -> io::Result<()> {
        let Some(lines) = &document.host_file else {
            return Ok(());
        };
        let mut file = create_file(self.file("pe_hostfile"))?;
        file.write_all(lines.as_bytes())?;
        file.set_permissions(fs::Permissions::from_mode(0o644))
    }

    /// The directory that the job knows as its spool directory.
    pub fn spool(&self) -> Spool {
        Spool::new(&self.path)
    }

    /// The launch document, if it can be read.
    pub fn read_launch(&self) -> Option<LaunchDocument> {
        self.read(Part::Launch)
    }

    /// The exec record, if one is there and whole.
    pub fn read_exec(&self) -> Option<ExecRecord> {
        self.read(Part::Exec)
    }

    /// The result, if the task has ended.
    pub fn read_result(&self) -> Option<LaunchResult> {
        self.read(Part::Result)
    }

    /// Whether the task has ended: a result counts once it is whole.
    pub fn has_result(&self) -> bool {
        self.read_result().is_some()
    }

    fn read<R: Record>(&self, wanted: Part) -> Option<R> {
        let bytes = fs::read(self.file(RECORD)).ok()?;
        R::decode(record::body_of(&bytes, wanted)?).ok()
    }

    /// All that the record says. One that is missing says nothing.
    ///
    /// # Errors
    /// Errors of the file system, except that nothing is there.
    pub fn read_all(&self) -> io::Result<Contents> {
        match fs::read(self.file(RECORD)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Contents::default()),
            other => other.map(|bytes| Contents::read(&bytes)),
        }
    }

    /// Whether no shepherd has written anything about the task.
    pub fn is_blank(&self) -> bool {
        match fs::symlink_metadata(self.file(RECORD)) {
            Ok(found) => found.is_file() && found.len() == 0,
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        }
    }

    /// Opens the record while the process may still write here, for [`write_exec`].
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn open_record(&self) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options
            .append(true)
            .create(true)
            .mode(0o640)
            .custom_flags(libc::O_NOFOLLOW)
            .open(self.file(RECORD))
    }

    /// Makes the result visible in one step. Not durable yet: a result that the master has taken
    /// soon needs no sync of its own, and one that waits gets it from [`TaskDir::sync_result`].
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn write_result(&self, result: &LaunchResult) -> io::Result<()> {
        append(&self.open_record()?, Part::Result, &result.encode())
    }

    /// Drops what a process that was killed in the middle of a write left behind the last whole
    /// part.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn trim(&self) -> io::Result<()> {
        let bytes = match fs::read(self.file(RECORD)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => other?,
        };
        let whole = record::whole_bytes(&bytes);
        if whole == bytes.len() {
            Ok(())
        } else {
            self.open_record()?.set_len(whole as u64)
        }
    }

    /// Makes the result durable. A crash of the machine before that leaves a task that was let go
    /// and has no result, and so is recorded as one whose shepherd died.
    ///
    /// # Errors
    /// Errors of the file system; a result that is gone is forgotten, which is fine.
    pub fn sync_result(&self) -> io::Result<()> {
        match File::open(self.file(RECORD)) {
            Ok(file) => file.sync_all(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Takes the task's lock, which lasts as long as the process; `None` if a live shepherd holds
    /// it, or the directory has just become another one.
    ///
    /// # Errors
    /// Those of opening the directory.
    pub fn lock(&self) -> io::Result<Option<Flock<File>>> {
        let folder = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_DIRECTORY | libc::O_NOFOLLOW)
            .open(&self.path)?;
        match Flock::lock(folder, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => {
                let (locked, named) = (lock.metadata()?, fs::metadata(&self.path)?);
                Ok(((locked.dev(), locked.ino()) == (named.dev(), named.ino())).then_some(lock))
            }
            Err((_, nix::errno::Errno::EWOULDBLOCK)) => Ok(None),
            Err((_, errno)) => Err(errno.into()),
        }
    }

    /// Removes what only a running task needs.
    pub fn clean_active(&self) {
        for name in ["sock", "pe_hostfile"] {
            // Missing files are what is wanted; anything else is removed with the directory.
            let _ = fs::remove_file(self.file(name));
        }
        let _ = fs::remove_dir_all(self.file("job_scripts"));
        self.spool().forget_task();
    }

    /// Whether nothing is there that another task could not use again.
    fn is_reusable(&self) -> bool {
        let Ok(entries) = fs::read_dir(&self.path) else {
            return false;
        };
        let mut has_record = false;
        for entry in entries {
            let Ok(entry) = entry else { return false };
            match entry.file_name() {
                name if name == RECORD => has_record = true,
                name if name == ACTIVE && self.spool().is_plain() => {}
                _ => return false,
            }
        }
        has_record
    }

    /// Removes the directory. The tree is root's, and remove_dir_all follows no links.
    ///
    /// # Errors
    /// Errors of the file system, except that nothing is there.
    pub fn remove(&self) -> io::Result<()> {
        // An empty directory goes without a descriptor, which there may not be.
        let outcome = fs::remove_dir(&self.path).or_else(|_| fs::remove_dir_all(&self.path));
        match outcome {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }
}

/// Adds a part, or nothing: what a full disk cut off goes again.
fn append(mut file: &File, part: Part, body: &[u8]) -> io::Result<()> {
    let before = file.metadata()?.len();
    file.write_all(&part.encode(body)).inspect_err(|_| {
        // Where this fails too, the part stays incomplete, and so does not count.
        let _ = file.set_len(before);
    })
}

/// Adds the exec record to a record that was opened before.
///
/// # Errors
/// Errors of the file system.
pub fn write_exec(record: &File, exec: &[u8]) -> io::Result<()> {
    append(record, Part::Exec, exec)
}

/// Directories of forgotten tasks, for the next ones.
pub struct SpareDirectories {
    free: Vec<u32>,
    next: u32,
}

/// Where they are.
const SPARES: &str = "tasks/.spare";

/// The most of them: more tasks than end at once on any host need no speed.
const MAX_SPARES: usize = 64;

impl SpareDirectories {
    /// None yet. What an earlier launcher kept goes.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn new() -> io::Result<Self> {
        match fs::remove_dir_all(SPARES) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        DirBuilder::new().mode(0o700).create(SPARES)?;
        Ok(SpareDirectories {
            free: Vec::new(),
            next: 0,
        })
    }

    fn path(number: u32) -> PathBuf {
        PathBuf::from(format!("{SPARES}/{number}"))
    }

    /// Makes the directory of a task, of a spare one where there is one.
    ///
    /// # Errors
    /// `AlreadyExists` for a task that is known already.
    pub fn create(&mut self, dir: &TaskDir) -> io::Result<()> {
        if dir.path.symlink_metadata().is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        match self.free.pop() {
            Some(number) => fs::rename(Self::path(number), &dir.path).or_else(|_| dir.create()),
            None => dir.create(),
        }
    }

    /// Takes the directory of a task away: at once, so that the task is unknown from then on.
    ///
    /// # Errors
    /// Errors of the file system, except that nothing is there.
    pub fn remove(&mut self, dir: &TaskDir) -> io::Result<()> {
        // The shepherd tells the end a moment before it lets go of its lock: another task must not
        // find it locked.
        let is_free =
            self.free.len() < MAX_SPARES && dir.lock().is_ok_and(|lock| lock.is_some_and(|lock| tighten(&lock)));
        if !is_free || !dir.is_reusable() {
            return dir.remove();
        }
        let path = Self::path(self.next);
        fs::rename(&dir.path, &path)?;
        match OpenOptions::new()
            .write(true)
            .open(path.join(RECORD))
            .and_then(|record| record.set_len(0))
        {
            Ok(()) => self.free.push(self.next),
            // It is nobody's any more, and the next launcher removes it if this one cannot.
            Err(_) => drop(fs::remove_dir_all(&path)),
        }
        self.next += 1;
        Ok(())
    }
}

/// Takes from a directory what an earlier version let others do. It stays in its group, and gives
/// nobody more than it did.
fn tighten(folder: &File) -> bool {
    let mode = folder.metadata().map(|found| found.mode() & (0o7000 | MODE));
    mode.and_then(|mode| folder.set_permissions(fs::Permissions::from_mode(mode)))
        .is_ok()
}

fn create_file(path: PathBuf) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o640)
        .custom_flags(libc::O_NOFOLLOW)
        .open(path)
}

/// The disk of the task directories has no room for another task.
#[derive(Debug)]
pub enum LackOfRoom {
    /// The system does not say how much is free.
    Unknown(Errno),
    /// Fewer bytes are free.
    Bytes(u64),
    /// No file can be made.
    Inodes,
}

impl fmt::Display for LackOfRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LackOfRoom::Unknown(errno) => write!(f, "{TASKS}: {errno}"),
            LackOfRoom::Bytes(min_bytes) => write!(
                f,
                "no space left on the disk of {TASKS}/: fewer than {min_bytes} bytes are free"
            ),
            LackOfRoom::Inodes => write!(
                f,
                "no file can be made any more on the disk of {TASKS}/: it has no free inode"
            ),
        }
    }
}

impl std::error::Error for LackOfRoom {}

/// Whether the disk has room for another task.
///
/// # Errors
/// As [`LackOfRoom`].
pub fn room(min_bytes: u64) -> Result<(), LackOfRoom> {
    let disk = nix::sys::statvfs::statvfs(TASKS).map_err(LackOfRoom::Unknown)?;
    let free = disk.blocks_free() as u64 * disk.fragment_size() as u64;
    if free < min_bytes {
        return Err(LackOfRoom::Bytes(min_bytes));
    }
    // Some file systems have no fixed number of files and say 0 of 0.
    if disk.files() > 0 && disk.files_free() == 0 {
        return Err(LackOfRoom::Inodes);
    }
    Ok(())
}

/// The keys of all task directories.
///
/// # Errors
/// Those of reading the directory.
pub fn all_keys() -> io::Result<Vec<TaskKey>> {
    let names: Vec<_> = fs::read_dir(TASKS)?
        .map(|entry| Ok(entry?.file_name()))
        .collect::<io::Result<_>>()?;
    Ok(names.iter().filter_map(|name| name.to_str()?.parse().ok()).collect())
}
