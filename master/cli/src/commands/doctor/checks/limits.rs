//! What this host enforces and how, as its launcher found it, and whether the cell makes use of it.

use super::agent_file;
use crate::cell_address::CellAddress;
use crate::client::Client;
use crate::commands::doctor::finding::Finding;
use crate::commands::up;
use proto::conf::{ClusterConf, Settings};
use proto::id::HostName;
use proto::limit::VmemMeaning;
use proto::object::{Fields, ObjectKind};
use proto::wire::client::Query;
use proto::wire::view::Data;
use std::path::Path;

/// The file in which each launcher leaves what it found, a line for the place of control groups and
/// one per limit.
const FOUND: &str = "run/launcher/limits";

/// How a launcher says that its kernel limits the memory of a task.
const KEEPS_MEMORY: &str = "(memory.max)";

/// The examinations of control groups and limits.
pub fn all(dir: &Path) -> Vec<Finding> {
    let parent = agent_file(dir).map(|file| file.cgroup_parent).unwrap_or_default();
    if !parent.is_empty() && !Path::new(&parent).join("cgroup.procs").exists() {
        let found = format!("cgroup_parent of etc/agent.toml is {parent}, which is no control group");
        let fix = format!("mkdir {parent}, or leave cgroup_parent out");
        return vec![Finding::bad("control groups", found, fix)];
    }
    let Ok(text) = std::fs::read_to_string(dir.join(FOUND)) else {
        return vec![Finding::fine("control groups", "unknown: no launcher has run here")];
    };
    let mut findings = of_launcher(&text);
    if text.contains(KEEPS_MEMORY) {
        findings.extend(meaning_of_h_vmem(dir));
    }
    findings
}

fn of_launcher(text: &str) -> Vec<Finding> {
    let finding = |line: &str| match line.strip_prefix("control groups: ") {
        Some(place) => Finding::fine("control groups", place),
        None => Finding::fine("limit", line),
    };
    text.lines().map(finding).collect()
}

/// Recommends the limit of memory where nobody has decided.
fn meaning_of_h_vmem(dir: &Path) -> Option<Finding> {
    let mut client = Client::connect(&CellAddress::at(dir), "gridwright doctor").ok()?;
    let mut conf = |name: HostName| {
        let query = Query::Object {
            kind: ObjectKind::ClusterConf,
            name: name.to_string(),
        };
        let Some(Data::Object(fields)) = client.query(query).ok()?.data else {
            return None;
        };
        Some((name, fields))
    };
    let global = conf(HostName::global())?;
    let own = up::host_of(dir).and_then(conf);
    recommendation(&global, own.as_ref())
}

fn recommendation(global: &(HostName, Fields), own: Option<&(HostName, Fields)>) -> Option<Finding> {
    let read = |(name, fields): &(HostName, Fields)| ClusterConf::from_fields(name, fields).ok();
    let settings = Settings::effective(&read(global)?, own.and_then(read).as_ref());
    let is_decided = settings
        .execd_params
        .iter()
        .any(|(name, _)| name.eq_ignore_ascii_case("H_VMEM"));
    (!is_decided && settings.execd().h_vmem == VmemMeaning::Address).then(|| {
        Finding::note(
            "h_vmem",
            "h_vmem limits address space: programs that reserve much and use little fail, such as Java",
            "let it limit memory in use: H_VMEM=memory in execd_params (qconf -mconf); H_VMEM=address keeps it as it is",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conf(name: HostName, params: &str) -> (HostName, Fields) {
        let fields = [("execd_params", params)].into_iter().collect();
        (name, fields)
    }

    #[test]
    fn memory_is_recommended_until_somebody_decides() {
        let node = || HostName::new("node1");
        let global = |params| conf(HostName::global(), params);
        for (global, own, expected) in [
            (global("none"), None, true),
            (global("KEEP_ACTIVE=true"), None, true),
            (global("H_VMEM=address"), None, false),
            (global("H_VMEM=memory"), None, false),
            (global("none"), Some(conf(node(), "H_VMEM=memory")), false),
        ] {
            assert_eq!(recommendation(&global, own.as_ref()).is_some(), expected, "{global:?}");
        }
    }

    #[test]
    fn each_line_of_the_launcher_is_a_finding() {
        let found = of_launcher("control groups: each task gets one\nsuspension: frozen\n");
        let texts: Vec<String> = found.iter().map(Finding::text).collect();
        assert_eq!(
            texts,
            [
                "ok   control groups: each task gets one\n",
                "ok   limit: suspension: frozen\n"
            ]
        );
    }
}
