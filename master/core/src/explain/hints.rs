//! What would help, where that is sure.

use super::numbers::number;
use super::plain::ReasonWriter;
use crate::matching::Barrier;
use crate::reason::Value;
use crate::reason::group::Group;
use crate::reason::{Obstacle, QuotaDenial, Reason};

/// Returns advice against a reason.
pub(super) fn hint(teller: &ReasonWriter<'_>, reason: &Reason) -> Option<String> {
    let Reason { level, what } = reason;
    match what {
        Obstacle::Disabled => Some(format!("an operator enables it with qmod -e {level}")),
        Obstacle::Suspended => Some(format!("an operator resumes it with qmod -usq {level}")),
        Obstacle::ClosedByCalendar | Obstacle::SuspendedByCalendar => Some(format!(
            "qconf -sq {level} names its calendar, qconf -scal shows when it is open"
        )),
        Obstacle::Subordinate | Obstacle::Preempted => Some(
            "it gives way to a queue of its host that names it in subordinate_list, until that one has less to do"
                .to_owned(),
        ),
        Obstacle::InError => Some(format!(
            "qstat -f -explain E says why; an operator clears it with qmod -cq {level}"
        )),
        Obstacle::Ambiguous => Some(format!(
            "qstat -f -explain c names the attributes; set them for {level} itself with qconf -mattr"
        )),
        Obstacle::NoContact => Some("the agent of the host is not connected: see gridwright doctor there".to_owned()),
        Obstacle::HostUnfit { .. } => Some("it opens by itself when that is mended".to_owned()),
        Obstacle::Forced { attribute } => Some(format!("ask for it with -l {attribute}")),
        Obstacle::UnknownResource { attribute } => Some(format!(
            "no host, queue or sensor there has {attribute}: qhost -F {attribute}"
        )),
        Obstacle::NoAccess { .. } => Some(access_hint(teller, teller.barrier(level).as_ref())),
        Obstacle::NoPeAccess { pe } => Some(format!(
            "qconf -sp {pe} names the access lists, qconf -su LIST shows who is in one"
        )),
        Obstacle::NoProject { project: None, .. } => Some("name a project with -P; qconf -sprjl lists them".to_owned()),
        Obstacle::NoProject { project: Some(_), .. } => Some("qalter -P gives the job another project".to_owned()),
        Obstacle::Quota(denial) => {
            Some(beyond(denial).unwrap_or_else(|| format!("qquota -u {} shows what is in use", teller.demand.user)))
        }
        Obstacle::NoSuchPe { .. } => Some("qconf -spl lists the parallel environments".to_owned()),
        Obstacle::Offers(_)
        | Obstacle::NoMore(_)
        | Obstacle::Full { .. }
        | Obstacle::Overloaded(_)
        | Obstacle::SuspendAlarm(_)
        | Obstacle::NotInQueueList
        | Obstacle::NotReserved { .. }
        | Obstacle::NotInMasterQueues
        | Obstacle::NotInSlaveQueues
        | Obstacle::WrongType { .. }
        | Obstacle::NotInPe { .. }
        | Obstacle::NotInCkptList { .. }
        | Obstacle::MayRunThere
        | Obstacle::InUse { .. }
        | Obstacle::PeOffers { .. }
        | Obstacle::NoInstances
        | Obstacle::NoSuchJob
        | Obstacle::WrongSlots { .. } => None,
    }
}

fn access_hint(teller: &ReasonWriter<'_>, barrier: Option<&Barrier>) -> String {
    let user = &teller.demand.user;
    match barrier {
        Some(Barrier::Admits(lists)) if lists.len() == 1 => {
            format!(
                "qconf -su {0} shows who is in it; an operator admits {user} with qconf -au {user} {0}",
                lists[0]
            )
        }
        Some(Barrier::Excludes(list)) => {
            format!("qconf -su {list} shows who is in it; an operator takes {user} out with qconf -du {user} {list}")
        }
        Some(Barrier::Admits(_)) | None => "qconf -su LIST shows who is in an access list".to_owned(),
    }
}

/// A limit that the job alone exceeds is never kept, if nothing of it can be elsewhere.
fn beyond(denial: &QuotaDenial) -> Option<String> {
    let Some(needed) = &denial.needed else {
        return Some(format!("ask for it with -l {}", denial.attribute));
    };
    let (Value::Amount(needed), Value::Amount(limit)) = (needed, &denial.limit) else {
        return None;
    };
    let set = denial.rule.split('/').next().unwrap_or_default();
    (denial.is_whole && needed > limit)
        .then(|| format!("the limit never allows so much: ask for less, or see qconf -srqs {set}"))
}

/// What to do about a reason that stays: a request above the largest capacity is never met.
pub(super) fn too_much(group: &Group) -> Option<String> {
    if let Obstacle::PeOffers {
        pe, slots, needed, of, ..
    } = &group.nearest.what
    {
        return match of {
            Some(of) => (needed > of).then(|| format!("PE \"{pe}\" never has more than {of} slots: ask for fewer")),
            None => (*slots > 0).then(|| format!("there are never more than {slots} slots for it: ask for fewer")),
        };
    }
    let (Obstacle::Offers(shortage), Some(most)) = (&group.nearest.what, group.most) else {
        return None;
    };
    let Value::Amount(needed) = &shortage.needed else {
        return None;
    };
    let most_text = number(&Value::Amount(most), shortage.r#type);
    (*needed > most).then(|| format!("there is never more than {most_text}: ask for less"))
}
