//! Runs of places by where they begin: one run, as of a job that has not started, takes no memory
//! of its own.

use crate::collections::seldom::SparseBox;
use std::collections::BTreeMap;
use std::ops::RangeBounds;

/// Runs, each by its first place with its last.
///
/// Invariant: `many` is empty, or holds all of several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Runs {
    only: Option<(u32, u32)>,
    many: SparseBox<BTreeMap<u32, u32>>,
}

impl Runs {
    /// The last place of the run that begins at one.
    pub(crate) fn get(&self, from: u32) -> Option<u32> {
        let only = self.only.filter(|(first, _)| *first == from);
        only.map(|(_, to)| to).or_else(|| self.many.get(&from).copied())
    }

    /// Keeps a run; another that begins at the same place is forgotten.
    pub(crate) fn insert(&mut self, from: u32, to: u32) {
        match self.only {
            Some(only) if only.0 != from => {
                self.only = None;
                self.many.extend([only, (from, to)]);
            }
            None if !self.many.is_empty() => {
                self.many.insert(from, to);
            }
            Some(_) | None => self.only = Some((from, to)),
        }
    }

    /// Forgets the run that begins at a place, and says where it ended.
    pub(crate) fn remove(&mut self, from: u32) -> Option<u32> {
        if self.many.is_empty() {
            return self.only.take_if(|(first, _)| *first == from).map(|(_, to)| to);
        }
        let to = self.many.remove(&from);
        if self.many.len() == 1 {
            self.only = self.many.pop_first();
            self.many = SparseBox::default();
        }
        to
    }

    /// The runs that begin within a range, rising.
    pub(crate) fn range<'a>(
        &'a self,
        range: impl RangeBounds<u32> + 'a,
    ) -> impl DoubleEndedIterator<Item = (u32, u32)> + 'a {
        let only = self.only.filter(|(from, _)| range.contains(from));
        only.into_iter()
            .chain(self.many.range(range).map(|(from, to)| (*from, *to)))
    }

    /// All runs, rising.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (u32, u32)> + '_ {
        self.range(..)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        usize::from(self.only.is_some()) + self.many.len()
    }
}

impl FromIterator<(u32, u32)> for Runs {
    fn from_iter<I: IntoIterator<Item = (u32, u32)>>(runs: I) -> Runs {
        let mut all: BTreeMap<u32, u32> = runs.into_iter().collect();
        let only = if all.len() == 1 { all.pop_first() } else { None };
        Runs { only, many: all.into() }
    }
}
