//! Processes that dead shepherds left: the launcher is their subreaper, so they become its children, whatever their session and
//! environment are. It knows each process that it forked itself, and every other child of it is such an orphan.
//!
//! A load sensor may leave processes, too, and those stay: a sensor's helper runs as the sensor's user or in its session.

use crate::proc::{self, ProcessStat};
use crate::shepherd::tmpdir;
use std::collections::BTreeSet;

/// The state that is kept from one search for orphans to the next.
#[derive(Default)]
pub struct Orphans {
    /// Users that sensors were seen to run as.
    sensor_uids: BTreeSet<u32>,
    /// Processes that did not end in time, by number and start: they hang in the kernel, and SIGKILL is on its way to them.
    given_up: BTreeSet<(i32, u64)>,
}

/// The processes that a launcher forked itself.
pub struct Own<'a> {
    /// Whether it forked this one.
    pub is_own: &'a dyn Fn(i32) -> bool,
    /// The processes of the launcher that are load sensors.
    pub sensors: Vec<i32>,
    /// Whether all processes are one user's, so that the user tells nothing.
    pub single_user: bool,
}

impl Orphans {
    /// Sends SIGKILL to every orphan and what is below it, and counts the orphans that live. `uid` is the user of a task that ended:
    /// a process of that user does not belong to a sensor.
    pub fn end(&mut self, own: &Own<'_>, uid: Option<u32>) -> u32 {
        let found = self.find(own, uid);
        for orphan in &found {
            // First the parent: what it forks meanwhile comes to us.
            proc::signal(orphan, libc::SIGKILL);
            proc::descendants(orphan.pid).iter().for_each(|process| proc::signal(process, libc::SIGKILL));
        }
        u32::try_from(found.len()).unwrap_or(u32::MAX)
    }

    /// Waits no longer for those that live still, and counts them.
    pub fn give_up(&mut self, own: &Own<'_>, uid: Option<u32>) -> u32 {
        let found = self.find(own, uid);
        self.given_up.extend(found.iter().map(|process| (process.pid, process.start_ticks)));
        u32::try_from(found.len()).unwrap_or(u32::MAX)
    }

    /// A child is gone.
    pub fn reaped(&mut self, pid: i32) {
        self.given_up.retain(|(known, _)| *known != pid);
    }

    fn find(&mut self, own: &Own<'_>, uid: Option<u32>) -> Vec<ProcessStat> {
        if !own.single_user {
            // Before its execve a sensor is root still.
            let started = own.sensors.iter().filter(|pid| !proc::has_own_program(**pid));
            self.sensor_uids.extend(started.filter_map(|pid| proc::real_uid(*pid)));
        }
        let children = proc::children_of(std::process::id() as i32);
        let others = children.into_iter().filter(|process| !(own.is_own)(process.pid));
        others.filter(|process| !self.is_spared(process, own, uid)).collect()
    }

    fn is_spared(&self, process: &ProcessStat, own: &Own<'_>, uid: Option<u32>) -> bool {
        let real_uid = proc::real_uid(process.pid);
        let is_of_task = uid.is_some() && real_uid == uid && !own.single_user;
        let is_of_sensor =
            own.sensors.contains(&process.session) || real_uid.is_some_and(|uid| self.sensor_uids.contains(&uid));
        self.given_up.contains(&(process.pid, process.start_ticks))
            || !is_of_task && is_of_sensor
            || is_remover(process.pid, real_uid, own.single_user)
    }
}

/// Whether a process removes what a task left, behind the end of its shepherd. It has our program and, beside tasks of users, root's
/// uid, which no process of a user has.
fn is_remover(pid: i32, real_uid: Option<u32>, single_user: bool) -> bool {
    let is_named = || {
        let name = proc::read_short(&format!("/proc/{pid}/comm"));
        name.is_some_and(|name| name.trim_end().as_bytes() == tmpdir::REMOVER.to_bytes())
    };
    (single_user || real_uid == Some(0)) && proc::has_own_program(pid) && is_named()
}
