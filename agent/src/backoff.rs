//! Growing pauses between attempts, with jitter, so that the hosts of a cell do not return to their
//! master in one wave.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// Pauses that double from a first to a last one.
#[derive(Clone, Debug)]
pub struct Backoff {
    first: Duration,
    last: Duration,
    next: Duration,
}

impl Backoff {
    /// Pauses from `first` to `last`.
    pub fn new(first: Duration, last: Duration) -> Self {
        Self {
            first,
            last,
            next: first,
        }
    }

    /// Begins again with the first pause.
    pub fn reset(&mut self) {
        self.next = self.first;
    }

    /// The next pause: between half of and all of what doubling gives.
    pub fn pause(&mut self) -> Duration {
        let whole = self.next;
        self.next = (whole * 2).min(self.last);
        // The keys of a RandomState are random: there is no need for a generator of our own.
        let random = u32::try_from(RandomState::new().hash_one(0_u8) >> 40).unwrap_or(0);
        whole / 2 + (whole / 2).mul_f64(f64::from(random) / f64::from(1 << 24))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_with_jitter_up_to_the_last_and_begin_again() {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_millis(300));
        for whole in [100, 200, 300, 300] {
            let pause = backoff.pause();
            assert!(
                pause >= Duration::from_millis(whole / 2) && pause <= Duration::from_millis(whole),
                "{pause:?}"
            );
        }
        backoff.reset();
        assert!(backoff.pause() <= Duration::from_millis(100));
    }
}
