//! Who has a reservation is never delayed by somebody of lower priority, whatever the stream of
//! jobs.

use super::lab::Lab;
use crate::sched::ReservationMode;
use proptest::prelude::*;
use proto::id::{SubmitSeq, TaskId};
use proto::time::Tick;
use std::collections::BTreeMap;

const REQUESTS: [&str; 6] = ["", "lic=1,", "lic=3,", "mem=2G,", "mem=3G,lic=1,", "excl,"];
const SHAPES: [&str; 6] = ["", "", "-pe smp 3", "-pe fill 2-6", "-pe robin 3-9", "-t 1-3:1"];

/// One step of a stream: a job with its request, shape, run time, priority and whether it reserves;
/// and how soon tasks end.
type StreamJob = (usize, usize, u64, i32, bool, u8);

fn cluster() -> Lab {
    let mut lab = Lab::new();
    for line in [
        "complex lic lic INT <= YES YES 0 0",
        "complex mem mem MEMORY <= YES YES 512M 0",
        "complex excl excl BOOL EXCL YES YES 0 0",
        "global lic=4",
        "host a mem=4G excl=true",
        "host b mem=8G",
        "host c excl=true",
        "pe smp 9 $pe_slots",
        "pe fill 9 $fill_up",
        "pe robin 9 $round_robin",
        "queue all.q a,b,c slots=4,[b=3] pe_list=smp,fill,robin",
        "queue short.q a,b slots=2 seq_no=5 pe_list=fill h_rt=0:1:0",
        "conf max_reservation 5",
        "conf weight_urgency 0",
        "conf params DURATION_OFFSET=0:0:0",
    ] {
        lab.line(line);
    }
    lab
}

/// The running tasks with when each ends at the latest.
fn running(lab: &Lab, lengths: &BTreeMap<u64, u64>) -> Vec<(Tick, String)> {
    let jobs = lab.state().jobs.values();
    let tasks = jobs.flat_map(|job| {
        job.placements().map(|(task, at)| {
            (
                at.placed_tick.plus_ms(1000 * lengths[&job.seq.0]),
                format!("{}.{task}", job.seq.0),
            )
        })
    });
    let mut tasks: Vec<_> = tasks.collect();
    tasks.sort();
    tasks
}

/// By what tasks are in order: `-p`, then as they were submitted.
type OrderKey = (i32, u64, TaskId);

/// The first task that waits, and when it is to start, if it has a reservation.
fn first_in_turn(lab: &Lab) -> Option<(OrderKey, Option<Tick>)> {
    let (model, now) = (lab.scheduler.model(), lab.now);
    let first =
        |job: &crate::state::job::Job| Some((-job.spec.priority, job.seq.0, *model.startable(job, now, 1).first()?));
    let turn = lab.state().jobs.values().filter_map(first).min()?;
    Some((
        turn,
        model
            .reservations()
            .get(&(SubmitSeq(turn.1), turn.2))
            .map(|kept| kept.at),
    ))
}

fn runs(lab: &Lab, seq: u64, task: TaskId) -> bool {
    let job = lab.state().jobs.get(&SubmitSeq(seq));
    job.is_none_or(|job| job.placements().any(|(placed, _)| placed == task))
}

proptest! {
    #![proptest_config(crate::testing::cases(64))]

    #[test]
    fn who_has_a_reservation_is_not_delayed_by_others_of_lower_priority(
        steps in proptest::collection::vec((0usize..6, 0usize..6, 1u64..90, -9i32..1, any::<bool>(), 0u8..4), 1..40),
    ) {
        let mut lab = cluster();
        let mut lengths = BTreeMap::new();
        let mut promised: Option<(OrderKey, Tick)> = None;
        let mut is_idle = false;
        let steps: Vec<StreamJob> = steps;
        // What is left runs off at the end.
        let rest = std::iter::repeat_n(None, 400);
        for (number, step) in steps.into_iter().map(Some).chain(rest).enumerate() {
            if let Some((request, shape, length, priority, reserve, early)) = step {
                let (request, shape) = (REQUESTS[request], SHAPES[shape]);
                let reserve = if reserve { "-R" } else { "" };
                lengths.insert(number as u64 + 1, length);
                // Whoever comes before all others may delay them.
                promised = promised.filter(|(who, _)| who.0 <= -priority);
                lab.line(&format!("job {} -p {priority} {shape} {reserve} -l {request}h_rt={length}", number + 1));
                if early == 0 && let Some((_, name)) = running(&lab, &lengths).first() {
                    lab.end(name);
                }
            } else {
                // The next one ends when it must.
                match running(&lab, &lengths).into_iter().next() {
                    Some((end, name)) => {
                        lab.wait(end.since_ms(lab.now.tick) / 1000);
                        lab.end(&name);
                    }
                    None if is_idle => break,
                    // All may have ended since the last pass.
                    None => is_idle = true,
                }
            }
            // Nothing runs longer than it said.
            let over: Vec<String> = running(&lab, &lengths).into_iter()
                .filter(|(end, _)| *end <= lab.now.tick).map(|(_, name)| name).collect();
            over.iter().for_each(|name| lab.end(name));
            // Between passes that reserve anew there are others that keep what there is.
            lab.reserving = if number % 3 == 0 { ReservationMode::Anew } else { ReservationMode::Keep };
            lab.pass();
            let first = first_in_turn(&lab);
            if let Some((who, at)) = promised && !runs(&lab, who.1, who.2) {
                let (turn, new) = first.expect("it waits");
                prop_assert!(turn <= who, "{who:?} was overtaken by {turn:?}");
                if turn == who {
                    prop_assert!(lab.now.tick < at, "{who:?} was promised {at:?} and did not start");
                    prop_assert!(new.is_some_and(|new| new <= at), "{who:?} was promised {at:?}, now {new:?}");
                }
            }
            promised = first.and_then(|(turn, at)| Some((turn, at?)));
            if step.is_some() && number % 3 == 2 {
                lab.wait(7);
                let over: Vec<String> = running(&lab, &lengths).into_iter()
                    .filter(|(end, _)| *end <= lab.now.tick).map(|(_, name)| name).collect();
                over.iter().for_each(|name| lab.end(name));
            }
        }
        lab.state().check();
        prop_assert_eq!(lab.state().jobs.values().filter(|job| job.spec.reserve && job.active == 0 && lab.scheduler.model().reservations().keys().any(|(seq, _)| *seq == job.seq)).count(), 0);
    }
}
