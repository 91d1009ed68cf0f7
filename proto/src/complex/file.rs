//! The text of `qconf -sc` and `qconf -Mc`: one line for each attribute, eight columns.

use super::{Attribute, Complex, Consumable, Relop, Requestable};
use crate::amount::{Millionths, Type};
use crate::diagnostic::{Code, Diagnostic};
use crate::id::AttributeName;
use crate::object::{Fields, Object, names};
use std::fmt;

/// The columns in their order.
const COLUMNS: [&str; MEANINGS.len()] = names(MEANINGS);

/// What each column means, for the manual page.
pub const MEANINGS: &[(&str, &str)] = &[
    ("name", "The name of the attribute. Load values and capacities have it."),
    ("shortcut", "A second, shorter name for requests."),
    (
        "type",
        "`INT`, `DOUBLE`, `TIME`, `MEMORY`, `BOOL`, `STRING`, `CSTRING` (letter case does not matter), `RESTRING` (with patterns), `HOST`, or `RSMAP` (numbered units).",
    ),
    (
        "relop",
        "How a request is compared with what is offered: `==`, `!=`, `<`, `<=`, `>`, `>=`; or `EXCL`, with which a job has the object alone.",
    ),
    (
        "requestable",
        "`YES`, `NO`, or `FORCED`: only jobs that ask for the attribute may use an object that has it.",
    ),
    (
        "consumable",
        "Whether jobs use the attribute up: `NO`, `YES` (for each slot), `JOB` (once for a job) or `HOST` (once on each host of a job).",
    ),
    ("default", "What a job takes of a consumable that it does not ask for."),
    ("urgency", "What a request adds to the urgency of a job."),
];
const FOOTER: &str = "# >#< starts a comment but comments are not saved across edits --------";

impl Complex {
    /// Reads the text of a complex. Comments begin with `#`; a backslash at the end joins a line
    /// with the next.
    ///
    /// # Errors
    /// With all that is wrong: where a line does not follow the form, its line and column under
    /// [`Code::BadSyntax`]; where the form is right, every rule that an attribute breaks, as
    /// [`Complex::new`].
    pub fn parse(text: &str) -> Result<Complex, Vec<Diagnostic>> {
        let (mut attributes, mut lines, mut refusals) = (Vec::new(), Vec::new(), Vec::new());
        for (line, content) in joined_lines(text) {
            match parse_line(&content) {
                None => {}
                Some(Ok(attribute)) => {
                    lines.push((attribute.name.clone(), line));
                    attributes.push(attribute);
                }
                Some(Err((column, refusal))) => refusals.push(refusal.at(place(line, column))),
            }
        }
        if !refusals.is_empty() {
            return Err(refusals);
        }
        if attributes.is_empty() {
            let what = "the text defines no complex attribute";
            return Err(vec![
                Diagnostic::new(Code::BadSyntax, what).fix("begin with the text that qconf -sc prints"),
            ]);
        }
        Complex::new(attributes).map_err(|refusals| with_lines(refusals, &lines))
    }
}

/// `line 63, field 3 (type)`.
fn place(line: usize, column: Option<usize>) -> String {
    match column {
        Some(column) => format!("line {line}, field {} ({})", column + 1, COLUMNS[column]),
        None => format!("line {line}"),
    }
}

/// Names the line beside the attribute, the last one where there are several of that name.
fn with_lines(refusals: Vec<Diagnostic>, lines: &[(AttributeName, usize)]) -> Vec<Diagnostic> {
    let locate = |refusal: Diagnostic| {
        let name = refusal.place.strip_prefix("attribute ");
        let line = lines
            .iter()
            .rev()
            .find(|(attribute, _)| Some(attribute.as_str()) == name)
            .map(|(_, line)| *line);
        match line {
            Some(line) => {
                let place = format!("line {line}, {}", refusal.place);
                refusal.at(place)
            }
            None => refusal,
        }
    };
    refusals.into_iter().map(locate).collect()
}

/// Lines with the number of their first part, continuation lines joined by a blank.
fn joined_lines(text: &str) -> Vec<(usize, String)> {
    let mut joined: Vec<(usize, String)> = Vec::new();
    let mut continues = false;
    for (index, line) in text.lines().enumerate() {
        let content = line.strip_suffix('\\').unwrap_or(line);
        match joined.last_mut().filter(|_| continues) {
            Some((_, start)) => {
                start.push(' ');
                start.push_str(content);
            }
            None => joined.push((index + 1, content.to_owned())),
        }
        continues = line.ends_with('\\');
    }
    joined
}

/// An error in a line and the column it is in, counted from 0.
type LineError = (Option<usize>, Diagnostic);

/// The attribute of a line; none if the line is blank or a comment.
fn parse_line(line: &str) -> Option<Result<Attribute, LineError>> {
    let columns: Vec<&str> = line.split_whitespace().collect();
    if columns.first().is_none_or(|first| first.starts_with('#')) {
        return None;
    }
    Some(parse_columns(&columns))
}

fn parse_columns(columns: &[&str]) -> Result<Attribute, LineError> {
    let [name, shortcut, r#type, relop, requestable, consumable, default, urgency] = *columns else {
        return Err(column_count(columns));
    };
    let syntax = |column, what| (Some(column), Diagnostic::new(Code::BadSyntax, what));
    let r#type = Type::parse(r#type).ok_or_else(|| {
        let (column, refusal) = syntax(2, format!("unknown complex attribute type \"{type}\""));
        (column, refusal.fix(one_of(&Type::ALL.map(Type::as_str))))
    })?;
    Ok(Attribute {
        name: name.into(),
        shortcut: shortcut.to_owned(),
        r#type,
        relop: keyword(3, relop, &Relop::ALL, Relop::as_str, Abbreviation::None)?,
        requestable: keyword(
            4,
            requestable,
            &Requestable::ALL,
            Requestable::as_str,
            Abbreviation::FirstLetter,
        )?,
        consumable: keyword(
            5,
            consumable,
            &Consumable::ALL,
            Consumable::as_str,
            Abbreviation::FirstLetter,
        )?,
        default: default.to_owned(),
        urgency: Millionths::parse(urgency).map_err(|error| {
            let what = format!(
                "The following error occurred for complex \"{name}\", while parsing the urgency value: \"double value\""
            );
            let (column, refusal) = syntax(7, what);
            (column, refusal.why(error.reason.to_string()))
        })?,
    })
}

/// A line with too few or too many columns.
fn column_count(columns: &[&str]) -> LineError {
    let what = match COLUMNS.get(columns.len()) {
        Some(missing) => format!("Complex {missing} definition is missing"),
        None => format!("the line has {} fields instead of {}", columns.len(), COLUMNS.len()),
    };
    (
        None,
        Diagnostic::new(Code::BadSyntax, what).fix(format!("write {}", COLUMNS.join(" "))),
    )
}

/// Whether the first letter is enough.
#[derive(Clone, Copy, PartialEq)]
enum Abbreviation {
    None,
    FirstLetter,
}

/// The value of a keyword, in any case.
fn keyword<T: Copy>(
    column: usize,
    text: &str,
    all: &[T],
    word: fn(T) -> &'static str,
    abbreviation: Abbreviation,
) -> Result<T, LineError> {
    let is_meant = |value: &&T| {
        let word = word(**value);
        let short = if abbreviation == Abbreviation::FirstLetter {
            &word[..1]
        } else {
            word
        };
        word.eq_ignore_ascii_case(text) || short.eq_ignore_ascii_case(text)
    };
    all.iter().find(is_meant).copied().ok_or_else(|| {
        let words: Vec<&str> = all.iter().map(|value| word(*value)).collect();
        let what = format!("unknown value \"{text}\" of the field {}", COLUMNS[column]);
        (Some(column), Diagnostic::new(Code::BadSyntax, what).fix(one_of(&words)))
    })
}

fn one_of(words: &[&str]) -> String {
    format!("write one of {}", words.join(" "))
}

impl fmt::Display for Complex {
    /// As `qconf -sc` prints it, byte for byte.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows: Vec<[String; 8]> = self.iter().map(Attribute::columns).collect();
        let widths = widths(&rows);
        let line = |cells: &mut dyn Iterator<Item = &str>| {
            cells
                .zip(&widths)
                .map(|(cell, width)| format!("{cell:width$}"))
                .collect::<String>()
        };
        let header = line(&mut COLUMNS.into_iter()).replacen("name ", "#name", 1);
        writeln!(f, "{header}\n#{}", "-".repeat(header.len() - 1))?;
        for row in &rows {
            writeln!(f, "{}", line(&mut row.iter().map(String::as_str)).trim_end())?;
        }
        writeln!(f, "{FOOTER}")
    }
}

/// A column is one wider than its title and four wider than its longest value (measured on 8.1.9).
fn widths(rows: &[[String; 8]]) -> [usize; 8] {
    std::array::from_fn(|column| {
        let longest = rows
            .iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or_default();
        (COLUMNS[column].len() + 1).max(longest + 4)
    })
}

impl Attribute {
    /// The eight columns of its line.
    fn columns(&self) -> [String; 8] {
        let Attribute {
            name,
            shortcut,
            r#type,
            relop,
            requestable,
            consumable,
            default,
            urgency,
        } = self;
        [
            name.to_string(),
            shortcut.clone(),
            r#type.to_string(),
            relop.as_str().to_owned(),
            requestable.as_str().to_owned(),
            consumable.as_str().to_owned(),
            default.clone(),
            urgency.to_string(),
        ]
    }
}

impl fmt::Display for Attribute {
    /// The columns of its line, one blank between them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.columns().join(" "))
    }
}

/// The complex as it is stored and travels: one field for each attribute, its name and the other
/// seven columns.
impl Object for Complex {
    fn template(_: &str) -> Self {
        Complex::built_in()
    }

    fn read(_: &str, fields: &Fields) -> Result<Self, Vec<Diagnostic>> {
        Complex::parse(
            &fields
                .iter()
                .map(|field| format!("{} {}\n", field.key, field.value))
                .collect::<String>(),
        )
    }

    fn write(&self) -> Fields {
        let columns = |line: String| line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ");
        self.iter()
            .map(|attribute| (attribute.name.to_string(), columns(attribute.to_string())))
            .collect()
    }
}
