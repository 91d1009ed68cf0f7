//! Attributes of the scheduler configuration with a form of their own.

use crate::id::JobNumber;
use crate::object::value::{MalformedValue, Weight, elements, is_none, stored_as_text};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What counts first among the queue instances that would do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum QueueSortMethod {
    /// The load formula, then the sequence number.
    #[default]
    Load,
    /// The sequence number, then the load formula.
    SequenceNumber,
}

impl FromStr for QueueSortMethod {
    type Err = MalformedValue;

    fn from_str(text: &str) -> Result<Self, MalformedValue> {
        match text.to_ascii_lowercase().as_str() {
            "load" => Ok(Self::Load),
            "seqno" => Ok(Self::SequenceNumber),
            _ => Err(MalformedValue::new("load or seqno")),
        }
    }
}

impl fmt::Display for QueueSortMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Load => "load",
            Self::SequenceNumber => "seqno",
        })
    }
}

/// For which jobs the reasons for waiting are kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum JobInfo {
    /// For none.
    No,
    /// For all.
    Yes,
    /// For these.
    Jobs(Vec<JobNumber>),
}

impl FromStr for JobInfo {
    type Err = MalformedValue;

    fn from_str(text: &str) -> Result<Self, MalformedValue> {
        let expected = || MalformedValue::new("true, false, or job_list and job numbers");
        match text.to_ascii_lowercase().as_str() {
            "true" | "1" => return Ok(Self::Yes),
            "false" | "0" => return Ok(Self::No),
            _ => {}
        }
        let numbers = elements(text.strip_prefix("job_list").ok_or_else(expected)?);
        let jobs: Vec<JobNumber> = numbers
            .into_iter()
            .map(|number| number.parse().map(JobNumber).map_err(|_| expected()))
            .collect::<Result<_, MalformedValue>>()?;
        if jobs.is_empty() {
            Err(expected())
        } else {
            Ok(Self::Jobs(jobs))
        }
    }
}

impl fmt::Display for JobInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::No => f.pad("false"),
            Self::Yes => f.pad("true"),
            Self::Jobs(jobs) => {
                let numbers: Vec<String> = jobs.iter().map(ToString::to_string).collect();
                f.pad(&format!("job_list {}", numbers.join(",")))
            }
        }
    }
}

stored_as_text!(JobInfo);

/// The ticket policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TicketPolicy {
    /// Override tickets, `O`.
    Override,
    /// The functional policy, `F`.
    Functional,
    /// The share tree, `S`.
    ShareTree,
}

impl TicketPolicy {
    fn letter(self) -> char {
        match self {
            TicketPolicy::Override => 'O',
            TicketPolicy::Functional => 'F',
            TicketPolicy::ShareTree => 'S',
        }
    }
}

/// The ticket policies that depend on each other, the first one first, each once. `NONE` is empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PolicyHierarchy(pub Vec<TicketPolicy>);

impl FromStr for PolicyHierarchy {
    type Err = MalformedValue;

    fn from_str(text: &str) -> Result<Self, MalformedValue> {
        let mut policies = Vec::new();
        let letters = if is_none(text) { "" } else { text };
        for letter in letters.chars() {
            let all = [
                TicketPolicy::Override,
                TicketPolicy::Functional,
                TicketPolicy::ShareTree,
            ];
            let policy = all
                .into_iter()
                .find(|policy| policy.letter() == letter.to_ascii_uppercase());
            match policy {
                Some(policy) if !policies.contains(&policy) => policies.push(policy),
                Some(_) | None => {
                    return Err(MalformedValue::new(
                        "some of the letters O, F and S, each once, or NONE",
                    ));
                }
            }
        }
        Ok(PolicyHierarchy(policies))
    }
}

impl fmt::Display for PolicyHierarchy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.pad("NONE");
        }
        f.pad(&self.0.iter().map(|policy| policy.letter()).collect::<String>())
    }
}

stored_as_text!(PolicyHierarchy);

/// How much each kind of usage counts, `cpu=1,mem=0,io=0`. A kind that is left out counts nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct UsageWeights {
    /// Seconds of processor time.
    pub cpu: Weight,
    /// Memory in use over time.
    pub mem: Weight,
    /// Data read and written.
    pub io: Weight,
}

impl FromStr for UsageWeights {
    type Err = MalformedValue;

    fn from_str(text: &str) -> Result<Self, MalformedValue> {
        let expected = || MalformedValue::new("a list like cpu=1,mem=0,io=0");
        let mut weights = Self {
            cpu: Weight::default(),
            mem: Weight::default(),
            io: Weight::default(),
        };
        for element in text.split([',', ' ']).filter(|element| !element.is_empty()) {
            let (kind, weight) = element.split_once('=').ok_or_else(expected)?;
            let target = match kind {
                "cpu" => &mut weights.cpu,
                "mem" => &mut weights.mem,
                "io" => &mut weights.io,
                _ => return Err(expected()),
            };
            *target = weight.parse()?;
        }
        Ok(weights)
    }
}

impl fmt::Display for UsageWeights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("cpu={},mem={},io={}", self.cpu, self.mem, self.io))
    }
}

stored_as_text!(UsageWeights);

/// Half-lives by kind of usage, `cpu=1440:mem=720`, in minutes; -1 counts the usage of running jobs
/// alone. `none` is empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DecayList(pub Vec<(String, i64)>);

impl FromStr for DecayList {
    type Err = MalformedValue;

    fn from_str(text: &str) -> Result<Self, MalformedValue> {
        let expected = || MalformedValue::new("a list like cpu=1440:mem=720, or none");
        if is_none(text) {
            return Ok(DecayList(Vec::new()));
        }
        let entry = |element: &str| {
            let (kind, minutes) = element.split_once('=').ok_or_else(expected)?;
            let minutes = minutes
                .parse()
                .ok()
                .filter(|minutes| *minutes >= -1)
                .ok_or_else(expected)?;
            if kind.is_empty() {
                Err(expected())
            } else {
                Ok((kind.to_owned(), minutes))
            }
        };
        text.split(':')
            .map(entry)
            .collect::<Result<_, MalformedValue>>()
            .map(DecayList)
    }
}

impl fmt::Display for DecayList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.pad("none");
        }
        let entries: Vec<String> = self
            .0
            .iter()
            .map(|(kind, minutes)| format!("{kind}={minutes}"))
            .collect();
        f.pad(&entries.join(":"))
    }
}

stored_as_text!(DecayList);
