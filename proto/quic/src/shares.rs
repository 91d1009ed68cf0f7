//! A limit with shares: so many in all, so many for one user, so that no user can take all there
//! is.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Places of which each user may have a share. Clones are the same places.
#[derive(Clone, Debug)]
pub struct Shares {
    all: usize,
    each: usize,
    taken: Arc<Mutex<ShareCounts>>,
}

/// Invariant: `all` is the sum of `by_user`, which has no zeros.
#[derive(Debug, Default)]
struct ShareCounts {
    all: usize,
    by_user: BTreeMap<u32, usize>,
}

/// One place, free again when this is dropped.
#[derive(Debug)]
pub struct Share {
    uid: u32,
    taken: Arc<Mutex<ShareCounts>>,
}

/// Why there is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShareRefusal {
    /// All are taken.
    All {
        /// How many there are.
        limit: usize,
    },
    /// This user has a full share.
    Each {
        /// How many one user may have.
        limit: usize,
    },
}

impl Shares {
    /// `all` places, of which one user gets `each` at most.
    pub fn new(all: usize, each: usize) -> Self {
        Self {
            all,
            each,
            taken: Arc::default(),
        }
    }

    /// Takes a place for a user.
    ///
    /// # Errors
    /// As [`ShareRefusal`].
    pub fn take(&self, uid: u32) -> Result<Share, ShareRefusal> {
        let mut taken = lock(&self.taken);
        let own = taken.by_user.get(&uid).copied().unwrap_or(0);
        if own >= self.each {
            return Err(ShareRefusal::Each { limit: self.each });
        }
        if taken.all >= self.all {
            return Err(ShareRefusal::All { limit: self.all });
        }
        taken.all += 1;
        taken.by_user.insert(uid, own + 1);
        Ok(Share {
            uid,
            taken: self.taken.clone(),
        })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut taken = lock(&self.taken);
        taken.all -= 1;
        let own = taken.by_user.get(&self.uid).map_or(0, |own| own - 1);
        if own == 0 {
            taken.by_user.remove(&self.uid);
        } else {
            taken.by_user.insert(self.uid, own);
        }
    }
}

fn lock(taken: &Mutex<ShareCounts>) -> std::sync::MutexGuard<'_, ShareCounts> {
    taken.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_user_gets_a_share_and_leaves_the_rest_to_others() {
        let shares = Shares::new(3, 2);
        let own = [shares.take(1).unwrap(), shares.take(1).unwrap()];
        assert_eq!(shares.take(1).unwrap_err(), ShareRefusal::Each { limit: 2 });
        let _other = shares.take(2).unwrap();
        assert_eq!(shares.take(2).unwrap_err(), ShareRefusal::All { limit: 3 });
        drop(own);
        let _again = shares.take(1).unwrap();
        assert_eq!(lock(&shares.taken).by_user, BTreeMap::from([(1, 1), (2, 1)]));
    }
}
