//! How a sensor fares, for people.

use proto::time::Tick;

/// The state of a sensor in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Health {
    /// It has not answered yet.
    Starting,
    /// It answers.
    Running,
    /// It ends, or cannot be started, again and again; starts are spaced out.
    Failing,
    /// It did not answer before its deadline.
    TimedOut,
    /// It answers, but its output stays in a buffer until it ends.
    BufferingSuspected,
    /// It was ended because it is no longer wanted.
    Stopped,
}

impl Health {
    /// The state as commands and metrics print it.
    pub fn as_str(self) -> &'static str {
        match self {
            Health::Starting => "starting",
            Health::Running => "running",
            Health::Failing => "failing",
            Health::TimedOut => "timed out",
            Health::BufferingSuspected => "buffering suspected",
            Health::Stopped => "stopped",
        }
    }
}

impl std::fmt::Display for Health {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// Everything that the admin command and the metrics show about a sensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The state.
    pub health: Health,
    /// Why it last failed; kept when it recovers.
    pub last_error: Option<String>,
    /// Milliseconds since the newest complete block; `None` before the first.
    pub value_age_ms: Option<u64>,
    /// How many values it contributes now.
    pub values: usize,
    /// Starts after the first.
    pub restarts: u32,
    /// Failures since it last did well.
    pub failures_in_row: u32,
    /// Milliseconds between requests.
    pub interval_ms: u64,
    /// Milliseconds that an answer may take.
    pub deadline_ms: u64,
    /// Milliseconds after which values are withdrawn.
    pub age_limit_ms: u64,
    /// When it will be started, where it is not running.
    pub next_start: Option<Tick>,
    /// The last lines of its standard error, oldest first.
    pub stderr: Vec<String>,
}
