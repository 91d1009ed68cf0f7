//! A block of `qstat -j`.

use super::row;
use crate::query::Model;
use master_core::explain;
use master_core::sched::finding::Findings;
use master_core::state::job::Job;
use proto::job::{JobSpec, Program};
use proto::wire::view::JobDetail;
use std::sync::Arc;

/// Everything about a job.
pub(super) fn detail(model: &Model, findings: &mut Findings<'_>, job: &Job) -> JobDetail {
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
