//! A refusal that ends a command, with the exit code that 8.1.9 ends with in that case.

use proto::diagnostic::{Code, Diagnostic};

/// What ends a command early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fail {
    /// The exit code, never 0.
    pub exit: u8,
    /// What is printed.
    pub diagnostic: Diagnostic,
}

impl Fail {
    /// A refusal with an exit code of its own.
    pub fn new(exit: u8, diagnostic: Diagnostic) -> Self {
        Self { exit, diagnostic }
    }

    /// A value on the command line that does not parse (exit code 7).
    pub fn bad_value(what: impl Into<String>) -> Self {
        Self::new(crate::exit::BAD_VALUE, Diagnostic::new(Code::BadValue, what))
    }

    /// The same, saying how to fix it.
    pub fn fix(mut self, fix: impl Into<String>) -> Self {
        self.diagnostic.fix = fix.into();
        self
    }
}

impl From<Diagnostic> for Fail {
    fn from(diagnostic: Diagnostic) -> Self {
        Self {
            exit: diagnostic.code.exit_code(),
            diagnostic,
        }
    }
}
