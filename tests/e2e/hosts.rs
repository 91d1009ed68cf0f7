//! More hosts, each in a network namespace, joined with the words of the README.

use gridwright_tests::cell::{
    Cell, Clock, CommandOutput, CommandUser, Network, PATIENCE, available, is_root, wait_until,
};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Whether hosts can be made here.
pub fn can_have_hosts() -> bool {
    available("root and iproute2", is_root() && Path::new("/usr/sbin/ip").exists())
}

/// Hosts, and a firewall on one of them.
pub fn can_have_firewalls() -> bool {
    can_have_hosts() && available("nft", Path::new("/usr/sbin/nft").exists())
}

/// A master on `h1`, up and on the port of a new cell.
pub fn master(network: &Arc<Network>) -> Cell {
    let cell = Cell::on(network, "h1");
    cell.bring_up(&["--slots", "2", "--port", "6444"]).ok();
    cell.keep_temporary_directories_apart();
    cell
}

pub fn token(master: &Cell, words: &[&str]) -> String {
    master.admin(&[&["token"], words].concat()).ok().out.trim().to_owned()
}

pub fn join(host: &Cell, token: &str) -> CommandOutput {
    let (dir, file) = (host.dir_word(), host.write_top("token", &format!("{token}\n"), 0o600));
    let patience = PATIENCE.as_secs().to_string();
    let file = file.display().to_string();
    host.admin(&[
        "join",
        "h1:6444",
        "--token-file",
        &file,
        "--dir",
        &dir,
        "--wait",
        &patience,
    ])
}

/// The words of a host's line in `qhost`.
pub fn line_of(master: &Cell, host: &str) -> Vec<String> {
    let listing = master.admin(&["qhost"]).ok().out;
    let line = listing
        .lines()
        .find(|line| line.split_whitespace().next() == Some(host))
        .unwrap_or_default();
    line.split_whitespace().map(str::to_owned).collect()
}

pub fn reports(master: &Cell, host: &str) -> bool {
    line_of(master, host).get(6).is_some_and(|load| load != "-")
}

/// A job of the ordinary account of `from`, on the host `on`; its number.
pub fn submit_on(from: &Cell, on: &str, words: &[&str]) -> String {
    from.submit(&[&["-q", &format!("all.q@{on}")], words].concat())
}

#[test]
fn two_more_hosts_join_run_jobs_and_sensors_and_let_users_submit() {
    if !can_have_hosts() {
        return;
    }
    let network = Arc::new(Network::with_hosts(&["h1", "h2", "h3"]));
    let master = master(&network);
    master.add_complex("site site STRING == YES NO NONE 0");
    let sensor = "#!/bin/sh\nwhile read request; do\n[ \"$request\" = quit ] && exit 0\necho begin\necho \"$HOST:site:at-$(uname -n)\"\necho end\ndone\n";
    let sensor = master.write_top("site.sh", sensor, 0o755).display().to_string();
    master.set_global("load_sensor", &sensor);
    let others = ["h2", "h3"].map(|name| Cell::on(&network, name));
    for (cell, name) in others.iter().zip(["h2", "h3"]) {
        let said = join(cell, &token(&master, &[])).ok();
        assert!(said.out.contains(&format!("joined as {name}")), "{said}");
        assert!(
            reports(&master, name),
            "join waits for this host's first report: {}",
            master.admin(&["qhost"])
        );
        let job = submit_on(&master, name, &["-b", "y", "uname", "-n"]);
        let record = master.accounted(&job, 1).remove(0);
        assert_eq!((record.value("hostname"), record.value("exit_status")), (name, "0"));
        assert_eq!(master.output(&record).trim(), name);
        let values = || master.admin(&["qhost", "-F", "site", "-h", name]).out;
        wait_until(values, || values().contains(&format!("site=at-{name}")));
    }
    let from = &others[0];
    from.run(CommandUser::User, &["qsub", "-b", "y", "true"])
        .refused(&["h2", "submit"]);
    master.admin(&["qconf", "-as", "h2"]).ok();
    let job = submit_on(from, "h3", &["-b", "y", "true"]);
    assert_eq!(from.accounted(&job, 1)[0].value("hostname"), "h3");
    from.run(CommandUser::Admin, &["qconf", "-mattr", "queue", "slots", "9", "all.q"])
        .refused(&[]);
}

#[test]
fn a_host_that_is_cut_off_is_seen_and_its_jobs_are_accounted_when_it_is_back() {
    if !can_have_hosts() {
        return;
    }
    let network = Arc::new(Network::with_hosts(&["h1", "h2"]));
    let master = master(&network);
    master.set_global("max_unheard", "0:0:10");
    let other = Cell::on(&network, "h2");
    join(&other, &token(&master, &[])).ok();
    wait_until(|| master.admin(&["qhost"]).out, || reports(&master, "h2"));
    master.write(
        "job.sh",
        "#!/bin/sh\necho start >>starts\nwhile [ ! -e go ]; do sleep 0.1; done\necho done\n",
        0o755,
    );
    let running = submit_on(&master, "h2", &["job.sh"]);
    wait_until(|| master.state_of(&running), || master.read("starts") == "start\n");
    network.cut("h2");
    // The transport believes in the connection for the better part of a minute; commands there do
    // not wait for that.
    other
        .run(CommandUser::User, &["qstat"])
        .refused(&["no connection to the master", "fix:", "gridwright doctor"]);
    wait_until(|| master.admin(&["qhost"]).out, || !reports(&master, "h2"));
    let waiting = submit_on(&master, "h2", &["-b", "y", "true"]);
    master.write("go", "", 0o644);
    wait_until(
        || master.state_of(&running),
        || master.read(&format!("job.sh.o{running}")) == "done\n",
    );
    network.heal("h2");
    assert_eq!(master.accounted(&running, 1)[0].value("exit_status"), "0");
    assert_eq!(master.accounted(&waiting, 1)[0].value("hostname"), "h2");
    assert_eq!(master.read("starts"), "start\n");
    wait_until(|| master.admin(&["qhost"]).out, || reports(&master, "h2"));
}

#[test]
fn a_host_is_listed_and_leaves_the_cell_when_nothing_runs_there() {
    if !can_have_hosts() {
        return;
    }
    let network = Arc::new(Network::with_hosts(&["h1", "h2"]));
    let master = master(&network);
    let other = Cell::on(&network, "h2");
    join(&other, &token(&master, &["create"])).ok();
    for words in [
        &["qconf", "-as", "h2"][..],
        &["qconf", "-rattr", "queue", "slots", "3", "all.q@h2"],
        &["qconf", "-aattr", "queue", "hostlist", "h2", "all.q"],
    ] {
        master.admin(words).ok();
    }
    let listing = || master.admin(&["host", "list"]).ok().out;
    let line = || {
        listing()
            .lines()
            .find(|line| line.starts_with("h2 "))
            .unwrap_or_default()
            .to_owned()
    };
    assert!(
        line().contains("connected") && line().ends_with("execution, submission"),
        "{}",
        listing()
    );
    let job = submit_on(&master, "h2", &["-b", "y", "sleep", "600"]);
    master.wait_for_state(&job, "r");
    let found = ["all.q", "@allhosts", job.as_str()];
    let refused =
        master
            .admin(&["host", "remove", "h2"])
            .refused(&["tasks run on host \"h2\"", "qmod -d '*@h2'", "--force"]);
    assert!(found.iter().all(|word| refused.out.contains(word)), "{refused}");
    master
        .admin(&["host", "remove", "h1"])
        .refused(&["host of the master", "fix:"]);
    master.admin(&["qdel", &job]).ok();
    master.accounted(&job, 1);
    master.admin(&["host", "remove", "h2", "--dry-run"]).ok();
    assert!(listing().contains("h2 "), "{}", listing());
    let removed = master.admin(&["host", "remove", "h2"]).ok();
    assert!(removed.out.contains("host h2 is removed"), "{removed}");
    for words in [
        &["host", "list"][..],
        &["qconf", "-sel"],
        &["qconf", "-ss"],
        &["qconf", "-sq", "all.q"],
        &["qconf", "-shgrp", "@allhosts"],
    ] {
        let said = master.admin(words).ok();
        assert!(!said.out.contains("h2"), "{said}");
    }
    other.down(&[]).ok();
    // Its certificate is worth nothing any more; with a new token it is a new host.
    join(&other, &token(&master, &[])).ok();
    assert!(line().contains("connected"), "{}", listing());
}

#[test]
fn a_join_that_cannot_be_says_why_and_what_to_do() {
    if !can_have_hosts() {
        return;
    }
    let network = Arc::new(Network::with_hosts(&["h1", "h2", "h3"]));
    let master = master(&network);
    let [second, third] = ["h2", "h3"].map(|name| Cell::on(&network, name));
    let used = token(&master, &[]);
    join(&second, "nonsense").refused(&["token", "fix:"]);
    let mut wrong = used.clone();
    wrong.replace_range(wrong.len() - 1.., if wrong.ends_with('a') { "b" } else { "a" });
    join(&second, &wrong).refused(&["token", "fix:"]);
    let expired = token(&master, &["--valid", "1"]);
    let made = Instant::now();
    wait_until(
        || "the end of a token's life".to_owned(),
        || made.elapsed() > Duration::from_secs(2),
    );
    join(&second, &expired).refused(&["token", "expired", "fix:"]);
    join(&second, &token(&master, &["--hosts", "node*"])).refused(&["node*", "fix:"]);
    join(&second, &used).ok();
    join(&third, &used).refused(&["token", "used", "fix:"]);
    let dir = third.dir_word();
    let fresh = token(&master, &[]);
    third
        .admin(&["join", "h1:6444", &fresh, "--dir", &dir, "--host", "h2"])
        .refused(&["h2", "fix:", "revoke"]);
    network.cut("h3");
    let fresh = token(&master, &[]);
    join(&third, &fresh).refused(&["no answer from h1 udp/6444: firewall?", "fix:"]);
    network.heal("h3");
    join(&third, &fresh).ok();
    wait_until(|| master.admin(&["qhost"]).out, || reports(&master, "h3"));
}

#[test]
fn a_join_whose_host_does_not_report_says_so_in_time() {
    if !can_have_hosts() {
        return;
    }
    let network = Arc::new(Network::with_hosts(&["h1", "h2"]));
    let (master, other) = (master(&network), Cell::on(&network, "h2"));
    let run = other.dir().join("run/launcher");
    std::fs::create_dir_all(&run).unwrap();
    let lock = std::fs::File::create(run.join("lock")).unwrap();
    let _launcher = nix::fcntl::Flock::lock(lock, nix::fcntl::FlockArg::LockExclusive).unwrap();
    let (given, dir) = (token(&master, &[]), other.dir_word());
    let words = ["join", "h1:6444", &given, "--dir", &dir, "--wait", "1"];
    other.admin(&words).refused(&[
        "no load report of host h2 within 1 s",
        "where:",
        "why:",
        "fix:",
        "doctor",
    ]);
}

#[test]
fn a_host_whose_clock_is_years_off_cannot_join_and_is_told_both_times() {
    if !can_have_hosts() || !available("a C compiler", Clock::can_be_shifted()) {
        return;
    }
    let network = Arc::new(Network::with_hosts(&["h1", "h2"]));
    let (master, other) = (master(&network), Cell::on(&network, "h2"));
    let (given, dir) = (token(&master, &[]), other.dir_word());
    let clock = Clock::new(other.top());
    for years in [-3, 3] {
        let mut command = other.command(CommandUser::Admin, &other.programs().gridwright());
        command.args(["join", "h1:6444", &given, "--dir", &dir]);
        clock.shift(&mut command, years * 365 * 86_400);
        CommandOutput::run(command).refused(&["the clocks differ: here it is", "at the master", "fix:", "NTP"]);
    }
    join(&other, &given).ok();
}

#[test]
fn a_firewall_between_a_host_and_the_master_is_named_with_its_port() {
    if !can_have_firewalls() {
        return;
    }
    let network = Arc::new(Network::with_hosts(&["h1", "h2"]));
    let (master, other) = (master(&network), Cell::on(&network, "h2"));
    let given = token(&master, &[]);
    network.block_udp("h1", 6444);
    join(&other, &given).refused(&["no answer from h1 udp/6444: firewall?", "fix:", "UDP"]);
    network.unblock("h1");
    join(&other, &given).ok();
}
