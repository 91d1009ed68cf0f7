//! The options of interactive jobs: those of `qsub` that 8.1.9 gives them, and their own.

use crate::args::{CommandDef, Operands, OptionDef, ValueCount, flag, unsupported, with};
use crate::job::options::{Taker, of_taker};
use std::sync::LazyLock;

/// Options of `qsub` that no interactive job has. 8.1.9 answers each of them with "Unknown option".
const NOT_INTERACTIVE: &[&str] = &[
    "-S", "-a", "-c", "-ckpt", "-dl", "-i", "-r", "-shell", "-sync", "-t", "-tc", "-terse", "-u",
];

/// A command that makes an interactive job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionCommand {
    /// `qrsh`: a command, or a login.
    Qrsh,
    /// `qlogin`: a login.
    Qlogin,
    /// `qsh`: a window of an X server.
    Qsh,
}

impl SessionCommand {
    /// Its name.
    pub fn name(self) -> &'static str {
        self.def().name
    }

    /// Its command line.
    pub fn def(self) -> &'static CommandDef {
        match self {
            Self::Qrsh => &QRSH,
            Self::Qlogin => &QLOGIN,
            Self::Qsh => &QSH,
        }
    }

    /// The name of a job without a command and without `-N`.
    pub fn job_name(self) -> &'static str {
        match self {
            Self::Qrsh => "QRLOGIN",
            Self::Qlogin => "QLOGIN",
            Self::Qsh => "INTERACTIVE",
        }
    }

    /// Whether it says what it does without `-verbose`.
    pub fn is_always_verbose(self) -> bool {
        self != Self::Qrsh
    }
}

/// Options of `qrsh` that are about the command which it runs.
const ABOUT_COMMANDS: &[&str] = &["-C", "-b", "-inherit", "-noshell", "-nostdin"];

/// Options of an interactive job that are not requests of the job.
const OWN: &[OptionDef] = &[
    with("-display", ValueCount::One, "display", "set DISPLAY in the job"),
    flag(
        "-inherit",
        "start a task of the parallel job that this command runs in, on a host that was granted to it",
    ),
    flag("-noshell", "start the command without a shell"),
    flag("-nostdin", "the command's standard input is /dev/null"),
    with(
        "-pty",
        ValueCount::One,
        "y[es]|n[o]",
        "give the job a terminal: a login has one unless standard input is none, a command has none",
    ),
    flag("-verbose", "say on stderr what is done"),
    unsupported(
        flag("-X", "forward an X11 display"),
        "displays are not forwarded: set one that the execution host reaches with -display HOST:N, or use ssh -X",
    ),
];

/// The options that a command takes, in the order of `-help`.
fn options(has_command: bool) -> &'static [OptionDef] {
    let of_jobs = of_taker(Taker::Qsub)
        .iter()
        .filter(|def| !NOT_INTERACTIVE.contains(&def.name))
        .filter(|def| def.name != "-pty");
    let is_taken = |def: &&OptionDef| has_command || !ABOUT_COMMANDS.contains(&def.name);
    let mut all: Vec<OptionDef> = of_jobs.chain(OWN).filter(is_taken).copied().collect();
    all.sort_by_key(|def| def.name.to_ascii_lowercase());
    all.leak()
}

/// `qrsh`.
pub static QRSH: LazyLock<CommandDef> = LazyLock::new(|| CommandDef {
    name: "qrsh",
    summary: "Runs a command as a job, or a login shell without one, with the input and output of this command.",
    operand_placeholder: "[command [args]] | -inherit host command [args]",
    operands: Operands::EndOptions,
    options: options(true),
    exit_codes: "that of the command, 128 plus the signal's number for a signal; 1 refused, or could not be scheduled; \
                 75 outcome unknown",
});

/// `qlogin`.
pub static QLOGIN: LazyLock<CommandDef> = LazyLock::new(|| CommandDef {
    name: "qlogin",
    summary: "Runs a login shell as a job, with the input and output of this command.",
    operand_placeholder: "",
    operands: Operands::EndOptions,
    options: options(false),
    exit_codes: "that of the shell, 128 plus the signal's number for a signal; 1 refused, or could not be scheduled; \
                 75 outcome unknown",
});

/// `qsh`.
pub static QSH: LazyLock<CommandDef> = LazyLock::new(|| CommandDef {
    name: "qsh",
    summary: "Runs the terminal program of the cell (xterm of sge_conf(5)) as a job, on the display of DISPLAY or -display.",
    operand_placeholder: "",
    operands: Operands::EndOptions,
    options: options(false),
    exit_codes: "0 scheduled; 1 refused, or could not be scheduled; 75 outcome unknown",
});

/// Whether an option is one of `qsub` that interactive jobs do not have.
pub fn is_refused(word: &str) -> bool {
    NOT_INTERACTIVE.contains(&word)
}

/// Whether an option is not a request of the job.
pub fn is_own(name: &str) -> bool {
    OWN.iter().any(|def| def.name == name)
}

/// Whether words ask for a slave task. Words behind the command are the command's.
pub fn is_inherit(words: &[String]) -> bool {
    let mut at = 0;
    while let Some(word) = words.get(at).filter(|word| word.starts_with('-')) {
        if word == "-inherit" {
            return true;
        }
        at += 1 + QRSH.values_behind(word);
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Support;

    #[test]
    fn inherit_is_an_option_in_front_of_the_command_alone() {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        for (line, expected) in [
            ("-inherit h1 true", true),
            ("-V -v A=1 -nostdin -inherit h1 true", true),
            ("-now n qrsh -inherit h1 true", false),
            ("-N -inherit true", false),
            ("true", false),
        ] {
            assert_eq!(is_inherit(&words(line)), expected, "{line}");
        }
    }

    #[test]
    fn options_of_batch_jobs_alone_are_not_there() {
        for name in NOT_INTERACTIVE {
            assert!(QRSH.options.iter().all(|def| def.name != *name), "{name}");
        }
        let x11 = QRSH.options.iter().find(|def| def.name == "-X").unwrap();
        assert_ne!(x11.support, Support::Yes);
    }
}
