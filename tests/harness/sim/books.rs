//! What placed tasks take, added up apart from the ledger of the code under test.
//!
//! Each event changes a few sums, and only those are compared with the ledger: so it is affordable
//! after every event. On small cells the sums are added up anew each time, on large ones now and
//! then, and must be the same ([`Books::audit`]).

use master_core::config::Configuration;
use master_core::ledger::{Ledger, Level};
use master_core::state::State;
use proto::amount::Amount;
use proto::complex::{Attribute, Consumable};
use proto::id::{AttributeName, HostName, PeName, QueueInstanceName, ReservationId, SubmitSeq, TaskKey, UserName};
use proto::job::{GrantedSlots, JobSpec, Requests};
use proto::request::ResourceRequest;
use proto::time::Wall;
use std::collections::{BTreeMap, BTreeSet};

/// Which attribute at which level.
pub(super) type LevelAttribute = (Level, AttributeName);

/// What one task asked for when it was placed, and what it takes of it under the present complex.
#[derive(Clone, Debug)]
pub(super) struct Task {
    pub(super) user: UserName,
    pub(super) pe: Option<PeName>,
    /// Without that of a master that is no task of its parallel job.
    slots: u32,
    /// That of which it has its slots.
    reservation: Option<ReservationId>,
    asked: RequestedAmounts,
    given: TaskSlots,
    pub(super) takes: Sums,
}

/// The numbers that a job asks for of what the complex knows, by full name, in base units: for each
/// slot or in all.
#[derive(Clone, Debug)]
struct RequestedAmounts {
    all: BTreeMap<AttributeName, i64>,
    /// For the master's slot alone.
    master: BTreeMap<AttributeName, i64>,
    /// For the other slots.
    slaves: BTreeMap<AttributeName, i64>,
}

/// The slots of a task as its parallel environment made them when it was placed.
#[derive(Clone, Debug)]
pub(super) struct TaskSlots(Vec<(SlotRole, QueueInstanceName)>);

/// What a slot is to its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SlotRole {
    Master,
    Slave,
    /// A slot on the host of the master of whom nothing of what slaves ask is wanted
    /// (`ign_sreq_on_mhost`).
    Companion,
}

/// What an advance reservation keeps.
#[derive(Clone, Debug)]
struct Block {
    asked: RequestedAmounts,
    given: TaskSlots,
    takes: Sums,
    pe: Option<PeName>,
    from: Wall,
    until: Wall,
    is_running: bool,
}

/// How much is taken of what.
type Sums = BTreeMap<LevelAttribute, i64>;

/// The sums. While a reservation runs, what it keeps counts, and what its tasks take counts within
/// it alone.
#[derive(Debug, Default)]
pub(super) struct Books {
    tasks: BTreeMap<TaskKey, Task>,
    blocks: BTreeMap<ReservationId, Block>,
    sums: Sums,
    /// Of the tasks of each running reservation.
    within: BTreeMap<ReservationId, Sums>,
    /// Slots of each parallel environment.
    in_pes: BTreeMap<PeName, u32>,
}

fn add(sums: &mut Sums, takes: &Sums, times: i64) {
    for (place, amount) in takes {
        let sum = sums.entry(place.clone()).or_default();
        *sum += times * amount;
        if *sum == 0 {
            sums.remove(place);
        }
    }
}

fn sum(sums: &Sums, place: &LevelAttribute) -> i64 {
    sums.get(place).copied().unwrap_or(0)
}

fn slots(granted: &[GrantedSlots]) -> u32 {
    granted.iter().map(|part| part.slots).sum()
}

impl Books {
    /// What a task would take, by level and attribute; nothing that is zero.
    pub(super) fn would_take(
        config: &Configuration,
        requests: &Requests,
        granted: &[GrantedSlots],
        pe: Option<&PeName>,
    ) -> Sums {
        takes(
            config,
            &RequestedAmounts::read(config, requests),
            &TaskSlots::new(config, granted, pe),
        )
    }

    /// How much is taken by tasks and reservations.
    pub(super) fn sum(&self, place: &LevelAttribute) -> i64 {
        sum(&self.sums, place)
    }

    /// How much there is within a running reservation, and how much of that is taken.
    pub(super) fn within(&self, id: ReservationId, place: &LevelAttribute) -> (i64, i64) {
        let taken = self.within.get(&id).map_or(0, |sums| sum(sums, place));
        (sum(&self.blocks[&id].takes, place), taken)
    }

    /// The most that reservations keep at any moment of a time, all that begin or run then.
    pub(super) fn kept(&self, place: &LevelAttribute, from: Wall, until: Wall) -> i64 {
        let beside: Vec<&Block> = self
            .blocks
            .values()
            .filter(|block| block.from < until && from < block.until)
            .collect();
        let at = |moment: Wall| {
            let then = beside
                .iter()
                .filter(|block| block.from <= moment && moment < block.until);
            then.map(|block| sum(&block.takes, place)).sum::<i64>()
        };
        let begins = beside.iter().map(|block| block.from.max(from));
        begins.chain([from]).map(at).max().unwrap_or(0)
    }

    /// Whether the time of a reservation is now.
    pub(super) fn is_running(&self, id: ReservationId) -> bool {
        self.blocks.get(&id).is_some_and(|block| block.is_running)
    }

    /// The reservation that a job of it is placed in, as long as that runs.
    pub(super) fn reservation_of(&self, spec: &JobSpec) -> Option<ReservationId> {
        spec.reservation.filter(|id| self.is_running(*id))
    }

    /// Whether a task counts within its reservation.
    fn is_within(&self, task: &Task) -> Option<ReservationId> {
        task.reservation.filter(|id| self.is_running(*id))
    }

    /// The placed tasks that count by themselves.
    pub(super) fn tasks(&self) -> impl Iterator<Item = &Task> {
        self.tasks.values().filter(|task| self.is_within(task).is_none())
    }

    /// A placed task.
    pub(super) fn task(&self, key: TaskKey) -> &Task {
        self.tasks
            .get(&key)
            .unwrap_or_else(|| panic!("{key} ended and was not placed"))
    }

    /// Whether a placed task counts by itself.
    pub(super) fn is_alone(&self, key: TaskKey) -> bool {
        self.is_within(self.task(key)).is_none()
    }

    /// How many slots of a parallel environment are taken.
    pub(super) fn in_pe(&self, pe: &PeName) -> u32 {
        self.in_pes.get(pe).copied().unwrap_or(0)
    }

    fn count(&mut self, of: Option<ReservationId>, pe: Option<&PeName>, slots: u32, takes: &Sums, times: i64) {
        let Some(id) = of else {
            add(&mut self.sums, takes, times);
            if let Some(pe) = pe {
                let count = self.in_pes.entry(pe.clone()).or_default();
                *count = u32::try_from(i64::from(*count) + times * i64::from(slots)).expect("no more leave than came");
            }
            return;
        };
        add(self.within.entry(id).or_default(), takes, times);
    }

    pub(super) fn place(
        &mut self,
        after: &State,
        spec: &JobSpec,
        key: TaskKey,
        granted: &[GrantedSlots],
        pe: Option<&PeName>,
    ) {
        let config = &after.config;
        let (asked, given) = (
            RequestedAmounts::read(config, &spec.requests),
            TaskSlots::new(config, granted, pe),
        );
        let takes = takes(config, &asked, &given);
        let reservation = self.reservation_of(spec);
        let task = Task {
            user: spec.owner.user.clone(),
            pe: pe.cloned(),
            slots: slots(granted),
            reservation,
            asked,
            given,
            takes,
        };
        self.count(reservation, pe, task.slots, &task.takes, 1);
        assert!(self.tasks.insert(key, task).is_none(), "{key} was placed twice");
        self.task(key)
            .takes
            .keys()
            .for_each(|place| self.compare(reservation, place, after));
        assert!(
            ledger(after, reservation).booking(key).is_some(),
            "nothing is booked for {key}, which is placed"
        );
    }

    /// A task gives back what it took, and nothing else.
    pub(super) fn end(&mut self, key: TaskKey, after: &State) {
        let task = self
            .tasks
            .remove(&key)
            .unwrap_or_else(|| panic!("{key} ended and was not placed"));
        let of = self.is_within(&task);
        self.count(of, task.pe.as_ref(), task.slots, &task.takes, -1);
        task.takes.keys().for_each(|place| self.compare(of, place, after));
        assert!(
            ledger(after, of).booking(key).is_none(),
            "something is booked for {key}, which has ended"
        );
    }

    /// A reservation was granted.
    pub(super) fn grant(&mut self, id: ReservationId, after: &State) {
        let (config, granted) = (&after.config, &after.reservations[&id]);
        let asked = RequestedAmounts::read(config, &granted.spec.requests);
        let (from, until, pe) = (granted.start, granted.end, granted.pe.clone());
        let given = TaskSlots::new(config, &granted.granted, pe.as_ref());
        let takes = takes(config, &asked, &given);
        let block = Block {
            asked,
            given,
            takes,
            pe,
            from,
            until,
            is_running: false,
        };
        assert!(self.blocks.insert(id, block).is_none(), "{id} was granted twice");
    }

    /// Its time has come.
    pub(super) fn begin(&mut self, id: ReservationId, after: &State) {
        let block = self.blocks.get_mut(&id).expect("what begins was granted");
        assert!(!std::mem::replace(&mut block.is_running, true), "{id} begins twice");
        let (block, slots) = (block.clone(), after.reservations[&id].granted.as_slice());
        self.count(None, block.pe.as_ref(), self::slots(slots), &block.takes, 1);
        block.takes.keys().for_each(|place| self.compare(None, place, after));
    }

    /// It is over: the tasks that it has left, which are returned, count as all others do.
    pub(super) fn over(&mut self, id: ReservationId, slots: u32, after: &State) -> Vec<Task> {
        let Some(block) = self.blocks.remove(&id) else {
            return Vec::new();
        };
        let within = self.within.remove(&id).unwrap_or_default();
        if !block.is_running {
            return Vec::new();
        }
        self.count(None, block.pe.as_ref(), slots, &block.takes, -1);
        add(&mut self.sums, &within, 1);
        let its: Vec<Task> = self
            .tasks
            .values()
            .filter(|task| task.reservation == Some(id))
            .cloned()
            .collect();
        its.iter()
            .for_each(|task| self.count(None, task.pe.as_ref(), task.slots, &Sums::new(), 1));
        block
            .takes
            .keys()
            .chain(within.keys())
            .for_each(|place| self.compare(None, place, after));
        its
    }

    /// After a change of the complex everything counts anew.
    pub(super) fn rebook(&mut self, after: &State) {
        let config = &after.config;
        for task in self.tasks.values_mut() {
            task.takes = takes(config, &task.asked, &task.given);
        }
        for block in self.blocks.values_mut() {
            block.takes = takes(config, &block.asked, &block.given);
        }
        (self.sums, self.within) = self.added_up();
        self.compare_all(after);
    }

    fn added_up(&self) -> (Sums, BTreeMap<ReservationId, Sums>) {
        let (mut sums, mut within) = (Sums::new(), BTreeMap::<_, Sums>::new());
        for task in self.tasks.values() {
            let sums = match self.is_within(task) {
                Some(id) => within.entry(id).or_default(),
                None => &mut sums,
            };
            add(sums, &task.takes, 1);
        }
        let running = self.blocks.values().filter(|block| block.is_running);
        running.for_each(|block| add(&mut sums, &block.takes, 1));
        (sums, within)
    }

    /// What was added up from event to event is what the placed tasks take in all.
    pub(super) fn audit(&self, config: &Configuration) {
        for (key, task) in &self.tasks {
            assert_eq!(task.takes, takes(config, &task.asked, &task.given), "what {key} takes");
        }
        let (sums, within) = self.added_up();
        assert_eq!(self.sums, sums, "the sums of this simulator itself");
        let kept = self.within.iter().filter(|(_, sums)| !sums.is_empty());
        assert!(
            kept.eq(&within),
            "the sums of this simulator itself within reservations"
        );
    }

    /// The ledger has exactly these sums, and nothing anywhere else.
    pub(super) fn compare_all(&self, after: &State) {
        let is_alone = |key: &TaskKey| self.is_within(&self.tasks[key]).is_none();
        let booked = after.ledger.keys().filter(|key| key.seq != SubmitSeq(0));
        let ours = self.tasks.keys().copied().filter(is_alone);
        assert!(booked.eq(ours), "other tasks are booked than are placed");
        assert!(
            after
                .reservations
                .values()
                .all(|known| known.is_running() == self.is_running(known.id))
        );
        let kept: usize = after
            .reservations
            .values()
            .map(|reservation| reservation.ledger.keys().count())
            .sum();
        let ours = self.tasks.keys().filter(|key| !is_alone(key)).count();
        assert_eq!(
            kept, ours,
            "other tasks are booked in reservations than are placed there"
        );
        let placed: BTreeSet<&Level> = self.sums.keys().map(|(level, _)| level).collect();
        for level in placed {
            for attribute in after.config.complex.iter() {
                self.compare(None, &(level.clone(), attribute.name.clone()), after);
            }
        }
        for (id, sums) in &self.within {
            sums.keys().for_each(|place| self.compare(Some(*id), place, after));
        }
    }

    fn compare(&self, of: Option<ReservationId>, place: &LevelAttribute, after: &State) {
        let sum = match of {
            None => self.sum(place),
            Some(id) => self.within(id, place).1,
        };
        let (level, attribute) = place;
        let booked = ledger(after, of).booked(level, attribute.as_str());
        assert_eq!(
            booked,
            Amount::from_base(sum),
            "{attribute} at {level} is not the sum over the tasks of {of:?}"
        );
    }
}

/// Where what tasks take is booked.
fn ledger(after: &State, of: Option<ReservationId>) -> &Ledger {
    of.map_or(&after.ledger, |id| &after.reservations[&id].ledger)
}

impl RequestedAmounts {
    fn read(config: &Configuration, requests: &Requests) -> RequestedAmounts {
        let read = |request: &ResourceRequest| {
            let attribute = config.complex.lookup(&request.name)?;
            let amount = Amount::parse(request.value.as_deref().unwrap_or("TRUE"), attribute.r#type).ok()?;
            Some((attribute.name.clone(), amount.finite()?))
        };
        let [all, master, slaves] = [&requests.hard, &requests.master, &requests.slaves]
            .map(|list| list.iter().filter_map(read).collect::<BTreeMap<_, _>>());
        RequestedAmounts { all, master, slaves }
    }

    /// Whether master and slaves ask for an attribute apart.
    fn is_apart(&self, name: &AttributeName) -> bool {
        self.master.contains_key(name) || self.slaves.contains_key(name)
    }

    /// What a slot asks for of a consumable, or takes by default; the kind says how often that
    /// counts.
    fn of_slot(&self, attribute: &Attribute, who: SlotRole) -> i64 {
        let default = attribute.default_amount().finite().unwrap_or(0);
        let name = &attribute.name;
        if name.as_str() == "slots" {
            return 1;
        }
        if !self.is_apart(name) {
            return self.all.get(name).copied().unwrap_or(default);
        }
        let own = match who {
            SlotRole::Master => self.master.get(name),
            SlotRole::Slave => self.slaves.get(name),
            SlotRole::Companion => return 0,
        };
        let is_for_each = attribute.consumable == Consumable::Yes;
        own.copied().unwrap_or(if is_for_each { default } else { 0 })
    }
}

impl TaskSlots {
    /// The slots one by one, the master's first, with one more for a master that is no task of its
    /// parallel job.
    pub(super) fn new(config: &Configuration, granted: &[GrantedSlots], pe: Option<&PeName>) -> TaskSlots {
        let pe = pe.and_then(|pe| config.pes.get(pe));
        let is_extra = pe.is_some_and(|pe| !pe.job_is_first_task.0);
        let beside = if pe.is_some_and(|pe| pe.ign_sreq_on_mhost.0) {
            SlotRole::Companion
        } else {
            SlotRole::Slave
        };
        let master = granted.first().map(|part| &part.instance);
        let each = granted.iter().flat_map(|part| (0..part.slots).map(|_| &part.instance));
        let others = each.skip(usize::from(!is_extra)).map(|instance| {
            let is_beside = master.is_some_and(|master| master.host == instance.host);
            (if is_beside { beside } else { SlotRole::Slave }, instance.clone())
        });
        TaskSlots(
            master
                .map(|master| (SlotRole::Master, master.clone()))
                .into_iter()
                .chain(others)
                .collect(),
        )
    }

    /// What its slots in a queue instance are.
    pub(super) fn whose(&self, instance: &QueueInstanceName) -> BTreeSet<SlotRole> {
        self.0
            .iter()
            .filter(|(_, known)| known == instance)
            .map(|(who, _)| *who)
            .collect()
    }
}

fn takes(config: &Configuration, asked: &RequestedAmounts, given: &TaskSlots) -> Sums {
    let mut takes = Sums::new();
    for attribute in config
        .complex
        .iter()
        .filter(|attribute| attribute.consumable.is_consumable())
    {
        let is_apart = asked.is_apart(&attribute.name);
        // On a host somebody pays for all, or the master for itself and a slave for the slaves.
        let mut paid: BTreeSet<(&HostName, Option<SlotRole>)> = BTreeSet::new();
        for (who, instance) in &given.0 {
            let counts = match attribute.consumable {
                Consumable::No => false,
                Consumable::Yes => true,
                Consumable::Job => *who == SlotRole::Master,
                Consumable::Host => paid.insert((&instance.host, is_apart.then_some(*who))),
            };
            let amount = if counts { asked.of_slot(attribute, *who) } else { 0 };
            for level in [
                Level::Global,
                Level::Host(instance.host.clone()),
                Level::Instance(instance.clone()),
            ] {
                *takes.entry((level, attribute.name.clone())).or_insert(0) += amount;
            }
        }
    }
    takes.retain(|_, amount| *amount > 0);
    takes
}
