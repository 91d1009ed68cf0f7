//! Sockets, cores and threads of the processors that are online, from `/sys/devices/system/cpu`,
//! and the NUMA nodes that they belong to, from `/sys/devices/system/node`.

use crate::error::{FactError, read_text};
use proto::binding::{CorePlace, ProcessorList, ProcessorMap};
use std::collections::BTreeMap;
use std::path::Path;

/// Where one logical processor sits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Processor {
    /// The physical package.
    pub socket: u32,
    /// The NUMA node; 0 on a host that tells none.
    pub node: u32,
    /// The die in the package; core numbers may repeat from die to die.
    pub die: u32,
    /// The core on the die.
    pub core: u32,
    /// The logical processor.
    pub id: u32,
    /// Whether its core saves energy: the host has faster ones.
    pub is_efficient: bool,
}

/// The shape of the host's processors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
    /// `m_topology_numa`: the same with `N` in front of the cores of each NUMA node of a socket
    /// that has several, and `E` in place of `C` for cores that save energy.
    pub detailed: String,
    /// The numbers of the processors of each core, by its place in the text.
    pub processors: ProcessorMap,
}

/// The topology of the host whose file system starts at `root`.
///
/// # Errors
/// Where the list of online processors or the place of one of them cannot be read.
pub fn read_topology(root: &Path) -> Result<Topology, FactError> {
    let online = read_online(root)?;
    let processors: Result<Vec<_>, _> = online.iter().map(|id| read_processor(root, *id)).collect();
    let mut processors = processors?;
    let nodes = read_nodes(root);
    for processor in &mut processors {
        processor.node = nodes.get(&processor.id).copied().unwrap_or(0);
    }
    note_efficient(root, &mut processors);
    Ok(arrange(&processors))
}

/// The NUMA node of each processor. Kernels without NUMA tell none.
fn read_nodes(root: &Path) -> BTreeMap<u32, u32> {
    let list = |path: &str| read_text(root, path).ok().and_then(|text| parse_cpu_list(&text).ok());
    let nodes = list("sys/devices/system/node/online").unwrap_or_default();
    let of_node = |node: u32| {
        let processors = list(&format!("sys/devices/system/node/node{node}/cpulist")).unwrap_or_default();
        processors.into_iter().map(move |id| (id, node))
    };
    nodes.into_iter().flat_map(of_node).collect()
}

/// Notes the cores that save energy: those of `cpu_atom`, or those whose capacity is less than that
/// of others (`cpu_capacity`, on Arm).
fn note_efficient(root: &Path, processors: &mut [Processor]) {
    let atoms = read_text(root, "sys/devices/cpu_atom/cpus").ok();
    let atoms = atoms.and_then(|text| parse_cpu_list(&text).ok()).unwrap_or_default();
    let capacity = |processor: &Processor| {
        let path = format!("sys/devices/system/cpu/cpu{}/cpu_capacity", processor.id);
        read_text(root, &path).ok()?.trim().parse::<u32>().ok()
    };
    let capacities: Vec<Option<u32>> = processors.iter().map(capacity).collect();
    let most = capacities.iter().flatten().max().copied();
    for (processor, capacity) in processors.iter_mut().zip(capacities) {
        let is_slower = capacity.zip(most).is_some_and(|(capacity, most)| capacity < most);
        processor.is_efficient = is_slower || atoms.contains(&processor.id);
    }
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
    let list: Result<ProcessorList, _> = text.parse();
    let list = list.map_err(|_| FactError::form("list of processors", format!("{:?}", text.trim())))?;
    Ok(list.numbers().to_vec())
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
        node: 0,
        is_efficient: false,
    })
}

/// The topology that `processors`, in any order, make up. Sockets, the nodes of a socket and the
/// cores of a node are each in the order of their lowest processor, as hwloc(7) numbers them.
pub fn arrange(processors: &[Processor]) -> Topology {
    let mut processors = processors.to_vec();
    processors.sort_unstable_by_key(|processor| processor.id);
    let mut lowest = LowestProcessors::default();
    processors.iter().for_each(|processor| lowest.see(processor));
    let mut cores: BTreeMap<[u32; 3], Vec<Processor>> = BTreeMap::new();
    for processor in &processors {
        cores.entry(lowest.rank(processor)).or_default().push(*processor);
    }
    let mut topology = Topology::default();
    let mut places = Vec::new();
    let mut last: Option<([u32; 3], CorePlace)> = None;
    for (rank, threads) in cores {
        let same_socket = last.filter(|(known, _)| known[0] == rank[0]);
        if same_socket.is_none() {
            topology.detailed.push('S');
            topology.sockets += 1;
        }
        if same_socket.is_none_or(|(known, _)| known[1] != rank[1]) {
            topology.detailed.push('N');
        }
        topology.put_core(&threads);
        let place = CorePlace {
            socket: topology.sockets - 1,
            core: same_socket.map_or(0, |(_, place)| place.core + 1),
        };
        places.push((place, threads.iter().map(|thread| thread.id).collect()));
        last = Some((rank, place));
    }
    // A node for the whole socket says nothing, and the printer leaves it out.
    if let Ok(parsed) = proto::binding::Topology::parse(&topology.detailed) {
        topology.text = parsed.to_string();
        topology.detailed = parsed.detailed();
    }
    topology.processors = ProcessorMap::new(places);
    topology
}

impl Topology {
    fn put_core(&mut self, threads: &[Processor]) {
        let is_efficient = threads.iter().any(|thread| thread.is_efficient);
        self.detailed.push(if is_efficient { 'E' } else { 'C' });
        if threads.len() > 1 {
            self.detailed.extend(threads.iter().map(|_| 'T'));
        }
        self.cores += 1;
        self.threads += u32::try_from(threads.len()).unwrap_or(u32::MAX);
    }
}

/// The lowest processor of each socket, of each node in a socket, and of each core.
#[derive(Default)]
struct LowestProcessors {
    sockets: BTreeMap<u32, u32>,
    nodes: BTreeMap<(u32, u32), u32>,
    cores: BTreeMap<[u32; 4], u32>,
}

impl LowestProcessors {
    /// Takes a processor in; they come in ascending order.
    fn see(&mut self, processor: &Processor) {
        let Processor { socket, node, id, .. } = *processor;
        self.sockets.entry(socket).or_insert(id);
        self.nodes.entry((socket, node)).or_insert(id);
        self.cores.entry(core_of(processor)).or_insert(id);
    }

    /// By which the core of a processor is ordered.
    fn rank(&self, processor: &Processor) -> [u32; 3] {
        let Processor { socket, node, .. } = processor;
        [
            self.sockets[socket],
            self.nodes[&(*socket, *node)],
            self.cores[&core_of(processor)],
        ]
    }
}

fn core_of(processor: &Processor) -> [u32; 4] {
    [processor.socket, processor.node, processor.die, processor.core]
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
            .map(|(id, &(socket, die, core))| Processor {
                socket,
                die,
                core,
                id,
                node: 0,
                is_efficient: false,
            })
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
        let Topology {
            sockets,
            cores,
            threads,
            text,
            processors,
            ..
        } = topology;
        assert_eq!((sockets, cores, threads, text.as_str()), (1, 2, 2, "SCC"));
        let second = proto::binding::Topology::parse("SCc").unwrap();
        assert_eq!(processors.marked(&second), Some(vec![2]));
    }
}
