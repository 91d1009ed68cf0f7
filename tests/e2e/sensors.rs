//! Load sensors, good and bad ones at once.

use gridwright_tests::cell::{Cell, resident_kib, wait_until};
use std::path::Path;

/// Never answers.
const HANGS: &str = "#!/bin/sh\nread request\nwhile read request; do :; done\n";

/// Writes as fast as it can, without ever ending a line.
const FLOODS: &str = "#!/bin/sh\nexec cat /dev/zero\n";

/// Ends before it is asked.
const DIES: &str = "#!/bin/sh\necho no licence >&2\nexit 7\n";

/// One line of `gridwright sensor status` and what follows it.
pub fn status_of(cell: &Cell, sensor: &str) -> String {
    let status = cell.user(&["sensor", "status"]).ok().out;
    let mut lines = status.lines().skip_while(|line| !line.contains(&format!("{sensor}:")));
    let head = lines.next().unwrap_or_default().to_owned();
    lines
        .take_while(|line| line.starts_with("  "))
        .fold(head, |all, line| all + "\n" + line)
}

/// The number before a word of a status line.
pub fn number_before(status: &str, word: &str) -> Option<u64> {
    status.split(word).next()?.split_whitespace().next_back()?.parse().ok()
}

#[test]
fn a_good_sensor_stays_fresh_beside_one_that_hangs_one_that_floods_and_one_that_dies() {
    let cell = Cell::up();
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sensors/scripts/logins.sh");
    let logins = std::fs::read_to_string(ours).unwrap();
    let files = [
        ("logins.sh", logins.as_str()),
        ("hangs.sh", HANGS),
        ("floods.sh", FLOODS),
        ("dies.sh", DIES),
    ];
    let paths = files.map(|(name, text)| cell.write_top(name, text, 0o755).display().to_string());
    cell.user(&["sensor", "check", &paths[0]]).ok();
    cell.add_complex("logins logins INT <= YES NO 0 0");
    cell.set_global("load_report_time", "0:0:1");
    let before = resident_kib(cell.pid("agent"));
    cell.set_global("load_sensor", &paths.join(","));
    let values = || cell.user(&["qhost", "-F", "logins"]).ok().out;
    wait_until(
        || format!("a value of logins: {}", values()),
        || values().contains("logins="),
    );
    wait_until(
        || status_of(&cell, "dies.sh"),
        || number_before(&status_of(&cell, "dies.sh"), " restarts") >= Some(3),
    );
    for _ in 0..5 {
        let record = cell.run_script("#!/bin/sh\ntrue\n", &[]);
        assert_eq!(record.value("exit_status"), "0");
        let good = || status_of(&cell, "logins.sh");
        let is_fresh = |good: &str| number_before(good, " s ago").is_some_and(|age| age <= 5);
        wait_until(good, || good().contains("running") && is_fresh(&good()));
    }
    // Where it has just been started again it has not failed yet.
    wait_until(
        || status_of(&cell, "dies.sh"),
        || status_of(&cell, "dies.sh").contains("starts again in"),
    );
    let dead = status_of(&cell, "dies.sh");
    assert!(dead.contains("failing") && dead.contains("no licence"), "{dead}");
    let flooding = status_of(&cell, "floods.sh");
    assert!(!flooding.contains(": running"), "{flooding}");
    let hanging = status_of(&cell, "hangs.sh");
    assert!(
        hanging.contains("0 values") && !hanging.contains("last block"),
        "{hanging}"
    );
    let after = resident_kib(cell.pid("agent"));
    assert!(
        after < before + (8 << 10),
        "the agent grew from {before} to {after} KiB"
    );
}

/// Says once a second what it is given as words.
fn saying(lines: &[&str]) -> String {
    let lines: Vec<String> = lines.iter().map(|line| format!("echo \"{line}\"; ")).collect();
    format!(
        "#!/bin/sh\nwhile read line; do [ \"$line\" = quit ] && exit 0\necho begin; {}echo end\ndone\n",
        lines.concat()
    )
}

#[test]
fn values_that_the_cell_cannot_use_are_named_everywhere_and_hide_no_good_one() {
    let cell = Cell::up();
    let none = cell.user(&["sensor", "status"]).ok();
    assert!(none.err.contains("no load sensor") && none.out.is_empty(), "{none}");
    cell.add_complex("slowval slowval INT <= YES NO 0 0");
    cell.set_global("load_report_time", "0:0:1");
    let good = cell
        .write_top("good.sh", &saying(&["$HOST:slowval:7"]), 0o755)
        .display()
        .to_string();
    let lines = ["$HOST:slowval:abc", "$HOST:notdefined:3", "other:slowval:3"];
    let bad = cell.write_top("bad.sh", &saying(&lines), 0o755).display().to_string();
    cell.set_global("load_sensor", &format!("{good},{bad}"));
    let status = || status_of(&cell, "bad.sh");
    wait_until(status, || status().contains("3 bad values"));
    for part in [
        "\"abc\" is not of type INT",
        "notdefined",
        "host other: it is no execution host",
    ] {
        assert!(status().contains(part), "{part} in {}", status());
    }
    let values = || cell.user(&["qhost", "-F", "slowval"]).ok().out;
    wait_until(values, || values().contains("hl:slowval=7"));
    let doctor = cell.admin(&["doctor"]).to_string();
    assert!(doctor.contains("3 values that the cell cannot use"), "{doctor}");
    let checked = cell.user(&["sensor", "check", &bad]).ok().out;
    assert!(
        checked.contains("works, with warnings") && checked.contains("no execution host"),
        "{checked}"
    );
    let checked = cell.user(&["sensor", "check", &good]).ok().out;
    assert!(checked.contains("\ngood: "), "{checked}");
    let log = || cell.log("agent");
    assert_eq!(log().matches("is not of type INT").count(), 1, "{}", log());
    assert_eq!(
        cell.log("master").matches("it is no execution host").count(),
        1,
        "{}",
        cell.log("master")
    );
}

#[test]
fn a_sensor_that_takes_longer_than_load_report_time_is_told_so() {
    let cell = Cell::up();
    cell.set_global("load_report_time", "0:0:1");
    let text = saying(&["$HOST:load_avg:1"]).replace("echo begin;", "sleep 3; echo begin;");
    let slow = cell.write_top("slow.sh", &text, 0o755).display().to_string();
    let checked = cell.user(&["sensor", "check", &slow]).ok().out;
    assert!(checked.contains("longer than load_report_time (1 s)"), "{checked}");
}
