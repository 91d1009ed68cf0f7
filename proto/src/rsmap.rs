//! Resource maps: consumables whose units have names, such as `gpu=4(0-3)`.
//!
//! A host or the cluster lists the ids that it has; a job that asks for two of them is told which
//! two. Which ids a job gets is deliberately not decided here.

use crate::amount::{Amount, Type};
use crate::id::{AttributeName, HostName};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The most ids that one map may have. Raising it makes each start that uses a map dearer.
pub const IDS_MAX: usize = 65_536;
/// The most ids that a bare number stands for: more are written out, as a range if need be.
pub const BARE_IDS_MAX: usize = 512;
/// Characters that separate or enclose ids. Brackets are kept for characteristics.
const RESERVED: [char; 6] = [',', '=', '(', ')', '[', ']'];

/// The ids that a host or the cluster has of an attribute of type RSMAP, in the order in which they
/// are given out.
///
/// An id that is there twice is a device that two jobs may share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IdMap {
    ids: Vec<String>,
}

/// Why a text is no resource map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdMapError {
    /// It is neither a number nor a number with ids in parentheses.
    Shape,
    /// The number before the parenthesis is not how many ids there are.
    Count {
        /// What the text says.
        said: usize,
        /// How many ids it lists.
        listed: usize,
    },
    /// A word is no id.
    Id(String),
    /// A range ends before it begins.
    Range(String),
    /// Characteristics of ids in brackets, which are not supported.
    Characteristics(String),
    /// More ids than a map may have, or than a bare number may stand for.
    TooMany {
        /// The limit.
        most: usize,
    },
}

impl fmt::Display for IdMapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IdMapError::Shape => f.write_str("it is no resource map such as 4(0 1 2 3), 4(0-3) or 2(left right)"),
            IdMapError::Count { said, listed } => write!(f, "it says {said} and lists {listed} ids"),
            IdMapError::Id(word) => write!(f, "\"{word}\" is no id: ids have none of , = ( ) [ ]"),
            IdMapError::Range(word) => write!(f, "the range \"{word}\" ends before it begins"),
            IdMapError::Characteristics(word) => write!(f, "\"{word}\" gives an id characteristics: not supported"),
            IdMapError::TooMany { most } => write!(f, "more than {most} ids cannot be written so"),
        }
    }
}

impl std::error::Error for IdMapError {}

impl IdMap {
    /// Reads a value of `complex_values`: `4(0 1 2 3)`, `4(0-3)`, `3(a 1-2)`, or `4`, which is
    /// `4(0-3)`.
    ///
    /// # Errors
    /// If the text has another form, its number is not the number of its ids, or there are too
    /// many.
    pub fn parse(text: &str) -> Result<IdMap, IdMapError> {
        let (number, list) = match text.trim().split_once('(') {
            Some((number, rest)) => (number, Some(rest.strip_suffix(')').ok_or(IdMapError::Shape)?)),
            None => (text, None),
        };
        let said: usize = number.trim().parse().map_err(|_| IdMapError::Shape)?;
        let Some(list) = list else { return IdMap::numbered(said) };
        let mut ids = Vec::new();
        for word in list.split_whitespace() {
            read_ids(word, &mut ids)?;
        }
        let listed = ids.len();
        if said == listed {
            Ok(IdMap { ids })
        } else {
            Err(IdMapError::Count { said, listed })
        }
    }

    fn numbered(count: usize) -> Result<IdMap, IdMapError> {
        if count > BARE_IDS_MAX {
            return Err(IdMapError::TooMany { most: BARE_IDS_MAX });
        }
        Ok(IdMap {
            ids: (0..count).map(|id| id.to_string()).collect(),
        })
    }

    /// The ids in their order, repeated ones as often as they are listed.
    pub fn ids(&self) -> &[String] {
        &self.ids
    }

    /// How many units there are.
    pub fn amount(&self) -> Amount {
        Amount::from_base(i64::try_from(self.ids.len()).expect("a map has at most IDS_MAX ids"))
    }

    /// The number before the parenthesis, for a text that was checked when it was set.
    pub fn amount_of(text: &str) -> Option<Amount> {
        let number = text.split('(').next().unwrap_or(text);
        Amount::parse(number.trim(), Type::Int).ok()
    }
}

impl fmt::Display for IdMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.ids.len(), self.ids.join(" "))
    }
}

/// Adds the ids of a word: one, or all numbers of a range.
fn read_ids(word: &str, ids: &mut Vec<String>) -> Result<(), IdMapError> {
    if word.contains('[') {
        return Err(IdMapError::Characteristics(word.to_owned()));
    }
    if word.contains(RESERVED) || !word.chars().all(|c| c.is_ascii_graphic()) {
        return Err(IdMapError::Id(word.to_owned()));
    }
    let room = |more: u64| match u64::try_from(IDS_MAX - ids.len()) {
        Ok(room) if more <= room => Ok(()),
        Ok(_) | Err(_) => Err(IdMapError::TooMany { most: IDS_MAX }),
    };
    match range(word) {
        None => {
            room(1)?;
            ids.push(word.to_owned());
        }
        Some((first, last)) if last < first => return Err(IdMapError::Range(word.to_owned())),
        Some((first, last)) => {
            room((last - first).saturating_add(1))?;
            ids.extend((first..=last).map(|id| id.to_string()));
        }
    }
    Ok(())
}

/// The ends of `lo-hi`; any other word is an id.
fn range(word: &str) -> Option<(u64, u64)> {
    let number = |text: &str| {
        text.bytes()
            .all(|b| b.is_ascii_digit())
            .then(|| text.parse().ok())
            .flatten()
    };
    let (first, last) = word.split_once('-')?;
    Some((number(first)?, number(last)?))
}

/// The ids of one attribute that a task has at a host, or of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantedIds {
    /// The full name of the attribute.
    pub attribute: AttributeName,
    /// Where the ids are from: the host, or `global`.
    pub host: HostName,
    /// The ids, one for each unit, in the order in which they are told to the job.
    pub ids: Vec<String>,
}

impl fmt::Display for GrantedIds {
    /// `gpu=host=(0 3)`, as Open Cluster Scheduler shows it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}=({})", self.attribute, self.host, self.ids.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ids_are_words_and_ranges_as_many_as_the_number_says() {
        for (text, ids) in [
            ("4(0 1 2 3)", "0 1 2 3"),
            ("4(0-3)", "0 1 2 3"),
            ("5(a 1-2 b 1)", "a 1 2 b 1"),
            ("2( left  right )", "left right"),
            ("3", "0 1 2"),
            ("0()", ""),
            ("0", ""),
            ("8(0 0 0 0 1 1 1 1)", "0 0 0 0 1 1 1 1"),
            ("1(mig-1g.5gb)", "mig-1g.5gb"),
            ("1(5-5)", "5"),
            ("1(2-a)", "2-a"),
        ] {
            let map = IdMap::parse(text).unwrap();
            assert_eq!(map.ids().join(" "), ids, "{text}");
            assert_eq!(IdMap::amount_of(text), Some(map.amount()), "{text}");
        }
    }

    #[test]
    fn what_is_no_map_is_refused_with_the_reason() {
        for (text, why) in [
            ("", "it is no resource map"),
            ("4(0-3", "it is no resource map"),
            ("-1", "it is no resource map"),
            ("1.5(a)", "it is no resource map"),
            ("4(0-2)", "it says 4 and lists 3 ids"),
            ("0(a)", "it says 0 and lists 1 ids"),
            ("1(a=b)", "\"a=b\" is no id"),
            ("1(a,b)", "\"a,b\" is no id"),
            ("2(3-1)", "the range \"3-1\" ends before it begins"),
            ("1(0[memory=80G])", "gives an id characteristics"),
            ("513", "more than 512 ids"),
            ("9(0-18446744073709551615)", "more than 65536 ids"),
        ] {
            let refusal = IdMap::parse(text).unwrap_err().to_string();
            assert!(refusal.contains(why), "{text}: {refusal}");
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(ids in prop::collection::vec("[a-z0-9_.:/-]{1,6}", 0..20)) {
            let list = ids.iter().map(|id| if range(id).is_some() { format!("x{id}") } else { id.clone() });
            let map = IdMap { ids: list.collect() };
            prop_assert_eq!(IdMap::parse(&map.to_string()), Ok(map));
        }

        #[test]
        fn no_text_makes_the_reader_fail(text in "[0-9]{0,3}\\(?[a-z0-9 ,=()\\[\\]-]{0,30}\\)?") {
            let _ = IdMap::parse(&text);
        }
    }
}
