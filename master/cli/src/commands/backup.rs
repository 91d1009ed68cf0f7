//! `gridwright backup`: a cell in one file, while it runs.
//!
//! The master's program reads the cell and writes the archive. This command makes the file, which
//! gets its name only once it is whole.

use crate::args::{CommandDef, Operands, flag};
use crate::cell_address::place::{self, Purpose};
use crate::commands::{Outcome, up};
use crate::fail::Fail;
use crate::{accounts, daemons, exit, output};
use proto::diagnostic::{Code, Diagnostic};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub const BACKUP: CommandDef = CommandDef {
    name: "gridwright backup",
    summary: "Writes a backup of a cell into FILE, on the master's host, while the cell runs: the database with jobs and accounting, \
              the keys, and etc/. Whoever has the file has the cell's keys. gridwright restore makes a cell of it.",
    operand_placeholder: "FILE",
    operands: Operands::Anywhere,
    options: &[
        place::DIR,
        flag("-help", "print this help"),
        flag("--help", "print this help"),
    ],
    exit_codes: "0 written and verified; 1 it is not, the message says why, and there is no FILE; 2 wrong option, or no file",
};

/// Runs `gridwright backup`.
pub fn run(words: Vec<String>) -> Outcome {
    let parsed = BACKUP.parse(words)?;
    if parsed.has("-help") || parsed.has("--help") {
        output::data(&BACKUP.help());
        return Ok(exit::OK);
    }
    let [file] = parsed.operands.as_slice() else {
        let refusal = Diagnostic::new(Code::BadSyntax, "gridwright backup: name one file");
        let fix = "gridwright backup /backup/cell-$(date +%F)";
        return Err(Fail::new(exit::USAGE, refusal.fix(fix)));
    };
    let dir = up::directory(&parsed, Purpose::Use)?;
    check_cell(&dir)?;
    write(&dir, Path::new(file))?;
    Ok(exit::OK)
}

/// Writes a backup of the cell in `dir`, verifies it, and prints what it holds.
///
/// # Errors
/// It is not written. Then there is no file.
pub fn write(dir: &Path, wanted: &Path) -> Result<(), Fail> {
    let file = &wanted.display().to_string();
    let unfinished = UnfinishedFile::new(wanted)?;
    let mut command = Command::new(daemons::program("gridwright-master")?);
    command.arg("backup").arg("--dir").arg(dir).current_dir("/");
    let file_of_child = unfinished
        .handle
        .try_clone()
        .map_err(|error| not_written(file, error))?;
    command
        .stdin(Stdio::null())
        .stdout(file_of_child)
        .stderr(Stdio::piped());
    let done = command.output().map_err(|error| not_written(file, error))?;
    let said = String::from_utf8_lossy(&done.stderr).trim().to_owned();
    if !done.status.success() {
        return Err(not_written(file, io::Error::other(said)));
    }
    let bytes = unfinished.finish().map_err(|error| not_written(file, error))?;
    output::data(&format!("{file}: {said}, {bytes} bytes\n"));
    Ok(())
}

/// Refuses a directory that is not that of a cell's master.
///
/// # Errors
/// `WrongState`.
pub fn check_cell(dir: &Path) -> Result<(), Fail> {
    accounts::check_place(dir)?;
    if dir.join("etc/master.toml").exists() {
        return Ok(());
    }
    let refusal = Diagnostic::new(Code::WrongState, "error: this is not the directory of a cell's master");
    let fix = "run it on the master's host, and name the directory with --dir";
    Err(refusal.at(dir.display().to_string()).fix(fix).into())
}

fn not_written(file: &str, error: io::Error) -> Fail {
    let refusal = Diagnostic::new(Code::SystemRefused, "error: no backup is written");
    refusal.at(file).why(error.to_string()).into()
}

/// A file beside the one that is to be written.
struct UnfinishedFile {
    path: PathBuf,
    wanted: PathBuf,
    handle: File,
}

impl UnfinishedFile {
    /// Makes it, readable by its owner alone.
    fn new(wanted: &Path) -> Result<Self, Fail> {
        let shown = wanted.display().to_string();
        if wanted.symlink_metadata().is_ok() {
            let refusal = Diagnostic::new(Code::WrongState, "error: the file is there already, and is kept");
            return Err(refusal.at(shown).fix("name another one, or remove it").into());
        }
        let mut path = wanted.as_os_str().to_owned();
        path.push(format!(".{}.part", std::process::id()));
        let mut options = OpenOptions::new();
        let made = options.write(true).create_new(true).mode(0o600).open(&path);
        Ok(Self {
            handle: made.map_err(|error| not_written(&shown, error))?,
            path: path.into(),
            wanted: wanted.to_owned(),
        })
    }

    /// Gives it its name, once it is on the disk. Returns its size.
    fn finish(self) -> io::Result<u64> {
        self.handle.sync_all()?;
        // A link never takes the place of another file, as a new name does. Some file systems have
        // no links.
        match std::fs::hard_link(&self.path, &self.wanted) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => std::fs::rename(&self.path, &self.wanted)?,
            linked => linked?,
        }
        Ok(self.handle.metadata()?.len())
    }
}

impl Drop for UnfinishedFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
