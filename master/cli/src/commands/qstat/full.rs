//! `qstat -f` and `-F`: queue instances with the tasks in them, then pending and finished tasks.

use super::columns::ColumnSet;
use super::options::Options;
use super::requests;
use super::shown::{self, JobLine};
use crate::output::time::Clock;
use crate::output::value::{self, Form, cut};
use proto::wire::view::{JobRow, QueueView};
use std::fmt::Write as _;

const PENDING: &str = " - PENDING JOBS - PENDING JOBS - PENDING JOBS - PENDING JOBS - PENDING JOBS";
const FINISHED: &str = " --  FINISHED JOBS  -  FINISHED JOBS  -  FINISHED JOBS  -  FINISHED JOBS  --  ";

/// The heading; the column of the load is named after its value.
fn heading(load_value: &str) -> String {
    let load = if load_value.is_empty() { "load_avg" } else { load_value };
    format!(
        "queuename                      qtype resv/used/tot. {:<8} arch          states",
        cut(load, 8)
    )
}

/// The whole text; empty if there is nothing to show.
pub fn render(queues: &[QueueView], rows: &[JobRow], options: &Options, clock: &Clock) -> String {
    let columns = ColumnSet {
        queue: false,
        ..options.columns
    };
    let mut text = String::new();
    let mut by_instance = shown::by_instance(rows, columns.per_slot);
    for queue in queues {
        let tasks = by_instance.remove(&shown::instance_of(queue)).unwrap_or_default();
        if options.hide_empty && tasks.is_empty() {
            continue;
        }
        if text.is_empty() {
            let _ = writeln!(text, "{}", heading(&options.queues.load_value));
        }
        let _ = writeln!(text, "{}", "-".repeat(if columns.extended { 189 } else { 81 }));
        text.push_str(&queue_text(queue));
        push_lines(&mut text, &tasks, columns, clock);
    }
    section(
        &mut text,
        PENDING,
        &shown::pending(rows, options.per_task),
        columns,
        clock,
    );
    section(&mut text, FINISHED, &shown::finished(rows), columns, clock);
    text
}

/// The line of a queue instance, then reasons of `-explain` and resources of `-F`.
fn queue_text(queue: &QueueView) -> String {
    let name = format!("{}@{}", queue.queue, queue.host);
    let slots = format!("{}/{}/{}", queue.reserved, queue.used, queue.total);
    // A value with a unit, such as one of memory, is shown as it was reported.
    let shown = |text: &str| match text.parse::<f64>() {
        Ok(_) => value::load(text, 2).unwrap_or_else(|| cut(text, 8)),
        Err(_) => cut(text, 8),
    };
    let load = queue.load_avg.as_deref().map_or_else(|| "-NA-".to_owned(), shown);
    let arch = queue.arch.as_deref().unwrap_or("-NA-");
    let kinds = cut(&queue.kinds, 5);
    let mut text = format!(
        "{:<30} {kinds:<5} {slots:<14} {load:<8} {arch:<13} {states}\n",
        cut(&name, 30),
        states = queue.states
    );
    for line in &queue.explain {
        let _ = writeln!(text, "\t{line}");
    }
    for resource in &queue.resources {
        let shown = value::resource(resource, Form::Qstat);
        let _ = writeln!(text, "\t{}:{}={shown}", value::dominance(resource), resource.name);
    }
    text
}

fn push_lines(text: &mut String, lines: &[JobLine<'_>], columns: ColumnSet, clock: &Clock) {
    for line in lines {
        let _ = writeln!(text, "{}", columns.line(line, clock));
        if columns.requests && !line.is_repeat {
            text.push_str(&requests::text(line, columns.binding));
        }
    }
}

/// Lines below a banner; nothing without lines.
fn section(text: &mut String, banner: &str, lines: &[JobLine<'_>], columns: ColumnSet, clock: &Clock) {
    if lines.is_empty() {
        return;
    }
    let rule = "#".repeat(if columns.extended { 186 } else { 76 });
    let _ = writeln!(text, "\n{rule}\n{banner}\n{rule}");
    push_lines(text, lines, columns, clock);
}
