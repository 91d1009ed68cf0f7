//! One pricing: what each policy gives to each class.

use super::class::{ClassId, Classes, Members};
use super::line::Line;
use super::prices::{ClassPrices, Ladder, Prices, Tickets};
use super::rules::TicketRules;
use super::targets::Targets;
use super::{functional, overriding, shares};
use proto::id::SubmitSeq;
use proto::policy::TicketPolicy;
use std::collections::BTreeMap;

/// How many pending tasks have override and share tree tickets of their own in one pricing. Those
/// after them get theirs when it is their turn: a pass prices anew once it has started so many.
pub const PRICED_TASKS: usize = 1_000;

/// What a pricing asks of the jobs.
pub trait TaskCounts {
    /// How many tasks of a pending job may start, as far as they are to have tickets of their own,
    /// and the slots that each asks for at least.
    fn waiting(&self, seq: SubmitSeq) -> (usize, u32);
}

/// How many tasks count for each object: running ones, and those that are counted as running.
#[derive(Clone, Debug)]
pub struct Counts([Vec<f64>; 3]);

impl Counts {
    fn of_running(classes: &Classes) -> Counts {
        let mut counts = Counts(classes.objects().map(|size| vec![0.0; size]));
        for (_, members) in classes.iter() {
            counts.change(members, f64::from(members.running));
        }
        counts
    }

    /// Those of an object.
    pub fn of_object(&self, kind: usize, place: usize) -> f64 {
        self.0[kind][place]
    }

    /// Among how many tasks an object divides what it has, where `more` tasks than run count: among
    /// one if it does not divide.
    pub fn divisor(&self, kind: usize, place: usize, is_divided: bool, more: f64) -> f64 {
        if is_divided {
            (self.of_object(kind, place) + more).max(1.0)
        } else {
            1.0
        }
    }

    /// One more task of a class.
    pub fn add(&mut self, members: &Members) {
        self.change(members, 1.0);
    }

    /// One task of a class fewer.
    pub fn remove(&mut self, members: &Members) {
        self.change(members, -1.0);
    }

    fn change(&mut self, members: &Members, by: f64) {
        for (kind, stake) in members.stakes.iter().enumerate() {
            stake.iter().for_each(|stake| self.0[kind][stake.place] += by);
        }
    }
}

/// The ladders found so far, by policy.
#[derive(Default)]
struct Ladders {
    overriding: BTreeMap<ClassId, Ladder>,
    functional: BTreeMap<ClassId, Ladder>,
    share: BTreeMap<ClassId, Ladder>,
}

impl Ladders {
    fn of_policy(&self, policy: TicketPolicy) -> &BTreeMap<ClassId, Ladder> {
        match policy {
            TicketPolicy::Override => &self.overriding,
            TicketPolicy::Functional => &self.functional,
            TicketPolicy::ShareTree => &self.share,
        }
    }

    /// What a pending task has of the policies named.
    fn before(&self, policies: &[TicketPolicy], class: ClassId, place: usize) -> f64 {
        let of = |policy: &TicketPolicy| {
            self.of_policy(*policy)
                .get(&class)
                .map_or(0.0, |ladder| ladder.at(place))
        };
        policies.iter().map(of).sum()
    }
}

/// The order in which the policies are priced, with how many of those before each it rests on:
/// those of the hierarchy first.
fn order(hierarchy: &[TicketPolicy]) -> Vec<(TicketPolicy, usize)> {
    let all = [
        TicketPolicy::Override,
        TicketPolicy::Functional,
        TicketPolicy::ShareTree,
    ];
    let named = hierarchy.iter().enumerate().map(|(at, policy)| (*policy, at));
    let others = all
        .into_iter()
        .filter(|policy| !hierarchy.contains(policy))
        .map(|policy| (policy, 0));
    named.chain(others).collect()
}

/// What the parts of the share tree are to get now.
#[derive(Clone, Debug, PartialEq)]
pub struct TreeTargets {
    /// For what pending tasks get.
    pub pending: Targets,
    /// For what running tasks get.
    pub running: Targets,
}

/// Prices all tasks. `aims` are those of the share tree, if it is on.
pub fn price(rules: &TicketRules, classes: &Classes, aims: Option<&TreeTargets>, known: &dyn TaskCounts) -> Prices {
    let waiting = classes.iter().filter(|(_, members)| members.is_waiting());
    let mut lines: BTreeMap<ClassId, Line<'_>> = waiting.map(|(id, members)| (id, Line::new(members, known))).collect();
    let counts = Counts::of_running(classes);
    let is_shared = rules.is_override_shared;
    let mut running: BTreeMap<ClassId, Tickets> = BTreeMap::new();
    for (id, members) in classes.iter().filter(|(_, members)| members.running > 0) {
        let overriding = overriding::of_running(members, &counts, is_shared);
        let share = aims.map_or(0.0, |aims| aims.running.of_running(members));
        running.insert(
            id,
            Tickets {
                overriding,
                functional: 0.0,
                share,
            },
        );
    }
    let mut ladders = Ladders::default();
    for (policy, count) in order(&rules.hierarchy) {
        let earlier = &rules.hierarchy[..count];
        match policy {
            TicketPolicy::Override => {
                let before = |id: ClassId, place: usize| ladders.before(earlier, id, place);
                ladders.overriding =
                    overriding::of_pending(classes, &mut lines, counts.clone(), is_shared, PRICED_TASKS, before);
            }
            TicketPolicy::Functional => {
                let Some(policy) = &rules.functional else { continue };
                let before = |id: ClassId, place: usize| ladders.before(earlier, id, place);
                let found = functional::price(policy, classes, &mut lines, counts.clone(), before);
                ladders.functional = found.pending;
                for (id, tickets) in found.running {
                    running.entry(id).or_default().functional = tickets;
                }
            }
            TicketPolicy::ShareTree => {
                let Some(TreeTargets { pending: targets, .. }) = aims else {
                    continue;
                };
                let before = |id: ClassId, place: usize| ladders.before(earlier, id, place);
                ladders.share = shares::of_pending(targets, classes, &mut lines, before, PRICED_TASKS);
            }
        }
    }
    gather(classes, lines, ladders, &running)
}

/// Puts together by class what was found by policy.
fn gather(
    classes: &Classes,
    lines: BTreeMap<ClassId, Line<'_>>,
    mut ladders: Ladders,
    running: &BTreeMap<ClassId, Tickets>,
) -> Prices {
    let mut prices = Prices {
        classes: vec![ClassPrices::default(); classes.size()],
        ..Prices::default()
    };
    for (id, tickets) in running {
        prices.classes[id.index()].running = *tickets;
        prices.running += tickets.sum() * f64::from(classes.get(*id).running);
        prices.largest = prices.largest.max(tickets.sum());
    }
    for (id, line) in lines {
        let found = &mut prices.classes[id.index()];
        found.overriding = ladders.overriding.remove(&id).unwrap_or_default();
        found.functional = ladders.functional.remove(&id).unwrap_or_default();
        found.share = ladders.share.remove(&id).unwrap_or_default();
        let listed;
        (listed, found.begins) = line.listed();
        let at = |place| found.overriding.at(place) + found.functional.at(place) + found.share.at(place);
        let (mut sum, mut most) = (0.0, 0.0_f64);
        for tickets in (0..listed).map(at) {
            (sum, most) = (sum + tickets, most.max(tickets));
        }
        let unlisted = classes.get(id).pending.len() - found.begins.len();
        if unlisted > 0 {
            most = most.max(at(usize::MAX));
        }
        prices.pending += sum + at(usize::MAX) * unlisted as f64;
        prices.largest = prices.largest.max(most);
    }
    prices
}
