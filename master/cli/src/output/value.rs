//! Numbers as printf(3) writes them, from integers alone: no float stands between the ledger and
//! the screen.

use proto::amount::{Amount, Type};
use proto::usage::Usage;
use proto::wire::view::{ResourceValue, ResourceView};

/// `%.*f` of a number in millionths.
pub fn millionths(value: i64, decimals: u32) -> String {
    fraction(i128::from(value), 1_000_000, decimals)
}

/// `%.*f` of `dividend / divisor`, halves to even; `divisor` is positive.
pub fn fraction(dividend: i128, divisor: i128, decimals: u32) -> String {
    let scale = 10_i128.pow(decimals);
    let scaled = dividend.abs().saturating_mul(scale);
    let (quotient, rest) = (scaled / divisor, scaled % divisor);
    let doubled = rest.saturating_mul(2);
    let rounded = quotient + i128::from(doubled > divisor || (doubled == divisor && quotient % 2 == 1));
    let sign = if dividend < 0 { "-" } else { "" };
    match decimals {
        0 => format!("{sign}{rounded}"),
        _ => format!(
            "{sign}{}.{:0width$}",
            rounded / scale,
            rounded % scale,
            width = decimals as usize
        ),
    }
}

/// A load value of type DOUBLE with so many decimals; none if it is no number.
pub fn load(text: &str, decimals: u32) -> Option<String> {
    let value = Amount::parse(text, Type::Double).ok()?.finite()?;
    Some(millionths(value, decimals))
}

/// A load value of type MEMORY as `qhost` shows it in its columns: `23.5G`, `909.5M`, `0.0`.
pub fn short_memory(text: &str) -> Option<String> {
    let bytes = i128::from(Amount::parse(text, Type::Memory).ok()?.finite()?);
    let units = [('E', 60), ('P', 50), ('T', 40), ('G', 30), ('M', 20), ('K', 10)];
    let unit = units
        .map(|(letter, bits)| (letter, 1_i128 << bits))
        .into_iter()
        .find(|(_, unit)| bytes.abs() >= *unit);
    Some(match unit {
        Some((letter, unit)) => format!("{}{letter}", fraction(bytes, unit, 1)),
        None => fraction(bytes, 1, 1),
    })
}

/// Bytes as `qstat -j` and `qacct` show them: `3.363M`, `0.000`.
pub fn bytes(bytes: u64) -> String {
    Amount::from_base(i64::try_from(bytes).unwrap_or(i64::MAX - 1)).qhost_text(Type::Memory)
}

/// Processor time as `qstat -ext` shows it: `0:00:00:00`.
pub fn days_clock(ms: u64) -> String {
    let seconds = ms / 1000;
    format!(
        "{}:{:02}:{:02}:{:02}",
        seconds / 86_400,
        seconds / 3600 % 24,
        seconds / 60 % 60,
        seconds % 60
    )
}

/// Memory over time in GB seconds, with five decimals.
pub fn memory_seconds(usage: &Usage) -> String {
    fraction(i128::from(usage.mem_kib_ms), 1024 * 1024 * 1000, 5)
}

/// Transferred bytes in GB, with five decimals.
pub fn transferred(usage: &Usage) -> String {
    fraction(i128::from(usage.io_bytes), 1 << 30, 5)
}

/// Which command prints a resource: `qhost -F` gives an INT six decimals, `qstat -F` none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `qhost -F`.
    Qhost,
    /// `qstat -F`.
    Qstat,
}

/// The value of a resource.
pub fn resource(view: &ResourceView, form: Form) -> String {
    match (&view.value, form) {
        (ResourceValue::Text(text), _) => text.clone(),
        (ResourceValue::Amount(amount), Form::Qhost) => amount.qhost_text(view.r#type),
        (ResourceValue::Amount(amount), Form::Qstat) => amount.qstat_text(view.r#type),
    }
}

/// The two letters before a resource: `hl`, `qc`, `gf`.
pub fn dominance(view: &ResourceView) -> String {
    let mut letters = String::from(view.dominance.level);
    letters.push(view.dominance.source);
    letters
}

/// At most so many characters, never half of one.
pub fn cut(text: &str, width: usize) -> String {
    text.chars().take(width).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fractions_round_as_printf_does() {
        for (value, decimals, text) in [
            (250_278, 5, "0.25028"),
            (0, 5, "0.00000"),
            (1_000_000, 5, "1.00000"),
            (-250_275, 5, "-0.25028"),
            (5_513_184, 2, "5.51"),
            (2_500_000, 0, "2"),
            (3_500_000, 0, "4"),
        ] {
            assert_eq!(millionths(value, decimals), text);
        }
    }

    #[test]
    fn memory_columns_have_one_decimal() {
        for (text, shown) in [
            ("24105.984375M", "23.5G"),
            ("1584435M", "1.5T"),
            ("2048T", "2.0P"),
            ("3145728T", "3.0E"),
            ("909.515625M", "909.5M"),
            ("0.000000M", "0.0"),
            ("1.5K", "1.5K"),
        ] {
            assert_eq!(short_memory(text).as_deref(), Some(shown));
        }
        assert_eq!(short_memory("-"), None);
    }

    #[test]
    fn times_count_days() {
        assert_eq!(days_clock(0), "0:00:00:00");
        assert_eq!(days_clock(93_784_000), "1:02:03:04");
    }

    proptest! {
        #[test]
        fn no_number_panics(value: i64, decimals in 0_u32..9, text in ".*", count: u64) {
            let _ = (millionths(value, decimals), load(&text, decimals), short_memory(&text), bytes(count), days_clock(count));
        }
    }
}
