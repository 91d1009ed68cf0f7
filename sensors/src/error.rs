//! Why a host fact could not be had.

use std::io;
use std::path::{Path, PathBuf};

/// A source of load values failed; the other sources are not affected.
#[derive(Debug, thiserror::Error)]
pub enum FactError {
    /// The file could not be read.
    #[error("cannot read {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The file was read and its contents were not understood.
    #[error("{what} is not in the expected form: {reason}")]
    Form {
        /// The file or figure.
        what: &'static str,
        /// What was wrong with it.
        reason: String,
    },
}

impl FactError {
    /// A [`FactError::Form`] about `what`.
    pub fn form(what: &'static str, reason: impl ToString) -> Self {
        Self::Form {
            what,
            reason: reason.to_string(),
        }
    }

    /// Whether the source does not exist on this host, as opposed to being broken.
    pub fn is_absent(&self) -> bool {
        match self {
            Self::Read { source, .. } => source.kind() == io::ErrorKind::NotFound,
            Self::Form { .. } => false,
        }
    }
}

/// Reads `path` below `root` as text.
pub(crate) fn read_text(root: &Path, path: &str) -> Result<String, FactError> {
    let path = root.join(path);
    std::fs::read_to_string(&path).map_err(|source| FactError::Read { path, source })
}

#[cfg(test)]
pub(crate) mod fixture {
    //! A tree of fixture files that lives as long as its test.

    use std::path::{Path, PathBuf};
    use std::sync::atomic::{AtomicU32, Ordering};

    static NEXT: AtomicU32 = AtomicU32::new(0);

    pub(crate) struct Tree(PathBuf);

    impl Tree {
        pub(crate) fn new(files: &[(&str, &str)]) -> Self {
            let name = format!(
                "gridwright-facts-{}-{}",
                std::process::id(),
                NEXT.fetch_add(1, Ordering::Relaxed)
            );
            let root = std::env::temp_dir().join(name);
            for (path, text) in files {
                let path = root.join(path);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
            }
            Self(root)
        }

        pub(crate) fn root(&self) -> &Path {
            &self.0
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            std::fs::remove_dir_all(&self.0).ok();
        }
    }
}
