//! Objects that C programs hold: a handle is a number that was never given out before, so that a
//! stale one is found and not followed.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The distance of two handles. They look like aligned pointers, and none is null.
const STEP: usize = 16;

/// Objects by their handles.
pub struct Handles<T> {
    inner: Mutex<HandleTable<T>>,
}

struct HandleTable<T> {
    last: usize,
    objects: HashMap<usize, T>,
}

impl<T> Handles<T> {
    /// No objects.
    pub fn new() -> Self {
        let inner = HandleTable {
            last: 0,
            objects: HashMap::new(),
        };
        Self {
            inner: Mutex::new(inner),
        }
    }

    /// Stores an object and returns its handle.
    pub fn add(&self, object: T) -> usize {
        let mut table = self.lock();
        table.last += STEP;
        let handle = table.last;
        table.objects.insert(handle, object);
        handle
    }

    /// Takes an object out. `None` for a handle that names nothing.
    pub fn remove(&self, handle: usize) -> Option<T> {
        self.lock().objects.remove(&handle)
    }

    /// Gives an object to `work`. `None` for a handle that names nothing.
    pub fn with<R>(&self, handle: usize, work: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.lock().objects.get_mut(&handle).map(work)
    }

    fn lock(&self) -> MutexGuard<'_, HandleTable<T>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An opaque list of strings that is read once from its begin to its end.
pub struct StringList {
    all: Vec<String>,
    next: usize,
}

impl StringList {
    /// A list that is not read yet.
    pub fn new(all: Vec<String>) -> Self {
        Self { all, next: 0 }
    }

    /// Returns the next string; `None` at the end.
    pub fn take_next(&mut self) -> Option<String> {
        let next = self.all.get(self.next).cloned();
        self.next += usize::from(next.is_some());
        next
    }

    /// The number of all strings.
    pub fn count(&self) -> usize {
        self.all.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_names_nothing_after_its_object_is_gone() {
        let handles = Handles::new();
        let (one, two) = (handles.add(1), handles.add(2));
        assert!(one != 0 && one != two);
        assert_eq!((handles.remove(one), handles.remove(one)), (Some(1), None));
        assert_eq!(handles.with(one, |value| *value), None);
        assert_eq!(handles.with(two, |value| *value), Some(2));
        assert_ne!(handles.add(3), one);
    }
}
