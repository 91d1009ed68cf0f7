//! The text forms in which Grid Engine 8.1.9 transports load values, and the forms people use
//! instead.

use std::borrow::Cow;

/// A number as `%f` prints it: six decimals, as in `load_avg=6.986816`.
pub fn number(value: f64) -> String {
    format!("{value:.6}")
}

/// An amount of memory in bytes as 8.1.9 transports it: mebibytes with six decimals, as in
/// `23196.035156M`.
pub fn memory(bytes: u64) -> String {
    // Exact up to 2^53 bytes, far above any host; the text is for people and tools, never for the
    // ledger.
    format!("{:.6}M", bytes as f64 / 1_048_576.0)
}

/// Rewrites sizes as people's tools print them (`1.2T`, `12 GB`, `3.5GiB`, `80%`) into what the
/// complex's types read.
///
/// The unit letter stays, in the meaning `df -h` and the kernel give it: powers of 1024. So `12 GB`
/// becomes `12G`, `100kB` becomes `100K`, `512B` becomes `512`, and a percentage loses its sign. A
/// bare suffix of Grid Engine's own (`5g` is 1000³, `5G` is 1024³) is left alone, and so is
/// everything that is not a number with a unit. For attributes of numeric type only: a string
/// attribute means what it says.
///
/// ```
/// use gridwright_sensors::text::normalise_human;
/// assert_eq!(normalise_human("12 GB"), "12G");
/// assert_eq!(normalise_human("1.2T"), "1.2T");
/// assert_eq!(normalise_human("many GB"), "many GB");
/// ```
pub fn normalise_human(value: &str) -> Cow<'_, str> {
    let text = value.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.' && c != '-' && c != '+')
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    if digits.parse::<f64>().is_err() {
        return Cow::Borrowed(value);
    }
    match unit_letter(unit.trim()) {
        Some("") if digits == value => Cow::Borrowed(value),
        Some(letter) => Cow::Owned(format!("{digits}{letter}")),
        None => Cow::Borrowed(value),
    }
}

/// The suffix that Grid Engine's memory type knows for `unit`; empty for none, `None` where the
/// unit is not one of size.
fn unit_letter(unit: &str) -> Option<&str> {
    const SINGLE: [&str; 8] = ["k", "K", "m", "M", "g", "G", "t", "T"];
    if SINGLE.contains(&unit) {
        return Some(unit);
    }
    match unit.to_ascii_lowercase().as_str() {
        "" | "%" | "b" | "byte" | "bytes" => Some(""),
        "kb" | "kib" | "ki" => Some("K"),
        "mb" | "mib" | "mi" => Some("M"),
        "gb" | "gib" | "gi" => Some("G"),
        "tb" | "tib" | "ti" => Some("T"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_prints_as_8_1_9_recorded_it() {
        assert_eq!(memory((18_455_216 + 269_932 + 5_027_592) * 1024), "23196.035156M");
        assert_eq!(memory(0), "0.000000M");
    }

    #[test]
    fn human_sizes_become_suffixes_of_the_memory_type() {
        let cases = [
            ("1.2T", "1.2T"),
            ("5g", "5g"),
            ("12GB", "12G"),
            ("12 GB", "12G"),
            ("3.5GiB", "3.5G"),
            ("100kB", "100K"),
            ("16Mi", "16M"),
            ("512B", "512"),
            ("80%", "80"),
            ("-3", "-3"),
            ("true", "true"),
            ("1:30:00", "1:30:00"),
            ("GB", "GB"),
            ("12 parsecs", "12 parsecs"),
            ("", ""),
        ];
        for (given, expected) in cases {
            assert_eq!(normalise_human(given), expected, "{given:?}");
        }
    }
}
