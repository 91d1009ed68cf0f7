//! What must hold after every event, and at the end.
//!
//! After every durable event [`Rules`](super::rules::Rules) and
//! [`Witness`](super::witness::Witness) judge it and compare what it changed. Walks over the whole
//! state are made after some inputs only, because what they would find was changed by an event.

use super::kept::SnapshotJob;
use super::world::World;
use master_core::core::Core;
use master_core::state::State;
use proto::id::TaskKey;
use std::panic::resume_unwind;

impl World {
    /// After each input of the core.
    pub(super) fn check_core(&mut self, core: &Core) {
        self.inputs += 1;
        if self.inputs.is_multiple_of(self.plan.checks.every_inputs) {
            check_live(core);
        }
    }

    /// After each sync, while nothing waits for the next one.
    pub(super) fn check_synced(&mut self) {
        self.syncs += 1;
        if !self.syncs.is_multiple_of(self.plan.checks.every_syncs) {
            return;
        }
        // What a state says of itself takes as long to walk over as three comparisons.
        let is_second = (self.syncs / self.plan.checks.every_syncs).is_multiple_of(2);
        let kept = self.kept.home();
        match &mut self.master {
            Some(master) => {
                let (core, planned) = (&master.core, master.planner.state());
                let compare = || {
                    assert!(
                        *planned == kept.state,
                        "the scheduler's state is not the fold of the log"
                    );
                    kept.compare_all();
                };
                let check = || {
                    assert!(*core.state() == kept.state, "the live state is not the fold of the log");
                    if is_second {
                        check_live(core);
                    }
                };
                at_once(self.plan.is_apart, compare, check);
            }
            None => kept.compare_all(),
        }
        self.check_present();
        if self.random.chance(250) {
            self.snapshots.tell(SnapshotJob::Write(Box::new(self.state().clone())));
        }
    }

    /// No task is lost, and none stays that has left.
    pub(super) fn check_present(&self) {
        let state = self.state();
        let present = self.witness.present();
        assert!(
            state.jobs.keys().eq(present.keys()),
            "other jobs are there than were submitted and have not ended"
        );
        for (seq, present) in present {
            let tasks = &present.tasks;
            let job = &state.jobs[seq];
            let is_there = tasks.iter().all(|task| job.has_task(*task));
            let count = job.untouched.len() as usize + job.tasks.len();
            assert!(
                is_there && count == tasks.len(),
                "job {} has lost or invented tasks",
                job.number
            );
        }
    }

    /// At the end of a run.
    pub(super) fn check_end(&mut self) {
        self.kept.home();
        self.check_present();
        self.witness.assert_all_over();
        assert!(
            self.state().ledger.keys().next().is_none(),
            "something is booked and nothing runs"
        );
        if let Some(master) = &mut self.master {
            assert!(
                *master.planner.state() == self.kept.here().state,
                "in the end the scheduler knows another state"
            );
        }
        let (kept, snapshots) = (self.kept.here(), self.snapshots.home());
        let from_first = || {
            let mut replayed = State::new();
            kept.log.iter().for_each(|record| drop(replayed.apply(record)));
            assert!(replayed == kept.state, "replay from the first event differs");
        };
        at_once(self.plan.is_apart, from_first, || {
            drop(snapshots.read(&kept.replay(false)))
        });
        (self.counts.tasks_executed, self.counts.attempts_accounted) = self.witness.attempts();
    }

    /// Whether everything has come to its end, on the hosts too.
    pub(super) fn is_over(&self) -> bool {
        self.is_over_on_hosts() && self.state().jobs.is_empty() && self.state().reservations.is_empty()
    }

    /// Whether no host has anything left.
    pub(super) fn is_over_on_hosts(&self) -> bool {
        self.nodes.iter().all(|node| node.directories.is_empty())
    }
}

/// The state of a core, and what it has observed, looked at as a whole.
fn check_live(core: &Core) {
    core.state().check();
    let usage = &core.observations().usage;
    let is_placed = |key: &TaskKey| core.state().host_of(*key).is_some();
    assert!(usage.keys().all(is_placed), "the use of tasks that have ended is kept");
}

/// Does two things, where that pays at the same time.
fn at_once(is_apart: bool, one: impl FnOnce() + Send, other: impl FnOnce()) {
    if !is_apart {
        one();
        return other();
    }
    std::thread::scope(|scope| {
        let one = scope.spawn(one);
        other();
        one.join().unwrap_or_else(|panic| resume_unwind(panic));
    });
}
