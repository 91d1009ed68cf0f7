//! The text of resource quota sets: `{`, one attribute a line, `}`, as often as there are sets.

use super::{KEYS, QuotaSet, RULE, unknown_attribute};
use crate::diagnostic::{Code, Diagnostic};
use crate::object::fields::{CONTINUATION, Field, join_lines, wrapped};
use crate::object::value::is_none;
use crate::object::{Fields, LineWrap};

/// The column of values, counted from 0 (measured on 8.1.9).
const VALUE_COLUMN: usize = 16;

/// The column of attributes, at which wrapped lines go on too.
const KEY_COLUMN: usize = 3;

/// Reads a text of resource quota sets; none of `NONE` or an empty text. The fields know their
/// lines.
///
/// # Errors
///
/// One refusal for each line that does not follow the form, and for everything in a set that
/// [`QuotaSet::from_fields`] refuses.
pub fn parse_sets(text: &str) -> Result<Vec<Fields>, Vec<Diagnostic>> {
    let mut reader = QuotaFileReader::default();
    let mut refusals = Vec::new();
    for (line, text) in join_lines(text, &mut refusals) {
        if is_none(&text) && reader.open.is_none() {
            continue;
        }
        let is_outside = reader.open.is_none();
        refusals.extend(reader.line(&text, line).err());
        if is_outside && reader.open.is_none() && !refusals.is_empty() {
            // What follows a text that is no set is no set either.
            break;
        }
    }
    if let Some((first, _)) = reader.open {
        let last = text.lines().count() + 1;
        let what = format!("each value in the attribute value list in line {last} should end with \"}}\"");
        refusals.push(
            Diagnostic::new(Code::BadSyntax, what).why(format!("the set that begins in line {first} has no end")),
        );
    }
    let mut names: Vec<&str> = Vec::new();
    for fields in &reader.sets {
        refusals.extend(QuotaSet::from_fields(fields).err().into_iter().flatten());
        if let Some(name) = fields.value("name") {
            if names.contains(&name) {
                let refusal = Diagnostic::new(
                    Code::AlreadyExists,
                    format!("resource quota set \"{name}\" appears twice"),
                );
                refusals.push(refusal.at(fields.place("name")).fix("give one of the two another name"));
            }
            names.push(name);
        }
    }
    if refusals.is_empty() {
        Ok(reader.sets)
    } else {
        Err(refusals)
    }
}

/// Sets as `qconf -srqs` prints them.
pub fn print_sets<'a>(sets: impl IntoIterator<Item = &'a QuotaSet>, wrap: LineWrap) -> String {
    let mut text = String::new();
    for set in sets {
        text.push_str("{\n");
        for field in set.to_fields().iter() {
            let key = if field.key.starts_with(RULE) {
                "limit"
            } else {
                &field.key
            };
            let lines = match wrap {
                LineWrap::At80 => wrapped(&field.value, VALUE_COLUMN, KEY_COLUMN),
                LineWrap::SingleLine => vec![field.value.as_str()],
            };
            let width = VALUE_COLUMN - KEY_COLUMN;
            text.push_str(&format!("{:KEY_COLUMN$}{key:width$}", ""));
            text.push_str(&lines.join(&format!("{CONTINUATION}\n{:KEY_COLUMN$}", "")));
            text.push('\n');
        }
        text.push_str("}\n");
    }
    text
}

/// The sets so far, and the one that is being read with the line where it begins.
#[derive(Default)]
struct QuotaFileReader {
    sets: Vec<Fields>,
    open: Option<(u32, Fields)>,
}

impl QuotaFileReader {
    fn line(&mut self, text: &str, line: u32) -> Result<(), Diagnostic> {
        let Some((first, mut fields)) = self.open.take() else {
            let Some(rest) = text.strip_prefix('{') else {
                let what = format!("each value in the attribute value list in line {line} should begin with \"{{\"");
                return Err(Diagnostic::new(Code::BadSyntax, what).why(format!("it begins with \"{text}\"")));
            };
            self.open = Some((line, Fields::new()));
            let rest = rest.trim_ascii();
            return if rest.is_empty() { Ok(()) } else { self.line(rest, line) };
        };
        if text == "}" {
            self.sets.push(fields);
            return Ok(());
        }
        let (text, is_last) = match text.strip_suffix('}') {
            Some(rest) if rest.ends_with(|letter: char| letter.is_ascii_whitespace()) && is_closed(rest) => {
                (rest.trim_ascii_end(), true)
            }
            Some(_) | None => (text, false),
        };
        let read = field(text, line, &fields).map(|field| fields.push(field));
        match is_last {
            true => self.sets.push(fields),
            false => self.open = Some((first, fields)),
        }
        read
    }
}

/// Whether no list in a text is still open.
fn is_closed(text: &str) -> bool {
    text.matches('{').count() == text.matches('}').count()
}

/// The field of a line in a set.
fn field(text: &str, line: u32, before: &Fields) -> Result<Field, Diagnostic> {
    let place = || format!("line {line}");
    let (key, value) = text
        .split_once(|letter: char| letter.is_ascii_whitespace())
        .unwrap_or((text, ""));
    let value = value.trim_ascii();
    if !KEYS.contains(&key) {
        return Err(unknown_attribute(key).at(place()));
    }
    if value.is_empty() {
        let refusal = Diagnostic::new(Code::BadSyntax, format!("attribute \"{key}\" has no value")).at(place());
        return Err(refusal.why("each line holds an attribute, blanks and its value"));
    }
    if key == "limit" {
        let rules = before.iter().filter(|field| field.key.starts_with(RULE)).count();
        return Ok(Field {
            key: QuotaSet::rule_key(rules),
            value: value.to_owned(),
            line,
        });
    }
    if before.value(key).is_some() {
        let refusal = Diagnostic::new(Code::BadSyntax, format!("attribute \"{key}\" appears more than once"));
        return Err(refusal.at(place()).fix("remove one of the lines, or begin another set"));
    }
    Ok(Field {
        key: key.to_owned(),
        value: value.to_owned(),
        line,
    })
}
