//! The queue instances that are being filled, with what they have left: the best one gets task after task until it is full.

use crate::matching::{Headroom, Tally};
use proto::id::QueueInstanceName;
use proto::job::Granted;

/// So many are remembered: each is looked at with every task that is planned.
const MOST_FILLING: usize = 4;

/// A queue instance that was tried last, or got something lately.
#[derive(Clone, Debug)]
struct Filled {
    instance: QueueInstanceName,
    headroom: Headroom,
    /// Whether a task was planned there: it is likely to be tried again.
    has_tasks: bool,
}

/// The queue instances that are being filled.
///
/// Invariant: only tasks were planned since they were looked at, each of them with [`Filling::planned`].
#[derive(Clone, Debug, Default)]
pub struct Filling(Vec<Filled>);

impl Filling {
    /// What a queue instance has left, as far as that was looked at.
    pub fn headroom(&mut self, instance: &QueueInstanceName) -> &mut Headroom {
        let known = self.0.iter().rposition(|filled| filled.instance == *instance);
        let at = known.unwrap_or_else(|| self.begin(instance));
        &mut self.0[at].headroom
    }

    /// What a queue instance is known to have left.
    pub fn known(&self, instance: &QueueInstanceName) -> Option<&Headroom> {
        self.0.iter().rfind(|filled| filled.instance == *instance).map(|filled| &filled.headroom)
    }

    /// Makes room for another queue instance, and says where.
    fn begin(&mut self, instance: &QueueInstanceName) -> usize {
        let mut headroom = Headroom::default();
        if let Some(tried) = self.0.pop_if(|last| !last.has_tasks) {
            headroom = tried.headroom;
            headroom.clear();
        } else if self.0.len() == MOST_FILLING {
            self.0.remove(0);
        }
        self.0.push(Filled { instance: instance.clone(), headroom, has_tasks: false });
        self.0.len() - 1
    }

    /// A task with these numbers was planned on these slots; `only_slot` if that is one, without a parallel environment.
    pub fn planned(&mut self, granted: &[Granted], only_slot: Option<&QueueInstanceName>, tally: &Tally) {
        self.0.retain_mut(|filled| {
            if granted.iter().all(|granted| granted.instance.host != filled.instance.host) {
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

    /// Something else happened than that a task was planned.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}
