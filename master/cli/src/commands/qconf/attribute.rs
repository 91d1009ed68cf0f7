//! `-aattr -dattr -mattr -rattr`, their file forms, and `-purge`: single attributes of many
//! objects.

use super::session::Session;
use super::{change, elements, for_each, named};
use crate::commands::Outcome;
use crate::fail::Fail;
use crate::{exit, output};
use proto::diagnostic::{Code, Diagnostic};
use proto::object::{Fields, ObjectKind};
use proto::wire::client::{AttributeEdit, ObjectAction, ObjectChange};

/// `-aattr KIND ATTRIBUTE VALUE NAME…`.
pub fn from_words(session: &mut Session, edit: AttributeEdit, values: &[String]) -> Outcome {
    let [kind, attribute, value, names @ ..] = values else {
        return Err(too_few());
    };
    if names.is_empty() {
        let what = "qconf: missing object list";
        return Err(Diagnostic::new(Code::BadSyntax, what)
            .fix(format!("name objects of kind {kind}"))
            .into());
    }
    let fields: Fields = [(attribute.as_str(), value.as_str())].into_iter().collect();
    apply(session, edit, editable(kind)?, &fields, names)
}

/// `-Aattr KIND FILE NAME…`: each line of the file is an attribute and its value. An object gets
/// all of them or none.
pub fn from_file(session: &mut Session, edit: AttributeEdit, values: &[String]) -> Outcome {
    let [kind, path, names @ ..] = values else {
        return Err(too_few());
    };
    let kind = editable(kind)?;
    let text = change::read(path).map_err(|mut fail| {
        fail.diagnostic.what += &format!("\n{}", not_taken(path));
        fail
    })?;
    let read = Fields::parse(&text).and_then(|fields| {
        let refusals = fields.check_keys(kind, kind.keys(), &[]);
        if refusals.is_empty() { Ok(fields) } else { Err(refusals) }
    });
    match read {
        Ok(fields) => apply(session, edit, kind, &fields, names),
        Err(refusals) => {
            change::refuse(kind, path, &refusals);
            output::note(&not_taken(path));
            Ok(exit::FAILED)
        }
    }
}

fn apply(session: &mut Session, edit: AttributeEdit, kind: ObjectKind, fields: &Fields, names: &[String]) -> Outcome {
    for_each(named(names)?.into_iter(), |name| {
        session.change_all(changes(edit, kind, fields, name))
    })
}

fn changes(edit: AttributeEdit, kind: ObjectKind, fields: &Fields, name: &str) -> Vec<ObjectChange> {
    let change = |(attribute, value): (String, String)| ObjectChange {
        kind,
        name: name.to_owned(),
        action: ObjectAction::Attribute { edit, attribute, value },
    };
    fields
        .iter()
        .map(|field| change((field.key.clone(), field.value.clone())))
        .collect()
}

/// `-purge queue ATTRIBUTES QUEUE@HOST…`.
pub fn purge(session: &mut Session, values: &[String]) -> Outcome {
    let [kind, attributes, names @ ..] = values else {
        return Err(too_few());
    };
    if kind != "queue" {
        let refusal = Diagnostic::new(
            Code::BadSyntax,
            format!("error: objects of kind \"{kind}\" cannot be purged"),
        );
        return Err(refusal
            .why("only queues have values of their own for hosts")
            .fix("write -purge queue")
            .into());
    }
    let attributes: Vec<String> = elements(std::slice::from_ref(attributes)).map(str::to_owned).collect();
    for_each(named(names)?.into_iter(), |name| {
        session.change(
            ObjectKind::Queue,
            name,
            ObjectAction::Purge {
                attributes: attributes.clone(),
            },
        )
    })
}

/// The kind of that name, if single attributes of it can be edited.
fn editable(name: &str) -> Result<ObjectKind, Fail> {
    let kinds = || {
        ObjectKind::ALL
            .iter()
            .filter(|kind| !kind.keys().is_empty())
            .filter_map(|kind| kind.attr_name())
    };
    let words = kinds().collect::<Vec<_>>().join(", ");
    match ObjectKind::from_attr_name(name) {
        Some(kind) => Ok(kind),
        None => {
            let refusal = Diagnostic::new(
                Code::BadSyntax,
                format!("Modification of object \"{name}\" not supported"),
            );
            Err(refusal.fix(format!("write one of {words}")).into())
        }
    }
}

/// What 8.1.9 says last of a file that it cannot use here.
fn not_taken(path: &str) -> String {
    format!("error: invalid option argument \"{path}\"\nUsage: qconf -help")
}

fn too_few() -> Fail {
    Diagnostic::new(Code::BadSyntax, "error: too few arguments")
        .fix("all options: qconf -help")
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_gets_all_lines_of_a_file_in_one_change() {
        let fields = Fields::parse("slots 4\ncomplex_values lic=2, \\\n  gpu=1\n").unwrap();
        let changes = changes(AttributeEdit::Replace, ObjectKind::Queue, &fields, "all.q");
        assert_eq!(changes.len(), 2);
        let ObjectAction::Attribute { attribute, value, .. } = &changes[1].action else {
            panic!()
        };
        assert_eq!((attribute.as_str(), value.as_str()), ("complex_values", "lic=2,gpu=1"));
    }

    #[test]
    fn kinds_are_named_as_8_1_9_names_them() {
        for (name, expected) in [
            ("queue", Ok(ObjectKind::Queue)),
            ("exechost", Ok(ObjectKind::ExecHost)),
            ("hostgroup", Ok(ObjectKind::HostGroup)),
            ("pe", Ok(ObjectKind::Pe)),
            ("ckpt", Ok(ObjectKind::Checkpoint)),
            ("userset", Ok(ObjectKind::UserSet)),
            ("resource_quota", Ok(ObjectKind::ResourceQuota)),
            ("host", Err(Code::BadSyntax)),
        ] {
            assert_eq!(editable(name).map_err(|fail| fail.diagnostic.code), expected, "{name}");
        }
    }
}
