//! The examinations, each of which says what it found and, where that is bad, what to do.

mod boundary;
mod devices;
mod limits;
mod place;

use super::finding::Finding;
use crate::cell_address::CellAddress;
use crate::client::Client;
use crate::commands::up;
use crate::daemons::Daemon;
use crate::folder::Folder;
use nix::sys::statvfs::{FsFlags, Statvfs, fstatvfs, statvfs};
use proto::diagnostic::Diagnostic;
use proto::load::SensorStatus;
use proto::time::Wall;
use proto::wire::client::{Query, QueueFilter};
use proto::wire::view::Data;
use quic::{CaCertificate, CloseCode, Credentials, HostKey, IdentityError, MasterAddress, PeerIdentity};
use serde::Deserialize;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Free space below which a spool directory is in danger.
const LEAST_FREE_BYTES: u64 = 100 << 20;
/// Free files, likewise.
const LEAST_FREE_FILES: u64 = 1000;
/// `disk_reserve_bytes` of `etc/master.toml`, where it is not set.
const DISK_RESERVE_BYTES: i64 = 16 << 20;
/// How long the end of a connection may take to leave this machine.
const GOODBYE: Duration = Duration::from_millis(100);
/// Milliseconds of a day.
const DAY_MS: i64 = 86_400_000;
/// A name service that takes longer delays every start.
const SLOW_LOOKUP: Duration = Duration::from_millis(500);
/// A clock that is further away is worth a remark; certificates bear an hour.
const MOST_SKEW_MS: u64 = 60_000;
/// The receive buffer that a master of many hosts asks for.
const RECEIVE_BUFFER_BYTES: u64 = 16 << 20;

/// What `etc/agent.toml` says about the way to the master; other keys are the agent's business.
#[derive(Deserialize)]
struct AgentFile {
    master_host: String,
    #[serde(default = "default_port")]
    port: u16,
    #[serde(default)]
    cgroup_parent: String,
}

fn default_port() -> u16 {
    6444
}

/// Every examination of the host whose state directory is `dir`.
pub fn all(dir: &Path) -> Vec<Finding> {
    let mut findings = vec![name(dir)];
    findings.extend(local_name(dir));
    findings.extend(place::all(dir));
    findings.extend(agent_file(dir).err());
    findings.extend(daemons(dir));
    findings.push(certificate(dir));
    findings.extend(boundary::all(dir));
    findings.extend(reach(dir));
    findings.extend(reports(dir));
    findings.extend(limits::all(dir));
    findings.extend(devices::all(dir));
    findings.push(name_service());
    findings.push(space(dir));
    findings.extend(reserve(dir));
    findings.extend(space_of_tasks(dir));
    findings.extend(fitness(dir));
    findings.extend(buffer(dir));
    findings.extend(set_aside(dir));
    findings.extend(sensors(dir));
    findings.extend(settings(dir));
    findings
}

/// The examinations of what `gridwright up` finds and does not make.
pub fn of_surroundings(dir: &Path) -> Vec<Finding> {
    let mut findings = vec![name(dir)];
    findings.extend(local_name(dir));
    findings.push(space(dir));
    findings.extend(space_of_tasks(dir));
    findings
}

/// A host whose name in the cell every other machine has, too. A cell of one host works with it.
fn local_name(dir: &Path) -> Option<Finding> {
    let host = up::host_of(dir).filter(|host| is_local(host.as_str()))?;
    let found = format!("the cell knows this host as {host}, which every other machine takes for itself");
    let fix = "before other hosts join: hostnamectl set-hostname NAME, and create the cell anew";
    Some(Finding::note("name", found, fix))
}

/// Whether a name means the machine on which it is used.
fn is_local(name: &str) -> bool {
    name.split('.').next() == Some("localhost")
}

fn agent_file(dir: &Path) -> Result<AgentFile, Finding> {
    let path = dir.join("etc/agent.toml");
    let bad = |why: String, fix: &str| Finding::bad("settings", format!("{}: {why}", path.display()), fix);
    let text = std::fs::read_to_string(&path).map_err(|error| {
        let fix = if error.kind() == ErrorKind::NotFound {
            JOIN
        } else {
            "run the doctor as root, or as the user the cell runs as"
        };
        bad(error.to_string(), fix)
    })?;
    toml::from_str(&text).map_err(|error| {
        let line = error
            .span()
            .map_or(1, |span| text[..span.start.min(text.len())].lines().count().max(1));
        bad(
            format!("line {line}: {}", error.message()),
            "mend that line; the agent does not start with it",
        )
    })
}

/// How a host comes into a cell.
const JOIN: &str = "join the cell: gridwright join MASTER --token-file FILE";

/// A host without a certificate, or with one that cannot be read.
fn nameless(dir: &Path, actual: &str) -> Finding {
    let certificate = Folder::open(&dir.join("agent")).and_then(|folder| folder.read("host.crt"));
    if certificate.is_err_and(|error| error.kind() == ErrorKind::NotFound) {
        let found = format!("hostname says {actual}; the cell has given this host no name");
        return Finding::bad("name", found, JOIN);
    }
    let found = format!("hostname says {actual}; the name in the cell is in the certificate, which cannot be read");
    Finding::note("name", found, "see the line about the certificate")
}

/// The host is the name in its certificate; `hostname` has to lead there, by itself or as the
/// cell's rules of names say.
fn name(dir: &Path) -> Finding {
    let actual = nix::unistd::gethostname()
        .ok()
        .and_then(|name| name.into_string().ok())
        .unwrap_or_default();
    let Some(host) = up::host_of(dir) else {
        return nameless(dir, &actual);
    };
    if host.is_called(&actual) {
        return Finding::fine("name", format!("{host}, as hostname says"));
    }
    if canonical(dir, &actual).as_deref() == Some(host.as_str()) {
        return Finding::fine("name", format!("{host}, which the cell also calls {actual}"));
    }
    let found = format!("hostname says {actual}, the cell knows this host as {host}");
    let fix = format!(
        "hostnamectl set-hostname {host}; or add the line \"{host} {actual}\" to default/common/host_aliases of the master \
         and start it again"
    );
    Finding::bad("name", found, fix)
}

/// What the cell calls a host, if it can be asked.
fn canonical(dir: &Path, name: &str) -> Option<String> {
    let query = Query::HostNames {
        names: vec![name.to_owned()],
    };
    let mut client = Client::connect(&CellAddress::at(dir), "gridwright doctor").ok()?;
    let Data::Names(names) = client.query(query).ok()?.data? else {
        return None;
    };
    names.into_iter().next()
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
        let fix = format!(
            "gridwright up --dir {} --detach; its log is {}",
            dir.display(),
            daemon.log(dir).display()
        );
        Finding::bad("daemon", format!("{} does not run", daemon.name()), fix)
    };
    wanted.into_iter().map(judge).collect()
}

/// The certificate with its key, or what is wrong and the remedy.
fn credentials(dir: &Path) -> Result<Credentials, Finding> {
    const AGAIN: &str = "join again with a new token: gridwright token create, on the master's host";
    let bad = |why: String, fix: &str| Finding::bad("certificate", why, fix);
    let read = |name: &str| {
        let path = dir.join("agent").join(name);
        Folder::open(&dir.join("agent"))
            .and_then(|folder| folder.read(name))
            .map_err(|error| {
                let fix = if error.kind() == ErrorKind::PermissionDenied {
                    "run the doctor as root, or as the user the cell runs as"
                } else {
                    AGAIN
                };
                bad(format!("{}: {error}", path.display()), fix)
            })
    };
    let unusable = |name: &'static str| {
        let path = dir.join("agent").join(name);
        move |error: IdentityError| bad(format!("{} cannot be used: {error}", path.display()), AGAIN)
    };
    let (certificate, key, ca) = (read("host.crt")?, read("host.key")?, read("ca.crt")?);
    // Each by itself first, so that the finding names the file.
    PeerIdentity::from_pem(&certificate).map_err(unusable("host.crt"))?;
    HostKey::from_pem(&key).map_err(unusable("host.key"))?;
    CaCertificate::from_pem(&ca).map_err(unusable("ca.crt"))?;
    Credentials::from_pem(&certificate, &key, &ca).map_err(unusable("host.crt"))
}

fn certificate(dir: &Path) -> Finding {
    let credentials = match credentials(dir) {
        Ok(credentials) => credentials,
        Err(finding) => return finding,
    };
    let identity = credentials.identity();
    let (host, now) = (&identity.host, now());
    let days = |from: Wall, to: Wall| (to.0 - from.0) / DAY_MS;
    if now < identity.not_before {
        let found = format!(
            "of {host}, begins in {} days by this host's clock",
            days(now, identity.not_before) + 1
        );
        return Finding::bad("certificate", found, "set the clock: it is behind");
    }
    if now <= identity.not_after {
        return Finding::fine(
            "certificate",
            format!("of {host}, {} days left", days(now, identity.not_after)),
        );
    }
    let found = format!(
        "of {host}, ended {} days ago by this host's clock",
        days(identity.not_after, now)
    );
    let fix = "check the clock; the agent renews up to 90 days late, after that join again with a new token";
    Finding::bad("certificate", found, fix)
}

/// The master's view: whether the reports of this host arrive.
fn reports(dir: &Path) -> Option<Finding> {
    let host = up::host_of(dir)?;
    let fix = format!("look into {}", Daemon::Agent.log(dir).display());
    Some(match up::has_reported(dir) {
        Ok(true) => Finding::fine("reports", format!("the master has the load of {host}")),
        Ok(false) => Finding::bad("reports", format!("the master has no load report of {host}"), fix),
        Err(refusal) if refusal.fix.is_empty() => Finding::bad("reports", refusal.what, fix),
        Err(refusal) => Finding::bad("reports", refusal.what, refusal.fix),
    })
}

fn now() -> Wall {
    Wall(jiff::Timestamp::now().as_millisecond())
}

/// A connection of our own to the master, as the agent makes it: shows the way, the admission and
/// the clocks.
fn reach(dir: &Path) -> Vec<Finding> {
    let (Ok(file), Ok(credentials)) = (agent_file(dir), credentials(dir)) else {
        return Vec::new();
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else { return Vec::new() };
    let address = MasterAddress {
        host: file.master_host,
        port: file.port,
    };
    let place = format!("{} udp/{}", address.host, address.port);
    let connected = runtime.block_on(async {
        let client = quic::Client::new(&credentials).map_err(|error| (error.to_string(), String::new()))?;
        let connection = client.connect(&address).await.map_err(|error| {
            let refusal = error.diagnostic();
            (refusal.what, refusal.fix)
        })?;
        let offset = connection.clock_offset_ms();
        // A host may have few connections: one that ends unsaid would count until the master misses
        // it, in the agent's place.
        connection.close(CloseCode::Done, "the doctor has seen enough");
        tokio::time::sleep(GOODBYE).await;
        Ok(offset)
    });
    match connected {
        Ok(offset) => vec![
            Finding::fine("reach", format!("the master answers at {place}")),
            clock(offset),
        ],
        Err((what, fix)) => vec![Finding::bad("reach", what, fix)],
    }
}

fn clock(offset_ms: Option<i64>) -> Finding {
    let Some(offset) = offset_ms else {
        return Finding::fine("clock", "the master did not tell its time");
    };
    // The offset is what has to be added here.
    let side = if offset > 0 { "behind" } else { "ahead of" };
    let found = match offset.unsigned_abs() {
        ms if ms < 1000 => format!("{ms} ms {side} the master's"),
        ms => format!("{} s {side} the master's", ms / 1000),
    };
    if offset.unsigned_abs() <= MOST_SKEW_MS {
        return Finding::fine("clock", found);
    }
    Finding::bad(
        "clock",
        found,
        "set the clock that is wrong, best by NTP on both hosts (chrony, systemd-timesyncd)",
    )
}

fn name_service() -> Finding {
    let start = Instant::now();
    let found = nix::unistd::User::from_uid(nix::unistd::getuid());
    let took = start.elapsed();
    match found {
        Ok(Some(user)) if took < SLOW_LOOKUP => Finding::fine(
            "name service",
            format!("{} found in {} ms", user.name, took.as_millis()),
        ),
        Ok(Some(user)) => {
            let found = format!("{} found only after {} ms", user.name, took.as_millis());
            Finding::bad(
                "name service",
                found,
                "a slow directory delays every start: look at nsswitch.conf, use a cache (sssd, nscd)",
            )
        }
        Ok(None) | Err(_) => {
            let found = format!("uid {} is unknown", nix::unistd::getuid());
            let fix = "getent passwd must know every user of the cell: look at /etc/nsswitch.conf and its services";
            Finding::bad("name service", found, fix)
        }
    }
}

fn space(dir: &Path) -> Finding {
    match statvfs(dir) {
        Err(error) => Finding::bad(
            "space",
            format!("{}: {error}", dir.display()),
            "the state directory must be on a file system that works",
        ),
        Ok(stat) => judge_space(dir, &stat),
    }
}

/// The place of the tasks, where it is a file system of its own.
fn space_of_tasks(dir: &Path) -> Option<Finding> {
    let tasks = dir.join("tasks");
    let device = |path: &Path| std::fs::metadata(path).map(|found| found.dev()).ok();
    (tasks.exists() && device(&tasks) != device(dir)).then(|| space(&tasks))
}

/// What keeps the host from starting jobs, as the master knows it.
fn fitness(dir: &Path) -> Option<Finding> {
    let host = up::host_of(dir)?;
    let filter = QueueFilter {
        explain: "E".to_owned(),
        states: "E".to_owned(),
        ..QueueFilter::default()
    };
    let reply = Client::connect(&CellAddress::at(dir), "gridwright doctor")
        .ok()?
        .query(Query::Queues(filter))
        .ok()?;
    let Data::Queues(queues) = reply.data? else { return None };
    let closed: Vec<_> = queues.into_iter().filter(|queue| queue.host == host).collect();
    let first = closed.first()?;
    let why = first.explain.last().map_or("", String::as_str);
    let found = format!("{} queue instances of {host} are in error: {why}", closed.len());
    let fix = format!("mend what it names; what stays then is opened by qmod -cq '*@{host}'");
    Some(Finding::bad("starts", found, fix))
}

fn judge_space(dir: &Path, stat: &Statvfs) -> Finding {
    let free = stat.blocks_available().saturating_mul(stat.fragment_size());
    let found = format!(
        "{} MiB and {} files free in {}",
        free >> 20,
        stat.files_available(),
        dir.display()
    );
    if stat.flags().contains(FsFlags::ST_RDONLY) {
        let found = format!("{} is mounted read-only", dir.display());
        return Finding::bad("space", found, "mount it for writing: results are kept there");
    }
    // Some file systems count no files: they say that there are none at all.
    let has_files = stat.files() == 0 || stat.files_available() >= LEAST_FREE_FILES;
    if free >= LEAST_FREE_BYTES && has_files {
        return Finding::fine("space", found);
    }
    Finding::bad("space", found, "make room: without it no result can be kept")
}

/// The room that the master keeps for itself, where it has given that up.
fn reserve(dir: &Path) -> Option<Finding> {
    let text = std::fs::read_to_string(dir.join("etc/master.toml")).ok()?;
    let settings: toml::Table = text.parse().ok()?;
    let wanted = settings.get("disk_reserve_bytes").and_then(toml::Value::as_integer);
    let wanted = u64::try_from(wanted.unwrap_or(DISK_RESERVE_BYTES))
        .ok()
        .filter(|wanted| *wanted > 0)?;
    let folder = dir.join("master");
    // Only the master's own user and root can tell.
    let opened = Folder::below(dir, &["master"]).ok()?;
    let stat = fstatvfs(opened.handle()).ok()?;
    let free = stat.blocks_available().saturating_mul(stat.fragment_size());
    let is_whole = match opened.facts("reserve") {
        Ok(about) => u64::try_from(about.st_size) == Ok(wanted),
        Err(error) if error.kind() == ErrorKind::NotFound => false,
        Err(_) => return None,
    };
    // A reserve that is missing is made anew where there is room for it and as much again.
    if free >= if is_whole { wanted / 2 } else { 2 * wanted } {
        if is_whole || !Daemon::Master.is_alive(dir) {
            return None;
        }
        let found = format!(
            "the master cannot make {}/reserve anew although {} MiB are free: it refuses changes",
            folder.display(),
            free >> 20
        );
        return Some(Finding::bad(
            "reserve",
            found,
            "look at the quotas of the account that the master runs as",
        ));
    }
    let found = format!(
        "{} MiB are free in {}: the master refuses changes",
        free >> 20,
        folder.display()
    );
    let fix = format!(
        "make {} MiB free there; the master goes on by itself",
        (2 * wanted) >> 20
    );
    Some(Finding::bad("reserve", found, fix))
}

fn set_aside(dir: &Path) -> Option<Finding> {
    let path = dir.join("master/aborts");
    let text = Folder::open(&dir.join("master")).ok()?.read("aborts").ok()?;
    let mut aside = text
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter(|(count, _)| *count != "1");
    let (_, first) = aside.next()?;
    let mark = first.split_once(' ').map_or(first, |(_, mark)| mark);
    let found = format!(
        "the master sets aside what ended it twice: {mark}, and {} more",
        aside.count()
    );
    let fix = format!(
        "report it with log/master.log; to try again, remove {} and restart the master",
        path.display()
    );
    Some(Finding::bad("aborts", found, fix))
}

/// The kernel's limit of UDP receive buffers, where this host is a master.
fn buffer(dir: &Path) -> Option<Finding> {
    if !dir.join("etc/master.toml").exists() {
        return None;
    }
    let limit: u64 = std::fs::read_to_string("/proc/sys/net/core/rmem_max")
        .ok()?
        .trim()
        .parse()
        .ok()?;
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
    let Some(host) = up::host_of(dir) else {
        return Vec::new();
    };
    let mut client = match Client::connect(&CellAddress::at(dir), "gridwright doctor") {
        Ok(client) => client,
        Err(error) => return vec![Finding::bad("commands", error.what, error.fix)],
    };
    let reply = match client.query(Query::Sensors {
        hosts: vec![host.to_string()],
    }) {
        Ok(reply) => reply,
        Err(error) => return vec![Finding::bad("commands", error.what, error.fix)],
    };
    let Some(Data::Sensors(hosts)) = reply.data else {
        return Vec::new();
    };
    hosts.values().flatten().map(judge_sensor).collect()
}

/// Whether a load sensor does its work, and whether the cell can use its values.
pub fn judge_sensor(sensor: &SensorStatus) -> Finding {
    let found = format!("{} is {}", sensor.command, sensor.health);
    let fix = format!("try it: gridwright sensor check {}", sensor.command);
    if sensor.faults.count > 0 {
        let first = sensor.faults.examples.first().map_or("", String::as_str);
        let found = format!(
            "{found}, with {} values that the cell cannot use: {first}",
            sensor.faults.count
        );
        return Finding::bad("sensor", found, fix);
    }
    if matches!(sensor.health.as_str(), "running" | "starting") {
        return Finding::fine("sensor", found);
    }
    let found = if sensor.last_error.is_empty() {
        found
    } else {
        format!("{found}: {}", sensor.last_error)
    };
    Finding::bad("sensor", found, fix)
}

/// Settings of the cell that have no effect. Without a connection the examination of the sensors
/// says what is wrong.
fn settings(dir: &Path) -> Vec<Finding> {
    let Ok(mut client) = Client::connect(&CellAddress::at(dir), "gridwright doctor") else {
        return Vec::new();
    };
    let Ok(reply) = client.query(Query::WithoutEffect) else {
        return Vec::new();
    };
    let Some(Data::Warnings(warnings)) = reply.data else {
        return Vec::new();
    };
    if warnings.is_empty() {
        return vec![Finding::fine("settings", "each setting of the cell has its effect")];
    }
    let found = |warning: &Diagnostic| format!("{}: {}", warning.place, warning.what.trim_start_matches("warning: "));
    warnings
        .iter()
        .map(|warning| Finding::note("settings", found(warning), warning.fix.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_every_machine_has_is_local() {
        for (name, expected) in [
            ("localhost", true),
            ("localhost.localdomain", true),
            ("localhost4", false),
            ("node1", false),
        ] {
            assert_eq!(is_local(name), expected, "{name}");
        }
    }
}
