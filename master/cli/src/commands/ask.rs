//! What the commands that only ask have in common: lists of options, selection of queues, the three
//! formats, and the answers.

use crate::args::CommandLine;
use crate::cell_address::CellAddress;
use crate::client::Client;
use crate::fail::Fail;
use crate::{exit, output};
use proto::diagnostic::{Code, Diagnostic};
use proto::object::ObjectKind;
use proto::request::{ResourceList, ResourceRequest};
use proto::restring::Wildcards;
use proto::wire::client::{Answer, Query, QueueFilter, Reply};
use proto::wire::view::{Data, HostView, JobRow, QueueView};

/// How an answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people, and for the programs that read columns.
    Text,
    /// `-xml`.
    Xml,
    /// `-fmt json`.
    Json,
}

impl Format {
    /// Reads `-xml` and `-fmt`.
    ///
    /// # Errors
    /// A format that there is not.
    pub fn from_command_line(parsed: &CommandLine) -> Result<Self, Fail> {
        match parsed.value("-fmt") {
            Some("json") => Ok(Format::Json),
            Some("xml") => Ok(Format::Xml),
            Some("text") => Ok(Format::Text),
            Some(other) => Err(Fail::bad_value(format!("error: unknown format \"{other}\"")).fix("text, xml or json")),
            None if parsed.has("-xml") => Ok(Format::Xml),
            None => Ok(Format::Text),
        }
    }
}

/// Connects to the master of the cell that the command line or this shell names, for answers that
/// are written in `format`.
///
/// # Errors
/// See [`Client::connect`].
pub fn connect(program: &str, format: Format) -> Result<Client, Fail> {
    connect_at(&CellAddress::from_environment(), program, format)
}

/// Connects to the master of a cell, for answers that are written in `format`.
///
/// # Errors
/// See [`Client::connect`].
pub fn connect_at(address: &CellAddress, program: &str, format: Format) -> Result<Client, Fail> {
    let client = Client::connect(address, program)?;
    Ok(match format {
        Format::Text => client,
        Format::Xml | Format::Json => client.with_raw_values(),
    })
}

/// Everything that all uses of an option named, taken apart at commas.
pub fn list(parsed: &CommandLine, name: &str) -> Vec<String> {
    let uses = parsed.given.iter().filter(|given| given.name == name);
    let words = uses.flat_map(|given| &given.values).flat_map(|value| value.split(','));
    words
        .map(str::trim)
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

/// The list of an option that may stand without one: none where it is not given, empty for all.
pub fn optional_list(parsed: &CommandLine, name: &str) -> Option<Vec<String>> {
    parsed.has(name).then(|| list(parsed, name))
}

/// The list of the last use of an option, taken apart at commas and blanks: none where it is not
/// given, empty for all.
pub fn last_list(parsed: &CommandLine, name: &str) -> Option<Vec<String>> {
    let last = parsed.given.iter().rev().find(|given| given.name == name)?;
    let words = last.values.iter().flat_map(|value| value.split([',', ' ']));
    Some(words.filter(|word| !word.is_empty()).map(str::to_owned).collect())
}

/// All `-l` together.
///
/// # Errors
/// As [`ResourceList::parse`].
pub fn resources(parsed: &CommandLine) -> Result<Vec<ResourceRequest>, Fail> {
    let mut all = ResourceList::default();
    for given in parsed.given.iter().filter(|given| given.name == "-l") {
        for value in &given.values {
            all.merge(ResourceList::parse(value)?);
        }
    }
    Ok(all.into())
}

/// The options that select queues: `-q -l -pe -U -qs`.
///
/// # Errors
/// A state letter that there is not, or as [`resources`].
pub fn queue_filter(parsed: &CommandLine) -> Result<QueueFilter, Fail> {
    let states = state_letters(parsed, "-qs", "acdosuACDES")?;
    Ok(QueueFilter {
        queues: list(parsed, "-q"),
        resources: resources(parsed)?,
        pes: list(parsed, "-pe"),
        users: list(parsed, "-U"),
        states,
        attributes: None,
        explain: String::new(),
        load_value: String::new(),
    })
}

/// The letters of the last `-qs` or `-explain`.
///
/// # Errors
/// A letter that is not one of `known`, in the words of 8.1.9.
pub fn state_letters(parsed: &CommandLine, name: &str, known: &str) -> Result<String, Fail> {
    let letters = list(parsed, name).concat();
    match letters.chars().find(|letter| !known.contains(*letter)) {
        None => Ok(last_list(parsed, name).unwrap_or_default().concat()),
        Some(letter) => {
            let what = format!("unknown queue state: {letter} found in string: {letters}");
            // 8.1.9 tells it twice.
            let what = format!("error: {what}\n{what}");
            let refusal = Diagnostic::new(Code::BadValue, what).at(name.to_owned());
            Err(Fail::new(exit::FAILED, refusal.fix(format!("any of: {known}"))))
        }
    }
}

/// Refuses patterns of parallel environments that none matches, as `-pe` of 8.1.9 does.
///
/// # Errors
/// `error: no such parallel environment`.
pub fn check_pes(client: &mut Client, patterns: &[String]) -> Result<(), Fail> {
    if patterns.is_empty() {
        return Ok(());
    }
    let known = names(client, ObjectKind::Pe)?;
    let is_known = |pattern: &String| known.iter().any(|name| matches(pattern, name));
    if patterns.iter().any(is_known) {
        return Ok(());
    }
    let refusal = Diagnostic::new(Code::UnknownObject, "error: no such parallel environment");
    Err(refusal.fix("qconf -spl lists them").into())
}

/// Refuses requests of resources that the complex does not have, by name or shortcut.
///
/// # Errors
/// `error: unknown resource "NAME"`.
pub fn check_resources(client: &mut Client, requests: &[ResourceRequest]) -> Result<(), Fail> {
    if requests.is_empty() {
        return Ok(());
    }
    let complex = Query::Object {
        kind: ObjectKind::ComplexTable,
        name: String::new(),
    };
    let Some(Data::Object(complex)) = data(client, complex)? else {
        return Ok(());
    };
    let is_known = |request: &&ResourceRequest| {
        let shortcut = |value: &str| {
            value
                .split_whitespace()
                .next()
                .is_some_and(|shortcut| shortcut == request.name)
        };
        complex
            .iter()
            .any(|field| field.key == request.name || shortcut(&field.value))
    };
    match requests.iter().find(|request| !is_known(request)) {
        None => Ok(()),
        Some(request) => {
            let what = format!("error: unknown resource \"{}\"", request.name);
            Err(Diagnostic::new(Code::UnknownResource, what)
                .at("-l")
                .fix("qconf -sc lists them")
                .into())
        }
    }
}

/// Whether a pattern with wildcards matches a name; a text without wildcards matches only itself.
pub fn matches(pattern: &str, name: &str) -> bool {
    Wildcards::new(pattern).matches(name)
}

/// The login name of whoever calls; the number of the user where it has none.
pub fn login_name() -> String {
    let uid = nix::unistd::getuid();
    let user = nix::unistd::User::from_uid(uid).ok().flatten();
    user.map_or_else(|| uid.to_string(), |user| user.name)
}

/// Asks, prints warnings, and returns the data.
///
/// # Errors
/// The first refusal in the answer.
pub fn data(client: &mut Client, query: Query) -> Result<Option<Data>, Fail> {
    settled(client.query(query)?)
}

/// The data of an answer, after its warnings are printed.
///
/// # Errors
/// The first refusal in it.
pub fn settled(reply: Reply) -> Result<Option<Data>, Fail> {
    let Reply { more: _, answers, data } = reply;
    for answer in answers {
        match answer {
            Answer::Refused(refusal) => return Err(refusal.into()),
            Answer::Warning(warning) => output::diagnostic(&warning),
            Answer::Done(text) => output::note(&text),
        }
    }
    Ok(data)
}

/// Asks for rows of `qstat`.
///
/// # Errors
/// As [`data`].
pub fn jobs(client: &mut Client, query: Query) -> Result<Vec<JobRow>, Fail> {
    match data(client, query)? {
        Some(Data::Jobs(rows)) => Ok(rows),
        other => unexpected(other.as_ref()),
    }
}

/// Asks for queue instances.
///
/// # Errors
/// As [`data`].
pub fn queues(client: &mut Client, filter: QueueFilter) -> Result<Vec<QueueView>, Fail> {
    match data(client, Query::Queues(filter))? {
        Some(Data::Queues(views)) => Ok(views),
        other => unexpected(other.as_ref()),
    }
}

/// Asks for the names of cluster queues without a queue instance.
///
/// # Errors
/// As [`data`].
pub fn queues_without_hosts(client: &mut Client) -> Result<Vec<String>, Fail> {
    match data(client, Query::QueuesWithoutHosts)? {
        Some(Data::Names(names)) => Ok(names),
        other => unexpected(other.as_ref()),
    }
}

/// Asks for hosts.
///
/// # Errors
/// As [`data`].
pub fn hosts(client: &mut Client, query: Query) -> Result<Vec<HostView>, Fail> {
    match data(client, query)? {
        Some(Data::Hosts(views)) => Ok(views),
        other => unexpected(other.as_ref()),
    }
}

/// Asks for the names of all objects of a kind.
///
/// # Errors
/// As [`data`].
pub fn names(client: &mut Client, kind: ObjectKind) -> Result<Vec<String>, Fail> {
    match data(client, Query::Names { kind })? {
        Some(Data::Names(names)) => Ok(names),
        other => unexpected(other.as_ref()),
    }
}

/// An answer without data is an empty list; data of another kind is a master of another version.
pub fn unexpected<T: Default>(data: Option<&Data>) -> Result<T, Fail> {
    match data {
        None => Ok(T::default()),
        Some(_) => {
            let refusal = Diagnostic::new(Code::BadMessage, "error: qmaster answered another question");
            Err(refusal
                .fix("commands and daemons have to be of one version: gridwright -help tells the version")
                .into())
        }
    }
}
