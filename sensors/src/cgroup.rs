//! Which version of control groups the host has at the usual place, from `/sys/fs/cgroup`.

use std::path::Path;

/// How control groups are mounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CgroupVersion {
    /// Nothing is mounted.
    None,
    /// One hierarchy per controller, or a mixture that leaves the controllers to version 1.
    V1,
    /// The unified hierarchy.
    V2,
}

impl CgroupVersion {
    /// The value of `cgroup_version`: 0, 1 or 2.
    pub fn number(self) -> u8 {
        match self {
            CgroupVersion::None => 0,
            CgroupVersion::V1 => 1,
            CgroupVersion::V2 => 2,
        }
    }
}

/// The version on the host whose file system starts at `root`.
pub fn read_cgroup(root: &Path) -> CgroupVersion {
    let top = root.join("sys/fs/cgroup");
    if top.join("cgroup.controllers").is_file() {
        return CgroupVersion::V2;
    }
    let has_controllers = std::fs::read_dir(top).is_ok_and(|mut entries| entries.next().is_some());
    if has_controllers {
        CgroupVersion::V1
    } else {
        CgroupVersion::None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::fixture::Tree;

    #[test]
    fn version_follows_from_what_is_mounted() {
        let cases: [(&[(&str, &str)], u8); 3] = [
            (&[("sys/fs/cgroup/cgroup.controllers", "cpu memory\n")], 2),
            (&[("sys/fs/cgroup/memory/tasks", "1\n")], 1),
            (&[("proc/uptime", "1 1\n")], 0),
        ];
        for (files, expected) in cases {
            assert_eq!(read_cgroup(Tree::new(files).root()).number(), expected);
        }
    }
}
