//! What would help, where that is sure.

use super::numbers::number;
use super::plain::ReasonWriter;
use crate::matching::Barrier;
use crate::reason::facts::Remedy;
use crate::reason::group::Group;
use crate::reason::{Obstacle, QuotaDenial, Reason, Value};

/// Returns advice against a reason.
pub(super) fn hint(teller: &ReasonWriter<'_>, reason: &Reason) -> Option<String> {
    let level = &reason.level;
    Some(match reason.what.facts().remedy {
        Remedy::Enable => format!("an operator enables it with qmod -e {level}"),
        Remedy::Resume => format!("an operator resumes it with qmod -usq {level}"),
        Remedy::Calendar => format!("qconf -sq {level} names its calendar, qconf -scal shows when it is open"),
        Remedy::SuperordinateQueue => {
            "it gives way to a queue of its host that names it in subordinate_list, until that one has less to do"
                .to_owned()
        }
        Remedy::ClearError => format!("qstat -f -explain E says why; an operator clears it with qmod -cq {level}"),
        Remedy::SetAmbiguous => {
            format!("qstat -f -explain c names the attributes; set them for {level} itself with qconf -mattr")
        }
        Remedy::Agent => "the agent of the host is not connected: see gridwright doctor there".to_owned(),
        Remedy::Host => "it opens by itself when that is mended".to_owned(),
        Remedy::AskFor(attribute) => format!("ask for it with -l {attribute}"),
        Remedy::Offer(attribute) => format!("no host, queue or sensor there has {attribute}: qhost -F {attribute}"),
        Remedy::AccessList => access_hint(teller, teller.barrier(level).as_ref()),
        Remedy::PeAccessList(pe) => {
            format!("qconf -sp {pe} names the access lists, qconf -su LIST shows who is in one")
        }
        Remedy::NameProject => "name a project with -P; qconf -sprjl lists them".to_owned(),
        Remedy::ChangeProject => "qalter -P gives the job another project".to_owned(),
        Remedy::Quota(denial) => {
            beyond(denial).unwrap_or_else(|| format!("qquota -u {} shows what is in use", teller.demand.user))
        }
        Remedy::NamePe => "qconf -spl lists the parallel environments".to_owned(),
        Remedy::Unknown => return None,
    })
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
