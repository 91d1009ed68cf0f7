//! The life of one load sensor: what to do when, and how it fares (sensors/README.md "What the
//! agent does with a sensor").
//!
//! Time is an argument: milliseconds of any clock that never runs backwards.

mod actions;
mod life;
mod status;

pub use actions::{Action, Exit, Request, Signal};
pub use status::{Health, Status};

use crate::host::SelfNames;
use crate::protocol::assembler::Assembler;
use crate::protocol::reader::{Block, Limits, ProtocolItem, Reader};
use crate::protocol::warning::{Gate, WarningKind};
use life::{FollowUp, Phase, Step};
use proto::time::Tick;
use std::collections::VecDeque;
use std::sync::Arc;

/// Whether the machine says what it made of every single line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trace {
    /// It does not; what the agent uses.
    #[default]
    Off,
    /// [`Action::Line`] for every line; what `gridwright sensor check` uses.
    Lines,
}

/// The times and limits of one sensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Milliseconds between two requests; 40,000, the default of `load_report_time`.
    pub interval_ms: u64,
    /// Milliseconds from a request to the end of its answer, after which the sensor is ended and
    /// started again; 60,000.
    pub deadline_ms: u64,
    /// Milliseconds after which values are withdrawn; `None` is max(3 intervals, deadline +
    /// interval).
    pub age_limit_ms: Option<u64>,
    /// Milliseconds before the first restart after a failure; 1,000. Each further failure in a row
    /// doubles it.
    pub backoff_first_ms: u64,
    /// The longest such pause in milliseconds; 300,000.
    pub backoff_cap_ms: u64,
    /// Milliseconds that a report waits for an answer; 1,000.
    pub fresh_wait_ms: u64,
    /// Milliseconds from `quit` to SIGTERM; 10,000.
    pub quit_wait_ms: u64,
    /// Milliseconds from SIGTERM to SIGKILL; 2,000.
    pub term_wait_ms: u64,
    /// Milliseconds before a warning of one kind is repeated; 3,600,000.
    pub warn_pause_ms: u64,
    /// How much output is kept.
    pub limits: Limits,
    /// Whether every line is reported.
    pub trace: Trace,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            interval_ms: 40_000,
            deadline_ms: 60_000,
            age_limit_ms: None,
            backoff_first_ms: 1_000,
            backoff_cap_ms: 300_000,
            fresh_wait_ms: 1_000,
            quit_wait_ms: 10_000,
            term_wait_ms: 2_000,
            warn_pause_ms: 3_600_000,
            limits: Limits::default(),
            trace: Trace::Off,
        }
    }
}

impl Settings {
    /// The age in milliseconds at which a value is withdrawn.
    pub fn age_limit_ms(&self) -> u64 {
        let three_intervals = self.interval_ms.saturating_mul(3);
        self.age_limit_ms
            .unwrap_or_else(|| three_intervals.max(self.deadline_ms.saturating_add(self.interval_ms)))
    }
}

/// What of a sensor's values may go into a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreshBlock {
    /// The newest complete block.
    pub block: Arc<Block>,
    /// Its age in milliseconds, below the age limit.
    pub age_ms: u64,
    /// When its values were taken at the earliest, in milliseconds before now: the sensor was asked
    /// for them then.
    pub sampled_ago_ms: u64,
}

/// The newest block of a sensor.
#[derive(Debug)]
struct LastBlock {
    complete: Tick,
    /// When the sensor was asked for it; when it came, if nobody had asked.
    requested_at: Tick,
    block: Arc<Block>,
}

/// One load sensor, without its process. A driver runs the process, reports what happens to it, and
/// performs the actions that come back. The methods are of four kinds:
///
/// - What happened: [`Machine::started`], [`Machine::start_failed`], [`Machine::bytes`],
///   [`Machine::stderr`], [`Machine::eof`], [`Machine::exited`]. Each returns actions.
/// - What is wanted: [`Machine::request`] just before a report, [`Machine::restart`] when the file
///   has changed, [`Machine::stop`] at the end. Each returns actions.
/// - Time: [`Machine::tick`], at [`Machine::next_timer`] at the latest. It may come earlier and
///   more often.
/// - Questions: [`Machine::values_for_report`], [`Machine::wait_until`], [`Machine::pause_until`],
///   [`Machine::status`]. They change nothing.
///
/// The driver performs the actions of one call, in their order, before the next call, and asks for
/// [`Machine::next_timer`] again afterwards. It passes `now` from a clock that never runs
/// backwards. It reports the end of a process once, after all output that it has read. While
/// [`Machine::pause_until`] names a time it leaves standard output in the pipe; standard error it
/// always reads.
///
/// What must not be done: write to the sensor, signal it or start it without an action; or use a
/// block that was read earlier instead of [`Machine::values_for_report`], which withdraws values
/// that are too old.
///
/// Invariants: at most one request is unanswered; memory stays within [`Limits`] whatever the
/// sensor does; every phase but the last ends by itself, at [`Machine::next_timer`] at the latest,
/// provided that a process that was killed ends.
#[derive(Debug)]
pub struct Machine {
    settings: Settings,
    names: SelfNames,
    phase: Phase,
    reader: Reader,
    stderr: Assembler,
    stderr_kept: VecDeque<String>,
    gate: Gate,
    health: Health,
    last_error: Option<String>,
    last_block: Option<LastBlock>,
    /// Starts of the process so far.
    starts: u32,
    /// Failures since the sensor last did well; the exponent of the back-off.
    failures_in_row: u32,
    life: life::Life,
    pace: life::Pace,
}

impl Machine {
    /// A sensor that starts at the first [`Machine::tick`].
    pub fn new(settings: Settings, names: SelfNames, now: Tick) -> Self {
        let limits = settings.limits;
        Self {
            reader: Reader::new(limits, names.clone()),
            names,
            phase: Phase::Waiting { until: now },
            stderr: Assembler::new(limits.stderr_line_bytes),
            stderr_kept: VecDeque::new(),
            gate: Gate::new(settings.warn_pause_ms),
            health: Health::Starting,
            last_error: None,
            last_block: None,
            starts: 0,
            failures_in_row: 0,
            life: life::Life::new(now),
            pace: life::Pace::new(now),
            settings,
        }
    }

    /// The sensor's times and limits.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Asks for values just before a report, where the sensor is idle and its interval is over.
    ///
    /// An interval counts as over a tenth early, so that reports and requests of equal interval
    /// stay together.
    pub fn request(&mut self, now: Tick) -> Vec<Action> {
        let is_idle = matches!(self.phase, Phase::Running) && self.life.requested_at.is_none();
        let since_ms = self.life.last_request_at.map(|last| now.since_ms(last));
        let interval_ms = self.settings.interval_ms;
        let is_due = since_ms.is_none_or(|since_ms| since_ms >= interval_ms - interval_ms / 10);
        if is_idle && is_due {
            vec![self.ask(now)]
        } else {
            Vec::new()
        }
    }

    /// Until when a report should wait for this sensor: a second after the request, while the
    /// answer is not there. `None`: do not wait, the last block is used until it ages out.
    pub fn wait_until(&self, now: Tick) -> Option<Tick> {
        let until = self.life.requested_at?.plus_ms(self.settings.fresh_wait_ms);
        (matches!(self.phase, Phase::Running) && now < until).then_some(until)
    }

    /// The newest complete block, unless it has reached its age limit or the sensor was ended for
    /// good.
    pub fn values_for_report(&self, now: Tick) -> Option<FreshBlock> {
        let last = self.last_block.as_ref()?;
        let (age_ms, sampled_ago_ms) = (now.since_ms(last.complete), now.since_ms(last.requested_at));
        let counts = age_ms < self.settings.age_limit_ms() && !self.is_ended();
        counts.then(|| FreshBlock {
            block: last.block.clone(),
            age_ms,
            sampled_ago_ms,
        })
    }

    /// Takes bytes of the sensor's standard output.
    pub fn bytes(&mut self, bytes: &[u8], now: Tick) -> Vec<Action> {
        self.life.bytes = self.life.bytes.saturating_add(bytes.len() as u64);
        let mut heard = Vec::new();
        self.reader.feed(bytes, |item| heard.push(item));
        let mut actions = self.digest(heard, now);
        if self
            .pace
            .count_bytes(bytes.len(), self.settings.limits.bytes_per_10s, now)
        {
            self.warn(
                WarningKind::TooFast,
                "output comes too fast; reading pauses".to_owned(),
                now,
                &mut actions,
            );
        }
        actions
    }

    /// Until when the driver should leave further output in the pipe, because too much came;
    /// `None`: read on.
    pub fn pause_until(&self, now: Tick) -> Option<Tick> {
        self.pace.pause_until(self.settings.limits.bytes_per_10s, now)
    }

    /// Takes bytes of the sensor's standard error, which must always be read: a full pipe would
    /// stop the sensor.
    pub fn stderr(&mut self, bytes: &[u8], now: Tick) -> Vec<Action> {
        let mut lines = Vec::new();
        self.stderr.push(bytes, |line| lines.push(line.text));
        let mut actions = Vec::new();
        for line in lines {
            if self.pace.admit_stderr(now) {
                actions.push(Action::Stderr(line.clone()));
            }
            self.keep_stderr(line);
        }
        actions
    }

    /// What is known about the sensor, for the admin command and the metrics.
    pub fn status(&self, now: Tick) -> Status {
        Status {
            health: self.health,
            last_error: self.last_error.clone(),
            value_age_ms: self.last_block.as_ref().map(|last| now.since_ms(last.complete)),
            values: self
                .values_for_report(now)
                .map_or(0, |fresh| fresh.block.values().len()),
            restarts: self.starts.saturating_sub(1),
            failures_in_row: self.failures_in_row,
            interval_ms: self.settings.interval_ms,
            deadline_ms: self.settings.deadline_ms,
            age_limit_ms: self.settings.age_limit_ms(),
            next_start: match self.phase {
                Phase::Waiting { until } => Some(until),
                Phase::Starting { .. }
                | Phase::Running
                | Phase::Closed { .. }
                | Phase::Stopping { .. }
                | Phase::Ended => None,
            },
            stderr: self.stderr_kept.iter().cloned().collect(),
        }
    }

    fn ask(&mut self, now: Tick) -> Action {
        self.life.requested_at = Some(now);
        self.life.last_request_at = Some(now);
        self.reader.request_sent();
        Action::Write(Request::Collect)
    }

    fn digest(&mut self, heard: Vec<ProtocolItem>, now: Tick) -> Vec<Action> {
        let mut actions = Vec::new();
        for item in heard {
            match item {
                ProtocolItem::Line(line, meaning) => {
                    if self.settings.trace == Trace::Lines {
                        actions.push(Action::Line {
                            text: line.text,
                            meaning,
                        });
                    }
                }
                ProtocolItem::Warning(kind, text) => self.warn(kind, text, now, &mut actions),
                ProtocolItem::Block(block) => self.take_block(block, now, &mut actions),
            }
        }
        actions
    }

    fn take_block(&mut self, block: Block, now: Tick, actions: &mut Vec<Action>) {
        let requested_at = self.life.requested_at.take().unwrap_or(now);
        self.life.blocks = self.life.blocks.saturating_add(1);
        let block = Arc::new(block);
        self.last_block = Some(LastBlock {
            complete: now,
            requested_at,
            block: block.clone(),
        });
        if self.pace.admit_block(self.settings.limits.blocks_per_10s, now) {
            actions.push(Action::Block(block));
        } else {
            let text = "blocks come too fast; only the newest counts".to_owned();
            self.warn(WarningKind::TooFast, text, now, actions);
        }
        self.judge_block(now, actions);
    }

    /// What a complete block says about the sensor's health.
    fn judge_block(&mut self, now: Tick, actions: &mut Vec<Action>) {
        let came_only_at_the_end = self.life.timed_out && self.life.blocks == 1;
        if came_only_at_the_end {
            let text =
                "an answer came only when the sensor ended: it does not flush its output (stdbuf -oL, $|=1, python -u)";
            self.warn(WarningKind::Buffering, text.to_owned(), now, actions);
            self.set_health(Health::BufferingSuspected, actions);
        } else if matches!(self.phase, Phase::Running) {
            // One answer may be followed by a crash; the second shows that the sensor stays alive
            // between requests.
            if self.life.blocks > 1 {
                self.failures_in_row = 0;
            }
            self.set_health(Health::Running, actions);
        }
    }

    fn keep_stderr(&mut self, line: String) {
        if self.stderr_kept.len() >= self.settings.limits.stderr_lines {
            self.stderr_kept.pop_front();
        }
        self.stderr_kept.push_back(line);
    }

    fn warn(&mut self, kind: WarningKind, text: String, now: Tick, actions: &mut Vec<Action>) {
        actions.extend(self.gate.admit(kind, text, now).map(Action::Warn));
    }

    fn set_health(&mut self, health: Health, actions: &mut Vec<Action>) {
        if self.health != health {
            actions.push(Action::Health {
                from: self.health,
                to: health,
            });
            self.health = health;
        }
    }

    fn is_ended(&self) -> bool {
        match self.phase {
            Phase::Ended
            | Phase::Stopping {
                then: FollowUp::End, ..
            }
            | Phase::Starting {
                then: Some(FollowUp::End),
            } => true,
            Phase::Waiting { .. }
            | Phase::Starting { .. }
            | Phase::Running
            | Phase::Closed { .. }
            | Phase::Stopping {
                step: Step::Quit | Step::Terminate | Step::Kill,
                ..
            } => false,
        }
    }
}

#[cfg(test)]
mod interactions;
#[cfg(test)]
mod tests;
