//! `-srqs -arqs -Arqs -mrqs -Mrqs`: resource quota sets, of which several stand in one text.

use super::draft::Draft;
use super::session::{DataFormat, Session};
use super::{change, elements};
use crate::commands::Outcome;
use crate::fail::Fail;
use crate::output::json::JsonDocument;
use crate::{exit, output};
use proto::diagnostic::{Code, Diagnostic};
use proto::object::{Fields, ObjectKind};
use proto::quota::{QuotaSet, parse_sets, print_sets};
use proto::wire::client::{ObjectAction, ObjectChange};

const KIND: ObjectKind = ObjectKind::ResourceQuota;

/// What is done with sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// `-srqs`
    Show,
    /// `-arqs`
    Add,
    /// `-mrqs`
    Modify,
    /// `-Arqs`
    AddFile,
    /// `-Mrqs`
    ModifyFile,
}

/// Does it.
///
/// # Errors
/// What the master refuses, and what no text or editor can be had for.
pub fn act(session: &mut Session, act: Act, values: &[String]) -> Outcome {
    let names: Vec<&str> = elements(values).collect();
    match (act, values) {
        (Act::Show, _) => show(session, &names),
        (Act::Add, _) => add(session, &names),
        (Act::Modify, _) => modify(session, &names),
        (Act::AddFile | Act::ModifyFile, []) => Ok(exit::FAILED),
        (Act::AddFile, [path, ..]) => from_file(session, path, |_, sets| Ok(added(sets))),
        (Act::ModifyFile, [path, names @ ..]) => {
            let names: Vec<&str> = elements(names).collect();
            from_file(session, path, |session, sets| modified(session, sets, &names, path))
        }
    }
}

/// The sets of these names that exist; all of them without names.
fn sets(session: &mut Session, names: &[&str]) -> Result<Vec<QuotaSet>, Fail> {
    let mut sets = Vec::new();
    for name in session
        .names(KIND)?
        .iter()
        .filter(|name| names.is_empty() || names.contains(&name.as_str()))
    {
        let fields = session.object(KIND, name)?;
        sets.push(QuotaSet::from_fields(&fields).map_err(|mut refusals| refusals.swap_remove(0))?);
    }
    Ok(sets)
}

fn show(session: &mut Session, names: &[&str]) -> Outcome {
    let sets = sets(session, names)?;
    if sets.is_empty() {
        output::note("No resource quota set found");
        return Ok(exit::FAILED);
    }
    match session.format {
        DataFormat::Text => output::data(&print_sets(&sets, session.wrap)),
        DataFormat::Json => {
            let objects: Vec<_> = sets.iter().map(document).collect();
            output::data(
                &JsonDocument::new()
                    .with("kind", &KIND.as_str())
                    .with("objects", &objects)
                    .finish(),
            );
        }
    }
    Ok(exit::OK)
}

fn document(set: &QuotaSet) -> serde_json::Value {
    let rules: Vec<String> = set.rules.iter().map(ToString::to_string).collect();
    serde_json::json!({
        "name": set.name, "description": set.description.to_string(), "enabled": set.enabled.0, "limit": rules,
    })
}

/// New sets in the editor: those of the names, else one to be named.
fn add(session: &mut Session, names: &[&str]) -> Outcome {
    let names = if names.is_empty() { &["template"] } else { names };
    let templates: Vec<QuotaSet> = names.iter().map(|name| QuotaSet::template((*name).into())).collect();
    edited(session, &templates, |_, sets| Ok(added(sets)))
}

/// Sets in the editor; all of them without names, and then those that are taken out of the text are
/// deleted.
fn modify(session: &mut Session, names: &[&str]) -> Outcome {
    let before = sets(session, names)?;
    if let Some(name) = names
        .iter()
        .find(|name| !before.iter().any(|set| set.name.as_str() == **name))
    {
        return Err(absent(name).into());
    }
    let is_all = names.is_empty();
    edited(session, &before, |session, sets| {
        if is_all {
            modified(session, sets, &[], "")
        } else {
            Ok(replaced(sets))
        }
    })
}

fn absent(name: &str) -> Diagnostic {
    Diagnostic::new(
        Code::UnknownObject,
        format!("denied: resource quota set \"{name}\" does not exist"),
    )
    .fix("qconf -srqsl lists what there is")
}

type Changes = Result<Vec<ObjectChange>, Fail>;

/// Lets people edit sets and sends what `changes` makes of their text. A text that is refused stays
/// where they find it.
fn edited(session: &mut Session, before: &[QuotaSet], changes: impl Fn(&mut Session, &[Fields]) -> Changes) -> Outcome {
    let mut draft = Draft::new(&session.drafts, &print_sets(before, session.wrap))?;
    let Some(text) = draft.edit(&session.editor)? else {
        output::note("file unchanged");
        return Ok(exit::FAILED);
    };
    let place = draft.place();
    let code = match parse_sets(&text) {
        Ok(sets) => changes(session, &sets).and_then(|changes| send(session, changes, &sets, &place)),
        Err(refusals) => {
            change::refuse(KIND, &place, &refusals);
            Ok(exit::FAILED)
        }
    };
    if !matches!(code, Ok(exit::OK)) {
        output::note(&format!("  the text is kept in {}", draft.keep()));
    }
    code
}

fn from_file(session: &mut Session, path: &str, changes: impl Fn(&mut Session, &[Fields]) -> Changes) -> Outcome {
    let text = read(path)?;
    let sets = match parse_sets(&text) {
        Ok(sets) => sets,
        Err(refusals) => {
            change::refuse(KIND, path, &refusals);
            return Ok(exit::FAILED);
        }
    };
    if text.trim().is_empty() {
        let refusal = Diagnostic::new(Code::BadSyntax, format!("file \"{path}\" has no resource quota set"));
        return Err(refusal.fix("write NONE if no set is meant to stay").into());
    }
    let changes = changes(session, &sets)?;
    send(session, changes, &sets, path)
}

fn read(path: &str) -> Result<String, Fail> {
    std::fs::read_to_string(path).map_err(|error| {
        let why = error.to_string();
        let said = why.split(" (os error").next().unwrap_or(&why);
        let refusal = Diagnostic::new(
            Code::SystemRefused,
            format!("error opening file \"{path}\" for reading: {said}"),
        );
        refusal.fix("name a text file that you may read").into()
    })
}

fn added(sets: &[Fields]) -> Vec<ObjectChange> {
    sets.iter()
        .map(|set| to(name_of(set), ObjectAction::Add(set.clone())))
        .collect()
}

fn replaced(sets: &[Fields]) -> Vec<ObjectChange> {
    sets.iter()
        .map(|set| to(name_of(set), ObjectAction::Replace(set.clone())))
        .collect()
}

/// The sets of the names take the place of those that are there; without names all that are there
/// go, as in 8.1.9.
fn modified(session: &mut Session, sets: &[Fields], names: &[&str], path: &str) -> Changes {
    if names.is_empty() {
        let old = session
            .names(KIND)?
            .into_iter()
            .map(|name| to(&name, ObjectAction::Delete));
        return Ok(old.chain(added(sets)).collect());
    }
    let mut meant = Vec::new();
    for name in names {
        let Some(set) = sets.iter().find(|set| name_of(set) == *name) else {
            let what = format!("resource quota set \"{name}\" not found in file \"{path}\"");
            return Err(Diagnostic::new(Code::UnknownObject, what)
                .fix("name sets that the file has")
                .into());
        };
        if !meant.contains(set) {
            meant.push(set.clone());
        }
    }
    Ok(replaced(&meant))
}

fn name_of(set: &Fields) -> &str {
    set.value("name").unwrap_or_default()
}

fn to(name: &str, action: ObjectAction) -> ObjectChange {
    ObjectChange {
        kind: KIND,
        name: name.to_owned(),
        action,
    }
}

/// Sends the changes: all of them are made or none.
fn send(session: &mut Session, changes: Vec<ObjectChange>, sets: &[Fields], path: &str) -> Outcome {
    session.change_from(changes, |place| place_in(sets, path, place))
}

/// The line of a rule of which the master says `set/rule`.
fn place_in(sets: &[Fields], path: &str, place: String) -> String {
    let line = place.split_once('/').and_then(|(name, rule)| {
        let fields = sets.iter().find(|set| name_of(set) == name)?;
        let index = QuotaSet::from_fields(fields).ok()?.rule_called(rule)?;
        Some(fields.place(&QuotaSet::rule_key(index)))
    });
    line.map_or(place, |line| format!("{path}, {line}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_found_in_the_text() {
        let text = "{\nname a\nenabled TRUE\nlimit to slots=1\n}\n{\nname b\nenabled TRUE\nlimit to slots=1\n\
                    limit name x to nosuch=1\n}\n";
        let sets = parse_sets(text).unwrap();
        assert_eq!(place_in(&sets, "file", "b/x".to_owned()), "file, line 10");
        assert_eq!(place_in(&sets, "file", "a/1".to_owned()), "file, line 4");
        assert_eq!(place_in(&sets, "file", "c/1".to_owned()), "c/1");
    }
}
