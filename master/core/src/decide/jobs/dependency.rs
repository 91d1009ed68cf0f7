//! What a job waits for: `-hold_jid` and `-hold_jid_ad`, resolved once.

use crate::decide::jobs::select;
use crate::state::State;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::{SubmitSeq, UserName};
use proto::job::JobSpec;
use std::collections::BTreeSet;

/// The jobs for which a job waits, as an option named them.
#[derive(Debug, Default)]
pub(crate) struct Predecessors {
    /// The jobs, rising.
    pub found: Vec<SubmitSeq>,
    /// Numbers, names and patterns that mean no job. Nothing waits for them.
    pub missing: Vec<String>,
}

impl From<&BTreeSet<SubmitSeq>> for Predecessors {
    fn from(found: &BTreeSet<SubmitSeq>) -> Self {
        Predecessors {
            found: found.iter().copied().collect(),
            missing: Vec::new(),
        }
    }
}

/// The jobs that numbers, names and patterns mean now. What does not exist is not waited for.
///
/// Numbers mean anybody's jobs, names and patterns those of `owner`; `own` is the job itself if it
/// exists already: names then mean only what was submitted before it, so that a pattern that fits
/// it too does no harm.
///
/// # Errors
/// If the job would wait for itself, directly or through others.
pub(crate) fn resolve(
    state: &State,
    owner: &UserName,
    own: Option<SubmitSeq>,
    names: &[String],
) -> Result<Predecessors, Diagnostic> {
    resolve_option("-hold_jid", state, owner, own, names)
}

/// [`resolve`] for `-hold_jid` or `-hold_jid_ad`.
fn resolve_option(
    option: &str,
    state: &State,
    owner: &UserName,
    own: Option<SubmitSeq>,
    names: &[String],
) -> Result<Predecessors, Diagnostic> {
    let (mut found, mut missing) = (BTreeSet::new(), Vec::new());
    for name in names {
        check_name(name).map_err(|refusal| refusal.at(format!("{option} {name}")))?;
        match named(state, owner, own, name) {
            jobs if jobs.is_empty() => missing.push(name.clone()),
            jobs => found.extend(jobs),
        }
    }
    if own.is_some_and(|own| reaches(state, &found, own)) {
        let refusal = Diagnostic::new(Code::BadValue, "denied: the job would wait for itself");
        return Err(refusal.at(option).fix("name jobs that do not wait for it"));
    }
    Ok(Predecessors {
        found: found.into_iter().collect(),
        missing,
    })
}

/// The jobs that one number, name or pattern means now, as [`resolve`] does.
fn named(state: &State, owner: &UserName, own: Option<SubmitSeq>, name: &str) -> Vec<SubmitSeq> {
    match select::number(name) {
        Some(number) => state.job(number).map(|job| job.seq).into_iter().collect(),
        None => {
            let earlier = select::own_jobs_named(state, owner, name)
                .into_iter()
                .map(|job| job.seq);
            earlier.filter(|seq| own.is_none_or(|own| *seq < own)).collect()
        }
    }
}

/// A word that begins with a digit is the number of a job, because no name begins so. What follows
/// the digits is refused: a job waits for whole jobs, not for tasks.
fn check_name(name: &str) -> Result<(), Diagnostic> {
    if !name.starts_with(|first: char| first.is_ascii_digit()) || select::number(name).is_some() {
        return Ok(());
    }
    let refusal = Diagnostic::new(Code::UnknownJob, format!("denied: job \"{name}\" not found"));
    Err(refusal.fix("name numbers of whole jobs, names and patterns, with commas between them"))
}

/// The jobs that `-hold_jid_ad` means: their tasks stand beside those of this job, so all have one
/// range, as in 8.1.9. Steps may differ.
///
/// # Errors
/// If the job, or one of those, is no array or has another range; as [`resolve`].
pub(crate) fn resolve_array(
    state: &State,
    spec: &JobSpec,
    own: Option<SubmitSeq>,
    names: &[String],
) -> Result<Predecessors, Diagnostic> {
    let predecessors = resolve_option("-hold_jid_ad", state, &spec.owner.user, own, names)?;
    if names.is_empty() {
        return Ok(predecessors);
    }
    let refused = |what: &str| Diagnostic::new(Code::JobRejected, what).at("-hold_jid_ad");
    let no_array = || {
        let what = "Can only specify \"-hold_jid_ad\" option with an array job (using \"-t\" option)";
        refused(what).fix("use -hold_jid, or name array jobs only")
    };
    let ours = spec.array.ok_or_else(no_array)?;
    for seq in &predecessors.found {
        let theirs = state.jobs[seq].spec.array.ok_or_else(no_array)?;
        if (theirs.first(), theirs.last()) != (ours.first(), ours.last()) {
            let what = "This array job must have the same range of sub-tasks as the dependent array job specified with -hold_jid_ad";
            let why = format!("this one has {ours}, job {} has {theirs}", state.jobs[seq].number);
            return Err(refused(what)
                .why(why)
                .fix("give -t the same first and last task; steps may differ"));
        }
    }
    Ok(predecessors)
}

/// Whether waiting for `from` means waiting for `goal`.
fn reaches(state: &State, from: &BTreeSet<SubmitSeq>, goal: SubmitSeq) -> bool {
    let mut seen = BTreeSet::new();
    let mut open: Vec<SubmitSeq> = from.iter().copied().collect();
    while let Some(seq) = open.pop() {
        if seq == goal {
            return true;
        }
        if seen.insert(seq)
            && let Some(job) = state.jobs.get(&seq)
        {
            open.extend(job.waits_for.union(&job.array_waits_for));
        }
    }
    false
}
