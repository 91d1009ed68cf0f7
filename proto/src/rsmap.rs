//! Resource maps: consumables whose units have names, such as `gpu=4(0-3)`.
//!
//! A host or the cluster lists the ids that it has; a job that asks for two of them is told which
//! two. An id may have characteristics, such as the device files of a GPU, in the grammar of
//! sge_rsmap(5) of Open Cluster Scheduler. Which ids a job gets is deliberately not decided here.

use crate::amount::{Amount, Type};
use crate::id::{AttributeName, HostName};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The most ids that one map may have. Raising it makes each start that uses a map dearer.
pub const IDS_MAX: usize = 65_536;
/// The most ids that a bare number stands for: more are written out, as a range if need be.
pub const BARE_IDS_MAX: usize = 512;
/// Characters that separate or enclose ids and characteristics.
const RESERVED: [char; 6] = [',', '=', '(', ')', '[', ']'];
/// The most characteristics that one id may have.
pub const CHARACTERISTICS_MAX: usize = 64;

/// The ids that a host or the cluster has of an attribute of type RSMAP, in the order in which they
/// are given out.
///
/// An id that is there twice is a device that two jobs may share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IdMap {
    ids: Vec<String>,
    /// Ids without characteristics are left out.
    characteristics: BTreeMap<String, Characteristics>,
}

/// The characteristics of one id: `devices=/dev/nvidia0:rw,memory=80G`. The names are attributes of
/// the complex.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Characteristics(BTreeMap<AttributeName, String>);

impl Characteristics {
    /// The value of a characteristic.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Name and value of each, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&AttributeName, &str)> {
        self.0.iter().map(|(name, value)| (name, value.as_str()))
    }

    /// Reads what is between the brackets.
    fn parse(id: &str, text: &str) -> Result<Self, IdMapError> {
        let mut found = BTreeMap::new();
        for part in text.split(',') {
            let bad = || IdMapError::Characteristic(format!("{id}[{part}]"));
            let (name, value) = part.split_once('=').ok_or_else(bad)?;
            let is_word = |word: &str| !word.is_empty() && !word.contains(RESERVED) && is_graphic(word);
            let is_repeated = found.contains_key(name);
            if !is_word(name) || !is_word(value) || is_repeated || found.len() == CHARACTERISTICS_MAX {
                return Err(bad());
            }
            found.insert(AttributeName::from(name), value.to_owned());
        }
        Ok(Characteristics(found))
    }
}

impl fmt::Display for Characteristics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.iter().map(|(name, value)| format!("{name}={value}")).collect();
        f.write_str(&parts.join(","))
    }
}

fn is_graphic(word: &str) -> bool {
    word.chars().all(|letter| letter.is_ascii_graphic())
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
    /// A word in brackets is no characteristic, or is there twice.
    Characteristic(String),
    /// A bracket is not closed.
    Bracket(String),
    /// Characteristics of a range, which would belong to several ids.
    RangeWithCharacteristics(String),
    /// An id that is there several times has different characteristics.
    Different(String),
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
            IdMapError::Characteristic(word) => write!(f, "\"{word}\" is not NAME=VALUE, or names it again"),
            IdMapError::Bracket(word) => write!(f, "\"{word}\" has no closing bracket at its end"),
            IdMapError::RangeWithCharacteristics(word) => {
                write!(f, "\"{word}\" gives a range characteristics: list its ids one by one")
            }
            IdMapError::Different(id) => write!(f, "the id \"{id}\" is listed with different characteristics"),
            IdMapError::TooMany { most } => write!(f, "more than {most} ids cannot be written so"),
        }
    }
}

impl std::error::Error for IdMapError {}

impl IdMap {
    /// Reads a value of `complex_values`: `4(0 1 2 3)`, `4(0-3)`, `3(a 1-2)`, or `4`, which is
    /// `4(0-3)`. An id may have characteristics in brackets, `2(left[rack=1] right)`, in which
    /// blanks do not count.
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
        let mut map = IdMap::default();
        let mut bare = BTreeSet::new();
        let list = without_blanks_in_brackets(list);
        for word in list.split_whitespace() {
            match word.split_once('[') {
                None => read_ids(word, &mut map.ids)?,
                Some((id, rest)) => {
                    let inner = rest.strip_suffix(']');
                    let inner = inner.ok_or_else(|| IdMapError::Bracket(word.to_owned()))?;
                    map.read_described(word, id, inner)?;
                    continue;
                }
            }
            // A range has no characteristics, so only words that stand for one id can differ.
            bare.insert(word);
        }
        map.check_bare(&bare)?;
        let listed = map.ids.len();
        if said == listed {
            Ok(map)
        } else {
            Err(IdMapError::Count { said, listed })
        }
    }

    /// Adds an id with what is between its brackets.
    fn read_described(&mut self, word: &str, id: &str, inner: &str) -> Result<(), IdMapError> {
        if range(id).is_some() {
            return Err(IdMapError::RangeWithCharacteristics(word.to_owned()));
        }
        read_ids(id, &mut self.ids)?;
        let characteristics = Characteristics::parse(id, inner)?;
        match self.characteristics.get(id) {
            Some(known) if *known != characteristics => Err(IdMapError::Different(id.to_owned())),
            Some(_) => Ok(()),
            None => {
                self.characteristics.insert(id.to_owned(), characteristics);
                Ok(())
            }
        }
    }

    /// Refuses an id that is listed with characteristics and without.
    fn check_bare(&self, bare: &BTreeSet<&str>) -> Result<(), IdMapError> {
        let is_bare = |id: &&String| {
            let number = id.parse::<u64>().ok();
            let is_in = |word: &&str| {
                range(word)
                    .zip(number)
                    .is_some_and(|((first, last), id)| first <= id && id <= last)
            };
            bare.contains(id.as_str()) || number.is_some() && bare.iter().any(is_in)
        };
        match self.characteristics.keys().find(is_bare) {
            Some(id) => Err(IdMapError::Different(id.clone())),
            None => Ok(()),
        }
    }

    fn numbered(count: usize) -> Result<IdMap, IdMapError> {
        if count > BARE_IDS_MAX {
            return Err(IdMapError::TooMany { most: BARE_IDS_MAX });
        }
        Ok(IdMap {
            ids: (0..count).map(|id| id.to_string()).collect(),
            ..IdMap::default()
        })
    }

    /// The characteristics of an id; `None` if it has none or is not in the map.
    pub fn characteristics(&self, id: &str) -> Option<&Characteristics> {
        self.characteristics.get(id)
    }

    /// The ids that have characteristics, each once.
    pub fn described(&self) -> impl Iterator<Item = (&str, &Characteristics)> {
        self.characteristics.iter().map(|(id, known)| (id.as_str(), known))
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
        write!(f, "{}(", self.ids.len())?;
        for (at, id) in self.ids.iter().enumerate() {
            let blank = if at == 0 { "" } else { " " };
            write!(f, "{blank}{id}")?;
            if let Some(characteristics) = self.characteristics(id) {
                write!(f, "[{characteristics}]")?;
            }
        }
        f.write_str(")")
    }
}

/// The text without the blanks inside of brackets: a long line of a file is continued there.
pub fn without_blanks_in_brackets(text: &str) -> String {
    let mut depth = 0_usize;
    let mut kept = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 || !letter.is_ascii_whitespace() {
            kept.push(letter);
        }
    }
    kept
}

/// The elements of a list that commas separate. A comma in brackets or parentheses is part of its
/// element.
pub fn split_at_commas(text: &str) -> Vec<&str> {
    let (mut depth, mut from) = (0_usize, 0);
    let mut elements = Vec::new();
    for (at, letter) in text.char_indices() {
        match letter {
            '[' | '(' => depth += 1,
            ']' | ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                elements.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    elements.push(&text[from..]);
    elements
}

/// Adds the ids of a word: one, or all numbers of a range.
fn read_ids(word: &str, ids: &mut Vec<String>) -> Result<(), IdMapError> {
    if word.is_empty() || word.contains(RESERVED) || !is_graphic(word) {
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
    fn ids_have_the_characteristics_in_their_brackets() {
        let text = "3(gpu0[devices=/dev/nvidia0:rw;/dev/nvidiactl:r, \n memory=80G] gpu1 0[cell=a])";
        let map = IdMap::parse(text).unwrap();
        assert_eq!(map.ids().join(" "), "gpu0 gpu1 0");
        let first = map.characteristics("gpu0").unwrap();
        assert_eq!(first.value("devices"), Some("/dev/nvidia0:rw;/dev/nvidiactl:r"));
        assert_eq!(first.value("memory"), Some("80G"));
        assert_eq!(first.value("uuid"), None);
        assert!(map.characteristics("gpu1").is_none());
        assert_eq!(map.described().map(|(id, _)| id).collect::<Vec<_>>(), ["0", "gpu0"]);
        assert_eq!(
            map.to_string(),
            "3(gpu0[devices=/dev/nvidia0:rw;/dev/nvidiactl:r,memory=80G] gpu1 0[cell=a])"
        );
        assert_eq!(IdMap::parse(&map.to_string()), Ok(map));
        let shared = IdMap::parse("3(0[a=1,b=2] 0[b=2,a=1] 1-1)").unwrap();
        assert_eq!(shared.ids().join(" "), "0 0 1");
        assert_eq!(shared.characteristics("0").unwrap().to_string(), "a=1,b=2");
    }

    #[test]
    fn a_comma_in_brackets_separates_nothing() {
        let text = "mem=4,gpu=2(a[x=1,y=2] b),lic=1";
        assert_eq!(split_at_commas(text), ["mem=4", "gpu=2(a[x=1,y=2] b)", "lic=1"]);
        assert_eq!(split_at_commas(""), [""]);
        assert_eq!(split_at_commas("a,,b"), ["a", "", "b"]);
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
            ("1([a=b])", "\"\" is no id"),
            ("1(0[memory=80G)", "\"0[memory=80G\" has no closing bracket"),
            ("1(0[memory=80G]x)", "has no closing bracket at its end"),
            ("1(0[memory])", "\"0[memory]\" is not NAME=VALUE"),
            ("1(0[])", "\"0[]\" is not NAME=VALUE"),
            ("1(0[a=1,a=2])", "\"0[a=2]\" is not NAME=VALUE, or names it again"),
            ("1(0[a=b=c])", "\"0[a=b=c]\" is not NAME=VALUE"),
            ("2(0-1[a=b])", "gives a range characteristics"),
            ("2(0[a=b] 0)", "the id \"0\" is listed with different characteristics"),
            ("1(1-1[a=b])", "gives a range characteristics"),
            ("4(0-2 1[a=b])", "the id \"1\" is listed with different characteristics"),
            ("2(0 0[a=b])", "the id \"0\" is listed with different characteristics"),
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
            let map = IdMap { ids: list.collect(), ..IdMap::default() };
            prop_assert_eq!(IdMap::parse(&map.to_string()), Ok(map));
        }

        #[test]
        fn no_text_makes_the_reader_fail(text in "[0-9]{0,3}\\(?[a-z0-9 ,=()\\[\\];:/-]{0,30}\\)?") {
            let _ = IdMap::parse(&text);
        }
    }
}
