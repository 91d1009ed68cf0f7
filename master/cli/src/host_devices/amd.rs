//! AMD's GPUs, from the topology of their driver below `/sys`.

use super::{HostDevice, file};
use proto::device::DeviceMode;
use std::path::Path;

/// The driver's list of processors and GPUs, a directory for each.
const NODES: &str = "sys/class/kfd/kfd/topology/nodes";

pub(super) fn find(root: &Path) -> Vec<HostDevice> {
    let entries = std::fs::read_dir(root.join(NODES)).into_iter().flatten().flatten();
    let read = |entry: std::fs::DirEntry| std::fs::read_to_string(entry.path().join("properties")).ok();
    let mut found: Vec<(u32, u64)> = entries.filter_map(read).filter_map(|text| gpu(&text)).collect();
    found.sort_unstable();
    found.into_iter().enumerate().map(|(at, gpu)| device(at, gpu)).collect()
}

/// The number of the device file and the name of a GPU. Processors have neither.
fn gpu(properties: &str) -> Option<(u32, u64)> {
    let value = |name: &str| {
        properties
            .lines()
            .find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok())
    };
    let minor = value("drm_render_minor ").filter(|minor| *minor > 0)?;
    let name = value("unique_id ").filter(|name| *name > 0)?;
    Some((u32::try_from(minor).ok()?, name))
}

fn device(at: usize, (minor, name): (u32, u64)) -> HostDevice {
    HostDevice {
        id: format!("gpu{at}"),
        uuid: format!("GPU-{name:016x}"),
        product: "AMD GPU".to_owned(),
        files: vec![
            file(format!("/dev/dri/renderD{minor}"), DeviceMode::ReadWrite),
            file("/dev/kfd".to_owned(), DeviceMode::ReadWrite),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host_devices::map;

    #[test]
    fn processors_are_left_out_and_gpus_are_named_as_their_programs_do() {
        assert_eq!(gpu("cpu_cores_count 64\nunique_id 0\ndrm_render_minor 0\n"), None);
        let found = gpu("simd_count 440\nunique_id 15610735893213147398\ndrm_render_minor 128\n").unwrap();
        assert_eq!(
            map(&[device(0, found)]),
            "1(gpu0[devices=/dev/dri/renderD128:rw;/dev/kfd:rw,uuid=GPU-d8a4615c9e0f1906])"
                .replace("d8a4615c9e0f1906", &format!("{:016x}", 15_610_735_893_213_147_398_u64))
        );
    }
}
