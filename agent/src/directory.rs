//! What the launcher left about the directory: whether it is a copy, and the marks of its tasks.

use crate::Failure;
use crate::layout::Layout;
use proto::directory::{self, DirectoryIdentity};
use proto::wire::agent::TasksMark;
use std::path::Path;

/// Refuses a directory that is a copy of another host's, or of this one's.
///
/// # Errors
/// The refusal with its remedy. A directory that does not say which one it is, is taken for an
/// original.
pub fn refuse_copy(layout: &Layout) -> Result<(), Failure> {
    let dir = layout.dir();
    let (Ok(text), Ok(metadata)) = (std::fs::read_to_string(dir.join(directory::FILE)), dir.metadata()) else {
        return Ok(());
    };
    let refusal = DirectoryIdentity::refusal_in(dir, &metadata, &text);
    refusal.map_or(Ok(()), |refusal| Err(Failure::refusal(&refusal)))
}

/// Returns the marks beside the journal of tasks, newest first. The list is empty before the first
/// launcher that writes marks.
pub fn marks(file: &Path) -> Vec<TasksMark> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().map(|mark| TasksMark(mark.to_owned())).collect()
}
