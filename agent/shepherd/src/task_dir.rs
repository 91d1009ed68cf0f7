//! `tasks/KEY/`: what a task leaves on disk, and who holds it.
//!
//! Files: `launch` (the document), `exec` (pid and start time, written before execve), `result` (renamed into place), `sock` (orders, of tasks
//! that live for a moment), `job_scripts/NUMBER` (the user's). The live shepherd
//! holds a lock on the directory itself. All paths are relative to the launcher's directory, so that sockets work whatever the
//! length of its name is.

use nix::fcntl::{Flock, FlockArg};
use proto::id::TaskKey;
use proto::launch::pairs::Record;
use proto::launch::{ExecRecord, LaunchDocument, LaunchResult};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::PathBuf;

/// The directory of all tasks below the launcher's directory.
pub const TASKS: &str = "tasks";

/// The directory of one task.
#[derive(Clone, Debug)]
pub struct TaskDir {
    path: PathBuf,
}

impl TaskDir {
    /// Names the directory; nothing is made.
    pub fn new(key: &TaskKey) -> Self {
        TaskDir { path: PathBuf::from(TASKS).join(key.to_string()) }
    }

    /// A file in the directory.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Makes the directory: others may pass through it to the script, the agent's group may read.
    ///
    /// # Errors
    /// `AlreadyExists` for a task that is known already.
    pub fn create(&self) -> io::Result<()> {
        DirBuilder::new().mode(0o751).create(&self.path)
    }

    /// Whether the directory exists.
    pub fn exists(&self) -> bool {
        self.path.is_dir()
    }

    /// Writes the launch document. Not made durable: it serves a shepherd that lives, and people.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write_launch(&self, document: &LaunchDocument) -> io::Result<()> {
        create_file(self.file("launch"))?.write_all(&document.encode())
    }

    /// Writes `pe_hostfile` of a parallel task, which its user reads.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write_host_file(&self, document: &LaunchDocument) -> io::Result<()> {
        let Some(lines) = &document.host_file else { return Ok(()) };
        let mut file = create_file(self.file("pe_hostfile"))?;
        file.write_all(lines.as_bytes())?;
        file.set_permissions(fs::Permissions::from_mode(0o644))
    }

    /// The launch document, if it can be read.
    pub fn read_launch(&self) -> Option<LaunchDocument> {
        self.read("launch")
    }

    /// The exec record, if one is there and whole.
    pub fn read_exec(&self) -> Option<ExecRecord> {
        self.read("exec")
    }

    /// The result, if the task has ended.
    pub fn read_result(&self) -> Option<LaunchResult> {
        self.read("result")
    }

    /// Whether the task has ended: a result comes into being whole.
    pub fn has_result(&self) -> bool {
        self.file("result").exists()
    }

    fn read<R: Record>(&self, name: &str) -> Option<R> {
        let mut bytes = Vec::new();
        File::open(self.file(name)).ok()?.read_to_end(&mut bytes).ok()?;
        R::decode(&bytes).ok()
    }

    /// Opens the file of the exec record while the process may still write here.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn create_exec(&self) -> io::Result<File> {
        create_file(self.file("exec"))
    }

    /// Makes the result visible in one step. Not durable yet: a result that the master has taken soon needs no sync of its own,
    /// and one that waits gets it from [`TaskDir::sync_result`].
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write_result(&self, result: &LaunchResult) -> io::Result<()> {
        let temporary = self.file("result.new");
        let mut file = create_file(temporary.clone())?;
        file.write_all(&result.encode())?;
        fs::rename(temporary, self.file("result"))
    }

    /// Makes the result durable. A crash of the machine before that leaves a task that was let go and has no result, and so is
    /// recorded as one whose shepherd died.
    ///
    /// # Errors
    /// Those of the file system; a result that is gone is forgotten, which is fine.
    pub fn sync_result(&self) -> io::Result<()> {
        match File::open(self.file("result")) {
            Ok(file) => file.sync_all(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Takes the task's lock, which lasts as long as the process; `None` if a live shepherd holds it.
    ///
    /// # Errors
    /// Those of opening the directory.
    pub fn lock(&self) -> io::Result<Option<Flock<File>>> {
        let folder =
            OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY | libc::O_NOFOLLOW).open(&self.path)?;
        match Flock::lock(folder, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => Ok(Some(lock)),
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
    }

    /// Removes the directory. The tree is root's, and remove_dir_all follows no links.
    ///
    /// # Errors
    /// Those of the file system, except that nothing is there.
    pub fn remove(&self) -> io::Result<()> {
        // What nearly every ended task consists of, the result last: until it goes the task counts as ended.
        for name in ["launch", "exec", "result"] {
            // What cannot be removed is still there below.
            let _ = fs::remove_file(self.file(name));
        }
        let outcome = fs::remove_dir(&self.path).or_else(|error| match error.kind() {
            io::ErrorKind::DirectoryNotEmpty => fs::remove_dir_all(&self.path),
            _ => Err(error),
        });
        match outcome {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }
}

fn create_file(path: PathBuf) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o640).custom_flags(libc::O_NOFOLLOW).open(path)
}

/// Whether the disk has room for another task.
///
/// # Errors
/// What is missing, as the reason of a refused start.
pub fn room(min_bytes: u64) -> Result<(), String> {
    let disk = nix::sys::statvfs::statvfs(TASKS).map_err(|errno| format!("{TASKS}: {errno}"))?;
    let free = disk.blocks_free() as u64 * disk.fragment_size() as u64;
    if free < min_bytes {
        return Err(format!("no space left on the disk of {TASKS}/: {free} bytes are free, a start needs {min_bytes}"));
    }
    // Some file systems have no fixed number of files and say 0 of 0.
    if disk.files() > 0 && disk.files_free() == 0 {
        return Err(format!("no file can be made any more on the disk of {TASKS}/: it has no free inode"));
    }
    Ok(())
}

/// The keys of all task directories.
///
/// # Errors
/// Those of reading the directory.
pub fn all_keys() -> io::Result<Vec<TaskKey>> {
    let names: Vec<_> = fs::read_dir(TASKS)?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<_>>()?;
    Ok(names.iter().filter_map(|name| name.to_str()?.parse().ok()).collect())
}
