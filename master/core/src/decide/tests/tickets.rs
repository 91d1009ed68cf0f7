//! Hosts hear what their running tasks are worth, and only when that has changed.

use super::cell::{Cell, job};
use crate::effect::Input;
use proto::id::TaskKey;
use proto::wire::agent::{MasterMessage, NiceRange};

/// A cell in which hosts share themselves out by tickets.
fn cell(params: &str) -> Cell {
    let mut cell = Cell::ready();
    cell.set_scheduler(&[("reprioritize_interval", "0:1:0")]);
    cell.set_cluster(&[("reprioritize", "1"), ("execd_params", params)]);
    cell
}

/// What each connected agent was told of tickets by the last input.
fn told(cell: &Cell) -> Vec<&[(TaskKey, i64)]> {
    let sent = cell.sent().into_iter();
    sent.filter_map(|message| {
        if let MasterMessage::Tickets(tickets) = message {
            Some(&tickets[..])
        } else {
            None
        }
    })
    .collect()
}

fn range(cell: &Cell) -> Option<NiceRange> {
    cell.core.agent_config(&"h1".into()).reprioritize
}

#[test]
fn agents_are_told_of_their_own_tasks_and_of_news_alone() {
    let mut cell = cell("none");
    let (first, second) = (cell.submit(job()), cell.submit(job()));
    let keys = [cell.run(first, 1, "h1"), cell.run(second, 1, "h2")];
    let tickets = |second: i64| Input::Tickets(vec![(keys[0], 3_000_000), (keys[1], second)]);
    cell.input(tickets(1_000_000));
    assert_eq!(told(&cell), [&[(keys[0], 3_000_000)], &[(keys[1], 1_000_000)]]);
    cell.input(tickets(1_000_000));
    assert_eq!(told(&cell), [&[]; 0]);
    cell.input(tickets(2_000_000));
    assert_eq!(told(&cell), [&[(keys[1], 2_000_000)]]);
    cell.connect_with("h1", 1, Vec::new());
    cell.exit(keys[1], "h2", 0);
    let before = cell.log.len();
    cell.input(Input::Tickets(Vec::new()));
    assert_eq!(
        told(&cell),
        [&[]],
        "h2 has none any more; h1 was told nothing on this connection"
    );
    assert_eq!(cell.log.len(), before, "it is soft");
}

#[test]
fn both_settings_switch_it_on() {
    let mut cell = Cell::ready();
    assert_eq!(range(&cell), None);
    cell.set_cluster(&[("reprioritize", "1")]);
    assert_eq!(range(&cell), None);
    cell.set_scheduler(&[("reprioritize_interval", "0:0:30")]);
    assert_eq!(
        range(&cell),
        Some(NiceRange {
            most_urgent: 0,
            least_urgent: 20
        })
    );
    cell.set_cluster(&[
        ("reprioritize", "1"),
        ("execd_params", "PTF_MAX_PRIORITY=-5 PTF_MIN_PRIORITY=10"),
    ]);
    assert_eq!(
        range(&cell),
        Some(NiceRange {
            most_urgent: -5,
            least_urgent: 10
        })
    );
    cell.set_cluster(&[("reprioritize", "0")]);
    let number = cell.submit(job());
    let key = cell.run(number, 1, "h1");
    cell.input(Input::Tickets(vec![(key, 1)]));
    assert_eq!(told(&cell), [&[]; 0]);
}
