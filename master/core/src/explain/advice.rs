//! `gridwright explain`: the reasons with their numbers, nearest miss first, and what would help where that is sure.

use super::reservation::vain_reservation;
use super::words::sentence;
use crate::ledger::Level;
use crate::matching::{Demand, Mode, Value, message_text, verify};
use crate::sched::algorithm::Algorithm;
use crate::sched::finding::{Findings, Group, grouped, is_alike};
use crate::sched::nearness;
use crate::sched::reason::{QuotaDenial, Reason, Shortage, What};
use crate::state::State;
use crate::state::eligible::{Ineligible, eligible_tasks, job_eligible, user_eligible};
use crate::state::job::Job;
use proto::amount::{Amount, Type};
use proto::id::SubmitSeq;
use proto::time::{Now, Tick, Wall};
use proto::wire::view::{Explanation, WaitReason};

/// Examples that are named with a reason.
const EXAMPLES_SHOWN: usize = 5;

/// Why a job waits. An empty explanation of a job that is gone.
pub fn explain(findings: &mut Findings<'_>, seq: SubmitSeq) -> Explanation {
    let (state, observations, now) = (findings.state, findings.observations, findings.now);
    let Some(job) = state.jobs.get(&seq) else { return Explanation::default() };
    let kept = findings.reservation(seq).map(|kept| (wall(now, kept.at), kept.granted.clone()));
    let (starts, kept) = kept.map_or((None, Vec::new()), |(at, granted)| (Some(at), granted));
    let known = Explanation { job: job.number.0, starts, kept, ..Explanation::default() };
    if let Some((summary, reason)) = ineligible(state, job, now) {
        return Explanation { summary, reasons: vec![reason], ..known };
    }
    if eligible_tasks(state, job).next().is_none() {
        return Explanation { summary: "All of its tasks have been given to hosts.".to_owned(), ..known };
    }
    let demand = Demand::of_job(state, job);
    let found = findings.of(job, &demand);
    if found.is_empty() {
        let summary = match observations.hosts.values().any(|host| host.connected) {
            true => turn_comes(state),
            false => "No execution host is connected.",
        };
        return Explanation { summary: summary.to_owned(), ..known };
    }
    let never = verify(state, observations, &job.spec, Mode::EmptyCluster).err();
    let groups = with_unmet(found, never.as_deref().unwrap_or_default());
    let mut reasons: Vec<WaitReason> =
        groups.iter().map(|group| wait_reason(group, &demand.text, never.is_some())).collect();
    let vain = vain_reservation(state, &job.spec);
    reasons.extend(vain.map(|vain| plain(vain.text, Some(vain.fix))));
    let summary = match never {
        None if findings.is_only_kept(&demand) => {
            "It would fit now, but not for as long as it may run: what it needs is kept for jobs of higher priority or reserved in \
             advance, or its queue closes before."
        }
        None => "No queue instance can take it now; what it needs may become free.",
        Some(_) => "No queue instance can take it as the cluster is configured; waiting alone will not help.",
    };
    Explanation { summary: summary.to_owned(), reasons, ..known }
}

/// What a job waits for against which nothing stands.
fn turn_comes(state: &State) -> &'static str {
    match Algorithm::of(&state.config.scheduler) {
        Algorithm::Default => {
            "Nothing stands against it now: it is behind jobs of higher priority, or starts with the next pass."
        }
        Algorithm::Fcfs => {
            "Nothing stands against it now: it is behind jobs that came earlier (algorithm fcfs), or starts with the next pass."
        }
        Algorithm::External => {
            "Nothing stands against it now: a scheduler outside the master places jobs (algorithm external)."
        }
    }
}

/// What a pass found, nearest miss first, behind what it did not look for because something else failed before: a request that
/// is not met on an empty cluster either counts for more than a queue that is full.
fn with_unmet(found: &[Group], never: &[Reason]) -> Vec<Group> {
    let is_known = |reason: &Reason| found.iter().any(|group| is_alike(&group.examples[0], reason));
    let mut first = grouped(never.iter().filter(|reason| !is_known(reason)));
    let mut found = found.to_vec();
    first.sort_by_key(|group| nearness(&group.nearest));
    found.sort_by_key(|group| nearness(&group.nearest));
    first.extend(found);
    first
}

/// When it will be so late on the wall clock, unless that jumps.
fn wall(now: Now, at: Tick) -> Wall {
    Wall(now.wall.0.saturating_add_unsigned(at.since_ms(now.tick)))
}

/// What keeps a pending job from being looked at.
fn ineligible(state: &State, job: &Job, now: Now) -> Option<(String, WaitReason)> {
    let error = job.tasks.values().find_map(|task| task.place.error());
    if let Some(error) = error.filter(|_| eligible_tasks(state, job).next().is_none()) {
        let reason =
            plain("Job is in error state".to_owned(), Some("clear it with qmod -cj once the cause is gone".to_owned()));
        return Some((format!("It is in error: {error}"), reason));
    }
    let why = match job_eligible(state, job, now.wall).and_then(|()| user_eligible(state, job)) {
        Err(why) => why,
        Ok(()) if job.spec.holds.any() && eligible_tasks(state, job).next().is_none() => Ineligible::Held,
        Ok(()) => return None,
    };
    let hint = match &why {
        Ineligible::Held => Some("release it with qrls".to_owned()),
        Ineligible::TaskConcurrency(_) => Some("more of its tasks may run with qalter -tc".to_owned()),
        Ineligible::NotPending
        | Ineligible::Error
        | Ineligible::WaitsFor(_)
        | Ineligible::StartTime(_)
        | Ineligible::ArrayInstances(_)
        | Ineligible::ReservationTime(..)
        | Ineligible::UserJobs(_) => None,
        Ineligible::NoReservation(_) => Some("qalter -ar 0 lets it run without one".to_owned()),
        Ineligible::ReservationBroken(id) => Some(format!("qrstat -explain -ar {id} names what fails")),
    };
    let text = why.text(state);
    Some((format!("It may not start yet: {text}."), plain(text, hint)))
}

fn plain(text: String, hint: Option<String>) -> WaitReason {
    WaitReason {
        text,
        attribute: None,
        level: "job".to_owned(),
        needed: None,
        free: None,
        capacity: None,
        count: 1,
        examples: Vec::new(),
        hint,
    }
}

/// A group of reasons, told by the nearest miss. `never` says that waiting alone will not help.
fn wait_reason(group: &Group, asked: &str, never: bool) -> WaitReason {
    let reason = &group.nearest;
    let others = group.examples.iter().filter(|other| other.level != reason.level);
    let named = std::iter::once(reason).chain(others).take(EXAMPLES_SHOWN).map(|reason| reason.level.to_string());
    let (attribute, needed, free, capacity) = numbers(&reason.what);
    WaitReason {
        text: sentence(reason, asked),
        attribute,
        level: level_word(reason).to_owned(),
        needed,
        free,
        capacity,
        count: group.count,
        examples: named.collect(),
        hint: hint(reason).or_else(|| too_much(group).filter(|_| never)),
    }
}

fn level_word(reason: &Reason) -> &'static str {
    match (&reason.what, &reason.level) {
        (What::PeOffers { .. } | What::NoSuchPe { .. } | What::NoPeAccess { .. }, _) => "pe",
        (What::Quota(_), _) => "quota",
        (_, Level::Global) => "global",
        (_, Level::Host(_)) => "host",
        (_, Level::Instance(_)) => "queue",
    }
}

/// A number as people write it: counts without the decimals that the sentences of 8.1.9 give them.
fn number(value: &Value, r#type: Type) -> String {
    match value {
        Value::Amount(amount) if matches!(r#type, Type::Int | Type::RsMap) => {
            amount.finite().map_or_else(|| message_text(value, r#type), |count| count.to_string())
        }
        Value::Amount(_) | Value::Text(_) => message_text(value, r#type),
    }
}

/// The attribute, what is needed, what is free, what there is in all.
fn numbers(what: &What) -> (Option<String>, Option<String>, Option<String>, Option<String>) {
    match what {
        What::Offers(Shortage { attribute, r#type, needed, free, capacity, .. }) => {
            let capacity = capacity.map(|capacity| number(&Value::Amount(capacity), *r#type));
            let (needed, free) = (number(needed, *r#type), number(free, *r#type));
            (Some(attribute.to_string()), Some(needed), Some(free), capacity)
        }
        What::Overloaded(overload) | What::SuspendAlarm(overload) => {
            let value = overload.value.as_ref().map(|value| number(value, overload.r#type));
            (Some(overload.attribute.to_string()), Some(overload.limit.clone()), value, None)
        }
        What::Full { slots } => {
            (Some("slots".to_owned()), Some("1".to_owned()), Some("0".to_owned()), Some(slots.to_string()))
        }
        What::PeOffers { slots, needed, of, .. } => {
            (Some("slots".to_owned()), Some(needed.to_string()), Some(slots.to_string()), of.map(|of| of.to_string()))
        }
        What::NoMore(no_more) => numbers(&no_more.why),
        What::Quota(denial) => quota_numbers(denial),
        What::UnknownResource { attribute } => (Some(attribute.clone()), None, None, None),
        What::Forced { attribute } | What::InUse { attribute } => (Some(attribute.to_string()), None, None, None),
        What::Disabled
        | What::Suspended
        | What::ClosedByCalendar
        | What::SuspendedByCalendar
        | What::Subordinate
        | What::Preempted
        | What::InError
        | What::Ambiguous
        | What::NoContact
        | What::NotInQueueList
        | What::NotReserved { .. }
        | What::NotInMasterQueues
        | What::NotInSlaveQueues
        | What::WrongType { .. }
        | What::NotInPe { .. }
        | What::NotInCkptList { .. }
        | What::MayRunThere
        | What::NoAccess { .. }
        | What::NoProject { .. }
        | What::NoPeAccess { .. }
        | What::NoSuchPe { .. }
        | What::NoInstances
        | What::NoSuchJob
        | What::WrongSlots { .. } => (None, None, None, None),
    }
}

/// The same of a limit of a quota: what is free is what is left of the limit.
fn quota_numbers(denial: &QuotaDenial) -> (Option<String>, Option<String>, Option<String>, Option<String>) {
    let text = |value: &Value| number(value, denial.r#type);
    let free = match (&denial.limit, denial.used) {
        (Value::Amount(limit), Some(used)) => {
            let left = limit.checked_sub(used).unwrap_or(Amount::ZERO).max(Amount::ZERO);
            Some(text(&Value::Amount(left)))
        }
        (_, _) => None,
    };
    (Some(denial.attribute.to_string()), denial.needed.as_ref().map(text), free, Some(text(&denial.limit)))
}

/// A limit that the job alone exceeds is never kept, if nothing of it can be elsewhere.
fn beyond(denial: &QuotaDenial) -> Option<String> {
    let Some(needed) = &denial.needed else { return Some(format!("ask for it with -l {}", denial.attribute)) };
    let (Value::Amount(needed), Value::Amount(limit)) = (needed, &denial.limit) else { return None };
    let set = denial.rule.split('/').next().unwrap_or_default();
    (denial.is_whole && needed > limit)
        .then(|| format!("the limit never allows so much: ask for less, or see qconf -srqs {set}"))
}

/// What would help, where that is sure.
fn hint(reason: &Reason) -> Option<String> {
    let Reason { level, what } = reason;
    match what {
        What::Disabled => Some(format!("an operator enables it with qmod -e {level}")),
        What::Suspended => Some(format!("an operator resumes it with qmod -usq {level}")),
        What::ClosedByCalendar | What::SuspendedByCalendar => {
            Some(format!("its calendar opens it again: qconf -sq {level} names it, qconf -scal shows it"))
        }
        What::Subordinate | What::Preempted => Some(
            "it gives way to a queue of its host that names it in subordinate_list, until that one has less to do"
                .to_owned(),
        ),
        What::InError => Some(format!("qstat -f -explain E says why; an operator clears it with qmod -cq {level}")),
        What::Ambiguous => {
            Some(format!("qstat -f -explain c names the attributes; set them for {level} itself with qconf -mattr"))
        }
        What::NoContact => Some("the agent of the host is not connected: see gridwright doctor there".to_owned()),
        What::Forced { attribute } => Some(format!("ask for it with -l {attribute}")),
        What::UnknownResource { attribute } => {
            Some(format!("no host, queue or sensor there has {attribute}: qhost -F {attribute}"))
        }
        What::NoAccess { .. } => Some("qconf -su LIST shows who is in an access list".to_owned()),
        What::NoPeAccess { pe } => {
            Some(format!("qconf -sp {pe} names the access lists, qconf -su LIST shows who is in one"))
        }
        What::NoProject { project: None, .. } => Some("name a project with -P; qconf -sprjl lists them".to_owned()),
        What::NoProject { project: Some(_), .. } => Some("qalter -P gives the job another project".to_owned()),
        What::Quota(denial) => beyond(denial),
        What::NoSuchPe { .. } => Some("qconf -spl lists the parallel environments".to_owned()),
        What::Offers(_)
        | What::NoMore(_)
        | What::Full { .. }
        | What::Overloaded(_)
        | What::SuspendAlarm(_)
        | What::NotInQueueList
        | What::NotReserved { .. }
        | What::NotInMasterQueues
        | What::NotInSlaveQueues
        | What::WrongType { .. }
        | What::NotInPe { .. }
        | What::NotInCkptList { .. }
        | What::MayRunThere
        | What::InUse { .. }
        | What::PeOffers { .. }
        | What::NoInstances
        | What::NoSuchJob
        | What::WrongSlots { .. } => None,
    }
}

/// A request above the largest capacity is never met.
fn too_much(group: &Group) -> Option<String> {
    let (What::Offers(shortage), Some(most)) = (&group.nearest.what, group.most) else { return None };
    let Value::Amount(needed) = &shortage.needed else { return None };
    let most_text = number(&Value::Amount(most), shortage.r#type);
    (*needed > most).then(|| format!("there is never more than {most_text}: ask for less"))
}
