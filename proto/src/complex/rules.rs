//! What an attribute may be, in the words of 8.1.9 where it has any.

use super::{Attribute, Complex, Consumable, Relop, Requestable, is_built_in};
use crate::amount::{Amount, Type};
use crate::diagnostic::{Code, Diagnostic};

/// Characters that no name may have, with the words of 8.1.9 for them.
///
/// `=` and `,` would break `-l name=value,…`; `*`, `+`, `&`, `^` and `$` are operators of load
/// formulas. `-` is one too, but sites have such names; a formula cannot use them.
const FORBIDDEN: [(char, &str); 23] = [
    (' ', "Space"),
    ('/', "Slash"),
    (':', "Colon"),
    ('\'', "Single quote"),
    ('"', "Double quote"),
    ('\\', "Backslash"),
    ('[', "Left bracket"),
    (']', "Right bracket"),
    ('{', "Left brace"),
    ('}', "Right brace"),
    ('|', "Pipe"),
    ('(', "Left parenthesis"),
    (')', "Right parenthesis"),
    ('@', "At sign"),
    ('%', "Percent"),
    (',', "Comma"),
    ('=', "Equals sign"),
    ('*', "Asterisk"),
    ('?', "Question mark"),
    ('+', "Plus"),
    ('&', "Ampersand"),
    ('^', "Caret"),
    ('$', "Dollar sign"),
];
/// Words that mean something else where a name may stand.
const KEYWORDS: [&str; 3] = ["NONE", "ALL", "TEMPLATE"];
/// The longest name, in bytes.
const NAME_MAX_BYTES: usize = 512;

/// Adds every rule of its own that the attribute breaks.
pub(super) fn check(attribute: &Attribute, refusals: &mut Vec<Diagnostic>) {
    let place = format!("attribute {}", attribute.name);
    let broken = [
        name_fault(attribute.name.as_str()),
        (attribute.shortcut != attribute.name.as_str())
            .then(|| name_fault(&attribute.shortcut))
            .flatten(),
        consumable_type_fault(attribute),
        map_fault(attribute),
        relop_fault(attribute),
        default_fault(attribute),
        slots_fault(attribute),
    ];
    refusals.extend(broken.into_iter().flatten().map(|refusal| refusal.at(place.clone())));
}

/// What forbids to remove an attribute: that it is built in.
pub(super) fn check_removal(name: &str) -> Option<Diagnostic> {
    let what = format!("The built-in complex \"{name}\" cannot be deleted");
    is_built_in(name).then(|| Diagnostic::new(Code::Immutable, what).fix("put its line back"))
}

/// What forbids the attribute `old` to be as it is in `new`, or not to be there.
pub(super) fn check_built_in(old: &Attribute, new: &Complex) -> Option<Diagnostic> {
    let name = &old.name;
    if !is_built_in(name.as_str()) {
        return None;
    }
    let Some(attribute) = new.attributes.get(name) else {
        return check_removal(name.as_str());
    };
    if attribute.r#type == old.r#type || (is_text(attribute.r#type) && is_text(old.r#type)) {
        return None;
    }
    let what = format!("The type of the complex \"{name}\" cannot be changed due to its built in status");
    Some(Diagnostic::new(Code::Immutable, what).fix(format!("write {} again", old.r#type)))
}

/// The types that convert into each other even for built-in attributes.
fn is_text(r#type: Type) -> bool {
    matches!(r#type, Type::String | Type::CString | Type::ReString)
}

fn rule(what: String) -> Diagnostic {
    Diagnostic::new(Code::BadValue, what)
}

/// What is wrong with a name or shortcut.
fn name_fault(name: &str) -> Option<Diagnostic> {
    if name.is_empty() || name.len() > NAME_MAX_BYTES {
        return Some(rule(format!(
            "denied: \"{name}\" is not a valid object name (1 to {NAME_MAX_BYTES} characters)"
        )));
    }
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        return Some(rule(format!(
            "denied: \"{name}\" is not a valid object name (cannot start with a digit)"
        )));
    }
    if let Some(keyword) = KEYWORDS.into_iter().find(|keyword| keyword.eq_ignore_ascii_case(name)) {
        return Some(rule(format!("Keyword (\"{keyword}\") not allowed as objectname")));
    }
    if let Some((character, word)) = FORBIDDEN.into_iter().find(|(character, _)| name.contains(*character)) {
        return Some(rule(format!("{word} ('{character}') not allowed in objectname")));
    }
    let printable = name.chars().all(|c| c.is_ascii_graphic());
    (!printable || name.starts_with(['#', '-'])).then(|| {
        let why = "a name has printable ASCII characters and begins with neither # nor -";
        rule(format!("denied: \"{name}\" is not a valid object name")).why(why)
    })
}

/// A consumable is a number with relop `<=`, or an exclusive BOOL.
fn consumable_type_fault(attribute: &Attribute) -> Option<Diagnostic> {
    let Attribute { name, r#type, .. } = attribute;
    (attribute.consumable.is_consumable() && !r#type.is_numeric())
        .then(|| rule(format!("Complex \"{name}\" of type \"{type}\" cannot be a consumable")))
}

/// Ids that are given to jobs are used up by them.
fn map_fault(attribute: &Attribute) -> Option<Diagnostic> {
    let Attribute { name, r#type, .. } = attribute;
    (*r#type == Type::RsMap && !attribute.consumable.is_consumable()).then(|| {
        rule(format!("Complex \"{name}\" of type \"{type}\" must be a consumable")).fix("write YES, JOB or HOST")
    })
}

fn only_less_equal(attribute: &Attribute) -> Diagnostic {
    rule(format!(
        "Consumable \"{}\" can have only <= as an relational operator",
        attribute.name
    ))
}

/// Which relops a type may have.
fn relop_fault(attribute: &Attribute) -> Option<Diagnostic> {
    let Attribute {
        name,
        r#type,
        relop,
        consumable,
        ..
    } = attribute;
    let (is_bool, is_consumable) = (*r#type == Type::Bool, consumable.is_consumable());
    if *relop == Relop::Exclusive && !is_bool {
        return Some(rule(format!(
            "Complex \"{name}\" must be BOOL to use EXCL as relational operator"
        )));
    }
    if *relop == Relop::Exclusive {
        return (!is_consumable).then(|| rule(format!("Exclusive complex \"{name}\" must be a consumable")));
    }
    if is_bool && is_consumable {
        return Some(rule(format!(
            "Exclusive complex \"{name}\" must have EXCL as relational operator"
        )));
    }
    if is_consumable {
        return (*relop != Relop::LessEqual).then(|| only_less_equal(attribute));
    }
    let is_allowed = match relop {
        Relop::Equal => true,
        Relop::NotEqual => !is_bool,
        Relop::Less | Relop::LessEqual | Relop::Greater | Relop::GreaterEqual => r#type.is_numeric() && !is_bool,
        Relop::Exclusive => false,
    };
    (!is_allowed).then(|| rule(format!("Complex \"{name}\" has an invalid relational operator")))
}

/// A default is a value of its type, which 8.1.9 does not check, and 0 or NONE unless the attribute
/// is consumable.
fn default_fault(attribute: &Attribute) -> Option<Diagnostic> {
    let Attribute { name, default, .. } = attribute;
    let amount = match default_value(attribute) {
        Ok(amount) => amount,
        Err(refusal) => return Some(refusal),
    };
    if attribute.consumable == Consumable::No {
        return (amount != Amount::ZERO)
            .then(|| rule(format!("Complex \"{name}\" cannot have a (non-zero) default value")));
    }
    if amount.is_negative() {
        return Some(rule(format!(
            "Consumable \"{name}\" cannot have the negative default value \"{default}\""
        )));
    }
    match attribute.requestable {
        Requestable::No if amount == Amount::ZERO => Some(rule(format!(
            "Consumable \"{name}\" needs a default value because it is not requestable."
        ))),
        Requestable::Forced if amount != Amount::ZERO => Some(rule(format!(
            "Consumable \"{name}\" cannot have a (non-zero) default value because it is forced."
        ))),
        Requestable::No | Requestable::Yes | Requestable::Forced => None,
    }
}

/// What is wrong with the default of an attribute that is no consumable and that somebody writes
/// anew: `NONE` for a number, `0` for a text. Stored attributes may have them.
pub(super) fn check_new_default(attribute: &Attribute) -> Option<Diagnostic> {
    let Attribute {
        name,
        default,
        r#type,
        consumable,
        ..
    } = attribute;
    if consumable.is_consumable() {
        return None;
    }
    let refusal = match (r#type.is_numeric(), default.eq_ignore_ascii_case("NONE")) {
        (true, true) => {
            let word = r#type.as_str().to_ascii_lowercase();
            let word = match r#type {
                Type::Int => "integer",
                Type::Bool => "boolean",
                Type::Time
                | Type::Memory
                | Type::Double
                | Type::String
                | Type::CString
                | Type::ReString
                | Type::Host
                | Type::RsMap => word.as_str(),
            };
            rule(format!(
                "Complex \"{name}\"'s default value should be of type \"{word} value\""
            ))
            .fix("write 0")
        }
        (false, false) => rule(format!("Complex \"{name}\" cannot have a (non-zero) default value")).fix("write NONE"),
        (true, false) | (false, true) => return None,
    };
    Some(refusal.at(format!("attribute {name}")))
}

/// The default as an amount; of the string types only `NONE` (or `0`) is nothing.
fn default_value(attribute: &Attribute) -> Result<Amount, Diagnostic> {
    let Attribute {
        name, default, r#type, ..
    } = attribute;
    let is_none = default.eq_ignore_ascii_case("NONE");
    if is_none || !r#type.is_numeric() {
        return Ok(if is_none || default == "0" {
            Amount::ZERO
        } else {
            Amount::TRUE
        });
    }
    Amount::parse(default, *r#type).map_err(|error| error.diagnostic(name.as_str(), default))
}

/// Slots are what a queue instance has and a parallel environment hands out, so their bookkeeping
/// cannot be another.
fn slots_fault(attribute: &Attribute) -> Option<Diagnostic> {
    if attribute.name.as_str() != "slots" {
        return None;
    }
    let why = "every job takes one slot for each of its processes";
    if attribute.consumable != Consumable::Yes {
        return Some(rule("Complex \"slots\" must be a consumable for each slot (YES)".to_owned()).why(why));
    }
    (attribute.default_amount() != Amount::from_base(attribute.r#type.base_units_in_one()))
        .then(|| rule("Complex \"slots\" must have the default value 1".to_owned()).why(why))
}
