//! How long the random tests of this crate run.

use proptest::test_runner::Config;

/// So many cases where `GRIDWRIGHT_TESTS_FULL` is set, as in `.ci/run`; else a quarter of them, for
/// who waits at a terminal. Each run takes other cases.
pub fn cases(full: u32) -> Config {
    let is_full = std::env::var_os("GRIDWRIGHT_TESTS_FULL").is_some();
    Config::with_cases(if is_full { full } else { full.div_ceil(4) })
}
