//! Groups that mark the processes of tasks: one a task, of the range that the host's own file names
//! (`tracking_gids`).
//!
//! The supplementary group is inherited by every process and no ordinary one can drop it, so what a
//! task left behind is found by it even after its shepherd and its environment are gone. The
//! launcher chooses, because only it knows every task of the host.

use proto::id::TaskKey;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Which task has which group. A group belongs to one task at a time.
pub struct TrackingGroups {
    range: Option<RangeInclusive<u32>>,
    given: BTreeMap<TaskKey, u32>,
    /// The group given last: the next task gets a later one, so that what lingers of an old task is
    /// not taken for a new one's.
    last: u32,
}

impl TrackingGroups {
    /// No group is given yet; without a range none ever is.
    pub fn new(range: Option<RangeInclusive<u32>>) -> Self {
        TrackingGroups {
            range,
            given: BTreeMap::new(),
            last: 0,
        }
    }

    /// A group for a new task; `None` without a range, and while all groups of it are in use: the
    /// task is tracked as a tree then.
    pub fn give(&mut self, key: TaskKey) -> Option<u32> {
        let range = self.range.clone()?;
        let later = (self.last.saturating_add(1)..=*range.end()).filter(|gid| range.contains(gid));
        let gid = later
            .chain(range.clone())
            .find(|gid| !self.given.values().any(|other| other == gid))?;
        self.last = gid;
        self.given.insert(key, gid);
        Some(gid)
    }

    /// A task of an earlier launcher has this group.
    pub fn keep(&mut self, key: TaskKey, gid: u32) {
        self.given.insert(key, gid);
    }

    /// The task has ended whole.
    pub fn take_back(&mut self, key: &TaskKey) {
        self.given.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(seq: u32) -> TaskKey {
        format!("00000000000000ab.{seq}.1.0.1")
            .parse()
            .expect("it is the form that a key prints")
    }

    #[test]
    fn each_task_has_a_group_of_its_own_until_it_has_ended() {
        let mut tracking = TrackingGroups::new(Some(20_000..=20_002));
        tracking.keep(key(9), 20_001);
        assert_eq!(
            [1, 2, 3].map(|seq| tracking.give(key(seq))),
            [Some(20_000), Some(20_002), None]
        );
        tracking.take_back(&key(1));
        tracking.take_back(&key(9));
        assert_eq!([4, 5].map(|seq| tracking.give(key(seq))), [Some(20_000), Some(20_001)]);
    }

    #[test]
    fn a_host_without_a_range_gives_no_group() {
        assert_eq!(TrackingGroups::new(None).give(key(1)), None);
    }
}
