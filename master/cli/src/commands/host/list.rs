//! `gridwright host list`.

use crate::args::CommandLine;
use crate::cell_address::CellAddress;
use crate::commands::Outcome;
use crate::commands::ask::{self, Format};
use crate::output::json;
use crate::output::time::Clock;
use crate::{exit, output};
use proto::id::HostName;
use proto::object::ObjectKind;
use proto::time::Wall;
use proto::wire::client::{HostFilter, Query, QueueFilter};
use serde::Serialize;
use std::collections::BTreeMap;

/// One line of the list: the facts about a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct HostRow {
    host: HostName,
    /// Whether its agent is connected to the master.
    connected: bool,
    /// The end of the certificate. `None` for a host that has not joined, or was revoked.
    certified_until: Option<Wall>,
    slots_used: u32,
    execution_host: bool,
    administrative_host: bool,
    submit_host: bool,
}

impl HostRow {
    /// A host of which nothing is known yet.
    fn of_host(host: HostName) -> Self {
        Self {
            host,
            connected: false,
            certified_until: None,
            slots_used: 0,
            execution_host: false,
            administrative_host: false,
            submit_host: false,
        }
    }
}

/// Prints the hosts, by name.
pub fn run(parsed: &CommandLine) -> Outcome {
    let format = Format::from_command_line(parsed)?;
    let mut client = ask::connect_at(&CellAddress::from_command_line(parsed), "gridwright host", format)?;
    let mut rows: BTreeMap<HostName, HostRow> = BTreeMap::new();
    for view in ask::hosts(&mut client, Query::Hosts(HostFilter::default()))? {
        let row = HostRow {
            connected: view.connected,
            certified_until: view.certified_until,
            execution_host: true,
            ..HostRow::of_host(view.host.clone())
        };
        rows.insert(view.host, row);
    }
    rows.retain(|host, _| !host.is_global());
    for kind in [ObjectKind::AdminHosts, ObjectKind::SubmitHosts] {
        for name in ask::names(&mut client, kind)? {
            let host = HostName::new(&name);
            let row = rows.entry(host.clone()).or_insert_with(|| HostRow::of_host(host));
            row.administrative_host |= kind == ObjectKind::AdminHosts;
            row.submit_host |= kind == ObjectKind::SubmitHosts;
        }
    }
    for queue in ask::queues(&mut client, QueueFilter::default())? {
        if let Some(row) = rows.get_mut(&queue.host) {
            row.slots_used += queue.used;
        }
    }
    let rows: Vec<HostRow> = rows.into_values().collect();
    match format {
        Format::Json => output::data(&json::JsonDocument::new().with("hosts", &rows).finish()),
        Format::Text | Format::Xml => output::data(&table(&rows, &Clock::local())),
    }
    Ok(exit::OK)
}

fn table(rows: &[HostRow], clock: &Clock) -> String {
    let width = rows
        .iter()
        .map(|row| row.host.as_str().len())
        .max()
        .unwrap_or_default()
        .max("HOST".len());
    let line = |row: &HostRow| {
        let until = row
            .certified_until
            .map_or_else(|| "-".to_owned(), |until| clock.slashes(until));
        let HostRow { host, slots_used, .. } = row;
        format!(
            "{:<width$}  {:<10}  {slots_used:>5}  {until:<19}  {}\n",
            host.as_str(),
            state(row),
            duties(row)
        )
    };
    let head = format!(
        "{:<width$}  {:<10}  {:>5}  {:<19}  {}\n",
        "HOST", "STATE", "SLOTS", "CERTIFIED UNTIL", "HOST FOR"
    );
    head + &rows.iter().map(line).collect::<String>()
}

fn state(row: &HostRow) -> &'static str {
    match (row.connected, row.certified_until) {
        (true, _) => "connected",
        (false, Some(_)) => "away",
        (false, None) => "not joined",
    }
}

fn duties(row: &HostRow) -> String {
    let duties = [
        (row.execution_host, "execution"),
        (row.administrative_host, "administration"),
        (row.submit_host, "submission"),
    ];
    let has: Vec<&str> = duties
        .into_iter()
        .filter(|(has, _)| *has)
        .map(|(_, duty)| duty)
        .collect();
    has.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::tz::TimeZone;

    #[test]
    fn hosts_are_a_table_with_what_they_are_hosts_for() {
        let node = HostRow {
            connected: true,
            certified_until: Some(Wall::from_seconds(60)),
            slots_used: 3,
            execution_host: true,
            submit_host: true,
            ..HostRow::of_host("node1".into())
        };
        let gone = HostRow {
            connected: false,
            host: "gone".into(),
            slots_used: 0,
            submit_host: false,
            ..node.clone()
        };
        let login = HostRow {
            administrative_host: true,
            ..HostRow::of_host("login".into())
        };
        let expected = "\
HOST   STATE       SLOTS  CERTIFIED UNTIL      HOST FOR
gone   away            0  01/01/1970 00:01:00  execution
login  not joined      0  -                    administration
node1  connected       3  01/01/1970 00:01:00  execution, submission
";
        assert_eq!(table(&[gone, login, node], &Clock::new(TimeZone::UTC)), expected);
    }
}
