//! Parameter lists: `NAME=value` pairs that widen a configuration without attributes of their own.

use super::{Flag, MalformedValue, TimeText, elements, stored_as_text};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// `NAME=value` pairs separated by commas or blanks, kept as they were written. `none` is empty.
///
/// Letter case of a name does not count. A name alone stands for `NAME=true`. Of two equal names
/// the last counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Parameters {
    text: String,
    pairs: Vec<(String, String)>,
}

impl Parameters {
    /// The value of a parameter as text.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.iter()
            .filter(|(known, _)| known.eq_ignore_ascii_case(name))
            .last()
            .map(|(_, value)| value)
    }

    /// The names with their values, in the order in which they were written.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The value of a parameter that is true or false.
    ///
    /// # Errors
    ///
    /// The value is neither.
    pub fn flag(&self, name: &str, default: bool) -> Result<bool, MalformedValue> {
        self.parsed(name, Flag::of_configuration)
            .map(|flag| flag.map_or(default, |flag| flag.0))
    }

    /// The value of a parameter that is a time, in seconds.
    ///
    /// # Errors
    ///
    /// The value is no time, or INFINITY.
    pub fn seconds(&self, name: &str) -> Result<Option<u64>, MalformedValue> {
        self.parsed(name, TimeText::finite)
            .map(|time| time.and_then(|time| time.seconds()))
    }

    /// The value of a parameter as `parse` reads it, if it is set.
    ///
    /// # Errors
    ///
    /// Those of `parse`, with the parameter's name.
    pub fn parsed<T>(
        &self,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, MalformedValue>,
    ) -> Result<Option<T>, MalformedValue> {
        let parsed = self.value(name).map(parse).transpose();
        parsed.map_err(|malformed| malformed.in_part(name))
    }
}

impl Default for Parameters {
    /// The empty list.
    fn default() -> Self {
        Self {
            text: "none".to_owned(),
            pairs: Vec::new(),
        }
    }
}

impl FromStr for Parameters {
    type Err = MalformedValue;

    fn from_str(text: &str) -> Result<Self, MalformedValue> {
        let mut pairs = Vec::new();
        for element in elements(text) {
            let (name, value) = element.split_once('=').unwrap_or((element, "true"));
            let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
            if name.is_empty() || value.is_empty() || !name.chars().all(is_name) {
                return Err(MalformedValue::new("a list like NAME=value,NAME=value, or none,"));
            }
            pairs.push((name.to_owned(), value.to_owned()));
        }
        Ok(Self {
            text: text.to_owned(),
            pairs,
        })
    }
}

impl fmt::Display for Parameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

stored_as_text!(Parameters);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_found_in_any_letter_case() {
        let parameters: Parameters = "KEEP_ACTIVE=true,PDC_INTERVAL=0:0:5 USE_SMAPS".parse().unwrap();
        assert_eq!(parameters.flag("keep_active", false), Ok(true));
        assert_eq!(parameters.flag("use_smaps", false), Ok(true));
        assert_eq!(parameters.flag("INHERIT_ENV", true), Ok(true));
        assert_eq!(parameters.seconds("PDC_INTERVAL"), Ok(Some(5)));
        assert_eq!(parameters.to_string(), "KEEP_ACTIVE=true,PDC_INTERVAL=0:0:5 USE_SMAPS");
        assert_eq!(
            parameters.flag("PDC_INTERVAL", false).unwrap_err().to_string(),
            "PDC_INTERVAL: TRUE or FALSE is expected"
        );
    }

    #[test]
    fn none_is_the_empty_list() {
        assert_eq!("none".parse::<Parameters>().unwrap().iter().count(), 0);
        assert!("=1".parse::<Parameters>().is_err());
        assert!("A=".parse::<Parameters>().is_err());
    }
}
