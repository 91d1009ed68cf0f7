//! A cgroup of the task's own below a directory of ours (v2, or one v1 controller). Existing groups
//! are never touched.

use proto::id::TaskKey;
use proto::launch::TaskLimits;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// `cpu.weight` of a group that nobody has given another.
const USUAL_WEIGHT: u32 = 100;

/// The task's group; removed by [`Cgroup::remove`].
#[derive(Clone, Debug)]
pub struct Cgroup {
    path: PathBuf,
}

impl Cgroup {
    /// Makes the group and sets the memory limit beside the sampler's; `None` where the host has no
    /// such directory or the group cannot be made: the task is then tracked as a tree of processes.
    pub fn create(parent: Option<&str>, key: &TaskKey, limits: &TaskLimits) -> Option<Self> {
        let path = Path::new(parent?).join(key.to_string());
        fs::create_dir(&path).ok()?;
        let group = Cgroup { path };
        if let Some(bytes) = limits.h_rss_bytes.or(limits.h_vmem_bytes) {
            // The memory controller may be off: then setrlimit and the sampler enforce the limit
            // alone.
            let _ = group
                .write("memory.max", bytes)
                .or_else(|_| group.write("memory.limit_in_bytes", bytes));
        }
        Some(group)
    }

    /// The group of a task, if it has one.
    pub fn existing(parent: &str, key: &TaskKey) -> Option<Self> {
        let path = Path::new(parent).join(key.to_string());
        path.is_dir().then_some(Cgroup { path })
    }

    /// Sets the share of the processor that the group gets beside others: 1 to 10000, and 100 if
    /// none is given. The first version of control groups writes 1024 where the second writes 100.
    pub fn set_cpu_weight(&self, weight: Option<u32>) {
        let weight = u64::from(weight.unwrap_or(USUAL_WEIGHT).clamp(1, 10_000));
        // The controller may be off: then the nice value works alone.
        let v1 = || self.write("cpu.shares", (weight * 1024 / u64::from(USUAL_WEIGHT)).max(2));
        let _ = self.write("cpu.weight", weight).or_else(|_| v1());
    }

    /// Names a group made before.
    pub fn at(path: &str) -> Self {
        Cgroup { path: path.into() }
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Moves this process into the group.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn enter(&self) -> io::Result<()> {
        fs::write(self.path.join("cgroup.procs"), "0")
    }

    /// Kills every process of the group, where the kernel can.
    pub fn kill(&self) {
        // Before Linux 5.14 and in v1 there is no such file; the walk over the processes does it.
        let _ = self.write("cgroup.kill", 1);
    }

    /// How often the kernel killed a process of the group for want of memory.
    pub fn oom_kills(&self) -> u64 {
        oom_kills_of(&self.path).unwrap_or(0)
    }

    /// Removes the empty group.
    pub fn remove(&self) {
        // A group that is not empty yet stays; its name is never used again.
        let _ = fs::remove_dir(&self.path);
    }

    fn write(&self, name: &str, value: u64) -> io::Result<()> {
        // Without O_CREAT: a file that the kernel does not offer must not be made elsewhere.
        use io::Write;
        fs::OpenOptions::new()
            .write(true)
            .open(self.path.join(name))?
            .write_all(value.to_string().as_bytes())
    }
}

/// Processes of a group that the kernel killed for want of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupKills {
    /// How many.
    pub count: u64,
    /// The limit in bytes of the group, or of the nearest one above it that has one.
    pub bound: Option<u64>,
}

/// The group that this process is in, which the host made: a task without a group of its own shares
/// it.
#[derive(Clone, Debug)]
pub struct InheritedCgroup {
    path: PathBuf,
    killed_before: u64,
}

/// Where the groups of the memory controller are, in v2 and in v1.
const MEMORY_GROUPS: [(&str, &str); 3] = [
    ("0::", "/sys/fs/cgroup"),
    ("0::", "/sys/fs/cgroup/unified"),
    (":memory:", "/sys/fs/cgroup/memory"),
];

/// A limit from here on means none.
const NO_LIMIT_BYTES: u64 = 1 << 60;

impl InheritedCgroup {
    /// The group as it is now; `None` on a host without the memory controller.
    pub fn find() -> Option<Self> {
        let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
        let path = MEMORY_GROUPS.iter().find_map(|(mark, base)| {
            let line = groups
                .lines()
                .find_map(|line| line.split_once(mark).map(|(_, path)| path))?;
            let path = Path::new(base).join(line.trim_start_matches('/'));
            own_oom_kills_of(&path).map(|_| path)
        })?;
        let killed_before = own_oom_kills_of(&path)?;
        Some(InheritedCgroup { path, killed_before })
    }

    /// The kills since the group was found.
    pub fn kills(&self) -> GroupKills {
        let count = own_oom_kills_of(&self.path)
            .unwrap_or(0)
            .saturating_sub(self.killed_before);
        let bound = self.path.ancestors().find_map(limit_of);
        GroupKills { count, bound }
    }
}

fn limit_of(group: &Path) -> Option<u64> {
    let read = |name: &str| fs::read_to_string(group.join(name)).ok()?.trim().parse::<u64>().ok();
    read("memory.max")
        .or_else(|| read("memory.limit_in_bytes"))
        .filter(|bytes| *bytes < NO_LIMIT_BYTES)
}

/// The kills in a group and all groups below it.
fn oom_kills_of(group: &Path) -> Option<u64> {
    first_oom_kills(group, &["memory.events", "memory.oom_control"])
}

/// The kills in a group, without those in the groups below it, which belong to other tasks. Linux
/// before 5.2 counts both together.
fn own_oom_kills_of(group: &Path) -> Option<u64> {
    first_oom_kills(group, &["memory.events.local", "memory.events", "memory.oom_control"])
}

fn first_oom_kills(group: &Path, names: &[&str]) -> Option<u64> {
    let text = names
        .iter()
        .find_map(|name| fs::read_to_string(group.join(name)).ok())?;
    text.lines()
        .find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kills_of_the_group_around_count_from_when_it_was_found_and_the_nearest_limit_is_named() {
        let above = std::env::temp_dir().join(format!("gridwright-around-{}", std::process::id()));
        let path = above.join("inner");
        fs::create_dir_all(&path).expect("a directory is made");
        let write = |name: &str, text: &str| fs::write(path.join(name), text).expect("a file is made");
        write("memory.events", "low 0\noom 9\noom_kill 2\n");
        let around = InheritedCgroup {
            path: path.clone(),
            killed_before: 2,
        };
        assert_eq!(around.kills(), GroupKills { count: 0, bound: None });
        write("memory.events", "low 0\noom 9\noom_kill 3\n");
        write("memory.max", "max\n");
        fs::write(above.join("memory.max"), "104857600\n").expect("a file is made");
        assert_eq!(
            around.kills(),
            GroupKills {
                count: 1,
                bound: Some(100 << 20)
            }
        );
        // The kill was in the group of another task.
        write("memory.events.local", "oom_kill 2\n");
        assert_eq!(
            around.kills(),
            GroupKills {
                count: 0,
                bound: Some(100 << 20)
            }
        );
        fs::remove_dir_all(&above).expect("it is ours");
    }

    /// A plain directory stands for the group: the test looks at which of its files are written,
    /// and that no new file appears.
    #[test]
    fn the_weight_goes_into_the_file_that_the_kernel_offers() {
        let key: TaskKey = "00000000000000ab.1.1.0.1"
            .parse()
            .expect("it is the form that a key prints");
        let parent = std::env::temp_dir().join(format!("gridwright-weights-{}", std::process::id()));
        let group = parent.join(key.to_string());
        fs::create_dir_all(&group).expect("a directory is made");
        let parent = parent.display().to_string();
        let read = |name: &str| fs::read_to_string(group.join(name)).ok();
        let set = |weight| {
            Cgroup::existing(&parent, &key)
                .expect("it is there")
                .set_cpu_weight(weight)
        };
        set(Some(250));
        assert_eq!(read("cpu.weight"), None, "the controller is off");
        for (file, weight, written) in [
            ("cpu.shares", Some(250), "2560"),
            ("cpu.weight", Some(250), "250"),
            ("cpu.weight", Some(20_000), "10000"),
        ] {
            fs::write(group.join(file), "").expect("a file is made");
            set(weight);
            assert_eq!(read(file).as_deref(), Some(written));
        }
        assert!(Cgroup::existing("/nowhere", &key).is_none());
        fs::remove_dir_all(&parent).expect("it is ours");
    }
}
