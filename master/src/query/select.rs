//! Names, patterns and requests of questions: jobs, users, hosts, parallel environments, resources.

use super::Model;
use master_core::matching::{self, Request};
use proto::amount::Type;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::JobNumber;
use proto::request::ResourceRequest;
use proto::restring::Expression;

/// A list of names and patterns, any of which may match. An empty list matches everything.
pub(super) struct Patterns(Vec<Expression>);

impl Patterns {
    /// The patterns of a filter. What is no pattern matches nothing, as a name that nobody has.
    pub(super) fn new(texts: &[String]) -> Self {
        let parse = |text: &String| Expression::parse(text).or_else(|_| Expression::parse("NONE"));
        Self(texts.iter().filter_map(|text| parse(text).ok()).collect())
    }

    /// Whether a name matches.
    pub(super) fn admit(&self, name: &str) -> bool {
        self.0.is_empty() || self.any(name)
    }

    /// Whether a name matches one of the patterns there are.
    pub(super) fn any(&self, name: &str) -> bool {
        self.0.iter().any(|pattern| pattern.matches(name, Type::String))
    }
}

/// Whether a job is meant by a number, a name or a pattern of names.
pub(super) fn names_job(target: &str, number: JobNumber, name: &str) -> bool {
    match target.parse::<u32>() {
        Ok(meant) => meant == number.0,
        Err(_) => Expression::parse(target).is_ok_and(|pattern| pattern.matches(name, Type::String)),
    }
}

/// Requests of `-l`, as the complex has them.
///
/// # Errors
/// The first that it does not know, in the words of 8.1.9, or whose value is none of its type.
pub(super) fn requests(model: &Model, resources: &[ResourceRequest]) -> Result<Vec<Request>, Box<Diagnostic>> {
    matching::requests(&model.state.config.complex, resources).map_err(|name| {
        let wrong = resources.iter().find(|request| request.name == name);
        if let Some(attribute) = model.state.config.complex.lookup(&name) {
            let value = wrong.and_then(|request| request.value.as_deref()).unwrap_or("TRUE");
            let what = format!("error: \"{value}\" is no value of resource \"{name}\" of type {}", attribute.r#type);
            return Box::new(Diagnostic::new(Code::BadValue, what).at("-l").fix("correct the value"));
        }
        let what = format!("error: unknown resource \"{name}\"");
        Box::new(Diagnostic::new(Code::UnknownResource, what).at("-l").fix("qconf -sc lists them"))
    })
}
