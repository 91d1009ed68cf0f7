//! Copies of a cell's directory: recognised by each start, and made cells of their own by
//! `gridwright-master part`.

use crate::clock::Clock;
use crate::config::{CellConfig, ConfigError};
use crate::layout::Layout;
use crate::lock::{LockError, MasterLock};
use crate::replay::replay;
use crate::store::{Store, StoreError};
use master_core::core::Core;
use master_core::event::Event;
use proto::diagnostic::Diagnostic;
use proto::directory::{self, DirectoryIdentity};
use std::path::{Path, PathBuf};

/// A copied cell cannot be made one of its own.
#[derive(Debug, thiserror::Error)]
pub enum PartError {
    /// A configuration file is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A master runs in the directory, or the lock cannot be taken.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The database cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The database is another cell's than `etc/cell.toml` says.
    #[error("{} belongs to another cell than etc/cell.toml says", path.display())]
    OtherCell {
        /// The database.
        path: PathBuf,
    },
}

/// Refuses a directory that is a copy.
///
/// # Errors
/// The refusal, for people. A directory that does not say which one it is counts as an original:
/// those of earlier releases do not say it.
pub fn refuse(layout: &Layout) -> Result<(), Box<Diagnostic>> {
    let dir = layout.dir();
    let (Ok(text), Ok(metadata)) = (std::fs::read_to_string(dir.join(directory::FILE)), dir.metadata()) else {
        return Ok(());
    };
    let refusal = DirectoryIdentity::refusal_in(dir, &metadata, &text);
    refusal.map_or(Ok(()), |refusal| Err(Box::new(refusal)))
}

/// Makes the copied cell in `dir` one of its own: nothing runs in it, and nothing starts until
/// people enable its queues. Returns what was done, for people.
///
/// # Errors
/// The directory cannot be opened as for a start. Nothing is changed then.
pub fn part(dir: &Path, original: &str) -> Result<String, PartError> {
    let layout = Layout::new(dir);
    let cell = CellConfig::read(&layout.etc("cell.toml"))?;
    let _lock = MasterLock::take(&layout)?;
    let mut store = Store::open(&layout.database())?;
    let state = replay(&store)?.state;
    if state.cell != cell.cell {
        return Err(PartError::OtherCell {
            path: layout.database(),
        });
    }
    let clock = Clock::continue_from(state.now);
    let mut core = Core::new(state);
    let why = format!("this cell is a copy of {original}: if the task ran when the copy was made, it ran on there");
    let step = core.part_from_original(&why, clock.now());
    store.append(&step.events)?;
    let count = |is_counted: fn(&Event) -> bool| step.events.iter().filter(|record| is_counted(&record.event)).count();
    let ended = count(|event| matches!(event, Event::TaskEnded { record: Some(_), .. }));
    let disabled = count(|event| matches!(event, Event::InstanceChanged { .. }));
    Ok(format!(
        "a cell of its own, epoch {}: {ended} tasks that ran in the original are ended in its books, \
         {disabled} queue instances are disabled",
        core.state().epoch.0
    ))
}
