//! Why jobs of a category wait: computed when somebody asks, grouped and bounded.
//!
//! A pass does not collect reasons: it would walk over all hosts for each category that fails, and
//! hardly anybody would read the result. An answer is true at the moment of the question, and comes
//! from the same matcher.

use crate::ledger::Level;
use crate::matching::{Cluster, Demand, InstanceView, Mode};
use crate::observe::Observations;
use crate::reason::Reason;
use crate::reason::group::{Group, grouped};
use crate::sched::assign::{WholeSupply, assign_serial, fit_globally, try_parallel};
use crate::sched::duration::expected_ms;
use crate::sched::filter::category_key::CategoryKey;
use crate::sched::filter::suitability::Suitability;
use crate::sched::model::Model;
use crate::sched::reserve::ahead::{Lookahead, Reservation};
use crate::state::State;
use crate::state::job::Job;
use proto::id::{QueueInstanceName, SubmitSeq, TaskId};
use proto::time::Now;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Why jobs wait at one moment. The result for one job serves all of its category.
#[derive(Clone, Debug)]
pub struct Findings<'a> {
    /// The cell.
    pub state: &'a State,
    /// Its load and contact.
    pub observations: &'a Observations,
    /// The moment.
    pub now: Now,
    ahead: Option<Cow<'a, Lookahead>>,
    cache: ReasonCache,
}

/// Results, without the state that they are about.
#[derive(Clone, Debug, Default)]
struct ReasonCache {
    categories: BTreeMap<CategoryKey, Vec<Group>>,
    /// For jobs that have a reservation.
    reserving: BTreeMap<SubmitSeq, Vec<Group>>,
    /// Why queue instances take no jobs, in words.
    cluster: Option<Arc<[String]>>,
}

/// Findings without the state, to be continued when the state is at hand again. Results stay as
/// they were.
#[derive(Debug)]
pub struct SavedFindings {
    now: Now,
    ahead: Option<Lookahead>,
    cache: ReasonCache,
}

impl<'a> Findings<'a> {
    /// Findings of one moment. Nothing is computed before it is asked for.
    pub fn new(state: &'a State, observations: &'a Observations, now: Now) -> Findings<'a> {
        Findings {
            state,
            observations,
            now,
            ahead: None,
            cache: ReasonCache::default(),
        }
    }

    /// Continues findings that were laid aside.
    pub fn resume(state: &'a State, observations: &'a Observations, aside: SavedFindings) -> Findings<'a> {
        let SavedFindings { now, ahead, cache } = aside;
        Findings {
            state,
            observations,
            now,
            ahead: ahead.map(Cow::Owned),
            cache,
        }
    }

    /// Lays the findings aside.
    pub fn aside(self) -> SavedFindings {
        SavedFindings {
            now: self.now,
            ahead: self.ahead.map(Cow::into_owned),
            cache: self.cache,
        }
    }

    /// The findings of a moment at which slots are kept for later.
    pub fn ahead(self, ahead: Cow<'a, Lookahead>) -> Findings<'a> {
        Findings {
            ahead: Some(ahead),
            ..self
        }
    }

    /// When the first task of a job starts at the latest, as far as is known, and on which slots,
    /// if these are kept for it.
    pub fn reservation(&self, seq: SubmitSeq) -> Option<&Reservation> {
        let first = (seq, TaskId(0));
        let mut kept = self
            .ahead
            .as_ref()?
            .reservations()
            .range(first..)
            .map(|((seq, _), kept)| (*seq, kept));
        kept.next().filter(|(of, _)| *of == seq).map(|(_, kept)| kept)
    }

    /// Whether only slots that are kept for others prevent a task of a job from starting.
    pub fn is_only_kept(&self, demand: &Demand) -> bool {
        self.ahead.is_some() && reasons(&self.cluster().of_demand(self.state, demand), demand).is_empty()
    }

    /// The cluster at that moment.
    pub fn cluster(&self) -> Cluster<'a> {
        Cluster {
            now: self.now.tick,
            ..Cluster::of_state(self.state, self.observations, Mode::Now)
        }
    }

    /// The reasons against a task of a job, in the order of first mention; empty if it could start.
    /// Slots that are kept for the job itself do not count.
    pub fn reasons_of(&mut self, job: &Job, demand: &Demand) -> &[Group] {
        let own: Vec<TaskId> = self.kept_for(job.seq).collect();
        if own.is_empty() {
            let key = CategoryKey::new(self.state, job, demand);
            if !self.cache.categories.contains_key(&key) {
                let found = self.find(demand, self.ahead.as_deref());
                self.cache.categories.insert(key.clone(), found);
            }
            return &self.cache.categories[&key];
        }
        let mut ahead = self.ahead.as_deref().cloned();
        for task in own {
            ahead.as_mut().and_then(|ahead| ahead.give_up(job.seq, task));
        }
        let found = self.find(demand, ahead.as_ref());
        self.cache.reserving.insert(job.seq, found);
        &self.cache.reserving[&job.seq]
    }

    /// Why queue instances take no jobs, in words. They are made once.
    pub fn of_cluster(&mut self, words: impl FnOnce(&Cluster<'_>) -> Vec<String>) -> Arc<[String]> {
        let cluster = self.cluster();
        self.cache.cluster.get_or_insert_with(|| words(&cluster).into()).clone()
    }

    /// The tasks of a job that have a reservation.
    fn kept_for(&self, seq: SubmitSeq) -> impl Iterator<Item = TaskId> {
        let kept = self
            .ahead
            .iter()
            .flat_map(move |ahead| ahead.reservations().range((seq, TaskId(0))..));
        kept.map(|(key, _)| *key)
            .take_while(move |(of, _)| *of == seq)
            .map(|(_, task)| task)
    }

    fn find(&self, demand: &Demand, ahead: Option<&Lookahead>) -> Vec<Group> {
        let (cluster, now) = (self.cluster().of_demand(self.state, demand), self.now);
        let ahead = ahead.filter(|_| cluster.within().is_none());
        let length_ms = expected_ms(cluster.config, demand);
        let closing = ahead.map_or_else(BTreeSet::new, |ahead| ahead.closing(now, length_ms));
        let window = ahead.and_then(|ahead| ahead.window(now, length_ms, &closing));
        grouped(reasons(&Cluster { window, ..cluster }, demand).iter())
    }
}

impl Model {
    /// Why jobs wait, what is kept for others among it. Tasks that are planned do not count yet.
    pub fn findings(&self, now: Now) -> Findings<'_> {
        Findings::new(&self.state, &self.observations, now).ahead(self.drawn_ahead())
    }
}

/// All reasons against a task now; empty if a queue instance takes it.
fn reasons(cluster: &Cluster<'_>, demand: &Demand) -> Vec<Reason> {
    let suitability = Suitability::new(cluster, demand);
    let globally = fit_globally(cluster, demand);
    let mut reasons = globally.reasons.clone();
    let mut open: Vec<QueueInstanceName> = Vec::new();
    for instance in cluster.config.resolved.keys() {
        let level = || Level::Instance(instance.clone());
        if let Some(what) = suitability.unsuitable(&cluster.site(instance)) {
            reasons.push(Reason::new(level(), what));
        } else if globally.reasons.is_empty() {
            let alarms = || {
                cluster
                    .alarms(instance)
                    .into_iter()
                    .map(|what| Reason::new(level(), what))
                    .collect()
            };
            let why = match demand.pe {
                Some(_) => alarms(),
                None => assign_serial(cluster, demand, &globally, &cluster.site(instance))
                    .err()
                    .unwrap_or_else(alarms),
            };
            match (why.is_empty(), &demand.pe) {
                (false, _) => reasons.extend(why),
                (true, Some(_)) => open.push(instance.clone()),
                // One queue instance is enough.
                (true, None) => return Vec::new(),
            }
        }
    }
    if demand.pe.is_none() || !globally.reasons.is_empty() {
        return reasons;
    }
    let open: Vec<InstanceView<'_, '_>> = open.iter().map(|instance| cluster.site(instance)).collect();
    match try_parallel(cluster, demand, &globally, &mut WholeSupply::new(&open)).found {
        Ok(_) => Vec::new(),
        Err(failure) => {
            let (of_instances, mut others): (Vec<Reason>, Vec<Reason>) = failure
                .reasons
                .into_iter()
                .partition(|reason| matches!(reason.level, Level::Instance(_)));
            others.extend(reasons);
            others.extend(of_instances);
            others.extend(failure.no_more);
            others
        }
    }
}
