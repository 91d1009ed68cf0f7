//! Swap space, from `/proc/meminfo`.

use crate::error::{FactError, read_text};
use crate::memory::parse_meminfo;
use std::path::Path;

/// Swap space in bytes; both are 0 on a host without swap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Swap {
    /// All swap areas together: `swap_total`.
    pub total_bytes: u64,
    /// The unused part: `swap_free`.
    pub free_bytes: u64,
}

impl Swap {
    /// The used part: `swap_used`.
    pub fn used_bytes(&self) -> u64 {
        self.total_bytes.saturating_sub(self.free_bytes)
    }
}

/// The swap space of the host whose file system starts at `root`.
///
/// # Errors
/// Where `/proc/meminfo` is missing or not in the form of proc(5).
pub fn read_swap(root: &Path) -> Result<Swap, FactError> {
    parse_swap(&read_text(root, "proc/meminfo")?)
}

/// The swap space in the text of `/proc/meminfo`.
///
/// # Errors
/// Where the text is not in the form of proc(5).
pub fn parse_swap(text: &str) -> Result<Swap, FactError> {
    let info = parse_meminfo(text)?;
    Ok(Swap {
        total_bytes: info.swap_total,
        free_bytes: info.swap_free,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swap_is_read_in_bytes() {
        let swap = parse_swap(crate::memory::tests::MEMINFO).unwrap();
        assert_eq!(
            swap,
            Swap {
                total_bytes: 2 << 30,
                free_bytes: 1 << 30
            }
        );
        assert_eq!(swap.used_bytes(), 1 << 30);
    }
}
