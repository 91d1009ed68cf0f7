//! Starting a load sensor: a process group of its own, the configured user, the given environment,
//! and nothing inherited.

use super::denial::Denial;
use super::rules::Rules;
use crate::account::{self, Identity};
use crate::shepherd::{Host, environment};
use crate::sys::{self, Program};
use crate::trusted::{TrustedFile, UntrustedFile};
use caps::errors::CapsError;
use nix::errno::Errno;
use nix::sys::signal::{SigSet, SigmaskHow, sigprocmask};
use nix::sys::stat::{Mode, umask};
use nix::unistd::{Gid, Uid, setgroups, setresgid, setresuid, setsid};
use proto::launch::{Failure, SensorSpec};
use std::ffi::{CString, NulError};
use std::fmt;
use std::os::fd::{AsRawFd, OwnedFd};

/// A sensor is not started.
#[derive(Debug)]
pub enum SensorFailure {
    /// Its path is not absolute.
    Relative(String),
    /// Its user cannot be found.
    Account(Failure),
    /// The rules of this host deny it.
    Denied(Denial),
    /// Others than its user could change its program.
    Untrusted(UntrustedFile),
    /// Capabilities cannot be given up.
    Capabilities(CapsError),
    /// A text for the new process has a zero byte.
    Text(NulError),
    /// The system refuses a step on the way.
    Step {
        /// The thing that was to be set.
        what: &'static str,
        /// The system's reason.
        error: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl fmt::Display for SensorFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SensorFailure::Relative(path) => write!(f, "sensor {path:?}: not an absolute path"),
            SensorFailure::Account(failure) => f.write_str(&failure.text),
            SensorFailure::Denied(denial) => write!(f, "{denial}"),
            SensorFailure::Untrusted(file) => write!(f, "{file}"),
            SensorFailure::Capabilities(error) => write!(f, "{error}"),
            SensorFailure::Text(error) => write!(f, "{error}"),
            SensorFailure::Step { what, error } => write!(f, "{what}: {error}"),
        }
    }
}

impl std::error::Error for SensorFailure {}

fn step<E: Into<Box<dyn std::error::Error + Send + Sync>>>(what: &'static str) -> impl FnOnce(E) -> SensorFailure {
    move |error| SensorFailure::Step {
        what,
        error: error.into(),
    }
}

/// Runs the sensor in this process, a fork of the launcher. What goes wrong is said on the sensor's
/// own standard error, which the agent reads. Never returns.
#[allow(clippy::wildcard_enum_match_arm, reason = "the error numbers are the system's")]
pub fn run(host: &Host, spec: &SensorSpec, streams: &[OwnedFd; 3]) -> ! {
    let complaint = match prepare(host, spec, streams) {
        Ok((mut program, mut by_shell)) => {
            let errno = match program.execute() {
                // A script without `#!`, or one that is not executable, is the shell's.
                Errno::ENOEXEC | Errno::EACCES => {
                    program.keep_open().map_or_else(|errno| errno, |()| by_shell.execute())
                }
                errno => errno,
            };
            format!("cannot execute {}: {errno}", spec.path)
        }
        Err(failure) => failure.to_string(),
    };
    // Standard error is the only way to tell; if it is closed, the exit code has to do.
    let _ = nix::unistd::write(&streams[2], format!("gridwright: {complaint}\n").as_bytes());
    sys::exit_now(127)
}

fn prepare(host: &Host, spec: &SensorSpec, streams: &[OwnedFd; 3]) -> Result<(Program, Program), SensorFailure> {
    setsid().map_err(step("session"))?;
    let mut file = None;
    if !host.rules.single_user {
        let identity = identity(&host.rules, &spec.user)?;
        host.rules
            .check_sensor(spec, identity.uid)
            .map_err(SensorFailure::Denied)?;
        become_user(&identity)?;
        // As its user: a file that the user cannot reach is none of the user's sensors.
        let owners = if identity.uid == 0 {
            vec![0]
        } else {
            vec![0, identity.uid]
        };
        file = Some(TrustedFile::open(&spec.path, &owners).map_err(SensorFailure::Untrusted)?);
    }
    for limit in &host.login_limits {
        let _ = sys::set_raw_limit(limit.resource, limit.soft, limit.hard);
    }
    umask(Mode::from_bits_truncate(0o022));
    std::env::set_current_dir("/").map_err(step("/"))?;
    // A root sensor's command is on the host's list; its environment comes from an agent that faces
    // the network.
    let is_root = Uid::effective().is_root() && !host.rules.single_user;
    let of_root = || environment::of_root_sensor(&spec.environment, &host.folder);
    let programs = programs(spec, &if is_root { of_root() } else { spec.environment.clone() }, file)?;
    sys::set_parent_death_signal(libc::SIGTERM).map_err(step("parent death signal"))?;
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None).map_err(step("signals"))?;
    sys::default_signals();
    sys::close_on_exec_from(3).map_err(step("descriptors"))?;
    for (fd, to) in streams.iter().zip(0..) {
        sys::place(fd.as_raw_fd(), to).map_err(step("descriptors"))?;
    }
    Ok(programs)
}

/// A user by name. A number without an account is one that the host's own file names: with any
/// other, a host that is not ours to trust could choose the uid of a denied user, and a group by
/// its gid.
fn identity(rules: &Rules, user: &str) -> Result<Identity, SensorFailure> {
    match account::by_name(user) {
        Ok(identity) => Ok(identity),
        Err(failure) if !rules.names_sensor_user(user) => Err(SensorFailure::Account(failure)),
        Err(failure) => user
            .parse()
            .map(account::by_number)
            .map_err(|_| SensorFailure::Account(failure)),
    }
}

fn become_user(identity: &Identity) -> Result<(), SensorFailure> {
    let (uid, gid) = (Uid::from_raw(identity.uid), Gid::from_raw(identity.gid));
    caps::clear(None, caps::CapSet::Ambient).map_err(SensorFailure::Capabilities)?;
    caps::clear(None, caps::CapSet::Inheritable).map_err(SensorFailure::Capabilities)?;
    setgroups(&identity.groups).map_err(step("groups"))?;
    setresgid(gid, gid, gid).map_err(step("group"))?;
    setresuid(uid, uid, uid).map_err(step("user"))
}

/// The sensor itself, and the same through the shell.
fn programs(
    spec: &SensorSpec,
    environment: &[String],
    file: Option<TrustedFile>,
) -> Result<(Program, Program), SensorFailure> {
    let strings = |texts: Vec<&str>| {
        texts
            .into_iter()
            .map(CString::new)
            .collect::<Result<Vec<_>, _>>()
            .map_err(SensorFailure::Text)
    };
    let words = |before: &[&'static str], path| {
        before
            .iter()
            .copied()
            .chain([path])
            .chain(spec.args.iter().map(String::as_str))
            .collect::<Vec<&str>>()
    };
    let environment = || strings(environment.iter().map(String::as_str).collect());
    let for_shell = file
        .as_ref()
        .map_or_else(|| spec.path.clone(), TrustedFile::path_for_interpreter);
    let by_shell = Program::new(
        strings(vec!["/bin/sh"])?,
        strings(words(&["sh"], &for_shell))?,
        environment()?,
    );
    let argv = strings(words(&[], &spec.path))?;
    let itself = match file {
        Some(file) => Program::of_file(file, argv, environment()?),
        None => Program::new(strings(vec![&spec.path])?, argv, environment()?),
    };
    Ok((itself, by_shell))
}

/// Whether a sensor's request can be refused before a process is forked.
///
/// # Errors
/// `Relative`.
pub fn check(spec: &SensorSpec) -> Result<(), SensorFailure> {
    if spec.path.starts_with('/') {
        Ok(())
    } else {
        Err(SensorFailure::Relative(spec.path.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn a_number_that_the_hosts_own_file_does_not_name_is_no_user() {
        let rules = Rules::read(Path::new("/nonexistent"), false).expect("no files, default rules");
        assert!(identity(&rules, "61234").is_err());
    }
}
