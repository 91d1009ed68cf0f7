//! The urgencies of the pending jobs that count, with the jobs that have waited longest and
//! shortest.

use crate::sched::order::queue::BucketId;
use crate::sched::order::urgency::Urgency;
use proto::id::SubmitSeq;
use std::collections::{BTreeMap, BTreeSet};

/// The oldest and the youngest pending job of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EndJobs {
    pub oldest: SubmitSeq,
    pub youngest: SubmitSeq,
}

/// The end jobs of the buckets of one urgency.
#[derive(Clone, Debug, Default)]
struct BucketEnds {
    oldest: BTreeSet<(SubmitSeq, BucketId)>,
    youngest: BTreeSet<(SubmitSeq, BucketId)>,
}

/// The buckets that count for the range of urgencies, by urgency: those with pending jobs.
///
/// Invariant: each urgency has at least one bucket, and each bucket is there once.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenUrgencies(BTreeMap<Urgency, BucketEnds>);

impl OpenUrgencies {
    /// Replaces the oldest and the youngest job of a bucket: `before` by `now`. `None` means that
    /// the bucket did not count, or does not count any more.
    pub fn change(&mut self, urgency: Urgency, id: BucketId, before: Option<EndJobs>, now: Option<EndJobs>) {
        if before == now {
            return;
        }
        let ends = self.0.entry(urgency).or_default();
        if let Some(EndJobs { oldest, youngest }) = before {
            ends.oldest.remove(&(oldest, id));
            ends.youngest.remove(&(youngest, id));
        }
        if let Some(EndJobs { oldest, youngest }) = now {
            ends.oldest.insert((oldest, id));
            ends.youngest.insert((youngest, id));
        }
        if ends.oldest.is_empty() {
            self.0.remove(&urgency);
        }
    }

    /// The oldest and the youngest job of each urgency.
    pub fn ends(&self) -> impl Iterator<Item = (Urgency, SubmitSeq)> {
        self.0.iter().flat_map(|(urgency, ends)| {
            let jobs = [ends.oldest.first(), ends.youngest.last()];
            jobs.into_iter().flatten().map(|(seq, _)| (*urgency, *seq))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_of_an_urgency_are_those_of_the_buckets_that_count() {
        let urgency = |resources: i128| Urgency {
            resources,
            deadline: None,
        };
        let jobs = |oldest: u64, youngest: u64| {
            Some(EndJobs {
                oldest: SubmitSeq(oldest),
                youngest: SubmitSeq(youngest),
            })
        };
        let mut open = OpenUrgencies::default();
        let buckets = [0, 1, 2].map(BucketId::of_test);
        for (of, bucket, before, now, expected) in [
            (1, 0, None, jobs(3, 5), &[(1, 3), (1, 5)][..]),
            (1, 1, None, jobs(2, 4), &[(1, 2), (1, 5)]),
            (0, 2, None, jobs(9, 9), &[(0, 9), (0, 9), (1, 2), (1, 5)]),
            (1, 0, jobs(3, 5), jobs(3, 3), &[(0, 9), (0, 9), (1, 2), (1, 4)]),
            (1, 1, jobs(2, 4), None, &[(0, 9), (0, 9), (1, 3), (1, 3)]),
            (0, 2, jobs(9, 9), None, &[(1, 3), (1, 3)]),
            (1, 0, jobs(3, 3), None, &[]),
        ] {
            open.change(urgency(of), buckets[bucket], before, now);
            let ends: Vec<(i128, u64)> = open.ends().map(|(urgency, seq)| (urgency.resources, seq.0)).collect();
            assert_eq!(ends, expected);
        }
        assert!(open.0.is_empty());
    }
}
