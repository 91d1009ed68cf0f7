//! What the kernel of this host can do with the groups of tasks: found by trying.

use super::devices::{self, DeviceWall};
use super::directory::GroupDirectory;
use super::place::{GroupPlace, NeededHierarchies};
use crate::sys::{self, Fork};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;
use std::io;

/// A group that is made, entered and removed to see what the host can do.
const PROBE: &str = "probe";

/// The version of control groups that limits memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryVersion {
    /// `memory.limit_in_bytes`.
    First,
    /// `memory.max`.
    Second,
}

/// What can be enforced in the group of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Abilities {
    /// Tasks get groups.
    pub groups: bool,
    /// All processes are killed in one step.
    pub kill: bool,
    /// All processes are stopped in one step.
    pub freeze: bool,
    /// Memory of all processes together.
    pub memory: Option<MemoryVersion>,
    /// Processes and threads are counted.
    pub processes: bool,
    /// A share of the processor.
    pub weight: bool,
    /// What keeps devices from tasks.
    pub devices: Option<DeviceWall>,
}

impl Abilities {
    /// Makes a group at the place, and looks which files it has and whether a process can enter it.
    ///
    /// # Errors
    /// No group can be made there, or no process can enter it.
    pub fn find(place: &GroupPlace) -> io::Result<Self> {
        let mut found = Abilities::default();
        for path in place.directories(NeededHierarchies::ALL) {
            let parent = GroupDirectory::open(path)?;
            // One that a launcher left which was killed.
            parent.remove(PROBE);
            let group = parent.make(PROBE)?;
            let entered = try_to_enter(&group);
            found.look(&group);
            parent.remove(PROBE);
            entered?;
        }
        found.groups = !place.is_nowhere();
        Ok(found)
    }

    fn look(&mut self, group: &GroupDirectory) {
        self.kill |= group.has("cgroup.kill");
        self.freeze |= group.has("cgroup.freeze") || group.has("freezer.state");
        self.processes |= group.has("pids.max");
        self.weight |= group.has("cpu.weight") || group.has("cpu.shares");
        if self.devices.is_none() {
            self.devices = devices::build(std::iter::once(group), &[]).ok();
        }
        if group.has("memory.max") {
            self.memory = Some(MemoryVersion::Second);
        } else if group.has("memory.limit_in_bytes") {
            self.memory.get_or_insert(MemoryVersion::First);
        }
    }

    /// One line per limit: who keeps it on this host.
    pub fn lines(&self) -> Vec<String> {
        let either = |can: bool, yes: &str, no: &str| if can { yes } else { no }.to_owned();
        let memory = match self.memory {
            Some(MemoryVersion::Second) => "the whole task, by the kernel (memory.max)",
            Some(MemoryVersion::First) => "the whole task, by the kernel (memory.limit_in_bytes)",
            None => "not possible here: h_vmem limits address space instead, by setrlimit and by samples",
        };
        let devices = match self.devices {
            Some(DeviceWall::Program) => "kept from other tasks by a program of the group (eBPF)",
            Some(DeviceWall::First) => "kept from other tasks by devices.deny",
            None => "cannot be kept from other tasks: where a map names device files, no task starts",
        };
        vec![
            format!("h_vmem, h_rss under H_VMEM=memory: {memory}"),
            "h_vmem under H_VMEM=address: address space, by setrlimit and by samples".to_owned(),
            "h_rt, s_rt: by the clock; h_cpu, s_cpu: by setrlimit and by samples".to_owned(),
            "h_fsize, h_data, h_stack, h_core: each process, by setrlimit".to_owned(),
            format!(
                "H_MAXPROC: {}",
                either(
                    self.processes,
                    "by the kernel (pids.max), by setrlimit and by samples",
                    "by setrlimit and by samples"
                )
            ),
            format!(
                "end of a task: {}",
                either(
                    self.kill,
                    "all processes of its group in one step (cgroup.kill)",
                    if self.groups {
                        "all processes of its group, one by one"
                    } else {
                        "processes found by descent, session and environment"
                    }
                )
            ),
            format!(
                "suspension: {}",
                either(self.freeze, "the group is frozen", "SIGSTOP to each process")
            ),
            format!(
                "share of the processor: {}",
                either(
                    self.weight,
                    "cpu.weight of the group and the nice value",
                    "the nice value"
                )
            ),
            format!("devices of resource maps: {devices}"),
        ]
    }
}

/// Lets a process of ours enter the group and end there.
pub(super) fn try_to_enter(group: &GroupDirectory) -> io::Result<()> {
    match sys::fork()? {
        Fork::Child => {
            let entered = group.enter().map_err(|error| error.raw_os_error().unwrap_or(libc::EIO));
            sys::exit_now(entered.err().unwrap_or(0));
        }
        Fork::Parent(pid) => {
            let ended = waitpid(Pid::from_raw(pid), None)?;
            if ended == WaitStatus::Exited(Pid::from_raw(pid), 0) {
                return Ok(());
            }
            if let WaitStatus::Exited(_, errno) = ended {
                return Err(io::Error::from_raw_os_error(errno));
            }
            Err(io::Error::other(format!("{ended:?}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_has_a_line_that_says_who_keeps_it() {
        let nothing = Abilities::default().lines().join("\n");
        for words in [
            "not possible here",
            "by setrlimit and by samples",
            "SIGSTOP",
            "found by descent",
            "no task starts",
        ] {
            assert!(nothing.contains(words), "{words}: {nothing}");
        }
        let all = Abilities {
            groups: true,
            kill: true,
            freeze: true,
            memory: Some(MemoryVersion::Second),
            processes: true,
            weight: true,
            devices: Some(DeviceWall::Program),
        };
        let all = all.lines().join("\n");
        for words in ["memory.max", "pids.max", "cgroup.kill", "frozen", "cpu.weight", "eBPF"] {
            assert!(all.contains(words), "{words}: {all}");
        }
    }
}
