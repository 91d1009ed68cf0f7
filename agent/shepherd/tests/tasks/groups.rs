//! Control groups of tasks, on hosts that let root make some. Elsewhere the tests end at once.

use super::cell::{Cell, is_alive, limit, until};
use gridwright_shepherd::proc;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use proto::launch::{EndCause, HostEvidence, LaunchDocument, Procedure, Resource, TaskLimits, TaskOrder};
use proto::limit::VmemMeaning;
use std::fs;
use std::path::PathBuf;

const MIB: u64 = 1 << 20;

/// What the launcher says of its host.
fn enforces(cell: &Cell) -> String {
    fs::read_to_string(cell.dir.join("run/launcher/limits")).unwrap()
}

/// A cell whose tasks get groups; `None` where they cannot.
fn cell() -> Option<Cell> {
    let cell = Cell::start();
    let has_groups = enforces(&cell).contains("each task gets a group");
    assert!(has_groups || !are_needed(), "{}", enforces(&cell));
    has_groups.then_some(cell)
}

/// Whether a host without groups fails the tests.
fn are_needed() -> bool {
    std::env::var_os("GRIDWRIGHT_TESTS_NEED_GROUPS").is_some()
}

fn in_group(cell: &mut Cell, command: &str) -> LaunchDocument {
    LaunchDocument {
        own_group: Some(true),
        ..cell.shell(command)
    }
}

/// The group of a process in the unified hierarchy, or in the one that stands for it.
fn group_of(pid: i32) -> PathBuf {
    let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    let path = text.lines().find_map(|line| line.strip_prefix("0::/")).unwrap();
    let roots = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].map(PathBuf::from);
    let root = roots.iter().find(|root| root.join("cgroup.controllers").exists());
    root.unwrap().join(path)
}

#[test]
fn a_task_has_a_group_of_its_own_that_goes_with_it_and_its_shepherd_is_not_there() {
    let Some(mut cell) = cell() else { return };
    let document = in_group(&mut cell, "echo $$ > running; until [ -e go ]; do sleep 0.05; done");
    let key = cell.launch(document);
    let main = cell.executed(key);
    cell.read_when_there("running");
    let group = group_of(main);
    assert!(group.ends_with(key.to_string()), "{}", group.display());
    assert_ne!(group_of(proc::stat(main).unwrap().parent), group);
    fs::write(cell.work.join("go"), "").unwrap();
    assert_eq!(cell.ended(key).cause, EndCause::Exited(0));
    assert!(!group.exists());
}

/// A process with an environment and a session of its own carries no mark of its task, and init is
/// its parent once launcher and shepherd are dead.
#[test]
fn a_process_without_any_mark_is_ended_by_its_group_also_if_launcher_and_shepherd_are_dead() {
    let Some(mut cell) = cell() else { return };
    let command = "env -i setsid sh -c '(env -i setsid sleep 1000 & echo $! > escaped)'; sleep 1000";
    let document = in_group(&mut cell, command);
    let key = cell.launch(document);
    let main = cell.executed(key);
    let escaped: i32 = cell.read_when_there("escaped").parse().unwrap();
    let group = group_of(escaped);
    let shepherd = Pid::from_raw(proc::stat(main).unwrap().parent);
    cell.launcher.kill().unwrap();
    cell.launcher.wait().unwrap();
    kill(shepherd, Signal::SIGKILL).unwrap();
    until("the end of the main process", || (!is_alive(main)).then_some(()));
    assert!(is_alive(escaped));
    cell.restart_launcher();
    let left = until("the record", || {
        let result = cell.list().pop()?.result?;
        (result.cause == EndCause::ShepherdDied).then_some(result.left_processes)
    });
    assert!(!is_alive(escaped));
    assert_eq!(left, Some(0), "the group had all processes");
    assert!(!group.exists());
}

#[test]
fn a_suspended_task_is_frozen_and_can_be_resumed_or_ended() {
    let Some(mut cell) = cell() else { return };
    let document = in_group(
        &mut cell,
        "trap 'echo back > back' CONT; echo $$ > running; while :; do sleep 0.05; done",
    );
    let key = cell.launch(document);
    let main = cell.executed(key);
    cell.read_when_there("running");
    let events = group_of(main).join("cgroup.events");
    let state = |wanted: &str| {
        until(wanted, || {
            fs::read_to_string(&events).unwrap().contains(wanted).then_some(())
        })
    };
    cell.order(key, TaskOrder::Suspend);
    state("frozen 1");
    cell.order(key, TaskOrder::Resume);
    state("frozen 0");
    cell.read_when_there("back");
    cell.order(key, TaskOrder::Suspend);
    state("frozen 1");
    cell.order(key, TaskOrder::Terminate);
    let result = cell.ended(key);
    assert_eq!(result.cause, EndCause::Signalled { signal: 9, core: false });
    assert_eq!(result.left_processes, Some(0));
}

/// A job whose limit of address space is far below what its processes have together, and under
/// `H_VMEM=memory`.
fn under_memory(cell: &mut Cell, bytes: u64, command: &str) -> LaunchDocument {
    LaunchDocument {
        vmem: Some(VmemMeaning::Memory),
        limits: vec![limit(Resource::AddressSpace, bytes)],
        task_limits: TaskLimits {
            h_vmem_bytes: Some(bytes),
            s_vmem_bytes: Some(bytes),
            ..TaskLimits::default()
        },
        ..in_group(cell, command)
    }
}

/// A cell on a host whose kernel can limit the memory of a group.
fn cell_with_memory() -> Option<Cell> {
    let cell = cell()?;
    let can = !enforces(&cell).contains("H_VMEM=memory: not possible");
    assert!(can || !are_needed(), "{}", enforces(&cell));
    can.then_some(cell)
}

/// `tail` keeps a line without an end in memory.
const TEN_TIMES_20_MIB: &str =
    "for i in 1 2 3 4 5 6 7 8 9 10; do head -c 20M /dev/zero | tail -n 1 | sleep 1000 & done; wait";

#[test]
fn ten_processes_that_exceed_the_memory_of_their_task_together_die_whole() {
    let Some(mut cell) = cell_with_memory() else { return };
    let document = under_memory(&mut cell, 100 * MIB, TEN_TIMES_20_MIB);
    let result = cell.run_document(document);
    let hit = result.limit.expect("a limit is named");
    assert_eq!((hit.limit.as_str(), hit.bound), ("h_vmem", 100 * MIB));
    assert_eq!(hit.evidence, HostEvidence::Certain);
    assert!((95 * MIB..=100 * MIB).contains(&hit.reached), "{}", hit.reached);
    assert_eq!(result.cause, EndCause::Signalled { signal: 9, core: false });
    assert_eq!(result.left_processes, Some(0));
    assert_eq!(result.usage.conditions.unwrap().unset.texts().count(), 0);
}

/// Address space is not limited, and page cache is not use.
#[test]
fn a_task_may_have_much_address_space_and_read_large_files_under_a_limit_of_memory() {
    let Some(mut cell) = cell_with_memory() else { return };
    let command = "ulimit -v; head -c 200M /dev/zero > file; cat file > /dev/null; rm file; head -c 20M /dev/zero | tail -n 1 | wc -c";
    let document = under_memory(&mut cell, 100 * MIB, command);
    let result = cell.run_document(document);
    assert_eq!((&result.cause, &result.limit), (&EndCause::Exited(0), &None));
    assert_eq!(cell.output(&result, 'o'), "unlimited\n20971520\n");
    assert!(result.usage.maxrss_bytes < 80 * MIB, "{}", result.usage.maxrss_bytes);
}

/// Without a group of its own the limit holds for address space, and the result says so.
#[test]
fn a_limit_of_memory_that_cannot_be_kept_holds_for_address_space_and_is_reported() {
    let mut cell = Cell::start();
    let document = LaunchDocument {
        own_group: None,
        ..under_memory(&mut cell, 300 * MIB, "ulimit -v")
    };
    let result = cell.run_document(document);
    assert_eq!(cell.output(&result, 'o'), "307200\n");
    let unset = result.usage.conditions.unwrap().unset;
    let texts: Vec<&str> = unset.texts().collect();
    assert!(
        texts[0].contains("limits address space, not memory in use"),
        "{texts:?}"
    );
}

/// The limit of four bytes is a slip for one of 4G. It ends the job, and nothing before it.
#[test]
fn a_limit_that_is_too_small_for_any_program_ends_the_job_and_is_named() {
    let Some(mut cell) = cell_with_memory() else { return };
    let document = under_memory(&mut cell, 4, "sleep 1000");
    let result = cell.run_document(document);
    assert!(result.executed, "{result:?}");
    assert_eq!(result.limit.expect("a limit is named").limit, "h_vmem");
}

/// Files in memory that a job leaves count for its group; the epilog has room all the same.
#[test]
fn an_epilog_has_room_in_a_group_that_its_job_has_filled() {
    let Some(mut cell) = cell_with_memory() else { return };
    let file = format!("/dev/shm/gridwright-test-{}", std::process::id());
    let document = under_memory(&mut cell, 60 * MIB, &format!("head -c 50M /dev/zero > {file}"));
    let epilog = Some(Procedure {
        user: None,
        command: format!("/bin/sh {}", cell.work.join("epilog").display()),
        timeout_s: 60,
    });
    fs::write(
        cell.work.join("epilog"),
        "head -c 30M /dev/zero | tail -n 1 | wc -c > room\n",
    )
    .unwrap();
    let result = cell.run_document(LaunchDocument { epilog, ..document });
    let _ = fs::remove_file(&file);
    assert_eq!((&result.cause, &result.after), (&EndCause::Exited(0), &None));
    assert_eq!(cell.read_when_there("room"), "31457280");
}

/// Address space is what `address` limits: files in memory are none.
#[test]
fn memory_in_use_is_not_limited_where_address_space_is() {
    let Some(mut cell) = cell() else { return };
    let file = format!("/dev/shm/gridwright-test-address-{}", std::process::id());
    let document = LaunchDocument {
        vmem: Some(VmemMeaning::Address),
        ..under_memory(&mut cell, 60 * MIB, &format!("head -c 90M /dev/zero > {file}"))
    };
    let result = cell.run_document(document);
    let _ = fs::remove_file(&file);
    assert_eq!((&result.cause, &result.limit), (&EndCause::Exited(0), &None));
}
