//! `-s…`: names and objects, as text or as JSON.

use super::session::{DataFormat, Session, unexpected};
use super::{NamePurpose, blanks_separate, elements, for_each, text};
use crate::commands::Outcome;
use crate::fail::Fail;
use crate::output::json::JsonDocument;
use crate::{exit, output};
use proto::complex::Complex;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::HostName;
use proto::object::{Fields, LineWrap, ObjectKind};
use proto::restring::Expression;
use proto::wire::client::{Query, QueueFilter};
use proto::wire::view::{Data, HostGroupTree};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// `-s…l` and its relatives: one name a line; `nothing` on stderr where there is none.
pub fn list(session: &mut Session, kind: ObjectKind, nothing: &str) -> Outcome {
    let names = session.names(kind)?;
    print_names(session.format, kind.as_str(), &names);
    if names.is_empty() {
        output::note(nothing);
        return Ok(exit::FAILED);
    }
    Ok(exit::OK)
}

/// Prints names, one a line.
pub fn print_names(format: DataFormat, kind: &str, names: &[String]) {
    match format {
        DataFormat::Text => output::data(&names.iter().map(|name| format!("{name}\n")).collect::<String>()),
        DataFormat::Json => output::data(&JsonDocument::new().with("kind", &kind).with("names", &names).finish()),
    }
}

/// `-s…` of objects by name: a list, for queues with patterns.
pub fn objects(session: &mut Session, kind: ObjectKind, values: &[String]) -> Outcome {
    let mut found = Vec::new();
    let code = for_each(names_meant(kind, values).iter().map(String::as_str), |name| {
        find(session, kind, name, &mut found)?;
        Ok(exit::OK)
    })?;
    match session.format {
        DataFormat::Text => output::data(&texts(kind, &found, session.wrap)),
        DataFormat::Json => output::data(&document(kind, &found).finish()),
    }
    Ok(code)
}

/// The names given, or what is shown where none is.
fn names_meant(kind: ObjectKind, values: &[String]) -> Vec<String> {
    let words = |name: &str| match blanks_separate(kind, NamePurpose::Show) {
        true => name.split_ascii_whitespace().map(str::to_owned).collect(),
        false => vec![name.to_owned()],
    };
    let names: Vec<String> = elements(values).flat_map(words).collect();
    match (names.is_empty(), kind == ObjectKind::ClusterConf) {
        (false, _) => names,
        (true, true) => vec!["global".to_owned()],
        (true, false) => vec![String::new()],
    }
}

type NamedFields = (String, Fields);

fn find(session: &mut Session, kind: ObjectKind, name: &str, found: &mut Vec<NamedFields>) -> Result<(), Fail> {
    if kind != ObjectKind::Queue {
        found.push((name.to_owned(), session.object(kind, name)?));
        return Ok(());
    }
    if name.is_empty() {
        found.push((String::new(), session.template(kind, "")?));
        return Ok(());
    }
    for queue in queues_matching(session, name)? {
        let fields = session.object(kind, &queue)?;
        found.push((queue, fields));
    }
    Ok(())
}

/// Cluster queues of a pattern, or, where it names hosts, queue instances.
///
/// # Errors
/// If there is none, or the pattern does not parse.
pub fn queues_matching(session: &mut Session, pattern: &str) -> Result<Vec<String>, Fail> {
    let names = if pattern.contains('@') {
        instances(session, pattern)?
    } else {
        let expression =
            Expression::parse(pattern).map_err(|error| Diagnostic::new(Code::BadValue, error.to_string()))?;
        let names = session.names(ObjectKind::Queue)?;
        names
            .into_iter()
            .filter(|name| expression.matches(name, proto::amount::Type::String))
            .collect()
    };
    if names.is_empty() {
        let what = format!("No cluster queue or queue instance matches the phrase \"{pattern}\"");
        return Err(Diagnostic::new(Code::UnknownObject, what)
            .fix("all cluster queues: qconf -sql")
            .into());
    }
    Ok(names)
}

/// The queue instances of a pattern, as `queue@host`.
///
/// # Errors
/// What the master refuses.
pub fn instances(session: &mut Session, pattern: &str) -> Result<Vec<String>, Fail> {
    let filter = QueueFilter {
        queues: vec![pattern.to_owned()],
        ..QueueFilter::default()
    };
    let Data::Queues(rows) = session.ask(Query::Queues(filter))? else {
        return Err(unexpected());
    };
    Ok(rows
        .into_iter()
        .map(|row| format!("{}@{}", row.queue, row.host))
        .collect())
}

/// Objects one after the other; an empty line between queues, access lists and users, as 8.1.9 has
/// it.
fn texts(kind: ObjectKind, found: &[NamedFields], wrap: LineWrap) -> String {
    let texts: Vec<String> = found
        .iter()
        .map(|(name, fields)| text::print(kind, name, fields, wrap))
        .collect();
    let is_spaced = matches!(kind, ObjectKind::Queue | ObjectKind::UserSet | ObjectKind::User);
    texts.join(if is_spaced { "\n" } else { "" })
}

/// Objects with their attributes and values as text, in order; the complex as a list of its
/// attributes.
fn document(kind: ObjectKind, found: &[NamedFields]) -> JsonDocument {
    let complex = found
        .first()
        .filter(|_| kind == ObjectKind::ComplexTable)
        .and_then(|(_, fields)| text::complex_of(fields));
    let objects = match complex {
        Some(complex) => rows(&complex),
        None => found.iter().map(|(_, fields)| object(fields)).collect(),
    };
    JsonDocument::new()
        .with("kind", &kind.as_str())
        .with("objects", &objects)
}

fn object(fields: &Fields) -> Value {
    Value::Object(
        fields
            .iter()
            .map(|field| (field.key.clone(), Value::from(field.value.clone())))
            .collect(),
    )
}

fn rows(complex: &Complex) -> Vec<Value> {
    let row = |line: String| {
        let values = line.split_whitespace().map(Value::from).collect::<Vec<_>>();
        Value::Object(Map::from_iter(
            text::COMPLEX_COLUMNS.iter().map(|name| (*name).to_owned()).zip(values),
        ))
    };
    complex.iter().map(|attribute| row(attribute.to_string())).collect()
}

/// `-shgrp_tree`: what a group contains, each level three blanks further in.
pub fn group_tree(session: &mut Session, values: &[String]) -> Outcome {
    for_each(elements(values), |name| {
        let tree = tree(session, name)?;
        match session.format {
            DataFormat::Text => output::data(&tree_text(&tree, 0)),
            DataFormat::Json => output::data(&JsonDocument::new().with("host_group", &tree).finish()),
        }
        Ok(exit::OK)
    })
}

/// `-shgrp_resolved`: all hosts of a group on one line.
pub fn group_hosts(session: &mut Session, values: &[String]) -> Outcome {
    for_each(elements(values), |name| {
        let tree = tree(session, name)?;
        let mut hosts = Vec::new();
        collect_hosts(&tree, &mut BTreeSet::new(), &mut hosts);
        let names: Vec<String> = hosts.iter().map(ToString::to_string).collect();
        match session.format {
            DataFormat::Text if names.is_empty() => {}
            DataFormat::Text => output::data(&format!("{}\n", names.join(" "))),
            DataFormat::Json => print_names(DataFormat::Json, ObjectKind::ExecHost.as_str(), &names),
        }
        Ok(exit::OK)
    })
}

fn tree(session: &mut Session, name: &str) -> Result<HostGroupTree, Fail> {
    let Data::HostGroupTree(tree) = session.ask(Query::HostGroupTree { name: name.to_owned() })? else {
        return Err(unexpected());
    };
    Ok(tree)
}

fn tree_text(tree: &HostGroupTree, depth: usize) -> String {
    let indent = "   ".repeat(depth);
    let hosts: String = tree.hosts.iter().map(|host| format!("{indent}   {host}\n")).collect();
    let groups: String = tree.groups.iter().map(|group| tree_text(group, depth + 1)).collect();
    format!("{indent}{}\n{hosts}{groups}", tree.name)
}

/// The hosts of a group, then those of the groups in it, each once.
fn collect_hosts<'a>(tree: &'a HostGroupTree, seen: &mut BTreeSet<&'a HostName>, hosts: &mut Vec<&'a HostName>) {
    hosts.extend(tree.hosts.iter().filter(|host| seen.insert(host)));
    tree.groups.iter().for_each(|group| collect_hosts(group, seen, hosts));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::object::Object;

    fn group(name: &str, hosts: &[&str], groups: Vec<HostGroupTree>) -> HostGroupTree {
        HostGroupTree {
            name: name.to_owned(),
            hosts: hosts.iter().map(|host| HostName::new(host)).collect(),
            groups,
        }
    }

    #[test]
    fn a_tree_of_groups_is_indented_by_three_blanks_a_level() {
        let tree = group(
            "@all",
            &["m"],
            vec![group("@a", &["n1", "n2"], vec![]), group("@b", &["n2"], vec![])],
        );
        assert_eq!(
            tree_text(&tree, 0),
            "@all\n   m\n   @a\n      n1\n      n2\n   @b\n      n2\n"
        );
        let mut hosts = Vec::new();
        collect_hosts(&tree, &mut BTreeSet::new(), &mut hosts);
        assert_eq!(hosts, ["m", "n1", "n2"].map(HostName::new).iter().collect::<Vec<_>>());
        assert_eq!(tree_text(&group("@allhosts", &["vm"], vec![]), 0), "@allhosts\n   vm\n");
    }

    #[test]
    fn queues_are_separated_by_an_empty_line_and_configurations_end_with_one() {
        let fields: Fields = [("a", "1")].into_iter().collect();
        let found = [("x".to_owned(), fields.clone()), ("y".to_owned(), fields)];
        let queues = texts(ObjectKind::Queue, &found, LineWrap::At80);
        assert_eq!(queues.matches("\n\n").count(), 1);
        let confs = texts(ObjectKind::ClusterConf, &found, LineWrap::At80);
        assert!(
            confs.starts_with("#x:\na ") && confs.contains("\n\n#y:\n") && confs.ends_with("1\n\n"),
            "{confs}"
        );
    }

    #[test]
    fn json_of_the_complex_names_its_columns() {
        let found = [(String::new(), Complex::built_in().write())];
        let read: Value = serde_json::from_str(&document(ObjectKind::ComplexTable, &found).finish()).unwrap();
        let slots = read["objects"]
            .as_array()
            .unwrap()
            .iter()
            .find(|row| row["name"] == "slots")
            .unwrap();
        assert_eq!(
            (&slots["shortcut"], &slots["consumable"]),
            (&Value::from("s"), &Value::from("YES"))
        );
    }
}
