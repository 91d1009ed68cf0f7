//! The model of the reader thread: the state, and everything soft beside it.

mod scheduling;

pub use scheduling::{Monitoring, SchedulingInfo, SchedulingUpdate};

use crate::clock::Clock;
use master_core::config::DerivedChanges;
use master_core::event::{Event, Record};
use master_core::matching::{Cluster, Mode};
use master_core::observe::{Observation, Observations};
use master_core::sched::Lookahead;
use master_core::sched::model::concerned::job_of;
use master_core::sched::report::finding::Findings;
use master_core::state::State;
use master_core::state::job::Job;
use proto::host::names::Naming;
use proto::time::Zone;
use std::borrow::Cow;
use std::path::PathBuf;

/// The state with everything soft beside it.
pub struct Model {
    /// The fold of the events.
    pub state: State,
    /// Load, contact, usage.
    pub observations: Observations,
    /// Priorities, reasons, counters of the scheduler.
    pub scheduling: SchedulingInfo,
    /// What does not change while the master runs.
    pub statics: StaticFacts,
    /// Accepted load reports since the start.
    pub load_reports: u64,
    /// Starts that hosts have confirmed since the start.
    pub started: u64,
    /// Tasks that have not left, running or not. Always the sum over the jobs of the state.
    pub present: u64,
}

/// What does not change while the master runs.
#[derive(Clone, Debug)]
pub struct StaticFacts {
    /// The master's host.
    pub host: String,
    /// Its UDP port.
    pub port: u16,
    /// How hosts are named.
    pub naming: Naming,
    /// The clock of the cell.
    pub clock: Clock,
    /// By which clock calendars go.
    pub zone: Zone,
    /// Where `qconf -tsm` has a pass written down.
    pub run_log: PathBuf,
}

impl Model {
    /// Why jobs wait now.
    pub fn findings(&self) -> Findings<'_> {
        let now = self.statics.clock.now();
        let findings = Findings::new(&self.state, &self.observations, now);
        let (reservations, config) = (&self.scheduling.reservations, &self.state.config);
        let may_close = config.scheduler.max_reservation > 0 && !config.causes.calendars.is_empty();
        if reservations.is_empty() && self.state.reservations.is_empty() && !may_close {
            return findings;
        }
        findings.ahead(Cow::Owned(Lookahead::of_state(
            &self.state,
            self.statics.zone.clone(),
            reservations,
            now,
        )))
    }

    /// A model that starts with `state` and knows nothing soft yet.
    pub fn new(state: State, statics: StaticFacts) -> Self {
        let (observations, scheduling) = (Observations::default(), SchedulingInfo::default());
        let present = state.jobs.values().map(tasks).sum();
        Self {
            state,
            observations,
            scheduling,
            statics,
            load_reports: 0,
            started: 0,
            present,
        }
    }

    /// Folds an event, and says what changed objects led to.
    pub fn apply(&mut self, record: &Record) -> DerivedChanges {
        self.started += u64::from(matches!(record.event, Event::TaskStarted { .. }));
        let tasks_of = |state: &State| {
            job_of(&record.event)
                .and_then(|seq| state.jobs.get(&seq))
                .map_or(0, tasks)
        };
        let before = tasks_of(&self.state);
        let touched = self.state.apply(record);
        self.present = self.present - before + tasks_of(&self.state);
        self.observations.follow(record);
        self.scheduling.follow(record);
        touched
    }

    /// Folds an observation.
    pub fn observe(&mut self, observation: &Observation) {
        self.load_reports += u64::from(matches!(observation, Observation::Load { .. }));
        self.observations.apply(observation);
    }
    /// The cluster as it is now, for the matcher: what tasks have is in use, not what is only kept
    /// for reservations.
    pub fn cluster(&self, mode: Mode) -> Cluster<'_> {
        Cluster {
            now: self.statics.clock.now().tick,
            ..Cluster::in_use(&self.state, &self.observations, mode)
        }
    }
}

/// The tasks of a job that have not left.
pub fn tasks(job: &Job) -> u64 {
    u64::from(job.untouched.len()) + job.tasks.len() as u64
}
