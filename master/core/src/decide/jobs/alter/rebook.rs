//! `qalter -when now`: running tasks give back what their job no longer asks for.

use crate::decide::Turn;
use crate::event::Event;
use crate::ledger::{Booking, Charges, Grant};
use crate::sched::expected_end;
use crate::state::State;
use crate::state::job::Job;
use proto::amount::Type;
use proto::cell_version::Feature;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::{JobNumber, TaskKey};
use proto::job::{JobChanges, JobSpec, Requests};
use proto::limit::{BoundKind, LimitKind};
use proto::request::ResourceRequest;
use std::sync::Arc;

/// The running tasks of a job that take less under the new description. None without `-when now`.
///
/// # Errors
/// If the cell is of an older version, if a task would take more of something, or if something
/// changes that is not booked: ids of resource maps, and how long the task may run.
pub(super) fn tasks(
    state: &State,
    job: &Job,
    spec: &JobSpec,
    changes: &JobChanges,
) -> Result<Vec<TaskKey>, Diagnostic> {
    if !changes.for_running {
        return Ok(Vec::new());
    }
    Feature::RunningChanges.must_be_open(state.version)?;
    let charges = Arc::new(Charges::new(&state.config.complex, &spec.requests));
    let mut keys = Vec::new();
    for (_, placement) in job.placements() {
        let key = placement.key;
        let Some(old) = state.booked_for(key) else { continue };
        let grant = Grant {
            slots: &placement.granted,
            pe: placement.pe.as_ref(),
            maps: &placement.maps,
            binding: &placement.binding,
        };
        let new = Booking::new(&state.config, charges.clone(), grant, placement.placed_tick);
        if new.entries() == old.entries() {
            continue;
        }
        let task = job.task_name(key.task);
        gives_back(&task, old, &new)?;
        if expected_end(&state.config, &new) != expected_end(&state.config, old)
            || limits(&job.spec.requests) != limits(&spec.requests)
        {
            let refusal = refusal(&task, "its limits are set on its host");
            return Err(refusal.fix("leave h_rt, h_vmem and the other limits as they are"));
        }
        keys.push(key);
    }
    if !keys.is_empty() && maps(state, &job.spec.requests) != maps(state, &spec.requests) {
        let task = job.task_name(keys[0].task);
        return Err(
            refusal(&task, "it keeps its ids of resource maps until it ends").fix("leave resource maps as they are")
        );
    }
    Ok(keys)
}

/// Books the tasks anew. Returns what is said of them.
pub(super) fn record(turn: &mut Turn<'_>, job: JobNumber, tasks: Vec<TaskKey>) -> Option<String> {
    let text = format!("{} running tasks of job {job} gave resources back", tasks.len());
    let said = (!tasks.is_empty()).then_some(text);
    for key in tasks {
        turn.record(Event::TaskRebooked { key });
    }
    said
}

/// Refuses a booking that takes more than the one before, at any level.
fn gives_back(task: &str, old: &Booking, new: &Booking) -> Result<(), Diagnostic> {
    let larger = new.entries().into_iter().find(|entry| {
        let before = old.amount(&entry.level, &entry.attribute);
        entry.amount > before
    });
    larger.map_or(Ok(()), |entry| {
        let why = format!("it would take more of {}", entry.attribute);
        Err(refusal(task, &why).fix("ask for less than before, or leave out -when now"))
    })
}

fn refusal(task: &str, why: &str) -> Diagnostic {
    let what = format!("denied: task {task} runs, and -when now only gives back what it has");
    Diagnostic::new(Code::WrongState, what)
        .why(why.to_owned())
        .at("-when now")
}

/// The requests for limits, which the host of a task keeps as they were when it started.
fn limits(requests: &Requests) -> Vec<&ResourceRequest> {
    let is_limit = |request: &&ResourceRequest| {
        let names = |kind: &LimitKind| BoundKind::ALL.map(|bound| kind.name(bound));
        LimitKind::ATTRIBUTES
            .iter()
            .flat_map(names)
            .any(|name| request.name == name)
    };
    let lists = [&requests.hard, &requests.master, &requests.slaves];
    lists.into_iter().flatten().filter(is_limit).collect()
}

/// The requests for ids.
fn maps<'a>(state: &State, requests: &'a Requests) -> Vec<&'a ResourceRequest> {
    let lists = [&requests.hard, &requests.master, &requests.slaves];
    let is_map = |request: &&ResourceRequest| {
        let attribute = state.config.complex.lookup(request.name.as_str());
        attribute.is_some_and(|attribute| attribute.r#type == Type::RsMap)
    };
    lists.into_iter().flatten().filter(is_map).collect()
}
