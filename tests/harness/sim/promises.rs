//! A reservation is a promise: whoever has one is not delayed by jobs of lower priority.
//!
//! On a calm day ([`Plan::calm`](super::world::Plan::calm)) jobs end in time and nothing breaks or
//! is changed. Then the start of a task may only move to a later time if a task that comes before
//! it has come, has started, or has another place or time than before. What comes after it in turn,
//! with a reservation or without, is no excuse.
//!
//! Judged are passes that make reservations anew and into which no news came. What ends between two
//! slices of a pass may be missed for those that had their turn, until the next pass, which follows
//! at once.

use master_core::sched::model::Model;
use master_core::state::eligible::eligible;
use proto::id::{SubmitSeq, TaskId};
use proto::job::GrantedSlots;
use proto::time::{Now, Tick};
use std::collections::{BTreeMap, BTreeSet};

/// By what tasks are in order where nothing but `-p` counts: that, then as they were submitted.
type OrderKey = (i32, SubmitSeq, TaskId);

/// How a task is after a pass that has made reservations.
#[derive(Clone, Debug, PartialEq, Eq)]
enum PromisedState {
    Waits,
    Kept { at: Tick, granted: Vec<GrantedSlots> },
    Runs(Vec<GrantedSlots>),
}

/// A task counts from its order on, and from its durable record on once that is there: its end
/// moves by the time in between.
const ORDER_MS: u64 = 200;

/// What was promised, to be judged against the next pass.
#[derive(Debug, Default)]
pub(super) struct Promises {
    known: BTreeMap<OrderKey, PromisedState>,
    /// How many reservations were looked at again, with nothing that would excuse a delay.
    judged: u64,
}

impl Promises {
    /// Judges what a finished pass has made of the promises before it.
    pub(super) fn read(&mut self, model: &Model, now: Now) {
        let mut present = standings(model, now);
        let turns: BTreeSet<OrderKey> = self.known.keys().chain(present.keys()).copied().collect();
        for turn in turns {
            let (before, after) = (self.known.get(&turn), present.get_mut(&turn));
            if let Some(PromisedState::Kept { at, .. }) = before {
                self.judged += 1;
                assert!(
                    is_in_time(*at, after.as_deref()),
                    "{turn:?} was promised {at:?}, and now: {after:?}"
                );
            }
            if !is_as_before(before, after, now.tick) {
                // All that come after it may have to move.
                break;
            }
        }
        self.known = present;
    }

    /// How many reservations were judged so far.
    pub(super) fn judged(&self) -> u64 {
        self.judged
    }
}

fn is_in_time(at: Tick, after: Option<&PromisedState>) -> bool {
    match after {
        Some(PromisedState::Kept { at: new, .. }) => *new <= at.plus_ms(ORDER_MS),
        Some(PromisedState::Waits) => false,
        Some(PromisedState::Runs(_)) | None => true,
    }
}

/// Whether a task takes what was known, when and where it was known; if not, those after it may
/// have to move. What moved a little for an order is still promised for the time at which it was
/// promised first.
fn is_as_before(before: Option<&PromisedState>, after: Option<&mut PromisedState>, now: Tick) -> bool {
    let is_at = |new: Tick, at: Tick| at <= new && new <= at.plus_ms(ORDER_MS);
    match (before, after) {
        (None | Some(PromisedState::Waits), None | Some(PromisedState::Waits)) => true,
        (Some(PromisedState::Runs(before)), Some(PromisedState::Runs(after))) => before == after,
        // It has ended.
        (Some(PromisedState::Runs(_)), None) => true,
        (Some(PromisedState::Kept { at, granted }), Some(PromisedState::Runs(after))) => {
            granted == after && is_at(now, *at)
        }
        (
            Some(PromisedState::Kept { at, granted }),
            Some(PromisedState::Kept {
                at: new,
                granted: other,
            }),
        ) => {
            let is_same = granted == other && is_at(*new, *at);
            if is_same {
                *new = *at;
            }
            is_same
        }
        (None | Some(_), None | Some(_)) => false,
    }
}

/// All tasks that run, are about to, or could.
fn standings(model: &Model, now: Now) -> BTreeMap<OrderKey, PromisedState> {
    let state = model.state();
    let tasks = state
        .jobs
        .values()
        .flat_map(|job| job.present().iter().map(move |task| (job, task)).collect::<Vec<_>>());
    let standing = |(job, task): (&master_core::state::job::Job, TaskId)| {
        let turn = (-job.spec.priority, job.seq, task);
        let placed = state.jobs[&job.seq].placements().find(|(placed, _)| *placed == task);
        let runs = placed.map(|(_, placement)| placement.granted.clone());
        let runs = runs.or_else(|| Some(model.planned(job.seq, task)?.granted().to_vec()));
        let kept = model.reservations().get(&(job.seq, task));
        let standing = match (runs, kept) {
            (Some(granted), _) => PromisedState::Runs(granted),
            (None, Some(kept)) => PromisedState::Kept {
                at: kept.at,
                granted: kept.granted.clone(),
            },
            (None, None) if eligible(state, job, task, now).is_ok() => PromisedState::Waits,
            (None, None) => return None,
        };
        Some((turn, standing))
    };
    tasks.filter_map(standing).collect()
}
