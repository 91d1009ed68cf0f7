//! The queue instances that are being filled, with their free amounts: the best instance gets task
//! after task until it is full. This exists only for speed.

use crate::matching::{Headroom, Tally};
use proto::id::QueueInstanceName;
use proto::job::GrantedSlots;

/// Remembered queue instances: each is looked at with every planned task.
const MOST_FILLING: usize = 4;

/// A queue instance that was tried last, or got a task lately.
#[derive(Clone, Debug)]
struct RecentInstance {
    instance: QueueInstanceName,
    headroom: Headroom,
    /// Whether a task was planned there, so that it will probably be tried again.
    has_tasks: bool,
}

/// The queue instances that are being filled.
///
/// Invariant: since an instance was looked at, only starts were planned, and each was reported to
/// [`RecentInstances::planned`]. The model calls [`RecentInstances::clear`] for everything else.
#[derive(Clone, Debug, Default)]
pub struct RecentInstances(Vec<RecentInstance>);

impl RecentInstances {
    /// The free amounts of a queue instance, as far as they were looked at.
    pub fn headroom(&mut self, instance: &QueueInstanceName) -> &mut Headroom {
        let known = self.0.iter().rposition(|filled| filled.instance == *instance);
        let at = known.unwrap_or_else(|| self.begin(instance));
        &mut self.0[at].headroom
    }

    /// The free amounts of a queue instance, if they are known.
    pub fn known(&self, instance: &QueueInstanceName) -> Option<&Headroom> {
        self.0
            .iter()
            .rfind(|filled| filled.instance == *instance)
            .map(|filled| &filled.headroom)
    }

    /// Makes room for another queue instance, and returns its index.
    fn begin(&mut self, instance: &QueueInstanceName) -> usize {
        let mut headroom = Headroom::default();
        if let Some(tried) = self.0.pop_if(|last| !last.has_tasks) {
            headroom = tried.headroom;
            headroom.clear();
        } else if self.0.len() == MOST_FILLING {
            self.0.remove(0);
        }
        self.0.push(RecentInstance {
            instance: instance.clone(),
            headroom,
            has_tasks: false,
        });
        self.0.len() - 1
    }

    /// A task with these amounts was planned on these slots. `only_slot` is its instance if it has
    /// one slot and no parallel environment.
    pub fn planned(&mut self, granted: &[GrantedSlots], only_slot: Option<&QueueInstanceName>, tally: &Tally) {
        self.0.retain_mut(|filled| {
            if granted
                .iter()
                .all(|granted| granted.instance.host != filled.instance.host)
            {
                return true;
            }
            let stays = only_slot == Some(&filled.instance);
            if stays {
                filled.has_tasks = true;
                filled.headroom.take(tally);
            }
            stays
        });
    }

    /// Forgets everything, because something else than a planned start happened.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}
