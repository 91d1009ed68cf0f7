//! What goes wrong, how often, and how often it did.

use super::agenda::Happening;
use super::world::World;
use std::ops::AddAssign;

/// Which faults a run has. Mean times between two of them in milliseconds of virtual time, chances
/// per mille.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Faults {
    /// Between two faults that strike out of the blue; 0 is never.
    pub every_ms: u64,
    /// That the master dies around one sync of its log.
    pub master_dies_at_sync: u64,
    /// That an agent dies in the middle of what one input led to.
    pub agent_dies_at_input: u64,
    /// That an answer to a user is lost, or a request arrives twice.
    pub user_link: u64,
    /// That a message takes seconds instead of milliseconds.
    pub slow_message: u64,
}

impl Faults {
    /// A quiet day.
    pub const NONE: Faults = Faults {
        every_ms: 0,
        master_dies_at_sync: 0,
        agent_dies_at_input: 0,
        user_link: 0,
        slow_message: 0,
    };

    /// A day on which something breaks somewhere every other minute.
    pub const SOME: Faults = Faults {
        every_ms: 90_000,
        master_dies_at_sync: 0,
        agent_dies_at_input: 0,
        user_link: 10,
        slow_message: 1,
    };

    /// A day on which everything breaks.
    pub const MANY: Faults = Faults {
        every_ms: 9_000,
        master_dies_at_sync: 15,
        agent_dies_at_input: 6,
        user_link: 100,
        slow_message: 20,
    };
}

/// What was done to the cluster, and how much it did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "each field counts what its name says")]
pub struct Counts {
    pub steps: u64,
    pub events: u64,
    pub jobs: u64,
    pub tasks_executed: u64,
    pub attempts_accounted: u64,
    pub orders_refused: u64,
    pub rival_orders: u64,
    pub rival_orders_refused: u64,
    pub administrations: u64,
    pub reservations_wanted: u64,
    pub reservations_granted: u64,
    pub slaves_wanted: u64,
    pub slaves_placed: u64,
    pub usages: u64,
    pub charges: u64,
    pub reprioritized: u64,
    pub disks_lost: u64,
    pub master_crashes: u64,
    pub agent_crashes: u64,
    pub launcher_crashes: u64,
    pub shepherd_deaths: u64,
    pub reboots: u64,
    pub breaks: u64,
    pub partitions: u64,
    pub stalls: u64,
    pub illnesses: u64,
    pub host_refusals: u64,
    pub repeated_requests: u64,
    pub wall_jumps: u64,
    pub epochs_raised: u64,
    pub promises: u64,
    /// Looks of those who watch over the cell; the next four are sums over them.
    pub samples: u64,
    pub slots_taken: u64,
    pub slots_there: u64,
    pub jobs_there: u64,
    pub jobs_waiting: u64,
    pub most_waiting: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.steps += other.steps;
        self.events += other.events;
        self.jobs += other.jobs;
        self.tasks_executed += other.tasks_executed;
        self.attempts_accounted += other.attempts_accounted;
        self.orders_refused += other.orders_refused;
        self.rival_orders += other.rival_orders;
        self.rival_orders_refused += other.rival_orders_refused;
        self.administrations += other.administrations;
        self.reservations_wanted += other.reservations_wanted;
        self.reservations_granted += other.reservations_granted;
        self.slaves_wanted += other.slaves_wanted;
        self.slaves_placed += other.slaves_placed;
        self.usages += other.usages;
        self.charges += other.charges;
        self.reprioritized += other.reprioritized;
        self.disks_lost += other.disks_lost;
        self.master_crashes += other.master_crashes;
        self.agent_crashes += other.agent_crashes;
        self.launcher_crashes += other.launcher_crashes;
        self.shepherd_deaths += other.shepherd_deaths;
        self.reboots += other.reboots;
        self.breaks += other.breaks;
        self.partitions += other.partitions;
        self.stalls += other.stalls;
        self.illnesses += other.illnesses;
        self.host_refusals += other.host_refusals;
        self.repeated_requests += other.repeated_requests;
        self.wall_jumps += other.wall_jumps;
        self.epochs_raised += other.epochs_raised;
        self.promises += other.promises;
        self.samples += other.samples;
        self.slots_taken += other.slots_taken;
        self.slots_there += other.slots_there;
        self.jobs_there += other.jobs_there;
        self.jobs_waiting += other.jobs_waiting;
        self.most_waiting = self.most_waiting.max(other.most_waiting);
    }
}

impl World {
    /// Plans the next fault out of the blue.
    pub(super) fn plan_fault(&mut self) {
        let mean = self.plan.faults.every_ms;
        if mean > 0 && !self.healed {
            let wait = 1 + self.random.around(mean);
            self.soon(wait, Happening::FaultStrikes);
        }
    }

    /// Plans the next act of somebody who meddles.
    pub(super) fn plan_meddling(&mut self, act: Happening) {
        let mean = self.plan.meddle_ms;
        if mean > 0 && !self.healed {
            let wait = 1 + self.random.around(mean);
            self.soon(wait, act);
        }
    }

    /// Something breaks.
    pub(super) fn fault_strikes(&mut self) {
        self.plan_fault();
        if self.healed {
            return;
        }
        let host = self.random.below(self.nodes.len() as u64) as usize;
        match self.random.below(100) {
            // Where days go by, a master dies now and then, and not every quarter of an hour.
            0..=7 if self.plan.watch.is_none() || self.random.chance(300) => self.master_dies(),
            0..=22 => self.agent_dies(host),
            23..=34 => self.launcher_dies(host),
            35..=49 => self.some_shepherd_dies(host),
            50..=55 => self.host_reboots(host),
            56..=77 => self.link_breaks_at(host),
            78..=85 => self.partition(host),
            86..=92 => self.stall(host),
            93..=96 => self.host_falls_ill(host),
            _ => self.wall_jumps(),
        }
    }

    /// Nothing of what is on its way to or from a host arrives for a while; a long while breaks the
    /// connection.
    fn partition(&mut self, host: usize) {
        self.counts.partitions += 1;
        let length = self.random.between(1_000, 120_000);
        let until = self.time + length;
        self.trace(|| format!("host {host} is cut off for {length} ms"));
        self.nodes[host].cut_off_until = until;
        if let Some(link) = self.freeze(host, until) {
            // Both ends give up after half a minute of silence, each by itself.
            if length > 30_000 {
                self.break_link(link, 30_000);
            }
        }
        self.soon(length, Happening::PartitionEnds { host });
    }

    /// The messages of a host are late, and none is lost.
    fn stall(&mut self, host: usize) {
        self.counts.stalls += 1;
        let length = self.random.around(15_000);
        self.trace(|| format!("host {host} stalls for {length} ms"));
        let _ = self.freeze(host, self.time + length);
    }

    fn wall_jumps(&mut self) {
        self.counts.wall_jumps += 1;
        let by = self.random.between(0, 20 * 60_000) as i64 - 10 * 60_000;
        self.trace(|| format!("the master's wall clock jumps by {by} ms"));
        self.wall_offset += by;
    }
}
