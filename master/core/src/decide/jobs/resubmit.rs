//! `qresub`: new jobs that are copies of jobs which are there.

use crate::decide::jobs::alter;
use crate::decide::jobs::select::{self, MissingTarget, Owners, SelectedJob};
use crate::decide::requests::RequestOrigin;
use crate::decide::submit::verification::{self, Candidate, SubmissionForm};
use crate::decide::{Caller, Turn};
use crate::state::job::changed_holds;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::SubmitSeq;
use proto::job::{Holds, JobChanges, JobSpec};
use proto::wire::client::{JobSelection, Reply};

/// Decides a resubmission, job by job. None if it is answered later.
pub(crate) fn resubmit(
    turn: &mut Turn<'_>,
    request: RequestOrigin,
    caller: &Caller,
    jobs: &JobSelection,
    changes: &JobChanges,
) -> Option<Reply> {
    let selected = select::select(turn.state(), caller, Owners::Caller, jobs);
    let candidate = |selected: Result<SelectedJob, MissingTarget>| {
        let copied = match selected {
            Ok(selected) => copy(turn, caller, selected.seq, changes),
            Err(missing) => Err(unknown(&missing)),
        };
        copied.unwrap_or_else(|refusal| Candidate::Refused(vec![refusal]))
    };
    let candidates = selected.into_iter().map(candidate).collect();
    verification::submit_all(turn, request, caller, SubmissionForm::Copies, candidates)
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

fn copy(turn: &Turn<'_>, caller: &Caller, seq: SubmitSeq, changes: &JobChanges) -> Result<Candidate, Diagnostic> {
    let job = &turn.state().jobs[&seq];
    let owner = &job.spec.owner.user;
    if !caller.may_act_for(owner) {
        let what = format!(
            "job rejected: {} is not allowed to resubmit jobs of user {owner}",
            caller.at_host()
        );
        return Err(Diagnostic::new(Code::NotPermitted, what));
    }
    let original = job.number;
    if job.spec.session.is_some() {
        let what = format!("job rejected: job {original} is interactive: a copy of it would have no streams");
        return Err(Diagnostic::new(Code::NotSupported, what).fix("call qrsh or qlogin again"));
    }
    let (spec, mut texts) = alter::changed(caller, job, changes)?;
    // A copy starts as its original did when it was new: held only by what the user asks for now.
    let mut holds = Holds::default();
    if let Some(change) = changes.holds {
        caller.may_change_holds(change)?;
        holds = changed_holds(holds, change);
        texts.push(format!("modified hold of job {original}"));
    }
    let spec = Box::new(JobSpec { holds, ..spec });
    Ok(Candidate::Job { spec, texts })
}
