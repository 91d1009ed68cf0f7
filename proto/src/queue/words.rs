//! Attributes of a queue that take one of a few words.

use crate::object::value::{MalformedValue, elements};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// How the shell of a job is found and started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ShellStartMode {
    /// The script is executed: its `#!` line counts.
    #[default]
    UnixBehavior,
    /// The shell of `-S` or of the queue runs the script; a `#!` line is a comment.
    PosixCompliant,
    /// The shell of `-S` or of the queue reads the script from its standard input.
    ScriptFromStdin,
}

impl FromStr for ShellStartMode {
    type Err = MalformedValue;

    fn from_str(text: &str) -> Result<Self, MalformedValue> {
        match text.to_ascii_lowercase().as_str() {
            "unix_behavior" => Ok(Self::UnixBehavior),
            "posix_compliant" => Ok(Self::PosixCompliant),
            "script_from_stdin" => Ok(Self::ScriptFromStdin),
            _ => {
                let what = format!("Invalid value \"{text}\" as shell start mode");
                Err(MalformedValue::with_words(
                    what,
                    "unix_behavior, posix_compliant or script_from_stdin",
                ))
            }
        }
    }
}

impl fmt::Display for ShellStartMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::UnixBehavior => "unix_behavior",
            Self::PosixCompliant => "posix_compliant",
            Self::ScriptFromStdin => "script_from_stdin",
        })
    }
}

/// Whether an instance is enabled when it comes into being and when its host comes up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum InitialState {
    /// Enabled when new, later as it was.
    #[default]
    Default,
    /// Enabled in either case.
    Enabled,
    /// Disabled in either case.
    Disabled,
}

impl FromStr for InitialState {
    type Err = MalformedValue;

    fn from_str(text: &str) -> Result<Self, MalformedValue> {
        match text.to_ascii_lowercase().as_str() {
            "default" => Ok(Self::Default),
            "enabled" => Ok(Self::Enabled),
            "disabled" => Ok(Self::Disabled),
            _ => {
                let what = format!("Invalid value \"{text}\" as initial state");
                Err(MalformedValue::with_words(what, "default, enabled or disabled"))
            }
        }
    }
}

impl fmt::Display for InitialState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Default => "default",
            Self::Enabled => "enabled",
            Self::Disabled => "disabled",
        })
    }
}

/// The kinds of jobs a queue takes; neither is `NONE`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueType {
    /// Jobs submitted with `-now n`, as `qsub` does.
    pub batch: bool,
    /// Jobs submitted with `-now y`, as `qrsh` does.
    pub interactive: bool,
}

impl FromStr for QueueType {
    type Err = MalformedValue;

    fn from_str(text: &str) -> Result<Self, MalformedValue> {
        let mut qtype = QueueType::default();
        for word in elements(text) {
            match word.to_ascii_uppercase().as_str() {
                "BATCH" => qtype.batch = true,
                "INTERACTIVE" => qtype.interactive = true,
                "PARALLEL" | "CHECKPOINTING" => {
                    return Err(MalformedValue::new(
                        "BATCH, INTERACTIVE, both or NONE (pe_list and ckpt_list say the rest)",
                    ));
                }
                _ => {
                    let what = format!("error parsing queue type from string \"{word}\"");
                    return Err(MalformedValue::with_words(what, "BATCH, INTERACTIVE, both or NONE"));
                }
            }
        }
        Ok(qtype)
    }
}

impl fmt::Display for QueueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match (self.batch, self.interactive) {
            (true, true) => "BATCH INTERACTIVE",
            (true, false) => "BATCH",
            (false, true) => "INTERACTIVE",
            (false, false) => "NONE",
        })
    }
}
