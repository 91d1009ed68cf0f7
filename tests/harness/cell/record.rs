//! Accounting records as `qacct -j` prints them.

use std::collections::BTreeMap;

/// One record: the values by their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record(BTreeMap<String, String>);

impl Record {
    /// The value of a field; empty if it is not there.
    pub fn value(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// The number that a value begins with.
    ///
    /// # Panics
    /// If it begins with none.
    pub fn number(&self, name: &str) -> i64 {
        let value = self.value(name);
        let digits = value
            .split(|c: char| c.is_whitespace() || c == ':')
            .next()
            .unwrap_or_default();
        digits
            .parse()
            .unwrap_or_else(|_| panic!("{name} is no number: {value:?} in {self:?}"))
    }
}

/// All records of an answer.
pub fn records(text: &str) -> Vec<Record> {
    let blocks = text.split("==============================================================");
    let parse = |block: &str| {
        let pairs = block.lines().filter_map(|line| line.split_once(char::is_whitespace));
        Record(
            pairs
                .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
                .collect(),
        )
    };
    blocks
        .map(parse)
        .filter(|record| !record.value("jobnumber").is_empty())
        .collect()
}
