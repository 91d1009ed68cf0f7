//! The categories by number, so that jobs are compared by a number and not by all their requests.

use crate::matching::Demand;
use crate::sched::duration::expected_ms;
use crate::sched::filter::Category;
use crate::sched::filter::category_key::CategoryKey;
use crate::sched::order::urgency::resource_urgency;
use crate::state::State;
use crate::state::job::Job;
use proto::job::JobSpec;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The number of a category. It is never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CategoryId(u64);

/// A specification, as far as it decides about the category of its job. Equal ones have one
/// category; different ones may have the same.
#[derive(Clone, Debug)]
struct SpecKey(Arc<JobSpec>);

/// A category, and the keys that lead to it.
#[derive(Clone, Debug)]
struct CategoryEntry {
    category: Category,
    key: Arc<CategoryKey>,
    asked: Vec<SpecKey>,
    /// How many jobs are in it.
    jobs: usize,
    /// The urgency of its requests, in millionths.
    resources: i128,
}

/// A category as `qconf -scatl` lists it.
#[derive(Clone, Debug)]
pub struct CategoryRow {
    /// Its number. It changes when the master starts again, and when the configuration changes what
    /// categories depend on.
    pub id: u64,
    /// The common part of its jobs.
    pub key: Arc<CategoryKey>,
    /// How many jobs are in it, whatever their state.
    pub jobs: usize,
}

/// The categories of all jobs.
///
/// Invariant: `by_key` and `by_asked` lead to exactly the entries of `by_id`, and each category has
/// at least one job. The model enters each job once and takes it out before it enters it anew.
#[derive(Clone, Debug, Default)]
pub struct Categories {
    /// Boxed, so that the tree stays small: an entry is looked up for every order.
    by_id: BTreeMap<CategoryId, Box<CategoryEntry>>,
    by_key: BTreeMap<Arc<CategoryKey>, CategoryId>,
    by_asked: BTreeMap<SpecKey, CategoryId>,
    last: u64,
}

impl Categories {
    /// Counts a job in its category. Returns the category and the urgency of its requests, in
    /// millionths.
    pub fn enter(&mut self, state: &State, job: &Job) -> (CategoryId, i128) {
        let asked = SpecKey(job.spec.clone());
        // A job that avoids hosts has a category of its own until the fate of its earlier attempt
        // is known.
        let is_plain = state.unconfirmed_hosts(job.seq).next().is_none();
        let id = match self.by_asked.get(&asked).filter(|_| is_plain) {
            Some(id) => *id,
            None => self.look_up(state, job, is_plain.then_some(asked)),
        };
        let known = self.by_id.get_mut(&id).expect("what was found is there");
        debug_assert_eq!(
            *known.key,
            CategoryKey::new(state, job, &Demand::of_job(state, job)),
            "all that counts is asked"
        );
        known.jobs += 1;
        (id, known.resources)
    }

    /// Counts a job out of a category.
    pub fn leave(&mut self, id: CategoryId) {
        let known = self
            .by_id
            .get_mut(&id)
            .expect("a job leaves the category that it entered");
        known.jobs -= 1;
        if known.jobs == 0 {
            let CategoryEntry { key, asked, .. } = *self.by_id.remove(&id).expect("it was there");
            self.by_key.remove(&key);
            for asked in asked {
                self.by_asked.remove(&asked);
            }
        }
    }

    /// The number of categories.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// All categories, by number.
    pub fn listed(&self) -> Vec<CategoryRow> {
        let listed = self.by_id.iter();
        listed
            .map(|(id, known)| CategoryRow {
                id: id.0,
                key: known.key.clone(),
                jobs: known.jobs,
            })
            .collect()
    }

    /// A category, if it still exists.
    pub fn get(&self, id: CategoryId) -> Option<&Category> {
        self.by_id.get(&id).map(|known| &known.category)
    }

    /// A category, if it still exists.
    pub fn get_mut(&mut self, id: CategoryId) -> Option<&mut Category> {
        self.by_id.get_mut(&id).map(|known| &mut known.category)
    }

    /// Forgets all categories. Numbers continue.
    pub fn clear(&mut self) {
        *self = Categories {
            last: self.last,
            ..Categories::default()
        };
    }

    fn look_up(&mut self, state: &State, job: &Job, asked: Option<SpecKey>) -> CategoryId {
        let demand = Demand::of_job(state, job);
        let key = CategoryKey::new(state, job, &demand);
        let id = self
            .by_key
            .get(&key)
            .copied()
            .unwrap_or_else(|| self.create(state, key, demand));
        if let Some(asked) = asked {
            self.by_id
                .get_mut(&id)
                .expect("it was there or is new")
                .asked
                .push(asked.clone());
            self.by_asked.insert(asked, id);
        }
        id
    }

    fn create(&mut self, state: &State, key: CategoryKey, demand: Demand) -> CategoryId {
        self.last += 1;
        let id = CategoryId(self.last);
        let resources = resource_urgency(&state.config, &demand);
        let length_ms = expected_ms(&state.config, &demand);
        let category = Category::new(&state.config.complex, Arc::new(demand), length_ms);
        let key = Arc::new(key);
        self.by_key.insert(key.clone(), id);
        self.by_id.insert(
            id,
            Box::new(CategoryEntry {
                category,
                key,
                asked: Vec::new(),
                jobs: 0,
                resources,
            }),
        );
        id
    }
}

impl PartialEq for SpecKey {
    fn eq(&self, other: &SpecKey) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for SpecKey {}

impl PartialOrd for SpecKey {
    fn partial_cmp(&self, other: &SpecKey) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for SpecKey {
    fn cmp(&self, other: &SpecKey) -> Ordering {
        Demand::source(&self.0).cmp(&Demand::source(&other.0))
    }
}
