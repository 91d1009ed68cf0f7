//! Sums over records: in all, or for each combination of the columns that were asked for.

use super::entry::{AccountingEntry, UsageAmounts};
use crate::output::value::fraction;
use proto::accounting::AccountingRecord;
use serde_json::{Map, Value, json};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
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
    /// `-pe`.
    Pe,
    /// `-slots`.
    Slots,
    /// `-ar`.
    Reservation,
    /// `-A`.
    Account,
}

/// Numbers stand at the right of so many columns.
const NUMBER_WIDTH: usize = 5;

impl Column {
    fn is_number(self) -> bool {
        matches!(self, Column::Slots | Column::Reservation)
    }

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
#[derive(Clone, Debug, Default)]
struct TableRow {
    /// The values that the group has in common, by column, in order.
    group: Vec<String>,
    used: UsageAmounts,
}

/// Where a row stands: by the values of its columns, numbers as numbers.
///
/// 8.1.9 does not sort accounts: of rows that are alike in all else, the one that came up last is
/// the first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SortKey {
    values: Vec<(u64, String)>,
    came_up: Reverse<usize>,
}

/// Sums that grow record by record: no record is kept.
pub struct Sums {
    columns: Vec<(Column, Option<String>)>,
    /// By the values of all columns.
    places: HashMap<Vec<String>, SortKey>,
    /// One of everything where there are no columns.
    rows: BTreeMap<SortKey, TableRow>,
}

impl Sums {
    /// Sums for each combination of the values of these columns.
    pub fn new(columns: Vec<(Column, Option<String>)>) -> Self {
        Self {
            columns,
            places: HashMap::new(),
            rows: BTreeMap::new(),
        }
    }

    /// Adds an entry.
    pub fn add(&mut self, AccountingEntry { record, used }: &AccountingEntry) {
        let group: Vec<String> = self.columns.iter().map(|(column, _)| column.value(record)).collect();
        let place = self.place(&group);
        let row = self.rows.entry(place).or_insert_with(|| TableRow {
            group,
            ..TableRow::default()
        });
        row.used.add(used);
    }

    fn place(&mut self, group: &[String]) -> SortKey {
        if let Some(place) = self.places.get(group) {
            return place.clone();
        }
        let sorted = self
            .columns
            .iter()
            .zip(group)
            .filter(|((column, _), _)| *column != Column::Account);
        let values = sorted.map(|((column, _), value)| match column.is_number() {
            true => (value.parse().unwrap_or(0), String::new()),
            false => (0, value.clone()),
        });
        let place = SortKey {
            values: values.collect(),
            came_up: Reverse(self.places.len()),
        };
        self.places.insert(group.to_vec(), place.clone());
        place
    }
}

/// The rows as JSON, each value of a group under the name of its column.
pub fn json(sums: Sums) -> Vec<Value> {
    let Sums {
        columns,
        places: _,
        rows,
    } = sums;
    let named = |row: &TableRow| -> Map<String, Value> {
        let names = columns
            .iter()
            .map(|(column, _)| column.heading().to_lowercase().replace(' ', "_"));
        names.zip(row.group.iter().cloned().map(Value::from)).collect()
    };
    let ms = |us: u64| us / 1000 + u64::from(us % 1000 >= 500);
    let value = |row: TableRow| {
        let UsageAmounts {
            wallclock_s,
            utime_us,
            stime_us,
            cpu_us,
            mem_kib_ms,
            io_bytes,
            iow_us,
        } = row.used;
        json!({
            "group": named(&row),
            "wallclock_ms": wallclock_s.saturating_mul(1000),
            "utime_ms": ms(utime_us),
            "stime_ms": ms(stime_us),
            "cpu_ms": ms(cpu_us),
            "mem_kib_ms": mem_kib_ms,
            "io_bytes": io_bytes,
            "iow_ms": ms(iow_us),
        })
    };
    rows.into_values().map(value).collect()
}

/// The table.
pub fn text(sums: Sums) -> String {
    let Sums {
        columns,
        places: _,
        rows,
    } = sums;
    let rows: Vec<TableRow> = rows.into_values().collect();
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
            let _ = match column.is_number() {
                true => write!(
                    text,
                    "{value:>NUMBER_WIDTH$}{:gap$}",
                    "",
                    gap = width - NUMBER_WIDTH.max(value.len())
                ),
                false => write!(text, "{value:<width$}"),
            };
        }
        numbers(&mut text, row);
    }
    text
}

fn numbers(text: &mut String, row: &TableRow) {
    let UsageAmounts {
        wallclock_s,
        utime_us,
        stime_us,
        cpu_us,
        mem_kib_ms,
        io_bytes,
        iow_us,
    } = &row.used;
    let seconds = |us: &u64| fraction(i128::from(*us), 1_000_000, 3);
    let _ = write!(text, "{wallclock_s:>13}");
    for number in [utime_us, stime_us, cpu_us].map(seconds) {
        let _ = write!(text, " {number:>13}");
    }
    let memory = fraction(i128::from(*mem_kib_ms), 1024 * 1024 * 1000, 3);
    let io = fraction(i128::from(*io_bytes), 1 << 30, 3);
    let _ = writeln!(text, " {memory:>18} {io:>18} {:>18}", seconds(iow_us));
}

/// As wide as the longest of heading, values and pattern, and a blank. Numbers have none behind
/// them in the last column, unless there may be several rows.
fn width(at: usize, columns: &[(Column, Option<String>)], rows: &[TableRow]) -> usize {
    let (column, pattern) = &columns[at];
    let values = rows
        .iter()
        .filter_map(|row| row.group.get(at))
        .map(|value| value.chars().count());
    let widest = values.max().unwrap_or(0).max(column.heading().len());
    if column.is_number() {
        let is_list = columns.iter().any(|(_, pattern)| pattern.is_none()) && !rows.is_empty();
        return widest.max(NUMBER_WIDTH) + usize::from(is_list || at + 1 < columns.len());
    }
    let given = pattern.as_ref().map_or(0, |pattern| pattern.chars().count());
    widest.max(given) + 1
}
