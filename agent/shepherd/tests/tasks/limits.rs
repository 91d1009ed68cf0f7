//! Limits, orders and the evidence for what ended a task.

use super::cell::{Cell, direct, is_alive, limit, until};
use proto::launch::{BoundValue, EndCause, HostEvidence, HostLimitHit, Notice, ProcessLimit, Resource, TaskOrder};

const MIB: u64 = 1 << 20;

fn named(hit: &Option<HostLimitHit>) -> Option<(&str, HostEvidence)> {
    hit.as_ref().map(|hit| (hit.limit.as_str(), hit.evidence))
}

/// A program that holds `mib` MiB of touched memory and sleeps.
fn holder(mib: u64) -> String {
    format!("perl -e 'my $x = \"x\" x ({mib} << 20); sleep 600'")
}

#[test]
fn a_file_over_h_fsize_is_certain() {
    let mut cell = Cell::start();
    let mut document = cell.document(direct(&["dd", "if=/dev/zero", "of=big", "bs=64k", "count=100"]));
    document.limits = vec![limit(Resource::FileSize, MIB)];
    let result = cell.run_document(document);
    assert_eq!(
        result.cause,
        EndCause::Signalled {
            signal: libc::SIGXFSZ,
            core: false
        }
    );
    assert_eq!(named(&result.limit), Some(("h_fsize", HostEvidence::Certain)));
}

#[test]
fn processes_that_together_exceed_h_vmem_are_ended_for_certain() {
    let mut cell = Cell::start();
    let mut document = cell.shell(&format!("{} & {} & wait", holder(60), holder(60)));
    document.task_limits.h_vmem_bytes = Some(100 * MIB);
    let result = cell.run_document(document);
    assert_eq!(result.cause, EndCause::Signalled { signal: 9, core: false });
    assert_eq!(named(&result.limit), Some(("h_vmem", HostEvidence::Certain)));
    assert!(result.limit.unwrap().reached > 100 * MIB && result.usage.maxvmem_bytes > 100 * MIB);
}

#[test]
fn processes_that_together_exceed_h_rss_are_ended_for_certain() {
    let mut cell = Cell::start();
    let mut document = cell.shell(&format!("{} & {} & wait", holder(60), holder(60)));
    document.task_limits.h_rss_bytes = Some(100 * MIB);
    let result = cell.run_document(document);
    assert_eq!(named(&result.limit), Some(("h_rss", HostEvidence::Certain)));
}

#[test]
fn an_allocation_that_fails_near_the_address_space_limit_is_likely() {
    let mut cell = Cell::start();
    // The program sees its own limit, stays near it for two samples, also on a busy machine, and
    // fails.
    let program = "perl -e 'my @x; for (1..95) { push @x, \"x\" x (1 << 20) } select(undef, undef, undef, 5); exit 55'";
    let mut document = cell.shell(program);
    document.limits = vec![limit(Resource::AddressSpace, 112 * MIB)];
    let result = cell.run_document(document);
    assert_eq!(
        named(&result.limit),
        Some(("h_vmem", HostEvidence::Likely)),
        "{result:?}"
    );
}

#[test]
fn a_program_that_says_that_memory_is_missing_under_a_limit_leaves_a_likely_one() {
    let mut cell = Cell::start();
    for (command, is_blamed) in [
        ("echo MemoryError >&2; exit 1", true),
        (
            "echo terminate called after throwing an instance of std::bad_alloc >&2; kill -ABRT $$",
            true,
        ),
        ("echo MemoryError >&2; exit 0", false),
        ("echo another error >&2; exit 1", false),
        ("exit 1", false),
    ] {
        let mut document = cell.shell(command);
        document.limits = vec![limit(Resource::AddressSpace, 1 << 30)];
        // It ends before its first sample, also on a busy machine.
        document.sample_interval_ms = 0;
        // An earlier job has written to the same file.
        let errors = cell.work.join(format!("job.e{}", document.key.seq.0));
        std::fs::write(&errors, "MemoryError\n").unwrap();
        std::os::unix::fs::chown(&errors, Some(cell.account.uid), None).unwrap();
        let result = cell.run_document(document);
        let expected = is_blamed.then_some(("h_vmem", HostEvidence::Likely));
        assert_eq!(named(&result.limit), expected, "{command}");
    }
    // A sample saw it far from its limit.
    let go = cell.work.join("go");
    nix::unistd::mkfifo(&go, nix::sys::stat::Mode::from_bits_truncate(0o666)).unwrap();
    let mut document = cell.shell("read line < go; echo MemoryError >&2; exit 1");
    document.limits = vec![limit(Resource::AddressSpace, 500 << 30)];
    let sampled = cell.launch(document);
    cell.hear(|notice| matches!(notice, Notice::Usage { key, .. } if *key == sampled).then_some(()));
    std::fs::write(&go, "\n").unwrap();
    assert_eq!(cell.ended(sampled).limit, None);
    // Without a limit nothing is to blame.
    assert_eq!(cell.run("echo MemoryError >&2; exit 1").limit, None);
}

#[test]
fn a_job_that_fails_for_another_reason_is_not_blamed_on_its_limits() {
    let mut cell = Cell::start();
    for command in ["sleep 0.5; exit 7", "exit 1", "kill -SEGV $$", "kill -9 $$"] {
        let mut document = cell.shell(command);
        document.limits = vec![
            limit(Resource::AddressSpace, 1 << 30),
            limit(Resource::FileSize, 1 << 30),
            limit(Resource::Cpu, 100),
        ];
        document.task_limits.h_vmem_bytes = Some(1 << 30);
        document.task_limits.h_rt_s = Some(1000);
        let result = cell.run_document(document);
        assert_eq!(result.limit, None, "{command}");
    }
}

#[test]
fn h_rt_announces_and_then_kills() {
    let mut cell = Cell::start();
    let mut document = cell.document(direct(&[
        "sh",
        "-c",
        "trap 'echo told' USR2; while :; do sleep 0.1; done",
    ]));
    // Time enough to set the trap on a busy machine.
    document.task_limits.h_rt_s = Some(5);
    document.termination.notify = true;
    let result = cell.run_document(document);
    assert_eq!(cell.output(&result, 'o'), "told\n");
    assert_eq!(result.cause, EndCause::Signalled { signal: 9, core: false });
    assert_eq!(named(&result.limit), Some(("h_rt", HostEvidence::Certain)));
    assert!(result.wallclock_ms >= 6000, "{}", result.wallclock_ms);
}

#[test]
fn s_rt_tells_the_program_behind_the_shell_and_kills_after_the_grace() {
    let mut cell = Cell::start();
    let mut document = cell.shell("bash -c 'trap \"echo told; exit 4\" USR1; while :; do sleep 0.1; done'; exit $?");
    // Time enough to set the trap on a busy machine.
    document.task_limits.s_rt_s = Some(5);
    let result = cell.run_document(document);
    assert_eq!(
        (&result.cause, cell.output(&result, 'o').as_str()),
        (&EndCause::Exited(4), "told\n")
    );
    assert_eq!(named(&result.limit), Some(("s_rt", HostEvidence::Certain)));
    let mut document = cell.document(direct(&["sh", "-c", "trap '' USR1; while :; do sleep 0.1; done"]));
    document.task_limits.s_rt_s = Some(5);
    assert_eq!(
        cell.run_document(document).cause,
        EndCause::Signalled { signal: 9, core: false }
    );
}

#[test]
fn cpu_limits_hold_for_a_process_and_for_all_together() {
    let mut cell = Cell::start();
    let mut document = cell.document(direct(&["sh", "-c", "while :; do :; done"]));
    document.limits = vec![limit(Resource::Cpu, 1)];
    let result = cell.run_document(document);
    // A kernel that counts whole ticks ends it a little early now and then: that is no proof
    // against the limit.
    assert_eq!(
        named(&result.limit),
        Some(("h_cpu", HostEvidence::Certain)),
        "{result:?}"
    );
    // Behind a shell that tells the signal of its child in its exit code.
    let mut document = cell.shell("sh -c 'while :; do :; done'; exit $?");
    document.limits = vec![limit(Resource::Cpu, 1)];
    let result = cell.run_document(document);
    assert_eq!(
        (&result.cause, named(&result.limit)),
        (&EndCause::Exited(137), Some(("h_cpu", HostEvidence::Certain)))
    );
    let mut document = cell.shell("sh -c 'while :; do :; done' & sh -c 'while :; do :; done' & wait");
    document.task_limits.h_cpu_s = Some(1);
    let result = cell.run_document(document);
    assert_eq!(
        named(&result.limit),
        Some(("h_cpu", HostEvidence::Certain)),
        "{result:?}"
    );
    assert!(result.usage.cpu_ms >= 1000);
}

#[test]
fn a_soft_cpu_limit_sends_sigxcpu() {
    let mut cell = Cell::start();
    let mut document = cell.document(direct(&["sh", "-c", "while :; do :; done"]));
    document.task_limits.s_cpu_s = Some(1);
    let result = cell.run_document(document);
    assert!(matches!(
        result.cause,
        EndCause::Signalled {
            signal: libc::SIGXCPU,
            ..
        }
    ));
    assert_eq!(named(&result.limit), Some(("s_cpu", HostEvidence::Certain)));
}

#[test]
fn every_pair_of_soft_and_hard_limits_is_in_force_in_the_job() {
    let mut cell = Cell::start();
    let pairs = [
        (Resource::Cpu, "Max cpu time", 1000, 2000),
        (Resource::FileSize, "Max file size", 10 * MIB, 20 * MIB),
        (Resource::Data, "Max data size", 300 * MIB, 400 * MIB),
        (Resource::Stack, "Max stack size", 2 * MIB, 4 * MIB),
        (Resource::Core, "Max core file size", 0, 0),
        (Resource::ResidentSet, "Max resident set", 100 * MIB, 200 * MIB),
        (Resource::AddressSpace, "Max address space", 500 * MIB, 600 * MIB),
        (Resource::OpenFiles, "Max open files", 100, 200),
        (Resource::Processes, "Max processes", 1000, 1200),
        (Resource::LockedMemory, "Max locked memory", 4096, 8192),
        (Resource::FileLocks, "Max file locks", 10, 20),
    ];
    let mut document = cell.document(direct(&["cat", "/proc/self/limits"]));
    let bounds = |&(resource, _, soft, hard): &(Resource, &str, u64, u64)| ProcessLimit {
        resource,
        soft: BoundValue::Finite(soft),
        hard: BoundValue::Finite(hard),
    };
    document.limits = pairs.iter().map(bounds).collect();
    let result = cell.run_document(document);
    assert_eq!(
        (&result.cause, &result.refused_limits),
        (&EndCause::Exited(0), &Vec::new())
    );
    let output = cell.output(&result, 'o');
    for (_, name, soft, hard) in pairs {
        let line = output.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        let values: Vec<u64> = line
            .split_whitespace()
            .take(2)
            .map(|value| value.parse().unwrap())
            .collect();
        assert_eq!(values, [soft, hard], "{name}");
    }
}

#[test]
fn a_soft_limit_alone_is_told_by_its_signal_and_leaves_the_hard_one() {
    let mut cell = Cell::start();
    let soft = |resource, value| ProcessLimit {
        resource,
        soft: BoundValue::Finite(value),
        hard: BoundValue::Infinity,
    };
    let mut document = cell.shell("ulimit -Hn; ulimit -Sn");
    document.limits = vec![soft(Resource::OpenFiles, 50)];
    let result = cell.run_document(document);
    let hard = gridwright_shepherd::sys::limit_in_force(libc::RLIMIT_NOFILE).1;
    assert_eq!(
        (cell.output(&result, 'o'), result.refused_limits),
        (format!("{hard}\n50\n"), Vec::new())
    );
    let mut document = cell.document(direct(&["sh", "-c", "while :; do :; done"]));
    document.limits = vec![soft(Resource::Cpu, 1)];
    let result = cell.run_document(document);
    assert!(
        matches!(
            result.cause,
            EndCause::Signalled {
                signal: libc::SIGXCPU,
                ..
            }
        ),
        "{result:?}"
    );
    assert_eq!(named(&result.limit), Some(("s_cpu", HostEvidence::Certain)));
}

#[test]
fn soft_limits_of_the_whole_task_send_sigxcpu() {
    let mut cell = Cell::start();
    for name in ["s_vmem", "s_rss"] {
        let mut document = cell.shell(&format!("exec {}", holder(60)));
        let limits = &mut document.task_limits;
        *if name == "s_vmem" {
            &mut limits.s_vmem_bytes
        } else {
            &mut limits.s_rss_bytes
        } = Some(40 * MIB);
        let result = cell.run_document(document);
        assert!(
            matches!(
                result.cause,
                EndCause::Signalled {
                    signal: libc::SIGXCPU,
                    ..
                }
            ),
            "{name}: {result:?}"
        );
        assert_eq!(named(&result.limit), Some((name, HostEvidence::Certain)));
    }
}

#[test]
fn a_soft_file_size_is_named_as_such_and_core_files_stay_within_theirs() {
    let mut cell = Cell::start();
    let mut document = cell.document(direct(&["dd", "if=/dev/zero", "of=big", "bs=64k", "count=100"]));
    let soft = BoundValue::Finite(MIB);
    document.limits = vec![ProcessLimit {
        resource: Resource::FileSize,
        soft,
        hard: BoundValue::Finite(2 * MIB),
    }];
    let result = cell.run_document(document);
    assert_eq!(named(&result.limit), Some(("s_fsize", HostEvidence::Certain)));
    let mut document = cell.shell("kill -QUIT $$");
    document.limits = vec![limit(Resource::Core, 0)];
    assert_eq!(
        cell.run_document(document).cause,
        EndCause::Signalled {
            signal: libc::SIGQUIT,
            core: false
        }
    );
}

#[test]
fn programs_that_run_into_their_data_or_stack_limit_are_blamed_on_it_with_what_is_known() {
    let mut cell = Cell::start();
    let grow = "perl -e 'my @x; for (1..95) { push @x, \"x\" x (1 << 20) } select(undef, undef, undef, 5); exit 55'";
    let mut document = cell.shell(grow);
    document.limits = vec![limit(Resource::Data, 102 * MIB)];
    let result = cell.run_document(document);
    assert_eq!(
        named(&result.limit),
        Some(("h_data", HostEvidence::Likely)),
        "{result:?}"
    );
    let mut document = cell.shell("ulimit -c 0; exec bash -c 'f() { f; }; f'");
    document.limits = vec![limit(Resource::Stack, MIB)];
    let result = cell.run_document(document);
    assert!(
        matches!(
            result.cause,
            EndCause::Signalled {
                signal: libc::SIGSEGV,
                ..
            }
        ),
        "{result:?}"
    );
    assert_eq!(result.limit.map(|hit| hit.limit), Some("h_stack".to_owned()));
}

#[test]
fn a_limit_that_cannot_be_set_is_reported_and_the_job_runs() {
    let mut cell = Cell::start();
    let hard = gridwright_shepherd::sys::limit_in_force(libc::RLIMIT_NOFILE).1;
    let mut document = cell.shell("ulimit -n");
    // More than any kernel allows, so refused for root too.
    let wanted = BoundValue::Finite(hard.max(1 << 40) + 1);
    document.limits = vec![ProcessLimit {
        resource: Resource::OpenFiles,
        soft: wanted,
        hard: wanted,
    }];
    let result = cell.run_document(document);
    assert_eq!(result.cause, EndCause::Exited(0));
    assert_eq!(result.refused_limits.len(), 1);
    assert_eq!(result.refused_limits[0].errno, libc::EPERM);
}

#[test]
fn processes_that_leave_session_and_parent_are_ended_with_the_job() {
    let mut cell = Cell::start_with(&[("launcher.conf", "tracking_gids 64998 64999")]);
    let document = cell.shell("setsid sh -c 'echo $$ > escaped; exec sleep 1000' & sleep 0.3");
    let key = cell.launch(document);
    let pid: i32 = cell.read_when_there("escaped").parse().unwrap();
    assert_eq!(cell.ended(key).cause, EndCause::Exited(0));
    assert!(!is_alive(pid));
}

#[test]
fn orders_suspend_resume_and_end_the_whole_task() {
    let mut cell = Cell::start();
    let document = cell.shell("sleep 1000 & echo $! > child; wait");
    let key = cell.launch(document);
    let child: i32 = cell.read_when_there("child").parse().unwrap();
    let state = |wanted: u8| move || gridwright_shepherd::proc::stat(child).filter(|stat| stat.state == wanted);
    cell.order(key, TaskOrder::Suspend);
    until("the stopped child", state(b'T'));
    cell.order(key, TaskOrder::Resume);
    until("the running child", state(b'S'));
    cell.order(key, TaskOrder::Terminate);
    let result = cell.ended(key);
    assert!(result.ordered && !is_alive(child));
    assert_eq!(result.cause, EndCause::Signalled { signal: 9, core: false });
}

#[test]
fn a_job_that_a_hard_limit_ended_is_not_blamed_on_the_soft_one_before() {
    let mut cell = Cell::start();
    let goes_on = ["sh", "-c", "trap 'echo told' USR1; while :; do sleep 0.1; done"];
    let mut document = cell.document(direct(&goes_on));
    (document.task_limits.s_rt_s, document.task_limits.h_rt_s) = (Some(1), Some(2));
    document.termination.notify_s = 1000;
    let result = cell.run_document(document);
    assert_eq!(result.cause, EndCause::Signalled { signal: 9, core: false });
    assert_eq!(named(&result.limit), Some(("h_rt", HostEvidence::Certain)));
    let mut document = cell.document(direct(&goes_on));
    document.task_limits.s_rt_s = Some(1);
    document.termination.notify_s = 1000;
    let number = document.job_number;
    let key = cell.launch(document);
    cell.read_when_there(&format!("job.o{number}"));
    cell.order(key, TaskOrder::Terminate);
    let result = cell.ended(key);
    assert_eq!(
        (result.ordered, result.limit),
        (true, None),
        "an order ended it, not the limit"
    );
}

#[test]
fn a_trap_in_the_command_line_of_a_job_is_called() {
    let mut cell = Cell::start();
    let traps = |signal: &str| format!("trap 'echo told; exit 4' {signal}; while :; do sleep 0.1; done");
    let mut document = cell.shell(&traps("USR1"));
    document.task_limits.s_rt_s = Some(1);
    let result = cell.run_document(document);
    assert_eq!(
        (&result.cause, cell.output(&result, 'o').as_str()),
        (&EndCause::Exited(4), "told\n")
    );
    let mut document = cell.shell(&format!("echo > up; {}", traps("USR2")));
    document.termination.notify = true;
    document.termination.notify_s = 1000;
    let key = cell.launch(document);
    cell.read_when_there("up");
    let main = cell.executed(key);
    until("the trap", || {
        gridwright_shepherd::proc::catches(main, libc::SIGUSR2).then_some(())
    });
    cell.order(key, TaskOrder::Terminate);
    let result = cell.ended(key);
    assert_eq!(
        (&result.cause, cell.output(&result, 'o').as_str()),
        (&EndCause::Exited(4), "told\n")
    );
}

#[test]
fn a_task_with_too_many_processes_is_ended_whole() {
    let mut cell = Cell::start();
    let mut document = cell.shell("for i in $(seq 30); do sleep 1000 & done; wait");
    document.task_limits.h_maxproc = Some(20);
    let result = cell.run_document(document);
    assert_eq!(result.cause, EndCause::Signalled { signal: 9, core: false });
    assert_eq!(named(&result.limit), Some(("h_maxproc", HostEvidence::Certain)));
    let mut document = cell.shell("for i in $(seq 5); do sleep 0.5 & done; wait");
    document.task_limits.h_maxproc = Some(20);
    assert_eq!(cell.run_document(document).limit, None);
}

#[test]
fn a_program_that_only_forks_is_ended_by_the_memory_limit_of_its_task() {
    let mut cell = Cell::start();
    // The same as a bomb of the shell, with an end if nothing stops it. Each process leaves a byte,
    // the first one also its size.
    let bomb = "perl -e 'open F, \">>made\"; open S, \"/proc/self/status\"; print grep /VmSize/, <S>; $| = 1; \
                for (1..9) { fork or syswrite F, \"x\" } sleep 1000'";
    let mut document = cell.shell(bomb);
    document.task_limits.h_vmem_bytes = Some(100 * MIB);
    let result = cell.run_document(document);
    assert_eq!(named(&result.limit), Some(("h_vmem", HostEvidence::Certain)));
    // An ordinary user's shepherd waits its turn among all processes: how far the task comes by
    // then has no bound.
    if nix::unistd::Uid::effective().is_root() {
        let size = cell.output(&result, 'o');
        let size_kib: u64 = size.split_whitespace().nth(1).unwrap().parse().unwrap();
        let made = 1 + std::fs::metadata(cell.work.join("made")).unwrap().len();
        assert!(
            made * size_kib * 1024 < 4 * 100 * MIB,
            "{made} processes of {size_kib} KiB came into being"
        );
    }
}
