//! The algorithms that `algorithm` of the scheduler configuration may name.
//!
//! To add one, write a module like [`fcfs`](super::fcfs), add its word to [`NAMES`], and a line to
//! each `match` below.

use super::fcfs::Fcfs;
use super::model::Model;
use super::pass::{Pass, Slice};
use super::reserve::ReservationMode;
use proto::policy::SchedulerConf;
use proto::time::Now;

/// The names that `algorithm` may have.
pub const NAMES: &[&str] = &["default", "fcfs", "external"];

/// The rule that decides which job starts where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// Priorities, urgencies, tickets and reservations (ARCHITECTURE.md "The scheduler on one
    /// page").
    Default,
    /// First come, first served.
    Fcfs,
    /// A program outside the master. While none is heard, the rule is `Default`.
    External,
}

impl Algorithm {
    /// The algorithm that a configuration names. An unknown name, which only a cell that was taken
    /// over can have, means `default`.
    pub fn from_conf(conf: &SchedulerConf) -> Algorithm {
        let is = |name: &str| conf.algorithm.as_str().eq_ignore_ascii_case(name);
        if is("fcfs") {
            Algorithm::Fcfs
        } else if is("external") {
            Algorithm::External
        } else {
            Algorithm::Default
        }
    }
}

/// A pass of one of the algorithms, under way.
#[derive(Clone, Debug)]
pub(super) enum RunningPass {
    Default(Pass),
    Fcfs(Fcfs),
}

impl RunningPass {
    /// Begins a pass by the configuration as it is now.
    pub(super) fn new(model: &mut Model, now: Now, reserving: ReservationMode) -> RunningPass {
        match Algorithm::from_conf(&model.state.config.scheduler) {
            Algorithm::Default | Algorithm::External => RunningPass::Default(Pass::new(model, now, reserving)),
            Algorithm::Fcfs => RunningPass::Fcfs(Fcfs::new(model, now)),
        }
    }

    /// Continues for about `budget` steps.
    pub(super) fn next(&mut self, model: &mut Model, budget: usize) -> Slice {
        model.draw_ahead();
        match self {
            RunningPass::Default(pass) => pass.next(model, budget),
            RunningPass::Fcfs(pass) => pass.next(model, budget),
        }
    }
}
