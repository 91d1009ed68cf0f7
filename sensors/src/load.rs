//! The run-queue averages, from `/proc/loadavg`.

use crate::error::{FactError, read_text};
use procfs::prelude::*;
use std::path::Path;

/// How many processes ran or waited to run, on average over three spans of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadAverages {
    /// Over one minute: `load_short`.
    pub short: f64,
    /// Over five minutes: `load_medium` and `load_avg`.
    pub medium: f64,
    /// Over fifteen minutes: `load_long`.
    pub long: f64,
}

/// The run-queue averages of the host whose file system starts at `root`.
///
/// # Errors
/// Where `/proc/loadavg` is missing or not in the form of proc(5).
pub fn read_load(root: &Path) -> Result<LoadAverages, FactError> {
    parse_load(&read_text(root, "proc/loadavg")?)
}

/// The averages in the text of `/proc/loadavg`.
///
/// # Errors
/// Where the text is not in the form of proc(5).
pub fn parse_load(text: &str) -> Result<LoadAverages, FactError> {
    let load = procfs::LoadAverage::from_read(text.as_bytes()).map_err(|e| FactError::form("/proc/loadavg", e))?;
    Ok(LoadAverages {
        short: hundredths(load.one),
        medium: hundredths(load.five),
        long: hundredths(load.fifteen),
    })
}

/// The kernel prints two decimals; a single-precision number carries noise behind them that six
/// decimals would show.
fn hundredths(value: f32) -> f64 {
    (f64::from(value) * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_averages_are_read_without_noise() {
        let load = parse_load("300.12 6.99 3.02 3/4280 2496732\n").unwrap();
        assert_eq!(
            load,
            LoadAverages {
                short: 300.12,
                medium: 6.99,
                long: 3.02
            }
        );
    }

    #[test]
    fn text_that_is_no_load_average_is_an_error() {
        for bad in ["", "a b c 1/2 3", "1.0 2.0"] {
            assert!(parse_load(bad).is_err(), "{bad:?}");
        }
    }
}
