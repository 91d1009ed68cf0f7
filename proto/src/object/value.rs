//! What values of object attributes look like: each type reads its text and prints it as 8.1.9
//! does.
//!
//! Types whose text has several spellings (`00:00:60`, `1.5G`) keep the text beside its meaning,
//! because `qconf` shows a value as the administrator wrote it.

mod command;
mod parameters;
mod quantity;

pub use command::{AbsolutePath, ControlMethod, ProcedureCommand, Signal};
pub use parameters::Parameters;
pub use quantity::{MemoryText, TimeText, Weight};

use crate::complex::Complex;
use crate::diagnostic::{Code, Diagnostic};
use crate::id::AttributeName;
use crate::request::canonical_text;
use crate::rsmap::{split_at_commas, without_blanks_in_brackets};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Deref;
use std::str::FromStr;

/// The word for "nothing" in every attribute.
const NONE: &str = "NONE";

/// Characters that no object name holds (`sge_types(5)`), besides blanks and control characters.
const NOT_IN_NAMES: &str = "/:'\\[]{}|()@%,\"";

/// The longest object name (`sge_types(5)`).
const NAME_LENGTH: usize = 512;

/// A text is no value of its type; says what would be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{expected} is expected")]
pub struct MalformedValue {
    expected: String,
    fault: ValueFault,
}

/// What 8.1.9 has words of its own for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ValueFault {
    Any,
    RelativePath,
    /// One value of several: the part that is meant.
    Part(String),
    /// A number below nothing.
    Negative,
    /// A value of another type.
    NotA(&'static str),
    /// The words of 8.1.9 for this fault.
    Words(String),
}

impl MalformedValue {
    /// `expected` completes the sentence "… is expected".
    pub fn new(expected: impl Into<String>) -> Self {
        MalformedValue {
            expected: expected.into(),
            fault: ValueFault::Any,
        }
    }

    /// The text holds a path that does not start at the root.
    pub fn relative_path(expected: impl Into<String>) -> Self {
        MalformedValue {
            expected: expected.into(),
            fault: ValueFault::RelativePath,
        }
    }

    /// As [`MalformedValue::new`], where 8.1.9 says `what`.
    pub fn with_words(what: impl Into<String>, expected: impl Into<String>) -> Self {
        MalformedValue {
            expected: expected.into(),
            fault: ValueFault::Words(what.into()),
        }
    }

    /// `text` is not of the type that 8.1.9 calls by a word, in a sentence that names the
    /// attribute.
    pub fn not_a(word: &'static str, expected: impl Into<String>) -> Self {
        MalformedValue {
            expected: expected.into(),
            fault: ValueFault::NotA(word),
        }
    }

    /// A number below nothing, where 8.1.9 says that of the attribute.
    pub(crate) fn negative(expected: impl Into<String>) -> Self {
        MalformedValue {
            expected: expected.into(),
            fault: ValueFault::Negative,
        }
    }

    /// `text` is no number of that range.
    fn no_number(text: &str, expected: String) -> Self {
        let is_begun = text
            .trim_start_matches(['-', '+'])
            .starts_with(|first: char| first.is_ascii_digit());
        match is_begun {
            true => MalformedValue::with_words(format!("\"{text}\" is not an u_long32 value"), expected),
            false => MalformedValue::with_words(
                format!("error parsing unsigned long value from string \"{text}\""),
                expected,
            ),
        }
    }

    /// `text` does not parse, where 8.1.9 says no more than that.
    pub(crate) fn unparsed(text: &str, expected: impl Into<String>) -> Self {
        MalformedValue::with_words(format!("error parsing value \"{text}\""), expected)
    }

    /// The same about `part`, the value of all hosts or of one, in an attribute of a queue. 8.1.9
    /// tells twice what it cannot parse.
    pub(crate) fn in_setting(self, part: &str) -> Self {
        let fault = match self.fault {
            ValueFault::Any => ValueFault::Part(part.to_owned()),
            ValueFault::Words(what) if is_parsing(&what) => {
                ValueFault::Words(format!("{what}\nError during parsing of attribute value \"{part}\""))
            }
            fault @ (ValueFault::RelativePath
            | ValueFault::Part(_)
            | ValueFault::Negative
            | ValueFault::NotA(_)
            | ValueFault::Words(_)) => fault,
        };
        MalformedValue { fault, ..self }
    }

    /// The same about one part of a value.
    pub(crate) fn in_part(self, part: &str) -> Self {
        MalformedValue {
            expected: format!("{part}: {}", self.expected),
            ..self
        }
    }

    /// The refusal of `value` for an attribute, in the words of 8.1.9 where they are known.
    pub fn refusal(&self, attribute: &str, value: &str) -> Diagnostic {
        let what = match &self.fault {
            ValueFault::Any => format!("invalid value \"{value}\" for attribute \"{attribute}\""),
            ValueFault::RelativePath => format!("denied: the path given for \"{attribute}\" must start with a \"/\""),
            ValueFault::Part(part) => format!("invalid value \"{part}\" for attribute \"{attribute}\""),
            ValueFault::Negative => format!("parameter \"{attribute}\" must be a positive number"),
            ValueFault::NotA(word) => format!("attribute \"{attribute}\" is not a {word} value"),
            ValueFault::Words(what) => what.clone(),
        };
        // The words of 8.1.9 may say neither.
        let is_named = what.contains(attribute) && what.contains(value);
        let why = if is_named {
            self.to_string()
        } else {
            format!("{attribute} is \"{value}\": {self}")
        };
        Diagnostic::new(Code::BadValue, what).why(why)
    }
}

/// Whether words of 8.1.9 are those of its parser of values.
fn is_parsing(what: &str) -> bool {
    what.starts_with("error parsing ") || what.ends_with(" is not an u_long32 value")
}

/// Lets serde store a type as the text it prints, and check that text when it reads it.
macro_rules! stored_as_text {
    ($type:ty) => {
        impl TryFrom<String> for $type {
            type Error = $crate::object::value::MalformedValue;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                text.parse()
            }
        }

        impl From<$type> for String {
            fn from(value: $type) -> String {
                value.to_string()
            }
        }
    };
}
pub(crate) use stored_as_text;

/// Whether a text is the word for "nothing", in any letter case.
pub fn is_none(text: &str) -> bool {
    text.eq_ignore_ascii_case(NONE)
}

/// Checks a name of an object: 1 to 512 printing characters, none of
/// `/ : ' \ [ ] { } | ( ) @ % , "`.
///
/// # Errors
///
/// The text is empty, too long, holds a forbidden character, or is `NONE`.
pub fn check_name(text: &str) -> Result<(), MalformedValue> {
    let expected = || format!("a name of up to {NAME_LENGTH} characters without {NOT_IN_NAMES}");
    if let Some((letter, called)) = text.chars().find_map(|letter| Some((letter, called(letter)?))) {
        return Err(MalformedValue::with_words(
            format!("{called} ('{letter}') not allowed in objectname"),
            expected(),
        ));
    }
    if text.is_empty() || text.len() > NAME_LENGTH || !text.chars().all(|letter| letter.is_ascii_graphic()) {
        return Err(MalformedValue::new(expected()));
    }
    if is_none(text) {
        let what = format!("Keyword (\"{NONE}\") not allowed as objectname");
        return Err(MalformedValue::with_words(what, "a name other than the keyword NONE"));
    }
    Ok(())
}

/// What 8.1.9 calls a character that no name holds.
fn called(letter: char) -> Option<&'static str> {
    Some(match letter {
        ' ' => "Space",
        '/' => "Slash",
        ':' => "Colon",
        '\'' => "Quote",
        '\\' => "Backslash",
        '[' | ']' => "Brackets",
        '{' | '}' => "Braces",
        '|' => "Pipe",
        '(' | ')' => "Parenthesis",
        '@' => "At",
        '%' => "Percent",
        ',' => "Comma",
        '"' => "Double quote",
        _ => return None,
    })
}

/// A name of an object of any sort; see [`check_name`].
///
/// # Errors
///
/// As [`check_name`].
pub fn name<N: From<String>>(text: &str) -> Result<N, MalformedValue> {
    check_name(text)?;
    Ok(N::from(text.to_owned()))
}

/// A decimal number from `LOW` to `HIGH`.
///
/// # Errors
///
/// The text is no number, or one outside.
pub fn bounded<const LOW: i64, const HIGH: i64, N: TryFrom<i64>>(text: &str) -> Result<N, MalformedValue> {
    let expected = || format!("a number from {LOW} to {HIGH}");
    let no_number = || MalformedValue::no_number(text, expected());
    let number: i64 = text.parse().map_err(|_| no_number())?;
    if LOW >= 0 && u32::try_from(number).is_err() {
        return Err(no_number());
    }
    if !(LOW..=HIGH).contains(&number) {
        return Err(MalformedValue::new(expected()));
    }
    N::try_from(number).map_err(|_| MalformedValue::new(expected()))
}

/// A number of shares, of tickets or of seconds: 0 to 4294967295.
///
/// # Errors
///
/// The text is no such number.
pub fn count(text: &str) -> Result<u32, MalformedValue> {
    let expected = || "a number from 0 to 4294967295".to_owned();
    text.parse().map_err(|_| match text.parse::<i64>() {
        Ok(number) if number < 0 => MalformedValue::negative(expected()),
        Ok(_) | Err(_) => MalformedValue::no_number(text, expected()),
    })
}

/// `TRUE` or `FALSE`; `yes`, `y`, `t` and `1`, or `no`, `n`, `f` and `0`, are read too. Letter case
/// does not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Flag(pub bool);

impl Flag {
    /// Reads `TRUE`, `FALSE`, `1` or `0`: what entries and parameters of configurations may say.
    ///
    /// # Errors
    ///
    /// The text is another word. 8.1.9 stores `yes` there, and it means false.
    pub fn of_configuration(text: &str) -> Result<Self, MalformedValue> {
        let is_clear = ["TRUE", "FALSE", "1", "0"]
            .iter()
            .any(|word| text.eq_ignore_ascii_case(word));
        if is_clear {
            text.parse()
        } else {
            Err(MalformedValue::unparsed(text, "TRUE or FALSE"))
        }
    }
}

impl FromStr for Flag {
    type Err = MalformedValue;

    fn from_str(text: &str) -> Result<Self, MalformedValue> {
        match text.to_ascii_uppercase().as_str() {
            "TRUE" | "T" | "YES" | "Y" | "1" => Ok(Flag(true)),
            "FALSE" | "F" | "NO" | "N" | "0" => Ok(Flag(false)),
            _ => Err(MalformedValue::unparsed(text, "TRUE or FALSE")),
        }
    }
}

impl fmt::Display for Flag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(if self.0 { "TRUE" } else { "FALSE" })
    }
}

/// A value or `NONE`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OptionalValue<T>(pub Option<T>);

impl<T> OptionalValue<T> {
    /// `NONE`.
    pub const NONE: OptionalValue<T> = OptionalValue(None);

    /// The value, unless this is `NONE`.
    pub fn value(&self) -> Option<&T> {
        self.0.as_ref()
    }
}

impl<T: FromStr<Err = MalformedValue>> FromStr for OptionalValue<T> {
    type Err = MalformedValue;

    fn from_str(text: &str) -> Result<Self, MalformedValue> {
        if is_none(text) {
            return Ok(OptionalValue(None));
        }
        match text.parse() {
            Ok(value) => Ok(OptionalValue(Some(value))),
            Err(malformed) => Err(MalformedValue {
                expected: format!("{} or NONE", malformed.expected),
                ..malformed
            }),
        }
    }
}

impl<T: fmt::Display> fmt::Display for OptionalValue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(value) => value.fmt(f),
            None => f.pad(NONE),
        }
    }
}

/// The name of an object that this one refers to, such as a calendar. Whether it exists is not
/// known here.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Reference(String);

impl Reference {
    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Reference {
    type Err = MalformedValue;

    fn from_str(text: &str) -> Result<Self, MalformedValue> {
        name(text).map(Reference)
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

stored_as_text!(Reference);

/// Text that is kept and shown, and whose meaning is not read: attributes that Gridwright has no
/// use for yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UninterpretedText(pub String);

impl FromStr for UninterpretedText {
    type Err = MalformedValue;

    fn from_str(text: &str) -> Result<Self, MalformedValue> {
        if text.is_empty() {
            Err(MalformedValue::new("some text"))
        } else {
            Ok(Self(text.to_owned()))
        }
    }
}

impl fmt::Display for UninterpretedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Names in order; blanks and commas separate them on input, single blanks on output. `NONE` is
/// empty.
///
/// The list holds each name once. A text may repeat a name: 8.1.9 writes such lists for hosts and
/// parallel environments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NameList<N>(pub Vec<N>);

impl<N> Default for NameList<N> {
    fn default() -> Self {
        NameList(Vec::new())
    }
}

impl<N> Deref for NameList<N> {
    type Target = [N];

    fn deref(&self) -> &[N] {
        &self.0
    }
}

impl<N: From<String> + PartialEq> FromStr for NameList<N> {
    type Err = MalformedValue;

    fn from_str(text: &str) -> Result<Self, MalformedValue> {
        let mut names = Vec::new();
        for word in elements(text) {
            let name = name(word)?;
            if !names.contains(&name) {
                names.push(name);
            }
        }
        Ok(NameList(names))
    }
}

impl<N: AsRef<str>> fmt::Display for NameList<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<&str> = self.0.iter().map(AsRef::as_ref).collect();
        f.pad(
            if words.is_empty() {
                NONE.to_owned()
            } else {
                words.join(" ")
            }
            .as_str(),
        )
    }
}

/// The elements of a list that blanks and commas separate; none of `NONE`.
pub(crate) fn elements(text: &str) -> Vec<&str> {
    if is_none(text) {
        return Vec::new();
    }
    text.split(|letter: char| letter == ',' || letter.is_ascii_whitespace())
        .filter(|word| !word.is_empty())
        .collect()
}

/// `name=value` pairs in order, each name once, separated by commas: `complex_values` and
/// thresholds. `NONE` is empty.
///
/// Values are texts here; their types are those of the attributes, which only the complex knows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Assignments(pub Vec<(AttributeName, String)>);

impl Assignments {
    /// The value assigned to an attribute.
    pub fn value<N: ?Sized>(&self, attribute: &N) -> Option<&str>
    where
        AttributeName: PartialEq<N>,
    {
        self.0
            .iter()
            .find(|(name, _)| name == attribute)
            .map(|(_, value)| value.as_str())
    }

    /// Gives attributes their full names and times in seconds. Of an attribute that is set twice,
    /// by its name and its shortcut, the later value counts.
    pub fn make_canonical(&mut self, complex: &Complex) {
        for (name, value) in &mut self.0 {
            let Some(attribute) = complex.lookup(name.as_str()) else {
                continue;
            };
            *name = attribute.name.clone();
            if let Some(canonical) = canonical_text(attribute.r#type, value) {
                *value = canonical;
            }
        }
        let mut at = 0;
        while at < self.0.len() {
            match self.0[at + 1..].iter().any(|(later, _)| *later == self.0[at].0) {
                true => drop(self.0.remove(at)),
                false => at += 1,
            }
        }
    }
}

impl Deref for Assignments {
    type Target = [(AttributeName, String)];

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl FromStr for Assignments {
    type Err = MalformedValue;

    fn from_str(text: &str) -> Result<Self, MalformedValue> {
        let mut pairs: Vec<(AttributeName, String)> = Vec::new();
        if is_none(text) {
            return Ok(Assignments(pairs));
        }
        let text = without_blanks_in_brackets(text);
        for element in split_at_commas(&text).into_iter().map(str::trim_ascii) {
            let (attribute, value) = assignment(element)?;
            if pairs.iter().any(|(earlier, _)| *earlier == attribute) {
                return Err(MalformedValue::new(format!("a list that sets \"{attribute}\" once")));
            }
            pairs.push((attribute, value.to_owned()));
        }
        Ok(Assignments(pairs))
    }
}

impl Assignments {
    /// Reads the list of a queue. Blanks separate assignments too, may stand beside `=`, and `==`
    /// means `=`, as in 8.1.9.
    ///
    /// # Errors
    ///
    /// The text is no list of assignments, or sets an attribute twice.
    pub fn of_queue(text: &str) -> Result<Self, MalformedValue> {
        // Stored queues may have a blank inside a value; [`Assignments::new_in_queue`] refuses it.
        Self::new_in_queue(text).or_else(|_| text.parse())
    }

    /// Reads the list of a queue that somebody writes anew, where a value holds neither a blank nor
    /// `=`.
    ///
    /// # Errors
    ///
    /// Those of [`Assignments::of_queue`], or a value holds a blank or `=`.
    pub fn new_in_queue(text: &str) -> Result<Self, MalformedValue> {
        let list: Self = spelt_with_commas(text).parse()?;
        match list.iter().find(|(_, value)| value.contains('=')) {
            Some((attribute, value)) => Err(expected_list(&format!("{attribute}={value}"))),
            None => Ok(list),
        }
    }
}

/// The assignments of a queue with commas alone between them: `a = 1 b==2` is `a=1,b=2`. What
/// stands in parentheses stays.
pub(crate) fn spelt_with_commas(text: &str) -> String {
    let mut spelt = String::new();
    let (mut depth, mut is_behind_blank) = (0_usize, false);
    for letter in text.chars() {
        match letter {
            _ if depth == 0 && letter.is_ascii_whitespace() => is_behind_blank = true,
            '=' if depth == 0 && spelt.ends_with('=') => is_behind_blank = false,
            '=' | ',' if depth == 0 => {
                is_behind_blank = false;
                spelt.push(letter);
            }
            _ => {
                if std::mem::take(&mut is_behind_blank) && !spelt.is_empty() && !spelt.ends_with(['=', ',']) {
                    spelt.push(',');
                }
                depth = match letter {
                    '(' => depth + 1,
                    ')' => depth.saturating_sub(1),
                    _ => depth,
                };
                spelt.push(letter);
            }
        }
    }
    spelt
}

fn expected_list(element: &str) -> MalformedValue {
    MalformedValue::unparsed(element, "a list like name=value,name=value, or NONE,")
}

fn assignment(element: &str) -> Result<(AttributeName, &str), MalformedValue> {
    let expected = || expected_list(element);
    let (attribute, value) = element.split_once('=').ok_or_else(expected)?;
    if value.is_empty() {
        return Err(expected());
    }
    Ok((name(attribute)?, value))
}

impl fmt::Display for Assignments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs: Vec<String> = self
            .0
            .iter()
            .map(|(attribute, value)| format!("{attribute}={value}"))
            .collect();
        f.pad(
            if pairs.is_empty() {
                NONE.to_owned()
            } else {
                pairs.join(",")
            }
            .as_str(),
        )
    }
}
