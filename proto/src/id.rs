//! Names and keys: what a thing is called, on every machine of the cell and over restarts.

use crate::name::Name;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Declares a name as a type of its own, so that a host is never passed where a user is meant.
///
/// A macro, because the seven types differ in nothing but their meaning and a generic newtype would
/// need a marker type and hand-written serde for each.
macro_rules! name {
    ($(#[$doc:meta])* $type:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $type(Name);

        impl $type {
            /// The name as text.
            #[inline]
            pub fn as_str(&self) -> &str {
                self.0.as_str()
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", self.as_str())
            }
        }

        impl PartialEq<str> for $type {
            #[inline]
            fn eq(&self, other: &str) -> bool {
                self.as_str() == other
            }
        }

        impl AsRef<str> for $type {
            fn as_ref(&self) -> &str {
                self.as_str()
            }
        }

        impl std::borrow::Borrow<str> for $type {
            #[inline]
            fn borrow(&self) -> &str {
                self.as_str()
            }
        }
    };
}

/// Declares the two ways to make a name whose text is taken as it is.
macro_rules! verbatim {
    ($type:ident) => {
        impl From<&str> for $type {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl From<String> for $type {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }
    };
}

name! {
    /// A host in its one canonical form: lower case, as its certificate names it. `global` is the
    /// cluster as a whole.
    HostName
}
name! {
    /// A login name.
    UserName
}
name! {
    /// A cluster queue, such as `all.q`.
    QueueName
}
name! {
    /// A parallel environment, such as `smp`.
    PeName
}
name! {
    /// A resource quota set.
    QuotaName
}
name! {
    /// The full name of a resource attribute, never its shortcut.
    AttributeName
}
name! {
    /// A calendar, such as `night`.
    CalendarName
}
name! {
    /// A host group with its leading `@`.
    HostGroupName
}
verbatim!(UserName);
verbatim!(QueueName);
verbatim!(PeName);
verbatim!(QuotaName);
verbatim!(AttributeName);
verbatim!(CalendarName);
verbatim!(HostGroupName);

impl HostName {
    /// The canonical form of a host's name: lower case.
    pub fn new(text: &str) -> Self {
        Self(text.to_ascii_lowercase().into())
    }

    /// The pseudo host that carries what belongs to the whole cluster.
    pub fn global() -> Self {
        Self("global".into())
    }

    /// Whether this is the pseudo host `global`.
    pub fn is_global(&self) -> bool {
        self.as_str() == "global"
    }

    /// Whether a name means this host: in any case, and where one of the two has no domain, by the
    /// part before the first dot.
    pub fn is_called(&self, name: &str) -> bool {
        crate::host::names::is_same(self.as_str(), name)
    }

    /// A number that is the same for the same name, in every process, and most often another for
    /// another.
    #[inline]
    pub fn digest(&self) -> u64 {
        self.0.digest()
    }

    /// The digest of the host with this name, which is in its canonical form.
    pub fn digest_of(name: &str) -> u64 {
        Name::digest_of(name)
    }

    /// The part before the first dot; the whole of an address.
    pub fn short(&self) -> &str {
        crate::host::names::short(self.as_str())
    }
}

impl From<&str> for HostName {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

/// One queue on one host, written `queue@host`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct QueueInstanceName {
    /// The cluster queue.
    pub queue: QueueName,
    /// The host it is on.
    pub host: HostName,
}

impl fmt::Display for QueueInstanceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}@{}", self.queue, self.host))
    }
}

/// A cell for ever: drawn at random when the cell is created, kept over backup and restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CellId(pub u64);

/// A submission, counted from 1 and never reused. What names a job inside the cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SubmitSeq(pub u64);

/// The job number that people see; it may roll over, so it names a job only among those that still
/// exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JobNumber(pub u32);

impl JobNumber {
    /// The last one before they start again at 1.
    pub const LAST: JobNumber = JobNumber(9_999_999);

    /// Whether this number was given out before another one, of two that are near each other. After
    /// the last one comes 1.
    pub fn is_before(self, other: JobNumber) -> bool {
        let ahead = (i64::from(other.0) - i64::from(self.0)).rem_euclid(i64::from(Self::LAST.0));
        ahead > 0 && ahead < i64::from(Self::LAST.0 / 2)
    }
}

impl Default for JobNumber {
    /// The one before the first.
    fn default() -> Self {
        JobNumber(0)
    }
}

impl fmt::Display for JobNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// The number of an advance reservation, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ReservationId(pub u32);

impl fmt::Display for ReservationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// The number of a task inside its job: 1 for a job that is no array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TaskId(pub u32);

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// One run of one task, unambiguous on every host and for ever (ARCHITECTURE.md "Time, keys and
/// requests").
///
/// The text form `CELL.SEQ.TASK.PETASK.ATTEMPT` (cell in hex) names the task's directory on its
/// host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TaskKey {
    /// The cell the task belongs to.
    pub cell: CellId,
    /// The submission.
    pub seq: SubmitSeq,
    /// The task of the job.
    pub task: TaskId,
    /// The task of a parallel job started on a slave host; 0 is the job itself.
    pub pe_task: u32,
    /// Counts the starts of this task from 1; a higher attempt replaces a lower one.
    pub attempt: u32,
}

impl fmt::Display for TaskKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TaskKey {
            cell,
            seq,
            task,
            pe_task,
            attempt,
        } = self;
        write!(f, "{:016x}.{}.{}.{}.{}", cell.0, seq.0, task.0, pe_task, attempt)
    }
}

impl std::str::FromStr for TaskKey {
    type Err = BadTaskKey;

    fn from_str(text: &str) -> Result<Self, BadTaskKey> {
        let bad = || BadTaskKey(text.to_owned());
        let mut parts = text.split('.');
        let mut next = || parts.next().ok_or_else(bad);
        let cell = u64::from_str_radix(next()?, 16).map_err(|_| bad())?;
        let seq = next()?.parse().map_err(|_| bad())?;
        let task = next()?.parse().map_err(|_| bad())?;
        let pe_task = next()?.parse().map_err(|_| bad())?;
        let attempt = next()?.parse().map_err(|_| bad())?;
        let key = TaskKey {
            cell: CellId(cell),
            seq: SubmitSeq(seq),
            task: TaskId(task),
            pe_task,
            attempt,
        };
        // Only the form that Display writes is a key: a directory has one name.
        if key.to_string() == text { Ok(key) } else { Err(bad()) }
    }
}

/// The text is not the form that [`TaskKey`] prints.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a task key (CELL.SEQ.TASK.PETASK.ATTEMPT)")]
pub struct BadTaskKey(pub String);

/// Made by a client for each changing command and stored with its event, so that a repeat gets the
/// first answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RequestId(pub u128);

/// Raised on restore and on take-over; an agent refuses a master with a lower one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Epoch(pub u64);

/// The place of an event in the log, counted from 1 without gaps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EventSeq(pub u64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_names_are_lower_case() {
        assert_eq!(HostName::new("Node1.Example.ORG").as_str(), "node1.example.org");
        assert_eq!(HostName::new("Node1.Example.ORG").short(), "node1");
    }

    #[test]
    fn job_numbers_start_again_behind_the_last() {
        for (one, other, expected) in [
            (0, 1, true),
            (1, 2, true),
            (2, 1, false),
            (5, 5, false),
            (9_999_999, 1, true),
            (1, 9_999_999, false),
            (9_999_000, 7, true),
        ] {
            assert_eq!(JobNumber(one).is_before(JobNumber(other)), expected, "{one} {other}");
        }
    }

    #[test]
    fn a_task_key_reads_back_from_what_it_prints_and_from_nothing_else() {
        let key = TaskKey {
            cell: CellId(0xab),
            seq: SubmitSeq(7),
            task: TaskId(3),
            pe_task: 0,
            attempt: 2,
        };
        assert_eq!(key.to_string(), "00000000000000ab.7.3.0.2");
        assert_eq!(key.to_string().parse(), Ok(key));
        for bad in [
            "",
            "ab.7.3.0.2",
            "00000000000000ab.7.3.0",
            "00000000000000ab.7.3.0.2.1",
            "00000000000000ab.+7.3.0.2",
        ] {
            assert!(bad.parse::<TaskKey>().is_err(), "{bad}");
        }
    }
}
