//! What must hold after every event, and at the end.
//!
//! After every durable event [`Rules`](super::rules::Rules) and [`Witness`](super::witness::Witness) judge it and compare what it
//! changed. Walks over the whole state are made after some inputs only, because what they would find was changed by an event.

use super::world::World;
use master_core::core::Core;
use proto::id::TaskKey;

impl World {
    /// After each input of the core.
    pub(super) fn check_core(&mut self, core: &Core) {
        self.inputs += 1;
        if self.inputs.is_multiple_of(self.plan.checks.every_inputs) {
            core.state().check();
            let usage = &core.observations().usage;
            let is_placed = |key: &TaskKey| core.state().host_of(*key).is_some();
            assert!(usage.keys().all(is_placed), "the use of tasks that have ended is kept");
        }
    }

    /// After each sync, while nothing waits for the next one.
    pub(super) fn check_synced(&mut self) {
        self.syncs += 1;
        if !self.syncs.is_multiple_of(self.plan.checks.every_syncs) {
            return;
        }
        if let Some(master) = &mut self.master {
            assert!(*master.core.state() == self.disk.state, "the live state is not the fold of the log");
            assert!(*master.planner.state() == self.disk.state, "the scheduler's state is not the fold of the log");
        }
        self.check_present();
        self.rules.compare_all(&self.disk.state);
        if self.random.chance(250) {
            let snapshot = rmp_serde::to_vec_named(&self.disk.state).expect("a snapshot encodes");
            self.disk.older_snapshot = std::mem::replace(&mut self.disk.snapshot, snapshot);
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
        for record in &self.disk.log {
            replayed.apply(record);
        }
        assert!(replayed == self.disk.state, "replay from the first event differs");
        (self.counts.tasks_executed, self.counts.attempts_accounted) = self.witness.attempts();
    }

    /// Whether everything has come to its end, on the hosts too.
    pub(super) fn is_over(&self) -> bool {
        self.disk.state.jobs.is_empty()
            && self.disk.state.reservations.is_empty()
            && self.nodes.iter().all(|node| node.directories.is_empty())
    }
}
