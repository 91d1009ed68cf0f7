//! `-o`, `-e`, `-i` and `-S`: each path is for a host that there is, and each host has one path.

use super::checks::is_known_host;
use crate::config::Configuration;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::HostName;
use proto::job::{HostPath, JobChanges, JobSpec};
use proto::object::suggest::nearest;
use std::collections::BTreeSet;

/// The option that names no file, and so may leave its path empty.
const SHELL: &str = "-S";

/// Checks the paths of a submission.
///
/// # Errors
/// In the words of 8.1.9, with the first path that cannot be.
pub(super) fn check_spec(config: &Configuration, spec: &JobSpec) -> Result<(), Diagnostic> {
    let lists = [
        ("-e", &spec.stderr),
        ("-i", &spec.stdin),
        ("-o", &spec.stdout),
        (SHELL, &spec.shell),
    ];
    lists
        .into_iter()
        .try_for_each(|(option, paths)| check(config, option, paths))
}

/// Checks the paths that an alteration names. Those that the job has from before stay as they are.
///
/// # Errors
/// As [`check_spec`].
pub(in crate::decide) fn check_changes(config: &Configuration, changes: &JobChanges) -> Result<(), Diagnostic> {
    let lists = [
        ("-e", &changes.stderr),
        ("-i", &changes.stdin),
        ("-o", &changes.stdout),
        (SHELL, &changes.shell),
    ];
    lists
        .into_iter()
        .try_for_each(|(option, paths)| check(config, option, paths.as_deref().unwrap_or_default()))
}

fn check(config: &Configuration, option: &str, paths: &[HostPath]) -> Result<(), Diagnostic> {
    let refused = |what: &str| Err(Diagnostic::new(Code::JobRejected, what).at(option));
    let mut hosts = BTreeSet::new();
    let mut is_twice = false;
    for path in paths {
        let is_new = hosts.insert(path.host.as_ref());
        is_twice |= !is_new;
        let host = path.host.as_ref().filter(|_| is_new);
        if let Some(host) = host.filter(|host| !is_known_host(config, host.as_str())) {
            return Err(unknown(config, option, host));
        }
        if path.path.is_empty() && option != SHELL {
            return refused("paths may not be empty strings").map_err(|refusal| refusal.fix("write HOST:PATH"));
        }
    }
    match is_twice {
        true => refused("ERROR! two files are specified for the same host")
            .map_err(|refusal| refusal.fix("name one path for each host, and one without a host for all others")),
        false => Ok(()),
    }
}

fn unknown(config: &Configuration, option: &str, host: &HostName) -> Diagnostic {
    let refusal = Diagnostic::new(Code::UnknownObject, format!("can't resolve hostname \"{host}\"")).at(option);
    let refusal = refusal.why("the part of a path before its first colon is a host");
    match nearest(host.as_str(), config.exec_hosts.keys().map(HostName::as_str)) {
        Some(near) => refusal.fix(format!(
            "did you mean {near}? For a path with a colon in it, write :PATH"
        )),
        None => refusal.fix("qconf -sel lists the hosts; for a path with a colon in it, write :PATH"),
    }
}
