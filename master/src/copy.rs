//! Copies of a cell's directory: recognised by each start, and made cells of their own by
//! `gridwright-master part`.

use crate::clock::Clock;
use crate::config::CellConfig;
use crate::layout::Layout;
use crate::lock::MasterLock;
use crate::replay::replay;
use crate::run::RunError;
use crate::store::Store;
use master_core::core::Core;
use master_core::event::Event;
use proto::directory::{self, DirectoryIdentity};
use std::path::Path;

/// Refuses a directory that is a copy.
///
/// # Errors
/// `Copy`. A directory that does not say which one it is, of an earlier release for one, is taken
/// for an original.
pub fn refuse(layout: &Layout) -> Result<(), RunError> {
    let dir = layout.dir();
    let (Ok(text), Ok(metadata)) = (std::fs::read_to_string(dir.join(directory::FILE)), dir.metadata()) else {
        return Ok(());
    };
    let refusal = DirectoryIdentity::refusal_in(dir, &metadata, &text);
    refusal.map_or(Ok(()), |refusal| Err(RunError::Copy(Box::new(refusal))))
}

/// Makes the copied cell in `dir` one of its own: nothing runs in it, and nothing starts until
/// people enable its queues. Returns what was done, for people.
///
/// # Errors
/// The directory cannot be opened as for a start. Nothing is changed then.
pub fn part(dir: &Path, original: &str) -> Result<String, RunError> {
    let layout = Layout::new(dir);
    let cell = CellConfig::read(&layout.etc("cell.toml"))?;
    let _lock = MasterLock::take(&layout)?;
    let mut store = Store::open(&layout.database())?;
    let state = replay(&store)?.state;
    if state.cell != cell.cell {
        return Err(RunError::OtherCell {
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
