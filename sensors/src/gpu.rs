//! How many GPUs the NVIDIA driver lists, from `/proc/driver/nvidia/gpus`. What they do is the
//! business of a sensor.

use crate::error::FactError;
use std::path::Path;

/// The number of GPUs of the host whose file system starts at `root`: `gpu_count`.
///
/// # Errors
/// Where the directory does not exist, because the driver is not loaded, or cannot be read.
pub fn read_gpus(root: &Path) -> Result<usize, FactError> {
    let path = root.join("proc/driver/nvidia/gpus");
    match std::fs::read_dir(&path) {
        Ok(entries) => Ok(entries.count()),
        Err(source) => Err(FactError::Read { path, source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::fixture::Tree;

    #[test]
    fn each_directory_of_the_driver_is_a_gpu_and_no_driver_is_absence() {
        let gpus = "proc/driver/nvidia/gpus";
        let tree = Tree::new(&[
            (&format!("{gpus}/0000:3b:00.0/information"), ""),
            (&format!("{gpus}/0000:86:00.0/information"), ""),
        ]);
        assert_eq!(read_gpus(tree.root()).unwrap(), 2);
        assert!(read_gpus(&tree.root().join("nowhere")).unwrap_err().is_absent());
    }
}
