//! What `qquota` shows: the limits that somebody uses, and those that are no amounts to be used.

use crate::config::Configuration;
use crate::ledger::quota::scope::{JobOwner, Scope, is_on, is_user};
use crate::matching::Cluster;
use crate::matching::quota::claim::value;
use crate::reason::Value;
use proto::amount::{Amount, Type};
use proto::complex::Attribute;
use proto::id::{HostName, UserName};
use proto::quota::{Filter, Limit, QuotaSet, Rule};
use proto::restring::{Expression, Wildcards};
use proto::wire::client::QuotaFilter;
use proto::wire::view::QuotaRow;

/// The rows of `qquota`: of a consumable those who use something of it, of other limits all, the
/// rules of each set in their order.
pub fn rows(cluster: &Cluster<'_>, filter: &QuotaFilter) -> Vec<QuotaRow> {
    let mut rows = Vec::new();
    for set in cluster.config.enabled_quotas() {
        for (index, rule) in set
            .rules
            .iter()
            .enumerate()
            .filter(|(_, rule)| is_asked(cluster.config, filter, rule))
        {
            for limit in &rule.limits {
                let attribute = cluster.config.complex.lookup(limit.attribute.as_str());
                let is_named = |attribute: &&Attribute| {
                    let is_it = |name: &String| *name == attribute.name.as_str() || *name == attribute.shortcut;
                    filter.resources.is_empty() || filter.resources.iter().any(is_it)
                };
                if let Some(attribute) = attribute.filter(is_named) {
                    rows.extend(rows_of(
                        cluster,
                        filter,
                        &RuleLimit {
                            set,
                            index,
                            limit,
                            attribute,
                        },
                    ));
                }
            }
        }
    }
    rows
}

/// One limit of one rule.
struct RuleLimit<'a> {
    set: &'a QuotaSet,
    index: usize,
    limit: &'a Limit,
    attribute: &'a Attribute,
}

impl RuleLimit<'_> {
    fn row(&self, scope: Option<&Scope>, limit: String, used: Option<String>) -> QuotaRow {
        let rule = &self.set.rules[self.index];
        let is_whole = |name: &str| scope.and_then(|scope| one(name, scope)).is_none();
        let expanded = rule
            .filters()
            .filter(|(name, filter)| filter.expanded && is_whole(name));
        QuotaRow {
            rule: self.set.rule_name(self.index),
            resource: self.attribute.name.clone(),
            limit,
            used,
            filters: rule
                .filters()
                .map(|(name, filter)| (name.to_owned(), shown(name, filter, scope)))
                .collect(),
            expanded: expanded.map(|(name, _)| name.to_owned()).collect(),
        }
    }
}

fn rows_of(cluster: &Cluster<'_>, filter: &QuotaFilter, place: &RuleLimit<'_>) -> Vec<QuotaRow> {
    let attribute = place.attribute;
    if !attribute.consumable.is_consumable() {
        return vec![place.row(None, place.limit.value.to_string(), None)];
    }
    let scopes = cluster.ledger.quotas().scopes(&place.set.name, place.index);
    let used = scopes
        .filter(|scope| is_meant(cluster.config, filter, scope))
        .filter_map(|scope| {
            let used = cluster.quota_used(scope, attribute.name.as_str());
            (used > Amount::ZERO).then(|| {
                let limit = match value(cluster, place.limit, attribute, scope.host.as_ref()) {
                    Some(Value::Amount(limit)) => limit.qstat_text(attribute.r#type),
                    Some(Value::Text(_)) | None => place.limit.value.to_string(),
                };
                place.row(Some(scope), limit, Some(used.qstat_text(attribute.r#type)))
            })
        });
    used.collect()
}

/// The names that are shown of a filter: the one that has the limit for itself, or all of them.
fn shown(name: &str, filter: &Filter, scope: Option<&Scope>) -> Vec<String> {
    let one = scope.and_then(|scope| one(name, scope));
    one.map_or_else(|| filter.elements().collect(), |one| vec![one])
}

/// The name of a filter that has the limit for itself.
fn one(filter: &str, scope: &Scope) -> Option<String> {
    match filter {
        "users" => scope.user.as_ref().map(ToString::to_string),
        "projects" => scope.project.clone(),
        "pes" => scope.pe.as_ref().map(ToString::to_string),
        "queues" => scope.queue.as_ref().map(ToString::to_string),
        "hosts" => scope.host.as_ref().map(ToString::to_string),
        _ => None,
    }
}

/// Whether a rule may be about those who are asked for.
fn is_asked(config: &Configuration, filter: &QuotaFilter, rule: &Rule) -> bool {
    let user = |element: &Expression, asked: &str| {
        let who = JobOwner {
            user: UserName::from(asked),
            groups: Vec::new(),
            project: None,
        };
        is_user(config, element, &who)
    };
    let host = |element: &Expression, asked: &str| is_on(config, element, &HostName::new(asked));
    let name = |element: &Expression, asked: &str| element.matches(asked, Type::String);
    may_meet(rule.users.as_ref(), &filter.users, user)
        && may_meet(rule.projects.as_ref(), &filter.projects, name)
        && may_meet(rule.pes.as_ref(), &filter.pes, name)
        && may_meet(rule.queues.as_ref(), &filter.queues, name)
        && may_meet(rule.hosts.as_ref(), &filter.hosts, host)
}

/// Whether one of the names or patterns asked for may match a filter of a rule.
fn may_meet(filter: Option<&Filter>, asked: &[String], is: impl Fn(&Expression, &str) -> bool) -> bool {
    let Some(Filter { included, excluded, .. }) = filter.filter(|_| !asked.is_empty()) else {
        return true;
    };
    asked.iter().any(|asked| {
        let pattern = Wildcards::new(asked);
        let is_alike = |element: &Expression| is(element, asked) || pattern.matches(element.as_str());
        !excluded.iter().any(|element| is(element, asked)) && (included.is_empty() || included.iter().any(is_alike))
    })
}

/// Whether those who share a limit are asked for, as far as they are single names.
fn is_meant(config: &Configuration, filter: &QuotaFilter, scope: &Scope) -> bool {
    let meets = |name: Option<&str>, asked: &[String]| {
        let Some(name) = name.filter(|_| !asked.is_empty()) else {
            return true;
        };
        asked.iter().any(|asked| Wildcards::new(asked).matches(name))
    };
    let on = |host: &HostName| {
        let mut patterns = filter.hosts.iter().filter_map(|asked| Expression::parse(asked).ok());
        filter.hosts.is_empty() || patterns.any(|pattern| is_on(config, &pattern, host))
    };
    meets(scope.user.as_ref().map(AsRef::as_ref), &filter.users)
        && meets(scope.project.as_deref(), &filter.projects)
        && meets(scope.pe.as_ref().map(AsRef::as_ref), &filter.pes)
        && meets(scope.queue.as_ref().map(AsRef::as_ref), &filter.queues)
        && scope.host.as_ref().is_none_or(on)
}
