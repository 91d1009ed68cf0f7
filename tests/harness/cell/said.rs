//! What a command answered.

use std::fmt;
use std::process::Command;

/// The answer of a command.
#[derive(Clone, Debug)]
pub struct CommandOutput {
    /// The command, for messages.
    pub command: String,
    /// Exit code; -1 if a signal ended it.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl CommandOutput {
    /// Runs a command to its end.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn run(mut command: Command) -> Self {
        let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let words = command
            .get_args()
            .map(|word| word.to_string_lossy())
            .collect::<Vec<_>>()
            .join(" ");
        Self {
            command: words,
            code: output.status.code().unwrap_or(-1),
            out: text(&output.stdout),
            err: text(&output.stderr),
        }
    }

    /// The same, which must be a success.
    ///
    /// # Panics
    /// If it is not.
    #[track_caller]
    pub fn ok(self) -> Self {
        assert_eq!(self.code, 0, "{self}");
        self
    }

    /// Standard error of what must be a refusal that contains each of `words`.
    ///
    /// # Panics
    /// If it is none, or one of the words is missing.
    #[track_caller]
    pub fn refused(self, words: &[&str]) -> Self {
        assert!(self.code > 0, "a refusal was expected: {self}");
        for word in words {
            assert!(
                self.err.contains(word) || self.out.contains(word),
                "{word:?} is not in {self}"
            );
        }
        self
    }
}

impl fmt::Display for CommandOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            command,
            code,
            out,
            err,
        } = self;
        write!(f, "{command} -> {code}\n{out}{err}")
    }
}
