//! How a load sensor is started: command line and environment (sensors/README.md "What the agent
//! does with a sensor").
//!
//! Deliberately absent: the starting itself, which the launcher does, in a process group of the
//! sensor's own.

use crate::config::SensorSpec;
use proto::id::HostName;
use std::collections::BTreeMap;

/// What a sensor may know about the cell and the host.
#[derive(Clone, Debug)]
pub struct SensorEnvironment<'a> {
    /// `SGE_ROOT`.
    pub sge_root: &'a str,
    /// `SGE_CELL`.
    pub sge_cell: &'a str,
    /// The host's canonical name: `HOST`.
    pub host: &'a HostName,
    /// The directory of running jobs: `SGE_JOB_SPOOL_DIR`.
    pub job_spool_dir: &'a str,
}

/// The arguments to execute, the program first: the sensor's `#!` counts, and a script without one
/// runs in `/bin/sh`.
///
/// The shell replaces itself by the sensor, so that no shell stands between a signal and the
/// sensor. The path and the arguments are never parsed by that shell.
pub fn command_line(sensor: &SensorSpec) -> Vec<String> {
    let shell = ["/bin/sh", "-c", "exec \"$0\" \"$@\""].map(str::to_owned);
    shell
        .into_iter()
        .chain([sensor.path.clone()])
        .chain(sensor.arguments.iter().cloned())
        .collect()
}

/// The whole environment of a sensor; nothing of the daemon's own environment leaks into it.
pub fn environment(site: &SensorEnvironment<'_>) -> BTreeMap<String, String> {
    let arch = proto::host::arch();
    let path = format!(
        "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:{}/bin/{arch}",
        site.sge_root
    );
    let entries = [
        ("SGE_ROOT", site.sge_root),
        ("SGE_CELL", site.sge_cell),
        ("SGE_ARCH", arch),
        ("HOST", site.host.as_str()),
        ("SGE_JOB_SPOOL_DIR", site.job_spool_dir),
        ("PATH", &path),
        ("LC_ALL", "C"),
    ];
    entries
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shell_never_parses_a_path() {
        let sensor = SensorSpec {
            path: "/opt/$(id)".to_owned(),
            arguments: vec!["; rm".to_owned()],
        };
        assert_eq!(
            command_line(&sensor),
            ["/bin/sh", "-c", "exec \"$0\" \"$@\"", "/opt/$(id)", "; rm"]
        );
    }

    #[test]
    fn environment_is_small_and_has_what_site_sensors_use() {
        let host = HostName::new("node1");
        let site = SensorEnvironment {
            sge_root: "/opt/gw",
            sge_cell: "default",
            host: &host,
            job_spool_dir: "/var/x",
        };
        let names: Vec<_> = environment(&site).into_keys().collect();
        assert_eq!(
            names,
            [
                "HOST",
                "LC_ALL",
                "PATH",
                "SGE_ARCH",
                "SGE_CELL",
                "SGE_JOB_SPOOL_DIR",
                "SGE_ROOT"
            ]
        );
    }
}
