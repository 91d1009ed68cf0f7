//! How many trivial tasks go through one launcher. Measured and printed, never asserted.

use super::cell::{Cell, direct};
use proto::launch::Notice;
use std::time::Instant;

#[test]
fn many_trivial_tasks_all_end_once() {
    let count: usize = std::env::var("GRIDWRIGHT_TASKS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(200);
    let slots: usize = std::env::var("GRIDWRIGHT_SLOTS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(4);
    let mut cell = Cell::start();
    let begin = Instant::now();
    let mut running = Vec::new();
    for _ in 0..count {
        let mut document = cell.document(direct(&["/bin/true"]));
        document.streams.merge = true;
        document.streams.stdout.path = "/dev/null".into();
        running.push(cell.launch(document));
        if running.len() >= slots {
            cell.ended(running.remove(0));
            cell.heard
                .retain(|notice| matches!(notice, Notice::Ended(result) if running.contains(&result.key)));
        }
    }
    for key in running {
        cell.ended(key);
    }
    let elapsed = begin.elapsed();
    println!(
        "{count} tasks, {slots} slots: {:.0} per second",
        count as f64 / elapsed.as_secs_f64()
    );
    assert_eq!(cell.list().len(), count);
}
