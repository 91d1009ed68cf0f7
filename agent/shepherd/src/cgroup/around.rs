//! The group that the host made for us: a task without a group of its own shares it.

use std::fs;
use std::path::{Path, PathBuf};

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
}
