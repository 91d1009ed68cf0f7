//! What is wrong with a host, one thing after the other, and whether `gridwright doctor` finds it
//! and names the remedy.

use crate::hosts::{can_have_firewalls, can_have_hosts, join, master, reports, token};
use gridwright_tests::cell::{Cell, Clock, CommandOutput, CommandUser, Network, wait_until};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

/// `gridwright doctor` of a host.
fn doctor(host: &Cell) -> CommandOutput {
    let dir = host.dir_word();
    host.admin(&["doctor", "--dir", &dir])
}

/// Everything is fine.
fn healthy(host: &Cell) {
    let said = doctor(host).ok();
    assert!(!said.out.contains("BAD") && !said.out.contains("fix:"), "{said}");
}

/// The finding of one check is bad, says `words` and names a remedy; none of the others is bad.
#[track_caller]
fn found(said: &CommandOutput, check: &str, words: &[&str]) {
    assert_eq!(said.code, 1, "{said}");
    let mut lines = said
        .out
        .lines()
        .skip_while(|line| !line.starts_with(&format!("BAD  {check}: ")));
    let (finding, fix) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    assert!(fix.starts_with("       fix: ") && fix.len() > 20, "{check}: {said}");
    for word in words {
        assert!(
            finding.contains(word) || fix.contains(word),
            "{check}: {word:?} is not in {said}"
        );
    }
}

/// Waits until the doctor of a host finds that. On a machine that is busy a finding may have
/// another reason first: the master has forgotten a connection before the doctor has heard why it
/// was closed.
#[track_caller]
fn found_soon(host: &Cell, check: &str, words: &[&str]) {
    let has = |said: &CommandOutput| words.iter().all(|word| said.out.contains(word));
    let mut said = doctor(host);
    wait_until(
        || format!("{check}: {words:?} is not in {}", doctor(host)),
        || {
            said = doctor(host);
            has(&said)
        },
    );
    found(&said, check, words);
}

/// A second host that has joined, beside its master.
fn two_hosts() -> Option<(Arc<Network>, Cell, Cell)> {
    if !can_have_hosts() {
        return None;
    }
    let network = Arc::new(Network::with_hosts(&["h1", "h2"]));
    let (master, other) = (master(&network), Cell::on(&network, "h2"));
    join(&other, &token(&master, &[])).ok();
    Some((network, master, other))
}

/// Puts `text` into a file of the host while `act` runs.
fn with_file(host: &Cell, name: &str, change: impl Fn(&str) -> String, act: impl Fn()) {
    let path = host.dir().join(name);
    let before = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, change(&before)).unwrap();
    act();
    std::fs::write(&path, before).unwrap();
}

#[test]
fn each_thing_that_is_wrong_with_a_host_is_found_with_its_remedy() {
    if !can_have_firewalls() {
        return;
    }
    let Some((network, master, other)) = two_hosts() else {
        return;
    };
    // Many examinations one after the other do not end the agent's own connection.
    for _ in 0..6 {
        healthy(&other);
    }
    healthy(&master);
    let junk = |_: &str| "junk\n".to_owned();
    with_file(&other, "agent/host.crt", junk, || {
        found(&doctor(&other), "certificate", &["host.crt", "join again"])
    });
    with_file(&other, "agent/host.key", junk, || {
        found(&doctor(&other), "certificate", &["host.key", "join again"])
    });
    let unknown = |text: &str| format!("{text}\nport = \"many\"\n");
    with_file(&other, "etc/agent.toml", unknown, || {
        found(&doctor(&other), "settings", &["agent.toml", "line"])
    });
    let parent = |text: &str| text.replace("#cgroup_parent = \"\"", "cgroup_parent = \"/no/such/group\"");
    with_file(&other, "etc/agent.toml", parent, || {
        found(&doctor(&other), "control groups", &["/no/such/group", "mkdir"])
    });
    let mut renamed = other.command(CommandUser::Admin, Path::new("sh"));
    renamed
        .args(["-c", "echo other >/proc/sys/kernel/hostname; exec \"$@\"", "sh"])
        .arg(other.programs().gridwright());
    renamed.args(["doctor", "--dir", &other.dir_word()]);
    found(&CommandOutput::run(renamed), "name", &["other", "h2", "host_aliases"]);
    other.kill("launcher");
    found_soon(&other, "daemon", &["launcher does not run", "gridwright up"]);
    other.bring_up(&[]).ok();
    network.block_udp("h1", 6444);
    found_soon(&other, "reach", &["no answer from h1 udp/6444: firewall?", "UDP"]);
    network.unblock("h1");
    wait_until(|| master.admin(&["qhost"]).out, || reports(&master, "h2"));
    wait_until(|| doctor(&other).out, || doctor(&other).code == 0);
    network.overlay("h2", "passwd", "nobody:x:65534:65534::/:/bin/false\n");
    // The name service of systemd knows root by itself.
    let dir = other.dir_word();
    found(
        &other.run(CommandUser::User, &["doctor", "--dir", &dir]),
        "name service",
        &["unknown", "getent"],
    );
    network.overlay("h2", "passwd", &std::fs::read_to_string("/etc/passwd").unwrap());
    healthy(&other);
    master.admin(&["host", "revoke", "h2"]).ok();
    found_soon(&other, "reach", &["revoked", "token"]);
}

#[test]
fn the_cell_is_examined_from_each_host_and_one_that_is_away_comes_first() {
    let Some((network, master, other)) = two_hosts() else {
        return;
    };
    let examined = |host: &Cell| {
        let dir = host.dir_word();
        host.admin(&["doctor", "--cell", "--dir", &dir])
    };
    wait_until(|| examined(&master).out, || examined(&master).code == 0);
    let said = examined(&other).ok();
    for line in ["ok   master h1: ", "ok   host h1: ", "ok   host h2: "] {
        assert!(said.out.contains(line), "{line}: {said}");
    }
    network.cut("h2");
    found(&examined(&other), "master", &["no answer"]);
    network.heal("h2");
    wait_until(|| examined(&other).out, || examined(&other).code == 0);
    other.down(&[]).ok();
    wait_until(|| examined(&master).out, || examined(&master).code == 1);
    let said = examined(&master);
    found(&said, "host h2", &["not connected", "gridwright host remove h2"]);
    assert!(said.out.starts_with("BAD  host h2: "), "{said}");
}

#[test]
fn a_host_that_is_called_localhost_is_warned_of_when_its_cell_comes_up() {
    if !can_have_hosts() {
        return;
    }
    let network = Arc::new(Network::with_hosts(&["h1"]));
    let cell = Cell::on(&network, "h1");
    let mut up = cell.command(CommandUser::Admin, Path::new("sh"));
    up.args(["-c", "echo localhost >/proc/sys/kernel/hostname; exec \"$@\"", "sh"])
        .arg(cell.programs().gridwright());
    up.args(["up", "--detach", "--port", "6444", "--dir", &cell.dir_word()]);
    let said = CommandOutput::run(up).ok();
    for words in ["warning: ", "localhost", "hostnamectl set-hostname"] {
        assert!(said.err.contains(words), "{words}: {said}");
    }
    cell.down(&[]).ok();
}

#[test]
fn a_wrong_clock_is_found_before_it_hurts_and_after() {
    if !Clock::can_be_shifted() {
        return;
    }
    let Some((_network, _master, other)) = two_hosts() else {
        return;
    };
    let clock = Clock::new(other.top());
    let at = |seconds: i64| {
        let mut command = other.command(CommandUser::Admin, &other.programs().gridwright());
        command.args(["doctor", "--dir", &other.dir_word()]);
        clock.shift(&mut command, seconds);
        CommandOutput::run(command)
    };
    found(&at(86_400), "clock", &["s ahead of the master's", "NTP"]);
    found(&at(-1_800), "clock", &["s behind the master's", "NTP"]);
    let behind = at(-30 * 86_400);
    found(&behind, "certificate", &["begins in 30 days", "clock"]);
    found(&behind, "reach", &["the clocks differ", "NTP"]);
    found(&at(3 * 365 * 86_400), "certificate", &["ended", "days ago", "clock"]);
}

#[test]
fn a_full_state_directory_and_a_bad_sensor_are_found() {
    let cell = Cell::up();
    healthy(&cell);
    let sensor = cell
        .write_top("dies.sh", "#!/bin/sh\necho no licence >&2\nexit 7\n", 0o755)
        .display()
        .to_string();
    cell.set_global("load_report_time", "0:0:1");
    cell.set_global("load_sensor", &sensor);
    wait_until(|| doctor(&cell).out, || doctor(&cell).code == 1);
    found_soon(
        &cell,
        "sensor",
        &["dies.sh", "failing", "exit status 7", "gridwright sensor check"],
    );
    cell.set_global("load_sensor", "none");
    wait_until(|| doctor(&cell).out, || doctor(&cell).code == 0);
    if !gridwright_tests::cell::is_root() {
        return;
    }
    // The doctor alone sees the small file system: in a mount namespace of its own.
    let (dir, gridwright) = (cell.dir_word(), cell.programs().gridwright().display().to_string());
    let small = "mkdir -p /tmp/. && cp -a \"$1\" \"$1.copy\" && mount -t tmpfs -o size=64m small \"$1\" && cp -a \"$1.copy\"/. \"$1\" \
                 && rm -r \"$1.copy\" && exec \"$2\" doctor --dir \"$1\"";
    let said = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", script, "sh", &dir, &gridwright]);
        CommandOutput::run(command)
    };
    found(&said(small), "space", &["MiB", "make room"]);
    let read_only = "mount --bind \"$1\" \"$1\" && mount -o remount,bind,ro \"$1\" && exec \"$2\" doctor --dir \"$1\"";
    found(&said(read_only), "space", &["read-only", "mount"]);
}
