//! The buckets of pending jobs in the order of the priority of their first jobs, kept from pass to
//! pass.
//!
//! If no priority depends on the time, a priority stays right until its bucket has another first
//! job, or the range of urgencies changes.

use crate::sched::order::queue::BucketId;
use crate::sched::order::urgency::Range;
use proto::id::SubmitSeq;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// The first job of a bucket. The largest head is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Head {
    /// Its priority, fine enough to order jobs by.
    pub priority: i128,
    /// The job; the one that was submitted first comes first.
    pub seq: Reverse<SubmitSeq>,
    /// Its bucket.
    pub bucket: BucketId,
}

/// The heads, in order.
///
/// Invariants: `sorted` holds exactly the heads in `known`; these are right for every bucket that
/// is not stale, while `range` holds; `stale` lists the buckets that are marked in `known`.
#[derive(Clone, Debug, Default)]
pub struct Heads {
    sorted: BTreeSet<Head>,
    /// By bucket.
    entries: Vec<BucketEntry>,
    stale: Vec<BucketId>,
    all_stale: bool,
    range: Option<Range>,
}

/// The head of one bucket.
#[derive(Clone, Copy, Debug, Default)]
struct BucketEntry {
    head: Option<Head>,
    is_stale: bool,
}

impl Heads {
    /// Notes that a bucket may have another first job.
    pub fn changed(&mut self, bucket: BucketId) {
        let known = self.entry(bucket);
        if !std::mem::replace(&mut known.is_stale, true) {
            self.stale.push(bucket);
        }
    }

    /// Notes that all buckets may have other priorities.
    pub fn all_changed(&mut self) {
        self.all_stale = true;
    }

    /// Looks at changed buckets again; at all of them if the range of urgencies changed or
    /// priorities depend on the time (`is_timed`).
    pub fn refresh(
        &mut self,
        range: Option<Range>,
        is_timed: bool,
        buckets: impl Iterator<Item = BucketId>,
        head: impl Fn(BucketId) -> Option<Head>,
    ) {
        if std::mem::take(&mut self.all_stale) || is_timed || range != self.range {
            self.entries.clear();
            for head in buckets.filter_map(&head) {
                self.put(head.bucket, Some(head));
            }
            self.sorted = self.entries.iter().filter_map(|known| known.head).collect();
            self.range = range;
            self.stale.clear();
        }
        while let Some(bucket) = self.stale.pop() {
            let new = head(bucket);
            let old = self.put(bucket, new);
            if new == old {
                continue;
            }
            if let Some(old) = old {
                self.sorted.remove(&old);
            }
            self.sorted.extend(new);
        }
    }

    /// Sets the head of a bucket, and returns the one before.
    fn put(&mut self, bucket: BucketId, head: Option<Head>) -> Option<Head> {
        let before = std::mem::replace(self.entry(bucket), BucketEntry { head, is_stale: false });
        before.head
    }

    fn entry(&mut self, bucket: BucketId) -> &mut BucketEntry {
        if bucket.index() >= self.entries.len() {
            self.entries.resize(bucket.index() + 1, BucketEntry::default());
        }
        &mut self.entries[bucket.index()]
    }

    /// The first head, or the next one after `last`, which need not exist any more.
    pub fn after(&self, last: Option<&Head>) -> Option<Head> {
        match last {
            None => self.sorted.last().copied(),
            Some(last) => self.sorted.range(..last).next_back().copied(),
        }
    }
}
