//! Names of accounting files that were put aside: those of the master, and those that logrotate(8)
//! and the `logchecker` of Grid Engine make.

/// A file that the master put aside: `accounting-20261126-0001`. Names are in the order of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RotatedName {
    /// The day in UTC, as `20261126`.
    pub day: u32,
    /// The number of the file on that day, from 1.
    pub number: u32,
}

impl RotatedName {
    /// The file called `name`, if the master put it aside as a part of the file called `base`.
    pub fn parse(base: &str, name: &str) -> Option<Self> {
        let (day, number) = name.strip_prefix(base)?.strip_prefix('-')?.split_once('-')?;
        let is_name = day.len() == 8 && number.len() >= 4 && all_digits(day) && all_digits(number);
        is_name.then_some(Self {
            day: day.parse().ok()?,
            number: number.parse().ok()?,
        })
    }

    /// The name for a part of the file called `base`.
    pub fn of(self, base: &str) -> String {
        let Self { day, number } = self;
        format!("{base}-{day:08}-{number:04}")
    }
}

/// The age of a file among those that one accounting file was turned over to: what comes first in
/// this order is older.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RotationAge {
    /// A day and a number on it: `accounting-20261126-0001`, and `accounting-20261126` or
    /// `accounting-2026112617` of logrotate(8).
    Dated(u64, u32),
    /// A number, of which the highest is the oldest: `accounting.2`. It is kept as a difference to
    /// the largest number.
    Numbered(u32),
}

impl RotationAge {
    /// The age of the file called `name`, if it is a part of the file called `base`, compressed or
    /// not. Returns the ending behind the number too, such as `.gz`.
    pub fn parse<'a>(base: &str, name: &'a str) -> Option<(Self, &'a str)> {
        let rest = name.strip_prefix(base)?;
        let found = match (rest.strip_prefix('.'), rest.strip_prefix('-')) {
            (Some(numbered), _) => Self::numbered(numbered)?,
            (None, Some(dated)) => Self::dated(dated)?,
            (None, None) => return None,
        };
        Some(found).filter(|(_, behind)| behind.is_empty() || behind.starts_with('.'))
    }

    /// How [`RotationAge::Dated`] has the begin of a day: `20261126000000`.
    pub fn moment(day: u32) -> u64 {
        u64::from(day) * 1_000_000
    }

    fn numbered(rest: &str) -> Option<(Self, &str)> {
        let (number, behind) = split_digits(rest);
        Some((Self::Numbered(u32::MAX - number.parse::<u32>().ok()?), behind))
    }

    fn dated(rest: &str) -> Option<(Self, &str)> {
        let (day, behind) = split_digits(rest);
        if day.len() < 8 {
            return None;
        }
        match behind.strip_prefix('-').map(split_digits) {
            Some((number, behind)) => Some((Self::Dated(padded(day)?, number.parse().ok()?), behind)),
            None => Some((Self::Dated(padded(day)?, 0), behind)),
        }
    }
}

/// Digits of a date as a number that orders dates with and without a time of day.
fn padded(digits: &str) -> Option<u64> {
    let missing = 14_usize.checked_sub(digits.len())?;
    Some(digits.parse::<u64>().ok()? * 10_u64.pow(u32::try_from(missing).ok()?))
}

/// The digits at the begin of a text, and what follows them.
fn split_digits(text: &str) -> (&str, &str) {
    let end = text
        .bytes()
        .position(|byte| !byte.is_ascii_digit())
        .unwrap_or(text.len());
    text.split_at(end)
}

fn all_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_master_are_read_as_they_are_written() {
        let name = RotatedName {
            day: 20_261_126,
            number: 12_345,
        };
        assert_eq!(name.of("accounting"), "accounting-20261126-12345");
        assert_eq!(
            RotatedName::parse("accounting", "accounting-20261126-12345"),
            Some(name)
        );
        for other in [
            "accounting",
            "accounting-20261126",
            "accounting-20261126-1",
            "accounting-20261126-0001.index",
            "accounting.jsonl-20261126-0001",
            "accounting-2026112-60001",
        ] {
            assert_eq!(RotatedName::parse("accounting", other), None, "{other}");
        }
    }

    #[test]
    fn older_files_come_first_whoever_named_them() {
        let names = [
            "accounting-20261125.gz",
            "accounting-20261126",
            "accounting-2026112601",
            "accounting-20261126-0001",
            "accounting-20261127-0001.gz",
            "accounting.10.gz",
            "accounting.9",
            "accounting.0",
        ];
        let mut ages: Vec<RotationAge> = names
            .iter()
            .map(|name| {
                RotationAge::parse("accounting", name)
                    .unwrap_or_else(|| panic!("{name}"))
                    .0
            })
            .collect();
        // A date with an hour is behind the same date without one and with a number.
        ages.swap(2, 3);
        assert!(ages.is_sorted(), "{ages:?}");
    }

    #[test]
    fn other_names_are_no_parts() {
        for name in [
            "accounting",
            "accounting.jsonl",
            "accounting.old",
            "accounting-2026",
            "accounting.1x",
            "accounting-20261126-x",
            "reporting.1",
        ] {
            assert_eq!(RotationAge::parse("accounting", name), None, "{name}");
        }
        let (_, behind) = RotationAge::parse("accounting", "accounting-20261126-0001.index").unwrap();
        assert_eq!(behind, ".index");
        let (_, behind) = RotationAge::parse("accounting", "accounting.3.xz").unwrap();
        assert_eq!(behind, ".xz");
    }
}
