//! A launcher that pretends: a task runs at once, `sleep N` for N seconds and anything else for
//! one, and always succeeds.

use crate::clock;
use crate::launcher_link::LauncherRequests;
use crate::messages::{Attachment, DriverInput, LauncherRequest};
use proto::id::TaskKey;
use proto::launch::{
    Blame, EndCause, LaunchDocument, LaunchResult, Notice, Request, Start, TaskOrder, TaskState, TaskSummary, TaskUsage,
};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

/// How long a task runs that is no `sleep`.
const SHORT: Duration = Duration::from_secs(1);

/// The pid that pretended tasks have.
const PID: i32 = 1;

/// SIGKILL, by which a task ends that was told to.
const SIGKILL: i32 = 9;

/// The pretended launcher of one host.
pub(super) struct PretendLauncher {
    requests: LauncherRequests,
    driver: mpsc::Sender<DriverInput>,
    tasks: BTreeMap<TaskKey, Task>,
}

enum Task {
    Running { since_boot_ms: u64, until: Instant },
    Ended(Box<LaunchResult>),
}

impl PretendLauncher {
    pub(super) fn new(requests: LauncherRequests, driver: mpsc::Sender<DriverInput>) -> Self {
        Self {
            requests,
            driver,
            tasks: BTreeMap::new(),
        }
    }

    /// Works until nobody makes requests or nobody listens any more.
    pub(super) async fn run(mut self) {
        if self.driver.send(DriverInput::LauncherConnected(None)).await.is_err() {
            return;
        }
        loop {
            let next = self.next_end();
            let notices = tokio::select! {
                request = self.requests.requests.recv() => match request {
                    Some(request) => self.handle(request),
                    None => return,
                },
                () = end_of(next) => next.map(|(key, _)| self.end(key, EndCause::Exited(0), false)).into_iter().collect(),
            };
            for notice in notices {
                if self.driver.send(DriverInput::Launcher(Box::new(notice))).await.is_err() {
                    return;
                }
            }
        }
    }

    fn next_end(&self) -> Option<(TaskKey, Instant)> {
        let running = self.tasks.iter().filter_map(|(key, task)| match task {
            Task::Running { until, .. } => Some((*key, *until)),
            Task::Ended(_) => None,
        });
        running.min_by_key(|(_, until)| *until)
    }

    fn handle(&mut self, LauncherRequest { request, attached }: LauncherRequest) -> Vec<Notice> {
        match request {
            Request::Launch(document) => self.launch(&document, &attached),
            Request::Signal { key, order } => match (self.tasks.get(&key), order) {
                (Some(Task::Running { .. }), TaskOrder::Terminate | TaskOrder::Kill | TaskOrder::Migrate) => {
                    vec![self.end(
                        key,
                        EndCause::Signalled {
                            signal: SIGKILL,
                            core: false,
                        },
                        true,
                    )]
                }
                (
                    Some(Task::Running { .. }),
                    TaskOrder::Suspend | TaskOrder::Resume | TaskOrder::User1 | TaskOrder::User2,
                ) => vec![],
                (Some(Task::Ended(result)), _) => vec![Notice::Ended(result.clone())],
                (None, _) => {
                    let (text, blame) = ("no such task".to_owned(), Blame::Job);
                    vec![Notice::Refused {
                        key: Some(key),
                        sensor: None,
                        text,
                        blame,
                    }]
                }
            },
            Request::List => {
                let tasks = self.tasks.iter().map(|(key, task)| summary(*key, task)).collect();
                vec![Notice::Tasks {
                    tasks,
                    reprioritizes: false,
                    examines: false,
                    enforces: Vec::new(),
                }]
            }
            Request::Forget { key } => {
                self.tasks.remove(&key);
                vec![Notice::Forgotten { key }]
            }
            Request::Reprioritize { .. } | Request::Examine | Request::StartSensor(_) | Request::StopSensor { .. } => {
                Vec::new()
            }
        }
    }

    fn launch(&mut self, document: &LaunchDocument, attached: &Attachment) -> Vec<Notice> {
        let key = document.key;
        let now = clock::boot_ms();
        let task = self.tasks.entry(key).or_insert_with(|| {
            let until = Instant::now() + duration(&document.start, attached);
            Task::Running {
                since_boot_ms: now,
                until,
            }
        });
        match task {
            Task::Running { since_boot_ms, .. } => {
                vec![
                    Notice::Accepted { key },
                    Notice::Executed {
                        key,
                        pid: PID,
                        boot_ms: *since_boot_ms,
                    },
                ]
            }
            Task::Ended(result) => vec![Notice::Ended(result.clone())],
        }
    }

    fn end(&mut self, key: TaskKey, cause: EndCause, ordered: bool) -> Notice {
        let ended_boot_ms = clock::boot_ms();
        let started_boot_ms = match self.tasks.get(&key) {
            Some(Task::Running { since_boot_ms, .. }) => *since_boot_ms,
            Some(Task::Ended(_)) | None => ended_boot_ms,
        };
        let result = Box::new(LaunchResult {
            key,
            cause,
            after: None,
            executed: true,
            ordered,
            limit: None,
            refused_limits: Vec::new(),
            procedures: Vec::new(),
            usage: TaskUsage::default(),
            wallclock_ms: ended_boot_ms.saturating_sub(started_boot_ms),
            started_boot_ms,
            ended_boot_ms,
            boot_id: clock::boot_id(),
            saved_pid: None,
            left_processes: None,
            note: None,
        });
        self.tasks.insert(key, Task::Ended(result.clone()));
        Notice::Ended(result)
    }
}

async fn end_of(next: Option<(TaskKey, Instant)>) {
    match next {
        Some((_, until)) => sleep_until(until).await,
        None => std::future::pending().await,
    }
}

fn summary(key: TaskKey, task: &Task) -> TaskSummary {
    match task {
        Task::Running { since_boot_ms, .. } => TaskSummary {
            key,
            state: TaskState::Running,
            pid: PID,
            started_boot_ms: *since_boot_ms,
            result: None,
        },
        Task::Ended(result) => TaskSummary {
            key,
            state: TaskState::Ended,
            pid: PID,
            started_boot_ms: result.started_boot_ms,
            result: Some((**result).clone()),
        },
    }
}

/// How long what is started would run if it were.
fn duration(start: &Start, attached: &Attachment) -> Duration {
    let slept = match (start, attached) {
        (
            Start::Command { argv, .. }
            | Start::Direct { argv }
            | Start::Connected { argv, .. }
            | Start::Session { argv, .. },
            _,
        ) => sleep_of(argv.iter().map(String::as_str)),
        (Start::Script { .. } | Start::Starter { .. }, Attachment::Script(script)) => {
            let text = String::from_utf8_lossy(script);
            let first = text
                .lines()
                .map(str::trim)
                .find(|line| !line.is_empty() && !line.starts_with('#'));
            sleep_of(first.unwrap_or_default().split_whitespace())
        }
        (
            Start::Script { .. } | Start::Starter { .. },
            Attachment::Nothing | Attachment::Streams(_) | Attachment::Session(..),
        ) => None,
    };
    slept.unwrap_or(SHORT)
}

/// The seconds of `sleep N`, by whatever path.
fn sleep_of<'a>(words: impl Iterator<Item = &'a str>) -> Option<Duration> {
    // `qsub -b y "sleep 5"` is one word with a blank in it.
    let words: Vec<&str> = words.flat_map(str::split_whitespace).collect();
    let [program, seconds] = words.as_slice() else {
        return None;
    };
    let is_sleep = program.rsplit('/').next() == Some("sleep");
    let seconds = seconds.parse::<f64>().ok().filter(|_| is_sleep)?;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn check(start: Start, script: Option<&str>, expected: Duration) {
        let attached = script.map_or(Attachment::Nothing, |text| {
            Attachment::Script(Arc::from(text.as_bytes()))
        });
        assert_eq!(duration(&start, &attached), expected, "{start:?} {script:?}");
    }

    #[test]
    fn sleep_takes_its_time_and_anything_else_a_second() {
        let direct = |words: &[&str]| Start::Direct {
            argv: words.iter().map(|word| (*word).to_owned()).collect(),
        };
        let seconds = Duration::from_secs_f64;
        check(direct(&["/bin/sleep", "7"]), None, seconds(7.0));
        check(direct(&["sleep", "0.25"]), None, seconds(0.25));
        check(direct(&["sleep", "-1"]), None, SHORT);
        check(direct(&["sleep 3"]), None, seconds(3.0));
        check(direct(&["true"]), None, SHORT);
        check(direct(&["sleeper", "7"]), None, SHORT);
        let script = || Start::Script {
            shell: "/bin/sh".to_owned(),
            login: false,
            mode: proto::launch::StartMode::UnixBehavior,
            args: vec![],
        };
        check(script(), Some("#!/bin/sh\n#$ -N x\n\nsleep 5\n"), seconds(5.0));
        check(script(), Some("#!/bin/sh\necho hello\n"), SHORT);
    }
}
