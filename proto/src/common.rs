//! Parts of descriptions that many have in common: equal ones can share one place in memory.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::cmp::Ordering;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// A value that may be shared with others. Whoever changes it gets one of its own first.
#[derive(Debug, Default)]
pub struct Common<T>(Arc<T>);

impl<T> Common<T> {
    /// Whether both are one and the same, not only equal.
    pub fn is_shared_with(&self, other: &Common<T>) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T> Clone for Common<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> From<T> for Common<T> {
    fn from(value: T) -> Self {
        Self(Arc::new(value))
    }
}

impl<T> Deref for Common<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Clone> DerefMut for Common<T> {
    fn deref_mut(&mut self) -> &mut T {
        Arc::make_mut(&mut self.0)
    }
}

impl<T: PartialEq> PartialEq for Common<T> {
    fn eq(&self, other: &Self) -> bool {
        self.is_shared_with(other) || self.0 == other.0
    }
}

impl<T: Eq> Eq for Common<T> {}

impl<T: Ord> PartialOrd for Common<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: Ord> Ord for Common<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        if self.is_shared_with(other) {
            Ordering::Equal
        } else {
            self.0.cmp(&other.0)
        }
    }
}

/// As the value itself.
impl<T: Serialize> Serialize for Common<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// As the value itself; with nobody else yet.
impl<'de, T: Deserialize<'de>> Deserialize<'de> for Common<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(Self::from)
    }
}
