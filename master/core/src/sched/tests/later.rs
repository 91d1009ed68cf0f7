//! What a pass keeps for later, judged by code that is slow and obviously right: all that takes
//! something at a moment is put into a ledger, and the matcher is asked anew.
//!
//! What is kept is there whenever something begins that takes a part of it; it could not have been
//! had at an earlier moment; and who asked for a reservation and has none would find no such
//! moment.

use super::lab::Lab;
use super::reference::{assign, turns};
use crate::ledger::keys::plan_key;
use crate::ledger::timeline::Span;
use crate::ledger::{Booking, Grant, Ledger};
use crate::matching::{Cluster, Demand, Mode};
use crate::sched::duration::{end, expected_ms};
use crate::sched::reserve::ahead::grace_ms;
use crate::sched::tests::lab::check_start;
use crate::state::State;
use crate::state::job::Job;
use proto::id::{SubmitSeq, TaskId, TaskKey};
use proto::time::Tick;
use proto::wire::stream::Order;
use std::sync::Arc;

/// Something that a task has or is to have for a time.
struct TimedBooking {
    key: TaskKey,
    span: Span,
    booking: Arc<Booking>,
}

/// How much is asked of what is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PromiseCheck {
    /// That it will be there.
    Place,
    /// That it would not be there earlier, too. Only where no load changes: a reservation does not
    /// look at a host that is overloaded now before something ends there.
    PlaceAndTime,
}

/// Judges all that the last pass keeps. `before` is the line of jobs as it was before the pass.
pub fn check(lab: &Lab, asked: PromiseCheck, before: Vec<SubmitSeq>) {
    let full = |(seq, _): &(SubmitSeq, TaskId)| lab.scheduler.model().is_owner_full(*seq);
    // Jobs of a user who runs all that `maxujobs` allows are last in the line from then on. They
    // were elsewhere when the pass kept something for them.
    let is_reordered = lab.scheduler.model().reservations().keys().any(full);
    let line = if is_reordered { before } else { turns(lab) };
    let taken = all(lab);
    let turn = |seq: SubmitSeq| line.iter().position(|other| *other == seq).unwrap_or(line.len());
    let model = lab.scheduler.model();
    for ((seq, task), kept) in model.reservations() {
        let own = plan_key(*seq, *task);
        let span = Span::new(kept.at, kept.length_ms);
        let order = Order::Start {
            seq: *seq,
            task: *task,
            granted: kept.granted.clone(),
            pe: kept.pe.clone(),
        };
        let begins = taken
            .iter()
            .map(|other| other.span.from)
            .filter(|from| kept.at < *from && *from < span.until);
        for moment in begins.chain([kept.at]) {
            let then = Span::new(moment, Some(1));
            let state = at(
                lab,
                taken
                    .iter()
                    .filter(|other| other.key != own && other.span.overlaps(&then)),
            );
            let verdict = check_start(&state, model.observations(), &order, lab.now);
            assert_eq!(
                verdict,
                Ok(()),
                "job {} has {kept:?}, and at {moment:?} that is not there",
                seq.0
            );
        }
        if asked == PromiseCheck::Place {
            continue;
        }
        // Whoever comes later must not be in the way of one that came before.
        let is_before =
            |other: &&TimedBooking| other.key.cell != own.cell || (turn(other.key.seq), other.key) < (turn(*seq), own);
        let before: Vec<&TimedBooking> = taken.iter().filter(is_before).collect();
        let job = &model.state().jobs[seq];
        let earlier = earliest(lab, job, &before);
        assert!(
            earlier.is_none_or(|earlier| earlier >= kept.at),
            "job {} has {kept:?}, and could start at {earlier:?}",
            seq.0
        );
    }
    if asked == PromiseCheck::PlaceAndTime {
        assert_nobody_is_left_out(lab, &taken);
    }
}

/// While reservations are left, who wants one has none only if there is no time for it.
fn assert_nobody_is_left_out(lab: &Lab, taken: &[TimedBooking]) {
    let model = lab.scheduler.model();
    if model.reservations().len() >= model.state().config.scheduler.max_reservation as usize {
        return;
    }
    let taken: Vec<&TimedBooking> = taken.iter().collect();
    for job in model
        .state()
        .jobs
        .values()
        .filter(|job| job.spec.reserve && !model.is_owner_full(job.seq))
    {
        let startable: Vec<TaskId> = model.startable(job, lab.now, model.room_in(job));
        let is_kept = |task: &TaskId| model.reservations().contains_key(&(job.seq, *task));
        if startable.iter().all(is_kept) {
            continue;
        }
        let found = earliest(lab, job, &taken);
        assert_eq!(
            found, None,
            "job {} has no reservation, and could start then",
            job.number
        );
    }
}

/// Everything that is taken, now and later.
fn all(lab: &Lab) -> Vec<TimedBooking> {
    let model = lab.scheduler.model();
    let state = model.state();
    let running = state.ledger.keys().map(|key| {
        let booking = state.ledger.booking(key).expect("it is booked").clone();
        let until = end(&state.config, &booking);
        // What should have ended is expected to do so soon.
        let until = if until <= lab.now.tick {
            lab.now.tick.plus_ms(grace_ms(&state.config))
        } else {
            until
        };
        TimedBooking {
            key,
            span: Span {
                from: lab.now.tick,
                until,
            },
            booking,
        }
    });
    let kept = model.reservations().iter().map(|((seq, task), kept)| {
        let grant = Grant::of_slots(&kept.granted, kept.pe.as_ref());
        let booking = state.booking(&state.jobs[seq].spec, grant, kept.at);
        TimedBooking {
            key: plan_key(*seq, *task),
            span: Span::new(kept.at, kept.length_ms),
            booking,
        }
    });
    running.chain(kept).collect()
}

/// The state with these bookings and no others.
fn at<'a>(lab: &Lab, taken: impl Iterator<Item = &'a TimedBooking>) -> State {
    let mut state = lab.state().clone();
    let mut ledger = Ledger::default();
    taken.for_each(|taken| ledger.book(&state.config, taken.key, taken.booking.clone()));
    state.ledger = ledger;
    state
}

/// The first moment at which something is given back and a job fits beside all that is taken at any
/// time while it runs.
///
/// Under a quota it depends on the order of the hosts what a parallel job is offered, so then
/// nothing is said.
fn earliest(lab: &Lab, job: &Job, taken: &[&TimedBooking]) -> Option<Tick> {
    let model = lab.scheduler.model();
    let demand = Demand::of_job(model.state(), job);
    if demand.pe.is_some() && model.state().config.enabled_quotas().next().is_some() {
        return None;
    }
    let length_ms = expected_ms(&model.state().config, &demand);
    let mut moments: Vec<Tick> = taken
        .iter()
        .map(|taken| taken.span.until)
        .filter(|at| *at < Tick(u64::MAX))
        .collect();
    moments.sort();
    moments.dedup();
    moments.into_iter().find(|moment| {
        let span = Span::new(*moment, length_ms);
        let state = at(lab, taken.iter().copied().filter(|taken| taken.span.overlaps(&span)));
        let cluster = Cluster {
            now: lab.now.tick,
            ..Cluster::of_state(&state, model.observations(), Mode::Later)
        };
        assign(&cluster, &demand).is_some()
    })
}
