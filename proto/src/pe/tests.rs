use super::*;
use crate::object::LineWrap;

const RECORDED: &[&str] = &[
    include_str!("../../tests-data/qconf/pe_make.txt"),
    include_str!("../../tests-data/qconf/pe_mpi.txt"),
    include_str!("../../tests-data/qconf/pe_smp.txt"),
];

fn pe(changes: &[(&str, &str)]) -> Result<ParallelEnvironment, Vec<Diagnostic>> {
    let mut fields = ParallelEnvironment::template(PeName::from("p")).to_fields();
    for (key, value) in changes {
        fields.set(key, *value);
    }
    ParallelEnvironment::from_fields(&fields)
}

#[test]
fn recorded_environments_print_as_they_were_read() {
    let rules = [
        AllocationRule::RoundRobin,
        AllocationRule::FillUp,
        AllocationRule::PeSlots,
    ];
    for (text, rule) in RECORDED.iter().zip(rules) {
        let pe = ParallelEnvironment::from_fields(&Fields::parse(text).unwrap()).unwrap();
        assert_eq!(pe.allocation_rule, rule);
        assert_eq!(pe.to_fields().print(ObjectKind::Pe, LineWrap::At80), *text);
    }
}

#[test]
fn rules_and_urgency_slots_take_numbers_too() {
    let pe = pe(&[("allocation_rule", "4"), ("urgency_slots", "5")]).unwrap();
    assert_eq!(
        (pe.allocation_rule, pe.urgency_slots),
        (AllocationRule::Fixed(4), UrgencySlots::Fixed(5))
    );
}

#[test]
fn files_of_older_versions_lack_the_last_attributes() {
    let mut fields = ParallelEnvironment::template(PeName::from("p")).to_fields();
    for key in OPTIONAL {
        fields.remove(key);
    }
    assert_eq!(
        ParallelEnvironment::from_fields(&fields),
        Ok(ParallelEnvironment::template(PeName::from("p")))
    );
}

/// A file of Open Cluster Scheduler, which tells its attributes of their own whatever they are.
const OPEN_CLUSTER_SCHEDULER: &str = "\
pe_name                   mpi
slots                     999
user_lists                NONE
xuser_lists               NONE
start_proc_args           NONE
stop_proc_args            NONE
allocation_rule           $round_robin
control_slaves            TRUE
job_is_first_task         FALSE
urgency_slots             min
accounting_summary        FALSE
ign_sreq_on_mhost         FALSE
master_forks_slaves       FALSE
daemon_forks_slaves       FALSE
";

#[test]
fn attributes_of_later_versions_are_read_and_shown_where_they_are_true() {
    let mut expected = ParallelEnvironment::template(PeName::from("mpi"));
    expected.slots = 999;
    expected.allocation_rule = AllocationRule::RoundRobin;
    expected.control_slaves = Flag(true);
    expected.job_is_first_task = Flag(false);
    let read = |text: &str| ParallelEnvironment::from_fields(&Fields::parse(text).unwrap()).unwrap();
    let plain = read(OPEN_CLUSTER_SCHEDULER);
    assert_eq!(plain, expected);
    let keys = |pe: &ParallelEnvironment| pe.to_fields().iter().map(|field| field.key.clone()).collect::<Vec<_>>();
    assert_eq!(keys(&plain), KEYS, "as 8.1.9 prints it");
    for later in LATER_KEYS {
        let text = OPEN_CLUSTER_SCHEDULER.replace(&format!("{later:<26}FALSE"), &format!("{later:<26}TRUE"));
        assert_ne!(text, OPEN_CLUSTER_SCHEDULER);
        let pe = read(&text);
        assert_eq!(keys(&pe), [KEYS, &[later]].concat());
        let printed = pe.to_fields().print(ObjectKind::Pe, LineWrap::At80);
        let column = (later.len() + 1).max(19);
        assert!(printed.ends_with(&format!("\n{later:<column$}TRUE\n")), "{printed}");
        assert_eq!(read(&printed), pe);
    }
    assert!(
        read(&OPEN_CLUSTER_SCHEDULER.replace("mhost         FALSE", "mhost         TRUE"))
            .ign_sreq_on_mhost
            .0
    );
}

#[test]
fn values_that_cannot_be_are_refused() {
    for (key, value) in [
        ("pe_name", "a@b"),
        ("slots", "-1"),
        ("allocation_rule", "0"),
        ("allocation_rule", "$fillup"),
        ("urgency_slots", "median"),
        ("control_slaves", "ye"),
        ("control_slaves", "on"),
        ("start_proc_args", "start.sh"),
        ("ign_sreq_on_mhost", "maybe"),
        ("ign_sreq_on_master", "TRUE"),
    ] {
        assert_eq!(pe(&[(key, value)]).expect_err(value).len(), 1, "{key} {value}");
    }
}
