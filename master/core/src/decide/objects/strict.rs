//! What somebody may not write anew although an object that is stored already may say it.
//!
//! Earlier versions took these texts. A stored object has to be read whatever it says, so its type
//! does not refuse them; an attribute that keeps its value is not looked at.

use super::change::Refusals;
use proto::diagnostic::{Code, Diagnostic};
use proto::jsv::JsvUrl;
use proto::object::value::{Assignments, ProcedureCommand, is_none};
use proto::object::{Fields, ObjectKind};
use proto::queue::Setting;

/// What a prolog or epilog may name with a `$`, as in 8.1.9 (sge_conf(5)).
pub(super) const PROCEDURE_VARIABLES: [&str; 25] = [
    "host",
    "job_owner",
    "job_id",
    "job_name",
    "ja_task_id",
    "processors",
    "queue",
    "sge_cell",
    "sge_root",
    "stdin_path",
    "stdout_path",
    "stderr_path",
    "merge_stderr",
    "fs_stdin_host",
    "fs_stdin_path",
    "fs_stdin_tmp_path",
    "fs_stdin_file_staging",
    "fs_stdout_host",
    "fs_stdout_path",
    "fs_stdout_tmp_path",
    "fs_stdout_file_staging",
    "fs_stderr_host",
    "fs_stderr_path",
    "fs_stderr_tmp_path",
    "fs_stderr_file_staging",
];

/// How many of them a refusal lists. The others are those of file staging, which have no use here.
pub(super) const TOLD_VARIABLES: usize = 13;

/// What is wrong with the new values of an object.
///
/// # Errors
/// One refusal for each attribute whose value is new and may not be.
pub(super) fn check(kind: ObjectKind, before: Option<&Fields>, after: &Fields) -> Result<(), Refusals> {
    let is_new = |key: &str, value: &str| before.and_then(|before| before.value(key)) != Some(value);
    let new = after.iter().filter(|field| is_new(&field.key, &field.value));
    let refusals: Refusals = new
        .filter_map(|field| fault(kind, &field.key, &field.value).map(|refusal| refusal.at(&*field.key)))
        .collect();
    if refusals.is_empty() { Ok(()) } else { Err(refusals) }
}

/// Whether a text names a verifier. Whether there is one, and its account, is asked where it is.
fn jsv_url(value: &str) -> Option<Diagnostic> {
    if is_none(value) {
        return None;
    }
    let refuse = |what: String, fix: &str| Some(Diagnostic::new(Code::BadValue, what).fix(fix));
    match value.parse::<JsvUrl>() {
        Err(error) => refuse(error.to_string(), "write [script:][user@]path, or none"),
        Ok(url) if url.user.as_deref() == Some("root") => refuse(
            "user \"root\" specified in JSV URL is not allowed".to_owned(),
            "name an account that owns nothing else",
        ),
        Ok(url) if !url.path.starts_with('/') => refuse(
            format!("JSV \"{}\" is not an absolute path", url.path),
            "write the path from / on",
        ),
        Ok(_) => None,
    }
}

fn fault(kind: ObjectKind, key: &str, value: &str) -> Option<Diagnostic> {
    match (kind, key) {
        (ObjectKind::ClusterConf, "jsv_url") => jsv_url(value),
        (ObjectKind::Queue, "qname" | "hostlist") => None,
        (ObjectKind::Queue, _) => unparted(value).or_else(|| queue_values(key, value)),
        (ObjectKind::ExecHost, "complex_values") => host_values(value),
        (ObjectKind::ClusterConf, "mailer") => relative(key, value, is_none(value)),
        (ObjectKind::ClusterConf, "xterm") => relative(key, value, false),
        (ObjectKind::ClusterConf, "prolog" | "epilog") => {
            let fault = unknown_variable(value, &PROCEDURE_VARIABLES)?;
            let known = PROCEDURE_VARIABLES[..TOLD_VARIABLES]
                .iter()
                .map(|name| format!(" ${name}"));
            let what = format!("denied: parameter \"{key}\" in configuration: \"{fault}\"");
            let fix = format!("the variables are{}", known.collect::<String>());
            Some(Diagnostic::new(Code::BadValue, what).fix(fix))
        }
        (ObjectKind::SchedulerConf, "max_pending_tasks_per_job") => (value.parse() == Ok(0_u32)).then(|| {
            let what = format!("invalid setting for param: \"{key}\"(should be \">0\")");
            Diagnostic::new(Code::BadValue, what)
                .fix("name how many tasks of an array get tickets in a pass, at least 1")
        }),
        (ObjectKind::SchedulerConf, "params") => bare_parameter(value),
        _ => None,
    }
}

/// A bracket behind a blank: it would be part of the value of all hosts, and the host in it would
/// have none of its own.
fn unparted(value: &str) -> Option<Diagnostic> {
    let is_behind_blank = |at: usize| value[..at].ends_with(|before: char| before.is_ascii_whitespace());
    let is_behind_comma = |at: usize| value[..at].trim_ascii_end().ends_with([',', '[']);
    let names_a_host = |at: usize| {
        let inside = value[at + 1..].split(']').next().unwrap_or_default();
        inside
            .split_once('=')
            .is_some_and(|(name, _)| !name.trim_ascii().is_empty())
    };
    let mut opens = value.match_indices('[').map(|(at, _)| at);
    let at = opens.find(|at| is_behind_blank(*at) && !is_behind_comma(*at) && names_a_host(*at))?;
    let what = format!("All list elements must be separated by commas: \"{value}\"");
    let fix = format!("write a comma before {}", &value[at..]);
    Some(Diagnostic::new(Code::BadSyntax, what).fix(fix))
}

/// The assignments of a queue, for all hosts and for each that is named.
fn queue_values(key: &str, value: &str) -> Option<Diagnostic> {
    if !matches!(key, "complex_values" | "load_thresholds" | "suspend_thresholds") {
        return None;
    }
    let refused = Setting::parse(value, Assignments::new_in_queue).err()?;
    Some(refused.refusal(key, value))
}

/// `arch==x` would give the host an architecture called `=x`.
fn host_values(value: &str) -> Option<Diagnostic> {
    let list: Assignments = value.parse().ok()?;
    // Ids of a resource map have characteristics, `gpu=1(a[memory=80G])`.
    let is_behind = |value: &str| value.split(['(', '[']).next().is_some_and(|head| head.contains('='));
    let (attribute, value) = list.iter().find(|(_, value)| is_behind(value))?;
    let what = format!("denied: attribute \"{attribute}={value}\" is not a complex attribute");
    let why = "the value of an attribute holds no equals sign";
    Some(
        Diagnostic::new(Code::BadValue, what)
            .why(why)
            .fix(format!("write {attribute}={}", value.trim_matches('='))),
    )
}

/// A program has a path from the root, behind `user@` or alone.
fn relative(key: &str, value: &str, is_nothing: bool) -> Option<Diagnostic> {
    if is_nothing
        || value
            .parse::<ProcedureCommand>()
            .is_ok_and(|command| command.command_line().starts_with('/'))
    {
        return None;
    }
    let what = format!("denied: the path given for \"{key}\" must start with a \"/\"");
    Some(Diagnostic::new(Code::BadValue, what).fix("name the program with its path"))
}

/// What is wrong with the first variable of a command that is none of `known`: it would reach the
/// program as it stands.
pub(super) fn unknown_variable(command: &str, known: &[&str]) -> Option<String> {
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let names = command
        .split('$')
        .skip(1)
        .map(|rest| rest.split(|letter| !is_of_name(letter)).next());
    match names.flatten().find(|name| !known.contains(name))? {
        "" => Some("variables need at least one character".to_owned()),
        name => Some(format!("unknown variable \"{name}\"")),
    }
}

/// A parameter of the scheduler without a value, such as `MONITOR`.
fn bare_parameter(value: &str) -> Option<Diagnostic> {
    let mut words = value
        .split([',', ' '])
        .filter(|word| !word.is_empty() && !is_none(word));
    let bare = words.find(|word| !word.contains('='))?;
    let what = format!("Invalid scheduler param setting: \"{bare}\"");
    Some(Diagnostic::new(Code::BadValue, what).fix(format!("write {bare}=1")))
}
