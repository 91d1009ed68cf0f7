//! Main memory, from `/proc/meminfo`.

use crate::error::{FactError, read_text};
use procfs::prelude::*;
use std::path::Path;

/// Which sum `mem_free` is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemFree {
    /// `MemAvailable`: what can be had without swapping, as the kernel estimates it. Kernels older
    /// than 3.14 have no such line; the classic sum stands in for it there.
    #[default]
    Available,
    /// `MemFree + Buffers + Cached`, the sum of Grid Engine 8.1.9, which counts shared memory and
    /// tmpfs as free (`execd_params MEM_FREE=classic`).
    Classic,
}

impl MemFree {
    /// What `execd_params` says: `MEM_FREE=classic`, in any case and among other parameters, or
    /// nothing about it.
    pub fn of_execd_params(params: &str) -> Self {
        let is_classic = |param: &str| param.eq_ignore_ascii_case("MEM_FREE=classic");
        if params.split([',', ' ']).any(is_classic) {
            MemFree::Classic
        } else {
            MemFree::Available
        }
    }
}

/// Main memory in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Installed and usable by the kernel: `mem_total`.
    pub total_bytes: u64,
    /// Free in the sense of [`MemFree`]: `mem_free`. At most the total.
    pub free_bytes: u64,
}

impl Memory {
    /// What is not free: `mem_used`.
    pub fn used_bytes(&self) -> u64 {
        self.total_bytes.saturating_sub(self.free_bytes)
    }
}

/// The memory of the host whose file system starts at `root`.
///
/// # Errors
/// Where `/proc/meminfo` is missing or not in the form of proc(5).
pub fn read_memory(root: &Path, mem_free: MemFree) -> Result<Memory, FactError> {
    parse_memory(&read_text(root, "proc/meminfo")?, mem_free)
}

/// The memory in the text of `/proc/meminfo`.
///
/// # Errors
/// Where the text is not in the form of proc(5).
pub fn parse_memory(text: &str, mem_free: MemFree) -> Result<Memory, FactError> {
    let info = parse_meminfo(text)?;
    let classic_bytes = info.mem_free.saturating_add(info.buffers).saturating_add(info.cached);
    let free_bytes = match mem_free {
        MemFree::Available => info.mem_available.unwrap_or(classic_bytes),
        MemFree::Classic => classic_bytes,
    };
    Ok(Memory {
        total_bytes: info.mem_total,
        free_bytes: free_bytes.min(info.mem_total),
    })
}

/// The whole of `/proc/meminfo`, in bytes.
pub(crate) fn parse_meminfo(text: &str) -> Result<procfs::Meminfo, FactError> {
    procfs::Meminfo::from_buf_read(text.as_bytes()).map_err(|e| FactError::form("/proc/meminfo", e))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) const MEMINFO: &str = "\
MemTotal:       24684084 kB
MemFree:        18455216 kB
MemAvailable:   23000000 kB
Buffers:          269932 kB
Cached:          5027592 kB
SwapCached:            0 kB
Active:          1000000 kB
Inactive:        1000000 kB
SwapTotal:       2097152 kB
SwapFree:        1048576 kB
Dirty:                 0 kB
Writeback:             0 kB
Mapped:                0 kB
Slab:                  0 kB
Committed_AS:          0 kB
VmallocTotal:          0 kB
VmallocUsed:           0 kB
VmallocChunk:          0 kB
";

    #[test]
    fn free_memory_is_what_is_available_unless_the_classic_sum_is_asked_for() {
        let kib = 1024;
        let available = parse_memory(MEMINFO, MemFree::Available).unwrap();
        assert_eq!(
            available,
            Memory {
                total_bytes: 24_684_084 * kib,
                free_bytes: 23_000_000 * kib
            }
        );
        let classic = parse_memory(MEMINFO, MemFree::Classic).unwrap();
        assert_eq!(classic.free_bytes, 23_752_740 * kib);
        assert_eq!(classic.used_bytes(), 931_344 * kib);
    }

    #[test]
    fn the_classic_sum_is_asked_for_in_execd_params() {
        assert_eq!(
            MemFree::of_execd_params("ENABLE_ADDGRP_KILL=true,mem_free=CLASSIC"),
            MemFree::Classic
        );
        assert_eq!(MemFree::of_execd_params("none"), MemFree::Available);
    }

    #[test]
    fn an_old_kernel_without_mem_available_gets_the_classic_sum() {
        let old = MEMINFO.replace("MemAvailable:   23000000 kB\n", "");
        let kib = 1024;
        assert_eq!(
            parse_memory(&old, MemFree::Available).unwrap().free_bytes,
            23_752_740 * kib
        );
    }

    #[test]
    fn text_that_is_no_meminfo_is_an_error() {
        for bad in ["", "MemTotal: lots kB\n", "\u{0}\u{0}"] {
            assert!(parse_memory(bad, MemFree::Available).is_err(), "{bad:?}");
        }
    }
}
