//! Which jobs and tasks people mean: numbers, task ranges, names, patterns, users.

use crate::decide::Caller;
use crate::state::State;
use crate::state::job::Job;
use proto::amount::Type;
use proto::id::{JobNumber, SubmitSeq, UserName};
use proto::request::TaskRange;
use proto::restring::{Expression, Wildcards};
use proto::wire::client::{JobSelection, JobTarget};

/// Whose jobs a name or pattern means where no users are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owners {
    /// Those of who asks: a `qdel` by a common name must not reach others.
    Caller,
    /// Everybody's; whether the caller may change them is said for each.
    Everybody,
}

/// One job that is meant, and which of its tasks; no range is the whole job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SelectedJob {
    pub seq: SubmitSeq,
    pub tasks: Vec<TaskRange>,
}

/// What was meant and does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MissingTarget {
    /// A job number.
    Number(String),
    /// A name or pattern, among the jobs of these users.
    Name { name: String, users: String },
    /// These users have no jobs.
    Users(String),
    /// Tasks of a job.
    Tasks { job: JobNumber, tasks: TaskRange },
}

/// `5`, or `5-7:1`.
pub(crate) fn task_words(tasks: TaskRange) -> String {
    if tasks.count() == 1 {
        tasks.first().to_string()
    } else {
        tasks.to_string()
    }
}

/// Everything that a selection names, in its order.
pub(crate) fn select(
    state: &State,
    caller: &Caller,
    owners: Owners,
    selection: &JobSelection,
) -> Vec<Result<SelectedJob, MissingTarget>> {
    if selection.targets.is_empty() {
        return jobs_of_users(state, &selection.users);
    }
    selection
        .targets
        .iter()
        .flat_map(|target| select_target(state, caller, owners, selection, target))
        .collect()
}

fn jobs_of_users(state: &State, users: &[String]) -> Vec<Result<SelectedJob, MissingTarget>> {
    let found: Vec<_> = owners(state, users)
        .flat_map(|user| state.index.jobs_of(user))
        .map(|seq| Ok(SelectedJob { seq, tasks: Vec::new() }))
        .collect();
    if found.is_empty() && !users.is_empty() {
        vec![Err(MissingTarget::Users(users.join(",")))]
    } else {
        found
    }
}

fn select_target(
    state: &State,
    caller: &Caller,
    owners: Owners,
    selection: &JobSelection,
    target: &JobTarget,
) -> Vec<Result<SelectedJob, MissingTarget>> {
    let tasks = if target.tasks.is_empty() {
        &selection.tasks
    } else {
        &target.tasks
    };
    let jobs = match number(&target.job) {
        Some(number) => match state
            .job(number)
            .filter(|job| is_of(&selection.users, &job.spec.owner.user))
        {
            Some(job) => vec![job],
            None => return vec![Err(MissingTarget::Number(target.job.clone()))],
        },
        None => named(state, caller, owners, &selection.users, &target.job),
    };
    if jobs.is_empty() {
        let users = if selection.users.is_empty() {
            caller.user().to_string()
        } else {
            selection.users.join(",")
        };
        return vec![Err(MissingTarget::Name {
            name: target.job.clone(),
            users,
        })];
    }
    jobs.into_iter().flat_map(|job| select_tasks(job, tasks)).collect()
}

/// The job with the given tasks; each range that names no task of it is missing.
fn select_tasks(job: &Job, tasks: &[TaskRange]) -> Vec<Result<SelectedJob, MissingTarget>> {
    let (known, unknown): (Vec<TaskRange>, Vec<TaskRange>) =
        tasks.iter().partition(|range| !job.select(&[**range]).is_empty());
    let mut found = Vec::new();
    if tasks.is_empty() || !known.is_empty() {
        found.push(Ok(SelectedJob {
            seq: job.seq,
            tasks: known,
        }));
    }
    found.extend(
        unknown
            .into_iter()
            .map(|tasks| Err(MissingTarget::Tasks { job: job.number, tasks })),
    );
    found
}

/// Jobs by name or pattern, oldest first: those of the users, or of `whose` where none are given.
fn named<'a>(state: &'a State, caller: &Caller, whose: Owners, users: &[String], name: &str) -> Vec<&'a Job> {
    let pattern = Wildcards::new(name);
    let is_meant = |owner: &UserName| match whose {
        _ if !users.is_empty() => is_of(users, owner),
        Owners::Caller => owner == caller.user(),
        Owners::Everybody => true,
    };
    let owners = state.index.owners().filter(|owner| is_meant(owner));
    let jobs = owners
        .flat_map(|owner| state.index.jobs_of(owner))
        .map(|seq| &state.jobs[&seq]);
    let mut found: Vec<&Job> = jobs.filter(|job| pattern.matches(&job.spec.name)).collect();
    found.sort_by_key(|job| job.seq);
    found
}

/// The jobs of one user whose names match, oldest first.
pub(crate) fn own_jobs_named<'a>(state: &'a State, owner: &UserName, name: &str) -> Vec<&'a Job> {
    let Ok(pattern) = Expression::parse(name) else {
        return Vec::new();
    };
    let jobs = state.index.jobs_of(owner).map(|seq| &state.jobs[&seq]);
    jobs.filter(|job| pattern.matches(&job.spec.name, Type::String))
        .collect()
}

/// Everybody with jobs whom one of the patterns names.
fn owners<'a>(state: &'a State, users: &'a [String]) -> impl Iterator<Item = &'a UserName> {
    state
        .index
        .owners()
        .filter(|owner| users.iter().any(|user| names(user, owner)))
}

fn is_of(users: &[String], owner: &UserName) -> bool {
    users.is_empty() || users.iter().any(|user| names(user, owner))
}

fn names(pattern: &str, user: &UserName) -> bool {
    Wildcards::new(pattern).matches(user.as_str())
}

/// A text that is a job number.
pub(crate) fn number(text: &str) -> Option<JobNumber> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok().map(JobNumber))?
}

/// Reads `5`, `5.1-3`, `name`: a task range follows only a number.
///
/// None if something other than a range follows the dot of a number.
pub(crate) fn target(text: &str) -> Option<JobTarget> {
    match text.split_once('.').filter(|(job, _)| number(job).is_some()) {
        Some((job, tasks)) => {
            let tasks: Option<Vec<TaskRange>> = tasks.split(',').map(|range| TaskRange::parse(range).ok()).collect();
            Some(JobTarget {
                job: job.to_owned(),
                tasks: tasks?,
            })
        }
        None => Some(JobTarget {
            job: text.to_owned(),
            tasks: Vec::new(),
        }),
    }
}
