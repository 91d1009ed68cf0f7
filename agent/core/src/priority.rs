//! How the running tasks of a host share it, by their tickets (ALGORITHMS.md section 13): nice
//! values, and weights of control groups.
//!
//! What a task has used lately is held against the square of its share; who is behind gets the most
//! urgent nice value, who is ahead the least urgent one. So the values change all the time, and
//! more tickets get more over some samples, by more than their proportion. Weights of control
//! groups are in proportion.

use proto::id::TaskKey;
use proto::launch::TaskUsage;
use proto::wire::agent::NiceRange;
use std::collections::BTreeMap;

/// The least time between two computations, in milliseconds.
const EVERY_MS: u64 = 2_000;

/// What of earlier use and of earlier marks is kept at each computation, as a fraction: a task does
/// not pay for ever.
const KEPT: (u128, u128) = (4, 5);

/// A task that used more than its target counts as if it had used so many times as much, at most.
const COMPENSATION: u128 = 2;

/// The shares of all tasks together, and one for each.
const SHARES: u128 = 1_000;

/// The weight of a control group that has just its part.
const USUAL_WEIGHT: u128 = 100;

/// Units of fractions.
const ONE: u128 = 1_000_000;

/// What a task is to have from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    /// The nice value.
    pub(crate) nice: i32,
    /// The weight of its control group.
    pub(crate) cpu_weight: u32,
}

/// What is known of one running task or slave task.
#[derive(Clone, Debug, Default, PartialEq)]
struct Claim {
    /// Processor time in milliseconds as it was told last, and how much of it is new.
    cpu_ms: u64,
    fresh_ms: u64,
    processes: u32,
    /// Recent use, and the mark by which tasks are compared.
    usage: u128,
    mark: u128,
    last_share: Option<Share>,
}

/// The tasks with their tickets.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Priorities {
    /// Of whole tasks, slave tasks included, in millionths.
    tickets: BTreeMap<TaskKey, i64>,
    claims: BTreeMap<TaskKey, Claim>,
    computed_boot_ms: u64,
}

impl Priorities {
    /// The tickets of this host's tasks are these from now on.
    pub(crate) fn set_tickets(&mut self, tickets: Vec<(TaskKey, i64)>) {
        self.tickets = tickets.into_iter().collect();
        self.computed_boot_ms = 0;
    }

    /// A task was sampled.
    pub(crate) fn used(&mut self, key: TaskKey, usage: &TaskUsage) {
        let claim = self.claims.entry(key).or_default();
        claim.fresh_ms += usage.cpu_ms.saturating_sub(claim.cpu_ms);
        claim.cpu_ms = claim.cpu_ms.max(usage.cpu_ms);
        claim.processes = usage.processes;
    }

    /// A task has ended.
    pub(crate) fn forget(&mut self, key: TaskKey) {
        self.claims.remove(&key);
    }

    /// Whether it is time to compute.
    pub(crate) fn is_due(&self, boot_ms: u64) -> bool {
        !self.tickets.is_empty() && boot_ms.saturating_sub(self.computed_boot_ms) >= EVERY_MS
    }

    /// Forgets all tickets and all use. Returns the tasks that were given a share.
    pub(crate) fn clear(&mut self) -> Vec<TaskKey> {
        let told = self
            .claims
            .iter()
            .filter(|(_, claim)| claim.last_share.is_some())
            .map(|(key, _)| *key)
            .collect();
        *self = Self::default();
        told
    }

    /// What has changed for these tasks, which run here.
    pub(crate) fn compute(&mut self, running: &[TaskKey], range: NiceRange, boot_ms: u64) -> Vec<(TaskKey, Share)> {
        self.computed_boot_ms = boot_ms;
        let tickets = self.tickets_of(running);
        let sum: u128 = tickets.iter().map(|(_, tickets)| tickets).sum();
        let share = |tickets: u128| (tickets * SHARES).checked_div(sum).unwrap_or(0) + 1;
        let shares: Vec<(TaskKey, u128)> = tickets.iter().map(|(key, tickets)| (*key, share(*tickets))).collect();
        self.mark(&shares);
        let marks: Vec<u128> = shares.iter().map(|(key, _)| self.claims[key].mark).collect();
        let (lowest, highest) = (marks.iter().min().copied(), marks.iter().max().copied());
        let count = shares.len() as u128;
        let mut changed = Vec::new();
        for (((key, tickets), mark), (low, high)) in
            tickets.iter().zip(marks).zip(lowest.zip(highest).into_iter().cycle())
        {
            let weight = (tickets * USUAL_WEIGHT * count)
                .checked_div(sum)
                .unwrap_or(USUAL_WEIGHT)
                .clamp(1, 10_000);
            let share = Share {
                nice: between(range, mark - low, high - low),
                cpu_weight: weight as u32,
            };
            let claim = self.claims.get_mut(key).expect("it was marked just now");
            if claim.last_share != Some(share) {
                claim.last_share = Some(share);
                changed.push((*key, share));
            }
        }
        changed
    }

    /// Returns each running task with its tickets. The master sends one number per task of a job. A
    /// parallel job may run several parts of that task here, its master and slave tasks. They get
    /// equal parts of the number. A task without a number has no tickets.
    fn tickets_of(&self, running: &[TaskKey]) -> Vec<(TaskKey, u128)> {
        let whole = |key: &TaskKey| TaskKey { pe_task: 0, ..*key };
        let mut parts: BTreeMap<TaskKey, u128> = BTreeMap::new();
        running
            .iter()
            .for_each(|key| *parts.entry(whole(key)).or_default() += 1);
        let tickets = |key: &TaskKey| {
            let all = self
                .tickets
                .get(&whole(key))
                .map_or(0, |tickets| u128::try_from(*tickets).unwrap_or(0));
            all / parts[&whole(key)]
        };
        running.iter().map(|key| (*key, tickets(key))).collect()
    }

    /// Brings use and marks up to date.
    fn mark(&mut self, shares: &[(TaskKey, u128)]) {
        let fade = |number: u128| number * KEPT.0 / KEPT.1;
        let mut proportions = Vec::with_capacity(shares.len());
        for (key, share) in shares {
            let claim = self.claims.entry(*key).or_default();
            claim.usage = fade(claim.usage) + u128::from(std::mem::take(&mut claim.fresh_ms));
            proportions.push(share * share * ONE * ONE / claim.usage.max(1));
        }
        let used: u128 = shares.iter().map(|(key, _)| self.claims[key].usage).sum();
        let proportion_sum: u128 = proportions.iter().sum();
        for ((key, share), proportion) in shares.iter().zip(proportions) {
            let claim = self.claims.get_mut(key).expect("it was entered just now");
            // What it used of all, over what it was to use.
            let excess = (claim.usage * ONE).checked_div(used).unwrap_or(0) * proportion_sum / proportion.max(1);
            let adjusted = claim.usage * excess.clamp(ONE, COMPENSATION * ONE);
            claim.mark = fade(claim.mark) + adjusted * u128::from(claim.processes.max(1)) / (share * share);
        }
    }
}

/// The value of a range that lies as far from the most urgent one as a part of a whole; nothing of
/// nothing is the most urgent.
fn between(range: NiceRange, part: u128, whole: u128) -> i32 {
    let width = i128::from(range.least_urgent) - i128::from(range.most_urgent);
    let (part, whole) = (
        i128::try_from(part).unwrap_or(i128::MAX / 64),
        i128::try_from(whole).unwrap_or(i128::MAX / 64),
    );
    let above = (width * part + whole / 2).checked_div(whole).unwrap_or(0);
    // The kernel knows -20 to 19; a range to 20 ends at the weakest.
    i32::try_from(i128::from(range.most_urgent) + above)
        .unwrap_or(0)
        .clamp(-20, 19)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::key;

    const RANGE: NiceRange = NiceRange {
        most_urgent: 0,
        least_urgent: 20,
    };

    /// Tasks with these tickets, and what each used in milliseconds until each computation: what
    /// they are told each time.
    fn shares_sent(tickets: &[i64], samples: &[&[u64]]) -> Vec<Vec<(i32, u32)>> {
        let keys: Vec<TaskKey> = (1..=tickets.len() as u64).map(|job| key(job, 1)).collect();
        let mut priorities = Priorities::default();
        priorities.set_tickets(keys.iter().copied().zip(tickets.iter().copied()).collect());
        let (mut used, mut last) = (vec![0; keys.len()], vec![(-99, 0); keys.len()]);
        let mut all = Vec::new();
        for (round, sample) in samples.iter().enumerate() {
            for ((key, used), more) in keys.iter().zip(&mut used).zip(*sample) {
                *used += more;
                priorities.used(
                    *key,
                    &TaskUsage {
                        cpu_ms: *used,
                        processes: 1,
                        ..TaskUsage::default()
                    },
                );
            }
            for (key, share) in priorities.compute(&keys, RANGE, 2_000 * (round as u64 + 1)) {
                last[keys.iter().position(|known| *known == key).unwrap()] = (share.nice, share.cpu_weight);
            }
            all.push(last.clone());
        }
        all
    }

    #[test]
    fn more_tickets_are_more_urgent_and_weigh_more() {
        let alone = shares_sent(&[5_000_000], &[&[2_000]]);
        assert_eq!(alone, [[(0, 100)]]);
        let equal = shares_sent(&[1, 1], &[&[1_000, 1_000]]);
        assert_eq!(equal, [[(0, 100), (0, 100)]]);
        let unequal = shares_sent(&[7_500_000, 2_500_000], &[&[1_000, 1_000]]);
        assert_eq!(unequal, [[(0, 150), (19, 50)]]);
        let three = shares_sent(&[600, 300, 100], &[&[1_000, 1_000, 1_000]]);
        assert_eq!(three, [[(0, 180), (2, 90), (19, 30)]]);
        let none = shares_sent(&[0, 0], &[&[1_000, 500]]);
        assert_eq!(none[0][1].0, 0);
        assert_eq!(none[0][0].0, 19);
        let tiny = shares_sent(&[1, 1_000_000_000], &[&[0, 0]]);
        assert_eq!(tiny, [[(0, 1), (0, 199)]]);
    }

    #[test]
    fn who_falls_behind_becomes_urgent() {
        // Equal tickets, and one used all of the processor: it is the other's turn, until that one
        // has caught up.
        let told = shares_sent(&[1, 1], &[&[2_000, 0], &[0, 2_000], &[0, 2_000], &[0, 2_000]]);
        let nice: Vec<Vec<i32>> = told
            .iter()
            .map(|row| row.iter().map(|(nice, _)| *nice).collect())
            .collect();
        assert_eq!(nice[0], [19, 0]);
        assert_eq!(nice[3], [0, 19]);
    }

    /// A kernel that gives a task of the most urgent value nearly all of one processor.
    #[test]
    fn over_time_more_tickets_get_more() {
        for (tickets, expected) in [([1_i64, 1], 48..=52), ([3, 1], 70..=90), ([9, 1], 90..=99)] {
            let keys = [key(1, 1), key(2, 1)];
            let mut priorities = Priorities::default();
            priorities.set_tickets(keys.iter().copied().zip(tickets).collect());
            let (mut used, mut nice) = ([0_u64; 2], [0; 2]);
            for round in 1..=2_000 {
                let first = match nice[0].cmp(&nice[1]) {
                    std::cmp::Ordering::Less => 1_970,
                    std::cmp::Ordering::Equal => 1_000,
                    std::cmp::Ordering::Greater => 30,
                };
                for ((key, used), more) in keys.iter().zip(&mut used).zip([first, 2_000 - first]) {
                    *used += more;
                    priorities.used(
                        *key,
                        &TaskUsage {
                            cpu_ms: *used,
                            processes: 1,
                            ..TaskUsage::default()
                        },
                    );
                }
                for (key, share) in priorities.compute(&keys, RANGE, 2_000 * round) {
                    nice[usize::from(key != keys[0])] = share.nice;
                }
            }
            let percent = used[0] * 100 / (used[0] + used[1]);
            assert!(
                expected.contains(&percent),
                "{tickets:?}: {percent} and not {expected:?}"
            );
        }
    }

    #[test]
    fn tasks_of_one_job_share_its_tickets_and_what_ended_is_forgotten() {
        let slave = |number| TaskKey {
            pe_task: number,
            ..key(1, 1)
        };
        let running = [slave(1), slave(2), key(2, 1)];
        let mut priorities = Priorities::default();
        priorities.set_tickets(vec![(key(1, 1), 100), (key(2, 1), 100)]);
        assert!(priorities.is_due(EVERY_MS));
        let told = priorities.compute(&running, RANGE, EVERY_MS);
        assert_eq!(
            told.iter().map(|(_, share)| share.cpu_weight).collect::<Vec<_>>(),
            [75, 75, 150]
        );
        assert!(!priorities.is_due(EVERY_MS + 1) && priorities.is_due(2 * EVERY_MS));
        assert_eq!(
            priorities.compute(&running, RANGE, 2 * EVERY_MS),
            [],
            "nothing has changed"
        );
        priorities.forget(slave(1));
        assert_eq!(priorities.clear(), [slave(2), key(2, 1)]);
        assert_eq!(priorities.clear(), []);
    }
}
