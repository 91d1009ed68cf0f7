//! The tasks of a job that have a condition of their own, wait, and are neither held nor in error.

use crate::collections::seldom::Collection;
use proto::id::TaskId;
use proto::time::Tick;
use std::collections::BTreeSet;

/// The pending tasks with a condition of their own that are neither held nor in error: an array has
/// thousands that run, or that wait for the end of a pause.
///
/// It follows from the tasks. [`ReadyTasks::settle`] moves ended pauses from `resting` to `free`.
/// It changes no answer, so it does not count for equality.
#[derive(Clone, Debug, Default)]
pub struct ReadyTasks {
    free: BTreeSet<TaskId>,
    /// Tasks whose pause was not over when that was looked at last, by its end.
    resting: BTreeSet<(Tick, TaskId)>,
}

impl Collection for ReadyTasks {
    const EMPTY: &'static Self = &ReadyTasks {
        free: BTreeSet::new(),
        resting: BTreeSet::new(),
    };
}

impl PartialEq for ReadyTasks {
    fn eq(&self, other: &Self) -> bool {
        self.all() == other.all()
    }
}

impl ReadyTasks {
    /// Whether no task is ready, now or later.
    pub fn is_empty(&self) -> bool {
        self.free.is_empty() && self.resting.is_empty()
    }

    /// Adds a task that may start from a tick on.
    pub fn insert(&mut self, task: TaskId, from: Tick, now: Tick) {
        _ = if from > now {
            self.resting.insert((from, task))
        } else {
            self.free.insert(task)
        };
    }

    /// Takes a task out that was added with this tick.
    pub fn remove(&mut self, task: TaskId, from: Tick) {
        if !self.free.remove(&task) {
            self.resting.remove(&(from, task));
        }
    }

    /// Whether a pause is over that was not when it was looked at last.
    pub fn is_due(&self, now: Tick) -> bool {
        self.resting.first().is_some_and(|(from, _)| *from <= now)
    }

    /// Looks at the pauses that are over by now, each for the last time.
    pub fn settle(&mut self, now: Tick) {
        while let Some((from, task)) = self.resting.pop_first() {
            if from > now {
                self.resting.insert((from, task));
                return;
            }
            self.free.insert(task);
        }
    }

    /// When the next pause ends.
    pub fn next_end(&self, now: Tick) -> Option<Tick> {
        self.resting
            .range((Tick(now.0.saturating_add(1)), TaskId(0))..)
            .next()
            .map(|(from, _)| *from)
    }

    /// The tasks that may start now, rising. Lazy, unless pauses are over that were not looked at.
    pub fn startable(&self, now: Tick) -> impl Iterator<Item = TaskId> + '_ {
        let over = self.resting.range(..=(now, TaskId(u32::MAX)));
        let over: BTreeSet<TaskId> = over.map(|(_, task)| *task).collect();
        merged(self.free.iter().copied(), over.into_iter())
    }

    fn all(&self) -> BTreeSet<TaskId> {
        self.free
            .iter()
            .copied()
            .chain(self.resting.iter().map(|(_, task)| *task))
            .collect()
    }
}

/// Two rising sequences as one.
pub(super) fn merged(
    left: impl Iterator<Item = TaskId>,
    right: impl Iterator<Item = TaskId>,
) -> impl Iterator<Item = TaskId> {
    let (mut left, mut right) = (left.peekable(), right.peekable());
    std::iter::from_fn(move || match (left.peek(), right.peek()) {
        (Some(a), Some(b)) if a > b => right.next(),
        (Some(_), Some(_) | None) => left.next(),
        (None, Some(_) | None) => right.next(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_tasks_are_found_in_order_whether_the_time_was_followed_or_not() {
        let mut ready = ReadyTasks::default();
        for (task, from) in [(5, 0), (4, 30), (3, 10), (2, 20), (1, 10), (6, 20)] {
            ready.insert(TaskId(task), Tick(from), Tick(5));
        }
        for (now, expected, next) in [
            (5, &[5][..], Some(10)),
            (9, &[5], Some(10)),
            (10, &[1, 3, 5], Some(20)),
            (20, &[1, 2, 3, 5, 6], Some(30)),
            (30, &[1, 2, 3, 4, 5, 6], None),
        ] {
            let mut followed = ready.clone();
            followed.settle(Tick(now));
            assert!(!followed.is_due(Tick(now)) && ready.is_due(Tick(now)) == (now >= 10));
            for ready in [&ready, &followed] {
                let found: Vec<u32> = ready.startable(Tick(now)).map(|task| task.0).collect();
                assert_eq!(
                    (&found[..], ready.next_end(Tick(now))),
                    (expected, next.map(Tick)),
                    "{now}"
                );
            }
            assert_eq!(ready, followed);
            followed.remove(TaskId(3), Tick(10));
            assert_ne!(ready, followed);
        }
        for (task, from) in [(5, 0), (4, 30), (3, 10), (2, 20), (1, 10), (6, 20)] {
            assert!(!ready.is_empty());
            ready.remove(TaskId(task), Tick(from));
        }
        assert!(ready.is_empty());
    }
}
