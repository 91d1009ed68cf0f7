//! The verifier of the cell (`jsv_url`): a submission waits here while it looks at the jobs.
//!
//! The shell runs the verifier ([`Effect::Verify`]) and answers with [`Input::Verified`] for each
//! job, in bounded time. What waits is not in the log: a client whose master ends repeats its
//! request. The log has the job that came of it, so that replay runs no verifier.
//!
//! [`Input::Verified`]: crate::effect::Input::Verified

use super::SubmitOutcome;
use crate::decide::requests::{self, RequestOrigin};
use crate::decide::{Caller, Turn};
use crate::effect::{Effect, ReplyTo, VerificationId, VerificationOrder};
use crate::event::Actor;
use crate::state::State;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::{HostName, JobNumber, RequestId};
use proto::job::{JobSpec, Owner};
use proto::jsv::JsvUrl;
use proto::wire::client::{Answer, Reply};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Jobs that may wait for the verifier, of all users and of one. A submission beyond them is
/// refused.
pub(crate) const JOBS_MAX: usize = 4_000;
pub(crate) const JOBS_EACH: usize = 1_000;

/// What is said to the user of the jobs of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SubmissionForm {
    /// `qsub`: the number and name of the one job.
    Job,
    /// `qresub`: a line for each copy.
    Copies,
}

/// One job of a request.
#[derive(Debug)]
pub(crate) enum Candidate {
    /// A job that was refused before the verifier could see it.
    Refused(Vec<Diagnostic>),
    /// A job, with what is said before it is accepted.
    Job { spec: Box<JobSpec>, texts: Vec<String> },
}

/// A job, as far as the verifier has answered.
#[derive(Debug)]
enum JudgedJob {
    Refused(Vec<Diagnostic>),
    Waiting {
        number: JobNumber,
        texts: Vec<String>,
    },
    Verified {
        number: JobNumber,
        texts: Vec<String>,
        spec: Box<JobSpec>,
    },
}

/// A request whose jobs the verifier looks at.
#[derive(Debug)]
struct WaitingSubmission {
    request: RequestOrigin,
    actor: Actor,
    owner: Owner,
    host: HostName,
    form: SubmissionForm,
    jobs: Vec<JudgedJob>,
}

/// The requests whose jobs the verifier looks at.
#[derive(Debug, Default)]
pub(crate) struct WaitingSubmissions {
    waiting: BTreeMap<u64, WaitingSubmission>,
    by_request: BTreeMap<RequestId, u64>,
    last: u64,
    /// The last number that a verifier was told of.
    last_number: JobNumber,
}

impl WaitingSubmissions {
    /// Whether a request is one of them; a client that repeats it is answered in place of the
    /// earlier one.
    pub(crate) fn is_on(&mut self, id: RequestId, reply_to: ReplyTo) -> bool {
        let known = self.by_request.get(&id).and_then(|number| self.waiting.get_mut(number));
        known.map(|known| known.request.reply_to = reply_to).is_some()
    }

    /// The request that a job belongs to, and its caller.
    pub(crate) fn request_of(&self, id: VerificationId) -> Option<(RequestId, &Owner, &HostName)> {
        let known = self.waiting.get(&id.submission)?;
        Some((known.request.id, &known.owner, &known.host))
    }

    /// The last number that a verifier was told of.
    pub(super) fn last_number(&self) -> JobNumber {
        self.last_number
    }

    fn full(&self, owner: &Owner, more: usize) -> Option<Diagnostic> {
        let all = self.waiting.values().map(|known| known.jobs.len()).sum::<usize>();
        let own = self.waiting.values().filter(|known| known.owner.user == owner.user);
        let own = own.map(|known| known.jobs.len()).sum::<usize>();
        let what = if own + more > JOBS_EACH {
            format!(
                "{own} jobs of {} wait for the job submission verifier already",
                owner.user
            )
        } else if all + more > JOBS_MAX {
            format!("{all} jobs wait for the job submission verifier already")
        } else {
            return None;
        };
        Some(Diagnostic::new(Code::Overloaded, what).fix("try again in a moment"))
    }
}

/// The verifier of the cell, if there is one.
pub(crate) fn verifier(state: &State) -> Option<JsvUrl> {
    let url = state.config.settings.jsv_url.value()?;
    // What cannot be read as one was refused when it was set.
    url.0.parse().ok()
}

/// Passes the jobs of a request through the verifier of the cell, where there is one, and submits
/// them. None if it is answered later.
pub(crate) fn submit_all(
    turn: &mut Turn<'_>,
    request: RequestOrigin,
    caller: &Caller,
    form: SubmissionForm,
    candidates: Vec<Candidate>,
) -> Option<Reply> {
    let Some(verifier) = verifier(turn.state()) else {
        let jobs = candidates.into_iter().map(|candidate| match candidate {
            Candidate::Refused(refusals) => Err(refusals),
            Candidate::Job { spec, texts } => Ok((None, *spec, texts)),
        });
        return Some(accept_all(turn, caller, form, jobs));
    };
    if let Some(full) = turn.submissions_mut().full(&caller.owner, candidates.len()) {
        return Some(Reply::refusal(full));
    }
    begin(turn, request, caller, form, (verifier, candidates))
}

/// Asks the verifier about each job. An answer at once comes of a request all of whose jobs are
/// refused.
fn begin(
    turn: &mut Turn<'_>,
    request: RequestOrigin,
    caller: &Caller,
    form: SubmissionForm,
    (verifier, candidates): (JsvUrl, Vec<Candidate>),
) -> Option<Reply> {
    let submission = turn.submissions_mut().last + 1;
    let parameters = turn.state().config.settings.qmaster();
    let mut jobs = Vec::with_capacity(candidates.len());
    for candidate in candidates {
        let (spec, texts) = match candidate {
            Candidate::Refused(refusals) => {
                jobs.push(JudgedJob::Refused(refusals));
                continue;
            }
            Candidate::Job { spec, texts } => (spec, texts),
        };
        let told = turn.submissions_mut().last_number;
        let number = super::next_number(turn.state(), told);
        turn.submissions_mut().last_number = number;
        let copy = u32::try_from(jobs.len()).expect("there are at most JOBS_MAX");
        turn.effect(Effect::Verify(Box::new(VerificationOrder {
            id: VerificationId { submission, copy },
            verifier: verifier.clone(),
            patience_s: parameters.jsv_timeout_s,
            threshold_ms: parameters.jsv_threshold_ms,
            number,
            spec: Arc::from(spec),
        })));
        jobs.push(JudgedJob::Waiting { number, texts });
    }
    let waiting = WaitingSubmission {
        request,
        actor: turn.actor().clone(),
        owner: caller.owner.clone(),
        host: caller.host.clone(),
        form,
        jobs,
    };
    if waiting.is_judged() {
        return Some(waiting.submit(turn));
    }
    let submissions = turn.submissions_mut();
    submissions.last = submission;
    submissions.by_request.insert(request.id, submission);
    submissions.waiting.insert(submission, waiting);
    None
}

/// Takes the answer about one job. With the last one, the request is decided.
pub(crate) fn verified(turn: &mut Turn<'_>, id: VerificationId, outcome: Result<Box<JobSpec>, Diagnostic>) {
    let submissions = turn.submissions_mut();
    let Some(waiting) = submissions.waiting.get_mut(&id.submission) else {
        return;
    };
    waiting.judge(id.copy, outcome);
    if !waiting.is_judged() {
        return;
    }
    let Some(waiting) = submissions.waiting.remove(&id.submission) else {
        return;
    };
    let (actor, request) = (waiting.actor.clone(), waiting.request);
    submissions.by_request.remove(&request.id);
    turn.acting(actor, Some(request.id), |turn| {
        let before = turn.events();
        let reply = waiting.submit(turn);
        let has_changed = turn.events() > before;
        requests::answered(turn, request, reply, has_changed);
    });
}

impl WaitingSubmission {
    fn judge(&mut self, copy: u32, outcome: Result<Box<JobSpec>, Diagnostic>) {
        let Some(job) = self.jobs.get_mut(copy as usize) else {
            return;
        };
        if let JudgedJob::Waiting { number, texts } = job {
            let (number, texts) = (*number, std::mem::take(texts));
            *job = match outcome {
                Ok(spec) => JudgedJob::Verified { number, texts, spec },
                Err(refusal) => JudgedJob::Refused(vec![refusal]),
            };
        }
    }

    fn is_judged(&self) -> bool {
        !self.jobs.iter().any(|job| matches!(job, JudgedJob::Waiting { .. }))
    }

    /// Submits the jobs that the verifier has accepted. Who may do what is asked anew: it may have
    /// changed meanwhile.
    fn submit(self, turn: &mut Turn<'_>) -> Reply {
        let caller = Caller::new(turn.state(), turn.site(), self.owner, self.host);
        let jobs = self.jobs.into_iter().map(|job| match job {
            JudgedJob::Refused(refusals) => Err(refusals),
            JudgedJob::Waiting { .. } => unreachable!("every job is judged"),
            JudgedJob::Verified { number, texts, spec } => {
                let spec = super::of_caller(*spec, &caller);
                Ok((Some(number), spec, texts))
            }
        });
        let jobs: Vec<_> = jobs.collect();
        accept_all(turn, &caller, self.form, jobs.into_iter())
    }
}

/// Makes jobs of a request true, or refuses them, one by one.
fn accept_all(
    turn: &mut Turn<'_>,
    caller: &Caller,
    form: SubmissionForm,
    jobs: impl Iterator<Item = Result<(Option<JobNumber>, JobSpec, Vec<String>), Vec<Diagnostic>>>,
) -> Reply {
    let mut reply = Reply::default();
    for job in jobs {
        let outcome = job.and_then(|(number, spec, texts)| {
            let array = spec.array;
            let name = proto::job::confirmed_name(&spec.name).to_owned();
            let outcome = super::accept(turn, caller, spec, number)?;
            Ok((texts, array, name, outcome))
        });
        match (form, outcome) {
            (SubmissionForm::Job | SubmissionForm::Copies, Err(refusals)) => {
                reply.answers.extend(refusals.into_iter().map(Answer::Refused));
            }
            (SubmissionForm::Job, Ok((_, _, _, outcome))) => reply = super::submitted(turn, outcome),
            (SubmissionForm::Copies, Ok((texts, array, name, outcome))) => {
                reply.answers.extend(texts.into_iter().map(Answer::Done));
                match outcome {
                    SubmitOutcome::Verified(verified) => reply.answers.extend(verified),
                    SubmitOutcome::Job { number, answers } => {
                        let text = match array {
                            Some(range) => format!("Your job-array {number}.{range} (\"{name}\") has been submitted"),
                            None => format!("Your job {number} (\"{name}\") has been submitted"),
                        };
                        reply.answers.push(Answer::Done(text));
                        reply.answers.extend(answers);
                    }
                }
            }
        }
    }
    reply
}
