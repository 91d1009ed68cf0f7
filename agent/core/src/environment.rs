//! The environment of a job as 8.1.9 makes it, by recordings of a real one. Nothing of the daemons'
//! own environment is in it unless `INHERIT_ENV` is set, and then only what the job's own does not
//! replace.

use crate::document::{is_login_shell, queue};
use crate::host_paths::HostPaths;
use proto::id::HostName;
use proto::job::{JobSpec, Program};
use proto::rsmap::GrantedIds;
use proto::wire::agent::{AgentConfig, StartOrder};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The account of a job, which the shepherd takes from the name service: a user's `-v` and `-V` do
/// not name another one.
const ACCOUNT: [&str; 3] = ["HOME", "LOGNAME", "USER"];

/// Variables of another host that `qrsh -inherit -V` brings along and that no fact of this host
/// replaces.
const OF_ANOTHER_HOST: [&str; 6] = ["GRIDWRIGHT_TASK_KEY", "OLDPWD", "PE", "PE_HOSTFILE", "PWD", "SHLVL"];

/// Paths of a job that its environment names.
#[derive(Clone, Copy, Debug)]
pub struct Paths<'a> {
    /// `TMPDIR`.
    pub tmpdir: &'a str,
    /// The shell.
    pub shell: &'a str,
    /// The host file of a parallel job; empty for a serial one.
    pub host_file: &'a str,
    /// `SGE_BINDING`.
    pub binding: &'a str,
}

/// The whole environment of a task as `NAME=value`, sorted by name. Facts of the cell replace
/// what `-v` and `-V` say: a job that another job submitted has its own `NSLOTS`, not the other
/// job's. `HOME`, `USER`, `LOGNAME` and the paths of directory and files (`SGE_CWD_PATH`,
/// `SGE_STDOUT_PATH`…) come from the shepherd.
pub fn environment(
    host_paths: &HostPaths,
    config: &AgentConfig,
    order: &StartOrder,
    spec: &JobSpec,
    paths: Paths<'_>,
) -> Vec<String> {
    let mut all = Variables::new();
    if config.inherit_env {
        all.extend(borrowed(&host_paths.environment));
    }
    all.insert("PATH", DEFAULT_PATH.into());
    if let Some(zone) = &host_paths.time_zone {
        all.insert("TZ", zone.into());
    }
    all.extend(borrowed(&config.job_environment));
    all.extend(borrowed(&spec.environment).filter(|(name, _)| !ACCOUNT.contains(name)));
    let own = order.slave.as_ref().map_or(&[][..], |slave| &slave.spec.environment);
    all.extend(borrowed(own).filter(|(name, _)| !ACCOUNT.contains(name) && !OF_ANOTHER_HOST.contains(name)));
    facts(&mut all, host_paths, order, spec, paths);
    let maps: Vec<_> = resource_maps(host_paths, order).collect();
    all.extend(borrowed(&maps));
    let devices = order.devices.as_ref().map_or(&[][..], |devices| &devices.variables);
    all.extend(borrowed(devices));
    let path = format!("{}:{}", paths.tmpdir, all.get("PATH").map_or("", |path| path));
    all.insert("PATH", path.into());
    if config.set_lib_path {
        let rest = all
            .get("LD_LIBRARY_PATH")
            .filter(|rest| !rest.is_empty())
            .map_or(String::new(), |rest| format!(":{rest}"));
        all.insert(
            "LD_LIBRARY_PATH",
            format!("{}/lib/{}{rest}", host_paths.root, host_paths.arch).into(),
        );
    }
    all.into_iter()
        .map(|(name, value)| [name, "=", &value].concat())
        .collect()
}

/// The search path of a job that brings none. The temporary directory stands in front of any.
const DEFAULT_PATH: &str = "/usr/local/bin:/bin:/usr/bin";

/// Variables by name. Most values are somebody else's, and tasks may start by the thousand.
type Variables<'a> = BTreeMap<&'a str, Cow<'a, str>>;

fn borrowed(pairs: &[(String, String)]) -> impl Iterator<Item = (&str, Cow<'_, str>)> {
    pairs.iter().map(|(name, value)| (name.as_str(), Cow::from(value)))
}

/// `SGE_HGR_name`: the ids that the task has here of each resource map, else those that it has of
/// the cluster (sge_rsmap(5)).
fn resource_maps<'a>(host_paths: &'a HostPaths, order: &'a StartOrder) -> impl Iterator<Item = (String, String)> + 'a {
    let is_here = |map: &&GrantedIds| map.host == host_paths.host;
    let (here, global) = (
        order.maps.iter().filter(is_here),
        order.maps.iter().filter(|map| map.host == HostName::global()),
    );
    // What comes later in a map of variables replaces what came before.
    global
        .chain(here)
        .map(|map| (format!("SGE_HGR_{}", map.attribute), map.ids.join(" ")))
}

fn facts<'a>(
    all: &mut Variables<'a>,
    host_paths: &'a HostPaths,
    order: &'a StartOrder,
    spec: &'a JobSpec,
    paths: Paths<'a>,
) {
    let task = |value: Option<u32>| value.map_or(Cow::from("undefined"), |value| value.to_string().into());
    // A master that is no task of its environment may be in a queue instance that has no slots for
    // tasks. Such an instance does not count.
    let granted = || order.granted.iter().filter(|granted| granted.slots > 0);
    let slots: u32 = granted().map(|granted| granted.slots).sum();
    let mut hosts: Vec<_> = granted().map(|granted| &granted.instance.host).collect();
    hosts.sort();
    hosts.dedup();
    let directory = host_paths.task_directory(&order.key);
    let script = job_script(order, spec, &directory);
    all.extend::<[(_, Cow<'a, str>); 28]>([
        ("ARC", host_paths.arch.as_str().into()),
        ("SGE_ARCH", host_paths.arch.as_str().into()),
        ("ENVIRONMENT", "BATCH".into()),
        ("HOSTNAME", host_paths.host.as_str().into()),
        ("JOB_ID", order.number.to_string().into()),
        ("JOB_NAME", spec.name.as_str().into()),
        ("JOB_SCRIPT", script),
        ("NHOSTS", hosts.len().to_string().into()),
        ("NQUEUES", granted().count().to_string().into()),
        ("NSLOTS", slots.to_string().into()),
        ("QUEUE", queue(order).into()),
        ("REQNAME", spec.name.as_str().into()),
        ("REQUEST", spec.name.as_str().into()),
        ("RESTARTED", order.restarted.to_string().into()),
        ("SGE_ACCOUNT", spec.account.as_deref().unwrap_or("sge").into()),
        ("SGE_BINDING", paths.binding.into()),
        (
            "SGE_BINARY_PATH",
            format!("{}/bin/{}", host_paths.root, host_paths.arch).into(),
        ),
        ("SGE_CELL", host_paths.cell_name.as_str().into()),
        ("SGE_ROOT", host_paths.root.as_str().into()),
        ("GRIDWRIGHT_DIR", host_paths.root.as_str().into()),
        ("SGE_JOB_SPOOL_DIR", directory.into()),
        ("SGE_TASK_ID", task(order.array.map(|_| order.key.task.0))),
        ("SGE_TASK_FIRST", task(order.array.map(|range| range.first()))),
        ("SGE_TASK_LAST", task(order.array.map(|range| range.last()))),
        ("SGE_TASK_STEPSIZE", task(order.array.map(|range| range.step()))),
        ("SHELL", paths.shell.into()),
        // The directory is made for this task: a value that -V brought along would name one of
        // another machine.
        ("TMPDIR", paths.tmpdir.into()),
        ("TMP", paths.tmpdir.into()),
    ]);
    if order.queue.starter_method.is_some() && order.slave.is_none() {
        starter(all, order, spec, paths.shell);
    }
    if let Some(checkpoint) = &order.checkpoint {
        all.insert("SGE_CKPT_ENV", checkpoint.name.as_str().into());
        all.insert("SGE_CKPT_DIR", checkpoint.directory.as_str().into());
    }
    if let Some(pe) = &order.pe {
        all.insert("PE", pe.as_str().into());
        all.insert("PE_HOSTFILE", paths.host_file.into());
        if order.control_slaves {
            all.insert("SGE_RSH_COMMAND", "builtin".into());
        }
    }
}

/// `JOB_SCRIPT`: where the script is, or the command.
fn job_script<'a>(order: &StartOrder, spec: &'a JobSpec, directory: &str) -> Cow<'a, str> {
    if spec.session.is_some() {
        return "QRSH".into();
    }
    match &spec.program {
        Program::Script { .. } | Program::Stored { .. } => format!("{directory}/job_scripts/{}", order.number).into(),
        Program::Command { command } => command.into(),
    }
}

/// What a starter method must know to start the job as the queue would have.
fn starter<'a>(all: &mut Variables<'a>, order: &'a StartOrder, spec: &JobSpec, shell: &'a str) {
    let is_raw = matches!(spec.program, Program::Command { .. }) && spec.use_shell == Some(false);
    let mode = if is_raw {
        "raw_exec"
    } else {
        &order.queue.shell_start_mode
    };
    all.insert("SGE_STARTER_SHELL_PATH", shell.into());
    all.insert("SGE_STARTER_SHELL_START_MODE", mode.into());
    all.insert(
        "SGE_STARTER_USE_LOGIN_SHELL",
        is_login_shell(order, shell).to_string().into(),
    );
}
