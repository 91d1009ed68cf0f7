//! Processes that dead shepherds left: the launcher is their subreaper, so they become its
//! children, whatever their session and environment are. It knows each process that it forked
//! itself, and every other child of it is such an orphan.
//!
//! A load sensor may leave processes, too, and those stay: a sensor's helper runs as the sensor's
//! user or in its session.

use crate::proc::{self, ProcessStat};
use crate::shepherd::tmpdir;
use std::collections::BTreeSet;

/// The state that is kept from one search for orphans to the next.
#[derive(Default)]
pub struct Orphans {
    /// Users that sensors were seen to run as.
    sensor_uids: BTreeSet<u32>,
    /// Sensors that were seen so.
    known_sensors: BTreeSet<i32>,
    /// Processes that did not end in time, by number and start: they hang in the kernel, and
    /// SIGKILL is on its way to them.
    given_up: BTreeSet<(i32, u64)>,
}

/// The processes that a launcher forked itself.
pub struct OwnProcesses<'a> {
    /// Whether it forked this one.
    pub is_own: &'a dyn Fn(i32) -> bool,
    /// The processes of the launcher that are load sensors.
    pub sensors: Vec<i32>,
    /// Whether all processes are one user's, so that the user tells nothing.
    pub single_user: bool,
}

impl Orphans {
    /// Sends SIGKILL to every orphan and what is below it, and counts the orphans that live. `uid`
    /// is the user of a task that ended: a process of that user does not belong to a sensor.
    pub fn end(&mut self, own: &OwnProcesses<'_>, uid: Option<u32>) -> u32 {
        let found = self.find(own, uid);
        for orphan in &found {
            // First the parent: what it forks meanwhile comes to us.
            proc::signal(orphan, libc::SIGKILL);
            proc::descendants(orphan.pid)
                .iter()
                .for_each(|process| proc::signal(process, libc::SIGKILL));
        }
        u32::try_from(found.len()).unwrap_or(u32::MAX)
    }

    /// Waits no longer for those that live still, and counts them.
    pub fn give_up(&mut self, own: &OwnProcesses<'_>, uid: Option<u32>) -> u32 {
        let found = self.find(own, uid);
        self.given_up
            .extend(found.iter().map(|process| (process.pid, process.start_ticks)));
        u32::try_from(found.len()).unwrap_or(u32::MAX)
    }

    /// Notes as whom a sensor runs, once that can be seen.
    pub fn know_sensor(&mut self, pid: i32) {
        // Before its execve a sensor is root still.
        if self.known_sensors.contains(&pid) || proc::has_own_program(pid) {
            return;
        }
        let Some(uid) = proc::real_uid(pid) else { return };
        // A process that has ended has no program. Root's may be one that never became its user.
        if uid != 0 || proc::stat(pid).is_some_and(|process| !process.is_gone()) {
            self.sensor_uids.insert(uid);
            self.known_sensors.insert(pid);
        }
    }

    /// A child is gone.
    pub fn reaped(&mut self, pid: i32) {
        self.known_sensors.remove(&pid);
        self.given_up.retain(|(ended, _)| *ended != pid);
    }

    fn find(&mut self, own: &OwnProcesses<'_>, uid: Option<u32>) -> Vec<ProcessStat> {
        if !own.single_user {
            own.sensors.iter().for_each(|&pid| self.know_sensor(pid));
        }
        let children = proc::children_of(std::process::id() as i32);
        let others = children.into_iter().filter(|process| !(own.is_own)(process.pid));
        others.filter(|process| !self.is_spared(process, own, uid)).collect()
    }

    fn is_spared(&self, process: &ProcessStat, own: &OwnProcesses<'_>, uid: Option<u32>) -> bool {
        let real_uid = proc::real_uid(process.pid);
        let is_of_task = uid.is_some() && real_uid == uid && !own.single_user;
        // Nobody enters the session of another: what is in a sensor's was begun by it, whatever its
        // user is.
        let is_in_sensor = own.sensors.contains(&process.session);
        let has_sensors_uid = real_uid.is_some_and(|uid| self.sensor_uids.contains(&uid));
        self.given_up.contains(&(process.pid, process.start_ticks))
            || is_in_sensor
            || !is_of_task && has_sensors_uid
            || is_remover(process.pid, real_uid, own.single_user)
    }
}

/// Whether a process removes what a task left, behind the end of its shepherd. It has our program
/// and, beside tasks of users, root's uid, which no process of a user has.
fn is_remover(pid: i32, real_uid: Option<u32>, single_user: bool) -> bool {
    let is_named = || {
        let name = proc::read_short(&format!("/proc/{pid}/comm"));
        name.is_some_and(|name| name.trim_end().as_bytes() == tmpdir::REMOVER.to_bytes())
    };
    (single_user || real_uid == Some(0)) && proc::has_own_program(pid) && is_named()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    /// A user without an account.
    const SOMEBODY: u32 = 61_437;

    /// A child that has ended and is not reaped.
    fn ended(command: &mut Command) -> std::process::Child {
        let child = command.spawn().unwrap();
        while !proc::stat(child.id() as i32).unwrap().is_gone() {
            std::thread::yield_now();
        }
        child
    }

    #[test]
    fn what_is_in_the_session_of_a_sensor_is_spared_also_when_a_task_of_its_user_ends() {
        let process = proc::stat(std::process::id() as i32).unwrap();
        let uid = proc::real_uid(process.pid);
        let own = |sensors| OwnProcesses {
            is_own: &|_| false,
            sensors,
            single_user: false,
        };
        let mut orphans = Orphans::default();
        orphans.sensor_uids.extend(uid);
        assert!(orphans.is_spared(&process, &own(vec![process.session]), uid));
        assert!(!orphans.is_spared(&process, &own(Vec::new()), uid));
        assert!(orphans.is_spared(&process, &own(Vec::new()), Some(SOMEBODY)));
    }

    #[test]
    fn a_sensor_that_has_ended_tells_its_user_unless_that_is_root() {
        let mut orphans = Orphans::default();
        let is_root = nix::unistd::Uid::effective().is_root();
        let mut first = ended(&mut Command::new("/bin/true"));
        orphans.know_sensor(first.id() as i32);
        assert_eq!(orphans.sensor_uids.is_empty(), is_root);
        if is_root {
            let mut second = ended(Command::new("/bin/true").uid(SOMEBODY));
            orphans.know_sensor(second.id() as i32);
            assert!(orphans.sensor_uids.contains(&SOMEBODY));
            second.wait().unwrap();
        }
        first.wait().unwrap();
    }
}
