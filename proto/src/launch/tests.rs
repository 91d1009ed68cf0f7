use super::pairs::Record;
use super::terminal::WindowSize;
use super::*;
use crate::id::{CellId, SubmitSeq, TaskId, TaskKey};
use proptest::prelude::*;

fn text() -> impl Strategy<Value = String> {
    "[^\\x00]{0,12}"
}

fn key() -> impl Strategy<Value = TaskKey> {
    (any::<u64>(), any::<u64>(), any::<u32>(), any::<u32>(), any::<u32>()).prop_map(
        |(cell, seq, task, pe_task, attempt)| TaskKey {
            cell: CellId(cell),
            seq: SubmitSeq(seq),
            task: TaskId(task),
            pe_task,
            attempt,
        },
    )
}

fn start() -> impl Strategy<Value = Start> {
    let args = || proptest::collection::vec(text(), 0..4);
    prop_oneof![
        (text(), any::<bool>(), proptest::sample::select(StartMode::ALL), args()).prop_map(
            |(shell, login, mode, args)| Start::Script {
                shell,
                login,
                mode,
                args
            }
        ),
        (text(), any::<bool>(), args()).prop_map(|(shell, login, argv)| Start::Command { shell, login, argv }),
        args().prop_map(|argv| Start::Direct { argv }),
        (proptest::option::of(text()), any::<bool>(), args()).prop_map(|(shell, has_input, argv)| Start::Connected {
            shell,
            has_input,
            argv
        }),
        (
            proptest::sample::select(SessionShell::ALL),
            any::<bool>(),
            proptest::option::of((any::<u32>(), any::<u32>())),
            proptest::option::of(any::<u32>()),
            args()
        )
            .prop_map(|(shell, has_input, size, script_at, argv)| Start::Session {
                shell,
                has_input,
                terminal: size.map(|(rows, columns)| WindowSize { rows, columns }),
                script_at,
                argv
            }),
    ]
}

fn bound() -> impl Strategy<Value = BoundValue> {
    prop_oneof![any::<u64>().prop_map(BoundValue::Finite), Just(BoundValue::Infinity)]
}

fn method() -> impl Strategy<Value = Method> {
    prop_oneof![
        Just(Method::Default),
        any::<i32>().prop_map(Method::Signal),
        text().prop_map(Method::Command)
    ]
}

fn procedure() -> impl Strategy<Value = Option<Procedure>> {
    proptest::option::of(
        (proptest::option::of(text()), text(), any::<u32>()).prop_map(|(user, command, timeout_s)| Procedure {
            user,
            command,
            timeout_s,
        }),
    )
}

prop_compose! {
    fn document()(
        key in key(), job_number in any::<u32>(), job_name in text(), start in start(), user in text(), uid in any::<u32>(), gid in any::<u32>(),
        tracking_gid in any::<Option<u32>>(), environment in proptest::collection::vec(text(), 0..5), terminate in method(),
    )(
        limits in proptest::collection::vec((proptest::sample::select(Resource::ALL), bound(), bound()), 0..4),
        stdin in proptest::option::of(text()), path in text(), numbers in any::<[Option<u64>; 8]>(), merge in any::<bool>(), nice in any::<i32>(), umask in any::<u32>(),
        prolog in procedure(), epilog in procedure(), mask in any::<Option<u64>>(), tmp in proptest::option::of((text(), text())),
        key in Just(key), job_number in Just(job_number), job_name in Just(job_name), start in Just(start),
        account in Just((user, uid, gid, tracking_gid)), environment in Just(environment), terminate in Just(terminate),
    ) -> LaunchDocument {
        let (user, uid, gid, tracking_gid) = account;
        let [h_rt_s, s_rt_s, h_cpu_s, s_cpu_s, h_vmem_bytes, s_vmem_bytes, h_rss_bytes, s_rss_bytes] = numbers;
        let output = OutputPath { path, default_name: job_name.clone() };
        LaunchDocument {
            key, job_number, job_name: job_name.clone(), start, environment,
            account: Account { user, uid, gid, group: job_name, tracking_gid },
            working_directory: String::new(),
            pe_streams: merge.then(|| Streams { stdin: None, stdout: output.clone(), stderr: output.clone(), merge: !merge }),
            streams: Streams { stdin, stdout: output.clone(), stderr: output, merge },
            tmpdir: tmp.map(|(base, name)| TmpDir { base, name }),
            umask, nice,
            limits: limits.into_iter().map(|(resource, soft, hard)| ProcessLimit { resource, soft, hard }).collect(),
            task_limits: TaskLimits {
                h_rt_s, s_rt_s, h_cpu_s, s_cpu_s, h_vmem_bytes, s_vmem_bytes, h_rss_bytes, s_rss_bytes,
                h_maxproc: h_rt_s,
            },
            termination: Termination {
                notify: merge, notify_s: umask, notify_kill_signal: nice, notify_suspend_signal: nice,
                terminate, suspend: Method::Default, resume: Method::Signal(18), method_timeout_s: merge.then_some(umask),
            },
            prolog: prolog.clone(), epilog, pe_start: None, pe_stop: prolog,
            security: Security { no_new_privs: merge, bounding_set: mask },
            cgroup_parent: None, own_group: Some(merge), vmem: merge.then_some(crate::limit::VmemMeaning::Memory), host_file: merge.then(|| "node1 2 all.q@node1 UNDEFINED\n".to_owned()), keep_active: merge, sample_interval_ms: umask,
            checkpoint: merge.then(|| Checkpointing { save: Method::Signal(10), interval_s: u64::from(umask), migrate: Method::Default, clean: None }),
            processors: merge.then(|| "0-1,8".to_owned()),
            container: (!merge).then(|| Container { runtime: ContainerRuntime::Podman, image: "x".to_owned() }),
            devices_granted: Vec::new(), devices_withheld: merge.then(|| "/dev/nvidia0".to_owned()).into_iter().collect(),
        }
    }
}

fn failure() -> impl Strategy<Value = Failure> {
    (any::<u8>(), text(), any::<i32>(), text()).prop_map(|(failed, text, errno, path)| Failure {
        failed,
        text,
        errno,
        path,
    })
}

fn cause() -> impl Strategy<Value = EndCause> {
    prop_oneof![
        any::<u8>().prop_map(EndCause::Exited),
        (any::<i32>(), any::<bool>()).prop_map(|(signal, core)| EndCause::Signalled { signal, core }),
        failure().prop_map(EndCause::FailedToStart),
        Just(EndCause::ShepherdDied),
    ]
}

fn limit() -> impl Strategy<Value = HostLimitHit> {
    (
        text(),
        any::<u64>(),
        any::<u64>(),
        proptest::sample::select(HostEvidence::ALL),
    )
        .prop_map(|(limit, bound, reached, evidence)| HostLimitHit {
            limit,
            bound,
            reached,
            evidence,
        })
}

fn result() -> impl Strategy<Value = LaunchResult> {
    (
        key(),
        cause(),
        proptest::option::of(failure()),
        proptest::option::of(limit()),
        any::<[u64; 3]>(),
        any::<u128>(),
        any::<bool>(),
        text(),
    )
        .prop_map(
            |(
                key,
                cause,
                after,
                limit,
                [wallclock_ms, started_boot_ms, ended_boot_ms],
                mem_byte_ms,
                executed,
                boot_id,
            )| {
                LaunchResult {
                    key,
                    cause,
                    after,
                    executed,
                    ordered: !executed,
                    limit,
                    refused_limits: vec![HostRefusedLimit {
                        resource: Resource::Stack,
                        soft: BoundValue::Infinity,
                        hard: BoundValue::Finite(wallclock_ms),
                        errno: 1,
                    }],
                    procedures: vec![ProcedureEnd {
                        kind: ProcedureKind::Epilog,
                        status: 1,
                    }],
                    usage: TaskUsage {
                        mem_byte_ms,
                        conditions: executed.then(|| {
                            let mut unset = crate::usage::UnsetLimits::default();
                            unset.insert("memory");
                            crate::usage::Conditions {
                                cpu_pressure: Some(1250),
                                memory_pressure: None,
                                unset,
                            }
                        }),
                        ..TaskUsage::default()
                    },
                    wallclock_ms,
                    started_boot_ms,
                    ended_boot_ms,
                    boot_id,
                    saved_pid: executed.then_some(7),
                    left_processes: executed.then_some(0),
                    note: None,
                }
            },
        )
}

proptest! {
    #[test]
    fn a_document_reads_back_as_it_was_written(document in document()) {
        prop_assert_eq!(LaunchDocument::decode(&document.encode()), Ok(document));
    }

    #[test]
    fn a_result_reads_back_as_it_was_written(result in result()) {
        let notice = Notice::Ended(Box::new(result));
        let bytes = frame(&notice);
        prop_assert_eq!(unframe::<Notice>(&bytes), Ok(Some((notice, bytes.len()))));
    }

    #[test]
    fn any_bytes_are_read_or_refused_but_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = LaunchDocument::decode(&bytes);
        let _ = unframe::<Request>(&bytes);
        let mut headed = b"GWL\x01".to_vec();
        headed.extend_from_slice(&bytes);
        let _ = LaunchDocument::decode(&headed);
        let _ = Notice::decode(&headed);
    }

    #[test]
    fn a_damaged_document_is_read_or_refused_but_never_panics(
        document in document(), at in any::<proptest::sample::Index>(), byte in any::<u8>(), cut in any::<proptest::sample::Index>(),
    ) {
        let mut bytes = Request::Launch(Box::new(document)).encode();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let _ = Request::decode(&bytes);
        bytes.truncate(cut.index(bytes.len()));
        let _ = Request::decode(&bytes);
    }
}

const KEY: TaskKey = TaskKey {
    cell: CellId(1),
    seq: SubmitSeq(2),
    task: TaskId(3),
    pe_task: 0,
    attempt: 1,
};

#[test]
fn every_other_request_reads_back() {
    let key = KEY;
    let spec = SensorSpec {
        id: 9,
        path: "/s".into(),
        args: vec!["a".into()],
        user: "u".into(),
        environment: vec![],
    };
    let requests = [
        Request::Signal {
            key,
            order: TaskOrder::Terminate,
        },
        Request::List,
        Request::Examine,
        Request::Reprioritize {
            key,
            nice: Some(-3),
            cpu_weight: Some(250),
        },
        Request::Reprioritize {
            key,
            nice: None,
            cpu_weight: None,
        },
        Request::Forget { key },
        Request::StartSensor(spec),
        Request::StopSensor { pid: 5, signal: 15 },
    ];
    for request in requests {
        assert_eq!(Request::decode(&request.encode()), Ok(request));
    }
}

#[test]
fn every_other_notice_reads_back() {
    let key = KEY;
    let summary = TaskSummary {
        key,
        state: TaskState::Running,
        pid: 7,
        started_boot_ms: 8,
        result: None,
    };
    let refused = |text: &str, blame| Notice::Refused {
        key: Some(key),
        sensor: None,
        text: text.into(),
        blame,
    };
    let notices = [
        Notice::Accepted { key },
        Notice::Idle { key },
        refused("no", Blame::Job),
        refused("full", Blame::Host),
        refused("not listed", Blame::Queue),
        Notice::Health {
            trouble: None,
            root_commands: None,
        },
        Notice::Health {
            trouble: Some("full".into()),
            root_commands: Some(vec![]),
        },
        Notice::Health {
            trouble: None,
            root_commands: Some(vec!["/x/prolog $host".into(), "/x/epilog".into()]),
        },
        Notice::Executed {
            key,
            pid: 1,
            boot_ms: 2,
        },
        Notice::Usage {
            key,
            usage: TaskUsage::default(),
        },
        Notice::Tasks {
            tasks: vec![summary.clone()],
            reprioritizes: true,
            examines: false,
            enforces: Vec::new(),
        },
        Notice::Tasks {
            tasks: vec![summary],
            reprioritizes: false,
            examines: true,
            enforces: vec!["h_rt: by the clock".to_owned()],
        },
        Notice::Forgotten { key },
        Notice::SensorStarted { id: 9, pid: 2 },
        Notice::SensorEnded {
            id: 9,
            pid: 2,
            status: 137,
        },
    ];
    for notice in notices {
        assert_eq!(Notice::decode(&notice.encode()), Ok(notice));
    }
}

#[test]
fn refusals_name_what_is_wrong() {
    assert_eq!(Request::decode(b"nonsense"), Err(DecodeError::NotADocument));
    assert_eq!(Request::decode(b"GWL\x03"), Err(DecodeError::Version(3)));
    assert_eq!(
        Request::decode(b"GWL\x01\x04kind\xff\xff\xff\xff"),
        Err(DecodeError::Damaged)
    );
    assert_eq!(Request::decode(b"GWL\x01"), Err(DecodeError::Missing("kind")));
    assert_eq!(unframe::<Request>(&[0xff; 8]), Err(DecodeError::TooLarge));
    assert_eq!(unframe::<Request>(&[4, 0, 0, 0, b'G']), Ok(None));
}

/// The bytes are those of a launcher that knew no other fault than the job's.
#[test]
fn a_refusal_of_an_older_launcher_blames_the_job() {
    let old = b"GWL\x01\x04kind\x07\0\0\0refused\x04text\x02\0\0\0no";
    let expected = Notice::Refused {
        key: None,
        sensor: None,
        text: "no".into(),
        blame: Blame::Job,
    };
    assert_eq!(Notice::decode(old), Ok(expected.clone()));
    assert_eq!(
        expected.encode(),
        old,
        "and what blames the job reads so to an older agent"
    );
}

#[test]
fn of_orders_that_wait_the_later_counts_unless_the_earlier_ends_the_task() {
    use TaskOrder::{Kill, Migrate, Resume, Suspend, Terminate};
    for (earlier, later, counts) in [
        (None, Resume, Resume),
        (Some(Suspend), Resume, Resume),
        (Some(Terminate), Resume, Terminate),
        (Some(Terminate), Migrate, Terminate),
        (Some(Migrate), Suspend, Migrate),
        (Some(Migrate), Terminate, Terminate),
        (Some(Kill), Terminate, Kill),
    ] {
        assert_eq!(later.behind(earlier), counts, "{later:?} behind {earlier:?}");
    }
}
