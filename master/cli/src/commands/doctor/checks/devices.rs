//! Whether the resource maps of this host name the devices that it has.

use crate::cell_address::CellAddress;
use crate::client::Client;
use crate::commands::doctor::finding::Finding;
use crate::commands::up;
use crate::host_devices::{self, HostDevice};
use proto::device::{DEVICES, DeviceFile, DeviceMode, UUID};
use proto::object::ObjectKind;
use proto::object::value::Assignments;
use proto::rsmap::{Characteristics, IdMap};
use proto::wire::client::Query;
use proto::wire::view::Data;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// The remedy for a map that does not fit the host.
const SUGGEST: &str = "gridwright resources suggest prints the map of this host; qconf -me HOST changes it";

/// How the file of limits says that devices cannot be kept from tasks.
const NO_WALL: &str = "devices of resource maps: cannot be kept";

/// The examinations of devices. Nothing on a host that has none and names none.
pub fn all(dir: &Path) -> Vec<Finding> {
    let limits = std::fs::read_to_string(dir.join("run/launcher/limits")).unwrap_or_default();
    judge(
        &maps(dir),
        &host_devices::find(Path::new("/")),
        limits.contains(NO_WALL),
    )
}

/// The ids of this host's maps that have characteristics.
fn maps(dir: &Path) -> Vec<(String, Characteristics)> {
    let ids = || {
        let query = Query::Object {
            kind: ObjectKind::ExecHost,
            name: up::host_of(dir)?.to_string(),
        };
        let mut client = Client::connect(&CellAddress::at(dir), "gridwright doctor").ok()?;
        let Some(Data::Object(fields)) = client.query(query).ok()?.data else {
            return None;
        };
        let values: Assignments = fields.value("complex_values")?.parse().ok()?;
        let maps = values.iter().filter(|(_, text)| text.contains('['));
        let maps = maps.filter_map(|(name, text)| Some((name, IdMap::parse(text).ok()?)));
        let named = |(name, map): (&proto::id::AttributeName, IdMap)| -> Vec<_> {
            map.described()
                .map(|(id, known)| (format!("{name}:{id}"), known.clone()))
                .collect()
        };
        Some(maps.flat_map(named).collect())
    };
    ids().unwrap_or_default()
}

fn judge(named: &[(String, Characteristics)], found: &[HostDevice], has_no_wall: bool) -> Vec<Finding> {
    let mut findings: Vec<Finding> = named
        .iter()
        .flat_map(|(id, known)| judge_id(id, known, found))
        .collect();
    let is_named = |device: &&HostDevice| named.iter().any(|(_, known)| known.value(UUID) == Some(&device.uuid));
    let unnamed: Vec<&str> = found
        .iter()
        .filter(|device| !is_named(device))
        .map(|device| device.uuid.as_str())
        .collect();
    if !unnamed.is_empty() {
        let found = format!("no resource map of this host names {}", unnamed.join(", "));
        findings.push(Finding::note("devices", found, SUGGEST));
    }
    let names_files = named.iter().any(|(_, known)| known.value(DEVICES).is_some());
    if names_files && has_no_wall {
        let found = "a resource map names device files, which this host cannot keep from tasks: no task starts here";
        let fix = "make control groups possible (see the lines about control groups), or take devices= out of the map";
        findings.push(Finding::bad("devices", found, fix));
    }
    if findings.is_empty() && !named.is_empty() {
        let found = format!("{} ids of resource maps, all as the host has them", named.len());
        findings.push(Finding::fine("devices", found));
    }
    findings
}

/// What is wrong with one id.
fn judge_id(id: &str, known: &Characteristics, found: &[HostDevice]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let files = known.value(DEVICES).map(DeviceFile::parse_list);
    for file in files.and_then(Result::ok).unwrap_or_default() {
        let is_device = |kind: std::fs::FileType| kind.is_char_device() || kind.is_block_device();
        match std::fs::metadata(&file.path) {
            Err(error) => {
                let found = format!("{id} names {}: {error}", file.path);
                findings.push(Finding::bad("devices", found, SUGGEST));
            }
            Ok(about) if !is_device(about.file_type()) => {
                let found = format!("{id} names {}, which is not a device", file.path);
                findings.push(Finding::bad("devices", found, SUGGEST));
            }
            Ok(_) if file.mode == DeviceMode::Read && is_nvidia(&file.path) => {
                let found = format!("{id} may only read {}: CUDA writes to it too", file.path);
                let fix = format!("write {}:rw in the map", file.path);
                findings.push(Finding::note("devices", found, fix));
            }
            Ok(_) => {}
        }
    }
    if let Some(uuid) = known.value(UUID)
        && !found.is_empty()
        && !found.iter().any(|device| device.uuid == uuid)
    {
        let found = format!("{id} has uuid={uuid}, and no device of this host has that name");
        findings.push(Finding::bad("devices", found, SUGGEST));
    }
    findings
}

/// Whether a file is that of one GPU: `/dev/nvidia0`.
fn is_nvidia(path: &str) -> bool {
    let number = path.strip_prefix("/dev/nvidia").unwrap_or_default();
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(map: &str) -> Vec<(String, Characteristics)> {
        let map = IdMap::parse(map).unwrap();
        map.described()
            .map(|(id, known)| (format!("gpu:{id}"), known.clone()))
            .collect()
    }

    fn host(uuids: &[&str]) -> Vec<HostDevice> {
        let device = |uuid: &&str| HostDevice {
            id: "gpu0".to_owned(),
            uuid: (*uuid).to_owned(),
            product: String::new(),
            files: Vec::new(),
        };
        uuids.iter().map(device).collect()
    }

    #[test]
    fn a_map_is_compared_with_what_the_host_has() {
        for (map, uuids, has_no_wall, expected) in [
            ("0()", &[][..], false, ""),
            (
                "1(a[devices=/dev/null:rw,uuid=GPU-1])",
                &["GPU-1"],
                false,
                "ok   devices: 1 ids",
            ),
            (
                "1(a[uuid=GPU-1])",
                &["GPU-1", "GPU-2"],
                false,
                "no resource map of this host names GPU-2",
            ),
            (
                "1(a[uuid=GPU-9])",
                &["GPU-1"],
                false,
                "gpu:a has uuid=GPU-9, and no device",
            ),
            (
                "1(a[devices=/dev/no-such:rw])",
                &[],
                false,
                "gpu:a names /dev/no-such: No such file",
            ),
            (
                "1(a[devices=/etc/passwd:rw])",
                &[],
                false,
                "/etc/passwd, which is not a device",
            ),
            ("1(a[devices=/dev/null:rw])", &[], true, "cannot keep from tasks"),
            ("1(a[memory=80G])", &[], true, "ok   devices"),
        ] {
            let found = judge(&named(map), &host(uuids), has_no_wall);
            let text: String = found.iter().map(Finding::text).collect();
            assert!(
                text.contains(expected) && text.is_empty() == expected.is_empty(),
                "{map}: {text}"
            );
        }
        assert!(is_nvidia("/dev/nvidia0") && !is_nvidia("/dev/nvidiactl"));
    }
}
