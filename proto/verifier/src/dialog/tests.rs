use super::*;

/// What the lines of a verifier lead to: the log, and the answer or the words of the refusal.
fn judged(lines: &[&str]) -> (Vec<String>, Result<JsvAnswer, String>) {
    let mut dialog = Dialog::default();
    let mut log = Vec::new();
    for line in lines {
        match dialog.line(line) {
            Ok(DialogStep::Read | DialogStep::Offer { .. }) => {}
            Ok(DialogStep::Log(line)) => log.push(format!("{}: {}", line.kind, line.text)),
            Ok(DialogStep::Decided(answer)) => return (log, Ok(answer)),
            Err(fault) => return (log, Err(fault.to_string())),
        }
    }
    (log, Err("no result".to_owned()))
}

fn parameter(name: &str, value: Option<&str>) -> JsvChange {
    JsvChange::Parameter {
        name: name.to_owned(),
        value: value.map(str::to_owned),
    }
}

#[test]
fn results_are_those_of_8_1_9() {
    let rejected = |text: &str| Ok(Some(text.to_owned()));
    for (line, expected) in [
        ("RESULT STATE ACCEPT", Ok(None)),
        ("RESULT STATE ACCEPT all is well", Ok(None)),
        ("RESULT  STATE\tACCEPT", Ok(None)),
        ("RESULT STATE CORRECT changed it", Ok(None)),
        ("RESULT STATE REJECT not today", rejected("not today")),
        ("RESULT STATE REJECT_WAIT come back later", rejected("come back later")),
        ("RESULT STATE REJECT", rejected("JSV rejected job")),
        ("RESULT STATE MAYBE", Err("JSV sent unknown result \"MAYBE\"")),
        ("RESULT STATE accept", Err("JSV sent unknown result \"accept\"")),
        ("RESULT STATE ACCEPT\r", Err("JSV sent unknown result \"ACCEPT\r\"")),
        ("RESULT ACCEPT", Err("JSV sent unknown result \"ACCEPT\"")),
        (
            "ERROR something broke",
            Err("master got unknown command from JSV: \"ERROR\""),
        ),
        (
            "result STATE ACCEPT",
            Err("master got unknown command from JSV: \"result\""),
        ),
        ("STARTED", Err("master got unknown command from JSV: \"STARTED\"")),
        (
            "PARAM USER root",
            Err("JSV tries to modify read-only parameter \"USER\""),
        ),
        (
            "PARAM JOB_ID 7",
            Err("JSV tries to modify read-only parameter \"JOB_ID\""),
        ),
        ("ENV SET A 1", Err("master got unknown command from JSV: \"ENV\"")),
    ] {
        let (_, found) = judged(&["STARTED", line]);
        let found = found.map(|answer| answer.rejection);
        assert_eq!(found, expected.map_err(str::to_owned), "{line}");
    }
}

#[test]
fn nothing_but_a_start_is_taken_before_the_start() {
    for line in ["RESULT STATE ACCEPT", "PARAM N x", "ENV ADD A 1", "ERROR no start"] {
        let (_, found) = judged(&[line]);
        assert!(
            found.unwrap_err().starts_with("master got unknown command from JSV"),
            "{line}"
        );
    }
    let mut dialog = Dialog::default();
    assert_eq!(dialog.line("SEND ENV"), Ok(DialogStep::Read));
    let with_environment = true;
    assert_eq!(dialog.line("STARTED"), Ok(DialogStep::Offer { with_environment }));
    let with_environment = false;
    assert_eq!(
        Dialog::default().line("STARTED"),
        Ok(DialogStep::Offer { with_environment })
    );
}

#[test]
fn changes_and_log_lines_are_collected_in_their_order() {
    let (log, answer) = judged(&[
        "STARTED",
        "LOG INFO an info",
        "PARAM l_hard h_rt=77,arch=a  b",
        "PARAM o",
        "PARAM q_soft ",
        "",
        "ENV ADD A x  y ",
        "ENV MOD PATH /bin",
        "ENV DEL FOO",
        "LOG NONSENSE x",
        "RESULT STATE ACCEPT",
    ]);
    assert_eq!(log, ["INFO: an info", "NONSENSE: x"]);
    let set = |name: &str, value: &str| JsvChange::SetVariable {
        name: name.to_owned(),
        value: value.to_owned(),
    };
    let expected = [
        parameter("l_hard", Some("h_rt=77,arch=a  b")),
        parameter("o", None),
        parameter("q_soft", None),
        set("A", "x  y "),
        set("PATH", "/bin"),
        JsvChange::DeleteVariable { name: "FOO".to_owned() },
    ];
    assert_eq!(answer.unwrap().changes, expected);
}

#[test]
fn a_flood_ends_the_conversation() {
    let mut dialog = Dialog::default();
    dialog.line("STARTED").unwrap();
    let long = format!("PARAM ac {}", "x".repeat(LINE_BYTES_MAX));
    let faults = (0..20).find_map(|_| dialog.line(&long).err());
    assert_eq!(faults, Some(JsvFault::LongAnswer));
    let mut dialog = Dialog::default();
    let faults = (0..=LOG_LINES_MAX).find_map(|_| dialog.line("LOG INFO x").err());
    assert_eq!(faults, Some(JsvFault::LongAnswer));
}

#[test]
fn lines_on_standard_error_are_told_as_in_8_1_9() {
    let fault = JsvFault::Stderr(vec!["one".to_owned(), "two".to_owned()]);
    assert_eq!(
        fault.to_string(),
        "JSV stderr: one\nJSV stderr: two\nJSV stderr is - two"
    );
}
