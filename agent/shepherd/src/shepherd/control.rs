//! Which limits the task's control group keeps, and which are left to setrlimit(2) and to samples.

use super::Host;
use crate::cgroup::{self, GroupLimits, GroupPlace, MemoryBounds, NeededHierarchies, TaskGroup, WallError};
use proto::launch::{Failure, LaunchDocument, ProcessLimit, Resource};
use proto::limit::VmemMeaning;
use proto::usage::UnsetLimits;
use std::cell::Cell;
use std::io;
use std::path::Path;

/// A limit of the memory of a task, by its attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimit {
    /// `h_vmem`, `h_rss`, `s_vmem` or `s_rss`.
    pub name: &'static str,
    /// Its value for the whole task.
    pub bytes: u64,
}

impl MemoryLimit {
    /// The smaller of two limits; `vmem` if they are equal.
    fn least(vmem: Option<MemoryLimit>, rss: Option<MemoryLimit>) -> Option<MemoryLimit> {
        vmem.into_iter().chain(rss).min_by_key(|limit| limit.bytes)
    }
}

/// The control group of a task, and what it keeps.
#[derive(Default)]
pub struct TaskControl {
    group: Option<TaskGroup>,
    hard: Option<MemoryLimit>,
    soft: Option<MemoryLimit>,
    processes: Option<u64>,
    /// The processors of a bound job, in the form of the kernel.
    processors: Option<String>,
    keeps_memory: bool,
    unset: UnsetLimits,
    is_frozen: Cell<bool>,
    /// Why devices are not kept from the task that are to be kept from it.
    wall_fault: Option<WallError>,
}

impl TaskControl {
    /// Makes the group of a task. Limits that it will keep are taken out of the document: neither
    /// setrlimit(2) nor a sample is to enforce them too. A task for which no group can be made has
    /// the limits that need none.
    pub fn create(host: &Host, document: &mut LaunchDocument) -> Self {
        let mut made = Self::with_limits(host, document);
        if document.needs_wall() {
            made.wall_fault = made.wall(document).err();
        }
        made
    }

    /// Keeps devices from the task.
    fn wall(&self, document: &LaunchDocument) -> Result<(), WallError> {
        let rules = cgroup::rules(&document.devices_granted, &document.devices_withheld)?;
        if rules.is_empty() {
            return Ok(());
        }
        self.group.as_ref().ok_or(WallError::NoGroup)?.wall(&rules).map(drop)
    }

    /// Checks, in the group, that no device can be opened that is kept from the task.
    ///
    /// # Errors
    /// One can be opened, or the host could not keep it from the task.
    pub fn check_wall(&self, document: &LaunchDocument) -> Result<(), Failure> {
        let found = match &self.wall_fault {
            Some(fault) => Some(fault.to_string()),
            None => {
                let seen = cgroup::verify(&document.devices_granted, &document.devices_withheld);
                seen.err().map(|fault| fault.to_string())
            }
        };
        found.map_or(Ok(()), |fault| Err(Failure::of_host(fault, 0)))
    }

    fn with_limits(host: &Host, document: &mut LaunchDocument) -> Self {
        let Some(place) = place(host, document) else {
            return Self::without_group(document);
        };
        let (hard, soft) = memory_limits(document);
        let is_memory = document.vmem == Some(VmemMeaning::Memory);
        // A group that the administrator names limits memory under either meaning, beside the
        // limits of address space.
        let is_named = document.cgroup_parent.is_some();
        let needs_memory = is_memory && soft.is_some() || (is_memory || is_named) && hard.is_some();
        let needed = NeededHierarchies {
            memory: needs_memory,
            devices: document.needs_wall(),
        };
        let made =
            TaskGroup::create(&place, &document.key, needed).and_then(|group| usable(group, host.rules.single_user));
        let group = match made {
            Ok(group) => group,
            Err(error) => {
                crate::log::line(format_args!("task {}: it has no group: {error}", document.key));
                return Self::without_group(document);
            }
        };
        let limits_memory = needs_memory && group.has_memory();
        let keeps_memory = limits_memory && is_memory;
        let mut unset = UnsetLimits::default();
        if wants_memory(document) && !keeps_memory {
            unset.insert("memory");
        }
        let processes = document.task_limits.h_maxproc;
        let processes = processes.filter(|_| is_limited(document, Resource::Processes));
        if keeps_memory {
            leave_to_group(document);
        }
        TaskControl {
            group: Some(group),
            hard: hard.filter(|_| limits_memory),
            soft: soft.filter(|_| keeps_memory),
            processes,
            processors: document.processors.clone().filter(|list| !list.is_empty()),
            keeps_memory,
            unset,
            is_frozen: Cell::new(false),
            wall_fault: None,
        }
    }

    /// Sets the limits of the group once the job is executed: what prepares the job is not on its
    /// account. Returns the limits that this host could not set.
    pub fn limit(&self) -> UnsetLimits {
        let Some(group) = &self.group else { return self.unset };
        let bytes = |limit: Option<MemoryLimit>| limit.map(|limit| limit.bytes);
        let found = group.limit(&GroupLimits {
            memory: MemoryBounds {
                hard: bytes(self.hard),
                soft: bytes(self.soft),
                no_swap: self.keeps_memory,
            },
            processes: self.processes,
        });
        if let Some(processors) = &self.processors {
            group.confine(processors);
        }
        let mut unset = self.unset;
        // Memory that the kernel of the first version does not limit, because the task has more
        // already, is limited by the samples.
        if found.swap {
            unset.insert("swap");
        }
        unset
    }

    /// Lifts the limits of the group once the job is over: what cleans up after it is not on its
    /// account, and files in memory that it left still count.
    pub fn lift(&self) {
        self.thaw();
        if let Some(group) = &self.group {
            group.lift();
        }
    }

    fn without_group(document: &LaunchDocument) -> Self {
        let mut unset = UnsetLimits::default();
        if wants_memory(document) {
            unset.insert("memory");
        }
        TaskControl {
            unset,
            ..TaskControl::default()
        }
    }

    /// The group, if the task has one.
    pub fn group(&self) -> Option<&TaskGroup> {
        self.group.as_ref()
    }

    /// The group, if it limits memory in place of the limits of address space.
    pub fn memory(&self) -> Option<&TaskGroup> {
        self.group.as_ref().filter(|_| self.keeps_memory)
    }

    /// The memory at which the kernel ends the task, if the group keeps it.
    pub fn hard_memory(&self) -> Option<MemoryLimit> {
        self.hard
    }

    /// The memory from which on the task is warned, if the group keeps it.
    pub fn soft_memory(&self) -> Option<MemoryLimit> {
        self.soft
    }

    /// Moves this process into the group. A command beside a task that is stopped stays outside: it
    /// would be stopped too.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn enter(&self, is_beside: bool) -> io::Result<()> {
        match &self.group {
            Some(group) if !(is_beside && self.is_frozen.get()) => group.enter(),
            Some(_) | None => Ok(()),
        }
    }

    /// Stops all processes of the group. Returns whether it did.
    pub fn freeze(&self) -> bool {
        let is_frozen = self.group.as_ref().is_some_and(|group| group.freeze(true));
        self.is_frozen.set(is_frozen);
        is_frozen
    }

    /// Lets the processes of a group that was stopped go on.
    pub fn thaw(&self) {
        if let Some(group) = self.group.as_ref().filter(|_| self.is_frozen.take()) {
            group.freeze(false);
        }
    }
}

/// The group, if processes can be moved to it. An ordinary user may make groups in a place to which
/// processes of the cell cannot be moved: a group without processes would keep nothing.
fn usable(group: TaskGroup, is_single_user: bool) -> io::Result<TaskGroup> {
    if is_single_user && let Err(error) = group.try_to_enter() {
        group.remove();
        return Err(io::Error::new(
            error.kind(),
            format!("no process of this cell can be moved to it: {error}"),
        ));
    }
    Ok(group)
}

/// The place for the group of a task, if it is to have one.
pub fn place(host: &Host, document: &LaunchDocument) -> Option<GroupPlace> {
    let named = document
        .cgroup_parent
        .as_deref()
        .map(|path| GroupPlace::at(Path::new(path)));
    let own =
        || (document.own_group == Some(true) && !host.groups.place.is_nowhere()).then(|| host.groups.place.clone());
    named.or_else(own)
}

/// Whether `h_vmem` or `s_vmem` is to limit memory in use.
fn wants_memory(document: &LaunchDocument) -> bool {
    let limits = &document.task_limits;
    let is_limited = limits.h_vmem_bytes.or(limits.s_vmem_bytes).is_some();
    is_limited && document.vmem == Some(VmemMeaning::Memory)
}

fn is_limited(document: &LaunchDocument, resource: Resource) -> bool {
    document.limits.iter().any(|limit| limit.resource == resource)
}

/// The hard and the soft limit of memory.
fn memory_limits(document: &LaunchDocument) -> (Option<MemoryLimit>, Option<MemoryLimit>) {
    let limits = &document.task_limits;
    let named = |name, bytes: Option<u64>| bytes.map(|bytes| MemoryLimit { name, bytes });
    (
        MemoryLimit::least(named("h_vmem", limits.h_vmem_bytes), named("h_rss", limits.h_rss_bytes)),
        MemoryLimit::least(named("s_vmem", limits.s_vmem_bytes), named("s_rss", limits.s_rss_bytes)),
    )
}

fn leave_to_group(document: &mut LaunchDocument) {
    let is_left = |limit: &ProcessLimit| ![Resource::AddressSpace, Resource::ResidentSet].contains(&limit.resource);
    document.limits.retain(is_left);
    let limits = &mut document.task_limits;
    (limits.h_vmem_bytes, limits.s_vmem_bytes) = (None, None);
    (limits.h_rss_bytes, limits.s_rss_bytes) = (None, None);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smaller_limit_counts_and_names_itself() {
        let limit = |name, bytes| Some(MemoryLimit { name, bytes });
        for (vmem, rss, expected) in [
            (limit("h_vmem", 5), limit("h_rss", 4), Some("h_rss")),
            (limit("h_vmem", 4), limit("h_rss", 5), Some("h_vmem")),
            (limit("h_vmem", 4), limit("h_rss", 4), Some("h_vmem")),
            (None, limit("h_rss", 5), Some("h_rss")),
            (None, None, None),
        ] {
            assert_eq!(MemoryLimit::least(vmem, rss).map(|limit| limit.name), expected);
        }
    }

    /// A suspension that is obeyed while the last processes of a job end must not stop its epilog.
    #[test]
    fn what_follows_a_job_finds_a_group_that_is_not_frozen() {
        let base = std::env::temp_dir().join(format!("gridwright-control-{}", std::process::id()));
        let key: proto::id::TaskKey = "00000000000000ab.1.1.0.1".parse().unwrap();
        let group = base.join(key.to_string());
        std::fs::create_dir_all(&group).unwrap();
        let file = group.join("cgroup.freeze");
        std::fs::write(&file, "").unwrap();
        let control = TaskControl {
            group: TaskGroup::existing(&GroupPlace::at(&base), &key),
            ..TaskControl::default()
        };
        assert!(control.freeze());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "1");
        control.lift();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "0");
        std::fs::remove_dir_all(&base).unwrap();
    }
}
