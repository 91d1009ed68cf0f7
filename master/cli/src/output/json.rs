//! `-fmt json`: one object with a version and what the text form shows, in the field names of the
//! protocol.
//!
//! Times are milliseconds since the epoch, priorities millionths, memory bytes, as the names of the
//! fields say.

use super::escape;
use proto::text;
use serde::Serialize;
use serde_json::{Map, Value};

/// The version of every JSON document. It is raised when a field changes its meaning or goes away.
pub const VERSION: u32 = 1;

/// A document of named parts, in order, ending with a newline.
#[derive(Debug)]
pub struct JsonDocument(Map<String, Value>);

impl JsonDocument {
    /// A document with its version alone.
    pub fn new() -> Self {
        Self(Map::from_iter([("version".to_owned(), Value::from(VERSION))]))
    }

    /// The same with a part more.
    pub fn with(mut self, name: &str, part: &impl Serialize) -> Self {
        self.0.insert(name.to_owned(), value(part));
        self
    }

    /// The text.
    pub fn finish(self) -> String {
        ascii_controls(&format!("{:#}\n", Value::Object(self.0)))
    }
}

/// A value on a line of its own.
pub fn line(value: &Value) -> String {
    ascii_controls(&format!("{value}\n"))
}

/// The document with the control characters that JSON leaves as they are written as JSON can write
/// them, so that a terminal shows them. A byte that is not UTF-8 has no place in a document.
fn ascii_controls(document: &str) -> String {
    let document = text::to_utf8(document);
    let is_left = |character: char| escape::is_control(character) && character != '\n';
    if !document.chars().any(is_left) {
        return document.into_owned();
    }
    let mut text = String::with_capacity(document.len() + 8);
    for character in document.chars() {
        match is_left(character) {
            // All of them have four digits.
            true => text.push_str(&format!("\\u{:04x}", u32::from(character))),
            false => text.push(character),
        }
    }
    text
}

/// Anything as JSON.
pub fn value(part: &impl Serialize) -> Value {
    serde_json::to_value(part).expect("the views hold strings, numbers, lists and maps with text keys")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_names_its_version() {
        let text = JsonDocument::new().with("jobs", &[1, 2]).finish();
        let read: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&read["version"], &read["jobs"][1]), (&Value::from(1), &Value::from(2)));
        assert!(text.ends_with("}\n"));
    }

    #[test]
    fn control_characters_are_written_in_ascii_and_read_as_they_were() {
        let name = "a\x1b[31m\u{9b}2J\u{7f}\u{202e}\nb";
        for text in [
            JsonDocument::new().with("name", &name).finish(),
            line(&serde_json::json!({ "name": name })),
        ] {
            assert_eq!(crate::output::escape::text(&text), text);
            let read: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(read["name"], Value::from(name));
        }
    }
}
