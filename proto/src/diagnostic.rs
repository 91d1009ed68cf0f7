//! Refusals: what, where, why, and how to fix it, with a stable code and an exit code (DESIGN section 8).

use serde::{Deserialize, Serialize};
use std::fmt;

/// Who has to act on a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Class {
    /// The user asked for what cannot be; another request would do.
    Request,
    /// The user or the host has no right to this.
    Permission,
    /// An administrator's object is in the way.
    Configuration,
    /// A machine, the network or a file said no.
    Environment,
    /// The peer speaks something this version does not.
    Protocol,
}

/// Declares the table of codes: variant, stable text, class, exit code of a command that ends with it.
macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $text:literal, $class:ident, $exit:literal;)*) => {
        /// The stable code of a refusal. Scripts may rely on [`Code::as_str`]; a code is never given a new meaning.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Code { $($(#[$doc])* $variant,)* }

        impl Code {
            /// Every code, in the order of the table.
            pub const ALL: &[Code] = &[$(Code::$variant,)*];

            /// The code as it is printed and logged.
            pub fn as_str(self) -> &'static str {
                match self { $(Code::$variant => $text,)* }
            }

            /// Who has to act.
            pub fn class(self) -> Class {
                match self { $(Code::$variant => Class::$class,)* }
            }

            /// The exit code of a command whose last refusal carries this code, unless the command's own table says otherwise.
            pub fn exit_code(self) -> u8 {
                match self { $(Code::$variant => $exit,)* }
            }
        }
    };
}

codes! {
    /// A value does not parse as its type.
    BadValue = "bad-value", Request, 1;
    /// A line of a file or an option does not follow its grammar.
    BadSyntax = "bad-syntax", Request, 2;
    /// A resource attribute of that name is not in the complex.
    UnknownResource = "unknown-resource", Request, 1;
    /// The attribute exists but may not be requested.
    NotRequestable = "not-requestable", Request, 1;
    /// No object of that kind and name exists.
    UnknownObject = "unknown-object", Request, 1;
    /// An object of that kind and name exists already.
    AlreadyExists = "already-exists", Request, 1;
    /// The object is still used by others, which are listed.
    StillReferenced = "still-referenced", Configuration, 1;
    /// The object may not be changed that way.
    Immutable = "immutable", Configuration, 1;
    /// No job, task or job name like that.
    UnknownJob = "unknown-job", Request, 1;
    /// The job or task is in a state that does not allow this.
    WrongState = "wrong-state", Request, 1;
    /// The job was refused at submission for a reason of its own.
    JobRejected = "job-rejected", Request, 1;
    /// `max_u_jobs` or `max_jobs` is reached; the same command may succeed later.
    JobLimit = "job-limit", Request, 25;
    /// No queue instance could ever run this, or (with `-w p`) could run it now.
    NotSuitable = "not-suitable", Request, 1;
    /// The user lacks the role for this.
    NotPermitted = "not-permitted", Permission, 1;
    /// The host is not in the list that this needs (submit, administrative or execution hosts).
    HostNotPermitted = "host-not-permitted", Permission, 1;
    /// Gridwright knows this feature of Grid Engine and does not support it.
    NotSupported = "not-supported", Request, 1;
    /// The user is not known on the host that should run the job, or another uid is known by that name.
    UnknownUser = "unknown-user", Environment, 1;
    /// No contact with the master.
    NoMaster = "no-master", Environment, 1;
    /// The connection broke after a change was sent and its outcome is not known.
    OutcomeUnknown = "outcome-unknown", Environment, 75;
    /// A certificate is missing, unknown, revoked or out of its time.
    BadCertificate = "bad-certificate", Permission, 1;
    /// A join token is wrong, used up, expired, or not for this host.
    BadToken = "bad-token", Permission, 1;
    /// A message does not decode, is too long, or is of a kind this version does not know.
    BadMessage = "bad-message", Protocol, 1;
    /// The peer belongs to another cell, or to an older life of this one.
    WrongCell = "wrong-cell", Protocol, 1;
    /// A limit of the daemon is reached: a queue is full, a rate is exceeded.
    Overloaded = "overloaded", Environment, 1;
    /// A file, directory or program is missing, unreadable or refused by the system.
    SystemRefused = "system-refused", Environment, 1;
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// One refusal or warning, complete enough to act on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostic {
    /// The stable code.
    pub code: Code,
    /// What was refused, in the words Grid Engine 8.1.9 uses where it has any: programs match them.
    pub what: String,
    /// Where: a file and line, a field, an option, a host. Empty where `what` says it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub place: String,
    /// Why, where `what` does not say it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub fix: String,
}

impl Diagnostic {
    /// A refusal that says only what; the other parts are added with [`Diagnostic::at`], [`Diagnostic::why`] and [`Diagnostic::fix`].
    pub fn new(code: Code, what: impl Into<String>) -> Self {
        Self { code, what: what.into(), place: String::new(), why: String::new(), fix: String::new() }
    }

    /// The same, saying where.
    pub fn at(mut self, place: impl Into<String>) -> Self {
        self.place = place.into();
        self
    }

    /// The same, saying why.
    pub fn why(mut self, why: impl Into<String>) -> Self {
        self.why = why.into();
        self
    }

    /// The same, saying how to fix it.
    pub fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = fix.into();
        self
    }

    /// The lines that follow `what` on stderr: `  where: …`, `  why: …`, `  fix: …`, each only where there is something to say.
    pub fn detail_lines(&self) -> Vec<String> {
        [("where", &self.place), ("why", &self.why), ("fix", &self.fix)]
            .into_iter()
            .filter(|(_, text)| !text.is_empty())
            .map(|(label, text)| format!("  {label}: {text}"))
            .collect()
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        for (label, text) in [(" at ", &self.place), (": ", &self.why), (". ", &self.fix)] {
            if !text.is_empty() {
                write!(f, "{label}{text}")?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostic {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn codes_are_unique_and_never_exit_zero() {
        let texts: BTreeSet<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(texts.len(), Code::ALL.len());
        assert!(Code::ALL.iter().all(|code| code.exit_code() != 0));
    }

    #[test]
    fn detail_lines_name_only_what_is_known() {
        let refusal = Diagnostic::new(Code::BadValue, "bad").at("line 3").fix("write 4");
        assert_eq!(refusal.detail_lines(), ["  where: line 3", "  fix: write 4"]);
    }
}
