//! The only source of chance: xoshiro256** on a seed stretched by splitmix64. The same seed gives
//! the same run on every machine.

/// A stream of numbers that a seed determines.
#[derive(Clone, Debug)]
pub(super) struct Random([u64; 4]);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = state;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ (mixed >> 31)
        };
        Self([next(), next(), next(), next()])
    }

    fn next(&mut self) -> u64 {
        let Self([a, b, c, d]) = self;
        let result = b.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        result
    }

    /// A number below `bound`; 0 if there is none.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        // The bias of the remainder is far below what a test could notice.
        if bound == 0 { 0 } else { self.next() % bound }
    }

    /// A number from `least` to `most`, both included.
    pub(super) fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }

    /// True so many times in a thousand.
    pub(super) fn chance(&mut self, per_mille: u64) -> bool {
        self.below(1000) < per_mille
    }

    /// A wait whose mean is about `mean`: mostly short, now and then long.
    pub(super) fn around(&mut self, mean: u64) -> u64 {
        match self.below(10) {
            0..=5 => self.between(0, mean),
            6..=8 => self.between(mean / 2, mean * 2),
            _ => self.between(mean, mean * 5),
        }
    }

    pub(super) fn pick<T: Clone>(&mut self, from: &[T]) -> Option<T> {
        if from.is_empty() {
            None
        } else {
            Some(from[self.below(from.len() as u64) as usize].clone())
        }
    }

    pub(super) fn entropy(&mut self) -> u128 {
        (u128::from(self.next()) << 64) | u128::from(self.next())
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn a_seed_gives_the_same_numbers_always() {
        let draw = |seed| {
            let mut random = Random::new(seed);
            (0..100).map(|_| random.between(3, 9)).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        assert!(draw(3).iter().all(|number| (3..=9).contains(number)));
    }
}
