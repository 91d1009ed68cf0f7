//! Names, patterns and requests of questions: jobs, users, hosts, parallel environments, resources.

use crate::model::Model;
use master_core::config::Configuration;
use master_core::matching::{self, Request, UnusableRequest};
use proto::diagnostic::{Code, Diagnostic};
use proto::id::{HostName, JobNumber};
use proto::request::ResourceRequest;
use proto::restring::{Expression, Wildcards};

/// A list of names and patterns with wildcards, any of which may match. An empty list matches
/// everything.
pub(super) struct Patterns(Vec<Wildcards>);

impl Patterns {
    /// The patterns of a filter.
    pub(super) fn new(texts: &[String]) -> Self {
        Self(texts.iter().map(|text| Wildcards::new(text)).collect())
    }

    /// Whether a name matches.
    pub(super) fn admit(&self, name: &str) -> bool {
        self.0.is_empty() || self.any(name)
    }

    /// Whether a name matches one of the patterns there are.
    pub(super) fn any(&self, name: &str) -> bool {
        self.0.iter().any(|pattern| pattern.matches(name))
    }
}

/// What jobs are called by: a number, or a name or a pattern of names.
enum JobReference {
    Number(JobNumber),
    Name(Wildcards),
}

/// Jobs by their numbers and names.
pub(super) struct Jobs(Vec<JobReference>);

impl Jobs {
    /// Those that any of the texts means.
    pub(super) fn new(texts: &[String]) -> Self {
        let parse = |text: &String| match text.parse() {
            Ok(number) => JobReference::Number(JobNumber(number)),
            Err(_) => JobReference::Name(Wildcards::new(text)),
        };
        Self(texts.iter().map(parse).collect())
    }

    /// Whether there is no text, which means every job as a rule.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The places of the texts that mean a job.
    pub(super) fn meaning(&self, number: JobNumber, name: &str) -> impl Iterator<Item = usize> {
        let means = move |called: &JobReference| match called {
            JobReference::Number(meant) => *meant == number,
            JobReference::Name(pattern) => pattern.matches(name),
        };
        self.0
            .iter()
            .enumerate()
            .filter(move |(_, called)| means(called))
            .map(|(place, _)| place)
    }

    /// Whether one of the texts means a job.
    pub(super) fn any(&self, number: JobNumber, name: &str) -> bool {
        self.meaning(number, name).next().is_some()
    }

    /// The numbers, where every text is one.
    pub(super) fn numbers(&self) -> Option<Vec<JobNumber>> {
        let number = |called: &JobReference| match called {
            JobReference::Number(number) => Some(*number),
            JobReference::Name(_) => None,
        };
        self.0.iter().map(number).collect()
    }
}

/// Requests of `-l`, as the complex has them.
///
/// # Errors
/// The first that it does not know, in the words of 8.1.9, or whose value is none of its type; a
/// host that the cell does not have.
pub(super) fn requests(model: &Model, resources: &[ResourceRequest]) -> Result<Vec<Request>, Box<Diagnostic>> {
    let config = &model.state.config;
    if let Some(name) = resources.iter().find_map(|request| unknown_host(config, request)) {
        let what = format!("error: can't resolve hostname \"{name}\"");
        let refusal = Diagnostic::new(Code::UnknownObject, what).at("-l");
        return Err(Box::new(refusal.fix("qconf -sel lists the hosts")));
    }
    matching::requests(&model.state.config.complex, resources).map_err(|UnusableRequest { name }| {
        let wrong = resources.iter().find(|request| request.name == name);
        if let Some(attribute) = model.state.config.complex.lookup(&name) {
            let value = wrong.and_then(|request| request.value.as_deref()).unwrap_or("TRUE");
            let what = format!(
                "error: \"{value}\" is no value of resource \"{name}\" of type {}",
                attribute.r#type
            );
            return Box::new(Diagnostic::new(Code::BadValue, what).at("-l").fix("correct the value"));
        }
        let what = format!("error: unknown resource \"{name}\"");
        Box::new(
            Diagnostic::new(Code::UnknownResource, what)
                .at("-l")
                .fix("qconf -sc lists them"),
        )
    })
}

/// The host that a request names without a pattern, if the cell does not have it.
fn unknown_host<'a>(config: &Configuration, request: &'a ResourceRequest) -> Option<&'a str> {
    // Values of other attributes of type HOST name hosts outside of the cell too, such as a licence
    // server.
    let attribute = config.complex.lookup(&request.name)?;
    (attribute.name.as_str() == "hostname").then_some(())?;
    // A host group matches nothing here, as in 8.1.9.
    let name = request.value.as_deref().unwrap_or("TRUE");
    if name.starts_with('@') {
        return None;
    }
    Expression::parse(name).ok()?.plain()?;
    let Configuration {
        exec_hosts,
        admin_hosts,
        submit_hosts,
        ..
    } = config;
    if exec_hosts.contains_key(name) && name != HostName::global().as_str() {
        return None;
    }
    let hosts = exec_hosts.keys().chain(admin_hosts).chain(submit_hosts);
    let is_known = hosts
        .filter(|host| **host != HostName::global())
        .any(|host| host.is_called(name));
    (!is_known).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::request::ResourceList;

    #[test]
    fn a_host_that_the_cell_does_not_have_is_named() {
        let mut config = Configuration::default();
        config.admin_hosts.insert("n1.example.org".into());
        for (text, expected) in [
            ("h=nosuch", Some("nosuch")),
            ("hostname=n1", None),
            ("h=N1.example.org", None),
            ("h=n*", None),
            ("h=n2|n3", None),
            ("hostname", Some("TRUE")),
            ("h=global", Some("global")),
            ("arch=nosuch", None),
            ("nosuch=1", None),
        ] {
            let list = ResourceList::parse(text).unwrap();
            let request = list.iter().next().unwrap();
            assert_eq!(unknown_host(&config, request), expected, "{text}");
        }
    }
}
