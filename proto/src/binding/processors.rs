//! The processor numbers of the kernel: those of each core of a host, and lists of them.

use super::topology::{CorePlace, Topology};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// The most processors that a kernel numbers.
pub const MAX_PROCESSORS: u32 = 65_536;

/// The numbers of the processors of each core, a number per thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessorMap(BTreeMap<CorePlace, Vec<u32>>);

impl ProcessorMap {
    /// The map of these cores.
    pub fn new(cores: impl IntoIterator<Item = (CorePlace, Vec<u32>)>) -> ProcessorMap {
        ProcessorMap(cores.into_iter().collect())
    }

    /// The processors of the marked threads, in the order of the cores. `None` if a marked core or
    /// thread is not on this host.
    pub fn marked(&self, topology: &Topology) -> Option<Vec<u32>> {
        let mut found = Vec::new();
        for core in topology.cores().iter().filter(|core| !core.is_free()) {
            let threads = self.0.get(&core.place)?;
            for thread in (0..core.threads).filter(|thread| core.marked >> thread & 1 == 1) {
                found.push(*threads.get(thread as usize)?);
            }
        }
        Some(found)
    }
}

/// Numbers of processors in the form of the kernel: `0-3,8`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessorList(Vec<u32>);

/// A text is not a list of processors: an entry is neither a number nor an ascending range, or a
/// number is [`MAX_PROCESSORS`] or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadProcessorList;

impl fmt::Display for BadProcessorList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it is not a list of processors such as 0-3,8")
    }
}

impl std::error::Error for BadProcessorList {}

impl ProcessorList {
    /// The list of these numbers.
    pub fn new(mut numbers: Vec<u32>) -> ProcessorList {
        numbers.sort_unstable();
        numbers.dedup();
        ProcessorList(numbers)
    }

    /// The numbers, ascending.
    pub fn numbers(&self) -> &[u32] {
        &self.0
    }
}

impl FromStr for ProcessorList {
    type Err = BadProcessorList;

    fn from_str(text: &str) -> Result<ProcessorList, BadProcessorList> {
        let mut numbers = Vec::new();
        for entry in text.trim().split(',') {
            let (first, last) = entry.split_once('-').unwrap_or((entry, entry));
            let first: u32 = first.parse().map_err(|_| BadProcessorList)?;
            let last: u32 = last.parse().map_err(|_| BadProcessorList)?;
            if first > last || last >= MAX_PROCESSORS {
                return Err(BadProcessorList);
            }
            numbers.extend(first..=last);
            if numbers.len() > MAX_PROCESSORS as usize {
                return Err(BadProcessorList);
            }
        }
        Ok(ProcessorList::new(numbers))
    }
}

impl fmt::Display for ProcessorList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0.as_slice();
        let mut comma = "";
        while let Some(first) = rest.first() {
            let steps = rest
                .iter()
                .zip(*first..)
                .take_while(|(number, expected)| *number == expected);
            let length = steps.count();
            write!(f, "{comma}{first}")?;
            if length > 1 {
                write!(f, "-{}", rest[length - 1])?;
            }
            comma = ",";
            rest = &rest[length..];
        }
        Ok(())
    }
}
