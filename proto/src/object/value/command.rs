//! Programs and signals that an object names: paths, procedures with arguments, and control
//! methods.

use super::{MalformedValue, check_name, stored_as_text};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The signals of Linux on the machines we know, with their numbers (`signal(7)`).
const SIGNALS: &[(&str, i32)] = &[
    ("HUP", 1),
    ("INT", 2),
    ("QUIT", 3),
    ("ILL", 4),
    ("TRAP", 5),
    ("ABRT", 6),
    ("BUS", 7),
    ("FPE", 8),
    ("KILL", 9),
    ("USR1", 10),
    ("SEGV", 11),
    ("USR2", 12),
    ("PIPE", 13),
    ("ALRM", 14),
    ("TERM", 15),
    ("STKFLT", 16),
    ("CHLD", 17),
    ("CONT", 18),
    ("STOP", 19),
    ("TSTP", 20),
    ("TTIN", 21),
    ("TTOU", 22),
    ("URG", 23),
    ("XCPU", 24),
    ("XFSZ", 25),
    ("VTALRM", 26),
    ("PROF", 27),
    ("WINCH", 28),
    ("IO", 29),
    ("PWR", 30),
    ("SYS", 31),
];

/// The highest signal number of Linux.
const LAST_SIGNAL: i32 = 64;

/// A path that starts at the root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AbsolutePath(String);

impl AbsolutePath {
    /// The path.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for AbsolutePath {
    type Err = MalformedValue;

    fn from_str(text: &str) -> Result<Self, MalformedValue> {
        if text.starts_with('/') && !text.contains(char::is_control) {
            Ok(Self(text.to_owned()))
        } else {
            Err(MalformedValue::relative_path("a path that starts with \"/\""))
        }
    }
}

impl fmt::Display for AbsolutePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

stored_as_text!(AbsolutePath);

/// A procedure: a path with arguments, `[user@]/path [argument…]`. `$` starts a variable that is
/// replaced at run time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ProcedureCommand(String);

impl ProcedureCommand {
    /// The whole text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The user in front of the path, under whom the procedure runs.
    pub fn user(&self) -> Option<&str> {
        split_user(&self.0).0
    }

    /// The path and the arguments, without the user.
    pub fn command_line(&self) -> &str {
        split_user(&self.0).1
    }
}

/// A `user@` stands before the first slash and blank; an `@` further on belongs to the command.
fn split_user(text: &str) -> (Option<&str>, &str) {
    match text.split_once('@') {
        Some((user, rest)) if check_name(user).is_ok() => (Some(user), rest),
        Some(_) | None => (None, text),
    }
}

impl FromStr for ProcedureCommand {
    type Err = MalformedValue;

    fn from_str(text: &str) -> Result<Self, MalformedValue> {
        let (_, line) = split_user(text);
        if (line.starts_with('/') || line.starts_with('$')) && !text.contains(char::is_control) {
            Ok(Self(text.to_owned()))
        } else {
            Err(MalformedValue::relative_path(
                "a command whose path starts with \"/\", with or without user@ in front,",
            ))
        }
    }
}

impl fmt::Display for ProcedureCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

stored_as_text!(ProcedureCommand);

/// A signal as it was written: a number, or a name with or without `SIG`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Signal {
    text: String,
    number: i32,
}

impl Signal {
    /// The number of the signal on Linux, 1 to 64.
    pub fn number(&self) -> i32 {
        self.number
    }
}

impl FromStr for Signal {
    type Err = MalformedValue;

    fn from_str(text: &str) -> Result<Self, MalformedValue> {
        let named = text.strip_prefix("SIG").unwrap_or(text);
        let number = match SIGNALS.iter().find(|(name, _)| *name == named) {
            Some((_, number)) => Some(*number),
            None => text.parse().ok().filter(|number| (1..=LAST_SIGNAL).contains(number)),
        };
        match number {
            Some(number) => Ok(Self {
                text: text.to_owned(),
                number,
            }),
            None => Err(MalformedValue::new(format!(
                "a signal such as SIGTERM or a number from 1 to {LAST_SIGNAL}"
            ))),
        }
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

stored_as_text!(Signal);

/// How a job is suspended, resumed or terminated: a signal of the user's choice or a command.
///
/// `NONE` stands for [`super::OptionalValue::NONE`]: SIGSTOP, SIGCONT, SIGKILL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ControlMethod {
    /// This signal instead of the usual one.
    Signal(Signal),
    /// This command instead of a signal.
    Command(ProcedureCommand),
}

impl FromStr for ControlMethod {
    type Err = MalformedValue;

    fn from_str(text: &str) -> Result<Self, MalformedValue> {
        text.parse()
            .map(ControlMethod::Signal)
            .or_else(|_| text.parse().map(ControlMethod::Command))
            .map_err(|_: MalformedValue| {
                MalformedValue::new("a signal such as SIGTERM, a command whose path starts with \"/\",")
            })
    }
}

impl fmt::Display for ControlMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ControlMethod::Signal(signal) => signal.fmt(f),
            ControlMethod::Command(command) => command.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_known_by_name_and_by_number() {
        for (text, expected) in [
            ("SIGTERM", Some(15)),
            ("USR2", Some(12)),
            ("9", Some(9)),
            ("65", None),
            ("SIGFOO", None),
        ] {
            assert_eq!(
                text.parse::<Signal>().ok().map(|signal| signal.number()),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn a_user_is_what_stands_before_the_path() {
        let check = |text: &str, user: Option<&str>, line: &str| {
            let command: ProcedureCommand = text.parse().unwrap();
            assert_eq!((command.user(), command.command_line()), (user, line));
        };
        check("root@/opt/prolog $host", Some("root"), "/opt/prolog $host");
        check("/opt/mail a@b", None, "/opt/mail a@b");
        assert!("prolog.sh".parse::<ProcedureCommand>().is_err());
        assert!("root@prolog.sh".parse::<ProcedureCommand>().is_err());
    }
}
