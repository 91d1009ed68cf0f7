//! The one table of the options of jobs: what each is called, what follows it, which commands take
//! it, and how it adds up when it is given more than once, within one source of options and over
//! sources.
//!
//! The commands make their option lists and their `-help` from it, and
//! [`super::request::JobRequest`] reads its rules. A row without a meaning does not compile: the
//! meaning is a `match` over [`JobOption`].

mod details;
mod rules;
mod table;
#[cfg(test)]
mod tests;

use crate::args::{self, CommandDef, Operands, OptionDef, ValueCount};
use std::sync::LazyLock;

pub use rules::{ListRule, Rule};
pub use table::TABLE;

/// An option of jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobOption {
    /// `-a`.
    StartTime,
    /// `-ac`.
    AddContext,
    /// `-ar`.
    Reservation,
    /// `-A`.
    Account,
    /// `-b`.
    Binary,
    /// `-binding`.
    Binding,
    /// `-c`.
    Occasion,
    /// `-ckpt`.
    Checkpoint,
    /// `-clear`.
    Clear,
    /// `-cwd`.
    CurrentDirectory,
    /// `-C`.
    Prefix,
    /// `-dc`.
    DeleteContext,
    /// `-dl`.
    Deadline,
    /// `-d` of `qrsub`.
    Duration,
    /// `-e`.
    Stderr,
    /// `-e` of `qrsub`.
    End,
    /// `-h` of `qsub`, without a value.
    Hold,
    /// `-h` of `qalter` and `qresub`, with a list.
    HoldList,
    /// `-he` of `qrsub`.
    HardError,
    /// `-hard`.
    Hard,
    /// `-help`.
    Help,
    /// `-hold_jid`.
    Predecessors,
    /// `-hold_jid_ad`.
    ArrayPredecessors,
    /// `-i`.
    Stdin,
    /// `-j`.
    Join,
    /// `-js`.
    Share,
    /// `-jsv`.
    Verifier,
    /// `-l`.
    Resources,
    /// `-m`.
    MailEvents,
    /// `-masterq`.
    MasterQueues,
    /// `-notify`.
    Notify,
    /// `-now`.
    Immediate,
    /// `-M`.
    MailList,
    /// `-N`.
    Name,
    /// `-o`.
    Stdout,
    /// `-when`.
    When,
    /// `-ot`.
    OverrideTickets,
    /// `-P`.
    Project,
    /// `-p`.
    Priority,
    /// `-par`.
    AllocationRule,
    /// `-pe`.
    ParallelEnvironment,
    /// `-pty`.
    Terminal,
    /// `-q`.
    Queues,
    /// `-R`.
    Reserve,
    /// `-r`.
    Rerun,
    /// `-sc`.
    SetContext,
    /// `-scope`.
    Scope,
    /// `-shell`.
    UseShell,
    /// `-soft`.
    Soft,
    /// `-sync`.
    Sync,
    /// `-S`.
    Shell,
    /// `-t`.
    Tasks,
    /// `-tc`.
    Concurrency,
    /// `-terse`.
    Terse,
    /// `-u`.
    Users,
    /// `-uall`.
    AllUsers,
    /// `-v`.
    Variables,
    /// `-verify`.
    Verify,
    /// `-V`.
    ExportAll,
    /// `-w`.
    Validation,
    /// `-wd`.
    Directory,
    /// `-@`.
    OptionFile,
}

/// A command that takes options of jobs from the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taker {
    /// `qsub`, with its script and its files of options.
    Qsub,
    /// `qalter`, which has a command line alone.
    Qalter,
    /// `qresub`, likewise.
    Qresub,
    /// `qrsub`, likewise.
    Qrsub,
}

/// One row.
#[derive(Clone, Copy, Debug)]
pub struct JobOptionRow {
    /// Which option it is.
    pub option: JobOption,
    /// Name, values, help.
    pub def: OptionDef,
    /// The commands that take it.
    pub takers: &'static [Taker],
    /// What its uses make together.
    pub rule: Rule,
    /// Whether a source that has it drops what earlier sources said, in place of adding to it.
    pub replaces_earlier_sources: bool,
}

impl JobOptionRow {
    /// How the lists of the option make one.
    ///
    /// # Panics
    /// If its uses are not lists by the table. The test of the table applies every row.
    pub fn list_rule(&self) -> ListRule {
        match self.rule {
            Rule::List(rule) => rule,
            Rule::Last
            | Rule::Once
            | Rule::Requests
            | Rule::Letters
            | Rule::InOrder
            | Rule::Mark
            | Rule::Clear
            | Rule::Command => panic!("{} has a list, and no rule for lists", self.def.name),
        }
    }
}

/// The row of an option of `qsub`, `qalter` or `qresub` as it was given: `-h` without a value is
/// another option than `-h` with one. `qrsub` has the same rows but for `-d -e -he -u -w`.
pub fn row_of(name: &str, has_value: bool) -> Option<&'static JobOptionRow> {
    TABLE
        .iter()
        .find(|row| row.def.name == name && (row.def.values != ValueCount::None) == has_value)
}

/// The option list of a command.
pub fn of_taker(taker: Taker) -> &'static [OptionDef] {
    let detailed = |row: &JobOptionRow| args::detailed(row.def, details::detail(taker, row.option).leak());
    TABLE
        .iter()
        .filter(|row| row.takers.contains(&taker))
        .map(detailed)
        .collect::<Vec<_>>()
        .leak()
}

/// `qsub`.
pub static QSUB: LazyLock<CommandDef> = LazyLock::new(|| CommandDef {
    name: "qsub",
    summary: "Submits a batch job. Options are also read from lines of the script that begin with #$, and from sge_request files.",
    operand_placeholder: "[{command|-|--} [command_args]]",
    operands: Operands::EndOptionsOrDashes,
    options: of_taker(Taker::Qsub),
    exit_codes: "0 submitted; 1 rejected; 2 wrong option; 4 script unreadable; 5 a word in a script or file that is no option; \
                 7 value does not parse; 14 no such script; 25 job limit reached, try again later; 75 outcome unknown; with \
                 -sync y the job's own",
});

/// `qalter`.
pub static QALTER: LazyLock<CommandDef> = LazyLock::new(|| CommandDef {
    name: "qalter",
    summary: "Changes pending jobs; some options also running ones. An option replaces what it names as a whole.",
    operand_placeholder: "job_task_list|-uall [- script_args]",
    operands: Operands::UntilDash,
    options: of_taker(Taker::Qalter),
    exit_codes: "0 changed; 1 refused; 2 wrong option; 4 works on jobs and not on tasks; 5 option of qsub alone; \
                 7 value does not parse",
});

/// `qresub`.
pub static QRESUB: LazyLock<CommandDef> = LazyLock::new(|| CommandDef {
    name: "qresub",
    summary: "Submits copies of jobs.",
    operand_placeholder: "job_list",
    operands: Operands::AnywhereWithoutDash,
    options: of_taker(Taker::Qresub),
    exit_codes: "0 submitted; 4 no such job, or not yours; 2 wrong option; 5 option of another command; \
                 7 value does not parse; 10 a hold that operators or managers set",
});

/// `qrsub`.
pub static QRSUB: LazyLock<CommandDef> = LazyLock::new(|| CommandDef {
    name: "qrsub",
    summary: "Reserves slots for a time to come; jobs use them with qsub -ar. Two of -a, -d and -e tell the time; without -a it is now.",
    operand_placeholder: "",
    operands: Operands::None,
    options: of_taker(Taker::Qrsub),
    exit_codes: "0 granted; 1 refused, or a wrong option; 25 as many reservations as there may be; 75 outcome unknown",
});
