//! `qstat -j LIST`: everything about jobs, a line for each field.

use super::requests::binding_text;
use super::shown;
use crate::job::description::{Block, Description, if_set};
use crate::output::json;
use crate::output::time::Clock;
use crate::output::value::{bytes, memory_seconds, transferred};
use proto::amount::{Amount, Type};
use proto::job::Phase;
use proto::usage::Conditions;
use proto::wire::view::{JobDetail, TaskRow};
use serde_json::Value;
use std::fmt::{Display, Write as _};

/// All blocks.
pub fn render(details: &[JobDetail], binding: bool, clock: &Clock) -> String {
    details.iter().map(|detail| block(detail, binding, clock)).collect()
}

/// The same as JSON, with what does not exist.
pub fn json(details: &[JobDetail], missing: &[String]) -> String {
    let jobs: Vec<Value> = details
        .iter()
        .map(|detail| {
            let mut value = json::value(detail);
            value["row"] = shown::row_with_letters(&detail.row);
            value
        })
        .collect();
    json::JsonDocument::new()
        .with("jobs", &jobs)
        .with("unknown_jobs", &missing)
        .finish()
}

fn block(detail: &JobDetail, binding: bool, clock: &Clock) -> String {
    let (row, spec) = (&detail.row, &*detail.spec);
    let (account, checkpoint_when) = (Some(row.account.as_str()), detail.checkpoint_when);
    let description = Description {
        spec,
        account,
        checkpoint_when,
        verifies: false,
        hides_environment: detail.hides_environment,
    };
    let mut block = Block {
        text: format!("{}\n", "=".repeat(62)),
    };
    block.put("job_number", row.number);
    block.put("exec_file", format_args!("job_scripts/{}", row.number));
    block.put("submission_time", clock.asctime(row.submitted));
    block.put_some(
        "deadline",
        if_set(spec.deadline).map(|deadline| clock.asctime(deadline)),
    );
    block.put("owner", &spec.owner.user);
    block.put("uid", spec.owner.uid);
    block.put("group", &spec.owner.group);
    block.put("gid", spec.owner.gid);
    description.origin(&mut block, clock);
    description.requests(&mut block);
    description.program(&mut block);
    description.predecessors(&mut block);
    let texts = |jobs: &[proto::id::JobNumber]| jobs.iter().map(ToString::to_string).collect::<Vec<_>>();
    block.put_list("jid_predecessor_list", texts(&row.waits_for));
    block.put_list("jid_successor_list", texts(&detail.successors));
    block.put_list("ja_ad_predecessor_list", texts(&row.array_waits_for));
    description.verification(&mut block);
    block.put_some("version", Some(detail.version).filter(|version| *version > 0));
    description.project(&mut block);
    description.tasks(&mut block);
    if binding {
        block.put("binding", binding_text(row));
    }
    description.kind(&mut block);
    tasks(&mut block, detail, binding);
    let mut label = "scheduling info:";
    for line in &detail.scheduling_info {
        let _ = writeln!(block.text, "{label:<27} {line}");
        label = "";
    }
    block.text
}

fn tasks(block: &mut Block, detail: &JobDetail, binding: bool) {
    let on_hosts = || {
        detail
            .row
            .tasks
            .iter()
            .filter(|task| task.condition.phase != Phase::Finished)
    };
    for task in on_hosts() {
        put_task(block, "usage", task.task, usage(task));
    }
    for task in on_hosts() {
        if let Some(waits) = pressure(&task.usage.conditions) {
            put_task(block, "pressure", task.task, waits);
        }
        for text in task.usage.conditions.unset.texts() {
            put_task(block, "not set", task.task, text);
        }
    }
    for task in on_hosts().filter(|task| !task.maps.is_empty()) {
        let maps: Vec<String> = task.maps.iter().map(ToString::to_string).collect();
        put_task(block, "resource_map", task.task, maps.join(","));
    }
    for task in on_hosts().filter(|_| binding) {
        put_task(block, "binding", task.task, cores(task));
    }
    for (task, reason) in &detail.errors {
        let _ = writeln!(block.text, "error reason {task:>10}:      {reason}");
    }
}

/// The processors of each host of a task that is bound, those of the task in lower case; `NONE` if
/// it has no cores. Hosts are named where there are several.
fn cores(task: &TaskRow) -> String {
    let bound = || task.binding.iter().filter_map(|here| Some((&here.host, here.bound()?)));
    let texts: Vec<String> = match task.binding.as_slice() {
        [_] => bound().map(|(_, cores)| cores.to_owned()).collect(),
        _ => bound().map(|(host, cores)| format!("{host}={cores}")).collect(),
    };
    match texts.is_empty() {
        true => "NONE".to_owned(),
        false => texts.join(","),
    }
}

fn usage(task: &TaskRow) -> String {
    let usage = &task.usage;
    let seconds = i64::try_from(usage.cpu_ms / 1000).unwrap_or(i64::MAX - 1);
    let cpu = Amount::from_base(seconds).qhost_text(Type::Time);
    let memory = |amount: u64| if amount == 0 { "N/A".to_owned() } else { bytes(amount) };
    format!(
        "cpu={cpu}, mem={} GB s, io={} GB, vmem={}, maxvmem={}",
        memory_seconds(usage),
        transferred(usage),
        memory(usage.vmem_bytes),
        memory(usage.maxvmem_bytes)
    )
}

/// How a task waits; `None` where its host does not know, and for a task that does not wait.
fn pressure(conditions: &Conditions) -> Option<String> {
    let share = |name, hundredths: Option<u32>| {
        let waits = hundredths.filter(|hundredths| *hundredths > 0)?;
        Some(format!("{name}={}.{:02}%", waits / 100, waits % 100))
    };
    let shares = [
        share("cpu", conditions.cpu_pressure),
        share("memory", conditions.memory_pressure),
    ];
    let shares: Vec<String> = shares.into_iter().flatten().collect();
    (!shares.is_empty()).then(|| shares.join(", "))
}

/// A line about one task.
fn put_task(block: &mut Block, key: &str, task: impl Display, value: impl Display) {
    let label = format!("{key:<12}{task:>3}:");
    let _ = writeln!(block.text, "{label:<27} {value}");
}
