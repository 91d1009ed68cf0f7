//! From fields to the text that people read and edit, and back. Pure.

use proto::complex::Complex;
use proto::diagnostic::{Code, Diagnostic};
use proto::object::{Fields, LineWrap, Object, ObjectKind};
use proto::quota::{QuotaSet, parse_sets, print_sets};
use proto::sharetree::ShareTree;

/// What an execution host reports. It is shown with the host and is no part of the text that is
/// edited.
const REPORTED: [&str; 2] = ["load_values", "processors"];

/// The columns of the complex in their order.
pub const COMPLEX_COLUMNS: [&str; 8] = [
    "name",
    "shortcut",
    "type",
    "relop",
    "requestable",
    "consumable",
    "default",
    "urgency",
];

/// An object as `qconf -s…` prints it. The name is that of the host, for cluster configurations.
pub fn print(kind: ObjectKind, name: &str, fields: &Fields, wrap: LineWrap) -> String {
    if let Some(text) = text_of_form(kind, fields) {
        return text;
    }
    if kind == ObjectKind::ResourceQuota {
        return QuotaSet::from_fields(fields).map_or_else(|_| fields.print(kind, wrap), |set| print_sets(&[set], wrap));
    }
    let text = fields.print(kind, wrap);
    match kind == ObjectKind::ClusterConf {
        true => format!("#{}:\n{text}\n", if name.is_empty() { "global" } else { name }),
        false => text,
    }
}

/// An object as it is edited.
pub fn draft(kind: ObjectKind, fields: &Fields, wrap: LineWrap) -> String {
    text_of_form(kind, fields).unwrap_or_else(|| without_reported(kind, fields).print(kind, wrap))
}

/// The text of a kind that is no list of attributes with values.
fn text_of_form(kind: ObjectKind, fields: &Fields) -> Option<String> {
    if kind == ObjectKind::ComplexTable {
        Some(complex_text(fields))
    } else if kind == ObjectKind::ShareTree {
        Some(tree_text(fields))
    } else {
        None
    }
}

/// An object without what its host reports.
pub fn without_reported(kind: ObjectKind, fields: &Fields) -> Fields {
    let mut fields = fields.clone();
    if kind == ObjectKind::ExecHost {
        REPORTED.iter().for_each(|key| drop(fields.remove(key)));
    }
    fields
}

/// Where in a file something is of which the master says in which attribute: the line, if the
/// attribute is in the file.
pub fn place_in(path: &str, fields: &Fields, place: String) -> String {
    let line = fields.place(&place);
    if line.starts_with("line ") && line != place {
        format!("{path}, {line}")
    } else {
        place
    }
}

/// The complex of the fields in which it travels; none if a newer master has words in it that are
/// not known here.
pub fn complex_of(fields: &Fields) -> Option<Complex> {
    Complex::read("", fields).ok()
}

/// The table as 8.1.9 prints it, or else its bare lines.
fn complex_text(fields: &Fields) -> String {
    let lines = || {
        fields
            .iter()
            .map(|field| format!("{} {}\n", field.key, field.value))
            .collect()
    };
    complex_of(fields).map_or_else(lines, |complex| complex.to_string())
}

/// The nodes as 8.1.9 prints them, or else their bare lines.
fn tree_text(fields: &Fields) -> String {
    let lines = || {
        fields
            .iter()
            .map(|field| format!("{} {}\n", field.key, field.value))
            .collect()
    };
    ShareTree::read("", fields).map_or_else(|_| lines(), |tree| tree.to_string())
}

/// Reads the text of an object and checks all that can be checked without the cell. `name` is the
/// object's name where its text does not hold it: the host of a cluster configuration.
///
/// # Errors
/// Everything that is wrong, each with its line.
pub fn parse(kind: ObjectKind, name: &str, text: &str) -> Result<Fields, Vec<Diagnostic>> {
    if kind == ObjectKind::ComplexTable {
        return Complex::parse(text)
            .map(|complex| complex.write())
            .map_err(|refusals| refusals.into_iter().map(in_the_words_of_8_1_9).collect());
    }
    if kind == ObjectKind::ShareTree {
        return ShareTree::parse(text).map(|tree| tree.write());
    }
    let fields = if kind == ObjectKind::ResourceQuota {
        only_set(parse_sets(text)?)?
    } else {
        Fields::parse(&without_remarks(kind, text))?
    };
    // A host's configuration may change nothing.
    let may_be_empty = kind == ObjectKind::ClusterConf && name != "global";
    let fields = if may_be_empty { fields } else { not_empty(fields)? };
    // A stored scheduler configuration may be older than one of its attributes; a text states them
    // all.
    let stated = if kind == ObjectKind::SchedulerConf {
        kind.keys()
    } else {
        &[]
    };
    let mut refusals = fields.check_missing(kind, stated);
    refusals.extend(kind.settle(name, &fields).err().into_iter().flatten());
    if !refusals.is_empty() {
        return Err(refusals);
    }
    Ok(without_reported(kind, &fields))
}

/// The fields, unless there are none.
///
/// # Errors
/// That the text holds nothing.
pub fn not_empty(fields: Fields) -> Result<Fields, Vec<Diagnostic>> {
    let refusal = Diagnostic::new(Code::BadSyntax, EMPTY).fix("the option in small letters shows what is to be in it");
    if fields.is_empty() {
        Err(vec![refusal])
    } else {
        Ok(fields)
    }
}

/// The text without what follows a blank and `#`, for kinds whose values are lists of names: 8.1.9
/// takes that for a comment. Elsewhere it is part of a value, such as a command.
fn without_remarks(kind: ObjectKind, text: &str) -> String {
    let has_names = matches!(
        kind,
        ObjectKind::HostGroup | ObjectKind::ExecHost | ObjectKind::UserSet | ObjectKind::Project | ObjectKind::User
    );
    let bare = |line: &str| line.split(" #").next().unwrap_or_default().to_owned() + "\n";
    if has_names {
        text.lines().map(bare).collect()
    } else {
        text.to_owned()
    }
}

/// The one set of a text.
fn only_set(mut sets: Vec<Fields>) -> Result<Fields, Vec<Diagnostic>> {
    match (sets.pop(), sets.is_empty()) {
        (Some(set), true) => Ok(set),
        _ => Err(vec![Diagnostic::new(
            Code::BadSyntax,
            "error: the text does not hold one resource quota set",
        )]),
    }
}

/// 8.1.9 begins what is wrong with the form of a complex with `error:`, and says rules that an
/// attribute breaks as they are.
fn in_the_words_of_8_1_9(refusal: Diagnostic) -> Diagnostic {
    let is_form = refusal.code == Code::BadSyntax && refusal.what.starts_with(|first: char| first.is_ascii_lowercase());
    match is_form {
        true => Diagnostic {
            what: format!("error: {}", refusal.what),
            ..refusal
        },
        false => refusal,
    }
}

/// What 8.1.9 says last of a file that does not have the form of its kind.
pub fn not_correct(kind: ObjectKind, path: &str, refusals: &[Diagnostic]) -> Option<String> {
    let is_form = |refusal: &Diagnostic| refusal.what.starts_with("error: ");
    (kind == ObjectKind::ComplexTable && refusals.iter().any(is_form))
        .then(|| format!("Complex attribute file \"{path}\" is not correct"))
}

/// What 8.1.9 says of a file beyond a fault of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Tail {
    /// Nothing: the master finds such faults, and tells them in sentences of each kind.
    Nothing,
    /// That the object was not read.
    Object,
    /// That the file was not read either: its parser stopped.
    File,
}

/// The complex, configurations and quota sets are read in ways of their own.
fn tail_of(kind: ObjectKind, what: &str) -> Tail {
    let starts = |words: &[&str]| words.iter().any(|word| what.starts_with(word));
    let is_parsing = starts(&[
        "unknown attribute name",
        "error parsing",
        "reading conf file",
        "parameter \"",
    ]);
    let is_doubled = what.starts_with("attribute \"") && what.ends_with(" appears more than once");
    #[allow(
        clippy::wildcard_enum_match_arm,
        reason = "which text is refused matters more than the kind"
    )]
    match kind {
        ObjectKind::ComplexTable | ObjectKind::ClusterConf | ObjectKind::ResourceQuota => Tail::Nothing,
        _ if is_parsing || is_doubled || what.contains(" is not an u_long32 value") => Tail::File,
        _ if starts(&["required attribute", "rejecting invalid"]) => Tail::Object,
        ObjectKind::SchedulerConf if what.ends_with(" is not a time value") => Tail::Object,
        ObjectKind::Checkpoint if !starts(&["Invalid \"when\""]) => Tail::Object,
        _ => Tail::Nothing,
    }
}

/// What is wrong in a file, in the words of 8.1.9.
pub fn in_file(kind: ObjectKind, what: &str) -> String {
    match tail_of(kind, what) {
        Tail::Nothing => what.to_owned(),
        Tail::Object | Tail::File => what
            .split('\n')
            .map(|line| format!("error: {line}"))
            .collect::<Vec<_>>()
            .join("\n"),
    }
}

/// What 8.1.9 says last of a file that was refused, line by line; programs look for these.
pub fn not_read(kind: ObjectKind, path: &str, refusal: &Diagnostic) -> Vec<String> {
    let tail = tail_of(kind, &refusal.what);
    let reading = (tail == Tail::File).then(|| format!("error: error reading file: \"{path}\""));
    let last = last(kind, path).filter(|_| tail != Tail::Nothing);
    reading.into_iter().chain(last).collect()
}

/// How 8.1.9 says that an object of a kind was not read from its file.
pub fn last(kind: ObjectKind, path: &str) -> Option<String> {
    match kind {
        ObjectKind::Queue | ObjectKind::HostGroup | ObjectKind::ResourceQuota => None,
        ObjectKind::ExecHost => Some("invalid format".to_owned()),
        ObjectKind::ClusterConf => Some(format!("error reading configuration from file {path}")),
        ObjectKind::ComplexTable => Some(format!("Complex attribute file \"{path}\" is not correct")),
        ObjectKind::Pe
        | ObjectKind::SchedulerConf
        | ObjectKind::AdminHosts
        | ObjectKind::SubmitHosts
        | ObjectKind::Managers
        | ObjectKind::Operators
        | ObjectKind::Checkpoint
        | ObjectKind::Calendar
        | ObjectKind::UserSet
        | ObjectKind::Project
        | ObjectKind::User
        | ObjectKind::ShareTree => Some("error reading in file".to_owned()),
    }
}

/// What a text is refused with that holds nothing.
const EMPTY: &str = "the text holds no attribute";

/// The refusal of a file that holds nothing.
pub fn empty_file(kind: ObjectKind, path: &str, refusals: &[Diagnostic]) -> Option<Diagnostic> {
    let [refusal] = refusals else { return None };
    let is_empty = refusal.what == EMPTY || (kind == ObjectKind::ShareTree && refusal.what == "the text holds no node");
    is_empty.then(|| {
        let lines: Vec<String> = std::iter::once(format!("error: error reading file: \"{path}\""))
            .chain(last(kind, path))
            .collect();
        Diagnostic {
            what: lines.join("\n"),
            ..refusal.clone()
        }
        .why(refusal.what.clone())
    })
}

/// That an edit changed nothing, and of which object.
pub fn unchanged(kind: ObjectKind, name: &str) -> String {
    if kind == ObjectKind::ComplexTable {
        return "Complex attribute configuration has not been changed".to_owned();
    }
    let quoted = if name.is_empty() {
        String::new()
    } else {
        format!(" \"{name}\"")
    };
    format!("file unchanged\n  why: {kind}{quoted} is as it was")
}
