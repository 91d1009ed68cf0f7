//! Daemons that stand still, and daemons that die while users hold, delete and suspend.

use crate::seed::Seed;
use crate::stage::Attack;
use gridwright_tests::cell::{Cell, CellPlan, CommandUser, Process, long_or, records, wait_for, wait_until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::BTreeSet;
use std::time::Duration;

pub const ATTACKS: &[Attack] = &[
    Attack {
        name: "stopped-master",
        claim: "jobs submitted while the master stands still are accepted once, and none is lost",
        needs: &[],
        run: || stopped("master"),
    },
    Attack {
        name: "stopped-agent",
        claim: "jobs submitted while the agent stands still run once",
        needs: &[],
        run: || stopped("agent"),
    },
    Attack {
        name: "stopped-launcher",
        claim: "jobs submitted while the launcher stands still run once",
        needs: &[],
        run: || stopped("launcher"),
    },
    Attack {
        name: "stopped-shepherd",
        claim: "a shepherd that stands still holds up its own task alone, and that one ends as it should once the shepherd goes on",
        needs: &[],
        run: stopped_shepherd,
    },
    Attack {
        name: "combined-kills",
        claim: "no task is lost or run twice while daemons die and jobs are held, suspended and deleted",
        needs: &[],
        run: combined_kills,
    },
];

/// How long a daemon stands still.
fn still() -> Duration {
    Duration::from_secs(long_or(40, 3))
}

fn stopped(daemon: &str) {
    let cell = Cell::up();
    let pid = Pid::from_raw(cell.pid(daemon));
    cell.write("job.sh", "#!/bin/sh\necho $JOB_ID >>starts\n", 0o755);
    let before = cell.submit(&["-o", "/dev/null", "job.sh"]);
    kill(pid, Signal::SIGSTOP).expect("it is ours");
    let submit = |n: u32| {
        let mut command = cell.command(CommandUser::User, &cell.programs().gridwright());
        command.args(["qsub", "-terse", "-cwd", "-o", "/dev/null", "-j", "y", "job.sh"]);
        Process::start(command, &cell.top().join(format!("qsub-{n}")))
    };
    let mut commands: Vec<Process> = (0..6).map(submit).collect();
    // Some may give up, which they have to say.
    wait_for(still(), || false);
    kill(pid, Signal::SIGCONT).expect("it is ours");
    let mut accepted = BTreeSet::from([before]);
    for command in &mut commands {
        let what = format!("the end of qsub {}", command.id());
        wait_until(|| what.clone(), || command.ended().is_some());
        let status = command.ended().expect("it has ended");
        let said = command.printed();
        assert!(status.success() || said.contains("fix:"), "{status}: {said}");
        let number = said.lines().next().unwrap_or_default().to_owned();
        assert!(
            !status.success() || accepted.insert(number),
            "a number was given twice: {said}"
        );
    }
    for job in &accepted {
        assert_eq!(cell.accounted(job, 1)[0].value("failed"), "0");
    }
    let starts = cell.read("starts");
    let started: BTreeSet<String> = starts.lines().map(str::to_owned).collect();
    assert_eq!(started.len(), starts.lines().count(), "a job ran twice: {starts}");
    assert!(
        accepted.is_subset(&started),
        "{accepted:?} accepted, {started:?} started"
    );
    assert!(cell.is_alive(daemon));
}

/// Starts a job that waits for a file, and returns it with its shepherd.
fn waiting_job(cell: &Cell, name: &str) -> (String, Pid) {
    let known = cell.shepherds();
    let job = cell.submit(&["-N", name, "-o", "/dev/null", "wait.sh"]);
    wait_until(
        || cell.state_of(&job),
        || !cell.read(&format!("started.{job}")).is_empty(),
    );
    let new: Vec<i32> = cell
        .shepherds()
        .into_iter()
        .filter(|pid| !known.contains(pid))
        .collect();
    assert_eq!(new.len(), 1, "the shepherd of job {job}");
    (job, Pid::from_raw(new[0]))
}

fn stopped_shepherd() {
    let cell = Cell::up();
    cell.write(
        "wait.sh",
        "#!/bin/sh\necho >started.$JOB_ID\nwhile [ ! -e go ]; do sleep 0.1; done\nexit 3\n",
        0o755,
    );
    let ((kept, of_kept), (deleted, of_deleted)) = (waiting_job(&cell, "kept"), waiting_job(&cell, "deleted"));
    for shepherd in [of_kept, of_deleted] {
        kill(shepherd, Signal::SIGSTOP).expect("it is ours");
    }
    cell.user(&["qdel", &deleted]).ok();
    cell.write("go", "", 0o644);
    // A new launcher must not take a shepherd that does not answer for a dead one.
    cell.kill("launcher");
    cell.bring_up(&[]).ok();
    for _ in 0..6 {
        let other = cell.submit(&["-b", "y", "-o", "/dev/null", "true"]);
        assert_eq!(cell.accounted(&other, 1)[0].value("failed"), "0");
    }
    for job in [&kept, &deleted] {
        assert!(
            records(&cell.user(&["qacct", "-j", job]).out).is_empty(),
            "job {job} has a shepherd that lives"
        );
    }
    for shepherd in [of_kept, of_deleted] {
        kill(shepherd, Signal::SIGCONT).expect("it is ours");
    }
    let kept = &cell.accounted(&kept, 1)[0];
    assert_eq!((kept.value("failed"), kept.value("exit_status")), ("0", "3"));
    cell.accounted(&deleted, 1);
}

/// Tasks of each job.
const TASKS: usize = 60;

/// Jobs under fire, and what users do to them.
struct Fire {
    cell: Cell,
    kept: String,
    held: String,
    deleted: String,
    seed: Seed,
}

impl Fire {
    fn start() -> Self {
        let cell = Cell::with(CellPlan::default().slots(6));
        cell.write(
            "job.sh",
            "#!/bin/sh\necho $GRIDWRIGHT_TASK_KEY >>starts\nsleep 0.2\n",
            0o755,
        );
        let range = format!("1-{TASKS}");
        let submit = |name: &str, words: &[&str]| {
            cell.submit(
                &[
                    &["-N", name, "-r", "n", "-o", "/dev/null", "-t", &range],
                    words,
                    &["job.sh"],
                ]
                .concat(),
            )
        };
        let (kept, held, deleted) = (submit("kept", &[]), submit("held", &["-h"]), submit("deleted", &[]));
        Self {
            cell,
            kept,
            held,
            deleted,
            seed: Seed::new(11),
        }
    }

    /// One act of a user or an operator. Each may be refused: its job has ended, or its state is
    /// that one already.
    fn act(&mut self) {
        let task = (self.seed.below(TASKS as u64) + 1).to_string();
        let Self {
            cell,
            kept,
            held,
            deleted,
            ..
        } = self;
        let of_held = format!("{held}.{task}");
        let words: [&[&str]; 8] = [
            &["qhold", kept],
            &["qrls", kept],
            &["qrls", &of_held],
            &["qdel", deleted, "-t", &task],
            &["qmod", "-sj", kept],
            &["qmod", "-usj", kept],
            &["qmod", "-d", "all.q"],
            &["qmod", "-e", "all.q"],
        ];
        let chosen = words[self.seed.index(words.len())];
        cell.admin(chosen);
    }

    /// Two daemons die, one of them in the middle of something.
    fn kill(&mut self) {
        let daemons = ["master", "agent", "launcher"];
        let (first, second) = (self.seed.index(3), self.seed.index(3));
        self.cell.start_to_kill(daemons[first]);
        self.act_quickly();
        if second != first {
            self.cell.start_to_kill(daemons[second]);
        }
        self.cell.bring_up(&[]).ok();
    }

    /// An act that a dying master may not answer, so it is not waited for.
    fn act_quickly(&mut self) {
        let task = (self.seed.below(TASKS as u64) + 1).to_string();
        let mut command = self
            .cell
            .command(CommandUser::Admin, &self.cell.programs().gridwright());
        command.args(["qdel", &self.deleted, "-t", &task]);
        let mut process = Process::start(command, &self.cell.top().join("quickly"));
        wait_for(Duration::from_millis(100), || process.ended().is_some());
    }

    /// Everything is let go, and all is over.
    fn end(&self) {
        let Self { cell, kept, held, .. } = self;
        for words in [
            &["qmod", "-e", "all.q"][..],
            &["qrls", kept],
            &["qrls", held],
            &["qmod", "-usj", kept],
        ] {
            cell.admin(words);
        }
        let listed = || cell.admin(&["qstat", "-u", "*"]).ok().out;
        wait_until(
            || format!("the end of all: {}\n{}", listed(), cell.log("master")),
            || listed().is_empty(),
        );
    }
}

fn combined_kills() {
    let mut fire = Fire::start();
    for _ in 0..long_or(30, 4) {
        for _ in 0..6 {
            fire.act();
        }
        fire.kill();
    }
    fire.end();
    let Fire {
        cell,
        kept,
        held,
        deleted,
        ..
    } = &fire;
    let starts = cell.read("starts");
    let keys: BTreeSet<&str> = starts.lines().collect();
    assert_eq!(keys.len(), starts.lines().count(), "no attempt ran twice");
    let tasks: BTreeSet<&str> = keys
        .iter()
        .filter_map(|key| key.rsplit_once('.'))
        .map(|(task, _)| task)
        .collect();
    assert_eq!(tasks.len(), keys.len(), "no task was executed in two attempts");
    for job in [kept, held] {
        let ends = cell.accounted(job, TASKS);
        let ended: BTreeSet<i64> = ends.iter().map(|record| record.number("taskid")).collect();
        assert_eq!(ended.len(), TASKS, "each task of job {job} has one record");
        let failed: Vec<_> = ends.iter().filter(|record| record.value("failed") != "0").collect();
        assert!(
            failed.is_empty(),
            "{} tasks of job {job} failed: {failed:?}",
            failed.len()
        );
    }
    let ends = records(&cell.user(&["qacct", "-j", deleted]).out);
    let ended: BTreeSet<i64> = ends.iter().map(|record| record.number("taskid")).collect();
    assert_eq!(ended.len(), ends.len(), "a task of job {deleted} has two records");
    assert!(starts.lines().count() >= 2 * TASKS);
}
