//! Indexes of accounting files that were put aside: a thread of its own makes each, so that nobody
//! waits for it. An index that a crash prevented is made with the next start.

use super::rotation::FilePlace;
use proto::accounting::RotatedName;
use proto::accounting::index::IndexBuilder;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The longest file that gets an index: an index is made in memory, 16 bytes per record.
const MOST_BYTES: u64 = 8 << 30;

/// The thread that makes indexes, while there is one.
#[derive(Clone, Debug, Default)]
pub struct Indexer {
    is_running: Arc<AtomicBool>,
}

impl Indexer {
    /// Begins to make the indexes that files at this place do not have. While it works for an
    /// earlier call, the files of this one get theirs with the next.
    pub fn begin(&self, place: FilePlace) {
        if self.is_running.swap(true, Ordering::AcqRel) {
            return;
        }
        let is_running = self.is_running.clone();
        let work = move || {
            if let Err(error) = make_missing(&place) {
                tracing::warn!("{}: an accounting file has no index: {error}", place.dir.display());
            }
            is_running.store(false, Ordering::Release);
        };
        let thread = std::thread::Builder::new().name("master-index".to_owned());
        if let Err(error) = thread.spawn(work) {
            self.is_running.store(false, Ordering::Release);
            tracing::warn!("an accounting file has no index, no thread can be started: {error}");
        }
    }
}

#[cfg(test)]
impl Indexer {
    /// Waits for the thread.
    pub(super) fn wait(&self) {
        while self.is_running.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
    }
}

/// Makes the indexes that are missing.
pub(super) fn make_missing(place: &FilePlace) -> io::Result<()> {
    for rotated in place.rotated()? {
        if !place.index_of(rotated).exists() {
            make(place, rotated)?;
        }
    }
    Ok(())
}

fn make(place: &FilePlace, rotated: RotatedName) -> io::Result<()> {
    let file = File::open(place.path_of(rotated))?;
    if file.metadata()?.len() > MOST_BYTES {
        return Ok(());
    }
    let (mut builder, mut at) = (IndexBuilder::default(), 0);
    let (mut lines, mut line) = (BufReader::with_capacity(1 << 20, file), Vec::new());
    loop {
        line.clear();
        let bytes = lines.read_until(b'\n', &mut line)?;
        if bytes == 0 {
            break;
        }
        builder.take(at, line.strip_suffix(b"\n").unwrap_or(&line));
        at += bytes as u64;
    }
    let index = place.index_of(rotated);
    let draft = index.with_extension("index-draft");
    // One that a crash left goes, and so does a link that somebody put there.
    match fs::remove_file(&draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut written = File::create_new(&draft)?;
    written.write_all(&builder.finish(at))?;
    written.sync_all()?;
    fs::rename(draft, index)
}
