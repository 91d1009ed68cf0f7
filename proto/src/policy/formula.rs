//! The load formula: terms joined by `+` and `-`, each a value with at most one constant.
//!
//! Evaluation needs the values of a host and is the scheduler's business.

use crate::amount::Millionths;
use crate::id::AttributeName;
use crate::object::value::{MalformedValue, check_name, stored_as_text};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What a term of the formula does to the sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sign {
    /// It is added.
    Plus,
    /// It is subtracted.
    Minus,
}

/// What a term takes its value from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operand {
    /// The load value or the free amount of an attribute.
    Attribute(AttributeName),
    /// A number.
    Number(Millionths),
}

/// How a constant changes the value of its term. The last three work on whole numbers, bit by bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operator {
    /// `*`
    Times,
    /// `/`
    Over,
    /// `&`
    And,
    /// `|`
    Or,
    /// `^`
    Xor,
}

impl Operator {
    fn from_symbol(symbol: char) -> Option<Operator> {
        match symbol {
            '*' => Some(Operator::Times),
            '/' => Some(Operator::Over),
            '&' => Some(Operator::And),
            '|' => Some(Operator::Or),
            '^' => Some(Operator::Xor),
            _ => None,
        }
    }
}

/// One term of the formula.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Term {
    /// Whether it is added or subtracted.
    pub sign: Sign,
    /// Its value.
    pub operand: Operand,
    /// The constant that changes the value, never zero after `/`.
    pub constant: Option<(Operator, Millionths)>,
}

/// A load formula, kept as it was written. It has at least one term.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LoadFormula {
    text: String,
    terms: Vec<Term>,
}

impl LoadFormula {
    /// The terms in order.
    pub fn terms(&self) -> &[Term] {
        &self.terms
    }

    /// The attributes in order, as often as they occur. Whether they exist and are numeric only the
    /// complex knows.
    pub fn attributes(&self) -> impl Iterator<Item = &AttributeName> {
        self.terms.iter().filter_map(|term| match &term.operand {
            Operand::Attribute(name) => Some(name),
            Operand::Number(_) => None,
        })
    }
}

impl FromStr for LoadFormula {
    type Err = MalformedValue;

    fn from_str(text: &str) -> Result<Self, MalformedValue> {
        let mut terms = Vec::new();
        let mut sign = Sign::Plus;
        let mut rest = text;
        if let Some(after) = rest.strip_prefix('-') {
            (sign, rest) = (Sign::Minus, after);
        }
        loop {
            let end = rest.find(['+', '-']).unwrap_or(rest.len());
            terms.push(term(sign, &rest[..end])?);
            if end == rest.len() {
                return Ok(LoadFormula {
                    text: text.to_owned(),
                    terms,
                });
            }
            sign = if rest[end..].starts_with('-') {
                Sign::Minus
            } else {
                Sign::Plus
            };
            rest = &rest[end + 1..];
        }
    }
}

impl fmt::Display for LoadFormula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

stored_as_text!(LoadFormula);

fn expected() -> MalformedValue {
    MalformedValue::new("a formula without blanks, such as np_load_avg*2-slots,")
}

fn term(sign: Sign, text: &str) -> Result<Term, MalformedValue> {
    let at = text.find(|symbol| Operator::from_symbol(symbol).is_some());
    let Some(at) = at else {
        return Ok(Term {
            sign,
            operand: operand(text)?,
            constant: None,
        });
    };
    let operator = text[at..]
        .chars()
        .next()
        .and_then(Operator::from_symbol)
        .ok_or_else(expected)?;
    let constant = constant(operator, &text[at + 1..])?;
    Ok(Term {
        sign,
        operand: operand(&text[..at])?,
        constant: Some((operator, constant)),
    })
}

/// A number, or the name of an attribute with or without the `$` of older versions.
fn operand(text: &str) -> Result<Operand, MalformedValue> {
    if let Ok(number) = Millionths::parse(text) {
        return Ok(Operand::Number(number));
    }
    let name = text.strip_prefix('$').unwrap_or(text);
    let is_name =
        check_name(name).is_ok() && name.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_');
    if is_name {
        Ok(Operand::Attribute(AttributeName::from(name)))
    } else {
        Err(expected())
    }
}

fn constant(operator: Operator, text: &str) -> Result<Millionths, MalformedValue> {
    let number = Millionths::parse(text).map_err(|_| match operand(text) {
        Ok(_) => MalformedValue::with_words(
            format!("\"load_formula\" uses \"{text}\" as weighting factor (only numbers are allowed)"),
            "a number to the right of the operator, as in name*2,",
        ),
        Err(malformed) => malformed,
    })?;
    if operator == Operator::Over && number.0 == 0 {
        Err(MalformedValue::new("a divisor other than 0"))
    } else {
        Ok(number)
    }
}
