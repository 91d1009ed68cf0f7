//! What the agent bears of load sensors: T1 to T20 of the contract, each as a program under a real
//! agent.

use crate::sensors::{number_before, status_of};
use gridwright_tests::cell::{Cell, is_root, resident_kib, wait_until};
use std::fmt::Write as _;

/// A sensor in sh: what it does at each request, in the lines between.
fn each_request(body: &str) -> String {
    format!("#!/bin/sh\nwhile read -r line; do\n[ \"$line\" = quit ] && exit 0\n{body}\ndone\n")
}

/// One tolerance: the attributes it needs with their types, the sensor, and what `qhost -F` shows
/// of them.
struct Tolerance {
    id: &'static str,
    types: &'static [(&'static str, &'static str)],
    sensor: String,
    shown: &'static [&'static str],
}

fn one(id: &'static str, attribute: &'static str, sensor: String, shown: &'static str) -> Tolerance {
    let types: &[(&str, &str)] = Box::leak(Box::new([(attribute, "STRING")]));
    Tolerance {
        id,
        types,
        sensor,
        shown: Box::leak(Box::new([shown])),
    }
}

fn tolerances() -> Vec<Tolerance> {
    vec![
        one("t1", "t1", each_request("echo begin; echo \"$HOST:t1:asked-with-[$line]\"; echo end"), "t1=asked-with-[]"),
        one("t2a", "t2a", each_request("echo start; echo \"$HOST:t2a:start\"; echo end"), "t2a=start"),
        one("t2b", "t2b", each_request("echo \"$HOST:t2b:none\"; echo end"), "t2b=none"),
        one(
            "t3",
            "t3",
            each_request("echo '** Error'; echo \"$HOST:t3:early\"; echo begin; echo junk; echo \"$HOST:t3:good\"; echo end; echo a"),
            "t3=good",
        ),
        one("t4", "t4", each_request("printf 'begin\\r\\n %s : t4 : a:b, c;d \\r\\nend\\r\\n' \"$HOST\""), "t4=a:b, c;d"),
        one("t5", "t5", each_request("printf 'begin\\n%s:t5none:\\n:t5:here\\nend\\n' \"$HOST\""), "t5=here"),
        one(
            "t7",
            "t7",
            each_request("echo begin; echo \"$(uname -n | tr a-z A-Z).Example.Org:t7:self\"; echo end"),
            "t7=self",
        ),
        Tolerance {
            id: "t8",
            types: &[("t8m", "MEMORY"), ("t8i", "INT"), ("t8d", "DOUBLE"), ("t8b", "BOOL"), ("t8s", "STRING")],
            sensor: each_request(
                "printf 'begin\\nH:t8m:1.5T\\nH:t8i:-7\\nH:t8d:2.5\\nH:t8b:true\\nH:t8s:any thing\\nend\\n' | sed \"s/^H:/$HOST:/\"",
            ),
            shown: &["t8m=1.500T", "t8i=-7", "t8d=2.500000", "t8b=1", "t8s=any thing"],
        },
        one("t9", "gpu.cuda.0.util", each_request("printf 'begin\\n%s:gpu.cuda.0.util:87\\n%s:unknown:1\\nend\\n' $HOST $HOST"), "gpu.cuda.0.util=87"),
        one(
            "t11",
            "t11",
            each_request("for n in 1 2 3; do printf 'begin\\n%s:t11:block-%s\\nend\\n' $HOST $n; done"),
            "t11=block-3",
        ),
        one("t12", "t12", each_request("printf beg; sleep 0.1; printf 'in\\n%s:t' $HOST; sleep 0.1; printf '12:whole\\nend\\n'"), "t12=whole"),
        one("t14", "t14", each_request("head -c 300000 /dev/zero | tr '\\000' e >&2; printf 'begin\\n%s:t14:still\\nend\\n' $HOST"), "t14=still"),
        one(
            "t17",
            "t17",
            each_request(
                "A=$(\"$SGE_ROOT/util/arch\"); N=$(\"$SGE_ROOT/utilbin/$A/gethostname\" -name); B=$(\"$SGE_ROOT/utilbin/$A/gethostname\" -aname)\n\
                 [ -n \"$SGE_CELL\" ] && [ \"$A\" = \"$SGE_ARCH\" ] && [ -n \"$PATH\" ] && printf 'begin\\n%s:t17:%s\\nend\\n' \"$N\" \"${B:+all-there}\"",
            ),
            "t17=all-there",
        ),
        one(
            "t18",
            "t18",
            // No interpreter line, and state in the process.
            "n=0\nwhile read -r line; do [ \"$line\" = quit ] && exit 0; n=$((n+1)); [ $n -gt 3 ] && n=3; printf 'begin\\n%s:t18:%s-%s\\nend\\n' $HOST $n \"$1\"; done\n".to_owned(),
            "t18=3-argument",
        ),
        one("t20", "t20", each_request("printf 'begin\\n%s:t20:%s\\nend\\n' $HOST $(id -u)"), "t20="),
    ]
}

/// How long a sensor that answers may take, on a machine that is busy too.
const PATIENT_S: u32 = 120;

/// How long is waited for a sensor that does not answer.
const HASTY_S: u32 = 2;

/// A cell whose reports come every second, with these sensors; a good one has its time to answer, a
/// bad one two seconds.
fn cell_with(complex: &str, sensors: &[(String, String)], deadline_s: impl Fn(&str) -> u32) -> Cell {
    let cell = Cell::up();
    cell.add_complex(complex.trim_end());
    cell.set_global("load_report_time", "0:0:1");
    let file = cell.dir().join("etc/agent.toml");
    let mut settings = std::fs::read_to_string(&file).unwrap();
    let mut commands = Vec::new();
    for (command, text) in sensors {
        let (name, arguments) = command.split_once(' ').unwrap_or((command, ""));
        let path = cell.write_top(name, text, 0o755).display().to_string();
        let _ = write!(
            settings,
            "\n[[sensor]]\npath = \"{path}\"\ndeadline_s = {}\n",
            deadline_s(name)
        );
        commands.push(format!("{path} {arguments}").trim().to_owned());
    }
    std::fs::write(&file, settings).unwrap();
    cell.down(&[]).ok();
    cell.bring_up(&[]).ok();
    cell.set_global("load_sensor", &commands.join(","));
    cell
}

/// Lines of the complex for attributes of these types.
fn complex(types: &[(&str, &str)]) -> String {
    let line = |(n, (name, kind)): (usize, &(&str, &str))| {
        let (relation, default) = match *kind {
            "STRING" => ("==", "NONE"),
            "BOOL" => ("==", "0"),
            _ => ("<=", "0"),
        };
        format!("{name} zz{n} {kind} {relation} YES NO {default} 0\n")
    };
    types.iter().enumerate().map(line).collect()
}

#[test]
fn every_tolerated_way_of_reporting_arrives_in_qhost() {
    let all = tolerances();
    let types: Vec<(&str, &str)> = all.iter().flat_map(|tolerance| tolerance.types).copied().collect();
    let command = |id: &str| {
        if id == "t18" {
            "t18.sh argument".to_owned()
        } else {
            format!("{id}.sh")
        }
    };
    let sensors: Vec<(String, String)> = all
        .iter()
        .map(|tolerance| (command(tolerance.id), tolerance.sensor.clone()))
        .collect();
    let cell = cell_with(&complex(&types), &sensors, |_| PATIENT_S);
    for tolerance in &all {
        let status = || status_of(&cell, &command(tolerance.id));
        for expected in tolerance.shown {
            let name = expected.split('=').next().unwrap_or_default();
            let shown = || cell.user(&["qhost", "-F", name]).out;
            let what = || format!("{}: {expected}: {}\n{}", tolerance.id, shown(), status());
            wait_until(what, || {
                shown().lines().any(|line| line.contains(&format!(":{expected}")))
            });
        }
        wait_until(status, || status().contains(": running"));
        assert_eq!(number_before(&status(), " restarts"), Some(0), "{}", status());
    }
    if is_root() {
        let shown = cell.user(&["qhost", "-F", "t20"]).out;
        assert!(!shown.contains("t20=0"), "sensors do not run as root: {shown}");
    }
    let quiet = cell.user(&["qhost", "-F"]);
    assert!(!quiet.out.contains("unknown="), "{quiet}");
}

/// Sensors that do not do what they should: name, program, what `sensor status` shows of it, the
/// exit code of `sensor check` and what that says.
const BAD: [(&str, &str, &str, i32, &[&str]); 8] = [
    (
        "hangs.sh",
        "#!/bin/sh\nexec sleep 1000\n",
        "timed out",
        1,
        &["does not work", "no complete block within 3 s", "deadline_s"],
    ),
    (
        "floods.sh",
        "#!/bin/sh\nexec cat /dev/zero\n",
        "timed out",
        1,
        &["does not work", "no complete block"],
    ),
    (
        "yes.sh",
        "#!/bin/sh\nexec yes junk\n",
        "timed out",
        1,
        &["does not work", "lines not shown", "host:name:value"],
    ),
    (
        "dies.sh",
        "#!/bin/sh\necho no licence >&2\nexit 7\n",
        "failing",
        1,
        &["does not work", "exit status 7", "no licence"],
    ),
    (
        "script.sh",
        "#!/no/such/interpreter\n",
        "failing",
        1,
        &["does not work", "exit status 127"],
    ),
    (
        "binary.sh",
        "#!/bin/sh\nwhile read -r l; do [ \"$l\" = quit ] && exit 0; head -c 5000 /dev/urandom; echo; done\n",
        "timed out",
        1,
        &["does not work", "host:name:value", "no complete block"],
    ),
    (
        "silent.sh",
        "#!/bin/sh\nwhile read -r l; do [ \"$l\" = quit ] && exit 0; echo \"$HOST:late:1\"; done\n",
        "timed out",
        1,
        &["does not work", "no complete block"],
    ),
    (
        "stubborn.sh",
        "#!/bin/bash\ntrap '' TERM\nread -r l; echo begin; echo $HOST:stubborn:1; echo end\nwhile :; do sleep 1; done\n",
        "timed out",
        1,
        &["does not work", "ignores `quit`", "fix: "],
    ),
];

#[test]
fn bad_sensors_are_told_apart_and_cost_the_good_one_nothing() {
    let good = (
        "good.sh".to_owned(),
        each_request("printf 'begin\\n%s:good:%s\\nend\\n' $HOST $((n=n+1))"),
    );
    let sensors: Vec<(String, String)> = BAD
        .iter()
        .map(|(name, text, ..)| ((*name).to_owned(), (*text).to_owned()))
        .chain([good])
        .collect();
    let deadline_s = |name: &str| if name == "good.sh" { PATIENT_S } else { HASTY_S };
    let cell = cell_with(
        &complex(&[("good", "INT"), ("late", "INT"), ("stubborn", "INT")]),
        &sensors,
        deadline_s,
    );
    let before = resident_kib(cell.pid("agent"));
    for (name, _, health, ..) in BAD {
        wait_until(
            || status_of(&cell, name),
            || status_of(&cell, name).contains(&format!(": {health}")),
        );
        wait_until(
            || status_of(&cell, name),
            || number_before(&status_of(&cell, name), " restarts") >= Some(1),
        );
    }
    let shown = || cell.user(&["qhost", "-F", "good,late"]).ok().out;
    let good = |text: &str| {
        text.split("good=")
            .nth(1)?
            .split_whitespace()
            .next()?
            .parse::<f64>()
            .ok()
    };
    let first = good(&shown());
    wait_until(shown, || good(&shown()) > first);
    assert!(
        !shown().contains("late="),
        "what no end followed is no value: {}",
        shown()
    );
    assert_eq!(
        number_before(&status_of(&cell, "good.sh"), " restarts"),
        Some(0),
        "{}",
        status_of(&cell, "good.sh")
    );
    let after = resident_kib(cell.pid("agent"));
    assert!(
        after < before + (8 << 10),
        "the agent grew from {before} to {after} KiB"
    );
}

#[test]
fn sensor_check_judges_each_kind_of_sensor_and_names_the_remedy() {
    let cell = Cell::up();
    for (name, text, _, code, words) in BAD {
        let path = cell.write_top(name, text, 0o755).display().to_string();
        let said = cell.admin(&["sensor", "check", "--deadline", "3", &path]);
        assert_eq!(said.code, code, "{said}");
        for word in words {
            assert!(said.out.contains(word), "{name}: {word:?} is not in {said}");
        }
        assert!(said.out.len() < 64 << 10, "{name} printed {} bytes", said.out.len());
        assert!(
            !said.out.contains(|c: char| c.is_control() && c != '\n'),
            "{name}: {said}"
        );
    }
    let slow = each_request("sleep 2; printf 'begin\\n%s:slow:1\\nend\\n' $HOST");
    let slow = cell.write_top("slow.sh", &slow, 0o755).display().to_string();
    cell.admin(&["sensor", "check", "--deadline", "1", &slow])
        .refused(&["no complete block within 1 s", "deadline_s"]);
    cell.admin(&["sensor", "check", &slow]).ok();
    cell.admin(&["sensor", "check", "/no/such/sensor"])
        .refused(&["/no/such/sensor", "fix:"]);
    cell.admin(&["sensor", "check", "--deadline", "soon", &slow])
        .refused(&["soon", "fix:"]);
    cell.admin(&["sensor", "check"]).refused(&["script", "fix:"]);
    let open = cell.write_top("open.sh", "#!/bin/sh\n", 0o777).display().to_string();
    cell.admin(&["sensor", "check", &open])
        .refused(&["refused", "chmod go-w"]);
}

#[test]
fn names_come_and_go_values_age_and_a_changed_file_starts_anew() {
    // T10, T19: the sensor does as a file beside it says.
    let changing = "#!/bin/sh\nwhile read -r line; do\n[ \"$line\" = quit ] && { echo left >$0.quit; exit 0; }\n\
                    while [ -e \"${0%/*}/hang\" ]; do sleep 0.1; done\n\
                    echo begin; echo \"$HOST:kept:1\"; [ -e \"${0%/*}/short\" ] || echo \"$HOST:gone:1\"; echo end\ndone\n";
    let sensors = [("changing.sh".to_owned(), changing.to_owned())];
    let cell = cell_with(&complex(&[("kept", "INT"), ("gone", "INT")]), &sensors, |_| HASTY_S);
    let shown = || cell.user(&["qhost", "-F", "kept,gone"]).ok().out;
    let wait = |kept: bool, gone: bool| {
        wait_until(shown, || {
            (shown().contains("kept="), shown().contains("gone=")) == (kept, gone)
        });
    };
    wait(true, true);
    cell.write_top("short", "", 0o644);
    wait(true, false);
    cell.write_top("hang", "", 0o644);
    wait(false, false);
    wait_until(
        || status_of(&cell, "changing.sh"),
        || status_of(&cell, "changing.sh").contains("timed out"),
    );
    std::fs::remove_file(cell.top().join("hang")).unwrap();
    wait(true, false);
    // T16: a changed file is started anew at once, T20: one that others can write is refused.
    cell.write_top("changing.sh", &changing.replace("kept:1", "kept:2"), 0o755);
    wait_until(shown, || shown().contains("kept=2"));
    cell.write_top("changing.sh", changing, 0o777);
    wait_until(
        || status_of(&cell, "changing.sh"),
        || status_of(&cell, "changing.sh").contains(": refused"),
    );
    assert!(
        status_of(&cell, "changing.sh").contains("chmod go-w"),
        "{}",
        status_of(&cell, "changing.sh")
    );
    wait(false, false);
}
