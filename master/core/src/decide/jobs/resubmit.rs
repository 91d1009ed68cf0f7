//! `qresub`: new jobs that are copies of jobs which are there.

use crate::decide::jobs::alter;
use crate::decide::jobs::select::{self, MissingTarget, Owners};
use crate::decide::submit::{self, SubmitOutcome};
use crate::decide::{Caller, Turn};
use crate::state::job::changed_holds;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::SubmitSeq;
use proto::job::{Holds, JobChanges, JobSpec};
use proto::wire::client::{Answer, JobSelection, Reply};

/// Decides a resubmission, job by job.
pub(crate) fn resubmit(turn: &mut Turn<'_>, caller: &Caller, jobs: &JobSelection, changes: &JobChanges) -> Reply {
    let mut answers = Vec::new();
    for selected in select::select(turn.state(), caller, Owners::Caller, jobs) {
        let outcome = match selected {
            Ok(selected) => copy(turn, caller, selected.seq, changes),
            Err(missing) => Err(vec![unknown(&missing)]),
        };
        match outcome {
            Ok(done) => answers.extend(done),
            Err(refusals) => answers.extend(refusals.into_iter().map(Answer::Refused)),
        }
    }
    Reply::answers(answers)
}

fn unknown(missing: &MissingTarget) -> Diagnostic {
    let what = match missing {
        MissingTarget::Number(job) | MissingTarget::Name { name: job, .. } => format!("job \"{job}\" does not exist"),
        MissingTarget::Users(users) => format!("There is no job registered for the following users: {users}"),
        MissingTarget::Tasks { job, tasks } => {
            format!("job \"{job}\" task \"{}\" does not exist", select::task_words(*tasks))
        }
    };
    Diagnostic::new(Code::UnknownJob, what)
}

fn copy(
    turn: &mut Turn<'_>,
    caller: &Caller,
    seq: SubmitSeq,
    changes: &JobChanges,
) -> Result<Vec<Answer>, Vec<Diagnostic>> {
    let job = &turn.state().jobs[&seq];
    let owner = &job.spec.owner.user;
    if !caller.may_act_for(owner) {
        let what = format!(
            "job rejected: {} is not allowed to resubmit jobs of user {owner}",
            caller.at_host()
        );
        return Err(vec![Diagnostic::new(Code::NotPermitted, what)]);
    }
    let original = job.number;
    let (mut spec, mut texts) = alter::changed(caller, job, changes).map_err(|refusal| vec![refusal])?;
    // A copy starts as its original did when it was new: held only by what the user asks for now.
    spec = JobSpec {
        holds: Holds::default(),
        ..spec
    };
    if let Some(change) = changes.holds {
        caller.may_change_holds(change).map_err(|refusal| vec![refusal])?;
        spec.holds = changed_holds(spec.holds, change);
        texts.push(format!("modified hold of job {original}"));
    }
    let array = spec.array;
    let name = proto::job::confirmed_name(&spec.name).to_owned();
    let mut answers: Vec<Answer> = texts.into_iter().map(Answer::Done).collect();
    match submit::accept(turn, caller, spec)? {
        SubmitOutcome::Verified(verified) => answers.extend(verified),
        SubmitOutcome::Job {
            number,
            answers: warnings,
        } => {
            let text = match array {
                Some(range) => format!("Your job-array {number}.{range} (\"{name}\") has been submitted"),
                None => format!("Your job {number} (\"{name}\") has been submitted"),
            };
            answers.push(Answer::Done(text));
            answers.extend(warnings);
        }
    }
    Ok(answers)
}
