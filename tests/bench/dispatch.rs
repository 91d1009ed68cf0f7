//! From planned orders to started tasks: simulated hosts, real everything else.
//!
//! The hosts run on the machine that is measured and take most of its time, so what they used is
//! told beside what the master used.

use crate::clock::{tell, time_until};
use crate::talk::Talk;
use crate::throughput::Accounting;
use crate::usage::{cpu_ms, memory_kib};
use gridwright_tests::cell::{Cell, CellPlan, CommandUser};
use proto::id::RequestId;
use proto::job::JobSpec;
use proto::wire::client::{Answer, ClientMessage, Command, JobSelection, JobTarget};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// A cell and its work.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// Simulated hosts.
    pub hosts: u32,
    /// Slots of each.
    pub slots: u32,
    /// Jobs, as many as there are slots or fewer.
    pub jobs: u32,
}

/// What is dispatched where nothing else is said: the first two as Grid Engine 8.1.9 was measured,
/// the third with as many hosts as can be simulated.
pub const WORKS: [Work; 3] = [
    Work {
        hosts: 1_000,
        slots: 10,
        jobs: 10_000,
    },
    Work {
        hosts: 5_000,
        slots: 4,
        jobs: 20_000,
    },
    Work {
        hosts: 9_999,
        slots: 4,
        jobs: 39_996,
    },
];

/// Connections over which jobs are submitted at a time: their changes share a sync.
const SUBMITTERS: u32 = 16;

/// The pause between two looks at how many tasks have started. One look takes the reader thread
/// less than a millisecond.
const LOOK: Duration = Duration::from_millis(10);

/// Separate jobs that all wait for disabled queues, which are then enabled: how long until the last
/// order is planned, and until every order is durable, every host has confirmed its starts, and
/// that is durable and known to those who ask.
pub fn measure(work: Work) {
    let Work { hosts, slots, jobs } = work;
    let cell = cell(hosts, slots);
    cell.set_scheduler("params", "PROFILE=1");
    let runtime = runtime();
    runtime.block_on(async {
        cell.admin(&["qmod", "-d", "*"]).ok();
        let empty = memory_kib(cell.pid("master")).0;
        submit(&cell, jobs).await;
        let mut talk = Talk::open(cell.dir()).await;
        let status = talk.status().await;
        assert_eq!((status.pending, status.running), (jobs.into(), 0), "everything waits");
        let grown = memory_kib(cell.pid("master")).0.saturating_sub(empty) as f64 * 1024.0 / f64::from(jobs);
        let about = format!("dispatch: {hosts} hosts x {slots}, {jobs} jobs");
        tell(&format!("{about}, a pending job kept"), grown, "bytes", "by the resident memory of the master, its answers to repeated requests included");
        for words in [&["qstat", "-u", "*"][..], &["qstat", "-j"]] {
            about_all(&cell, &mut talk, &about, words).await;
        }
        let (before, cpu) = (cell.log("master").len(), used(&cell));
        let begin = Instant::now();
        cell.admin(&["qmod", "-e", "*"]).ok();
        let enabled = begin.elapsed();
        let mut longest = Duration::ZERO;
        loop {
            let look = Instant::now();
            let started = talk.status().await.started;
            longest = longest.max(look.elapsed());
            if started >= u64::from(jobs) {
                break;
            }
            assert!(begin.elapsed() < Duration::from_secs(600), "not within ten minutes");
            tokio::time::sleep(LOOK).await;
        }
        let took = begin.elapsed();
        let more = each(cpu, used(&cell), jobs);
        let planned = planned(&cell.log("master")[before..], jobs);
        let ms = |seconds: f64| seconds * 1e3;
        let said = format!("{:.0} decisions/s, {} passes", f64::from(jobs) / planned.planning, planned.passes);
        tell(&format!("{about}, planned"), ms(planned.planning), "ms", &said);
        let said =
            format!("of which {:.0} ms handing orders over; the stream is taken in between", ms(planned.handing));
        tell(&format!("{about}, passes"), ms(planned.took), "ms", &said);
        let [enabled, longest] = [enabled, longest].map(|time| ms(time.as_secs_f64()));
        let said =
            format!("qmod -e included, which returned after {enabled:.0} ms; the longest answer meanwhile took {longest:.0} ms; {more}");
        tell(&format!("{about}, all started"), ms(took.as_secs_f64()), "ms", &said);
        about_all(&cell, &mut talk, &about, &["qdel", "-u", "*"]).await;
    });
}

/// A command about every job, and how long others wait meanwhile for a small answer, and for a
/// decision: the refusal of a change.
async fn about_all(cell: &Cell, talk: &mut Talk, about: &str, words: &[&str]) {
    let mut command = cell.command(CommandUser::Admin, &cell.programs().gridwright());
    command.args(words).stdout(Stdio::null());
    let begin = Instant::now();
    let mut running = command.spawn().expect("the command starts");
    let nobodys = JobTarget {
        job: u32::MAX.to_string(),
        tasks: Vec::new(),
    };
    let jobs = JobSelection {
        targets: vec![nobodys],
        ..JobSelection::default()
    };
    let change = ClientMessage::Change {
        id: RequestId(1 << 101),
        command: Command::Delete { jobs, force: false },
    };
    let (mut longest, mut decided) = (Duration::ZERO, Duration::ZERO);
    let ended = loop {
        let look = Instant::now();
        talk.status().await;
        longest = longest.max(look.elapsed());
        let look = Instant::now();
        let replies = talk.ask(&change).await.expect("the master answers");
        decided = decided.max(look.elapsed());
        assert!(
            replies.iter().flat_map(|reply| &reply.answers).all(Answer::is_refusal),
            "{replies:?}"
        );
        if let Some(ended) = running.try_wait().expect("the command is a child") {
            break ended;
        }
        tokio::time::sleep(LOOK).await;
    };
    assert!(ended.success(), "{words:?}: {ended}");
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let said = format!(
        "meanwhile the longest answer took {:.0} ms, the longest decision {:.0} ms",
        ms(longest),
        ms(decided)
    );
    tell(
        &format!("{about}, {}", words.join(" ")),
        ms(begin.elapsed()),
        "ms",
        &said,
    );
}

/// Tasks that end at once on a thousand hosts, from the submission to the last line of the
/// accounting file.
pub fn tasks(count: u32) {
    let cell = cell(1_000, 10);
    cell.set_global("max_aj_tasks", &count.to_string());
    let mut accounting = Accounting::of_cell(&cell);
    let before = used(&cell);
    let begin = Instant::now();
    cell.submit(&[
        "-t",
        &format!("1-{count}"),
        "-b",
        "y",
        "-o",
        "/dev/null",
        "-shell",
        "n",
        "sleep",
        "0",
    ]);
    let took = time_until("accounting of the array", begin, || accounting.lines() >= count);
    let more = each(before, used(&cell), count);
    accounting.all_succeeded();
    let what = format!("tasks: {count} of no length on 1000 simulated hosts");
    tell(&what, f64::from(count) / took.as_secs_f64(), "tasks/s", &more);
}

fn cell(hosts: u32, slots: u32) -> Cell {
    let mut plan = CellPlan::default().slots(slots);
    plan.words.extend([
        "--sim-hosts".to_owned(),
        hosts.to_string(),
        "--wait".to_owned(),
        "600".to_owned(),
    ]);
    let cell = Cell::with(plan);
    // The one host that is real and would start processes.
    let own = nix::unistd::gethostname()
        .ok()
        .and_then(|name| name.into_string().ok())
        .expect("this host has a name");
    cell.admin(&["qconf", "-dattr", "queue", "hostlist", &own, "all.q"]);
    // As 8.1.9 ships it. Ours is eight times as often, for which a thousand reports a second would
    // be in the figures of 5,000 hosts.
    cell.set_global("load_report_time", "00:00:40");
    cell
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("threads")
}

/// Submits jobs as `qsub -b y -o /dev/null -j y sleep 900` does, over a few connections that stay
/// open.
async fn submit(cell: &Cell, jobs: u32) {
    let spec = specification(cell);
    let mut talks = Vec::new();
    for _ in 0..SUBMITTERS {
        talks.push(Talk::open_as_user(cell).await);
    }
    let mut work = tokio::task::JoinSet::new();
    for (n, mut talk) in (0..).zip(talks) {
        let spec = spec.clone();
        work.spawn(async move {
            for number in (n..jobs).step_by(SUBMITTERS as usize) {
                let id = RequestId((1 << 100) + u128::from(number));
                let change = ClientMessage::Change {
                    id,
                    command: Command::Submit(Box::new(spec.clone())),
                };
                let replies = talk.ask(&change).await.expect("the master answers");
                let refused = replies
                    .iter()
                    .flat_map(|reply| &reply.answers)
                    .find_map(|answer| match answer {
                        Answer::Refused(refusal) => Some(refusal.to_string()),
                        Answer::Warning(_) | Answer::Done(_) => None,
                    });
                assert_eq!(refused, None, "the job is taken");
            }
        });
    }
    work.join_all().await;
}

fn specification(cell: &Cell) -> JobSpec {
    let text = r#"{"name": "sleep", "program": {"command": {"command": "sleep"}}, "args": ["900"], "submit_host": "a",
        "merge_stderr": true, "stdout": [{"path": "/dev/null"}],
        "owner": {"user": "overwritten", "uid": 1, "gid": 1, "group": "overwritten"}}"#;
    let mut spec: JobSpec = serde_json::from_str(text).expect("a specification");
    let home = cell.work().display().to_string();
    let carried = [
        "HOME", "LOGNAME", "PATH", "SHELL", "TZ", "MAIL", "TERM", "HOST", "WORKDIR",
    ];
    spec.environment = carried
        .map(|name| (format!("SGE_O_{name}"), home.clone()))
        .to_vec()
        .into();
    spec.submit_directory = home;
    spec
}

/// CPU of the master and of the simulated hosts.
fn used(cell: &Cell) -> [f64; 2] {
    ["master", "sim"].map(|daemon| cpu_ms(cell.pid(daemon)))
}

fn each(before: [f64; 2], after: [f64; 2], pieces: u32) -> String {
    let [master, hosts] = [0, 1].map(|n| (after[n] - before[n]) * 1e3 / f64::from(pieces));
    format!("us CPU each: master {master:.1}, simulated hosts {hosts:.1}")
}

/// What the passes that started something cost, by the lines of `PROFILE=1`.
struct PassCosts {
    passes: usize,
    planning: f64,
    handing: f64,
    took: f64,
}

fn planned(log: &str, jobs: u32) -> PassCosts {
    let mut all = PassCosts {
        passes: 0,
        planning: 0.0,
        handing: 0.0,
        took: 0.0,
    };
    let (mut starts, mut counts) = (0, false);
    let after = |line: &str, words: &str| -> Option<f64> {
        let rest = line.split_once(words)?.1;
        rest.split([' ', ',', ')']).next()?.parse().ok()
    };
    for line in log.lines() {
        if let Some((_, counted)) = line
            .split_once(" s (")
            .filter(|_| line.contains("PROF: job dispatching took"))
        {
            let started: u32 = counted
                .split(' ')
                .next()
                .and_then(|word| word.parse().ok())
                .unwrap_or(0);
            starts += started;
            counts = started > 0;
        }
        if let Some(took) = after(line, "PROF: schedd run took: ").filter(|_| counts) {
            all.passes += 1;
            all.took += took;
            all.planning += after(line, "(run: ").expect("the line says so");
            all.handing += after(line, "send orders: ").expect("the line says so");
        }
    }
    assert_eq!(starts, jobs, "the passes that the log tells of started everything");
    all
}
