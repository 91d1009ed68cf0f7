//! The lines of `scheduling info` in `qstat -j`: what is out of service, then what the job itself
//! lacks.

use super::words::sentence;
use crate::ledger::Level;
use crate::matching::{Cluster, Demand, message_text};
use crate::reason::facts::ReasonCause;
use crate::reason::group::Group;
use crate::reason::{Obstacle, Reason, Shortage, Value};
use crate::sched::report::finding::Findings;
use crate::state::State;
use crate::state::eligible::{IneligibleReason, eligible_tasks, job_eligible, resting, user_eligible};
use crate::state::job::Job;
use proto::id::SubmitSeq;
use proto::policy::JobInfo;
use proto::time::Now;
use std::sync::Arc;

/// Lines about queue instances; a large cluster has more than anybody reads.
const LINES_MAX: usize = 100;

/// What stands there for every job where `schedd_job_info` is false.
const TURNED_OFF: &str = "(Collecting of scheduler job information is turned off)";

/// What stands there for every job where `schedd_job_info` is a list.
const NOT_FOR_EVERY_JOB: &str = "(Scheduler job information not available for every job)";

/// The lines for a job, in the words of 8.1.9, as far as `schedd_job_info` has them shown.
pub fn scheduling_info(findings: &mut Findings<'_>, seq: SubmitSeq) -> Vec<String> {
    let Some(job) = findings.state.jobs.get(&seq) else {
        return Vec::new();
    };
    let mut lines = info_of_all(findings);
    lines.extend(info_of_one(findings, job));
    lines
}

/// Of [`scheduling_info`] what stands there for every job.
pub fn info_of_all(findings: &mut Findings<'_>) -> Vec<String> {
    let mut lines = match &findings.state.config.scheduler.schedd_job_info {
        JobInfo::No => return vec![TURNED_OFF.to_owned()],
        JobInfo::Yes => Vec::new(),
        JobInfo::Jobs(_) => vec![NOT_FOR_EVERY_JOB.to_owned()],
    };
    lines.extend(cluster_info(findings).iter().cloned());
    lines
}

/// Of [`scheduling_info`] what stands there for one job.
pub fn info_of_one(findings: &mut Findings<'_>, job: &Job) -> Vec<String> {
    match &findings.state.config.scheduler.schedd_job_info {
        JobInfo::Yes => job_info(findings, job),
        JobInfo::Jobs(jobs) if jobs.contains(&job.number) => job_info(findings, job),
        JobInfo::Jobs(_) | JobInfo::No => Vec::new(),
    }
}

/// The queue instances that take no jobs now, whatever `schedd_job_info` says.
pub fn cluster_info(findings: &mut Findings<'_>) -> Arc<[String]> {
    findings.of_cluster(about_cluster)
}

/// What a job itself lacks, whatever `schedd_job_info` says.
pub fn job_info(findings: &mut Findings<'_>, job: &Job) -> Vec<String> {
    let (state, cluster) = (findings.state, findings.cluster());
    let mut lines = about_job(state, job, findings.now);
    if !is_pending(job) {
        return lines;
    }
    let demand = Demand::of_job(state, job);
    let is_told = |group: &&Group| !is_about_cluster(&group.nearest) && is_of_8_1_9(&group.nearest);
    for group in findings.reasons_of(job, &demand).iter().filter(is_told) {
        let told = group.examples.iter().filter(|reason| !is_dropped(&cluster, reason));
        lines.extend(told.map(|reason| sentence(reason, &demand.text)));
        lines.extend(summary(group, &demand.text));
    }
    // What guards a whole cluster queue is one reason for all of its instances.
    lines.dedup();
    lines
}

/// Of a group of which not all are told: how many more, and which of all is nearest to being
/// enough.
fn summary(group: &Group, asked: &str) -> Option<String> {
    let more = usize::try_from(group.count)
        .unwrap_or(usize::MAX)
        .saturating_sub(group.examples.len());
    let numbers = if let Obstacle::Offers(shortage) = &group.nearest.what {
        numbers_of(shortage)
    } else {
        String::new()
    };
    let nearest = sentence(&group.nearest, asked);
    (more > 0).then(|| format!("and {more} more of this kind; nearest: {nearest}{numbers}"))
}

/// What is needed, free and there at all, behind the sentence of a shortage.
fn numbers_of(shortage: &Shortage) -> String {
    let r#type = shortage.r#type;
    let of = shortage
        .capacity
        .map(|amount| format!(", capacity {}", message_text(&Value::Amount(amount), r#type)));
    let (needed, free) = (
        message_text(&shortage.needed, r#type),
        message_text(&shortage.free, r#type),
    );
    format!(": needed {needed}, free {free}{}", of.unwrap_or_default())
}

/// Whether a reason is about a queue instance that takes no job at all now, which is told already.
fn is_dropped(cluster: &Cluster<'_>, reason: &Reason) -> bool {
    match &reason.level {
        Level::Instance(instance) => cluster.out_of_service(&cluster.site(instance)).is_some(),
        Level::Global | Level::Host(_) => false,
    }
}

/// Whether a reason holds for whoever asks.
fn is_about_cluster(reason: &Reason) -> bool {
    reason.what.facts().cause == ReasonCause::Instance
}

/// Whether 8.1.9 has a line for it: what reads `qstat -j` knows no others.
fn is_of_8_1_9(reason: &Reason) -> bool {
    !matches!(reason.what, Obstacle::NoMore(_))
}

/// The queue instances that take no jobs now.
fn about_cluster(cluster: &Cluster<'_>) -> Vec<String> {
    let (mut lines, mut all) = (Vec::new(), true);
    for instance in cluster.config.resolved.keys() {
        let alarm = || cluster.alarms(instance).into_iter().next();
        match cluster.out_of_service(&cluster.site(instance)).or_else(alarm) {
            Some(what) if lines.len() < LINES_MAX => {
                lines.push(Reason::new(Level::Instance(instance.clone()), what).to_string());
            }
            Some(_) => {}
            None => all = false,
        }
    }
    if all {
        lines.push("All queues dropped because of overload or full".to_owned());
    }
    lines
}

fn is_pending(job: &Job) -> bool {
    !job.untouched.is_empty() || job.tasks.values().any(|task| task.place.placement().is_none())
}

/// What keeps the job itself from being looked at.
fn about_job(state: &State, job: &Job, now: Now) -> Vec<String> {
    let mut lines = Vec::new();
    if job.tasks.values().any(|task| task.place.error().is_some()) {
        lines.push("Job is in error state".to_owned());
    }
    match job_eligible(state, job, now.wall).and_then(|()| user_eligible(state, job)) {
        Ok(()) if is_pending(job) && eligible_tasks(state, job, now).next().is_none() && lines.is_empty() => {
            let paused = resting(job, now).and_then(|why| not_eligible(&why));
            lines.push(paused.unwrap_or_else(|| held(job)));
        }
        Ok(()) => {}
        Err(why) if is_pending(job) => lines.extend(not_eligible(&why)),
        Err(_) => {}
    }
    lines
}

fn held(job: &Job) -> String {
    let text = if job.array_waits_for.is_empty() {
        "Job is in hold state"
    } else {
        "job dropped because of job dependencies"
    };
    text.to_owned()
}

fn not_eligible(why: &IneligibleReason) -> Option<String> {
    Some(match why {
        IneligibleReason::NotPending => return None,
        IneligibleReason::Held => "Job is in hold state".to_owned(),
        IneligibleReason::Error => "Job is in error state".to_owned(),
        IneligibleReason::WaitsFor(_) => "job dropped because of job dependencies".to_owned(),
        IneligibleReason::NoReservation(_)
        | IneligibleReason::ReservationTime(..)
        | IneligibleReason::ReservationBroken(_) => {
            format!("Job waits: {why}")
        }
        IneligibleReason::StartTime(_) => "execution time not reached".to_owned(),
        IneligibleReason::AskedAgain(_) => {
            "job dropped because it asked to be run again and a pause is not over".to_owned()
        }
        // 8.1.9 names max_aj_instances here too, which is wrong.
        IneligibleReason::TaskConcurrency(_) => "not all array tasks may be started due to '-tc'".to_owned(),
        IneligibleReason::UserJobs(_) => "job dropped because of user limitations".to_owned(),
        IneligibleReason::ArrayInstances(_) => {
            "not all array tasks may be started due to 'max_aj_instances'".to_owned()
        }
    })
}
