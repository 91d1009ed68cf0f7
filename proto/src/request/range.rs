//! Ranges of slots (`-pe smp 2-8`) and tasks (`-t 1-10:2`, `5.1-3,7`).

mod grammar;

use crate::diagnostic::{Code, Diagnostic};
use crate::id::TaskId;
use grammar::{last_and_step, list_parts, number, part};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// The largest number in a range; `4-` means 4 up to this.
pub const RANGE_MAX: u32 = 9_999_999;

/// Pieces into which a list of tasks may fall; beyond it the list is refused, so that a short text
/// cannot take all memory.
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
    /// A list with steps names more tasks than there can be.
    #[error("the list names more than {RANGE_MAX} tasks")]
    TooManyTasks,
    /// A list whose tasks have no common distance.
    #[error("-t option only allows one range specification")]
    SeveralRanges,
}

impl RangeError {
    /// The refusal. What the client of 8.1.9 refuses itself has [`Code::BadSyntax`], what its
    /// master refuses [`Code::JobRejected`].
    pub fn diagnostic(&self) -> Diagnostic {
        let code = match self {
            RangeError::ZeroSlots | RangeError::ZeroTask => Code::JobRejected,
            RangeError::NotANumber(_)
            | RangeError::Trailer { .. }
            | RangeError::Step
            | RangeError::TooLarge(_)
            | RangeError::TooManyPieces
            | RangeError::TooManyTasks
            | RangeError::SeveralRanges => Code::BadSyntax,
        };
        let diagnostic = Diagnostic::new(code, self.to_string());
        match self {
            RangeError::ZeroTask => diagnostic.fix("number tasks from 1"),
            RangeError::ZeroSlots => diagnostic.fix("ask for one slot at least"),
            RangeError::SeveralRanges => {
                diagnostic.fix("write FIRST-LAST:STEP; a list is possible if its tasks have a common distance")
            }
            RangeError::NotANumber(_) | RangeError::Trailer { .. } => {
                diagnostic.fix("write numbers: 4, 2-8, and 1-10:2 for tasks with a step")
            }
            RangeError::Step => diagnostic.fix("write a step of 1 or more"),
            RangeError::TooLarge(_) => diagnostic.fix(format!("write numbers up to {RANGE_MAX}")),
            RangeError::TooManyPieces | RangeError::TooManyTasks => diagnostic.fix("write shorter lists, or one range"),
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
        (1..=RANGE_MAX)
            .contains(&slots)
            .then(|| SlotRange(vec![(slots, slots)]))
    }

    /// Reads a comma separated union. `4-2` and `4:2` are 2 to 4, `-6` is 1 to 6, `4-` is 4 to
    /// [`RANGE_MAX`].
    ///
    /// # Errors
    /// If a part is no number or has a step, is zero, or is too large.
    pub fn parse(text: &str) -> Result<SlotRange, RangeError> {
        let parts: Result<Vec<_>, _> = list_parts(text).map(slot_part).collect();
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
        self.parts()
            .rev()
            .find(|part| *part.start() <= available)
            .map(|part| available.min(*part.end()))
    }
}

impl fmt::Display for SlotRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.parts().map(|part| part_text(&part)).collect();
        f.pad(&parts.join(","))
    }
}

/// `4`, `2-8`, or `3,4` where a part has two numbers, as 8.1.9 prints them.
fn part_text(part: &RangeInclusive<u32>) -> String {
    match (part.start(), part.end()) {
        (first, last) if first == last => first.to_string(),
        (first, last) if first + 1 == *last => format!("{first},{last}"),
        (first, last) => format!("{first}-{last}"),
    }
}

fn greatest_common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

/// One part of a union of slots.
fn slot_part(text: &str) -> Result<(u32, u32), RangeError> {
    let (first, last) = match text.strip_prefix('-') {
        Some(last) => (1, number(last)?),
        None => open_or_closed(text)?,
    };
    if first == 0 || last == 0 {
        return Err(RangeError::ZeroSlots);
    }
    Ok((first.min(last), first.max(last)))
}

/// `4`, `2-8`, `2:8` or `4-`.
fn open_or_closed(text: &str) -> Result<(u32, u32), RangeError> {
    let part = part(text)?;
    let last = match part.last {
        None => part.first,
        Some(last) if !last.text.is_empty() => number(last.text)?,
        Some(last) if last.sign == '-' => RANGE_MAX,
        // 8.1.9 reads `4:` as `4-`, which nobody can have meant.
        Some(_) => {
            return Err(RangeError::Trailer {
                specifier: text.to_owned(),
                trailer: ":".to_owned(),
            });
        }
    };
    Ok((part.first, last))
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

/// The tasks of an array job: `first` to `last` in steps, as `-t` gave them. 1 <= first <= last <=
/// [`RANGE_MAX`], step >= 1.
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

    /// Reads `5`, `1-10`, `1:10`, `1-10:2` or `1:10:2`; `5` is the task 5 alone. A comma separated
    /// list is one range if its tasks have a common distance: `1,3,5` is `1-5:2`.
    ///
    /// # Errors
    /// If a part is not of that form or [`TaskRange::new`] refuses it; if the list is more than one
    /// range.
    pub fn parse(text: &str) -> Result<TaskRange, RangeError> {
        let mut listed = list_parts(text);
        match (listed.next(), listed.next()) {
            (Some(only), None) => TaskRange::parse_part(only),
            _ => TaskRange::joined(list_parts(text).map(TaskRange::parse_part).collect::<Result<_, _>>()?),
        }
    }

    /// The one range that has the tasks of all `parts`, of which there is one at least. Parts may
    /// overlap, and may fill each other's gaps.
    fn joined(mut parts: Vec<TaskRange>) -> Result<TaskRange, RangeError> {
        parts.sort_unstable();
        parts.dedup();
        let (consecutive, mut parts): (Vec<_>, Vec<_>) = parts.into_iter().partition(|part| part.step == 1);
        if parts.iter().map(|part| u64::from(part.count())).sum::<u64>() > u64::from(RANGE_MAX) {
            return Err(RangeError::TooManyTasks);
        }
        let consecutive = merged(consecutive.iter().map(|part| (part.first, part.last)).collect());
        parts.extend(
            consecutive
                .into_iter()
                .map(|(first, last)| TaskRange { first, last, step: 1 }),
        );
        let first = parts.iter().map(|part| part.first).min().unwrap_or(1);
        let last = parts.iter().map(|part| part.last_task()).max().unwrap_or(first);
        let distances = parts
            .iter()
            .flat_map(|part| [part.first - first, part.last_task() - part.first, part.gap()]);
        // All tasks are the same one where no distance is above zero.
        let step = distances.fold(0, greatest_common_divisor).max(1);
        let mut is_named = vec![false; ((last - first) / step + 1) as usize];
        for task in parts.iter().flat_map(|part| part.iter()) {
            is_named[((task.0 - first) / step) as usize] = true;
        }
        match is_named.into_iter().all(|is_named| is_named) {
            true => Ok(TaskRange { first, last, step }),
            false => Err(RangeError::SeveralRanges),
        }
    }

    /// The last task that a step reaches.
    fn last_task(self) -> u32 {
        self.first + (self.count() - 1) * self.step
    }

    /// The distance between two tasks, 0 if there is one task alone.
    fn gap(self) -> u32 {
        if self.count() == 1 { 0 } else { self.step }
    }

    /// Reads one part of a list.
    fn parse_part(text: &str) -> Result<TaskRange, RangeError> {
        let part = part(text)?;
        let (last, step) = part.last.map_or(Ok((part.first, 1)), |last| last_and_step(last.text))?;
        TaskRange::new(part.first, last, step)
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
        for item in list_parts(text) {
            let range = TaskRange::parse_part(item)?;
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
        if self
            .0
            .get(at + 1)
            .is_some_and(|next| self.0[at].1.checked_add(1) == Some(next.0))
        {
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
        if range.step == 1 {
            TaskSet(vec![(range.first, range.last)])
        } else {
            range.iter().collect()
        }
    }
}

impl FromIterator<TaskId> for TaskSet {
    fn from_iter<I: IntoIterator<Item = TaskId>>(tasks: I) -> TaskSet {
        TaskSet(merged(tasks.into_iter().map(|task| (task.0, task.0)).collect()))
    }
}

impl fmt::Display for TaskSet {
    /// As `qstat` lists the pending tasks of an array: `5-10:1`, `1-9:2`, and two alone as `3,5`
    /// and `3,4`.
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
    let follows = parts
        .windows(2)
        .take_while(|pair| single(&&pair[1]) && pair[1].0 - pair[0].0 == step)
        .count();
    if follows >= 2 { follows + 1 } else { 1 }
}

/// Gives a range type its conversions from and to text, which serde stores.
///
/// A macro, because the three types share nothing but this and the orphan rule forbids one blanket
/// implementation.
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
