//! Control groups of tasks: where they are made, which limits hold in them, and how their processes
//! are found, stopped and ended.
//!
//! Groups that others made are never changed. Below one of them the launcher makes a group with a
//! name of ours, and below that one a group per task. Every directory is opened by descriptor, and
//! no link is followed.

mod abilities;
mod around;
mod devices;
mod directory;
mod place;
mod task;

pub use abilities::{Abilities, MemoryVersion};
pub use around::{GroupKills, InheritedCgroup};
pub use devices::{DeviceRule, DeviceWall, WallError, rules, verify};
pub use directory::GroupDirectory;
pub use place::{GroupPlace, Hierarchies, NeededHierarchies, OwnGroups};
pub use task::{GroupLimits, MemoryBounds, TaskGroup, UnsetInGroup};

/// The directory that the hierarchies of control groups are mounted in.
pub const CGROUPS: &str = "/sys/fs/cgroup";
