//! `qalter`, `qhold`, `qrls`: changes of jobs that are there already.
//!
//! What changes concerns tasks that start later: a task on a host goes on as it was started, and
//! keeps what was booked for it, unless it is to give something back (`rebook`).

mod allowed;
mod fields;
mod holds;
mod rebook;

use crate::decide::jobs::bulk_commands::{self, BulkAction};
use crate::decide::jobs::dependency;
use crate::decide::jobs::dependency::Predecessors;
use crate::decide::jobs::select::{self, MissingTarget, Owners, SelectedJob};
use crate::decide::requests::RequestOrigin;
use crate::decide::submit::{self, access, advice, checks, names, paths};
use crate::decide::verify::{self, Verdict};
use crate::decide::{Caller, Turn};
use crate::effect::Effect;
use crate::event::Event;
use crate::state::State;
use crate::state::job::Job;
use fields::Alteration;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::{JobNumber, SubmitSeq};
use proto::job::{JobChanges, JobSpec, Requests, Validation};
use proto::request::TaskRange;
use proto::wire::client::{Answer, JobSelection, Reply};
use std::sync::Arc;

/// Decides an alteration, job by job. None if it is answered later.
pub(crate) fn alter(
    turn: &mut Turn<'_>,
    request: RequestOrigin,
    caller: &Caller,
    jobs: &JobSelection,
    changes: Box<JobChanges>,
) -> Option<Reply> {
    if let Err(refusal) = caller.must_be_on_known_host(turn.state()) {
        return Some(Reply::refusal(refusal));
    }
    if let Err(refusal) = allowed::check(turn.state(), &changes) {
        turn.effect(Effect::Warn(refusal.clone()));
        return Some(Reply::refusal(refusal));
    }
    let selected = select::select(turn.state(), caller, Owners::Everybody, jobs);
    bulk_commands::begin(turn, request, caller, BulkAction::Alter(changes), selected)
}

/// Alters what is meant of one job.
pub(crate) fn alter_one(
    turn: &mut Turn<'_>,
    caller: &Caller,
    selected: &Result<SelectedJob, MissingTarget>,
    changes: &JobChanges,
    answers: &mut Vec<Answer>,
) {
    let outcome = match selected {
        Ok(selected) => altered(turn, caller, selected, changes),
        Err(missing) => Err(vec![refused(turn, caller, missing)]),
    };
    match outcome {
        Ok(done) => answers.extend(done),
        Err(refusals) => answers.extend(refusals.into_iter().map(Answer::Refused)),
    }
}

fn refused(turn: &Turn<'_>, caller: &Caller, missing: &MissingTarget) -> Diagnostic {
    let job = match missing {
        MissingTarget::Tasks { job, tasks } => turn.state().job(*job).filter(|job| is_wrongly_divided(job, &[*tasks])),
        MissingTarget::Number(_) | MissingTarget::Name { .. } | MissingTarget::Users(_) => None,
    };
    match job {
        Some(job) => may_alter(caller, job).err().unwrap_or_else(|| not_an_array(job)),
        None => unknown(missing),
    }
}

/// Whether several tasks are named of a job that is not an array. Grid Engine 8.1.9 takes one
/// number with any job.
fn is_wrongly_divided(job: &Job, tasks: &[TaskRange]) -> bool {
    job.spec.array.is_none() && tasks.iter().any(|range| range.count() > 1)
}

fn not_an_array(job: &Job) -> Diagnostic {
    Diagnostic::new(Code::BadValue, format!("{} is not a job array", job.number)).fix("name the job without tasks")
}

fn unknown(missing: &MissingTarget) -> Diagnostic {
    let what = match missing {
        MissingTarget::Number(job) | MissingTarget::Name { name: job, .. } => {
            format!("denied: job \"{job}\" does not exist")
        }
        MissingTarget::Users(users) => format!("There is no job registered for the following users: {users}"),
        MissingTarget::Tasks { job, tasks } => {
            format!("job \"{job}\" task \"{}\" does not exist", select::task_words(*tasks))
        }
    };
    Diagnostic::new(Code::UnknownJob, what)
}

/// All changes of one job, or none.
fn altered(
    turn: &mut Turn<'_>,
    caller: &Caller,
    selected: &SelectedJob,
    changes: &JobChanges,
) -> Result<Vec<Answer>, Vec<Diagnostic>> {
    let one = |refusal| vec![refusal];
    let job = &turn.state().jobs[&selected.seq];
    may_alter(caller, job).map_err(one)?;
    if !selected.tasks.is_empty() && !fields::concern_tasks_alone(changes) {
        let what = "denied: the selected option works only on jobs and not on tasks";
        return Err(one(
            Diagnostic::new(Code::BadSyntax, what).fix("name the job without its tasks")
        ));
    }
    if is_wrongly_divided(job, &selected.tasks) {
        return Err(one(not_an_array(job)));
    }
    let holds = changes.holds.map(|change| holds::effective(job, selected, change));
    holds
        .map_or(Ok(()), |change| caller.may_change_holds(change))
        .map_err(one)?;
    let mut answers = alter_spec(turn, caller, selected.seq, changes)?;
    if let (Some(asked), Some(change)) = (changes.holds, holds) {
        answers.extend(holds::change(turn, selected, change));
        answers.extend(holds::left(&turn.state().jobs[&selected.seq], selected, asked, change));
    }
    Ok(answers)
}

fn may_alter(caller: &Caller, job: &Job) -> Result<(), Diagnostic> {
    if caller.may_act_for(&job.spec.owner.user) {
        return Ok(());
    }
    let what = format!(
        "denied: \"{}\" must be at least owner of job {} to change job attributes",
        caller.user(),
        job.number
    );
    Err(Diagnostic::new(Code::NotPermitted, what))
}

fn alter_spec(
    turn: &mut Turn<'_>,
    caller: &Caller,
    seq: SubmitSeq,
    changes: &JobChanges,
) -> Result<Vec<Answer>, Vec<Diagnostic>> {
    let one = |refusal| vec![refusal];
    let job = &turn.state().jobs[&seq];
    let number = job.number;
    let mut altered = Alteration {
        spec: (*job.spec).clone(),
        texts: Vec::new(),
        before_dependencies: 0,
    };
    altered.apply(caller, number, changes).map_err(one)?;
    names::make_canonical(&turn.state().config.complex, &mut altered.spec.requests);
    names::check_lengths(&altered.spec).map_err(one)?;
    paths::check_changes(&turn.state().config, changes).map_err(one)?;
    check_environments(turn.state(), changes).map_err(one)?;
    let Alteration {
        spec,
        mut texts,
        before_dependencies,
    } = altered;
    let vain = submit::vain_reservation(turn.state(), &spec).filter(|_| changes.reserve == Some(true));
    if spec == *job.spec && changes.validation.is_none() && !changes.for_running {
        return Ok(done(texts).into_iter().chain(vain).collect());
    }
    check_access(turn.state(), &job.spec, &spec).map_err(one)?;
    keeps_reservation(job, &spec).map_err(one)?;
    checks::check_spec(turn.state(), &spec)?;
    checks::check_growth(turn.state(), turn.site().users, &job.spec, &spec).map_err(one)?;
    if changes.validation == Some(Validation::Poke) && (job.active > 0 || job.spec.holds.any()) {
        return Ok(done(vec!["verification: job is already running or is held".to_owned()]));
    }
    let (spec, warnings) = match asked(turn, number, spec, changes.validation)? {
        AlterDecision::Only(answer) => return Ok(vec![answer]),
        AlterDecision::Alter(spec, warnings) => (spec, warnings),
    };
    let job = &turn.state().jobs[&seq];
    let predecessors = waits(turn, job, &spec, changes).map_err(one)?;
    let advice = advice_of(turn, changes, &predecessors);
    let rebooked = rebook::tasks(turn.state(), job, &spec, changes).map_err(one)?;
    let asks_anew = spec.requests != job.spec.requests;
    let about_dependencies = dependency_texts(turn, number, changes, &predecessors);
    texts.splice(before_dependencies..before_dependencies, about_dependencies);
    let [waits_for, array_waits_for] = predecessors.map(|predecessors| predecessors.found);
    let never = if asks_anew { advice::never(turn, &spec) } else { None };
    let spec = turn.state().index.commons.shared(&Arc::new(*spec));
    turn.record(Event::JobAltered {
        seq,
        spec,
        waits_for,
        array_waits_for,
    });
    texts.extend(rebook::record(turn, number, rebooked));
    Ok(done(texts)
        .into_iter()
        .chain(vain)
        .chain(warnings)
        .chain(advice)
        .chain(never)
        .collect())
}

/// Refuses another advance reservation for a job that runs.
fn keeps_reservation(job: &Job, spec: &JobSpec) -> Result<(), Diagnostic> {
    if job.active == 0 || spec.reservation == job.spec.reservation {
        return Ok(());
    }
    let what = format!("job {} can't modify running jobs", job.number);
    let refusal = Diagnostic::new(Code::WrongState, what).at("-ar");
    Err(refusal.fix("it keeps the slots that it has; change a job that waits"))
}

/// The warnings of a submission, as far as they are about what changes.
fn advice_of(turn: &Turn<'_>, changes: &JobChanges, [plain, array]: &[Predecessors; 2]) -> Vec<Answer> {
    let of = |list: &Option<Vec<proto::request::ResourceRequest>>| list.clone().unwrap_or_default();
    let JobChanges {
        hard,
        soft,
        master,
        slaves,
        ..
    } = changes;
    let asked = Requests {
        hard: of(hard),
        soft: of(soft),
        master: of(master),
        slaves: of(slaves),
        ..Requests::default()
    };
    let mut answers = advice::multiplied_times(&turn.state().config.complex, &asked);
    answers.extend(advice::missing_predecessors("-hold_jid", plain));
    answers.extend(advice::missing_predecessors("-hold_jid_ad", array));
    answers
}

/// Other words than at submission, as in 8.1.9.
fn check_environments(state: &State, changes: &JobChanges) -> Result<(), Diagnostic> {
    let missing = |what: &str, name: &str| {
        Diagnostic::new(
            Code::UnknownObject,
            format!("denied: {what} environment \"{name}\" does not exist"),
        )
    };
    if let Some(name) = changes.checkpoint.as_ref().filter(|name| !name.is_empty())
        && !state.config.checkpoints.contains_key(name)
    {
        return Err(missing("checkpointing", name)
            .at("-ckpt")
            .fix("qconf -sckptl lists them"));
    }
    match &changes.pe {
        Some(pe) if !checks::is_pe(&state.config, &pe.name) => {
            Err(missing("parallel", &pe.name).at("-pe").fix("qconf -spl lists them"))
        }
        Some(_) | None => Ok(()),
    }
}

/// As at submission, of what changes: a job goes on with a project that its owner lost meanwhile.
fn check_access(state: &State, before: &JobSpec, after: &JobSpec) -> Result<(), Diagnostic> {
    if before.project != after.project {
        access::check_project(&state.config, after)?;
    }
    if before.deadline != after.deadline {
        access::check_deadline(&state.config, after)?;
    }
    Ok(())
}

/// What `-w` makes of an alteration.
enum AlterDecision {
    Only(Answer),
    Alter(Box<JobSpec>, Vec<Answer>),
}

/// `-w v` and `-w p` only ask; the level of the job itself does not change by asking.
fn asked(
    turn: &Turn<'_>,
    number: JobNumber,
    spec: JobSpec,
    validation: Option<Validation>,
) -> Result<AlterDecision, Vec<Diagnostic>> {
    let Some(validation) = validation else {
        return Ok(AlterDecision::Alter(Box::new(spec), Vec::new()));
    };
    let spec = JobSpec { validation, ..spec };
    match verify::verify(turn, number, &spec)? {
        Verdict::OnlyAsked(answer) => Ok(AlterDecision::Only(answer)),
        Verdict::GoOn(warnings) => Ok(AlterDecision::Alter(Box::new(spec), warnings)),
    }
}

/// The jobs for which the job waits after the alteration, plainly and task by task: as before where
/// nothing is said about it.
fn waits(turn: &Turn<'_>, job: &Job, spec: &JobSpec, changes: &JobChanges) -> Result<[Predecessors; 2], Diagnostic> {
    let (state, own) = (turn.state(), Some(job.seq));
    let plain = match &changes.predecessors {
        Some(names) => dependency::resolve(state, &spec.owner.user, own, names)?,
        None => Predecessors::from(&*job.waits_for),
    };
    let array = match &changes.array_predecessors {
        Some(names) => dependency::resolve_array(state, spec, own, names)?,
        None => Predecessors::from(&*job.array_waits_for),
    };
    Ok([plain, array])
}

fn dependency_texts(
    turn: &Turn<'_>,
    number: JobNumber,
    changes: &JobChanges,
    [plain, array]: &[Predecessors; 2],
) -> Vec<String> {
    let listed = |numbers: Vec<String>| {
        if numbers.is_empty() {
            "NONE".to_owned()
        } else {
            numbers.join(",")
        }
    };
    let is_number = |name: &&String| select::number(name).is_some();
    let text = |list: &str, Predecessors { found, missing }: &Predecessors| {
        let blocking = listed(
            found
                .iter()
                .map(|seq| turn.state().jobs[seq].number.to_string())
                .collect(),
        );
        let exited = listed(missing.iter().filter(is_number).cloned().collect());
        format!("modified {list} of job {number}\n   blocking jobs: {blocking}\n   exited jobs:   {exited}")
    };
    let plain = changes.predecessors.as_ref().map(|_| text("job id hold list", plain));
    let array = changes
        .array_predecessors
        .as_ref()
        .map(|_| text("job id hold array list", array));
    plain.into_iter().chain(array).collect()
}

fn done(texts: Vec<String>) -> Vec<Answer> {
    texts.into_iter().map(Answer::Done).collect()
}

/// A job's specification with changes made to it, for a copy of the job.
///
/// # Errors
/// If the caller lacks the role for a change.
pub(crate) fn changed(caller: &Caller, job: &Job, changes: &JobChanges) -> Result<(JobSpec, Vec<String>), Diagnostic> {
    let mut altered = Alteration {
        spec: (*job.spec).clone(),
        texts: Vec::new(),
        before_dependencies: 0,
    };
    altered.apply(caller, job.number, changes)?;
    Ok((altered.spec, altered.texts))
}
