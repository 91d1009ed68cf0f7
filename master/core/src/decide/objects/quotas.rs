//! What resource quota sets name, and that it stays while they do.

use super::change::Refusals;
use super::draft::Draft;
use super::references::still;
use crate::config::Configuration;
use proto::diagnostic::{Code, Diagnostic};
use proto::object::Fields;
use proto::quota::{Filter, LimitValue, QuotaSet, Rule};
use proto::restring::Expression;

/// Reads a set and checks its limits; hosts get the one name that the cell has for them.
///
/// What filters name need not exist, as in 8.1.9: a rule about it matches nothing until it does,
/// which is told.
pub(super) fn settle(draft: &mut Draft<'_>, fields: &Fields) -> Result<Fields, Refusals> {
    let mut set = QuotaSet::from_fields(fields)?;
    let refusals = set.check(&draft.config.complex);
    if !refusals.is_empty() {
        return Err(refusals);
    }
    for limit in set.rules.iter_mut().flat_map(|rule| &mut rule.limits) {
        if let Some(attribute) = draft.config.complex.lookup(limit.attribute.as_str()) {
            limit.attribute = attribute.name.clone();
        }
    }
    for hosts in set.rules.iter_mut().filter_map(|rule| rule.hosts.as_mut()) {
        let names = draft.host_names();
        for element in hosts.included.iter_mut().chain(&mut hosts.excluded) {
            let host = element
                .plain()
                .filter(|name| !name.starts_with('@'))
                .map(|name| names.canonical(name));
            if let Some(host) = host.and_then(|host| Expression::parse(host.as_str()).ok()) {
                *element = host;
            }
        }
    }
    for warning in unknown(&draft.config, &set) {
        draft.warn(warning);
    }
    Ok(set.to_fields())
}

/// Names of a filter that are those of one object.
fn plain(filter: Option<&Filter>) -> impl Iterator<Item = &str> {
    let elements = filter
        .into_iter()
        .flat_map(|filter| filter.included.iter().chain(&filter.excluded));
    elements.filter_map(Expression::plain)
}

/// What a set names and the cell does not have.
fn unknown(config: &Configuration, set: &QuotaSet) -> Vec<Diagnostic> {
    let mut warnings = Vec::new();
    for (index, rule) in set.rules.iter().enumerate() {
        let mut warn = |kind: &str, name: &str| {
            let what = format!("warning: {kind} \"{name}\" does not exist");
            let why = format!(
                "rule {} matches nothing by that name until it does",
                set.rule_name(index)
            );
            warnings.push(
                Diagnostic::new(Code::UnknownObject, what)
                    .at(set.rule_name(index))
                    .why(why),
            );
        };
        let groups = plain(rule.hosts.as_ref()).filter(|name| name.starts_with('@'));
        groups
            .filter(|name| !config.host_groups.contains_key(*name))
            .for_each(|name| warn("host group", name));
        let lists = plain(rule.users.as_ref()).filter_map(|name| name.strip_prefix('@'));
        lists
            .filter(|name| !config.user_sets.contains_key(*name))
            .for_each(|name| warn("access list", name));
        let projects = plain(rule.projects.as_ref()).filter(|name| !config.projects.contains_key(*name));
        projects.for_each(|name| warn("project", name));
        let pes = plain(rule.pes.as_ref()).filter(|name| !config.pes.contains_key(*name));
        pes.for_each(|name| warn("parallel environment", name));
        let queues = plain(rule.queues.as_ref()).filter(|name| !config.queues.contains_key(*name));
        queues.for_each(|name| warn("cluster queue", name));
    }
    warnings
}

/// The sets with a rule of which something is true.
fn sets_with(config: &Configuration, is_it: impl Fn(&Rule) -> bool) -> Vec<String> {
    let sets = config.quotas.values().filter(|set| set.rules.iter().any(&is_it));
    sets.map(|set| format!("resource quota set \"{}\"", set.name)).collect()
}

/// The sets that limit an attribute or compute limits from it; `is_meant` knows its names.
pub(super) fn sets_limiting(config: &Configuration, is_meant: impl Fn(&str) -> bool) -> Vec<String> {
    sets_with(config, |rule| {
        rule.limits.iter().any(|limit| {
            let in_formula = match &limit.value {
                LimitValue::Dynamic(formula) => formula.attributes().any(|name| is_meant(name.as_str())),
                LimitValue::Fixed(_) => false,
            };
            in_formula || is_meant(limit.attribute.as_str())
        })
    })
}

/// # Errors
/// If sets name a host group.
pub(super) fn to_group(config: &Configuration, name: &str) -> Result<(), Refusals> {
    let users = sets_with(config, |rule| plain(rule.hosts.as_ref()).any(|used| used == name));
    still(&users, |first| {
        format!("denied: host group \"{name}\" is still referenced in {first}.")
    })
}

/// # Errors
/// If sets name a parallel environment.
pub(super) fn to_pe(config: &Configuration, name: &str) -> Result<(), Refusals> {
    let users = sets_with(config, |rule| plain(rule.pes.as_ref()).any(|used| used == name));
    still(&users, |first| {
        format!("denied: Parallel environment \"{name}\" is still referenced in {first}.")
    })
}

/// # Errors
/// If sets name an access list.
pub(super) fn to_set(config: &Configuration, name: &str) -> Result<(), Refusals> {
    let users = sets_with(config, |rule| {
        plain(rule.users.as_ref()).any(|used| used.strip_prefix('@') == Some(name))
    });
    still(&users, |first| {
        format!("denied: userset \"{name}\" is still referenced in {first}")
    })
}

/// # Errors
/// If sets name a project.
pub(super) fn to_project(config: &Configuration, name: &str) -> Result<(), Refusals> {
    let users = sets_with(config, |rule| plain(rule.projects.as_ref()).any(|used| used == name));
    still(&users, |first| {
        format!("denied: project \"{name}\" is still referenced in {first}")
    })
}

/// # Errors
/// If sets name a cluster queue.
pub(super) fn to_queue(config: &Configuration, name: &str) -> Result<(), Refusals> {
    let users = sets_with(config, |rule| plain(rule.queues.as_ref()).any(|used| used == name));
    still(&users, |first| {
        format!("denied: cluster queue \"{name}\" is still referenced in {first}.")
    })
}
