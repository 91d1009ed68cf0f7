//! A finding of the doctor, and how it is printed.

use serde::Serialize;

/// What one examination found.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// What was examined.
    pub check: &'static str,
    /// The host or daemon that was examined. Empty where the finding is about this host.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub about: String,
    /// Whether it is as it should be.
    pub fine: bool,
    /// What was found.
    pub found: String,
    /// What to do, where it is not fine.
    pub fix: String,
}

impl Finding {
    /// A finding that all is well.
    pub fn fine(check: &'static str, found: impl Into<String>) -> Self {
        Self {
            check,
            about: String::new(),
            fine: true,
            found: found.into(),
            fix: String::new(),
        }
    }

    /// A finding that something is wrong, with the remedy.
    pub fn bad(check: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            check,
            about: String::new(),
            fine: false,
            found: found.into(),
            fix: fix.into(),
        }
    }

    /// Nothing is wrong, and something is worth knowing.
    pub fn note(check: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            check,
            about: String::new(),
            fine: true,
            found: found.into(),
            fix: fix.into(),
        }
    }

    /// The same finding about a host or daemon.
    pub fn about(self, name: impl Into<String>) -> Self {
        Self {
            about: name.into(),
            ..self
        }
    }

    /// The finding as a line, with its remedy on a second one.
    pub fn text(&self) -> String {
        let mark = match (self.fine, self.fix.is_empty()) {
            (true, true) => "ok  ",
            (true, false) => "note",
            (false, _) => "BAD ",
        };
        let fix = if self.fix.is_empty() {
            String::new()
        } else {
            format!("       fix: {}\n", self.fix)
        };
        let blank = if self.about.is_empty() { "" } else { " " };
        format!("{mark} {}{blank}{}: {}\n{fix}", self.check, self.about, self.found)
    }
}
