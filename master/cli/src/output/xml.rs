//! A writer for the XML of Grid Engine 8.1.9: two blanks a level, no default namespace, empty
//! elements in full.
//!
//! Programs match single lines of it with regular expressions, so the layout is part of the
//! contract.

use super::escape::is_control;
use proto::text;
use std::fmt::{Display, Write as _};

/// A document that is being written.
#[derive(Debug)]
pub struct XmlDocument {
    text: String,
    open: Vec<String>,
}

impl XmlDocument {
    /// A document with its root element open. The two blanks behind the name are those of 8.1.9.
    pub fn new(root: &str, schema: &str) -> Self {
        let head = "http://arc.liv.ac.uk/repos/darcs/sge/source/dist/util/resources/schemas/qstat";
        let text = format!("<?xml version='1.0'?>\n<{root}  xmlns:xsd=\"{head}/{schema}.xsd\">\n");
        Self {
            text,
            open: vec![root.to_owned()],
        }
    }

    /// Opens an element.
    pub fn open(&mut self, name: &str) {
        self.open_with(name, &[]);
    }

    /// Opens an element with attributes.
    pub fn open_with(&mut self, name: &str, attributes: &[(&str, &str)]) {
        let attributes = attribute_text(attributes);
        self.line(&format!("<{name}{attributes}>"));
        self.open.push(name.to_owned());
    }

    /// Closes the innermost element.
    pub fn close(&mut self) {
        if let Some(name) = self.open.pop() {
            self.line(&format!("</{name}>"));
        }
    }

    /// Writes an element that holds text alone.
    pub fn leaf(&mut self, name: &str, value: impl Display) {
        self.leaf_with(name, &[], value);
    }

    /// The same with attributes.
    pub fn leaf_with(&mut self, name: &str, attributes: &[(&str, &str)], value: impl Display) {
        let attributes = attribute_text(attributes);
        let value = escape(&value.to_string());
        self.line(&format!("<{name}{attributes}>{value}</{name}>"));
    }

    /// Closes everything that is open and returns the text.
    pub fn finish(mut self) -> String {
        while !self.open.is_empty() {
            self.close();
        }
        self.text
    }

    fn line(&mut self, line: &str) {
        let _ = writeln!(self.text, "{:indent$}{line}", "", indent = 2 * self.open.len());
    }
}

fn attribute_text(attributes: &[(&str, &str)]) -> String {
    attributes
        .iter()
        .map(|(name, value)| format!(" {name}=\"{}\"", escape(value)))
        .collect()
}

/// The text with what XML gives a meaning replaced, and control characters as references, so that a
/// terminal shows the document as it is; what XML 1.0 does not allow at all becomes `?`.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text::to_utf8(text).chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&apos;"),
            '\t' | '\n' => escaped.push(character),
            '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'.. if is_control(character) => {
                let _ = write!(escaped, "&#{};", u32::from(character));
            }
            ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'.. => escaped.push(character),
            _ => escaped.push('?'),
        }
    }
    escaped
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Checks that every element that is opened is closed in order, and that no text holds a bare
    /// sign of XML.
    pub fn assert_well_formed(text: &str) {
        let mut open: Vec<&str> = Vec::new();
        let body = text.strip_prefix("<?xml version='1.0'?>\n").expect("a declaration");
        let mut rest = body;
        while let Some(start) = rest.find('<') {
            assert!(!rest[..start].contains('>'), "bare > in {:?}", &rest[..start]);
            let end = start + rest[start..].find('>').expect("a tag ends");
            let tag = &rest[start + 1..end];
            match tag.strip_prefix('/') {
                Some(name) => assert_eq!(open.pop(), Some(name)),
                None => open.push(tag.split_whitespace().next().unwrap_or_default()),
            }
            rest = &rest[end + 1..];
        }
        assert!(open.is_empty(), "left open: {open:?}");
    }

    #[test]
    fn elements_are_indented_and_closed() {
        let mut document = XmlDocument::new("job_info", "qstat");
        document.open("queue_info");
        document.leaf_with("resource", &[("name", "a\"b")], "<1>");
        document.leaf("queue_name", "");
        let text = document.finish();
        assert_well_formed(&text);
        assert!(text.ends_with(
            "  <queue_info>\n    <resource name=\"a&quot;b\">&lt;1&gt;</resource>\n    <queue_name></queue_name>\n  </queue_info>\n</job_info>\n"
        ));
    }

    #[test]
    fn control_characters_are_references_that_every_reader_resolves() {
        assert_eq!(escape("a\u{9b}2J\u{7f}\r\x1bb"), "a&#155;2J&#127;&#13;?b");
        assert_eq!(
            crate::output::escape::text(&escape("a\u{9b}\u{202e}\rb\n")),
            escape("a\u{9b}\u{202e}\rb\n")
        );
    }

    #[test]
    fn bytes_are_one_sign_each_and_characters_for_private_use_are_kept() {
        assert_eq!(escape(&text::from_bytes(b"a\xff\xe9")), "a\u{fffd}\u{fffd}");
        assert_eq!(
            escape(&text::from_bytes("a\u{ef80}\u{efff}".as_bytes())),
            "a\u{ef80}\u{efff}"
        );
    }

    proptest! {
        #[test]
        fn any_text_stays_well_formed(value in ".*", attribute in ".*") {
            let mut document = XmlDocument::new("job_info", "qstat");
            document.leaf_with("a", &[("name", &attribute)], &value);
            assert_well_formed(&document.finish());
        }
    }
}
