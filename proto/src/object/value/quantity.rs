//! Times, memory sizes and weights as an administrator wrote them.

use super::{MalformedValue, stored_as_text};
use crate::amount::{Amount, Millionths, Type};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A length of time: seconds, `h:m:s` or `INFINITY`, kept as it was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TimeText {
    text: String,
    amount: Amount,
}

impl TimeText {
    /// The time in seconds, or INFINITY. Never negative.
    pub fn amount(&self) -> Amount {
        self.amount
    }

    /// The time in seconds; `None` for INFINITY.
    pub fn seconds(&self) -> Option<u64> {
        self.amount.finite().and_then(|seconds| u64::try_from(seconds).ok())
    }

    /// A time that ends: what [`str::parse`] reads, without `INFINITY`.
    ///
    /// # Errors
    ///
    /// The text is no time, or `INFINITY`.
    pub fn finite(text: &str) -> Result<Self, MalformedValue> {
        let time: TimeText = text.parse()?;
        if time.amount.is_infinite() {
            return Err(MalformedValue::new("a time other than INFINITY"));
        }
        Ok(time)
    }
}

impl FromStr for TimeText {
    type Err = MalformedValue;

    fn from_str(text: &str) -> Result<Self, MalformedValue> {
        let amount = not_negative(
            text,
            Type::Time,
            "a time in seconds or hours:minutes:seconds, such as 3600 or 1:0:0,",
        )?;
        Ok(Self {
            text: text.to_owned(),
            amount,
        })
    }
}

impl fmt::Display for TimeText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

stored_as_text!(TimeText);

/// A number of bytes with an optional multiplier (`1.5G`) or `INFINITY`, kept as it was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MemoryText {
    text: String,
    amount: Amount,
}

impl MemoryText {
    /// The size in bytes, or INFINITY. Never negative.
    pub fn amount(&self) -> Amount {
        self.amount
    }
}

impl FromStr for MemoryText {
    type Err = MalformedValue;

    fn from_str(text: &str) -> Result<Self, MalformedValue> {
        let amount = not_negative(
            text,
            Type::Memory,
            "bytes or a number and a multiplier, such as 512M or 1.5G,",
        )?;
        Ok(Self {
            text: text.to_owned(),
            amount,
        })
    }
}

impl fmt::Display for MemoryText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

stored_as_text!(MemoryText);

fn not_negative(text: &str, r#type: Type, expected: &str) -> Result<Amount, MalformedValue> {
    match Amount::parse(text, r#type) {
        Ok(amount) if !amount.is_negative() => Ok(amount),
        Ok(_) => Err(MalformedValue::unparsed(text, expected)),
        Err(error) => Err(MalformedValue::unparsed(text, format!("{expected} ({})", error.reason))),
    }
}

/// A factor of the scheduler configuration, kept in millionths and printed with six decimals as
/// 8.1.9 does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Weight(pub Millionths);

impl Weight {
    /// The factor in millionths.
    pub fn millionths(self) -> i64 {
        self.0.0
    }
}

impl FromStr for Weight {
    type Err = MalformedValue;

    fn from_str(text: &str) -> Result<Self, MalformedValue> {
        // A multiplier such as `1.5K` is no part of a factor: 8.1.9 drops the letter without a
        // word.
        let is_number = |letter: char| letter.is_ascii_digit() || "+-.eE".contains(letter);
        let number = if text.chars().all(is_number) { text } else { "" };
        match Millionths::parse(number) {
            Ok(factor) if factor.0 >= 0 => Ok(Weight(factor)),
            Ok(_) => Err(MalformedValue::new("a number that is not negative, such as 0.25,")),
            Err(_) => {
                let what = format!("error parsing double value from string \"{text}\"");
                Err(MalformedValue::with_words(
                    what,
                    "a number that is not negative, such as 0.25,",
                ))
            }
        }
    }
}

impl fmt::Display for Weight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (magnitude, one) = (self.millionths().unsigned_abs(), Millionths::ONE.0.unsigned_abs());
        let sign = if self.millionths() < 0 { "-" } else { "" };
        f.pad(&format!("{sign}{}.{:06}", magnitude / one, magnitude % one))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_print_as_they_were_written() {
        for text in ["00:00:60", "0:0:15", "90", "INFINITY", "infinity"] {
            assert_eq!(text.parse::<TimeText>().unwrap().to_string(), text);
        }
        assert_eq!("00:00:60".parse::<TimeText>().unwrap().seconds(), Some(60));
        assert_eq!(
            "1.5G".parse::<MemoryText>().unwrap().amount().finite(),
            Some(1_610_612_736)
        );
        assert!("-1".parse::<TimeText>().is_err());
        assert!(TimeText::finite("INFINITY").is_err());
    }

    #[test]
    fn weights_print_with_six_decimals() {
        for (text, printed) in [
            ("0.01", "0.010000"),
            ("3600000", "3600000.000000"),
            ("0.278000", "0.278000"),
        ] {
            assert_eq!(text.parse::<Weight>().unwrap().to_string(), printed);
        }
        for text in ["-0.1", "1.5K", "2k", "1M", "0x10", "inf", "K", ""] {
            assert!(text.parse::<Weight>().is_err(), "{text}");
        }
    }
}
