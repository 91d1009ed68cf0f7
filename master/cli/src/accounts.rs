//! The accounts of the daemons where root starts them: users of their own where they exist, else
//! three uids that nobody has, recorded in the cell's directory. Never `nobody`, which other
//! programs share.

use crate::daemons::{Accounts, earlier};
use crate::fail::Fail;
use crate::folder::{Folder, give_file};
use nix::sys::stat::SFlag;
use nix::unistd::{Gid, Group, Uid, User};
use proto::diagnostic::{Code, Diagnostic};
use serde::{Deserialize, Serialize};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The accounts of a cell are not known.
#[derive(Debug, thiserror::Error)]
pub enum AccountsError {
    /// The file that records them cannot be read.
    #[error(transparent)]
    Malformed(#[from] toml::de::Error),
    /// A new cell gets none.
    #[error("no free uid was found")]
    NoFreeUid,
}

/// Where free uids are looked for: below what systemd gives to dynamic users, above what
/// administrators give out.
const FREE_FROM: u32 = 58_000;

/// How many of them there are.
const FREE_COUNT: u32 = 2_000;

/// The group of master and agent, where the host has it.
const GROUP: &str = "gridwright";

/// The user of load sensors, where the host has it.
const SENSOR_USER: &str = "gridwright-sensor";

/// What `etc/accounts.toml` records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedAccounts {
    /// The uid of the master.
    master: u32,
    /// The uid of the agent.
    agent: u32,
    /// The uid of load sensors, and their gid where no user has it.
    sensor: u32,
    /// The gid of master and agent; the master's uid in cells that recorded none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    group: Option<u32>,
}

impl RecordedAccounts {
    /// The uid that load sensors run under.
    pub fn sensor(self) -> u32 {
        self.sensor
    }

    /// Whom load sensors run as, for `--sensor-user`: by name where there is such a user, whose
    /// group may have another number.
    pub fn sensor_user(self) -> String {
        if named(SENSOR_USER) == Some(self.sensor) {
            SENSOR_USER.to_owned()
        } else {
            self.sensor.to_string()
        }
    }

    /// The accounts of the daemons.
    pub fn daemons(self) -> Accounts {
        Accounts {
            master: self.master,
            agent: self.agent,
            group: self.group.unwrap_or(self.master),
        }
    }

    /// Reads `etc/accounts.toml`, or chooses accounts and writes it.
    ///
    /// # Errors
    /// If the file cannot be read or written, or does not parse.
    pub fn read_or_choose(dir: &Path) -> Result<Self, Fail> {
        let path = dir.join("etc/accounts.toml");
        let refuse = |why: String| {
            let refusal = Diagnostic::new(
                Code::SystemRefused,
                "error: the accounts of the daemons cannot be settled",
            );
            Fail::from(refusal.at(path.display().to_string()).why(why))
        };
        let etc = own_folder(dir, "etc").map_err(|error| refuse(error.to_string()))?;
        match etc.read("accounts.toml") {
            Ok(text) => return toml::from_str(&text).map_err(|error| refuse(error.to_string())),
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(refuse(error.to_string())),
            Err(_) => {}
        }
        let chosen = Self::choose(dir).map_err(|error| refuse(error.to_string()))?;
        let body = toml::to_string(&chosen).map_err(|error| refuse(error.to_string()))?;
        let text = format!(
            "# Uids of the daemons and their gid, chosen when the cell was created. Do not change them: files belong to them.\n{body}"
        );
        etc.write("accounts.toml", &text, 0o644)
            .map_err(|error| refuse(error.to_string()))?;
        chosen.admit_sensors(&etc).map_err(|error| refuse(error.to_string()))?;
        Ok(chosen)
    }

    /// The accounts that `etc/accounts.toml` records, or those that a new cell would get. Nothing
    /// is written.
    ///
    /// # Errors
    /// If the file does not parse, or no uid is free.
    pub fn found_or_chosen(dir: &Path) -> Result<Self, AccountsError> {
        match std::fs::read_to_string(dir.join("etc/accounts.toml")) {
            Ok(text) => Ok(toml::from_str(&text)?),
            Err(_) => Self::choose(dir),
        }
    }

    /// Tells the launcher that sensors may run under their uid, whatever the minimum uid of jobs
    /// is.
    fn admit_sensors(self, etc: &Folder) -> io::Result<()> {
        if etc.has("launcher.conf") {
            return Ok(());
        }
        let settings = "\
# What this host permits, whatever the master and the agent ask for. One setting a line; only root may be able to write this file.
# min_uid N, min_gid N     the lowest uid and gid that jobs run as (1000, 100)
# deny_user NAME           a user whose jobs never run here; more lines for more users
# sensor_user NAME|UID     an account that load sensors may run as, below min_uid too
# log_bytes N              bytes of log/launcher.log at which it is turned over (16777216); two older ones are kept
# tracking_gids LOW HIGH   gids that belong to nobody and may mark the processes of a task (none)
";
        etc.write(
            "launcher.conf",
            &format!("{settings}sensor_user {}\n", self.sensor),
            0o644,
        )
    }

    /// Puts the account of sensors into the rules of a restored cell, in place of the uids of
    /// another machine, which may be somebody's here. A host without rules gets those of a new
    /// cell.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn readmit_sensors(self, dir: &Path) -> io::Result<()> {
        let etc = own_folder(dir, "etc")?;
        if !etc.has("launcher.conf") {
            return self.admit_sensors(&etc);
        }
        let rules = etc.read("launcher.conf")?;
        let is_foreign = |line: &&str| {
            let uid = line.trim().strip_prefix("sensor_user ");
            uid.is_some_and(|uid| uid.trim().bytes().all(|byte| byte.is_ascii_digit()))
        };
        let kept = rules.lines().filter(|line| !is_foreign(line));
        let text = kept.fold(String::new(), |text, line| text + line + "\n");
        etc.write("launcher.conf", &format!("{text}sensor_user {}\n", self.sensor), 0o644)
    }

    fn choose(dir: &Path) -> Result<Self, AccountsError> {
        let mut taken = Vec::new();
        let first = spread(dir);
        let mut pick = |name: &str| {
            let uid = named(name)
                .or_else(|| free(first, &taken))
                .ok_or(AccountsError::NoFreeUid)?;
            taken.push(uid);
            Ok::<u32, AccountsError>(uid)
        };
        let (master, agent, sensor) = (
            pick("gridwright-master")?,
            pick("gridwright-agent")?,
            pick(SENSOR_USER)?,
        );
        let group = Group::from_name(GROUP)
            .ok()
            .flatten()
            .map_or(master, |group| group.gid.as_raw());
        Ok(Self {
            master,
            agent,
            sensor,
            group: Some(group),
        })
    }

    /// Gives each daemon the files it has to write, and the launcher's users the way through. What
    /// a daemon has already is not touched: root changes nothing below a directory that belongs to
    /// somebody else.
    ///
    /// # Errors
    /// If a file cannot be given away, or belongs to an account that is not the daemon's.
    pub fn hand_over(self, dir: &Path) -> Result<(), Fail> {
        let Accounts { master, agent, group } = self.daemons();
        let at = |path: &str| {
            let path = dir.join(path).display().to_string();
            move |error: io::Error| not_given(path, &error)
        };
        // The cell's directory may be reached by a link.
        let top = Folder::open(&dir.join("."))
            .and_then(|top| top.check_ours().map(|()| top))
            .map_err(at(""))?;
        give_written_files(dir, master, group)?;
        for (name, uid, mode) in [
            ("log", 0, 0o755),
            ("tasks", 0, 0o2751),
            ("master", master, 0o700),
            ("accounting", master, 0o755),
            ("agent", agent, 0o755),
        ] {
            give_directory(&top, name, uid, group, mode).map_err(at(name))?;
        }
        let run = top.make("run", 0o755).map_err(at("run"))?;
        // From here on nobody else makes names there, whoever could before.
        run.give(0, 0, 0o755).map_err(at("run"))?;
        for (name, uid) in [("launcher", 0), ("sim", 0), ("master", master), ("agent", agent)] {
            make_own_folder(&run, name, uid, group).map_err(at(&format!("run/{name}")))?;
        }
        earlier::remove_files(&run).map_err(at("run"))
    }
}

/// Refuses to work in a directory where somebody else makes names: the cell of another user, for
/// root or for anybody.
///
/// # Errors
/// If the directory is there and belongs to another user, or others may write to it and root starts
/// the cell.
pub fn check_place(dir: &Path) -> Result<(), Fail> {
    // The directory may be reached by a link.
    let found = Folder::open(&dir.join("."));
    let checked = match &found {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        // A directory that cannot even be read is reported by what comes next.
        Err(_) => return Ok(()),
        Ok(folder) if nix::unistd::geteuid().is_root() => folder.check_ours(),
        Ok(folder) => folder.check_owner(),
    };
    checked.map_err(|error| {
        let refusal = Diagnostic::new(Code::NotPermitted, "error: this directory is somebody else's");
        let fix = match nix::unistd::geteuid().is_root() {
            true => format!("run it as that user, or: chown root {0}; chmod go-w {0}", dir.display()),
            false => "run it as that user, or name another directory with --dir".to_owned(),
        };
        refusal
            .at(dir.display().to_string())
            .why(error.to_string())
            .fix(fix)
            .into()
    })
}

/// Gives the master its files in `default/common`, a directory of root's, where it makes none
/// itself.
fn give_written_files(dir: &Path, master: u32, group: u32) -> Result<(), Fail> {
    let at = |name: &str| dir.join("default/common").join(name).display().to_string();
    let common = match own_folder(dir, "default").and_then(|default| default.enter("common")) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        other => other.and_then(|common| common.check_ours().map(|()| common)),
    };
    let common = common.map_err(|error| not_given(at(""), &error))?;
    if !common.has("accounting") {
        return Ok(());
    }
    // In a new cell `accounting` is a link into the master's own directory. Cells of earlier
    // releases have one of these names alone.
    let is_link = common
        .facts("accounting")
        .is_ok_and(|facts| SFlag::from_bits_truncate(facts.st_mode & SFlag::S_IFMT.bits()) == SFlag::S_IFLNK);
    let names = ["reporting", "schedd_runlog", "schedule"];
    for name in names.into_iter().chain((!is_link).then_some("accounting")) {
        let given = common
            .append(name, 0o644)
            .and_then(|file| match file.metadata()?.uid() {
                uid if uid == 0 || uid == master => give_file(&file, master, group),
                uid => Err(io::Error::other(format!("it belongs to uid {uid}"))),
            });
        given.map_err(|error| not_given(at(name), &error))?;
    }
    Ok(())
}

/// Opens a directory of the cell that has to be root's own.
fn own_folder(dir: &Path, name: &str) -> io::Result<Folder> {
    let folder = Folder::open(&dir.join(name))?;
    folder.check_ours()?;
    Ok(folder)
}

/// Gives a directory to an account, with the files directly in it. While it is root's, nobody else
/// makes names there; one that the account has already is left as it is.
fn give_directory(top: &Folder, name: &str, uid: u32, gid: u32, mode: u32) -> io::Result<()> {
    let folder = match top.enter(name) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        other => other?,
    };
    let owner = folder.owner()?;
    if owner != 0 && owner != uid {
        return Err(io::Error::other(format!(
            "it belongs to uid {owner}, not to root and not to uid {uid}"
        )));
    }
    if owner == 0 && uid != 0 {
        folder.give(0, 0, 0o700)?;
        for name in folder.names()? {
            let Some(file) = name.to_str().and_then(|name| folder.file(name).ok()) else {
                continue;
            };
            let found = file.metadata()?;
            if found.uid() == 0 && found.nlink() == 1 {
                give_file(&file, uid, gid)?;
            }
        }
    }
    folder.give(uid, gid, mode)
}

/// Makes the directory of one daemon below `run`, which is root's. Another account could once make
/// names there: a link or a directory of somebody else is moved aside.
fn make_own_folder(run: &Folder, name: &str, uid: u32, gid: u32) -> io::Result<()> {
    let gid = if uid == 0 { 0 } else { gid };
    let is_usable = |folder: &Folder| folder.owner().is_ok_and(|owner| owner == uid || owner == 0);
    if run.has(name) && !run.enter(name).as_ref().is_ok_and(is_usable) {
        run.rename(name, &format!(".{name}.strange.{}", std::process::id()))?;
    }
    let folder = run.make(name, 0o755)?;
    if folder.owner()? == 0 && uid != 0 {
        for name in folder.names()? {
            name.to_str().map_or(Ok(()), |name| folder.remove(name))?;
        }
    }
    folder.give(uid, gid, 0o755)
}

fn not_given(path: String, error: &io::Error) -> Fail {
    let refusal = Diagnostic::new(Code::SystemRefused, "error: a file cannot be given to its daemon");
    refusal.at(path).why(error.to_string()).into()
}

/// The uids of master and agent, where they are recorded.
pub fn daemon_uids(dir: &Path) -> Option<[u32; 2]> {
    let text = std::fs::read_to_string(dir.join("etc/accounts.toml")).ok()?;
    let Accounts {
        master,
        agent,
        group: _,
    } = toml::from_str::<RecordedAccounts>(&text).ok()?.daemons();
    Some([master, agent])
}

/// The uid that load sensors of a cell run under, where it is recorded.
pub fn sensor_uid(dir: &Path) -> Option<u32> {
    let text = std::fs::read_to_string(dir.join("etc/accounts.toml")).ok()?;
    toml::from_str(&text).ok().map(RecordedAccounts::sensor)
}

fn named(name: &str) -> Option<u32> {
    User::from_name(name).ok().flatten().map(|user| user.uid.as_raw())
}

/// Where the search for free uids begins: two cells of one host hardly ever begin at the same
/// place, and so have accounts of their own.
fn spread(dir: &Path) -> u32 {
    // FNV-1a, which is the same in every release.
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = dir.as_os_str().as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, mix);
    (hash % u64::from(FREE_COUNT)) as u32
}

fn free(first: u32, taken: &[u32]) -> Option<u32> {
    let unknown = |id: &u32| {
        User::from_uid(Uid::from_raw(*id)).is_ok_and(|user| user.is_none())
            && Group::from_gid(Gid::from_raw(*id)).is_ok_and(|group| group.is_none())
    };
    let candidates = (0..FREE_COUNT).map(|n| FREE_FROM + (first + n) % FREE_COUNT);
    candidates.filter(|id| !taken.contains(id)).find(unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_that_recorded_no_group_keeps_the_one_its_files_have() {
        let old: RecordedAccounts = toml::from_str("master = 58000\nagent = 58001\nsensor = 58002\n").unwrap();
        assert_eq!(old.daemons().group, 58000);
        let new = RecordedAccounts {
            group: Some(990),
            ..old
        };
        assert_eq!(
            toml::from_str::<RecordedAccounts>(&toml::to_string(&new).unwrap())
                .unwrap()
                .daemons()
                .group,
            990
        );
    }

    #[test]
    fn free_uids_have_neither_user_nor_group_and_differ() {
        let first = free(FREE_COUNT - 1, &[]).unwrap();
        let second = free(FREE_COUNT - 1, &[first]).unwrap();
        assert_ne!(first, second);
        assert!(
            [first, second]
                .iter()
                .all(|uid| (FREE_FROM..FREE_FROM + FREE_COUNT).contains(uid))
        );
        assert_ne!(spread(Path::new("/no/cell/1")), spread(Path::new("/no/cell/2")));
        assert!(User::from_uid(Uid::from_raw(first)).unwrap().is_none());
    }
}
