//! The accounts of the daemons where root starts them: users of their own where they exist, else three uids that nobody has,
//! recorded in the cell's directory. Never `nobody`, which other programs share.

use crate::daemons::Accounts;
use crate::fail::Fail;
use nix::unistd::{Gid, Group, Uid, User};
use proto::diagnostic::{Code, Diagnostic};
use serde::{Deserialize, Serialize};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

/// Where free uids are looked for: below what systemd gives to dynamic users, above what administrators give out.
const FREE_FROM: u32 = 58_000;

/// The group of master and agent, where the host has it.
const GROUP: &str = "gridwright";

/// The user of load sensors, where the host has it.
const SENSOR_USER: &str = "gridwright-sensor";

/// What `etc/accounts.toml` records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
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

impl Recorded {
    /// The uid that load sensors run under.
    pub fn sensor(self) -> u32 {
        self.sensor
    }

    /// Whom load sensors run as, for `--sensor-user`: by name where there is such a user, whose group may have another number.
    pub fn sensor_user(self) -> String {
        if named(SENSOR_USER) == Some(self.sensor) { SENSOR_USER.to_owned() } else { self.sensor.to_string() }
    }

    /// The accounts of the daemons.
    pub fn daemons(self) -> Accounts {
        Accounts { master: self.master, agent: self.agent, group: self.group.unwrap_or(self.master) }
    }

    /// Reads `etc/accounts.toml`, or chooses accounts and writes it.
    ///
    /// # Errors
    /// If the file cannot be read or written, or does not parse.
    pub fn of(dir: &Path) -> Result<Self, Fail> {
        let path = dir.join("etc/accounts.toml");
        let refuse = |why: String| {
            let refusal = Diagnostic::new(Code::SystemRefused, "error: the accounts of the daemons cannot be settled");
            Fail::from(refusal.at(path.display().to_string()).why(why))
        };
        if let Ok(text) = std::fs::read_to_string(&path) {
            return toml::from_str(&text).map_err(|error| refuse(error.to_string()));
        }
        let chosen = Self::choose().map_err(&refuse)?;
        let body = toml::to_string(&chosen).map_err(|error| refuse(error.to_string()))?;
        let text = format!(
            "# Uids of the daemons and their gid, chosen when the cell was created. Do not change them: files belong to them.\n{body}"
        );
        std::fs::write(&path, text).map_err(|error| refuse(error.to_string()))?;
        chosen.admit_sensors(dir).map_err(|error| refuse(error.to_string()))?;
        Ok(chosen)
    }

    /// Tells the launcher that sensors may run under their uid, whatever the minimum uid of jobs is.
    fn admit_sensors(self, dir: &Path) -> std::io::Result<()> {
        let path = dir.join("etc/launcher.conf");
        if path.exists() {
            return Ok(());
        }
        let settings = "\
# What this host permits, whatever the master and the agent ask for. One setting a line; only root may be able to write this file.
# min_uid N, min_gid N     the lowest uid and gid that jobs run as (1000, 100)
# deny_user NAME           a user whose jobs never run here; more lines for more users
# sensor_user NAME|UID     an account that load sensors may run as, below min_uid too
# tracking_gids LOW HIGH   gids that belong to nobody and may mark the processes of a task (none)
";
        std::fs::write(path, format!("{settings}sensor_user {}\n", self.sensor))
    }

    fn choose() -> Result<Self, String> {
        let mut taken = Vec::new();
        let mut pick = |name: &str| {
            let uid = named(name).or_else(|| free(&taken)).ok_or("no free uid was found")?;
            taken.push(uid);
            Ok::<u32, String>(uid)
        };
        let (master, agent, sensor) = (pick("gridwright-master")?, pick("gridwright-agent")?, pick(SENSOR_USER)?);
        let group = Group::from_name(GROUP).ok().flatten().map_or(master, |group| group.gid.as_raw());
        Ok(Self { master, agent, sensor, group: Some(group) })
    }

    /// Gives each daemon the files it has to write, and the launcher's users the way through.
    ///
    /// # Errors
    /// If a file cannot be given away.
    pub fn hand_over(self, dir: &Path) -> Result<(), Fail> {
        let Accounts { master, agent, group } = self.daemons();
        // The master makes no files in that directory, and cells of earlier releases have none of these names.
        if dir.join("default/common/accounting").exists() {
            for name in ["reporting", "schedd_runlog", "schedule"] {
                let path = dir.join("default/common").join(name);
                let made = std::fs::OpenOptions::new().create(true).append(true).open(&path);
                made.map_err(|error| not_given(path.display().to_string(), &error))?;
            }
        }
        let give = |name: &str, uid: u32, mode: u32| give(&dir.join(name), uid, group, mode);
        for outcome in [
            give("master", master, 0o700),
            give("agent", agent, 0o755),
            give("run", 0, 0o1775),
            give("log", 0, 0o755),
            give("tasks", 0, 0o2751),
            give("default/common/accounting", master, 0o644),
            give("default/common/reporting", master, 0o644),
            give("default/common/schedd_runlog", master, 0o644),
            give("default/common/schedule", master, 0o644),
        ] {
            outcome.map_err(|(path, error)| not_given(path, &error))?;
        }
        Ok(())
    }
}

fn not_given(path: String, error: &std::io::Error) -> Fail {
    let refusal = Diagnostic::new(Code::SystemRefused, "error: a file cannot be given to its daemon");
    refusal.at(path).why(error.to_string()).into()
}

/// The uid that load sensors of a cell run under, where it is recorded.
pub fn sensor_uid(dir: &Path) -> Option<u32> {
    let text = std::fs::read_to_string(dir.join("etc/accounts.toml")).ok()?;
    toml::from_str(&text).ok().map(Recorded::sensor)
}

fn named(name: &str) -> Option<u32> {
    User::from_name(name).ok().flatten().map(|user| user.uid.as_raw())
}

fn free(taken: &[u32]) -> Option<u32> {
    let unknown = |id: &u32| {
        User::from_uid(Uid::from_raw(*id)).is_ok_and(|user| user.is_none())
            && Group::from_gid(Gid::from_raw(*id)).is_ok_and(|group| group.is_none())
    };
    (FREE_FROM..FREE_FROM + 2000).filter(|id| !taken.contains(id)).find(unknown)
}

/// Gives a file, or a directory with everything directly in it, to an account.
fn give(path: &Path, uid: u32, gid: u32, mode: u32) -> Result<(), (String, std::io::Error)> {
    let named = |error| (path.display().to_string(), error);
    if path.is_dir() {
        for entry in std::fs::read_dir(path).map_err(named)?.flatten() {
            if uid != 0 && entry.file_type().is_ok_and(|kind| kind.is_file()) {
                chown(entry.path(), Some(uid), Some(gid)).map_err(named)?;
            }
        }
    }
    if path.exists() {
        chown(path, Some(uid), Some(gid)).map_err(named)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).map_err(named)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_that_recorded_no_group_keeps_the_one_its_files_have() {
        let old: Recorded = toml::from_str("master = 58000\nagent = 58001\nsensor = 58002\n").unwrap();
        assert_eq!(old.daemons().group, 58000);
        let new = Recorded { group: Some(990), ..old };
        assert_eq!(toml::from_str::<Recorded>(&toml::to_string(&new).unwrap()).unwrap().daemons().group, 990);
    }

    #[test]
    fn free_uids_have_neither_user_nor_group_and_differ() {
        let first = free(&[]).unwrap();
        let second = free(&[first]).unwrap();
        assert_ne!(first, second);
        assert!(User::from_uid(Uid::from_raw(first)).unwrap().is_none());
    }
}
