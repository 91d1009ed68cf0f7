//! Numbers by a seed, so that a run can be repeated.

/// A stream of numbers: those of splitmix64.
pub struct Seed(u64);

impl Seed {
    /// A stream; `GRIDWRIGHT_SEED` takes the place of `default`.
    pub fn new(default: u64) -> Self {
        let given = std::env::var("GRIDWRIGHT_SEED").ok().and_then(|seed| seed.parse().ok());
        Self(given.unwrap_or(default))
    }

    /// The next number below `bound`, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    /// A place in a list of this length; 0 if it is empty.
    pub fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len.max(1) as u64)).expect("lengths are small")
    }

    /// So many bytes.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count)
            .map(|_| u8::try_from(self.below(256)).expect("a byte"))
            .collect()
    }
}
