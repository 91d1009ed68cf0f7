use super::*;
use crate::effect::LoadLimits;
use proto::id::AttributeName;
use proto::load::{SensorStatus, ValueFaults};
use proto::usage::Usage;
use proto::wire::agent::AgentMessage;
use std::collections::BTreeMap;

fn value(cell: &Cell, subject: &str, name: &str) -> Option<String> {
    cell.core
        .observations()
        .load
        .get(subject)?
        .named(name)
        .map(|entry| entry.text.clone())
}

#[test]
fn load_reports_are_believed_in_order_and_withdrawn_by_who_made_them() {
    let mut cell = Cell::ready();
    load(&mut cell, "h1", 2, false, &[("h1", "load_avg", "0.1")]);
    assert_eq!(
        value(&cell, "h1", "load_avg"),
        None,
        "the first report of a connection is full"
    );
    load(
        &mut cell,
        "h1",
        3,
        true,
        &[
            ("h1", "load_avg", "0.5"),
            ("global", "lic", "4"),
            ("h9", "load_avg", "9"),
        ],
    );
    load(&mut cell, "h1", 2, true, &[("h1", "load_avg", "0.2")]);
    assert_eq!(value(&cell, "h1", "load_avg").as_deref(), Some("0.5"));
    assert_eq!(value(&cell, "h9", "load_avg"), None, "h9 is no host of the cell");
    let take_back = |sequence| LoadReport {
        sequence,
        full: sequence == 1,
        withdrawn: [(HostName::global(), vec![AttributeName::from("lic")])].into(),
        ..LoadReport::default()
    };
    send(&mut cell, "h2", take_back(1));
    assert_eq!(
        value(&cell, "global", "lic").as_deref(),
        Some("4"),
        "h2 did not report it"
    );
    send(&mut cell, "h1", take_back(4));
    assert_eq!(value(&cell, "global", "lic"), None);
    load(&mut cell, "h1", 5, true, &[("h1", "cpu", "1")]);
    assert_eq!(
        value(&cell, "h1", "load_avg"),
        None,
        "a full report replaces everything"
    );
}

#[test]
fn use_of_running_tasks_is_observed_until_they_end() {
    let mut cell = Cell::ready();
    let number = cell.submit(job());
    let key = cell.run(number, 1, "h1");
    let connection = cell.connection("h1");
    let usage = Usage {
        cpu_ms: 5,
        ..Usage::default()
    };
    let message = Box::new(AgentMessage::Usage(vec![(key, usage)]));
    cell.input(Input::AgentMessage { connection, message });
    assert_eq!(cell.core.observations().usage[&key], usage);
    cell.exit(key, "h1", 0);
    assert!(cell.core.observations().usage.is_empty());
}

#[test]
fn news_over_a_connection_that_was_replaced_is_dropped() {
    let mut cell = Cell::new();
    let old = cell.connect("h1");
    cell.connect("h1");
    let report = LoadReport {
        sequence: 1,
        full: true,
        ..LoadReport::default()
    };
    cell.input(Input::LoadReport {
        connection: old,
        report: Box::new(report),
    });
    assert!(cell.effects.is_empty());
    cell.input(Input::AgentLost {
        connection: ConnectionId(99),
    });
    assert!(cell.effects.is_empty());
}

#[test]
fn load_values_beyond_the_limit_are_refused_singly_and_told_once() {
    let mut cell = Cell::ready();
    let host = HostName::new("h1");
    let limit = LoadLimits::default();
    let many = |range: std::ops::Range<usize>| -> BTreeMap<_, _> {
        range
            .map(|number| (AttributeName::from(format!("v{number:05}")), "1".to_owned()))
            .collect()
    };
    let report = |sequence, full, values| LoadReport {
        sequence,
        full,
        values: [(HostName::new("h1"), values)].into(),
        ..LoadReport::default()
    };
    let warnings = |cell: &mut Cell, report| {
        send(cell, "h1", report);
        cell.effects
            .iter()
            .filter(|effect| matches!(effect, Effect::Warn(_)))
            .count()
    };
    assert_eq!(warnings(&mut cell, report(2, true, many(0..limit.values + 5))), 1);
    assert_eq!(cell.core.observations().reported_values(&host), limit.values);
    assert_eq!(cell.core.observations().hosts[&host].refused, 5);
    let known = [("v00000".into(), "2".to_owned())];
    let new = [("w".into(), "1".to_owned()), ("x".into(), "1".to_owned())];
    assert_eq!(
        warnings(&mut cell, report(3, false, known.into_iter().chain(new).collect())),
        0
    );
    assert_eq!(cell.core.observations().load[&host].named("v00000").unwrap().text, "2");
    assert_eq!(cell.core.observations().hosts[&host].refused, 2);
    let long = [
        ("long".into(), "x".repeat(limit.bytes + 1)),
        ("short".into(), "1".to_owned()),
    ];
    assert_eq!(warnings(&mut cell, report(4, true, long.into())), 0);
    assert_eq!(cell.core.observations().reported_values(&host), 1);
    assert_eq!(warnings(&mut cell, report(5, true, many(0..9))), 0);
    assert_eq!(cell.core.observations().hosts[&host].refused, 0);
}

#[test]
fn values_of_a_sensor_for_hosts_that_the_cell_does_not_have_are_counted_and_told_once() {
    let mut cell = Cell::ready();
    let connection = cell.connection("h1");
    let warnings = |cell: &mut Cell, count: u64| {
        let other_hosts = [("other".into(), count), ("h2".into(), 1)].into();
        let faults = ValueFaults {
            count: 1,
            examples: vec!["slow: no INT".to_owned()],
            other_hosts,
        };
        let sensor = SensorStatus {
            command: "/s".to_owned(),
            faults,
            ..SensorStatus::default()
        };
        let message = Box::new(AgentMessage::Sensors(vec![sensor]));
        cell.input(Input::AgentMessage { connection, message });
        cell.effects
            .iter()
            .filter(|effect| matches!(effect, Effect::Warn(_)))
            .count()
    };
    assert_eq!(warnings(&mut cell, 2), 1);
    let known = &cell.core.observations().hosts["h1"].sensors[0].faults;
    assert_eq!(known.count, 3, "one of the wrong type, two for a stranger, none for h2");
    assert_eq!(
        known.examples[1],
        "values for host other: it is no execution host of the cell"
    );
    assert_eq!(warnings(&mut cell, 3), 0, "it is in the log already");
}
