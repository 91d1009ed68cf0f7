//! `tasks/journal`: the durable exec records of a host, one sync for as many starts as come
//! together.
//!
//! A task that is in the journal may have reached execve; one that is not cannot have. Its line is
//! on disk before its shepherd gets the launch document. What the job's own process adds in
//! `tasks/KEY/exec` (pid, start time) serves only this boot and is not synced: while the machine
//! runs, that file tells exactly whether the execve was reached, and after a crash of the machine
//! the journal is all that is believed.
//!
//! The file has a fixed size and is overwritten in place, so that a sync costs one write and no
//! change of the file system's own tables. When it is full it is written anew with the lines of the
//! tasks that are not forgotten.

use proto::id::TaskKey;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};

/// The file, below the launcher's directory.
const NAME: &str = "tasks/journal";

/// What a new one is written to before it takes the name.
const DRAFT: &str = "tasks/journal.new";

/// The room of the file, unless the tasks of the host need more: some 12,000 starts from one
/// rewriting to the next.
const ROOM: u64 = 1 << 20;

/// More than a line of the journal has.
const LINE_BYTES: u64 = 256;

/// The exec records of a host.
pub struct Journal {
    file: File,
    used: u64,
    room: u64,
    boot_id: String,
    /// The tasks that are not forgotten, with the boot that let each go.
    released: BTreeMap<TaskKey, String>,
}

impl Journal {
    /// Reads the journal of this host, or begins one.
    ///
    /// # Errors
    /// Errors of the file system. A line that is not whole was never synced and is left out.
    pub fn open(boot_id: &str) -> io::Result<Self> {
        let released = match fs::read(NAME) {
            Ok(bytes) => parse(&bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => return Err(error),
        };
        // A disk that is full now has room for the journal that is there: starts go on in it.
        let (file, used, room) = write_anew(&released).or_else(|error| go_on().map_err(|_| error))?;
        Ok(Journal {
            file,
            used,
            room,
            boot_id: boot_id.to_owned(),
            released,
        })
    }

    /// Makes it durable that these tasks may reach execve from now on.
    ///
    /// # Errors
    /// Errors of the file system: none of them may be started then.
    pub fn release(&mut self, keys: &[TaskKey]) -> io::Result<()> {
        let lines: String = keys.iter().map(|key| line('+', key, &self.boot_id)).collect();
        self.append(&lines)?;
        self.file.sync_data()?;
        self.released
            .extend(keys.iter().map(|key| (*key, self.boot_id.clone())));
        Ok(())
    }

    /// Whether a start could be recorded again: writes where the next line goes, and makes that
    /// durable.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn probe(&mut self) -> io::Result<()> {
        if self.used + LINE_BYTES > self.room {
            (self.file, self.used, self.room) = write_anew(&self.released)?;
        }
        // The empty rest begins there.
        self.file.write_all_at(&[0], self.used)?;
        self.file.sync_data()
    }

    /// Drops a task. A crash of the machine may undo that; the task is then reported once more, and
    /// forgotten again.
    pub fn forget(&mut self, key: &TaskKey) {
        if self.released.remove(key).is_some() {
            // What could not be written costs one report after a crash of the machine.
            let _ = self.append(&line('-', key, ""));
        }
    }

    /// The boot in which a task was let go; `None` if it cannot have reached execve.
    pub fn boot_of(&self, key: &TaskKey) -> Option<&str> {
        self.released.get(key).map(String::as_str)
    }

    /// The tasks let go in another boot.
    pub fn of_other_boots(&self) -> Vec<TaskKey> {
        self.released
            .iter()
            .filter(|(_, boot)| **boot != self.boot_id)
            .map(|(key, _)| *key)
            .collect()
    }

    /// Drops tasks that were let go in this boot and do not exist: they were forgotten, but the
    /// record that says so was not written.
    pub fn retain_existing(&mut self, exists: impl Fn(&TaskKey) -> bool) {
        let boot_id = &self.boot_id;
        self.released.retain(|key, boot| boot != boot_id || exists(key));
    }

    fn append(&mut self, lines: &str) -> io::Result<()> {
        if self.used + lines.len() as u64 > self.room {
            (self.file, self.used, self.room) = write_anew(&self.released)?;
        }
        self.file.write_all_at(lines.as_bytes(), self.used)?;
        self.used += lines.len() as u64;
        Ok(())
    }
}

fn line(sign: char, key: &TaskKey, boot_id: &str) -> String {
    format!("{sign} {key} {boot_id}\n")
}

/// What was written, up to the end of the last whole line.
fn whole_lines(bytes: &[u8]) -> &[u8] {
    let written = bytes
        .iter()
        .position(|&byte| byte == 0)
        .map_or(bytes, |end| &bytes[..end]);
    written
        .iter()
        .rposition(|&byte| byte == b'\n')
        .map_or(&[], |end| &written[..=end])
}

/// The tasks that are not forgotten. What follows the last whole line is the empty rest, or was
/// never synced.
fn parse(bytes: &[u8]) -> BTreeMap<TaskKey, String> {
    let mut released = BTreeMap::new();
    for line in String::from_utf8_lossy(whole_lines(bytes)).lines() {
        let mut words = line.split(' ');
        let (sign, key) = (words.next(), words.next().and_then(|word| word.parse::<TaskKey>().ok()));
        match (sign, key) {
            (Some("+"), Some(key)) => drop(released.insert(key, words.next().unwrap_or_default().to_owned())),
            (Some("-"), Some(key)) => drop(released.remove(&key)),
            // A damaged line is one task less that is known after a crash of the machine, which the
            // master finds lost.
            _ => crate::log::line(format_args!(
                "{NAME}: the line {line:?} is none of a journal and is left out"
            )),
        }
    }
    released
}

/// A journal of these tasks under the name, durable, and where its next line goes.
fn write_anew(released: &BTreeMap<TaskKey, String>) -> io::Result<(File, u64, u64)> {
    let lines: String = released.iter().map(|(key, boot)| line('+', key, boot)).collect();
    let used = lines.len() as u64;
    let room = ROOM.max(2 * used);
    let mut options = OpenOptions::new();
    options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o640)
        .custom_flags(libc::O_NOFOLLOW);
    let file = options.open(DRAFT)?;
    let mut bytes = lines.into_bytes();
    // Written out, not left as a hole: a later line is then an overwriting, which needs no room and
    // no new blocks.
    bytes.resize(room as usize, 0);
    file.write_all_at(&bytes, 0)?;
    file.sync_all()?;
    fs::rename(DRAFT, NAME)?;
    File::open("tasks")?.sync_all()?;
    Ok((file, used, room))
}

/// The journal that is there, and where its next line goes: behind the last whole one.
fn go_on() -> io::Result<(File, u64, u64)> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NOFOLLOW)
        .open(NAME)?;
    let bytes = fs::read(NAME)?;
    Ok((file, whole_lines(&bytes).len() as u64, bytes.len() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u64) -> TaskKey {
        format!("00000000000000ab.{number}.1.0.1")
            .parse()
            .expect("it is the form that a key prints")
    }

    #[test]
    fn a_task_is_known_from_its_release_until_it_is_forgotten() {
        let text = [
            line('+', &key(1), "b1"),
            line('+', &key(2), "b1"),
            line('-', &key(1), ""),
            line('+', &key(3), "b2"),
        ];
        let mut bytes = text.concat().into_bytes();
        bytes.resize(4096, 0);
        let read = parse(&bytes);
        assert_eq!(read.keys().copied().collect::<Vec<_>>(), [key(2), key(3)]);
        assert_eq!(read[&key(3)], "b2");
    }

    #[test]
    fn a_line_cut_off_by_a_crash_counts_as_not_written() {
        let whole = line('+', &key(1), "b1");
        for cut in 0..whole.len() - 1 {
            let mut bytes = line('+', &key(9), "b1").into_bytes();
            bytes.extend_from_slice(&whole.as_bytes()[..cut]);
            bytes.resize(4096, 0);
            assert_eq!(
                parse(&bytes).keys().copied().collect::<Vec<_>>(),
                [key(9)],
                "cut after {cut} bytes"
            );
        }
    }
}
