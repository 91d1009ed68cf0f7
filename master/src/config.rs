//! `etc/cell.toml` and `etc/master.toml`: one table of keys that reads the files, refuses what it
//! does not know, and writes their documentation.

mod keys;
#[cfg(test)]
mod tests;

pub use keys::{AGENT_KEYS, CELL_KEYS, Key, MASTER_KEYS};

use crate::followers::accounting_file::RotationLimits;
use keys::{Form, RETIRED_KEYS};
use master_core::effect::UserLimits;
use proto::id::{CellId, HostName};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use toml::de::{DeTable, DeValue};

/// A configuration file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file is missing or unreadable.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        #[source]
        source: std::io::Error,
    },
    /// A line is not TOML, names no key, or has a value that the key cannot have.
    #[error("{}:{line}: {what}", path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it, and what would be right.
        what: String,
    },
    /// A key without a default is not in the file.
    #[error("{}: the key {key} is missing", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
        /// The key.
        key: &'static str,
    },
}

/// What all daemons of the cell agree on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellConfig {
    /// The cell.
    pub cell: CellId,
    /// The master's host.
    pub master_host: HostName,
    /// The master's UDP port.
    pub port: u16,
}

/// Settings of the master.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MasterConfig {
    /// The address that the master listens on.
    pub listen: String,
    /// Events after which a snapshot is written.
    pub snapshot_events: u64,
    /// Whether events older than the last but one snapshot are removed.
    pub trim_log: bool,
    /// Inputs that may wait for the core.
    pub input_queue: usize,
    /// Questions that may wait for the reader thread.
    pub query_queue: usize,
    /// Messages that may wait for one agent.
    pub agent_queue: usize,
    /// Connections on the Unix socket.
    pub clients: usize,
    /// Of these, connections of one user.
    pub clients_per_user: usize,
    /// How long a client may take to its first frame.
    pub client_first: Duration,
    /// How long a client may be silent while nothing of it is under way.
    pub client_idle: Duration,
    /// Answers that may wait for jobs.
    pub waits: usize,
    /// Of these, answers that one user waits for.
    pub waits_per_user: usize,
    /// Questions for accounting records that are read at a time.
    pub accounting_readers: usize,
    /// Events that may wait for one event client.
    pub event_queue: usize,
    /// Requests of one client that may be under way.
    pub client_requests: usize,
    /// The largest request of a client in bytes.
    pub client_frame_bytes: usize,
    /// QUIC connections.
    pub agents: usize,
    /// Load values that one host may report.
    pub load_values: usize,
    /// The longest load value, and the longest name of one, in bytes.
    pub load_value_bytes: usize,
    /// Limits for the jobs of one user.
    pub users: UserLimits,
    /// Bytes of the disk that are kept for what must be recorded.
    pub disk_reserve_bytes: u64,
    /// Bytes at which the log file is turned over.
    pub log_bytes: u64,
    /// When accounting files are put aside, and how long they are kept.
    pub accounting_rotation: RotationLimits,
    /// Whether accounting records are written as JSON lines too.
    pub accounting_jsonl: bool,
    /// Days for which a host's certificate is valid.
    pub certificate_days: i64,
}

impl CellConfig {
    /// Reads `etc/cell.toml`.
    ///
    /// # Errors
    /// As [`ConfigError`].
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let values = Values::read(path, CELL_KEYS)?;
        let cell = values.text("cell");
        let number = u64::from_str_radix(&cell, 16);
        Ok(Self {
            cell: CellId(number.map_err(|_| values.refused("cell", "16 hexadecimal digits"))?),
            master_host: HostName::new(&values.text("master_host")),
            port: values.number("port")?,
        })
    }
}

impl MasterConfig {
    /// Reads `etc/master.toml`.
    ///
    /// # Errors
    /// As [`ConfigError`].
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let values = Values::read(path, MASTER_KEYS)?;
        Ok(Self {
            listen: values.text("listen"),
            snapshot_events: values.number("snapshot_events")?,
            trim_log: values.text("trim_log") == "true",
            input_queue: values.number("input_queue")?,
            query_queue: values.number("query_queue")?,
            agent_queue: values.number("agent_queue")?,
            clients: values.number("clients")?,
            clients_per_user: values.number("clients_per_user")?,
            client_first: Duration::from_secs(values.number("client_first_s")?),
            client_idle: Duration::from_secs(values.number("client_idle_s")?),
            waits: values.number("waits")?,
            waits_per_user: values.number("waits_per_user")?,
            accounting_readers: values.number("accounting_readers")?,
            event_queue: values.number("event_queue")?,
            client_requests: values.number("client_requests")?,
            client_frame_bytes: values.number("client_frame_bytes")?,
            agents: values.number("agents")?,
            load_values: values.number("load_values")?,
            load_value_bytes: values.number("load_value_bytes")?,
            users: UserLimits {
                jobs: values.number("jobs_per_user")?,
                job_bytes: values.number("job_bytes_per_user")?,
            },
            disk_reserve_bytes: values.number("disk_reserve_bytes")?,
            log_bytes: values.number("log_bytes")?,
            accounting_rotation: accounting_rotation(&values)?,
            accounting_jsonl: values.text("accounting_jsonl") == "true",
            certificate_days: values.number("certificate_days")?,
        })
    }
}

fn accounting_rotation(values: &Values<'_>) -> Result<RotationLimits, ConfigError> {
    const DAY_S: u64 = 86_400;
    let limit = |key| {
        values
            .number::<u64>(key)
            .map(|number| Some(number).filter(|number| *number > 0))
    };
    let days = |key| limit(key).map(|days| days.map(|days| Duration::from_secs(days * DAY_S)));
    let kept = limit("accounting_keep_files")?;
    Ok(RotationLimits {
        bytes: limit("accounting_rotate_bytes")?,
        age: days("accounting_rotate_days")?,
        kept: kept.map(|kept| usize::try_from(kept).unwrap_or(usize::MAX)),
        kept_for: days("accounting_keep_days")?,
    })
}

/// The text of a configuration file: every key with its meaning; those in `set` with that value,
/// the others as a comment that shows the default.
pub fn document(title: &str, keys: &[Key], set: &[(&str, String)]) -> String {
    let mut text =
        format!("# {title}\n# A key that is not in this list is refused. A line that begins with # shows a default.\n");
    for key in keys {
        text.push('\n');
        for line in key.doc.lines() {
            text.push_str(&format!("# {line}\n"));
        }
        let value = set
            .iter()
            .find(|(name, _)| *name == key.name)
            .map(|(_, value)| value.as_str());
        let shown = key.form.written(value.or(key.default).unwrap_or_default());
        let comment = if value.is_some() { "" } else { "#" };
        text.push_str(&format!("{comment}{} = {shown}\n", key.name));
    }
    text
}

/// The values of a file, defaults filled in; each as its text.
struct Values<'a> {
    path: &'a Path,
    values: BTreeMap<&'static str, (String, usize)>,
}

impl<'a> Values<'a> {
    fn read(path: &'a Path, keys: &[Key]) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Unreadable {
            path: path.to_owned(),
            source,
        })?;
        let mut values = Self {
            path,
            values: BTreeMap::new(),
        };
        let table = DeTable::parse(&text).map_err(|error| {
            let line = line_of(&text, error.span().map_or(0, |span| span.start));
            ConfigError::Refused {
                path: path.to_owned(),
                line,
                what: error.message().to_owned(),
            }
        })?;
        for (name, value) in table.get_ref() {
            let line = line_of(&text, name.span().start);
            values.take(keys, name.get_ref(), value.get_ref(), line)?;
        }
        values.fill_in(keys)?;
        Ok(values)
    }

    /// Takes one line of the file.
    fn take(&mut self, keys: &[Key], name: &str, value: &DeValue<'_>, line: usize) -> Result<(), ConfigError> {
        let refuse = |what: String| ConfigError::Refused {
            path: self.path.to_owned(),
            line,
            what,
        };
        if RETIRED_KEYS.contains(&name) {
            return Ok(());
        }
        let Some(key) = keys.iter().find(|key| key.name == name) else {
            let known: Vec<&str> = keys.iter().map(|key| key.name).collect();
            return Err(refuse(format!(
                "unknown key {name}; the keys of this file are {}",
                known.join(", ")
            )));
        };
        let text = key
            .form
            .read(value)
            .map_err(|expected| refuse(format!("{name} must be {expected}")))?;
        self.values.insert(key.name, (text, line));
        Ok(())
    }

    fn fill_in(&mut self, keys: &[Key]) -> Result<(), ConfigError> {
        for key in keys {
            if !self.values.contains_key(key.name) {
                let missing = ConfigError::Missing {
                    path: self.path.to_owned(),
                    key: key.name,
                };
                let default = key.default.ok_or(missing)?;
                self.values.insert(key.name, (default.to_owned(), 0));
            }
        }
        Ok(())
    }

    fn text(&self, name: &str) -> String {
        self.values[name].0.clone()
    }

    fn number<T: std::str::FromStr>(&self, name: &str) -> Result<T, ConfigError> {
        self.text(name)
            .parse()
            .map_err(|_| self.refused(name, "a smaller number"))
    }

    fn refused(&self, name: &str, expected: &str) -> ConfigError {
        let line = self.values[name].1;
        ConfigError::Refused {
            path: self.path.to_owned(),
            line,
            what: format!("{name} must be {expected}"),
        }
    }
}

fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes().iter().take(at).filter(|&&byte| byte == b'\n').count() + 1
}

/// A value has not the form of its key, which is this one. The text completes "KEY must be".
#[derive(Debug, thiserror::Error)]
enum FormError {
    #[error("a text in quotes")]
    Text,
    #[error("true or false")]
    Flag,
    #[error("a number from {min} to {max}")]
    Count { min: i64, max: i64 },
}

impl Form {
    /// The value as text.
    fn read(&self, value: &DeValue<'_>) -> Result<String, FormError> {
        match (self, value) {
            (Form::Text, DeValue::String(text)) => Ok(text.to_string()),
            (Form::Text, _) => Err(FormError::Text),
            (Form::Flag, DeValue::Boolean(flag)) => Ok(flag.to_string()),
            (Form::Flag, _) => Err(FormError::Flag),
            (Form::Count { min, max }, DeValue::Integer(number)) => {
                let number = i64::from_str_radix(number.as_str(), number.radix()).ok();
                let inside = number.filter(|number| (*min..=*max).contains(number));
                inside
                    .map(|number| number.to_string())
                    .ok_or(FormError::Count { min: *min, max: *max })
            }
            (Form::Count { min, max }, _) => Err(FormError::Count { min: *min, max: *max }),
        }
    }

    /// A value as it is written in a file.
    fn written(&self, text: &str) -> String {
        match self {
            Form::Text => toml::Value::String(text.to_owned()).to_string(),
            Form::Flag | Form::Count { .. } => text.to_owned(),
        }
    }
}
