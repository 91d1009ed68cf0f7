//! Whether the directory is the one that its records and settings mean.

use crate::commands::doctor::finding::Finding;
use crate::directory;
use std::path::Path;

/// The examinations of the directory itself.
pub fn all(dir: &Path) -> Vec<Finding> {
    if let Err(refusal) = directory::refuse_copy(dir) {
        let found = format!("{} is a copy: {}", dir.display(), refusal.why);
        return vec![Finding::bad("directory", found, refusal.fix)];
    }
    let mut findings = vec![Finding::fine(
        "directory",
        format!("{} is not a copy of another one", dir.display()),
    )];
    let settings = std::fs::read_to_string(dir.join("default/common/settings.sh")).unwrap_or_default();
    findings.extend(directory::stale_root(dir, &settings).map(|named| {
        let found = format!("default/common/settings.sh names {}", named.display());
        Finding::bad(
            "place",
            found,
            format!("write it anew: gridwright up --dir {} --detach", dir.display()),
        )
    }));
    findings
}
