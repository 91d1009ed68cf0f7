//! Holds of jobs and tasks.

use crate::collections::ranges::TaskRanges;
use crate::decide::Turn;
use crate::decide::jobs::select::SelectedJob;
use crate::event::Event;
use crate::state::job::{Job, changed_holds};
use proto::diagnostic::{Code, Diagnostic};
use proto::job::{HoldChange, Holds};
use proto::wire::client::Answer;

/// More tasks than this are named as ranges, not one by one.
const NAMED_ONE_BY_ONE: u32 = 100;

/// Changes the holds of what was selected, and names what really changed.
pub(crate) fn change(turn: &mut Turn<'_>, selected: &SelectedJob, change: HoldChange) -> Vec<Answer> {
    let job = &turn.state().jobs[&selected.seq];
    let changing = changing(job, job.select(&selected.tasks), change);
    if changing.is_empty() {
        return Vec::new();
    }
    let texts = texts(job, &changing);
    turn.record(Event::HoldsChanged {
        seq: selected.seq,
        tasks: changing.ranges(),
        change,
    });
    texts.into_iter().map(Answer::Done).collect()
}

/// The change without releases of holds that no selected task has: those need no right, because
/// they do nothing.
pub(crate) fn effective(job: &Job, selected: &SelectedJob, change: HoldChange) -> HoldChange {
    let set = holds_of(job, selected);
    let Holds { user, operator, system } = change.release;
    let release = Holds {
        user: user && set.user,
        operator: operator && set.operator,
        system: system && set.system,
    };
    HoldChange { release, ..change }
}

/// All holds that any of the selected tasks has.
fn holds_of(job: &Job, selected: &SelectedJob) -> Holds {
    let tasks = job.select(&selected.tasks);
    let untouched = (!job.untouched.intersection(&tasks.ranges()).is_empty()).then_some(job.spec.holds);
    let own = job
        .tasks
        .iter()
        .filter(|(task, _)| tasks.contains(**task))
        .map(|(_, state)| state.holds);
    let add = |set, holds| {
        changed_holds(
            set,
            HoldChange {
                set: holds,
                release: Holds::default(),
            },
        )
    };
    untouched.into_iter().chain(own).fold(Holds::default(), add)
}

/// Says which holds of others keep a job that was to be released, and who may release them: a
/// refusal where nothing was released, else a warning. Grid Engine 8.1.9 says nothing there, so
/// that the job seems to be free and never starts.
pub(crate) fn left(job: &Job, selected: &SelectedJob, asked: HoldChange, done: HoldChange) -> Option<Answer> {
    if asked.set.any() || !asked.release.any() {
        return None;
    }
    let Holds {
        user: _,
        operator,
        system,
    } = holds_of(job, selected);
    let (holds, letters, who) = match (operator, system) {
        (false, false) => return None,
        (true, false) => ("operator hold", "o", "an operator or a manager"),
        (false, true) => ("system hold", "s", "a manager"),
        (true, true) => ("operator and system hold", "os", "a manager"),
    };
    let what = format!("job {} is still held: {holds}", job.number);
    let fix = format!("{who} releases it: qrls -h {letters} {}", job.number);
    let diagnostic = Diagnostic::new(Code::WrongState, what).fix(fix);
    Some(if done.release.any() {
        Answer::Warning(diagnostic)
    } else {
        Answer::Refused(diagnostic)
    })
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
        changing
            .iter()
            .map(|task| format!("modified hold of {}", job.task_name(task)))
            .collect()
    } else {
        let name = |range| format!("modified hold of job-array tasks {}.{range}", job.number);
        changing.ranges().into_iter().map(name).collect()
    }
}
