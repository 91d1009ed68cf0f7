use super::*;
use crate::object::LineWrap;
use proptest::prelude::*;

const RECORDED: &str = include_str!("../../tests-data/qconf/scheduler.txt");

fn conf(changes: &[(&str, &str)]) -> Result<SchedulerConf, Vec<Diagnostic>> {
    let mut fields = SchedulerConf::template().to_fields();
    for (key, value) in changes {
        fields.set(key, *value);
    }
    SchedulerConf::from_fields(&fields)
}

#[test]
fn the_recorded_configuration_prints_as_it_was_read() {
    let conf = SchedulerConf::from_fields(&Fields::parse(RECORDED).unwrap()).unwrap();
    assert_eq!(
        conf.to_fields().print(ObjectKind::SchedulerConf, LineWrap::At80),
        RECORDED
    );
    assert_eq!(conf.weight_waiting_time.millionths(), 278_000);
}

#[test]
fn the_shipped_weights_are_those_of_the_upstream_profile() {
    let conf = SchedulerConf::template();
    let weights = [
        conf.weight_priority,
        conf.weight_urgency,
        conf.weight_ticket,
        conf.weight_waiting_time,
    ];
    assert_eq!(weights.map(Weight::millionths), [1_000_000, 100_000, 10_000, 0]);
    assert_eq!(SchedulerConf::from_fields(&conf.to_fields()), Ok(conf));
}

#[test]
fn the_duration_offset_is_sixty_seconds_unless_set() {
    assert_eq!(SchedulerConf::template().duration_offset_s(), 60);
    assert_eq!(
        conf(&[("params", "PROFILE=1,DURATION_OFFSET=0:0:5")])
            .unwrap()
            .duration_offset_s(),
        5
    );
}

#[test]
fn settle_times_are_of_single_attributes() {
    let text = "SETTLE_TIME=tcp_lic:10,SETTLE_TIME=mem_free:0:1:0";
    let conf = conf(&[("params", text)]).unwrap();
    assert_eq!(conf.params.to_string(), text);
    assert_eq!(
        ["tcp_lic", "mem_free", "slots"].map(|name| conf.settle_ms(name)),
        [10_000, 60_000, 0]
    );
}

#[test]
fn a_load_formula_is_a_sum_of_terms() {
    let formula: LoadFormula = "-slots+np_load_avg*2-$mem_free/1k+3".parse().unwrap();
    let number = |units: i64| crate::amount::Millionths(units * 1_000_000);
    let attribute = |name: &str| Operand::Attribute(name.into());
    let expected = [
        Term {
            sign: Sign::Minus,
            operand: attribute("slots"),
            constant: None,
        },
        Term {
            sign: Sign::Plus,
            operand: attribute("np_load_avg"),
            constant: Some((Operator::Times, number(2))),
        },
        Term {
            sign: Sign::Minus,
            operand: attribute("mem_free"),
            constant: Some((Operator::Over, number(1000))),
        },
        Term {
            sign: Sign::Plus,
            operand: Operand::Number(number(3)),
            constant: None,
        },
    ];
    assert_eq!(formula.terms(), expected);
    assert_eq!(formula.attributes().count(), 3);
}

#[test]
fn an_attribute_as_a_factor_is_refused_in_the_words_of_8_1_9() {
    let refusals = conf(&[("load_formula", "np_load_avg+2*lic")]).unwrap_err();
    assert_eq!(
        refusals[0].what,
        "\"load_formula\" uses \"lic\" as weighting factor (only numbers are allowed)"
    );
}

#[test]
fn values_that_cannot_be_are_refused() {
    for (key, value) in [
        ("load_formula", "np_load_avg*"),
        ("load_formula", "np_load_avg + slots"),
        ("load_formula", "slots/0"),
        ("load_formula", "(slots)"),
        ("load_formula", "+"),
        ("queue_sort_method", "share"),
        ("schedd_job_info", "job_list"),
        ("policy_hierarchy", "OFSO"),
        ("usage_weight_list", "gpu=1"),
        ("halflife_decay_list", "cpu=-2"),
        ("weight_user", "-1"),
        ("schedule_interval", "INFINITY"),
        ("job_load_adjustments", "np_load_avg"),
        ("params", "SETTLE_TIME=lic"),
        ("params", "SETTLE_TIME=lic:INFINITY"),
        ("params", "SETTLE_TIME=:10"),
    ] {
        assert_eq!(conf(&[(key, value)]).expect_err(value).len(), 1, "{key} {value}");
    }
}

#[test]
fn words_print_as_they_are_read() {
    for (key, value) in [
        ("schedd_job_info", "job_list 1,20"),
        ("policy_hierarchy", "NONE"),
        ("policy_hierarchy", "SF"),
        ("queue_sort_method", "seqno"),
        ("halflife_decay_list", "cpu=1440:mem=-1"),
        ("job_load_adjustments", "NONE"),
    ] {
        assert_eq!(conf(&[(key, value)]).unwrap().to_fields().value(key), Some(value));
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_formula_panic(text in "[-+*/&|^$a-c0-2. ]{0,12}") {
        if let Ok(formula) = text.parse::<LoadFormula>() {
            prop_assert_eq!(formula.to_string(), text);
        }
    }
}
