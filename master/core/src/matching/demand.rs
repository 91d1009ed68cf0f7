//! A job's requests, with names resolved, values read, and defaults added.

use super::fit::SlotRole;
use crate::config::Configuration;
use crate::config::pattern::QueuePattern;
use crate::ledger::Charges;
use crate::ledger::quota::JobOwner;
use crate::matching::scoped_request::ScopedRequest;
use crate::reason::Value;
use crate::state::State;
use crate::state::job::Job;
use proto::amount::Amount;
use proto::complex::{Attribute, Complex, Consumable};
use proto::id::{AttributeName, HostName, ReservationId, UserName};
use proto::job::{JobSpec, Owner, PeRequest, Requests};
use proto::pe::{AllocationRule, ParallelEnvironment};
use proto::request::ResourceRequest;
use proto::reservation::ReservationSpec;
use proto::restring::Expression;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A wanted value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WantedValue {
    /// A number, for each slot or in all, as the attribute is charged.
    Amount(Amount),
    /// A text that has to match. Boxed, because most requests are numbers.
    Text(Box<Expression>),
}

impl WantedValue {
    fn read(attribute: &Attribute, text: &str) -> Option<WantedValue> {
        if !attribute.r#type.is_numeric() {
            return Expression::parse(text).ok().map(Box::new).map(WantedValue::Text);
        }
        Amount::parse(text, attribute.r#type).ok().map(WantedValue::Amount)
    }

    /// The wanted value as it is shown beside an offer.
    pub fn value(&self) -> Value {
        match self {
            WantedValue::Amount(amount) => Value::Amount(*amount),
            WantedValue::Text(expression) => Value::Text(expression.as_str().to_owned()),
        }
    }
}

/// One request of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The attribute, shared by all requests of it.
    pub attribute: Arc<Attribute>,
    /// What is asked for.
    pub wanted: WantedValue,
    /// Whether the job does not make the request itself: a default, or the slot of each task.
    pub implied: bool,
}

/// Everything a job asks for that matters to where it may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Hard requests in the order given, then implied ones.
    pub hard: Vec<Request>,
    /// Separate requests of the master and of the other slots. No attribute of them is in `hard`.
    pub apart: Vec<ScopedRequest>,
    /// Soft requests.
    pub soft: Vec<Request>,
    /// Hard requests that the complex does not know, or whose value is not of their type.
    pub unknown: Vec<String>,
    /// FORCED attributes that the job does not request.
    pub not_asked: Vec<AttributeName>,
    /// `-q`; empty means every queue. Beside `-masterq` it is not about the master.
    pub hard_queues: Vec<QueuePattern>,
    /// Soft `-q`.
    pub soft_queues: Vec<QueuePattern>,
    /// `-masterq`; empty means every queue.
    pub master_queues: Vec<QueuePattern>,
    /// `-scope slave -q`; empty means every queue.
    pub slave_queues: Vec<QueuePattern>,
    /// `-pe`.
    pub pe: Option<PeRequest>,
    /// `-par`.
    pub allocation_rule: Option<AllocationRule>,
    /// `-ckpt`.
    pub checkpoint: Option<String>,
    /// `-now y`.
    pub immediate: bool,
    /// The owner.
    pub user: UserName,
    /// The owner as quotas see it.
    pub who: JobOwner,
    /// Its consumables, and its requests in numbers.
    pub charges: Arc<Charges>,
    /// Hosts that may still run an attempt of one of its tasks that was given up.
    pub avoided_hosts: BTreeSet<HostName>,
    /// The access lists in use that the owner is in.
    pub lists: BTreeSet<String>,
    /// `-P`.
    pub project: Option<String>,
    /// `-ar`: the advance reservation that it belongs to.
    pub reservation: Option<ReservationId>,
    /// Whether quotas ignore it: a job of an advance reservation, or such a reservation itself.
    pub is_exempt: bool,
    /// The hard requests of the job in the order of their names, `-l NONE` if it made none.
    pub text: String,
}

impl Demand {
    /// The demand of a job of a state, and the hosts that it avoids for now.
    pub fn of_job(state: &State, job: &Job) -> Demand {
        let avoided_hosts = state.unconfirmed_hosts(job.seq).cloned().collect();
        Demand {
            avoided_hosts,
            ..Demand::new(&state.config, &job.spec)
        }
    }

    /// The demand of a job under a configuration.
    pub fn new(config: &Configuration, spec: &JobSpec) -> Demand {
        Demand {
            checkpoint: spec.checkpoint.clone(),
            immediate: spec.immediate,
            reservation: spec.reservation,
            is_exempt: spec.reservation.is_some(),
            ..Demand::from_requests(config, &spec.requests, &spec.owner, JobOwner::of_spec(spec))
        }
    }

    /// The part of a job that its demand follows from: jobs with equal parts ask for the same.
    pub fn source(spec: &JobSpec) -> impl Ord + '_ {
        (
            &spec.requests,
            &spec.owner,
            &spec.project,
            &spec.checkpoint,
            spec.immediate,
            spec.reservation,
        )
    }

    /// The demand of an advance reservation.
    pub fn of_reservation(config: &Configuration, spec: &ReservationSpec) -> Demand {
        let ReservationSpec {
            owner,
            requests,
            checkpoint,
            immediate,
            ..
        } = spec;
        let who = JobOwner::of_owner(owner, None);
        let is_exempt = true;
        Demand {
            checkpoint: checkpoint.clone(),
            immediate: *immediate,
            is_exempt,
            ..Demand::from_requests(config, requests, owner, who)
        }
    }

    /// The demand that follows from requests and their owner, without checkpointing environment,
    /// `-now` and advance reservation: the callers set these.
    fn from_requests(config: &Configuration, requests: &Requests, owner: &Owner, who: JobOwner) -> Demand {
        let complex = &config.complex;
        let (mut hard, mut unknown) = resolved(complex, &requests.hard);
        let apart = ScopedRequest::all(complex, requests, &mut unknown);
        let is_asked = |name: &AttributeName| {
            hard.iter().any(|request| request.attribute.name == *name)
                || apart.iter().any(|apart| apart.attribute.name == *name)
        };
        let not_asked = complex.forced().filter(|name| !is_asked(name)).cloned().collect();
        let implied: Vec<Request> = complex.consumables().filter_map(implied).collect();
        let implied = implied
            .into_iter()
            .filter(|request| !is_asked(&request.attribute.name))
            .collect::<Vec<_>>();
        hard.extend(implied);
        Demand {
            hard,
            apart,
            soft: resolved(complex, &requests.soft).0,
            unknown,
            not_asked,
            hard_queues: patterns(&requests.hard_queues),
            soft_queues: patterns(&requests.soft_queues),
            master_queues: patterns(&requests.master_queues),
            slave_queues: patterns(&requests.slave_queues),
            pe: requests.pe.clone(),
            allocation_rule: requests.allocation_rule,
            checkpoint: None,
            immediate: false,
            user: owner.user.clone(),
            project: who.project.clone(),
            who,
            charges: Arc::new(Charges::new(complex, requests)),
            avoided_hosts: BTreeSet::new(),
            lists: config.access.lists_of(owner),
            reservation: None,
            is_exempt: false,
            text: text(complex, requests),
        }
    }
}

impl Demand {
    /// The fewest slots that a task accepts.
    pub fn least(&self) -> u32 {
        self.pe.as_ref().map_or(1, |pe| pe.slots.least())
    }

    /// How its slots are placed on hosts in an environment: by its own rule (`-par`), else by that
    /// of the environment.
    pub fn allocation_rule(&self, pe: &ParallelEnvironment) -> AllocationRule {
        self.allocation_rule.unwrap_or(pe.allocation_rule)
    }

    /// Whether the master of a parallel job has other requests than its other slots.
    pub fn is_apart(&self) -> bool {
        !self.apart.is_empty() || !self.slave_queues.is_empty() || self.parts_queues()
    }

    /// Whether the master of a parallel job may be in other queues than its other slots: the job
    /// names both (`-q`, `-masterq`).
    pub fn parts_queues(&self) -> bool {
        !self.hard_queues.is_empty() && !self.master_queues.is_empty()
    }

    /// Whether the master and the other slots of a parallel job are charged differently.
    pub fn charges_master(&self) -> bool {
        self.is_apart()
            || self
                .hard
                .iter()
                .any(|request| request.attribute.consumable == Consumable::Job)
    }

    /// How many of its slots the master needs itself. None if it is not a task of its environment
    /// and has separate requests, so that it need not be where the tasks are.
    pub fn own_slots(&self, pe: &ParallelEnvironment) -> u32 {
        u32::from(pe.job_is_first_task.0 || !self.is_apart())
    }

    /// The roles of slots on the master's host in an environment: with the master, and beside it.
    pub fn roles(&self, pe: Option<&ParallelEnvironment>) -> (SlotRole, SlotRole) {
        match pe {
            Some(pe) if pe.ign_sreq_on_mhost.0 && self.is_apart() => {
                (SlotRole::MasterWithCompanions, SlotRole::Companion)
            }
            Some(_) | None => (SlotRole::Master, SlotRole::Slave),
        }
    }
}

/// The requests that can be read, and the names of the others.
pub fn resolved(complex: &Complex, requests: &[ResourceRequest]) -> (Vec<Request>, Vec<String>) {
    let (mut known, mut unknown) = (Vec::new(), Vec::new());
    for request in requests {
        let attribute = complex.shared(&request.name);
        let text = request.value.as_deref().unwrap_or("TRUE");
        match attribute.and_then(|attribute| Some((attribute.clone(), WantedValue::read(attribute, text)?))) {
            Some((attribute, wanted)) => known.push(Request {
                attribute,
                wanted,
                implied: false,
            }),
            None => unknown.push(request.name.clone()),
        }
    }
    (known, unknown)
}

/// What a job takes of an attribute that it does not request: the default of a consumable, one
/// slot, or not to be alone.
pub(super) fn implied((attribute, default): (&Arc<Attribute>, Amount)) -> Option<Request> {
    let counts = default > Amount::ZERO || attribute.is_exclusive();
    counts.then(|| Request {
        attribute: attribute.clone(),
        wanted: WantedValue::Amount(default),
        implied: true,
    })
}

fn patterns(texts: &[String]) -> Vec<QueuePattern> {
    texts.iter().map(|text| QueuePattern::new(text)).collect()
}

/// Hard requests by the full names of their attributes, in their order: jobs that ask for the same
/// have one text.
fn text(complex: &Complex, requests: &Requests) -> String {
    let named = |request: &ResourceRequest| {
        let name = complex
            .lookup(&request.name)
            .map_or(request.name.clone(), |attribute| attribute.name.to_string());
        ResourceRequest {
            name,
            value: request.value.clone(),
        }
    };
    let listed = |list: &[ResourceRequest]| {
        let mut list: Vec<ResourceRequest> = list.iter().map(named).collect();
        list.sort_by(|one, other| one.name.cmp(&other.name));
        list.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
    };
    let Requests {
        hard, master, slaves, ..
    } = requests;
    let lists = [("-l", hard), ("-scope master -l", master), ("-scope slave -l", slaves)];
    let asked = lists.into_iter().filter(|(_, list)| !list.is_empty());
    let texts: Vec<String> = asked
        .map(|(option, list)| format!("{option} {}", listed(list)))
        .collect();
    if texts.is_empty() {
        "-l NONE".to_owned()
    } else {
        texts.join(" ")
    }
}
