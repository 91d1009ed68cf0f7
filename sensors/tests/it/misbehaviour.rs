//! Sensors that behave well, badly, and worse.

use crate::driver::{Directory, SensorRun, is_group_alive};
use gridwright_sensors::protocol::{Action, Health, Request, Settings, Signal, WarningKind};

const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Patient with answers on a busy machine, asked as often as the test likes.
fn patient() -> Settings {
    let patience = 600_000;
    Settings {
        interval_ms: 0,
        age_limit_ms: Some(patience),
        deadline_ms: patience,
        quit_wait_ms: patience,
        ..Settings::default()
    }
}

/// Quick to lose patience.
fn hasty() -> Settings {
    Settings {
        deadline_ms: 300,
        quit_wait_ms: 300,
        term_wait_ms: 300,
        ..patient()
    }
}

fn run(script: &str, settings: Settings) -> (Directory, SensorRun) {
    let directory = Directory::new();
    let sensor = directory.program("sensor", script);
    let run = SensorRun::new(&sensor, &[], PATH, settings);
    (directory, run)
}

fn health(run: &SensorRun) -> Health {
    run.machine.status(run.now()).health
}

fn warned(run: &SensorRun, kind: WarningKind) -> bool {
    run.seen
        .iter()
        .any(|action| matches!(action, Action::Warn(warning) if warning.kind == kind))
}

fn ends(mut run: SensorRun) -> SensorRun {
    run.stop();
    run.until("its end", |run| run.has(&Action::Ended));
    for group in run.groups.clone() {
        run.until("the end of its group", |_| !is_group_alive(group));
    }
    run
}

#[test]
fn a_good_sensor_answers_every_request_and_quits() {
    let script = "#!/bin/sh\nn=0\nwhile read line; do\n[ \"$line\" = quit ] && exit 0\nn=$((n+1))\n\
                  echo begin; echo \"vm:n:$n\"; echo \"global:g:x y\"; echo end\ndone\n";
    let (_directory, mut run) = run(script, patient());
    run.until("the first answer", |run| run.value("n").as_deref() == Some("1"));
    run.request();
    run.until("the second answer", |run| run.value("n").as_deref() == Some("2"));
    assert_eq!(run.value("g").as_deref(), Some("x y"));
    let run = ends(run);
    assert!(!run.has(&Action::SignalGroup(Signal::Terminate)));
    assert_eq!(run.transcript.warnings(), 0);
}

#[test]
fn a_script_without_an_interpreter_line_runs_in_the_shell() {
    let (_directory, mut run) = run(
        "while read l; do [ \"$l\" = quit ] && exit; echo begin; echo vm:a:1; echo end; done\n",
        patient(),
    );
    run.until("an answer", |run| run.value("a").is_some());
    ends(run);
}

#[test]
fn the_unquoted_test_of_the_classic_example_only_makes_noise() {
    let script = "#!/bin/sh\nwhile [ 1 ]; do\nread input\nresult=$?\nif [ $result != 0 ]; then exit 1; fi\n\
                  if [ $input = quit ]; then exit 0; fi\necho begin\necho \"`uname -n`:logins:3\"\necho end\ndone\n";
    let (_directory, mut run) = run(script, patient());
    run.until("an answer", |run| run.value("logins").as_deref() == Some("3"));
    run.until("the noise", |run| !run.machine.status(run.now()).stderr.is_empty());
    let run = ends(run);
    assert!(!run.has(&Action::SignalGroup(Signal::Terminate)));
}

#[test]
fn a_sensor_that_hangs_times_out_and_leaves_no_process() {
    let (_directory, mut run) = run("#!/bin/sh\nread line\nsleep 1000 &\nsleep 1000\n", hasty());
    run.until("the deadline", |run| health(run) == Health::TimedOut);
    run.until("the signal", |run| run.has(&Action::SignalGroup(Signal::Terminate)));
    run.until("the restart", |run| run.groups.len() == 2);
    let first = run.groups[0];
    run.until("the end of its group", |_| !is_group_alive(first));
    ends(run);
}

#[test]
fn a_sensor_that_ends_at_once_fails_with_its_status_and_is_started_again() {
    let (_directory, mut run) = run(
        "#!/bin/sh\necho broken >&2\nexit 7\n",
        Settings {
            backoff_first_ms: 1,
            ..patient()
        },
    );
    run.until("three starts", |run| run.groups.len() >= 3);
    let status = run.machine.status(run.now());
    assert_eq!(status.health, Health::Failing);
    assert_eq!(
        status.last_error.as_deref(),
        Some("ended with exit status 7 before its first answer")
    );
    assert!(status.stderr.contains(&"broken".to_owned()));
    ends(run);
}

#[test]
fn a_sensor_that_is_not_there_fails_and_says_so() {
    let directory = Directory::new();
    let mut run = SensorRun::new(&directory.path().join("nowhere"), &[], PATH, patient());
    run.until("the failure", |run| health(run) == Health::Failing);
    assert!(
        run.machine
            .status(run.now())
            .last_error
            .unwrap()
            .contains("exit status 127")
    );
    ends(run);
}

#[test]
fn a_sensor_that_floods_times_out_and_contributes_nothing() {
    let (_directory, mut run) = run("#!/bin/sh\nexec yes flood\n", hasty());
    run.until("the deadline", |run| health(run) == Health::TimedOut);
    // On a busy machine only a later start of it comes to its flood in time.
    run.until("the warning", |run| warned(run, WarningKind::NotUnderstood));
    assert_eq!(run.machine.values_for_report(run.now()), None);
    ends(run);
}

#[test]
fn a_flood_without_a_newline_times_out() {
    let (_directory, mut run) = run("#!/bin/sh\nexec tr '\\000' x < /dev/zero\n", hasty());
    run.until("the deadline", |run| health(run) == Health::TimedOut);
    ends(run);
}

#[test]
fn a_sensor_that_floods_its_standard_error_still_answers() {
    let script = "#!/bin/sh\nwhile read l; do [ \"$l\" = quit ] && exit 0\nyes noise | head -c 300000 >&2\n\
                  echo begin; echo vm:a:1; echo end\ndone\n";
    let (_directory, mut run) = run(script, patient());
    run.until("the answer", |run| run.value("a").is_some());
    ends(run);
}

#[test]
fn a_sensor_without_begin_counts() {
    let (_directory, mut run) = run(
        "#!/bin/sh\nwhile read l; do [ \"$l\" = quit ] && exit 0; echo vm:a:1; echo end; done\n",
        patient(),
    );
    run.until("the answer", |run| run.value("a").is_some());
    assert!(warned(&run, WarningKind::NoBegin));
    ends(run);
}

#[test]
fn a_sensor_without_end_publishes_nothing_and_times_out() {
    let (_directory, mut run) = run(
        "#!/bin/sh\nwhile read l; do [ \"$l\" = quit ] && exit 0; echo begin; echo vm:a:1; done\n",
        hasty(),
    );
    run.until("the deadline", |run| health(run) == Health::TimedOut);
    assert_eq!(run.value("a"), None);
    ends(run);
}

#[test]
fn partial_lines_are_put_together() {
    let script = "#!/bin/sh\nwhile read l; do [ \"$l\" = quit ] && exit 0\nfor p in 'beg' 'in\\nvm:' 'a:4' '2\\ne' 'nd\\n'; do\n\
                  printf \"$p\"; sleep 0.03; done; done\n";
    let (_directory, mut run) = run(script, patient());
    run.until("the answer", |run| run.value("a").as_deref() == Some("42"));
    ends(run);
}

#[test]
fn a_sensor_that_ignores_quit_is_killed_with_its_group() {
    let script = "#!/bin/sh\ntrap '' TERM\necho begin; echo vm:a:1; echo end\nwhile :; do sleep 1000; done\n";
    let (_directory, mut run) = run(
        script,
        Settings {
            deadline_ms: 60_000,
            ..hasty()
        },
    );
    run.until("the answer", |run| run.value("a").is_some());
    let run = ends(run);
    assert!(warned(&run, WarningKind::IgnoredQuit));
    assert!(run.has(&Action::SignalGroup(Signal::Kill)));
}

#[test]
fn output_that_comes_only_at_the_end_is_used_and_suspected_of_buffering() {
    let script = "#!/bin/sh\nwhile read l; do [ \"$l\" = quit ] && break; n=$((n+1)); done\n\
                  printf 'begin\\nvm:a:%s\\nend\\n' $n\n";
    let (_directory, mut run) = run(
        script,
        Settings {
            quit_wait_ms: 60_000,
            ..hasty()
        },
    );
    run.until("the suspicion", |run| health(run) == Health::BufferingSuspected);
    assert_eq!(run.value("a").as_deref(), Some("1"));
    ends(run);
}

#[test]
fn a_sensor_that_leaves_children_behind_is_swept_up() {
    let (_directory, mut run) = run("#!/bin/sh\nread l\nsleep 1000 > /dev/null 2>&1 &\nexit 3\n", patient());
    run.until("the failure", |run| health(run) == Health::Failing);
    let group = run.groups[0];
    run.until("the end of its group", |_| !is_group_alive(group));
    ends(run);
}

#[test]
fn nothing_but_requests_and_quit_is_ever_written() {
    let (_directory, mut run) = run("#!/bin/sh\nexec cat >&2\n", hasty());
    run.until("the echo", |run| {
        run.machine.status(run.now()).stderr.contains(&String::new())
    });
    run.until("the end of its patience", |run| health(run) == Health::Failing);
    assert!(warned(&run, WarningKind::ClosedOutput));
    run.until("the echo of quit", |run| {
        run.machine.status(run.now()).stderr.contains(&"quit".to_owned())
    });
    assert!(run.has(&Action::Write(Request::Collect)));
    ends(run);
}
