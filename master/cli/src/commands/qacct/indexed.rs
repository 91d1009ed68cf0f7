//! Records of a file that was put aside, by the index beside it (`proto::accounting::index`): a job
//! costs a few short reads, and a file of another time none.

use super::entry::AccountingEntry;
use super::file::{self, WantedRecords};
use proto::accounting::index::{self, ENTRY_BYTES, HEAD_BYTES, IndexHead};
use std::fs::File;
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// Bytes of the longest line that is read.
const LINE_BYTES: usize = 16 << 20;

/// What the index of a file says.
pub enum FoundByIndex {
    /// All records of the file that are wanted.
    Entries(Vec<AccountingEntry>),
    /// Nothing: the file has to be read.
    Unknown,
}

/// Looks for records by index. A file without an index, or with one that does not fit it, is to be
/// read.
pub fn find(file: &File, path: &Path, wanted: &WantedRecords) -> FoundByIndex {
    match find_entries(file, path, wanted) {
        Ok(Some(entries)) => FoundByIndex::Entries(entries),
        Ok(None) | Err(_) => FoundByIndex::Unknown,
    }
}

fn find_entries(file: &File, path: &Path, wanted: &WantedRecords) -> io::Result<Option<Vec<AccountingEntry>>> {
    let mut name = path.as_os_str().to_owned();
    name.push(".index");
    let index = File::open(&name)?;
    let mut head = [0; HEAD_BYTES];
    index.read_exact_at(&mut head, 0)?;
    let Some(head) = IndexHead::parse(&head, index.metadata()?.len(), file.metadata()?.len()) else {
        return Ok(None);
    };
    let times = if wanted.by_end { head.ends } else { head.starts };
    if !times.meets(wanted.begin, wanted.end) {
        return Ok(Some(Vec::new()));
    }
    let Some(jobs) = &wanted.jobs else { return Ok(None) };
    let mut places = Vec::new();
    for job in jobs {
        places_of(&index, &head, *job, &mut places)?;
    }
    // As the file has them.
    places.sort_unstable_by_key(|(_, place)| *place);
    places.dedup();
    places.into_iter().map(|(job, place)| entry(file, job, place)).collect()
}

/// Adds the places of the records of a job.
fn places_of(index: &File, head: &IndexHead, job: u32, places: &mut Vec<(u32, u64)>) -> io::Result<()> {
    let (mut low, mut high) = (0, head.entries);
    while low < high {
        let middle = low + (high - low) / 2;
        if entry_at(index, middle)?.0 < job {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    let mut entries = BufReader::new(index);
    entries.seek(SeekFrom::Start(HEAD_BYTES as u64 + low * ENTRY_BYTES as u64))?;
    for _ in low..head.entries {
        let mut bytes = [0; ENTRY_BYTES];
        entries.read_exact(&mut bytes)?;
        let (found, place) = index::entry(bytes);
        if found != job {
            break;
        }
        places.push((job, place));
    }
    Ok(())
}

fn entry_at(index: &File, number: u64) -> io::Result<(u32, u64)> {
    let mut bytes = [0; ENTRY_BYTES];
    index.read_exact_at(&mut bytes, HEAD_BYTES as u64 + number * ENTRY_BYTES as u64)?;
    Ok(index::entry(bytes))
}

/// The record at a place. `None` if it is not one of that job: the index is not of this file.
fn entry(file: &File, job: u32, place: u64) -> io::Result<Option<AccountingEntry>> {
    let (mut line, mut chunk) = (Vec::new(), [0; 1024]);
    // Other readers of the file keep their place in it.
    while !line.contains(&b'\n') && line.len() < LINE_BYTES {
        let count = file.read_at(&mut chunk, place + line.len() as u64)?;
        if count == 0 {
            break;
        }
        line.extend(&chunk[..count]);
    }
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let text = String::from_utf8_lossy(line);
    Ok(file::entry(&text).filter(|entry| entry.record.job_number.0 == job))
}
