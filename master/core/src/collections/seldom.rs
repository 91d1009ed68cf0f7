//! Collections that most jobs have nothing in: these take one pointer until something is put in.

use crate::collections::paged::PagedMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::{Deref, DerefMut};

/// A collection that is empty as a rule. What was emptied again is equal to what was never filled.
#[derive(Clone, Debug)]
pub struct SparseBox<T>(Option<Box<T>>);

/// A collection that can be empty at no cost.
pub trait Collection: Default + 'static {
    /// The empty one.
    const EMPTY: &'static Self;
}

impl<K: 'static, V: 'static> Collection for BTreeMap<K, V> {
    const EMPTY: &'static Self = &BTreeMap::new();
}

impl<K: 'static, V: 'static, P: 'static> Collection for PagedMap<K, V, P> {
    const EMPTY: &'static Self = &PagedMap::new();
}

impl<T: 'static> Collection for BTreeSet<T> {
    const EMPTY: &'static Self = &BTreeSet::new();
}

impl<T: 'static> Collection for VecDeque<T> {
    const EMPTY: &'static Self = &VecDeque::new();
}

impl<T> Default for SparseBox<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Collection> Deref for SparseBox<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_deref().unwrap_or(T::EMPTY)
    }
}

impl<T: Collection> DerefMut for SparseBox<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.get_or_insert_default()
    }
}

impl<T: Collection> SparseBox<T> {
    /// The collection itself.
    pub fn into_inner(self) -> T {
        self.0.map(|collection| *collection).unwrap_or_default()
    }
}

impl<'a, T: Collection> IntoIterator for &'a SparseBox<T>
where
    &'a T: IntoIterator,
{
    type Item = <&'a T as IntoIterator>::Item;
    type IntoIter = <&'a T as IntoIterator>::IntoIter;

    fn into_iter(self) -> Self::IntoIter {
        (&**self).into_iter()
    }
}

impl<T: Collection + PartialEq> From<T> for SparseBox<T> {
    fn from(collection: T) -> Self {
        Self((collection != *T::EMPTY).then(|| Box::new(collection)))
    }
}

impl<T: Collection + PartialEq> PartialEq for SparseBox<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Collection + Eq> Eq for SparseBox<T> {}

/// As the collection itself.
impl<T: Collection + Serialize> Serialize for SparseBox<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

/// As the collection itself.
impl<'de, T: Collection + PartialEq + Deserialize<'de>> Deserialize<'de> for SparseBox<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(Self::from)
    }
}
