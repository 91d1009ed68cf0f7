//! The GPUs that this host has, as their drivers list them, and the resource map that they make.

mod amd;
mod nvidia;

use proto::device::{DEVICES, DeviceFile, DeviceMode, UUID};
use std::path::Path;

/// A GPU, or a part of one that is given out by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostDevice {
    /// A name for the id in a map: `gpu0`, `gpu0-mig1`.
    pub id: String,
    /// The name that programs have for it.
    pub uuid: String,
    /// The maker's name of the product.
    pub product: String,
    /// Its device files.
    pub files: Vec<DeviceFile>,
}

/// Every GPU of the host whose file system begins at `root`, in the order of their device files.
pub fn find(root: &Path) -> Vec<HostDevice> {
    let mut found = nvidia::find(root);
    found.extend(amd::find(root));
    found
}

/// The value of the map: `2(gpu0[devices=/dev/nvidia0:rw,uuid=GPU-…] …)`.
pub fn map(devices: &[HostDevice]) -> String {
    let ids: Vec<String> = devices
        .iter()
        .map(|device| {
            let files: Vec<String> = device.files.iter().map(ToString::to_string).collect();
            format!("{}[{DEVICES}={},{UUID}={}]", device.id, files.join(";"), device.uuid)
        })
        .collect();
    format!("{}({})", devices.len(), ids.join(" "))
}

fn file(path: String, mode: DeviceMode) -> DeviceFile {
    DeviceFile { path, mode }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::rsmap::IdMap;

    #[test]
    fn devices_make_a_map_that_reads_back() {
        let devices = [HostDevice {
            id: "gpu0".to_owned(),
            uuid: "GPU-1".to_owned(),
            product: "A".to_owned(),
            files: vec![
                file("/dev/nvidia0".to_owned(), DeviceMode::ReadWrite),
                file("/dev/nvidia-caps/nvidia-cap1".to_owned(), DeviceMode::Read),
            ],
        }];
        let text = map(&devices);
        assert_eq!(
            text,
            "1(gpu0[devices=/dev/nvidia0:rw;/dev/nvidia-caps/nvidia-cap1:r,uuid=GPU-1])"
        );
        assert!(IdMap::parse(&text).unwrap().characteristics("gpu0").is_some());
    }
}
