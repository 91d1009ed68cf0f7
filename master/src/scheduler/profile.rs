//! What a pass cost: lines in the log where `params` of the scheduler configuration has
//! `PROFILE=1`, in the words of 8.1.9 as far as there is the same to tell.

use master_core::sched::model::Model;
use master_core::sched::report::census::JobCounts;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use proto::time::Now;
use proto::wire::stream::Order;
use std::time::Duration;
use tokio::time::Instant;

/// What is measured of a pass while it runs.
#[derive(Debug)]
pub(super) struct Profile {
    began: Instant,
    /// Processor time of this thread when it began: for itself, and in the system.
    cpu: (Duration, Duration),
    /// Time in which it planned.
    planning: Duration,
    /// Time in which it waited for the core to take orders.
    handing: Duration,
    serial: usize,
    parallel: usize,
    orders: usize,
}

impl Profile {
    /// A pass begins.
    pub(super) fn begin() -> Profile {
        let (planning, handing) = (Duration::ZERO, Duration::ZERO);
        Profile {
            began: Instant::now(),
            cpu: cpu(),
            planning,
            handing,
            serial: 0,
            parallel: 0,
            orders: 0,
        }
    }

    /// A slice was planned since `began`.
    pub(super) fn planned(&mut self, began: Instant, orders: &[Order]) {
        self.planning += began.elapsed();
        self.orders += orders.len();
        for order in orders {
            match order {
                Order::Start { pe: None, .. } => self.serial += 1,
                Order::Start { pe: Some(_), .. } => self.parallel += 1,
                Order::RejectImmediate { .. } | Order::SuspendByThreshold { .. } => {}
            }
        }
    }

    /// Orders were handed over since `began`.
    pub(super) fn handed(&mut self, began: Instant) {
        self.handing += began.elapsed();
    }

    /// The lines.
    pub(super) fn lines(&self, model: &Model, now: Now) -> [String; 3] {
        let Profile {
            began,
            cpu: (user_before, system_before),
            planning,
            handing,
            serial,
            parallel,
            orders,
        } = self;
        let (took, (user, system)) = (began.elapsed(), cpu());
        let (user, system) = (user.saturating_sub(*user_before), system.saturating_sub(*system_before));
        let seconds = |time: Duration| format!("{:.3}", time.as_secs_f64());
        let (jobs, counts) = (JobCounts::of_state(model.state(), now), of_objects(model));
        let JobCounts {
            pending,
            running,
            suspended,
            held,
            in_error,
        } = jobs;
        [
            format!(
                "PROF: job dispatching took {} s ({serial} sequential, {parallel} parallel)",
                seconds(*planning)
            ),
            format!(
                "PROF: scheduled in {} (u {} + s {} = {}): {serial} sequential, {parallel} parallel, {orders} orders, \
                 {pending} J(qw), {running} J(r), {suspended} J(s), {held} J(h), {in_error} J(e), {} J(all), {counts}",
                seconds(took),
                seconds(user),
                seconds(system),
                seconds(user + system),
                jobs.all(),
            ),
            format!(
                "PROF: schedd run took: {} s (run: {} s, send orders: {} s, jobs: {}, categories: {})",
                seconds(took),
                seconds(*planning),
                seconds(*handing),
                jobs.all(),
                model.categories(),
            ),
        ]
    }
}

/// Hosts, cluster queues and their instances, attributes and other objects, with the letters of
/// 8.1.9.
fn of_objects(model: &Model) -> String {
    let config = &model.state().config;
    let departments = config.user_sets.values().filter(|set| set.is_department()).count();
    let counts = [
        (config.exec_hosts.len(), "H"),
        (config.queues.len(), "Q"),
        (config.resolved.len(), "QA"),
        (config.complex.len(), "C"),
        (config.user_sets.len() - departments, "ACL"),
        (config.pes.len(), "PE"),
        (config.users.len(), "U"),
        (departments, "D"),
        (config.projects.len(), "PRJ"),
        (usize::from(config.share_tree.is_some()), "ST"),
        (config.checkpoints.len(), "CKPT"),
    ];
    counts.map(|(count, letters)| format!("{count} {letters}")).join(", ")
}

/// The processor time of this thread so far: for itself, and in the system. Nothing where the
/// system does not say.
fn cpu() -> (Duration, Duration) {
    let duration = |time: TimeVal| {
        let micros = u64::try_from(time.tv_usec()).unwrap_or(0);
        Duration::from_secs(u64::try_from(time.tv_sec()).unwrap_or(0)) + Duration::from_micros(micros)
    };
    getrusage(UsageWho::RUSAGE_THREAD).map_or_else(
        |_| Default::default(),
        |usage| (duration(usage.user_time()), duration(usage.system_time())),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{cell_events, granted};
    use master_core::event::Event;
    use master_core::sched::Scheduler;
    use master_core::state::State;
    use proto::id::{SubmitSeq, TaskId};
    use proto::time::Zone;

    #[test]
    fn the_lines_count_jobs_orders_and_objects() {
        let mut scheduler = Scheduler::new(State::new(), Zone::default());
        for record in cell_events(2) {
            let is_of_the_second = matches!(&record.event, Event::JobSubmitted { seq: SubmitSeq(2), .. });
            scheduler.apply(&record);
            if is_of_the_second {
                break;
            }
        }
        let mut profile = Profile::begin();
        let order = Order::Start {
            seq: SubmitSeq(2),
            task: TaskId(1),
            granted: granted(),
            pe: None,
        };
        profile.planned(Instant::now(), &[order]);
        let lines = profile.lines(scheduler.model(), scheduler.model().state().now);
        assert!(lines[0].ends_with(" s (1 sequential, 0 parallel)"), "{lines:?}");
        let counted =
            "1 sequential, 0 parallel, 1 orders, 1 J(qw), 0 J(r), 0 J(s), 0 J(h), 0 J(e), 1 J(all), 2 H, 1 Q, 1 QA, ";
        assert!(lines[1].contains(counted), "{lines:?}");
        assert!(lines[2].ends_with("jobs: 1, categories: 1)"), "{lines:?}");
    }
}
