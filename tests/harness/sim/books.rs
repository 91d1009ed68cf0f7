//! What placed tasks take, added up apart from the ledger of the code under test.
//!
//! Each event changes a few sums, and only those are compared with the ledger: so it is affordable after every event. On small cells
//! the sums are added up anew each time, on large ones now and then, and must be the same ([`Books::audit`]).

use master_core::ledger::{Ledger, Level};
use master_core::state::config::Configuration;
use proto::amount::Amount;
use proto::complex::Consumable;
use proto::id::{AttributeName, HostName, PeName, TaskKey, UserName};
use proto::job::{Granted, JobSpec};
use std::collections::{BTreeMap, BTreeSet};

/// Which attribute at which level.
type Place = (Level, AttributeName);

/// What one task asked for when it was placed, and what it takes of it under the present complex.
#[derive(Clone, Debug)]
pub(super) struct Task {
    pub(super) user: UserName,
    pub(super) pe: Option<PeName>,
    /// Without that of a master that is no task of its parallel job.
    slots: u32,
    /// For each slot or in all, by full name, in base units.
    asked: BTreeMap<AttributeName, i64>,
    granted: Vec<Granted>,
    pub(super) takes: BTreeMap<Place, i64>,
}

/// The sums.
#[derive(Debug, Default)]
pub(super) struct Books {
    tasks: BTreeMap<TaskKey, Task>,
    sums: BTreeMap<Place, i64>,
    /// Slots of each parallel environment.
    in_pes: BTreeMap<PeName, u32>,
}

impl Books {
    /// What a task would take, by level and attribute; nothing that is zero.
    pub(super) fn would_take(
        config: &Configuration,
        spec: &JobSpec,
        granted: &[Granted],
        pe: Option<&PeName>,
    ) -> BTreeMap<Place, i64> {
        takes(config, &asked(config, spec), &with_extra(config, granted, pe))
    }

    /// How much is taken.
    pub(super) fn sum(&self, level: &Level, attribute: &AttributeName) -> i64 {
        self.sums.get(&(level.clone(), attribute.clone())).copied().unwrap_or(0)
    }

    /// The placed tasks.
    pub(super) fn tasks(&self) -> impl Iterator<Item = &Task> {
        self.tasks.values()
    }

    /// A placed task.
    pub(super) fn task(&self, key: TaskKey) -> &Task {
        self.tasks.get(&key).unwrap_or_else(|| panic!("{key} ended and was not placed"))
    }

    /// How many slots of a parallel environment are taken.
    pub(super) fn in_pe(&self, pe: &PeName) -> u32 {
        self.in_pes.get(pe).copied().unwrap_or(0)
    }

    pub(super) fn place(
        &mut self,
        config: &Configuration,
        spec: &JobSpec,
        key: TaskKey,
        granted: &[Granted],
        pe: Option<&PeName>,
    ) {
        let granted_slots = granted.iter().map(|part| part.slots).sum();
        let (asked, granted) = (asked(config, spec), with_extra(config, granted, pe));
        let takes = takes(config, &asked, &granted);
        takes.iter().for_each(|(place, amount)| *self.sums.entry(place.clone()).or_default() += amount);
        let slots = granted_slots;
        if let Some(pe) = pe {
            *self.in_pes.entry(pe.clone()).or_default() += slots;
        }
        let task = Task { user: spec.owner.user.clone(), pe: pe.cloned(), slots, asked, granted, takes };
        assert!(self.tasks.insert(key, task).is_none(), "{key} was placed twice");
    }

    /// A task gives back what it took, and nothing else.
    pub(super) fn end(&mut self, key: TaskKey, ledger: &Ledger) {
        let task = self.tasks.remove(&key).unwrap_or_else(|| panic!("{key} ended and was not placed"));
        for (place, amount) in &task.takes {
            let sum = self.sums.get_mut(place).expect("what was taken is in the sums");
            *sum -= amount;
            if *sum == 0 {
                self.sums.remove(place);
            }
            self.compare(place, ledger);
        }
        if let Some(slots) = task.pe.and_then(|pe| self.in_pes.get_mut(&pe)) {
            *slots -= task.slots;
        }
        assert!(ledger.booking(key).is_none(), "something is booked for {key}, which has ended");
    }

    /// After a change of the complex everything counts anew.
    pub(super) fn rebook(&mut self, config: &Configuration, ledger: &Ledger) {
        for task in self.tasks.values_mut() {
            task.takes = takes(config, &task.asked, &task.granted);
        }
        self.sums = self.added_up();
        self.compare_all(config, ledger);
    }

    fn added_up(&self) -> BTreeMap<Place, i64> {
        let mut sums = BTreeMap::new();
        for (place, amount) in self.tasks.values().flat_map(|task| &task.takes) {
            *sums.entry(place.clone()).or_default() += amount;
        }
        sums
    }

    /// What was added up from event to event is what the placed tasks take in all.
    pub(super) fn audit(&self, config: &Configuration) {
        for (key, task) in &self.tasks {
            assert_eq!(task.takes, takes(config, &task.asked, &task.granted), "what {key} takes");
        }
        assert_eq!(self.sums, self.added_up(), "the sums of this simulator itself");
        for (pe, slots) in &self.in_pes {
            let tasks = self.tasks.values().filter(|task| task.pe.as_ref() == Some(pe));
            assert_eq!(*slots, tasks.map(|task| task.slots).sum::<u32>(), "the slots of {pe}");
        }
    }

    /// The ledger has exactly these sums where the task is.
    pub(super) fn compare_task(&self, key: TaskKey, ledger: &Ledger) {
        self.tasks[&key].takes.keys().for_each(|place| self.compare(place, ledger));
        assert!(ledger.booking(key).is_some(), "nothing is booked for {key}, which is placed");
    }

    /// The ledger has exactly these sums, and nothing anywhere else.
    pub(super) fn compare_all(&self, config: &Configuration, ledger: &Ledger) {
        assert!(ledger.keys().eq(self.tasks.keys().copied()), "other tasks are booked than are placed");
        let placed: BTreeSet<&Level> =
            self.tasks.values().flat_map(|task| task.takes.keys()).map(|(level, _)| level).collect();
        for level in placed {
            for attribute in config.complex.iter() {
                self.compare(&(level.clone(), attribute.name.clone()), ledger);
            }
        }
    }

    fn compare(&self, place: &Place, ledger: &Ledger) {
        let (level, attribute) = place;
        let (sum, booked) = (self.sum(level, attribute), ledger.booked(level, attribute.as_str()));
        assert_eq!(booked, Amount::from_base(sum), "{attribute} at {level} is not the sum over the tasks");
    }
}

/// The numbers a job asks for of what the complex knows.
fn asked(config: &Configuration, spec: &JobSpec) -> BTreeMap<AttributeName, i64> {
    let read = |request: &proto::request::ResourceRequest| {
        let attribute = config.complex.lookup(&request.name)?;
        let amount = Amount::parse(request.value.as_deref().unwrap_or("TRUE"), attribute.r#type).ok()?;
        Some((attribute.name.clone(), amount.finite()?))
    };
    spec.requests.hard.iter().filter_map(read).collect()
}

/// The slots, with one more for a master that is no task of its parallel job.
fn with_extra(config: &Configuration, granted: &[Granted], pe: Option<&PeName>) -> Vec<Granted> {
    let mut granted = granted.to_vec();
    let is_extra = pe.and_then(|pe| config.pes.get(pe)).is_some_and(|pe| !pe.job_is_first_task.0);
    if let Some(master) = granted.first_mut().filter(|_| is_extra) {
        master.slots += 1;
    }
    granted
}

fn takes(config: &Configuration, asked: &BTreeMap<AttributeName, i64>, granted: &[Granted]) -> BTreeMap<Place, i64> {
    let mut takes = BTreeMap::new();
    for attribute in config.complex.iter().filter(|attribute| attribute.consumable.is_consumable()) {
        let default = || attribute.default_amount().finite().unwrap_or(0);
        let amount = if attribute.name.as_str() == "slots" {
            1
        } else {
            asked.get(&attribute.name).copied().unwrap_or_else(default)
        };
        let mut hosts: BTreeSet<&HostName> = BTreeSet::new();
        for (index, part) in granted.iter().enumerate() {
            let instance = &part.instance;
            let times = match attribute.consumable {
                Consumable::No => 0,
                Consumable::Yes => i64::from(part.slots),
                Consumable::Job => i64::from(index == 0),
                Consumable::Host => i64::from(hosts.insert(&instance.host)),
            };
            for level in [Level::Global, Level::Host(instance.host.clone()), Level::Instance(instance.clone())] {
                *takes.entry((level, attribute.name.clone())).or_insert(0) += amount * times;
            }
        }
    }
    takes.retain(|_, amount| *amount > 0);
    takes
}
