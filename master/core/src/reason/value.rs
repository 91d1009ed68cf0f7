//! Values of attributes, as reasons name them and requests are compared with.

use proto::amount::{Amount, Type};
use proto::complex::Attribute;
use proto::rsmap::IdMap;

/// A value of an attribute, as its type has it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    /// A number in the base unit of the type.
    Amount(Amount),
    /// A text.
    Text(String),
}

impl Value {
    /// Reads an offered value. `None` if a number was due and the text is not one.
    pub fn read(attribute: &Attribute, text: &str) -> Option<Value> {
        if !attribute.r#type.is_numeric() {
            return Some(Value::Text(text.to_owned()));
        }
        let amount = if attribute.r#type == Type::RsMap {
            IdMap::amount_of(text)
        } else {
            Amount::parse(text, attribute.r#type).ok()
        };
        amount.map(Value::Amount)
    }
}
