//! Bad input: a refusal that says what, where and how to fix it, and nothing has changed.

use gridwright_tests::cell::{Cell, CommandUser};

/// Words of a command, its exit code, and what the refusal has to name.
type InputCase = (&'static [&'static str], i32, &'static [&'static str]);

const SUBMISSIONS: [InputCase; 24] = [
    (&["nosuch.sh"], 14, &["nosuch.sh", "fix:"]),
    (
        &["-l", "nosuch=1", "-b", "y", "true"],
        1,
        &["unknown resource \"nosuch\"", "where: -l nosuch=1", "fix: qconf -sc"],
    ),
    (
        &["-l", "h_vmem=abc", "-b", "y", "true"],
        1,
        &["h_vmem", "where: -l h_vmem=abc", "fix:"],
    ),
    (
        &["-l", "h_rt=-5", "-b", "y", "true"],
        1,
        &["negative", "where: -l h_rt=-5", "fix:"],
    ),
    (
        &["-l", "slots=2", "-b", "y", "true"],
        1,
        &["where: -l slots", "fix: write -pe"],
    ),
    (
        &["-pe", "nope", "2", "-b", "y", "true"],
        1,
        &["\"nope\" does not exist", "where: -pe", "fix: qconf -spl"],
    ),
    (&["-pe", "smp", "0", "-b", "y", "true"], 1, &["greater than zero"]),
    (&["-q", "nope.q", "-b", "y", "true"], 1, &["nope.q", "fix: qconf -sql"]),
    (&["-t", "1-100000000", "-b", "y", "true"], 7, &["100000000", "9999999"]),
    (&["-N", "a/b", "-b", "y", "true"], 2, &["-N", "/"]),
    (&["-p", "5000", "-b", "y", "true"], 7, &["5000", "-1023 to 1024"]),
    (
        &["-P", "nope", "-b", "y", "true"],
        1,
        &["\"nope\" does not exist", "where: -P"],
    ),
    (
        &["-zzz", "-b", "y", "true"],
        2,
        &["-zzz", "fix: all options: qsub -help"],
    ),
    (&["-a", "99999999", "-b", "y", "true"], 7, &["99999999", "-a", "fix:"]),
    (
        &["-j", "maybe", "-b", "y", "true"],
        7,
        &["-j maybe", "fix: write y or n"],
    ),
    (&["-@", "nosuchfile"], 4, &["nosuchfile", "fix:"]),
    (&["-w", "x", "-b", "y", "true"], 7, &["-w x", "fix:"]),
    (&["-m", "q", "-b", "y", "true"], 7, &["\"q\"", "-m", "fix:"]),
    (&["-v", "=x", "-b", "y", "true"], 7, &["=x", "-v"]),
    (
        &["-tc", "5", "-b", "y", "true"],
        1,
        &["task concurrency", "where: -tc", "fix:"],
    ),
    (&["-ckpt", "nope", "-b", "y", "true"], 1, &["-ckpt", "fix:"]),
    (&["-shell", "maybe", "-b", "y", "true"], 7, &["-shell maybe", "fix:"]),
    (&["/tmp"], 4, &["where: /tmp", "directory"]),
    (&["-hold_jid"], 2, &["-hold_jid"]),
];

#[test]
fn bad_submissions_are_refused_by_name_and_no_job_is_made() {
    let cell = Cell::up();
    for (words, code, named) in SUBMISSIONS {
        let said = cell.user(&[&["qsub"], words].concat());
        assert_eq!(said.code, code, "{said}");
        said.refused(named);
    }
    assert_eq!(cell.user(&["qstat", "-u", "*"]).ok().out, "");
    assert_eq!(cell.submit(&["-b", "y", "true"]), "1", "a refusal takes no job number");
}

/// An object: how it is shown, how it is loaded, and what is wrong with it now: the begin of a line
/// that is replaced (appended where none begins so), its new text, and what the refusal has to
/// name.
type Edit = (
    &'static [&'static str],
    &'static str,
    &'static str,
    &'static str,
    &'static [&'static str],
);

const QUEUE: &[&str] = &["qconf", "-sq", "all.q"];
const COMPLEX: &[&str] = &["qconf", "-sc"];
const GLOBAL: &[&str] = &["qconf", "-sconf", "global"];
const SCHEDULER: &[&str] = &["qconf", "-ssconf"];

const EDITS: [Edit; 17] = [
    (QUEUE, "-Mq", "slots ", "slots -3", &["\"-3\"", "slots", "line "]),
    (QUEUE, "-Mq", "h_rt ", "h_rt never", &["\"never\"", "h_rt", "line "]),
    (
        QUEUE,
        "-Mq",
        "colour ",
        "colour blue",
        &["unknown attribute name \"colour\"", "line ", "fix: remove"],
    ),
    (QUEUE, "-Mq", "slots ", "", &["\"slots\" is missing", "fix: add a line"]),
    (QUEUE, "-Mq", "pe_list ", "pe_list nope", &["nope"]),
    (QUEUE, "-Mq", "hostlist ", "hostlist @nope", &["@nope"]),
    (QUEUE, "-Mq", "complex_values ", "complex_values nope=3", &["nope"]),
    (
        COMPLEX,
        "-Mc",
        "lic ",
        "lic lic",
        &["line ", "fix: write name shortcut type"],
    ),
    (
        COMPLEX,
        "-Mc",
        "lic ",
        "lic lic FLOAT <= YES YES 0 0",
        &["FLOAT", "field 3", "fix:"],
    ),
    (
        COMPLEX,
        "-Mc",
        "lic ",
        "lic lic INT << YES YES 0 0",
        &["<<", "field 4", "fix:"],
    ),
    (
        COMPLEX,
        "-Mc",
        "lic ",
        "mem_free lic INT <= YES YES 0 0",
        &["mem_free", "already exists"],
    ),
    (
        COMPLEX,
        "-Mc",
        "lic ",
        "lic lic STRING <= YES YES 0 0",
        &["lic", "STRING", "consumable"],
    ),
    (COMPLEX, "-Mc", "h_vmem ", "", &["h_vmem", "cannot be deleted", "fix:"]),
    (
        GLOBAL,
        "-Mconf",
        "min_uid ",
        "min_uid abc",
        &["\"abc\"", "min_uid", "line "],
    ),
    (
        GLOBAL,
        "-Mconf",
        "load_report_time ",
        "load_report_time soon",
        &["\"soon\"", "load_report_time"],
    ),
    (
        GLOBAL,
        "-Mconf",
        "load_sensor ",
        "load_sensor relative.sh",
        &["load_sensor", "must start with", "line "],
    ),
    (
        SCHEDULER,
        "-Msconf",
        "schedule_interval ",
        "schedule_interval later",
        &["\"later\"", "schedule_interval"],
    ),
];

/// The lines of a shown object, continued ones joined, with one of them replaced.
fn edited(shown: &str, begin: &str, text: &str) -> String {
    let joined = shown.replace("\\\n", " ");
    let mut lines: Vec<&str> = joined.lines().filter(|line| !line.starts_with(begin)).collect();
    lines.push(text);
    lines.join("\n") + "\n"
}

#[test]
fn bad_objects_are_refused_with_file_and_line_and_nothing_changes() {
    let cell = Cell::up();
    for (show, option, begin, text, named) in EDITS {
        let before = cell.admin(show).ok().out;
        let file = cell
            .write_top("global", &edited(&before, begin, text), 0o644)
            .display()
            .to_string();
        let said = cell.admin(&["qconf", option, &file]);
        said.refused(named);
        assert_eq!(cell.admin(show).ok().out, before, "{text:?}");
    }
}

/// Bad input to the commands of `gridwright` itself, where there is a cell.
const OWN: [InputCase; 51] = [
    (&[], 2, &["no command", "up", "gridwright help", "fix:"]),
    (&["bogus"], 2, &["\"bogus\"", "fix:"]),
    (&["jion"], 2, &["\"jion\"", "did you mean join"]),
    (&["up", "extra"], 2, &["\"extra\"", "fix:"]),
    (&["up", "--bogus"], 2, &["--bogus", "fix:"]),
    (&["up", "--dir"], 2, &["--dir", "argument", "fix:"]),
    (
        &["up", "--dir", "", "--detach"],
        1,
        &["state directory", "why:", "fix: name one with --dir"],
    ),
    (
        &["up", "--dir", "/proc/nope", "--detach"],
        1,
        &["where: /proc/nope", "why:", "fix:"],
    ),
    (
        &["up", "--dir", "/dev/null", "--detach"],
        1,
        &["where: /dev/null", "why:", "fix:"],
    ),
    (
        &["up", "--port", "abc", "--dir", "/proc/nope"],
        7,
        &["abc", "UDP port", "fix:"],
    ),
    (
        &["up", "--port", "99999", "--dir", "/proc/nope"],
        7,
        &["99999", "UDP port", "fix:"],
    ),
    (&["up", "--slots", "-3"], 7, &["--slots -3", "fix:"]),
    (&["up", "--slots", "0"], 7, &["--slots 0", "fix: give at least 1"]),
    (&["up", "--sim-hosts", "x"], 7, &["--sim-hosts x", "fix:"]),
    (&["up", "--sim-hosts", "100000"], 7, &["100000", "fix: at most 9999"]),
    (
        &["up", "--sim-hosts", "1", "--sim-load", "/no/file"],
        1,
        &["where: /no/file", "why:", "fix:"],
    ),
    (&["up", "--wait", "soon"], 7, &["--wait soon", "fix:"]),
    (&["down", "extra"], 2, &["\"extra\"", "fix:"]),
    (&["down", "--dir", "/nope"], 1, &["no cell", "where: /nope", "fix:"]),
    (&["env", "--dir", "/nope"], 1, &["no cell", "where: /nope", "fix:"]),
    (&["env", "x"], 2, &["\"x\"", "fix:"]),
    (&["join"], 2, &["MASTER[:PORT] --token-file", "fix:"]),
    (&["join", "m"], 2, &["MASTER[:PORT] --token-file", "fix:"]),
    (&["join", "m", "t", "x"], 2, &["MASTER[:PORT] --token-file", "fix:"]),
    (
        &["join", "m", "--token-file", "/no/such"],
        1,
        &["where: /no/such", "why:", "fix:"],
    ),
    (&["join", "m", "t"], 1, &["token", "fix:"]),
    (&["join", "m", "t", "--wait", "x"], 7, &["--wait x", "fix:"]),
    (&["token", "extra"], 2, &["\"extra\"", "fix:"]),
    (&["token", "--uses", "x"], 7, &["--uses x", "fix:"]),
    (&["token", "--uses", "0"], 1, &["nobody", "fix:"]),
    (&["token", "revoke"], 2, &["id of a token", "fix:"]),
    (&["token", "revoke", "nosuch"], 1, &["\"nosuch\"", "fix:"]),
    (&["token", "--valid", "1y"], 7, &["--valid 1y", "fix:"]),
    (&["token", "--valid", "0"], 1, &["one second", "fix:"]),
    (&["token", "--hosts", "((("], 1, &["(((", "fix:"]),
    (&["host"], 2, &["revoke HOST", "fix:"]),
    (&["host", "remove"], 2, &["remove HOST", "fix:"]),
    (&["host", "remove", "nosuch"], 1, &["\"nosuch\"", "fix:"]),
    (&["host", "revoke", "nosuch"], 1, &["nosuch", "fix:"]),
    (&["sensor"], 2, &["check SCRIPT", "fix:"]),
    (&["sensor", "bogus"], 2, &["check SCRIPT", "fix:"]),
    (
        &["sensor", "status", "-fmt", "xml"],
        7,
        &["\"xml\"", "fix: text or json"],
    ),
    (&["sensor", "check"], 2, &["script", "fix:"]),
    (&["sensor", "check", "/no/such"], 1, &["/no/such", "why:", "fix:"]),
    (&["sensor", "check", "/etc"], 1, &["/etc", "fix:"]),
    (
        &["sensor", "check", "--user", "nobody-here", "/bin/true"],
        1,
        &["nobody-here", "fix:"],
    ),
    (&["doctor", "-fmt", "xml"], 7, &["\"xml\"", "fix: text or json"]),
    (&["explain"], 2, &["no job is named", "fix:", "JOB.TASK", "NAME"]),
    (&["explain", "67.x"], 7, &["gridwright explain", "fix:", "67.1-4:1"]),
    (&["explain", "abc"], 1, &["\"abc\"", "fix:"]),
    (&["explain", "4711"], 1, &["4711", "fix:"]),
];

#[test]
fn bad_input_to_the_commands_of_gridwright_is_refused_with_the_remedy() {
    let cell = Cell::up();
    for (words, code, named) in OWN {
        let said = cell.admin(words);
        assert_eq!(said.code, code, "{said}");
        said.refused(named);
    }
    cell.admin(&["qhost"]).ok();
}

#[test]
fn entries_of_the_configuration_without_effect_are_kept_with_a_warning() {
    let cell = Cell::up();
    for (key, value) in [
        ("gid_range", "20000-20100"),
        ("xterm", "/bin/xt"),
        ("execd_spool_dir", "/spool"),
    ] {
        let text = edited(
            &cell.admin(GLOBAL).ok().out,
            &format!("{key} "),
            &format!("{key} {value}"),
        );
        let file = cell.write_top("global", &text, 0o644).display().to_string();
        let said = cell.admin(&["qconf", "-Mconf", &file]).ok();
        assert!(
            said.err
                .contains(&format!("warning: \"{key}\" is stored and has no effect"))
                && said.err.contains("fix:"),
            "{said}"
        );
        assert!(
            cell.admin(GLOBAL)
                .ok()
                .out
                .lines()
                .any(|line| line.split_whitespace().eq([key, value])),
            "{key}"
        );
        let again = cell.admin(&["qconf", "-Mconf", &file]).ok();
        assert!(
            !again.err.contains("no effect"),
            "what stays as it was is not warned about: {again}"
        );
    }
}

const CHANGES: [(CommandUser, &[&str], &[&str]); 12] = [
    (
        CommandUser::User,
        &["-mattr", "queue", "slots", "9", "all.q"],
        &["must be manager", "fix:"],
    ),
    (
        CommandUser::Admin,
        &["-mattr", "queue", "slots", "many", "all.q"],
        &["\"many\"", "where: slots", "expected"],
    ),
    (
        CommandUser::Admin,
        &["-mattr", "queue", "nosuch", "1", "all.q"],
        &["\"nosuch\"", "fix:"],
    ),
    (
        CommandUser::Admin,
        &["-mattr", "queue", "slots", "9", "nope.q"],
        &["\"nope.q\" does not exist"],
    ),
    (CommandUser::Admin, &["-Mq", "/nonexistent"], &["/nonexistent", "fix:"]),
    (CommandUser::Admin, &["-zzz"], &["-zzz"]),
    (CommandUser::Admin, &["-dq", "nope.q"], &["\"nope.q\" does not exist"]),
    (CommandUser::Admin, &["-dhgrp", "@allhosts"], &["all.q"]),
    (CommandUser::Admin, &["-as", "bad host"], &["\"bad host\""]),
    (
        CommandUser::Admin,
        &["-aattr", "exechost", "complex_values", "foo", "global"],
        &["foo"],
    ),
    (
        CommandUser::Admin,
        &["-mattr", "exechost", "complex_values", "h_vmem=lots", "global"],
        &["lots", "h_vmem"],
    ),
    (CommandUser::User, &["-ks"], &["-ks"]),
];

#[test]
fn bad_changes_are_refused_by_name_and_nothing_changes() {
    let cell = Cell::up();
    let everything =
        || [QUEUE, COMPLEX, GLOBAL, &["qconf", "-sel"], &["qconf", "-ss"]].map(|show| cell.admin(show).out);
    let before = everything();
    for (who, words, named) in CHANGES {
        cell.run(who, &[&["qconf"], words].concat()).refused(named);
        assert_eq!(everything(), before, "{words:?}");
    }
}
