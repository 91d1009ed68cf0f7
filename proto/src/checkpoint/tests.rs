use super::*;
use crate::object::LineWrap;
use proptest::prelude::*;

const RECORDED: &str = "\
ckpt_name          c1
interface          application-level
ckpt_command       /bin/ckpt
migr_command       NONE
restart_command    NONE
clean_command      NONE
ckpt_dir           /tmp
signal             usr1
when               xmr
";

fn changed(key: &str, value: &str) -> Result<Checkpoint, Vec<Diagnostic>> {
    let mut fields = Fields::parse(RECORDED).unwrap();
    fields.set(key, value);
    Checkpoint::read("", &fields)
}

#[test]
fn a_recorded_environment_prints_as_it_was_read() {
    let ckpt = Checkpoint::read("", &Fields::parse(RECORDED).unwrap()).unwrap();
    assert_eq!(ckpt.write().print(ObjectKind::Checkpoint, LineWrap::At80), RECORDED);
    assert_eq!(
        (ckpt.ckpt_command.value(), ckpt.migr_command.value()),
        (Some("/bin/ckpt"), None)
    );
}

#[test]
fn letters_of_when_are_shown_in_one_order() {
    assert_eq!(changed("when", "rsx").unwrap().when.to_string(), "xsr");
    assert_eq!(changed("when", "sx").unwrap().when.to_string(), "xs");
}

#[test]
fn values_that_cannot_be_are_refused_in_the_words_of_8_1_9() {
    for (key, value, what) in [
        ("interface", "foo", "no valid checkpoint interface foo"),
        ("interface", "cray-ckpt", "no valid checkpoint interface cray-ckpt"),
        (
            "signal",
            "nosig",
            "\"nosig\" is not a signal string (like HUP, INT, WINCH, ..)",
        ),
        ("when", "xq", "Invalid \"when\" attribute for ckpt \"c1\""),
        ("when", "NONE", "Invalid \"when\" attribute for ckpt \"c1\""),
        (
            "ckpt_command",
            "/bin/ckpt $nosuch",
            "invalid value \"/bin/ckpt $nosuch\" for attribute \"ckpt_command\"",
        ),
    ] {
        let refusals = changed(key, value).expect_err(value);
        assert_eq!((refusals.len(), refusals[0].what.as_str()), (1, what));
        assert!(refusals[0].place.starts_with("line "), "{}", refusals[0].place);
    }
    assert!(changed("ckpt_command", "ckpt -a $job_id").is_ok() && changed("interface", "APPLICATION-LEVEL").is_ok());
}

proptest! {
    #[test]
    fn print_of_parse_is_identity(
        interface in prop::sample::select(INTERFACES),
        command in "/[a-z/]{0,10}( [a-z0-9-]{1,5}){0,3}",
        signal in prop::sample::select(vec!["none", "NONE", "usr1", "TERM", "12"]),
        letters in any::<(bool, bool, bool)>(),
    ) {
        let (suspended, shutdown, periodic) = letters;
        let ckpt = Checkpoint {
            interface: interface.parse().unwrap(),
            restart_command: command.parse().unwrap(),
            signal: signal.parse().unwrap(),
            when: CheckpointOccasions { suspended, shutdown, periodic, unknown: true },
            ..Checkpoint::template("c")
        };
        let text = ckpt.write().print(ObjectKind::Checkpoint, LineWrap::At80);
        prop_assert_eq!(Checkpoint::read("", &Fields::parse(&text).unwrap()).unwrap(), ckpt);
    }
}

#[test]
fn occasions_are_letters_or_a_time_as_8_1_9_reads_them() {
    let when = |text: &str| Ok(Occasion::When(text.parse().unwrap()));
    for (text, expected) in [
        ("n", Ok(Occasion::Never)),
        ("nx", Ok(Occasion::Never)),
        ("xs", when("xs")),
        ("smx", when("smx")),
        ("r", when("r")),
        ("10", Ok(Occasion::EverySeconds(10))),
        ("0:0:7", Ok(Occasion::EverySeconds(7))),
        ("1::", Ok(Occasion::EverySeconds(3600))),
        ("0:10", Err(BadOccasion::Argument)),
        ("0:0:0", Err(BadOccasion::Argument)),
        ("1:2:3:4", Err(BadOccasion::Argument)),
        ("", Err(BadOccasion::Argument)),
        ("q", Err(BadOccasion::Specifier)),
        ("NONE", Err(BadOccasion::Specifier)),
        ("-5", Err(BadOccasion::Specifier)),
        ("INFINITY", Err(BadOccasion::Specifier)),
    ] {
        assert_eq!(text.parse::<Occasion>(), expected, "{text:?}");
    }
}

#[test]
fn the_interval_is_never_shorter_than_that_of_the_queue() {
    let (periodic, other): (CheckpointOccasions, CheckpointOccasions) = ("mx".parse().unwrap(), "x".parse().unwrap());
    let every = |seconds| Some(Occasion::EverySeconds(seconds));
    for (occasion, environment, expected) in [
        (None, periodic, Some(300)),
        (None, other, None),
        (every(7), other, Some(300)),
        (every(700), other, Some(700)),
        (Some(Occasion::When(other)), periodic, None),
        (Some(Occasion::When(periodic)), other, Some(300)),
        (Some(Occasion::Never), periodic, None),
    ] {
        assert_eq!(
            Occasion::interval_s(occasion, environment, 300),
            expected,
            "{occasion:?} {environment}"
        );
    }
}

#[test]
fn interfaces_differ_in_what_commands_do() {
    for (name, saves, restarts) in [
        ("userdefined", false, false),
        ("TRANSPARENT", false, false),
        ("APPLICATION-LEVEL", true, false),
        ("hibernator", true, true),
        ("cpr", true, true),
    ] {
        let interface: Interface = name.parse().unwrap();
        assert_eq!(
            (interface.saves_by_command(), interface.restarts_by_command()),
            (saves, restarts),
            "{name}"
        );
    }
}
