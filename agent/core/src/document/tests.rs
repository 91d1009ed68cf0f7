mod binding;
mod checkpoints;

use super::*;
use crate::testing::{host_paths, key, order, spec};
use proto::amount::Amount;
use proto::device::{DeviceFile, DeviceOrder};
use proto::id::QueueInstanceName;
use proto::launch::Request;
use proto::launch::pairs::{FIRST_VERSION, Record, VERSION};
use proto::limit::Bounds;
use proto::request::TaskRange;
use proto::rsmap::GrantedIds;

fn document(order: &StartOrder, spec: &JobSpec) -> LaunchDocument {
    launch_document(&host_paths(), &AgentConfig::default(), order, spec)
}

fn variable<'a>(document: &'a LaunchDocument, name: &str) -> Option<&'a str> {
    document
        .environment
        .iter()
        .find_map(|entry| entry.strip_prefix(name)?.strip_prefix('='))
}

#[test]
fn the_environment_is_the_recorded_one() {
    let made = document(&order(key(1, 1)), &spec());
    for (name, value) in [
        ("ARC", "lx-amd64"),
        ("ENVIRONMENT", "BATCH"),
        ("JOB_ID", "7"),
        ("JOB_NAME", "job.sh"),
        ("JOB_SCRIPT", "/cell/tasks/0000000000000001.1.1.0.1/job_scripts/7"),
        ("NHOSTS", "1"),
        ("NSLOTS", "1"),
        ("PATH", "/tmp/7.1.all.q:/usr/local/bin:/bin:/usr/bin"),
        ("QUEUE", "all.q"),
        ("RESTARTED", "0"),
        ("SGE_ACCOUNT", "sge"),
        ("SGE_CELL", "default"),
        ("SGE_O_HOME", "/home/u1"),
        ("SGE_ROOT", "/cell"),
        ("SGE_TASK_ID", "undefined"),
        ("TMPDIR", "/tmp/7.1.all.q"),
        ("TZ", "UTC"),
    ] {
        assert_eq!(variable(&made, name), Some(value), "{name}");
    }
    assert_eq!(variable(&made, "PE_HOSTFILE"), None);
}

#[test]
fn the_environment_of_the_agent_is_inherited_only_where_it_is_wanted_and_never_in_place_of_a_jobs_own() {
    let made = |inherit_env| {
        let config = AgentConfig {
            inherit_env,
            ..AgentConfig::default()
        };
        launch_document(&host_paths(), &config, &order(key(1, 1)), &spec())
    };
    assert_eq!(variable(&made(false), "SITE"), None);
    assert_eq!(variable(&made(true), "SITE"), Some("here"));
    assert_eq!(
        variable(&made(true), "PATH"),
        Some("/tmp/7.1.all.q:/usr/local/bin:/bin:/usr/bin")
    );
}

#[test]
fn control_groups_are_used_where_the_host_has_a_place_unless_the_cell_says_no() {
    let made = |use_cgroups| {
        let host_paths = HostPaths {
            cgroup_parent: Some("/sys/fs/cgroup/gw".to_owned()),
            ..host_paths()
        };
        let config = AgentConfig {
            use_cgroups,
            ..AgentConfig::default()
        };
        let made = launch_document(&host_paths, &config, &order(key(1, 1)), &spec());
        assert_eq!(made.own_group, Some(made.cgroup_parent.is_some()));
        made.cgroup_parent.is_some()
    };
    assert_eq!([None, Some(true), Some(false)].map(made), [true, true, false]);
}

/// What 8.1.9 sets for a serial job after `-v` and `-V`.
const OF_THE_CELL: [&str; 27] = [
    "ARC",
    "ENVIRONMENT",
    "HOSTNAME",
    "JOB_ID",
    "JOB_NAME",
    "JOB_SCRIPT",
    "NHOSTS",
    "NQUEUES",
    "NSLOTS",
    "QUEUE",
    "REQNAME",
    "REQUEST",
    "RESTARTED",
    "SGE_ACCOUNT",
    "SGE_ARCH",
    "SGE_BINARY_PATH",
    "SGE_BINDING",
    "SGE_CELL",
    "SGE_JOB_SPOOL_DIR",
    "SGE_ROOT",
    "SGE_TASK_FIRST",
    "SGE_TASK_ID",
    "SGE_TASK_LAST",
    "SGE_TASK_STEPSIZE",
    "SHELL",
    "TMP",
    "TMPDIR",
];

#[test]
fn a_user_sets_variables_but_not_those_that_say_what_the_cell_decided() {
    let mut given = spec();
    let names = OF_THE_CELL
        .into_iter()
        .chain(["HOME", "LOGNAME", "USER", "MYVAR", "PE", "SGE_RSH_COMMAND", "TZ"]);
    given.environment = names
        .map(|name| (name.to_owned(), "another".to_owned()))
        .collect::<Vec<_>>()
        .into();
    let made = document(&order(key(1, 1)), &given);
    for name in OF_THE_CELL {
        assert_ne!(variable(&made, name), Some("another"), "{name}");
        assert!(variable(&made, name).is_some(), "{name}");
    }
    for name in ["HOME", "LOGNAME", "USER"] {
        assert_eq!(variable(&made, name), None, "{name} is the shepherd's");
    }
    for name in ["MYVAR", "PE", "SGE_RSH_COMMAND", "TZ"] {
        assert_eq!(variable(&made, name), Some("another"), "{name}");
    }
}

#[test]
fn a_parallel_job_within_another_one_has_its_own_environment_and_an_array_its_own_tasks() {
    let mut given = spec();
    let outer = [
        "PE",
        "PE_HOSTFILE",
        "NSLOTS",
        "SGE_TASK_ID",
        "SGE_TASK_LAST",
        "SGE_RSH_COMMAND",
    ];
    given.environment = outer.map(|name| (name.to_owned(), "outer".to_owned())).to_vec().into();
    let array = TaskRange::parse("1-2:1").ok();
    let order = StartOrder {
        pe: Some("smp".into()),
        control_slaves: true,
        array,
        ..order(key(1, 1))
    };
    let made = document(&order, &given);
    for (name, value) in [
        ("PE", "smp"),
        ("PE_HOSTFILE", "/cell/tasks/0000000000000001.1.1.0.1/pe_hostfile"),
        ("NSLOTS", "1"),
        ("SGE_TASK_ID", "1"),
        ("SGE_TASK_LAST", "2"),
        ("SGE_RSH_COMMAND", "builtin"),
    ] {
        assert_eq!(variable(&made, name), Some(value), "{name}");
    }
}

#[test]
fn the_temporary_directory_stands_in_front_of_any_search_path() {
    for (path, expected) in [("/x:/y", "/tmp/7.1.all.q:/x:/y"), ("", "/tmp/7.1.all.q:")] {
        let mut given = spec();
        given.environment = vec![("PATH".to_owned(), path.to_owned())].into();
        assert_eq!(variable(&document(&order(key(1, 1)), &given), "PATH"), Some(expected));
    }
}

#[test]
fn the_ids_of_resource_maps_on_this_host_are_told_in_variables() {
    let map = |attribute: &str, host: &HostName, ids: &[&str]| GrantedIds {
        attribute: attribute.into(),
        host: host.clone(),
        ids: ids.iter().map(|id| (*id).to_owned()).collect(),
    };
    let (here, other) = (host_paths().host, HostName::new("elsewhere"));
    let maps = vec![
        map("gpu", &HostName::global(), &["x"]),
        map("lic", &HostName::global(), &["seat-1"]),
        map("gpu", &here, &["0", "3"]),
        map("gpu", &other, &["9"]),
    ];
    let mut given = spec();
    given.environment = vec![("SGE_HGR_gpu".to_owned(), "all of them".to_owned())].into();
    let made = document(
        &StartOrder {
            maps,
            ..order(key(1, 1))
        },
        &given,
    );
    assert_eq!(variable(&made, "SGE_HGR_gpu"), Some("0 3"));
    assert_eq!(variable(&made, "SGE_HGR_lic"), Some("seat-1"));
}

#[test]
fn devices_are_told_to_the_launcher_and_to_the_programs_of_their_maker() {
    let granted = DeviceFile::parse("/dev/nvidia0:rw").unwrap();
    let devices = DeviceOrder {
        granted: vec![granted],
        withheld: vec!["/dev/nvidia1".to_owned()],
        variables: vec![("CUDA_VISIBLE_DEVICES".to_owned(), "GPU-1".to_owned())],
    };
    let mut given = spec();
    given.environment = vec![("CUDA_VISIBLE_DEVICES".to_owned(), "all".to_owned())].into();
    let with_devices = StartOrder {
        devices: Some(Box::new(devices)),
        ..order(key(1, 1))
    };
    let made = document(&with_devices, &given);
    assert_eq!(made.devices_granted, ["/dev/nvidia0:rw"]);
    assert_eq!(made.devices_withheld, ["/dev/nvidia1"]);
    assert_eq!(variable(&made, "CUDA_VISIBLE_DEVICES"), Some("GPU-1"));
    // A launcher that knows nothing of devices must not start the task.
    let request = Request::Launch(Box::new(made));
    assert_eq!((request.version(), Request::List.version()), (VERSION, FIRST_VERSION));
    assert_eq!(Request::decode(&request.encode()), Ok(request));
    let plain = document(&order(key(1, 1)), &given);
    assert_eq!(Request::Launch(Box::new(plain)).version(), FIRST_VERSION);
}

#[test]
fn the_working_directory_is_the_one_of_this_host() {
    let mut given = spec();
    given.directory = Some("/home/u1/x".to_owned());
    assert_eq!(document(&order(key(1, 1)), &given).working_directory, "/home/u1/x");
    given.directory_on = vec![HostPath {
        host: Some(HostName::new("elsewhere")),
        path: "/export/u1/x".to_owned(),
    }];
    assert_eq!(document(&order(key(1, 1)), &given).working_directory, "/home/u1/x");
    given.directory_on.push(HostPath {
        host: Some(host_paths().host),
        path: "/data/u1/x".to_owned(),
    });
    assert_eq!(document(&order(key(1, 1)), &given).working_directory, "/data/u1/x");
    given.directory_on.clear();
    given.directory = Some("$HOME/$JOB_ID_x".to_owned());
    assert_eq!(document(&order(key(1, 1)), &given).working_directory, "$HOME/7_x");
}

#[test]
fn output_names_follow_the_job_and_task() {
    let mut given = spec();
    given.stdout = vec![HostPath {
        host: None,
        path: "$HOME/out.$JOB_ID.$TASK_ID".to_owned(),
    }];
    given.stderr = vec![
        HostPath {
            host: None,
            path: "/all".to_owned(),
        },
        HostPath {
            host: Some(HostName::new("node1.example.org")),
            path: "/mine".to_owned(),
        },
    ];
    let array = StartOrder {
        array: TaskRange::parse("1-9:2").ok(),
        ..order(key(1, 1))
    };
    let made = document(&array, &given).streams;
    assert_eq!(
        (made.stdout.path.as_str(), made.stdout.default_name.as_str()),
        ("$HOME/out.7.1", "job.sh.o7.1")
    );
    assert_eq!(made.stderr.path, "/mine");
    assert_eq!(
        document(&order(key(1, 1)), &spec()).streams.stderr.default_name,
        "job.sh.e7"
    );
    given.stdout[0].path = "$JOB_ID_$TASK_ID".to_owned();
    assert_eq!(document(&array, &given).streams.stdout.path, "7_1");
    assert_eq!(
        document(&order(key(1, 1)), &given).streams.stdout.path,
        "7_0",
        "a job that is no array has task 0"
    );
}

#[test]
fn limits_reach_both_the_process_and_the_task() {
    let mut wanted = order(key(1, 1));
    let gib = Amount::from_base(1 << 30);
    wanted.limits.set(
        LimitKind::Vmem,
        Bounds {
            soft: None,
            hard: Some(gib),
        },
    );
    wanted.limits.set(
        LimitKind::Stack,
        Bounds {
            soft: Some(Amount::INFINITY),
            hard: Some(Amount::INFINITY),
        },
    );
    wanted.limits.set(
        LimitKind::Rt,
        Bounds {
            soft: Some(Amount::from_base(5)),
            hard: Some(Amount::from_base(9)),
        },
    );
    let made = document(&wanted, &spec());
    let one = ProcessLimit {
        resource: Resource::AddressSpace,
        soft: BoundValue::Finite(1 << 30),
        hard: BoundValue::Finite(1 << 30),
    };
    assert_eq!(made.limits, [one]);
    assert_eq!(
        (
            made.task_limits.h_vmem_bytes,
            made.task_limits.s_rt_s,
            made.task_limits.h_rt_s
        ),
        (Some(1 << 30), Some(5), Some(9))
    );
}

#[test]
fn what_is_started_follows_b_shell_and_s() {
    let mut given = spec();
    let mode = |made: LaunchDocument| match made.start {
        Start::Script { mode, .. } => Some(mode),
        Start::Command { .. }
        | Start::Direct { .. }
        | Start::Connected { .. }
        | Start::Session { .. }
        | Start::Starter { .. } => None,
    };
    assert_eq!(mode(document(&order(key(1, 1)), &given)), Some(StartMode::UnixBehavior));
    given.shell = vec![HostPath {
        host: None,
        path: "/bin/bash".to_owned(),
    }];
    assert_eq!(
        mode(document(&order(key(1, 1)), &given)),
        Some(StartMode::UnixBehavior),
        "its first line counts"
    );
    given.program = Program::Command {
        command: "echo".to_owned(),
    };
    assert!(matches!(document(&order(key(1, 1)), &given).start, Start::Command { shell, .. } if shell == "/bin/bash"));
    given.use_shell = Some(false);
    assert!(matches!(document(&order(key(1, 1)), &given).start, Start::Direct { argv } if argv == ["echo", "a b"]));
}

#[test]
fn methods_are_signals_or_commands() {
    let config = AgentConfig::default();
    let texts = Texts::from_order(&host_paths(), &order(key(1, 1)), &spec());
    assert_eq!(method(Some("SIGTERM"), &texts), Method::Signal(15));
    assert_eq!(method(Some("12"), &texts), Method::Signal(12));
    assert_eq!(
        method(Some("/usr/bin/stop $job_id $job_pid"), &texts),
        Method::Command("/usr/bin/stop 7 $job_pid".to_owned())
    );
    assert_eq!(
        procedure(Some("root@/x/prolog $host"), &texts, &config)
            .unwrap()
            .user
            .as_deref(),
        Some("root")
    );
    assert_eq!(
        procedure(Some("/x/prolog $job_id.$ja_task_id"), &texts, &config)
            .unwrap()
            .command,
        "/x/prolog 7.0"
    );
    assert_eq!(
        procedure(Some("root@$sge_root/$sge_cell/prolog"), &texts, &config)
            .unwrap()
            .command,
        "/cell/default/prolog"
    );
}

#[test]
fn a_name_that_looks_like_a_variable_is_not_replaced() {
    for name in ["$fs_stdin_file_staging", "${fs_stdin_host}", "$job_id"] {
        let texts = Texts::from_order(
            &host_paths(),
            &order(key(1, 1)),
            &JobSpec {
                name: name.to_owned(),
                ..spec()
            },
        );
        let made = procedure(
            Some("/x/prolog $job_name $fs_stdin_file_staging"),
            &texts,
            &AgentConfig::default(),
        )
        .unwrap();
        assert_eq!(made.command, format!("/x/prolog {name} 0"));
    }
}

#[test]
fn a_parallel_job_gets_its_host_file_and_a_serial_one_none() {
    let mut order = order(key(1, 1));
    assert_eq!(
        launch_document(&host_paths(), &AgentConfig::default(), &order, &spec()).host_file,
        None
    );
    order.pe = Some("smp".into());
    order.granted[0].slots = 2;
    let document = launch_document(&host_paths(), &AgentConfig::default(), &order, &spec());
    assert_eq!(document.host_file.as_deref(), Some("node1 2 all.q@node1 UNDEFINED\n"));
}

#[test]
fn where_only_a_master_is_that_is_no_task_no_task_is_started() {
    let mut order = order(key(1, 1));
    order.pe = Some("mpi".into());
    let elsewhere = QueueInstanceName {
        queue: "compute.q".into(),
        host: "node2".into(),
    };
    order.granted = vec![
        GrantedSlots {
            slots: 0,
            ..order.granted[0].clone()
        },
        GrantedSlots {
            instance: elsewhere,
            slots: 3,
        },
    ];
    let document = document(&order, &spec());
    assert_eq!(
        document.host_file.as_deref(),
        Some("node2 3 compute.q@node2 UNDEFINED\n")
    );
    for (name, value) in [("NHOSTS", "1"), ("NQUEUES", "1"), ("NSLOTS", "3"), ("QUEUE", "all.q")] {
        assert_eq!(variable(&document, name), Some(value), "{name}");
    }
}

#[test]
fn a_task_is_sampled_as_often_as_the_cell_says() {
    let interval = |sample_interval_ms| {
        let config = AgentConfig {
            sample_interval_ms,
            ..AgentConfig::default()
        };
        launch_document(&host_paths(), &config, &order(key(1, 1)), &spec()).sample_interval_ms
    };
    assert_eq!([None, Some(5000), Some(0)].map(interval), [1000, 5000, 0]);
}

#[test]
fn a_soft_limit_alone_leaves_the_hard_one_as_it_is() {
    let limits = |soft, hard| {
        let mut wanted = order(key(1, 1));
        wanted.limits.set(LimitKind::Cpu, Bounds { soft, hard });
        let limits = document(&wanted, &spec()).limits;
        limits.first().map(|limit| (limit.soft, limit.hard))
    };
    let seconds = |seconds| Some(Amount::from_base(seconds));
    assert_eq!(
        limits(seconds(5), None),
        Some((BoundValue::Finite(5), BoundValue::Infinity))
    );
    assert_eq!(
        limits(seconds(5), Some(Amount::INFINITY)),
        Some((BoundValue::Finite(5), BoundValue::Infinity))
    );
    assert_eq!(
        limits(None, seconds(5)),
        Some((BoundValue::Finite(5), BoundValue::Finite(5)))
    );
    assert_eq!(
        limits(seconds(9), seconds(5)),
        Some((BoundValue::Finite(5), BoundValue::Finite(5)))
    );
    assert_eq!(limits(None, None), None);
}

#[test]
fn a_starter_method_stands_in_place_of_the_shell_and_is_told_about_it() {
    let mut wanted = order(key(1, 1));
    wanted.queue.starter_method = Some("/opt/start".to_owned());
    wanted.queue.login_shells = vec!["sh".to_owned()];
    let made = document(&wanted, &spec());
    let args = vec!["a b".to_owned()];
    assert_eq!(
        made.start,
        Start::Starter {
            starter: "/opt/start".to_owned(),
            stdin: false,
            args
        }
    );
    for (name, value) in [
        ("SHELL_PATH", "/bin/sh"),
        ("SHELL_START_MODE", "unix_behavior"),
        ("USE_LOGIN_SHELL", "true"),
    ] {
        assert_eq!(variable(&made, &format!("SGE_STARTER_{name}")), Some(value));
    }
    let mut command = spec();
    (command.program, command.use_shell) = (
        Program::Command {
            command: "echo".to_owned(),
        },
        Some(false),
    );
    let made = document(&wanted, &command);
    assert!(matches!(&made.start, Start::Direct { argv } if *argv == ["/opt/start", "echo", "a b"]));
    assert_eq!(variable(&made, "SGE_STARTER_SHELL_START_MODE"), Some("raw_exec"));
    assert_eq!(
        variable(&document(&order(key(1, 1)), &spec()), "SGE_STARTER_SHELL_PATH"),
        None
    );
}

#[test]
fn shells_are_login_shells_unless_unix_behavior_starts_a_script() {
    let mut command = spec();
    (command.program, command.use_shell) = (
        Program::Command {
            command: "echo".to_owned(),
        },
        Some(true),
    );
    let is_login = |mode: &str, known: &str, spec: &JobSpec| {
        let mut wanted = order(key(1, 1));
        (wanted.queue.shell_start_mode, wanted.queue.login_shells) = (mode.to_owned(), vec![known.to_owned()]);
        match document(&wanted, spec).start {
            Start::Script { login, .. } | Start::Command { login, .. } => login,
            other => panic!("{other:?}"),
        }
    };
    for (mode, script_is_login) in [
        ("unix_behavior", false),
        ("posix_compliant", true),
        ("script_from_stdin", true),
    ] {
        assert_eq!(is_login(mode, "sh", &spec()), script_is_login, "a script, {mode}");
        assert!(is_login(mode, "sh", &command), "a command, {mode}");
        assert!(
            !is_login(mode, "csh", &spec()) && !is_login(mode, "csh", &command),
            "{mode}"
        );
    }
}

#[test]
fn procedures_of_the_parallel_environment_come_from_the_order() {
    let mut wanted = order(key(1, 1));
    wanted.pe = Some("mpi".into());
    wanted.pe_start = Some("root@/x/start $pe_hostfile $pe $pe_slots $host".to_owned());
    wanted.pe_stop = Some("/x/stop $processors".to_owned());
    let made = document(&wanted, &spec());
    let start = made.pe_start.clone().unwrap();
    let host_file = variable(&made, "PE_HOSTFILE").unwrap();
    assert_eq!(
        (start.user.as_deref(), start.command),
        (Some("root"), format!("/x/start {host_file} mpi 1 node1"))
    );
    assert_eq!(made.pe_stop.unwrap().command, "/x/stop UNDEFINED");
    let names = |streams: &Streams| [&streams.stdout, &streams.stderr].map(|output| output.default_name.clone());
    assert_eq!(names(&made.pe_streams.unwrap()), ["job.sh.po7", "job.sh.pe7"]);
    assert_eq!(names(&made.streams), ["job.sh.o7", "job.sh.e7"]);
    wanted.pe_start = Some("/x/start $fs_stdin_host $fs_stdout_file_staging $stdout_path".to_owned());
    let command = document(&wanted, &spec()).pe_start.unwrap().command;
    assert_eq!(
        command, "/x/start \"\" 0 $stdout_path",
        "paths are the shepherd's to tell"
    );
}

#[test]
fn parameters_of_the_execution_side_change_signals_and_library_path() {
    let config = AgentConfig {
        notify_kill_signal: Some(15),
        notify_suspend_signal: Some(0),
        set_lib_path: true,
        ..AgentConfig::default()
    };
    let mut given = spec();
    let made = launch_document(&host_paths(), &config, &order(key(1, 1)), &given);
    assert_eq!(
        (
            made.termination.notify_kill_signal,
            made.termination.notify_suspend_signal
        ),
        (15, 0)
    );
    assert_eq!(variable(&made, "LD_LIBRARY_PATH"), Some("/cell/lib/lx-amd64"));
    given
        .environment
        .push(("LD_LIBRARY_PATH".to_owned(), "/opt/lib".to_owned()));
    let made = launch_document(&host_paths(), &config, &order(key(1, 1)), &given);
    assert_eq!(variable(&made, "LD_LIBRARY_PATH"), Some("/cell/lib/lx-amd64:/opt/lib"));
    let usual = document(&order(key(1, 1)), &spec()).termination;
    assert_eq!((usual.notify_kill_signal, usual.notify_suspend_signal), (12, 10));
}

#[test]
fn timeouts_of_procedures_and_methods_are_configured() {
    let mut wanted = order(key(1, 1));
    wanted.queue.prolog = Some("/x/prolog".to_owned());
    wanted.queue.suspend_method = Some("/x/stop ${job_pid} $job_id".to_owned());
    let usual = document(&wanted, &spec());
    assert_eq!(
        (usual.prolog.unwrap().timeout_s, usual.termination.method_timeout_s),
        (120, None)
    );
    let config = AgentConfig {
        script_timeout_s: Some(600),
        method_timeout_s: Some(30),
        ..AgentConfig::default()
    };
    let made = launch_document(&host_paths(), &config, &wanted, &spec());
    assert_eq!(
        (made.prolog.unwrap().timeout_s, made.termination.method_timeout_s),
        (600, Some(30))
    );
    let Method::Command(command) = made.termination.suspend else {
        panic!("a path is a command")
    };
    assert!(command.starts_with("/x/stop $job_pid "), "{command}");
}
