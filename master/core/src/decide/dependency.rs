//! What a job waits for: `-hold_jid` and `-hold_jid_ad`, resolved once (JOB-04, JOB-05).

use super::select;
use crate::state::State;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::{SubmitSeq, UserName};
use std::collections::BTreeSet;

/// The jobs that numbers, names and patterns mean now, rising. What does not exist is not waited for.
///
/// Numbers mean anybody's jobs, names and patterns those of `owner`; `own` is the job itself if it exists already: names then mean
/// only what was submitted before it, so that a pattern that fits it too does no harm.
///
/// # Errors
/// If the job would wait for itself, directly or through others.
pub(super) fn resolve(
    state: &State,
    owner: &UserName,
    own: Option<SubmitSeq>,
    names: &[String],
) -> Result<Vec<SubmitSeq>, Diagnostic> {
    let mut found = BTreeSet::new();
    for name in names {
        match select::number(name) {
            Some(number) => found.extend(state.job(number).map(|job| job.seq)),
            None => {
                let earlier = select::own_jobs_named(state, owner, name).into_iter().map(|job| job.seq);
                found.extend(earlier.filter(|seq| own.is_none_or(|own| *seq < own)));
            }
        }
    }
    if own.is_some_and(|own| reaches(state, &found, own)) {
        let refusal = Diagnostic::new(Code::BadValue, "denied: the job would wait for itself");
        return Err(refusal.at("-hold_jid").fix("name jobs that do not wait for it"));
    }
    Ok(found.into_iter().collect())
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
