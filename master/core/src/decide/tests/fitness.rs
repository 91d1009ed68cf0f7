use super::cell::{owner, result, selection};
use super::*;
use crate::decide::hosts::fitness::{FIRST_PAUSE_MS, LONGEST_PAUSE_MS};
use crate::effect::{Alarm, Effect, Input};
use crate::event::Event;
use crate::state::job::TaskPlace;
use crate::stream;
use proto::id::TaskKey;
use proto::job::JobSpec;
use proto::usage::{Exit, FailedCode, TaskResult};
use proto::wire::agent::{AgentMessage, MasterMessage, TaskReport, TaskReportState};
use proto::wire::client::{Command, ModifyAction};
use proto::wire::stream::Change;

const FULL: &str = "no space left on the disk of tasks/";

fn unfit(cell: &Cell, host: &str) -> Option<String> {
    cell.core
        .observations()
        .hosts
        .get(host)?
        .unfit
        .as_deref()
        .map(str::to_owned)
}

fn errors(cell: &Cell) -> Vec<String> {
    cell.core
        .state()
        .instances
        .values()
        .flat_map(|state| state.errors.clone())
        .collect()
}

/// The host says what keeps it from starting tasks.
fn says(cell: &mut Cell, host: &str, unfit: Option<&str>) {
    let connection = cell.connection(host);
    let message = Box::new(AgentMessage::Health {
        unfit: unfit.map(str::to_owned),
        root_commands: None,
    });
    cell.input(Input::AgentMessage { connection, message });
}

/// A task of a new job of a user is given to `h1`.
fn placed(cell: &mut Cell, user: &str) -> (u32, TaskKey) {
    let number = cell.submit(JobSpec {
        owner: owner(user).into(),
        ..job()
    });
    let key = cell.order(number, 1, "h1").unwrap();
    (number, key)
}

/// The same, and the host refuses it by its own fault.
fn refused(cell: &mut Cell, user: &str) -> u32 {
    let (number, key) = placed(cell, user);
    cell.end(key, "h1", TaskResult::host_unfit(FULL));
    number
}

/// The same by the fault of the job.
fn failed(cell: &mut Cell, user: &str) {
    let (_, key) = placed(cell, user);
    cell.end(
        key,
        "h1",
        result(Exit::NotStarted, FailedCode::CHANGING_DIRECTORY, "no such directory"),
    );
}

/// The host says which commands root runs there.
fn lists(cell: &mut Cell, host: &str, lines: Option<&[&str]>) {
    let root_commands = lines.map(|lines| lines.iter().map(|line| (*line).to_owned()).collect());
    let connection = cell.connection(host);
    cell.input(Input::AgentMessage {
        connection,
        message: Box::new(AgentMessage::Health {
            unfit: None,
            root_commands,
        }),
    });
}

#[test]
fn a_queue_instance_that_lacks_a_command_of_root_is_mended_once_its_host_lists_it() {
    let mut cell = Cell::ready();
    let why = "root@/x/prolog: not listed in etc/root-commands of this host";
    let (_, key) = placed(&mut cell, "u1");
    cell.end(key, "h1", result(Exit::NotStarted, FailedCode::BEFORE_PROLOG, why));
    assert_eq!(errors(&cell).len(), 1);
    for (host, lines) in [
        ("h1", Some(&["/x/other", "/x/prolog2"][..])),
        ("h1", None),
        ("h2", Some(&["/x/prolog $host"][..])),
    ] {
        lists(&mut cell, host, lines);
        assert_eq!(errors(&cell).len(), 1, "{host} {lines:?}");
    }
    lists(&mut cell, "h1", Some(&["/x/other", "/x/prolog $host"]));
    assert!(errors(&cell).is_empty());
    placed(&mut cell, "u1");
}

#[test]
fn a_queue_instance_whose_host_lists_other_arguments_waits_for_another_list() {
    let mut cell = Cell::ready();
    lists(&mut cell, "h1", Some(&["/x/prolog -q"]));
    let why =
        "root@/x/prolog -v: etc/root-commands of this host lists it with other arguments; write the whole command";
    let (_, key) = placed(&mut cell, "u1");
    cell.end(key, "h1", result(Exit::NotStarted, FailedCode::BEFORE_PROLOG, why));
    for lines in [None, Some(&["/x/prolog -q"][..])] {
        lists(&mut cell, "h1", lines);
        assert_eq!(errors(&cell).len(), 1, "the list is as it was: {lines:?}");
    }
    lists(&mut cell, "h1", Some(&["/x/prolog -v"]));
    assert!(errors(&cell).is_empty());
}

/// A new master keeps the error and knows no list.
#[test]
fn the_first_list_that_a_host_tells_does_not_mend_arguments_and_neither_does_one_without_the_program() {
    let mut cell = Cell::ready();
    let why =
        "root@/x/prolog -v: etc/root-commands of this host lists it with other arguments; write the whole command";
    let (_, key) = placed(&mut cell, "u1");
    cell.end(key, "h1", result(Exit::NotStarted, FailedCode::BEFORE_PROLOG, why));
    for lines in [&["/x/prolog -q"][..], &[], &["/x/other"]] {
        lists(&mut cell, "h1", Some(lines));
        assert_eq!(errors(&cell).len(), 1, "{lines:?}");
    }
    lists(&mut cell, "h1", Some(&["/x/prolog -v"]));
    assert!(errors(&cell).is_empty());
}

#[test]
fn a_queue_instance_in_error_for_another_reason_is_not_mended_by_a_list() {
    let mut cell = Cell::ready();
    let (_, key) = placed(&mut cell, "u1");
    cell.end(
        key,
        "h1",
        result(Exit::NotStarted, FailedCode(8), "exit_status of prolog = 1"),
    );
    lists(&mut cell, "h1", Some(&["/x/prolog"]));
    assert_eq!(errors(&cell).len(), 1);
}

#[test]
fn a_start_that_the_host_could_not_make_costs_the_job_nothing_but_an_attempt() {
    let mut cell = Cell::ready();
    let (number, key) = placed(&mut cell, "u1");
    cell.end(key, "h1", TaskResult::host_unfit(FULL));
    assert!(matches!(cell.sent()[..], [MasterMessage::Forget { .. }]));
    assert_eq!(cell.task(number, 1).place, TaskPlace::Pending { error: None });
    assert_eq!(cell.task(number, 1).attempts, 1);
    assert!(cell.records().is_empty() && errors(&cell).is_empty());
    assert_eq!(unfit(&cell, "h1").as_deref(), Some(FULL));
    assert_eq!(
        cell.order(number, 1, "h1"),
        Err(format!("host h1 cannot start jobs: {FULL}"))
    );
    cell.run(number, 1, "h2");
    cell.assert_replay_is_live();
}

#[test]
fn an_older_host_that_names_no_fault_puts_the_job_into_error_as_before() {
    let mut cell = Cell::ready();
    let (number, key) = placed(&mut cell, "u1");
    cell.end(key, "h1", result(Exit::NotStarted, FailedCode::BEFORE_JOB, FULL));
    assert_eq!(
        cell.task(number, 1).place,
        TaskPlace::Pending {
            error: Some(FULL.to_owned())
        }
    );
    assert_eq!(unfit(&cell, "h1"), None);
}

#[test]
fn a_host_that_says_that_it_is_unwell_gets_nothing_until_it_says_that_it_is_well() {
    let mut cell = Cell::ready();
    let number = cell.submit(job());
    says(&mut cell, "h1", Some(FULL));
    assert!(cell.effects.iter().any(|effect| matches!(effect, Effect::Warn(_))));
    assert!(cell.order(number, 1, "h1").is_err());
    cell.pass(10 * LONGEST_PAUSE_MS);
    assert!(cell.order(number, 1, "h1").is_err(), "time alone mends nothing");
    says(&mut cell, "h1", None);
    assert!(cell.effects.iter().any(|effect| matches!(effect, Effect::Note(_))));
    cell.run(number, 1, "h1");
    assert!(
        cell.log
            .iter()
            .all(|record| !matches!(record.event, Event::InstanceChanged { .. })),
        "it is no event"
    );
}

#[test]
fn a_host_that_connects_again_says_anew_whether_it_is_unwell() {
    let mut cell = Cell::ready();
    says(&mut cell, "h1", Some("its launcher does not run"));
    cell.disconnect("h1");
    cell.connect("h1");
    assert_eq!(unfit(&cell, "h1"), None);
}

#[test]
fn event_clients_see_a_host_that_refused_a_start_as_not_ready_also_after_it_connected_again() {
    let mut cell = Cell::ready();
    let is_told_ready = |cell: &Cell| {
        let observed = cell.effects.iter().filter_map(|effect| match effect {
            Effect::Observed(observation) => stream::observed(cell.core.observations(), observation),
            _ => None,
        });
        observed
            .filter_map(|change| match change {
                Change::Contact { host, connected } if host.as_str() == "h1" => Some(connected),
                _ => None,
            })
            .next_back()
    };
    refused(&mut cell, "u1");
    assert_eq!(is_told_ready(&cell), Some(false));
    cell.disconnect("h1");
    cell.connect("h1");
    assert_eq!(is_told_ready(&cell), Some(false));
    cell.pass(FIRST_PAUSE_MS);
    assert_eq!(is_told_ready(&cell), Some(true));
}

#[test]
fn a_host_that_claims_to_be_well_and_refuses_is_left_alone_for_longer_each_time() {
    let mut cell = Cell::ready();
    let number = refused(&mut cell, "u1");
    for pause_ms in [FIRST_PAUSE_MS, 2 * FIRST_PAUSE_MS, 4 * FIRST_PAUSE_MS] {
        cell.pass(pause_ms - 1);
        assert!(cell.order(number, 1, "h1").is_err(), "after {pause_ms} ms");
        cell.pass(1);
        let key = cell.order(number, 1, "h1").unwrap();
        cell.end(key, "h1", TaskResult::host_unfit(FULL));
    }
    cell.pass(8 * FIRST_PAUSE_MS);
    cell.run(number, 1, "h1");
    let again = refused(&mut cell, "u1");
    cell.pass(FIRST_PAUSE_MS);
    assert!(
        cell.order(again, 1, "h1").is_ok(),
        "a success makes the next pause the first again"
    );
}

#[test]
fn a_host_that_knew_why_it_refused_gets_starts_again_as_soon_as_it_is_well() {
    let mut cell = Cell::ready();
    let number = refused(&mut cell, "u1");
    says(&mut cell, "h1", Some(FULL));
    says(&mut cell, "h1", None);
    assert!(cell.order(number, 1, "h1").is_ok());
}

#[test]
fn an_operator_opens_a_host_that_refused_and_none_that_says_itself_that_it_is_unwell() {
    let mut cell = Cell::ready();
    let number = refused(&mut cell, "u1");
    let clear = |cell: &mut Cell| cell.qmod("op", ModifyAction::ClearQueueError, "*@h1").concat();
    assert!(clear(&mut cell).contains("changed state of"));
    assert!(clear(&mut cell).contains("already in the specified state"));
    let key = cell.order(number, 1, "h1").unwrap();
    cell.end(key, "h1", TaskResult::host_unfit(FULL));
    says(&mut cell, "h1", Some(FULL));
    let said = clear(&mut cell);
    assert!(
        said.contains("changed state of") && said.contains("stays in error"),
        "{said}"
    );
    assert!(clear(&mut cell).contains("stays in error: host h1 cannot start jobs"));
    assert!(unfit(&cell, "h1").is_some());
}

#[test]
fn starts_that_were_on_their_way_to_a_host_that_refuses_them_all_close_it_for_a_moment_only() {
    let mut cell = Cell::ready();
    cell.set_cluster(&[("qmaster_params", "MAX_START_FAILURES=2")]);
    let keys: Vec<TaskKey> = (0..4).map(|_| placed(&mut cell, "u1").1).collect();
    keys.into_iter()
        .for_each(|key| cell.end(key, "h1", TaskResult::host_unfit(FULL)));
    assert!(errors(&cell).is_empty() && unfit(&cell, "h1").is_some());
}

#[test]
fn too_many_failed_starts_in_a_row_close_the_host_until_an_operator_opens_it() {
    let mut cell = Cell::ready();
    cell.set_cluster(&[("qmaster_params", "MAX_START_FAILURES=3")]);
    failed(&mut cell, "u1");
    failed(&mut cell, "u2");
    let (_, key) = placed(&mut cell, "u1");
    cell.report(key, "h1", TaskReportState::Running { for_ms: 1 });
    failed(&mut cell, "u1");
    failed(&mut cell, "u1");
    assert_eq!(errors(&cell), [""; 0], "a success begins the count anew");
    failed(&mut cell, "u2");
    let said = errors(&cell);
    assert_eq!(said.len(), 1);
    assert!(
        said[0].contains("3 starts in a row failed on host h1, the last one: no such directory"),
        "{said:?}"
    );
    assert!(
        cell.effects
            .iter()
            .any(|effect| matches!(effect, Effect::Alarm(Alarm::HostClosed(why)) if why.fix.contains("qmod -cq")))
    );
    let number = cell.submit(job());
    assert!(cell.order(number, 1, "h1").is_err());
    cell.qmod("op", ModifyAction::ClearQueueError, "*@h1");
    cell.run(number, 1, "h1");
    cell.assert_replay_is_live();
}

/// A new attempt of a task is given to a host, and its shepherd dies before the job begins.
fn dies(cell: &mut Cell, number: u32, host: &str) {
    let key = cell.order(number, 1, host).unwrap();
    let why = "the task's shepherd died before it could start the job";
    cell.end(
        key,
        host,
        TaskResult {
            failed: FailedCode::BEFORE_EXEC,
            ..TaskResult::host_unfit(why)
        },
    );
}

#[test]
fn a_job_whose_shepherds_always_die_waits_in_error_after_as_many_starts_as_close_a_host() {
    let mut cell = Cell::ready();
    cell.set_cluster(&[("qmaster_params", "MAX_START_FAILURES=3")]);
    let number = cell.submit(job());
    dies(&mut cell, number, "h1");
    dies(&mut cell, number, "h2");
    assert_eq!(cell.task(number, 1).place, TaskPlace::Pending { error: None });
    cell.pass(LONGEST_PAUSE_MS);
    dies(&mut cell, number, "h1");
    let TaskPlace::Pending { error: Some(error) } = cell.task(number, 1).place.clone() else {
        panic!("it is in error")
    };
    assert!(
        error.contains("shepherd died") && error.contains("3 starts of the job in a row"),
        "{error}"
    );
    assert_eq!(errors(&cell), [""; 0], "one job closes no host");
    assert_eq!(cell.records().len(), 1);
    cell.assert_replay_is_live();
}

/// Whether a task waits in error.
fn is_in_error(cell: &Cell, number: u32, task: u32) -> bool {
    matches!(cell.task(number, task).place, TaskPlace::Pending { error: Some(_) })
}

/// A cell that gives up after two starts in a row.
fn impatient_cell() -> Cell {
    let mut cell = Cell::ready();
    cell.set_cluster(&[("qmaster_params", "MAX_START_FAILURES=2")]);
    cell
}

#[test]
fn one_sick_host_that_gets_a_job_again_and_again_puts_it_into_error_only_if_it_starts_others() {
    let mut cell = impatient_cell();
    let number = cell.submit(job());
    for _ in 0..5 {
        dies(&mut cell, number, "h1");
        cell.pass(LONGEST_PAUSE_MS);
    }
    assert!(!is_in_error(&cell, number, 1), "the host may be to blame");
    let (_, other) = placed(&mut cell, "u2");
    cell.report(other, "h1", TaskReportState::Running { for_ms: 1 });
    dies(&mut cell, number, "h1");
    assert!(is_in_error(&cell, number, 1), "the host starts the jobs of others");
    let mut cell = impatient_cell();
    cell.set_queue(&[("hostlist", "h1")]);
    let number = cell.submit(job());
    dies(&mut cell, number, "h1");
    cell.pass(LONGEST_PAUSE_MS);
    dies(&mut cell, number, "h1");
    assert!(is_in_error(&cell, number, 1), "there is no other host");
    cell.assert_replay_is_live();
}

#[test]
fn a_host_that_falls_ill_is_not_cleared_by_what_it_started_before() {
    let mut cell = Cell::ready();
    cell.set_cluster(&[("qmaster_params", "MAX_START_FAILURES=3")]);
    let number = cell.submit(job());
    dies(&mut cell, number, "h1");
    cell.pass(LONGEST_PAUSE_MS);
    let (_, other) = placed(&mut cell, "u2");
    cell.report(other, "h1", TaskReportState::Running { for_ms: 1 });
    for _ in 0..5 {
        dies(&mut cell, number, "h1");
        cell.pass(LONGEST_PAUSE_MS);
    }
    assert!(!is_in_error(&cell, number, 1), "it started nothing any more");
}

#[test]
fn a_death_elsewhere_long_ago_does_not_make_those_on_a_sick_host_the_jobs_fault() {
    let mut cell = Cell::ready();
    cell.set_cluster(&[("qmaster_params", "MAX_START_FAILURES=3")]);
    let number = cell.submit(job());
    dies(&mut cell, number, "h2");
    for _ in 0..5 {
        dies(&mut cell, number, "h1");
        cell.pass(LONGEST_PAUSE_MS);
    }
    assert!(!is_in_error(&cell, number, 1));
    dies(&mut cell, number, "h2");
    assert!(is_in_error(&cell, number, 1), "it moves and dies on both");
}

#[test]
fn an_array_is_cleared_by_a_task_that_starts_between_the_deaths_and_not_by_one_that_ran_before() {
    let mut cell = impatient_cell();
    let number = cell.submit(super::cell::array("1-3"));
    cell.run(number, 2, "h2");
    dies(&mut cell, number, "h1");
    cell.run(number, 3, "h2");
    cell.pass(LONGEST_PAUSE_MS);
    dies(&mut cell, number, "h1");
    assert!(!is_in_error(&cell, number, 1), "a task started in between");
    dies(&mut cell, number, "h2");
    assert!(is_in_error(&cell, number, 1));
    cell.assert_replay_is_live();
}

#[test]
fn an_altered_job_and_one_whose_error_was_cleared_have_as_many_starts_as_a_new_one() {
    let mut cell = impatient_cell();
    let number = cell.submit(job());
    dies(&mut cell, number, "h1");
    dies(&mut cell, number, "h2");
    assert!(is_in_error(&cell, number, 1));
    cell.qmod("u1", ModifyAction::ClearJobError, &number.to_string());
    cell.pass(LONGEST_PAUSE_MS);
    dies(&mut cell, number, "h1");
    assert!(!is_in_error(&cell, number, 1));
    let changes = Box::new(proto::job::JobChanges {
        priority: Some(-1),
        ..Default::default()
    });
    cell.command(
        "u1",
        Command::Alter {
            jobs: selection(&[&number.to_string()]),
            changes,
        },
    );
    dies(&mut cell, number, "h2");
    assert!(!is_in_error(&cell, number, 1));
    cell.pass(LONGEST_PAUSE_MS);
    dies(&mut cell, number, "h1");
    assert!(is_in_error(&cell, number, 1));
    cell.assert_replay_is_live();
}

#[test]
fn a_job_that_starts_in_between_or_has_other_troubles_is_tried_again_and_again() {
    let mut cell = Cell::ready();
    cell.set_cluster(&[("qmaster_params", "MAX_START_FAILURES=2")]);
    let number = cell.submit(JobSpec {
        rerunnable: Some(true),
        ..job()
    });
    for _ in 0..3 {
        dies(&mut cell, number, "h1");
        let key = cell.order(number, 1, "h2").unwrap();
        cell.report(key, "h2", TaskReportState::Running { for_ms: 1 });
        cell.end(key, "h2", result(Exit::Code(99), FailedCode::RESCHEDULING, ""));
        cell.pass(LONGEST_PAUSE_MS);
    }
    assert_eq!(cell.task(number, 1).place, TaskPlace::Pending { error: None });
    let mut cell = Cell::ready();
    cell.set_cluster(&[("qmaster_params", "MAX_START_FAILURES=2")]);
    let other = refused(&mut cell, "u1");
    for _ in 0..5 {
        cell.pass(LONGEST_PAUSE_MS);
        let key = cell.order(other, 1, "h1").unwrap();
        cell.end(key, "h1", TaskResult::host_unfit(FULL));
    }
    assert_eq!(cell.task(other, 1).place, TaskPlace::Pending { error: None });
}

#[test]
fn the_mistakes_of_one_user_close_no_host() {
    let mut cell = Cell::ready();
    cell.set_cluster(&[("qmaster_params", "MAX_START_FAILURES=2")]);
    (0..20).for_each(|_| failed(&mut cell, "u1"));
    assert_eq!(errors(&cell), [""; 0]);
    failed(&mut cell, "u2");
    assert_eq!(errors(&cell).len(), 1);
}

#[test]
fn a_cell_may_have_no_host_closed_for_starts_that_fail() {
    let mut cell = Cell::ready();
    cell.set_cluster(&[("qmaster_params", "MAX_START_FAILURES=0")]);
    for _ in 0..20 {
        failed(&mut cell, "u1");
        failed(&mut cell, "u2");
    }
    assert_eq!(errors(&cell), [""; 0]);
}

#[test]
fn a_task_that_was_deleted_before_its_host_could_start_it_is_gone_and_blames_nobody() {
    let mut cell = Cell::ready();
    let (number, key) = placed(&mut cell, "u1");
    cell.command(
        "u1",
        Command::Delete {
            jobs: selection(&[&number.to_string()]),
            force: false,
        },
    );
    cell.end(
        key,
        "h1",
        TaskResult::host_unfit("the task was ended by an order before a launcher was told of it"),
    );
    assert!(!cell.exists(number) && cell.records().is_empty());
    assert_eq!(unfit(&cell, "h1"), None);
}

#[test]
fn the_same_refusal_after_a_reconnect_is_taken_once() {
    let mut cell = Cell::ready();
    let (number, key) = placed(&mut cell, "u1");
    cell.disconnect("h1");
    let report = || TaskReport {
        key,
        state: TaskReportState::Ended(Box::new(TaskResult::host_unfit(FULL))),
    };
    cell.connect_with("h1", 1, vec![report()]);
    assert_eq!(cell.task(number, 1).place, TaskPlace::Pending { error: None });
    assert_eq!(unfit(&cell, "h1").as_deref(), Some(FULL));
    cell.disconnect("h1");
    cell.connect_with("h1", 1, vec![report()]);
    assert!(
        cell.sent()
            .iter()
            .any(|message| matches!(message, MasterMessage::Forget { .. }))
    );
    assert_eq!(cell.task(number, 1).attempts, 1);
}
