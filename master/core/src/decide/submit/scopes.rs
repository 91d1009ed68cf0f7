//! `-scope`: what the master and the slaves of a parallel job ask for apart from the whole job.

use super::checks::rejected;
use proto::complex::{Attribute, Complex, Consumable};
use proto::diagnostic::{Code, Diagnostic};
use proto::job::Requests;
use proto::request::ResourceRequest;

/// Whether anything is asked of the master or of the slaves alone, but for the queues of the
/// master, which `-masterq` names as well.
pub(super) fn is_used(requests: &Requests) -> bool {
    let Requests {
        master,
        slaves,
        slave_queues,
        ..
    } = requests;
    !(master.is_empty() && slaves.is_empty() && slave_queues.is_empty())
}

/// Refuses scopes to who has none: an advance reservation.
///
/// # Errors
/// If anything is asked of the master or of the slaves alone.
pub(super) fn check_none(requests: &Requests) -> Result<(), Diagnostic> {
    if !is_used(requests) {
        return Ok(());
    }
    let what = "denied: an advance reservation has no requests for its master or its slaves alone";
    Err(Diagnostic::new(Code::NotSupported, what)
        .at("-scope")
        .fix("reserve with -l, -q and -masterq for all slots"))
}

/// Says in which scope the refused requests stand.
pub(super) fn named(refusals: Vec<Diagnostic>, scope: &str) -> Vec<Diagnostic> {
    let named = |refusal: Diagnostic| {
        let place = format!("-scope {scope} {}", refusal.place);
        refusal.at(place)
    };
    refusals.into_iter().map(named).collect()
}

/// Each attribute is asked for either for the whole job or for master and slaves, and each only
/// where it can be charged.
///
/// # Errors
/// With the first attribute for which it is not so.
pub(super) fn check(complex: &Complex, requests: &Requests) -> Result<(), Diagnostic> {
    let Requests {
        hard,
        soft,
        master,
        slaves,
        ..
    } = requests;
    for (scope, list) in [("master", master), ("slave", slaves)] {
        for request in list {
            let Some(attribute) = complex.lookup(&request.name) else {
                continue;
            };
            if is_asked(complex, hard, attribute) || is_asked(complex, soft, attribute) {
                return Err(also_global(attribute, request, scope));
            }
        }
    }
    for request in slaves {
        let Some(attribute) = complex.lookup(&request.name) else {
            continue;
        };
        match attribute.consumable {
            Consumable::Job => return Err(once_for_the_job(attribute, request)),
            Consumable::Host if is_asked(complex, master, attribute) => {
                return Err(twice_on_a_host(attribute, request));
            }
            Consumable::Host | Consumable::No | Consumable::Yes => {}
        }
    }
    Ok(())
}

/// Whether an attribute is in a list, under whichever of its names.
fn is_asked(complex: &Complex, list: &[ResourceRequest], attribute: &Attribute) -> bool {
    let is_same = |known: &Attribute| known.name == attribute.name;
    list.iter()
        .any(|request| complex.lookup(&request.name).is_some_and(is_same))
}

fn also_global(attribute: &Attribute, request: &ResourceRequest, scope: &str) -> Diagnostic {
    let name = &attribute.name;
    rejected(&format!(
        "resource \"{name}\" is requested in global scope and in {scope} scope"
    ))
    .at(format!("-scope {scope} -l {request}"))
    .why("a resource is requested either for the whole job, or for its master and its slaves apart")
    .fix(format!(
        "take {name} out of one of them; qsub -clear forgets what request files and the script ask for"
    ))
}

fn once_for_the_job(attribute: &Attribute, request: &ResourceRequest) -> Diagnostic {
    rejected(&format!(
        "per job resource \"{}\" is requested in slave scope",
        attribute.name
    ))
    .at(format!("-scope slave -l {request}"))
    .why("it is charged once for the job, where its master is (consumable JOB)")
    .fix("request it in global or in master scope")
}

fn twice_on_a_host(attribute: &Attribute, request: &ResourceRequest) -> Diagnostic {
    rejected(&format!(
        "per host resource \"{}\" is requested in master scope and in slave scope",
        attribute.name
    ))
    .at(format!("-scope slave -l {request}"))
    .why("it is charged once on each host of the job, whoever runs there (consumable HOST)")
    .fix("request it in one scope only: global, master or slave")
}
