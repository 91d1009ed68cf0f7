//! From fields to the text that people read and edit, and back. Pure.

use proto::complex::Complex;
use proto::conf::ClusterConf;
use proto::diagnostic::{Code, Diagnostic};
use proto::host::ExecHost;
use proto::hostgroup::HostGroup;
use proto::id::HostName;
use proto::object::{Fields, ObjectKind, Wrap};
use proto::pe::ParallelEnvironment;
use proto::policy::SchedulerConf;
use proto::queue::ClusterQueue;

/// What an execution host reports. It is shown with the host and is no part of the text that is edited.
const REPORTED: [&str; 2] = ["load_values", "processors"];

/// The columns of the complex in their order.
pub const COMPLEX_COLUMNS: [&str; 8] =
    ["name", "shortcut", "type", "relop", "requestable", "consumable", "default", "urgency"];

/// An object as `qconf -s…` prints it. The name is that of the host, for cluster configurations.
pub fn print(kind: ObjectKind, name: &str, fields: &Fields, wrap: Wrap) -> String {
    if kind == ObjectKind::ComplexTable {
        return complex_text(fields);
    }
    let text = fields.print(kind, wrap);
    match kind == ObjectKind::ClusterConf {
        true => format!("#{}:\n{text}\n", if name.is_empty() { "global" } else { name }),
        false => text,
    }
}

/// An object as it is edited.
pub fn draft(kind: ObjectKind, fields: &Fields, wrap: Wrap) -> String {
    if kind == ObjectKind::ComplexTable {
        return complex_text(fields);
    }
    without_reported(kind, fields).print(kind, wrap)
}

/// An object without what its host reports.
pub fn without_reported(kind: ObjectKind, fields: &Fields) -> Fields {
    let mut fields = fields.clone();
    if kind == ObjectKind::ExecHost {
        REPORTED.iter().for_each(|key| drop(fields.remove(key)));
    }
    fields
}

/// Where in a file something is of which the master says in which attribute: the line, if the attribute is in the file.
pub fn place_in(path: &str, fields: &Fields, place: String) -> String {
    let line = fields.place(&place);
    if line.starts_with("line ") && line != place { format!("{path}, {line}") } else { place }
}

/// The complex of the fields in which it travels; none if a newer master has words in it that are not known here.
pub fn complex_of(fields: &Fields) -> Option<Complex> {
    Complex::parse(&complex_lines(fields)).ok()
}

fn complex_lines(fields: &Fields) -> String {
    fields.iter().map(|field| format!("{} {}\n", field.key, field.value)).collect()
}

/// The table as 8.1.9 prints it, or else its bare lines.
fn complex_text(fields: &Fields) -> String {
    complex_of(fields).map_or_else(|| complex_lines(fields), |complex| complex.to_string())
}

/// The complex as it travels: one field for each attribute, its name and its other columns.
pub fn complex_fields(complex: &Complex) -> Fields {
    let columns = |line: String| line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ");
    complex.iter().map(|attribute| (attribute.name.to_string(), columns(attribute.to_string()))).collect()
}

/// Reads the text of an object and checks all that can be checked without the cell. `name` is the object's name where its
/// text does not hold it: the host of a cluster configuration.
///
/// # Errors
/// Everything that is wrong, each with its line.
pub fn parse(kind: ObjectKind, name: &str, text: &str) -> Result<Fields, Vec<Diagnostic>> {
    if kind == ObjectKind::ComplexTable {
        return Complex::parse(text)
            .map(|complex| complex_fields(&complex))
            .map_err(|refusals| refusals.into_iter().map(in_the_words_of_8_1_9).collect());
    }
    let fields = Fields::parse(text)?;
    check(kind, name, &fields)?;
    Ok(without_reported(kind, &fields))
}

fn check(kind: ObjectKind, name: &str, fields: &Fields) -> Result<(), Vec<Diagnostic>> {
    match kind {
        ObjectKind::ExecHost => ExecHost::from_fields(fields).map(drop),
        ObjectKind::Queue => ClusterQueue::from_fields(fields).map(drop),
        ObjectKind::HostGroup => HostGroup::from_fields(fields).map(drop),
        ObjectKind::Pe => ParallelEnvironment::from_fields(fields).map(drop),
        ObjectKind::SchedulerConf => SchedulerConf::from_fields(fields).map(drop),
        ObjectKind::ClusterConf => ClusterConf::from_fields(&HostName::new(name), fields).map(drop),
        ObjectKind::ComplexTable
        | ObjectKind::AdminHosts
        | ObjectKind::SubmitHosts
        | ObjectKind::Managers
        | ObjectKind::Operators
        | ObjectKind::Checkpoint
        | ObjectKind::Calendar
        | ObjectKind::UserSet
        | ObjectKind::Project
        | ObjectKind::User
        | ObjectKind::ResourceQuota
        | ObjectKind::ShareTree => Ok(()),
    }
}

/// 8.1.9 begins what is wrong with the form of a complex with `error:`, and says rules that an attribute breaks as they are.
fn in_the_words_of_8_1_9(refusal: Diagnostic) -> Diagnostic {
    let is_form = refusal.code == Code::BadSyntax && refusal.what.starts_with(|first: char| first.is_ascii_lowercase());
    match is_form {
        true => Diagnostic { what: format!("error: {}", refusal.what), ..refusal },
        false => refusal,
    }
}

/// What 8.1.9 says last of a file that does not have the form of its kind.
pub fn not_correct(kind: ObjectKind, path: &str, refusals: &[Diagnostic]) -> Option<String> {
    let is_form = |refusal: &Diagnostic| refusal.what.starts_with("error: ");
    (kind == ObjectKind::ComplexTable && refusals.iter().any(is_form))
        .then(|| format!("Complex attribute file \"{path}\" is not correct"))
}

/// The name that an object's own text gives it; empty for kinds whose text has none.
pub fn name_in(kind: ObjectKind, fields: &Fields) -> &str {
    let is_named = matches!(kind, ObjectKind::ExecHost | ObjectKind::Queue | ObjectKind::HostGroup | ObjectKind::Pe);
    let key = kind.keys().first().filter(|_| is_named);
    key.and_then(|key| fields.value(key)).unwrap_or_default()
}

/// That an edit changed nothing.
pub fn unchanged(kind: ObjectKind, name: &str) -> String {
    if kind == ObjectKind::ComplexTable {
        return "Complex attribute configuration has not been changed".to_owned();
    }
    let quoted = if name.is_empty() { String::new() } else { format!(" \"{name}\"") };
    format!("{kind}{quoted} has not been changed")
}
