//! Reasons in plain words, for `gridwright explain`: names in place of the letters of levels,
//! numbers as people write them. `qstat` has the sentences of 8.1.9, which are made in
//! [`super::words`].

use super::numbers::{is_of_amount, number};
use super::words::preposition;
use crate::ledger::Level;
use crate::matching::{Barrier, Cluster, Demand, pe_barrier};
use crate::reason::{Obstacle, Overload, PartialRoom, QuotaDenial, Reason, Shortage};
use proto::calendar::{Calendar, CalendarState};
use proto::id::{HostName, PeName, QueueInstanceName};
use proto::quota::{QuotaSet, Rule};
use proto::time::{Now, Wall, Zone};
use std::sync::Arc;

/// Changes of a calendar that are looked at until it opens.
const CALENDAR_CHANGES: usize = 64;

/// Words for the filters of a quota rule, in the order of the parts of a scope.
const SCOPE_WORDS: [&str; 5] = ["user", "project", "parallel environment", "queue", "host"];

/// A cluster with the job about which reasons are told.
pub(super) struct ReasonWriter<'a> {
    pub cluster: Cluster<'a>,
    pub demand: &'a Demand,
    pub zone: &'a Zone,
    pub now: Now,
}

impl ReasonWriter<'_> {
    /// The ids of a resource map that nobody gets, because a sensor calls their devices ill.
    fn ill(&self, level: &Level, shortage: &Shortage) -> String {
        let host = match level {
            Level::Host(host) => host.clone(),
            Level::Global => HostName::global(),
            Level::Instance(_) => return String::new(),
        };
        let config = self.cluster.config;
        let ill = config
            .complex
            .lookup(shortage.attribute.as_str())
            .and_then(|attribute| {
                let text = config.exec_hosts.get(&host)?.complex_values.value(&attribute.name)?;
                self.cluster.observations.ill_of(&host, attribute, text)
            });
        let words = ill.iter().flat_map(|(_, ill)| ill);
        words.map(|(id, why)| format!("; {id} is ill: {why}")).collect()
    }

    /// A reason as one sentence.
    pub(super) fn sentence(&self, reason: &Reason) -> String {
        let level = &reason.level;
        match &reason.what {
            Obstacle::Offers(shortage) => {
                let offer = self.offer(level, shortage);
                format!("{}cannot run {offer}{}", self.asked(), self.ill(level, shortage))
            }
            Obstacle::NoMore(no_more) => format!("{}{}", self.asked(), self.no_more(level, no_more)),
            Obstacle::InUse {
                attribute,
                is_asked: true,
            } => {
                let (asked, place) = (self.asked(), preposition(level));
                format!("{asked}cannot run {place} alone ({attribute}): other jobs run there")
            }
            Obstacle::InUse {
                attribute,
                is_asked: false,
            } => {
                format!(
                    "cannot run {}: another job has it alone ({attribute})",
                    preposition(level)
                )
            }
            Obstacle::UnknownResource { .. } => format!("{}{reason}", self.asked()),
            Obstacle::Overloaded(overload) => {
                format!("queue instance \"{level}\" is overloaded: {}", threshold(overload))
            }
            Obstacle::SuspendAlarm(overload) => {
                format!(
                    "queue instance \"{level}\" is in suspend alarm: {}",
                    threshold(overload)
                )
            }
            Obstacle::ClosedByCalendar | Obstacle::SuspendedByCalendar => self.by_calendar(reason),
            Obstacle::NoAccess { .. } => format!("user {} {reason}{}", self.demand.user, self.lists(level)),
            Obstacle::NoPeAccess { pe } => format!("user {} {reason}{}", self.demand.user, self.pe_lists(pe)),
            Obstacle::PeOffers { pe, slots, needed, of } => self.pe_offers(pe, *slots, *needed, *of),
            Obstacle::Quota(denial) => self.quota(denial).unwrap_or_else(|| reason.to_string()),
            Obstacle::HostUnfit { why } => format!("{reason}: its host cannot start jobs: {why}"),
            Obstacle::Disabled
            | Obstacle::Suspended
            | Obstacle::Subordinate
            | Obstacle::Preempted
            | Obstacle::InError
            | Obstacle::Ambiguous
            | Obstacle::NoContact
            | Obstacle::Full { .. }
            | Obstacle::NotInQueueList
            | Obstacle::NotReserved { .. }
            | Obstacle::NotInMasterQueues
            | Obstacle::NotInSlaveQueues
            | Obstacle::WrongType { .. }
            | Obstacle::NotInPe { .. }
            | Obstacle::NotInCkptList { .. }
            | Obstacle::MayRunThere
            | Obstacle::NoProject { .. }
            | Obstacle::Forced { .. }
            | Obstacle::NoSuchPe { .. }
            | Obstacle::NoInstances
            | Obstacle::NoSuchJob
            | Obstacle::WrongSlots { .. } => reason.to_string(),
        }
    }

    /// When a reason is over by itself, where that is known.
    pub(super) fn until(&self, reason: &Reason) -> Option<Wall> {
        match (&reason.what, &reason.level) {
            (Obstacle::ClosedByCalendar | Obstacle::SuspendedByCalendar, Level::Instance(instance)) => {
                opening(self.calendar(instance)?, self.zone, self.now.wall)
            }
            (_, _) => None,
        }
    }

    /// The lists that keep the owner out of an object.
    pub(super) fn barrier(&self, level: &Level) -> Option<Barrier> {
        self.cluster.barrier(level, self.demand)
    }

    /// The job's requests, where it makes any.
    fn asked(&self) -> String {
        match self.demand.text.as_str() {
            "-l NONE" => String::new(),
            text => format!("({text}) "),
        }
    }

    fn offer(&self, level: &Level, shortage: &Shortage) -> String {
        let Shortage {
            attribute,
            r#type,
            needed,
            free,
            ..
        } = shortage;
        let place = preposition(level);
        if self
            .cluster
            .config
            .complex
            .get(attribute)
            .is_some_and(proto::complex::Attribute::is_exclusive)
        {
            return format!("{place} alone ({attribute}): other jobs run there");
        }
        match is_of_amount(&self.cluster, shortage) {
            true => format!("{place} because it offers only {attribute}={}", number(free, *r#type)),
            false => {
                let (asked, has) = (number(needed, *r#type), number(free, *r#type));
                format!("{place}: {attribute}: asked {asked}, the {} has {has}", object(level))
            }
        }
    }

    fn no_more(&self, level: &Level, PartialRoom { pe, slots, wanted, why }: &PartialRoom) -> String {
        let because = if let Obstacle::Offers(shortage) = why {
            let (attribute, free) = (&shortage.attribute, number(&shortage.free, shortage.r#type));
            format!("it offers only {attribute}={free}")
        } else if let Obstacle::Overloaded(Overload {
            attribute,
            r#type,
            value: Some(value),
            limit,
            ..
        }) = why
        {
            let value = number(value, *r#type);
            format!("more would bring {attribute} from {value} to {limit}")
        } else {
            self.sentence(&Reason::new(level.clone(), why.clone()))
        };
        format!(
            "finds {slots} slots {} in PE \"{pe}\" and needs {wanted} there, because {because}",
            preposition(level)
        )
    }

    fn pe_offers(&self, pe: &PeName, slots: u32, needed: u32, of: Option<u32>) -> String {
        match of {
            Some(of) => {
                let taken = self.cluster.pe_slots_taken(pe);
                format!("cannot run in PE \"{pe}\": it has {of} slots in all, {taken} in use, and {needed} are needed")
            }
            None => {
                format!("cannot run in PE \"{pe}\": suitable queues have {slots} slots for it, and {needed} are needed")
            }
        }
    }

    fn by_calendar(&self, reason: &Reason) -> String {
        let (what, level) = (&reason.what, &reason.level);
        let Level::Instance(instance) = level else {
            return reason.to_string();
        };
        let name = self
            .cluster
            .settings(instance)
            .and_then(|settings| settings.calendar.value());
        let name = name.map_or_else(String::new, |name| format!(" \"{name}\""));
        let state = self
            .cluster
            .instances
            .get(instance)
            .map(|state| state.calendar)
            .unwrap_or_default();
        match (what, state) {
            (Obstacle::SuspendedByCalendar, _) => {
                format!("queue instance \"{level}\" is suspended by its calendar{name}")
            }
            (_, CalendarState::On) => {
                format!("queue instance \"{level}\" will be closed by its calendar{name} before the job has ended")
            }
            (_, CalendarState::Off | CalendarState::Suspended) => {
                format!("queue instance \"{level}\" is closed by its calendar{name}")
            }
        }
    }

    fn calendar(&self, instance: &QueueInstanceName) -> Option<&Calendar> {
        let name = self.cluster.settings(instance)?.calendar.value()?;
        self.cluster.config.calendars.get(name.as_str()).map(Arc::as_ref)
    }

    fn lists(&self, level: &Level) -> String {
        self.barrier(level)
            .map_or_else(String::new, |barrier| barrier_words(&barrier))
    }

    fn pe_lists(&self, pe: &PeName) -> String {
        let barrier = self
            .cluster
            .config
            .pes
            .get(pe)
            .and_then(|pe| pe_barrier(pe, self.demand));
        barrier.map_or_else(String::new, |barrier| barrier_words(&barrier))
    }

    /// `cannot run because rule "r1/lim" (users {*} to slots=1) has no room left for user ann`.
    fn quota(&self, denial: &QuotaDenial) -> Option<String> {
        denial.needed.as_ref()?;
        let rule = self.rule(&denial.rule)?;
        let shared = scope_words(&denial.scope.to_string());
        let shared = if shared.is_empty() {
            String::new()
        } else {
            format!(", counted for {shared}")
        };
        Some(format!(
            "cannot run because rule \"{}\" ({rule}) has no room for it{shared}",
            denial.rule
        ))
    }

    /// The rule that messages call so, without its name.
    fn rule(&self, called: &str) -> Option<Rule> {
        let (set, rule) = called.split_once('/')?;
        let set: &QuotaSet = self
            .cluster
            .config
            .quotas
            .values()
            .find(|known| known.name.as_str() == set)?;
        let rule = set.rules.get(set.rule_called(rule)?)?;
        Some(Rule {
            name: None,
            ..rule.clone()
        })
    }
}

/// `user ann, host node1`, of a scope such as `ann////node1/`.
fn scope_words(scope: &str) -> String {
    let named = scope.split('/').zip(SCOPE_WORDS).filter(|(name, _)| !name.is_empty());
    named
        .map(|(name, word)| format!("{word} {name}"))
        .collect::<Vec<_>>()
        .join(", ")
}

fn barrier_words(barrier: &Barrier) -> String {
    match barrier {
        Barrier::Admits(lists) => format!(": only members of {} have it", lists.join(", ")),
        Barrier::Excludes(list) => format!(": members of {list} are excluded"),
    }
}

/// `np_load_avg is 1.61, the threshold is 0.1`.
fn threshold(overload: &Overload) -> String {
    let Overload {
        attribute,
        r#type,
        relop: _,
        value,
        dominance,
        limit,
    } = overload;
    let Some(value) = value else {
        return format!("no value of {attribute} is known, the threshold is {limit}");
    };
    let adjusted = if dominance.source == 'L' {
        ", adjusted for jobs that have just started or scaled,"
    } else {
        ","
    };
    format!(
        "{attribute} is {}{adjusted} the threshold is {limit}",
        number(value, *r#type)
    )
}

fn object(level: &Level) -> &'static str {
    match level {
        Level::Global => "cluster",
        Level::Host(_) => "host",
        Level::Instance(_) => "queue",
    }
}

/// When a calendar that is closed or suspended opens, or that is open opens again after its next
/// closing.
fn opening(calendar: &Calendar, zone: &Zone, now: Wall) -> Option<Wall> {
    let mut from = now;
    for _ in 0..CALENDAR_CHANGES {
        let (at, state) = calendar.next_change(zone, from)?;
        if state == CalendarState::On {
            return Some(at);
        }
        from = at;
    }
    None
}
