//! The option tables of the commands that describe jobs.

use crate::args::{CommandDef, Operands, OptionDef, Values, flag, unsupported, with};

const LATER: &str = "it is planned; leave it out";

/// Options that `qsub` and `qalter` have in common, and those of `qsub` alone.
pub const JOB_OPTIONS: &[OptionDef] = &[
    with("-a", Values::One, "date_time", "request a start time"),
    with("-ac", Values::One, "context_list", "add context variable(s)"),
    with("-ar", Values::One, "ar_id", "bind job to advance reservation"),
    with("-A", Values::One, "account_string", "account string in accounting record"),
    with("-b", Values::One, "y[es]|n[o]", "handle command as binary"),
    unsupported(with("-binding", Values::One, "[env|pe|set] exp|lin|str", "binds job to processor cores"), LATER),
    with("-c", Values::One, "ckpt_selector", "define type of checkpointing for job: letters of n s m x r, or a time"),
    with("-ckpt", Values::One, "ckpt-name", "request checkpoint method"),
    flag("-clear", "skip previous definitions for job"),
    flag("-cwd", "use current working directory"),
    with("-C", Values::One, "directive_prefix", "define command prefix for job script"),
    with("-dc", Values::One, "simple_context_list", "delete context variable(s)"),
    with("-dl", Values::One, "date_time", "request a deadline initiation time"),
    with("-e", Values::One, "path_list", "specify standard error stream path(s)"),
    flag("-h", "place user hold on job"),
    flag("-hard", "consider following requests \"hard\""),
    flag("-help", "print this help"),
    with("-hold_jid", Values::One, "job_identifier_list", "define jobnet interdependencies"),
    with("-hold_jid_ad", Values::One, "job_identifier_list", "define jobnet array interdependencies"),
    with("-i", Values::One, "file_list", "specify standard input stream file(s)"),
    with("-j", Values::One, "y[es]|n[o]", "merge stdout and stderr stream of job"),
    with("-js", Values::One, "job_share", "share tree or functional job share"),
    unsupported(with("-jsv", Values::One, "jsv_url", "job submission verification script to be used"), LATER),
    with("-l", Values::One, "resource_list", "request the given resources"),
    with("-m", Values::One, "mail_options", "define mail notification events"),
    with("-masterq", Values::One, "wc_queue_list", "bind master task to queue(s)"),
    flag("-notify", "notify job before killing/suspending it"),
    with("-now", Values::One, "y[es]|n[o]", "start job immediately or not at all"),
    with("-M", Values::One, "mail_list", "notify these e-mail addresses"),
    with("-N", Values::One, "name", "specify job name"),
    with("-o", Values::One, "path_list", "specify standard output stream path(s)"),
    with("-P", Values::One, "project_name", "set job's project"),
    with("-p", Values::One, "priority", "define job's relative priority"),
    with(
        "-par",
        Values::One,
        "allocation_rule",
        "use this allocation rule in place of that of the parallel environment",
    ),
    with("-pe", Values::Two, "wc_pe_name slot_range", "request slot range for parallel jobs"),
    unsupported(with("-pty", Values::One, "y[es]|n[o]", "start job in a pty"), LATER),
    with("-q", Values::One, "wc_queue_list", "bind job to queue(s)"),
    with("-R", Values::One, "y[es]|n[o]", "reservation desired"),
    with("-r", Values::One, "y[es]|n[o]", "define job as (not) restartable"),
    with("-sc", Values::One, "context_list", "set job context (replaces old context)"),
    with("-shell", Values::One, "y[es]|n[o]", "start command with or without wrapping <loginshell> -c"),
    flag("-soft", "consider following requests as soft"),
    with("-sync", Values::One, "y[es]|n[o]", "wait for job to end and return exit code"),
    with("-S", Values::One, "path_list", "command interpreter to be used"),
    with("-t", Values::One, "task_id_range", "create a job-array with these tasks"),
    with("-tc", Values::One, "max_running_tasks", "throttle the number of concurrent tasks"),
    flag("-terse", "tersed output, print only the job-id"),
    with("-u", Values::One, "user_list", "ignored by qsub, as in Grid Engine"),
    with("-v", Values::One, "variable_list", "export these environment variables"),
    flag("-verify", "do not submit, just verify"),
    flag("-V", "export all environment variables"),
    with("-w", Values::One, "e|w|n|v|p", "verify mode (error|warning|none|just verify|poke) for jobs"),
    with("-wd", Values::One, "working_directory", "use working_directory"),
    with("-@", Values::One, "file", "read commandline input from file"),
];

/// `qsub`.
pub const QSUB: CommandDef = CommandDef {
    name: "qsub",
    summary: "Submits a batch job. Options are also read from lines of the script that begin with #$, and from sge_request files.",
    operand_placeholder: "[{command|-} [command_args]]",
    operands: Operands::EndOptions,
    options: JOB_OPTIONS,
    exit_codes: "0 submitted; 1 rejected; 2 wrong option; 4 script unreadable; 7 value does not parse; 14 no such script; 25 job limit \
                 reached, try again later; 75 outcome unknown; with -sync y the job's own",
};
