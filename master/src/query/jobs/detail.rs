//! `qstat -j`, and why a job waits.

use super::{PART, row};
use crate::query::{Model, parts, select};
use master_core::explain;
use master_core::sched::Of;
use master_core::sched::finding::Findings;
use master_core::state::job::Job;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::JobNumber;
use proto::job::{JobSpec, Program};
use proto::wire::client::{Answer, Reply};
use proto::wire::view::{Data, JobDetail};
use std::sync::Arc;

/// The answer to [`proto::wire::client::Query::JobDetails`].
pub(crate) fn details(model: &Model, targets: &[String]) -> Vec<Reply> {
    let jobs = || model.state.jobs.values();
    let named = |job: &Job, target: &String| select::names_job(target, job.number, &job.spec.name);
    let meant = jobs().filter(|job| targets.is_empty() || targets.iter().any(|target| named(job, target)));
    let mut findings = model.findings();
    let found: Vec<JobDetail> = meant.map(|job| detail(model, &mut findings, job)).collect();
    let missing: Vec<Answer> =
        targets.iter().filter(|target| !jobs().any(|job| named(job, target))).map(|target| refuse(target)).collect();
    let mut replies = parts(found, PART, |details| Reply::data(Data::JobDetails(details)));
    if let Some(last) = replies.last_mut() {
        last.answers = missing;
    }
    replies
}

/// The name alone is what the command prints under its heading `Following jobs do not exist`.
fn refuse(target: &str) -> Answer {
    Answer::Refused(Diagnostic::new(Code::UnknownJob, target))
}

fn detail(model: &Model, findings: &mut Findings<'_>, job: &Job) -> JobDetail {
    let state = &model.state;
    let number = |seq| state.jobs.get(&seq).map(|job| job.number);
    let errors = job.tasks.iter().filter_map(|(id, task)| Some((*id, task.place.error()?.to_owned())));
    JobDetail {
        row: row::present(model, job),
        spec: without_script(&job.spec),
        script_bytes: script_bytes(&job.spec),
        successors: state.index.successors(job.seq).filter_map(number).collect(),
        errors: errors.collect(),
        scheduling_info: explain::scheduling_info(findings, job.seq),
        checkpoint_when: state.config.checkpoint_of(&job.spec).map(|_| state.config.checkpoint_when(&job.spec)),
    }
}

fn script_bytes(spec: &JobSpec) -> u64 {
    match &spec.program {
        Program::Script { content, .. } => content.len() as u64,
        Program::Command { .. } => 0,
    }
}

/// The specification as it is shown: nobody prints the script, and it may be long.
fn without_script(spec: &Arc<JobSpec>) -> Arc<JobSpec> {
    match &spec.program {
        Program::Command { .. } => spec.clone(),
        Program::Script { path, .. } => {
            let program = Program::Script { path: path.clone(), content: Arc::from([]) };
            Arc::new(JobSpec { program, ..(**spec).clone() })
        }
    }
}

/// The answer to [`proto::wire::client::Query::Explain`].
pub(crate) fn explanation(model: &Model, number: JobNumber) -> Reply {
    let Some(job) = model.state.job(number) else {
        let refusal = Diagnostic::new(Code::UnknownJob, format!("job {number} does not exist"));
        return Reply::refusal(refusal.fix("qstat lists the jobs; one that has ended: qacct -j JOB"));
    };
    let mut explanation = explain::explain(&mut model.findings(), job.seq);
    let numbers = |seq| model.scheduling.priority(seq, Of::Pending);
    explanation.order = explain::place(&model.state, &numbers, job.seq, model.statics.clock.now());
    Reply::data(Data::Explanation(Box::new(explanation)))
}
