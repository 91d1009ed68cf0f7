//! One event, one line: bounded for each place in the program, with no control character from
//! outside in it.

use proto::log::{Limiter, escaped};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use tracing::callsite::Identifier;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::{Format, Full, Writer};
use tracing_subscriber::fmt::time::SystemTime;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// Lines that one place in the program may write at once. A thousand hosts that come back together
/// are mostly told one by one.
const BURST: u32 = 500;

/// Further lines that one place may write per second: 86 MB a day at most, of which the files keep
/// less.
const PER_S: u32 = 10;

/// Writes events as lines.
pub struct Lines {
    inner: Format<Full, SystemTime>,
    since: Instant,
    limits: Mutex<HashMap<Identifier, Limiter>>,
}

impl Default for Lines {
    fn default() -> Self {
        let inner = Format::default().with_ansi(false).with_target(false);
        Self {
            inner,
            since: Instant::now(),
            limits: Mutex::default(),
        }
    }
}

impl Lines {
    /// Returns how many lines of that place were left out since the last one; `None` if this one is
    /// left out too.
    fn admit(&self, place: Identifier) -> Option<u64> {
        let now_ms = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        let mut limits = self.limits.lock().unwrap_or_else(PoisonError::into_inner);
        limits
            .entry(place)
            .or_insert_with(|| Limiter::new(BURST, PER_S))
            .admit(now_ms)
    }
}

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let about = event.metadata();
        // An administrator who asks for details gets all of them; the file has a bound all the
        // same.
        let is_detail = *about.level() > Level::INFO;
        let Some(suppressed) = (if is_detail {
            Some(0)
        } else {
            self.admit(about.callsite())
        }) else {
            return Ok(());
        };
        let mut text = String::new();
        self.inner.format_event(context, Writer::new(&mut text), event)?;
        writer.write_str(&escaped(text.trim_end_matches('\n')))?;
        if suppressed > 0 {
            write!(writer, " suppressed={suppressed}")?;
        }
        writer.write_char('\n')
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::sync::Arc;

    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The lines that `work` logs.
    fn logged(work: impl FnOnce()) -> Vec<String> {
        let log = Log::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .event_format(Lines::default())
            .with_writer(move || writer.clone())
            .finish();
        tracing::subscriber::with_default(subscriber, work);
        let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_value_from_outside_makes_no_line_of_its_own() {
        let address = "x@y\n2026-01-01T00:00:00Z  INFO forged\u{1b}[31m";
        let lines = logged(|| tracing::warn!(peer = address, "no mail to {address}"));
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(
            lines[0].contains("x@y\\n2026") && !lines[0].chars().any(char::is_control),
            "{lines:?}"
        );
    }

    #[test]
    fn a_place_that_a_peer_reaches_again_and_again_writes_few_lines_and_others_are_not_held_back() {
        let lines = logged(|| {
            for _ in 0..100_000 {
                tracing::info!("a connection was refused");
            }
            tracing::info!("the master ends");
        });
        assert!(lines.len() < 2_000, "{}", lines.len());
        assert!(lines.last().unwrap().ends_with("the master ends"));
    }
}
