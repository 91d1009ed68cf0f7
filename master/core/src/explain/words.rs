//! Reasons in the words of 8.1.9, where it has any.

use crate::ledger::Level;
use crate::matching::message_text;
use crate::reason::facts::ReasonCause;
use crate::reason::{Obstacle, Overload, PartialRoom, QuotaDenial, Reason, Shortage};
use proto::complex::Relop;
use proto::id::AttributeName;
use std::fmt;

/// A reason as the scheduler's messages have it. `asked` is the job's list of requests, such as
/// `-l lic=3`, or `-l NONE`; it stands in front where the requests are the cause.
pub fn sentence(reason: &Reason, asked: &str) -> String {
    match reason.what.facts().cause {
        ReasonCause::Requests => format!("({asked}) {reason}"),
        ReasonCause::Instance | ReasonCause::Rules => reason.to_string(),
    }
}

fn not_in_list(level: &Level, list: &str) -> String {
    format!("cannot run in queue \"{level}\" because it is not contained in {list}")
}

impl fmt::Display for Reason {
    /// The reason without the job's requests in front.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&words(&self.what, &self.level))
    }
}

fn words(what: &Obstacle, level: &Level) -> String {
    match what {
        Obstacle::Disabled
        | Obstacle::ClosedByCalendar
        | Obstacle::Suspended
        | Obstacle::SuspendedByCalendar
        | Obstacle::Subordinate
        | Obstacle::Preempted
        | Obstacle::InError
        | Obstacle::Ambiguous
        | Obstacle::NoContact
        | Obstacle::HostUnfit { .. }
        | Obstacle::Full { .. }
        | Obstacle::Overloaded(_) => dropped(level, &state(what)),
        Obstacle::SuspendAlarm(overload) => in_suspend_alarm(level, overload),
        Obstacle::NotInQueueList => not_in_list(level, "its hard queue list (-q)"),
        Obstacle::NotInMasterQueues => not_in_list(level, "its master queue list (-masterq)"),
        Obstacle::NotInSlaveQueues => not_in_list(level, "its slave queue list (-scope slave -q)"),
        Obstacle::NotReserved { reservation } => {
            let why = format!("it was not reserved by advance reservation {reservation}");
            format!("cannot run at queue instance \"{level}\" because {why}")
        }
        Obstacle::WrongType { kind } => {
            format!("cannot run in queue instance \"{level}\" because it is not of type {kind}")
        }
        Obstacle::NotInPe { pe } => format!("cannot run in queue \"{level}\" because PE \"{pe}\" is not in PE list"),
        Obstacle::NotInCkptList { name } => not_in_ckpt_list(level, name),
        Obstacle::MayRunThere => {
            let host = host_of(level);
            format!("cannot run on host \"{host}\" until clean up of an previous run has finished")
        }
        Obstacle::NoAccess { whole_queue } => format!("has no permission for {}", guarded(level, *whole_queue)),
        Obstacle::NoProject {
            project,
            excluded,
            whole_queue,
        } => no_project(project.as_deref(), *excluded, &guarded(level, *whole_queue)),
        Obstacle::NoPeAccess { pe } => format!("cannot run because no access to PE \"{pe}\""),
        Obstacle::UnknownResource { attribute } => {
            format!("cannot run in queue \"{level}\" because job requests unknown resource ({attribute})")
        }
        Obstacle::Forced { attribute } => {
            let place = place(level);
            format!("does not request 'forced' resource \"{attribute}\" of {place}")
        }
        Obstacle::Offers(shortage) => {
            let (place, offer) = (preposition(level), offer(shortage));
            format!("cannot run {place} because it offers only {offer}")
        }
        Obstacle::InUse { attribute, is_asked } => in_use(level, attribute, *is_asked),
        Obstacle::NoSuchPe { pe } => format!("cannot run because requested PE \"{pe}\" does not exist"),
        Obstacle::PeOffers { pe, slots, .. } => {
            format!("cannot run in PE \"{pe}\" because it only offers {slots} slots")
        }
        Obstacle::NoMore(no_more) => only_so_many(level, no_more),
        Obstacle::Quota(denial) => over_quota(denial),
        Obstacle::NoInstances => "cannot run because there is no such queue instance".to_owned(),
        Obstacle::NoSuchJob => "the job is gone".to_owned(),
        Obstacle::WrongSlots { slots } => format!("{slots} slots placed so are not what the job asks for"),
    }
}

fn dropped(level: &Level, state: &str) -> String {
    format!("queue instance \"{level}\" dropped because it is {state}")
}

fn in_suspend_alarm(level: &Level, overload: &Overload) -> String {
    let why = sentence_of_overload(overload);
    format!("queue instance \"{level}\" is in suspend alarm: {why}")
}

fn not_in_ckpt_list(level: &Level, name: &str) -> String {
    format!("cannot run in queue instance \"{level}\" because ckpt object \"{name}\" is not in ckpt list of queue")
}

fn in_use(level: &Level, attribute: &AttributeName, is_asked: bool) -> String {
    let (place, by_default) = (preposition(level), if is_asked { "" } else { "for default request " });
    format!("cannot run {place} because {by_default}exclusive resource ({attribute}) is already in use")
}

/// `finds 2 slots at host "node1" in PE "smp", where 4 would do, because it offers only hc:mem=8G`.
fn only_so_many(level: &Level, no_more: &PartialRoom) -> String {
    let PartialRoom { pe, slots, wanted, why } = no_more;
    let because = if let Obstacle::Offers(shortage) = why {
        format!("it offers only {}", offer(shortage))
    } else if let Obstacle::Overloaded(Overload {
        attribute,
        r#type,
        value: Some(value),
        limit,
        ..
    }) = why
    {
        let value = message_text(value, *r#type);
        format!("more would bring {attribute} from {value} to {limit}")
    } else {
        Reason::new(level.clone(), why.clone()).to_string()
    };
    format!(
        "finds {slots} slots {} in PE \"{pe}\", where {wanted} would do, because {because}",
        preposition(level)
    )
}

fn over_quota(
    QuotaDenial {
        rule,
        scope,
        attribute,
        needed,
        ..
    }: &QuotaDenial,
) -> String {
    match needed {
        Some(_) => format!("cannot run because it exceeds limit \"{scope}\" in rule \"{rule}\""),
        None => format!("does not request 'forced' resource \"{attribute}\" of rule \"{rule}\""),
    }
}

fn no_project(project: Option<&str>, excluded: bool, place: &str) -> String {
    let project = project.map_or("no project".to_owned(), |project| format!("project {project}"));
    match excluded {
        true => format!("({project}) is not allowed to run in {place} based on the excluded project list"),
        false => format!("({project}) does not have the correct project to run in {place}"),
    }
}

/// What a queue instance is that takes no jobs.
#[allow(
    clippy::wildcard_enum_match_arm,
    reason = "Grid Engine 8.1.9 has three words, and one for every other state"
)]
fn state(what: &Obstacle) -> String {
    match what {
        Obstacle::Disabled | Obstacle::ClosedByCalendar => "disabled".to_owned(),
        Obstacle::Full { .. } => "full".to_owned(),
        Obstacle::Overloaded(overload) => format!("overloaded: {}", sentence_of_overload(overload)),
        // 8.1.9 does not say which of its other states it is.
        _ => "temporarily not available".to_owned(),
    }
}

fn host_of(level: &Level) -> &str {
    match level {
        Level::Global => "global",
        Level::Host(host) => host.as_str(),
        Level::Instance(instance) => instance.host.as_str(),
    }
}

/// `np_load_avg=1.900000 (no load adjustment) >= 1.75`.
pub fn sentence_of_overload(overload: &Overload) -> String {
    let Overload {
        attribute,
        r#type,
        relop,
        value,
        dominance,
        limit,
    } = overload;
    match value {
        None => format!("no complex attribute for threshold {attribute}"),
        Some(value) => {
            let adjusted = if dominance.source == 'L' {
                "with load adjustment or scaling"
            } else {
                "no load adjustment"
            };
            let relop = if r#type.is_numeric() {
                relop.as_str()
            } else {
                Relop::NotEqual.as_str()
            };
            format!(
                "{attribute}={} ({adjusted}) {relop} {limit}",
                message_text(value, *r#type)
            )
        }
    }
}

/// `gc:lic=1.000000`.
fn offer(shortage: &Shortage) -> String {
    let Shortage {
        attribute,
        r#type,
        dominance,
        free,
        ..
    } = shortage;
    format!(
        "{}{}:{attribute}={}",
        dominance.level,
        dominance.source,
        message_text(free, *r#type)
    )
}

/// `globally`, `at host "node1"`, `in queue "all.q@node1"`.
pub(super) fn preposition(level: &Level) -> String {
    match level {
        Level::Global => "globally".to_owned(),
        Level::Host(host) => format!("at host \"{host}\""),
        Level::Instance(instance) => format!("in queue \"{instance}\""),
    }
}

/// `host "node1"`, `cluster queue "all.q"`, `queue "all.q@node1"`: what has access lists of its
/// own.
fn guarded(level: &Level, whole_queue: bool) -> String {
    match level {
        Level::Global => "host \"global\"".to_owned(),
        Level::Host(host) => format!("host \"{host}\""),
        Level::Instance(instance) if whole_queue => format!("cluster queue \"{}\"", instance.queue),
        Level::Instance(instance) => format!("queue \"{instance}\""),
    }
}

/// `the cluster`, `host node1`, `queue instance all.q@node1`.
fn place(level: &Level) -> String {
    match level {
        Level::Global => "the cluster".to_owned(),
        Level::Host(host) => format!("host {host}"),
        Level::Instance(instance) => format!("queue instance {instance}"),
    }
}
