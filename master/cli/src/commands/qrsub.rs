//! `qrsub`: reserves slots for a time to come.

use crate::args::GivenOption;
use crate::cell_address::CellAddress;
use crate::client::Client;
use crate::commands::Outcome;
use crate::fail::Fail;
use crate::job::options::QRSUB;
use crate::job::request::{JobRequest, list};
use crate::{exit, output};
use nix::unistd::User;
use proto::amount::{Amount, Type};
use proto::diagnostic::{Code, Diagnostic};
use proto::job::{Owner, Requests};
use proto::reservation::ReservationSpec;
use proto::time::Wall;
use proto::wire::client::Command;
use proto::wire::view::Data;

/// Runs `qrsub`.
pub fn run(words: Vec<String>) -> Outcome {
    let parsed = QRSUB.parse(words).map_err(plain)?;
    if parsed.has("-help") {
        output::data(&QRSUB.help());
        return Ok(exit::OK);
    }
    if parsed.given.is_empty() {
        output::note(&QRSUB.help());
        return Ok(exit::FAILED);
    }
    let spec = specification(&parsed.given).map_err(plain)?;
    let reply = Client::connect(&CellAddress::from_environment(), "qrsub")?.change(Command::Reserve(Box::new(spec)))?;
    let code = output::answers(&reply.answers);
    if let Some(Data::Reserved(id)) = reply.data {
        output::data(&format!("Your advance reservation {id} has been granted\n"));
    }
    Ok(code)
}

/// All that this command refuses ends it with 1, as in 8.1.9.
fn plain(fail: Fail) -> Fail {
    Fail {
        exit: exit::FAILED,
        ..fail
    }
}

/// What the options ask for.
fn specification(given: &[GivenOption]) -> Result<ReservationSpec, Fail> {
    let mut request = JobRequest::new("qrsub");
    let (mut end, mut duration_s, mut users) = (None, None, Vec::new());
    let (mut hard_error, mut verify) = (false, false);
    for option in given {
        match (option.name, option.values.first().map_or("", String::as_str)) {
            ("-e", value) => end = Some(request.moment("-e", value)?),
            ("-d", value) => duration_s = Some(duration(value)?),
            ("-u", value) => users.extend(known(list(value))?),
            ("-he", value) => {
                hard_error = one_of("-he", value, &[("y", true), ("yes", true), ("n", false), ("no", false)])?
            }
            ("-w", value) => verify = one_of("-w", value, &[("v", true), ("e", false)])?,
            _ => request.apply(option)?,
        }
    }
    Ok(assemble(request, end, duration_s, users, hard_error, verify))
}

fn assemble(
    request: JobRequest,
    end: Option<Wall>,
    duration_s: Option<u64>,
    users: Vec<String>,
    hard_error: bool,
    verify: bool,
) -> ReservationSpec {
    let changes = request.changes;
    ReservationSpec {
        name: changes.name.unwrap_or_default(),
        // The master believes its socket.
        owner: Owner {
            user: "".into(),
            uid: 0,
            gid: 0,
            group: String::new(),
            groups: Vec::new(),
        },
        account: changes.account,
        start: changes.start_after,
        end,
        duration_s,
        requests: Requests {
            hard: changes.hard.unwrap_or_default(),
            hard_queues: changes.hard_queues.unwrap_or_default(),
            master_queues: changes.master_queues.unwrap_or_default(),
            master: changes.master.unwrap_or_default(),
            slaves: changes.slaves.unwrap_or_default(),
            slave_queues: changes.slave_queues.unwrap_or_default(),
            pe: changes.pe,
            allocation_rule: changes.allocation_rule,
            ..Requests::default()
        },
        checkpoint: changes.checkpoint,
        immediate: request.immediate,
        users,
        hard_error,
        mail: changes.mail.unwrap_or_default(),
        mail_to: changes.mail_to.unwrap_or_default(),
        verify,
    }
}

fn one_of(name: &str, value: &str, values: &[(&str, bool)]) -> Result<bool, Fail> {
    let known = values.iter().find(|(word, _)| word.eq_ignore_ascii_case(value));
    known.map(|(_, means)| *means).ok_or_else(|| {
        let words: Vec<&str> = values.iter().map(|(word, _)| *word).collect();
        Fail::bad_value(format!("qrsub: invalid option argument \"{name} {value}\""))
            .fix(format!("write one of {}", words.join(", ")))
    })
}

/// Seconds, or hours, minutes and seconds.
fn duration(value: &str) -> Result<u64, Fail> {
    let seconds = Amount::parse(value, Type::Time).ok().and_then(Amount::finite);
    seconds.and_then(|seconds| u64::try_from(seconds).ok()).ok_or_else(|| {
        Fail::bad_value(format!("qrsub: Wrong time format \"{value}\" specified to -d option"))
            .fix("write hours:minutes:seconds, or seconds")
    })
}

/// Users must be known here; access lists the master knows.
fn known(users: Vec<String>) -> Result<Vec<String>, Fail> {
    let is_known = |user: &&String| user.starts_with('@') || matches!(User::from_name(user), Ok(Some(_)));
    match users.iter().find(|user| !is_known(user)) {
        Some(user) => {
            let what = format!("error: {user} is not known as a user");
            Err(Fail::from(
                Diagnostic::new(Code::UnknownUser, what).fix("check the name: getent passwd"),
            ))
        }
        None => Ok(users),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_and_soft_requests_are_for_jobs() {
        for option in ["-scope", "-soft"] {
            let fail = QRSUB.parse(vec![option.to_owned(), "master".to_owned()]).unwrap_err();
            let what = format!("qrsub: invalid option argument \"{option}\"");
            assert_eq!(
                (fail.exit, fail.diagnostic.what, fail.diagnostic.fix.is_empty()),
                (exit::FAILED, what, false)
            );
        }
    }
}
