//! An ordered map for keys that rise as a rule, as the numbers of jobs do: it has no more room than it needs, where the leaves of a
//! B-tree that only grows at its end stay half empty.

use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Bound, Index};

/// The most entries of a page.
const PAGE: usize = 64;

/// An ordered map in pages.
///
/// Invariants: no page is empty; its entries rise; none is below the key under which the page is kept, and all are below that of the
/// next page; `len` is how many there are.
#[derive(Clone)]
pub struct Paged<K, V> {
    pages: BTreeMap<K, Vec<(K, V)>>,
    len: usize,
}

impl<K: Ord + Copy, V> Paged<K, V> {
    /// Nothing yet.
    pub const fn new() -> Paged<K, V> {
        Paged { pages: BTreeMap::new(), len: 0 }
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The value of a key.
    pub fn get(&self, key: &K) -> Option<&V> {
        let (_, page) = self.pages.range(..=key).next_back()?;
        let at = find(page, key).ok()?;
        Some(&page[at].1)
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let (_, page) = self.pages.range_mut(..=key).next_back()?;
        let at = find(page, key).ok()?;
        Some(&mut page[at].1)
    }

    /// Whether there is a value of a key.
    pub fn contains_key(&self, key: &K) -> bool {
        self.get(key).is_some()
    }

    /// Puts a value in, and returns the one that was there.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let Some((_, page)) = self.pages.range_mut(..=key).next_back() else {
            self.pages.insert(key, vec![(key, value)]);
            self.len += 1;
            return None;
        };
        let at = match find(page, &key) {
            Ok(at) => return Some(std::mem::replace(&mut page[at].1, value)),
            Err(at) => at,
        };
        self.len += 1;
        if page.len() < PAGE {
            page.insert(at, (key, value));
        } else if at == PAGE {
            self.pages.insert(key, vec![(key, value)]);
        } else {
            let mut upper = page.split_off(PAGE / 2);
            if at <= PAGE / 2 {
                page.insert(at, (key, value));
            } else {
                upper.insert(at - PAGE / 2, (key, value));
            }
            self.pages.insert(upper[0].0, upper);
        }
        None
    }

    /// Takes a value out.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let (first, page) = self.pages.range_mut(..=key).next_back()?;
        let at = find(page, key).ok()?;
        let (first, (_, value)) = (*first, page.remove(at));
        self.len -= 1;
        if page.is_empty() {
            self.pages.remove(&first);
        } else if page.len() * 4 <= page.capacity() {
            page.shrink_to(page.len() * 2);
        }
        Some(value)
    }

    /// The first entry.
    pub fn first(&self) -> Option<(&K, &V)> {
        let (_, page) = self.pages.first_key_value()?;
        page.first().map(|(key, value)| (key, value))
    }

    /// The last entry.
    pub fn last(&self) -> Option<(&K, &V)> {
        let (_, page) = self.pages.last_key_value()?;
        page.last().map(|(key, value)| (key, value))
    }

    /// The first entry after a key, which need not be there.
    pub fn after(&self, key: &K) -> Option<(&K, &V)> {
        let here = self.pages.range(..=key).next_back().and_then(|(_, page)| {
            let at = page.partition_point(|(known, _)| known <= key);
            page.get(at)
        });
        let next =
            || self.pages.range((Bound::Excluded(key), Bound::Unbounded)).next().and_then(|(_, page)| page.first());
        here.or_else(next).map(|(key, value)| (key, value))
    }

    /// All entries, rising.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&K, &V)> {
        self.pages.values().flatten().map(|(key, value)| (key, value))
    }

    /// All entries, rising, their values to be changed.
    pub fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = (&K, &mut V)> {
        self.pages.values_mut().flatten().map(|(key, value)| (&*key, value))
    }

    /// All keys, rising.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &K> {
        self.iter().map(|(key, _)| key)
    }

    /// All values, by rising keys.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }

    /// All values, by rising keys, to be changed.
    pub fn values_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut V> {
        self.iter_mut().map(|(_, value)| value)
    }
}

fn find<K: Ord, V>(page: &[(K, V)], key: &K) -> Result<usize, usize> {
    page.binary_search_by(|(known, _)| known.cmp(key))
}

impl<K, V> Default for Paged<K, V> {
    fn default() -> Self {
        Self { pages: BTreeMap::new(), len: 0 }
    }
}

impl<K: Ord + Copy, V> Index<&K> for Paged<K, V> {
    type Output = V;

    fn index(&self, key: &K) -> &V {
        self.get(key).expect("the key is there")
    }
}

impl<K: Ord + Copy, V> FromIterator<(K, V)> for Paged<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut paged = Self::new();
        entries.into_iter().for_each(|(key, value)| drop(paged.insert(key, value)));
        paged
    }
}

/// Equal entries are enough, wherever pages begin.
impl<K: Ord + Copy, V: PartialEq> PartialEq for Paged<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.iter().eq(other.iter())
    }
}

impl<K: Ord + Copy + fmt::Debug, V: fmt::Debug> fmt::Debug for Paged<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<K: Ord + Copy + Serialize, V: Serialize> Serialize for Paged<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.len))?;
        self.iter().try_for_each(|(key, value)| map.serialize_entry(key, value))?;
        map.end()
    }
}

impl<'de, K: Ord + Copy + Deserialize<'de>, V: Deserialize<'de>> Deserialize<'de> for Paged<K, V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries<K, V>(PhantomData<(K, V)>);

        impl<'de, K: Ord + Copy + Deserialize<'de>, V: Deserialize<'de>> Visitor<'de> for Entries<K, V> {
            type Value = Paged<K, V>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut paged = Paged::new();
                while let Some((key, value)) = map.next_entry()? {
                    paged.insert(key, value);
                }
                Ok(paged)
            }
        }

        deserializer.deserialize_map(Entries(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(paged: &Paged<u32, u32>, known: &BTreeMap<u32, u32>) {
        assert_eq!(paged.iter().collect::<Vec<_>>(), known.iter().collect::<Vec<_>>());
        assert_eq!((paged.len(), paged.is_empty()), (known.len(), known.is_empty()));
        assert_eq!((paged.first(), paged.last()), (known.first_key_value(), known.last_key_value()));
        let starts: Vec<u32> = paged.pages.keys().copied().collect();
        for (at, (start, page)) in paged.pages.iter().enumerate() {
            let is_below = |key: u32| starts.get(at + 1).is_none_or(|next| key < *next);
            assert!(!page.is_empty() && page.len() <= PAGE, "{} entries", page.len());
            assert!(page.iter().all(|(key, _)| key >= start && is_below(*key)), "{start} of {starts:?}: {page:?}");
        }
    }

    proptest! {
        #[test]
        fn it_holds_what_a_tree_holds(steps in prop::collection::vec((0u8..4, 0u32..400), 1..800)) {
            let (mut paged, mut known) = (Paged::new(), BTreeMap::new());
            for (round, (what, key)) in (0u32..).zip(steps) {
                match what {
                    0 | 1 => prop_assert_eq!(paged.insert(key, round), known.insert(key, round)),
                    2 => prop_assert_eq!(paged.remove(&key), known.remove(&key)),
                    _ => {
                        prop_assert_eq!(paged.get(&key), known.get(&key));
                        prop_assert_eq!(paged.get_mut(&key), known.get_mut(&key));
                        let later = (Bound::Excluded(key), Bound::Unbounded);
                        prop_assert_eq!(paged.after(&key), known.range(later).next());
                    }
                }
            }
            check(&paged, &known);
        }
    }

    #[test]
    fn keys_that_rise_fill_their_pages() {
        let mut paged: Paged<u32, u32> = (0..1000).map(|key| (key, key)).collect();
        assert_eq!(paged.pages.len(), 1000usize.div_ceil(PAGE));
        assert!(paged.pages.values().rev().skip(1).all(|page| page.capacity() == PAGE), "nothing is left over");
        for key in 0..990 {
            paged.remove(&key);
        }
        check(&paged, &(990..1000).map(|key| (key, key)).collect());
        assert_eq!(paged.pages.len(), 1);
    }

    #[test]
    fn it_is_stored_as_any_map() {
        let (paged, known) =
            ((0..100).map(|key| (key, key)).collect::<Paged<u32, u32>>(), (0..100).map(|key| (key, key)).collect());
        let text = serde_json::to_string(&paged).unwrap();
        assert_eq!(text, serde_json::to_string::<BTreeMap<u32, u32>>(&known).unwrap());
        let back: Paged<u32, u32> = serde_json::from_str(&text).unwrap();
        assert_eq!(back, paged);
        assert_eq!(format!("{back:?}"), format!("{known:?}"));
        assert_eq!((back[&7], back.contains_key(&100)), (7, false));
    }
}
