//! Device files of the ids of resource maps, and the variables by which programs find devices.
//!
//! The characteristic `devices` has the grammar of sge_rsmap(5) of Open Cluster Scheduler.

use crate::rsmap::Characteristics;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The characteristic that lists device files.
pub const DEVICES: &str = "devices";
/// The characteristic with the name that the maker's programs have for a device.
pub const UUID: &str = "uuid";
/// The characteristic that says which programs read `uuid`, where its form does not.
pub const RUNTIME: &str = "runtime";
/// The most device files of one id.
const FILES_MAX: usize = 64;

/// A device file that a task may open.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DeviceFile {
    /// Its absolute path.
    pub path: String,
    /// How it may be opened.
    pub mode: DeviceMode,
}

/// How a device may be opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceMode {
    /// `r`, and where no mode is written.
    #[default]
    Read,
    /// `w`
    Write,
    /// `rw`
    ReadWrite,
}

impl DeviceMode {
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            DeviceMode::Read => "r",
            DeviceMode::Write => "w",
            DeviceMode::ReadWrite => "rw",
        }
    }

    /// Reads a mode.
    pub fn parse(text: &str) -> Option<Self> {
        [DeviceMode::Read, DeviceMode::Write, DeviceMode::ReadWrite]
            .into_iter()
            .find(|mode| mode.as_str() == text)
    }

    /// The mode that permits what either permits.
    pub fn or(self, other: Self) -> Self {
        if self == other { self } else { DeviceMode::ReadWrite }
    }
}

impl fmt::Display for DeviceFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.path, self.mode.as_str())
    }
}

/// A text of `devices`, `uuid` or `runtime` that means nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// It is not the absolute path of a file, with or without a mode.
    #[error("\"{0}\" is not a device file such as /dev/nvidia0:rw, with r, w or rw behind the colon")]
    File(String),
    /// A list that is too long.
    #[error("more than {FILES_MAX} device files")]
    TooMany,
    /// Not one of the runtimes.
    #[error("\"{0}\" is not cuda, rocm or none")]
    Runtime(String),
}

impl DeviceFile {
    /// Reads one file: `/dev/nvidia0:rw`. Without a mode it may be read.
    ///
    /// # Errors
    /// It is not an absolute path, has `..` in it, or the mode is unknown.
    pub fn parse(text: &str) -> Result<Self, DeviceError> {
        let bad = || DeviceError::File(text.to_owned());
        let (path, mode) = match text.rsplit_once(':') {
            None => (text, DeviceMode::Read),
            Some((path, mode)) => match DeviceMode::parse(mode) {
                Some(mode) => (path, mode),
                // Paths below /dev/dri/by-path have colons.
                None if mode.contains('/') || path.contains(":") => (text, DeviceMode::Read),
                None => return Err(bad()),
            },
        };
        let has_parent = path.split('/').any(|part| part == "..");
        if !path.starts_with('/') || path.ends_with('/') || has_parent {
            return Err(bad());
        }
        Ok(DeviceFile {
            path: path.to_owned(),
            mode,
        })
    }

    /// Reads the characteristic `devices`: files separated by `;`.
    ///
    /// # Errors
    /// Those of [`DeviceFile::parse`], or there are too many.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, DeviceError> {
        let files: Vec<&str> = text.split(';').filter(|file| !file.is_empty()).collect();
        if files.len() > FILES_MAX {
            return Err(DeviceError::TooMany);
        }
        files.into_iter().map(DeviceFile::parse).collect()
    }
}

/// Whose programs find a device by its `uuid`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Runtime {
    /// NVIDIA's.
    Cuda,
    /// AMD's.
    Rocm,
    /// No runtime that has variables.
    None,
}

/// Letters of the UUID of an NVIDIA GPU behind `GPU-`.
const CUDA_UUID_CHARS: usize = 36;
/// Letters of the UUID of an AMD GPU behind `GPU-`.
const ROCM_UUID_CHARS: usize = 16;

impl Runtime {
    /// The runtime of an id: `runtime` if it has that, else by the form of its `uuid`.
    ///
    /// # Errors
    /// `runtime` has an unknown value.
    pub fn of(characteristics: &Characteristics) -> Result<Self, DeviceError> {
        match characteristics.value(RUNTIME) {
            Some("cuda") => Ok(Runtime::Cuda),
            Some("rocm") => Ok(Runtime::Rocm),
            Some("none") => Ok(Runtime::None),
            Some(other) => Err(DeviceError::Runtime(other.to_owned())),
            None => Ok(characteristics.value(UUID).map_or(Runtime::None, Self::by_form)),
        }
    }

    fn by_form(uuid: &str) -> Self {
        let behind = uuid.strip_prefix("GPU-");
        let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
        match behind.filter(|text| is_hex(text)).map(str::len) {
            _ if uuid.starts_with("MIG-") => Runtime::Cuda,
            Some(CUDA_UUID_CHARS) => Runtime::Cuda,
            Some(ROCM_UUID_CHARS) => Runtime::Rocm,
            Some(_) | None => Runtime::None,
        }
    }

    /// The variables that show a program these devices and no others. Numbers of devices may change
    /// when a host starts anew, names do not.
    pub fn variables(self, uuids: &[&str]) -> Vec<(String, String)> {
        let list = uuids.join(",");
        let pairs = match self {
            Runtime::Cuda => vec![
                ("CUDA_DEVICE_ORDER", "PCI_BUS_ID".to_owned()),
                ("CUDA_VISIBLE_DEVICES", list.clone()),
                ("NVIDIA_VISIBLE_DEVICES", list),
            ],
            Runtime::Rocm => vec![("ROCR_VISIBLE_DEVICES", list)],
            Runtime::None => Vec::new(),
        };
        pairs
            .into_iter()
            .filter(|_| !uuids.is_empty())
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }
}

/// What a task is to have of the devices of its host, and what it is not to have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeviceOrder {
    /// The device files of the ids that the task has, each once.
    pub granted: Vec<DeviceFile>,
    /// The device files that the maps of the host name and that the task does not have.
    pub withheld: Vec<String>,
    /// Variables by which programs find the devices.
    pub variables: Vec<(String, String)>,
}

impl DeviceOrder {
    /// Whether there is nothing to say.
    pub fn is_empty(&self) -> bool {
        self.granted.is_empty() && self.withheld.is_empty() && self.variables.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rsmap::IdMap;

    #[test]
    fn files_have_a_mode_and_can_be_read_without_one() {
        let read = |text: &str| {
            let files = DeviceFile::parse_list(text).unwrap();
            files.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        };
        for (text, expected) in [
            ("/dev/nvidia0:rw;/dev/nvidiactl:r", "/dev/nvidia0:rw /dev/nvidiactl:r"),
            ("/dev/nvidia0", "/dev/nvidia0:r"),
            ("/dev/a:w;", "/dev/a:w"),
            (
                "/dev/dri/by-path/pci-0000:03:00.0-render:rw",
                "/dev/dri/by-path/pci-0000:03:00.0-render:rw",
            ),
            (
                "/dev/dri/by-path/pci-0000:03:00.0-render",
                "/dev/dri/by-path/pci-0000:03:00.0-render:r",
            ),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
        for text in [
            "nvidia0:rw",
            "/dev/nvidia0:x",
            "/dev/../etc/shadow:r",
            "/dev/:rw",
            ":rw",
        ] {
            assert!(DeviceFile::parse_list(text).is_err(), "{text}");
        }
        assert!(DeviceFile::parse_list(&"/dev/a;".repeat(FILES_MAX + 1)).is_err());
        assert_eq!(DeviceMode::Read.or(DeviceMode::Write), DeviceMode::ReadWrite);
        assert_eq!(DeviceMode::Read.or(DeviceMode::Read), DeviceMode::Read);
    }

    #[test]
    fn a_uuid_says_whose_programs_read_it_unless_its_runtime_does() {
        let of = |text: &str| {
            let map = IdMap::parse(&format!("1(a[{text}])")).unwrap();
            Runtime::of(map.characteristics("a").unwrap())
        };
        for (text, expected) in [
            ("uuid=GPU-11111111-2222-3333-4444-555555555555", Runtime::Cuda),
            ("uuid=MIG-11111111-2222-3333-4444-555555555555", Runtime::Cuda),
            ("uuid=GPU-d8a0b1c2d3e4f506", Runtime::Rocm),
            ("uuid=fpga-1", Runtime::None),
            ("uuid=0,runtime=cuda", Runtime::Cuda),
            ("uuid=0,runtime=rocm", Runtime::Rocm),
            ("uuid=GPU-d8a0b1c2d3e4f506,runtime=none", Runtime::None),
            ("memory=80G", Runtime::None),
        ] {
            assert_eq!(of(text), Ok(expected), "{text}");
        }
        assert!(of("runtime=opencl").is_err());
    }

    #[test]
    fn programs_of_each_maker_have_their_variables() {
        let text = |runtime: Runtime| {
            let pairs = runtime.variables(&["a", "b"]);
            pairs
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(
            text(Runtime::Cuda),
            "CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=a,b NVIDIA_VISIBLE_DEVICES=a,b"
        );
        assert_eq!(text(Runtime::Rocm), "ROCR_VISIBLE_DEVICES=a,b");
        assert_eq!(text(Runtime::None), "");
        assert!(Runtime::Cuda.variables(&[]).is_empty());
    }
}
