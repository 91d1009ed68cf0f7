//! How amounts are written: the raw text that reads back, and the forms of `qhost -F` and
//! `qstat -F`.

use super::{Amount, Millionths, Type};

const MILLION: i128 = 1_000_000;
/// One of each memory multiplier that is printed, largest first.
const MEMORY_UNITS: [(char, i128); 4] = [('T', 1 << 40), ('G', 1 << 30), ('M', 1 << 20), ('K', 1 << 10)];

impl Amount {
    /// The text that [`Amount::parse`] reads back to the same amount: `INFINITY`, `4G`, `01:00:00`,
    /// `1.5`, `TRUE`.
    ///
    /// Memory takes the largest multiplier that leaves a whole number. Anything but 0 prints as
    /// `TRUE` of a BOOL.
    pub fn print(self, r#type: Type) -> String {
        let Some(units) = self.finite().map(i128::from) else {
            return "INFINITY".to_owned();
        };
        match r#type {
            Type::Int | Type::RsMap | Type::String | Type::CString | Type::ReString | Type::Host => units.to_string(),
            Type::Double => decimal(units),
            Type::Time => clock(units),
            Type::Memory => whole_memory(units),
            Type::Bool => if units == 0 { "FALSE" } else { "TRUE" }.to_owned(),
        }
    }

    /// As `qhost -F` and the scheduler's messages show it: numbers with six decimals, memory as
    /// `22.652G`, times as `10:00:00`, `infinity` in lower case.
    pub fn qhost_text(self, r#type: Type) -> String {
        let Some(units) = self.finite().map(i128::from) else {
            return "infinity".to_owned();
        };
        match r#type {
            Type::Double => six_decimals(units),
            Type::Memory => rounded_memory(units),
            Type::Time => clock_with_days(units),
            Type::Int | Type::RsMap | Type::Bool | Type::String | Type::CString | Type::ReString | Type::Host => {
                six_decimals(units * MILLION)
            }
        }
    }

    /// As the files `reporting` and `schedule` have it: six decimals, memory in bytes and times in
    /// seconds; `infinity` for what has no bound.
    pub fn decimal_text(self, r#type: Type) -> String {
        let Some(units) = self.finite().map(i128::from) else {
            return "infinity".to_owned();
        };
        six_decimals(units * MILLION / i128::from(r#type.base_units_in_one()))
    }

    /// As `qstat -F` shows it: like [`Amount::qhost_text`], but an INT and an RSMAP without
    /// decimals.
    pub fn qstat_text(self, r#type: Type) -> String {
        match self.finite().filter(|_| matches!(r#type, Type::Int | Type::RsMap)) {
            Some(units) => units.to_string(),
            None => self.qhost_text(r#type),
        }
    }
}

/// Millionths as a decimal number without trailing zeros.
pub(super) fn decimal(millionths: i128) -> String {
    let text = six_decimals(millionths);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Millionths as C's `%f` prints the number.
fn six_decimals(millionths: i128) -> String {
    let one = i128::from(Millionths::ONE.0);
    let magnitude = millionths.abs();
    format!("{}{}.{:06}", sign(millionths), magnitude / one, magnitude % one)
}

fn sign(number: i128) -> &'static str {
    if number < 0 { "-" } else { "" }
}

/// `HH:MM:SS`; hours may exceed 23.
fn clock(seconds: i128) -> String {
    let magnitude = seconds.abs();
    format!(
        "{}{:02}:{:02}:{:02}",
        sign(seconds),
        magnitude / 3600,
        magnitude / 60 % 60,
        magnitude % 60
    )
}

/// `HH:MM:SS`, or `D:HH:MM:SS` from a day on.
fn clock_with_days(seconds: i128) -> String {
    const DAY_S: i128 = 86_400;
    let days = seconds.abs() / DAY_S;
    if days == 0 {
        return clock(seconds);
    }
    format!("{}{days}:{}", sign(seconds), clock(seconds.abs() % DAY_S))
}

/// Bytes with the largest multiplier that leaves a whole number.
fn whole_memory(bytes: i128) -> String {
    let unit = MEMORY_UNITS
        .into_iter()
        .find(|(_, unit)| bytes != 0 && bytes % unit == 0);
    match unit {
        Some((letter, unit)) => format!("{}{letter}", bytes / unit),
        None => bytes.to_string(),
    }
}

/// Bytes with three decimals and the multiplier T, G, M or K that leaves at least one, as 8.1.9
/// prints them.
fn rounded_memory(bytes: i128) -> String {
    let unit = MEMORY_UNITS.into_iter().find(|(_, unit)| bytes.abs() >= *unit);
    let (suffix, unit) = unit.map_or((String::new(), 1), |(letter, unit)| (letter.to_string(), unit));
    let thousandths = half_even_division(bytes.abs() * 1000, unit);
    format!(
        "{}{}.{:03}{suffix}",
        sign(bytes),
        thousandths / 1000,
        thousandths % 1000
    )
}

/// The quotient rounded to nearest, halves to the even one, as printf(3) rounds.
fn half_even_division(dividend: i128, divisor: i128) -> i128 {
    let (quotient, rest) = (dividend / divisor, dividend % divisor);
    let up = rest * 2 > divisor || (rest * 2 == divisor && quotient % 2 == 1);
    quotient + i128::from(up)
}
