//! Small numbers for queue instances, so that a set of them is a row of bits, and a list of them an
//! array.

use crate::collections::by_host::ByHost;
use proto::id::{HostName, QueueInstanceName};

/// The number of a queue instance. It is used again once the instance is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct InstanceId(u32);

impl InstanceId {
    /// The number as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The queue instances of one host, in the order of their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostInstances {
    /// Their names.
    pub instances: Vec<QueueInstanceName>,
    /// Their numbers, in the same order.
    pub ids: Vec<InstanceId>,
}

/// All queue instances.
#[derive(Clone, Debug, Default)]
pub struct InstanceIds {
    sites: ByHost<HostInstances>,
    free: Vec<InstanceId>,
    count: u32,
}

impl InstanceIds {
    /// Sets the queue instances of a host. They are ordered by name, and an instance that stays
    /// keeps its number.
    ///
    /// Returns the numbers of instances that are gone. Others may get these from the next call on.
    pub fn set(&mut self, host: &HostName, mut instances: Vec<QueueInstanceName>) -> Vec<InstanceId> {
        instances.sort();
        let old = self.sites.remove(host).unwrap_or_default();
        let of_old = |instance: &QueueInstanceName| old.instances.iter().position(|known| known == instance);
        let kept: Vec<Option<InstanceId>> = instances
            .iter()
            .map(|instance| of_old(instance).map(|index| old.ids[index]))
            .collect();
        let gone: Vec<InstanceId> = old
            .ids
            .iter()
            .copied()
            .filter(|id| !kept.contains(&Some(*id)))
            .collect();
        let ids: Vec<InstanceId> = kept.into_iter().map(|id| id.unwrap_or_else(|| self.next())).collect();
        if !instances.is_empty() {
            self.sites.insert(host.clone(), HostInstances { instances, ids });
        }
        self.free.extend(&gone);
        gone
    }

    /// The queue instances of a host, if it has any.
    pub fn site(&self, host: &HostName) -> Option<&HostInstances> {
        self.sites.get(host)
    }

    /// The number of a queue instance, if it is there.
    pub fn id(&self, instance: &QueueInstanceName) -> Option<InstanceId> {
        let HostInstances { instances, ids } = self.site(&instance.host)?;
        let at = instances.iter().position(|known| known == instance)?;
        ids.get(at).copied()
    }

    /// All hosts that have queue instances, in the order of their names.
    pub fn sites(&self) -> impl Iterator<Item = (&HostName, &HostInstances)> {
        self.sites.iter()
    }

    /// One more than the largest number.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    fn next(&mut self) -> InstanceId {
        self.free.pop().unwrap_or_else(|| {
            self.count += 1;
            InstanceId(self.count - 1)
        })
    }
}

/// A set of queue instances.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstanceSet {
    words: Vec<u64>,
}

impl InstanceSet {
    /// Takes one in.
    pub fn insert(&mut self, id: InstanceId) {
        let (word, bit) = position(id);
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= bit;
    }

    /// Removes an instance.
    pub fn remove(&mut self, id: InstanceId) {
        let (word, bit) = position(id);
        if let Some(word) = self.words.get_mut(word) {
            *word &= !bit;
        }
    }

    /// Whether the set contains an instance.
    pub fn contains(&self, id: InstanceId) -> bool {
        let (word, bit) = position(id);
        self.words.get(word).is_some_and(|word| word & bit != 0)
    }

    /// Removes all members of another set.
    pub fn remove_all(&mut self, other: &InstanceSet) {
        self.words
            .iter_mut()
            .zip(&other.words)
            .for_each(|(word, other)| *word &= !other);
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// Removes all instances.
    pub fn clear(&mut self) {
        self.words.fill(0);
    }
}

fn position(id: InstanceId) -> (usize, u64) {
    (id.index() / 64, 1 << (id.index() % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(names: &[&str]) -> Vec<QueueInstanceName> {
        names
            .iter()
            .map(|name| QueueInstanceName {
                queue: (*name).into(),
                host: "a".into(),
            })
            .collect()
    }

    #[test]
    fn an_instance_that_stays_keeps_its_number_and_others_get_what_is_free() {
        let mut ids = InstanceIds::default();
        assert_eq!(ids.set(&"a".into(), named(&["z", "x"])), []);
        let before = ids.site(&"a".into()).unwrap().clone();
        assert_eq!(before.instances, named(&["x", "z"]));
        let gone = ids.set(&"a".into(), named(&["y", "z"]));
        assert_eq!(gone, [before.ids[0]]);
        let after = ids.site(&"a".into()).unwrap();
        assert_eq!(after.ids[1], before.ids[1]);
        assert_ne!(after.ids[0], before.ids[0], "what went is free from the next call on");
        ids.set(
            &"b".into(),
            vec![QueueInstanceName {
                queue: "x".into(),
                host: "b".into(),
            }],
        );
        assert_eq!(ids.site(&"b".into()).unwrap().ids, gone);
        assert_eq!(ids.len(), 3);
        ids.set(&"b".into(), Vec::new());
        assert_eq!(ids.sites().count(), 1);
    }

    #[test]
    fn a_set_holds_what_was_put_in() {
        let mut set = InstanceSet::default();
        let (near, far) = (InstanceId(3), InstanceId(200));
        assert!(!set.contains(far));
        set.insert(near);
        set.insert(far);
        assert!(set.contains(near) && set.contains(far) && !set.contains(InstanceId(4)));
        let mut other = InstanceSet::default();
        other.insert(far);
        set.remove_all(&other);
        assert!(set.contains(near) && !set.contains(far));
        set.remove(near);
        assert!(!set.contains(near));
        other.clear();
        assert!(!other.contains(far));
    }
}
