//! Quantities of resources: what a request asks for, a capacity holds and a load value reports
//! (ALGORITHMS.md section 2).
//!
//! Every number is a checked integer in the base unit of its attribute's type, and no float is kept
//! anywhere. Which attribute a number belongs to is deliberately not known here; [`crate::complex`]
//! says that.

mod parse;
mod print;
#[cfg(test)]
mod tests;

pub use parse::{Reason, ValueError};

use serde::{Deserialize, Serialize};
use std::fmt;

/// The type of a resource attribute. Numbers are kept in its base unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Type {
    /// Whole units.
    Int,
    /// Decimal numbers, kept in millionths.
    Double,
    /// Seconds.
    Time,
    /// Bytes.
    Memory,
    /// Truth: 0 or 1.
    Bool,
    /// Text; requests are expressions and case counts.
    String,
    /// Text; requests are expressions and case does not count.
    CString,
    /// The same as [`Type::String`] since 6.1.
    ReString,
    /// A host name; requests are expressions and case does not count.
    Host,
    /// Whole units with names, of which a job is told which ones it has ([`crate::rsmap`]);
    /// requests are whole units.
    RsMap,
}

impl Type {
    /// Every type.
    pub const ALL: [Type; 10] = [
        Type::Int,
        Type::Double,
        Type::Time,
        Type::Memory,
        Type::Bool,
        Type::String,
        Type::CString,
        Type::ReString,
        Type::Host,
        Type::RsMap,
    ];

    /// The name in the complex file, such as `MEMORY`.
    pub fn as_str(self) -> &'static str {
        match self {
            Type::Int => "INT",
            Type::Double => "DOUBLE",
            Type::Time => "TIME",
            Type::Memory => "MEMORY",
            Type::Bool => "BOOL",
            Type::String => "STRING",
            Type::CString => "CSTRING",
            Type::ReString => "RESTRING",
            Type::Host => "HOST",
            Type::RsMap => "RSMAP",
        }
    }

    /// The type of that name, in any case.
    pub fn parse(text: &str) -> Option<Type> {
        Type::ALL
            .into_iter()
            .find(|r#type| r#type.as_str().eq_ignore_ascii_case(text))
    }

    /// Whether values are numbers; the others are matched as text (`crate::restring`).
    pub fn is_numeric(self) -> bool {
        match self {
            Type::Int | Type::Double | Type::Time | Type::Memory | Type::Bool | Type::RsMap => true,
            Type::String | Type::CString | Type::ReString | Type::Host => false,
        }
    }

    /// The word in `attribute "h_vmem" is not a memory value`.
    pub fn value_word(self) -> &'static str {
        match self {
            Type::Int | Type::RsMap => "integer",
            Type::Double => "double",
            Type::Time => "time",
            Type::Memory => "memory",
            Type::Bool => "boolean",
            Type::String | Type::CString | Type::ReString => "string",
            Type::Host => "host",
        }
    }

    /// Base units in one: a million for DOUBLE, 1 for the others.
    pub fn base_units_in_one(self) -> i64 {
        match self {
            Type::Double => Millionths::ONE.0,
            Type::Int | Type::Time | Type::Memory | Type::Bool | Type::RsMap => 1,
            Type::String | Type::CString | Type::ReString | Type::Host => 1,
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A decimal number in millionths: urgencies, weights, load scaling factors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Millionths(pub i64);

impl Millionths {
    /// 1.
    pub const ONE: Millionths = Millionths(1_000_000);

    /// Reads a number in any notation of DOUBLE, so `1k` is 1000.
    ///
    /// # Errors
    /// As [`Amount::parse`]; INFINITY is refused as out of range.
    pub fn parse(text: &str) -> Result<Millionths, ValueError> {
        let amount = Amount::parse(text, Type::Double)?;
        amount
            .finite()
            .map(Millionths)
            .ok_or_else(|| ValueError::whole(text, Type::Double, Reason::OutOfRange))
    }
}

impl fmt::Display for Millionths {
    /// As few decimals as say it: `1000`, `0.5`, `-1.25`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&print::decimal(i128::from(self.0)))
    }
}

/// A checked number in the base unit of a [`Type`], or INFINITY, which is above every number.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Amount(i64);

impl Amount {
    /// Nothing.
    pub const ZERO: Amount = Amount(0);
    /// Without bound.
    pub const INFINITY: Amount = Amount(i64::MAX);
    /// TRUE of a BOOL.
    pub const TRUE: Amount = Amount(1);
    /// FALSE of a BOOL.
    pub const FALSE: Amount = Amount(0);

    /// A number of base units; `i64::MAX` is INFINITY.
    pub const fn from_base(units: i64) -> Amount {
        Amount(units)
    }

    /// The number in base units; none for INFINITY.
    pub fn finite(self) -> Option<i64> {
        (!self.is_infinite()).then_some(self.0)
    }

    /// Whether this is INFINITY.
    pub fn is_infinite(self) -> bool {
        self == Amount::INFINITY
    }

    /// Whether this is below zero.
    pub fn is_negative(self) -> bool {
        self.0 < 0
    }

    /// The sum; INFINITY if either is.
    ///
    /// None on overflow, which is never INFINITY: a ledger must not turn a large number into an
    /// unlimited one.
    pub fn checked_add(self, other: Amount) -> Option<Amount> {
        match (self.finite(), other.finite()) {
            (Some(a), Some(b)) => finite_or_none(i128::from(a) + i128::from(b)),
            _ => Some(Amount::INFINITY),
        }
    }

    /// The sum; INFINITY if it is too large for a number, for those to whom too much is as good as
    /// without bound.
    pub fn saturating_add(self, other: Amount) -> Amount {
        self.checked_add(other).unwrap_or(Amount::INFINITY)
    }

    /// The difference; INFINITY less anything stays INFINITY.
    ///
    /// None on overflow and for a number less INFINITY.
    pub fn checked_sub(self, other: Amount) -> Option<Amount> {
        match (self.finite(), other.finite()) {
            (None, _) => Some(Amount::INFINITY),
            (Some(_), None) => None,
            (Some(a), Some(b)) => finite_or_none(i128::from(a) - i128::from(b)),
        }
    }

    /// This much for each of `slots`: INFINITY stays INFINITY and overflow becomes it; nothing for
    /// no slots.
    pub fn times(self, slots: u32) -> Amount {
        match (self.finite(), slots) {
            (_, 0) => Amount::ZERO,
            (None, _) => Amount::INFINITY,
            (Some(units), slots) => saturated(i128::from(units) * i128::from(slots)),
        }
    }

    /// This scaled by a factor, rounded to the nearest base unit, halves away from zero; INFINITY
    /// stays, overflow becomes it.
    pub fn scaled(self, factor: Millionths) -> Amount {
        let Some(units) = self.finite() else {
            return Amount::INFINITY;
        };
        saturated(rounded_division(
            i128::from(units) * i128::from(factor.0),
            i128::from(Millionths::ONE.0),
        ))
    }
}

impl fmt::Debug for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.finite() {
            Some(units) => write!(f, "{units}"),
            None => f.write_str("INFINITY"),
        }
    }
}

/// The number if it fits below INFINITY.
fn finite_or_none(units: i128) -> Option<Amount> {
    i64::try_from(units)
        .ok()
        .map(Amount)
        .filter(|amount| !amount.is_infinite())
}

/// The number, INFINITY above the range, the least number below it.
fn saturated(units: i128) -> Amount {
    match i64::try_from(units) {
        Ok(units) => Amount(units),
        Err(_) if units > 0 => Amount::INFINITY,
        Err(_) => Amount(i64::MIN),
    }
}

/// The quotient of `dividend` by a positive `divisor`, rounded to nearest, halves away from zero.
fn rounded_division(dividend: i128, divisor: i128) -> i128 {
    let (quotient, rest) = (dividend / divisor, (dividend % divisor).abs());
    if rest >= divisor - rest {
        quotient + dividend.signum()
    } else {
        quotient
    }
}
