//! One recipe line of a make that `qmake` runs: where it runs, and that no slot has two.
//!
//! The slots of a job are files in a directory; a line holds the lock of its slot until it has
//! ended, whoever is killed. The first slot is that of the make itself, on its own host: a line
//! there needs no slave task. A line that starts a make again runs beside this one, which spreads
//! the lines of that make.

use super::{Fail, Outcome, exit, not_started, own};
use nix::fcntl::{Flock, FlockArg};
use proto::diagnostic::{Code, Diagnostic};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The variables in which make's children find the directory of slots, make itself, and whether
/// they say where they run.
pub(super) const ROOM: &str = "QMAKE_ROOM";
pub(super) const MAKE: &str = "QMAKE_MAKE";
pub(super) const VERBOSE: &str = "QMAKE_VERBOSE";

/// The file with the options of jobs; it is there if each line is a job.
const OPTIONS: &str = "options";

/// What a slot on make's own host is called.
const HERE: &str = "-";

/// The host of each slot of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Slots(Vec<String>);

impl Slots {
    /// The slots of the parallel job that this is a process of.
    pub(super) fn from_environment() -> Option<Self> {
        let text = fs::read_to_string(std::env::var_os("PE_HOSTFILE")?).ok()?;
        Some(Self::from_host_file(&text))
    }

    /// One slot, here.
    pub(super) fn of_serial_job() -> Self {
        Self(vec![HERE.to_owned()])
    }

    /// The lines of a host file: a host, its slots, and more.
    fn from_host_file(text: &str) -> Self {
        let mut slots = Vec::new();
        for line in text.lines() {
            let mut words = line.split_whitespace();
            let (Some(host), Some(count)) = (words.next(), words.next()) else {
                continue;
            };
            slots.extend((0..count.parse().unwrap_or(0)).map(|_: u32| host.to_owned()));
        }
        // The first host is the one on which the job's own process runs.
        match slots.first_mut() {
            Some(first) => HERE.clone_into(first),
            None => return Self::of_serial_job(),
        }
        Self(slots)
    }
}

/// How recipe lines run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RecipeMode {
    /// In the slots of a job.
    Slots(Slots),
    /// As jobs with these options.
    Jobs(Vec<String>),
}

/// A directory that goes with the value.
pub(super) struct Room(PathBuf);

impl Room {
    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        // TMPDIR of a job goes with it in any case.
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl RecipeMode {
    /// How many lines run at once, unless make is told otherwise.
    pub(super) fn slots(&self) -> Option<usize> {
        match self {
            RecipeMode::Slots(Slots(hosts)) => Some(hosts.len()),
            RecipeMode::Jobs(_) => None,
        }
    }

    /// Makes the directory that the lines look into.
    pub(super) fn prepare(&self) -> Result<Room, Fail> {
        let path = std::env::temp_dir().join(format!("qmake.{}", std::process::id()));
        let made = fs::DirBuilder::new().mode(0o700).create(&path);
        made.and_then(|()| self.fill(&path)).map_err(|error| {
            let what = format!("qmake: cannot write {}", path.display());
            let refusal = Diagnostic::new(Code::SystemRefused, what).why(error.to_string());
            Fail::new(
                exit::FAILED,
                refusal.fix("set TMPDIR to a directory that can be written"),
            )
        })?;
        Ok(Room(path))
    }

    fn fill(&self, room: &Path) -> io::Result<()> {
        match self {
            RecipeMode::Slots(Slots(hosts)) => {
                for (number, host) in hosts.iter().enumerate() {
                    fs::write(room.join(format!("slot.{number}")), host)?;
                }
                Ok(())
            }
            RecipeMode::Jobs(options) => fs::write(room.join(OPTIONS), options.join("\n")),
        }
    }
}

/// The program that make calls as its shell: a link whose name is that of the command.
pub(super) fn shell(room: &Path, own: &Path) -> Result<PathBuf, Fail> {
    let link = room.join(super::QMAKE.name);
    symlink(own, &link).map_err(|error| not_started("make", &error))?;
    Ok(link)
}

/// Runs a line in place of this process.
pub(super) fn run(line: &str) -> Outcome {
    let room = std::env::var_os(ROOM).map(PathBuf::from).filter(|room| room.is_dir());
    let make = std::env::var(MAKE).unwrap_or_default();
    // On a host of a slave task there is no such directory: what that task starts is its own.
    let Some(room) = room.filter(|_| !starts_make(line, &make)) else {
        return in_place(shell_command(line), "here", line);
    };
    if let Ok(options) = fs::read_to_string(room.join(OPTIONS)) {
        let options: Vec<&str> = options.lines().collect();
        let (wishes, line) = wishes(line);
        let mut job = own("qrsh")?;
        job.args(options).args(wishes).args(["-V", "-noshell"]);
        job.args(["/bin/sh", "-c", line]);
        return in_place(job, "as a job", line);
    }
    let slot = take_slot(&room).map_err(|error| not_started("a recipe line", &error))?;
    // The lock goes with the last process of the line.
    let host = slot.host;
    std::mem::forget(slot.lock);
    if host == HERE {
        return in_place(shell_command(line), "here", line);
    }
    let mut task = own("qrsh")?;
    task.args(["-inherit", "-noshell", "-nostdin", "-V", &host]);
    let directory = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    task.args(["/bin/sh", "-c", "cd \"$1\" && exec /bin/sh -c \"$2\"", "sh"]);
    task.arg(directory).arg(line);
    in_place(task, &host, line)
}

/// Whether a line starts a make, wherever it stands: such a line must not hold a slot that the
/// lines of that make wait for.
fn starts_make(line: &str, make: &str) -> bool {
    let is_end = |rest: &str| !rest.starts_with(|next: char| next.is_alphanumeric() || "_-.".contains(next));
    let mut places = line.match_indices(make);
    !make.is_empty() && places.any(|(at, _)| is_end(&line[at + make.len()..]))
}

fn shell_command(line: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", line]);
    command
}

fn in_place(mut command: Command, place: &str, line: &str) -> Outcome {
    if std::env::var_os(VERBOSE).is_some() {
        crate::output::note(&format!("qmake: {place}: {line}"));
    }
    let error = command.exec();
    Err(not_started(command.get_program(), &error))
}

/// The options that a line asks for by `SGE_RREQ="-l lic=1" command`, and the line. The shell of
/// the line sets the variable too, as everywhere else.
fn wishes(line: &str) -> (Vec<&str>, &str) {
    let Some(rest) = line.trim_start().strip_prefix("SGE_RREQ=") else {
        return (Vec::new(), line);
    };
    let value = match rest.chars().next() {
        Some(quote @ ('"' | '\'')) => rest[1..].split(quote).next(),
        Some(_) | None => rest.split_whitespace().next(),
    };
    (value.unwrap_or_default().split_whitespace().collect(), line)
}

/// A slot with its lock.
struct TakenSlot {
    host: String,
    lock: Flock<File>,
}

/// Takes a slot that no line has. Make runs no more lines than there are slots; if somebody calls
/// it with more, a line waits for one of them.
fn take_slot(room: &Path) -> io::Result<TakenSlot> {
    let mut files = Vec::new();
    for number in 0.. {
        let path = room.join(format!("slot.{number}"));
        match File::open(&path) {
            Ok(file) => files.push((path, file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound && number > 0 => break,
            Err(error) => return Err(error),
        }
    }
    let waited = std::process::id() as usize % files.len();
    for (path, file) in files {
        if let Ok(lock) = Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            return locked(&path, lock);
        }
    }
    let path = room.join(format!("slot.{waited}"));
    let lock = Flock::lock(File::open(&path)?, FlockArg::LockExclusive).map_err(|(_, errno)| errno)?;
    locked(&path, lock)
}

fn locked(path: &Path, lock: Flock<File>) -> io::Result<TakenSlot> {
    // The program that takes the place of this one keeps the lock.
    rustix::io::fcntl_setfd(lock.as_fd(), rustix::io::FdFlags::empty())?;
    let host = fs::read_to_string(path)?;
    Ok(TakenSlot { host, lock })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_slot_is_here_and_the_others_are_of_their_hosts() {
        let slots = Slots::from_host_file("n1 2 all.q@n1 UNDEFINED\nn2 1 all.q@n2 UNDEFINED\n");
        assert_eq!(slots, Slots([HERE, "n1", "n2"].map(str::to_owned).to_vec()));
        assert_eq!(Slots::from_host_file(""), Slots::of_serial_job());
    }

    #[test]
    fn each_line_has_a_slot_of_its_own_until_it_ends() {
        let room = RecipeMode::Slots(Slots(["-", "n1"].map(str::to_owned).to_vec()))
            .prepare()
            .unwrap();
        let (first, second) = (take_slot(room.path()).unwrap(), take_slot(room.path()).unwrap());
        assert_eq!((&*first.host, &*second.host), ("-", "n1"));
        drop(first);
        assert_eq!(take_slot(room.path()).unwrap().host, "-");
    }

    #[test]
    fn a_line_that_starts_a_make_is_known_wherever_the_make_stands() {
        for (line, expected) in [
            ("/usr/bin/make -C sub", true),
            ("(cd sub; /usr/bin/make)", true),
            ("x=$(/usr/bin/make -s name); echo $x", true),
            ("/usr/bin/makeinfo x.texi", false),
            ("cc -c make.c", false),
        ] {
            assert_eq!(starts_make(line, "/usr/bin/make"), expected, "{line}");
        }
        assert!(!starts_make("cc", ""));
    }

    #[test]
    fn a_line_may_ask_for_resources() {
        for (line, expected) in [
            (
                "SGE_RREQ=\"-l lic=1 -q a.q\" cc -c x.c",
                &["-l", "lic=1", "-q", "a.q"][..],
            ),
            ("SGE_RREQ=-V cc", &["-V"]),
            ("cc SGE_RREQ=-V", &[]),
            ("SGE_RREQ=\"", &[]),
        ] {
            assert_eq!(wishes(line), (expected.to_vec(), line));
        }
    }
}
