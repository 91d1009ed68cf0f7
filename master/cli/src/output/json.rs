//! `-fmt json`: one object with a version and what the text form shows, in the field names of the protocol.
//!
//! Times are milliseconds since the epoch, priorities millionths, memory bytes, as the names of the fields say.

use serde::Serialize;
use serde_json::{Map, Value};

/// The version of every JSON document. It is raised when a field changes its meaning or goes away.
pub const VERSION: u32 = 1;

/// A document of named parts, in order, ending with a newline.
#[derive(Debug)]
pub struct Document(Map<String, Value>);

impl Document {
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
        format!("{:#}\n", Value::Object(self.0))
    }
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
        let text = Document::new().with("jobs", &[1, 2]).finish();
        let read: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&read["version"], &read["jobs"][1]), (&Value::from(1), &Value::from(2)));
        assert!(text.ends_with("}\n"));
    }
}
