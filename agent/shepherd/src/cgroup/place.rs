//! Where the groups of tasks are made.

use super::CGROUPS;
use super::directory::GroupDirectory;
use std::io;
use std::path::{Path, PathBuf};

/// The name of the group below the holder's unit in which the shepherds are: no task's end, limit
/// or suspension concerns them.
const SHEPHERDS: &str = "shepherds";

/// The directories below which each task gets a group. By default there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupPlace {
    /// In the unified hierarchy, or the one that the administrator names.
    main: Option<PathBuf>,
    /// In the memory hierarchy of the first version, where the unified one has no memory
    /// controller. Only tasks whose memory is limited get a group there.
    memory: Option<PathBuf>,
    /// In the devices hierarchy of the first version. Only tasks that devices are kept from get a
    /// group there.
    devices: Option<PathBuf>,
    /// Whether shepherds leave the launcher's group, which its service manager owns.
    moves_shepherds: bool,
}

/// The hierarchies of the first version in which a task needs a group too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NeededHierarchies {
    /// Its memory is limited.
    pub memory: bool,
    /// Devices are kept from it.
    pub devices: bool,
}

impl NeededHierarchies {
    /// Every one that there is.
    pub const ALL: NeededHierarchies = NeededHierarchies {
        memory: true,
        devices: true,
    };
}

impl GroupPlace {
    /// A directory of one hierarchy.
    pub fn at(path: &Path) -> Self {
        GroupPlace {
            main: Some(path.to_owned()),
            ..GroupPlace::default()
        }
    }

    /// A place in the unified hierarchy and in the memory hierarchy.
    pub fn new(main: Option<PathBuf>, memory: Option<PathBuf>) -> Self {
        GroupPlace {
            main,
            memory,
            ..GroupPlace::default()
        }
    }

    /// The same, with a place in the devices hierarchy.
    pub fn with_devices(self, devices: Option<PathBuf>) -> Self {
        GroupPlace { devices, ..self }
    }

    /// The same, for a launcher in a group that a service manager owns.
    pub fn with_shepherds(self) -> Self {
        GroupPlace {
            moves_shepherds: true,
            ..self
        }
    }

    /// Whether tasks get no groups.
    pub fn is_nowhere(&self) -> bool {
        self.main.is_none() && self.memory.is_none()
    }

    /// Whether every directory is still there.
    pub fn is_there(&self) -> bool {
        self.directories(NeededHierarchies::ALL).all(Path::is_dir)
    }

    /// The directories in which a task gets a group.
    pub fn directories(&self, needed: NeededHierarchies) -> impl Iterator<Item = &Path> {
        let memory = self.memory.iter().filter(move |_| needed.memory);
        let devices = self.devices.iter().filter(move |_| needed.devices);
        self.main.iter().chain(memory).chain(devices).map(PathBuf::as_path)
    }

    /// Moves this process, a shepherd, out of the launcher's group.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn shelter(&self) -> io::Result<()> {
        let Some(main) = self.main.as_ref().filter(|_| self.moves_shepherds) else {
            return Ok(());
        };
        let parent = GroupDirectory::open(main)?;
        parent.child(SHEPHERDS).or_else(|_| parent.make(SHEPHERDS))?.enter()
    }
}

/// The hierarchies that the host has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hierarchies {
    /// Version 2.
    pub unified: Option<PathBuf>,
    /// Memory of version 1, where version 2 does not have it.
    pub memory: Option<PathBuf>,
    /// Devices of version 1. Version 2 has programs for that.
    pub devices: Option<PathBuf>,
}

impl Hierarchies {
    /// Finds them at the usual place.
    pub fn find() -> Self {
        Self::below(Path::new(CGROUPS))
    }

    /// Finds them below a directory.
    pub fn below(root: &Path) -> Self {
        let unified = [root.to_owned(), root.join("unified")]
            .into_iter()
            .find(|path| path.join("cgroup.controllers").is_file());
        let controllers = unified
            .as_ref()
            .and_then(|path| std::fs::read_to_string(path.join("cgroup.controllers")).ok())
            .unwrap_or_default();
        let has_memory = controllers.split_ascii_whitespace().any(|name| name == "memory");
        let memory = Some(root.join("memory")).filter(|path| !has_memory && path.join("memory.stat").is_file());
        let devices = Some(root.join("devices")).filter(|path| path.join("devices.list").is_file());
        Hierarchies {
            unified,
            memory,
            devices,
        }
    }
}

/// The groups of a process, from `/proc/PID/cgroup`, as paths below the hierarchies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnGroups {
    /// In the unified hierarchy.
    pub unified: Option<String>,
    /// In the memory hierarchy of the first version.
    pub memory: Option<String>,
    /// In the devices hierarchy of the first version.
    pub devices: Option<String>,
}

impl OwnGroups {
    /// Reads the groups of a process.
    pub fn of_process(pid: i32) -> Self {
        Self::parse(&std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default())
    }

    /// Reads lines `NUMBER:CONTROLLERS:PATH`. A path outside of what this process sees is left out.
    pub fn parse(text: &str) -> Self {
        let mut found = OwnGroups::default();
        for line in text.lines() {
            let mut fields = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
                continue;
            };
            if path.split('/').any(|part| part == "..") {
                continue;
            }
            let path = Some(path.trim_start_matches('/').to_owned());
            let has = |wanted: &str| controllers.split(',').any(|name| name == wanted);
            if controllers.is_empty() {
                found.unified = path.clone();
            }
            if has("memory") {
                found.memory = path.clone();
            }
            if has("devices") {
                found.devices = path;
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_groups_of_a_process_are_read_by_controller() {
        let text = "9:name=systemd:/x\n4:cpu,memory:/box/a:b\n3:cpuset,devices:/\n0::/gridwright-jobs.service/holder\n";
        let found = OwnGroups::parse(text);
        assert_eq!(found.unified.as_deref(), Some("gridwright-jobs.service/holder"));
        assert_eq!(found.memory.as_deref(), Some("box/a:b"));
        assert_eq!(found.devices.as_deref(), Some(""));
        assert_eq!(OwnGroups::parse("0::/../other\nx\n"), OwnGroups::default());
    }

    #[test]
    fn memory_of_the_first_version_counts_only_where_the_second_has_none() {
        let root = std::env::temp_dir().join(format!("gridwright-hierarchies-{}", std::process::id()));
        fs::create_dir_all(root.join("memory")).unwrap();
        fs::create_dir_all(root.join("unified")).unwrap();
        let nothing = Hierarchies::below(&root);
        assert_eq!((nothing.unified, nothing.memory), (None, None));
        fs::write(root.join("memory/memory.stat"), "").unwrap();
        fs::write(root.join("unified/cgroup.controllers"), "\n").unwrap();
        let mixed = Hierarchies::below(&root);
        assert_eq!(mixed.unified, Some(root.join("unified")));
        assert_eq!(mixed.memory, Some(root.join("memory")));
        assert_eq!(mixed.devices, None);
        fs::create_dir_all(root.join("devices")).unwrap();
        fs::write(root.join("devices/devices.list"), "a *:* rwm\n").unwrap();
        assert_eq!(Hierarchies::below(&root).devices, Some(root.join("devices")));
        fs::write(root.join("cgroup.controllers"), "cpu memory pids\n").unwrap();
        let new = Hierarchies::below(&root);
        assert_eq!((new.unified, new.memory), (Some(root.clone()), None));
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn only_tasks_that_need_it_get_a_group_in_a_hierarchy_of_the_first_version() {
        let place = GroupPlace::new(Some("/a".into()), Some("/b".into())).with_devices(Some("/c".into()));
        let names = |memory, devices| {
            let needed = NeededHierarchies { memory, devices };
            place
                .directories(needed)
                .map(|path| path.display().to_string())
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(names(false, false), "/a");
        assert_eq!(names(true, false), "/a /b");
        assert_eq!(names(false, true), "/a /c");
        assert!(GroupPlace::default().is_nowhere() && !place.is_nowhere());
    }
}
