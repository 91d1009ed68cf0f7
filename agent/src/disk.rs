//! Warns of a disk that is nearly full before it is: below the launcher's own limit nothing is
//! started any more.

use crate::layout::Layout;
use nix::sys::statvfs::statvfs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::sleep;

/// Room below which a disk is nearly full; `gridwright doctor` says the same.
const FEW_BYTES: u64 = 100 << 20;

/// Free files below which it is.
const FEW_FILES: u64 = 1_000;

/// Between two looks.
const EVERY: Duration = Duration::from_secs(30);

/// Watches the disk of the tasks and the disk of the agent's own files. Never returns.
pub async fn watch(layout: Layout) {
    let places = [layout.dir().join("tasks"), layout.agent("")];
    let mut warned = [false; 2];
    loop {
        for (place, warned) in places.iter().zip(&mut warned) {
            let scarcity = scarcity(place.clone()).await;
            if let Some(scarcity) = scarcity.as_ref().filter(|_| !*warned) {
                tracing::warn!("the disk of {} is nearly full: {scarcity}", place.display());
            }
            *warned = scarcity.is_some();
        }
        sleep(EVERY).await;
    }
}

/// Returns a warning if a disk is nearly full. A file system that hangs blocks only this check.
async fn scarcity(place: PathBuf) -> Option<String> {
    tokio::task::spawn_blocking(move || little_left(&place)).await.ok()?
}

fn little_left(place: &Path) -> Option<String> {
    // A place that cannot be looked at is reported by whoever needs it.
    let disk = statvfs(place).ok()?;
    let bytes = disk.blocks_available() as u64 * disk.fragment_size() as u64;
    let (files, all_files) = (disk.files_available() as u64, disk.files() as u64);
    if bytes < FEW_BYTES {
        return Some(format!("{} MiB are left", bytes >> 20));
    }
    // Some file systems have no fixed number of files and say 0 of 0.
    (all_files > 0 && files < FEW_FILES).then(|| format!("{files} more files can be made"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_is_not_there_is_not_nearly_full() {
        assert_eq!(little_left(Path::new("/nonexistent")), None);
    }
}
