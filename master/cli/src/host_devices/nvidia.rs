//! NVIDIA's GPUs and their MIG instances, from `nvidia-smi`.

use super::{HostDevice, file};
use proto::device::DeviceMode;
use std::path::Path;
use std::process::{Command, Stdio};

/// What `nvidia-smi -q` says of one GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Card {
    product: String,
    uuid: String,
    /// The number of its device file. The numbers of `nvidia-smi` may be in another order.
    minor: Option<u32>,
    /// The GPU instance and compute instance of each MIG device.
    instances: Vec<(u32, u32)>,
}

pub(super) fn find(root: &Path) -> Vec<HostDevice> {
    let (Some(details), Some(list)) = (ask("-q"), ask("-L")) else {
        return Vec::new();
    };
    let minors = std::fs::read_to_string(root.join("proc/driver/nvidia-caps/mig-minors")).unwrap_or_default();
    let mut cards = cards(&details);
    cards.sort_by_key(|card| card.minor);
    cards.iter().flat_map(|card| devices_of(card, &list, &minors)).collect()
}

/// The answer of `nvidia-smi`; `None` without the program, or if it fails.
fn ask(option: &str) -> Option<String> {
    let output = Command::new("nvidia-smi")
        .arg(option)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Reads `nvidia-smi -q`: a head `GPU 00000000:3B:00.0` for each card, then `NAME : VALUE`.
fn cards(text: &str) -> Vec<Card> {
    let mut cards: Vec<Card> = Vec::new();
    for line in text.lines() {
        if line.starts_with("GPU ") {
            cards.push(Card::default());
        }
        let Some(card) = cards.last_mut() else { continue };
        let Some((name, value)) = line.split_once(" : ") else {
            continue;
        };
        let value = value.trim();
        match name.trim() {
            "Product Name" => card.product = value.to_owned(),
            "GPU UUID" => card.uuid = value.to_owned(),
            "Minor Number" => card.minor = value.parse().ok(),
            "GPU Instance ID" => card.instances.extend(value.parse().ok().map(|instance| (instance, 0))),
            "Compute Instance ID" => {
                if let (Some((_, compute)), Ok(number)) = (card.instances.last_mut(), value.parse()) {
                    *compute = number;
                }
            }
            _ => {}
        }
    }
    cards
}

/// The card, or its MIG instances if it is divided.
fn devices_of(card: &Card, list: &str, minors: &str) -> Vec<HostDevice> {
    let Some(minor) = card.minor else { return Vec::new() };
    let own = file(format!("/dev/nvidia{minor}"), DeviceMode::ReadWrite);
    let device = |id: String, uuid: String, files| HostDevice {
        id,
        uuid,
        product: card.product.clone(),
        files,
    };
    let instances = mig_uuids(list, &card.uuid);
    if instances.is_empty() {
        return vec![device(format!("gpu{minor}"), card.uuid.clone(), vec![own])];
    }
    let with_caps = |(at, uuid): (usize, String)| {
        let mut files = vec![own.clone()];
        if let Some((instance, compute)) = card.instances.get(at) {
            let names = [
                format!("gpu{minor}/gi{instance}/access"),
                format!("gpu{minor}/gi{instance}/ci{compute}/access"),
            ];
            let caps = names.iter().filter_map(|name| cap(minors, name));
            files.extend(caps.map(|cap| file(format!("/dev/nvidia-caps/nvidia-cap{cap}"), DeviceMode::Read)));
        }
        device(format!("gpu{minor}-mig{at}"), uuid, files)
    };
    instances.into_iter().enumerate().map(with_caps).collect()
}

/// The UUIDs of the MIG instances of a card, from the lines below its own in `nvidia-smi -L`.
fn mig_uuids(list: &str, card: &str) -> Vec<String> {
    let uuid = |line: &str| Some(line.split_once("(UUID: ")?.1.split_once(')')?.0.to_owned());
    let lines = list.lines().skip_while(|line| uuid(line).as_deref() != Some(card));
    let below = lines.skip(1).take_while(|line| line.starts_with(char::is_whitespace));
    below.filter_map(uuid).collect()
}

/// The number of the file that admits to an instance (`/proc/driver/nvidia-caps/mig-minors`).
fn cap(minors: &str, name: &str) -> Option<u32> {
    minors
        .lines()
        .find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host_devices::map;

    const DETAILS: &str = "\
==============NVSMI LOG==============

Attached GPUs                             : 2
GPU 00000000:3B:00.0
    Product Name                          : NVIDIA A100
    MIG Mode
        Current                           : Enabled
    MIG Device
        Index                             : 0
        GPU Instance ID                   : 9
        Compute Instance ID               : 0
    MIG Device
        Index                             : 1
        GPU Instance ID                   : 10
        Compute Instance ID               : 0
    GPU UUID                              : GPU-b
    Minor Number                          : 1
GPU 00000000:86:00.0
    Product Name                          : NVIDIA T4
    GPU UUID                              : GPU-a
    Minor Number                          : 0
    Processes
        GPU Instance ID                   : N/A
        Compute Instance ID               : N/A
";

    const LIST: &str = "\
GPU 0: NVIDIA A100 (UUID: GPU-b)
  MIG 1g.5gb      Device  0: (UUID: MIG-x)
  MIG 1g.5gb      Device  1: (UUID: MIG-y)
GPU 1: NVIDIA T4 (UUID: GPU-a)
";

    #[test]
    fn a_card_is_named_by_its_file_and_a_divided_one_by_its_instances() {
        let minors = "config 1\ngpu1/gi9/access 12\ngpu1/gi9/ci0/access 13\ngpu1/gi10/access 21\n";
        let mut found = cards(DETAILS);
        found.sort_by_key(|card| card.minor);
        let devices: Vec<HostDevice> = found.iter().flat_map(|card| devices_of(card, LIST, minors)).collect();
        assert_eq!(
            map(&devices),
            "3(gpu0[devices=/dev/nvidia0:rw,uuid=GPU-a] \
             gpu1-mig0[devices=/dev/nvidia1:rw;/dev/nvidia-caps/nvidia-cap12:r;/dev/nvidia-caps/nvidia-cap13:r,uuid=MIG-x] \
             gpu1-mig1[devices=/dev/nvidia1:rw;/dev/nvidia-caps/nvidia-cap21:r,uuid=MIG-y])"
        );
        assert!(cards("no devices were found\n").is_empty());
    }
}
