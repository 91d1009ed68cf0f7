//! `-a… -m… -d… -A… -M…`: whole objects, from an editor, from files, by name.

use super::draft::Draft;
use super::session::Session;
use super::{elements, for_each, hosts, names_of, text, words};
use crate::commands::Outcome;
use crate::fail::Fail;
use crate::{exit, output};
use proto::diagnostic::{Code, Diagnostic};
use proto::object::{Fields, ObjectKind};
use proto::wire::client::{ObjectAction, ObjectChange};
use std::path::Path;

/// What a text becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// `-a`, `-A`: a new object.
    New,
    /// `-m`, `-M`: it takes the place of the object of its name.
    Existing,
}

impl Target {
    fn action(self, fields: Fields) -> ObjectAction {
        match self {
            Target::New => ObjectAction::Add(fields),
            Target::Existing => ObjectAction::Replace(fields),
        }
    }
}

/// `-a…`: opens a new object in the editor.
pub fn add(session: &mut Session, kind: ObjectKind, values: &[String]) -> Outcome {
    if kind == ObjectKind::ClusterConf {
        return for_each(elements(values), |host| {
            edited(session, kind, host, Fields::new(), Target::New)
        });
    }
    let given = values.first().map_or("", String::as_str);
    let fields = match (kind, given) {
        (ObjectKind::ExecHost, template) if !template.is_empty() => {
            let mut fields = session.object(kind, template)?;
            fields.set("hostname", "template");
            fields
        }
        (kind, name) => session.template(kind, name)?,
    };
    edited(session, kind, "", fields, Target::New)
}

/// `-m…`: opens objects in the editor, one after the other.
pub fn modify(session: &mut Session, kind: ObjectKind, values: &[String]) -> Outcome {
    let mut names: Vec<&str> = elements(values).collect();
    if names.is_empty() {
        names.push(if kind == ObjectKind::ClusterConf { "global" } else { "" });
    }
    for_each(names.into_iter(), |given| {
        let fields = session.object(kind, given)?;
        // A host may be given by another of its names than the one its text has.
        let own = kind.name_in(&fields).unwrap_or_default().to_owned();
        edited(
            session,
            kind,
            if own.is_empty() { given } else { &own },
            fields,
            Target::Existing,
        )
    })
}

/// Lets people edit an object and sends what they made of it. A text that is refused stays where
/// they find it.
pub(super) fn edited(session: &mut Session, kind: ObjectKind, name: &str, before: Fields, target: Target) -> Outcome {
    let shown = text::draft(kind, &before, session.wrap);
    let mut draft = Draft::new(&session.drafts, &shown)?;
    let Some(new) = draft.edit(&session.editor)? else {
        return Ok(not_saved(kind, name, target));
    };
    let fields = match text::parse(kind, name, &new) {
        Ok(fields) => fields,
        Err(refusals) => {
            refuse(kind, &draft.place(), &refusals);
            return Ok(kept(draft));
        }
    };
    if target == Target::Existing && fields == text::without_reported(kind, &before) {
        output::note(&text::unchanged(kind, name));
        return Ok(exit::OK);
    }
    let name = if name.is_empty() {
        kind.name_in(&fields).unwrap_or_default().to_owned()
    } else {
        name.to_owned()
    };
    match send(session, kind, &name, &draft.place(), target, fields) {
        Ok(exit::OK) => Ok(exit::OK),
        Ok(_) => Ok(kept(draft)),
        Err(fail) => {
            kept(draft);
            Err(fail)
        }
    }
}

/// An object that was to be added and was not saved is not there: that is a failure. One that was
/// there is unchanged.
fn not_saved(kind: ObjectKind, name: &str, target: Target) -> u8 {
    match target {
        Target::Existing => {
            output::note(&text::unchanged(kind, name));
            exit::OK
        }
        Target::New => {
            output::note(&format!(
                "file unchanged\n  why: the text was not saved, so no {kind} was added"
            ));
            exit::FAILED
        }
    }
}

fn kept(draft: Draft) -> u8 {
    output::note(&format!("  the text is kept in {}", draft.keep()));
    exit::FAILED
}

/// `-A…`, `-M…`: objects from files; a list of files for configurations, which are one for each
/// host.
pub fn from_files(session: &mut Session, kind: ObjectKind, target: Target, values: &[String]) -> Outcome {
    let paths: Vec<&str> = match kind == ObjectKind::ClusterConf {
        true => elements(values).collect(),
        false => values.iter().map(String::as_str).collect(),
    };
    for_each(paths.into_iter(), |path| from_file(session, kind, target, path))
}

fn from_file(session: &mut Session, kind: ObjectKind, target: Target, path: &str) -> Outcome {
    let given = name_of_file(kind, path);
    let content = read_object(kind, path)?;
    if kind == ObjectKind::ClusterConf
        && let Some(refusal) = whole_cell(path, given, &content)
    {
        return Err(refusal.into());
    }
    let fields = match text::parse(kind, given, &content).and_then(text::not_empty) {
        Ok(fields) => fields,
        Err(refusals) => {
            refuse(kind, path, &refusals);
            return Ok(exit::FAILED);
        }
    };
    let name = if given.is_empty() {
        kind.name_in(&fields).unwrap_or_default().to_owned()
    } else {
        given.to_owned()
    };
    send(session, kind, &name, path, target, fields)
}

/// The refusal of a host's configuration text that is really the cell's: it has every entry that
/// only a cell has.
pub(super) fn whole_cell(path: &str, name: &str, content: &str) -> Option<Diagnostic> {
    let of_cell = [
        "administrator_mail",
        "max_u_jobs",
        "reporting_params",
        "auto_user_fshare",
    ];
    let has_all = |fields: Fields| of_cell.iter().all(|key| fields.value(key).is_some());
    if name == "global" || !Fields::parse(content).is_ok_and(has_all) {
        return None;
    }
    let what = format!("error: \"{path}\" holds the configuration of the whole cell and is called after a host");
    let why = "a configuration belongs to the host that its file is called after";
    Some(
        Diagnostic::new(Code::BadValue, what)
            .why(why)
            .fix("call the file global"),
    )
}

/// Sends an object that was read from a file.
fn send(session: &mut Session, kind: ObjectKind, name: &str, path: &str, target: Target, fields: Fields) -> Outcome {
    let change = ObjectChange {
        kind,
        name: name.to_owned(),
        action: target.action(fields.clone()),
    };
    session.change_from(vec![change], |place| text::place_in(path, &fields, place))
}

/// Configurations bear the name of their file; other objects have theirs inside.
fn name_of_file(kind: ObjectKind, path: &str) -> &str {
    let name = Path::new(path).file_name().and_then(|name| name.to_str());
    name.filter(|_| kind == ObjectKind::ClusterConf).unwrap_or_default()
}

/// Reads the file of an object.
///
/// # Errors
/// If it cannot be read.
pub fn read_object(kind: ObjectKind, path: &str) -> Result<String, Fail> {
    read(path).map_err(|mut fail| {
        let lines: Vec<String> = std::iter::once(fail.diagnostic.what.clone())
            .chain(text::last(kind, path))
            .collect();
        fail.diagnostic.what = lines.join("\n");
        fail
    })
}

/// Reads a file that was named on the command line.
///
/// # Errors
/// If it cannot be read.
pub fn read(path: &str) -> Result<String, Fail> {
    std::fs::read_to_string(path).map_err(|error| {
        let why = error.to_string();
        let why = why.split(" (os error").next().unwrap_or(&why);
        let what = format!("error: error opening file \"{path}\" for reading: {why}");
        Diagnostic::new(Code::SystemRefused, what)
            .fix("name a text file that you may read")
            .into()
    })
}

/// Prints all that is wrong with a text, each with the file and the line.
pub fn refuse(kind: ObjectKind, path: &str, refusals: &[Diagnostic]) {
    let last = text::not_correct(kind, path, refusals);
    if let (Some(last), [whole]) = (&last, refusals)
        && whole.place.is_empty()
    {
        // About the file as a whole 8.1.9 says only this.
        let why = whole.what.trim_start_matches("error: ").to_owned();
        output::diagnostic(
            &Diagnostic {
                what: last.clone(),
                ..whole.clone()
            }
            .at(path)
            .why(why),
        );
        return;
    }
    if let Some(refusal) = text::empty_file(kind, path, refusals) {
        output::diagnostic(&refusal.at(path));
        return;
    }
    let located = |refusal: &Diagnostic| {
        let place = if refusal.place.is_empty() {
            path.to_owned()
        } else {
            format!("{path}, {}", refusal.place)
        };
        Diagnostic {
            what: text::in_file(kind, &refusal.what),
            ..refusal.clone()
        }
        .at(place)
    };
    if kind == ObjectKind::ComplexTable || kind == ObjectKind::ResourceQuota {
        refusals
            .iter()
            .for_each(|refusal| output::diagnostic(&located(refusal)));
        last.iter().for_each(|line| output::note(line));
        return;
    }
    // 8.1.9 stops at the first fault. The others follow as details of it.
    let mut in_order: Vec<&Diagnostic> = refusals.iter().collect();
    in_order.sort_by_key(|refusal| line_of(refusal));
    let Some((first, others)) = in_order.split_first() else {
        return;
    };
    output::diagnostic(&located(first));
    let mut said = located(first).detail_lines();
    for other in others {
        let other = located(other);
        output::note(&format!("  also: {}", other.what.replace('\n', ": ")));
        let details = other.detail_lines();
        let new = details.iter().filter(|line| !said.contains(line));
        new.for_each(|line| output::note(&format!("  {line}")));
        said = details;
    }
    text::not_read(kind, path, first)
        .iter()
        .for_each(|line| output::note(line));
}

/// The line of a fault; what is missing is nowhere, and comes last.
fn line_of(refusal: &Diagnostic) -> u32 {
    refusal
        .place
        .strip_prefix("line ")
        .and_then(|line| line.parse().ok())
        .unwrap_or(u32::MAX)
}

/// `-ah -as -am -ao`: names, each with a line of its own.
pub fn add_names(session: &mut Session, kind: ObjectKind, values: &[String]) -> Outcome {
    for_each(names_of(kind, values)?.into_iter(), |name| {
        if matches!(kind, ObjectKind::AdminHosts | ObjectKind::SubmitHosts) {
            hosts::must_be_known(session, name)?;
        }
        session.change(kind, name, ObjectAction::Add(Fields::new()))
    })
}

/// `-d…`: objects and names, each with a line of its own.
pub fn delete(session: &mut Session, kind: ObjectKind, values: &[String]) -> Outcome {
    for_each(names_of(kind, values)?.into_iter(), |name| {
        session.change(kind, name, ObjectAction::Delete)
    })
}

/// `-cq`.
pub fn clean(session: &mut Session, values: &[String]) -> Outcome {
    for_each(words(values)?.into_iter(), |name| {
        session.change(ObjectKind::Queue, name, ObjectAction::Clean)
    })
}
