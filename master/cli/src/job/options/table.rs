//! The rows of the table of the options of jobs.

use super::{JobOption, JobOptionRow, ListRule, Rule, Taker};
use crate::args::{OptionDef, ValueCount, flag, unsupported, with};

const fn row(option: JobOption, def: OptionDef, takers: &'static [Taker], rule: Rule) -> JobOptionRow {
    JobOptionRow {
        option,
        def,
        takers,
        rule,
        replaces_earlier_sources: false,
    }
}

/// Who binds a job, in front of the strategy of `-binding`.
const BINDING_INSTANCES: &[&str] = &["env", "pe", "set"];
const LATER: &str = "it is planned; leave it out";
const BOTH: &[Taker] = &[Taker::Qsub, Taker::Qalter];
const QSUB_ALONE: &[Taker] = &[Taker::Qsub];
const QALTER_ALONE: &[Taker] = &[Taker::Qalter];
const QRESUB_ALONE: &[Taker] = &[Taker::Qresub];
pub(super) const QRSUB_ALONE: &[Taker] = &[Taker::Qrsub];
const NOT_QRESUB: &[Taker] = &[Taker::Qsub, Taker::Qalter, Taker::Qrsub];
const ALL: &[Taker] = &[Taker::Qsub, Taker::Qalter, Taker::Qresub, Taker::Qrsub];

/// The table, in the order of `-help`.
pub const TABLE: &[JobOptionRow] = {
    use JobOption as O;
    use Rule::{Clear, Command, InOrder, Last, Letters, Mark, Once, Requests};
    use ValueCount::{Led, One, Two};
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
            with(
                "-binding",
                Led(BINDING_INSTANCES),
                "[env|pe|set] exp|lin|str",
                "binds job to processor cores",
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
            with("-jsv", One, "jsv_url", "job submission verification script to be used"),
            QSUB_ALONE,
            ADD_UP,
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
        JobOptionRow {
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
            with(
                "-sync",
                One,
                "y[es]|n[o]|r|x",
                "wait for job to end and return exit code, or with r for its start",
            ),
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
            O::When,
            with(
                "-when",
                One,
                "now|on_reschedule",
                "from when on changed requests hold: now, running tasks give back consumables",
            ),
            QALTER_ALONE,
            Last,
        ),
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
