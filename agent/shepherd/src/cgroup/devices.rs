//! Keeps devices from the processes of a task: by a program of its group (bpf(2)), or by
//! `devices.deny` in the first version of control groups.
//!
//! Devices that no rule names stay open, so that terminals, fuse and networks work as ever.

use super::directory::GroupDirectory;
use crate::sys::{self, BpfInstruction};
use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::stat::{Mode, SFlag, major, minor, stat};
use nix::unistd::{AccessFlags, access};
use proto::device::{DeviceFile, DeviceMode};
use std::fmt;
use std::io;

/// Making a device file, reading and writing a device, as the kernel numbers them.
const MAKE: u32 = 1;
const READ: u32 = 2;
const WRITE: u32 = 4;
/// Block and character devices, likewise.
const BLOCK: u32 = 1;
const CHARACTER: u32 = 2;
/// The major number of `/dev/nvidia0` and the like: the driver makes these files when they are
/// first needed.
const NVIDIA_MAJOR: u32 = 195;

/// A device as the kernel names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct DeviceNumber {
    kind: u32,
    major: u32,
    minor: u32,
}

/// What is denied of one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeviceRule {
    device: DeviceNumber,
    denied: u32,
}

/// What keeps devices from a task on this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceWall {
    /// A program of the group.
    Program,
    /// `devices.deny`.
    First,
}

/// Why devices cannot be kept from a task.
#[derive(Debug)]
pub enum WallError {
    /// The task has no control group.
    NoGroup,
    /// A file that a map names is not a device.
    NotADevice(String),
    /// A device that the task is granted does not exist.
    Missing(String, Errno),
    /// A path of the document has no mode or is not absolute.
    Malformed(String),
    /// The kernel takes neither the program nor the denial.
    Refused(io::Error),
    /// A device can be opened in the group all the same.
    Open(String, Option<Errno>),
}

impl fmt::Display for WallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WallError::NoGroup => f.write_str(
                "devices cannot be kept from the task: it has no control group (gridwright doctor says why)",
            ),
            WallError::NotADevice(path) => write!(f, "{path} in a resource map of this host is not a device"),
            WallError::Missing(path, errno) => write!(f, "{path}, which the task is granted, cannot be found: {errno}"),
            WallError::Malformed(text) => write!(f, "{text:?} is not a device file"),
            WallError::Refused(error) => write!(
                f,
                "devices cannot be kept from the task: the kernel has neither programs of groups nor the devices controller: {error}"
            ),
            WallError::Open(path, None) => write!(f, "{path} is not granted and can be opened all the same"),
            WallError::Open(path, Some(errno)) => {
                write!(
                    f,
                    "{path} is not granted, and it cannot be seen that it is closed: {errno}"
                )
            }
        }
    }
}

impl std::error::Error for WallError {}

/// The rules of a task that is granted and denied these files.
///
/// A device that is not there has no number, so no rule is made for it.
///
/// # Errors
/// A file is not a device, or a granted one is not there.
pub fn rules(granted: &[String], withheld: &[String]) -> Result<Vec<DeviceRule>, WallError> {
    let mut rules = Vec::new();
    let mut own = Vec::new();
    for text in granted {
        let file = DeviceFile::parse(text).map_err(|_| WallError::Malformed(text.clone()))?;
        let device = number(&file.path)?.map_err(|errno| WallError::Missing(file.path.clone(), errno))?;
        own.push(device);
        let denied = match file.mode {
            DeviceMode::Read => MAKE | WRITE,
            DeviceMode::Write => MAKE | READ,
            DeviceMode::ReadWrite => continue,
        };
        rules.push(DeviceRule { device, denied });
    }
    for path in withheld {
        // Two names of one device: the task has it.
        match number(path)? {
            Ok(device) if !own.contains(&device) => rules.push(DeviceRule {
                device,
                denied: MAKE | READ | WRITE,
            }),
            Ok(_) => {}
            Err(errno) => crate::log::line(format_args!("{path} of a resource map: {errno}")),
        }
    }
    rules.sort();
    rules.dedup();
    Ok(rules)
}

/// The number of a device, or why there is none.
fn number(path: &str) -> Result<Result<DeviceNumber, Errno>, WallError> {
    let found = match stat(path) {
        Ok(found) => found,
        Err(errno) => return Ok(of_nvidia(path).ok_or(errno)),
    };
    let kind = match SFlag::from_bits_truncate(found.st_mode) & SFlag::S_IFMT {
        SFlag::S_IFCHR => CHARACTER,
        SFlag::S_IFBLK => BLOCK,
        _ => return Err(WallError::NotADevice(path.to_owned())),
    };
    let narrow = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    Ok(Ok(DeviceNumber {
        kind,
        major: narrow(major(found.st_rdev)),
        minor: narrow(minor(found.st_rdev)),
    }))
}

fn of_nvidia(path: &str) -> Option<DeviceNumber> {
    let minor = path.strip_prefix("/dev/nvidia")?.parse().ok()?;
    Some(DeviceNumber {
        kind: CHARACTER,
        major: NVIDIA_MAJOR,
        minor,
    })
}

/// Builds the wall around a group that is in these directories.
///
/// # Errors
/// The kernel takes neither a program nor a denial.
pub fn build<'a>(
    directories: impl Iterator<Item = &'a GroupDirectory> + Clone,
    rules: &[DeviceRule],
) -> Result<DeviceWall, WallError> {
    let mut refused = io::Error::from(io::ErrorKind::Unsupported);
    // In the second version every group but the first of all has this file.
    if let Some(directory) = directories.clone().find(|directory| directory.has("cgroup.events")) {
        let loaded = sys::load_device_program(&program(rules));
        match loaded.and_then(|loaded| sys::attach_device_program(directory.handle(), &loaded)) {
            Ok(()) => return Ok(DeviceWall::Program),
            Err(error) => refused = error,
        }
    }
    let Some(directory) = directories.clone().find(|directory| directory.has("devices.deny")) else {
        return Err(WallError::Refused(refused));
    };
    for rule in rules {
        directory.write("devices.deny", rule).map_err(WallError::Refused)?;
    }
    Ok(DeviceWall::First)
}

/// Checks, in the group, that none of these files can be opened.
///
/// # Errors
/// One can be opened, or it cannot be seen whether it can.
pub fn verify(granted: &[String], withheld: &[String]) -> Result<(), WallError> {
    let own: Vec<_> = granted
        .iter()
        .filter_map(|text| number(&DeviceFile::parse(text).ok()?.path).ok()?.ok())
        .collect();
    for path in withheld {
        if number(path)?.is_ok_and(|device| own.contains(&device)) {
            continue;
        }
        // The question is asked before the device is opened: a driver may do something when it is.
        let asked = access(path.as_str(), AccessFlags::R_OK);
        let opens = || {
            let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
            open(path.as_str(), flags, Mode::empty()).map(drop)
        };
        let outcome = if asked == Err(Errno::EPERM) { opens() } else { asked };
        match outcome {
            Err(Errno::EPERM | Errno::ENOENT | Errno::ENOTDIR) => {}
            Err(errno) => return Err(WallError::Open(path.clone(), Some(errno))),
            Ok(()) => return Err(WallError::Open(path.clone(), None)),
        }
    }
    Ok(())
}

impl fmt::Display for DeviceRule {
    /// As `devices.deny` reads it: `c 195:0 rwm`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DeviceNumber { kind, major, minor } = self.device;
        let kind = if kind == BLOCK { 'b' } else { 'c' };
        write!(f, "{kind} {major}:{minor} ")?;
        let letters = [(READ, "r"), (WRITE, "w"), (MAKE, "m")];
        letters
            .iter()
            .filter(|(bit, _)| self.denied & bit != 0)
            .try_for_each(|(_, letter)| f.write_str(letter))
    }
}

/// Registers of a program: the answer, the question, and three that hold its parts.
const ANSWER: u8 = 0;
const QUESTION: u8 = 1;
const KIND: u8 = 2;
const ACCESS: u8 = 3;
const MAJOR: u8 = 4;
const MINOR: u8 = 5;

/// The program that denies what the rules say (`bpf_cgroup_dev_ctx` of linux/bpf.h): three numbers
/// of 32 bits. The first has the kind in its lower half and the access in its upper half.
fn program(rules: &[DeviceRule]) -> Vec<BpfInstruction> {
    let mut program = vec![
        BpfInstruction::load(KIND, QUESTION, 0),
        BpfInstruction::copy(ACCESS, KIND),
        BpfInstruction::and(KIND, 0xffff),
        BpfInstruction::shift_right(ACCESS, 16),
        BpfInstruction::load(MAJOR, QUESTION, 4),
        BpfInstruction::load(MINOR, QUESTION, 8),
    ];
    for rule in rules {
        let DeviceNumber { kind, major, minor } = rule.device;
        program.extend([
            BpfInstruction::skip_unless_equal(MAJOR, major, 6),
            BpfInstruction::skip_unless_equal(MINOR, minor, 5),
            BpfInstruction::skip_unless_equal(KIND, kind, 4),
            BpfInstruction::skip_if_any(ACCESS, rule.denied, 1),
            BpfInstruction::skip(2),
            BpfInstruction::set(ANSWER, 0),
            BpfInstruction::exit(),
        ]);
    }
    program.extend([BpfInstruction::set(ANSWER, 1), BpfInstruction::exit()]);
    program
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(major: u32, minor: u32, denied: u32) -> DeviceRule {
        let device = DeviceNumber {
            kind: CHARACTER,
            major,
            minor,
        };
        DeviceRule { device, denied }
    }

    /// Runs a program as the kernel would.
    fn answer(rules: &[DeviceRule], kind: u32, access: u32, major: u32, minor: u32) -> u64 {
        let program = program(rules);
        let question = [access << 16 | kind, major, minor];
        let mut registers = [0_u64; 6];
        let mut at = 0;
        loop {
            let instruction = program[at];
            at += 1;
            match instruction.step(&mut registers, &question) {
                Some(skipped) => at += skipped,
                None => return registers[usize::from(ANSWER)],
            }
        }
    }

    #[test]
    fn the_program_denies_what_the_rules_name_and_nothing_else() {
        let rules = [rule(195, 0, MAKE | READ | WRITE), rule(195, 255, MAKE | WRITE)];
        for (kind, access, major, minor, expected) in [
            (CHARACTER, READ, 195, 0, 0),
            (CHARACTER, WRITE, 195, 0, 0),
            (CHARACTER, READ | WRITE, 195, 0, 0),
            (CHARACTER, MAKE, 195, 0, 0),
            (BLOCK, READ, 195, 0, 1),
            (CHARACTER, READ, 195, 1, 1),
            (CHARACTER, READ, 1, 0, 1),
            (CHARACTER, READ, 195, 255, 1),
            (CHARACTER, WRITE, 195, 255, 0),
            (CHARACTER, READ | WRITE, 195, 255, 0),
        ] {
            assert_eq!(
                answer(&rules, kind, access, major, minor),
                expected,
                "{kind} {access} {major}:{minor}"
            );
        }
        assert_eq!(answer(&[], CHARACTER, READ, 195, 0), 1);
    }

    #[test]
    fn the_first_version_is_told_the_same() {
        assert_eq!(rule(195, 0, MAKE | READ | WRITE).to_string(), "c 195:0 rwm");
        assert_eq!(rule(195, 255, MAKE | WRITE).to_string(), "c 195:255 wm");
    }

    #[test]
    fn rules_follow_from_the_files_of_a_document() {
        let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let words = |granted: &[&str], withheld: &[&str]| {
            let rules = rules(&texts(granted), &texts(withheld))?;
            Ok::<_, WallError>(rules.iter().map(ToString::to_string).collect::<Vec<_>>().join(","))
        };
        assert_eq!(words(&["/dev/null:rw"], &["/dev/zero"]).unwrap(), "c 1:5 rwm");
        assert_eq!(words(&["/dev/null:r", "/dev/zero:rw"], &[]).unwrap(), "c 1:3 wm");
        // The driver makes this file later; others have no number before they are there.
        assert_eq!(
            words(&[], &["/dev/nvidia77", "/dev/no-such-device"]).unwrap(),
            "c 195:77 rwm"
        );
        assert!(matches!(
            words(&["/dev/no-such-device:rw"], &[]),
            Err(WallError::Missing(..))
        ));
        assert!(matches!(words(&[], &["/etc/passwd"]), Err(WallError::NotADevice(_))));
        assert!(matches!(words(&["null"], &[]), Err(WallError::Malformed(_))));
    }

    /// In the devices hierarchy of the first version, where this host has it and lets us.
    #[test]
    fn a_process_in_a_group_of_the_first_version_opens_no_device_that_is_denied() {
        let Ok(hierarchy) = GroupDirectory::open(std::path::Path::new("/sys/fs/cgroup/devices")) else {
            return;
        };
        let name = format!("gridwright-test-{}", std::process::id());
        let Ok(group) = hierarchy.make(&name) else { return };
        let withheld = ["/dev/full".to_owned()];
        let built = build(std::iter::once(&group), &rules(&[], &withheld).unwrap());
        assert!(matches!(built, Ok(DeviceWall::First)), "{built:?}");
        let seen = match sys::fork().unwrap() {
            sys::Fork::Child => {
                let entered = group.enter().is_ok();
                sys::exit_now(i32::from(!entered || verify(&[], &withheld).is_err()));
            }
            sys::Fork::Parent(pid) => nix::sys::wait::waitpid(nix::unistd::Pid::from_raw(pid), None),
        };
        hierarchy.remove(&name);
        assert!(matches!(seen, Ok(nix::sys::wait::WaitStatus::Exited(_, 0))), "{seen:?}");
    }

    #[test]
    fn a_device_that_can_be_opened_is_found_out() {
        let withheld = ["/dev/null".to_owned()];
        assert!(matches!(verify(&[], &withheld), Err(WallError::Open(_, None))));
        assert!(verify(&["/dev/null:rw".to_owned()], &withheld).is_ok());
        assert!(verify(&[], &["/dev/no-such-device".to_owned()]).is_ok());
    }
}
