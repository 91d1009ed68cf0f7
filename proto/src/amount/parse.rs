//! The one parser of numbers (ALGORITHMS.md section 2), exact in integers and with the place of
//! each error.

use super::{Amount, Type, finite_or_none, rounded_division};
use crate::diagnostic::{Code, Diagnostic};
use std::fmt;
use std::ops::Range;

/// Why a text is not a value of its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// There is no text.
    Empty,
    /// The text does not begin with a number.
    NotANumber,
    /// Something follows a complete number and its multiplier, as the `B` of `4GB` does.
    Trailing,
    /// A number that begins with `0` is octal, or hexadecimal after `0x`, and this is no digit of
    /// it.
    NotADigitOfBase,
    /// A time has exactly two colons.
    ColonCount,
    /// The value is beyond what a checked integer of the base unit holds.
    OutOfRange,
    /// The type's values are text, not numbers.
    NotNumeric,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::Empty => "there is no value",
            Reason::NotANumber => "no number begins here",
            Reason::Trailing => "nothing may follow the number and its one-letter multiplier (k K m M g G t T)",
            Reason::NotADigitOfBase => "a number with a leading 0 is octal (010 is 8) or, after 0x, hexadecimal",
            Reason::ColonCount => "a time has exactly two colons (hours:minutes:seconds)",
            Reason::OutOfRange => "the value is out of range",
            Reason::NotNumeric => "values of this type are text",
        })
    }
}

/// A text that is no value of its type, with the place of the error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a {} value: {reason} (at byte {})", .expected.value_word(), .span.start)]
pub struct ValueError {
    /// The bytes of the text that cannot be.
    pub span: Range<usize>,
    /// The type that was expected.
    pub expected: Type,
    /// What is wrong with those bytes.
    pub reason: Reason,
}

impl ValueError {
    /// An error about the whole text.
    pub(crate) fn whole(text: &str, expected: Type, reason: Reason) -> ValueError {
        ValueError {
            span: 0..text.len(),
            expected,
            reason,
        }
    }

    /// The refusal in the words of 8.1.9, such as `attribute "h_vmem" is not a memory value`.
    /// `text` is what was parsed.
    pub fn diagnostic(&self, attribute: &str, text: &str) -> Diagnostic {
        let what = format!(
            "attribute \"{attribute}\" is not a {} value",
            self.expected.value_word()
        );
        let culprit = text.get(self.span.clone()).unwrap_or(text);
        Diagnostic::new(Code::BadValue, what)
            .at(format!("\"{culprit}\" of \"{text}\""))
            .why(self.reason.to_string())
            .fix(example(self.expected))
    }
}

/// What a good value looks like.
fn example(expected: Type) -> &'static str {
    match expected {
        Type::Int | Type::RsMap => "write a whole number, such as 4",
        Type::Double => "write a number, such as 1.5",
        Type::Time => "write seconds or hours:minutes:seconds, such as 3600 or 1:0:0",
        Type::Memory => "write bytes or a number and a multiplier, such as 512M or 1.5G",
        Type::Bool => "write TRUE or FALSE",
        Type::String | Type::CString | Type::ReString | Type::Host => "write a text",
    }
}

impl Amount {
    /// Reads a value in any numeric notation: a number with an optional multiplier, a time,
    /// INFINITY, TRUE or FALSE.
    ///
    /// The notation does not depend on the type: `2K` is a time of 2048 seconds and `1:0:0` is 3600
    /// bytes. What is finer than the base unit is rounded to the nearest, halves away from zero, so
    /// `1.5` is 2 of an INT. Each non-zero number is a TRUE of a BOOL. Digits beyond the twentieth
    /// significant one are not kept.
    ///
    /// # Errors
    /// With the bytes that cannot be, if the text follows none of the notations, is out of range,
    /// or the type is not numeric.
    pub fn parse(text: &str, r#type: Type) -> Result<Amount, ValueError> {
        let fail = |(span, reason)| ValueError {
            span,
            expected: r#type,
            reason,
        };
        if !r#type.is_numeric() {
            return Err(fail((0..text.len(), Reason::NotNumeric)));
        }
        let amount = value(text, r#type).map_err(fail)?;
        if r#type != Type::Bool {
            return Ok(amount);
        }
        if amount.is_infinite() {
            return Err(fail((0..text.len(), Reason::OutOfRange)));
        }
        Ok(if amount == Amount::ZERO {
            Amount::FALSE
        } else {
            Amount::TRUE
        })
    }
}

/// An error as the parts below see it.
type ParseFault = (Range<usize>, Reason);

/// The text as base units of the type; truth is not folded to 0 and 1 yet.
fn value(text: &str, r#type: Type) -> Result<Amount, ParseFault> {
    plain(text, r#type.base_units_in_one()).map_or_else(|| in_any_notation(text, r#type), Ok)
}

/// The same in any notation.
fn in_any_notation(text: &str, r#type: Type) -> Result<Amount, ParseFault> {
    let one = i128::from(r#type.base_units_in_one());
    if text.is_empty() {
        return Err((0..0, Reason::Empty));
    }
    if text.eq_ignore_ascii_case("INFINITY") {
        return Ok(Amount::INFINITY);
    }
    if text.eq_ignore_ascii_case("TRUE") {
        return Ok(Amount(r#type.base_units_in_one()));
    }
    if text.eq_ignore_ascii_case("FALSE") {
        return Ok(Amount::ZERO);
    }
    let units = if text.contains(':') {
        time(text, one)?
    } else if text.starts_with('0') && !text.contains('.') {
        based(text, one)?
    } else {
        decimal_with_multiplier(text, one)?
    };
    finite_or_none(units).ok_or((0..text.len(), Reason::OutOfRange))
}

/// Digits in a number that [`plain`] reads: with a million base units in one it is below 2^63.
const PLAIN_DIGITS: usize = 12;

/// A number as most are written, digits and perhaps a point, read at a glance; none if it is not so
/// short and simple.
fn plain(text: &str, one: i64) -> Option<Amount> {
    let bytes = text.as_bytes();
    let is_plain = match bytes {
        [] | [b'.'] => false,
        // Octal, or hexadecimal.
        [b'0', next, ..] => *next == b'.',
        _ => true,
    };
    if !is_plain || bytes.len() > PLAIN_DIGITS {
        return None;
    }
    let (mut digits, mut divisor, mut is_fraction) = (0i64, 1i64, false);
    for byte in bytes {
        match byte {
            b'0'..=b'9' => {
                digits = digits * 10 + i64::from(byte - b'0');
                divisor *= if is_fraction { 10 } else { 1 };
            }
            b'.' if !is_fraction => is_fraction = true,
            _ => return None,
        }
    }
    let scaled = digits * one;
    Some(Amount(if is_fraction {
        (scaled + divisor / 2) / divisor
    } else {
        scaled
    }))
}

/// `h:m:s`; every part may be empty, exceed 59, and have decimals, and a leading minus counts for
/// the whole.
fn time(text: &str, one: i128) -> Result<i128, ParseFault> {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let sign_length = text.len() - unsigned.len();
    let colons: Vec<usize> = text.match_indices(':').map(|(at, _)| at).collect();
    let [first, second] = colons[..] else {
        let culprit = colons.get(2).map_or(0..text.len(), |third| *third..text.len());
        return Err((culprit, Reason::ColonCount));
    };
    let parts = [
        (sign_length..first, 3600),
        (first + 1..second, 60),
        (second + 1..text.len(), 1),
    ];
    let mut seconds = 0i128;
    for (span, weight) in parts {
        seconds += time_part(text, span, weight * one)?;
    }
    Ok(if sign_length > 0 { -seconds } else { seconds })
}

/// One part of a time in base units. The sum of three cannot overflow, for each is below 2^64.
fn time_part(text: &str, span: Range<usize>, weight: i128) -> Result<i128, ParseFault> {
    let part = &text[span.clone()];
    if part.is_empty() {
        return Ok(0);
    }
    if !part.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return Err((span, Reason::NotANumber));
    }
    let number = decimal(part).ok_or((span.clone(), Reason::NotANumber))?;
    if number.length < part.len() {
        return Err((span.start + number.length..span.end, Reason::Trailing));
    }
    number.in_units(weight).ok_or((span, Reason::OutOfRange))
}

/// A number that begins with `0` and has no point: C base detection, then the multiplier.
fn based(text: &str, one: i128) -> Result<i128, ParseFault> {
    let (base, start) = if text.starts_with("0x") || text.starts_with("0X") {
        (16, 2)
    } else {
        (8, 0)
    };
    let digits = text[start..]
        .find(|c: char| !c.is_digit(base))
        .map_or(text.len(), |at| at + start);
    if digits == start || text[digits..].starts_with(|c: char| c.is_ascii_digit()) {
        return Err((digits..text.len(), Reason::NotADigitOfBase));
    }
    let multiplier = multiplier(text, digits)?;
    let out_of_range = (0..text.len(), Reason::OutOfRange);
    let number = i64::from_str_radix(&text[start..digits], base).map_err(|_| out_of_range.clone())?;
    i128::from(number).checked_mul(multiplier * one).ok_or(out_of_range)
}

/// A signed decimal number with an optional exponent and multiplier.
fn decimal_with_multiplier(text: &str, one: i128) -> Result<i128, ParseFault> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let sign_length = text.len() - unsigned.len();
    let number = decimal(unsigned).ok_or((sign_length..text.len(), Reason::NotANumber))?;
    let multiplier = multiplier(text, sign_length + number.length)?;
    let units = number
        .in_units(multiplier * one)
        .ok_or((0..text.len(), Reason::OutOfRange))?;
    Ok(if text.starts_with('-') { -units } else { units })
}

/// What the rest of the text from `start` multiplies by: 1 where there is no rest.
fn multiplier(text: &str, start: usize) -> Result<i128, ParseFault> {
    let mut rest = text[start..].chars();
    let factor = match rest.next() {
        None => return Ok(1),
        Some('k') => 1_000,
        Some('K') => 1 << 10,
        Some('m') => 1_000_000,
        Some('M') => 1 << 20,
        Some('g') => 1_000_000_000,
        Some('G') => 1 << 30,
        Some('t') => 1_000_000_000_000,
        Some('T') => 1 << 40,
        Some(_) => return Err((start..text.len(), Reason::Trailing)),
    };
    if rest.next().is_some() {
        Err((start + 1..text.len(), Reason::Trailing))
    } else {
        Ok(factor)
    }
}

/// An unsigned decimal number: `digits` times ten to the `exponent`.
struct Decimal {
    digits: i128,
    exponent: i64,
    /// How many bytes of the text it took.
    length: usize,
}

/// Significant digits that are kept. 10^20 times the largest multiplier and a million is below
/// 2^127.
const DIGITS_KEPT: usize = 20;

/// The decimal number at the beginning of the text; none if there is no digit.
fn decimal(text: &str) -> Option<Decimal> {
    let mut number = Decimal {
        digits: 0,
        exponent: 0,
        length: 0,
    };
    let (mut kept, mut seen_digit, mut seen_point) = (0, false, false);
    for byte in text.bytes() {
        match byte {
            b'0'..=b'9' => {
                seen_digit = true;
                if kept < DIGITS_KEPT {
                    number.digits = number.digits * 10 + i128::from(byte - b'0');
                    kept += usize::from(number.digits > 0);
                    number.exponent -= i64::from(seen_point);
                } else {
                    number.exponent += i64::from(!seen_point);
                }
            }
            b'.' if !seen_point => seen_point = true,
            _ => break,
        }
        number.length += 1;
    }
    if !seen_digit {
        return None;
    }
    let (exponent, length) = exponent(&text[number.length..]);
    number.exponent = number.exponent.saturating_add(exponent);
    number.length += length;
    Some(number)
}

/// The exponent at the beginning of the text and its length: `e`, an optional sign, digits. (0, 0)
/// where there is none.
fn exponent(text: &str) -> (i64, usize) {
    let Some(signed) = text.strip_prefix(['e', 'E']) else {
        return (0, 0);
    };
    let digits = signed.strip_prefix(['-', '+']).unwrap_or(signed);
    let count = digits.bytes().take_while(u8::is_ascii_digit).count();
    if count == 0 {
        return (0, 0);
    }
    // More digits than that are far beyond every range, as is the number they are cut to.
    let magnitude = digits[..count]
        .trim_start_matches('0')
        .get(..6)
        .unwrap_or(&digits[..count])
        .parse()
        .unwrap_or(0);
    let exponent: i64 = if signed.starts_with('-') { -magnitude } else { magnitude };
    (exponent, text.len() - digits.len() + count)
}

impl Decimal {
    /// The number times `unit`, rounded to the nearest whole, halves away from zero; none if it is
    /// beyond an `i128`.
    fn in_units(&self, unit: i128) -> Option<i128> {
        if self.digits == 0 {
            return Some(0);
        }
        let scaled = self.digits.checked_mul(unit)?;
        let power = 10i128.checked_pow(u32::try_from(self.exponent.unsigned_abs()).ok()?);
        match (power, self.exponent < 0) {
            (Some(power), true) => Some(rounded_division(scaled, power)),
            // Below 10^38 divided by more than 10^38 rounds to nothing.
            (None, true) => Some(0),
            (power, false) => scaled.checked_mul(power?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_read_at_a_glance_is_what_the_notation_says(text in "[0-9]{0,7}[.]?[0-9]{0,7}[.kx]?") {
            for r#type in [Type::Int, Type::Double, Type::Memory, Type::Time, Type::Bool] {
                if let Some(amount) = plain(&text, r#type.base_units_in_one()) {
                    prop_assert_eq!(Ok(amount), in_any_notation(&text, r#type));
                }
            }
        }
    }

    #[test]
    fn most_numbers_are_read_at_a_glance() {
        for (text, millionths) in [
            ("0", 0),
            ("0.25", 250_000),
            ("50.000003", 50_000_003),
            ("2.0000005", 2_000_001),
        ] {
            assert_eq!(plain(text, 1_000_000), Some(Amount(millionths)), "{text}");
        }
        for text in ["", ".", "010", "0x10", "1k", "-1", "1.2.3", "1234567890123"] {
            assert_eq!(plain(text, 1), None, "{text}");
        }
    }
}
