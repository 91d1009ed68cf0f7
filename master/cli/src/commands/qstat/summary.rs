//! `qstat -g c`: one line for each cluster queue.

use super::columns::ColumnSet;
use crate::output::value::{cut, millionths};
use crate::output::xml::XmlDocument;
use proto::wire::view::QueueView;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// States that pass by themselves.
const PASSING: &str = "aoACDS";

/// States that somebody has to end.
const STANDING: &str = "cdsuE";

/// States with a column of their own under `-ext`, in its order, and their names in XML and JSON.
const STATES: [(char, &str); 11] = [
    ('s', "suspend_manual"),
    ('A', "suspend_threshold"),
    ('S', "suspend_on_subordinate"),
    ('C', "suspend_calendar"),
    ('u', "unknown"),
    ('a', "load_alarm"),
    ('d', "disabled_manual"),
    ('D', "disabled_calendar"),
    ('c', "ambiguous"),
    ('o', "orphaned"),
    ('E', "error"),
];

/// All instances of one cluster queue together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// The cluster queue.
    name: String,
    /// `np_load_avg` in millionths, averaged over slots; none while no host is known.
    np_load_avg: Option<i64>,
    /// Slots in use.
    used: u64,
    /// Slots that reservations hold.
    reserved: u64,
    /// Free slots of instances that are in no state.
    available: u64,
    /// All slots.
    total: u64,
    /// Slots of instances in one of the states `aoACDS`.
    temporarily_disabled: u64,
    /// Slots of instances in one of the states `cdsuE`.
    manual_intervention: u64,
    /// Slots of instances in each state, by the name of the state.
    states: BTreeMap<&'static str, u64>,
}

/// Cluster queues by name: those of the queue instances, and those that have none.
pub fn cluster_queues(queues: &[QueueView], empty: &[String]) -> Vec<Summary> {
    let mut by_name: BTreeMap<&str, Vec<&QueueView>> = empty.iter().map(|name| (name.as_str(), Vec::new())).collect();
    for queue in queues {
        by_name.entry(queue.queue.as_str()).or_default().push(queue);
    }
    by_name
        .into_iter()
        .map(|(name, instances)| summary(name, &instances))
        .collect()
}

fn summary(name: &str, instances: &[&QueueView]) -> Summary {
    let mut summary = Summary {
        name: name.to_owned(),
        np_load_avg: load(instances),
        ..Summary::default()
    };
    summary.states = STATES.iter().map(|(_, name)| (*name, 0)).collect();
    for instance in instances {
        let (used, reserved, total) = (
            u64::from(instance.used),
            u64::from(instance.reserved),
            u64::from(instance.total),
        );
        let is_in = |states: &str| instance.states.contains(|state| states.contains(state));
        summary.used += used;
        summary.reserved += reserved;
        summary.total += total;
        // In both kinds of states somebody has to do something: it counts there alone.
        if is_in(STANDING) {
            summary.manual_intervention += total;
        } else if is_in(PASSING) {
            summary.temporarily_disabled += total;
        } else {
            summary.available += total.saturating_sub(used);
        }
        for (_, name) in STATES.iter().filter(|(letter, _)| instance.states.contains(*letter)) {
            *summary.states.entry(name).or_default() += total;
        }
    }
    summary
}

/// The mean over slots; an instance without slots counts as one of one, so that a closed queue has
/// a load too.
fn load(instances: &[&QueueView]) -> Option<i64> {
    let known = instances
        .iter()
        .filter_map(|instance| Some((instance.np_load_avg?, instance.total.max(1))));
    let (sum, slots) = known.fold((0_i128, 0_i128), |(sum, slots), (load, total)| {
        (sum + i128::from(load) * i128::from(total), slots + i128::from(total))
    });
    i64::try_from(sum.checked_div(slots)?).ok()
}

/// The table, with a column for each state under `-ext`; empty without queues.
pub fn text(summaries: &[Summary], columns: ColumnSet) -> String {
    if summaries.is_empty() {
        return String::new();
    }
    let mut text = "CLUSTER QUEUE                   CQLOAD   USED    RES  AVAIL  TOTAL aoACDS  cdsuE  ".to_owned();
    if columns.extended {
        text += &STATES.map(|(letter, _)| format!("{letter:>5}")).join(" ");
    }
    let _ = writeln!(text, "\n{}", "-".repeat(if columns.extended { 146 } else { 80 }));
    for summary in summaries {
        let load = summary
            .np_load_avg
            .map_or_else(|| "-NA-".to_owned(), |load| millionths(load, 2));
        let _ = write!(text, "{:<30} {load:>7}", cut(&summary.name, 30));
        let Summary {
            used,
            reserved,
            available,
            total,
            temporarily_disabled,
            manual_intervention,
            ..
        } = summary;
        for number in [
            used,
            reserved,
            available,
            total,
            temporarily_disabled,
            manual_intervention,
        ] {
            let _ = write!(text, " {number:>6}");
        }
        text.push(' ');
        if columns.extended {
            let slots = |name| summary.states.get(name).copied().unwrap_or_default();
            text += &STATES.map(|(_, name)| format!("{:>5} ", slots(name))).concat();
        }
        text.push('\n');
    }
    text
}

/// The document of `-g c -xml`.
pub fn xml(summaries: &[Summary], columns: ColumnSet) -> String {
    let mut document = XmlDocument::new("job_info", "qstat");
    for summary in summaries {
        document.open("cluster_queue_summary");
        document.leaf("name", &summary.name);
        if let Some(load) = summary.np_load_avg {
            document.leaf("load", millionths(load, 5));
        }
        document.leaf("used", summary.used);
        document.leaf("resv", summary.reserved);
        document.leaf("available", summary.available);
        document.leaf("total", summary.total);
        document.leaf("temp_disabled", summary.temporarily_disabled);
        document.leaf("manual_intervention", summary.manual_intervention);
        for (_, name) in STATES.iter().filter(|_| columns.extended) {
            document.leaf(name, summary.states.get(name).copied().unwrap_or_default());
        }
        document.close();
    }
    document.finish()
}
