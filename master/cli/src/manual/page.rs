//! One manual page: its sections and paragraphs, as roff for man(7).
//!
//! Words between backticks are set in bold, as everywhere in the texts of the tables.

use roff::{Inline, Roff, bold, italic, roman};

/// A page that is being written.
pub struct Page {
    roff: Roff,
}

/// A file of the manual.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Where it lies below the directory of the manual, such as `man1/qsub.1`.
    pub path: String,
    /// Its content.
    pub text: String,
}

impl File {
    /// The place of a page.
    pub fn path_of(name: &str, section: u8) -> String {
        format!("man{section}/{name}.{section}")
    }

    /// A page that stands for another one.
    pub fn alias(name: &str, other: &str, section: u8) -> File {
        File {
            path: Self::path_of(name, section),
            text: format!(".so {}\n", Self::path_of(other, section)),
        }
    }
}

impl Page {
    /// A page with its heading and the section NAME. `line` says in a line what it is about.
    pub fn new(name: &str, section: u8, line: &str) -> Page {
        let mut roff = Roff::new();
        let book = match section {
            1 => "Gridwright commands",
            5 => "Gridwright file formats",
            _ => "Gridwright daemons",
        };
        // There is no date: the pages of one version are always the same. The empty argument keeps
        // its place only if it is quoted.
        let (title, version) = (name.to_uppercase(), format!("Gridwright {}", version::RELEASE));
        roff.control("TH", [&title, &section.to_string(), "\"\"", &version, book]);
        let mut page = Page { roff };
        page.section("NAME");
        page.roff.text([roman(format!("{name} - {line}"))]);
        page
    }

    /// Begins a section.
    pub fn section(&mut self, name: &str) {
        self.roff.control("SH", [name]);
    }

    /// Begins a part of a section.
    pub fn subsection(&mut self, name: &str) {
        self.roff.control("SS", [name]);
    }

    /// A line of the synopsis: the command in bold, what follows as it is.
    pub fn synopsis(&mut self, command: &str, rest: &str) {
        self.roff.control("PP", []);
        self.roff.text([bold(command), roman(format!(" {rest}"))]);
    }

    /// A paragraph.
    pub fn paragraph(&mut self, text: &str) {
        self.roff.control("PP", []);
        self.words(text);
    }

    /// A term in bold, with its values, and what it means in one or more paragraphs.
    pub fn item(&mut self, term: &str, values: &str, paragraphs: &[&str]) {
        self.roff.control("TP", []);
        let mut head = vec![bold(term)];
        if !values.is_empty() {
            head.extend([roman(" "), italic(values)]);
        }
        self.roff.text(head);
        let mut paragraphs = paragraphs.iter().filter(|text| !text.is_empty());
        if let Some(first) = paragraphs.next() {
            self.words(first);
        }
        for text in paragraphs {
            self.roff.control("IP", []);
            self.words(text);
        }
    }

    /// Lines that are shown as they are.
    pub fn example(&mut self, text: &str) {
        self.roff.control("PP", []).control("nf", []).control("RS", ["4"]);
        for line in text.lines() {
            self.roff.text([roman(line)]);
        }
        self.roff.control("RE", []).control("fi", []);
    }

    /// The finished file.
    pub fn file(self, name: &str, section: u8) -> File {
        File {
            path: File::path_of(name, section),
            text: self.roff.render(),
        }
    }

    fn words(&mut self, text: &str) {
        let text = text.replace('…', "...");
        let parts = text.split('`').enumerate().filter(|(_, part)| !part.is_empty());
        let inlines: Vec<Inline> = parts
            .map(|(at, part)| if at % 2 == 1 { bold(part) } else { roman(part) })
            .collect();
        self.roff.text(inlines);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_roff_in_which_no_text_is_taken_for_a_request() {
        let mut page = Page::new("qx", 1, "does x-ray's work");
        page.section("OPTIONS");
        page.item("-a", "date_time", &["`.so` begins a line, a \\ does not.", "Second."]);
        page.example(".hidden\n'x");
        let text = page.file("qx", 1).text;
        for line in [
            ".TH QX 1 \"\" \"Gridwright VERSION\" \"Gridwright commands\"",
            "qx \\- does x\\-ray\\*(Aqs work",
            "\\fB\\-a\\fR \\fIdate_time\\fR",
            "\\fB.so\\fR begins a line, a \\\\ does not.",
            "\\&.hidden",
            "\\*(Aqx",
        ] {
            let line = line.replace("VERSION", version::RELEASE);
            assert!(text.lines().any(|other| other == line), "{line}: {text}");
        }
    }
}
