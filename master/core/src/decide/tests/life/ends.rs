use super::*;

/// The end of a task, the error with which its job waits again, the code of its record, and whether
/// its queue is in error.
type End = (TaskResult, Option<Option<&'static str>>, FailedCode, bool);

fn exit(code: u8) -> TaskResult {
    result(Exit::Code(code), FailedCode::NO, "")
}

fn killed(failed: FailedCode, reason: &str) -> TaskResult {
    result(Exit::Signal { number: 9, core: false }, failed, reason)
}

fn not_started(failed: FailedCode, reason: &str) -> TaskResult {
    result(Exit::NotStarted, failed, reason)
}

fn epilog_failed() -> TaskResult {
    TaskResult {
        failed: FailedCode::IN_EPILOG,
        ..exit(0)
    }
}

fn check_ends<const N: usize>(ends: [End; N]) {
    for (end, waits, failed, queue_in_error) in ends {
        let mut cell = Cell::ready();
        let number = cell.submit(job());
        let key = if end.exit == Exit::NotStarted {
            cell.order(number, 1, "h1").unwrap()
        } else {
            cell.run(number, 1, "h1")
        };
        cell.end(key, "h1", end.clone());
        assert_eq!(cell.exists(number), waits.is_some(), "{end:?}");
        if let Some(error) = waits {
            assert_eq!(
                cell.task(number, 1).place,
                TaskPlace::Pending {
                    error: error.map(str::to_owned)
                },
                "{end:?}"
            );
        }
        assert_eq!(cell.records()[0].failed, failed, "{end:?}");
        let errors: Vec<_> = cell
            .core
            .state()
            .instances
            .values()
            .flat_map(|state| state.errors.clone())
            .collect();
        assert_eq!(!errors.is_empty(), queue_in_error, "{end:?}");
        assert!(
            errors
                .iter()
                .all(|text| text == "queue all.q marked QERROR as result of job 1's failure at host h1")
        );
        cell.assert_replay_is_live();
    }
}

#[test]
fn a_job_that_ran_leaves_or_waits_by_its_end() {
    check_ends([
        (exit(0), None, FailedCode::NO, false),
        (exit(99), Some(None), FailedCode::RESCHEDULING, false),
        (
            exit(100),
            Some(Some("exit_status of job start = 100")),
            FailedCode::APPLICATION_ERROR,
            false,
        ),
        (killed(FailedCode::AFTER_JOB, ""), None, FailedCode::AFTER_JOB, false),
        (
            killed(FailedCode::LIMIT_ENFORCED, ""),
            None,
            FailedCode::LIMIT_ENFORCED,
            false,
        ),
        (killed(FailedCode(18), "host restarted"), None, FailedCode(18), false),
        (epilog_failed(), None, FailedCode::IN_EPILOG, true),
    ]);
}

#[test]
fn a_job_that_could_not_start_waits() {
    check_ends([
        (
            not_started(FailedCode::OPENING_FILES, "no file"),
            Some(Some("no file")),
            FailedCode::OPENING_FILES,
            false,
        ),
        (
            not_started(FailedCode::SEARCHING_SHELL, "sh"),
            Some(Some("sh")),
            FailedCode::SEARCHING_SHELL,
            false,
        ),
        (
            not_started(FailedCode::CHANGING_DIRECTORY, "wd"),
            Some(Some("wd")),
            FailedCode::CHANGING_DIRECTORY,
            false,
        ),
        (
            not_started(FailedCode(17), "no user"),
            Some(Some("no user")),
            FailedCode(17),
            false,
        ),
        (
            not_started(FailedCode::BEFORE_JOB, "denied"),
            Some(Some("denied")),
            FailedCode::BEFORE_JOB,
            false,
        ),
        (
            not_started(FailedCode::IN_PROLOG, ""),
            Some(None),
            FailedCode::IN_PROLOG,
            true,
        ),
    ]);
}

#[test]
fn forbidden_exit_states_are_plain_exits() {
    let mut cell = Cell::ready();
    cell.set_cluster(&[("qmaster_params", "FORBID_RESCHEDULE=true,FORBID_APPERROR=true")]);
    for code in [99, 100] {
        let number = cell.submit(job());
        let key = cell.run(number, 1, "h1");
        cell.exit(key, "h1", code);
        assert!(!cell.exists(number));
    }
}
