use super::*;
use crate::object::Wrap;

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
    let rules = [AllocationRule::RoundRobin, AllocationRule::FillUp, AllocationRule::PeSlots];
    for (text, rule) in RECORDED.iter().zip(rules) {
        let pe = ParallelEnvironment::from_fields(&Fields::parse(text).unwrap()).unwrap();
        assert_eq!(pe.allocation_rule, rule);
        assert_eq!(pe.to_fields().print(ObjectKind::Pe, Wrap::At80), *text);
    }
}

#[test]
fn rules_and_urgency_slots_take_numbers_too() {
    let pe = pe(&[("allocation_rule", "4"), ("urgency_slots", "5")]).unwrap();
    assert_eq!((pe.allocation_rule, pe.urgency_slots), (AllocationRule::Fixed(4), UrgencySlots::Fixed(5)));
}

#[test]
fn files_of_older_versions_lack_the_last_attributes() {
    let mut fields = ParallelEnvironment::template(PeName::from("p")).to_fields();
    for key in OPTIONAL {
        fields.remove(key);
    }
    assert_eq!(ParallelEnvironment::from_fields(&fields), Ok(ParallelEnvironment::template(PeName::from("p"))));
}

#[test]
fn values_that_cannot_be_are_refused() {
    for (key, value) in [
        ("pe_name", "a@b"),
        ("slots", "-1"),
        ("allocation_rule", "0"),
        ("allocation_rule", "$fillup"),
        ("urgency_slots", "median"),
        ("control_slaves", "yes"),
        ("start_proc_args", "start.sh"),
    ] {
        assert_eq!(pe(&[(key, value)]).expect_err(value).len(), 1, "{key} {value}");
    }
}
