//! Start, deadline, back-off and end of a sensor's process.

use super::{Action, Exit, Health, Machine, Request, Signal};
use crate::protocol::assembler::Assembler;
use crate::protocol::reader::Reader;
use crate::protocol::warning::WarningKind;
use proto::time::Tick;

/// Where the process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// There is none; one is started at `until`.
    Waiting { until: Tick },
    /// It is being started; `then` says where it was stopped before it was there.
    Starting { then: Option<FollowUp> },
    /// It runs.
    Running,
    /// It closed its output and will be ended unless it ends by itself at once.
    Closed { since: Tick },
    /// It was told to end.
    Stopping { step: Step, since: Tick, then: FollowUp },
    /// It is gone for good.
    Ended,
}

/// How hard a process was told to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// `quit` and the end of its input.
    Quit,
    /// SIGTERM to its group.
    Terminate,
    /// SIGKILL to its group.
    Kill,
}

/// What follows once the process is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FollowUp {
    /// Another start, so long after the end.
    Restart { pause_ms: u64 },
    /// Nothing.
    End,
}

/// What is known about one process, from its start to its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Life {
    pub(super) since: Tick,
    /// When the unanswered request was sent.
    pub(super) requested_at: Option<Tick>,
    /// When the last request was sent, answered or not.
    pub(super) last_request_at: Option<Tick>,
    /// Complete blocks.
    pub(super) blocks: u32,
    /// Bytes of output.
    pub(super) bytes: u64,
    /// Whether it was ended for missing its deadline.
    pub(super) timed_out: bool,
}

impl Life {
    pub(super) fn new(since: Tick) -> Self {
        Self {
            since,
            requested_at: None,
            last_request_at: None,
            blocks: 0,
            bytes: 0,
            timed_out: false,
        }
    }
}

/// How much came in the current ten seconds, and how many lines of standard error were logged in
/// the current minute.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    window: Tick,
    bytes: usize,
    blocks: u32,
    minute: Tick,
    stderr_lines: u32,
}

/// The span over which output is counted: long enough for one large block to pass at once.
const WINDOW_MS: u64 = 10_000;

impl Pace {
    pub(super) fn new(now: Tick) -> Self {
        Self {
            window: now,
            bytes: 0,
            blocks: 0,
            minute: now,
            stderr_lines: 0,
        }
    }

    fn turn(&mut self, now: Tick) {
        if now.since_ms(self.window) >= WINDOW_MS {
            *self = Self {
                window: now,
                bytes: 0,
                blocks: 0,
                ..*self
            };
        }
        if now.since_ms(self.minute) >= 60_000 {
            *self = Self {
                minute: now,
                stderr_lines: 0,
                ..*self
            };
        }
    }

    /// Counts bytes; whether there are too many now.
    pub(super) fn count_bytes(&mut self, bytes: usize, most: usize, now: Tick) -> bool {
        self.turn(now);
        self.bytes = self.bytes.saturating_add(bytes);
        self.bytes > most
    }

    pub(super) fn pause_until(&self, most: usize, now: Tick) -> Option<Tick> {
        let until = self.window.plus_ms(WINDOW_MS);
        (self.bytes > most && now < until).then_some(until)
    }

    pub(super) fn admit_block(&mut self, most: u32, now: Tick) -> bool {
        self.turn(now);
        self.blocks = self.blocks.saturating_add(1);
        self.blocks <= most
    }

    pub(super) fn admit_stderr(&mut self, now: Tick) -> bool {
        const LOGGED_PER_MINUTE: u32 = 10;
        self.turn(now);
        self.stderr_lines = self.stderr_lines.saturating_add(1);
        self.stderr_lines <= LOGGED_PER_MINUTE
    }
}

/// Time in which a sensor that closed its output may end by itself, so that its exit status is
/// seen.
const CLOSED_GRACE_MS: u64 = 1_000;

impl Machine {
    /// Does what is due at `now`. Call it at the start and whenever [`Machine::next_timer`] has
    /// come; calling it more often is harmless.
    pub fn tick(&mut self, now: Tick) -> Vec<Action> {
        let mut actions = Vec::new();
        match self.phase {
            Phase::Waiting { until } if until <= now => {
                self.phase = Phase::Starting { then: None };
                actions.push(Action::Start);
            }
            Phase::Running if self.deadline().is_some_and(|deadline| deadline <= now) => {
                self.time_out(now, &mut actions)
            }
            Phase::Closed { since } if now.since_ms(since) >= CLOSED_GRACE_MS => self.give_up_closed(now, &mut actions),
            Phase::Stopping { step, since, then } => self.push_harder(step, since, then, now, &mut actions),
            Phase::Waiting { .. } | Phase::Starting { .. } | Phase::Running | Phase::Closed { .. } | Phase::Ended => {}
        }
        actions
    }

    /// When [`Machine::tick`] has something to do; `None`: only an event brings something.
    pub fn next_timer(&self) -> Option<Tick> {
        match self.phase {
            Phase::Waiting { until } => Some(until),
            Phase::Running => self.deadline(),
            Phase::Closed { since } => Some(since.plus_ms(CLOSED_GRACE_MS)),
            Phase::Stopping {
                step: Step::Quit,
                since,
                ..
            } => Some(since.plus_ms(self.settings.quit_wait_ms)),
            Phase::Stopping {
                step: Step::Terminate,
                since,
                ..
            } => Some(since.plus_ms(self.settings.term_wait_ms)),
            Phase::Stopping { step: Step::Kill, .. } | Phase::Starting { .. } | Phase::Ended => None,
        }
    }

    /// The process runs. The first request is sent at once, as 8.1.9 does.
    pub fn started(&mut self, now: Tick) -> Vec<Action> {
        self.starts = self.starts.saturating_add(1);
        self.life = Life::new(now);
        self.reader = Reader::new(self.settings.limits, self.names.clone());
        self.stderr = Assembler::new(self.settings.limits.stderr_line_bytes);
        let then = match self.phase {
            Phase::Starting { then } => then,
            Phase::Waiting { .. } | Phase::Running | Phase::Closed { .. } | Phase::Stopping { .. } | Phase::Ended => {
                None
            }
        };
        self.phase = Phase::Running;
        match then {
            None => vec![self.ask(now)],
            Some(then) => {
                let mut actions = Vec::new();
                self.begin_stop(then, now, &mut actions);
                actions
            }
        }
    }

    /// The process could not be started, or its file was refused.
    pub fn start_failed(&mut self, reason: &str, now: Tick) -> Vec<Action> {
        let mut actions = Vec::new();
        if self.is_ended() {
            self.end(&mut actions);
            return actions;
        }
        let text = format!("not started: {reason}");
        self.fail(Health::Failing, WarningKind::NotStarted, text, now, &mut actions);
        self.phase = Phase::Waiting {
            until: now.plus_ms(self.backoff_ms()),
        };
        actions
    }

    /// The sensor closed its standard output. Call it when a read says so; [`Machine::exited`]
    /// follows if the process ended.
    pub fn eof(&mut self, now: Tick) -> Vec<Action> {
        let actions = self.finish_output(now);
        if let Phase::Running = self.phase {
            self.phase = Phase::Closed { since: now };
        }
        actions
    }

    /// The process ended and was waited for. Read what is left in its pipes first, as far as it is
    /// there without waiting.
    pub fn exited(&mut self, exit: Exit, now: Tick) -> Vec<Action> {
        let mut actions = self.finish_output(now);
        // Children of the sensor may live on in its group, with the pipes in their hands.
        actions.push(Action::SignalGroup(Signal::Kill));
        match self.phase {
            Phase::Stopping {
                then: FollowUp::Restart { pause_ms },
                ..
            } => {
                self.phase = Phase::Waiting {
                    until: now.plus_ms(pause_ms),
                };
            }
            Phase::Stopping {
                then: FollowUp::End, ..
            }
            | Phase::Starting {
                then: Some(FollowUp::End),
            } => self.end(&mut actions),
            Phase::Running | Phase::Closed { .. } | Phase::Starting { .. } => {
                self.ended_unasked(exit, now, &mut actions)
            }
            Phase::Waiting { .. } | Phase::Ended => {}
        }
        self.life.requested_at = None;
        actions
    }

    /// The sensor's file is another one now: ends the process and starts it again at once, whatever
    /// the back-off.
    pub fn restart(&mut self, now: Tick) -> Vec<Action> {
        let mut actions = Vec::new();
        self.failures_in_row = 0;
        let at_once = FollowUp::Restart { pause_ms: 0 };
        match &mut self.phase {
            Phase::Waiting { until } => *until = now,
            Phase::Starting { then } if then.is_none() => *then = Some(at_once),
            Phase::Stopping { then, .. } if *then != FollowUp::End => *then = at_once,
            Phase::Running | Phase::Closed { .. } => self.begin_stop(at_once, now, &mut actions),
            Phase::Starting { .. } | Phase::Stopping { .. } | Phase::Ended => {}
        }
        actions
    }

    /// The sensor is no longer wanted: its values are withdrawn at once and its process is ended.
    pub fn stop(&mut self, now: Tick) -> Vec<Action> {
        let mut actions = Vec::new();
        match &mut self.phase {
            Phase::Waiting { .. } => self.end(&mut actions),
            Phase::Starting { then } => *then = Some(FollowUp::End),
            Phase::Stopping { then, .. } => *then = FollowUp::End,
            Phase::Running | Phase::Closed { .. } => self.begin_stop(FollowUp::End, now, &mut actions),
            Phase::Ended => {}
        }
        actions
    }

    fn deadline(&self) -> Option<Tick> {
        Some(self.life.requested_at?.plus_ms(self.settings.deadline_ms))
    }

    fn time_out(&mut self, now: Tick, actions: &mut Vec<Action>) {
        /// The sizes of stdio buffers are multiples of this.
        const BUFFER: u64 = 4096;
        let stopped_in_a_buffer =
            self.life.bytes > 0 && self.life.bytes.is_multiple_of(BUFFER) && self.reader.is_mid_block();
        let seconds = self.settings.deadline_ms as f64 / 1000.0;
        if stopped_in_a_buffer {
            let text = format!(
                "an answer stopped after {} bytes, a full buffer: flush after `end`",
                self.life.bytes
            );
            self.fail(Health::BufferingSuspected, WarningKind::Buffering, text, now, actions);
        } else {
            let text = format!("no complete block within {seconds} s");
            self.fail(Health::TimedOut, WarningKind::NoAnswer, text, now, actions);
        }
        self.life.timed_out = true;
        self.begin_stop(
            FollowUp::Restart {
                pause_ms: self.backoff_ms(),
            },
            now,
            actions,
        );
    }

    fn give_up_closed(&mut self, now: Tick, actions: &mut Vec<Action>) {
        let text = "it closed its output and went on living".to_owned();
        self.fail(Health::Failing, WarningKind::ClosedOutput, text, now, actions);
        self.begin_stop(
            FollowUp::Restart {
                pause_ms: self.backoff_ms(),
            },
            now,
            actions,
        );
    }

    fn ended_unasked(&mut self, exit: Exit, now: Tick, actions: &mut Vec<Action>) {
        let did_well = exit == Exit::Status(0) && self.life.blocks > 0;
        if did_well {
            let text = "it ends after its answer; it is started anew for every request".to_owned();
            self.warn(WarningKind::EndsAfterAnswer, text, now, actions);
            self.failures_in_row = 0;
            self.set_health(Health::Running, actions);
            let next = self.life.since.plus_ms(self.settings.interval_ms);
            self.phase = Phase::Waiting { until: next.max(now) };
            return;
        }
        let when = if self.life.blocks == 0 {
            " before its first answer"
        } else {
            ""
        };
        self.fail(
            Health::Failing,
            WarningKind::Ended,
            format!("ended with {exit}{when}"),
            now,
            actions,
        );
        self.phase = Phase::Waiting {
            until: now.plus_ms(self.backoff_ms()),
        };
    }

    fn fail(&mut self, health: Health, kind: WarningKind, text: String, now: Tick, actions: &mut Vec<Action>) {
        self.failures_in_row = self.failures_in_row.saturating_add(1);
        self.last_error = Some(text.clone());
        self.warn(kind, text, now, actions);
        self.set_health(health, actions);
    }

    /// Doubles from the first pause with every failure in a row, up to the cap.
    fn backoff_ms(&self) -> u64 {
        let doublings = self.failures_in_row.saturating_sub(1).min(32);
        self.settings
            .backoff_first_ms
            .saturating_mul(1 << doublings)
            .min(self.settings.backoff_cap_ms)
    }

    /// Both are needed: some sensors know only `quit`, others only the end of their input.
    fn begin_stop(&mut self, then: FollowUp, now: Tick, actions: &mut Vec<Action>) {
        actions.push(Action::Write(Request::Quit));
        actions.push(Action::CloseStdin);
        self.phase = Phase::Stopping {
            step: Step::Quit,
            since: now,
            then,
        };
    }

    fn push_harder(&mut self, step: Step, since: Tick, then: FollowUp, now: Tick, actions: &mut Vec<Action>) {
        let (wait_ms, next, signal) = match step {
            Step::Quit => (self.settings.quit_wait_ms, Step::Terminate, Signal::Terminate),
            Step::Terminate => (self.settings.term_wait_ms, Step::Kill, Signal::Kill),
            Step::Kill => return,
        };
        if now.since_ms(since) < wait_ms {
            return;
        }
        if step == Step::Quit {
            let text = "it ignores `quit` and the end of its input; killed".to_owned();
            self.warn(WarningKind::IgnoredQuit, text, now, actions);
        }
        actions.push(Action::SignalGroup(signal));
        self.phase = Phase::Stopping {
            step: next,
            since: now,
            then,
        };
    }

    fn finish_output(&mut self, now: Tick) -> Vec<Action> {
        let mut heard = Vec::new();
        self.reader.finish(|item| heard.push(item));
        let actions = self.digest(heard, now);
        if let Some(line) = self.stderr.finish() {
            self.keep_stderr(line.text);
        }
        actions
    }

    fn end(&mut self, actions: &mut Vec<Action>) {
        self.phase = Phase::Ended;
        self.set_health(Health::Stopped, actions);
        actions.push(Action::Ended);
    }
}
