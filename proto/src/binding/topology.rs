//! The processors of a host as a tree of sockets, cores and threads, and its text form.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The longest text of a topology. It is enough for 5,000 cores with two threads each.
pub const MAX_TEXT_BYTES: usize = 16_384;
/// The most threads that a core may have.
pub const MAX_THREADS: u32 = 64;

/// A core by its logical numbers, both from 0: `0,1` is the second core of the first socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CorePlace {
    /// The socket.
    pub socket: u32,
    /// The core in the socket.
    pub core: u32,
}

impl fmt::Display for CorePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.socket, self.core)
    }
}

/// The kind of a core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum CoreKind {
    /// A core of full performance.
    #[default]
    Power,
    /// A core that saves energy (big.LITTLE, efficiency cores).
    Efficient,
}

/// One core with its threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoreUnit {
    /// Where it is.
    pub place: CorePlace,
    /// The NUMA node, counted over the host from 0. Without nodes in the text each socket is one.
    pub node: u32,
    /// Its kind.
    pub kind: CoreKind,
    /// How many threads it has: 1 to [`MAX_THREADS`].
    pub threads: u32,
    /// The marked threads, a bit each.
    pub marked: u64,
}

impl CoreUnit {
    /// The marks of a core all of whose threads are marked.
    pub fn all_threads(&self) -> u64 {
        u64::MAX >> (64 - self.threads)
    }

    /// Whether no thread is marked.
    pub fn is_free(&self) -> bool {
        self.marked == 0
    }

    /// Whether all threads are marked.
    pub fn is_full(&self) -> bool {
        self.marked == self.all_threads()
    }
}

/// The cores of a host, some of them marked: as in use, or as those of a task.
///
/// Invariant: cores are in the order of their places, places have no gaps, a node never goes on
/// behind another one, and only threads that exist are marked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    cores: Vec<CoreUnit>,
}

/// Why a text is not a topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopologyError {
    /// It is longer than [`MAX_TEXT_BYTES`].
    TooLong,
    /// A letter that means nothing.
    Letter(char),
    /// A core outside of a socket, or a thread outside of a core.
    Order(char),
    /// A core with more than [`MAX_THREADS`] threads.
    Threads,
}

impl fmt::Display for TopologyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TopologyError::TooLong => write!(f, "it is longer than {MAX_TEXT_BYTES} letters"),
            TopologyError::Letter(letter) => write!(f, "{letter:?} is not one of N, S, C, E, T"),
            TopologyError::Order(letter) => write!(f, "{letter:?} stands outside of a socket or core"),
            TopologyError::Threads => write!(f, "a core has more than {MAX_THREADS} threads"),
        }
    }
}

impl std::error::Error for TopologyError {}

impl Topology {
    /// Reads a text such as `SCTTCTT`: `S` for a socket, `C` (or `E`) for each of its cores, `T`
    /// for each thread of a core that has several, `N` in a socket in front of the cores of a NUMA
    /// node. Marked threads, and the cores without `T` that are marked, are in lower case.
    ///
    /// # Errors
    /// If it is too long, or a letter is unknown or in a wrong place.
    pub fn parse(text: &str) -> Result<Topology, TopologyError> {
        if text.len() > MAX_TEXT_BYTES {
            return Err(TopologyError::TooLong);
        }
        let mut reader = TopologyReader::default();
        text.chars().try_for_each(|letter| reader.take(letter))?;
        reader.close_core();
        Ok(Topology { cores: reader.cores })
    }

    /// The cores, in the order of their places.
    pub fn cores(&self) -> &[CoreUnit] {
        &self.cores
    }

    /// How many sockets have cores.
    pub fn sockets(&self) -> u32 {
        self.cores.last().map_or(0, |core| core.place.socket + 1)
    }

    /// The position of a core in [`Topology::cores`].
    pub fn position(&self, place: CorePlace) -> Option<usize> {
        self.cores.binary_search_by_key(&place, |core| core.place).ok()
    }

    /// How many cores have no mark.
    pub fn free_cores(&self) -> u32 {
        count(self.cores.iter().filter(|core| core.is_free()))
    }

    /// The places of the cores that have a mark.
    pub fn marked_places(&self) -> Vec<CorePlace> {
        let marked = self.cores.iter().filter(|core| !core.is_free());
        marked.map(|core| core.place).collect()
    }

    /// Whether anything is marked.
    pub fn is_marked(&self) -> bool {
        self.cores.iter().any(|core| !core.is_free())
    }

    /// This host with no marks.
    pub fn unmarked(&self) -> Topology {
        let mut cores = self.cores.clone();
        cores.iter_mut().for_each(|core| core.marked = 0);
        Topology { cores }
    }

    /// Marks these threads of a core, by position.
    ///
    /// # Panics
    /// If there is no core at the position, or no such thread.
    pub fn mark(&mut self, position: usize, threads: u64) {
        let core = &mut self.cores[position];
        assert_eq!(threads & !core.all_threads(), 0, "only threads that exist are marked");
        core.marked |= threads;
    }

    /// Marks what another topology has marked, as far as it is here too: a host may have come back
    /// with fewer cores or threads.
    pub fn mark_all(&mut self, other: &Topology) {
        for core in other.cores.iter().filter(|core| !core.is_free()) {
            if let Some(position) = self.position(core.place) {
                let here = self.cores[position].all_threads();
                self.mark(position, core.marked & here);
            }
        }
    }

    /// Whether both mark the same thread of a core.
    pub fn overlaps(&self, other: &Topology) -> bool {
        let marked = other.cores.iter().filter(|core| !core.is_free());
        marked
            .filter_map(|core| Some((core, &self.cores[self.position(core.place)?])))
            .any(|(one, two)| one.marked & two.marked != 0)
    }

    /// The text with kinds of cores and NUMA nodes, which [`Topology::parse`] reads back.
    pub fn detailed(&self) -> String {
        self.text(true)
    }

    fn text(&self, detailed: bool) -> String {
        let mut text = String::new();
        let mut last: Option<&CoreUnit> = None;
        let several_nodes = |socket| {
            let mut nodes = self.cores.iter().filter(|core| core.place.socket == socket);
            let first = nodes.next().map(|core| core.node);
            nodes.any(|core| Some(core.node) != first)
        };
        for core in &self.cores {
            if last.is_none_or(|last| last.place.socket != core.place.socket) {
                text.push('S');
            }
            let is_next = last.is_none_or(|last| last.node != core.node);
            if detailed && is_next && several_nodes(core.place.socket) {
                text.push('N');
            }
            core.put(&mut text, detailed);
            last = Some(core);
        }
        text
    }
}

/// The text of `m_topology` in Grid Engine 8.1.9: sockets, cores and threads.
impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(false))
    }
}

impl CoreUnit {
    fn put(&self, text: &mut String, detailed: bool) {
        let case = |letter: char, is_marked: bool| {
            if is_marked { letter.to_ascii_lowercase() } else { letter }
        };
        let letter = match self.kind {
            CoreKind::Efficient if detailed => 'E',
            CoreKind::Efficient | CoreKind::Power => 'C',
        };
        text.push(case(letter, self.is_full()));
        if self.threads > 1 {
            text.extend((0..self.threads).map(|thread| case('T', self.marked >> thread & 1 == 1)));
        }
    }
}

/// Reads the letters of a topology one by one.
#[derive(Default)]
struct TopologyReader {
    cores: Vec<CoreUnit>,
    /// The socket that is being read.
    socket: Option<u32>,
    /// The next core of the socket.
    core: u32,
    /// The node of the next core.
    node: u32,
    /// Whether the node of the next core has cores already.
    has_node: bool,
    /// Whether the core's own letter is in lower case, until a thread follows.
    is_marked: bool,
    /// Whether the last core is still being read.
    is_open: bool,
}

impl TopologyReader {
    fn take(&mut self, letter: char) -> Result<(), TopologyError> {
        match letter.to_ascii_uppercase() {
            'S' => {
                self.close_core();
                self.socket = Some(self.socket.map_or(0, |socket| socket + 1));
                self.core = 0;
                self.next_node();
            }
            'N' if self.socket.is_some() => {
                self.close_core();
                self.next_node();
            }
            // In front of the first socket it says nothing that its `S` does not.
            'N' => {}
            kind @ ('C' | 'E') => {
                self.close_core();
                let socket = self.socket.ok_or(TopologyError::Order(letter))?;
                self.open_core(socket, kind, letter.is_ascii_lowercase());
            }
            'T' if self.is_open => self.add_thread(letter.is_ascii_lowercase())?,
            'T' => return Err(TopologyError::Order(letter)),
            _ => return Err(TopologyError::Letter(letter)),
        }
        Ok(())
    }

    fn next_node(&mut self) {
        if std::mem::take(&mut self.has_node) {
            self.node += 1;
        }
    }

    fn open_core(&mut self, socket: u32, kind: char, is_marked: bool) {
        self.cores.push(CoreUnit {
            place: CorePlace {
                socket,
                core: self.core,
            },
            node: self.node,
            kind: if kind == 'E' {
                CoreKind::Efficient
            } else {
                CoreKind::Power
            },
            threads: 0,
            marked: 0,
        });
        self.core += 1;
        (self.has_node, self.is_marked, self.is_open) = (true, is_marked, true);
    }

    fn add_thread(&mut self, is_marked: bool) -> Result<(), TopologyError> {
        let core = self.cores.last_mut().expect("a core is open");
        if core.threads == MAX_THREADS {
            return Err(TopologyError::Threads);
        }
        core.marked |= u64::from(is_marked) << core.threads;
        core.threads += 1;
        Ok(())
    }

    /// A core without threads in the text has one, which is marked like the core.
    fn close_core(&mut self) {
        if std::mem::take(&mut self.is_open)
            && let Some(core) = self.cores.last_mut().filter(|core| core.threads == 0)
        {
            core.threads = 1;
            core.marked = u64::from(self.is_marked);
        }
    }
}

/// The length of an iterator over cores or threads, of which a host never has 2^32.
pub(super) fn count(items: impl Iterator) -> u32 {
    u32::try_from(items.count()).unwrap_or(u32::MAX)
}
