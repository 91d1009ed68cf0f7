//! Why jobs of a category wait, grouped and bounded, as the query side keeps it.

use super::category::CategoryKey;
use super::nearness;
use super::reason::{Reason, What};
use proto::amount::Amount;
use proto::time::Now;
use std::collections::BTreeMap;
use std::mem::discriminant;

/// Examples that are kept of each group.
pub const EXAMPLES_KEPT: usize = 20;
/// Findings that are kept; beyond them the oldest are forgotten.
const FINDINGS_KEPT: usize = 10_000;

/// Reasons of one kind about one attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// For how many objects it holds.
    pub count: u32,
    /// Some of them with their own numbers, at least one, at most [`EXAMPLES_KEPT`].
    pub examples: Vec<Reason>,
    /// The one of all that is nearest to being met.
    pub nearest: Reason,
    /// The largest capacity among all objects of the group, where each has one.
    pub most: Option<Amount>,
}

impl Group {
    fn new(reason: &Reason) -> Group {
        let (examples, nearest) = (vec![reason.clone()], reason.clone());
        Group { count: 1, examples, nearest, most: capacity(reason) }
    }

    fn add(&mut self, reason: &Reason) {
        self.count = self.count.saturating_add(1);
        if self.examples.len() < EXAMPLES_KEPT {
            self.examples.push(reason.clone());
        }
        if nearness(reason) < nearness(&self.nearest) {
            self.nearest = reason.clone();
        }
        self.most = self.most.zip(capacity(reason)).map(|(most, capacity)| most.max(capacity));
    }
}

fn capacity(reason: &Reason) -> Option<Amount> {
    if let What::Offers(shortage) = &reason.what { shortage.capacity } else { None }
}

/// What a pass found out about a category in vain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The category.
    pub category: CategoryKey,
    /// When.
    pub at: Now,
    /// Why, in the order of first mention.
    pub groups: Vec<Group>,
}

impl Finding {
    /// Groups reasons.
    pub fn new<'a>(category: CategoryKey, at: Now, reasons: impl Iterator<Item = &'a Reason>) -> Finding {
        Finding { category, at, groups: grouped(reasons) }
    }
}

/// Reasons of one kind, about one attribute and level, together.
pub fn grouped<'a>(reasons: impl Iterator<Item = &'a Reason>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for reason in reasons {
        match groups.iter_mut().find(|group| is_alike(&group.examples[0], reason)) {
            // Many places may meet one limit.
            Some(group) if matches!(reason.what, What::Quota(_)) && group.examples.contains(reason) => {}
            Some(group) => group.add(reason),
            None => groups.push(Group::new(reason)),
        }
    }
    groups
}

/// Whether two reasons are of one kind, about one attribute and level.
pub fn is_alike(one: &Reason, other: &Reason) -> bool {
    discriminant(&one.what) == discriminant(&other.what)
        && one.level.letter() == other.level.letter()
        && match (&one.what, &other.what) {
            (What::Offers(one), What::Offers(other)) => one.attribute == other.attribute,
            (What::Overloaded(one), What::Overloaded(other)) | (What::SuspendAlarm(one), What::SuspendAlarm(other)) => {
                one.attribute == other.attribute
            }
            (What::UnknownResource { attribute: one }, What::UnknownResource { attribute: other }) => one == other,
            (What::Forced { attribute: one }, What::Forced { attribute: other }) => one == other,
            (What::InUse { attribute: one }, What::InUse { attribute: other }) => one == other,
            (What::Quota(one), What::Quota(other)) => one.rule == other.rule && one.attribute == other.attribute,
            (What::PeOffers { pe: one, .. }, What::PeOffers { pe: other, .. }) => one == other,
            (_, _) => true,
        }
}

/// The last findings by category.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    by_category: BTreeMap<CategoryKey, Finding>,
}

impl Findings {
    /// Takes new findings in, each in place of what was known of its category.
    pub fn extend(&mut self, findings: impl IntoIterator<Item = Finding>) {
        for finding in findings {
            self.by_category.insert(finding.category.clone(), finding);
        }
        while self.by_category.len() > FINDINGS_KEPT {
            let oldest =
                self.by_category.values().min_by_key(|finding| finding.at.tick).map(|finding| finding.category.clone());
            oldest.map(|category| self.by_category.remove(&category));
        }
    }

    /// What is known of a category.
    pub fn of(&self, category: &CategoryKey) -> Option<&Finding> {
        self.by_category.get(category)
    }
}
