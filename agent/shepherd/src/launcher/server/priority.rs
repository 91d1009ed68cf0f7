//! The share of the host that a running task gets. Its processes have a nice value, and its control
//! group, if it has one, a weight.

use super::Server;
use crate::cgroup::TaskGroup;
use crate::shepherd::control;
use crate::task_dir::TaskDir;
use crate::{proc, sys};
use proto::id::TaskKey;
use std::collections::BTreeSet;

impl Server {
    /// Says once that tasks keep the nice value with which the launcher was started, where that
    /// cannot be lowered.
    pub(super) fn tell_kept_nice(&mut self, wanted: i32) {
        let own = sys::nice();
        // The kernel lets a process without rights go down to 20 minus this limit (getrlimit(2)).
        let lowest = 20 - i32::try_from(sys::limit_in_force(libc::RLIMIT_NICE).0).unwrap_or(40);
        if self.told_nice || wanted >= own.min(lowest) || nix::unistd::Uid::effective().is_root() {
            return;
        }
        self.told_nice = true;
        crate::log::line(format_args!(
            "a queue has the nice value {wanted} (`priority`) and this launcher, started with {own}, may not lower it: tasks run \
             with {own}"
        ));
    }

    /// Gives a running task another share. What it starts later inherits it; a task that has ended
    /// by now needs none.
    pub(super) fn reprioritize(&mut self, key: TaskKey, nice: Option<i32>, cpu_weight: Option<u32>) {
        let shepherd = self
            .tasks
            .get(&key)
            .filter(|task| task.executed.is_some())
            .and_then(|task| task.token);
        let Some(shepherd) = shepherd.and_then(|token| self.shepherds.pid(token)) else {
            return;
        };
        let Some(document) = TaskDir::new(&key).read_launch() else {
            return;
        };
        let processes = proc::descendants(shepherd);
        // A group has all threads of its processes. None of a job's is that of its shepherd.
        let groups: BTreeSet<i32> = processes.iter().map(|process| process.group).collect();
        let own = sys::process_group(shepherd);
        for group in groups.into_iter().filter(|group| Some(*group) != own && *group > 1) {
            // Without the right to a lower value it stays as it is; a group may be gone.
            let _ = sys::set_group_nice(group, nice.unwrap_or(document.nice));
        }
        let place = control::place(&self.host, &document);
        if let Some(group) = place.and_then(|place| TaskGroup::existing(&place, &key)) {
            group.set_cpu_weight(cpu_weight);
        }
    }
}
