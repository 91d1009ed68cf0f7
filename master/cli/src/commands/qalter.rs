//! `qalter` changes jobs, `qresub` submits copies of them.

use crate::args::{CommandDef, Given, Operands, OptionDef, Parsed, Values, flag, unsupported, with};
use crate::client::Client;
use crate::commands::Outcome;
use crate::fail::Fail;
use crate::job::request::JobRequest;
use crate::job::selection::{join_task_options, selection};
use crate::site::Site;
use crate::{exit, output};
use proto::diagnostic::{Code, Diagnostic};
use proto::job::{HoldChange, Holds, JobChanges, Validation};
use proto::wire::client::{Answer, Command};
use proto::wire::view::Data;

const LATER: &str = "it is planned; leave it out";

/// Exit code of `qresub` for a job that is unknown or not the caller's.
const NOT_RESUBMITTED: u8 = 4;
/// Exit code of `qalter` for an option that works on whole jobs and was given for tasks.
const JOBS_ONLY: u8 = 4;

const QALTER: CommandDef = CommandDef {
    name: "qalter",
    summary: "Changes pending jobs; some options also running ones. An option replaces what it names as a whole.",
    operand_placeholder: "job_task_list|-uall [- script_args]",
    operands: Operands::Anywhere,
    options: QALTER_OPTIONS,
    exit_codes: "0 changed; 1 refused; 2 wrong option; 4 works on jobs and not on tasks; 7 value does not parse",
};

const QALTER_OPTIONS: &[OptionDef] = &[
    with("-a", Values::One, "date_time", "request a start time"),
    with("-ac", Values::One, "context_list", "add context variable(s)"),
    with("-ar", Values::One, "ar_id", "bind job to advance reservation"),
    with("-A", Values::One, "account_string", "account string in accounting record"),
    unsupported(with("-binding", Values::One, "exp|lin|str", "binds job to processor cores"), LATER),
    with("-c", Values::One, "ckpt_selector", "define type of checkpointing for job: letters of n s m x r, or a time"),
    with("-ckpt", Values::One, "ckpt-name", "request checkpoint method"),
    flag("-cwd", "use current working directory"),
    with("-dc", Values::One, "simple_context_list", "delete context variable(s)"),
    with("-dl", Values::One, "date_time", "request a deadline initiation time"),
    with("-e", Values::One, "path_list", "specify standard error stream path(s)"),
    with("-h", Values::One, "hold_list", "assign holds for jobs or tasks: u o s set, U O S release, n releases all"),
    flag("-hard", "consider following requests \"hard\""),
    flag("-help", "print this help"),
    with("-hold_jid", Values::One, "job_identifier_list", "define jobnet interdependencies"),
    with("-hold_jid_ad", Values::One, "job_identifier_list", "define jobnet array interdependencies"),
    with("-i", Values::One, "file_list", "specify standard input stream file(s)"),
    with("-j", Values::One, "y[es]|n[o]", "merge stdout and stderr stream of job"),
    with("-js", Values::One, "job_share", "share tree or functional job share"),
    with("-l", Values::One, "resource_list", "request the given resources"),
    with("-m", Values::One, "mail_options", "define mail notification events"),
    with("-masterq", Values::One, "wc_queue_list", "bind master task to queue(s)"),
    flag("-notify", "notify job before killing/suspending it"),
    with("-M", Values::One, "mail_list", "notify these e-mail addresses"),
    with("-N", Values::One, "name", "specify job name"),
    with("-o", Values::One, "path_list", "specify standard output stream path(s)"),
    with("-ot", Values::One, "tickets", "set job's override tickets"),
    with("-P", Values::One, "project_name", "set job's project"),
    with("-p", Values::One, "priority", "define job's relative priority"),
    with(
        "-par",
        Values::One,
        "allocation_rule",
        "use this allocation rule in place of that of the parallel environment",
    ),
    with("-pe", Values::Two, "wc_pe_name slot_range", "request slot range for parallel jobs"),
    with("-q", Values::One, "wc_queue_list", "bind job to queue(s)"),
    with("-R", Values::One, "y[es]|n[o]", "reservation desired"),
    with("-r", Values::One, "y[es]|n[o]", "define job as (not) restartable"),
    with("-sc", Values::One, "context_list", "set job context (replaces old context)"),
    with(
        "-scope",
        Values::One,
        "global|master|slave",
        "following -l and -q are for the job, its master task, its slave tasks",
    ),
    flag("-soft", "consider following requests as soft"),
    with("-S", Values::One, "path_list", "command interpreter to be used"),
    with("-t", Values::One, "task_id_range", "only these tasks of the preceding JOB"),
    with("-tc", Values::One, "max_running_tasks", "throttle the number of concurrent tasks"),
    with("-u", Values::One, "user_list", "alter jobs of these users"),
    flag("-uall", "alter jobs of all users"),
    with("-v", Values::One, "variable_list", "export these environment variables"),
    flag("-V", "export all environment variables"),
    with("-w", Values::One, "e|w|n|v|p", "verify mode (error|warning|none|just verify|poke) for jobs"),
    with("-wd", Values::One, "working_directory", "use working_directory"),
];

const QRESUB: CommandDef = CommandDef {
    name: "qresub",
    summary: "Submits copies of jobs.",
    operand_placeholder: "job_list",
    operands: Operands::Anywhere,
    options: &[
        with("-h", Values::One, "hold_list", "holds of the copies: letters of u, o, s"),
        flag("-help", "print this help"),
        with("-u", Values::One, "user_list", "copy the jobs of these users"),
    ],
    exit_codes: "0 submitted; 4 no such job, or not yours; 2 wrong option; 5 option of qalter alone; 7 value does not parse",
};

/// Runs `qalter`.
pub fn alter(words: Vec<String>) -> Outcome {
    let (words, args) = script_arguments(words);
    let parsed = QALTER.parse(join_task_options(words)?)?;
    if parsed.has("-help") {
        output::data(&QALTER.help());
        return Ok(exit::OK);
    }
    if parsed.operands.is_empty() && !parsed.has("-u") && !parsed.has("-uall") {
        output::note(&QALTER.help());
        return Ok(exit::FAILED);
    }
    let mut request = JobRequest::new("qalter");
    request.apply_source(&parsed.given)?;
    let site = Site::from_environment();
    request.map_directory(&site)?;
    let users = if parsed.has("-uall") { Some("*") } else { parsed.value("-u") };
    let jobs = selection("qalter", &parsed.operands, users)?;
    let changes = changes(request, args);
    let only_holds = JobChanges { holds: None, ..changes.clone() } == JobChanges::default();
    if !only_holds && jobs.targets.iter().any(|target| !target.tasks.is_empty()) {
        let refusal =
            Diagnostic::new(Code::WrongState, "denied: the selected option works only on jobs and not on tasks");
        return Err(Fail::new(JOBS_ONLY, refusal.fix("name the job without its tasks; -h alone works on tasks")));
    }
    let verifies = matches!(changes.validation, Some(Validation::Verify | Validation::Poke));
    let reply = Client::connect(&site, "qalter")?.change(Command::Alter { jobs, changes: Box::new(changes) })?;
    let code = output::answers(&reply.answers);
    Ok(if verifies && code != exit::OK { exit::FAILED } else { code })
}

/// Words behind a lone `-` are new arguments of the script.
fn script_arguments(mut words: Vec<String>) -> (Vec<String>, Option<Vec<String>>) {
    match words.iter().position(|word| word == "-") {
        Some(at) => {
            let args = words.split_off(at).into_iter().skip(1).collect();
            (words, Some(args))
        }
        None => (words, None),
    }
}

/// What changes; `-v` and `-V` become the whole exported environment.
fn changes(request: JobRequest, args: Option<Vec<String>>) -> JobChanges {
    let mut changes = request.changes;
    changes.args = args;
    if request.export_all || !request.variables.is_empty() {
        let mut environment = Vec::new();
        if request.export_all {
            environment.extend(crate::job::environment::exported());
        }
        environment.extend(crate::job::environment::named(&request.variables));
        changes.environment = Some(environment);
    }
    changes
}

/// The command line of `qresub`, if it has no options that only `qalter` has.
fn only_of_resubmit(parsed: Parsed) -> Result<Parsed, Fail> {
    let is_known = |given: &&Given| QRESUB.options.iter().any(|option| option.name == given.name);
    let others: Vec<String> = parsed.given.iter().filter(|given| !is_known(given)).map(unknown_option).collect();
    match others.is_empty() {
        true => Ok(parsed),
        false => {
            let refusal = Diagnostic::new(Code::BadSyntax, others.join("\n\n"));
            Err(Fail::new(exit::UNKNOWN_OPTION, refusal.fix("resubmit, then qalter the copy")))
        }
    }
}

fn unknown_option(given: &Given) -> String {
    format!("Unknown option {} {}", given.name, given.values.join(" ")).trim_end().to_owned()
}

/// Runs `qresub`.
pub fn resubmit(words: Vec<String>) -> Outcome {
    let parsed = only_of_resubmit(QALTER.parse(words)?)?;
    if parsed.has("-help") {
        output::data(&QRESUB.help());
        return Ok(exit::OK);
    }
    let jobs = selection("qresub", &parsed.operands, parsed.value("-u"))?;
    let set = match parsed.value("-h") {
        Some(text) => JobRequest::new("qresub").hold_change(text)?.set,
        None => Holds::default(),
    };
    let holds = set.any().then_some(HoldChange { set, release: Holds::default() });
    let changes = Box::new(JobChanges { holds, ..JobChanges::default() });
    let reply = Client::connect(&Site::from_environment(), "qresub")?.change(Command::Resubmit { jobs, changes })?;
    output::answers(&reply.answers);
    if let Some(Data::Submitted { number, name, array }) = &reply.data {
        output::data(&super::qsub::confirmation(*number, name, *array, false));
    }
    Ok(if reply.answers.iter().any(Answer::is_refusal) { NOT_RESUBMITTED } else { exit::OK })
}
