//! From the end of a shepherd that left no result to one that an undertaker writes.

use super::{Child, Server, ShepherdEnd};
use crate::launcher::orphans::OwnProcesses;
use crate::shepherd::NOT_BEGUN;
use crate::shepherd::burial::{Burial, bury};
use crate::sys::{self, Fork};
use proto::id::TaskKey;
use std::io;

/// How long the processes that a shepherd left may take to end after SIGKILL.
const ORPHANS_MS: u64 = 10_000;

/// When orphans are looked at again, if none of them ends meanwhile.
const LOOK_AGAIN_MS: u64 = 20;

impl ShepherdEnd {
    /// From the wait status of the shepherd.
    pub(super) fn new(status: i32) -> Self {
        let has_not_begun = libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == NOT_BEGUN;
        ShepherdEnd {
            has_not_begun,
            wait_until: sys::boot_ms() + ORPHANS_MS,
        }
    }
}

impl Server {
    /// Ends what a dead shepherd of this launcher left, and counts what could not be ended;
    /// `Some(None)` for a shepherd of another launcher, whose processes do not come here. `None` as
    /// long as some are waited for.
    pub(super) fn end_orphans_of(&mut self, key: TaskKey) -> Option<Option<u32>> {
        let task = self.tasks.get(&key);
        let Some(end) = task.and_then(|task| task.shepherd_end) else {
            return Some(None);
        };
        let uid = task.and_then(|task| task.traces.as_ref()).map(|traces| traces.uid);
        let gives_up = end.wait_until <= sys::boot_ms();
        let left = self.end_orphans(uid, gives_up);
        if left > 0 && !gives_up {
            self.recover_at = sys::boot_ms() + LOOK_AGAIN_MS;
            return None;
        }
        Some(Some(left))
    }

    fn end_orphans(&mut self, uid: Option<u32>, gives_up: bool) -> u32 {
        let (children, sensors, syncer) = (&self.children, &self.sensors, self.results.syncer());
        let own = OwnProcesses {
            is_own: &|pid| children.contains_key(&pid) || sensors.contains_key(&pid) || syncer == Some(pid),
            sensors: sensors.keys().copied().collect(),
            single_user: self.host.rules.single_user,
        };
        let left = self.orphans.end(&own, uid);
        if left > 0 && gives_up {
            self.orphans.give_up(&own, uid)
        } else {
            left
        }
    }

    /// Notes as whom sensors run, while they can be looked at: what one leaves is known by its user
    /// when it has ended.
    pub(super) fn know_sensors(&mut self) {
        if !self.host.rules.single_user {
            self.sensors.keys().for_each(|&pid| self.orphans.know_sensor(pid));
        }
    }

    /// A process ended that came to us from a dead shepherd: what it left comes to us now.
    pub(super) fn orphan_ended(&mut self, pid: i32) {
        self.orphans.reaped(pid);
        let is_waiting = |task: &super::Task| task.shepherd_end.is_some() && !task.burying;
        if self.tasks.values().any(is_waiting) {
            self.recover_at = 0;
        }
    }

    /// Ends what carries a mark of the task, and writes its result, in a process of its own: that
    /// may take time.
    pub(super) fn fork_undertaker(&mut self, key: TaskKey, orphans_left: Option<u32>) -> io::Result<()> {
        let task = self.tasks.entry(key).or_default();
        let burial = Burial {
            key,
            released: self.journal.boot_of(&key).map(str::to_owned),
            was_executed: task.executed.is_some(),
            has_not_begun: task.shepherd_end.is_some_and(|end| end.has_not_begun),
            orphans_left,
            traces: task.traces.clone(),
        };
        match sys::fork()? {
            Fork::Child => {
                let closed = sys::close_all_except(&mut []);
                let outcome = closed.and_then(|()| bury(&self.host, &burial));
                if let Err(error) = &outcome {
                    crate::log::line(format_args!("task {key}: cannot record its end: {error}"));
                }
                sys::exit_now(i32::from(outcome.is_err()))
            }
            Fork::Parent(pid) => {
                self.children.insert(pid, Child::Undertaker(key));
                task.burying = true;
                Ok(())
            }
        }
    }
}
