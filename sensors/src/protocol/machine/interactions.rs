//! How sensors of public projects talk, as recorded, each as a test.

use super::tests::Stage;
use super::*;
use crate::host::HostSpec;

#[test]
fn interaction_1_nuser_answers_and_quits_in_silence() {
    let mut stage = Stage::running();
    stage.says("begin\nvm:nuser:0\nend\n");
    assert_eq!(stage.value("nuser").as_deref(), Some("0"));
    stage.machine.stop(stage.now);
    assert!(stage.exits(Exit::Status(0)).contains(&Action::Ended));
}

#[test]
fn interaction_2_calendar_answers_once_more_at_the_end_of_its_input() {
    let mut stage = Stage::running();
    stage.says("begin\nglobal:day:Sat\nglobal:month:Nov\nglobal:weekend:true\nend\n");
    assert_eq!(stage.value_of(&HostSpec::Global, "weekend").as_deref(), Some("true"));
    stage.machine.restart(stage.now);
    stage.says("read returned != 0\nbegin\nglobal:day:Sun\nend\n");
    stage.exits(Exit::Status(0));
    assert_eq!(stage.value_of(&HostSpec::Global, "day").as_deref(), Some("Sun"));
    assert_eq!(stage.health(), Health::Running);
}

#[test]
fn interaction_3_load_has_a_blank_before_one_value_and_none_for_another() {
    let mut stage = Stage::running();
    stage.says("begin\nvm:l1:0.1\nvm:l2: 0.2\nvm:l3:\nvm:l4:0.4\nend\n");
    let values = ["l1", "l2", "l3", "l4"].map(|name| stage.value(name));
    assert_eq!(values.map(|value| value.unwrap_or_default()), ["0.1", "0.2", "", "0.4"]);
}

#[test]
fn interaction_4_gpu_lists_devices_and_fewer_when_its_library_fails() {
    let mut stage = Stage::running();
    stage.says("begin\nvm:gpu.ncuda:2\nvm:gpu.ndev:2\nvm:gpu.cuda.0.mem_free:4294967296\nvm:gpu.names:A;B;\nend\n");
    assert_eq!(stage.value("gpu.names").as_deref(), Some("A;B;"));
    assert_eq!(stage.value("gpu.cuda.0.mem_free").as_deref(), Some("4294967296"));
    stage.says("begin\nvm:gpu.ndev:0\nend\n");
    assert_eq!(
        (stage.value("gpu.ndev").as_deref(), stage.value("gpu.names")),
        (Some("0"), None)
    );
}

#[test]
fn interaction_7_lmstat_is_empty_on_most_hosts_and_may_be_negative_on_one() {
    let mut stage = Stage::running();
    stage.says("begin\nend\n");
    assert_eq!(stage.health(), Health::Running);
    stage.says("begin\nglobal:lic_a:4\nglobal:lic_b:-2\nend\n");
    assert_eq!(stage.value_of(&HostSpec::Global, "lic_b").as_deref(), Some("-2"));
}

#[test]
fn interaction_8_logged_in_answers_endlessly_at_the_end_of_its_input_until_its_group_is_killed() {
    let mut stage = Stage::running();
    stage.says("begin\nvm:logged_in:1\nend\n");
    stage.machine.restart(stage.now);
    let mut last = Vec::new();
    for _ in 0..130 {
        stage.says(&"begin\nvm:logged_in:1\nend\n".repeat(100));
        last = stage.wait(100);
        if last.contains(&Action::SignalGroup(Signal::Kill)) {
            break;
        }
    }
    assert!(last.contains(&Action::SignalGroup(Signal::Kill)));
}

#[test]
fn interaction_10_hpckp_ends_on_its_first_request_and_is_spaced_out() {
    let mut stage = Stage::running();
    stage.exits(Exit::Status(1));
    let status = stage.machine.status(stage.now);
    assert_eq!(status.health, Health::Failing);
    assert_eq!(
        status.last_error.as_deref(),
        Some("ended with exit status 1 before its first answer")
    );
    assert_eq!(status.next_start, Some(Tick(1_000)));
}

#[test]
fn interaction_12_joedborg_never_says_begin_and_needs_quit() {
    let mut stage = Stage::running();
    stage.says("vm:name:7\nend\n");
    assert_eq!(stage.value("name").as_deref(), Some("7"));
    assert!(stage.machine.stop(stage.now).contains(&Action::Write(Request::Quit)));
}

#[test]
fn recorded_other_hosts_and_any_case_of_this_one_are_told_apart() {
    let mut stage = Stage::running();
    stage.says("begin\notherhost:lsa:77\nVM:lse:5\nend\n");
    assert_eq!(
        stage.value_of(&HostSpec::Other("otherhost".into()), "lsa").as_deref(),
        Some("77")
    );
    assert_eq!(stage.value("lse").as_deref(), Some("5"));
}

#[test]
fn recorded_no_end_publishes_nothing() {
    let mut stage = Stage::running();
    stage.says("begin\nvm:lsf:1\n");
    stage.says("begin\nvm:lsf:2\n");
    assert_eq!(stage.machine.values_for_report(stage.now), None);
}
