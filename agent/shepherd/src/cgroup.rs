//! A cgroup of the task's own below a directory of ours (v2, or one v1 controller). Existing groups are never touched.

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
    /// Makes the group and sets the memory limit beside the sampler's; `None` where the host has no such directory or the
    /// group cannot be made: the task is then tracked as a tree of processes.
    pub fn create(parent: Option<&str>, key: &TaskKey, limits: &TaskLimits) -> Option<Self> {
        let path = Path::new(parent?).join(key.to_string());
        fs::create_dir(&path).ok()?;
        let group = Cgroup { path };
        if let Some(bytes) = limits.h_rss_bytes.or(limits.h_vmem_bytes) {
            // The memory controller may be off: then setrlimit and the sampler enforce the limit alone.
            let _ = group.write("memory.max", bytes).or_else(|_| group.write("memory.limit_in_bytes", bytes));
        }
        Some(group)
    }

    /// The group of a task, if it has one.
    pub fn existing(parent: &str, key: &TaskKey) -> Option<Self> {
        let path = Path::new(parent).join(key.to_string());
        path.is_dir().then_some(Cgroup { path })
    }

    /// Sets the share of the processor that the group gets beside others, 1 to 10000; none is the usual 100. In v1 the same share
    /// is counted from 1024.
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
        let read = |name: &str| fs::read_to_string(self.path.join(name)).ok();
        let text = read("memory.events").or_else(|| read("memory.oom_control")).unwrap_or_default();
        text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok()).unwrap_or(0)
    }

    /// Removes the empty group.
    pub fn remove(&self) {
        // A group that is not empty yet stays; its name is never used again.
        let _ = fs::remove_dir(&self.path);
    }

    fn write(&self, name: &str, value: u64) -> io::Result<()> {
        // Without O_CREAT: a file that the kernel does not offer must not be made elsewhere.
        use io::Write;
        fs::OpenOptions::new().write(true).open(self.path.join(name))?.write_all(value.to_string().as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory of the file system serves: what matters is which files are written, and that none is made.
    #[test]
    fn the_weight_goes_into_the_file_that_the_kernel_offers() {
        let key: TaskKey = "00000000000000ab.1.1.0.1".parse().expect("it is the form that a key prints");
        let parent = std::env::temp_dir().join(format!("gridwright-weights-{}", std::process::id()));
        let group = parent.join(key.to_string());
        fs::create_dir_all(&group).expect("a directory is made");
        let parent = parent.display().to_string();
        let read = |name: &str| fs::read_to_string(group.join(name)).ok();
        let set = |weight| Cgroup::existing(&parent, &key).expect("it is there").set_cpu_weight(weight);
        set(Some(250));
        assert_eq!(read("cpu.weight"), None, "the controller is off");
        for (file, weight, written) in
            [("cpu.shares", Some(250), "2560"), ("cpu.weight", Some(250), "250"), ("cpu.weight", Some(20_000), "10000")]
        {
            fs::write(group.join(file), "").expect("a file is made");
            set(weight);
            assert_eq!(read(file).as_deref(), Some(written));
        }
        assert!(Cgroup::existing("/nowhere", &key).is_none());
        fs::remove_dir_all(&parent).expect("it is ours");
    }
}
