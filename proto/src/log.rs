//! What all daemons' log lines have in common: how many there may be, what a line may hold, and
//! which ones are wanted.

use crate::diagnostic::{Code, Diagnostic};
use std::borrow::Cow;
use std::fmt::Write;

/// The environment variable that says which lines the daemons log.
pub const VARIABLE: &str = "GRIDWRIGHT_LOG";

/// Help text about [`VARIABLE`], for each daemon.
pub const VARIABLE_HELP: &str = "\
environment:
  GRIDWRIGHT_LOG   which lines are logged: off, error, warn, info (the default), debug or trace;
                   MODULE=LEVEL for one part of the program; several separated by commas
";

/// The levels of log lines, from none to all.
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// Refuses a value of [`VARIABLE`] that names no level. Such a value would switch all lines off
/// without a word.
///
/// # Errors
/// The part that is wrong, and what can be written instead.
pub fn check_filter(text: &str) -> Result<(), Diagnostic> {
    for part in text.split(',') {
        let (module, level) = part
            .split_once('=')
            .map_or(("all", part), |(module, level)| (module.trim(), level));
        let is_module = !module.is_empty()
            && module
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_:".contains(&byte));
        let is_level = LEVELS.iter().any(|known| known.eq_ignore_ascii_case(level.trim()));
        if !is_module || !is_level {
            let what = format!("error: {VARIABLE}={} is not understood", escaped(text));
            return Err(Diagnostic::new(Code::BadValue, what)
                .at(format!("environment variable {VARIABLE}"))
                .why(format!("\"{}\" is neither a level nor MODULE=LEVEL", escaped(part)))
                .fix(format!("unset it, or write one of {}", LEVELS.join(", "))));
        }
    }
    Ok(())
}

/// A text in which no control character is left, so that it stays in its line and moves no cursor.
///
/// Line breaks become `\n`, tabs `\t`, other control characters `\u{..}`. Characters that turn the
/// direction of a text are control characters here too.
pub fn escaped(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_control) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        if is_control(character) {
            // Writing to a String cannot fail.
            let _ = match character {
                '\n' | '\r' | '\t' => write!(shown, "{}", character.escape_default()),
                other => write!(shown, "{}", other.escape_unicode()),
            };
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}

fn is_control(character: char) -> bool {
    character.is_control() || matches!(character, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Bounds the lines of one kind: `burst` at once, then `per_s` each second. Others are counted.
#[derive(Clone, Debug)]
pub struct Limiter {
    burst: u64,
    per_s: u64,
    /// Lines that may be written now, in thousandths.
    credit: u64,
    refilled_ms: u64,
    suppressed: u64,
}

impl Limiter {
    /// A limiter with its whole burst left. Both numbers are lines.
    pub fn new(burst: u32, per_s: u32) -> Self {
        let (burst, per_s) = (u64::from(burst), u64::from(per_s));
        Self {
            burst,
            per_s,
            credit: burst * 1_000,
            refilled_ms: 0,
            suppressed: 0,
        }
    }

    /// Returns how many lines were left out since the last one that was written; `None` if this one
    /// is left out too.
    ///
    /// `now_ms` comes from a clock that never goes back.
    pub fn admit(&mut self, now_ms: u64) -> Option<u64> {
        let passed = now_ms.saturating_sub(self.refilled_ms);
        self.refilled_ms = self.refilled_ms.max(now_ms);
        self.credit = self
            .credit
            .saturating_add(passed.saturating_mul(self.per_s))
            .min(self.burst * 1_000);
        match self.credit.checked_sub(1_000) {
            Some(left) => {
                self.credit = left;
                Some(std::mem::take(&mut self.suppressed))
            }
            None => {
                self.suppressed += 1;
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_beyond_the_burst_are_counted_and_told_with_the_next_one() {
        let mut limiter = Limiter::new(10, 10);
        assert_eq!((0..15).filter(|_| limiter.admit(5).is_some()).count(), 10);
        assert_eq!(limiter.admit(104), None);
        assert_eq!(limiter.admit(105), Some(6));
        assert_eq!(limiter.admit(100_000), Some(0));
        assert_eq!((0..20).filter(|_| limiter.admit(100_000).is_some()).count(), 9);
    }

    #[test]
    fn a_clock_that_stands_still_or_goes_back_gives_no_credit() {
        let mut limiter = Limiter::new(1, 1);
        assert_eq!(limiter.admit(5_000), Some(0));
        assert_eq!(limiter.admit(1_000), None);
        assert_eq!(limiter.admit(5_999), None);
        assert_eq!(limiter.admit(6_000), Some(2));
    }

    #[test]
    fn no_control_character_is_left_in_a_line() {
        assert!(matches!(escaped("plain text, ö and \\n"), Cow::Borrowed(_)));
        assert_eq!(escaped("x@y\nforged line\r\t"), "x@y\\nforged line\\r\\t");
        assert_eq!(
            escaped("\u{1b}[31m\u{7}\u{9b}\u{202e}"),
            "\\u{1b}[31m\\u{7}\\u{9b}\\u{202e}"
        );
    }

    #[test]
    fn a_filter_names_levels_or_modules_with_levels() {
        for good in [
            "info",
            "DEBUG",
            "off",
            "warn,quic=debug",
            "gridwright_master::query=trace, info",
        ] {
            assert_eq!(check_filter(good.replace(", ", ",").as_str()), Ok(()), "{good}");
        }
        for bad in [
            "nonsense",
            "",
            "info,",
            "quic=",
            "=info",
            "quic=loud",
            "info;debug",
            "a\nb",
        ] {
            let refusal = check_filter(bad).unwrap_err();
            assert!(
                refusal.what.contains(VARIABLE) && !refusal.what.contains('\n'),
                "{bad}: {refusal}"
            );
        }
    }
}
