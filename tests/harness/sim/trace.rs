//! The last things that happened, for the report of a failing seed.

use std::collections::VecDeque;
use std::fmt;

/// How many lines are kept.
const KEPT: usize = 40;
/// How much of a line is kept, in characters.
const WIDTH: usize = 300;

/// The last lines; nothing is made into text unless somebody wants it, because a thousand seeds
/// pass for each that fails.
#[derive(Debug, Default)]
pub(super) struct Trace {
    pub(super) wanted: bool,
    /// Print every line at once.
    pub(super) aloud: bool,
    lines: VecDeque<String>,
}

impl Trace {
    pub(super) fn note(&mut self, line: impl FnOnce() -> String) {
        if !self.wanted {
            return;
        }
        if self.lines.len() == KEPT {
            self.lines.pop_front();
        }
        let mut line = line();
        if !self.aloud {
            line.truncate(line.char_indices().nth(WIDTH).map_or(line.len(), |(at, _)| at));
        }
        if self.aloud {
            println!("{line}");
        }
        self.lines.push_back(line);
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines.iter().try_for_each(|line| writeln!(f, "  {line}"))
    }
}
