//! The functional policy: its tickets are divided by the shares of users, projects, departments and
//! jobs (ALGORITHMS.md sections 10.1, 10.2).

use super::class::{ClassId, Classes, Members};
use super::greedy::Contest;
use super::line::Line;
use super::prices::Ladder;
use super::pricing::Counts;
use super::rules::{FunctionalPolicy, JOB};
use std::collections::BTreeMap;

/// Added to sums of shares that a pending task would enlarge, so that no sum is zero.
const NO_SHARES: f64 = 0.001;

/// A task's functional shares per kind, as if `more` additional tasks of each of its objects were
/// running.
fn shares(members: &Members, counts: &Counts, is_shared: bool, more: f64) -> [f64; 4] {
    let mut found = [0.0, 0.0, 0.0, members.job_shares];
    for (kind, stake) in members.stakes.iter().enumerate() {
        if let Some(stake) = stake {
            found[kind] = stake.shares / counts.divisor(kind, stake.place, is_shared, more);
        }
    }
    found
}

/// A task's tickets: of each kind its part of the sum of shares.
fn tickets(functional: &FunctionalPolicy, weights: [f64; 4], shares: [f64; 4], sums: [f64; 4]) -> f64 {
    let of = |kind: usize| {
        if sums[kind] > 0.0 {
            weights[kind] * functional.pool * shares[kind] / sums[kind]
        } else {
            0.0
        }
    };
    (0..4).map(of).sum()
}

/// Weights that add up to one.
fn normalised(weights: [f64; 4]) -> [f64; 4] {
    let sum: f64 = weights.iter().sum();
    if sum > 0.0 {
        weights.map(|weight| weight / sum)
    } else {
        weights
    }
}

/// The functional tickets of all classes.
pub struct FunctionalTickets {
    /// Of each running task.
    pub running: BTreeMap<ClassId, f64>,
    /// Of pending tasks.
    pub pending: BTreeMap<ClassId, Ladder>,
}

/// Computes the policy's tickets. `before` returns the tickets of a pending task from the policies
/// that this one depends on.
pub fn price(
    functional: &FunctionalPolicy,
    classes: &Classes,
    lines: &mut BTreeMap<ClassId, Line<'_>>,
    counts: Counts,
    before: impl Fn(ClassId, usize) -> f64,
) -> FunctionalTickets {
    let mut sums = [0.0; 4];
    for (_, members) in classes.iter().filter(|(_, members)| members.running > 0) {
        let shares = shares(members, &counts, functional.is_shared, 0.0);
        (0..4).for_each(|kind| sums[kind] += f64::from(members.running) * shares[kind]);
    }
    let mut used = functional.weights;
    (0..4)
        .filter(|kind| sums[*kind] <= 0.0)
        .for_each(|kind| used[kind] = 0.0);
    let used = normalised(used);
    let running = classes
        .iter()
        .filter(|(_, members)| members.running > 0)
        .map(|(id, members)| {
            (
                id,
                tickets(
                    functional,
                    used,
                    shares(members, &counts, functional.is_shared, 0.0),
                    sums,
                ),
            )
        });
    let running = running.collect();
    FunctionalTickets {
        running,
        pending: pending(functional, classes, lines, counts, sums, before),
    }
}

/// The tickets of pending tasks: each as if it ran next, the largest first.
fn pending(
    functional: &FunctionalPolicy,
    classes: &Classes,
    lines: &mut BTreeMap<ClassId, Line<'_>>,
    counts: Counts,
    sums: [f64; 4],
    before: impl Fn(ClassId, usize) -> f64,
) -> BTreeMap<ClassId, Ladder> {
    let weights = normalised(functional.weights);
    let is_shared = functional.is_shared;
    let candidate = |id: ClassId, ShareSums { counts, sums }: &ShareSums| {
        let shares = shares(classes.get(id), counts, is_shared, 1.0);
        // Undivided shares, and those of jobs, count themselves in the sum.
        let own = |kind: usize| if is_shared && kind != JOB { 0.0 } else { shares[kind] };
        let with = |kind: usize| sums[kind] + NO_SHARES + own(kind);
        tickets(functional, weights, shares, [0, 1, 2, 3].map(with))
    };
    let mut found: BTreeMap<ClassId, Ladder> = BTreeMap::new();
    let mut contest = Contest::default();
    let mut now = ShareSums { counts, sums };
    for (id, line) in lines.iter_mut() {
        let members = classes.get(*id);
        let has_any = members.job_shares > 0.0 || members.stakes.iter().flatten().any(|stake| stake.shares > 0.0);
        if let Some(first) = line.get(0).filter(|_| has_any) {
            contest.enter(candidate(*id, &now) + before(*id, 0), first.seq, *id);
            found.insert(*id, Ladder::default());
        }
    }
    let mut last = None;
    for _ in 0..functional.most {
        let Some(id) = contest.next(|id| candidate(id, &now) + before(id, found[&id].count())) else {
            break;
        };
        last = Some((id, now.sums));
        now.add(classes.get(id), is_shared);
        let ladder = found.get_mut(&id).expect("who wins takes part");
        ladder.push(tickets(
            functional,
            weights,
            shares(classes.get(id), &now.counts, is_shared, 0.0),
            now.sums,
        ));
        let place = ladder.count();
        if let Some(next) = lines.get_mut(&id).and_then(|line| line.get(place)) {
            contest.enter(candidate(id, &now) + before(id, place), next.seq, id);
        }
    }
    // All others get what they would have had in the last round. If nobody had shares then, the
    // present sums count.
    if let Some((id, sums)) = last {
        if sums != [0.0; 4] {
            now.counts.remove(classes.get(id));
            now.sums = sums;
        }
        found
            .iter_mut()
            .for_each(|(id, ladder)| ladder.rest = candidate(*id, &now));
    }
    found
}

/// The tasks that count and the sums of shares, with the winners so far.
struct ShareSums {
    counts: Counts,
    sums: [f64; 4],
}

impl ShareSums {
    /// Counts one more task of a class as running.
    fn add(&mut self, members: &Members, is_shared: bool) {
        let ShareSums { counts, sums } = self;
        counts.add(members);
        for (kind, stake) in members.stakes.iter().enumerate() {
            if let Some(stake) = stake.filter(|stake| !is_shared || counts.of_object(kind, stake.place) <= 1.0) {
                sums[kind] += stake.shares;
            }
        }
        sums[JOB] += members.job_shares;
    }
}
