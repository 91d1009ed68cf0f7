//! The one grammar of ranges: `FIRST`, `FIRST-LAST` or `FIRST:LAST`, with `:STEP` behind it where
//! steps are allowed.

use super::{RANGE_MAX, RangeError};

/// One part of a list, as it was written.
pub(super) struct RangePart<'a> {
    /// The number in front.
    pub first: u32,
    /// The text behind the sign that joins two numbers. `None` means that `first` stands alone.
    pub last: Option<RangeEnd<'a>>,
}

/// The text behind `-` or `:`.
pub(super) struct RangeEnd<'a> {
    /// The sign in front of it.
    pub sign: char,
    /// All that follows the sign.
    pub text: &'a str,
}

/// Reads the first number of a part. Grid Engine 8.1.9 takes any one character between two numbers;
/// only its two documented signs are taken here, so that `1.5` is refused and not read as 1 to 5.
///
/// # Errors
/// If the part does not begin with a number, or another character follows the number.
pub(super) fn part(text: &str) -> Result<RangePart<'_>, RangeError> {
    let digits = digits(text)?;
    let first = parsed(&text[..digits])?;
    let rest = &text[digits..];
    let last = match rest.chars().next() {
        None => None,
        Some(sign @ ('-' | ':')) => Some(RangeEnd { sign, text: &rest[1..] }),
        Some(_) => {
            return Err(RangeError::Trailer {
                specifier: text.to_owned(),
                trailer: rest.to_owned(),
            });
        }
    };
    Ok(RangePart { first, last })
}

/// Reads a whole text as a number up to [`RANGE_MAX`].
///
/// # Errors
/// If it is not a number, something follows the number, or it is too large.
pub(super) fn number(text: &str) -> Result<u32, RangeError> {
    let text = text.trim_start();
    let digits = digits(text)?;
    if digits < text.len() {
        return Err(RangeError::Trailer {
            specifier: text.to_owned(),
            trailer: text[digits..].to_owned(),
        });
    }
    parsed(text)
}

/// Reads `LAST` or `LAST:STEP`. A sign in front of the step is the error that it is in 8.1.9.
///
/// # Errors
/// As [`number`]; if the step is zero or has a sign.
pub(super) fn last_and_step(text: &str) -> Result<(u32, u32), RangeError> {
    let text = text.trim_start();
    match text.split_once(':') {
        None => Ok((number(text)?, 1)),
        Some((last, step)) => {
            let last = number(last)?;
            if step.starts_with('-') {
                return Err(RangeError::Step);
            }
            match number(step)? {
                0 => Err(RangeError::Step),
                step => Ok((last, step)),
            }
        }
    }
}

/// The parts of a list. Empty parts are skipped, as in 8.1.9; a list of nothing has one empty part.
pub(super) fn list_parts(text: &str) -> impl Iterator<Item = &str> {
    let is_empty = text.split(',').all(|part| part.trim().is_empty());
    text.split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .chain(is_empty.then_some(""))
}

/// How many digits the text begins with.
fn digits(text: &str) -> Result<usize, RangeError> {
    match text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()) {
        0 => Err(RangeError::NotANumber(text.to_owned())),
        digits => Ok(digits),
    }
}

fn parsed(digits: &str) -> Result<u32, RangeError> {
    digits
        .parse()
        .ok()
        .filter(|number| *number <= RANGE_MAX)
        .ok_or_else(|| RangeError::TooLarge(digits.to_owned()))
}
