//! Sets of tasks of one array job, kept as runs: a million pending tasks cost one entry.
//!
//! All tasks of a job lie on one lattice (`-t first-last:step`), so a set holds the lattice and
//! runs of places on it. That makes equal sets equal values, and a step costs nothing.

mod runs;
#[cfg(test)]
mod tests;

use proto::id::TaskId;
use proto::request::TaskRange;
use runs::Runs;
use serde::{Deserialize, Serialize};

/// From so many runs on, one walk over all runs is cheaper than a search for each.
const MANY_RUNS: usize = 64;

/// A set of tasks on the lattice of one job.
///
/// Invariants: runs are not empty, neither overlap nor touch, lie on the lattice; `count` is their
/// sum. Every operation on one task takes time logarithmic in the number of runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "StoredRanges", into = "StoredRanges")]
pub struct TaskRanges {
    first: u32,
    step: u32,
    places: u32,
    runs: Runs,
    count: u32,
}

impl TaskRanges {
    /// All tasks of a job; none for a job that is no array, whose one task is 1.
    pub fn all(array: Option<TaskRange>) -> Self {
        let mut set = Self::none(array);
        set.runs.insert(0, set.places - 1);
        set.count = set.places;
        set
    }

    /// No task of a job.
    pub fn none(array: Option<TaskRange>) -> Self {
        let (first, step, places) = array.map_or((1, 1, 1), |range| (range.first(), range.step(), range.count()));
        Self {
            first,
            step,
            places,
            runs: Runs::default(),
            count: 0,
        }
    }

    /// How many tasks are in the set.
    pub fn len(&self) -> u32 {
        self.count
    }

    /// Whether no task is in the set.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The lowest task in the set.
    pub fn first(&self) -> Option<TaskId> {
        self.runs.iter().next().map(|(from, _)| self.task(from))
    }

    /// Whether the task is in the set.
    pub fn contains(&self, task: TaskId) -> bool {
        self.place(task).is_some_and(|place| self.run_of(place).is_some())
    }

    /// Every task in the set, rising.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = TaskId> + '_ {
        self.runs
            .iter()
            .flat_map(|(from, to)| from..=to)
            .map(|place| self.task(place))
    }

    /// The tasks in the set that are not in another one of the same job, rising. Whole runs of the
    /// other are passed over at once.
    pub fn without<'a>(&'a self, other: Option<&'a TaskRanges>) -> impl Iterator<Item = TaskId> + 'a {
        let (mut runs, mut rest) = (self.runs.iter(), None);
        std::iter::from_fn(move || {
            loop {
                let (from, to) = rest.take().or_else(|| runs.next())?;
                let hole = other.and_then(|other| other.run_of(from));
                let next = hole.map_or(from, |(_, last)| last) + 1;
                rest = (next <= to).then_some((next, to));
                if hole.is_none() {
                    return Some(self.task(from));
                }
            }
        })
    }

    /// The set as ranges, rising: what events, rows and messages carry. Single tasks at even
    /// distances are one range.
    pub fn ranges(&self) -> Vec<TaskRange> {
        let runs: Vec<(u32, u32)> = self.runs.iter().collect();
        let (mut ranges, mut rest) = (Vec::new(), runs.as_slice());
        while let [(from, to), ..] = rest {
            let even = evenly_spaced(rest);
            ranges.push(match even {
                1 => self.range(*from, *to, 1),
                _ => self.range(*from, rest[even - 1].0, rest[1].0 - from),
            });
            rest = &rest[even..];
        }
        ranges
    }

    /// The tasks of a job that lie in the ranges, whatever became of them.
    pub fn of_job(array: Option<TaskRange>, ranges: &[TaskRange]) -> TaskRanges {
        Self::all(array).intersection(ranges)
    }

    /// Adds a task; false if it was there.
    ///
    /// # Panics
    /// If the task is not on the lattice of the job.
    pub fn insert(&mut self, task: TaskId) -> bool {
        let place = self.place(task).expect("only tasks of the job are put into its sets");
        if self.run_of(place).is_some() {
            return false;
        }
        let before = place.checked_sub(1).and_then(|left| self.run_of(left));
        let after = self.runs.get(place + 1);
        let from = before.map_or(place, |(from, _)| from);
        if after.is_some() {
            self.runs.remove(place + 1);
        }
        self.runs.insert(from, after.unwrap_or(place));
        self.count += 1;
        true
    }

    /// Takes a task out; false if it was not there.
    pub fn take(&mut self, task: TaskId) -> bool {
        match self.place(task) {
            Some(place) => self.cut(place, place) == 1,
            None => false,
        }
    }

    /// Takes every task of the ranges out and says how many were there. Time follows the runs, not
    /// the tasks, where steps agree.
    pub fn take_ranges(&mut self, ranges: &[TaskRange]) -> u32 {
        let taken = self.intersection(ranges);
        if taken.runs.len() > MANY_RUNS {
            self.subtract(&taken);
        } else {
            for (from, to) in taken.runs.iter() {
                self.cut(from, to);
            }
        }
        taken.count
    }

    /// Takes a subset out in one walk over both.
    fn subtract(&mut self, taken: &TaskRanges) {
        let mut left = Vec::new();
        let mut holes = taken.runs.iter().peekable();
        for (from, to) in self.runs.iter() {
            let mut start = from;
            while let Some((hole_from, hole_to)) = holes.next_if(|(hole_from, _)| *hole_from <= to) {
                if start < hole_from {
                    left.push((start, hole_from - 1));
                }
                start = hole_to + 1;
            }
            if start <= to {
                left.push((start, to));
            }
        }
        self.runs = left.into_iter().collect();
        self.count -= taken.count;
    }

    /// The tasks that are both in the set and in one of the ranges.
    pub fn intersection(&self, ranges: &[TaskRange]) -> TaskRanges {
        let mut both = Self {
            runs: Runs::default(),
            count: 0,
            ..*self
        };
        for range in ranges {
            if self.step.is_multiple_of(range.step()) && (range.step() == 1 || range.contains(TaskId(self.first))) {
                self.meet_run(*range, &mut both);
            } else {
                self.meet_steps(*range, &mut both);
            }
        }
        both
    }

    /// Adds what the set shares with a range that holds every place between its ends.
    fn meet_run(&self, range: TaskRange, both: &mut TaskRanges) {
        let Some((low, high)) = self.places_between(range.first(), range.last()) else {
            return;
        };
        let start = self.run_of(low).map_or(low, |(from, _)| from);
        for (from, to) in self.runs.range(start..=high) {
            let (from, to) = (from.max(low), to.min(high));
            if from <= to {
                both.fill(from, to);
            }
        }
    }

    /// Adds what the set shares with a range that leaves out places between its ends.
    fn meet_steps(&self, range: TaskRange, both: &mut TaskRanges) {
        for (from, to) in self.runs.iter() {
            let inside = self
                .places_between(range.first(), range.last())
                .map(|(low, high)| (low.max(from), high.min(to)));
            let Some((low, high)) = inside else { return };
            for place in (low..=high).filter(|place| range.contains(self.task(*place))) {
                if both.run_of(place).is_none() {
                    both.fill(place, place);
                }
            }
        }
    }

    /// The lattice places whose tasks lie between two numbers.
    fn places_between(&self, first: u32, last: u32) -> Option<(u32, u32)> {
        let low = first.saturating_sub(self.first).div_ceil(self.step);
        let high = (last.checked_sub(self.first)? / self.step).min(self.places - 1);
        (low <= high).then_some((low, high))
    }

    /// Adds a run of places.
    fn fill(&mut self, from: u32, to: u32) {
        if self.runs.iter().next_back().is_some_and(|(_, last)| last >= from) {
            self.cut(from, to);
        }
        let left = from
            .checked_sub(1)
            .and_then(|left| self.run_of(left))
            .map_or(from, |(start, _)| start);
        let right = self.runs.remove(to + 1).unwrap_or(to);
        self.runs.insert(left, right);
        self.count += to - from + 1;
    }

    /// Removes a run of places and says how many of them were in the set.
    fn cut(&mut self, from: u32, to: u32) -> u32 {
        let start = self.run_of(from).map_or(from, |(start, _)| start);
        let hit: Vec<(u32, u32)> = self.runs.range(start..=to).collect();
        let mut removed = 0;
        for (a, b) in hit {
            self.runs.remove(a);
            if a < from {
                self.runs.insert(a, from - 1);
            }
            if to < b {
                self.runs.insert(to + 1, b);
            }
            removed += b.min(to) - a.max(from) + 1;
        }
        self.count -= removed;
        removed
    }

    /// The run that holds a place.
    fn run_of(&self, place: u32) -> Option<(u32, u32)> {
        let run = self.runs.range(..=place).next_back()?;
        (place <= run.1).then_some(run)
    }

    fn place(&self, task: TaskId) -> Option<u32> {
        let distance = task.0.checked_sub(self.first)?;
        (distance.is_multiple_of(self.step) && distance / self.step < self.places).then(|| distance / self.step)
    }

    fn task(&self, place: u32) -> TaskId {
        TaskId(self.first + place * self.step)
    }

    /// The tasks at every `by`th place.
    fn range(&self, from: u32, to: u32, by: u32) -> TaskRange {
        let step = if from == to { 1 } else { self.step * by };
        TaskRange::new(self.task(from).0, self.task(to).0, step).expect("the lattice came from a valid range")
    }
}

/// How many runs of one place at the beginning have one distance: at least three, else 1.
fn evenly_spaced(runs: &[(u32, u32)]) -> usize {
    let [first, second, ..] = runs else { return 1 };
    let step = second.0 - first.0;
    let is_single = |run: &(u32, u32)| run.0 == run.1;
    let follows = |pair: &&[(u32, u32)]| is_single(&pair[1]) && pair[1].0 - pair[0].0 == step;
    let even = if is_single(first) {
        runs.windows(2).take_while(follows).count() + 1
    } else {
        1
    };
    if even >= 3 { even } else { 1 }
}

/// The form in which a set is stored: the lattice, then the runs.
#[derive(Serialize, Deserialize)]
struct StoredRanges {
    lattice: TaskRange,
    runs: Vec<(u32, u32)>,
}

impl From<TaskRanges> for StoredRanges {
    fn from(set: TaskRanges) -> StoredRanges {
        let last = set.first + (set.places - 1) * set.step;
        let lattice = TaskRange::new(set.first, last, set.step).expect("the lattice came from a valid range");
        StoredRanges {
            lattice,
            runs: set.runs.iter().collect(),
        }
    }
}

impl TryFrom<StoredRanges> for TaskRanges {
    type Error = BadRuns;

    fn try_from(stored: StoredRanges) -> Result<TaskRanges, BadRuns> {
        let mut set = TaskRanges::none(Some(stored.lattice));
        for (from, to) in stored.runs {
            let apart = set
                .runs
                .iter()
                .next_back()
                .is_none_or(|(_, last)| last < from.saturating_sub(1));
            if from > to || to >= set.places || !apart {
                return Err(BadRuns);
            }
            set.fill(from, to);
        }
        Ok(set)
    }
}

/// Stored runs that overlap, touch or leave the job's range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("runs of tasks overlap or leave the range of their job")]
pub struct BadRuns;
