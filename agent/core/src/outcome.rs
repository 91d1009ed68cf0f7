//! From what a shepherd left behind to what the master is told.

use proto::launch::{self, EndCause, LaunchResult, TaskUsage};
use proto::usage::{Blame, Evidence, Exit, FailedCode, LimitHit, RefusedLimit, Rusage, TaskResult, Usage};

/// Exit status by which a job asks to be run again.
const EXIT_RESCHEDULE: u8 = 99;
/// Exit status by which a job asks to be held in error.
const EXIT_ERROR: u8 = 100;
/// SIGKILL, which a task without a shepherd is ended by.
const SIGKILL: u8 = 9;
/// `failed` of a task whose shepherd died.
const NO_EXIT_STATUS: FailedCode = FailedCode(18);

/// The result as the master is told it; `boot_ms` is the host's boot clock now, and `same_boot`
/// whether the result is of this boot.
pub fn task_result(result: &LaunchResult, boot_ms: u64, same_boot: bool) -> TaskResult {
    let exit = exit(&result.cause);
    let limit = result.limit.as_ref().map(limit_hit);
    TaskResult {
        exit,
        failed: failed(result, exit),
        reason: reason(result),
        wallclock_ms: result.wallclock_ms,
        ended_ago_ms: if same_boot {
            boot_ms.saturating_sub(result.ended_boot_ms)
        } else {
            0
        },
        usage: usage(&result.usage),
        rusage: rusage(&result.usage),
        limit,
        refused_limits: result.refused_limits.iter().map(refused_limit).collect(),
        saved_pid: result.saved_pid,
        blame: blame(&result.cause),
    }
}

fn blame(cause: &EndCause) -> Blame {
    match cause {
        EndCause::FailedToStart(failure) if failure.is_hosts_fault() => Blame::Host,
        EndCause::FailedToStart(_) | EndCause::Exited(_) | EndCause::Signalled { .. } | EndCause::ShepherdDied => {
            Blame::Job
        }
    }
}

/// The result of a task that may have run and left no result: as of one whose shepherd died, so
/// that it is never taken for one that did not start.
pub fn lost(reason: &str) -> TaskResult {
    let exit = Exit::Signal {
        number: SIGKILL,
        core: false,
    };
    TaskResult {
        exit,
        ..TaskResult::not_started(NO_EXIT_STATUS, reason)
    }
}

fn exit(cause: &EndCause) -> Exit {
    match cause {
        EndCause::Exited(code) => Exit::Code(*code),
        EndCause::Signalled { signal, core } => Exit::Signal {
            number: u8::try_from(*signal).unwrap_or(u8::MAX),
            core: *core,
        },
        EndCause::FailedToStart(_) => Exit::NotStarted,
        EndCause::ShepherdDied => Exit::Signal {
            number: SIGKILL,
            core: false,
        },
    }
}

fn failed(result: &LaunchResult, exit: Exit) -> FailedCode {
    if let EndCause::FailedToStart(failure) = &result.cause {
        return FailedCode(failure.failed);
    }
    if result.cause == EndCause::ShepherdDied {
        return NO_EXIT_STATUS;
    }
    if let Some(after) = &result.after {
        return FailedCode(after.failed);
    }
    let by_hard_limit = result.limit.as_ref().is_some_and(|hit| {
        hit.evidence == launch::HostEvidence::Certain && hit.limit.starts_with("h_") && hit.limit != "h_fsize"
    });
    match exit {
        Exit::Code(EXIT_RESCHEDULE) => FailedCode::RESCHEDULING,
        Exit::Code(EXIT_ERROR) => FailedCode::APPLICATION_ERROR,
        _ if by_hard_limit => FailedCode::LIMIT_ENFORCED,
        Exit::Signal { .. } => FailedCode::AFTER_JOB,
        Exit::Code(_) | Exit::NotStarted => FailedCode::NO,
    }
}

fn reason(result: &LaunchResult) -> String {
    match (&result.cause, &result.after) {
        (EndCause::FailedToStart(failure), _) => in_words(&failure.text),
        (EndCause::ShepherdDied, _) => shepherd_died(result.left_processes),
        (EndCause::Exited(_) | EndCause::Signalled { .. }, Some(after)) => in_words(&after.text),
        (EndCause::Exited(_) | EndCause::Signalled { .. }, None) => {
            in_words(result.note.as_deref().unwrap_or_default())
        }
    }
}

/// The reason of a task without a shepherd: says that all of it was ended only if that is known.
fn shepherd_died(left_processes: Option<u32>) -> String {
    let left = match left_processes {
        Some(0) => "what was left of it was ended".to_owned(),
        Some(1) => "one process of it could not be ended".to_owned(),
        Some(count) => format!("{count} processes of it could not be ended"),
        None => "what was found of it was ended".to_owned(),
    };
    format!("its shepherd died or the host restarted; {left}")
}

/// A failure as people read it: without Rust's `(os error N)`, whose number travels beside the
/// text.
pub(crate) fn in_words(text: &str) -> String {
    match text.split_once(" (os error ") {
        Some((before, rest)) => format!("{before}{}", rest.split_once(')').map_or("", |(_, after)| after)),
        None => text.to_owned(),
    }
}

fn limit_hit(hit: &launch::HostLimitHit) -> LimitHit {
    LimitHit {
        limit: hit.limit.clone(),
        value: hit.bound,
        reached: hit.reached,
        evidence: match hit.evidence {
            launch::HostEvidence::Certain => Evidence::Certain,
            launch::HostEvidence::Likely => Evidence::Likely,
            launch::HostEvidence::Unknown => Evidence::Unknown,
        },
    }
}

fn refused_limit(refused: &launch::HostRefusedLimit) -> RefusedLimit {
    let wanted = match refused.hard {
        launch::BoundValue::Finite(value) => value,
        launch::BoundValue::Infinity => u64::MAX,
    };
    RefusedLimit {
        limit: format!("h_{}", resource_name(refused.resource)),
        wanted,
        reason: format!("errno {}", refused.errno),
    }
}

fn resource_name(resource: launch::Resource) -> &'static str {
    match resource {
        launch::Resource::Cpu => "cpu",
        launch::Resource::FileSize => "fsize",
        launch::Resource::Data => "data",
        launch::Resource::Stack => "stack",
        launch::Resource::Core => "core",
        launch::Resource::ResidentSet => "rss",
        launch::Resource::AddressSpace => "vmem",
        launch::Resource::OpenFiles => "descriptors",
        launch::Resource::Processes => "maxproc",
        launch::Resource::LockedMemory => "memorylocked",
        launch::Resource::FileLocks => "locks",
    }
}

/// A sample or total of a shepherd in the units of the protocol.
pub fn usage(used: &TaskUsage) -> Usage {
    Usage {
        cpu_ms: used.cpu_ms,
        mem_kib_ms: u64::try_from(used.mem_byte_ms / 1024).unwrap_or(u64::MAX),
        io_bytes: used.io_bytes,
        iow_ms: 0,
        vmem_bytes: used.vmem_bytes,
        maxvmem_bytes: used.maxvmem_bytes,
        rss_bytes: used.rss_bytes,
        maxrss_bytes: used.maxrss_bytes,
        conditions: used.conditions.unwrap_or_default(),
    }
}

fn rusage(used: &TaskUsage) -> Rusage {
    Rusage {
        utime_ms: used.utime_ms,
        stime_ms: used.stime_ms,
        maxrss_kib: used.process_maxrss_bytes / 1024,
        minflt: used.minflt,
        majflt: used.majflt,
        inblock: used.inblock,
        oublock: used.oublock,
        nvcsw: used.nvcsw,
        nivcsw: used.nivcsw,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::id::{CellId, SubmitSeq, TaskId, TaskKey};
    use proto::launch::Failure;

    fn result(cause: EndCause) -> LaunchResult {
        LaunchResult {
            key: TaskKey {
                cell: CellId(1),
                seq: SubmitSeq(1),
                task: TaskId(1),
                pe_task: 0,
                attempt: 1,
            },
            cause,
            after: None,
            executed: true,
            ordered: false,
            limit: None,
            refused_limits: vec![],
            procedures: vec![],
            usage: TaskUsage::default(),
            wallclock_ms: 10,
            started_boot_ms: 100,
            ended_boot_ms: 110,
            boot_id: String::new(),
            saved_pid: None,
            left_processes: None,
            note: None,
        }
    }

    #[test]
    fn ends_are_told_in_the_codes_of_accounting() {
        let hit = |limit: &str, evidence| {
            Some(launch::HostLimitHit {
                limit: limit.to_owned(),
                bound: 5,
                reached: 6,
                evidence,
            })
        };
        let killed = || result(EndCause::Signalled { signal: 9, core: false });
        let missing = Failure {
            failed: 28,
            text: "no directory".to_owned(),
            errno: 2,
            path: String::new(),
        };
        for (given, status, failed) in [
            (result(EndCause::Exited(0)), 0, 0),
            (result(EndCause::Exited(3)), 3, 0),
            (result(EndCause::Exited(99)), 99, 25),
            (result(EndCause::Exited(100)), 100, 30),
            (killed(), 137, 100),
            (
                LaunchResult {
                    limit: hit("h_rt", launch::HostEvidence::Certain),
                    ..killed()
                },
                137,
                37,
            ),
            (
                LaunchResult {
                    limit: hit("h_vmem", launch::HostEvidence::Likely),
                    ..result(EndCause::Exited(1))
                },
                1,
                0,
            ),
            (
                LaunchResult {
                    limit: hit("s_rt", launch::HostEvidence::Certain),
                    ..killed()
                },
                137,
                100,
            ),
            (result(EndCause::FailedToStart(missing)), 0, 28),
            (result(EndCause::ShepherdDied), 137, 18),
        ] {
            let told = task_result(&given, 150, true);
            assert_eq!(
                (told.exit.status(), told.failed.0, told.ended_ago_ms),
                (status, failed, 40),
                "{given:?}"
            );
        }
    }

    #[test]
    fn a_task_counts_as_ended_whole_only_if_that_is_known() {
        for (left_processes, expected) in [
            (Some(0), "; what was left of it was ended"),
            (Some(2), "; 2 processes of it could not be ended"),
            (None, "; what was found of it was ended"),
        ] {
            let told = task_result(
                &LaunchResult {
                    left_processes,
                    ..result(EndCause::ShepherdDied)
                },
                150,
                true,
            );
            assert!(told.reason.ends_with(expected), "{}", told.reason);
        }
    }

    #[test]
    fn a_note_about_an_end_is_its_reason_unless_something_failed_behind_it() {
        let note = Some("cannot remove /tmp/x: Operation not permitted (os error 1)".to_owned());
        let noted = LaunchResult {
            note,
            ..result(EndCause::Exited(0))
        };
        assert_eq!(
            task_result(&noted, 150, true).reason,
            "cannot remove /tmp/x: Operation not permitted"
        );
        let failure = Failure {
            failed: 15,
            text: "exit_status of epilog = 1".to_owned(),
            errno: 0,
            path: String::new(),
        };
        let told = task_result(
            &LaunchResult {
                after: Some(failure),
                ..noted
            },
            150,
            true,
        );
        assert_eq!((told.reason.as_str(), told.failed.0), ("exit_status of epilog = 1", 15));
    }

    #[test]
    fn only_a_start_that_failed_by_its_host_blames_the_host() {
        let failed = proto::launch::FailedCodes::QUEUE_SETTING;
        let setting = Failure {
            failed,
            text: "no tmpdir".to_owned(),
            errno: 2,
            path: String::new(),
        };
        let missing = Failure {
            failed: 28,
            text: "no directory".to_owned(),
            errno: 2,
            path: String::new(),
        };
        for (cause, blamed) in [
            (EndCause::FailedToStart(Failure::of_host("no process", 11)), Blame::Host),
            (EndCause::FailedToStart(Failure::of_shepherd()), Blame::Host),
            (EndCause::FailedToStart(missing), Blame::Job),
            // A setting of the queue: the code of the failure closes its instance.
            (EndCause::FailedToStart(setting), Blame::Job),
            (EndCause::Exited(1), Blame::Job),
            (EndCause::ShepherdDied, Blame::Job),
        ] {
            assert_eq!(
                task_result(&result(cause.clone()), 150, true).blame,
                blamed,
                "{cause:?}"
            );
        }
    }

    #[test]
    fn failures_are_told_without_numbers_of_the_system() {
        for (text, told) in [
            (
                "cannot open \"/x\": No such file or directory (os error 2)",
                "cannot open \"/x\": No such file or directory",
            ),
            (
                "pty: Permission denied (os error 13), given up",
                "pty: Permission denied, given up",
            ),
            ("the prolog ended with 1", "the prolog ended with 1"),
        ] {
            assert_eq!(in_words(text), told);
        }
    }
}
