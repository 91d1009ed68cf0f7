//! Interactive jobs: what their end leads to, and what they cannot be.

use super::cell::{Cell, array, job, result, selection, texts};
use proto::job::{JobSpec, SessionSpec};
use proto::usage::{Exit, FailedCode};
use proto::wire::client::Command;

fn session() -> JobSpec {
    JobSpec {
        session: Some(Box::new(SessionSpec::default())),
        rerunnable: Some(false),
        ..job()
    }
}

#[test]
fn an_attempt_is_never_repeated_and_exit_code_100_alone_leaves_the_job_behind() {
    for (exit, failed, accounted, stays) in [
        (Exit::Code(0), FailedCode::NO, FailedCode::NO, false),
        (Exit::Code(99), FailedCode::NO, FailedCode::RESCHEDULING, false),
        (Exit::Code(100), FailedCode::NO, FailedCode::APPLICATION_ERROR, true),
        // A directory that is not there, and a prolog that failed.
        (Exit::NotStarted, FailedCode(28), FailedCode(28), false),
        (Exit::NotStarted, FailedCode(8), FailedCode(8), false),
    ] {
        let mut cell = Cell::ready();
        let number = cell.submit(session());
        let key = cell.run(number, 1, "h1");
        cell.end(key, "h1", result(exit, failed, ""));
        let records = cell.records();
        assert_eq!(records.last().map(|record| record.failed), Some(accounted), "{exit:?}");
        assert_eq!(cell.exists(number), stays, "{exit:?} {failed:?}");
        cell.assert_replay_is_live();
    }
}

#[test]
fn a_session_is_one_task_that_runs_once() {
    let mut cell = Cell::ready();
    let of_array = JobSpec {
        session: session().session,
        rerunnable: Some(false),
        ..array("1-2")
    };
    let rerunnable = JobSpec {
        rerunnable: Some(true),
        ..session()
    };
    for spec in [of_array, rerunnable] {
        let refusal = cell.try_submit(spec).unwrap_err();
        assert!(
            refusal.contains("an interactive job has no tasks, no checkpoints and no second run"),
            "{refusal}"
        );
    }
    let number = cell.submit(session()).to_string();
    let jobs = selection(&[&number]);
    let reply = cell.command(
        "u1",
        Command::Resubmit {
            jobs,
            changes: Box::default(),
        },
    );
    assert!(texts(&reply)[0].contains("is interactive"), "{reply:?}");
}
