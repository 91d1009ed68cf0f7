//! What the tests of this crate share.

use crate::host_paths::HostPaths;
use proto::binding::ProcessorMap;
use proto::id::{CellId, HostName, JobNumber, QueueInstanceName, SubmitSeq, TaskId, TaskKey};
use proto::job::{GrantedSlots, JobSpec, Owner, Program, Requests, Validation};
use proto::wire::agent::{QueueExecution, StartOrder};

pub(crate) fn host_paths() -> HostPaths {
    HostPaths {
        host: HostName::new("node1"),
        root: "/cell".to_owned(),
        cell_name: "default".to_owned(),
        arch: "lx-amd64".to_owned(),
        processors: 8,
        cores: ProcessorMap::default(),
        time_zone: Some("UTC".to_owned()),
        environment: vec![
            ("SITE".to_owned(), "here".to_owned()),
            ("PATH".to_owned(), "/daemon".to_owned()),
        ],
        cgroup_parent: None,
    }
}

pub(crate) fn key(seq: u64, attempt: u32) -> TaskKey {
    TaskKey {
        cell: CellId(1),
        seq: SubmitSeq(seq),
        task: TaskId(1),
        pe_task: 0,
        attempt,
    }
}

pub(crate) fn spec() -> JobSpec {
    JobSpec {
        name: "job.sh".to_owned(),
        program: Program::Script {
            path: "job.sh".to_owned(),
            content: (*b"#!/bin/sh\n").into(),
        },
        args: vec!["a b".to_owned()],
        owner: Owner {
            user: "u1".into(),
            uid: 2001,
            gid: 2001,
            group: "u1".to_owned(),
            groups: vec![],
        }
        .into(),
        submit_host: HostName::new("login"),
        submit_directory: "/home/u1".to_owned(),
        directory: None,
        directory_on: Vec::new(),
        stdout: vec![],
        stderr: vec![],
        stdin: vec![],
        merge_stderr: false,
        shell: vec![],
        use_shell: None,
        environment: vec![("SGE_O_HOME".to_owned(), "/home/u1".to_owned())].into(),
        account: None,
        project: None,
        priority: 0,
        job_share: 0,
        override_tickets: 0,
        requests: Requests::default().into(),
        array: None,
        task_concurrency: None,
        holds: Default::default(),
        predecessors: vec![],
        array_predecessors: vec![],
        start_after: None,
        deadline: None,
        rerunnable: None,
        reserve: false,
        immediate: false,
        notify: false,
        mail: Default::default(),
        mail_to: vec![],
        context: vec![],
        validation: Validation::None,
        checkpoint: None,
        occasion: None,
        reservation: None,
        directive_prefix: None,
        session: None,
    }
}

pub(crate) fn order(key: TaskKey) -> StartOrder {
    let instance = QueueInstanceName {
        queue: "all.q".into(),
        host: HostName::new("node1"),
    };
    StartOrder {
        key,
        number: JobNumber(7),
        array: None,
        granted: vec![GrantedSlots { instance, slots: 1 }],
        pe: None,
        control_slaves: false,
        pe_start: None,
        pe_stop: None,
        limits: Default::default(),
        queue: QueueExecution {
            tmpdir: "/tmp".to_owned(),
            shell: "/bin/sh".to_owned(),
            shell_start_mode: "unix_behavior".to_owned(),
            notify_s: 60,
            ..QueueExecution::default()
        }
        .into(),
        restarted: 0,
        maps: Vec::new(),
        binding: Vec::new(),
        devices: None,
        container: None,
        checkpoint: None,
        slave: None,
    }
}
