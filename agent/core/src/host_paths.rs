//! What an agent knows about its own machine and cell.

use proto::binding::ProcessorMap;
use proto::id::HostName;

/// Constant facts that launch documents are made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPaths {
    /// The host, as its certificate names it.
    pub host: HostName,
    /// The state directory, which jobs see as `SGE_ROOT`.
    pub root: String,
    /// The name of the cell, which jobs see as `SGE_CELL`.
    pub cell_name: String,
    /// The kind of machine in Grid Engine's words: `lx-amd64`.
    pub arch: String,
    /// Processors, for `$processors` and the host file.
    pub processors: u32,
    /// The numbers of the processors of each core, for jobs that are bound to cores.
    pub cores: ProcessorMap,
    /// The time zone that jobs get where they bring none (`TZ`), if the host names one.
    pub time_zone: Option<String>,
    /// The environment that the agent was started with, without what is about the agent itself; for
    /// jobs where `INHERIT_ENV` is set.
    pub environment: Vec<(String, String)>,
    /// A cgroup directory of ours below which tasks get groups; none where the host has none.
    pub cgroup_parent: Option<String>,
}

impl HostPaths {
    /// The directory of a task; its name is the task's key.
    pub fn task_directory(&self, key: &proto::id::TaskKey) -> String {
        format!("{}/tasks/{key}", self.root)
    }
}
