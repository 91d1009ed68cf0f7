//! What a job asks for: resource requests (`-l`), slots (`-pe`) and tasks (`-t`).
//!
//! A request is kept as text, because an attribute's type may change while the job waits. Its one
//! form is that of [`make_canonical`]; [`ResourceList::resolve`] gives it its meaning. Whether a
//! host can satisfy it is not decided here.

mod canonical;
mod range;
mod resolve;
#[cfg(test)]
mod tests;

pub(crate) use canonical::canonical_text;
pub use canonical::make_canonical;
pub use range::{RANGE_MAX, RangeError, SlotRange, TaskRange, TaskSet};
pub use resolve::{RequestPurpose, RequestValue, ResolvedRequest};

use crate::diagnostic::{Code, Diagnostic};
use serde::{Deserialize, Serialize};
use std::fmt;

/// One attribute that a job asks for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ResourceRequest {
    /// The attribute's name or shortcut.
    pub name: String,
    /// The text after `=`; none where there is no `=`, which means TRUE of a BOOL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

impl fmt::Display for ResourceRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Some(value) => write!(f, "{}={value}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// Requests in the order in which they were written, each name once.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ResourceList(Vec<ResourceRequest>);

impl ResourceList {
    /// Reads the argument of `-l`, such as `h_vmem=4G,arch=lx*|sol*,exclusive`.
    ///
    /// A comma or a blank separates requests except between two quotation marks of a kind; the
    /// marks stay part of the value, as in 8.1.9. Empty parts are skipped, so an empty argument
    /// asks for nothing.
    ///
    /// # Errors
    /// If a request has no name before its `=`, or one with a quotation mark, which no attribute
    /// has.
    pub fn parse(text: &str) -> Result<ResourceList, Diagnostic> {
        let mut list = ResourceList::default();
        for item in split_unquoted(text, &[',', ' '])
            .into_iter()
            .map(str::trim)
            .filter(|item| !item.is_empty())
        {
            let (name, value) = match item.split_once('=') {
                Some((name, value)) => (name.trim(), Some(value.to_owned())),
                None => (item, None),
            };
            if name.is_empty() {
                let refusal = Diagnostic::new(Code::BadSyntax, format!("resource request \"{item}\" has no name"));
                return Err(refusal.at("-l").fix("write name=value"));
            }
            if name.contains(['"', '\'']) {
                let refusal = Diagnostic::new(Code::UnknownResource, format!("unknown resource \"{name}\""));
                return Err(refusal.at("-l").fix("put quotation marks around values, behind the ="));
            }
            list.set(ResourceRequest {
                name: name.to_owned(),
                value,
            });
        }
        Ok(list)
    }

    /// Adds a request; the same name again replaces its value and keeps its place, as within one
    /// `-l` of 8.1.9.
    pub fn set(&mut self, request: ResourceRequest) {
        match self.0.iter_mut().find(|known| known.name == request.name) {
            Some(known) => *known = request,
            None => self.0.push(request),
        }
    }

    /// Adds what a later `-l` asks for. A request that it names again is taken out, so that the
    /// later one is in its own place, as in 8.1.9.
    pub fn merge(&mut self, later: ResourceList) {
        self.0
            .retain(|known| later.0.iter().all(|request| request.name != known.name));
        self.0.extend(later.0);
    }

    /// The requests in their order.
    pub fn iter(&self) -> std::slice::Iter<'_, ResourceRequest> {
        self.0.iter()
    }

    /// Whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<Vec<ResourceRequest>> for ResourceList {
    fn from(requests: Vec<ResourceRequest>) -> ResourceList {
        requests.into_iter().collect()
    }
}

impl From<ResourceList> for Vec<ResourceRequest> {
    fn from(list: ResourceList) -> Vec<ResourceRequest> {
        list.0
    }
}

impl FromIterator<ResourceRequest> for ResourceList {
    fn from_iter<I: IntoIterator<Item = ResourceRequest>>(requests: I) -> ResourceList {
        let mut list = ResourceList::default();
        for request in requests {
            list.set(request);
        }
        list
    }
}

impl fmt::Display for ResourceList {
    /// As `-l` would take it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, request) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{request}")?;
        }
        Ok(())
    }
}

/// The parts between separators that no pair of quotation marks encloses. The marks stay in the
/// parts. A mark without a partner is an ordinary character.
pub fn split_unquoted<'a>(text: &'a str, separators: &[char]) -> Vec<&'a str> {
    let (mut parts, mut start, mut quote) = (Vec::new(), 0, None);
    for (at, character) in text.char_indices() {
        match (quote, character) {
            (None, separator) if separators.contains(&separator) => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            (None, '"' | '\'') if text[at + 1..].contains(character) => quote = Some(character),
            (Some(mark), _) if mark == character => quote = None,
            (None | Some(_), _) => {}
        }
    }
    parts.push(&text[start..]);
    parts
}
