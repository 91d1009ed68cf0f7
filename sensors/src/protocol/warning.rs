//! What the agent says about a sensor that strays, each kind once in a while and never in a flood.

use proto::time::Tick;
use std::collections::BTreeMap;

/// What a warning is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WarningKind {
    /// A line was not understood and ignored.
    NotUnderstood,
    /// A line was longer than allowed and ignored.
    LineTooLong,
    /// A value was empty: the attribute has no value in this block.
    EmptyValue,
    /// A host field was empty: the value was taken for this host.
    EmptyHost,
    /// Data came before `begin` and was dropped.
    DataBeforeBegin,
    /// A block had no `begin`; it counts.
    NoBegin,
    /// A block began before the one before it had ended; the first was dropped.
    UnfinishedBlock,
    /// `end` came with nothing before it and nothing asked for.
    StrayEnd,
    /// A block had more values or text than allowed; the rest of it was dropped.
    BlockTooLarge,
    /// Blocks or bytes came faster than allowed; reading pauses.
    TooFast,
    /// No complete block came before the deadline.
    NoAnswer,
    /// Output came only when the sensor ended, or in full buffers: it does not flush.
    Buffering,
    /// The sensor closed its output and went on living.
    ClosedOutput,
    /// The sensor ended unasked.
    Ended,
    /// The sensor ended well after its answer, instead of waiting for the next request.
    EndsAfterAnswer,
    /// The sensor could not be started.
    NotStarted,
    /// The sensor ignored `quit` and the end of its input and had to be killed.
    IgnoredQuit,
}

/// One warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// What it is about.
    pub kind: WarningKind,
    /// The particulars in one line, with the hint where there is one.
    pub text: String,
    /// How many warnings of this kind were held back since the last one that was given.
    pub held_back: u32,
}

/// Lets one warning of each kind through, and the next of that kind only after a while.
#[derive(Debug)]
pub(crate) struct Gate {
    pause_ms: u64,
    last: BTreeMap<WarningKind, (Tick, u32)>,
}

impl Gate {
    pub(crate) fn new(pause_ms: u64) -> Self {
        Self {
            pause_ms,
            last: BTreeMap::new(),
        }
    }

    pub(crate) fn admit(&mut self, kind: WarningKind, text: String, now: Tick) -> Option<Warning> {
        match self.last.get_mut(&kind) {
            Some((given, held_back)) if now.since_ms(*given) < self.pause_ms => {
                *held_back = held_back.saturating_add(1);
                None
            }
            earlier => {
                let held_back = earlier.map_or(0, |(_, held_back)| *held_back);
                self.last.insert(kind, (now, 0));
                Some(Warning { kind, text, held_back })
            }
        }
    }
}

/// The beginning of `text`, short enough for a log line.
pub(crate) fn excerpt(text: &str) -> String {
    const MOST: usize = 120;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_warning_of_a_kind_passes_and_the_others_are_counted() {
        let mut gate = Gate::new(1000);
        let mut admit = |kind, ms| {
            gate.admit(kind, String::new(), Tick(ms))
                .map(|warning| warning.held_back)
        };
        assert_eq!(admit(WarningKind::NotUnderstood, 0), Some(0));
        assert_eq!(admit(WarningKind::NotUnderstood, 500), None);
        assert_eq!(admit(WarningKind::EmptyValue, 500), Some(0));
        assert_eq!(admit(WarningKind::NotUnderstood, 999), None);
        assert_eq!(admit(WarningKind::NotUnderstood, 1000), Some(2));
    }
}
