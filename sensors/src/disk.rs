//! Free space of the file systems that hold given directories.

use crate::error::{FactError, read_text};
use std::path::{Path, PathBuf};
use sysinfo::{DiskRefreshKind, Disks};

/// Space of one file system in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Its size.
    pub total_bytes: u64,
    /// What an ordinary user may still write.
    pub free_bytes: u64,
}

/// The space of the file system that holds `directory` on this host.
///
/// Network file systems are never asked: a server that is away would hang the caller.
///
/// # Errors
/// Where the mounts cannot be read, or the file system is one that is not asked.
pub fn read_space(directory: &Path) -> Result<Space, FactError> {
    let mounts = parse_mounts(&read_text(Path::new("/"), "proc/self/mounts")?);
    let place = holding(&mounts, directory).ok_or_else(|| FactError::form("/proc/self/mounts", "no root"))?;
    let disks = Disks::new_with_refreshed_list_specifics(DiskRefreshKind::nothing().with_storage());
    let mut disks = disks.map_err(|e| FactError::form("list of disks", format!("{e:?}")))?;
    // Where one place was mounted over twice, the later mount is the visible one.
    let disk = disks.iter_mut().rev().find(|disk| disk.mount_point() == place);
    let disk =
        disk.ok_or_else(|| FactError::form("file system", format!("{} is not asked for its space", place.display())))?;
    Ok(Space { total_bytes: disk.total_space(), free_bytes: disk.available_space() })
}

/// The mount points in the text of `/proc/self/mounts`, in the order in which they were mounted.
pub fn parse_mounts(text: &str) -> Vec<PathBuf> {
    text.lines().filter_map(|line| line.split(' ').nth(1)).map(|field| PathBuf::from(unescape(field))).collect()
}

/// The mount point that holds `directory`: the deepest one on its path.
pub fn holding<'a>(mounts: &'a [PathBuf], directory: &Path) -> Option<&'a Path> {
    let on_the_path = mounts.iter().filter(|mount| directory.starts_with(mount));
    on_the_path.max_by_key(|mount| mount.components().count()).map(PathBuf::as_path)
}

/// Blanks and backslashes in mount points are written as three octal digits, see getmntent(3).
fn unescape(field: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(field.to_owned(), |text, (code, plain)| text.replace(code, plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deepest_mount_on_the_path_holds_a_directory() {
        let mounts = parse_mounts(
            "/dev/vda / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\n/dev/vdb /tmp/my\\040disk ext4 rw 0 0\nproc /proc proc rw 0 0\n",
        );
        let cases =
            [("/tmp", "/tmp"), ("/tmpfile", "/"), ("/tmp/a/b", "/tmp"), ("/tmp/my disk/x", "/tmp/my disk"), ("/", "/")];
        for (directory, expected) in cases {
            assert_eq!(holding(&mounts, Path::new(directory)), Some(Path::new(expected)), "{directory}");
        }
        assert_eq!(holding(&[], Path::new("/tmp")), None);
    }

    #[test]
    fn this_host_can_say_how_much_space_its_temporary_directory_has() {
        match read_space(Path::new("/tmp")) {
            Ok(space) => assert!(space.total_bytes > 0 && space.free_bytes <= space.total_bytes),
            // A container may keep /tmp on a file system that is never asked.
            Err(error) => assert!(matches!(error, FactError::Form { .. }), "{error}"),
        }
    }
}
