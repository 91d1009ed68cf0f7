//! Holds of jobs and tasks (JOB-03).

use crate::decide::Turn;
use crate::decide::select::Selected;
use crate::event::Event;
use crate::state::job::{Job, changed_holds};
use crate::state::ranges::TaskRanges;
use proto::job::{HoldChange, Holds};
use proto::wire::client::Answer;

/// More tasks than this are named as ranges, not one by one.
const NAMED_ONE_BY_ONE: u32 = 100;

/// Changes the holds of what was selected, and names what really changed.
pub(super) fn change(turn: &mut Turn<'_>, selected: &Selected, change: HoldChange) -> Vec<Answer> {
    let job = &turn.state().jobs[&selected.seq];
    let changing = changing(job, job.select(&selected.tasks), change);
    if changing.is_empty() {
        return Vec::new();
    }
    let texts = texts(job, &changing);
    turn.record(Event::HoldsChanged { seq: selected.seq, tasks: changing.ranges(), change });
    texts.into_iter().map(Answer::Done).collect()
}

/// The change without releases of holds that no selected task has: those need no right, because they do nothing.
pub(super) fn effective(job: &Job, selected: &Selected, change: HoldChange) -> HoldChange {
    let tasks = job.select(&selected.tasks);
    let untouched = (!job.untouched.intersection(&tasks.ranges()).is_empty()).then_some(job.spec.holds);
    let own = job.tasks.iter().filter(|(task, _)| tasks.contains(**task)).map(|(_, state)| state.holds);
    let mut set = Holds::default();
    for holds in untouched.into_iter().chain(own) {
        set = changed_holds(set, HoldChange { set: holds, release: Holds::default() });
    }
    let Holds { user, operator, system } = change.release;
    let release = Holds { user: user && set.user, operator: operator && set.operator, system: system && set.system };
    HoldChange { release, ..change }
}

/// The tasks whose holds become different.
fn changing(job: &Job, mut tasks: TaskRanges, change: HoldChange) -> TaskRanges {
    let stays = |holds| changed_holds(holds, change) == holds;
    if stays(job.spec.holds) {
        tasks.take_ranges(&job.untouched.ranges());
    }
    for (task, _) in job.tasks.iter().filter(|(_, state)| stays(state.holds)) {
        tasks.take(*task);
    }
    tasks
}

fn texts(job: &Job, changing: &TaskRanges) -> Vec<String> {
    if job.spec.array.is_none() {
        vec![format!("modified hold of job {}", job.number)]
    } else if changing.len() <= NAMED_ONE_BY_ONE {
        changing.iter().map(|task| format!("modified hold of {}", job.task_name(task))).collect()
    } else {
        let name = |range| format!("modified hold of job-array tasks {}.{range}", job.number);
        changing.ranges().into_iter().map(name).collect()
    }
}
