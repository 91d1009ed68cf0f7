//! What requests mean under a complex: the attribute's full name, and a number or an expression.

use super::{ResourceList, ResourceRequest};
use crate::amount::Amount;
use crate::complex::{Attribute, Complex, Requestable};
use crate::diagnostic::{Code, Diagnostic};
use crate::id::AttributeName;
use crate::object::suggest::nearest;
use crate::restring::Expression;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A request with its meaning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResolvedRequest {
    /// The full name.
    pub attribute: AttributeName,
    /// What is asked for, for each slot where the attribute is booked for each slot.
    pub value: RequestValue,
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RequestValue {
    /// A number in the base unit of a numeric attribute.
    Amount(Amount),
    /// An expression that the text of a string attribute must match.
    Pattern(Expression),
}

impl RequestValue {
    /// The number, if it is one.
    pub fn amount(&self) -> Option<Amount> {
        match self {
            RequestValue::Amount(amount) => Some(*amount),
            RequestValue::Pattern(_) => None,
        }
    }

    /// The expression, if it is one.
    pub fn pattern(&self) -> Option<&Expression> {
        match self {
            RequestValue::Amount(_) => None,
            RequestValue::Pattern(pattern) => Some(pattern),
        }
    }
}

impl fmt::Display for RequestValue {
    /// The base units or the expression; for people, print the request as it was written.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RequestValue::Amount(amount) => write!(f, "{amount:?}"),
            RequestValue::Pattern(pattern) => write!(f, "{pattern}"),
        }
    }
}

/// What a list is for, which decides what it may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestPurpose {
    /// `-hard -l` of a job: requestable attributes except slots, nothing negative.
    Hard,
    /// `-soft -l` of a job: likewise, but no consumables.
    Soft,
    /// `-l` of `qselect`, `qhost` and `qstat`: every attribute there is.
    Filter,
}

impl ResourceList {
    /// What the hard requests of a job mean under `complex`, each attribute once.
    ///
    /// # Errors
    /// With all that is wrong: an unknown or not requestable attribute, slots, a missing, negative
    /// or ill-typed value.
    pub fn resolve(&self, complex: &Complex) -> Result<Vec<ResolvedRequest>, Vec<Diagnostic>> {
        self.resolve_for(complex, RequestPurpose::Hard)
    }

    /// What the list means for its purpose. An attribute under two of its names counts once, with
    /// the later value.
    ///
    /// # Errors
    /// As [`ResourceList::resolve`], as far as the purpose asks for it.
    pub fn resolve_for(
        &self,
        complex: &Complex,
        purpose: RequestPurpose,
    ) -> Result<Vec<ResolvedRequest>, Vec<Diagnostic>> {
        let (mut list, mut refusals): (Vec<ResolvedRequest>, _) = (Vec::new(), Vec::new());
        for request in self.iter() {
            match resolve_one(request, complex, purpose) {
                Ok(resolved) => match list.iter_mut().find(|known| known.attribute == resolved.attribute) {
                    Some(known) => *known = resolved,
                    None => list.push(resolved),
                },
                Err(refusal) => refusals.push(refusal.at(format!("-l {request}"))),
            }
        }
        if refusals.is_empty() { Ok(list) } else { Err(refusals) }
    }
}

fn resolve_one(
    request: &ResourceRequest,
    complex: &Complex,
    purpose: RequestPurpose,
) -> Result<ResolvedRequest, Diagnostic> {
    let attribute = complex
        .lookup(&request.name)
        .ok_or_else(|| unknown(&request.name, complex))?;
    check_permission(request, attribute, purpose)?;
    let value = value(request, attribute)?;
    let is_infinite = value.amount().is_some_and(Amount::is_infinite);
    if is_infinite && attribute.consumable.is_consumable() && purpose != RequestPurpose::Filter {
        let what = format!(
            "attribute \"{}\" is not a value that can be set to infinity",
            attribute.name
        );
        return Err(Diagnostic::new(Code::BadValue, what).fix("ask for an amount: what is used up has a bound"));
    }
    let is_negative = value.amount().is_some_and(Amount::is_negative);
    if is_negative && purpose != RequestPurpose::Filter {
        let what = format!("denied: negative value for resource \"{}\"", attribute.name);
        return Err(Diagnostic::new(Code::BadValue, what).fix("ask for zero or more"));
    }
    Ok(ResolvedRequest {
        attribute: attribute.name.clone(),
        value,
    })
}

fn unknown(name: &str, complex: &Complex) -> Diagnostic {
    let refusal = Diagnostic::new(Code::UnknownResource, format!("unknown resource \"{name}\""));
    match nearest(name, complex.iter().map(|attribute| attribute.name.as_str())) {
        Some(near) => refusal.fix(format!("did you mean {near}?")),
        None => refusal.fix("qconf -sc lists the resources"),
    }
}

/// Refuses an attribute that may not be asked for. As in 8.1.9, one that is not requestable is
/// named as it was written.
fn check_permission(
    request: &ResourceRequest,
    attribute: &Attribute,
    purpose: RequestPurpose,
) -> Result<(), Diagnostic> {
    let name = attribute.name.as_str();
    if purpose == RequestPurpose::Filter {
        return Ok(());
    }
    if name == "slots" {
        let what = "\"job\" denied: use parallel environments instead of requesting slots explicitly";
        return Err(Diagnostic::new(Code::JobRejected, what).fix("write -pe NAME SLOTS"));
    }
    if attribute.requestable == Requestable::No {
        let what = format!("resource \"{}\" configured as non requestable", request.name);
        return Err(Diagnostic::new(Code::NotRequestable, what));
    }
    if purpose == RequestPurpose::Soft && attribute.consumable.is_consumable() {
        let what = format!("denied: soft requests on consumables like \"{name}\" are not supported");
        return Err(Diagnostic::new(Code::JobRejected, what).fix("write -hard before this -l"));
    }
    Ok(())
}

/// The value of a request, TRUE for a BOOL without one.
fn value(request: &ResourceRequest, attribute: &Attribute) -> Result<RequestValue, Diagnostic> {
    let r#type = attribute.r#type;
    let text = match request.value.as_deref() {
        Some(text) if !text.is_empty() => text,
        None if r#type == crate::amount::Type::Bool => return Ok(RequestValue::Amount(Amount::TRUE)),
        Some(_) | None => {
            let what = format!("denied: missing value for resource \"{}\"", attribute.name);
            return Err(Diagnostic::new(Code::BadValue, what).fix(format!("write {}=VALUE", request.name)));
        }
    };
    if r#type.is_numeric() {
        let amount = Amount::parse(text, r#type).map_err(|error| error.diagnostic(attribute.name.as_str(), text))?;
        return Ok(RequestValue::Amount(amount));
    }
    let pattern = Expression::parse(text).map_err(|error| {
        let why = "an expression has patterns, with | & ! between them and parentheses around them";
        Diagnostic::new(Code::BadSyntax, error.to_string())
            .why(why)
            .fix("write it like a*|b or !(a*&*b)")
    })?;
    Ok(RequestValue::Pattern(pattern))
}
