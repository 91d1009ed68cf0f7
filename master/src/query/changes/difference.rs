//! The attributes in which two versions of an object differ.

use proto::object::Fields;
use proto::wire::view::FieldChange;
use std::collections::BTreeSet;

/// The most attributes that are shown of one change.
const MOST_FIELDS: usize = 500;

/// What one of two values has where the other has more elements.
const NOTHING: &str = "(nothing)";

/// Values up to this length are shown whole.
const VALUE_BYTES: usize = 400;

/// The attributes that differ, in the order of the object, and how many more there are.
pub(super) fn between(old: Option<&Fields>, new: Option<&Fields>) -> (Vec<FieldChange>, u64) {
    let value = |fields: Option<&Fields>, key: &str| fields.and_then(|fields| fields.value(key)).map(str::to_owned);
    let keys_of = |fields: Option<&Fields>| -> Vec<String> {
        let keys = fields.into_iter().flat_map(Fields::iter);
        keys.map(|field| field.key.clone()).collect()
    };
    let mut keys = keys_of(new);
    keys.extend(keys_of(old).into_iter().filter(|key| value(new, key).is_none()));
    let (mut changes, mut more) = (Vec::new(), 0);
    for key in keys {
        let (before, after) = (value(old, &key), value(new, &key));
        if before == after {
            continue;
        }
        if changes.len() == MOST_FIELDS {
            more += 1;
            continue;
        }
        let (old, new) = shortened(before, after);
        changes.push(FieldChange { name: key, old, new });
    }
    (changes, more)
}

/// Two values. If one is long, only the elements are shown that the other does not have, or the
/// part of a text that differs.
fn shortened(old: Option<String>, new: Option<String>) -> (Option<String>, Option<String>) {
    let is_short = |value: &Option<String>| value.as_ref().is_none_or(|text| text.len() <= VALUE_BYTES);
    if is_short(&old) && is_short(&new) {
        return (old, new);
    }
    let elements = |value: &Option<String>| -> Vec<String> {
        let elements = value.iter().flat_map(|text| text.split_inclusive([',', ' ']));
        elements.map(str::to_owned).collect()
    };
    let (before, after) = (elements(&old), elements(&new));
    if let Some((removed, added)) = apart(&before, &after) {
        return (old.map(|_| removed), new.map(|_| added));
    }
    let is_equal = |(one, other): &(&String, &String)| one == other;
    let head = before.iter().zip(&after).take_while(is_equal).count();
    let rest = before.len().min(after.len()) - head;
    let behind = before.iter().rev().zip(after.iter().rev()).take(rest);
    let tail = behind.take_while(is_equal).count();
    let middle = |elements: &[String]| {
        if head + tail == elements.len() && !elements.is_empty() {
            return NOTHING.to_owned();
        }
        let start = if head > 0 { "..." } else { "" };
        let end = if tail > 0 { "..." } else { "" };
        format!("{start}{}{end}", cut(elements[head..elements.len() - tail].concat()))
    };
    (old.map(|_| middle(&before)), new.map(|_| middle(&after)))
}

/// The elements that only one of two long lists has, if those are fewer than the part between the
/// first difference and the last one. `None` for the same elements in another order.
fn apart(before: &[String], after: &[String]) -> Option<(String, String)> {
    let element = |text: &String| text.trim_end_matches([',', ' ']).to_owned();
    let only = |list: &[String], other: &[String]| -> Vec<String> {
        let other: BTreeSet<String> = other.iter().map(element).collect();
        let list = list.iter().map(element);
        list.filter(|element| !other.contains(element)).collect()
    };
    let (removed, added) = (only(before, after), only(after, before));
    let is_list = removed.len() < before.len() && added.len() < after.len();
    if !is_list || removed.is_empty() && added.is_empty() {
        return None;
    }
    let text = |elements: Vec<String>| match elements.is_empty() {
        true => NOTHING.to_owned(),
        false => cut(format!("... {} ...", elements.join(" "))),
    };
    Some((text(removed), text(added)))
}

/// The beginning of a text that is too long.
fn cut(mut text: String) -> String {
    if text.len() <= VALUE_BYTES {
        return text;
    }
    let end = (0..=VALUE_BYTES).rev().find(|at| text.is_char_boundary(*at));
    text.truncate(end.unwrap_or(0));
    text + "..."
}

#[cfg(test)]
mod tests {
    use super::*;

    fn between_values(old: &str, new: &str) -> FieldChange {
        let fields = |value: &str| Fields::from_iter([("slots", "1"), ("hostlist", value)]);
        let (mut changes, more) = between(Some(&fields(old)), Some(&fields(new)));
        assert_eq!((changes.len(), more), (1, 0));
        changes.remove(0)
    }

    #[test]
    fn of_a_long_list_the_elements_that_differ_are_shown() {
        let list = |from: u32, to: u32| (from..to).map(|host| format!("node{host}")).collect::<Vec<_>>();
        let (old, mut changed) = (list(0, 500), list(0, 500));
        changed[250] = "other".to_owned();
        let change = between_values(&old.join(" "), &changed.join(" "));
        assert_eq!(
            (change.old.as_deref(), change.new.as_deref()),
            (Some("... node250 ..."), Some("... other ..."))
        );
        let change = between_values(&old.join(" "), &old[..499].join(" "));
        assert_eq!(change.name, "hostlist");
        assert_eq!(
            (change.old.as_deref(), change.new.as_deref()),
            (Some("... node499 ..."), Some("(nothing)"))
        );
        let mut at_both_ends = list(1, 501);
        at_both_ends[0] = "first".to_owned();
        let change = between_values(&old.join(","), &at_both_ends.join(","));
        assert_eq!(
            (change.old.as_deref(), change.new.as_deref()),
            (Some("... node0 node1 ..."), Some("... first node500 ..."))
        );
        let mut turned = list(0, 500);
        turned.swap(250, 251);
        let change = between_values(&old.join(" "), &turned.join(" "));
        assert_eq!(
            (change.old.as_deref(), change.new.as_deref()),
            (Some("...node250 node251 ..."), Some("...node251 node250 ..."))
        );
        let mut longer = list(0, 500);
        longer.insert(250, "new".to_owned());
        let change = between_values(&old.join(" "), &longer.join(" "));
        assert_eq!(
            (change.old.as_deref(), change.new.as_deref()),
            (Some("(nothing)"), Some("... new ..."))
        );
        let change = between_values(&"ü".repeat(1000), "short");
        assert!(change.old.is_some_and(|old| old.ends_with("...") && old.len() < 410));
        assert_eq!(change.new.as_deref(), Some("short"));
    }

    #[test]
    fn more_attributes_than_an_answer_shows_are_counted() {
        let many = Fields::from_iter((0..MOST_FIELDS + 7).map(|number| (format!("a{number}"), "1")));
        let (changes, more) = between(None, Some(&many));
        assert_eq!((changes.len(), more), (MOST_FIELDS, 7));
        assert_eq!(changes[0].old, None);
    }
}
