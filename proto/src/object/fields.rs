//! The flat text form: parsing with line numbers, printing byte for byte as 8.1.9 does.

use super::ObjectKind;
use super::suggest;
use crate::diagnostic::{Code, Diagnostic};
use serde::{Deserialize, Serialize};

/// The length that no wrapped line exceeds, its ` \` included (measured on 8.1.9).
const LINE_LENGTH: usize = 80;

/// What ends a line that goes on in the next one.
pub(crate) const CONTINUATION: &str = " \\";

/// Whether long values are printed over several lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LineWrap {
    /// Lines of at most 80 characters, ended by ` \` where they go on: the default of 8.1.9.
    At80,
    /// One line for each attribute: what `SGE_SINGLE_LINE` asks for.
    SingleLine,
}

/// One attribute with its value.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Field {
    /// The attribute.
    pub key: String,
    /// Its value: one line, no blanks at its ends, `NONE` where there is nothing.
    pub value: String,
    /// The line of the text it was read from, counted from 1; 0 if it was not read.
    #[serde(skip)]
    pub line: u32,
}

/// Where a field came from is no part of what it says.
impl PartialEq for Field {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key && self.value == other.value
    }
}

impl Eq for Field {}

/// The attributes of one object in order. No attribute occurs twice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fields {
    entries: Vec<Field>,
}

impl Fields {
    /// No attributes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets an attribute in place, or adds it at the end.
    ///
    /// A value is one line without blanks at its ends and without a backslash as its last
    /// character.
    pub fn set(&mut self, key: &str, value: impl Into<String>) {
        let value = value.into();
        match self.entries.iter_mut().find(|field| field.key == key) {
            Some(field) => field.value = value,
            None => self.entries.push(Field {
                key: key.to_owned(),
                value,
                line: 0,
            }),
        }
    }

    /// Adds an attribute that is not there yet, with the line it was read from.
    pub(crate) fn push(&mut self, field: Field) {
        self.entries.push(field);
    }

    /// The value of an attribute.
    pub fn value(&self, key: &str) -> Option<&str> {
        self.field(key).map(|field| field.value.as_str())
    }

    /// Takes an attribute out; returns its value.
    pub fn remove(&mut self, key: &str) -> Option<String> {
        let at = self.entries.iter().position(|field| field.key == key)?;
        Some(self.entries.remove(at).value)
    }

    /// The attributes in order.
    pub fn iter(&self) -> impl Iterator<Item = &Field> {
        self.entries.iter()
    }

    /// The number of attributes.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no attributes.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Where an attribute was written: `line 3`, or its name if it was not read from a text.
    pub fn place(&self, key: &str) -> String {
        match self.field(key) {
            Some(field) if field.line > 0 => format!("line {}", field.line),
            Some(_) | None => key.to_owned(),
        }
    }

    /// Reads the text that `qconf` files and `qconf -s…` output have.
    ///
    /// Empty lines and lines that start with `#` are skipped. A backslash at the end of a line
    /// joins the next one to it with one blank, or with nothing after a comma, which is where long
    /// lists are broken. A comment in between is skipped. A backslash joins nothing where only
    /// comments follow.
    ///
    /// # Errors
    ///
    /// One refusal for each line that has an attribute without a value, for each attribute that
    /// occurs twice, and for a text that ends with a backslash: it may have been cut off there.
    pub fn parse(text: &str) -> Result<Fields, Vec<Diagnostic>> {
        let mut fields = Fields::new();
        let mut refusals = Vec::new();
        for (line, text) in join_lines(text, &mut refusals) {
            match parse_line(&text, line, &fields) {
                Ok(field) => fields.entries.push(field),
                Err(refusal) => refusals.push(refusal),
            }
        }
        if refusals.is_empty() { Ok(fields) } else { Err(refusals) }
    }

    /// The text as `qconf -s…` prints an object of this kind, without the frame that
    /// [`crate::conf`] has around it.
    pub fn print(&self, kind: ObjectKind, wrap: LineWrap) -> String {
        let mut text = String::new();
        for Field { key, value, line: _ } in &self.entries {
            let column = kind.value_column().unwrap_or(key.len() + 1).max(key.len() + 1);
            let lines = match wrap {
                LineWrap::At80 => wrapped(value, column, column),
                LineWrap::SingleLine => vec![value.as_str()],
            };
            text.push_str(&format!("{key:column$}"));
            text.push_str(&lines.join(&format!("{CONTINUATION}\n{:column$}", "")));
            text.push('\n');
        }
        text
    }

    /// Refusals for attributes that `known` does not list and for attributes of `required` that are
    /// missing.
    pub fn check_keys(&self, kind: ObjectKind, known: &[&str], required: &[&str]) -> Vec<Diagnostic> {
        let unknown = self.entries.iter().filter(|field| !known.contains(&field.key.as_str()));
        unknown
            .map(|field| unknown_attribute(kind, &field.key, known).at(self.place(&field.key)))
            .chain(self.check_missing(kind, required))
            .collect()
    }

    /// Refusals for attributes of `required` that are missing.
    pub fn check_missing(&self, kind: ObjectKind, required: &[&str]) -> Vec<Diagnostic> {
        let missing = required.iter().filter(|key| self.field(key).is_none());
        missing.map(|key| missing_attribute(kind, key)).collect()
    }

    fn field(&self, key: &str) -> Option<&Field> {
        self.entries.iter().find(|field| field.key == key)
    }
}

impl<K: Into<String>, V: Into<String>> FromIterator<(K, V)> for Fields {
    /// Collects pairs; a later value of the same attribute replaces the earlier one.
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let mut fields = Fields::new();
        for (key, value) in pairs {
            fields.set(&key.into(), value);
        }
        fields
    }
}

/// The refusal of an attribute that objects of this kind do not have.
pub(crate) fn unknown_attribute(kind: ObjectKind, key: &str, known: &[&str]) -> Diagnostic {
    let refusal = Diagnostic::new(Code::BadSyntax, format!("unknown attribute name \"{key}\""))
        .why(format!("a {kind} has no such attribute"));
    match suggest::nearest(key, known.iter().copied()) {
        Some(near) => refusal.fix(format!("did you mean \"{near}\"?")),
        None => refusal.fix(format!("remove \"{key}\"")),
    }
}

fn missing_attribute(kind: ObjectKind, key: &str) -> Diagnostic {
    Diagnostic::new(Code::BadSyntax, format!("required attribute \"{key}\" is missing"))
        .why(format!(
            "the text of a {kind} states every attribute, and what it leaves out is not guessed"
        ))
        .fix(format!("add a line that starts with \"{key}\""))
}

/// The lines that say something, continuations joined, each with the number of its first line. Adds
/// a refusal if the last line announces another one.
pub(crate) fn join_lines(text: &str, refusals: &mut Vec<Diagnostic>) -> Vec<(u32, String)> {
    let mut joined = Vec::new();
    let mut open: Option<(u32, String)> = None;
    let mut ends_in_comment = false;
    for (line, part) in (1..).zip(text.lines()) {
        let part = part.trim_ascii();
        ends_in_comment = part.starts_with('#');
        if ends_in_comment || (part.is_empty() && open.is_none()) {
            continue;
        }
        let (first, mut sofar) = open.take().unwrap_or((line, String::new()));
        let body = part.strip_suffix('\\');
        append(&mut sofar, body.unwrap_or(part).trim_ascii_end());
        match body {
            Some(_) => open = Some((first, sofar)),
            None => joined.push((first, sofar)),
        }
    }
    match open {
        Some((first, _)) if !ends_in_comment => refusals.push(
            Diagnostic::new(Code::BadSyntax, "the text ends with a backslash")
                .at(format!("line {first}"))
                .why("a backslash at the end of a line says that the next line continues it")
                .fix("remove the backslash or add what is missing"),
        ),
        complete => joined.extend(complete),
    }
    joined
}

fn append(sofar: &mut String, part: &str) {
    if !sofar.is_empty() && !sofar.ends_with(',') && !part.is_empty() {
        sofar.push(' ');
    }
    sofar.push_str(part);
}

fn parse_line(text: &str, line: u32, before: &Fields) -> Result<Field, Diagnostic> {
    let refusal = |what: String| Diagnostic::new(Code::BadSyntax, what).at(format!("line {line}"));
    let Some((key, value)) = text.split_once(|letter: char| letter.is_ascii_whitespace()) else {
        return Err(refusal(format!("attribute \"{text}\" has no value"))
            .why("each line holds an attribute, blanks and its value")
            .fix(format!("write \"{text} NONE\" if there is nothing")));
    };
    if let Some(first) = before.field(key) {
        return Err(refusal(format!("attribute \"{key}\" appears more than once"))
            .why(format!("line {} has it already", first.line))
            .fix("remove one of the two lines"));
    }
    Ok(Field {
        key: key.to_owned(),
        value: value.trim_ascii().to_owned(),
        line,
    })
}

/// The lines of a value that starts at `column` and goes on at `next_column`: as many elements in
/// each as fit, at least one.
///
/// A value is broken behind a comma or in place of a single blank. A blank beside a comma or
/// another blank stays, and no line begins with `#`, so that what was printed reads back as it was.
pub(crate) fn wrapped(value: &str, column: usize, next_column: usize) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut start = 0;
    // The last place so far where the line that began at `start` may end, and where the next one
    // would begin.
    let mut fits: Option<(usize, usize)> = None;
    for (end, next) in breaks(value) {
        let is_last = end == value.len();
        let column = if lines.is_empty() { column } else { next_column };
        let room = LINE_LENGTH.saturating_sub(column + if is_last { 0 } else { CONTINUATION.len() });
        if let Some((line_end, line_next)) = fits
            && value[start..end].chars().count() > room
        {
            lines.push(&value[start..line_end]);
            start = line_next;
        }
        fits = Some((end, next));
    }
    lines.push(&value[start..]);
    lines
}

/// The places where a line may end, each with the place where the next one begins; the end of the
/// value is the last.
fn breaks(value: &str) -> impl Iterator<Item = (usize, usize)> {
    let bytes = value.as_bytes();
    let inner = (1..bytes.len()).filter_map(|at| match (bytes[at - 1], bytes[at]) {
        (b',', next) if !next.is_ascii_whitespace() && next != b'#' => Some((at, at)),
        (before, b' ') if !is_separator(before) && may_begin(*bytes.get(at + 1)?) => Some((at, at + 1)),
        _ => None,
    });
    inner.chain(std::iter::once((value.len(), value.len())))
}

/// Whether a line that continues a value may begin so: not as a comment does.
fn may_begin(byte: u8) -> bool {
    !is_separator(byte) && byte != b'#'
}

fn is_separator(byte: u8) -> bool {
    byte == b',' || byte.is_ascii_whitespace()
}
