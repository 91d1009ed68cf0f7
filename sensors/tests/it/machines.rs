//! The processors of ten machines: how they are read, and that what is chosen of them is right.

use gridwright_sensors::topology::{Topology, read_topology};
use proptest::prelude::*;
use proto::binding::{BindingObstacle, BindingStrategy, CoreAmount, CoreKind, CorePlace, ProcessorMap, choose};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The machines, with the number of their sockets, cores and threads that are online, and the
/// beginning of their topology.
const MACHINES: [(&str, [u32; 3], &str); 10] = [
    ("vm-2", [1, 2, 2], "SCC"),
    ("desktop-8", [1, 8, 16], "SCTTCTT"),
    ("xeon-2x8-off", [2, 16, 16], "SCCCCCCCCSCCCCCCCC"),
    ("xeon-2x12-on", [2, 24, 48], "SCTTCTT"),
    ("dell-2x8-alternating", [2, 16, 32], "SCTTCTT"),
    ("epyc-2x32-nps2", [2, 64, 128], "SCTTCTT"),
    ("epyc-1x64-nps4", [1, 64, 64], "SCCCC"),
    ("epyc-2x64-nps4", [2, 128, 256], "SCTTCTT"),
    ("xeon-2x8-offline", [2, 15, 29], "SCTTCTTCTTCTTCTTCTTCTTSCTTCTTCCTT"),
    ("arm-big-little", [1, 8, 8], "SCCCCCCCC"),
];

/// The files of a machine below a directory of its own, which is gone with it.
struct Machine {
    root: PathBuf,
}

impl Machine {
    fn new(name: &str, test: &str) -> Machine {
        let root = std::env::temp_dir().join(format!("gridwright-{test}-{name}-{}", std::process::id()));
        let table = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests-data/machines/{name}.txt"));
        let machine = Machine { root };
        machine.write_files(&fs::read_to_string(table).unwrap());
        machine
    }

    fn write_files(&self, table: &str) {
        let (mut online, mut nodes) = (Vec::new(), BTreeMap::<u32, Vec<String>>::new());
        for line in table.lines().filter(|line| !line.starts_with('#')) {
            let words: Vec<u32> = line.split(' ').map(|word| word.parse().unwrap()).collect();
            let [id, socket, die, core, node, is_online, capacity] = words[..] else {
                panic!("{line}")
            };
            let cpu = format!("sys/devices/system/cpu/cpu{id}");
            self.write(&format!("{cpu}/cpu_capacity"), capacity);
            if is_online == 1 {
                online.push(id.to_string());
                nodes.entry(node).or_default().push(id.to_string());
                self.write(&format!("{cpu}/topology/physical_package_id"), socket);
                self.write(&format!("{cpu}/topology/die_id"), die);
                self.write(&format!("{cpu}/topology/core_id"), core);
            }
        }
        self.write("sys/devices/system/cpu/online", online.join(","));
        let numbers: Vec<String> = nodes.keys().map(ToString::to_string).collect();
        self.write("sys/devices/system/node/online", numbers.join(","));
        for (node, processors) in nodes {
            let path = format!("sys/devices/system/node/node{node}/cpulist");
            self.write(&path, processors.join(","));
        }
    }

    fn write(&self, path: &str, text: impl ToString) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{}\n", text.to_string())).unwrap();
    }

    fn topology(&self) -> Topology {
        read_topology(&self.root).unwrap()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

fn parsed(topology: &Topology) -> proto::binding::Topology {
    proto::binding::Topology::parse(&topology.detailed).unwrap()
}

#[test]
fn machines_are_read_as_they_are() {
    for (name, [sockets, cores, threads], start) in MACHINES {
        let topology = Machine::new(name, "read").topology();
        assert_eq!(
            [topology.sockets, topology.cores, topology.threads],
            [sockets, cores, threads],
            "{name}"
        );
        assert!(topology.text.starts_with(start), "{name}: {}", topology.text);
        let known = parsed(&topology);
        assert_eq!(known.to_string(), topology.text, "{name}");
        assert_eq!(
            (known.detailed(), known.sockets()),
            (topology.detailed.clone(), sockets),
            "{name}"
        );
        let mut all = known.clone();
        (0..all.cores().len()).for_each(|core| all.mark(core, all.cores()[core].all_threads()));
        let processors: BTreeSet<u32> = topology.processors.marked(&all).unwrap().into_iter().collect();
        assert_eq!(
            processors.len(),
            threads as usize,
            "{name}: each processor is in one core"
        );
    }
}

#[test]
fn nodes_and_kinds_of_cores_are_told_where_a_host_has_several() {
    let nodes = |name: &str| {
        let known = parsed(&Machine::new(name, "nodes").topology());
        known
            .cores()
            .iter()
            .map(|core| core.node)
            .collect::<BTreeSet<_>>()
            .len()
    };
    let expected = [
        ("vm-2", 1),
        ("xeon-2x8-off", 2),
        ("epyc-2x32-nps2", 4),
        ("epyc-1x64-nps4", 4),
        ("epyc-2x64-nps4", 8),
    ];
    assert_eq!(expected.map(|(name, _)| (name, nodes(name))), expected);
    let arm = parsed(&Machine::new("arm-big-little", "kinds").topology());
    let efficient = arm.cores().iter().filter(|core| core.kind == CoreKind::Efficient);
    assert_eq!(efficient.count(), 4);
    assert_eq!(arm.detailed(), "SEEEECCCC");
}

#[test]
fn threads_of_a_core_are_bound_together_however_the_firmware_numbers_them() {
    let expected: [(&str, &[u32]); 4] = [
        ("desktop-8", &[2, 3]),
        ("xeon-2x12-on", &[1, 25]),
        ("dell-2x8-alternating", &[2, 18]),
        ("xeon-2x8-offline", &[1, 17]),
    ];
    for (name, processors) in expected {
        let topology = Machine::new(name, "threads").topology();
        let second = BindingStrategy::Explicit(vec![CorePlace { socket: 0, core: 1 }]);
        let chosen = choose(&parsed(&topology), &second, 1).unwrap();
        assert_eq!(
            topology.processors.marked(&chosen).as_deref(),
            Some(processors),
            "{name}"
        );
    }
    let gone = proto::binding::Topology::parse("SCCCc").unwrap();
    assert_eq!(ProcessorMap::default().marked(&gone), None);
}

fn strategies() -> impl Strategy<Value = BindingStrategy> {
    let place = || (0..2_u32, 0..20_u32).prop_map(|(socket, core)| CorePlace { socket, core });
    let first = || proptest::option::weighted(0.3, place());
    let amount = prop_oneof![Just(CoreAmount::Slots), (0..40_u32).prop_map(CoreAmount::Cores)];
    prop_oneof![
        (amount, first()).prop_map(|(amount, first)| BindingStrategy::Linear { amount, first }),
        (0..20_u32, 0..9_u32, first()).prop_map(|(amount, step, first)| BindingStrategy::Striding {
            amount,
            step,
            first
        }),
        proptest::collection::btree_set(place(), 1..6)
            .prop_map(|places| BindingStrategy::Explicit(places.into_iter().collect())),
    ]
}

/// Whether cores are what a strategy asks for, found without the code that chooses.
fn assert_as_asked(chosen: &proto::binding::Topology, strategy: &BindingStrategy, slots: u32) {
    let places = chosen.marked_places();
    let positions: Vec<usize> = places.iter().map(|place| chosen.position(*place).unwrap()).collect();
    assert!(
        chosen.cores().iter().all(|core| core.is_free() || core.is_full()),
        "whole cores"
    );
    match strategy {
        BindingStrategy::Linear { amount, first } => {
            let wanted = match amount {
                CoreAmount::Slots => slots,
                CoreAmount::Cores(cores) => *cores,
            };
            assert_eq!(places.len(), wanted as usize);
            if let Some(first) = first {
                assert_eq!(places[0], *first);
                assert!(
                    positions.windows(2).all(|pair| pair[1] == pair[0] + 1),
                    "one next to the other"
                );
            }
        }
        BindingStrategy::Striding { amount, step, first } => {
            assert_eq!(places.len(), *amount as usize);
            assert!(positions.windows(2).all(|pair| pair[1] == pair[0] + *step as usize));
            assert!(first.is_none_or(|first| places[0] == first));
        }
        BindingStrategy::Explicit(asked) => assert_eq!(places, *asked),
    }
}

/// Whether a request that was refused could have been met.
fn assert_impossible(host: &proto::binding::Topology, strategy: &BindingStrategy, slots: u32, why: BindingObstacle) {
    let is_free = |place: &CorePlace| host.position(*place).is_some_and(|at| host.cores()[at].is_free());
    let possible = match strategy {
        BindingStrategy::Linear { amount, first: None } => {
            let wanted = match amount {
                CoreAmount::Slots => slots,
                CoreAmount::Cores(cores) => *cores,
            };
            wanted > 0 && wanted <= host.free_cores()
        }
        BindingStrategy::Explicit(places) => places.iter().all(is_free),
        BindingStrategy::Linear { first: Some(first), .. } | BindingStrategy::Striding { first: Some(first), .. } => {
            let named = matches!(
                why,
                BindingObstacle::InUse(_)
                    | BindingObstacle::Missing(_)
                    | BindingObstacle::PastEnd { .. }
                    | BindingObstacle::Nothing
            );
            assert!(named, "{why}");
            why == BindingObstacle::Missing(*first) && is_free(first)
        }
        BindingStrategy::Striding {
            amount,
            step,
            first: None,
        } => {
            let cores = host.cores();
            let fits = |start: usize| {
                let at = |index: u32| {
                    cores
                        .get(start + (index * step) as usize)
                        .is_some_and(|core| core.is_free())
                };
                (0..*amount).all(at)
            };
            *amount > 0 && *step > 0 && (0..cores.len()).any(fits)
        }
    };
    assert!(!possible, "{strategy} on {host} was refused: {why}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// Tasks come and go. Their cores are disjoint, as asked, and the same for the same question;
    /// a refusal is right, and what a task leaves is free again.
    #[test]
    fn placements_are_disjoint_as_asked_and_stable(
        machine in 0..MACHINES.len(),
        steps in proptest::collection::vec((strategies(), 1..8_u32, any::<prop::sample::Index>(), any::<bool>()), 1..40),
    ) {
        let host = parsed(&machine_of(machine));
        let mut running: Vec<proto::binding::Topology> = Vec::new();
        for (strategy, slots, which, leaves) in steps {
            if leaves && !running.is_empty() {
                running.remove(which.index(running.len()));
            }
            let mut in_use = host.clone();
            running.iter().for_each(|task| in_use.mark_all(task));
            let chosen = choose(&in_use, &strategy, slots);
            prop_assert_eq!(&chosen, &choose(&in_use, &strategy, slots), "stable");
            match chosen {
                Ok(chosen) => {
                    assert_as_asked(&chosen, &strategy, slots);
                    prop_assert!(running.iter().all(|other| !other.overlaps(&chosen)), "disjoint");
                    let text = chosen.to_string();
                    let read = proto::binding::Topology::parse(&text).unwrap();
                    prop_assert_eq!(read.marked_places(), chosen.marked_places());
                    running.push(chosen);
                }
                Err(why) => assert_impossible(&in_use, &strategy, slots, why),
            }
        }
    }
}

/// Each machine is read once.
fn machine_of(index: usize) -> Topology {
    static READ: std::sync::OnceLock<Vec<Topology>> = std::sync::OnceLock::new();
    READ.get_or_init(|| {
        MACHINES
            .map(|(name, _, _)| Machine::new(name, "random").topology())
            .into()
    })[index]
        .clone()
}
