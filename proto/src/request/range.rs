//! Ranges of slots (`-pe smp 2-8`) and tasks (`-t 1-10:2`, `5.1-3,7`).

use crate::diagnostic::{Code, Diagnostic};
use crate::id::TaskId;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// The largest number in a range; `4-` means 4 up to this.
pub const RANGE_MAX: u32 = 9_999_999;

/// Pieces into which a list of tasks may fall; beyond it the list is refused, so that a short text cannot take all memory.
const MAX_PIECES: usize = 100_000;

/// Why a text is not a range, in the words of 8.1.9 where it has any.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    /// A number should begin here.
    #[error("Numerical value invalid!\nThe initial portion of string \"{0}\" contains no decimal number")]
    NotANumber(String),
    /// Something follows the number.
    #[error("Range specifier \"{specifier}\" has unknown trailer \"{trailer}\"")]
    Trailer {
        /// From the number on.
        specifier: String,
        /// What follows it.
        trailer: String,
    },
    /// A step of zero or less.
    #[error("Negative or zero step in range is not allowed")]
    Step,
    /// No slots, or a negative number of them.
    #[error("\"job\" rejected: pe range must be greater than zero")]
    ZeroSlots,
    /// Tasks are counted from 1.
    #[error("job rejected: 0 is an invalid task id")]
    ZeroTask,
    /// A number above [`RANGE_MAX`].
    #[error("\"{0}\" is above {RANGE_MAX}, the largest number in a range")]
    TooLarge(String),
    /// The list falls into too many pieces.
    #[error("the list of tasks has more than {MAX_PIECES} separate parts")]
    TooManyPieces,
}

impl RangeError {
    /// The refusal. What the client of 8.1.9 refuses itself has [`Code::BadSyntax`], what its master refuses [`Code::JobRejected`].
    pub fn diagnostic(&self) -> Diagnostic {
        let code = match self {
            RangeError::ZeroSlots | RangeError::ZeroTask => Code::JobRejected,
            RangeError::NotANumber(_)
            | RangeError::Trailer { .. }
            | RangeError::Step
            | RangeError::TooLarge(_)
            | RangeError::TooManyPieces => Code::BadSyntax,
        };
        let diagnostic = Diagnostic::new(code, self.to_string());
        match self {
            RangeError::ZeroTask => diagnostic.fix("number tasks from 1"),
            RangeError::ZeroSlots => diagnostic.fix("ask for one slot at least"),
            RangeError::NotANumber(_)
            | RangeError::Trailer { .. }
            | RangeError::Step
            | RangeError::TooLarge(_)
            | RangeError::TooManyPieces => diagnostic,
        }
    }
}

/// Numbers of slots that a parallel job accepts: `4`, `2-8`, `4-`, `-6`, `4,8,16`.
///
/// Never empty; the parts are sorted, apart and between 1 and [`RANGE_MAX`]. Stored as its text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SlotRange(Vec<(u32, u32)>);

impl SlotRange {
    /// Exactly that many slots; none if it is not between 1 and [`RANGE_MAX`].
    pub fn exactly(slots: u32) -> Option<SlotRange> {
        (1..=RANGE_MAX).contains(&slots).then(|| SlotRange(vec![(slots, slots)]))
    }

    /// Reads a comma separated union. `4-2` is 2 to 4, `-6` is 1 to 6, `4-` is 4 to [`RANGE_MAX`].
    ///
    /// # Errors
    /// If a part is no number or has a step, is zero, or is too large.
    pub fn parse(text: &str) -> Result<SlotRange, RangeError> {
        let parts: Result<Vec<_>, _> = text.split(',').map(slot_part).collect();
        Ok(SlotRange(merged(parts?)))
    }

    /// The least number of slots.
    pub fn least(&self) -> u32 {
        self.0[0].0
    }

    /// The largest number of slots; [`RANGE_MAX`] where the range is open.
    pub fn largest(&self) -> u32 {
        self.0[self.0.len() - 1].1
    }

    /// Whether so many slots will do.
    pub fn contains(&self, slots: u32) -> bool {
        self.0.iter().any(|(first, last)| (*first..=*last).contains(&slots))
    }

    /// Every number of slots, rising; `rev` gives the largest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = u32> + '_ {
        self.parts().flatten()
    }

    /// The separate parts, rising.
    pub fn parts(&self) -> impl DoubleEndedIterator<Item = RangeInclusive<u32>> + '_ {
        self.0.iter().map(|(first, last)| *first..=*last)
    }

    /// The largest acceptable number up to `available`.
    pub fn largest_within(&self, available: u32) -> Option<u32> {
        self.parts().rev().find(|part| *part.start() <= available).map(|part| available.min(*part.end()))
    }
}

impl fmt::Display for SlotRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.parts().map(|part| part_text(&part)).collect();
        f.pad(&parts.join(","))
    }
}

/// `4` or `2-8`.
fn part_text(part: &RangeInclusive<u32>) -> String {
    if part.start() == part.end() { part.start().to_string() } else { format!("{}-{}", part.start(), part.end()) }
}

/// One part of a union of slots.
fn slot_part(part: &str) -> Result<(u32, u32), RangeError> {
    let part = part.trim();
    let (first, last) = if let Some(last) = part.strip_prefix('-') {
        (1, number(last)?)
    } else if let Some((first, last)) = part.split_once('-') {
        (number(first)?, if last.is_empty() { RANGE_MAX } else { number(last)? })
    } else {
        let slots = number(part)?;
        (slots, slots)
    };
    if first == 0 || last == 0 {
        return Err(RangeError::ZeroSlots);
    }
    Ok((first.min(last), first.max(last)))
}

/// A whole text as a number up to [`RANGE_MAX`].
fn number(text: &str) -> Result<u32, RangeError> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    if digits == 0 {
        return Err(RangeError::NotANumber(text.to_owned()));
    }
    if digits < text.len() {
        return Err(RangeError::Trailer { specifier: text.to_owned(), trailer: text[digits..].to_owned() });
    }
    text.parse().ok().filter(|number| *number <= RANGE_MAX).ok_or_else(|| RangeError::TooLarge(text.to_owned()))
}

/// The same numbers as sorted parts that neither overlap nor touch.
fn merged(mut parts: Vec<(u32, u32)>) -> Vec<(u32, u32)> {
    parts.sort_unstable();
    let mut merged: Vec<(u32, u32)> = Vec::with_capacity(parts.len());
    for (first, last) in parts {
        match merged.last_mut() {
            Some(previous) if first <= previous.1.saturating_add(1) => previous.1 = previous.1.max(last),
            _ => merged.push((first, last)),
        }
    }
    merged
}

/// The tasks of an array job: `first` to `last` in steps, as `-t` gave them. 1 <= first <= last <= [`RANGE_MAX`], step >= 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TaskRange {
    first: u32,
    last: u32,
    step: u32,
}

impl TaskRange {
    /// Checks and sorts the ends: 8.1.9 takes `5-1` as `1-5`.
    ///
    /// # Errors
    /// If an end or the step is 0, or an end is too large.
    pub fn new(first: u32, last: u32, step: u32) -> Result<TaskRange, RangeError> {
        if step == 0 {
            return Err(RangeError::Step);
        }
        let (first, last) = (first.min(last), first.max(last));
        if first == 0 {
            return Err(RangeError::ZeroTask);
        }
        if last > RANGE_MAX {
            return Err(RangeError::TooLarge(last.to_string()));
        }
        Ok(TaskRange { first, last, step })
    }

    /// Reads `5`, `1-10` or `1-10:2`; `5` is the task 5 alone.
    ///
    /// # Errors
    /// If it is not of that form or [`TaskRange::new`] refuses it.
    pub fn parse(text: &str) -> Result<TaskRange, RangeError> {
        let text = text.trim();
        let (ends, step) = match text.split_once(':') {
            Some((ends, step)) => (ends, step_number(step)?),
            None => (text, 1),
        };
        let (first, last) = match ends.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(ends)?, number(ends)?),
        };
        TaskRange::new(first, last, step)
    }

    /// The first task.
    pub fn first(self) -> u32 {
        self.first
    }

    /// The end as it was given; a task of that number exists only if a step reaches it.
    pub fn last(self) -> u32 {
        self.last
    }

    /// The distance from one task to the next.
    pub fn step(self) -> u32 {
        self.step
    }

    /// How many tasks there are, at least one.
    pub fn count(self) -> u32 {
        (self.last - self.first) / self.step + 1
    }

    /// Whether the task is one of these.
    pub fn contains(self, task: TaskId) -> bool {
        (self.first..=self.last).contains(&task.0) && (task.0 - self.first).is_multiple_of(self.step)
    }

    /// Every task, rising.
    pub fn iter(self) -> impl Iterator<Item = TaskId> {
        (0..self.count()).map(move |index| TaskId(self.first + index * self.step))
    }
}

/// A step; a sign is the error it is in 8.1.9.
fn step_number(text: &str) -> Result<u32, RangeError> {
    if text.starts_with('-') { Err(RangeError::Step) } else { number(text) }
}

impl fmt::Display for TaskRange {
    /// `1-10:2`, always with all three, as `qsub` prints it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}-{}:{}", self.first, self.last, self.step))
    }
}

/// A set of tasks of one job: the `1-3,7` of `qdel 5.1-3,7`, or what of an array is still pending.
///
/// Kept as sorted parts that neither overlap nor touch. Stored as its text.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TaskSet(Vec<(u32, u32)>);

impl TaskSet {
    /// Reads a comma separated list of task ranges; nothing is the empty set.
    ///
    /// # Errors
    /// As [`TaskRange::parse`]; also if steps break the list into more than 100,000 parts.
    pub fn parse(text: &str) -> Result<TaskSet, RangeError> {
        if text.trim().is_empty() {
            return Ok(TaskSet::default());
        }
        let mut parts = Vec::new();
        for item in text.split(',') {
            let range = TaskRange::parse(item)?;
            if range.step == 1 {
                parts.push((range.first, range.last));
            } else if range.count() as usize > MAX_PIECES - parts.len().min(MAX_PIECES) {
                return Err(RangeError::TooManyPieces);
            } else {
                parts.extend(range.iter().map(|task| (task.0, task.0)));
            }
        }
        Ok(TaskSet(merged(parts)))
    }

    /// Whether there is no task.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many tasks there are.
    pub fn len(&self) -> u32 {
        self.0.iter().map(|(first, last)| last - first + 1).sum()
    }

    /// Whether the task is one of these.
    pub fn contains(&self, task: TaskId) -> bool {
        let after = self.0.partition_point(|(first, _)| *first <= task.0);
        after > 0 && task.0 <= self.0[after - 1].1
    }

    /// Every task, rising.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = TaskId> + '_ {
        self.0.iter().flat_map(|(first, last)| *first..=*last).map(TaskId)
    }

    /// Adds a task; false if it was there.
    pub fn insert(&mut self, task: TaskId) -> bool {
        if self.contains(task) {
            return false;
        }
        let mut at = self.0.partition_point(|(first, _)| *first < task.0);
        self.0.insert(at, (task.0, task.0));
        if at > 0 && self.0[at - 1].1.checked_add(1) == Some(task.0) {
            self.0[at - 1].1 = self.0.remove(at).1;
            at -= 1;
        }
        if self.0.get(at + 1).is_some_and(|next| self.0[at].1.checked_add(1) == Some(next.0)) {
            self.0[at].1 = self.0.remove(at + 1).1;
        }
        true
    }

    /// Takes a task out; false if it was not there.
    pub fn remove(&mut self, task: TaskId) -> bool {
        if !self.contains(task) {
            return false;
        }
        let at = self.0.partition_point(|(first, _)| *first <= task.0) - 1;
        let (first, last) = self.0.remove(at);
        if task.0 < last {
            self.0.insert(at, (task.0 + 1, last));
        }
        if first < task.0 {
            self.0.insert(at, (first, task.0 - 1));
        }
        true
    }
}

impl From<TaskRange> for TaskSet {
    fn from(range: TaskRange) -> TaskSet {
        if range.step == 1 { TaskSet(vec![(range.first, range.last)]) } else { range.iter().collect() }
    }
}

impl FromIterator<TaskId> for TaskSet {
    fn from_iter<I: IntoIterator<Item = TaskId>>(tasks: I) -> TaskSet {
        TaskSet(merged(tasks.into_iter().map(|task| (task.0, task.0)).collect()))
    }
}

impl fmt::Display for TaskSet {
    /// As `qstat` lists the pending tasks of an array: `5-10:1`, `1-9:2`, and two alone as `3,5` and `3,4`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut texts = Vec::new();
        let mut rest = &self.0[..];
        while let Some((first, last)) = rest.first() {
            let run = if first == last { evenly_spaced(rest) } else { 1 };
            texts.push(match run {
                1 if first == last => first.to_string(),
                1 if first + 1 == *last => format!("{first},{last}"),
                1 => format!("{first}-{last}:1"),
                run => format!("{first}-{}:{}", rest[run - 1].0, rest[1].0 - first),
            });
            rest = &rest[run..];
        }
        f.pad(&texts.join(","))
    }
}

/// How many single tasks at the beginning have one distance: at least three, else 1.
fn evenly_spaced(parts: &[(u32, u32)]) -> usize {
    let single = |part: &&(u32, u32)| part.0 == part.1;
    let [first, second, ..] = parts else { return 1 };
    let step = second.0 - first.0;
    let follows = parts.windows(2).take_while(|pair| single(&&pair[1]) && pair[1].0 - pair[0].0 == step).count();
    if follows >= 2 { follows + 1 } else { 1 }
}

/// Gives a range type its conversions from and to text, which serde stores.
///
/// A macro, because the three types share nothing but this and the orphan rule forbids one blanket implementation.
macro_rules! stored_as_text {
    ($($type:ident),*) => {$(
        impl FromStr for $type {
            type Err = RangeError;

            fn from_str(text: &str) -> Result<Self, RangeError> {
                $type::parse(text)
            }
        }

        impl TryFrom<String> for $type {
            type Error = RangeError;

            fn try_from(text: String) -> Result<Self, RangeError> {
                $type::parse(&text)
            }
        }

        impl From<$type> for String {
            fn from(range: $type) -> String {
                range.to_string()
            }
        }
    )*};
}
stored_as_text!(SlotRange, TaskRange, TaskSet);
