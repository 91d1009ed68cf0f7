//! What must hold after every event, and at the end.

use super::agenda::HostIndex;
use super::world::World;
use master_core::core::Core;
use master_core::event::{Event, Record};
use master_core::ledger::Level;
use proto::amount::Amount;
use proto::id::{HostName, TaskKey};
use proto::job::Granted;

/// So many syncs apart the states are compared as a whole.
const COMPARE_EVERY: u64 = 16;

impl World {
    /// After each input of the core.
    pub(super) fn check_core(&mut self, core: &Core) {
        self.inputs += 1;
        if self.inputs.is_multiple_of(self.plan.check_every) {
            core.state().check();
        }
    }

    /// After each durable event, against the state that it led to.
    pub(super) fn check_record(&self, record: &Record) {
        if let Event::TaskPlaced { key, granted, .. } = &record.event {
            self.check_capacity(*key, granted);
        }
    }

    /// Nothing is given out twice, and no more than there is.
    fn check_capacity(&self, key: TaskKey, granted: &[Granted]) {
        let state = &self.disk.state;
        for granted in granted {
            let slots = state.config.resolved[&granted.instance].slots;
            let taken = state.ledger.slots(&Level::Instance(granted.instance.clone()));
            assert!(taken <= slots, "{key} makes {taken} of {slots} slots at {}", granted.instance);
            self.check_amount(key, &granted.instance.host, &Level::Host(granted.instance.host.clone()), "h_vmem");
        }
        self.check_amount(key, &HostName::global(), &Level::Global, "lic");
    }

    fn check_amount(&self, key: TaskKey, host: &HostName, level: &Level, attribute: &str) {
        let state = &self.disk.state;
        let kind = state.config.complex.lookup(attribute).expect("the attribute exists").r#type;
        let fields = state.config.exec_hosts[host].to_fields();
        let values = fields.value("complex_values").unwrap_or_default().to_owned();
        let value = values.split(',').find_map(|part| part.trim().strip_prefix(attribute)?.strip_prefix('='));
        let Some(value) = value else { return };
        let capacity: Amount = Amount::parse(value, kind).expect("a capacity reads");
        let booked = state.ledger.booked(level, attribute);
        assert!(booked <= capacity, "{key} makes {booked:?} of {capacity:?} {attribute} at {level}");
    }

    /// After each start of a process.
    pub(super) fn check_host(&self, host: HostIndex) {
        let name = &self.nodes[host].name;
        let slots: u32 = self
            .disk
            .state
            .config
            .resolved
            .iter()
            .filter(|(at, _)| at.host == *name)
            .map(|(_, settings)| settings.slots)
            .sum();
        let occupied = self.witness.occupied(name);
        assert!(occupied <= slots.max(self.plan.slots_ever), "{occupied} slots run on {name}, which has {slots}");
    }

    /// After each sync, while nothing waits for the next one.
    pub(super) fn check_synced(&mut self) {
        self.syncs += 1;
        if !self.syncs.is_multiple_of(COMPARE_EVERY) {
            return;
        }
        if let Some(master) = &mut self.master {
            assert!(*master.core.state() == self.disk.state, "the live state is not the fold of the log");
            assert!(*master.planner.state() == self.disk.state, "the scheduler's state is not the fold of the log");
        }
        self.check_present();
        if self.random.chance(100) {
            self.disk.snapshot = rmp_serde::to_vec_named(&self.disk.state).expect("a snapshot encodes");
        }
    }

    /// No task is lost, and none stays that has left.
    pub(super) fn check_present(&self) {
        let state = &self.disk.state;
        let present = self.witness.present();
        assert!(state.jobs.keys().eq(present.keys()), "other jobs are there than were submitted and have not ended");
        for (seq, tasks) in present {
            let job = &state.jobs[seq];
            let is_there = tasks.iter().all(|task| job.has_task(*task));
            let count = job.untouched.len() as usize + job.tasks.len();
            assert!(is_there && count == tasks.len(), "job {} has lost or invented tasks", job.number);
        }
    }

    /// At the end of a run.
    pub(super) fn check_end(&mut self) {
        self.disk.state.check();
        self.check_present();
        self.witness.assert_all_over();
        assert!(self.disk.state.ledger.keys().next().is_none(), "something is booked and nothing runs");
        let mut replayed = master_core::state::State::new();
        self.disk.log.iter().for_each(|record| replayed.apply(record));
        assert!(replayed == self.disk.state, "replay from the first event differs");
        (self.counts.tasks_executed, self.counts.attempts_accounted) = self.witness.attempts();
    }

    /// Whether everything has come to its end, on the hosts too.
    pub(super) fn is_over(&self) -> bool {
        self.disk.state.jobs.is_empty() && self.nodes.iter().all(|node| node.directories.is_empty())
    }
}
