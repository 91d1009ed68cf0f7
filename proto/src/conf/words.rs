//! Entries of the cluster configuration with a form of their own.

use crate::object::value::{Flag, MalformedValue, is_none, stored_as_text};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// The least number of a group that marks jobs (`sge_conf(5)`).
const LEAST_GID: u32 = 100;

/// `true` or `false`, also read as `1` or `0`; printed in small letters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LowerFlag(pub bool);

impl FromStr for LowerFlag {
    type Err = MalformedValue;

    fn from_str(text: &str) -> Result<Self, MalformedValue> {
        Flag::of_configuration(text).map(|flag| LowerFlag(flag.0))
    }
}

impl fmt::Display for LowerFlag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(if self.0 { "true" } else { "false" })
    }
}

/// Whether a submitting user must be a user object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum EnforceUser {
    /// No.
    No,
    /// Yes; others are refused.
    Yes,
    /// Yes; others are added by themselves.
    #[default]
    Auto,
}

impl FromStr for EnforceUser {
    type Err = MalformedValue;

    fn from_str(text: &str) -> Result<Self, MalformedValue> {
        match text.to_ascii_lowercase().as_str() {
            "false" | "0" => Ok(Self::No),
            "true" | "1" => Ok(Self::Yes),
            "auto" => Ok(Self::Auto),
            _ => Err(MalformedValue::new("true, false or auto")),
        }
    }
}

/// The least weight of a message that is logged, the heaviest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum LogLevel {
    /// Errors.
    Error,
    /// Errors and signs of trouble.
    Warning,
    /// What happens, too.
    Info,
}

impl FromStr for LogLevel {
    type Err = MalformedValue;

    fn from_str(text: &str) -> Result<Self, MalformedValue> {
        match text.to_ascii_lowercase().as_str() {
            "log_emerg" | "log_alert" | "log_crit" | "log_err" => Ok(Self::Error),
            "log_warning" => Ok(Self::Warning),
            "log_notice" | "log_info" | "log_debug" => Ok(Self::Info),
            _ => {
                let what = format!("denied: got invalid value \"{text}\" for loglevel");
                Err(MalformedValue::with_words(what, "log_err, log_warning or log_info"))
            }
        }
    }
}

/// The command lines of load sensors in order; commas separate them. Each starts with `/`. `none`
/// is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LoadSensors(pub Vec<String>);

impl FromStr for LoadSensors {
    type Err = MalformedValue;

    fn from_str(text: &str) -> Result<Self, MalformedValue> {
        let mut sensors: Vec<String> = Vec::new();
        if is_none(text) {
            return Ok(LoadSensors(sensors));
        }
        for command in text
            .split(',')
            .map(str::trim_ascii)
            .filter(|command| !command.is_empty())
        {
            if !command.starts_with('/') {
                return Err(MalformedValue::relative_path(
                    "a list of programs, each with its path from \"/\" on, or none,",
                ));
            }
            if !sensors.iter().any(|earlier| earlier == command) {
                sensors.push(command.to_owned());
            }
        }
        Ok(LoadSensors(sensors))
    }
}

/// Ranges of group ids, `65400-65500,66000`, each at least 100.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct GidRanges {
    text: String,
    ranges: Vec<(u32, u32)>,
}

impl GidRanges {
    /// The ranges in order, both ends included.
    pub fn iter(&self) -> impl Iterator<Item = RangeInclusive<u32>> {
        self.ranges.iter().map(|(first, last)| *first..=*last)
    }
}

impl FromStr for GidRanges {
    type Err = MalformedValue;

    fn from_str(text: &str) -> Result<Self, MalformedValue> {
        let expected = || {
            MalformedValue::new(format!(
                "a list of ranges of group ids from {LEAST_GID} on, such as 65400-65500,"
            ))
        };
        let range = |text: &str| {
            let (first, last) = text.split_once('-').unwrap_or((text, text));
            let first: u32 = first.trim_ascii().parse().map_err(|_| expected())?;
            let last: u32 = last.trim_ascii().parse().map_err(|_| expected())?;
            if first < LEAST_GID || last < first {
                Err(expected())
            } else {
                Ok((first, last))
            }
        };
        let ranges = text.split(',').map(range).collect::<Result<_, MalformedValue>>()?;
        Ok(GidRanges {
            text: text.to_owned(),
            ranges,
        })
    }
}

impl fmt::Display for GidRanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

stored_as_text!(GidRanges);
