//! `-sobjl`: which objects have a value like that. `-sds`: settings of queues that apply to no
//! host.

use super::session::{DataFormat, Session};
use super::show;
use crate::commands::Outcome;
use crate::fail::Fail;
use crate::output::json::JsonDocument;
use crate::{exit, output};
use proto::amount::Type;
use proto::diagnostic::{Code, Diagnostic};
use proto::hostgroup::{HostGroup, HostGroupTable};
use proto::id::HostName;
use proto::object::{Fields, ObjectKind};
use proto::queue::ClusterQueue;
use proto::restring::Expression;

/// `-sobjl KIND ATTRIBUTE VALUE`: names of the objects with an attribute and value that match; none
/// is no failure.
pub fn objects(session: &mut Session, values: &[String]) -> Outcome {
    let [kind, attribute, value] = values else {
        return Err(Diagnostic::new(Code::BadSyntax, "error: -sobjl takes three arguments").into());
    };
    let wanted = SearchPattern {
        attribute: pattern(attribute)?,
        value: pattern(value)?,
    };
    let names = match kind.as_str() {
        "exechost" => hosts(session, &wanted)?,
        "queue" => queues(session, |name, fields| {
            wanted.is_default(fields).then(|| name.to_owned()).into_iter().collect()
        })?,
        "queue_domain" => queues(session, |name, fields| wanted.domains(name, fields))?,
        "queue_instance" => instances(session, &wanted)?,
        other => {
            let refusal = Diagnostic::new(Code::BadSyntax, format!("error: unknown object type \"{other}\""));
            return Err(refusal
                .fix("write one of queue, queue_domain, queue_instance, exechost")
                .into());
        }
    };
    show::print_names(session.format, kind, &names);
    Ok(exit::OK)
}

fn pattern(text: &str) -> Result<Expression, Fail> {
    Ok(Expression::parse(text).map_err(|error| Diagnostic::new(Code::BadValue, error.to_string()))?)
}

fn hosts(session: &mut Session, wanted: &SearchPattern) -> Result<Vec<String>, Fail> {
    let mut names = session.names(ObjectKind::ExecHost)?;
    names.insert(0, HostName::global().to_string());
    matching(session, ObjectKind::ExecHost, names, wanted)
}

fn instances(session: &mut Session, wanted: &SearchPattern) -> Result<Vec<String>, Fail> {
    let names = show::instances(session, "*")?;
    matching(session, ObjectKind::Queue, names, wanted)
}

fn matching(
    session: &mut Session,
    kind: ObjectKind,
    names: Vec<String>,
    wanted: &SearchPattern,
) -> Result<Vec<String>, Fail> {
    let mut found = Vec::new();
    for name in names {
        if wanted.is_in(&session.object(kind, &name)?) {
            found.push(name);
        }
    }
    Ok(found)
}

fn queues(session: &mut Session, mut find: impl FnMut(&str, &Fields) -> Vec<String>) -> Result<Vec<String>, Fail> {
    let mut found = Vec::new();
    for name in session.names(ObjectKind::Queue)? {
        found.extend(find(&name, &session.object(ObjectKind::Queue, &name)?));
    }
    Ok(found)
}

/// What is looked for.
struct SearchPattern {
    attribute: Expression,
    value: Expression,
}

impl SearchPattern {
    fn matches(&self, attribute: &str, value: &str) -> bool {
        self.attribute.matches(attribute, Type::String) && self.value.matches(value, Type::String)
    }

    fn is_in(&self, fields: &Fields) -> bool {
        fields.iter().any(|field| self.matches(&field.key, &field.value))
    }

    /// Whether a cluster queue has it for all hosts.
    fn is_default(&self, fields: &Fields) -> bool {
        fields
            .iter()
            .any(|field| self.matches(&field.key, split(&field.value).0))
    }

    /// The hosts and groups for which a cluster queue has it, as `queue@host` and `queue@@group`.
    fn domains(&self, queue: &str, fields: &Fields) -> Vec<String> {
        let mut found = Vec::new();
        for field in fields.iter() {
            let meant = split(&field.value)
                .1
                .into_iter()
                .filter(|(_, value)| self.matches(&field.key, value));
            found.extend(meant.map(|(domain, _)| format!("{queue}@{domain}")));
        }
        found.sort();
        found.dedup();
        found
    }
}

/// The value for all hosts, and those for a domain: `8,[n1=4],[@big=16]`.
fn split(value: &str) -> (&str, Vec<(&str, &str)>) {
    let mut parts = value.split(",[");
    let default = parts.next().unwrap_or_default();
    let domain = |part: &'_ str| part.strip_suffix(']').unwrap_or(part).len();
    (
        default,
        parts.filter_map(|part| part[..domain(part)].split_once('=')).collect(),
    )
}

/// `-sds`.
pub fn detached(session: &mut Session) -> Outcome {
    let mut groups = HostGroupTable::default();
    for name in session.names(ObjectKind::HostGroup)? {
        groups.insert(typed(HostGroup::from_fields(
            &session.object(ObjectKind::HostGroup, &name)?,
        ))?);
    }
    let mut found: Vec<[String; 3]> = Vec::new();
    for name in session.names(ObjectKind::Queue)? {
        let queue = typed(ClusterQueue::from_fields(&session.object(ObjectKind::Queue, &name)?))?;
        let settings = queue.detached(&groups);
        found.extend(
            settings
                .into_iter()
                .map(|(key, domain)| [name.clone(), key.to_owned(), domain.to_string()]),
        );
    }
    match session.format {
        DataFormat::Text => output::data(&found.iter().map(detached_line).collect::<String>()),
        DataFormat::Json => {
            let row = |[queue, attribute, domain]: &[String; 3]| serde_json::json!({ "queue": queue, "attribute": attribute, "domain": domain });
            let rows: Vec<_> = found.iter().map(row).collect();
            output::data(&JsonDocument::new().with("detached_settings", &rows).finish());
        }
    }
    Ok(exit::OK)
}

fn detached_line([queue, attribute, domain]: &[String; 3]) -> String {
    format!("{queue}@{domain} {attribute}\n")
}

fn typed<T>(read: Result<T, Vec<Diagnostic>>) -> Result<T, Fail> {
    read.map_err(|refusals| {
        let why = refusals.first().map_or(String::new(), ToString::to_string);
        Diagnostic::new(Code::BadMessage, "error: an object of the master does not read")
            .why(why)
            .into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(attribute: &str, value: &str) -> SearchPattern {
        SearchPattern {
            attribute: pattern(attribute).unwrap(),
            value: pattern(value).unwrap(),
        }
    }

    #[test]
    fn a_value_pattern_must_cover_the_whole_value() {
        let fields: Fields = [("load_values", "arch=lx,np_load_avg=0.1")].into_iter().collect();
        assert!(!wanted("load_values", "np_load_avg=*").is_in(&fields));
        assert!(wanted("load_*", "*np_load_avg=*").is_in(&fields));
    }

    #[test]
    fn values_of_domains_are_found_apart_from_the_one_for_all_hosts() {
        let fields: Fields = [("slots", "8,[n1=4],[@big=16]"), ("complex_values", "NONE,[n1=a=1,b=2]")]
            .into_iter()
            .collect();
        assert!(wanted("slots", "8").is_default(&fields) && !wanted("slots", "4").is_default(&fields));
        assert_eq!(
            wanted("slots", "*").domains("all.q", &fields),
            ["all.q@@big", "all.q@n1"]
        );
        assert_eq!(
            wanted("complex_values", "a=1,b=2").domains("all.q", &fields),
            ["all.q@n1"]
        );
    }
}
