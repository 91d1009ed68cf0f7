//! Checkpointing environments: how the state of a job is kept and when (`checkpoint(5)`).
//!
//! Which queues offer one, and which jobs ask for one, is deliberately not known here.

#[cfg(test)]
mod tests;

use crate::amount::{Amount, Type};
use crate::diagnostic::Diagnostic;
use crate::object::reader::Reader;
use crate::object::value::{self, AbsolutePath, MalformedValue, Signal, stored_as_text};
use crate::object::{Fields, Object, ObjectKind, names};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The attributes of a checkpointing environment in the order of `qconf -sckpt`.
pub const KEYS: &[&str] = &names::<{ MEANINGS.len() }>(MEANINGS);

/// What each attribute means, for the manual page.
pub const MEANINGS: &[(&str, &str)] = &[
    ("ckpt_name", "The name."),
    (
        "interface",
        "The kind of checkpointing: `userdefined`, `application-level`, `transparent`, \
         `hibernator` or `cpr`. Commands write the state of a job with `application-level`, \
         `hibernator` and `cpr`. With the others a signal tells the job to do so.",
    ),
    (
        "ckpt_command",
        "The command that writes the state of a job, with `$` variables such as `$job_id`, \
         `$job_pid` and `$ckpt_dir`.",
    ),
    (
        "migr_command",
        "The command that writes the state of a job and ends it, so that it can go on elsewhere.",
    ),
    (
        "restart_command",
        "The command that starts a job again from its state, with `hibernator` and `cpr`.",
    ),
    ("clean_command", "The command that runs when the job has ended."),
    ("ckpt_dir", "The directory of the state."),
    (
        "signal",
        "The signal that tells a job to write its state, without `SIG`, or `NONE`.",
    ),
    (
        "when",
        "When the state is written: letters of `s` (the agent is shut down), `m` (at the interval \
         of the queue), `x` (the job is suspended) and `r` (the job starts again when its host is \
         lost).",
    ),
];

/// The interfaces that 8.1.9 on Linux has.
const INTERFACES: &[&str] = &["userdefined", "application-level", "transparent", "hibernator", "cpr"];

/// The interfaces whose state is written and removed by commands; of the others the job writes it
/// itself when it is told by a signal.
const BY_COMMAND: &[&str] = &["application-level", "hibernator", "cpr"];

/// The interfaces that start a job again by a command; of the others the job itself starts and
/// finds its state.
const RESTARTED_BY_COMMAND: &[&str] = &["hibernator", "cpr"];

/// The variables that commands may hold (`checkpoint(5)`).
const VARIABLES: &[&str] = &[
    "host",
    "ja_task_id",
    "job_owner",
    "job_id",
    "job_name",
    "queue",
    "job_pid",
    "ckpt_dir",
    "ckpt_signal",
    "sge_cell",
    "sge_root",
];

/// A text as it was written that was found to be good, `NONE` among them: 8.1.9 shows letter case
/// as it was given.
macro_rules! text {
    ($(#[$doc:meta])* $type:ident, $check:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $type(String);

        impl $type {
            /// The text; none of `NONE`.
            pub fn value(&self) -> Option<&str> {
                Some(self.0.as_str()).filter(|text| !value::is_none(text))
            }
        }

        impl FromStr for $type {
            type Err = MalformedValue;

            fn from_str(text: &str) -> Result<Self, MalformedValue> {
                let check: fn(&str) -> Result<(), MalformedValue> = $check;
                check(text).map(|()| Self(text.to_owned()))
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        stored_as_text!($type);
    };
}

text!(
    /// The kind of checkpointing, in any letter case: `userdefined`, `application-level`,
    /// `transparent`, `hibernator`, `cpr`.
    Interface,
    check_interface
);
text!(
    /// A command with `$` variables, or `NONE`.
    CkptCommand,
    check_command
);
text!(
    /// The signal that tells a job to write its state, without `SIG` and in any letter case, or
    /// `NONE`.
    CkptSignal,
    check_signal
);

impl Interface {
    /// Whether commands write and remove the state of a job. If not, a signal tells the job to do
    /// so.
    pub fn saves_by_command(&self) -> bool {
        BY_COMMAND.iter().any(|known| known.eq_ignore_ascii_case(&self.0))
    }

    /// Whether a job whose state was written is started again by a command and not by its own
    /// script.
    pub fn restarts_by_command(&self) -> bool {
        RESTARTED_BY_COMMAND
            .iter()
            .any(|known| known.eq_ignore_ascii_case(&self.0))
    }
}

impl CkptSignal {
    /// The number of the signal; none of `NONE`.
    pub fn number(&self) -> Option<i32> {
        self.value()
            .and_then(|text| text.to_ascii_uppercase().parse::<Signal>().ok())
            .map(|signal| signal.number())
    }
}

fn check_interface(text: &str) -> Result<(), MalformedValue> {
    if INTERFACES.iter().any(|known| known.eq_ignore_ascii_case(text)) {
        return Ok(());
    }
    Err(MalformedValue::with_words(
        format!("no valid checkpoint interface {text}"),
        format!("one of {}", INTERFACES.join(", ")),
    ))
}

fn check_command(text: &str) -> Result<(), MalformedValue> {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    for after in text.split('$').skip(1) {
        let name = after
            .split(|letter: char| !is_letter(letter))
            .next()
            .unwrap_or_default();
        if !VARIABLES.contains(&name) {
            let known: Vec<String> = VARIABLES.iter().map(|name| format!("${name}")).collect();
            return Err(MalformedValue::new(format!(
                "a command without ${name}, with no variables but {},",
                known.join(" ")
            )));
        }
    }
    if text.is_empty() || text.contains(char::is_control) {
        return Err(MalformedValue::new("a command or NONE"));
    }
    Ok(())
}

fn check_signal(text: &str) -> Result<(), MalformedValue> {
    let upper = text.to_ascii_uppercase();
    if value::is_none(text) || upper.parse::<Signal>().is_ok() {
        return Ok(());
    }
    let what = format!("\"{text}\" is not a signal string (like HUP, INT, WINCH, ..)");
    Err(MalformedValue::with_words(what, "a signal such as USR1, or NONE"))
}

/// When state is written: letters in any order, shown in the order of 8.1.9.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CheckpointOccasions {
    /// `x`: when the job is suspended.
    pub suspended: bool,
    /// `s`: when the daemon of its host is shut down.
    pub shutdown: bool,
    /// `m`: every `min_cpu_interval` of its queue.
    pub periodic: bool,
    /// `r`: when its host is unknown for a while; it is run again then.
    pub unknown: bool,
}

impl FromStr for CheckpointOccasions {
    type Err = MalformedValue;

    fn from_str(text: &str) -> Result<Self, MalformedValue> {
        let mut when = CheckpointOccasions::default();
        for letter in text.chars() {
            match letter {
                'x' => when.suspended = true,
                's' => when.shutdown = true,
                'm' => when.periodic = true,
                'r' => when.unknown = true,
                _ => {
                    return Err(MalformedValue::with_words(
                        "Invalid \"when\" attribute",
                        "one or more of the letters x, s, m, r",
                    ));
                }
            }
        }
        if text.is_empty() {
            Err(MalformedValue::new("one or more of the letters x, s, m, r"))
        } else {
            Ok(when)
        }
    }
}

impl fmt::Display for CheckpointOccasions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            suspended,
            shutdown,
            periodic,
            unknown,
        } = *self;
        let letters = [('x', suspended), ('s', shutdown), ('m', periodic), ('r', unknown)];
        let text: String = letters
            .into_iter()
            .filter_map(|(letter, is_set)| is_set.then_some(letter))
            .collect();
        f.pad(&text)
    }
}

stored_as_text!(CheckpointOccasions);

/// `-c`: when a job wants its state written, in place of what its environment says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Occasion {
    /// `n`: never. Such a job is no checkpointing job.
    Never,
    /// Letters of `m`, `s`, `x`, `r`.
    When(CheckpointOccasions),
    /// A time: as the environment says, and so often, but no more often than `min_cpu_interval` of
    /// the queue allows.
    EverySeconds(u64),
}

/// Why a text is no [`Occasion`], in the words of 8.1.9.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadOccasion {
    /// Neither letters nor a number.
    #[error("-c specifier invalid")]
    Specifier,
    /// It begins like a time and is none, or is no time at all.
    #[error("-c argument invalid")]
    Argument,
}

impl FromStr for Occasion {
    type Err = BadOccasion;

    fn from_str(text: &str) -> Result<Self, BadOccasion> {
        if text.is_empty() {
            return Err(BadOccasion::Argument);
        }
        if text.starts_with(|letter: char| letter.is_ascii_digit() || letter == ':') {
            return seconds(text).map(Self::EverySeconds).ok_or(BadOccasion::Argument);
        }
        if !text.chars().all(|letter| "nsmxr".contains(letter)) {
            return Err(BadOccasion::Specifier);
        }
        if text.contains('n') {
            return Ok(Self::Never);
        }
        text.parse().map(Self::When).map_err(|_| BadOccasion::Specifier)
    }
}

/// A time of at least a second: a number, or `hours:minutes:seconds`.
fn seconds(text: &str) -> Option<u64> {
    let is_time = matches!(text.matches(':').count(), 0 | 2);
    let amount = Amount::parse(text, Type::Time).ok().filter(|_| is_time)?;
    amount
        .finite()
        .and_then(|base| u64::try_from(base).ok())
        .filter(|seconds| *seconds > 0)
}

impl Occasion {
    /// When state is written, where `environment` is what the checkpointing environment says.
    pub fn when(occasion: Option<Occasion>, environment: CheckpointOccasions) -> CheckpointOccasions {
        match occasion {
            None | Some(Occasion::EverySeconds(_)) => environment,
            Some(Occasion::When(when)) => when,
            Some(Occasion::Never) => CheckpointOccasions::default(),
        }
    }

    /// The time between two checkpoints in seconds where `min_s` is the least of the queue; none
    /// where there are none by the clock.
    pub fn interval_s(occasion: Option<Occasion>, environment: CheckpointOccasions, min_s: u64) -> Option<u64> {
        match occasion {
            Some(Occasion::EverySeconds(seconds)) => Some(seconds.max(min_s)),
            _ => Some(min_s).filter(|_| Self::when(occasion, environment).periodic),
        }
    }
}

/// A checkpointing environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// The name.
    pub name: String,
    /// The kind of checkpointing.
    pub interface: Interface,
    /// What writes the state of a job.
    pub ckpt_command: CkptCommand,
    /// What writes it before the job moves.
    pub migr_command: CkptCommand,
    /// What starts a job from its state.
    pub restart_command: CkptCommand,
    /// What removes the state of a job that is done.
    pub clean_command: CkptCommand,
    /// Where the state is kept.
    pub ckpt_dir: AbsolutePath,
    /// The signal that tells a job to write its state.
    pub signal: CkptSignal,
    /// When state is written.
    pub when: CheckpointOccasions,
}

impl Object for Checkpoint {
    fn template(name: &str) -> Self {
        let none = || CkptCommand("none".to_owned());
        Self {
            name: if name.is_empty() { "template" } else { name }.to_owned(),
            interface: Interface("userdefined".to_owned()),
            ckpt_command: none(),
            migr_command: none(),
            restart_command: none(),
            clean_command: none(),
            ckpt_dir: "/tmp".parse().expect("it starts with a slash"),
            signal: CkptSignal("none".to_owned()),
            when: CheckpointOccasions {
                suspended: true,
                shutdown: true,
                ..CheckpointOccasions::default()
            },
        }
    }

    fn read(_: &str, fields: &Fields) -> Result<Self, Vec<Diagnostic>> {
        let mut ckpt = Self::template("");
        let mut reader = Reader::new(ObjectKind::Checkpoint, fields, KEYS, KEYS);
        reader.read("ckpt_name", &mut ckpt.name, value::name);
        reader.read("interface", &mut ckpt.interface, str::parse);
        reader.read("ckpt_command", &mut ckpt.ckpt_command, str::parse);
        reader.read("migr_command", &mut ckpt.migr_command, str::parse);
        reader.read("restart_command", &mut ckpt.restart_command, str::parse);
        reader.read("clean_command", &mut ckpt.clean_command, str::parse);
        reader.read("ckpt_dir", &mut ckpt.ckpt_dir, str::parse);
        reader.read("signal", &mut ckpt.signal, str::parse);
        let named = fields.value("ckpt_name").unwrap_or_default();
        reader.read("when", &mut ckpt.when, |text| {
            text.parse().map_err(|_| {
                let what = format!("Invalid \"when\" attribute for ckpt \"{named}\"");
                MalformedValue::with_words(what, "one or more of the letters x, s, m, r")
            })
        });
        reader.finish(ckpt)
    }

    fn write(&self) -> Fields {
        let Self {
            name,
            interface,
            ckpt_command,
            migr_command,
            restart_command,
            clean_command,
            ckpt_dir,
            signal,
            when,
        } = self;
        let values = [
            name.clone(),
            interface.to_string(),
            ckpt_command.to_string(),
            migr_command.to_string(),
            restart_command.to_string(),
            clean_command.to_string(),
            ckpt_dir.to_string(),
            signal.to_string(),
            when.to_string(),
        ];
        KEYS.iter().copied().zip(values).collect()
    }
}
