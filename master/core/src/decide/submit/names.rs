//! Names that a submission chooses: of the job, of its account.

use proto::diagnostic::{Code, Diagnostic};
use proto::job::JobSpec;

/// Longer names are cut, as in 8.1.9.
const NAME_MAX_CHARS: usize = 100;

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

/// Cuts a long name, without a word as 8.1.9 does, and takes empty options as not given.
pub(super) fn normalise(spec: &mut JobSpec) {
    spec.project = spec.project.take().filter(|project| !project.is_empty());
    spec.account = spec.account.take().filter(|account| !account.is_empty());
    if let Some((at, _)) = spec.name.char_indices().nth(NAME_MAX_CHARS) {
        spec.name.truncate(at);
    }
}

/// # Errors
/// If the text cannot be the name of a job.
pub(in crate::decide) fn check_job_name(name: &str) -> Result<(), Diagnostic> {
    if name.is_empty() {
        return Err(Diagnostic::new(Code::JobRejected, "job rejected cause there is no job_name in the request")
            .at("-N")
            .fix("write a name behind -N"));
    }
    if name.starts_with(|first: char| first.is_ascii_digit()) {
        let what = format!("denied: \"{name}\" is not a valid object name (cannot start with a digit)");
        return Err(Diagnostic::new(Code::BadValue, what).at("-N").fix("begin it with a letter"));
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
        return Err(Diagnostic::new(Code::BadValue, format!("{forbidden} not allowed in objectname"))
            .fix("use letters, digits, dots, dashes and underscores"));
    }
    if let Some(keyword) = KEYWORDS.iter().find(|keyword| keyword.eq_ignore_ascii_case(name)) {
        return Err(Diagnostic::new(Code::BadValue, format!("Keyword (\"{keyword}\") not allowed as objectname"))
            .fix("choose another name"));
    }
    Ok(())
}
