use super::*;
use crate::object::LineWrap;

const GLOBAL: &str = include_str!("../../tests-data/qconf/host_global.txt");
const VM: &str = include_str!("../../tests-data/qconf/host_vm.txt");

fn host(changes: &[(&str, &str)]) -> Result<ExecHost, Vec<Diagnostic>> {
    let mut fields = ExecHost::template(HostName::new("n1")).to_fields();
    for (key, value) in changes {
        fields.set(key, *value);
    }
    ExecHost::from_fields(&fields)
}

#[test]
fn recorded_hosts_print_as_they_were_read() {
    for (text, processors) in [(GLOBAL, 0), (VM, 2)] {
        let fields = Fields::parse(text).unwrap();
        let load_values: Assignments = fields.value("load_values").unwrap().parse().unwrap();
        let host = ExecHost::from_fields(&fields).unwrap();
        assert_eq!(
            host.shown(&load_values, processors)
                .print(ObjectKind::ExecHost, LineWrap::At80),
            text
        );
    }
}

#[test]
fn what_a_host_reports_is_not_in_the_text_that_is_edited() {
    let fields = ExecHost::template(HostName::new("n1")).to_fields();
    assert_eq!((fields.value("load_values"), fields.value("processors")), (None, None));
    assert_eq!(ExecHost::from_fields(&fields).unwrap().to_fields(), fields);
}

#[test]
fn scaling_factors_default_to_one() {
    let host = host(&[
        ("load_scaling", "load_avg=0.5,mem_free=2"),
        ("usage_scaling", "cpu=1.25"),
    ])
    .unwrap();
    assert_eq!(host.load_scaling.factor("load_avg"), Millionths(500_000));
    assert_eq!(host.load_scaling.factor("swap_free"), Millionths::ONE);
    assert_eq!(host.to_fields().value("usage_scaling"), Some("cpu=1.250000"));
}

#[test]
fn a_name_that_is_given_twice_is_in_the_list_once() {
    let written = host(&[("user_lists", "team bad team"), ("report_variables", "lic,gm,lic")])
        .unwrap()
        .to_fields();
    assert_eq!(written.value("user_lists"), Some("team bad"));
    assert_eq!(written.value("report_variables"), Some("lic,gm"));
}

#[test]
fn values_that_cannot_be_are_refused() {
    for (key, value) in [
        ("hostname", "a b"),
        ("load_scaling", "load_avg=fast"),
        ("load_scaling", "load_avg"),
        ("usage_scaling", "gpu=2"),
        ("complex_values", "gpu="),
        ("user_lists", "a/b"),
    ] {
        assert_eq!(host(&[(key, value)]).expect_err(value).len(), 1, "{key} {value}");
    }
}
