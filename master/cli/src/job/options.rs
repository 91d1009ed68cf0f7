//! The one table of the options of jobs: what each is called, what follows it, which commands take
//! it, and how it adds up when it is given more than once, within one source of options and over
//! sources.
//!
//! The commands make their option lists and their `-help` from it, and
//! [`super::request::JobRequest`] reads its rules. A row without a meaning does not compile: the
//! meaning is a `match` over [`JobOption`].

mod details;
mod rules;
#[cfg(test)]
mod tests;

use crate::args::{self, CommandDef, Operands, OptionDef, Values, flag, unsupported, with};
use std::sync::LazyLock;

pub use rules::{ListRule, Rule};

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
pub struct Row {
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

impl Row {
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

const fn row(option: JobOption, def: OptionDef, takers: &'static [Taker], rule: Rule) -> Row {
    Row {
        option,
        def,
        takers,
        rule,
        replaces_earlier_sources: false,
    }
}

const LATER: &str = "it is planned; leave it out";
const BOTH: &[Taker] = &[Taker::Qsub, Taker::Qalter];
const QSUB_ALONE: &[Taker] = &[Taker::Qsub];
const QALTER_ALONE: &[Taker] = &[Taker::Qalter];
const QRESUB_ALONE: &[Taker] = &[Taker::Qresub];
const QRSUB_ALONE: &[Taker] = &[Taker::Qrsub];
const NOT_QRESUB: &[Taker] = &[Taker::Qsub, Taker::Qalter, Taker::Qrsub];
const ALL: &[Taker] = &[Taker::Qsub, Taker::Qalter, Taker::Qresub, Taker::Qrsub];

/// The table, in the order of `-help`.
pub const TABLE: &[Row] = {
    use JobOption as O;
    use Rule::{Clear, Command, InOrder, Last, Letters, Mark, Once, Requests};
    use Values::{One, Two};
    const ADD_UP: Rule = Rule::List(ListRule::AddUp);
    const LAST_PER_HOST: Rule = Rule::List(ListRule::LastPer("host"));
    const LAST_PER_VARIABLE: Rule = Rule::List(ListRule::LastPer("variable"));
    const PER_MAIL_HOST: Rule = Rule::List(ListRule::PerMailHost);
    &[
        row(
            O::StartTime,
            with("-a", One, "date_time", "request a start time"),
            NOT_QRESUB,
            Last,
        ),
        row(
            O::AddContext,
            with("-ac", One, "context_list", "add context variable(s)"),
            BOTH,
            InOrder,
        ),
        row(
            O::Reservation,
            with("-ar", One, "ar_id", "bind job to advance reservation"),
            BOTH,
            Last,
        ),
        row(
            O::Account,
            with("-A", One, "account_string", "account string in accounting record"),
            NOT_QRESUB,
            Last,
        ),
        row(
            O::Binary,
            with("-b", One, "y[es]|n[o]", "handle command as binary"),
            QSUB_ALONE,
            Last,
        ),
        row(
            O::Binding,
            unsupported(
                with(
                    "-binding",
                    One,
                    "[env|pe|set] exp|lin|str",
                    "binds job to processor cores",
                ),
                LATER,
            ),
            BOTH,
            Last,
        ),
        row(
            O::Occasion,
            with(
                "-c",
                One,
                "ckpt_selector",
                "define type of checkpointing for job: letters of n s m x r, or a time",
            ),
            BOTH,
            Last,
        ),
        row(
            O::Checkpoint,
            with("-ckpt", One, "ckpt-name", "request checkpoint method"),
            BOTH,
            Last,
        ),
        row(
            O::Checkpoint,
            with(
                "-ckpt",
                One,
                "ckpt-name",
                "reserve in queues with this checkpointing environment",
            ),
            QRSUB_ALONE,
            Last,
        ),
        row(
            O::Clear,
            flag("-clear", "skip previous definitions for job"),
            QSUB_ALONE,
            Clear,
        ),
        row(
            O::CurrentDirectory,
            flag("-cwd", "use current working directory"),
            BOTH,
            Last,
        ),
        row(
            O::Prefix,
            with("-C", One, "directive_prefix", "define command prefix for job script"),
            QSUB_ALONE,
            Command,
        ),
        row(
            O::DeleteContext,
            with("-dc", One, "simple_context_list", "delete context variable(s)"),
            BOTH,
            InOrder,
        ),
        row(
            O::Deadline,
            with("-dl", One, "date_time", "request a deadline initiation time"),
            BOTH,
            Last,
        ),
        row(
            O::Duration,
            with("-d", One, "time", "duration: hours:minutes:seconds, or seconds"),
            QRSUB_ALONE,
            Last,
        ),
        row(
            O::Stderr,
            with("-e", One, "path_list", "specify standard error stream path(s)"),
            BOTH,
            LAST_PER_HOST,
        ),
        row(
            O::End,
            with("-e", One, "date_time", "request an end time"),
            QRSUB_ALONE,
            Last,
        ),
        row(O::Hold, flag("-h", "place user hold on job"), QSUB_ALONE, Once),
        row(
            O::HoldList,
            with(
                "-h",
                One,
                "hold_list",
                "assign holds for jobs or tasks: u o s set, U O S release, n releases all",
            ),
            QALTER_ALONE,
            Last,
        ),
        row(
            O::HoldList,
            with("-h", One, "hold_list", "holds of the copies: letters of u, o, s"),
            QRESUB_ALONE,
            Last,
        ),
        row(
            O::Hard,
            flag("-hard", "consider following requests \"hard\""),
            BOTH,
            Mark,
        ),
        row(
            O::HardError,
            with(
                "-he",
                One,
                "y[es]|n[o]",
                "its jobs wait while one of its queue instances fails",
            ),
            QRSUB_ALONE,
            Last,
        ),
        row(O::Help, flag("-help", "print this help"), ALL, Command),
        row(
            O::Predecessors,
            with(
                "-hold_jid",
                One,
                "job_identifier_list",
                "define jobnet interdependencies",
            ),
            BOTH,
            ADD_UP,
        ),
        row(
            O::ArrayPredecessors,
            with(
                "-hold_jid_ad",
                One,
                "job_identifier_list",
                "define jobnet array interdependencies",
            ),
            BOTH,
            ADD_UP,
        ),
        row(
            O::Stdin,
            with("-i", One, "file_list", "specify standard input stream file(s)"),
            BOTH,
            LAST_PER_HOST,
        ),
        row(
            O::Join,
            with("-j", One, "y[es]|n[o]", "merge stdout and stderr stream of job"),
            BOTH,
            Last,
        ),
        row(
            O::Share,
            with("-js", One, "job_share", "share tree or functional job share"),
            BOTH,
            Last,
        ),
        row(
            O::Verifier,
            unsupported(
                with("-jsv", One, "jsv_url", "job submission verification script to be used"),
                LATER,
            ),
            QSUB_ALONE,
            Last,
        ),
        row(
            O::Resources,
            with("-l", One, "resource_list", "request the given resources"),
            NOT_QRESUB,
            Requests,
        ),
        row(
            O::MailEvents,
            with("-m", One, "mail_options", "define mail notification events"),
            NOT_QRESUB,
            Letters,
        ),
        row(
            O::MasterQueues,
            with("-masterq", One, "wc_queue_list", "bind master task to queue(s)"),
            NOT_QRESUB,
            ADD_UP,
        ),
        row(
            O::Notify,
            flag("-notify", "notify job before killing/suspending it"),
            BOTH,
            Once,
        ),
        row(
            O::Immediate,
            with("-now", One, "y[es]|n[o]", "start job immediately or not at all"),
            QSUB_ALONE,
            Last,
        ),
        row(
            O::Immediate,
            with("-now", One, "y[es]|n[o]", "reserve in interactive queues"),
            QRSUB_ALONE,
            Last,
        ),
        row(
            O::MailList,
            with("-M", One, "mail_list", "notify these e-mail addresses"),
            NOT_QRESUB,
            PER_MAIL_HOST,
        ),
        row(O::Name, with("-N", One, "name", "specify job name"), BOTH, Last),
        row(O::Name, with("-N", One, "name", "specify a name"), QRSUB_ALONE, Last),
        row(
            O::Stdout,
            with("-o", One, "path_list", "specify standard output stream path(s)"),
            BOTH,
            LAST_PER_HOST,
        ),
        row(
            O::OverrideTickets,
            with("-ot", One, "tickets", "set job's override tickets"),
            QALTER_ALONE,
            Last,
        ),
        row(
            O::Project,
            with("-P", One, "project_name", "set job's project"),
            BOTH,
            Last,
        ),
        row(
            O::Priority,
            with("-p", One, "priority", "define job's relative priority"),
            BOTH,
            Last,
        ),
        row(
            O::AllocationRule,
            with(
                "-par",
                One,
                "allocation_rule",
                "use this allocation rule in place of that of the parallel environment",
            ),
            NOT_QRESUB,
            Last,
        ),
        row(
            O::ParallelEnvironment,
            with(
                "-pe",
                Two,
                "wc_pe_name slot_range",
                "request slot range for parallel jobs",
            ),
            NOT_QRESUB,
            Last,
        ),
        row(
            O::Terminal,
            unsupported(with("-pty", One, "y[es]|n[o]", "start job in a pty"), LATER),
            QSUB_ALONE,
            Last,
        ),
        Row {
            replaces_earlier_sources: true,
            ..row(
                O::Queues,
                with("-q", One, "wc_queue_list", "bind job to queue(s)"),
                BOTH,
                ADD_UP,
            )
        },
        row(
            O::Queues,
            with("-q", One, "wc_queue_list", "reserve in these queues"),
            QRSUB_ALONE,
            ADD_UP,
        ),
        row(
            O::Reserve,
            with("-R", One, "y[es]|n[o]", "reservation desired"),
            BOTH,
            Last,
        ),
        row(
            O::Rerun,
            with("-r", One, "y[es]|n[o]", "define job as (not) restartable"),
            BOTH,
            Last,
        ),
        row(
            O::SetContext,
            with("-sc", One, "context_list", "set job context (replaces old context)"),
            BOTH,
            InOrder,
        ),
        row(
            O::Scope,
            with(
                "-scope",
                One,
                "global|master|slave",
                "following -l and -q are for the job, its master task, its slave tasks",
            ),
            BOTH,
            Mark,
        ),
        row(
            O::UseShell,
            with(
                "-shell",
                One,
                "y[es]|n[o]",
                "start command with or without wrapping <loginshell> -c",
            ),
            QSUB_ALONE,
            Last,
        ),
        row(
            O::Soft,
            flag("-soft", "consider following requests as soft"),
            BOTH,
            Mark,
        ),
        row(
            O::Sync,
            with("-sync", One, "y[es]|n[o]", "wait for job to end and return exit code"),
            QSUB_ALONE,
            Last,
        ),
        row(
            O::Shell,
            with("-S", One, "path_list", "command interpreter to be used"),
            BOTH,
            LAST_PER_HOST,
        ),
        row(
            O::Tasks,
            with("-t", One, "task_id_range", "create a job-array with these tasks"),
            QSUB_ALONE,
            Last,
        ),
        row(
            O::Tasks,
            with("-t", One, "task_id_range", "only these tasks of the preceding JOB"),
            QALTER_ALONE,
            Command,
        ),
        row(
            O::Concurrency,
            with(
                "-tc",
                One,
                "max_running_tasks",
                "throttle the number of concurrent tasks",
            ),
            BOTH,
            Last,
        ),
        row(
            O::Terse,
            flag("-terse", "tersed output, print only the job-id"),
            QSUB_ALONE,
            Once,
        ),
        row(
            O::Users,
            with("-u", One, "user_list", "ignored by qsub, as in Grid Engine"),
            QSUB_ALONE,
            Command,
        ),
        row(
            O::Users,
            with("-u", One, "user_list", "alter jobs of these users"),
            QALTER_ALONE,
            Command,
        ),
        row(
            O::Users,
            with("-u", One, "user_list", "copy the jobs of these users"),
            QRESUB_ALONE,
            Command,
        ),
        row(
            O::Users,
            with(
                "-u",
                One,
                "user_list",
                "who may submit to it beside you: users, and @access_lists",
            ),
            QRSUB_ALONE,
            ADD_UP,
        ),
        row(
            O::AllUsers,
            flag("-uall", "alter jobs of all users"),
            QALTER_ALONE,
            Command,
        ),
        row(
            O::Variables,
            with("-v", One, "variable_list", "export these environment variables"),
            BOTH,
            LAST_PER_VARIABLE,
        ),
        row(O::Verify, flag("-verify", "do not submit, just verify"), BOTH, Once),
        row(O::ExportAll, flag("-V", "export all environment variables"), BOTH, Once),
        row(
            O::Validation,
            with(
                "-w",
                One,
                "e|w|n|v|p",
                "verify mode (error|warning|none|just verify|poke) for jobs",
            ),
            BOTH,
            Last,
        ),
        row(
            O::Validation,
            with(
                "-w",
                One,
                "e|v",
                "refuse what cannot be granted, or only say whether it could",
            ),
            QRSUB_ALONE,
            Last,
        ),
        row(
            O::Directory,
            with("-wd", One, "working_directory", "use working_directory"),
            BOTH,
            Last,
        ),
        row(
            O::OptionFile,
            with("-@", One, "file", "read commandline input from file"),
            QSUB_ALONE,
            Command,
        ),
    ]
};

/// The row of an option of `qsub`, `qalter` or `qresub` as it was given: `-h` without a value is
/// another option than `-h` with one. `qrsub` has the same rows but for `-d -e -he -u -w`.
pub fn row_of(name: &str, has_value: bool) -> Option<&'static Row> {
    TABLE
        .iter()
        .find(|row| row.def.name == name && (row.def.values != Values::None) == has_value)
}

/// The option list of a command.
pub fn of_taker(taker: Taker) -> &'static [OptionDef] {
    let detailed = |row: &Row| args::detailed(row.def, details::of(taker, row.option));
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
                 7 value does not parse",
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
