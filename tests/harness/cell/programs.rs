//! The programs under test, as they were built.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// All programs of a cell; each looks for the others beside itself.
const NAMES: [&str; 4] = [
    "gridwright",
    "gridwright-master",
    "gridwright-agent",
    "gridwright-shepherd",
];

/// The library that lies beside them.
const LIBRARY: &str = "libdrmaa.so";

/// The directory that holds them.
#[derive(Debug)]
pub struct Programs(PathBuf);

impl Programs {
    /// Finds them beside the test's own program. Where an ordinary user cannot reach them, they are
    /// linked into `temp`.
    ///
    /// # Panics
    /// If one is missing.
    pub fn find(temp: &Path) -> Self {
        let me = std::env::current_exe().expect("a program has a path");
        // target/PROFILE/deps/e2e-HASH, or target/PROFILE/gridwright-bench
        let mut built = me.parent().expect("a program is in a directory");
        if built.ends_with("deps") {
            built = built.parent().expect("tests are built two levels below target");
        }
        let built = built.to_owned();
        for name in NAMES {
            let path = built.join(name);
            let release = if built.ends_with("release") { " --release" } else { "" };
            assert!(
                path.is_file(),
                "{} is missing: run cargo build --workspace{release}",
                path.display()
            );
        }
        if is_open(&built) {
            Self(built)
        } else {
            Self(link(&built, &temp.join("programs")))
        }
    }

    /// The path of `gridwright`.
    pub fn gridwright(&self) -> PathBuf {
        self.0.join(NAMES[0])
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.0
    }
}

/// Whether everybody may pass through all directories of a path.
fn is_open(path: &Path) -> bool {
    path.ancestors()
        .all(|dir| std::fs::metadata(dir).is_ok_and(|found| found.permissions().mode() & 1 == 1))
}

fn link(from: &Path, to: &Path) -> PathBuf {
    std::fs::create_dir(to).unwrap_or_else(|error| panic!("{}: {error}", to.display()));
    for name in NAMES {
        // Another file system has no links to this one.
        std::fs::hard_link(from.join(name), to.join(name))
            .or_else(|_| std::fs::copy(from.join(name), to.join(name)).map(drop))
            .unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    // The library of DRMAA programs; tests of other things do without it.
    let _ = std::fs::copy(from.join(LIBRARY), to.join(LIBRARY));
    to.to_owned()
}
