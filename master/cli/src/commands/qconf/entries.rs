//! `-ace -Ace -mce -Mce -dce -sce -scel`: single attributes of the complex. The master changes its
//! table, so that nobody overwrites what somebody else changed in the meantime.

use super::draft::Draft;
use super::session::{DataFormat, Session};
use super::{change, elements, for_each, named, show};
use crate::commands::Outcome;
use crate::fail::Fail;
use crate::output::json::JsonDocument;
use crate::{exit, output};
use proto::complex::{Complex, MEANINGS};
use proto::diagnostic::{Code, Diagnostic};
use proto::object::{Fields, Object, ObjectKind};
use proto::wire::client::{AttributeEdit, ObjectAction};

const KIND: ObjectKind = ObjectKind::ComplexTable;

/// What is done with attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryAct {
    /// `-scel`
    List,
    /// `-sce`
    Show,
    /// `-ace`
    Add,
    /// `-Ace`
    AddFile,
    /// `-mce`
    Modify,
    /// `-Mce`
    ModifyFile,
    /// `-dce`
    Delete,
}

/// Does it.
///
/// # Errors
/// What the master refuses, and what no text or editor can be had for.
pub fn act(session: &mut Session, act: EntryAct, values: &[String]) -> Outcome {
    match act {
        EntryAct::List => list(session),
        EntryAct::Show => show(session, values),
        EntryAct::Add => for_each(named(values)?.into_iter(), |name| {
            edited(session, name, &template(name), EntryAct::Add)
        }),
        EntryAct::Modify => for_each(named(values)?.into_iter(), |name| {
            let columns = columns_of(session, name)?;
            edited(session, name, &columns, EntryAct::Modify)
        }),
        EntryAct::AddFile | EntryAct::ModifyFile => for_each(values.iter().map(String::as_str), |path| {
            let content = change::read_object(KIND, path)?;
            send(session, &entry_at(path, &content)?, act)
        }),
        EntryAct::Delete => for_each(named(values)?.into_iter(), |name| {
            session.change(KIND, name, ObjectAction::Delete)
        }),
    }
}

fn list(session: &mut Session) -> Outcome {
    let names: Vec<String> = session
        .object(KIND, "")?
        .iter()
        .map(|field| field.key.clone())
        .collect();
    show::print_names(session.format, "complex attribute", &names);
    Ok(exit::OK)
}

fn show(session: &mut Session, values: &[String]) -> Outcome {
    let mut found = Vec::new();
    let code = for_each(elements(values), |name| {
        found.push((name.to_owned(), columns_of(session, name)?));
        Ok(exit::OK)
    })?;
    match session.format {
        DataFormat::Text => {
            let texts: Vec<String> = found.iter().map(|(name, columns)| text(name, columns)).collect();
            output::data(&texts.join("\n"));
        }
        DataFormat::Json => {
            let objects: Vec<_> = found.iter().map(|(name, columns)| document(name, columns)).collect();
            let document = JsonDocument::new().with("kind", &"complex attribute");
            output::data(&document.with("objects", &objects).finish());
        }
    }
    Ok(code)
}

/// The columns of an attribute behind its name.
///
/// # Errors
/// If the complex has none of that name.
fn columns_of(session: &mut Session, name: &str) -> Result<String, Fail> {
    let fields = session.object(KIND, "")?;
    let columns = fields.value(name).map(str::to_owned);
    columns.ok_or_else(|| {
        let what = format!("Complex attribute \"{name}\" does not exist");
        Diagnostic::new(Code::UnknownObject, what)
            .fix("qconf -scel lists the names; shortcuts are no names here")
            .into()
    })
}

/// A new attribute.
fn template(name: &str) -> String {
    format!("{name} INT <= YES NO 0 0")
}

/// The names of the columns with their values.
fn pairs<'a>(name: &'a str, columns: &'a str) -> impl Iterator<Item = (&'static str, &'a str)> {
    let names = MEANINGS.iter().map(|(column, _)| *column);
    names.zip(std::iter::once(name).chain(columns.split_whitespace()))
}

/// An attribute as a text: a line for each column.
fn text(name: &str, columns: &str) -> String {
    let lines = pairs(name, columns).map(|(column, value)| format!("{column:<12} {value}\n"));
    lines.collect()
}

fn document(name: &str, columns: &str) -> serde_json::Map<String, serde_json::Value> {
    pairs(name, columns)
        .map(|(column, value)| (column.to_owned(), value.into()))
        .collect()
}

/// Reads the text of one attribute: its name, and the columns behind it.
///
/// # Errors
/// A column that is missing, unknown or wrong.
fn entry(content: &str) -> Result<(String, String), Vec<Diagnostic>> {
    let fields = Fields::parse(content)?;
    let is_column = |key: &str| MEANINGS.iter().any(|(column, _)| *column == key);
    if let Some(field) = fields.iter().find(|field| !is_column(&field.key)) {
        let what = format!("unknown attribute name \"{}\"", field.key);
        let columns: Vec<&str> = MEANINGS.iter().map(|(column, _)| *column).collect();
        let fix = format!("a complex attribute has the lines {}", columns.join(", "));
        return Err(vec![Diagnostic::new(Code::BadSyntax, what).fix(fix)]);
    }
    let mut line = Vec::new();
    for (column, _) in MEANINGS {
        let Some(value) = fields.value(column) else {
            let what = format!("required attribute \"{column}\" is missing");
            let refusal = Diagnostic::new(Code::BadSyntax, what);
            return Err(vec![
                refusal.fix("qconf -sce NAME shows the lines of an attribute that is there"),
            ]);
        };
        line.push(value);
    }
    let complex = Complex::parse(&line.join(" "))?;
    let fields = complex.write();
    let first = fields
        .iter()
        .next()
        .map(|field| (field.key.clone(), field.value.clone()));
    first.ok_or_else(|| vec![Diagnostic::new(Code::BadSyntax, "the text holds no attribute")])
}

/// Reads the text of a file, with the file as the place of what is wrong.
fn entry_at(path: &str, content: &str) -> Result<(String, String), Fail> {
    entry(content).map_err(|mut refusals| refusals.swap_remove(0).at(path).into())
}

/// Lets people edit an attribute and sends what they made of it.
fn edited(session: &mut Session, name: &str, columns: &str, act: EntryAct) -> Outcome {
    let mut draft = Draft::new(&session.drafts, &text(name, columns))?;
    let Some(new) = draft.edit(&session.editor)? else {
        output::note("Complex attribute configuration has not been changed");
        return Ok(if act == EntryAct::Add { exit::FAILED } else { exit::OK });
    };
    let outcome = entry_at(&draft.place(), &new).and_then(|entry| {
        if act == EntryAct::Modify && entry.0 != name {
            return Err(renamed(name, &entry.0));
        }
        send(session, &entry, act)
    });
    if !matches!(outcome, Ok(exit::OK)) {
        output::note(&format!("  the text is kept in {}", draft.keep()));
    }
    outcome
}

fn renamed(from: &str, to: &str) -> Fail {
    let what = format!("denied: the name of a complex attribute cannot be changed from \"{from}\" to \"{to}\"");
    let refusal = Diagnostic::new(Code::Immutable, what);
    refusal
        .fix("add an attribute of the new name and delete the old one")
        .into()
}

fn send(session: &mut Session, (name, columns): &(String, String), act: EntryAct) -> Outcome {
    let action = if matches!(act, EntryAct::Add | EntryAct::AddFile) {
        ObjectAction::Add(Fields::from_iter([(name.clone(), columns.clone())]))
    } else {
        ObjectAction::Attribute {
            edit: AttributeEdit::Modify,
            attribute: name.clone(),
            value: columns.clone(),
        }
    };
    session.change(KIND, name, action)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_an_attribute_is_read_as_it_is_printed() {
        let columns = "l INT <= YES YES 0 1000";
        let printed = text("lic", columns);
        assert!(printed.starts_with("name         lic\nshortcut     l\ntype         INT\n"));
        assert_eq!(entry(&printed), Ok(("lic".to_owned(), columns.to_owned())));
    }

    #[test]
    fn a_text_that_is_no_attribute_is_refused_by_its_line() {
        let printed = text("lic", "l INT <= YES YES 0 1000");
        for (content, what) in [
            (
                printed.replace("urgency", "urgent"),
                "unknown attribute name \"urgent\"",
            ),
            (
                printed.replace("relop        <=\n", ""),
                "required attribute \"relop\" is missing",
            ),
            (printed.replace("INT", "INTEGER"), "INTEGER"),
        ] {
            let refusals = entry(&content).unwrap_err();
            assert!(refusals[0].what.contains(what), "{refusals:?}");
        }
    }
}
