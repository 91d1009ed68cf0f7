//! The group of one task: its limits, what it uses, and its end.

use super::abilities::try_to_enter;
use super::devices::{self, DeviceRule, DeviceWall, WallError};
use super::directory::GroupDirectory;
use super::place::{GroupPlace, NeededHierarchies};
use crate::proc::{self, ProcessStat};
use proto::id::TaskKey;
use std::collections::BTreeSet;
use std::io;
use std::path::Path;

/// `cpu.weight` of a group that nobody has given another.
const USUAL_WEIGHT: u32 = 100;

/// The limits of memory of a group, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryBounds {
    /// Where the kernel ends the task.
    pub hard: Option<u64>,
    /// Where the kernel slows the task down and takes page cache back.
    pub soft: Option<u64>,
    /// Whether the task gets no swap space.
    pub no_swap: bool,
}

/// The limits that the kernel keeps for a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupLimits {
    /// Memory of all processes together.
    pub memory: MemoryBounds,
    /// Processes and threads.
    pub processes: Option<u64>,
}

/// The limits that were asked for and that the host could not set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnsetInGroup {
    /// Memory: there is no memory controller.
    pub memory: bool,
    /// The task may use swap space beside its memory.
    pub swap: bool,
    /// Processes: there is no such controller.
    pub processes: bool,
}

/// The group of a task, in one hierarchy or in two.
#[derive(Debug)]
pub struct TaskGroup {
    name: String,
    /// The group, and the directory that it is in. The first one has all processes of the task.
    directories: Vec<(GroupDirectory, GroupDirectory)>,
}

impl TaskGroup {
    /// Makes the group of a task.
    ///
    /// # Errors
    /// The host has a place for groups, but not for this one.
    pub fn create(place: &GroupPlace, key: &TaskKey, needed: NeededHierarchies) -> io::Result<Self> {
        let name = key.to_string();
        let mut made = TaskGroup {
            name,
            directories: Vec::new(),
        };
        for path in place.directories(needed) {
            let outcome = GroupDirectory::open(path)
                .and_then(|parent| parent.make(&made.name).map(|directory| (directory, parent)));
            match outcome {
                Ok(pair) => made.directories.push(pair),
                Err(error) => {
                    made.remove();
                    return Err(io::Error::new(
                        error.kind(),
                        format!("control group {}: {error}", path.join(&made.name).display()),
                    ));
                }
            }
        }
        Ok(made)
    }

    /// The group that a task has, perhaps from an earlier launcher; `None` if it has none.
    pub fn existing(place: &GroupPlace, key: &TaskKey) -> Option<Self> {
        let name = key.to_string();
        let pair = |path: &Path| {
            let parent = GroupDirectory::open(path).ok()?;
            Some((parent.child(&name).ok()?, parent))
        };
        let directories: Vec<_> = place.directories(NeededHierarchies::ALL).filter_map(pair).collect();
        (!directories.is_empty()).then_some(TaskGroup { name, directories })
    }

    /// The directory that has all processes, for records.
    pub fn path(&self) -> Option<&Path> {
        self.directories.first().map(|(directory, _)| directory.path())
    }

    /// Moves this process into the group.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn enter(&self) -> io::Result<()> {
        self.all().try_for_each(GroupDirectory::enter)
    }

    /// Lets a process of ours enter the group and end there, to see whether that is possible.
    ///
    /// # Errors
    /// Those of entering.
    pub fn try_to_enter(&self) -> io::Result<()> {
        self.all().try_for_each(try_to_enter)
    }

    fn all(&self) -> impl Iterator<Item = &GroupDirectory> {
        self.directories.iter().map(|(directory, _)| directory)
    }

    /// The directory in which the kernel offers a file.
    fn with(&self, file: &str) -> Option<&GroupDirectory> {
        self.all().find(|directory| directory.has(file))
    }

    /// Sets the limits, and returns those that the host cannot keep.
    pub fn limit(&self, limits: &GroupLimits) -> UnsetInGroup {
        let (memory, swap) = self.limit_memory(&limits.memory);
        let processes = limits
            .processes
            .is_some_and(|most| !self.all().any(|directory| directory.write("pids.max", most).is_ok()));
        UnsetInGroup {
            memory,
            swap,
            processes,
        }
    }

    /// Keeps the processes of the group on these processors, whatever they ask for. Without the
    /// controller, and in the first version, their own affinity alone does.
    pub fn confine(&self, processors: &str) {
        let is_second = |directory: &&GroupDirectory| directory.has("cpuset.cpus.effective");
        if let Some(directory) = self.all().find(is_second) {
            // The kernel refuses processors that the group above does not have.
            let _ = directory.write("cpuset.cpus", processors);
        }
    }

    /// Whether the kernel can limit the memory of the group.
    pub fn has_memory(&self) -> bool {
        self.with("memory.max")
            .or_else(|| self.with("memory.limit_in_bytes"))
            .is_some()
    }

    /// Keeps devices from the processes of the group.
    ///
    /// # Errors
    /// The kernel can do it in no way.
    pub fn wall(&self, rules: &[DeviceRule]) -> Result<DeviceWall, WallError> {
        devices::build(self.directories.iter().map(|(directory, _)| directory), rules)
    }

    /// Takes all limits away.
    pub fn lift(&self) {
        for directory in self.all() {
            for file in ["memory.max", "memory.high", "memory.swap.max", "pids.max"] {
                let _ = directory.write(file, "max");
            }
            if directory.has("cpuset.cpus.effective") {
                let _ = directory.write("cpuset.cpus", "\n");
            }
            // The limit of both together is never below the one of memory alone.
            for file in ["memory.memsw.limit_in_bytes", "memory.limit_in_bytes"] {
                let _ = directory.write(file, -1);
            }
        }
    }

    /// Returns whether the limit of memory, and the ban of swap space, could not be set.
    fn limit_memory(&self, bounds: &MemoryBounds) -> (bool, bool) {
        let Some(hard) = bounds.hard else {
            // In the first version the shepherd sees to it alone.
            let is_set = bounds.soft.is_none_or(|soft| {
                let keeps = |directory: &GroupDirectory| {
                    directory.write("memory.high", soft).is_ok() || directory.has("memory.usage_in_bytes")
                };
                self.all().any(keeps)
            });
            return (!is_set, false);
        };
        if let Some(directory) = self.with("memory.max") {
            // Before Linux 4.19 there is no such file; then the shepherd ends the others.
            let _ = directory.write("memory.oom.group", 1);
            if let Some(soft) = bounds.soft.filter(|soft| *soft < hard) {
                let _ = directory.write("memory.high", soft);
            }
            let keeps_swap = bounds.no_swap && directory.write("memory.swap.max", 0).is_err();
            return (directory.write("memory.max", hard).is_err(), keeps_swap && has_swap());
        }
        let Some(directory) = self.with("memory.limit_in_bytes") else {
            return (true, false);
        };
        let is_set = directory.write("memory.limit_in_bytes", hard).is_ok();
        // The limit of both together is never below the one of memory alone.
        let keeps_swap = bounds.no_swap && directory.write("memory.memsw.limit_in_bytes", hard).is_err();
        (!is_set, keeps_swap && has_swap())
    }

    /// Sets the share of the processor that the group gets beside others: 1 to 10000, and 100 if
    /// none is given. Version 1 of control groups calls this `cpu.shares`: 1024 there is 100 here.
    pub fn set_cpu_weight(&self, weight: Option<u32>) {
        let weight = u64::from(weight.unwrap_or(USUAL_WEIGHT).clamp(1, 10_000));
        let shares = (weight * 1024 / u64::from(USUAL_WEIGHT)).max(2);
        // The controller may be off: then the nice value works alone.
        let set = |directory: &GroupDirectory| {
            let v1 = || directory.write("cpu.shares", shares);
            directory.write("cpu.weight", weight).or_else(|_| v1()).is_ok()
        };
        self.all().any(set);
    }

    /// Stops all processes of the group, or lets them go on. Returns whether the kernel can.
    pub fn freeze(&self, stop: bool) -> bool {
        let word = if stop { "FROZEN" } else { "THAWED" };
        self.all().any(|directory| {
            let v1 = || directory.write("freezer.state", word);
            directory
                .write("cgroup.freeze", u8::from(stop))
                .or_else(|_| v1())
                .is_ok()
        })
    }

    /// Sends SIGKILL to every process of the group, whatever session and environment it has.
    pub fn kill(&self) {
        // Before Linux 5.14, and in the first version, there is no such file.
        if self.all().any(|directory| directory.write("cgroup.kill", 1).is_ok()) {
            return;
        }
        // A group that the first version has frozen takes no SIGKILL.
        self.freeze(false);
        self.members()
            .iter()
            .for_each(|process| proc::signal(process, libc::SIGKILL));
    }

    /// The live processes of the group. Processes of its subgroups are left out.
    pub fn members(&self) -> Vec<ProcessStat> {
        let Some(directory) = self.all().next() else {
            return Vec::new();
        };
        let pids = directory.read("cgroup.procs").unwrap_or_default();
        let processes = pids.lines().filter_map(|pid| proc::stat(pid.parse().ok()?));
        processes.filter(|process| !process.is_gone()).collect()
    }

    /// Those of some processes that are in another group. A user's own service manager moves
    /// processes to its scopes, also those of other parents.
    pub fn outside<'a>(&self, processes: &'a [ProcessStat]) -> Vec<&'a ProcessStat> {
        let pids = self.all().next().and_then(|directory| directory.read("cgroup.procs"));
        let pids = pids.unwrap_or_default();
        let members: BTreeSet<i32> = pids.lines().filter_map(|pid| pid.parse().ok()).collect();
        // A job may make groups in its own one.
        let is_below = |pid: i32| {
            let groups = proc::read_short(&format!("/proc/{pid}/cgroup")).unwrap_or_default();
            groups.is_empty() || groups.split(['/', '\n']).any(|part| part == self.name)
        };
        let strays = processes.iter().filter(|process| !members.contains(&process.pid));
        strays.filter(|process| !is_below(process.pid)).collect()
    }

    /// Whether the group, or a group in it, has processes.
    pub fn is_populated(&self) -> bool {
        let first = self.all().next();
        let told = first.and_then(|directory| directory.entry("cgroup.events", "populated"));
        told.map_or_else(|| !self.members().is_empty(), |count| count > 0)
    }

    /// How often the kernel killed a process of the group for want of memory.
    pub fn oom_kills(&self) -> u64 {
        let kills = |directory: &GroupDirectory| {
            let count = |file| directory.entry(file, "oom_kill");
            count("memory.events").or_else(|| count("memory.oom_control"))
        };
        self.all().find_map(kills).unwrap_or(0)
    }

    /// Whether the group came to its own limit of memory. Otherwise the kernel killed for a limit
    /// above it, or because the host had no memory.
    pub fn has_hit_its_memory(&self) -> bool {
        let has_hit = |directory: &GroupDirectory| {
            let v2 = directory.entry("memory.events", "oom").map(|count| count > 0);
            // The first version does not count that on every kernel.
            let v1 = || {
                let limit = directory.number("memory.limit_in_bytes")?;
                Some(directory.number("memory.max_usage_in_bytes")? >= limit - limit / 64)
            };
            v2.or_else(v1)
        };
        self.all().find_map(has_hit).unwrap_or(false)
    }

    /// The most memory that the group ever had, with page cache, in bytes.
    pub fn memory_peak(&self) -> Option<u64> {
        let peak = |directory: &GroupDirectory| {
            let v2 = directory.number("memory.peak");
            v2.or_else(|| directory.number("memory.max_usage_in_bytes"))
        };
        self.all().find_map(peak)
    }

    /// The memory that the group uses now in bytes, without page cache and without what else the
    /// kernel takes back by itself; `None` without a memory controller. Files in memory (tmpfs) are
    /// not page cache.
    pub fn memory_use(&self) -> Option<u64> {
        let use_of = |directory: &GroupDirectory| {
            let count = |name| directory.entry("memory.stat", name);
            if let Some(current) = directory.number("memory.current") {
                let cache = count("file")?.saturating_sub(count("shmem")?);
                let slab = count("slab_reclaimable").unwrap_or(0);
                return Some(current.saturating_sub(cache).saturating_sub(slab));
            }
            let current = directory.number("memory.usage_in_bytes")?;
            let cache = count("total_cache")?.saturating_sub(count("total_shmem").unwrap_or(0));
            Some(current.saturating_sub(cache))
        };
        self.all().find_map(use_of)
    }

    /// How often a process or thread could not be made because of the limit.
    pub fn refused_processes(&self) -> u64 {
        let refused = |directory: &GroupDirectory| directory.entry("pids.events", "max");
        self.all().find_map(refused).unwrap_or(0)
    }

    /// The share of the last ten seconds in which a process of the group waited for the processor
    /// or for memory (`/proc/pressure`), in hundredths of a percent. `None` where the kernel does
    /// not say.
    pub fn pressure(&self, resource: &str) -> Option<u32> {
        let text = self
            .all()
            .find_map(|directory| directory.read(&format!("{resource}.pressure")))?;
        parse_pressure(&text)
    }

    /// Removes the empty group.
    pub fn remove(&self) {
        self.directories
            .iter()
            .for_each(|(_, parent)| parent.remove(&self.name));
    }
}

/// The number behind `avg10=` in the line of `some`.
fn parse_pressure(text: &str) -> Option<u32> {
    let line = text.lines().find(|line| line.starts_with("some "))?;
    let number = line
        .split_ascii_whitespace()
        .find_map(|word| word.strip_prefix("avg10="))?;
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let hundredths: u32 = format!("{part:0<2}").get(..2)?.parse().ok()?;
    Some(
        whole
            .parse::<u32>()
            .ok()?
            .saturating_mul(100)
            .saturating_add(hundredths),
    )
}

/// Whether the host has swap space: a line for each behind the head.
fn has_swap() -> bool {
    std::fs::read_to_string("/proc/swaps").is_ok_and(|text| text.lines().count() > 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::PathBuf;

    /// A plain directory stands for a place of groups. It is gone with the test.
    struct FakePlace {
        base: PathBuf,
        key: TaskKey,
    }

    impl FakePlace {
        fn new(name: &str) -> Self {
            let base = std::env::temp_dir().join(format!("gridwright-{name}-{}", std::process::id()));
            let key: TaskKey = "00000000000000ab.1.1.0.1".parse().unwrap();
            fs::create_dir_all(&base).unwrap();
            FakePlace { base, key }
        }

        /// The group, with the files that a kernel would offer.
        fn group(&self, files: &[&str]) -> TaskGroup {
            let place = GroupPlace::at(&self.base);
            fs::create_dir_all(self.base.join(self.key.to_string())).unwrap();
            for file in files {
                self.write(file, "");
            }
            TaskGroup::existing(&place, &self.key).unwrap()
        }

        fn file(&self, name: &str) -> PathBuf {
            self.base.join(self.key.to_string()).join(name)
        }

        fn write(&self, name: &str, text: &str) {
            fs::write(self.file(name), text).unwrap();
        }

        fn read(&self, name: &str) -> Option<String> {
            fs::read_to_string(self.file(name)).ok()
        }
    }

    impl Drop for FakePlace {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.base);
        }
    }

    const BOUNDS: MemoryBounds = MemoryBounds {
        hard: Some(300),
        soft: Some(200),
        no_swap: true,
    };

    #[test]
    fn processes_of_other_groups_are_outside() {
        let place = FakePlace::new("strays");
        let group = place.group(&["cgroup.procs"]);
        let me = proc::stat(std::process::id() as i32).unwrap();
        let parent = proc::stat(nix::unistd::getppid().as_raw()).unwrap();
        place.write("cgroup.procs", &format!("{}\n", me.pid));
        let processes = [me, parent];
        let outside = |group: &TaskGroup| group.outside(&processes).iter().map(|it| it.pid).collect::<Vec<_>>();
        assert_eq!(outside(&group), [parent.pid]);
        place.write("cgroup.procs", "");
        assert_eq!(outside(&group), [me.pid, parent.pid]);
    }

    #[test]
    fn the_kernel_is_told_all_limits_of_memory() {
        let place = FakePlace::new("memory-v2");
        let files = [
            "memory.max",
            "memory.high",
            "memory.swap.max",
            "memory.oom.group",
            "pids.max",
        ];
        let group = place.group(&files);
        let limits = GroupLimits {
            memory: BOUNDS,
            processes: Some(7),
        };
        assert_eq!(group.limit(&limits), UnsetInGroup::default());
        for (file, expected) in files.iter().zip(["300", "200", "0", "1", "7"]) {
            assert_eq!(place.read(file).as_deref(), Some(expected), "{file}");
        }
        group.lift();
        for file in ["memory.max", "memory.high", "memory.swap.max", "pids.max"] {
            assert_eq!(place.read(file).as_deref(), Some("max"), "{file}");
        }
    }

    #[test]
    fn a_soft_limit_that_is_the_hard_one_slows_nobody_down() {
        let place = FakePlace::new("memory-soft");
        let group = place.group(&["memory.max", "memory.high"]);
        let memory = MemoryBounds {
            soft: Some(300),
            ..BOUNDS
        };
        group.limit(&GroupLimits {
            memory,
            processes: None,
        });
        assert_eq!(place.read("memory.high").as_deref(), Some(""));
    }

    #[test]
    fn the_first_version_limits_memory_and_both_together() {
        let place = FakePlace::new("memory-v1");
        let group = place.group(&["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"]);
        let limits = GroupLimits {
            memory: BOUNDS,
            processes: None,
        };
        assert_eq!(group.limit(&limits), UnsetInGroup::default());
        assert_eq!(place.read("memory.limit_in_bytes").as_deref(), Some("300"));
        assert_eq!(place.read("memory.memsw.limit_in_bytes").as_deref(), Some("300"));
    }

    #[test]
    fn limits_without_a_controller_are_reported_and_no_file_is_made() {
        let place = FakePlace::new("unset");
        let group = place.group(&[]);
        let limits = GroupLimits {
            memory: BOUNDS,
            processes: Some(7),
        };
        let unset = group.limit(&limits);
        assert!(unset.memory && unset.processes, "{unset:?}");
        assert_eq!(fs::read_dir(place.file("")).unwrap().count(), 0);
        assert_eq!(group.limit(&GroupLimits::default()), UnsetInGroup::default());
    }

    #[test]
    fn page_cache_is_not_use_but_files_in_memory_are() {
        let place = FakePlace::new("use");
        let group = place.group(&[]);
        assert_eq!(group.memory_use(), None);
        place.write("memory.current", "1000\n");
        place.write("memory.stat", "anon 100\nfile 700\nshmem 50\nslab_reclaimable 30\n");
        assert_eq!(group.memory_use(), Some(320));
        fs::remove_file(place.file("memory.current")).unwrap();
        place.write("memory.usage_in_bytes", "1000\n");
        place.write("memory.stat", "cache 1\ntotal_cache 600\ntotal_shmem 100\n");
        assert_eq!(group.memory_use(), Some(500));
    }

    #[test]
    fn a_kill_is_the_groups_own_only_if_it_came_to_its_limit() {
        let place = FakePlace::new("kills");
        let group = place.group(&[]);
        place.write(
            "memory.events",
            "low 0\nhigh 3\nmax 9\noom 0\noom_kill 2\noom_group_kill 1\n",
        );
        assert_eq!((group.oom_kills(), group.has_hit_its_memory()), (2, false));
        place.write("memory.events", "low 0\nhigh 3\nmax 9\noom 1\noom_kill 2\n");
        assert!(group.has_hit_its_memory());
        place.write("memory.peak", "4096\n");
        assert_eq!(group.memory_peak(), Some(4096));
        fs::remove_file(place.file("memory.events")).unwrap();
        place.write("memory.oom_control", "under_oom 0\noom_kill 1\n");
        place.write("memory.limit_in_bytes", "6400\n");
        for (most, expected) in [("6299\n", false), ("6300\n", true)] {
            place.write("memory.max_usage_in_bytes", most);
            assert_eq!((group.oom_kills(), group.has_hit_its_memory()), (1, expected));
        }
    }

    /// A plain directory stands for the group: the test looks at which of its files are written,
    /// and that no new file appears.
    #[test]
    fn the_weight_goes_into_the_file_that_the_kernel_offers() {
        let place = FakePlace::new("weights");
        let group = place.group(&[]);
        group.set_cpu_weight(Some(250));
        assert_eq!(place.read("cpu.weight"), None, "the controller is off");
        for (file, weight, written) in [
            ("cpu.shares", Some(250), "2560"),
            ("cpu.weight", Some(250), "250"),
            ("cpu.weight", Some(20_000), "10000"),
        ] {
            place.write(file, "");
            group.set_cpu_weight(weight);
            assert_eq!(place.read(file).as_deref(), Some(written));
        }
        assert!(TaskGroup::existing(&GroupPlace::at(Path::new("/nowhere")), &place.key).is_none());
    }

    #[test]
    fn a_group_is_frozen_by_the_file_that_the_kernel_offers() {
        let place = FakePlace::new("freezer");
        let group = place.group(&[]);
        assert!(!group.freeze(true));
        for (file, stopped, goes_on) in [("freezer.state", "FROZEN", "THAWED"), ("cgroup.freeze", "1", "0")] {
            place.write(file, "");
            for (stop, word) in [(true, stopped), (false, goes_on)] {
                // The kernel replaces the value; a plain file keeps what is longer.
                place.write(file, "");
                assert!(group.freeze(stop));
                assert_eq!(place.read(file).as_deref(), Some(word));
            }
        }
    }

    #[test]
    fn a_bound_job_is_kept_on_its_processors_by_the_second_version_alone() {
        let place = FakePlace::new("cpuset");
        let group = place.group(&["cpuset.cpus"]);
        group.confine("0-1,4");
        assert_eq!(
            place.read("cpuset.cpus").as_deref(),
            Some(""),
            "version 1 needs its memory nodes first"
        );
        place.write("cpuset.cpus.effective", "0-7");
        group.confine("0-1,4");
        assert_eq!(place.read("cpuset.cpus").as_deref(), Some("0-1,4"));
        place.write("cpuset.cpus", "");
        group.lift();
        assert_eq!(
            place.read("cpuset.cpus").as_deref(),
            Some("\n"),
            "the epilog runs on all"
        );
    }

    #[test]
    fn pressure_is_read_in_hundredths() {
        let text = "some avg10=12.34 avg60=1.00 avg300=0.00 total=5\nfull avg10=99.00 avg60=0.00 avg300=0.00 total=1\n";
        assert_eq!(parse_pressure(text), Some(1234));
        assert_eq!(parse_pressure("some avg10=0.05 avg60=0"), Some(5));
        for damaged in ["", "full avg10=1.00", "some avg10=x"] {
            assert_eq!(parse_pressure(damaged), None, "{damaged}");
        }
    }
}
