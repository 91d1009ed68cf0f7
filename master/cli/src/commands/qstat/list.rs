//! Plain `qstat`: a heading, then running, pending and finished tasks.

use super::options::Options;
use super::{requests, shown};
use crate::output::time::Clock;
use proto::wire::view::{JobRow, QueueView};

/// The whole text, running tasks in the `order` of these queue instances; empty if there is nothing
/// to show.
pub fn render(rows: &[JobRow], order: &[QueueView], options: &Options, clock: &Clock) -> String {
    let columns = options.columns;
    let mut lines = shown::listed(rows, columns.per_slot, order);
    lines.extend(shown::pending(rows, options.per_task));
    lines.extend(shown::finished(rows));
    if lines.is_empty() {
        return String::new();
    }
    let mut text = format!("{}\n{}\n", columns.heading(), columns.rule());
    for line in &lines {
        text.push_str(&columns.line(line, clock));
        text.push('\n');
        if columns.requests && !line.is_repeat {
            text.push_str(&requests::text(line, columns.binding));
        }
    }
    text
}
