//! The order of an import: what is named comes before what names it.

use super::SavedObject;
use crate::commands::qconf::session::Session;
use crate::fail::Fail;
use proto::object::ObjectKind;
use std::collections::BTreeSet;

/// Objects in an order in which each can be made.
///
/// The kinds come in the order of the layout; host groups after those inside of them, queues after
/// their subordinates. Where queues are subordinated in a circle, one is made without subordinates
/// first. The complex comes first with what the cell has and the file has not, and as the file says
/// last, when nothing names what goes.
///
/// # Errors
/// If the master does not answer.
pub fn ordered(objects: Vec<SavedObject>, session: &mut Session) -> Result<Vec<SavedObject>, Fail> {
    let (mut order, mut last) = (Vec::new(), Vec::new());
    let mut rest = objects;
    while let Some(first) = rest.first() {
        let kind = first.kind;
        let (of_kind, others) = rest.into_iter().partition(|read| read.kind == kind);
        rest = others;
        match kind {
            ObjectKind::ComplexTable => {
                for read in of_kind {
                    let whole = with_present(session, &read)?;
                    if whole.fields != read.fields {
                        last.push(read);
                    }
                    order.push(whole);
                }
            }
            ObjectKind::HostGroup => order.extend(by_reference(of_kind, "hostlist")),
            ObjectKind::Queue => order.extend(by_reference(of_kind, "subordinate_list")),
            ObjectKind::ExecHost
            | ObjectKind::Pe
            | ObjectKind::ClusterConf
            | ObjectKind::SchedulerConf
            | ObjectKind::AdminHosts
            | ObjectKind::SubmitHosts
            | ObjectKind::Managers
            | ObjectKind::Operators
            | ObjectKind::Checkpoint
            | ObjectKind::Calendar
            | ObjectKind::UserSet
            | ObjectKind::Project
            | ObjectKind::User
            | ObjectKind::ResourceQuota
            | ObjectKind::ShareTree => order.extend(of_kind),
        }
    }
    order.extend(last);
    Ok(order)
}

/// The complex of a file with the attributes that the cell has and the file has not.
fn with_present(session: &mut Session, read: &SavedObject) -> Result<SavedObject, Fail> {
    let mut fields = read.fields.clone();
    for field in session.object(ObjectKind::ComplexTable, "")?.iter() {
        if fields.value(&field.key).is_none() {
            fields.set(&field.key, field.value.clone());
        }
    }
    Ok(SavedObject { fields, ..read.clone() })
}

/// Objects of one kind, each after those that one of its attributes names.
fn by_reference(mut waiting: Vec<SavedObject>, attribute: &str) -> Vec<SavedObject> {
    let (mut order, mut again): (Vec<SavedObject>, Vec<SavedObject>) = (Vec::new(), Vec::new());
    while !waiting.is_empty() {
        let names: BTreeSet<String> = waiting.iter().map(|read| read.name.clone()).collect();
        let waits = |read: &SavedObject| named(read, attribute).any(|name| name != read.name && names.contains(name));
        let (late, ready): (Vec<SavedObject>, Vec<SavedObject>) = waiting.into_iter().partition(waits);
        waiting = late;
        if ready.is_empty() {
            let whole = waiting.remove(0);
            let mut without = whole.clone();
            without.fields.set(attribute, "NONE");
            order.push(without);
            again.push(whole);
        }
        order.extend(ready);
    }
    order.extend(again);
    order
}

/// The words of an attribute that may be names.
fn named<'a>(read: &'a SavedObject, attribute: &str) -> impl Iterator<Item = &'a str> {
    let is_part = |letter: char| letter.is_alphanumeric() || "@._-".contains(letter);
    let value = read.fields.value(attribute).unwrap_or_default();
    value
        .split(move |letter| !is_part(letter))
        .filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::object::Fields;

    fn order(objects: &[(&str, &str)], attribute: &str) -> String {
        let read = |(name, value): &(&str, &str)| {
            let fields: Fields = [(attribute, *value)].into_iter().collect();
            SavedObject {
                kind: ObjectKind::Queue,
                name: (*name).to_owned(),
                path: String::new(),
                fields,
            }
        };
        let order = by_reference(objects.iter().map(read).collect(), attribute);
        let shown = |read: SavedObject| format!("{}({})", read.name, read.fields.value(attribute).unwrap_or_default());
        order.into_iter().map(shown).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_is_named_comes_first_and_a_circle_is_opened_once() {
        let groups = [("@a", "vm @b"), ("@b", "@c"), ("@c", "n1"), ("@d", "NONE")];
        assert_eq!(order(&groups, "hostlist"), "@c(n1) @d(NONE) @b(@c) @a(vm @b)");
        let queues = [
            ("a.q", "slots=2(b.q:1:sr, c.q)"),
            ("b.q", "NONE,[h=c.q=1]"),
            ("c.q", "NONE"),
        ];
        let expected = "c.q(NONE) b.q(NONE,[h=c.q=1]) a.q(slots=2(b.q:1:sr, c.q))";
        assert_eq!(order(&queues, "subordinate_list"), expected);
        let circle = [("a.q", "b.q"), ("b.q", "a.q")];
        assert_eq!(order(&circle, "subordinate_list"), "a.q(NONE) b.q(a.q) a.q(b.q)");
    }
}
