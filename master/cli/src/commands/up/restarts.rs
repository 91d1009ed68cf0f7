//! How often a foreground `up` starts a daemon again, and what it says about that.

use crate::daemons::Daemon;
use std::time::{Duration, Instant};

/// The least time between two starts of one daemon.
const PAUSE: Duration = Duration::from_secs(1);

/// How long the same message about one daemon is not repeated.
const QUIET: Duration = Duration::from_secs(600);

/// What is remembered of the starts of each daemon.
#[derive(Debug, Default)]
pub struct Restarts {
    started: Vec<(Daemon, Instant)>,
    messages: Vec<(Daemon, String, Instant)>,
}

impl Restarts {
    /// Notes that a start of a daemon was tried, whether it succeeded or not.
    pub fn note_start(&mut self, daemon: Daemon, now: Instant) {
        self.started.retain(|(noted, _)| *noted != daemon);
        self.started.push((daemon, now));
    }

    /// Whether a start of a daemon was noted: another command started it otherwise.
    pub fn has_start(&self, daemon: Daemon) -> bool {
        self.started.iter().any(|(noted, _)| *noted == daemon)
    }

    /// Whether a daemon may be started now: its last start is long enough ago.
    pub fn is_due(&self, daemon: Daemon, now: Instant) -> bool {
        self.started
            .iter()
            .all(|(noted, at)| *noted != daemon || now >= *at + PAUSE)
    }

    /// Whether a message about a daemon has to be said: one that fails in the same way again and
    /// again says it once.
    pub fn is_news(&mut self, daemon: Daemon, text: &str, now: Instant) -> bool {
        self.messages.retain(|(_, _, at)| now < *at + QUIET);
        if self
            .messages
            .iter()
            .any(|(noted, said, _)| *noted == daemon && said == text)
        {
            return false;
        }
        self.messages.push((daemon, text.to_owned(), now));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_is_started_at_most_once_a_second_and_delays_no_other() {
        let (mut restarts, now) = (Restarts::default(), Instant::now());
        assert!(restarts.is_due(Daemon::Agent, now) && !restarts.has_start(Daemon::Agent));
        restarts.note_start(Daemon::Agent, now);
        let due = |restarts: &Restarts, daemon, ms| restarts.is_due(daemon, now + Duration::from_millis(ms));
        assert!(!due(&restarts, Daemon::Agent, 999) && due(&restarts, Daemon::Agent, 1000));
        assert!(due(&restarts, Daemon::Master, 0));
        restarts.note_start(Daemon::Agent, now + PAUSE);
        assert!(!due(&restarts, Daemon::Agent, 1500));
    }

    #[test]
    fn what_happens_again_and_again_is_said_once() {
        let (mut restarts, now) = (Restarts::default(), Instant::now());
        assert!(restarts.is_news(Daemon::Agent, "it ended", now));
        assert!(!restarts.is_news(Daemon::Agent, "it ended", now + PAUSE));
        assert!(
            restarts.is_news(Daemon::Agent, "it was killed", now) && restarts.is_news(Daemon::Master, "it ended", now)
        );
        assert!(restarts.is_news(Daemon::Agent, "it ended", now + QUIET));
    }
}
