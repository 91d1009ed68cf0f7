//! What this host's own files permit, whatever the agent asks for (ARCHITECTURE.md "On a host").
//!
//! `etc/launcher.conf` has one setting per line: `min_uid N`, `min_gid N`, `deny_user NAME`,
//! `sensor_user NAME`, `tracking_gids LOW HIGH`, `log_bytes N`. `etc/root-commands` has one whole
//! command per line ([`super::root_commands`]), `etc/root-sensors` one load sensor with its
//! arguments. Files that another user could have written are refused.

use super::denial::Denial;
use super::root_commands::RootCommands;
use crate::trusted;
use nix::fcntl::OFlag;
use nix::sys::stat::{Mode, fstat};
use proto::launch::{Account, Blame, LaunchDocument, Procedure, SensorSpec};
use proto::root_commands::is_sendable;
use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Read};
use std::ops::RangeInclusive;
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

/// Where control groups are; nothing else can be made there, and no links.
const CGROUPS: &str = "/sys/fs/cgroup";

/// The reason why a task is not started, and the party at fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The party at fault: job or host.
    pub blame: Blame,
    /// What, where, why and how to fix it.
    pub text: String,
}

impl Refusal {
    /// One that the job or its user would meet on any host with these rules.
    pub fn of_job(text: impl Into<String>) -> Self {
        Refusal {
            blame: Blame::Job,
            text: text.into(),
        }
    }

    /// One that every job of the queue would meet here, and that somebody has to mend.
    pub fn of_queue(text: impl Into<String>) -> Self {
        Refusal {
            blame: Blame::Queue,
            text: text.into(),
        }
    }

    /// One that any other job would meet here too.
    pub fn of_host(text: impl Into<String>) -> Self {
        Refusal {
            blame: Blame::Host,
            text: text.into(),
        }
    }
}

/// The rules in force; read when the launcher starts. The lists of what root runs are read again
/// when their files change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Everything runs as this uid; no account is checked and none is changed.
    pub single_user: bool,
    /// The lowest uid that may run tasks.
    pub min_uid: u32,
    /// The lowest gid that may run tasks.
    pub min_gid: u32,
    /// The gids that are given to tasks to track them by; none by default.
    pub tracking_gids: Option<RangeInclusive<u32>>,
    /// Bytes at which the log file is turned over.
    pub log_bytes: u64,
    denied: BTreeSet<String>,
    sensor_users: BTreeSet<String>,
    etc: PathBuf,
    root_commands: RootCommands,
    root_sensors: BTreeSet<Vec<String>>,
    /// The files of the last two as they were when they were read. `None` after a failure to read
    /// them, so that they are read again.
    lists: Option<ListStates>,
    /// The last failure to read them, which is logged once.
    trouble: Option<String>,
}

/// The states of the list of commands and of the list of sensors. `None` means that there is no
/// such file.
type ListStates = [Option<FileState>; 2];

/// What changes when a file does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileState {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
    mode: u32,
    owner: u32,
}

impl FileState {
    fn of_file(path: &Path) -> Option<Self> {
        // Not of a link: its target may be exchanged, and the reader takes none that others could
        // exchange.
        let found = std::fs::metadata(path).ok()?;
        Some(FileState {
            device: found.dev(),
            inode: found.ino(),
            bytes: found.size(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
            mode: found.mode(),
            owner: found.uid(),
        })
    }
}

/// The list of commands of root.
const ROOT_COMMANDS: &str = "root-commands";

/// The list of load sensors of root.
const ROOT_SENSORS: &str = "root-sensors";

impl Rules {
    /// Reads the files below `etc`, each of which may be missing.
    ///
    /// # Errors
    /// An unknown setting with its line, a file that others may write, and errors of reading.
    pub fn read(etc: &Path, single_user: bool) -> io::Result<Self> {
        let mut rules = Rules {
            single_user,
            min_uid: 1000,
            min_gid: 100,
            tracking_gids: None,
            log_bytes: 16 << 20,
            denied: BTreeSet::new(),
            sensor_users: BTreeSet::from(["gridwright-sensor".to_owned()]),
            etc: etc.to_owned(),
            root_commands: RootCommands::default(),
            root_sensors: BTreeSet::new(),
            lists: None,
            trouble: None,
        };
        if !single_user {
            let states = rules.list_states();
            rules.read_lists()?;
            rules.lists = Some(states);
        }
        for line in read_lines(&etc.join("launcher.conf"))? {
            rules
                .apply(&line)
                .ok_or_else(|| bad(format!("etc/launcher.conf: cannot read the line {line:?}")))?;
        }
        Ok(rules)
    }

    /// Reads the lists of what root runs again if their files have changed. While they cannot be
    /// read or trusted, nothing of them runs, and every call tries again.
    pub fn refresh(&mut self) {
        // Before the files are read: a change in between is seen by the next call.
        let states = self.list_states();
        if self.single_user || self.lists == Some(states) {
            return;
        }
        match self.read_lists() {
            Ok(()) => {
                (self.lists, self.trouble) = (Some(states), None);
                crate::log::line(format_args!(
                    "etc/{ROOT_COMMANDS} and etc/{ROOT_SENSORS} were read again"
                ));
            }
            Err(error) => {
                (self.root_commands, self.root_sensors) = (RootCommands::default(), BTreeSet::new());
                self.lists = None;
                let text = format!("root runs no command and no sensor until this is mended: {error}");
                if self.trouble.as_ref() != Some(&text) {
                    crate::log::line(format_args!("{text}"));
                }
                self.trouble = Some(text);
            }
        }
    }

    /// The listed commands of root, for people: `None` where everything runs as one user, for a
    /// list that is too long, and while the lists cannot be read.
    pub fn told_commands(&self) -> Option<Vec<String>> {
        let lines = self.root_commands.lines();
        (!self.single_user && self.trouble.is_none() && is_sendable(&lines)).then_some(lines)
    }

    fn list_states(&self) -> ListStates {
        [ROOT_COMMANDS, ROOT_SENSORS].map(|name| FileState::of_file(&self.etc.join(name)))
    }

    fn read_lists(&mut self) -> io::Result<()> {
        let commands = read_of_root(&self.etc.join(ROOT_COMMANDS))?;
        let sensors = read_of_root(&self.etc.join(ROOT_SENSORS))?;
        self.root_commands = RootCommands::new(&commands);
        self.root_sensors = sensors.iter().map(|line| words(line).collect()).collect();
        Ok(())
    }

    fn apply(&mut self, line: &str) -> Option<()> {
        let (name, value) = line.split_once(char::is_whitespace)?;
        let value = value.trim();
        match name {
            "min_uid" => self.min_uid = value.parse().ok()?,
            "log_bytes" => self.log_bytes = value.parse().ok()?,
            "min_gid" => self.min_gid = value.parse().ok()?,
            "tracking_gids" => self.tracking_gids = Some(range(value)?),
            "deny_user" => drop(self.denied.insert(value.to_owned())),
            "sensor_user" => drop(self.sensor_users.insert(value.to_owned())),
            _ => return None,
        }
        Some(())
    }

    /// Returns whether a launcher that works in `folder` may start a task. The queue and this host
    /// set procedures and groups: no job chose them.
    ///
    /// # Errors
    /// What is refused, why, and which file admits it.
    pub fn check(&self, document: &LaunchDocument, folder: &Path) -> Result<(), Refusal> {
        let LaunchDocument {
            account,
            prolog,
            epilog,
            pe_start,
            pe_stop,
            ..
        } = document;
        if self.single_user {
            return Ok(());
        }
        self.check_account(account)
            .map_err(|denial| Refusal::of_job(denial.to_string()))?;
        let of_host = |denial: Denial| Refusal::of_host(denial.to_string());
        self.check_tracking(account.tracking_gid).map_err(of_host)?;
        document
            .cgroup_parent
            .as_deref()
            .map_or(Ok(()), check_cgroup)
            .map_err(of_host)?;
        let mut procedures = [prolog, epilog, pe_start, pe_stop].into_iter().flatten();
        let is_roots = |procedure: &&Procedure| procedure.user.as_deref() == Some("root");
        procedures.by_ref().filter(is_roots).try_for_each(|procedure| {
            let checked = self.root_commands.check(&procedure.command, document, folder);
            checked.map_err(|refusal| self.of_host_in_trouble(refusal))
        })
    }

    /// A list that cannot be read says nothing about the queue or the job.
    fn of_host_in_trouble(&self, refusal: Refusal) -> Refusal {
        self.trouble.as_ref().map_or(refusal, Refusal::of_host)
    }

    /// Whether a user may run anything on this host.
    ///
    /// # Errors
    /// The number that is too low, or the list the user is on.
    pub fn check_account(&self, account: &Account) -> Result<(), Denial> {
        let Account { user, uid, gid, .. } = account;
        self.check_uid(user, *uid)?;
        if *gid < self.min_gid {
            return Err(Denial::LowGid {
                user: user.clone(),
                gid: *gid,
                min: self.min_gid,
            });
        }
        Ok(())
    }

    /// Whether a uid may run anything on this host.
    ///
    /// # Errors
    /// As [`Rules::check_account`].
    pub fn check_uid(&self, user: &str, uid: u32) -> Result<(), Denial> {
        if uid < self.min_uid {
            return Err(Denial::LowUid {
                user: user.to_owned(),
                uid,
                min: self.min_uid,
            });
        }
        if self.denied.contains(user) {
            return Err(Denial::DeniedUser(user.to_owned()));
        }
        Ok(())
    }

    /// Refuses a tracking group that is not in the list of tracking groups. Without this check, an
    /// attacker who controls the agent could give a task the rights of groups such as `disk`.
    fn check_tracking(&self, gid: Option<u32>) -> Result<(), Denial> {
        let Some(gid) = gid else { return Ok(()) };
        if self.tracking_gids.as_ref().is_some_and(|gids| gids.contains(&gid)) {
            return Ok(());
        }
        Err(Denial::TrackingGroup(gid))
    }

    /// Whether the host's own file names this user, or number, for sensors.
    pub fn names_sensor_user(&self, user: &str) -> bool {
        self.sensor_users.contains(user)
    }

    /// Whether a sensor may run as this user.
    ///
    /// # Errors
    /// Which file admits it.
    pub fn check_sensor(&self, spec: &SensorSpec, uid: u32) -> Result<(), Denial> {
        let SensorSpec { path, args, user, .. } = spec;
        if self.single_user || self.sensor_users.contains(user) && uid != 0 {
            return Ok(());
        }
        if uid == 0 {
            let command: Vec<String> = words(path).chain(args.iter().cloned()).collect();
            let is_listed = self.root_sensors.contains(&command);
            return is_listed
                .then_some(())
                .ok_or_else(|| Denial::RootSensor(command.join(" ")));
        }
        self.check_uid(user, uid)
    }
}

/// The launcher makes and writes files of this directory as root, so it must be one in which nobody
/// else can put links.
fn check_cgroup(parent: &str) -> Result<(), Denial> {
    let path = Path::new(parent);
    let leaves = path.components().any(|part| part == Component::ParentDir);
    if path.starts_with(CGROUPS) && !leaves {
        return Ok(());
    }
    Err(Denial::ControlGroup {
        parent: parent.to_owned(),
        below: CGROUPS,
    })
}

/// `LOW HIGH`, both included.
fn range(text: &str) -> Option<RangeInclusive<u32>> {
    let (low, high) = text.split_once(char::is_whitespace)?;
    Some(low.parse().ok()?..=high.trim().parse().ok()?)
}

/// The lines of a file that only root, or the user all runs as, can have written; none if there is
/// no such file.
fn read_lines(path: &Path) -> io::Result<Vec<String>> {
    let mut options = OpenOptions::new();
    let mut file = match options.read(true).custom_flags(libc::O_NONBLOCK).open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    let folder = path.parent().unwrap_or(Path::new("."));
    let folder = nix::fcntl::open(
        folder,
        OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC,
        Mode::empty(),
    )?;
    if !is_own(&file)? || !is_own(&folder)? {
        let shown = path.display();
        return Err(bad(format!(
            "{shown}: it and its directory must belong to root and be writable by nobody else"
        )));
    }
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok(lines(&text))
}

/// Whether nobody but root, or the user all runs as, can write what is open.
fn is_own(open: &impl AsFd) -> io::Result<bool> {
    let stat = fstat(open)?;
    let is_ours = stat.st_uid == 0 || stat.st_uid == nix::unistd::Uid::effective().as_raw();
    Ok(is_ours && !Mode::from_bits_truncate(stat.st_mode).intersects(Mode::S_IWGRP | Mode::S_IWOTH))
}

/// The lines of a file that says what root runs: every directory on the way to it must be root's,
/// too.
fn read_of_root(path: &Path) -> io::Result<Vec<String>> {
    let path = std::path::absolute(path)?;
    Ok(trusted::read_text(&path, &[0])
        .map_err(bad)?
        .map(|text| lines(&text))
        .unwrap_or_default())
}

fn lines(text: &str) -> Vec<String> {
    let lines = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default().trim());
    lines.filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

fn words(line: &str) -> impl Iterator<Item = String> {
    line.split_ascii_whitespace().map(str::to_owned)
}

fn bad(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> Rules {
        Rules::read(Path::new("/nonexistent"), false).expect("no files, default rules")
    }

    #[test]
    fn low_numbers_and_denied_users_are_refused() {
        let mut rules = rules();
        rules.apply("deny_user mallory").expect("a setting");
        assert!(rules.check_uid("daemon", 1).is_err());
        assert!(rules.check_uid("mallory", 2000).is_err());
        assert!(rules.check_uid("alice", 2000).is_ok());
    }

    #[test]
    fn tasks_are_tracked_only_by_groups_of_the_hosts_own_file() {
        let mut rules = rules();
        assert!(rules.check_tracking(None).is_ok());
        assert!(rules.check_tracking(Some(0)).is_err());
        rules.apply("tracking_gids 20000 20100").expect("a setting");
        assert!(rules.check_tracking(Some(20_100)).is_ok());
        assert!(rules.check_tracking(Some(6)).is_err());
    }

    #[test]
    fn control_groups_are_made_only_where_no_user_can_put_a_link() {
        assert!(check_cgroup("/sys/fs/cgroup/gridwright.slice").is_ok());
        for parent in [
            "/home/mallory",
            "/sys/fs/cgroup/../../../tmp",
            "/sys/fs/cgroupx",
            "sys/fs/cgroup",
            "",
        ] {
            assert!(check_cgroup(parent).is_err(), "{parent}");
        }
    }

    #[test]
    fn sensors_run_as_root_only_when_listed_with_their_arguments() {
        let mut rules = rules();
        let sensor = |user: &str, args: &[&str]| SensorSpec {
            id: 1,
            path: "/s".to_owned(),
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            user: user.to_owned(),
            environment: Vec::new(),
        };
        assert!(rules.check_sensor(&sensor("gridwright-sensor", &["x"]), 900).is_ok());
        assert!(rules.check_sensor(&sensor("root", &[]), 0).is_err());
        rules.root_sensors.insert(words("/s -q").collect());
        assert!(rules.check_sensor(&sensor("root", &["-q"]), 0).is_ok());
        for args in [&[][..], &["-v"], &["-q", "x"]] {
            assert!(rules.check_sensor(&sensor("root", args), 0).is_err(), "{args:?}");
        }
    }

    /// A directory cannot be read as a file. The next call reads again whatever the state of the
    /// file is: an error such as EMFILE passes without a change of it.
    #[test]
    fn a_failure_to_read_the_lists_holds_only_as_long_as_it_lasts() {
        let mut rules = rules();
        let listed = |rules: &Rules| !rules.root_commands.lines().is_empty();
        rules.root_commands = RootCommands::new(&["/x/prolog".to_owned()]);
        rules.etc = std::env::temp_dir().join(format!("gridwright-rules-{}", std::process::id()));
        std::fs::create_dir_all(rules.etc.join(ROOT_COMMANDS)).expect("made");
        for _ in 0..2 {
            rules.refresh();
            assert!(!listed(&rules) && rules.lists.is_none() && rules.trouble.is_some());
            assert_eq!(rules.told_commands(), None, "it is not known what is listed");
            assert_eq!(
                rules.of_host_in_trouble(Refusal::of_queue("not listed")).blame,
                Blame::Host
            );
        }
        std::fs::remove_dir_all(&rules.etc).expect("cleaned");
        rules.root_commands = RootCommands::new(&["/x/prolog".to_owned()]);
        rules.refresh();
        assert!(!listed(&rules) && rules.lists == Some([None, None]) && rules.trouble.is_none());
        assert_eq!(rules.told_commands(), Some(Vec::new()));
        assert_eq!(
            rules.of_host_in_trouble(Refusal::of_queue("not listed")).blame,
            Blame::Queue
        );
    }

    #[test]
    fn unknown_settings_are_refused() {
        assert_eq!(rules().apply("min_udi 5"), None);
    }
}
