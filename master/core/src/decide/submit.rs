//! `qsub`: what is checked before a job is accepted, in the words of 8.1.9.

pub(super) mod access;
pub(super) mod advice;
pub(super) mod checks;
pub(super) mod names;
pub(super) mod paths;
mod scopes;
pub(super) mod verdicts;
pub(super) mod verification;

use super::requests::RequestOrigin;
use super::{Caller, Turn, verify};
use crate::decide::jobs::dependency;
use crate::event::Event;
use crate::state::State;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::{JobNumber, SubmitSeq};
use proto::job::{JobSpec, Requests};
use proto::wire::client::{Answer, Reply};
use proto::wire::view::Data;
use std::sync::Arc;
use verification::{Candidate, SubmissionForm};

/// Decides a submission. A job that is refused, or only to be verified, takes no number. None if it
/// is answered later, because the verifier of the cell looks at it first.
pub(super) fn submit(turn: &mut Turn<'_>, request: RequestOrigin, caller: &Caller, spec: JobSpec) -> Option<Reply> {
    let candidate = Candidate::Job {
        spec: Box::new(of_caller(spec, caller)),
        texts: Vec::new(),
    };
    verification::submit_all(turn, request, caller, SubmissionForm::Job, vec![candidate])
}

/// The job as one of its caller: who submits and from where is what the socket says, whatever the
/// client or a verifier wrote.
fn of_caller(spec: JobSpec, caller: &Caller) -> JobSpec {
    JobSpec {
        owner: caller.owner.clone().into(),
        submit_host: caller.host.clone(),
        ..spec
    }
}

/// The answer to a submission that was not refused.
fn submitted(turn: &Turn<'_>, outcome: SubmitOutcome) -> Reply {
    match outcome {
        SubmitOutcome::Verified(answers) => Reply::answers(answers),
        SubmitOutcome::Job { number, answers } => {
            let job = turn.state().job(number).expect("it was accepted just now");
            let data = Data::Submitted {
                number,
                name: job.spec.name.clone(),
                array: job.spec.array,
            };
            Reply {
                answers,
                ..Reply::data(data)
            }
        }
    }
}

/// What became of a submission that was not refused.
pub(super) enum SubmitOutcome {
    /// It was only to be verified.
    Verified(Vec<Answer>),
    /// It is a job now, with warnings.
    Job { number: JobNumber, answers: Vec<Answer> },
}

/// Checks a specification and makes it a job, with a number that is kept for it or the next one.
///
/// # Errors
/// With what stands against it.
pub(super) fn accept(
    turn: &mut Turn<'_>,
    caller: &Caller,
    mut spec: JobSpec,
    number: Option<JobNumber>,
) -> Result<SubmitOutcome, Vec<Diagnostic>> {
    let one = |refusal| vec![refusal];
    let mut answers = advice::multiplied_times(&turn.state().config.complex, &spec.requests);
    names::check_lengths(&spec).map_err(one)?;
    names::normalise(&mut spec);
    let typed = spec.requests.clone();
    names::make_canonical(&turn.state().config.complex, &mut spec.requests);
    access::assign_project(&turn.state().config, &mut spec);
    checks::check(turn.state(), caller, &spec).map_err(|refusals| all_as_typed(turn.state(), &typed, refusals))?;
    let last = turn.submissions_mut().last_number();
    let number = number
        .filter(|number| !turn.state().by_number.contains_key(number))
        .unwrap_or_else(|| next_number(turn.state(), last));
    match verify::verify(turn, number, &spec)? {
        verify::Verdict::OnlyAsked(answer) => return Ok(SubmitOutcome::Verified(vec![answer])),
        verify::Verdict::GoOn(warnings) => answers.extend(warnings),
    }
    checks::check_counts(turn.state(), turn.site().users, &spec).map_err(one)?;
    let owner = spec.owner.user.clone();
    let plain = dependency::resolve(turn.state(), &owner, None, &spec.predecessors).map_err(one)?;
    let array = dependency::resolve_array(turn.state(), &spec, None, &spec.array_predecessors).map_err(one)?;
    answers.extend(advice::missing_predecessors("-hold_jid", &plain));
    answers.extend(advice::missing_predecessors("-hold_jid_ad", &array));
    answers.extend(vain_reservation(turn.state(), &spec));
    let never = advice::never(turn, &spec);
    answers.extend(never.map(|advice| warning_as_typed(turn.state(), &typed, advice)));
    answers.extend(unadmitted(turn.state(), &spec));
    access::add_user(turn, owner.as_str());
    let seq = SubmitSeq(turn.state().last_submit.0 + 1);
    // All who keep the job share with others what it has in common with them.
    let spec = turn.state().index.commons.shared(&Arc::new(spec));
    let (waits_for, array_waits_for) = (plain.found, array.found);
    turn.record(Event::JobSubmitted {
        seq,
        number,
        spec,
        waits_for,
        array_waits_for,
    });
    Ok(SubmitOutcome::Job { number, answers })
}

/// Refusals, with the requests in their places as they were typed.
fn all_as_typed(state: &State, typed: &Requests, refusals: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let as_typed = |refusal| names::place_as_typed(&state.config.complex, typed, refusal);
    refusals.into_iter().map(as_typed).collect()
}

/// A warning, with the request in its place as it was typed.
fn warning_as_typed(state: &State, typed: &Requests, advice: Answer) -> Answer {
    match advice {
        Answer::Warning(said) => Answer::Warning(names::place_as_typed(&state.config.complex, typed, said)),
        Answer::Done(_) | Answer::Refused(_) => advice,
    }
}

/// The warning that a job will wait until access lists change.
fn unadmitted(state: &State, spec: &JobSpec) -> Option<Answer> {
    let what = access::admitted_nowhere(&state.config, spec)?;
    let fix = match state.config.resolved.is_empty() {
        true => "there is no queue with a host: qconf -aq, -mq",
        false => "qconf -sq names the access lists of a queue, qconf -su shows who is in one",
    };
    Some(Answer::Warning(Diagnostic::new(Code::NotSuitable, what).fix(fix)))
}

/// The warning that a reservation has no effect, with the setting that prevents it.
pub(super) fn vain_reservation(state: &State, spec: &JobSpec) -> Option<Answer> {
    let why = crate::explain::vain_reservation(state, spec)?;
    Some(Answer::Warning(
        Diagnostic::new(Code::NotSupported, format!("warning: {}", why.text))
            .at("-R y")
            .fix(why.fix),
    ))
}

/// The next number that no job has, behind the last one of a job and the last one that a verifier
/// was told of.
fn next_number(state: &State, told: JobNumber) -> JobNumber {
    let last = state.last_number;
    let is_behind = told != JobNumber::default() && last.is_before(told);
    let mut number = if is_behind { told.0 } else { last.0 };
    loop {
        number = if number >= JobNumber::LAST.0 { 1 } else { number + 1 };
        if !state.by_number.contains_key(&JobNumber(number)) {
            return JobNumber(number);
        }
    }
}
