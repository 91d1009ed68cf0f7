//! The cell of the captures: eleven jobs of three users, three queues and one host, as the master
//! would tell them.

use proto::amount::{Amount, Type};
use proto::id::{AttributeName, HostName, JobNumber, QueueInstanceName, QueueName, SubmitSeq, TaskId, UserName};
use proto::job::{Condition, GrantedSlots, Holds, PeRequest, Phase, Requests};
use proto::request::{ResourceRequest, SlotRange, TaskRange};
use proto::time::Wall;
use proto::usage::Usage;
use proto::wire::view::{
    Dominance, HostView, JobRow, PendingTasks, PriorityNumbers, QueueView, ResourceValue, ResourceView, TaskRow,
};

/// Seconds after 01:09:00 on 21 November 2026, UTC.
pub fn at(seconds: i64) -> Wall {
    Wall::from_seconds(1_795_223_340 + seconds)
}

/// A job of one pending task, with the priority numbers that all captures share.
pub fn job(number: u32, name: &str, owner: &str, submitted: Wall, prior: i64) -> JobRow {
    let half = if prior == 0 { 0 } else { 500_000 };
    JobRow {
        seq: SubmitSeq(number.into()),
        number: JobNumber(number),
        name: name.to_owned(),
        owner: UserName::from(owner),
        group: owner.to_owned(),
        project: None,
        department: "defaultdepartment".to_owned(),
        account: "sge".to_owned(),
        posix_priority: 0,
        job_share: 0,
        override_tickets: 0,
        submitted,
        deadline: None,
        start_after: None,
        array: None,
        task_concurrency: None,
        requests: Requests::default(),
        checkpoint: None,
        contributions: Vec::new(),
        slots: 1,
        predecessors: Vec::new(),
        waits_for: Vec::new(),
        array_waits_for: Vec::new(),
        array_predecessors: Vec::new(),
        priority: PriorityNumbers {
            prior,
            npprior: half,
            ntckts: half,
            ..PriorityNumbers::default()
        },
        pending: vec![pending("1", submitted)],
        tasks: Vec::new(),
    }
}

/// A group of pending tasks in no special condition.
pub fn pending(range: &str, since: Wall) -> PendingTasks {
    PendingTasks {
        tasks: range.split(',').map(|part| TaskRange::parse(part).unwrap()).collect(),
        condition: Condition::default(),
        holds: Holds::default(),
        error: None,
        since,
        concurrency_blocked: false,
    }
}

/// A running task.
pub fn task(job: &JobRow, number: u32, queue: &str, slots: u32, started: Wall) -> TaskRow {
    TaskRow {
        task: TaskId(number),
        condition: Condition {
            phase: Phase::Running,
            ..Condition::default()
        },
        granted: vec![GrantedSlots {
            instance: instance(queue),
            slots,
        }],
        maps: Vec::new(),
        binding: Vec::new(),
        pe: job.requests.pe.as_ref().map(|pe| pe.name.clone()),
        started,
        usage: Usage {
            io_bytes: 40_802,
            vmem_bytes: 3_526_656,
            maxvmem_bytes: 3_526_656,
            ..Usage::default()
        },
        priority: job.priority,
        exit_status: None,
        failed: None,
    }
}

/// A queue on the host of the captures.
pub fn instance(queue: &str) -> QueueInstanceName {
    QueueInstanceName {
        queue: QueueName::from(queue),
        host: HostName::new("vm"),
    }
}

fn running(mut job: JobRow, queue: &str, slots: u32, started: Wall) -> JobRow {
    job.pending.clear();
    job.tasks = vec![task(&job, 1, queue, slots, started)];
    job
}

fn request(name: &str, value: &str) -> ResourceRequest {
    ResourceRequest {
        name: name.to_owned(),
        value: Some(value.to_owned()),
    }
}

/// The jobs, not in any order.
pub fn jobs() -> Vec<JobRow> {
    let mut suspended = running(job(1, "run1", "u1", at(22), 250_278), "all.q", 1, at(55));
    suspended.tasks[0].condition.suspended = true;
    suspended.tasks[0].priority = PriorityNumbers {
        nurg: 556,
        urg: 1_011_200_000,
        rrcontr: 1_000_000_000,
        wtcontr: 11_200_000,
        ..suspended.priority
    };

    let mut parallel = job(4, "par", "u1", at(22), 750_000);
    parallel.requests.pe = Some(PeRequest {
        name: "mpi".to_owned(),
        slots: SlotRange::exactly(2).unwrap(),
    });
    parallel.slots = 2;

    let mut long = job(5, "longjobname_exceeding_ten", "u1", at(22), 260_742);
    long.requests.hard = vec![request("mem_free", "1G")];
    long.posix_priority = -10;

    let mut soft = job(7, "soft", "u2", at(24), 260_606);
    soft.requests.hard = vec![request("mem_free", "999T")];
    soft.requests.soft = vec![request("lsa", "5")];

    let mut failed = job(9, "err", "u2", at(24), 250_000);
    failed.pending[0].condition.error = true;
    failed.pending[0].error = Some("no such file".to_owned());

    let mut elsewhere = job(13, "insus", "u3", at(102), 250_000);
    elsewhere.requests.hard_queues = vec!["sus.q".to_owned()];

    let mut later = job(8, "later", "u2", at(24), 0);
    later.start_after = Some(at(100_000));
    vec![
        later,
        elsewhere,
        dependent(),
        held(),
        failed,
        soft,
        running(long, "all.q", 1, at(55)),
        running(parallel, "all.q", 2, at(24)),
        limited_array(),
        array(),
        suspended,
    ]
}

fn held() -> JobRow {
    let mut held = job(3, "held", "u1", at(22), 0);
    held.pending[0].condition.held = true;
    held.pending[0].holds.user = true;
    held
}

fn dependent() -> JobRow {
    let mut dependent = job(6, "dep", "u2", at(23), 0);
    dependent.pending[0].condition.held = true;
    dependent.predecessors = vec!["1".to_owned()];
    dependent.waits_for = vec![JobNumber(1)];
    dependent
}

/// `-t 1-6:2 -tc 1`: one task runs, so that the others are not looked at.
fn limited_array() -> JobRow {
    let mut array = job(2, "arr", "u1", at(22), 260_878);
    array.array = TaskRange::parse("1-6:2").ok();
    array.task_concurrency = Some(1);
    array.tasks = vec![task(&array, 1, "all.q", 1, at(55))];
    array.pending = vec![PendingTasks {
        concurrency_blocked: true,
        ..pending("3,5", at(22))
    }];
    array
}

fn array() -> JobRow {
    let mut array = job(12, "arrp", "u2", at(24), 260_606);
    array.array = TaskRange::parse("1-10").ok();
    array.tasks = [(1, 55), (2, 58), (3, 58)]
        .map(|(number, start)| task(&array, number, "all.q", 1, at(start)))
        .into();
    let mut waiting = task(&array, 4, "sus.q", 1, at(102));
    waiting.condition = Condition {
        phase: Phase::Transferring,
        queue_suspended: true,
        ..Condition::default()
    };
    array.tasks.push(waiting);
    array.pending = vec![pending("5-10", at(24))];
    array
}

/// The queues in display order.
pub fn queues() -> Vec<QueueView> {
    [
        ("all.q", "BIP", 8, 8, ""),
        ("sus.q", "BIP", 1, 1, "s"),
        ("dis.q", "IP", 0, 3, "d"),
    ]
    .map(queue)
    .into()
}

fn queue((name, kinds, used, total, states): (&str, &str, u32, u32, &str)) -> QueueView {
    QueueView {
        queue: QueueName::from(name),
        host: HostName::new("vm"),
        kinds: kinds.to_owned(),
        used,
        reserved: 0,
        total,
        load_avg: Some("5.513184".to_owned()),
        np_load_avg: Some(2_756_592),
        arch: Some("lx-amd64".to_owned()),
        states: states.to_owned(),
        explain: Vec::new(),
        resources: Vec::new(),
        seq_no: 0,
        pes: Vec::new(),
    }
}

/// A number as a resource.
pub fn resource(name: &str, r#type: Type, dominance: (char, char), units: i64) -> ResourceView {
    ResourceView {
        name: AttributeName::from(name),
        r#type,
        dominance: Dominance {
            level: dominance.0,
            source: dominance.1,
        },
        value: ResourceValue::Amount(Amount::from_base(units)),
        free_ids: None,
    }
}

/// `global` and the one host.
pub fn hosts() -> Vec<HostView> {
    let reported = [
        ("arch", "lx-amd64"),
        ("num_proc", "2"),
        ("m_socket", "1"),
        ("m_core", "2"),
        ("m_thread", "2"),
        ("load_avg", "5.513184"),
        ("mem_total", "24105.984375M"),
        ("mem_used", "1432.000000M"),
        ("swap_total", "0.000000M"),
        ("swap_used", "0.000000M"),
    ];
    let host = |name: &str| HostView {
        host: HostName::new(name),
        load: Default::default(),
        report_age_ms: None,
        agent_up_ms: None,
        connected: false,
        resources: Vec::new(),
        certified_until: None,
    };
    let load = reported
        .map(|(name, text)| (AttributeName::from(name), text.to_owned()))
        .into();
    vec![
        host("global"),
        HostView {
            load,
            connected: true,
            report_age_ms: Some(1_000),
            ..host("vm")
        },
    ]
}
