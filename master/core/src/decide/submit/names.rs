//! Names that a submission chooses: of the job, of its account.

use proto::common::Common;
use proto::complex::Complex;
use proto::diagnostic::{Code, Diagnostic};
use proto::job::{JobSpec, Requests};
use proto::request::ResourceRequest;

/// Bytes from which on a name of a job is refused, and bytes that any other name has at most, as in
/// 8.1.9.
const TOO_LONG_BYTES: usize = 512;

/// Characters that no name may hold, with their names.
const FORBIDDEN: [(char, &str); 10] = [
    ('\n', "Newline ('\\n')"),
    ('\t', "Tabulator ('\\t')"),
    ('\r', "Carriage return ('\\r')"),
    ('/', "Slash ('/')"),
    (':', "Colon (':')"),
    ('@', "At ('@')"),
    ('\\', "Backslash ('\\\\')"),
    ('*', "Asterisk ('*')"),
    ('?', "Questionmark ('?')"),
    (' ', "Space (' ')"),
];

/// Words that mean something else where names stand.
const KEYWORDS: [&str; 3] = ["NONE", "ALL", "TEMPLATE"];

/// Takes empty options as not given.
pub(super) fn normalise(spec: &mut JobSpec) {
    spec.project = spec.project.take().filter(|project| !project.is_empty());
    spec.account = spec.account.take().filter(|account| !account.is_empty());
}

/// Brings requests to the one form in which they are kept. Those that have it stay shared with
/// others.
pub(in crate::decide) fn make_canonical(complex: &Complex, requests: &mut Common<Requests>) {
    let mut canonical = (**requests).clone();
    canonical.make_canonical(complex);
    if canonical != **requests {
        *requests = canonical.into();
    }
}

/// Gives the place of a refusal or warning the request that was typed. `qsub` looks for it in the
/// lines of a script, and it does not know the complex.
pub(super) fn place_as_typed(complex: &Complex, typed: &Requests, said: Diagnostic) -> Diagnostic {
    match typed_place(complex, typed, &said.place) {
        Some(place) => said.at(place),
        None => said,
    }
}

/// The place with the request that it names as that was typed: the one for the attribute that has
/// the value of the place, or else the last one. `None` if the place does not name one request.
fn typed_place(complex: &Complex, typed: &Requests, place: &str) -> Option<String> {
    let (options, request) = place.split_at(place.rfind("-l ")? + "-l ".len());
    let (name, has_value) = match request.split_once('=') {
        Some((name, _)) => (name, true),
        None => (request, false),
    };
    let attribute = complex.lookup(name).filter(|_| !request.contains(','))?;
    let is_meant = |request: &&ResourceRequest| {
        let asked = complex.lookup(&request.name);
        asked.is_some_and(|asked| asked.name == attribute.name)
    };
    let Requests {
        hard,
        soft,
        master,
        slaves,
        ..
    } = typed;
    // Several lists may ask for the attribute: the value tells which one is meant.
    let value = request.split_once('=').map(|(_, value)| value);
    let mut meant = hard.iter().chain(soft).chain(master).chain(slaves).filter(is_meant);
    let same = meant.clone().rfind(|request| request.value.as_deref() == value);
    let typed = same.or_else(|| meant.next_back())?;
    let request = if has_value {
        typed.to_string()
    } else {
        typed.name.clone()
    };
    Some(format!("{options}{request}"))
}

/// Refuses names that are longer than any may be.
///
/// # Errors
/// In the words of 8.1.9, with the first that is too long.
pub(in crate::decide) fn check_lengths(spec: &JobSpec) -> Result<(), Diagnostic> {
    if spec.name.len() >= TOO_LONG_BYTES {
        let what = format!("job name too long, maximum allowed length is {TOO_LONG_BYTES} characters");
        return Err(Diagnostic::new(Code::BadValue, what)
            .at("-N")
            .fix("choose a shorter name"));
    }
    let pe = spec.requests.pe.as_ref().map(|pe| &pe.name);
    let names = [
        ("-A", spec.account.as_ref()),
        ("-P", spec.project.as_ref()),
        ("-ckpt", spec.checkpoint.as_ref()),
        ("-pe", pe),
    ];
    match names
        .into_iter()
        .find(|(_, name)| name.is_some_and(|name| name.len() > TOO_LONG_BYTES))
    {
        Some((option, _)) => {
            let what = format!("string is longer than {TOO_LONG_BYTES}, this is not allowed for objectnames");
            Err(Diagnostic::new(Code::BadValue, what)
                .at(option)
                .fix("choose a shorter name"))
        }
        None => Ok(()),
    }
}

/// # Errors
/// If the text cannot be the name of a job.
pub(in crate::decide) fn check_job_name(name: &str) -> Result<(), Diagnostic> {
    if name.is_empty() {
        return Err(Diagnostic::new(
            Code::JobRejected,
            "job rejected cause there is no job_name in the request",
        )
        .at("-N")
        .fix("write a name behind -N"));
    }
    if name.starts_with(|first: char| first.is_ascii_digit()) {
        let what = format!("denied: \"{name}\" is not a valid object name (cannot start with a digit)");
        return Err(Diagnostic::new(Code::BadValue, what)
            .at("-N")
            .fix("begin it with a letter"));
    }
    // Line breaks and tabs are refused below, in the words of 8.1.9.
    if let Some(control) = name
        .chars()
        .find(|&letter| letter.is_control() && !"\n\t\r".contains(letter))
    {
        let what = format!(
            "control character {} not allowed in objectname",
            control.escape_unicode()
        );
        let fix = "use letters, digits, dots, dashes and underscores";
        return Err(Diagnostic::new(Code::BadValue, what).at("-N").fix(fix));
    }
    check_characters(name).map_err(|refusal| refusal.at("-N"))
}

/// # Errors
/// If the text cannot be the name of an account.
pub(in crate::decide) fn check_account(name: &str) -> Result<(), Diagnostic> {
    check_characters(name).map_err(|refusal| refusal.at("-A"))
}

fn check_characters(name: &str) -> Result<(), Diagnostic> {
    if let Some((_, forbidden)) = FORBIDDEN.iter().find(|(character, _)| name.contains(*character)) {
        return Err(
            Diagnostic::new(Code::BadValue, format!("{forbidden} not allowed in objectname"))
                .fix("use letters, digits, dots, dashes and underscores"),
        );
    }
    if let Some(keyword) = KEYWORDS.iter().find(|keyword| keyword.eq_ignore_ascii_case(name)) {
        return Err(Diagnostic::new(
            Code::BadValue,
            format!("Keyword (\"{keyword}\") not allowed as objectname"),
        )
        .fix("choose another name"));
    }
    Ok(())
}
