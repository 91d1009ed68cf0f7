//! Pressure stall information, from `/proc/pressure` (kernels since 4.20 that have it switched on).

use crate::error::{FactError, read_text};
use procfs::{PressureRecord, parse_pressure_record};
use std::path::Path;

/// What tasks stall on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// Waiting for a processor.
    Cpu,
    /// Waiting for memory to be reclaimed or swapped in.
    Memory,
    /// Waiting for input and output.
    Io,
}

impl Resource {
    /// Every resource, in the order in which they are reported.
    pub const ALL: [Resource; 3] = [Resource::Cpu, Resource::Memory, Resource::Io];

    /// The name of the file below `/proc/pressure`, and the middle of the load values' names.
    pub fn as_str(self) -> &'static str {
        match self {
            Resource::Cpu => "cpu",
            Resource::Memory => "memory",
            Resource::Io => "io",
        }
    }
}

/// Percent of the last ten seconds in which tasks stalled, in 0..=100.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pressure {
    /// At least one task stalled.
    pub some: f64,
    /// All tasks stalled at once; `None` where the kernel does not say (for the processor before
    /// 5.13).
    pub full: Option<f64>,
}

/// The pressure on `resource` of the host whose file system starts at `root`.
///
/// # Errors
/// Where the kernel has no such file, or it is not in the kernel's form.
pub fn read_pressure(root: &Path, resource: Resource) -> Result<Pressure, FactError> {
    parse_pressure(&read_text(root, &format!("proc/pressure/{}", resource.as_str()))?)
}

/// The pressure in the text of one file of `/proc/pressure`.
///
/// # Errors
/// Where the `some` line is missing or malformed.
pub fn parse_pressure(text: &str) -> Result<Pressure, FactError> {
    let some = record(text, "some")?.ok_or_else(|| FactError::form("/proc/pressure", "no line `some`"))?;
    let full = record(text, "full")?;
    Ok(Pressure {
        some: hundredths(&some),
        full: full.as_ref().map(hundredths),
    })
}

fn record(text: &str, kind: &str) -> Result<Option<PressureRecord>, FactError> {
    let line = text
        .lines()
        .find(|line| line.strip_prefix(kind).is_some_and(|rest| rest.starts_with(' ')));
    line.map(|line| parse_pressure_record(line).map_err(|e| FactError::form("/proc/pressure", e)))
        .transpose()
}

/// The ten-second average with the two decimals that the kernel prints.
fn hundredths(record: &PressureRecord) -> f64 {
    (f64::from(record.avg10) * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_second_averages_are_read_with_and_without_a_full_line() {
        let some = "some avg10=12.34 avg60=0.09 avg300=0.89 total=18717888\n";
        let full = "full avg10=1.50 avg60=0.00 avg300=0.00 total=0\n";
        assert_eq!(
            parse_pressure(some).unwrap(),
            Pressure {
                some: 12.34,
                full: None
            }
        );
        assert_eq!(
            parse_pressure(&format!("{some}{full}")).unwrap(),
            Pressure {
                some: 12.34,
                full: Some(1.5)
            }
        );
        for bad in [
            "",
            full,
            "some",
            "some avg10=x avg60=0 avg300=0 total=0",
            "some avg60=1.0",
        ] {
            assert!(parse_pressure(bad).is_err(), "{bad:?}");
        }
    }
}
