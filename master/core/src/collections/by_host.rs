//! A map by host that is looked up often: a host is found by a digest of its name, and hosts are
//! walked in the order of their names.

use hashbrown::HashTable;
use proto::id::HostName;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Index;

/// What something is found by: a host, or the text of its name.
pub trait HostKey {
    /// The digest of the host's name.
    fn digest(&self) -> u64;

    /// Whether it is this host.
    fn is(&self, host: &HostName) -> bool;
}

impl HostKey for HostName {
    fn digest(&self) -> u64 {
        self.digest()
    }

    fn is(&self, host: &HostName) -> bool {
        self == host
    }
}

impl HostKey for str {
    fn digest(&self) -> u64 {
        HostName::digest_of(self)
    }

    fn is(&self, host: &HostName) -> bool {
        self == host.as_str()
    }
}

/// A map by host.
///
/// Invariants: `order` leads to every slot that is not free; `table` holds exactly the same
/// numbers, each at the digest of its host.
#[derive(Clone)]
pub struct ByHost<V> {
    slots: Vec<Option<(HostName, V)>>,
    free: Vec<u32>,
    table: HashTable<u32>,
    order: BTreeMap<HostName, u32>,
}

impl<V> ByHost<V> {
    /// Nothing yet.
    pub const fn new() -> ByHost<V> {
        ByHost {
            slots: Vec::new(),
            free: Vec::new(),
            table: HashTable::new(),
            order: BTreeMap::new(),
        }
    }

    /// How many hosts there are.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    #[inline]
    fn find(&self, host: &(impl HostKey + ?Sized)) -> Option<usize> {
        let is_meant = |at: &u32| {
            self.slots[*at as usize]
                .as_ref()
                .is_some_and(|(known, _)| host.is(known))
        };
        self.table.find(host.digest(), is_meant).map(|at| *at as usize)
    }

    /// What there is of a host.
    #[inline]
    pub fn get(&self, host: &(impl HostKey + ?Sized)) -> Option<&V> {
        self.slots[self.find(host)?].as_ref().map(|(_, value)| value)
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, host: &(impl HostKey + ?Sized)) -> Option<&mut V> {
        let at = self.find(host)?;
        self.slots[at].as_mut().map(|(_, value)| value)
    }

    /// Whether there is anything of a host.
    pub fn contains_key(&self, host: &(impl HostKey + ?Sized)) -> bool {
        self.find(host).is_some()
    }

    /// Puts a value in, and returns the one that was there.
    pub fn insert(&mut self, host: HostName, value: V) -> Option<V> {
        if let Some(known) = self.get_mut(&host) {
            return Some(std::mem::replace(known, value));
        }
        self.add(host, value);
        None
    }

    /// What there is of a host, to be changed, with nothing special put in where there was nothing.
    pub fn or_default(&mut self, host: &HostName) -> &mut V
    where
        V: Default,
    {
        let at = self.find(host).unwrap_or_else(|| self.add(host.clone(), V::default()));
        self.slots[at]
            .as_mut()
            .map(|(_, value)| value)
            .expect("what was found, or added, is there")
    }

    fn add(&mut self, host: HostName, value: V) -> usize {
        let at = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            u32::try_from(self.slots.len() - 1).expect("hosts are counted in 32 bits")
        });
        self.slots[at as usize] = Some((host.clone(), value));
        let slots = &self.slots;
        let digest_at = |at: &u32| slots[*at as usize].as_ref().map_or(0, |(host, _)| host.digest());
        self.table.insert_unique(host.digest(), at, digest_at);
        self.order.insert(host, at);
        at as usize
    }

    /// Takes out what there is of a host.
    pub fn remove(&mut self, host: &HostName) -> Option<V> {
        let at = self.order.remove(host)?;
        if let Ok(entry) = self.table.find_entry(host.digest(), |known| *known == at) {
            entry.remove();
        }
        self.free.push(at);
        self.slots[at as usize].take().map(|(_, value)| value)
    }

    /// Everything, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&HostName, &V)> {
        self.order
            .values()
            .filter_map(|at| self.slots[*at as usize].as_ref())
            .map(|(host, value)| (host, value))
    }

    /// The hosts, by name.
    pub fn keys(&self) -> impl Iterator<Item = &HostName> {
        self.order.keys()
    }

    /// What there is of the hosts, by name.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }
}

impl<V> Default for ByHost<V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V, N: HostKey + ?Sized> Index<&N> for ByHost<V> {
    type Output = V;

    fn index(&self, host: &N) -> &V {
        self.get(host).expect("the host is there")
    }
}

/// The same hosts with the same are enough.
impl<V: PartialEq> PartialEq for ByHost<V> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl<V: fmt::Debug> fmt::Debug for ByHost<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<V> FromIterator<(HostName, V)> for ByHost<V> {
    fn from_iter<I: IntoIterator<Item = (HostName, V)>>(entries: I) -> Self {
        let mut all = Self::new();
        entries
            .into_iter()
            .for_each(|(host, value)| drop(all.insert(host, value)));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_holds_what_a_tree_holds(steps in prop::collection::vec((0u8..4, 0u32..60), 1..400)) {
            let (mut hosts, mut known) = (ByHost::new(), BTreeMap::new());
            for (round, (what, number)) in (0u32..).zip(steps) {
                // Some names are longer than what is kept of them beside the text.
                let name = format!("node{number}{}", if number % 3 == 0 { ".cluster.example.org" } else { "" });
                let host = HostName::new(&name);
                match what {
                    0 => prop_assert_eq!(hosts.insert(host.clone(), round), known.insert(host, round)),
                    1 => prop_assert_eq!(hosts.remove(&host), known.remove(&host)),
                    2 => *hosts.or_default(&host) += round,
                    _ => {
                        prop_assert_eq!(hosts.get(&host), known.get(&host));
                        prop_assert_eq!(hosts.get(name.as_str()), known.get(&host));
                        prop_assert_eq!(hosts.get_mut(&host), known.get_mut(&host));
                    }
                }
                if what == 2 {
                    *known.entry(HostName::new(&name)).or_default() += round;
                }
                prop_assert_eq!((hosts.len(), hosts.is_empty()), (known.len(), known.is_empty()));
            }
            prop_assert!(hosts.iter().eq(&known));
            prop_assert!(hosts.keys().eq(known.keys()) && hosts.values().eq(known.values()));
            let again: ByHost<u32> = known.into_iter().rev().collect();
            prop_assert_eq!(&hosts, &again, "in whatever order they came");
        }
    }
}
