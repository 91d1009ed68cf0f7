//! The index of an accounting file that gets no more lines: where the records of a job are, and
//! when the records began and ended.
//!
//! The file `NAME.index` lies beside `NAME`. It has a head of [`HEAD_BYTES`] and an entry of
//! [`ENTRY_BYTES`] per record, ordered by job and place, so that a reader finds a job by a few
//! short reads. All numbers are little endian:
//!
//! | bytes | head |
//! |---|---|
//! | 8 | `GWACCT01` |
//! | 8 | length of the accounting file in bytes |
//! | 8 | number of entries |
//! | 4 × 8 | first and last start, first and last end, in seconds since 1970 |
//!
//! An entry is the job number (4 bytes) and the place of its line in the file (8 bytes). An index
//! is a hint: a reader compares each line with the job that it looks for.

use crate::time::Wall;

/// The bytes before the entries.
pub const HEAD_BYTES: usize = 56;

/// The bytes of an entry.
pub const ENTRY_BYTES: usize = 12;

/// The first bytes of an index, with the version of its form.
const MAGIC: &[u8; 8] = b"GWACCT01";

/// The first and the last of some times, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeSpan {
    /// The first.
    pub first_s: i64,
    /// The last.
    pub last_s: i64,
}

impl TimeSpan {
    const NONE: Self = Self {
        first_s: i64::MAX,
        last_s: i64::MIN,
    };

    fn add(&mut self, second: i64) {
        self.first_s = self.first_s.min(second);
        self.last_s = self.last_s.max(second);
    }

    /// Whether one of the times may lie between these two, both included.
    pub fn meets(self, begin: Option<Wall>, end: Option<Wall>) -> bool {
        let from_seconds = |second: i64| second.saturating_mul(1000);
        begin.is_none_or(|begin| from_seconds(self.last_s) >= begin.0)
            && end.is_none_or(|end| from_seconds(self.first_s) <= end.0)
    }
}

/// The head of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexHead {
    /// The length of the accounting file.
    pub file_bytes: u64,
    /// The number of entries.
    pub entries: u64,
    /// When the records began; 0 is the start of one that never started.
    pub starts: TimeSpan,
    /// When they ended.
    pub ends: TimeSpan,
}

impl IndexHead {
    /// Reads the first bytes of an index of `index_bytes` for a file of `file_bytes`. `None` if it
    /// is not the index of such a file.
    pub fn parse(bytes: &[u8; HEAD_BYTES], index_bytes: u64, file_bytes: u64) -> Option<Self> {
        let (magic, numbers) = bytes.split_first_chunk::<8>()?;
        let mut numbers = numbers.chunks_exact(8).filter_map(|chunk| chunk.try_into().ok());
        let mut next = || numbers.next().map(u64::from_le_bytes);
        let (found_bytes, entries) = (next()?, next()?);
        let mut time = || next().map(u64::cast_signed);
        let mut span = || {
            Some(TimeSpan {
                first_s: time()?,
                last_s: time()?,
            })
        };
        let head = Self {
            file_bytes: found_bytes,
            entries,
            starts: span()?,
            ends: span()?,
        };
        let length = entries
            .checked_mul(ENTRY_BYTES as u64)
            .and_then(|bytes| bytes.checked_add(HEAD_BYTES as u64));
        let is_whole = magic == MAGIC && found_bytes == file_bytes && length == Some(index_bytes);
        is_whole.then_some(head)
    }
}

/// The job and the place of an entry.
pub fn entry(bytes: [u8; ENTRY_BYTES]) -> (u32, u64) {
    let [a, b, c, d, place @ ..] = bytes;
    (u32::from_le_bytes([a, b, c, d]), u64::from_le_bytes(place))
}

/// An index that is being made from the lines of a file.
#[derive(Debug)]
pub struct IndexBuilder {
    places: Vec<(u32, u64)>,
    starts: TimeSpan,
    ends: TimeSpan,
}

impl Default for IndexBuilder {
    fn default() -> Self {
        Self {
            places: Vec::new(),
            starts: TimeSpan::NONE,
            ends: TimeSpan::NONE,
        }
    }
}

impl IndexBuilder {
    /// Takes the line that begins at a place. Comments and lines that are no records are left out,
    /// as `qacct` leaves them out.
    pub fn take(&mut self, place: u64, line: &[u8]) {
        let Some((job, started, ended)) = facts(line) else {
            return;
        };
        self.places.push((job, place));
        self.starts.add(started);
        self.ends.add(ended);
    }

    /// Returns the bytes of the index of a file of that length.
    pub fn finish(mut self, file_bytes: u64) -> Vec<u8> {
        self.places.sort_unstable();
        let mut bytes = Vec::with_capacity(HEAD_BYTES + self.places.len() * ENTRY_BYTES);
        bytes.extend(MAGIC);
        bytes.extend(file_bytes.to_le_bytes());
        bytes.extend((self.places.len() as u64).to_le_bytes());
        for span in [self.starts, self.ends] {
            bytes.extend(span.first_s.to_le_bytes());
            bytes.extend(span.last_s.to_le_bytes());
        }
        for (job, place) in self.places {
            bytes.extend(job.to_le_bytes());
            bytes.extend(place.to_le_bytes());
        }
        bytes
    }
}

/// The job number, start and end of a line.
fn facts(line: &[u8]) -> Option<(u32, i64, i64)> {
    if line.starts_with(b"#") {
        return None;
    }
    let mut fields = line.split(|byte| *byte == b':');
    let mut number = |skipped| std::str::from_utf8(fields.nth(skipped)?).ok()?.parse::<i64>().ok();
    let job = u32::try_from(number(5)?).ok()?;
    Some((job, number(3)?, number(0)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: [&str; 4] = [
        "all.q:vm:u1:u1:run1:7:sge:0:100:110:120:0:0",
        "# a comment:::::::::::",
        "all.q:vm:u1:u1:run1:3:sge:0:100:0:0:26:0",
        "all.q:vm:u1:u1:run1:7:sge:0:100:130:190:0:0",
    ];

    fn index() -> (Vec<u8>, u64) {
        let (mut builder, mut place) = (IndexBuilder::default(), 0);
        for line in LINES {
            builder.take(place, line.as_bytes());
            place += line.len() as u64 + 1;
        }
        (builder.finish(place), place)
    }

    fn head(bytes: &[u8], file_bytes: u64) -> Option<IndexHead> {
        IndexHead::parse(bytes.first_chunk()?, bytes.len() as u64, file_bytes)
    }

    #[test]
    fn records_are_found_by_job_and_place() {
        let (bytes, file_bytes) = index();
        let entries: Vec<(u32, u64)> = bytes[HEAD_BYTES..]
            .chunks_exact(ENTRY_BYTES)
            .map(|chunk| entry(chunk.try_into().unwrap()))
            .collect();
        let third = (LINES[0].len() + LINES[1].len() + 2) as u64;
        let fourth = third + LINES[2].len() as u64 + 1;
        assert_eq!(entries, [(3, third), (7, 0), (7, fourth)]);
        let head = head(&bytes, file_bytes).unwrap();
        assert_eq!(
            (head.entries, head.starts.first_s, head.starts.last_s, head.ends.last_s),
            (3, 0, 130, 190)
        );
    }

    #[test]
    fn an_index_of_another_file_or_that_is_cut_off_is_none() {
        let (bytes, file_bytes) = index();
        assert!(head(&bytes, file_bytes + 1).is_none());
        assert!(head(&bytes[..bytes.len() - 1], file_bytes).is_none());
        let mut other = bytes;
        other[7] = b'2';
        assert!(head(&other, file_bytes).is_none());
    }

    #[test]
    fn a_span_meets_periods_that_touch_it() {
        let span = TimeSpan {
            first_s: 10,
            last_s: 20,
        };
        let at = |second: i64| Some(Wall::from_seconds(second));
        for (begin, end, expected) in [
            (None, None, true),
            (at(20), None, true),
            (at(21), None, false),
            (None, at(10), true),
            (None, at(9), false),
            (at(12), at(13), true),
        ] {
            assert_eq!(span.meets(begin, end), expected, "{begin:?} {end:?}");
        }
        assert!(
            !TimeSpan::NONE.meets(at(0), at(1)),
            "a file without records has no times"
        );
    }
}
