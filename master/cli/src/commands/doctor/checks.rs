//! The examinations, each of which says what it found and, where that is bad, what to do.

use crate::client::Client;
use crate::daemons::Daemon;
use crate::site::Site;
use nix::sys::statvfs::statvfs;
use proto::time::Wall;
use proto::wire::client::Query;
use proto::wire::view::Data;
use quic::{Credentials, MasterAddress};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::{Duration, Instant};

/// Free space below which a spool directory is in danger.
const LEAST_FREE_BYTES: u64 = 100 << 20;
/// A name service that takes longer delays every start.
const SLOW_LOOKUP: Duration = Duration::from_millis(500);
/// A clock that is further away is worth a remark; certificates bear an hour.
const MOST_SKEW_MS: u64 = 60_000;
/// The receive buffer that a master of many hosts asks for.
const RECEIVE_BUFFER_BYTES: u64 = 16 << 20;

/// What one examination found.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// What was examined.
    pub check: &'static str,
    /// Whether it is as it should be.
    pub fine: bool,
    /// What was found.
    pub found: String,
    /// What to do, where it is not fine.
    pub fix: String,
}

impl Finding {
    fn fine(check: &'static str, found: impl Into<String>) -> Self {
        Self { check, fine: true, found: found.into(), fix: String::new() }
    }

    fn bad(check: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { check, fine: false, found: found.into(), fix: fix.into() }
    }

    /// The finding as a line, with its remedy on a second one.
    pub fn text(&self) -> String {
        let mark = if self.fine { "ok  " } else { "BAD " };
        let fix = if self.fix.is_empty() { String::new() } else { format!("       fix: {}\n", self.fix) };
        format!("{mark} {}: {}\n{fix}", self.check, self.found)
    }
}

/// What `etc/agent.toml` says about the way to the master; other keys are the agent's business.
#[derive(Deserialize)]
struct AgentFile {
    host: String,
    master_host: String,
    #[serde(default = "default_port")]
    port: u16,
}

fn default_port() -> u16 {
    6444
}

/// Every examination of the host whose state directory is `dir`.
pub fn all(dir: &Path) -> Vec<Finding> {
    let mut findings = vec![name(dir)];
    findings.extend(daemons(dir));
    findings.push(certificate(dir));
    findings.extend(reach(dir));
    findings.push(control_groups());
    findings.push(name_service());
    findings.push(space(dir));
    findings.extend(buffer(dir));
    findings.extend(set_aside(dir));
    findings.extend(sensors(dir));
    findings
}

fn agent_file(dir: &Path) -> Option<AgentFile> {
    toml::from_str(&std::fs::read_to_string(dir.join("etc/agent.toml")).ok()?).ok()
}

fn name(dir: &Path) -> Finding {
    let actual = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok()).unwrap_or_default();
    let Some(file) = agent_file(dir) else {
        return Finding::bad(
            "name",
            format!("{actual}; etc/agent.toml cannot be read"),
            "join the cell: gridwright join MASTER TOKEN",
        );
    };
    let short = |name: &str| name.split('.').next().unwrap_or_default().to_ascii_lowercase();
    if short(&actual) == short(&file.host) {
        return Finding::fine("name", format!("{} as in etc/agent.toml", file.host));
    }
    let found = format!("hostname says {actual}, the cell knows this host as {}", file.host);
    Finding::bad("name", found, "set the host name back, or join again with --host")
}

fn daemons(dir: &Path) -> Vec<Finding> {
    let mut wanted = vec![Daemon::Launcher, Daemon::Agent];
    if dir.join("etc/master.toml").exists() {
        wanted.insert(0, Daemon::Master);
    }
    let judge = |daemon: Daemon| {
        let pid = daemon.pid(dir).map(|pid| pid.to_string()).unwrap_or_default();
        if daemon.is_alive(dir) {
            return Finding::fine("daemon", format!("{} runs, pid {pid}", daemon.name()));
        }
        let fix = format!("gridwright up --dir {} --detach; its log is {}", dir.display(), daemon.log(dir).display());
        Finding::bad("daemon", format!("{} does not run", daemon.name()), fix)
    };
    wanted.into_iter().map(judge).collect()
}

fn credentials(dir: &Path) -> Result<Credentials, String> {
    let read = |name: &str| {
        let path = dir.join("agent").join(name);
        std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
    };
    Credentials::from_pem(&read("host.crt")?, &read("host.key")?, &read("ca.crt")?).map_err(|error| error.to_string())
}

fn certificate(dir: &Path) -> Finding {
    let credentials = match credentials(dir) {
        Ok(credentials) => credentials,
        Err(why) => return Finding::bad("certificate", why, "run the doctor as root, or as the user the cell runs as"),
    };
    let identity = credentials.identity();
    let now = now();
    let days = (identity.not_after.0 - now.0) / 86_400_000;
    let found = format!("of {}, {days} days left", identity.host);
    if identity.is_valid_at(now) {
        return Finding::fine("certificate", found);
    }
    Finding::bad("certificate", found, "check the clock; the agent renews up to 90 days late, after that join again")
}

fn now() -> Wall {
    Wall(jiff::Timestamp::now().as_millisecond())
}

/// A connection of our own to the master, as the agent makes it: shows the way, the admission and the clocks.
fn reach(dir: &Path) -> Vec<Finding> {
    let (Some(file), Ok(credentials)) = (agent_file(dir), credentials(dir)) else { return Vec::new() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else { return Vec::new() };
    let address = MasterAddress { host: file.master_host, port: file.port };
    let place = format!("{} udp/{}", address.host, address.port);
    let connected = runtime.block_on(async {
        let client = quic::Client::new(&credentials).map_err(|error| (error.to_string(), String::new()))?;
        client.connect(&address).await.map_err(|error| {
            let refusal = error.diagnostic();
            (refusal.what, refusal.fix)
        })
    });
    match connected {
        Ok(connection) => {
            vec![Finding::fine("reach", format!("the master answers at {place}")), clock(connection.clock_offset_ms())]
        }
        Err((what, fix)) => vec![Finding::bad("reach", what, fix)],
    }
}

fn clock(offset_ms: Option<i64>) -> Finding {
    match offset_ms {
        None => Finding::fine("clock", "the master did not tell its time"),
        Some(offset) if offset.unsigned_abs() <= MOST_SKEW_MS => {
            Finding::fine("clock", format!("{offset} ms from the master's"))
        }
        Some(offset) => Finding::bad(
            "clock",
            format!("{offset} ms from the master's"),
            "run a time service (chrony, systemd-timesyncd)",
        ),
    }
}

fn control_groups() -> Finding {
    if Path::new("/sys/fs/cgroup/cgroup.controllers").exists() {
        let controllers = std::fs::read_to_string("/sys/fs/cgroup/cgroup.controllers").unwrap_or_default();
        return Finding::fine("control groups", format!("version 2: {}", controllers.trim()));
    }
    if Path::new("/sys/fs/cgroup/memory").exists() {
        return Finding::fine("control groups", "version 1; whole-job limits are enforced by sampling all the same");
    }
    Finding::fine("control groups", "none; jobs are tracked by session, group and descent, limits by sampling")
}

fn name_service() -> Finding {
    let start = Instant::now();
    let found = nix::unistd::User::from_uid(nix::unistd::getuid());
    let took = start.elapsed();
    match found {
        Ok(Some(user)) if took < SLOW_LOOKUP => {
            Finding::fine("name service", format!("{} found in {} ms", user.name, took.as_millis()))
        }
        Ok(Some(user)) => {
            let found = format!("{} found only after {} ms", user.name, took.as_millis());
            Finding::bad(
                "name service",
                found,
                "a slow directory delays every start: look at nsswitch.conf, use a cache (sssd, nscd)",
            )
        }
        Ok(None) | Err(_) => Finding::bad("name service", "this user is unknown", "look at nsswitch.conf"),
    }
}

fn space(dir: &Path) -> Finding {
    match statvfs(dir) {
        Err(error) => Finding::bad(
            "space",
            format!("{}: {error}", dir.display()),
            "the state directory must be on a file system that works",
        ),
        Ok(stat) => {
            let free = stat.blocks_available().saturating_mul(stat.fragment_size());
            let found = format!("{} MiB free in {}", free >> 20, dir.display());
            if free >= LEAST_FREE_BYTES {
                Finding::fine("space", found)
            } else {
                Finding::bad("space", found, "make room: without it no result can be kept")
            }
        }
    }
}

/// Inputs that ended the master twice and that it does not take any more: `COUNT VERSION MARK` in each line of its file.
fn set_aside(dir: &Path) -> Option<Finding> {
    let path = dir.join("master/aborts");
    let text = std::fs::read_to_string(&path).ok()?;
    let mut aside = text.lines().filter_map(|line| line.split_once(' ')).filter(|(count, _)| *count != "1");
    let (_, first) = aside.next()?;
    let mark = first.split_once(' ').map_or(first, |(_, mark)| mark);
    let found = format!("the master sets aside what ended it twice: {mark}, and {} more", aside.count());
    let fix = format!("report it with log/master.log; to try again, remove {} and restart the master", path.display());
    Some(Finding::bad("aborts", found, fix))
}

/// The kernel's limit of UDP receive buffers, where this host is a master.
fn buffer(dir: &Path) -> Option<Finding> {
    if !dir.join("etc/master.toml").exists() {
        return None;
    }
    let limit: u64 = std::fs::read_to_string("/proc/sys/net/core/rmem_max").ok()?.trim().parse().ok()?;
    let found = format!("net.core.rmem_max is {limit}");
    if limit >= RECEIVE_BUFFER_BYTES {
        return Some(Finding::fine("receive buffer", found));
    }
    // Small cells do well without: this is no fault.
    Some(Finding::fine(
        "receive buffer",
        format!("{found}; from a few hundred hosts on install systemd/gridwright.sysctl"),
    ))
}

fn sensors(dir: &Path) -> Vec<Finding> {
    let Some(file) = agent_file(dir) else { return Vec::new() };
    let mut client = match Client::connect(&Site::at(dir), "gridwright doctor") {
        Ok(client) => client,
        Err(error) => return vec![Finding::bad("commands", error.what, error.fix)],
    };
    let reply = match client.query(Query::Sensors { hosts: vec![file.host] }) {
        Ok(reply) => reply,
        Err(error) => return vec![Finding::bad("commands", error.what, error.fix)],
    };
    let Some(Data::Sensors(hosts)) = reply.data else { return Vec::new() };
    let judge = |sensor: &proto::load::SensorStatus| {
        let found = format!("{} is {}", sensor.command, sensor.health);
        if sensor.health == "running" {
            return Finding::fine("sensor", found);
        }
        let fix = format!("{}; try it: gridwright sensor check {}", sensor.last_error, sensor.command);
        Finding::bad("sensor", found, fix)
    };
    hosts.values().flatten().map(judge).collect()
}
