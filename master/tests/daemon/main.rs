//! The daemon as a process: commands over its Unix socket, an agent over QUIC, ends of every kind.

#![expect(clippy::unwrap_used, reason = "a test fails where something is not there")]

mod cell;

use cell::{Agent, Cell};
use proto::diagnostic::Code;
use proto::id::JobNumber;
use proto::job::{JobSpec, Program, ScriptDigest, StoredScript};
use proto::wire::agent::{AgentMessage, MasterMessage, TaskReport, TaskReportState};
use proto::wire::client::{AccountingFilter, Answer, Command, JobFilter, Query, Reply};
use proto::wire::view::Data;

/// Runs every task that is ordered, at once and with success, until `count` of them were forgotten.
async fn run_tasks(agent: &mut Agent, count: usize) {
    let mut forgotten = 0;
    while forgotten < count {
        match agent.message().await {
            MasterMessage::Start(order) => {
                for state in [
                    TaskReportState::Accepted,
                    TaskReportState::Running { for_ms: 0 },
                    TaskReportState::Ended(Box::new(cell::success())),
                ] {
                    agent
                        .say(AgentMessage::Task(TaskReport { key: order.key, state }))
                        .await;
                }
            }
            MasterMessage::Forget { .. } => forgotten += 1,
            MasterMessage::Describe { .. }
            | MasterMessage::Discard { .. }
            | MasterMessage::Configure(_)
            | MasterMessage::Tickets(_)
            | MasterMessage::ReportNow => {}
            other @ (MasterMessage::Signal { .. } | MasterMessage::Shutdown { .. } | MasterMessage::Refused(_)) => {
                panic!("not expected: {other:?}")
            }
        }
    }
}

#[test]
fn a_master_answers_says_that_it_is_ready_and_ends_at_sigterm() {
    let cell = Cell::new();
    let status = cell.status();
    assert_eq!((status.hosts, status.hosts_connected, status.pending), (1, 0, 0));
    assert!(cell.path("run/master/ready").exists());
    assert!(cell.second_master().contains("is running already"));
    cell.terminate();
    assert!(!cell.path("run/master/ready").exists());
    assert!(
        cell.check().contains("the whole log gives the same state"),
        "{}",
        cell.check()
    );
}

#[test]
fn a_long_state_directory_has_a_socket_too() {
    let cell = Cell::in_directory(&"long-".repeat(30));
    assert_eq!(cell.status().hosts, 1);
}

#[test]
fn an_array_goes_from_submission_to_accounting() {
    let cell = Cell::new();
    let number = cell::runtime().block_on(async {
        let mut agent = Agent::connect(&cell).await;
        agent.report_load().await;
        let number = agent.submit(cell::job("array", Some("1-20"))).await;
        run_tasks(&mut agent, 20).await;
        number
    });
    let ended = cell.query(Query::Wait { job: number });
    assert!(
        matches!(ended.data, Some(Data::Ended(ref tasks)) if tasks.len() == 20),
        "{ended:?}"
    );
    let jobs = cell.query(Query::Jobs(JobFilter::default()));
    assert_eq!(jobs.data, Some(Data::Jobs(Vec::new())));
    let filter = AccountingFilter {
        jobs: vec![number.to_string()],
        ..AccountingFilter::default()
    };
    let Some(Data::Accounting(records)) = cell.query(Query::Accounting(filter)).data else {
        panic!("no records")
    };
    assert_eq!(records.len(), 20);
    assert_eq!(cell.accounting_lines(), 20);
}

#[test]
fn a_kill_between_loses_no_job_and_doubles_no_accounting_line() {
    let mut cell = Cell::new();
    let runtime = cell::runtime();
    let first = runtime.block_on(async {
        let mut agent = Agent::connect(&cell).await;
        agent.report_load().await;
        let number = agent.submit(cell::job("first", None)).await;
        run_tasks(&mut agent, 1).await;
        number
    });
    cell.kill_and_restart();
    let second = runtime.block_on(async {
        let mut agent = Agent::connect(&cell).await;
        let second = agent.submit(cell::job("second", None)).await;
        agent.report_load().await;
        run_tasks(&mut agent, 1).await;
        second
    });
    assert!(second > first);
    cell.kill_and_restart();
    assert_eq!(cell.accounting_lines(), 2);
    assert_eq!(cell.status().pending, 0);
}

#[test]
fn a_repeated_request_gets_the_first_answer_also_from_the_next_master() {
    let mut cell = Cell::new();
    let runtime = cell::runtime();
    let submit = || Command::Submit(Box::new(cell::job("once", None)));
    let first = runtime.block_on(async { Agent::connect(&cell).await.change(7, submit()).await });
    let again = runtime.block_on(async { Agent::connect(&cell).await.change(7, submit()).await });
    cell.kill_and_restart();
    let later = runtime.block_on(async { Agent::connect(&cell).await.change(7, submit()).await });
    assert_eq!((&first, &first), (&again, &later));
    let status = cell.status();
    assert_eq!(status.pending + status.running, 1);
}

#[test]
fn a_bad_request_is_refused_and_the_next_one_served() {
    let cell = Cell::new();
    let refusal = cell.send_garbage_then_status();
    assert_eq!(refusal.code, Code::BadMessage);
}

#[test]
fn one_user_has_a_share_of_the_connections() {
    let cell = Cell::with_settings("clients_per_user = 3");
    let mut held: Vec<_> = (0..3).map(|_| cell.connect()).collect();
    for stream in &mut held {
        cell::begin(stream, Query::Status);
        assert!(cell::reply(stream).is_ok());
    }
    let refusal = cell::reply(&mut cell.connect()).unwrap_err();
    assert_eq!(refusal.code, Code::Overloaded);
    assert!(refusal.fix.contains("clients_per_user"), "{refusal}");
    held.pop();
    cell::wait_until("the place that is free again", || {
        let mut stream = cell.connect();
        cell::begin(&mut stream, Query::Status);
        cell::reply(&mut stream).is_ok()
    });
}

#[test]
fn a_long_list_comes_in_parts_and_who_does_not_read_on_keeps_nobody_waiting() {
    const JOBS: usize = 1_200;
    let cell = Cell::new();
    let list = |stream: &mut _| cell::begin(stream, Query::Jobs(JobFilter::default()));
    let numbers = |reply: &Reply| match &reply.data {
        Some(Data::Jobs(rows)) => rows.iter().map(|row| row.number).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    let submitted: Vec<JobNumber> = cell::runtime().block_on(async {
        let mut agent = Agent::connect(&cell).await;
        let mut numbers = Vec::new();
        for _ in 0..JOBS {
            numbers.push(agent.submit(cell::job("one", None)).await);
        }
        numbers
    });
    let mut slow = cell.connect();
    list(&mut slow);
    let first = cell::reply(&mut slow).unwrap();
    assert!(first.more, "a thousand rows are a part");
    let mut quick = cell.connect();
    list(&mut quick);
    let mut told = Vec::new();
    loop {
        let part = cell::reply(&mut quick).unwrap();
        told.extend(numbers(&part));
        if !part.more {
            break;
        }
    }
    assert_eq!(told, submitted);
    assert_eq!(cell.status().hosts, 1, "others are answered");
    let mut rest = numbers(&first);
    while rest.len() < JOBS {
        rest.extend(numbers(&cell::reply(&mut slow).unwrap()));
    }
    assert_eq!(rest, submitted);
}

#[test]
fn a_silent_command_is_disconnected_and_one_that_waits_for_a_job_is_not() {
    let cell = Cell::with_settings("client_first_s = 1\nclient_idle_s = 1");
    cell::runtime().block_on(async {
        let mut agent = Agent::connect(&cell).await;
        let job = agent.submit(cell::job("waited", None)).await;
        let mut waiting = cell.connect();
        cell::begin(&mut waiting, Query::Wait { job });
        for mut silent in [cell.connect_silently(), cell.connect()] {
            let refusal = cell::reply(&mut silent).unwrap_err();
            assert!(refusal.what.contains("idle for 1 s"), "{refusal}");
        }
        agent.report_load().await;
        run_tasks(&mut agent, 1).await;
        let ended = cell::reply(&mut waiting).unwrap();
        assert!(
            matches!(ended.data, Some(Data::Ended(ref tasks)) if tasks.len() == 1),
            "{ended:?}"
        );
    });
}

#[test]
fn a_wait_ends_with_the_command_that_waits() {
    let cell = Cell::with_settings("waits_per_user = 1");
    let job = cell::runtime().block_on(async { Agent::connect(&cell).await.submit(cell::job("held", None)).await });
    let wait_for = |job| {
        let mut stream = cell.connect();
        cell::begin(&mut stream, Query::Wait { job });
        stream
    };
    let code = |reply: Reply| match &reply.answers[..] {
        [Answer::Refused(refusal)] => refusal.code,
        other => panic!("no refusal: {other:?}"),
    };
    let mut waiting = wait_for(job);
    let unknown = JobNumber(999);
    // Whether there is a place is told by the refusal of a job that does not exist.
    let is_full = || code(cell::reply(&mut wait_for(unknown)).unwrap()) == Code::Overloaded;
    // A question may come first and take the place for a moment: the wait is refused then, and asks
    // again.
    cell::wait_until("the place is taken", || {
        let full = is_full();
        if !full {
            waiting = wait_for(job);
        }
        full
    });
    drop(waiting);
    cell::wait_until("the place is free", || !is_full());
}

#[test]
fn connections_that_are_refused_again_and_again_leave_few_lines_in_the_log() {
    const REFUSED: usize = 5_000;
    let cell = Cell::with_settings("clients_per_user = 1");
    let _first = cell.connect_silently();
    for _ in 0..REFUSED {
        let mut client = cell.connect();
        assert_eq!(cell::reply(&mut client).unwrap_err().code, Code::Overloaded);
    }
    let log = std::fs::read_to_string(cell.path("log/master.log")).unwrap();
    let lines = log
        .lines()
        .filter(|line| line.contains("are connected already"))
        .count();
    assert!(lines > 0 && lines < REFUSED / 2, "{lines} lines");
}

/// The environments of all jobs as a reply shows them, and whether it says that values are left
/// out.
fn environments(reply: Reply) -> Vec<(Vec<(String, String)>, bool)> {
    let Some(Data::JobDetails(found)) = reply.data else {
        panic!("no details: {reply:?}")
    };
    found
        .into_iter()
        .map(|detail| (detail.spec.environment.to_vec(), detail.hides_environment))
        .collect()
}

#[test]
fn the_environment_of_a_job_is_shown_to_its_owner_and_to_operators_and_others_see_names() {
    let cell = Cell::new();
    cell::runtime().block_on(async {
        let mut agent = Agent::connect(&cell).await;
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let (secret, home) = (pair("SECRET", "hunter2"), pair("SGE_O_HOME", "/home/alice"));
        let environment = vec![secret.clone(), home.clone()];
        agent
            .submit(JobSpec {
                environment: environment.clone().into(),
                ..cell::job("mine", None)
            })
            .await;
        let details = || Query::JobDetails { targets: Vec::new() };
        assert_eq!(
            environments(agent.ask("alice", details()).await),
            [(environment.clone(), false)]
        );
        assert_eq!(
            environments(agent.ask("bob", details()).await),
            [(vec![home, pair("SECRET", "")], true)]
        );
        // Who runs the test on the master's host brought the cell up and administers it.
        let asked = cell.query(details());
        assert_eq!(environments(asked), [(environment, false)]);
    });
}

/// A job whose script is long, of one character that tells it from others.
fn long_job(name: char) -> JobSpec {
    let text = format!("#!/bin/sh\n#{}\n", name.to_string().repeat(2 << 20));
    let program = Program::Script {
        path: "long.sh".to_owned(),
        content: text.into_bytes().into(),
    };
    JobSpec {
        program,
        ..cell::job("long", None)
    }
}

fn script(spec: &JobSpec) -> &[u8] {
    if let Program::Script { content, .. } = &spec.program {
        content
    } else {
        panic!("{:?}", spec.program)
    }
}

#[test]
fn a_long_script_lies_in_the_database_once_reaches_its_host_and_goes_with_its_last_job() {
    let mut cell = Cell::new();
    let scripts = |cell: &Cell| {
        let db = rusqlite::Connection::open(cell.path("master/state.db")).unwrap();
        db.query_row("SELECT count(*) FROM scripts", [], |row| row.get::<_, u32>(0))
            .unwrap()
    };
    let runtime = cell::runtime();
    let numbers = runtime.block_on(async {
        let mut agent = Agent::connect(&cell).await;
        let mut numbers = Vec::new();
        for name in ['a', 'a', 'b'] {
            numbers.push(agent.submit(long_job(name)).await);
        }
        numbers
    });
    assert_eq!(scripts(&cell), 2);
    cell.kill_and_restart();
    runtime.block_on(async {
        let mut agent = Agent::connect(&cell).await;
        agent.report_load().await;
        let mut described = Vec::new();
        let mut forgotten = 0;
        while forgotten < numbers.len() {
            match agent.message().await {
                MasterMessage::Describe { spec, .. } => described.push(spec),
                MasterMessage::Start(order) => {
                    for state in [
                        TaskReportState::Accepted,
                        TaskReportState::Ended(Box::new(cell::success())),
                    ] {
                        agent
                            .say(AgentMessage::Task(TaskReport { key: order.key, state }))
                            .await;
                    }
                }
                MasterMessage::Forget { .. } => forgotten += 1,
                _ => {}
            }
        }
        let sent: Vec<&[u8]> = described.iter().map(|spec| script(spec)).collect();
        let expected = ['a', 'a', 'b'].map(long_job);
        assert!(
            sent == expected.iter().map(script).collect::<Vec<_>>(),
            "each host gets the script as it was submitted"
        );
    });
    cell::wait_until("the scripts are gone", || scripts(&cell) == 0);
    cell.terminate();
    assert!(
        cell.check().contains("the whole log gives the same state"),
        "{}",
        cell.check()
    );
}

#[test]
fn who_knows_the_checksum_of_a_script_does_not_get_it() {
    let cell = Cell::new();
    cell::runtime().block_on(async {
        let mut agent = Agent::connect(&cell).await;
        let script = Box::new(StoredScript {
            digest: ScriptDigest([1; 32]),
            bytes: 10_000,
        });
        let program = Program::Stored {
            path: "x".to_owned(),
            script,
        };
        let reply = agent
            .change(
                77,
                Command::Submit(Box::new(JobSpec {
                    program,
                    ..cell::job("x", None)
                })),
            )
            .await;
        assert!(
            matches!(&reply.answers[..], [Answer::Refused(refusal)] if refusal.code == Code::BadMessage),
            "{reply:?}"
        );
    });
}
