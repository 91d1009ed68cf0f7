//! A block of `qstat -j`.

use super::row;
use crate::model::Model;
use crate::query::viewer::Viewer;
use master_core::explain;
use master_core::sched::report::finding::Findings;
use master_core::state::job::Job;
use proto::complex::{Attribute, Complex};
use proto::job::{JobSpec, Program, Requests};
use proto::wire::view::{JobDetail, RequestedAttribute};
use std::sync::Arc;

/// Everything about a job.
pub(super) fn detail(model: &Model, findings: &mut Findings<'_>, viewer: &Viewer, job: &Job) -> JobDetail {
    let state = &model.state;
    let number = |seq| state.jobs.get(&seq).map(|job| job.number);
    let hides_environment = !viewer.sees_environment_of(&job.spec.owner.user);
    let errors = job
        .tasks
        .iter()
        .filter_map(|(id, task)| Some((*id, task.place.error()?.to_owned())));
    let row = row::present(model, job);
    JobDetail {
        attributes: attributes(&state.config.complex, &row.requests),
        spec: shown(&job.spec, hides_environment),
        row,
        version: job.version,
        script_bytes: script_bytes(&job.spec),
        successors: state.index.successors(job.seq).filter_map(number).collect(),
        errors: errors.collect(),
        scheduling_info: explain::scheduling_info(findings, job.seq),
        checkpoint_when: state
            .config
            .checkpoint_of(&job.spec)
            .map(|_| state.config.checkpoint_when(&job.spec)),
        hides_environment,
    }
}

/// The attributes in the requests of a job. One that has been removed meanwhile is left out.
fn attributes(complex: &Complex, requests: &Requests) -> Vec<RequestedAttribute> {
    let Requests {
        hard,
        soft,
        master,
        slaves,
        ..
    } = requests;
    let mut attributes: Vec<RequestedAttribute> = Vec::new();
    for request in hard.iter().chain(soft).chain(master).chain(slaves) {
        let Some(attribute) = complex.lookup(&request.name) else {
            continue;
        };
        if attributes.iter().all(|known| known.name != attribute.name) {
            let Attribute {
                name,
                r#type,
                consumable,
                ..
            } = attribute;
            attributes.push(RequestedAttribute {
                name: name.clone(),
                r#type: *r#type,
                consumable: *consumable,
            });
        }
    }
    attributes
}

fn script_bytes(spec: &JobSpec) -> u64 {
    match &spec.program {
        Program::Script { content, .. } => content.len() as u64,
        Program::Stored { script, .. } => script.bytes,
        Program::Command { .. } => 0,
    }
}

/// Variables that `qsub` itself takes along, which say where a job comes from and are shown as
/// lines of their own.
const ORIGIN: [&str; 8] = [
    "SGE_O_HOME",
    "SGE_O_HOST",
    "SGE_O_LOGNAME",
    "SGE_O_MAIL",
    "SGE_O_PATH",
    "SGE_O_SHELL",
    "SGE_O_TZ",
    "SGE_O_WORKDIR",
];

/// The specification as it is shown: nobody prints the script, and it may be long; secrets are in
/// the environment of many jobs.
fn shown(spec: &Arc<JobSpec>, hides_environment: bool) -> Arc<JobSpec> {
    let program = match &spec.program {
        Program::Command { .. } if !hides_environment => return spec.clone(),
        Program::Command { .. } => spec.program.clone(),
        Program::Script { path, .. } | Program::Stored { path, .. } => Program::Script {
            path: path.clone(),
            content: Arc::from([]),
        },
    };
    let mut shown = JobSpec {
        program,
        ..(**spec).clone()
    };
    if hides_environment {
        let is_open = |name: &String| ORIGIN.contains(&name.as_str());
        let open = spec
            .submission_variables()
            .map(|(name, value)| (name.clone(), if is_open(name) { value.clone() } else { String::new() }));
        let closed = spec.exported_variables().map(|(name, _)| (name.clone(), String::new()));
        shown.environment = open.chain(closed).collect::<Vec<_>>().into();
    }
    Arc::new(shown)
}
