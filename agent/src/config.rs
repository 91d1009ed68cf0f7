//! `etc/agent.toml`: what an administrator may set for one host. An unknown key is refused with its
//! line.

use proto::id::HostName;
use quic::MasterAddress;
use serde::Deserialize;
use std::io;
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The UDP port of the master unless the file says otherwise.
pub const DEFAULT_PORT: u16 = 6444;

/// Bytes at which the log file is turned over unless the file says otherwise.
const DEFAULT_LOG_BYTES: u64 = 16 << 20;

/// The keys with their meaning, as the file that a new host gets explains them.
pub const KEYS: &[(&str, &str)] = &[
    ("host", "The name of this host, as in its certificate."),
    ("master_host", "The host of the master."),
    ("port", "The UDP port of the master."),
    (
        "sensor_user",
        "Under whom load sensors run: a name, or UID:GID. Default: gridwright-sensor.",
    ),
    (
        "cgroup_parent",
        "A control group of ours below which each task gets one of its own. Default: none.",
    ),
    (
        "clients",
        "Commands of users that may be connected to this host's socket. Default: 1000.",
    ),
    ("clients_per_user", "Of these, commands of one user. Default: 200."),
    (
        "client_idle_s",
        "Seconds after which a command that asks nothing and waits for nothing is disconnected. Default: 600.",
    ),
    (
        "waits",
        "Commands that may wait for jobs (qsub -sync y), 46 at most: each holds a stream to the master. Default: 46.",
    ),
    ("waits_per_user", "Of these, commands of one user. Default: 23."),
    (
        "log_bytes",
        "Bytes of the log file, where one is used, at which it is turned over; two older ones are kept. Default: 16777216.",
    ),
    (
        "sensor",
        "[[sensor]] sections: path, and user, interval_s, deadline_s where they differ from the others'.",
    ),
];

/// The settings of one host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// This host.
    pub host: HostName,
    /// Where the master is.
    pub master: MasterAddress,
    /// Under whom load sensors run.
    pub sensor_user: Option<String>,
    /// A control group of ours.
    pub cgroup_parent: Option<String>,
    /// What users of this host may take.
    pub users: UserLimits,
    /// Bytes at which the log file is turned over.
    pub log_bytes: u64,
    /// Settings of single sensors.
    pub sensors: Vec<SensorSettings>,
}

/// What the commands of users may take of this host's way to the master.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserLimits {
    /// Commands at once.
    pub clients: usize,
    /// Of these, commands of one user.
    pub clients_per_user: usize,
    /// How long a command may ask nothing.
    pub client_idle: Duration,
    /// Commands that wait for a job.
    pub waits: usize,
    /// Of these, commands of one user.
    pub waits_per_user: usize,
}

impl Default for UserLimits {
    fn default() -> Self {
        Self {
            clients: 1_000,
            clients_per_user: 200,
            client_idle: Duration::from_secs(600),
            waits: 46,
            waits_per_user: 23,
        }
    }
}

/// What is different for one load sensor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SensorSettings {
    /// The program, as `load_sensor` names it.
    pub path: String,
    /// Under whom it runs.
    #[serde(default)]
    pub user: Option<String>,
    /// Seconds between two requests; by default the interval of load reports.
    #[serde(default)]
    pub interval_s: Option<u32>,
    /// Seconds that an answer may take; 60 by default.
    #[serde(default)]
    pub deadline_s: Option<u32>,
}

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    host: String,
    master_host: String,
    #[serde(default = "default_port")]
    port: u16,
    #[serde(default)]
    sensor_user: String,
    #[serde(default)]
    cgroup_parent: String,
    clients: Option<NonZeroUsize>,
    clients_per_user: Option<NonZeroUsize>,
    client_idle_s: Option<NonZeroU64>,
    waits: Option<NonZeroUsize>,
    waits_per_user: Option<NonZeroUsize>,
    log_bytes: Option<NonZeroU64>,
    #[serde(default)]
    sensor: Vec<SensorSettings>,
}

impl File {
    fn users(&self) -> UserLimits {
        let default = UserLimits::default();
        let or = |given: Option<NonZeroUsize>, default: usize| given.map_or(default, NonZeroUsize::get);
        UserLimits {
            clients: or(self.clients, default.clients),
            clients_per_user: or(self.clients_per_user, default.clients_per_user),
            client_idle: self
                .client_idle_s
                .map_or(default.client_idle, |seconds| Duration::from_secs(seconds.get())),
            waits: or(self.waits, default.waits),
            waits_per_user: or(self.waits_per_user, default.waits_per_user),
        }
    }
}

fn default_port() -> u16 {
    DEFAULT_PORT
}

/// The file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It is missing or unreadable.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
    /// It says what cannot be.
    #[error("{}:{line}: {what}", path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong.
        what: String,
    },
}

/// Reads the file at `path`.
///
/// # Errors
/// As [`ConfigError`].
pub fn read(path: &Path) -> Result<Config, ConfigError> {
    let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Unreadable {
        path: path.to_owned(),
        source,
    })?;
    parse(&text).map_err(|(line, what)| ConfigError::Refused {
        path: path.to_owned(),
        line,
        what,
    })
}

/// What the text of the file says, or the line that is wrong and why.
fn parse(text: &str) -> Result<Config, (usize, String)> {
    let file: File = toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        (line_of(text, at), error.message().to_owned())
    })?;
    let users = file.users();
    let File {
        host,
        master_host,
        port,
        sensor_user,
        cgroup_parent,
        log_bytes,
        sensor,
        ..
    } = file;
    let given = |text: String| (!text.is_empty()).then_some(text);
    Ok(Config {
        host: HostName::new(&host),
        master: MasterAddress {
            host: master_host,
            port,
        },
        sensor_user: given(sensor_user),
        cgroup_parent: given(cgroup_parent),
        users,
        log_bytes: log_bytes.map_or(DEFAULT_LOG_BYTES, NonZeroU64::get),
        sensors: sensor,
    })
}

fn line_of(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|&byte| byte == b'\n').count() + 1
}

/// The file of a host that has just joined, every key with its meaning.
pub fn document(host: &HostName, master: &MasterAddress) -> String {
    let mut text = String::from("# Settings of this host's agent.\n");
    for (key, meaning) in KEYS {
        let value = match *key {
            "host" => Some(toml::Value::String(host.to_string())),
            "master_host" => Some(toml::Value::String(master.host.clone())),
            "port" => Some(toml::Value::Integer(master.port.into())),
            _ => None,
        };
        text.push_str(&format!("\n# {meaning}\n"));
        match value {
            Some(value) => text.push_str(&format!("{key} = {value}\n")),
            None if *key == "sensor" => text.push_str("#[[sensor]]\n"),
            None if matches!(*key, "sensor_user" | "cgroup_parent") => text.push_str(&format!("#{key} = \"\"\n")),
            None => text.push_str(&format!("#{key} =\n")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_key_is_refused_with_its_line() {
        let (line, what) = parse("host = \"a\"\nmaster_host = \"m\"\n\nprot = 1\n").unwrap_err();
        assert_eq!(line, 4);
        assert!(what.contains("unknown field `prot`"), "{what}");
    }

    #[test]
    fn a_value_of_another_type_is_refused_with_its_line() {
        let (line, _) = parse("host = \"a\"\nmaster_host = \"m\"\nport = \"x\"\n").unwrap_err();
        assert_eq!(line, 3);
    }

    #[test]
    fn what_a_new_host_gets_reads_back() {
        let master = MasterAddress {
            host: "m".to_owned(),
            port: 7000,
        };
        let config = parse(&document(&HostName::new("Node1"), &master)).unwrap();
        assert_eq!((config.host.as_str(), config.master), ("node1", master));
        assert_eq!(
            (config.sensor_user, config.cgroup_parent, config.sensors),
            (None, None, vec![])
        );
    }

    #[test]
    fn single_sensors_have_settings_of_their_own() {
        let text =
            "host = \"a\"\nmaster_host = \"m\"\nsensor_user = \"900:900\"\n[[sensor]]\npath = \"/s\"\ndeadline_s = 5\n";
        let config = parse(text).unwrap();
        assert_eq!(config.master.port, DEFAULT_PORT);
        assert_eq!(config.sensor_user.as_deref(), Some("900:900"));
        assert_eq!(
            (config.sensors[0].path.as_str(), config.sensors[0].deadline_s),
            ("/s", Some(5))
        );
    }
}
