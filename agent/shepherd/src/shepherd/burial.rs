//! The end of a task whose shepherd is dead, in a process of its own.

use super::{Host, marker, tmpdir};
use crate::cgroup::{GroupPlace, TaskGroup};
use crate::proc::{self, Marks, Owner, ProcessStat};
use crate::sys;
use crate::task_dir::TaskDir;
use crate::task_dir::record::Contents;
use proto::id::TaskKey;
use proto::launch::{EndCause, Failure, LaunchDocument, LaunchResult, TaskUsage, TmpDir};
use std::io;
use std::path::Path;
use std::time::Duration;

/// How long the processes of a task may take to end after SIGKILL. The others hang in the kernel,
/// and the task's slot waits no longer for them.
const END_MS: u64 = 10_000;

/// The pause between two looks at processes that are not our children.
const LOOK_PAUSE: Duration = Duration::from_millis(20);

/// The facts that the launcher has about a task whose shepherd is dead.
#[derive(Clone, Debug)]
pub struct Burial {
    /// The task.
    pub key: TaskKey,
    /// The boot in which the journal let the task go. In another boot that counts as executed,
    /// whatever else is left of it.
    pub released: Option<String>,
    /// Whether the shepherd was heard to say that the job was executed.
    pub was_executed: bool,
    /// Whether the shepherd itself said at its end that it had begun nothing of the job.
    pub has_not_begun: bool,
    /// How many processes that came to the launcher, the shepherd's parent, could not be ended.
    /// `None` if the shepherd's parent is another process, so that such processes went elsewhere.
    pub orphans_left: Option<u32>,
    /// The traces from the launch document. They replace a record that cannot be read.
    pub traces: Option<Traces>,
}

/// The facts that are needed to find the processes and files that a task left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traces {
    /// The user.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// The supplementary group that marks the task's processes.
    pub tracking_gid: Option<u32>,
    /// The temporary directory.
    pub tmpdir: Option<TmpDir>,
}

impl Traces {
    /// Returns the traces of the task in a launch document.
    pub fn from_document(document: &LaunchDocument) -> Self {
        let account = &document.account;
        Traces {
            uid: account.uid,
            gid: account.gid,
            tracking_gid: account.tracking_gid,
            tmpdir: document.tmpdir.clone(),
        }
    }
}

/// Writes the result of a task whose shepherd is dead, after ending what remains of it.
///
/// Runs in a fork of the launcher. Whoever holds the lock writes, and only where no result is: so
/// once.
///
/// # Errors
/// The task's directory cannot be read or written.
pub fn bury(host: &Host, burial: &Burial) -> io::Result<()> {
    let key = burial.key;
    let dir = TaskDir::new(&key);
    let Some(_lock) = dir.lock()? else { return Ok(()) };
    let contents = dir.read_all()?;
    if contents.result.is_some() {
        return Ok(());
    }
    if contents.is_damaged {
        crate::log::line(format_args!("task {key}: its record is damaged; it counts as lost"));
    }
    dir.trim()?;
    let traces = contents
        .launch
        .as_ref()
        .map(Traces::from_document)
        .or_else(|| burial.traces.clone());
    let left = end_remains(host, &contents, traces.as_ref(), key)?;
    dir.write_result(&result(host, burial, &contents, left))?;
    dir.clean_active();
    if let Some((traces, tmpdir)) = traces
        .as_ref()
        .and_then(|traces| Some((traces, traces.tmpdir.as_ref()?)))
    {
        // The task has its result; what takes long goes on in a process of its own, which has its
        // name from the beginning.
        sys::set_name(tmpdir::REMOVER);
        tmpdir::start_removal(tmpdir, traces.uid, traces.gid, &key)?;
    }
    Ok(())
}

fn result(host: &Host, burial: &Burial, contents: &Contents, left: Remains) -> LaunchResult {
    let lost = burial
        .released
        .clone()
        .filter(|boot| contents.exec.is_none() && *boot != host.boot_id);
    let executed = lost.is_some() || may_have_run(burial, contents);
    let exec = contents.exec.as_ref();
    // No job can end its shepherd, which is root's.
    let failure = Failure::of_shepherd();
    let ended_boot_ms = sys::boot_ms();
    let started_boot_ms = exec.map_or(0, |exec| exec.boot_ms);
    let same_boot = exec.is_some_and(|exec| exec.boot_id == host.boot_id);
    LaunchResult {
        key: burial.key,
        cause: if executed {
            EndCause::ShepherdDied
        } else {
            EndCause::FailedToStart(failure)
        },
        after: None,
        executed,
        ordered: false,
        limit: None,
        refused_limits: Vec::new(),
        procedures: Vec::new(),
        usage: TaskUsage::default(),
        wallclock_ms: if same_boot {
            ended_boot_ms.saturating_sub(started_boot_ms)
        } else {
            0
        },
        started_boot_ms,
        ended_boot_ms,
        boot_id: exec
            .map(|exec| exec.boot_id.clone())
            .or(lost)
            .unwrap_or_else(|| host.boot_id.clone()),
        saved_pid: None,
        // Most that carry a mark came to the launcher, too.
        left_processes: burial
            .orphans_left
            .map(|orphans| orphans.max(left.count))
            .or((left.count > 0 || left.are_all_known).then_some(left.count)),
        note: None,
    }
}

/// Whether the job may have been executed: so unless the opposite is certain, or a job that must
/// not run twice could.
fn may_have_run(burial: &Burial, contents: &Contents) -> bool {
    if contents.exec.is_some() || burial.was_executed {
        return true;
    }
    let was_never_released = burial.released.is_none() && !contents.is_damaged;
    !(contents.proves_no_start() || burial.has_not_begun || was_never_released)
}

/// Kills every process that is in the group of the task or carries a mark of it, and counts those
/// that do not end.
///
/// # Errors
/// The task runs, under a launcher of another directory.
fn end_remains(host: &Host, contents: &Contents, traces: Option<&Traces>, key: TaskKey) -> io::Result<Remains> {
    let exec = contents.exec.as_ref();
    let in_this_boot = exec.filter(|exec| exec.boot_id == host.boot_id);
    let entry = marker(&key);
    let uid = traces.map(|traces| traces.uid).or(exec.map(|exec| exec.uid));
    let marks = Marks {
        session: in_this_boot.map(|exec| (exec.pid, exec.start_ticks)),
        tracking_gid: traces
            .and_then(|traces| traces.tracking_gid)
            .or(exec.and_then(|exec| exec.tracking_gid)),
        environment: &entry,
        owner: uid.map_or(Owner::AtLeast(host.rules.min_uid), Owner::Is),
    };
    let groups = groups_of(host, in_this_boot.and_then(|exec| exec.cgroup.as_deref()), &key);
    let members = groups.iter().flat_map(TaskGroup::members);
    if proc::marked(&marks)
        .iter()
        .chain(&members.collect::<Vec<_>>())
        .any(proc::belongs_elsewhere)
    {
        return Err(io::Error::other(
            "its processes belong to a launcher of another directory, of which this one is a copy",
        ));
    }
    let count = kill_marked(&marks, &groups);
    groups.iter().for_each(TaskGroup::remove);
    Ok(Remains {
        count,
        are_all_known: !groups.is_empty(),
    })
}

/// The groups of a task: where this launcher makes them, and where the record of the task says.
fn groups_of(host: &Host, recorded: Option<&str>, key: &TaskKey) -> Vec<TaskGroup> {
    let recorded = recorded.and_then(|path| Path::new(path).parent()).map(GroupPlace::at);
    let places = [Some(host.groups.place.clone()), recorded].into_iter().flatten();
    places.filter_map(|place| TaskGroup::existing(&place, key)).collect()
}

/// The processes that a search for what is left of a task could not end.
#[derive(Clone, Copy, Debug)]
struct Remains {
    count: u32,
    /// Whether no process can have escaped the search: the task had a group.
    are_all_known: bool,
}

fn kill_marked(marks: &Marks<'_>, groups: &[TaskGroup]) -> u32 {
    let deadline = sys::boot_ms() + END_MS;
    loop {
        groups.iter().for_each(TaskGroup::kill);
        let mut left: Vec<ProcessStat> = proc::marked(marks);
        left.extend(groups.iter().flat_map(TaskGroup::members));
        left.sort_unstable_by_key(|process| process.pid);
        left.dedup_by_key(|process| process.pid);
        if left.is_empty() || sys::boot_ms() >= deadline {
            return u32::try_from(left.len()).unwrap_or(u32::MAX);
        }
        left.iter().for_each(|process| proc::signal(process, libc::SIGKILL));
        // No event tells when a process that is not our child has ended.
        std::thread::sleep(LOOK_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn burial(released: Option<&str>) -> Burial {
        Burial {
            key: "00000000000000ab.7.1.0.1"
                .parse()
                .expect("it is the form that a key prints"),
            released: released.map(str::to_owned),
            was_executed: false,
            has_not_begun: false,
            orphans_left: None,
            traces: None,
        }
    }

    #[test]
    fn a_released_task_may_have_run_unless_the_opposite_is_certain() {
        let (damaged, blank) = (
            Contents {
                is_damaged: true,
                ..Contents::default()
            },
            Contents::default(),
        );
        assert!(may_have_run(&burial(Some("b")), &damaged));
        assert!(may_have_run(&burial(Some("b")), &blank));
        assert!(may_have_run(&burial(None), &damaged), "the journal may be lost as well");
        assert!(!may_have_run(&burial(None), &blank));
        assert!(!may_have_run(
            &Burial {
                has_not_begun: true,
                ..burial(Some("b"))
            },
            &blank
        ));
        assert!(may_have_run(
            &Burial {
                was_executed: true,
                has_not_begun: true,
                ..burial(Some("b"))
            },
            &blank
        ));
    }
}
