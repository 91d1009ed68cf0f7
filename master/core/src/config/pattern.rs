//! Patterns of queues in `-q` and its relatives: `cq`, `cq@host`, `cq@@group`, each part an
//! expression (`sge_types(5)`, wc_queue).

use crate::config::Configuration;
use proto::amount::Type;
use proto::host::names::is_same;
use proto::id::QueueInstanceName;
use proto::restring::Expression;

/// A pattern of queues. A part that is no expression matches nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuePattern {
    queue: Option<Expression>,
    on: HostPattern,
}

/// Where the instances are.
#[derive(Clone, Debug, PartialEq, Eq)]
enum HostPattern {
    AnyHost,
    Hosts(Option<Expression>),
    Groups(Option<Expression>),
}

impl QueuePattern {
    /// Reads a pattern. `@host` and `@@group` name no queue and match nothing: all queues of a host
    /// are `*@host`.
    pub fn new(text: &str) -> QueuePattern {
        let (queue, on) = match text.split_once('@') {
            None => (text, HostPattern::AnyHost),
            Some((queue, rest)) => match rest.strip_prefix('@') {
                Some(_) => (queue, HostPattern::Groups(Expression::parse(rest).ok())),
                None => (queue, HostPattern::Hosts(Expression::parse(rest).ok())),
            },
        };
        let queue = if queue.is_empty() {
            None
        } else {
            Expression::parse(queue).ok()
        };
        QueuePattern { queue, on }
    }

    /// Whether a queue instance is meant.
    pub fn matches(&self, config: &Configuration, instance: &QueueInstanceName) -> bool {
        if !matches(self.queue.as_ref(), instance.queue.as_str(), Type::String) {
            return false;
        }
        match &self.on {
            HostPattern::AnyHost => true,
            HostPattern::Hosts(hosts) => hosts
                .as_ref()
                .is_some_and(|hosts| is_host(hosts, instance.host.as_str())),
            HostPattern::Groups(groups) => {
                let of_host = config.groups_of.get(&instance.host).into_iter().flatten();
                of_host
                    .into_iter()
                    .any(|group| matches(groups.as_ref(), group.as_str(), Type::String))
            }
        }
    }
}

/// Whether a list of patterns names an instance; an empty list names every one.
pub fn is_in_queue_list(config: &Configuration, list: &[QueuePattern], instance: &QueueInstanceName) -> bool {
    list.is_empty() || list.iter().any(|pattern| pattern.matches(config, instance))
}

/// Whether an expression means a host: a plain name also by short and full name, patterns by the
/// name that the cell has for it.
pub(crate) fn is_host(expression: &Expression, host: &str) -> bool {
    expression.matches(host, Type::Host) || expression.plain().is_some_and(|name| is_same(host, name))
}

fn matches(expression: Option<&Expression>, text: &str, r#type: Type) -> bool {
    expression.is_some_and(|expression| expression.matches(text, r#type))
}
