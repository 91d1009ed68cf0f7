use super::*;
use proptest::prelude::*;

const INF: i64 = i64::MAX;
const G: i64 = 1 << 30;

fn check(text: &str, r#type: Type, expected: i64) {
    let parsed = Amount::parse(text, r#type);
    assert_eq!(parsed, Ok(Amount::from_base(expected)), "{text} as {type}");
}

fn refused(text: &str, r#type: Type, span: std::ops::Range<usize>, reason: Reason) {
    assert_eq!(
        Amount::parse(text, r#type),
        Err(ValueError {
            span,
            expected: r#type,
            reason
        }),
        "{text} as {type}"
    );
}

#[test]
fn the_notations_of_semantics_section_2_are_read() {
    check("1.5G", Type::Memory, 1_610_612_736);
    check("100m", Type::Memory, 100_000_000);
    check("0x10", Type::Int, 16);
    check("2K", Type::Time, 2048);
    check("1:0:0", Type::Memory, 3600);
    check("1::1", Type::Time, 3601);
    check(":30:", Type::Time, 1800);
    check("100:0:0", Type::Time, 360_000);
    check("::", Type::Time, 0);
    check("0:08:09", Type::Time, 489);
    check("0:0:1.5", Type::Time, 2);
    check("0.5:0:0", Type::Time, 1800);
    check("010", Type::Int, 8);
    check("0", Type::Int, 0);
    check("0.5G", Type::Memory, 536_870_912);
    check("0.5", Type::Double, 500_000);
    check("010K", Type::Memory, 8192);
    check("0xfG", Type::Memory, 15 * G);
    check("0X1f", Type::Int, 31);
    check("1e3", Type::Int, 1000);
    check("1.5e-3", Type::Double, 1500);
    check("1.e2k", Type::Int, 100_000);
    check(".5", Type::Double, 500_000);
    check("-5", Type::Time, -5);
    check("-1:0:0", Type::Time, -3600);
    check("+7", Type::Int, 7);
}

#[test]
fn every_multiplier_counts_as_its_case_says() {
    let factors = [
        ("k", 1_000),
        ("K", 1 << 10),
        ("m", 1_000_000),
        ("M", 1 << 20),
        ("g", 1_000_000_000),
        ("G", 1 << 30),
        ("t", 1_000_000_000_000),
        ("T", 1 << 40),
    ];
    for (letter, factor) in factors {
        check(&format!("3{letter}"), Type::Memory, 3 * factor);
    }
}

#[test]
fn infinity_and_truth_are_read_in_any_case() {
    for r#type in [Type::Int, Type::Double, Type::Time, Type::Memory] {
        check("infinity", r#type, INF);
        check("INFINITY", r#type, INF);
    }
    check("True", Type::Bool, 1);
    check("FALSE", Type::Bool, 0);
    check("1", Type::Bool, 1);
    check("0", Type::Bool, 0);
    check("-3", Type::Bool, 1);
    check("TRUE", Type::Double, 1_000_000);
    refused("INFINITY", Type::Bool, 0..8, Reason::OutOfRange);
}

#[test]
fn what_is_finer_than_the_base_unit_is_rounded_to_the_nearest() {
    check("1.5", Type::Int, 2);
    check("1.4", Type::Int, 1);
    check("-1.5", Type::Int, -2);
    check("0.3K", Type::Memory, 307);
    check("1.5000005", Type::Double, 1_500_001);
    check("0.33333333333333333333333333333333333333333333", Type::Double, 333_333);
    check("0.00000000000000000000000000000000000000000001", Type::Double, 0);
    check("1e-999999999", Type::Int, 0);
    // 8.1.9 prints load values in M with six decimals; the bytes behind them come back exactly.
    check("23196.035156M", Type::Memory, (18_455_216 + 269_932 + 5_027_592) * 1024);
}

#[test]
fn an_error_names_the_bytes_that_cannot_be() {
    refused("4GB", Type::Memory, 2..3, Reason::Trailing);
    refused("1Q", Type::Memory, 1..2, Reason::Trailing);
    refused("08", Type::Int, 1..2, Reason::NotADigitOfBase);
    refused("0x", Type::Int, 2..2, Reason::NotADigitOfBase);
    refused("0e3", Type::Int, 1..3, Reason::Trailing);
    refused("abc", Type::Memory, 0..3, Reason::NotANumber);
    refused("-", Type::Int, 1..1, Reason::NotANumber);
    refused(".", Type::Double, 0..1, Reason::NotANumber);
    refused("1e", Type::Double, 1..2, Reason::Trailing);
    refused("1.2.3", Type::Double, 3..5, Reason::Trailing);
    refused("", Type::Int, 0..0, Reason::Empty);
    refused("60:0", Type::Time, 0..4, Reason::ColonCount);
    refused("1:2:3:4", Type::Time, 5..7, Reason::ColonCount);
    refused("1:x:3", Type::Time, 2..3, Reason::NotANumber);
    refused("1:2:3G", Type::Time, 4..6, Reason::NotANumber);
    refused("maybe", Type::Bool, 0..5, Reason::NotANumber);
    refused("4G", Type::String, 0..2, Reason::NotNumeric);
    refused("1 G", Type::Memory, 1..3, Reason::Trailing);
}

#[test]
fn overflow_is_an_error_and_never_infinity() {
    check("9223372036854775806", Type::Int, i64::MAX - 1);
    check("-9223372036854775808", Type::Int, i64::MIN);
    for text in [
        "9223372036854775807",
        "8388608T",
        "1e19",
        "1e999999999",
        "0x7fffffffffffffff",
        "0xffffffffffffffffff",
    ] {
        refused(text, Type::Int, 0..text.len(), Reason::OutOfRange);
    }
    refused("9223372036855", Type::Double, 0..13, Reason::OutOfRange);
}

#[test]
fn a_refusal_has_the_words_of_8_1_9() {
    let what = |name: &str, text: &str, r#type| {
        Amount::parse(text, r#type)
            .map_err(|error| error.diagnostic(name, text).what)
            .unwrap_err()
    };
    assert_eq!(
        what("h_vmem", "abc", Type::Memory),
        "attribute \"h_vmem\" is not a memory value"
    );
    assert_eq!(
        what("h_rt", "1:2:3:4", Type::Time),
        "attribute \"h_rt\" is not a time value"
    );
    assert_eq!(
        what("display_win_gui", "maybe", Type::Bool),
        "attribute \"display_win_gui\" is not a boolean value"
    );
    let refusal = Amount::parse("4GB", Type::Memory)
        .unwrap_err()
        .diagnostic("h_vmem", "4GB");
    assert_eq!(refusal.place, "\"B\" of \"4GB\"");
}

#[test]
fn qhost_and_qstat_print_what_the_captures_show() {
    let cases = [
        ("6.986816", Type::Double, "6.986816", "6.986816"),
        ("2", Type::Int, "2.000000", "2"),
        ("22.652G", Type::Memory, "22.652G", "22.652G"),
        ("909.516M", Type::Memory, "909.516M", "909.516M"),
        ("0", Type::Memory, "0.000", "0.000"),
        ("1023", Type::Memory, "1023.000", "1023.000"),
        ("1024", Type::Memory, "1.000K", "1.000K"),
        ("1023G", Type::Memory, "1023.000G", "1023.000G"),
        ("1024G", Type::Memory, "1.000T", "1.000T"),
        ("1547.3G", Type::Memory, "1.511T", "1.511T"),
        ("2T", Type::Memory, "2.000T", "2.000T"),
        ("1048576T", Type::Memory, "1048576.000T", "1048576.000T"),
        ("10:0:0", Type::Time, "10:00:00", "10:00:00"),
        ("25:0:0", Type::Time, "1:01:00:00", "1:01:00:00"),
        ("FALSE", Type::Bool, "0.000000", "0.000000"),
        ("INFINITY", Type::Time, "infinity", "infinity"),
        ("INFINITY", Type::Int, "infinity", "infinity"),
        ("-0.25", Type::Double, "-0.250000", "-0.250000"),
    ];
    for (text, r#type, qhost, qstat) in cases {
        let amount = Amount::parse(text, r#type).unwrap();
        assert_eq!(amount.qhost_text(r#type), qhost);
        assert_eq!(amount.qstat_text(r#type), qstat);
    }
}

#[test]
fn raw_text_is_short_and_exact() {
    let raw = |text: &str, r#type| Amount::parse(text, r#type).unwrap().print(r#type);
    assert_eq!(raw("1.5G", Type::Memory), "1536M");
    assert_eq!(raw("1025", Type::Memory), "1025");
    assert_eq!(raw("-4096", Type::Memory), "-4K");
    assert_eq!(raw("3600", Type::Time), "01:00:00");
    assert_eq!(raw("1.50", Type::Double), "1.5");
    assert_eq!(raw("100", Type::Double), "100");
    assert_eq!(raw("1", Type::Bool), "TRUE");
    assert_eq!(raw("infinity", Type::Memory), "INFINITY");
    assert_eq!(
        Millionths::parse("1k").map(|urgency| urgency.to_string()),
        Ok("1000".to_owned())
    );
    assert!(Millionths::parse("infinity").is_err());
}

#[test]
fn arithmetic_keeps_infinity_and_refuses_overflow() {
    let amount = Amount::from_base;
    assert_eq!(amount(1).checked_add(amount(2)), Some(amount(3)));
    assert_eq!(amount(i64::MAX - 1).checked_add(amount(1)), None);
    assert_eq!(amount(1).checked_add(Amount::INFINITY), Some(Amount::INFINITY));
    assert_eq!(Amount::INFINITY.checked_sub(amount(7)), Some(Amount::INFINITY));
    assert_eq!(amount(7).checked_sub(Amount::INFINITY), None);
    assert_eq!(amount(i64::MIN).checked_sub(amount(1)), None);
    assert_eq!(amount(2 * G).times(4), amount(8 * G));
    assert_eq!(Amount::INFINITY.times(4), Amount::INFINITY);
    assert_eq!(Amount::INFINITY.times(0), Amount::ZERO);
    assert_eq!(amount(i64::MAX / 2).times(3), Amount::INFINITY);
    assert_eq!(amount(10).scaled(Millionths(250_000)), amount(3));
    assert_eq!(amount(-10).scaled(Millionths(250_000)), amount(-3));
    assert_eq!(Amount::INFINITY.scaled(Millionths(500_000)), Amount::INFINITY);
    assert!(Amount::INFINITY > amount(i64::MAX - 1));
}

#[test]
fn type_names_read_back() {
    for r#type in Type::ALL {
        assert_eq!(Type::parse(r#type.as_str()), Some(r#type));
    }
    assert_eq!(Type::parse("FLOAT"), None);
}

proptest! {
    #[test]
    fn what_is_printed_reads_back(units: i64, index in 0usize..4) {
        let r#type = [Type::Int, Type::Double, Type::Time, Type::Memory][index];
        let amount = Amount::from_base(units);
        prop_assert_eq!(Amount::parse(&amount.print(r#type), r#type), Ok(amount));
    }

    #[test]
    fn no_text_panics_and_every_span_is_inside(text in "\\PC*", index in 0usize..9) {
        if let Err(error) = Amount::parse(&text, Type::ALL[index]) {
            prop_assert!(text.get(error.span).is_some());
        }
    }

    #[test]
    fn texts_of_numeric_characters_never_panic(text in "[-+0-9xX.:eEkKgGtTB]{0,40}") {
        let _ = Amount::parse(&text, Type::Double);
    }
}
