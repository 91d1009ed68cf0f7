//! Edits of single attributes: `qconf -aattr`, `-mattr`, `-rattr` and `-dattr resource_quota`.

use super::{KEYS, QuotaSet, unknown_attribute};
use crate::diagnostic::{Code, Diagnostic};
use crate::id::QuotaName;
use crate::object::edit::{EditResult, Operation, Shape, check_elements};
use crate::object::value::is_none;
use crate::object::{Fields, ObjectKind};

/// Splits what `-aattr` and its relatives call a set or one of its rules: `set` or `set/rule`.
///
/// Text with another slash, or without a rule behind it, is taken as a name as a whole. No set has
/// such a name.
pub fn set_and_rule(object: &str) -> (QuotaName, Option<&str>) {
    match object
        .split_once('/')
        .filter(|(_, rule)| !rule.is_empty() && !rule.contains('/'))
    {
        Some((set, rule)) => (QuotaName::from(set), Some(rule)),
        None => (QuotaName::from(object), None),
    }
}

/// Changes one attribute of a set; of limits, those of the rule that is named.
///
/// # Errors
///
/// A set has no such attribute, a limit is to be changed and no rule of the set is named, or the
/// value does not read.
pub fn edit(
    set: &QuotaSet,
    rule: Option<&str>,
    operation: Operation,
    key: &str,
    value: &str,
) -> Result<EditResult, Diagnostic> {
    match key {
        "limit" => edit_limits(set, rule, operation, value),
        "name" => Err(Diagnostic::new(Code::Immutable, "cannot change name")
            .why("a set keeps its name")
            .fix("add a set with the other name and delete this one")),
        key if KEYS.contains(&key) => {
            if operation == Operation::Delete {
                let what = format!("attribute \"{key}\" of a {} is not a list", ObjectKind::ResourceQuota);
                return Err(
                    Diagnostic::new(Code::BadSyntax, what).fix(format!("use -rattr resource_quota {key} VALUE"))
                );
            }
            let mut fields: Fields = set.to_fields();
            fields.set(key, value.trim_ascii());
            QuotaSet::from_fields(&fields).map_err(|mut refusals| refusals.swap_remove(0))?;
            Ok(EditResult {
                fields,
                notes: Vec::new(),
                is_told: true,
            })
        }
        key => Err(unknown_attribute(key)),
    }
}

fn edit_limits(
    set: &QuotaSet,
    rule: Option<&str>,
    operation: Operation,
    value: &str,
) -> Result<EditResult, Diagnostic> {
    check_elements(operation, Shape::Assignments, "limit", value)?;
    let index = rule
        .and_then(|rule| set.rule_called(rule))
        .ok_or_else(|| no_rule(set, rule))?;
    let mut set = set.clone();
    let limits = &mut set.rules[index].limits;
    let mut notes = Vec::new();
    if operation == Operation::Delete {
        for element in value
            .split(',')
            .map(str::trim_ascii)
            .filter(|element| !element.is_empty())
        {
            let name = element.split_once('=').map_or(element, |(name, _)| name);
            let before = limits.len();
            limits.retain(|limit| limit.attribute.as_str() != name);
            if limits.len() == before {
                notes.push(format!(
                    "\"{name}\" does not exist in \"resource_quota_rules\" of \"resource_quota\""
                ));
            }
        }
        return Ok(EditResult {
            fields: set.to_fields(),
            notes,
            is_told: true,
        });
    }
    let elements = value
        .split(',')
        .map(|element| element.trim_ascii().parse())
        .collect::<Result<Vec<super::Limit>, _>>();
    let new = if is_none(value.trim_ascii()) {
        Vec::new()
    } else {
        elements?
    };
    match operation {
        Operation::Replace => *limits = new,
        Operation::Add | Operation::Modify | Operation::Delete => {
            for limit in new {
                if operation == Operation::Add && limits.iter().any(|known| known.attribute == limit.attribute) {
                    notes.push(format!(
                        "No modification because \"{}\" already exists in \"resource_quota_rules\" of \"resource_quota\"",
                        limit.attribute
                    ));
                    continue;
                }
                limits.retain(|known| known.attribute != limit.attribute);
                limits.push(limit);
            }
        }
    }
    set.rules[index].check_dynamic()?;
    Ok(EditResult {
        fields: set.to_fields(),
        notes,
        is_told: true,
    })
}

fn no_rule(set: &QuotaSet, rule: Option<&str>) -> Diagnostic {
    let rules: Vec<String> = (0..set.rules.len()).map(|index| set.rule_name(index)).collect();
    let why = match rule {
        Some(rule) => format!("the set \"{}\" has no rule \"{rule}\"", set.name),
        None => "limits are those of a rule".to_owned(),
    };
    Diagnostic::new(Code::UnknownObject, "no resource quota rule specified for modification")
        .why(why)
        .fix(format!("name one of {}", rules.join(", ")))
}
