//! Results that are on this host alone: made durable where the master has not taken them soon.
//!
//! Most results are forgotten within milliseconds of their end, because the master has them in its
//! own log. One that waits longer is synced, in a process of its own: a sync may have to wait for
//! whatever else writes to the disk.

use crate::sys::{self, Fork};
use crate::task_dir::TaskDir;
use proto::id::TaskKey;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// How long a result waits for the master.
const WAITS_MS: u64 = 1_000;

/// The pause after a sync that failed.
const TROUBLE_MS: u64 = 2_000;

/// The results of a host that are neither durable nor forgotten.
#[derive(Default)]
pub struct Results {
    /// When each is synced.
    waiting: BTreeMap<TaskKey, u64>,
    /// The process that syncs, and what it was given.
    syncing: Option<(i32, BTreeSet<TaskKey>)>,
}

impl Results {
    /// A task has ended, or was found to have.
    pub fn add(&mut self, key: TaskKey) {
        self.waiting.insert(key, sys::boot_ms() + WAITS_MS);
    }

    /// The master has taken a result.
    pub fn forget(&mut self, key: &TaskKey) {
        self.waiting.remove(key);
        if let Some((_, keys)) = &mut self.syncing {
            keys.remove(key);
        }
    }

    /// Whether a task is known here to have ended; others may have, too.
    pub fn contains(&self, key: &TaskKey) -> bool {
        self.waiting.contains_key(key)
    }

    /// The process that syncs.
    pub fn syncer(&self) -> Option<i32> {
        self.syncing.as_ref().map(|(pid, _)| *pid)
    }

    /// When [`Results::sync`] has something to do.
    pub fn due_at(&self) -> Option<u64> {
        if self.syncing.is_some() {
            None
        } else {
            self.waiting.values().min().copied()
        }
    }

    /// Begins to sync all results, once one of them has waited long enough. One process at a time.
    pub fn sync(&mut self, now: u64) {
        if self.due_at().is_none_or(|due| due > now) {
            return;
        }
        match sys::fork() {
            Ok(Fork::Child) => {
                let synced = sys::close_all_except(&mut []).and_then(|()| sync_each(self.waiting.keys()));
                if let Err(error) = &synced {
                    crate::log::line(format_args!("results are not durable yet: {error}"));
                }
                sys::exit_now(i32::from(synced.is_err()))
            }
            Ok(Fork::Parent(pid)) => {
                self.syncing = Some((pid, std::mem::take(&mut self.waiting).into_keys().collect()));
            }
            Err(error) => {
                crate::log::line(format_args!("results wait to be made durable: {error}"));
                self.waiting.values_mut().for_each(|due| *due = now + TROUBLE_MS);
            }
        }
    }

    /// A child ended. Where it was the one that synced and it failed, its results wait again.
    pub fn reaped(&mut self, pid: i32, status: i32, now: u64) {
        if let Some((_, keys)) = self.syncing.take_if(|(syncer, _)| *syncer == pid)
            && status != 0
        {
            self.waiting.extend(keys.into_iter().map(|key| (key, now + TROUBLE_MS)));
        }
    }
}

/// Syncs as many as can be, and gives the first error.
fn sync_each<'a>(keys: impl Iterator<Item = &'a TaskKey>) -> io::Result<()> {
    keys.map(|key| TaskDir::new(key).sync_result())
        .fold(Ok(()), io::Result::and)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u64) -> TaskKey {
        format!("00000000000000ab.{number}.1.0.1")
            .parse()
            .expect("it is the form that a key prints")
    }

    #[test]
    fn what_could_not_be_synced_waits_again_unless_it_was_forgotten_meanwhile() {
        for (status, left) in [(0, vec![]), (256, vec![key(2)]), (9, vec![key(2)])] {
            let mut results = Results {
                waiting: BTreeMap::new(),
                syncing: Some((7, [key(1), key(2)].into())),
            };
            results.forget(&key(1));
            results.reaped(6, 256, 100);
            assert_eq!(results.due_at(), None, "somebody else's end is not its own");
            results.reaped(7, status, 100);
            assert_eq!(
                results.waiting.keys().copied().collect::<Vec<_>>(),
                left,
                "after status {status}"
            );
            assert_eq!(results.due_at(), (!left.is_empty()).then_some(100 + TROUBLE_MS));
        }
    }
}
