//! Reasons of one kind, together: how many there are, some examples, and the one that is nearest to
//! being met.

use super::{Obstacle, Reason, nearness};
use crate::ledger::{Level, LevelRef};
use proto::amount::Amount;
use std::mem::discriminant;

/// The most examples that a group keeps.
pub const EXAMPLES_KEPT: usize = 20;

/// Reasons of one kind about one attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The number of objects that have it.
    pub count: u32,
    /// Some of them with their own numbers: at least one, at most [`EXAMPLES_KEPT`].
    pub examples: Vec<Reason>,
    /// The reason that is nearest to being met.
    pub nearest: Reason,
    /// The largest capacity among all objects of the group, where each has one.
    pub most: Option<Amount>,
    /// The object that was counted last. Several queues of a host, or master and slaves, report the
    /// same object, and it counts once.
    last: Level,
}

impl Group {
    fn new(reason: &Reason) -> Group {
        let (examples, nearest) = (vec![reason.clone()], reason.clone());
        Group {
            count: 1,
            examples,
            nearest,
            most: capacity(reason),
            last: reason.level.clone(),
        }
    }

    fn add(&mut self, reason: &Reason) {
        if self.last != reason.level {
            self.last.clone_from(&reason.level);
            self.count = self.count.saturating_add(1);
            if self.examples.len() < EXAMPLES_KEPT {
                self.examples.push(reason.clone());
            }
        }
        if nearness(reason) < nearness(&self.nearest) {
            self.nearest = reason.clone();
        }
        self.most = self
            .most
            .zip(capacity(reason))
            .map(|(most, capacity)| most.max(capacity));
    }
}

fn capacity(reason: &Reason) -> Option<Amount> {
    if let Obstacle::Offers(shortage) = &reason.what {
        shortage.capacity
    } else {
        None
    }
}

/// Reasons of one kind, about one attribute and level, together.
pub fn grouped<'a>(reasons: impl Iterator<Item = &'a Reason>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for reason in reasons {
        match groups.iter_mut().find(|group| is_alike(&group.examples[0], reason)) {
            // Many queue instances may meet one limit.
            Some(group) if matches!(reason.what, Obstacle::Quota(_)) && group.examples.contains(reason) => {}
            Some(group) => group.add(reason),
            None => groups.push(Group::new(reason)),
        }
    }
    groups
}

/// Whether two reasons are of one kind, about one attribute and level.
pub fn is_alike(one: &Reason, other: &Reason) -> bool {
    LevelRef::from(&one.level).letter() == LevelRef::from(&other.level).letter() && is_alike_at(&one.what, &other.what)
}

/// Groups reasons about objects of one level.
fn is_alike_at(one: &Obstacle, other: &Obstacle) -> bool {
    discriminant(one) == discriminant(other)
        && match (one, other) {
            (Obstacle::Offers(one), Obstacle::Offers(other)) => one.attribute == other.attribute,
            (Obstacle::Overloaded(one), Obstacle::Overloaded(other))
            | (Obstacle::SuspendAlarm(one), Obstacle::SuspendAlarm(other)) => one.attribute == other.attribute,
            (Obstacle::UnknownResource { attribute: one }, Obstacle::UnknownResource { attribute: other }) => {
                one == other
            }
            (Obstacle::Forced { attribute: one }, Obstacle::Forced { attribute: other }) => one == other,
            (Obstacle::InUse { attribute: one, .. }, Obstacle::InUse { attribute: other, .. }) => one == other,
            (Obstacle::Quota(one), Obstacle::Quota(other)) => {
                one.rule == other.rule && one.attribute == other.attribute
            }
            (Obstacle::PeOffers { pe: one, .. }, Obstacle::PeOffers { pe: other, .. }) => one == other,
            (Obstacle::NoMore(one), Obstacle::NoMore(other)) => one.pe == other.pe && is_alike_at(&one.why, &other.why),
            (_, _) => true,
        }
}
