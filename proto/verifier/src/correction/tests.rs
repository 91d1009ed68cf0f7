use super::*;
use crate::offer::tests::{calendar, job};
use crate::offer::{JsvOffer, JsvSide};
use proto::id::JobNumber;

/// What a verifier says, as changes.
fn changes(lines: &[&str]) -> Vec<JsvChange> {
    let parameter = |line: &&str| {
        let (name, value) = line.split_once(' ').unwrap_or((line, ""));
        JsvChange::Parameter {
            name: name.to_owned(),
            value: (!value.is_empty()).then(|| value.to_owned()),
        }
    };
    lines.iter().map(parameter).collect()
}

/// What the next verifier is told of the corrected job, without the origin.
fn told(spec: JobSpec, lines: &[&str]) -> Result<Vec<String>, String> {
    let spec = corrected(spec, &changes(lines), &calendar()).map_err(|refusal| refusal.what)?;
    let offer = JsvOffer::new(JsvSide::Server(JobNumber(7)), &spec, &calendar());
    let told = offer.parameters.iter().skip(6);
    Ok(told.map(|(name, value)| format!("{name} {value}")).collect())
}

/// All that the recorded verifier set, and what 8.1.9 showed of the job then.
#[test]
fn every_parameter_is_applied_as_in_8_1_9() {
    let set = [
        "a 203001010000.00",
        "ac A=1,B=2",
        "A acct",
        "c_interval 600",
        "ckpt x",
        "cwd /tmp",
        "e /tmp/e",
        "hold_jid 1",
        "h u",
        "j y",
        "js 3",
        "l_hard h_rt=5,h_vmem=2G",
        "l_soft mem_free=1G",
        "m be",
        "M a@b",
        "masterq all.q",
        "notify y",
        "N corrected",
        "o /tmp/o",
        "P proj",
        "p -5",
        "tc 2",
        "pe_name smp",
        "pe_min 2",
        "pe_max 2",
        "q_hard d.q",
        "q_soft all.q",
        "R y",
        "r y",
        "shell n",
        "S /bin/bash",
        "w w",
    ];
    let found = told(job(r#""name": "n""#), &set).unwrap();
    let of_program = ["CMDNAME /w/job.sh", "CMDARGS 0"];
    let expected: Vec<&str> = of_program.into_iter().chain(set).collect();
    assert_eq!(found, expected);
    let without_effect = [
        "c s",
        "soft x",
        "nosuch x",
        "CMDNAME /bin/false",
        "t_min 1",
        "t_max 4",
        "t_step 1",
    ];
    let found = told(job(r#""name": "n""#), &without_effect).unwrap();
    assert_eq!(found, ["CMDNAME /w/job.sh", "CMDARGS 0", "A sge", "M u1@vm", "N n"]);
}

#[test]
fn a_parameter_without_a_value_is_deleted() {
    let spec = || {
        job(
            r#""name": "n", "stdout": [{"path": "/tmp/o"}], "priority": -5, "rerunnable": true, "holds": {"user": true},
            "requests": {"hard": [{"name": "h_rt", "value": "9"}], "soft_queues": ["d.q"],
                "pe": {"name": "smp", "slots": "2-4"}}"#,
        )
    };
    let found = told(spec(), &["l_hard", "o", "q_soft", "p", "r", "h", "pe_name"]).unwrap();
    assert_eq!(found, ["CMDNAME /w/job.sh", "CMDARGS 0", "A sge", "M u1@vm", "N n"]);
    let found = told(spec(), &["pe_max 8"]).unwrap();
    assert!(
        found.contains(&"pe_min 2".to_owned()) && found.contains(&"pe_max 8".to_owned()),
        "{found:?}"
    );
}

#[test]
fn arguments_are_replaced() {
    let spec = || job(r#""name": "n", "args": ["a", "b", "c"]"#);
    for (lines, expected) in [
        (
            &["CMDARGS 2", "CMDARG0 new0", "CMDARG1 new one"][..],
            &["new0", "new one"][..],
        ),
        (&["CMDARGS 1"], &["a"]),
        (&["CMDARG1"], &["a", "", "c"]),
        (&["CMDARG3 d"], &["a", "b", "c", "d"]),
        (&["CMDARGS 0"], &[]),
    ] {
        let found = corrected(spec(), &changes(lines), &calendar()).unwrap();
        assert_eq!(found.args, expected, "{lines:?}");
    }
}

#[test]
fn tasks_of_an_array_change_and_others_do_not_become_arrays() {
    let spec = JobSpec {
        array: TaskRange::parse("1-9:2").ok(),
        ..job(r#""name": "n""#)
    };
    let found = corrected(spec, &changes(&["t_max 5", "t_step 1"]), &calendar()).unwrap();
    assert_eq!(found.array, TaskRange::parse("1-5").ok());
}

#[test]
fn variables_are_set_and_removed() {
    let spec = job(r#""name": "n", "environment": [["SGE_O_WORKDIR", "/"], ["FOO", "1"], ["BAR", "2"]]"#);
    let set = |name: &str, value: &str| JsvChange::SetVariable {
        name: name.to_owned(),
        value: value.to_owned(),
    };
    let foo = "FOO".to_owned();
    let mut all = vec![
        set("JSVVAR", "hello"),
        set("PATH", "/x:/bin"),
        set("BAR", "3"),
        JsvChange::DeleteVariable { name: foo },
    ];
    all.extend(changes(&["display x:1"]));
    let found = corrected(spec, &all, &calendar()).unwrap();
    let found: Vec<String> = found
        .exported_variables()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    assert_eq!(found, ["BAR=3", "JSVVAR=hello", "PATH=/x:/bin", "DISPLAY=x:1"]);
}

#[test]
fn a_script_may_become_a_command() {
    let found = corrected(job(r#""name": "n""#), &changes(&["b y"]), &calendar()).unwrap();
    let command = "/w/job.sh".to_owned();
    assert_eq!(found.program, Program::Command { command });
    let refusal = corrected(found, &changes(&["b n"]), &calendar()).unwrap_err();
    assert!(refusal.what.starts_with("a binary job cannot become"), "{refusal}");
}

#[test]
fn bad_values_are_refused_in_the_words_of_8_1_9() {
    for (line, expected) in [
        (
            "p abc",
            "invalid priority \"abc\".  Must be an integer from -1023 to 1024",
        ),
        (
            "p 2000",
            "invalid priority \"2000\".  Must be an integer from -1023 to 1024",
        ),
        ("j maybe", "JSV tries to set \"j\" to \"maybe\""),
        ("js x", "JSV tries to set \"js\" to \"x\""),
        ("pe_min x", "JSV tries to set \"pe_min\" to \"x\""),
        ("h x", "JSV tries to set \"h\" to \"x\""),
        ("m x", "Wrong mail options list format \"x\" specified to -m option"),
        ("w x", "invalid option argument \"-w x\""),
        (
            "CMDARGS 99999999",
            "the verifier gives the job more than 65536 arguments",
        ),
        (
            "CMDARG99999999999 x",
            "the verifier gives the job more than 65536 arguments",
        ),
        ("a soon", "Invalid format of date/hour-minute field."),
    ] {
        assert_eq!(told(job(r#""name": "n""#), &[line]), Err(expected.to_owned()), "{line}");
    }
}
