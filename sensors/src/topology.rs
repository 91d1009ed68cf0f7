//! Sockets, cores and threads of the processors that are online, from `/sys/devices/system/cpu`.

use crate::error::{FactError, read_text};
use std::collections::BTreeMap;
use std::path::Path;

/// Where one logical processor sits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Processor {
    /// The physical package.
    pub socket: u32,
    /// The die in the package; core numbers may repeat from die to die.
    pub die: u32,
    /// The core on the die.
    pub core: u32,
    /// The logical processor.
    pub id: u32,
}

/// The shape of the host's processors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// `m_socket`.
    pub sockets: u32,
    /// `m_core`, over all sockets.
    pub cores: u32,
    /// `m_thread`, over all cores.
    pub threads: u32,
    /// `m_topology`: `S` for a socket, followed by `C` for each of its cores, followed by `T` for
    /// each thread of a core that has more than one: `SCC`, `SCTTCTT`.
    pub text: String,
}

/// The topology of the host whose file system starts at `root`.
///
/// # Errors
/// Where the list of online processors or the place of one of them cannot be read.
pub fn read_topology(root: &Path) -> Result<Topology, FactError> {
    let processors: Result<Vec<_>, _> = read_online(root)?
        .into_iter()
        .map(|id| read_processor(root, id))
        .collect();
    Ok(arrange(&processors?))
}

/// The numbers of the logical processors that are online, ascending.
///
/// # Errors
/// Where `/sys/devices/system/cpu/online` is missing or not a list of ranges.
pub fn read_online(root: &Path) -> Result<Vec<u32>, FactError> {
    parse_cpu_list(&read_text(root, "sys/devices/system/cpu/online")?)
}

/// The numbers in a kernel list of processors such as `0-3,8`, ascending.
///
/// # Errors
/// Where an entry is neither a number nor an ascending range, or the list names more than 65,536
/// processors.
pub fn parse_cpu_list(text: &str) -> Result<Vec<u32>, FactError> {
    const MOST: u32 = 65_536;
    let bad = || FactError::form("list of processors", format!("{:?}", text.trim()));
    let mut numbers = Vec::new();
    for entry in text.trim().split(',') {
        let (first, last) = entry.split_once('-').unwrap_or((entry, entry));
        let first: u32 = first.parse().map_err(|_| bad())?;
        let last: u32 = last.parse().map_err(|_| bad())?;
        if first > last || last >= MOST {
            return Err(bad());
        }
        numbers.extend(first..=last);
    }
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers)
}

/// The place of processor `id` from the texts of its files `physical_package_id`, `die_id` and
/// `core_id`.
///
/// The kernel writes -1 where the firmware does not say; that counts as the first.
///
/// # Errors
/// Where one of the texts is not a number.
pub fn parse_processor(id: u32, socket: &str, die: &str, core: &str) -> Result<Processor, FactError> {
    let number = |text: &str| -> Result<u32, FactError> {
        let number: i64 = text
            .trim()
            .parse()
            .map_err(|e| FactError::form("place of a processor", e))?;
        Ok(u32::try_from(number).unwrap_or(0))
    };
    Ok(Processor {
        socket: number(socket)?,
        die: number(die)?,
        core: number(core)?,
        id,
    })
}

/// The topology that `processors`, in any order, make up.
pub fn arrange(processors: &[Processor]) -> Topology {
    let mut sockets: BTreeMap<u32, BTreeMap<(u32, u32), u32>> = BTreeMap::new();
    for Processor {
        socket,
        die,
        core,
        id: _,
    } in processors
    {
        *sockets.entry(*socket).or_default().entry((*die, *core)).or_default() += 1;
    }
    let mut topology = Topology {
        sockets: 0,
        cores: 0,
        threads: 0,
        text: String::new(),
    };
    for cores in sockets.values() {
        topology.sockets += 1;
        topology.text.push('S');
        for threads in cores.values() {
            topology.cores += 1;
            topology.threads += threads;
            topology.text.push('C');
            if *threads > 1 {
                topology.text.extend((0..*threads).map(|_| 'T'));
            }
        }
    }
    topology
}

fn read_processor(root: &Path, id: u32) -> Result<Processor, FactError> {
    let file = |name: &str| read_text(root, &format!("sys/devices/system/cpu/cpu{id}/topology/{name}"));
    // Kernels before 5.2 have no dies.
    let die = file("die_id").unwrap_or_else(|_| "0".to_owned());
    parse_processor(id, &file("physical_package_id")?, &die, &file("core_id")?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::fixture::Tree;

    fn check(places: &[(u32, u32, u32)], expected: &str) {
        let processors: Vec<_> = (0..)
            .zip(places)
            .map(|(id, &(socket, die, core))| Processor { socket, die, core, id })
            .collect();
        let topology = arrange(&processors);
        assert_eq!(topology.text, expected);
        assert_eq!(topology.threads as usize, places.len());
    }

    #[test]
    fn topology_text_names_threads_only_where_a_core_has_several() {
        check(&[(0, 0, 0), (0, 0, 1)], "SCC");
        check(&[(0, 0, 0), (0, 0, 1), (0, 0, 0), (0, 0, 1)], "SCTTCTT");
        check(&[(0, 0, 0), (1, 0, 0)], "SCSC");
        check(&[(0, 0, 0), (0, 1, 0)], "SCC");
        check(&[], "");
    }

    #[test]
    fn processor_lists_are_ranges_and_numbers() {
        assert_eq!(parse_cpu_list("0-3,8\n").unwrap(), [0, 1, 2, 3, 8]);
        assert_eq!(parse_cpu_list("0\n").unwrap(), [0]);
        for bad in ["", "a", "3-1", "0-", "0-4294967295", "-1"] {
            assert!(parse_cpu_list(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn only_processors_that_are_online_count_and_an_unknown_package_is_the_first() {
        let base = "sys/devices/system/cpu";
        let tree = Tree::new(&[
            (&format!("{base}/online"), "0,2\n"),
            (&format!("{base}/cpu0/topology/physical_package_id"), "-1\n"),
            (&format!("{base}/cpu0/topology/core_id"), "0\n"),
            (&format!("{base}/cpu2/topology/physical_package_id"), "0\n"),
            (&format!("{base}/cpu2/topology/core_id"), "1\n"),
        ]);
        let topology = read_topology(tree.root()).unwrap();
        assert_eq!(
            topology,
            Topology {
                sockets: 1,
                cores: 2,
                threads: 2,
                text: "SCC".to_owned()
            }
        );
    }
}
