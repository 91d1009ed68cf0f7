//! `qconf`: shows and changes the configuration of the cell.
//!
//! Every option is a row of [`options`]: how it is written, and the [`Verb`] behind it. Texts are
//! read and checked here, with file and line, and again by the master, which alone decides.

mod attribute;
mod categories;
mod cell;
mod change;
mod diff;
mod draft;
mod entries;
mod export;
mod hosts;
mod import;
mod layout;
mod members;
mod options;
mod quotas;
mod search;
mod session;
mod sharetree;
mod show;
mod text;

#[cfg(test)]
mod fake_master;
#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;

use crate::args::{CommandLine, GivenOption};
use crate::commands::Outcome;
use crate::fail::Fail;
use crate::{exit, output};
pub use options::QCONF;
use options::{DRY_RUN, Verb, verb};
use proto::diagnostic::{Code, Diagnostic};
use proto::object::ObjectKind;
use session::{DataFormat, Session};

/// Runs `qconf`: its options in the order given. The exit code is that of the last one that failed.
pub fn run(words: Vec<String>) -> Outcome {
    if words.is_empty() {
        output::note(&QCONF.help());
        return Ok(exit::FAILED);
    }
    let parsed = QCONF.read(words).map_err(in_the_words_of_8_1_9)?;
    if parsed.has("-help") {
        output::data(&QCONF.help());
        return Ok(exit::OK);
    }
    perform(&mut Session::from_environment(format(&parsed)?)?, &parsed)
}

fn perform(session: &mut Session, parsed: &CommandLine) -> Outcome {
    session.dry_run = parsed.has(DRY_RUN);
    if let Some(given) = parsed
        .given
        .iter()
        .find(|given| session.dry_run && !verb(given.name).can_be_tried())
    {
        let what = format!("error: {} cannot be tried with {DRY_RUN}", given.name);
        let fix = "it is for -import and for the options that take a file: -A… and -M…";
        return Err(Fail::new(exit::FAILED, Diagnostic::new(Code::BadSyntax, what).fix(fix)));
    }
    let mut code = exit::OK;
    for given in &parsed.given {
        code = or_earlier(one(session, given)?, code);
    }
    Ok(code)
}

/// A refusal ends the option, not the command; without the master nothing can follow.
fn one(session: &mut Session, given: &GivenOption) -> Outcome {
    match perform_one(session, given) {
        Err(fail) if !is_fatal(&fail) => Ok(printed(&fail)),
        outcome => outcome,
    }
}

fn perform_one(session: &mut Session, given: &GivenOption) -> Outcome {
    let values = given.values.as_slice();
    match verb(given.name) {
        Verb::List { kind, nothing } => show::list(session, kind, nothing),
        Verb::Show(kind) => show::objects(session, kind, values),
        Verb::GroupTree => show::group_tree(session, values),
        Verb::GroupHosts => show::group_hosts(session, values),
        Verb::Detached => search::detached(session),
        Verb::Search => search::objects(session, values),
        Verb::Add(kind) => change::add(session, kind, values),
        Verb::Modify(kind) => change::modify(session, kind, values),
        Verb::AddFile(kind) => change::from_files(session, kind, change::Target::New, values),
        Verb::ModifyFile(kind) => change::from_files(session, kind, change::Target::Existing, values),
        Verb::AddNames(kind) => change::add_names(session, kind, values),
        Verb::Enlist => members::enlist(session, values),
        Verb::Strike => members::strike(session, values),
        Verb::Delete(kind) => change::delete(session, kind, values),
        Verb::Quotas(act) => quotas::act(session, act, values),
        Verb::Entries(act) => entries::act(session, act, values),
        Verb::Clean => change::clean(session, values),
        Verb::Attribute(edit) => attribute::from_words(session, edit, values),
        Verb::AttributeFile(edit) => attribute::from_file(session, edit, values),
        Verb::Tree(action) => sharetree::perform(session, action, values),
        Verb::Purge => attribute::purge(session, values),
        Verb::SchedulerHost => cell::scheduler_host(session),
        Verb::EventClients => cell::event_clients(session),
        Verb::ListCategories => categories::list(session),
        Verb::ShowCategories => categories::show(session, values),
        Verb::KillEventClients => cell::kill_event_clients(session, values),
        Verb::TriggerScheduling => cell::trigger_scheduling(session),
        Verb::ClearUsage => cell::clear_usage(session, values),
        Verb::ShutdownMaster => cell::shutdown_master(session),
        Verb::ShutdownAgents { kill_jobs } => cell::shutdown_agents(session, kill_jobs, values),
        Verb::Export => export::export(session, values.first().map_or("", String::as_str)),
        Verb::Import => import::import(session, values.first().map_or("", String::as_str)),
        Verb::Setting => Ok(exit::OK),
    }
}

/// The elements of words that are lists separated by commas.
fn elements(values: &[String]) -> impl Iterator<Item = &str> {
    values
        .iter()
        .flat_map(|word| word.split(','))
        .map(str::trim)
        .filter(|element| !element.is_empty())
}

/// The names that a change is for.
///
/// # Errors
/// If there is none: the change would do nothing and seem to be done.
fn named(values: &[String]) -> Result<Vec<&str>, Fail> {
    let names: Vec<&str> = elements(values).collect();
    if names.is_empty() {
        let refusal = Diagnostic::new(Code::BadSyntax, "Object name missing in request");
        return Err(Fail::new(
            exit::FAILED,
            refusal.fix("name what is to be changed, with commas between names"),
        ));
    }
    Ok(names)
}

/// The names that a change is for, where blanks separate them too: users, access lists, projects,
/// hosts of daemons.
///
/// # Errors
/// As [`named`].
fn words(values: &[String]) -> Result<Vec<&str>, Fail> {
    Ok(named(values)?
        .into_iter()
        .flat_map(str::split_ascii_whitespace)
        .collect())
}

/// The names that are given for objects of a kind that are to be changed.
fn names_of(kind: ObjectKind, values: &[String]) -> Result<Vec<&str>, Fail> {
    if blanks_separate(kind, NamePurpose::Change) {
        words(values)
    } else {
        named(values)
    }
}

/// What an option does with the objects that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NamePurpose {
    /// It shows them.
    Show,
    /// It adds, changes or deletes them.
    Change,
}

/// Whether blanks separate names as commas do. In 8.1.9 `-sq 'a.q b.q'` shows two queues, and
/// `-dq 'a.q b.q'` is about one. For projects and access lists it is the other way round.
fn blanks_separate(kind: ObjectKind, purpose: NamePurpose) -> bool {
    match kind {
        ObjectKind::User => true,
        ObjectKind::Queue => purpose == NamePurpose::Show,
        ObjectKind::Managers | ObjectKind::Operators | ObjectKind::UserSet | ObjectKind::Project => {
            purpose == NamePurpose::Change
        }
        ObjectKind::ComplexTable
        | ObjectKind::ExecHost
        | ObjectKind::HostGroup
        | ObjectKind::Pe
        | ObjectKind::ClusterConf
        | ObjectKind::SchedulerConf
        | ObjectKind::AdminHosts
        | ObjectKind::SubmitHosts
        | ObjectKind::Checkpoint
        | ObjectKind::Calendar
        | ObjectKind::ResourceQuota
        | ObjectKind::ShareTree => false,
    }
}

/// Does something for each name. A refusal of one is printed and the others follow, so that each
/// gets its line.
fn for_each<'a>(names: impl Iterator<Item = &'a str>, mut act: impl FnMut(&'a str) -> Outcome) -> Outcome {
    let mut code = exit::OK;
    for name in names {
        let outcome = match act(name) {
            Err(fail) if !is_fatal(&fail) => printed(&fail),
            Err(fail) => return Err(fail),
            Ok(code) => code,
        };
        code = or_earlier(outcome, code);
    }
    Ok(code)
}

fn or_earlier(code: u8, earlier: u8) -> u8 {
    if code == exit::OK { earlier } else { code }
}

/// Whether nothing else can be asked after this.
fn is_fatal(fail: &Fail) -> bool {
    matches!(fail.diagnostic.code, Code::NoMaster | Code::OutcomeUnknown)
}

fn printed(fail: &Fail) -> u8 {
    output::diagnostic(&fail.diagnostic);
    exit_code(fail.exit)
}

/// `qconf` knows one exit code for refusals; that a change's outcome is unknown has its own in
/// every command.
fn exit_code(code: u8) -> u8 {
    if code == exit::OK || code == Code::OutcomeUnknown.exit_code() {
        code
    } else {
        exit::FAILED
    }
}

/// `-fmt`.
fn format(parsed: &CommandLine) -> Result<DataFormat, Fail> {
    match parsed.value("-fmt") {
        None | Some("text") => Ok(DataFormat::Text),
        Some("json") => Ok(DataFormat::Json),
        Some(other) => {
            let refusal = Diagnostic::new(Code::BadSyntax, format!("error: unknown format \"{other}\""));
            Err(Fail::new(exit::FAILED, refusal.fix("write -fmt json or -fmt text")))
        }
    }
}

/// A command line that is wrong, as `qconf` of 8.1.9 says it.
fn in_the_words_of_8_1_9(refusal: Diagnostic) -> Fail {
    let said = refusal.what.strip_prefix("qconf: ").unwrap_or(&refusal.what);
    let said = match said.strip_suffix(" option must have argument") {
        Some(option) => format!("no option argument provided to \"{option}\""),
        None => said.to_owned(),
    };
    // The usage line says where all options are; only what says more stays.
    let fix = if refusal.fix.starts_with("all options") {
        String::new()
    } else {
        refusal.fix
    };
    Fail::new(
        exit::FAILED,
        Diagnostic {
            what: format!("error: {said}\nUsage: qconf -help"),
            fix,
            ..refusal
        },
    )
}
