//! `gridwright resources suggest`: the lines that make a resource map of this host's GPUs.

use crate::args::{CommandDef, Operands, ValueCount, flag, with};
use crate::commands::Outcome;
use crate::fail::Fail;
use crate::host_devices::{self, HostDevice};
use crate::{exit, output};
use proto::device::{DEVICES, UUID};
use proto::diagnostic::{Code, Diagnostic};
use std::path::Path;

pub const RESOURCES: CommandDef = CommandDef {
    name: "gridwright resources",
    summary: "suggest prints the attributes and the complex_values that make a resource map of the GPUs of this host.",
    operand_placeholder: "suggest",
    operands: Operands::Anywhere,
    options: &[
        with("--name", ValueCount::One, "NAME", "the name of the map (default: gpu)"),
        flag("-help", "print this help"),
        flag("--help", "print this help"),
    ],
    exit_codes: "0 printed; 1 the host has no GPU that its drivers list; 2 wrong option",
};

/// Runs `gridwright resources`.
pub fn run(words: Vec<String>) -> Outcome {
    let parsed = RESOURCES.parse(words)?;
    if parsed.has("-help") || parsed.has("--help") {
        output::data(&RESOURCES.help());
        return Ok(exit::OK);
    }
    if parsed.operands != ["suggest"] {
        let refusal = Diagnostic::new(Code::BadSyntax, "gridwright resources: write suggest");
        return Err(Fail::new(
            exit::USAGE,
            refusal.fix("all options: gridwright resources -help"),
        ));
    }
    let devices = host_devices::find(Path::new("/"));
    if devices.is_empty() {
        let refusal = Diagnostic::new(Code::UnknownObject, "error: no GPU was found on this host")
            .why("nvidia-smi lists none, or is not on PATH, and /sys/class/kfd has none");
        return Err(refusal
            .fix("load the driver; or write the map by hand: see GPUs in the administrator's guide")
            .into());
    }
    output::data(&lines(parsed.value("--name").unwrap_or("gpu"), &devices));
    Ok(exit::OK)
}

/// The suggestion. Lines that begin with `#` say where the others belong.
fn lines(name: &str, devices: &[HostDevice]) -> String {
    let found: String = devices
        .iter()
        .map(|device| format!("# {}: {} {}\n", device.id, device.product, device.uuid))
        .collect();
    format!(
        "{found}# For the complex (qconf -mc), unless it has these attributes:\n\
         {name} {name} RSMAP <= YES HOST 0 0\n\
         {DEVICES} {DEVICES} STRING == NO NO NONE 0\n\
         {UUID} {UUID} STRING == NO NO NONE 0\n\
         # For complex_values of this host (qconf -mattr exechost complex_values '…' HOST):\n\
         {name}={}\n",
        host_devices::map(devices)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::complex::Complex;

    #[test]
    fn the_suggested_attributes_are_a_part_of_a_complex() {
        let device = HostDevice {
            id: "gpu0".to_owned(),
            uuid: "GPU-1".to_owned(),
            product: "A".to_owned(),
            files: Vec::new(),
        };
        let text = lines("card", &[device]);
        let attributes: String = text
            .lines()
            .filter(|line| !line.starts_with('#') && !line.contains('('))
            .map(|line| format!("{line}\n"))
            .collect();
        let complex = Complex::parse(&format!("{}\n{attributes}", Complex::built_in())).unwrap();
        for name in ["card", "devices", "uuid"] {
            assert!(complex.lookup(name).is_some(), "{name}");
        }
        assert!(text.ends_with("card=1(gpu0[devices=,uuid=GPU-1])\n"), "{text}");
    }
}
