//! Categories: jobs that ask for the same share one answer (ALGORITHMS.md section 19).

use crate::matching::{Demand, Request, resolved};
use crate::reason::Value;
use crate::state::State;
use crate::state::job::Job;
use proto::amount::Type;
use proto::complex::Complex;
use proto::id::{AttributeName, HostName, ReservationId, UserName};
use proto::pe::AllocationRule;
use proto::quota::QuotaSet;
use proto::request::ResourceRequest;
use std::collections::BTreeSet;

/// Everything about a job that decides where it may run, in one canonical form: `1G` is `1024M`,
/// and order does not count.
///
/// The owner is part of it only while `maxujobs` is set, users are sorted, or resource quota sets
/// name users. Otherwise the access lists in use that contain the owner are enough.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CategoryKey {
    /// By name; requests of one name in the order given, because the first counts.
    hard: Vec<(AttributeName, Value)>,
    unknown: BTreeSet<String>,
    soft: Vec<(AttributeName, Value)>,
    hard_queues: BTreeSet<String>,
    soft_queues: BTreeSet<String>,
    master_queues: BTreeSet<String>,
    master: ExtraRequests,
    slaves: ExtraRequests,
    slave_queues: BTreeSet<String>,
    pe: Option<(String, String)>,
    allocation_rule: Option<AllocationRule>,
    checkpoint: Option<String>,
    project: Option<String>,
    immediate: bool,
    reservation: Option<ReservationId>,
    avoided_hosts: BTreeSet<HostName>,
    owner: Option<UserName>,
    lists: BTreeSet<String>,
}

/// What a job asks for its master's slot, or for its other slots, in addition to what it asks for
/// all of them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ExtraRequests {
    /// In the form of `hard` above.
    known: Vec<(AttributeName, Value)>,
    unknown: BTreeSet<String>,
}

impl ExtraRequests {
    fn new(complex: &Complex, requests: &[ResourceRequest]) -> ExtraRequests {
        let (known, unknown) = resolved(complex, requests);
        ExtraRequests {
            known: values(&known),
            unknown: unknown.into_iter().collect(),
        }
    }
}

impl CategoryKey {
    /// The category of a job whose demand is known.
    pub fn new(state: &State, job: &Job, demand: &Demand) -> CategoryKey {
        let spec = &job.spec;
        let requests = &spec.requests;
        let [master, slaves] =
            [&requests.master, &requests.slaves].map(|requests| ExtraRequests::new(&state.config.complex, requests));
        let is_apart = |name: &&String| [&master, &slaves].iter().any(|apart| apart.unknown.contains(*name));
        CategoryKey {
            hard: values(&demand.hard),
            unknown: demand.unknown.iter().filter(|name| !is_apart(name)).cloned().collect(),
            soft: values(&demand.soft),
            hard_queues: requests.hard_queues.iter().cloned().collect(),
            soft_queues: requests.soft_queues.iter().cloned().collect(),
            master_queues: requests.master_queues.iter().cloned().collect(),
            master,
            slaves,
            slave_queues: requests.slave_queues.iter().cloned().collect(),
            pe: requests.pe.as_ref().map(|pe| (pe.name.clone(), pe.slots.to_string())),
            allocation_rule: requests.allocation_rule,
            checkpoint: spec.checkpoint.clone(),
            project: spec.project.clone(),
            immediate: spec.immediate,
            reservation: spec.reservation,
            avoided_hosts: demand.avoided_hosts.clone(),
            lists: demand.lists.clone(),
            owner: is_owner_asked(state).then(|| spec.owner.user.clone()),
        }
    }
}

impl CategoryKey {
    /// The common part of the category's jobs, as options of `qsub`; `-l NONE` if they ask for
    /// nothing. `-U` comes first, with the access lists in use that contain the owner, and the
    /// hosts that a job avoids for now come last.
    pub fn text(&self, complex: &Complex) -> String {
        let mut words: Vec<String> = Vec::new();
        let mut option = |name: &str, values: &mut dyn Iterator<Item = String>| {
            let values: Vec<String> = values.collect();
            if !values.is_empty() {
                words.push(format!("{name} {}", values.join(",")));
            }
        };
        let requests = |requests: &[(AttributeName, Value)]| {
            let texts = requests.iter().map(|(name, value)| match value {
                Value::Text(text) => format!("{name}={text}"),
                Value::Amount(amount) => {
                    let of_type = complex
                        .lookup(name.as_str())
                        .map_or(Type::Int, |attribute| attribute.r#type);
                    format!("{name}={}", amount.print(of_type))
                }
            });
            texts.collect::<Vec<_>>()
        };
        option("-U", &mut self.lists.iter().cloned());
        option("-u", &mut self.owner.iter().map(ToString::to_string));
        option("-P", &mut self.project.iter().cloned());
        option(
            "-l",
            &mut requests(&self.hard).into_iter().chain(self.unknown.iter().cloned()),
        );
        option("-q", &mut self.hard_queues.iter().cloned());
        option("-masterq", &mut self.master_queues.iter().cloned());
        option("-soft -l", &mut requests(&self.soft).into_iter());
        option("-soft -q", &mut self.soft_queues.iter().cloned());
        // After -soft or -scope, `-hard` is needed to mean hard requests again.
        let hard = if self.soft.is_empty() && self.soft_queues.is_empty() {
            ""
        } else {
            "-hard "
        };
        for (scope, ExtraRequests { known, unknown }) in [("master", &self.master), ("slave", &self.slaves)] {
            let mut asked = requests(known).into_iter().chain(unknown.iter().cloned());
            option(&format!("{hard}-scope {scope} -l"), &mut asked);
        }
        option(
            &format!("{hard}-scope slave -q"),
            &mut self.slave_queues.iter().cloned(),
        );
        option(
            "-pe",
            &mut self.pe.iter().map(|(name, slots)| format!("{name} {slots}")),
        );
        option("-par", &mut self.allocation_rule.iter().map(ToString::to_string));
        option("-ckpt", &mut self.checkpoint.iter().cloned());
        option("-ar", &mut self.reservation.iter().map(ToString::to_string));
        option("-now", &mut self.immediate.then(|| "y".to_owned()).into_iter());
        option("not on", &mut self.avoided_hosts.iter().map(ToString::to_string));
        if words.is_empty() {
            "-l NONE".to_owned()
        } else {
            words.join(" ")
        }
    }
}

/// Whether the owner of a job matters to where it may run.
fn is_owner_asked(state: &State) -> bool {
    let names_users = |set: &QuotaSet| set.rules.iter().any(|rule| rule.users.is_some());
    let conf = &state.config.scheduler;
    conf.maxujobs > 0 || conf.user_sort() || state.config.enabled_quotas().any(names_users)
}

fn values(requests: &[Request]) -> Vec<(AttributeName, Value)> {
    let asked = requests.iter().filter(|request| !request.implied);
    let mut values: Vec<_> = asked
        .map(|request| (request.attribute.name.clone(), request.wanted.value()))
        .collect();
    values.sort_by(|(one, _), (other, _)| one.cmp(other));
    values
}
