//! How long the host has been up, from `/proc/uptime`.

use crate::error::{FactError, read_text};
use procfs::prelude::*;
use std::path::Path;

/// Whole seconds since the host started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uptime {
    /// Time since the start: `uptime`.
    pub up_s: u64,
    /// Time the processors spent idle, summed over all of them: `cpu_idle_time`.
    pub idle_s: u64,
}

/// The uptime of the host whose file system starts at `root`.
///
/// # Errors
/// Where `/proc/uptime` is missing or not in the form of proc(5).
pub fn read_uptime(root: &Path) -> Result<Uptime, FactError> {
    parse_uptime(&read_text(root, "proc/uptime")?)
}

/// The uptime in the text of `/proc/uptime`.
///
/// # Errors
/// Where the text is not in the form of proc(5).
pub fn parse_uptime(text: &str) -> Result<Uptime, FactError> {
    let uptime = procfs::Uptime::from_read(text.as_bytes()).map_err(|e| FactError::form("/proc/uptime", e))?;
    // A float cast saturates, so a negative or absurd figure becomes a bound instead of a wrap.
    Ok(Uptime {
        up_s: uptime.uptime as u64,
        idle_s: uptime.idle as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_whole() {
        assert_eq!(
            parse_uptime("350735.47 234388.90\n").unwrap(),
            Uptime {
                up_s: 350_735,
                idle_s: 234_388
            }
        );
        assert!(parse_uptime("").is_err());
    }
}
