//! What `MONITOR=1` in `params` of the scheduler configuration asks for: entries of the file
//! `schedule`, which the reader thread writes.
//!
//! 8.1.9 writes one for each pass. Passes here come as often as something happens, so what was
//! started is gathered, and an entry is made after the first pass that is due for one: at most one
//! a second, and of large cells as seldom as keeps the work small.

use master_core::sched::model::Model;
use master_core::sched::report::schedule_file::ScheduleEntry;
use proto::time::Now;
use proto::wire::stream::Order;
use std::time::Duration;
use tokio::time::Instant;

/// The least time between two entries.
const PAUSE_MIN: Duration = Duration::from_secs(1);

/// What part of the time may go into entries: one in so many.
const SHARE: u32 = 20;

/// The entry in the making.
#[derive(Debug, Default)]
pub(super) struct Monitor {
    entry: ScheduleEntry,
    /// When the next one may be made; at once if none was.
    after: Option<Instant>,
    /// Whether passes were made since the last one.
    is_owed: bool,
}

impl Monitor {
    /// Notes what a slice has just planned to start.
    pub(super) fn planned(&mut self, model: &Model, orders: &[Order], now: Now) {
        self.entry.start(model, orders, now);
    }

    /// A pass is over: the entry, if one is due and there is `room` for it.
    pub(super) fn over(&mut self, model: &Model, now: Now, has_room: bool) -> Option<String> {
        let began = Instant::now();
        self.is_owed = true;
        if !has_room || self.after.is_some_and(|after| began < after) {
            return None;
        }
        let text = self.entry.finish(model, now);
        self.after = Some(Instant::now() + (began.elapsed() * SHARE).max(PAUSE_MIN));
        self.is_owed = false;
        Some(text)
    }

    /// When the next pass is wanted at the latest, so that what was started is told soon; none if
    /// all is told.
    pub(super) fn due(&self) -> Option<Instant> {
        self.after.filter(|_| self.is_owed)
    }

    /// Nobody wants entries any more.
    pub(super) fn stop(&mut self) {
        *self = Monitor::default();
    }
}
