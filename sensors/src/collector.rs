//! The standard load values of a Linux host, gathered source by source.
//!
//! A source that fails spoils no other: its values are missing from the sample and its failure is
//! reported beside them. Deliberately absent: `np_load_*`, which [`crate::report::merge`] computes
//! after the sensors' values are in, and the schedule.

use crate::cgroup::read_cgroup;
use crate::cpu::{CpuTicks, read_cpu};
use crate::disk::{DiskWatch, Watcher};
use crate::error::FactError;
use crate::gpu::read_gpus;
use crate::load::read_load;
use crate::memory::{MemFree, read_memory};
use crate::pressure::{Resource, read_pressure};
use crate::swap::read_swap;
use crate::text;
use crate::topology::{Topology, read_online, read_topology};
use crate::uptime::read_uptime;
use proto::host::arch;
use proto::id::AttributeName;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Load values by name, in the text form in which they are transported.
pub type Values = BTreeMap<AttributeName, String>;

/// What to collect, and from where.
#[derive(Clone, Debug)]
pub struct CollectorSettings {
    /// Where `proc` and `sys` are: `/` except in tests. Disks are always those of this host.
    pub root: PathBuf,
    /// The meaning of `mem_free` and of what follows from it.
    pub mem_free: MemFree,
    /// Directories to watch; by default `tmp_free` for `/tmp`.
    pub disks: Vec<DiskWatch>,
}

impl Default for CollectorSettings {
    fn default() -> Self {
        let tmp = DiskWatch {
            name: AttributeName::from("tmp_free"),
            directory: PathBuf::from("/tmp"),
        };
        Self {
            root: PathBuf::from("/"),
            mem_free: MemFree::default(),
            disks: vec![tmp],
        }
    }
}

/// How one source fared in one sample.
#[derive(Debug)]
pub struct SourceReport {
    /// The source: `load`, `memory`, `swap`, `cpu`, `processors`, `topology`, `pressure`, `disk`,
    /// `gpu`, `uptime`, `cgroup`, `arch`.
    pub source: &'static str,
    /// How long it took.
    pub took: Duration,
    /// Whether it delivered.
    pub outcome: Outcome,
}

/// What came of asking one source.
#[derive(Debug)]
pub enum Outcome {
    /// Its values are in the sample.
    Delivered,
    /// This host or kernel does not have it; that is no fault.
    Absent,
    /// It should be there and failed.
    Failed(FactError),
}

/// The load values of one moment.
#[derive(Debug, Default)]
pub struct Sample {
    /// What was found, by name.
    pub values: Values,
    /// One entry per source, in the order in which they were asked.
    pub sources: Vec<SourceReport>,
}

impl Sample {
    /// The sources that failed, with the reason of each.
    pub fn failures(&self) -> impl Iterator<Item = (&'static str, &FactError)> {
        self.sources.iter().filter_map(|report| match &report.outcome {
            Outcome::Failed(error) => Some((report.source, error)),
            Outcome::Delivered | Outcome::Absent => None,
        })
    }

    fn ask(&mut self, source: &'static str, gather: impl FnOnce(&mut Values) -> Result<(), FactError>) {
        let start = Instant::now();
        let outcome = match gather(&mut self.values) {
            Ok(()) => Outcome::Delivered,
            Err(error) if error.is_absent() && is_optional(source) => Outcome::Absent,
            Err(error) => Outcome::Failed(error),
        };
        self.sources.push(SourceReport {
            source,
            took: start.elapsed(),
            outcome,
        });
    }
}

/// Takes samples and keeps what one sample needs from an earlier one.
#[derive(Debug)]
pub struct Collector {
    settings: CollectorSettings,
    /// The ticks of the last sample: `cpu` is a difference, so the first sample has none.
    ticks: Option<CpuTicks>,
    /// Read once: sockets and cores do not change while a host runs.
    topology: Option<Topology>,
    /// Made with the first sample; none where nothing is watched.
    watcher: Option<Watcher>,
}

/// How long a sample waits for file systems to say how full they are.
const DISK_PATIENCE: Duration = Duration::from_millis(200);

impl Collector {
    /// A collector that has not taken a sample yet.
    pub fn new(settings: CollectorSettings) -> Self {
        Self {
            settings,
            ticks: None,
            topology: None,
            watcher: None,
        }
    }

    /// Asks every source once. Takes about a millisecond, and a fifth of a second where a file
    /// system hangs.
    pub fn sample(&mut self) -> Sample {
        let mut sample = Sample::default();
        let CollectorSettings { root, mem_free, disks } = self.settings.clone();
        sample.ask("arch", |values| {
            put(values, "arch", arch());
            Ok(())
        });
        sample.ask("load", |values| read_load(&root).map(|load| put_load(values, load)));
        let ticks = &mut self.ticks;
        sample.ask("cpu", |values| read_cpu(&root).map(|now| put_cpu(values, now, ticks)));
        sample.ask("processors", |values| {
            read_online(&root).map(|online| put(values, "num_proc", online.len().to_string()))
        });
        sample.ask("memory", |values| put_memory(values, &root, mem_free));
        let topology = &mut self.topology;
        sample.ask("topology", |values| put_topology(values, &root, topology));
        sample.ask("uptime", |values| {
            let uptime = read_uptime(&root)?;
            put(values, "uptime", uptime.up_s.to_string());
            put(values, "cpu_idle_time", uptime.idle_s.to_string());
            Ok(())
        });
        for resource in Resource::ALL {
            sample.ask("pressure", |values| put_pressure(values, &root, resource));
        }
        sample.ask("cgroup", |values| {
            put(values, "cgroup_version", read_cgroup(&root).number().to_string());
            Ok(())
        });
        sample.ask("gpu", |values| {
            put(values, "gpu_count", read_gpus(&root)?.to_string());
            Ok(())
        });
        if !disks.is_empty() {
            self.ask_disks(disks, &mut sample);
        }
        sample
    }

    /// One source per directory; where no answer comes, one for all of them.
    fn ask_disks(&mut self, disks: Vec<DiskWatch>, sample: &mut Sample) {
        let start = Instant::now();
        let watcher = match self.watcher.take() {
            Some(watcher) => Ok(watcher),
            None => Watcher::new(disks),
        };
        let answers = watcher.map(|watcher| self.watcher.insert(watcher).ask(DISK_PATIENCE));
        let took = start.elapsed();
        let mut note = |outcome| {
            sample.sources.push(SourceReport {
                source: "disk",
                took,
                outcome,
            })
        };
        match answers {
            Err(error) => note(Outcome::Failed(FactError::form("disk space", error))),
            Ok(None) => note(Outcome::Failed(FactError::form(
                "disk space",
                "a file system does not answer",
            ))),
            Ok(Some(answers)) => {
                for answer in answers {
                    match answer.space {
                        Ok(space) => {
                            sample.values.insert(answer.name, text::memory(space.free_bytes));
                            note(Outcome::Delivered);
                        }
                        Err(error) => note(Outcome::Failed(error)),
                    }
                }
            }
        }
    }
}

/// Whether the value of that name stays what it is while the host runs.
///
/// Static values survive the silence of a host and may be used to select hosts before any load is
/// known.
pub fn is_static(name: &str) -> bool {
    const STATIC: [&str; 10] = [
        "arch",
        "num_proc",
        "mem_total",
        "swap_total",
        "virtual_total",
        "m_topology",
        "m_topology_numa",
        "m_socket",
        "m_core",
        "m_thread",
    ];
    STATIC.contains(&name)
}

/// Kernels may be built without pressure stall information, and few hosts have the driver that
/// lists GPUs.
fn is_optional(source: &str) -> bool {
    ["pressure", "gpu"].contains(&source)
}

fn put(values: &mut Values, name: &str, value: impl Into<String>) {
    values.insert(AttributeName::from(name), value.into());
}

fn put_load(values: &mut Values, load: crate::load::LoadAverages) {
    put(values, "load_avg", text::number(load.medium));
    put(values, "load_short", text::number(load.short));
    put(values, "load_medium", text::number(load.medium));
    put(values, "load_long", text::number(load.long));
}

fn put_cpu(values: &mut Values, now: CpuTicks, last: &mut Option<CpuTicks>) {
    if let Some(percent) = last.replace(now).and_then(|earlier| now.busy_percent_since(&earlier)) {
        put(values, "cpu", text::number(percent));
    }
}

/// Memory and swap stand in one file and are one source, because the `virtual_` values need both.
fn put_memory(values: &mut Values, root: &std::path::Path, mem_free: MemFree) -> Result<(), FactError> {
    let memory = read_memory(root, mem_free)?;
    let swap = read_swap(root)?;
    let triple = |values: &mut Values, prefix: &str, total: u64, free: u64, used: u64| {
        put(values, &format!("{prefix}_total"), text::memory(total));
        put(values, &format!("{prefix}_free"), text::memory(free));
        put(values, &format!("{prefix}_used"), text::memory(used));
    };
    triple(
        values,
        "mem",
        memory.total_bytes,
        memory.free_bytes,
        memory.used_bytes(),
    );
    triple(values, "swap", swap.total_bytes, swap.free_bytes, swap.used_bytes());
    let total = memory.total_bytes.saturating_add(swap.total_bytes);
    let free = memory.free_bytes.saturating_add(swap.free_bytes);
    triple(
        values,
        "virtual",
        total,
        free,
        memory.used_bytes().saturating_add(swap.used_bytes()),
    );
    Ok(())
}

fn put_topology(values: &mut Values, root: &std::path::Path, known: &mut Option<Topology>) -> Result<(), FactError> {
    let topology = match known {
        Some(topology) => topology,
        None => known.insert(read_topology(root)?),
    };
    put(values, "m_socket", topology.sockets.to_string());
    put(values, "m_core", topology.cores.to_string());
    put(values, "m_thread", topology.threads.to_string());
    put(values, "m_topology", topology.text.clone());
    // The master knows which cores tasks have, and marks them.
    put(values, "m_topology_inuse", topology.text.clone());
    // A host without several nodes in a socket and without two kinds of cores has no more to tell.
    if topology.detailed != topology.text {
        put(values, "m_topology_numa", topology.detailed.clone());
    }
    Ok(())
}

/// `psi_cpu_some`, `psi_memory_full` and so on: percent of the last ten seconds.
fn put_pressure(values: &mut Values, root: &std::path::Path, resource: Resource) -> Result<(), FactError> {
    let pressure = read_pressure(root, resource)?;
    put(
        values,
        &format!("psi_{}_some", resource.as_str()),
        text::number(pressure.some),
    );
    if let Some(full) = pressure.full {
        put(values, &format!("psi_{}_full", resource.as_str()), text::number(full));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::fixture::Tree;

    fn tree() -> Tree {
        let base = "sys/devices/system/cpu";
        Tree::new(&[
            ("proc/loadavg", "10.73 6.99 3.02 3/428 2496\n"),
            ("proc/stat", crate::cpu::tests::STAT),
            ("proc/meminfo", crate::memory::tests::MEMINFO),
            ("proc/uptime", "350735.47 234388.90\n"),
            (&format!("{base}/online"), "0-1\n"),
            (&format!("{base}/cpu0/topology/physical_package_id"), "0\n"),
            (&format!("{base}/cpu0/topology/core_id"), "0\n"),
            (&format!("{base}/cpu1/topology/physical_package_id"), "0\n"),
            (&format!("{base}/cpu1/topology/core_id"), "1\n"),
        ])
    }

    fn collector(tree: &Tree, mem_free: MemFree) -> Collector {
        Collector::new(CollectorSettings {
            root: tree.root().to_owned(),
            mem_free,
            disks: Vec::new(),
        })
    }

    #[test]
    fn standard_values_have_the_text_forms_of_8_1_9() {
        let tree = tree();
        let sample = collector(&tree, MemFree::Classic).sample();
        assert_eq!(sample.failures().count(), 0);
        let expected = [
            ("arch", arch()),
            ("load_avg", "6.990000"),
            ("load_short", "10.730000"),
            ("load_medium", "6.990000"),
            ("load_long", "3.020000"),
            ("num_proc", "2"),
            ("mem_total", "24105.550781M"),
            ("mem_free", "23196.035156M"),
            ("mem_used", "909.515625M"),
            ("swap_total", "2048.000000M"),
            ("swap_free", "1024.000000M"),
            ("swap_used", "1024.000000M"),
            ("virtual_total", "26153.550781M"),
            ("virtual_free", "24220.035156M"),
            ("virtual_used", "1933.515625M"),
            ("m_socket", "1"),
            ("m_core", "2"),
            ("m_thread", "2"),
            ("m_topology", "SCC"),
            ("m_topology_inuse", "SCC"),
            ("uptime", "350735"),
        ];
        for (name, value) in expected {
            assert_eq!(sample.values.get(name).map(String::as_str), Some(value), "{name}");
        }
    }

    #[test]
    fn first_sample_has_no_cpu_and_the_second_has_it_with_one_decimal() {
        let tree = tree();
        let mut collector = collector(&tree, MemFree::Available);
        assert!(!collector.sample().values.contains_key("cpu"));
        let later = crate::cpu::tests::STAT.replace("cpu  100 0 50 800", "cpu  1099 0 50 801");
        std::fs::write(tree.root().join("proc/stat"), later).unwrap();
        assert_eq!(
            collector.sample().values.get("cpu").map(String::as_str),
            Some("99.900000")
        );
    }

    #[test]
    fn a_failing_source_spoils_no_other_and_says_so() {
        let tree = tree();
        std::fs::write(tree.root().join("proc/loadavg"), "garbage").unwrap();
        std::fs::remove_file(tree.root().join("proc/meminfo")).unwrap();
        let sample = collector(&tree, MemFree::Available).sample();
        let failed: Vec<_> = sample.failures().map(|(source, _)| source).collect();
        assert_eq!(failed, ["load", "memory"]);
        assert!(!sample.values.contains_key("load_avg"));
        assert_eq!(sample.values.get("num_proc").map(String::as_str), Some("2"));
    }

    #[test]
    fn a_host_without_pressure_information_or_gpus_is_not_at_fault() {
        let tree = tree();
        let sample = collector(&tree, MemFree::Available).sample();
        let absent = sample
            .sources
            .iter()
            .filter(|report| matches!(report.outcome, Outcome::Absent));
        assert_eq!(
            absent.map(|report| report.source).collect::<Vec<_>>(),
            ["pressure", "pressure", "pressure", "gpu"]
        );
    }

    #[test]
    fn topology_is_read_once() {
        let tree = tree();
        let mut collector = collector(&tree, MemFree::Available);
        collector.sample();
        std::fs::remove_dir_all(tree.root().join("sys/devices/system/cpu/cpu1")).unwrap();
        assert_eq!(
            collector.sample().values.get("m_topology").map(String::as_str),
            Some("SCC")
        );
    }

    #[test]
    fn a_directory_that_is_watched_is_a_source_of_its_own() {
        let disks = vec![DiskWatch {
            name: "scratch_free".into(),
            directory: PathBuf::from("/tmp"),
        }];
        let mut collector = Collector::new(CollectorSettings {
            disks,
            ..CollectorSettings::default()
        });
        let sample = collector.sample();
        let disk = sample.sources.iter().find(|report| report.source == "disk").unwrap();
        assert_eq!(
            sample.values.contains_key("scratch_free"),
            matches!(disk.outcome, Outcome::Delivered)
        );
    }

    #[test]
    fn this_host_delivers_every_standard_value() {
        let mut collector = Collector::new(CollectorSettings::default());
        let sample = collector.sample();
        for name in [
            "arch",
            "load_avg",
            "num_proc",
            "mem_total",
            "mem_free",
            "swap_total",
            "virtual_total",
        ] {
            assert!(
                sample.values.contains_key(name),
                "{name} is missing: {:?}",
                sample.sources
            );
        }
        assert!(is_static("arch") && is_static("m_thread") && !is_static("mem_free") && !is_static("m_topology_inuse"));
    }
}
