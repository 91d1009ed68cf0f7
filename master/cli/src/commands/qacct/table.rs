//! Sums over records: in all, or for each combination of the columns that were asked for.

use crate::output::value::fraction;
use proto::accounting::AccountingRecord;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// What records are grouped by, in the order of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Column {
    /// `-h`.
    Host,
    /// `-q`.
    Queue,
    /// `-g`.
    Group,
    /// `-o`.
    Owner,
    /// `-P`.
    Project,
    /// `-D`.
    Department,
    /// `-A`.
    Account,
    /// `-slots`.
    Slots,
    /// `-pe`.
    Pe,
    /// `-ar`.
    Reservation,
}

impl Column {
    fn heading(self) -> &'static str {
        match self {
            Column::Host => "HOST",
            Column::Queue => "CLUSTER QUEUE",
            Column::Group => "GROUP",
            Column::Owner => "OWNER",
            Column::Project => "PROJECT",
            Column::Department => "DEPARTMENT",
            Column::Account => "ACCOUNT",
            Column::Slots => "SLOTS",
            Column::Pe => "PE",
            Column::Reservation => "AR",
        }
    }

    /// The value of a record.
    pub fn value(self, record: &AccountingRecord) -> String {
        let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "NONE".to_owned());
        match self {
            Column::Host => record.host.to_string(),
            Column::Queue => record.queue.to_string(),
            Column::Group => record.group.clone(),
            Column::Owner => record.owner.to_string(),
            Column::Project => or_none(&record.project),
            Column::Department => record.department.clone(),
            Column::Account => record.account.clone(),
            Column::Slots => record.slots.to_string(),
            Column::Pe => or_none(&record.granted_pe),
            Column::Reservation => record.reservation.map_or(0, |(id, _)| id.0).to_string(),
        }
    }
}

/// What records of one group used together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
struct Row {
    /// The values that the group has in common, by column, in order.
    group: Vec<String>,
    wallclock_ms: u64,
    utime_ms: u64,
    stime_ms: u64,
    cpu_ms: u64,
    mem_kib_ms: u64,
    io_bytes: u64,
    iow_ms: u64,
}

/// Sums that grow record by record: no record is kept.
pub struct Sums {
    columns: Vec<(Column, Option<String>)>,
    /// In the order of their values; the single one of everything where there are no columns.
    rows: BTreeMap<Vec<String>, Row>,
}

impl Sums {
    /// Sums for each combination of the values of these columns.
    pub fn new(columns: Vec<(Column, Option<String>)>) -> Self {
        let mut rows = BTreeMap::new();
        if columns.is_empty() {
            rows.insert(Vec::new(), Row::default());
        }
        Self { columns, rows }
    }

    /// Adds a record.
    pub fn add(&mut self, record: &AccountingRecord) {
        let group: Vec<String> = self.columns.iter().map(|(column, _)| column.value(record)).collect();
        let row = self.rows.entry(group.clone()).or_insert_with(|| Row { group, ..Row::default() });
        for (sum, part) in [
            // A second is what 8.1.9 counts wall clock in.
            (&mut row.wallclock_ms, record.wallclock_ms / 1000 * 1000),
            (&mut row.utime_ms, record.rusage.utime_ms),
            (&mut row.stime_ms, record.rusage.stime_ms),
            (&mut row.cpu_ms, record.usage.cpu_ms),
            (&mut row.mem_kib_ms, record.usage.mem_kib_ms),
            (&mut row.io_bytes, record.usage.io_bytes),
            (&mut row.iow_ms, record.usage.iow_ms),
        ] {
            *sum = sum.saturating_add(part);
        }
    }
}

/// The rows as JSON, each value of a group under the name of its column.
pub fn json(sums: Sums) -> Vec<Value> {
    let Sums { columns, rows } = sums;
    let named = |row: &Row| -> Map<String, Value> {
        let names = columns.iter().map(|(column, _)| column.heading().to_lowercase().replace(' ', "_"));
        names.zip(row.group.iter().cloned().map(Value::from)).collect()
    };
    let with_names = |row: Row| {
        let mut value = crate::output::json::value(&row);
        value["group"] = Value::Object(named(&row));
        value
    };
    rows.into_values().map(with_names).collect()
}

/// The table.
pub fn text(sums: Sums) -> String {
    let Sums { columns, rows } = sums;
    let rows: Vec<Row> = rows.into_values().collect();
    let widths: Vec<usize> = (0..columns.len()).map(|at| width(at, &columns, &rows)).collect();
    let mut text = String::new();
    if columns.is_empty() {
        text.push_str("Total System Usage\n");
    }
    for ((column, _), width) in columns.iter().zip(&widths) {
        let _ = write!(text, "{:<width$}", column.heading());
    }
    text.push_str(
        "    WALLCLOCK         UTIME         STIME           CPU             MEMORY                 IO                IOW\n",
    );
    let _ = writeln!(text, "{}", "=".repeat(widths.iter().sum::<usize>() + 112));
    for row in &rows {
        for (((column, _), width), value) in columns.iter().zip(&widths).zip(&row.group) {
            let _ = match column {
                Column::Slots => write!(text, "{value:>width$}"),
                Column::Reservation => write!(text, "{value:>left$} ", left = width - 1),
                _ => write!(text, "{value:<width$}"),
            };
        }
        numbers(&mut text, row);
    }
    text
}

fn numbers(text: &mut String, row: &Row) {
    let Row { group: _, wallclock_ms, utime_ms, stime_ms, cpu_ms, mem_kib_ms, io_bytes, iow_ms } = row;
    let seconds = |ms: &u64| fraction(i128::from(*ms), 1000, 3);
    let _ = write!(text, "{:>13}", wallclock_ms / 1000);
    for number in [utime_ms, stime_ms, cpu_ms].map(seconds) {
        let _ = write!(text, " {number:>13}");
    }
    let memory = fraction(i128::from(*mem_kib_ms), 1024 * 1024 * 1000, 3);
    let io = fraction(i128::from(*io_bytes), 1 << 30, 3);
    let _ = writeln!(text, " {memory:>18} {io:>18} {:>18}", seconds(iow_ms));
}

/// As wide as the longest of heading, values and pattern, and a blank; slots stand at the right and need none.
fn width(at: usize, columns: &[(Column, Option<String>)], rows: &[Row]) -> usize {
    let (column, pattern) = &columns[at];
    let values = rows.iter().filter_map(|row| row.group.get(at)).map(|value| value.chars().count());
    let given = pattern.as_ref().map_or(0, |pattern| pattern.chars().count());
    let widest = values.max().unwrap_or(0).max(given).max(column.heading().len());
    match column {
        Column::Slots => widest,
        // Five digits have room, as in 8.1.9.
        Column::Reservation => widest.max(5) + 1,
        _ => widest + 1,
    }
}
