//! A cell in balance: users do not submit for ever what does not start, release and clear and
//! delete what is stuck, and administrators take back what they tried. Without that a long run
//! would be about a heap of jobs that can never start.

use super::agenda::Happening;
use super::workload::{free, jobs, release};
use super::world::{Watch, World};
use master_core::state::job::Job;
use proto::wire::client::{Command, ModifyAction};

/// Of what is stuck, so much per mille is put right at each look.
const SEEN: u64 = 250;
/// At one look of so many per mille administrators set everything as it was.
const TAKEN_BACK: u64 = 333;
/// At night, from eight to eight, users act so many times less often, in percent.
const NIGHT: u64 = 130;
/// While much is free they act so many times more often.
const EAGER: u64 = 3;
/// That is so until this share of all slots is taken, in percent.
const CROWDED: u64 = 75;
/// Half a day.
const HALF_DAY_MS: u64 = 12 * 3_600_000;

impl World {
    /// Plans the next look at the cell, if somebody watches over it.
    pub(super) fn plan_watch(&mut self) {
        if let Some(watch) = self.plan.watch {
            self.soon(watch.every_ms, Happening::Watches);
        }
    }

    /// The mean time between two commands of users at this time of the day.
    pub(super) fn users_pause_ms(&self) -> u64 {
        let usual = self.plan.user_ms;
        if self.plan.watch.is_none() {
            return usual;
        }
        let is_night = !(self.time / HALF_DAY_MS).is_multiple_of(2);
        if self.users.is_crowded {
            if is_night { usual * NIGHT / 100 } else { usual }
        } else {
            usual / EAGER
        }
    }

    /// Whether users submit jobs: not while too many wait for a place.
    pub(super) fn users_submit(&self) -> bool {
        self.plan
            .watch
            .is_none_or(|watch| self.users.waiting < watch.most_waiting)
    }

    /// Somebody looks at the cell, and puts right some of what is stuck.
    pub(super) fn watches(&mut self) {
        let Some(watch) = self.plan.watch.filter(|_| !self.healed) else {
            return;
        };
        self.plan_watch();
        self.take_sample();
        let wall = self.wall().0;
        let is_seen: Vec<Command> = {
            let random = &mut self.random;
            let all = self.kept.here().state.jobs.values();
            all.filter_map(|job| remedy(job, wall, watch))
                .filter(|_| random.chance(SEEN))
                .collect()
        };
        for command in is_seen {
            self.command("boss", command);
        }
        if self.random.chance(TAKEN_BACK) {
            self.tidy_cell();
        }
    }

    /// Notes how full the cell is, and how much waits.
    fn take_sample(&mut self) {
        let state = &self.kept.here().state;
        self.users.waiting = state.jobs.values().filter(|job| waits_for_place(job)).count() as u64;
        let taken = state
            .jobs
            .values()
            .flat_map(Job::placements)
            .flat_map(|(_, placement)| &placement.granted);
        let taken: u64 = taken.map(|part| u64::from(part.slots)).sum();
        let there: u64 = state
            .config
            .resolved
            .values()
            .map(|settings| u64::from(settings.slots))
            .sum();
        self.users.is_crowded = 100 * taken >= CROWDED * there;
        let counts = &mut self.counts;
        counts.samples += 1;
        counts.slots_taken += taken;
        counts.slots_there += there;
        counts.jobs_there += state.jobs.len() as u64;
        counts.jobs_waiting += self.users.waiting;
        counts.most_waiting = counts.most_waiting.max(self.users.waiting);
        let (jobs, waiting) = (state.jobs.len(), self.users.waiting);
        self.trace(|| format!("{taken} of {there} slots are taken; {jobs} jobs are there, {waiting} wait for a place"));
    }
}

/// Whether nothing but a place keeps a job from starting, as far as users see.
fn waits_for_place(job: &Job) -> bool {
    let is_free = job.waits_for.is_empty() && job.array_waits_for.is_empty() && !job.spec.holds.any();
    is_free
        && job.active == 0
        && !job
            .tasks
            .values()
            .any(|task| task.place.error().is_some() || task.holds.any())
}

/// What its user does about a job that does not get on; none if all is well with it.
fn remedy(job: &Job, wall: i64, watch: Watch) -> Option<Command> {
    let number = job.number;
    let age = u64::try_from(wall - job.submitted.0).unwrap_or(0);
    let act = |action| Command::Modify {
        action,
        targets: vec![number.to_string()],
        force: false,
    };
    if job.tasks.values().any(|task| task.place.error().is_some()) {
        Some(act(ModifyAction::ClearJobError))
    } else if job.placements().any(|(_, placement)| placement.suspended) {
        Some(act(ModifyAction::UnsuspendJob))
    } else if job.active == 0 && age > watch.patience_ms {
        Some(Command::Delete {
            jobs: jobs(number),
            force: false,
        })
    } else if job.active == 0 && job.present().iter().any(|task| job.holds(task).any()) {
        Some(release(number))
    } else if age > watch.patience_ms / 2 && !(job.waits_for.is_empty() && job.array_waits_for.is_empty()) {
        Some(free(number))
    } else {
        None
    }
}
