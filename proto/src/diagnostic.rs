//! Refusals: what, where, why, and how to fix it, with a stable code and an exit code
//! (ARCHITECTURE.md "Transport and identity").

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

/// Declares the table of codes: variant, stable text, class, exit code of a command that ends with
/// it, general remedy.
macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $text:literal, $class:ident, $exit:literal, $remedy:literal;)*) => {
        /// The stable code of a refusal. Scripts may rely on [`Code::as_str`]; a code is never
        /// given a new meaning.
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

            /// The exit code of a command whose last refusal carries this code, unless the
            /// command's own table says otherwise.
            pub fn exit_code(self) -> u8 {
                match self { $(Code::$variant => $exit,)* }
            }

            /// What helps against any refusal of this code, where the refusal itself says nothing
            /// better.
            pub fn remedy(self) -> &'static str {
                match self { $(Code::$variant => $remedy,)* }
            }
        }
    };
}

codes! {
    /// A value does not parse as its type.
    BadValue = "bad-value", Request, 1,
        "write a value of the kind that is asked for; -help tells those of options, qconf -sc the types of resources";
    /// A line of a file or an option does not follow its grammar.
    BadSyntax = "bad-syntax", Request, 2,
        "look at the form in the help: the command with -help";
    /// A resource attribute of that name is not in the complex.
    UnknownResource = "unknown-resource", Request, 1,
        "qconf -sc lists the resources; a manager adds one with qconf -mc";
    /// The attribute exists but may not be requested.
    NotRequestable = "not-requestable", Request, 1,
        "leave the request out; qconf -sc shows in its column requestable what may be asked for";
    /// No object of that kind and name exists.
    UnknownObject = "unknown-object", Request, 1,
        "check the name: the -s... options of qconf list what there is";
    /// An object of that kind and name exists already.
    AlreadyExists = "already-exists", Request, 1,
        "change what is there (qconf -m...), or choose another name";
    /// The object is still used by others, which are listed.
    StillReferenced = "still-referenced", Configuration, 1,
        "take it out of the objects that name it first";
    /// The object may not be changed that way.
    Immutable = "immutable", Configuration, 1,
        "leave it as it is, or make a new one";
    /// No job, task or job name like that.
    UnknownJob = "unknown-job", Request, 1,
        "qstat -u '*' lists the jobs that are there, qacct -j those that have ended";
    /// The job or task is in a state that does not allow this.
    WrongState = "wrong-state", Request, 1,
        "look at its state with qstat; a state that passes lets the same command succeed later";
    /// The job was refused at submission for a reason of its own.
    JobRejected = "job-rejected", Request, 1,
        "change what the message names and submit again";
    /// `max_u_jobs` or `max_jobs` is reached; the same command may succeed later.
    JobLimit = "job-limit", Request, 25,
        "wait until jobs have ended, or ask a manager for a higher max_u_jobs or max_jobs (qconf -mconf)";
    /// No queue instance could ever run this, or (with `-w p`) could run it now.
    NotSuitable = "not-suitable", Request, 1,
        "ask for less; qhost -F and qstat -F show what there is";
    /// The user lacks the role for this.
    NotPermitted = "not-permitted", Permission, 1,
        "ask the owner, or a manager of the cell: qconf -sm lists them";
    /// The user may alter the job, and not a hold of this kind.
    HoldNotPermitted = "hold-not-permitted", Permission, 1,
        "ask an operator or a manager: qconf -so and -sm list them";
    /// The host is not in the list that this needs (submit, administrative or execution hosts).
    HostNotPermitted = "host-not-permitted", Permission, 1,
        "go to a host of that list, or have a manager add this one (qconf -as, -ah, -ae)";
    /// Gridwright knows this feature of Grid Engine and does not support it.
    NotSupported = "not-supported", Request, 1,
        "leave it out; master/COMPATIBILITY.md tells what is not there yet";
    /// The user is not known on the host that should run the job, or another uid is known by that
    /// name.
    UnknownUser = "unknown-user", Environment, 1,
        "check the name service of that host: getent passwd NAME";
    /// No contact with the master.
    NoMaster = "no-master", Environment, 1,
        "check that the master runs: gridwright doctor";
    /// The connection broke after a change was sent and its outcome is not known.
    OutcomeUnknown = "outcome-unknown", Environment, 75,
        "look whether the change was made before repeating it";
    /// A certificate is missing, unknown, revoked or out of its time.
    BadCertificate = "bad-certificate", Permission, 1,
        "enrol the host again: gridwright token on the master, gridwright join on the host";
    /// A join token is wrong, used up, expired, or not for this host.
    BadToken = "bad-token", Permission, 1,
        "make a new one on the master: gridwright token create";
    /// A message does not decode, is too long, or is of a kind this version does not know.
    BadMessage = "bad-message", Protocol, 1,
        "use commands and daemons of versions at most one release apart";
    /// The peer belongs to another cell, or to an older life of this one.
    WrongCell = "wrong-cell", Protocol, 1,
        "check which cell is meant: GRIDWRIGHT_DIR, SGE_ROOT, and the address of the master";
    /// A limit of the daemon is reached: a queue is full, a rate is exceeded.
    Overloaded = "overloaded", Environment, 1,
        "try again in a moment, or raise the limit that is named";
    /// A file, directory or program is missing, unreadable or refused by the system.
    SystemRefused = "system-refused", Environment, 1,
        "check that what is named exists, and that its owner, mode and disk allow it";
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
    /// What to do about it; empty where nothing is better than [`Code::remedy`].
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub fix: String,
}

impl Diagnostic {
    /// A refusal that says only what; the other parts are added with [`Diagnostic::at`],
    /// [`Diagnostic::why`] and [`Diagnostic::fix`].
    pub fn new(code: Code, what: impl Into<String>) -> Self {
        Self {
            code,
            what: what.into(),
            place: String::new(),
            why: String::new(),
            fix: String::new(),
        }
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

    /// What to do about it: its own remedy, or else that of its code.
    pub fn remedy(&self) -> &str {
        if self.fix.is_empty() {
            self.code.remedy()
        } else {
            &self.fix
        }
    }

    /// The lines that follow `what` on stderr: `  where: …` and `  why: …` where `what` does not
    /// say it, and always `  fix: …`.
    pub fn detail_lines(&self) -> Vec<String> {
        let place = self.place.as_str();
        let is_said = self
            .what
            .strip_prefix("warning: ")
            .is_some_and(|text| text.starts_with(place));
        [
            ("where", if is_said { "" } else { place }),
            ("why", &self.why),
            ("fix", self.remedy()),
        ]
        .into_iter()
        .filter(|(_, text)| !text.is_empty())
        .flat_map(|(label, text)| {
            let first = move |at: usize| {
                if at == 0 {
                    format!("  {label}: ")
                } else {
                    "    ".to_owned()
                }
            };
            text.lines().enumerate().map(move |(at, line)| first(at) + line)
        })
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
    fn every_refusal_says_how_to_fix_it() {
        for code in Code::ALL {
            let lines = Diagnostic::new(*code, "no").detail_lines();
            assert_eq!(lines, [format!("  fix: {}", code.remedy())]);
            let is_one_line = !code.remedy().is_empty() && !code.remedy().contains('\n');
            assert!(
                is_one_line && !code.remedy().ends_with('.'),
                "{code}: {}",
                code.remedy()
            );
        }
    }

    #[test]
    fn detail_lines_name_only_what_is_known() {
        let refusal = Diagnostic::new(Code::BadValue, "bad").at("line 3").fix("write 4");
        assert_eq!(refusal.detail_lines(), ["  where: line 3", "  fix: write 4"]);
        let refusal = Diagnostic::new(Code::BadValue, "bad").why("one\ntwo").fix("write 4");
        assert_eq!(refusal.detail_lines(), ["  why: one", "    two", "  fix: write 4"]);
        let warning = |place| {
            Diagnostic::new(Code::NotSuitable, "warning: -l a=1m is long")
                .at(place)
                .fix("ask")
        };
        assert_eq!(warning("-l a").detail_lines(), ["  fix: ask"]);
        let with_file = ["  where: job.sh line 1: -l a", "  fix: ask"];
        assert_eq!(warning("job.sh line 1: -l a").detail_lines(), with_file);
    }
}
