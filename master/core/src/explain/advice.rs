//! `gridwright explain`: the reasons with their numbers, what can never be had first, then the
//! nearest miss, and what would help where that is sure.

use super::forever::forever;
use super::hints::{hint, too_much};
use super::holders::holders;
use super::job::{JobReasons, TaskSelection, of_job, on_hosts};
use super::numbers::numbers;
use super::plain::ReasonWriter;
use super::reservation::vain_reservation;
use crate::ledger::Level;
use crate::matching::Demand;
use crate::reason::group::{Group, grouped, is_alike};
use crate::reason::nearness;
use crate::reason::{Obstacle, Reason};
use crate::sched::algorithm::Algorithm;
use crate::sched::report::finding::Findings;
use crate::state::State;
use crate::state::job::Job;
use proto::id::{PeName, SubmitSeq};
use proto::request::TaskRange;
use proto::time::{Now, Tick, Wall, Zone};
use proto::wire::view::{Explanation, ReasonContext, WaitReason};

/// Examples that are named with a reason.
const EXAMPLES_SHOWN: usize = 5;

const NEVER: &str = "No queue instance can take it as the cluster is configured; waiting alone will not help.";

/// Follows the summary of a job that may not start yet.
const NEVER_EITHER: &str =
    "And no queue instance can take it then, as the cluster is configured: waiting alone will not help.";

const NOT_NOW: &str = "No queue instance can take it now; what it needs may become free.";

const ONLY_KEPT: &str = "It would fit now, but not for as long as it may run: what it needs is kept for jobs of higher priority or reserved \
                         in advance, or its queue closes before.";

/// A job whose state is to be explained.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The job.
    pub seq: SubmitSeq,
    /// Its tasks that are meant; empty is all.
    pub tasks: &'a [TaskRange],
    /// The time zone of the cell's calendars.
    pub zone: &'a Zone,
}

/// Reasons that are told as one.
struct AdviceGroup {
    group: Group,
    /// Whether they stay, as the cluster is configured.
    permanent: bool,
}

/// Why a job waits, or that it runs. An empty explanation of a job that is gone.
pub fn explain(findings: &mut Findings<'_>, question: Question<'_>) -> Explanation {
    let Some(job) = findings.state.jobs.get(&question.seq) else {
        return Explanation::default();
    };
    let part = TaskSelection::from_ranges(job, question.tasks);
    let known = header(findings, job, &part);
    if part.pending.is_empty() {
        let (summary, reasons) = on_hosts(findings.state, findings.observations, job, &part);
        return Explanation {
            summary,
            reasons,
            ..known
        };
    }
    let demand = Demand::of_job(findings.state, job);
    let never = forever(findings.state, findings.observations, &job.spec);
    let JobReasons {
        summary,
        reasons: mut of_job,
    } = of_job(findings.state, job, &part, findings.now);
    let never_met = never.as_deref().unwrap_or_default();
    if let Some(waits) = summary {
        let mut reasons = tell(findings, &demand, question.zone, &with_never(&[], never_met));
        reasons.append(&mut of_job);
        let summary = match never {
            Some(_) => format!("{waits} {NEVER_EITHER}"),
            None => waits,
        };
        return Explanation {
            summary,
            reasons,
            ..known
        };
    }
    let found = findings.reasons_of(job, &demand).to_vec();
    if found.is_empty() {
        return Explanation {
            reasons: of_job,
            ..unhindered(findings, known)
        };
    }
    let by_order = never.is_none() && findings.is_only_kept(&demand);
    let mut reasons = tell(findings, &demand, question.zone, &with_never(&found, never_met));
    let vain = vain_reservation(findings.state, &job.spec);
    reasons.extend(vain.map(|vain| plain(vain.text, Some(vain.fix))));
    reasons.append(&mut of_job);
    let summary = match (never, by_order) {
        (Some(_), _) => NEVER,
        (None, true) => ONLY_KEPT,
        (None, false) => NOT_NOW,
    };
    Explanation {
        summary: summary.to_owned(),
        reasons,
        by_order,
        ..known
    }
}

/// Creates the head of an explanation: the job, its number of waiting tasks, and the slots that are
/// kept for it.
fn header(findings: &Findings<'_>, job: &Job, part: &TaskSelection) -> Explanation {
    let kept = findings
        .reservation(job.seq)
        .map(|kept| (wall(findings.now, kept.at), kept.granted.clone()));
    let (starts, kept) = kept.map_or((None, Vec::new()), |(at, granted)| (Some(at), granted));
    Explanation {
        job: job.number.0,
        name: job.spec.name.clone(),
        owner: job.spec.owner.user.to_string(),
        starts,
        kept,
        on_hosts: u32::try_from(part.on_hosts.len()).unwrap_or(u32::MAX),
        pending: part.pending.len(),
        ..Explanation::default()
    }
}

/// Explains a job that no queue instance keeps waiting: it waits for its turn, or for hosts.
fn unhindered(findings: &Findings<'_>, known: Explanation) -> Explanation {
    let by_order = findings.observations.hosts.values().any(|host| host.connected);
    let summary = if by_order {
        turn_comes(findings.state)
    } else {
        "No execution host is connected."
    };
    Explanation {
        summary: summary.to_owned(),
        by_order,
        ..known
    }
}

/// What a job waits for against which nothing stands.
fn turn_comes(state: &State) -> &'static str {
    match Algorithm::from_conf(&state.config.scheduler) {
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

/// What can never be had, then what a pass found, each with the nearest miss first. A pass does not
/// look for the former where something else failed before, such as a queue that is full.
fn with_never(found: &[Group], never: &[Reason]) -> Vec<AdviceGroup> {
    let are_alike = |one: &Group, other: &Group| is_alike(&one.examples[0], &other.examples[0]);
    let (as_found, unmet): (Vec<Group>, Vec<Group>) = grouped(never.iter())
        .into_iter()
        .partition(|group| found.iter().any(|found| are_alike(found, group)));
    let mut told: Vec<AdviceGroup> = unmet
        .into_iter()
        .map(|group| AdviceGroup { group, permanent: true })
        .collect();
    told.extend(
        found
            .iter()
            .map(|group| match as_found.iter().find(|never| are_alike(never, group)) {
                Some(never) if knows_more(never, group) => AdviceGroup {
                    group: never.clone(),
                    permanent: true,
                },
                never => AdviceGroup {
                    group: group.clone(),
                    permanent: never.is_some(),
                },
            }),
    );
    told.sort_by_key(|told| (!told.permanent, nearness(&told.group.nearest)));
    let closed: Vec<PeName> = told
        .iter()
        .filter_map(|told| closed_pe(&told.group.nearest.what))
        .collect();
    told.retain(|told| !follows(&told.group.nearest.what, &closed));
    told
}

/// Whether how much there is in all is known only of what can never be had, and not of what is free
/// now.
fn knows_more(never: &Group, now: &Group) -> bool {
    if let Obstacle::PeOffers { of, .. } = &never.nearest.what {
        return of.is_none();
    }
    now.most.is_none() && never.most.is_some()
}

/// The environment to which the owner has no access, if that is the reason.
fn closed_pe(what: &Obstacle) -> Option<PeName> {
    if let Obstacle::NoPeAccess { pe } = what {
        Some(pe.clone())
    } else {
        None
    }
}

/// Whether a reason only follows from having no access to one of these environments.
fn follows(what: &Obstacle, closed: &[PeName]) -> bool {
    if let Obstacle::PeOffers {
        pe, slots: 0, of: None, ..
    } = what
    {
        return closed.contains(pe);
    }
    matches!(what, Obstacle::NotInPe { pe } if closed.iter().any(|closed| closed.as_str() == pe))
}

/// When it will be so late on the wall clock, unless that jumps.
pub(super) fn wall(now: Now, at: Tick) -> Wall {
    Wall(now.wall.0.saturating_add_unsigned(at.since_ms(now.tick)))
}

/// A reason about the job itself.
pub(super) fn plain(text: String, hint: Option<String>) -> WaitReason {
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
        context: ReasonContext::default(),
    }
}

fn tell(findings: &Findings<'_>, demand: &Demand, zone: &Zone, told: &[AdviceGroup]) -> Vec<WaitReason> {
    let cluster = findings.cluster().of_demand(findings.state, demand);
    let teller = ReasonWriter {
        cluster,
        demand,
        zone,
        now: findings.now,
    };
    told.iter()
        .map(|told| wait_reason(findings.state, &teller, told))
        .collect()
}

/// A group of reasons, told by the nearest miss.
fn wait_reason(state: &State, teller: &ReasonWriter<'_>, AdviceGroup { group, permanent }: &AdviceGroup) -> WaitReason {
    let reason = &group.nearest;
    let others = group.examples.iter().filter(|other| other.level != reason.level);
    let named = std::iter::once(reason)
        .chain(others)
        .take(EXAMPLES_SHOWN)
        .map(|reason| reason.level.to_string());
    let numbers = numbers(&teller.cluster, reason.what.facts().about);
    let mut context = ReasonContext {
        comparison: numbers.comparison,
        permanent: *permanent,
        until: teller.until(reason),
        ..ReasonContext::default()
    };
    if !permanent {
        (context.holders, context.holders_count) = holders(state, teller, reason);
    }
    WaitReason {
        text: teller.sentence(reason),
        attribute: numbers.attribute,
        level: level_word(reason).to_owned(),
        needed: numbers.needed,
        free: numbers.free,
        capacity: numbers.capacity,
        count: group.count,
        examples: named.collect(),
        hint: hint(teller, reason).or_else(|| too_much(group).filter(|_| *permanent)),
        context,
    }
}

fn level_word(reason: &Reason) -> &'static str {
    match (&reason.what, &reason.level) {
        (Obstacle::PeOffers { .. } | Obstacle::NoSuchPe { .. } | Obstacle::NoPeAccess { .. }, _) => "pe",
        (Obstacle::Quota(_), _) => "quota",
        (_, Level::Global) => "global",
        (_, Level::Host(_)) => "host",
        (_, Level::Instance(_)) => "queue",
    }
}
