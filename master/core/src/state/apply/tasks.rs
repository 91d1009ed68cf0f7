//! What events make of tasks that are given to hosts.

use super::super::State;
use super::super::job::{FinishedTask, Job, Placement, TaskPlace, rerun_pause_ms};
use crate::event::TaskFate;
use crate::ledger::Grant;
use proto::accounting::AccountingRecord;
use proto::id::{TaskId, TaskKey};
use proto::time::{Now, Tick, Wall};
use proto::usage::{Consumption, FailedCode};

/// The exit status that keeps successors held.
const APPLICATION_ERROR: u32 = 100;

impl State {
    /// The attempt an event is about.
    pub(super) fn placement_mut(&mut self, key: TaskKey) -> &mut Placement {
        let task = self
            .job_mut(key.seq)
            .tasks
            .get_mut(&key.task)
            .expect("an event names a task that is on a host");
        let placement = task
            .place
            .placement_mut()
            .expect("an event names a task that is on a host");
        assert_eq!(placement.key, key, "an event names the present attempt");
        placement
    }

    /// The same, of which the task leaves its job.
    fn take_placement(&mut self, key: TaskKey) -> Placement {
        let task = self
            .job_mut(key.seq)
            .tasks
            .remove(&key.task)
            .expect("an event names a task that is on a host");
        match task.place {
            TaskPlace::OnHost(placement) if placement.key == key => placement,
            place @ (TaskPlace::Pending { .. } | TaskPlace::OnHost(_)) => {
                panic!("an event names the present attempt, and not {place:?}")
            }
        }
    }

    pub(super) fn place_task(&mut self, key: TaskKey, grant: Grant<'_>) {
        assert!(
            key.cell == self.cell && !grant.slots.is_empty(),
            "a task is placed in its cell on at least one slot"
        );
        let now = self.now;
        let job = self
            .jobs
            .get_mut(&key.seq)
            .expect("an event names a job that is not finished");
        let fresh = job.untouched.take(key.task);
        let mut task = if fresh {
            job.fresh_task()
        } else {
            let task = job.tasks.remove(&key.task).expect("a placed task exists");
            job.ready.remove(key.task, task.starts_from);
            task
        };
        task.starts_from = Tick(0);
        assert_eq!(
            task.place,
            TaskPlace::Pending { error: None },
            "only a pending task without error is placed"
        );
        task.attempts += 1;
        assert_eq!(task.attempts, key.attempt, "attempts are counted");
        let placement = Placement {
            key,
            granted: grant.slots.to_vec(),
            pe: grant.pe.cloned(),
            maps: grant.maps.to_vec(),
            binding: grant.binding.to_vec(),
            placed: now.wall,
            placed_tick: now.tick,
            started: None,
            deleting: false,
            deleted_by: None,
            rescheduling: false,
            suspended: false,
            suspended_by_threshold: false,
            preempted: false,
            was_suspended: false,
            migrating: false,
            own_slaves: None,
        };
        self.index.add_placement(&job.spec.owner.user, &placement);
        let booking = self.index.commons.booking(&self.config, &job.spec, grant, now.tick);
        let reservation = job.spec.reservation.and_then(|id| self.reservations.get_mut(&id));
        match reservation.filter(|reservation| reservation.is_running()) {
            Some(reservation) => {
                reservation.ledger.hold(key, booking);
            }
            None => self.ledger.book(&self.config, key, booking),
        }
        task.place = TaskPlace::OnHost(placement);
        job.active += 1;
        job.tasks.insert(key.task, task);
        self.settle(key.seq, now.tick);
    }

    pub(super) fn start_task(&mut self, key: TaskKey, at: Wall) {
        let placement = self.placement_mut(key);
        assert!(placement.started.is_none(), "an attempt starts once");
        placement.started = Some(at);
    }

    pub(super) fn suspend_task(&mut self, key: TaskKey, suspended: bool) {
        let placement = self.placement_mut(key);
        placement.suspended = suspended;
        placement.was_suspended |= suspended;
        let placement = placement.clone();
        self.index.set_suspended(&placement);
    }

    pub(super) fn suspend_task_by_threshold(&mut self, key: TaskKey, suspended: bool) {
        let placement = self.placement_mut(key);
        placement.suspended_by_threshold = suspended;
        placement.was_suspended |= suspended;
        let placement = placement.clone();
        self.index.set_suspended(&placement);
    }

    pub(super) fn preempt_task(&mut self, key: TaskKey, suspended: bool) {
        let placement = self.placement_mut(key);
        placement.preempted = suspended;
        placement.was_suspended |= suspended;
    }

    /// Books a task anew, by what its job asks for now.
    pub(super) fn rebook_task(&mut self, key: TaskKey) {
        let placement = self.placement_mut(key).clone();
        let grant = Grant {
            slots: &placement.granted,
            pe: placement.pe.as_ref(),
            maps: &placement.maps,
            binding: &placement.binding,
        };
        let spec = self.jobs[&key.seq].spec.clone();
        let booking = self
            .index
            .commons
            .booking(&self.config, &spec, grant, placement.placed_tick);
        if self.ledger.booking(key).is_some() {
            return self.ledger.book(&self.config, key, booking);
        }
        let ledgers = self.reservations.values_mut();
        let mut ledgers = ledgers.map(|reservation| &mut reservation.ledger);
        let within = ledgers.find(|ledger| ledger.booking(key).is_some());
        within.expect("a placed task is booked").hold(key, booking);
    }

    /// Charges an attempt that ends. What its slave tasks used was charged when they ended, though
    /// its record may sum it up.
    pub(super) fn charge_task(
        &mut self,
        key: TaskKey,
        record: Option<&AccountingRecord>,
        charged: Option<Consumption>,
    ) {
        let of_slaves = Consumption::from(self.placement_mut(key).slaves().used);
        let own = || {
            record.map_or_else(Consumption::default, |record| {
                Consumption::from(record.usage).since(of_slaves)
            })
        };
        self.charge_end(key, charged.unwrap_or_else(own));
    }

    pub(super) fn end_task(
        &mut self,
        key: TaskKey,
        record: Option<&AccountingRecord>,
        then: &TaskFate,
        saved_pid: Option<i32>,
    ) {
        let is_over = *then == TaskFate::Done;
        let placement = if is_over {
            self.take_placement(key)
        } else {
            self.placement_mut(key).clone()
        };
        assert!(
            record.is_none_or(|record| record.key == key),
            "an accounting record is of the attempt that ended"
        );
        assert!(
            placement.slaves().live.is_empty(),
            "slave tasks end before the task that they belong to"
        );
        let owner = self.jobs[&key.seq].spec.owner.user.clone();
        self.index.remove_placement(&owner, &placement);
        self.forget_instances(placement.granted.iter().map(|granted| &granted.instance));
        let mut ledgers = self
            .reservations
            .values_mut()
            .map(|reservation| &mut reservation.ledger);
        let is_booked = self.ledger.release(key) || ledgers.any(|ledger| ledger.release(key));
        assert!(is_booked, "a placed task is booked");
        let now = self.now;
        let interval_s = self.config.scheduler.schedule_interval.seconds().unwrap_or(0);
        let job = self.job_mut(key.seq);
        job.active -= 1;
        job.failed |= record.is_some_and(|record| record.exit_status == APPLICATION_ERROR);
        if is_over {
            job.remember(finished(placement, record));
        } else {
            // Exit status 99 of the job, its prolog or its epilog, not a person with qmod.
            let is_asked =
                |record: &AccountingRecord| !placement.rescheduling && record.failed == FailedCode::RESCHEDULING;
            if *then == TaskFate::Requeued && record.is_some_and(is_asked) {
                job.run_again(key.task, now.tick, interval_s);
            }
            job.wait_again(key, record.is_some_and(|record| record.started != Wall(0)), now, then);
            let task = job.tasks.get_mut(&key.task).expect("it waits again");
            // What ends otherwise than by moving or with its host has its state removed
            // (checkpoint(5)).
            let is_cleaned = record.is_some_and(|record| record.failed == FailedCode::RESCHEDULING);
            task.saved_pid = saved_pid.or(task.saved_pid.filter(|_| !is_cleaned));
        }
        self.settle(key.seq, now.tick);
    }
}

impl Job {
    /// An attempt asked to be run again.
    fn run_again(&mut self, id: TaskId, now: Tick, interval_s: u64) {
        let task = self.tasks.get_mut(&id).expect("it was on a host just now");
        task.restarted = true;
        task.reruns = task.reruns.saturating_add(1);
        task.starts_from = now.plus_ms(rerun_pause_ms(task.reruns, interval_s));
    }

    fn wait_again(&mut self, key: TaskKey, ran: bool, now: Now, then: &TaskFate) {
        let task = self.tasks.get_mut(&key.task).expect("it was on a host just now");
        let error = match then {
            TaskFate::Done | TaskFate::Requeued => None,
            TaskFate::Error { reason } => Some(reason.clone()),
        };
        task.restarted |= ran && error.is_none();
        task.since = now.wall;
        task.place = TaskPlace::Pending { error };
        if task.is_ready() {
            self.ready.insert(key.task, task.starts_from, now.tick);
        }
    }
}

fn finished(placement: Placement, record: Option<&AccountingRecord>) -> FinishedTask {
    let Placement {
        key, granted, started, ..
    } = placement;
    FinishedTask {
        task: key.task,
        exit_status: record.map_or(0, |record| record.exit_status),
        failed: record.map_or(FailedCode::NO, |record| record.failed),
        deleted: started.is_none() && record.is_none_or(|record| record.started == Wall(0)),
        granted,
        started: record.map(|record| record.started).or(started).unwrap_or(Wall(0)),
    }
}
