//! Finds the place in which tasks get control groups. No administrator has to name one.
//!
//! Under systemd the holder's unit is delegated to us, and the place is the group of that unit.
//! Elsewhere a launcher of root makes a group below its own one. Groups of others stay as they are.

use super::holder::{self, RunningHolder};
use crate::cgroup::{Abilities, GroupDirectory, GroupPlace, Hierarchies, NeededHierarchies, OwnGroups};
use folder::Folder;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The file in `run/launcher` that says what this host enforces.
const LIMITS: &str = "limits";

/// The file in `run/launcher` with the group of the holder's unit. systemd cannot start a holder
/// anew before version 254 while tasks are in that group; the group and the tasks stay meanwhile.
const UNIT_GROUP: &str = "unit-group";

/// The place of groups on this host, and what can be enforced there.
#[derive(Clone, Debug, Default)]
pub struct FoundGroups {
    /// The place.
    pub place: GroupPlace,
    /// What the kernel can do there.
    pub abilities: Abilities,
    /// The place in words, or why there is none and what would give one.
    pub summary: String,
    /// The holder that ran when the place was looked for.
    holder: Option<RunningHolder>,
}

impl FoundGroups {
    /// Finds the place for the launcher that works in this directory.
    pub fn find(folder: &Path, single_user: bool) -> Self {
        let holder = holder::find(folder).filter(|_| !single_user);
        Self {
            holder,
            ..Self::beside(holder, folder, single_user)
        }
    }

    fn beside(holder: Option<RunningHolder>, folder: &Path, single_user: bool) -> Self {
        match place(holder, folder, single_user)
            .and_then(|place| Ok((Abilities::find(&place).map_err(unusable)?, place)))
        {
            Ok((abilities, place)) => {
                let paths: Vec<String> = place
                    .directories(NeededHierarchies::ALL)
                    .map(|path| path.display().to_string())
                    .collect();
                let summary = format!("each task gets a group of its own below {}", paths.join(" and "));
                FoundGroups {
                    place,
                    abilities,
                    summary,
                    holder,
                }
            }
            Err(why) => FoundGroups {
                summary: format!("tasks get no groups: {why}"),
                ..FoundGroups::default()
            },
        }
    }

    /// One line for the place, and one per limit.
    pub fn lines(&self) -> Vec<String> {
        let place = format!("control groups: {}", self.summary);
        [place].into_iter().chain(self.abilities.lines()).collect()
    }

    /// Logs what this host enforces, and leaves it where `gridwright doctor` finds it.
    pub fn published(self) -> Self {
        let lines = self.lines();
        lines.iter().for_each(|line| crate::log::line(format_args!("{line}")));
        let own = Folder::open(Path::new("run/launcher"));
        if let Err(error) = own.and_then(|own| own.write(LIMITS, &(lines.join("\n") + "\n"), 0o644)) {
            crate::log::line(format_args!("run/launcher/{LIMITS}: {error}"));
        }
        self
    }

    /// Looks again if the place is gone, or another holder runs than the one that was examined.
    /// Returns whether it did.
    pub fn refresh(&mut self, folder: &Path, single_user: bool) -> bool {
        let is_gone = !self.place.is_nowhere() && !self.place.is_there();
        let holder = holder::find(folder).filter(|_| !single_user);
        let is_another = holder.is_some() && holder != self.holder;
        if is_gone || is_another {
            *self = Self::find(folder, single_user).published();
        }
        is_gone || is_another
    }
}

fn unusable(error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("this host lets us make none: {error}"))
}

fn place(holder: Option<RunningHolder>, folder: &Path, single_user: bool) -> io::Result<GroupPlace> {
    if single_user {
        return Err(io::Error::other("this cell is an ordinary user's"));
    }
    let hierarchies = Hierarchies::find();
    if let Some(holder) = holder {
        let place = of_holder(&hierarchies, &OwnGroups::of_process(holder.pid))?;
        keep_unit_group(folder, &place);
        return Ok(place);
    }
    if Path::new("/run/systemd/system").is_dir() {
        if let Some(place) = left_by_holder(folder) {
            crate::log::line(format_args!(
                "the holder of control groups does not run; tasks go on in the group that it left"
            ));
            return Ok(place);
        }
        return Err(io::Error::other(without_holder(folder)));
    }
    let own = OwnGroups::of_process(std::process::id() as i32);
    own_place(&hierarchies, &own, &name(folder).map_err(unusable)?).map_err(unusable)
}

/// Notes the group of the unit for launchers that find no holder.
fn keep_unit_group(folder: &Path, place: &GroupPlace) {
    let Some(path) = place
        .directories(NeededHierarchies::default())
        .next()
        .filter(|path| is_unit_group(path))
    else {
        return;
    };
    let kept = Folder::open(&folder.join("run/launcher"))
        .and_then(|own| own.write(UNIT_GROUP, &format!("{}\n", path.display()), 0o644));
    if let Err(error) = kept {
        crate::log::line(format_args!("run/launcher/{UNIT_GROUP}: {error}"));
    }
}

/// The group of the unit that a holder left behind with groups in it: tasks live there, or
/// shepherds. systemd removes an empty one.
fn left_by_holder(folder: &Path) -> Option<GroupPlace> {
    let text = std::fs::read_to_string(folder.join("run/launcher").join(UNIT_GROUP)).ok()?;
    let path = PathBuf::from(text.trim_end());
    let group = GroupDirectory::open(&path).ok().filter(|_| is_unit_group(&path))?;
    (!group.names().is_empty()).then(|| GroupPlace::at(&path).with_shepherds())
}

fn is_unit_group(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == holder::UNIT)
}

/// The remedy where systemd runs and no holder does.
fn without_holder(folder: &Path) -> String {
    if folder == Path::new(holder::DIRECTORY) {
        return "gridwright-jobs.service does not run: systemctl enable --now gridwright-jobs.service".to_owned();
    }
    format!(
        "gridwright-jobs.service is for {}, and this cell is in {}: name a control group in cgroup_parent of etc/agent.toml",
        holder::DIRECTORY,
        folder.display()
    )
}

/// The group of the holder's unit, in which the holder itself is one level down.
fn of_holder(hierarchies: &Hierarchies, groups: &OwnGroups) -> io::Result<GroupPlace> {
    let unit = groups
        .unified
        .as_deref()
        .and_then(|path| path.strip_suffix(holder::SUBGROUP)?.strip_suffix('/'));
    let main = hierarchies
        .unified
        .as_ref()
        .zip(unit)
        .map(|(root, unit)| root.join(unit));
    // In the first version the holder stays in the group of its unit.
    let memory = groups.memory.as_deref().filter(|path| path.ends_with(holder::UNIT));
    let memory = hierarchies
        .memory
        .as_ref()
        .zip(memory)
        .map(|(root, path)| root.join(path));
    let devices = groups.devices.as_deref().filter(|path| path.ends_with(holder::UNIT));
    let devices = hierarchies
        .devices
        .as_ref()
        .zip(devices)
        .map(|(root, path)| root.join(path));
    let place = GroupPlace::new(main, memory).with_devices(devices);
    if place.is_nowhere() {
        return Err(io::Error::other(format!(
            "the holder is not in a group named {}",
            holder::SUBGROUP
        )));
    }
    Ok(place.with_shepherds())
}

/// Groups of this launcher below the groups that it is in.
fn own_place(hierarchies: &Hierarchies, own: &OwnGroups, name: &str) -> io::Result<GroupPlace> {
    let main = hierarchies.unified.as_ref().zip(own.unified.as_ref());
    let main = main.map(|(root, path)| make_in(&root.join(path), name)).transpose()?;
    let memory = hierarchies.memory.as_ref().zip(own.memory.as_ref());
    // Without the right to one of its own in the memory hierarchy, limits of memory hold for the
    // address space.
    let memory = memory.and_then(|(root, path)| make_in(&root.join(path), name).ok());
    let devices = hierarchies.devices.as_ref().zip(own.devices.as_ref());
    let devices = devices.and_then(|(root, path)| make_in(&root.join(path), name).ok());
    let place = GroupPlace::new(main, memory).with_devices(devices);
    if place.is_nowhere() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "there are no control groups"));
    }
    Ok(place)
}

/// Makes the launcher's group, or finds the one that an earlier launcher of this directory made,
/// and lets the groups of tasks in it have the controllers that it has itself.
fn make_in(parent: &Path, name: &str) -> io::Result<PathBuf> {
    let parent = GroupDirectory::open(parent)?;
    let group = parent.child(name).or_else(|_| parent.make(name))?;
    delegate(&group);
    Ok(group.path().to_owned())
}

/// Passes every controller of a group on to the groups in it.
pub(super) fn delegate(group: &GroupDirectory) {
    let controllers = group.read("cgroup.controllers").unwrap_or_default();
    let wanted = ["cpu", "cpuset", "io", "memory", "pids"];
    for controller in controllers
        .split_ascii_whitespace()
        .filter(|name| wanted.contains(name))
    {
        // One after the other: a controller that is refused must not keep back the rest.
        if let Err(error) = group.write("cgroup.subtree_control", format!("+{controller}")) {
            crate::log::line(format_args!(
                "{}: controller {controller}: {error}",
                group.path().display()
            ));
        }
    }
}

/// The launcher's groups are named by its directory: two cells of one host have two.
fn name(folder: &Path) -> io::Result<String> {
    let found = std::fs::metadata(folder)?;
    Ok(format!("gridwright-{:x}-{:x}", found.dev(), found.ino()))
}

/// Removes the groups that a launcher of this directory made for itself, if no task is left in
/// them. The caller is in the same groups as the launcher.
pub fn remove_own(folder: &Path) {
    let Ok(name) = name(folder) else { return };
    let hierarchies = Hierarchies::find();
    let own = OwnGroups::of_process(std::process::id() as i32);
    let parents = [
        (hierarchies.unified, own.unified),
        (hierarchies.memory, own.memory),
        (hierarchies.devices, own.devices),
    ];
    for (root, path) in parents {
        let parent = root
            .zip(path)
            .map(|(root, path)| GroupDirectory::open(&root.join(path)));
        if let Some(Ok(parent)) = parent {
            parent.remove_empty(&name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn hierarchies(root: &Path) -> Hierarchies {
        Hierarchies {
            unified: Some(root.join("unified")),
            memory: Some(root.join("memory")),
            devices: None,
        }
    }

    #[test]
    fn the_place_is_the_unit_of_the_holder_and_its_name_is_checked() {
        let hierarchies = hierarchies(Path::new("/cg"));
        let unified = |path: &str| OwnGroups {
            unified: Some(path.to_owned()),
            ..OwnGroups::default()
        };
        let found = of_holder(
            &hierarchies,
            &unified("gridwright.slice/gridwright-jobs.service/holder"),
        )
        .unwrap();
        let directories: Vec<&Path> = found.directories(NeededHierarchies::ALL).collect();
        assert_eq!(
            directories,
            [Path::new("/cg/unified/gridwright.slice/gridwright-jobs.service")]
        );
        for path in ["", "user.slice/session-3.scope", "x/notholder"] {
            assert!(of_holder(&hierarchies, &unified(path)).is_err(), "{path}");
        }
    }

    #[test]
    fn the_group_that_a_holder_left_is_found_again_while_tasks_are_in_it() {
        let root = std::env::temp_dir().join(format!("gridwright-left-{}", std::process::id()));
        let unit = root.join("cg").join(holder::UNIT);
        fs::create_dir_all(unit.join("shepherds")).unwrap();
        fs::create_dir_all(root.join("run/launcher")).unwrap();
        assert_eq!(left_by_holder(&root), None);
        keep_unit_group(&root, &GroupPlace::at(&root.join("cg/other.service")));
        assert_eq!(left_by_holder(&root), None, "it is not the unit's");
        keep_unit_group(&root, &GroupPlace::at(&unit));
        assert_eq!(left_by_holder(&root), Some(GroupPlace::at(&unit).with_shepherds()));
        fs::remove_dir(unit.join("shepherds")).unwrap();
        assert_eq!(left_by_holder(&root), None, "nobody is there any more");
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn the_unit_is_recommended_to_the_cell_that_it_is_for() {
        assert!(without_holder(Path::new(holder::DIRECTORY)).contains("systemctl enable"));
        assert!(without_holder(Path::new("/srv/cell")).contains("cgroup_parent"));
    }

    #[test]
    fn a_launcher_of_root_makes_a_group_below_its_own_and_finds_it_again() {
        let root = std::env::temp_dir().join(format!("gridwright-own-place-{}", std::process::id()));
        fs::create_dir_all(root.join("unified/mine")).unwrap();
        fs::create_dir_all(root.join("memory/box")).unwrap();
        let own = OwnGroups {
            unified: Some("mine".to_owned()),
            memory: Some("box".to_owned()),
            devices: None,
        };
        let first = own_place(&hierarchies(&root), &own, "gridwright-1-2").unwrap();
        let again = own_place(&hierarchies(&root), &own, "gridwright-1-2").unwrap();
        assert_eq!(first, again);
        let directories: Vec<&Path> = first.directories(NeededHierarchies::ALL).collect();
        assert_eq!(
            directories,
            [
                root.join("unified/mine/gridwright-1-2").as_path(),
                root.join("memory/box/gridwright-1-2").as_path()
            ]
        );
        fs::remove_dir_all(&root).unwrap();
    }
}
