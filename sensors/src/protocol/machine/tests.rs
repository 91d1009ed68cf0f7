//! What is tolerated in time (sensors/README.md "What is tolerated"), and the life of a sensor.
//! Those about text are tested in `line` and `reader`, those about files and start in `safety` and
//! `launch`.

use super::*;
use crate::host::{Domains, HostSpec};

/// A sensor in virtual time.
pub(super) struct Stage {
    pub(super) machine: Machine,
    pub(super) now: Tick,
}

impl Stage {
    pub(super) fn new(settings: Settings) -> Self {
        let names = SelfNames::new(&"vm".into(), [], Domains::Compare);
        Self {
            machine: Machine::new(settings, names, Tick(0)),
            now: Tick(0),
        }
    }

    /// A sensor that was just started and asked.
    pub(super) fn running() -> Self {
        let mut stage = Self::new(Settings::default());
        assert_eq!(stage.machine.tick(stage.now), [Action::Start]);
        assert_eq!(stage.machine.started(stage.now), [Action::Write(Request::Collect)]);
        stage
    }

    pub(super) fn wait(&mut self, ms: u64) -> Vec<Action> {
        self.now = self.now.plus_ms(ms);
        self.machine.tick(self.now)
    }

    pub(super) fn says(&mut self, text: &str) -> Vec<Action> {
        self.machine.bytes(text.as_bytes(), self.now)
    }

    pub(super) fn request(&mut self) -> Vec<Action> {
        self.machine.request(self.now)
    }

    pub(super) fn exits(&mut self, exit: Exit) -> Vec<Action> {
        let mut actions = self.machine.eof(self.now);
        actions.extend(self.machine.exited(exit, self.now));
        actions
    }

    pub(super) fn restarts(&mut self) {
        let until = self.machine.next_timer().expect("a restart is due");
        self.now = self.now.max(until);
        assert_eq!(self.machine.tick(self.now), [Action::Start]);
        assert_eq!(self.machine.started(self.now), [Action::Write(Request::Collect)]);
    }

    pub(super) fn value(&self, name: &str) -> Option<String> {
        self.value_of(&HostSpec::This, name)
    }

    pub(super) fn value_of(&self, host: &HostSpec, name: &str) -> Option<String> {
        let fresh = self.machine.values_for_report(self.now)?;
        fresh.block.value(host, name).map(str::to_owned)
    }

    pub(super) fn health(&self) -> Health {
        self.machine.status(self.now).health
    }
}

fn warned(actions: &[Action]) -> Vec<WarningKind> {
    let kinds = actions.iter().filter_map(|action| {
        if let Action::Warn(warning) = action {
            Some(warning.kind)
        } else {
            None
        }
    });
    kinds.collect()
}

const GOOD: &str = "begin\nvm:a:1\nend\n";

#[test]
fn t1_only_an_empty_line_and_quit_are_ever_written() {
    assert_eq!(Request::Collect.as_bytes(), b"\n");
    assert_eq!(Request::Quit.as_bytes(), b"quit\n");
}

#[test]
fn one_request_is_in_flight_and_the_next_comes_with_the_next_report() {
    let mut stage = Stage::running();
    stage.wait(40_000);
    assert_eq!(stage.request(), []);
    stage.says(GOOD);
    assert_eq!(stage.request(), [Action::Write(Request::Collect)]);
    assert_eq!(stage.request(), []);
    stage.says(GOOD);
    stage.wait(35_000);
    assert_eq!(stage.request(), []);
    stage.wait(2_000);
    assert_eq!(stage.request(), [Action::Write(Request::Collect)]);
}

#[test]
fn a_report_waits_a_second_for_a_fresh_answer_and_then_takes_the_last() {
    let mut stage = Stage::running();
    assert_eq!(stage.machine.wait_until(stage.now), Some(Tick(1_000)));
    stage.says(GOOD);
    assert_eq!(stage.machine.wait_until(stage.now), None);
    stage.wait(40_000);
    stage.request();
    assert_eq!(stage.machine.wait_until(stage.now), Some(Tick(41_000)));
    stage.wait(1_000);
    assert_eq!(stage.machine.wait_until(stage.now), None);
    assert_eq!(stage.value("a").as_deref(), Some("1"));
}

#[test]
fn t6_no_block_before_the_deadline_is_no_data_and_not_a_crash() {
    let mut stage = Stage::running();
    assert_eq!(stage.wait(59_999), []);
    let actions = stage.wait(1);
    assert_eq!(warned(&actions), [WarningKind::NoAnswer]);
    assert_eq!(actions[2..], [Action::Write(Request::Quit), Action::CloseStdin]);
    assert_eq!(stage.health(), Health::TimedOut);
    stage.exits(Exit::Status(0));
    stage.restarts();
    assert_eq!(stage.health(), Health::TimedOut);
    stage.says(GOOD);
    assert_eq!(stage.health(), Health::Running);
}

#[test]
fn t10_a_name_that_is_missing_from_a_new_block_disappears() {
    let mut stage = Stage::running();
    stage.says("begin\nvm:a:1\nvm:b:2\nend\n");
    stage.says("begin\nvm:b:3\nend\n");
    assert_eq!((stage.value("a"), stage.value("b").as_deref()), (None, Some("3")));
}

#[test]
fn t11_unsolicited_blocks_count_and_their_rate_is_capped() {
    let mut stage = Stage::running();
    let flood: String = (0..1000).map(|n| format!("begin\nvm:a:{n}\nend\n")).collect();
    let actions = stage.says(&flood);
    assert_eq!(
        actions
            .iter()
            .filter(|action| matches!(action, Action::Block(_)))
            .count(),
        100
    );
    assert_eq!(warned(&actions), [WarningKind::TooFast]);
    assert_eq!(stage.value("a").as_deref(), Some("999"));
}

#[test]
fn t11_a_flood_makes_the_driver_pause() {
    let mut stage = Stage::running();
    let piece = "y\n".repeat(1 << 17);
    for _ in 0..4 {
        stage.says(&piece);
        assert_eq!(stage.machine.pause_until(stage.now), None);
    }
    stage.says(&piece);
    assert_eq!(stage.machine.pause_until(stage.now), Some(Tick(10_000)));
    stage.wait(10_000);
    assert_eq!(stage.machine.pause_until(stage.now), None);
}

#[test]
fn t12_lines_are_assembled_across_reads() {
    let mut stage = Stage::running();
    for piece in ["be", "gin\nvm", ":a:", "1\nen", "d"] {
        stage.says(piece);
        assert_eq!(stage.value("a"), None);
    }
    stage.says("\n");
    assert_eq!(stage.value("a").as_deref(), Some("1"));
}

#[test]
fn t12_a_sensor_that_flushes_only_at_its_end_is_suspected_of_buffering() {
    let mut stage = Stage::running();
    stage.wait(60_000);
    let actions = stage.says(GOOD);
    assert_eq!(warned(&actions), [WarningKind::Buffering]);
    assert_eq!(stage.health(), Health::BufferingSuspected);
    assert_eq!(stage.value("a").as_deref(), Some("1"));
    stage.exits(Exit::Status(0));
    assert_eq!(stage.health(), Health::BufferingSuspected);
}

#[test]
fn t12_an_answer_that_stops_with_a_full_buffer_is_suspected_of_buffering() {
    let mut stage = Stage::running();
    let mut text = "begin\n".to_owned();
    text.extend((0..).map(|n| format!("vm:a{n}:1\n")).take(1000));
    text.truncate(4096);
    stage.says(&text);
    assert_eq!(warned(&stage.wait(60_000)), [WarningKind::Buffering]);
}

#[test]
fn t13_the_end_is_quit_and_end_of_input_then_sigterm_then_sigkill() {
    let mut stage = Stage::running();
    stage.says(GOOD);
    assert_eq!(
        stage.machine.stop(stage.now),
        [Action::Write(Request::Quit), Action::CloseStdin]
    );
    assert_eq!(stage.wait(9_999), []);
    let actions = stage.wait(1);
    assert_eq!(warned(&actions), [WarningKind::IgnoredQuit]);
    assert_eq!(actions[1..], [Action::SignalGroup(Signal::Terminate)]);
    assert_eq!(stage.wait(2_000), [Action::SignalGroup(Signal::Kill)]);
    assert_eq!(stage.machine.next_timer(), None);
    let stopped = Action::Health {
        from: Health::Running,
        to: Health::Stopped,
    };
    assert_eq!(
        stage.exits(Exit::Signal(9)),
        [Action::SignalGroup(Signal::Kill), stopped, Action::Ended]
    );
}

#[test]
fn values_of_a_sensor_that_is_stopped_are_withdrawn_at_once() {
    let mut stage = Stage::running();
    stage.says(GOOD);
    stage.machine.stop(stage.now);
    assert_eq!(stage.value("a"), None);
}

#[test]
fn t14_standard_error_is_kept_in_a_ring_and_logged_sparingly() {
    let mut stage = Stage::running();
    let text: String = (0..50).map(|n| format!("line {n}\n")).collect();
    let actions = stage.machine.stderr(text.as_bytes(), stage.now);
    assert_eq!(actions.len(), 10);
    let kept = stage.machine.status(stage.now).stderr;
    assert_eq!(
        (kept.len(), kept[0].as_str(), kept[19].as_str()),
        (20, "line 30", "line 49")
    );
}

#[test]
fn t15_the_deadline_is_a_setting_of_at_least_a_minute_by_default() {
    assert_eq!(Settings::default().deadline_ms, 60_000);
    let mut stage = Stage::running();
    stage.wait(45_000);
    stage.says(GOOD);
    assert_eq!(stage.value("a").as_deref(), Some("1"));
    assert_eq!(stage.wait(60_000), []);
}

#[test]
fn t16_crashes_are_spaced_out_up_to_a_cap_and_a_sensor_that_stays_alive_starts_afresh() {
    let mut stage = Stage::running();
    let mut pauses = Vec::new();
    for _ in 0..11 {
        stage.exits(Exit::Status(7));
        assert_eq!(stage.health(), Health::Failing);
        pauses.push(stage.machine.next_timer().unwrap().since_ms(stage.now));
        stage.restarts();
    }
    assert_eq!(pauses[..4], [1_000, 2_000, 4_000, 8_000]);
    assert_eq!(pauses[10], 300_000);
    stage.says(GOOD);
    stage.says(GOOD);
    stage.exits(Exit::Status(7));
    assert_eq!(stage.machine.next_timer().unwrap().since_ms(stage.now), 1_000);
    let status = stage.machine.status(stage.now);
    assert_eq!(status.restarts, 11);
    assert_eq!(status.last_error.as_deref(), Some("ended with exit status 7"));
}

#[test]
fn t16_a_changed_file_restarts_the_sensor_at_once() {
    let mut stage = Stage::running();
    stage.says(GOOD);
    assert_eq!(
        stage.machine.restart(stage.now),
        [Action::Write(Request::Quit), Action::CloseStdin]
    );
    stage.exits(Exit::Status(0));
    assert_eq!(stage.value("a").as_deref(), Some("1"));
    assert_eq!(stage.wait(0), [Action::Start]);
}

#[test]
fn t16_a_changed_file_ends_the_pause_after_a_failure() {
    let mut stage = Stage::running();
    stage.exits(Exit::Status(1));
    assert_eq!(stage.wait(0), []);
    stage.machine.restart(stage.now);
    assert_eq!(stage.wait(0), [Action::Start]);
}

#[test]
fn values_are_as_old_as_the_request_for_them() {
    let mut stage = Stage::running();
    stage.wait(700);
    stage.says(GOOD);
    stage.wait(2_000);
    let fresh = stage.machine.values_for_report(stage.now).unwrap();
    assert_eq!((fresh.age_ms, fresh.sampled_ago_ms), (2_000, 2_700));
}

#[test]
fn a_sensor_that_cannot_be_started_is_failing_and_tried_again() {
    let mut stage = Stage::new(Settings::default());
    stage.wait(0);
    let actions = stage.machine.start_failed("not executable", stage.now);
    assert_eq!(warned(&actions), [WarningKind::NotStarted]);
    assert_eq!(stage.health(), Health::Failing);
    assert_eq!(stage.machine.next_timer(), Some(Tick(1_000)));
}

#[test]
fn a_sensor_that_is_stopped_while_it_starts_ends_once_it_is_there() {
    let mut stage = Stage::new(Settings::default());
    stage.wait(0);
    assert_eq!(stage.machine.stop(stage.now), []);
    assert_eq!(
        stage.machine.started(stage.now),
        [Action::Write(Request::Quit), Action::CloseStdin]
    );
}

#[test]
fn t19_values_age_out_at_three_intervals_or_deadline_and_interval() {
    let check = |interval_ms, deadline_ms, expected| {
        let settings = Settings {
            interval_ms,
            deadline_ms,
            ..Settings::default()
        };
        assert_eq!(settings.age_limit_ms(), expected);
    };
    check(40_000, 60_000, 120_000);
    check(5_000, 60_000, 65_000);
    check(30_000, 60_000, 90_000);
    let mut stage = Stage::running();
    stage.says(GOOD);
    stage.exits(Exit::Status(1));
    stage.now = Tick(119_999);
    assert_eq!(stage.value("a").as_deref(), Some("1"));
    stage.now = Tick(120_000);
    assert_eq!(stage.value("a"), None);
    assert_eq!(stage.machine.status(stage.now).value_age_ms, Some(120_000));
}

#[test]
fn a_sensor_that_closes_its_output_and_lives_on_is_ended_and_started_again() {
    let mut stage = Stage::running();
    stage.machine.eof(stage.now);
    let actions = stage.wait(1_000);
    assert_eq!(warned(&actions), [WarningKind::ClosedOutput]);
    assert!(actions.contains(&Action::CloseStdin));
    assert_eq!(stage.health(), Health::Failing);
}

#[test]
fn a_sensor_that_never_ends_a_line_times_out() {
    let mut stage = Stage::running();
    let piece = vec![b'x'; 1 << 20];
    for _ in 0..64 {
        stage.machine.bytes(&piece, stage.now);
    }
    assert_eq!(warned(&stage.wait(60_000)), [WarningKind::NoAnswer]);
}

#[test]
fn a_sensor_that_ends_well_after_each_answer_runs_once_per_interval() {
    let mut stage = Stage::running();
    for _ in 0..5 {
        stage.says(GOOD);
        stage.exits(Exit::Status(0));
        assert_eq!(stage.health(), Health::Running);
        let start = stage.now;
        stage.restarts();
        assert_eq!(stage.now.since_ms(start), 40_000);
    }
}

#[test]
fn one_warning_of_each_kind_is_given_however_often_it_happens() {
    let mut stage = Stage::running();
    let mut given = Vec::new();
    for _ in 0..100 {
        given.extend(warned(&stage.says("nocolon\nbegin\nvm:a:1\nend\n")));
        stage.now = stage.now.plus_ms(1_000);
    }
    assert_eq!(given, [WarningKind::NotUnderstood]);
}

/// What the driver knows about the process, to hold the machine's orders against.
#[derive(Default)]
struct ObservedProcess {
    is_alive: bool,
    is_asked: bool,
    is_input_closed: bool,
}

impl ObservedProcess {
    fn obey(&mut self, actions: &[Action]) {
        for action in actions {
            match action {
                Action::Start => assert!(!self.is_alive, "two processes at once"),
                Action::Write(Request::Collect) => {
                    assert!(
                        self.is_alive && !self.is_asked && !self.is_input_closed,
                        "a request out of turn"
                    );
                    self.is_asked = true;
                }
                Action::CloseStdin => self.is_input_closed = true,
                Action::Ended => assert!(!self.is_alive, "ended with a process alive"),
                Action::Write(Request::Quit)
                | Action::SignalGroup(_)
                | Action::Block(_)
                | Action::Warn(_)
                | Action::Health { .. }
                | Action::Stderr(_)
                | Action::Line { .. } => {}
            }
        }
    }

    fn start(&mut self, stage: &mut Stage) {
        *self = ObservedProcess {
            is_alive: true,
            ..ObservedProcess::default()
        };
        let actions = stage.machine.started(stage.now);
        self.obey(&actions);
    }
}

proptest::proptest! {
    #[test]
    fn whatever_happens_there_is_one_process_and_one_request_and_an_end(events in proptest::collection::vec(0u8..10, 0..80)) {
        let mut stage = Stage::new(Settings::default());
        let mut observed = ObservedProcess::default();
        for event in events {
            let actions = match event {
                0 | 1 => stage.wait(20_000),
                2 => stage.request(),
                3 | 4 if observed.is_alive => {
                    observed.is_asked = false;
                    stage.says(GOOD)
                }
                5 if observed.is_alive => stage.says("begin\nvm:"),
                6 if observed.is_alive => {
                    observed.is_alive = false;
                    stage.exits(Exit::Status(i32::from(stage.now.0.is_multiple_of(3))))
                }
                7 if observed.is_alive => stage.machine.eof(stage.now),
                8 => stage.machine.restart(stage.now),
                _ => stage.wait(100),
            };
            let has_to_start = actions.contains(&Action::Start);
            observed.obey(&actions);
            if has_to_start {
                observed.start(&mut stage);
            }
        }
        let mut actions = stage.machine.stop(stage.now);
        if observed.is_alive {
            actions.extend(stage.exits(Exit::Signal(9)));
        }
        proptest::prop_assert!(actions.contains(&Action::Ended));
        proptest::prop_assert_eq!(stage.machine.values_for_report(stage.now), None);
    }
}
