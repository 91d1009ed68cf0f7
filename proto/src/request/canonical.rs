//! The one form in which requests are kept and shown: full names, times in seconds, TRUE where no
//! value is given, each attribute once.

use super::{ResourceList, ResourceRequest};
use crate::amount::{Amount, Type};
use crate::complex::{Attribute, Complex, Requestable};

/// Brings requests to their canonical form. An attribute that is named twice, by its name or its
/// shortcut, keeps the later request, in the later place. Memory, numbers, texts, truths and
/// `infinity` stay as they were written, as in 8.1.9; so does a request that the complex does not
/// know or whose value does not suit the type, which another place refuses.
///
/// Requests that are in this form already are not touched: nothing is allocated for them.
pub fn make_canonical(requests: &mut Vec<ResourceRequest>, complex: &Complex) {
    for request in requests.iter_mut() {
        // A request that will be refused is named as it was written.
        if let Some(attribute) = complex
            .lookup(&request.name)
            .filter(|known| known.requestable != Requestable::No)
        {
            canonical_name(request, attribute);
            canonical_value(request, attribute);
        }
    }
    let mut at = 0;
    while at < requests.len() {
        match requests[at + 1..].iter().any(|later| later.name == requests[at].name) {
            true => drop(requests.remove(at)),
            false => at += 1,
        }
    }
}

fn canonical_name(request: &mut ResourceRequest, attribute: &Attribute) {
    if request.name != attribute.name.as_str() {
        request.name = attribute.name.to_string();
    }
}

fn canonical_value(request: &mut ResourceRequest, attribute: &Attribute) {
    let canonical = match (attribute.r#type, request.value.as_deref()) {
        (Type::Bool, None) => Some("TRUE".to_owned()),
        (r#type, Some(text)) => canonical_text(r#type, text),
        (_, None) => None,
    };
    if canonical.is_some() {
        request.value = canonical;
    }
}

/// The form in which a value is kept. `None` if it is kept as it was written.
pub(crate) fn canonical_text(r#type: Type, text: &str) -> Option<String> {
    if r#type == Type::Time && !is_seconds(text) {
        seconds(text)
    } else {
        None
    }
}

/// Whether a text is a number of seconds as it is kept.
fn is_seconds(text: &str) -> bool {
    text == "0" || !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A time in seconds. `None` for one without bound, and for what is not a time.
fn seconds(text: &str) -> Option<String> {
    Amount::parse(text, Type::Time)
        .ok()?
        .finite()
        .map(|seconds| seconds.to_string())
}

impl ResourceList {
    /// The same requests in their canonical form.
    pub fn canonical(self, complex: &Complex) -> ResourceList {
        let mut requests = self.0;
        make_canonical(&mut requests, complex);
        ResourceList(requests)
    }
}
