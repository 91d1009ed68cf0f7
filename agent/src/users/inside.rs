//! Whether a command is a process of a task, as it says: the kernel names its process, and that
//! one's parents lead to the task.

use crate::messages::DriverInput;
use agent_core::core::MainProcess;
use procfs::process::Process;
use proto::id::TaskKey;
use proto::wire::client::ClientHello;
use proto::wire::frame::Frame;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, timeout};

/// How long the launcher may take to tell of a task that has started, and how often that is asked
/// for.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(10);

/// How many parents are asked for theirs.
const GENERATIONS: usize = 1_000;

/// The task that the hello of a command names, if process `pid` belongs to it.
pub(super) async fn task(driver: &mpsc::Sender<DriverInput>, hello: &Frame, pid: Option<i32>) -> Option<TaskKey> {
    let named = hello.message::<ClientHello>().ok()?.task?;
    let main = timeout(PATIENCE, main_process(driver, named)).await.ok()??;
    is_below(pid?, main, parent).then_some(named)
}

/// The main process of a task of this host. One that has just started is waited for: it may be
/// faster than the news of it.
async fn main_process(driver: &mpsc::Sender<DriverInput>, key: TaskKey) -> Option<i32> {
    loop {
        let (reply, answer) = oneshot::channel();
        driver.send(DriverInput::MainProcess(key, reply)).await.ok()?;
        match answer.await.ok()? {
            MainProcess::Is(pid) => return Some(pid),
            MainProcess::NotYetKnown => sleep(PAUSE).await,
            MainProcess::None => return None,
        }
    }
}

fn parent(pid: i32) -> Option<i32> {
    Process::new(pid).ok()?.stat().ok().map(|stat| stat.ppid)
}

/// Whether a process comes from the main process of a task, or from its shepherd, to which those
/// come whose parents have ended.
fn is_below(pid: i32, main: i32, parent: impl Fn(i32) -> Option<i32>) -> bool {
    let shepherd = parent(main).filter(|shepherd| *shepherd > 1);
    let mut ancestors = std::iter::successors(Some(pid), |pid| parent(*pid)).take(GENERATIONS);
    ancestors.any(|ancestor| ancestor == main || Some(ancestor) == shepherd)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_belongs_to_a_task_by_its_parents() {
        // 1 is the launcher's parent, 2 the launcher, 10 and 20 shepherds, 11 and 21 main
        // processes.
        let parents = [
            (2, 1),
            (10, 2),
            (11, 10),
            (12, 11),
            (13, 12),
            (14, 10),
            (20, 2),
            (21, 20),
            (22, 21),
            (30, 1),
        ];
        let parent = |pid: i32| {
            parents
                .iter()
                .find(|(child, _)| *child == pid)
                .map(|(_, parent)| *parent)
        };
        for (pid, expected) in [
            (11, true),
            (13, true),
            (14, true),
            (21, false),
            (22, false),
            (30, false),
            (2, false),
        ] {
            assert_eq!(is_below(pid, 11, parent), expected, "{pid}");
        }
        assert!(
            !is_below(30, 99, parent),
            "a main process that has gone has no one below it"
        );
    }
}
