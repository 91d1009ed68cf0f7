//! How usage decays: to a half in each half-life, exactly, in integers (ALGORITHMS.md section
//! 11.1).
//!
//! Whole half-lives are shifts. The rest of one is a sum of `1/2^k` of it, and each of these has
//! its factor `2^(-1/2^k)` in a table of square roots. So every machine gets the same numbers, and
//! a replay those of the first time.

use proto::policy::SchedulerConf;
use proto::time::Tick;

/// The milliseconds of an hour and of a minute: the units of `halftime` and of
/// `halflife_decay_list`.
const HOUR_MS: u64 = 3_600_000;
const MINUTE_MS: u64 = 60_000;

/// Bits behind the point of a factor, and how many parts of a half-life are told apart.
const BITS: usize = 64;

/// What becomes of one kind of usage after it has been charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecayRule {
    /// It stays.
    Never,
    /// It is halved in each time of so many milliseconds, more than 0.
    HalfLife(u64),
    /// It counts while its job runs, and no longer.
    WithJob,
}

/// The rules of all kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decay {
    /// Of processor time.
    pub cpu: DecayRule,
    /// Of memory.
    pub mem: DecayRule,
    /// Of input and output.
    pub io: DecayRule,
}

impl Decay {
    /// The rules of a scheduler configuration: `halflife_decay_list` for the kinds that it names,
    /// else `halftime`.
    pub fn from_conf(conf: &SchedulerConf) -> Self {
        let halftime = match u64::from(conf.halftime) {
            0 => DecayRule::Never,
            hours => DecayRule::HalfLife(hours * HOUR_MS),
        };
        let of = |kind: &str| {
            let listed = conf.halflife_decay_list.0.iter().rev().find(|(name, _)| name == kind);
            match listed.map_or(0, |(_, minutes)| *minutes) {
                0 => halftime,
                minutes => u64::try_from(minutes).map_or(DecayRule::WithJob, |minutes| {
                    DecayRule::HalfLife(minutes.saturating_mul(MINUTE_MS))
                }),
            }
        };
        Self {
            cpu: of("cpu"),
            mem: of("mem"),
            io: of("io"),
        }
    }

    /// The shortest half-life, in milliseconds; none if nothing is halved.
    pub fn shortest_ms(&self) -> Option<u64> {
        let half_life = |fading: DecayRule| match fading {
            DecayRule::HalfLife(ms) => Some(ms),
            DecayRule::Never | DecayRule::WithJob => None,
        };
        [self.cpu, self.mem, self.io].into_iter().filter_map(half_life).min()
    }
}

/// What is left of an amount after a time, rounded down. Halving with a half-life of 0 leaves
/// nothing.
pub fn decayed(amount: u128, from: Tick, to: Tick, half_life_ms: u64) -> u128 {
    let elapsed_ms = to.since_ms(from);
    if elapsed_ms == 0 || amount == 0 {
        return amount;
    }
    let (Some(halvings), Some(rest)) = (
        elapsed_ms.checked_div(half_life_ms),
        elapsed_ms.checked_rem(half_life_ms),
    ) else {
        return 0;
    };
    let Some(whole) = u32::try_from(halvings)
        .ok()
        .and_then(|halvings| amount.checked_shr(halvings))
    else {
        return 0;
    };
    part_of(rest, half_life_ms).map_or(whole, |factor| times(whole, factor))
}

/// What is left of one after a part of a half-life, with 64 bits behind the point; none for one
/// itself.
fn part_of(rest_ms: u64, half_life_ms: u64) -> Option<u64> {
    let fraction = (u128::from(rest_ms) << BITS) / u128::from(half_life_ms);
    let is_part = |part: &usize| fraction >> (BITS - 1 - part) & 1 == 1;
    let roots = (0..BITS).filter(is_part).map(|part| ROOTS[part]);
    roots.reduce(|product, root| ((u128::from(product) * u128::from(root)) >> BITS) as u64)
}

/// A number times a factor below one, rounded down.
fn times(number: u128, factor: u64) -> u128 {
    let (high, low, factor) = (number >> BITS, number & u128::from(u64::MAX), u128::from(factor));
    high * factor + ((low * factor) >> BITS)
}

/// `2^(-1/2)`, `2^(-1/4)`, `2^(-1/8)` and so on, with 64 bits behind the point, rounded down.
const ROOTS: [u64; BITS] = roots();

const fn roots() -> [u64; BITS] {
    let mut roots = [0; BITS];
    // A half; its root, the root of that, and so on.
    let mut last: u128 = 1 << (BITS - 1);
    let mut index = 0;
    while index < BITS {
        last = (last << BITS).isqrt();
        roots[index] = last as u64;
        index += 1;
    }
    roots
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HOUR: u64 = HOUR_MS;

    fn after(amount: u128, ms: u64, half_life_ms: u64) -> u128 {
        decayed(amount, Tick(5), Tick(5 + ms), half_life_ms)
    }

    #[test]
    fn the_table_holds_the_roots_of_a_half() {
        for (index, root) in ROOTS.iter().enumerate() {
            let exact = 0.5f64.powf(0.5f64.powi(i32::try_from(index).unwrap() + 1));
            let ours = *root as f64 / 2f64.powi(64);
            assert!((ours - exact).abs() < 1e-15, "root {index}: {ours} and {exact}");
        }
    }

    #[test]
    fn half_is_left_after_a_half_life() {
        let million = 1_000_000_000_000;
        for half_life in [1, 600_000, HOUR, 168 * HOUR, u64::from(u32::MAX) * HOUR] {
            assert_eq!(after(million, half_life, half_life), million / 2);
            assert_eq!(after(million, half_life.saturating_mul(2), half_life), million / 4);
        }
        // An eighth of a half-life after three halvings.
        assert_eq!(after(million, 3 * HOUR + HOUR / 8, HOUR), 114_625_505_400);
        assert_eq!(after(million, 0, HOUR), million);
        assert_eq!(after(7, u64::MAX - 5, 1), 0);
        assert_eq!(after(u128::MAX, 128 * HOUR, HOUR), 0);
    }

    /// The linear form of Grid Engine leaves 0.499988, 0.497987 and 0.48756 after one half-life of
    /// 168 h, 1 h and 10 min. Ours leaves a half; for a minute both differ by less than the numbers
    /// tell.
    #[test]
    fn the_linear_form_of_grid_engine_is_a_little_faster() {
        for (minutes, linear) in [
            (10_080_u64, 0.999_931_235_4),
            (60, 0.988_447_547_0),
            (10, 0.930_685_281_9),
        ] {
            let ours = after(1_000_000_000_000, MINUTE_MS, minutes * MINUTE_MS) as f64 / 1e12;
            let difference = ours - linear;
            let minute = 2f64.ln() / minutes as f64;
            assert!(
                difference > 0.0 && difference < minute * minute / 1.9,
                "{minutes} min: {ours} {linear}"
            );
        }
    }

    #[test]
    fn rules_come_of_halftime_and_of_the_list() {
        let conf = |halftime, list: &str| SchedulerConf {
            halftime,
            halflife_decay_list: list.parse().unwrap(),
            ..SchedulerConf::template()
        };
        let all = |fading| Decay {
            cpu: fading,
            mem: fading,
            io: fading,
        };
        assert_eq!(
            Decay::from_conf(&conf(168, "none")),
            all(DecayRule::HalfLife(168 * HOUR))
        );
        assert_eq!(Decay::from_conf(&conf(0, "none")), all(DecayRule::Never));
        let listed = Decay::from_conf(&conf(2, "cpu=10:mem=-1:io=0"));
        assert_eq!(
            listed,
            Decay {
                cpu: DecayRule::HalfLife(600_000),
                mem: DecayRule::WithJob,
                io: DecayRule::HalfLife(2 * HOUR)
            }
        );
        assert_eq!(listed.shortest_ms(), Some(600_000));
        assert_eq!(all(DecayRule::Never).shortest_ms(), None);
    }

    proptest! {
        #[test]
        fn it_does_not_matter_in_how_many_steps(amount in 0..1u128 << 100, half_life in 1_000..1u64 << 44, times in prop::collection::vec(0..1u64 << 44, 1..6)) {
            let whole = after(amount, times.iter().sum(), half_life);
            let stepped = times.iter().fold(amount, |left, ms| after(left, *ms, half_life));
            // Each step rounds down by less than one; the factor of a step is exact to 57 bits.
            let bound = (times.len() as u128 + 1) * (1 + (amount >> 57));
            prop_assert!(whole.abs_diff(stepped) <= bound, "{whole} {stepped}");
        }

        #[test]
        fn it_only_falls(amount in any::<u128>(), half_life in 1..u64::MAX, early in any::<u32>(), late in any::<u32>()) {
            let (early, late) = (u64::from(early.min(late)), u64::from(early.max(late)));
            let early_bound = amount >> 57;
            prop_assert!(after(amount, late, half_life) <= after(amount, early, half_life).saturating_add(early_bound));
            prop_assert!(after(amount, early, half_life) <= amount);
        }
    }
}
