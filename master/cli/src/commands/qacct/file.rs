//! Lines of a classic accounting file, accounting(5): 45 fields between colons.

use super::entry::{AccountingEntry, UsageAmounts};
use super::indexed::{self, FoundByIndex};
use super::rotated::AccountingSource;
use crate::exit;
use crate::fail::Fail;
use crate::output;
use flate2::read::MultiGzDecoder;
use proto::accounting::AccountingRecord;
use proto::amount::Millionths;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::{CellId, HostName, JobNumber, QueueName, ReservationId, SubmitSeq, TaskId, TaskKey, UserName};
use proto::time::Wall;
use proto::usage::{FailedCode, Rusage, Usage};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::Path;

/// How many fields a line has.
const FIELDS: usize = proto::accounting::FIELDS.len();

/// Bytes of a plain file that are read at a time.
const READ_BYTES: usize = 256 << 10;

/// Bytes of the longest line that is read.
const LINE_BYTES: usize = 16 << 20;

/// What gzip(1) puts at the begin of a file.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The records that a question is about, as far as a file can be left out or skipped for it.
#[derive(Clone, Debug, Default)]
pub struct WantedRecords {
    /// The numbers of the jobs, if they are all named by number.
    pub jobs: Option<Vec<u32>>,
    /// No record before this time.
    pub begin: Option<Wall>,
    /// No record after this time.
    pub end: Option<Wall>,
    /// Whether the times are those of ends.
    pub by_end: bool,
}

/// Gives the records of a file to `each`: at least those that are wanted. Lines that are none are
/// counted on stderr and passed over.
///
/// # Errors
/// If the file cannot be read.
pub fn read(
    source: &mut AccountingSource,
    wanted: &WantedRecords,
    mut each: impl FnMut(AccountingEntry),
) -> Result<(), Fail> {
    let path = source.path.clone();
    let refuse = |error: io::Error| unreadable(&path, &error);
    let file = source.open().map_err(refuse)?;
    match indexed::find(&file, &path, wanted) {
        FoundByIndex::Entries(entries) => {
            entries.into_iter().for_each(each);
            return Ok(());
        }
        FoundByIndex::Unknown => {}
    }
    let bad = scan(plain_text(file).map_err(refuse)?, &mut each).map_err(refuse)?;
    if bad > 0 {
        output::note(&format!(
            "warning: {}: {bad} lines are no accounting records and were passed over",
            path.display()
        ));
    }
    Ok(())
}

/// The refusal of a file, in the words of 8.1.9.
pub fn unreadable(path: &Path, error: &io::Error) -> Fail {
    output::data("no jobs running since startup\n");
    let what = format!("{}: {}", path.display(), system_text(error));
    Fail::new(exit::FAILED, Diagnostic::new(Code::SystemRefused, what))
}

/// The text of a file, which may be compressed.
fn plain_text(mut file: File) -> io::Result<Box<dyn BufRead>> {
    let mut head = Vec::new();
    (&mut file).take(GZIP.len() as u64).read_to_end(&mut head)?;
    let whole = io::Cursor::new(head.clone()).chain(file);
    Ok(if head == GZIP {
        Box::new(BufReader::new(MultiGzDecoder::new(whole)))
    } else {
        Box::new(BufReader::with_capacity(READ_BYTES, whole))
    })
}

/// Gives each record of a text to `each`. Returns the number of other lines.
fn scan(mut text: impl BufRead, mut each: impl FnMut(AccountingEntry)) -> io::Result<usize> {
    let (mut line, mut bad) = (Vec::new(), 0);
    loop {
        line.clear();
        if (&mut text).take(LINE_BYTES as u64).read_until(b'\n', &mut line)? == 0 {
            return Ok(bad);
        }
        let text = String::from_utf8_lossy(line.strip_suffix(b"\n").unwrap_or(&line));
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        match entry(&text) {
            Some(entry) => each(entry),
            None => bad += 1,
        }
    }
}

/// The entry of one line; none if it has too few fields or a number does not read.
pub fn entry(line: &str) -> Option<AccountingEntry> {
    let fields: Vec<&str> = line.split(':').collect();
    if fields.len() < FIELDS {
        return None;
    }
    let record = record(&fields)?;
    let used = UsageAmounts {
        wallclock_s: scaled(fields[13], 1)?,
        utime_us: rounded(fields[14], 1_000_000)?,
        stime_us: rounded(fields[15], 1_000_000)?,
        cpu_us: rounded(fields[36], 1_000_000)?,
        iow_us: rounded(fields[40], 1_000_000)?,
        ..UsageAmounts::of_record(&record)
    };
    Some(AccountingEntry { record, used })
}

fn record(fields: &[&str]) -> Option<AccountingRecord> {
    let text = |at: usize| fields[at].to_owned();
    let some = |at: usize| Some(text(at)).filter(|text| text != "NONE");
    let number = |at: usize| fields[at].parse::<u64>().ok();
    let wall = |at: usize| fields[at].parse().ok().map(Wall::from_seconds);
    let job_number = fields[5].parse().ok()?;
    let task_number = fields[35].parse().ok()?;
    Some(AccountingRecord {
        // A file does not tell keys: each line stands for itself.
        key: TaskKey {
            cell: CellId(0),
            seq: SubmitSeq(u64::from(job_number)),
            task: TaskId(task_number),
            pe_task: 0,
            attempt: 0,
        },
        queue: QueueName::from(fields[0]),
        host: HostName::new(fields[1]),
        group: text(2),
        owner: UserName::from(fields[3]),
        job_name: text(4),
        job_number: JobNumber(job_number),
        account: text(6),
        priority: fields[7].parse().ok()?,
        submitted: wall(8)?,
        started: wall(9)?,
        ended: wall(10)?,
        failed: FailedCode(fields[11].parse().ok()?),
        reason: String::new(),
        exit_status: fields[12].parse().ok()?,
        wallclock_ms: scaled(fields[13], 1000)?,
        rusage: Rusage {
            utime_ms: rounded(fields[14], 1000)?,
            stime_ms: rounded(fields[15], 1000)?,
            maxrss_kib: scaled(fields[16], 1)?,
            minflt: number(21)?,
            majflt: number(22)?,
            inblock: scaled(fields[24], 1)?,
            oublock: scaled(fields[25], 1)?,
            nvcsw: number(29)?,
            nivcsw: number(30)?,
        },
        project: some(31),
        department: text(32),
        granted_pe: some(33),
        slots: fields[34].parse().ok()?,
        task_number,
        usage: usage(fields)?,
        category: some(39).unwrap_or_default(),
        limit: None,
        maps: Vec::new(),
        pe_task: some(41),
        reservation: reservation(fields),
        deleted_by: None,
        context: BTreeMap::new(),
    })
}

/// The advance reservation of the last two fields; older files do not tell when it was granted.
fn reservation(fields: &[&str]) -> Option<(ReservationId, Wall)> {
    let id = fields.get(43)?.parse().ok().filter(|id| *id > 0)?;
    let granted = fields.get(44).and_then(|seconds| seconds.parse().ok()).unwrap_or(0);
    Some((ReservationId(id), Wall::from_seconds(granted)))
}

fn usage(fields: &[&str]) -> Option<Usage> {
    Some(Usage {
        cpu_ms: rounded(fields[36], 1000)?,
        mem_kib_ms: rounded(fields[37], 1024 * 1024 * 1000)?,
        io_bytes: rounded(fields[38], 1 << 30)?,
        iow_ms: rounded(fields[40], 1000)?,
        maxvmem_bytes: scaled(fields[42], 1)?,
        ..Usage::default()
    })
}

/// A decimal number times `factor`, rounded down.
fn scaled(text: &str, factor: u64) -> Option<u64> {
    times(text, factor, 0)
}

/// A decimal number times `factor`, rounded to the nearest.
fn rounded(text: &str, factor: u64) -> Option<u64> {
    times(text, factor, 500_000)
}

fn times(text: &str, factor: u64, added_millionths: u128) -> Option<u64> {
    if let Ok(whole) = text.parse::<u64>() {
        return whole.checked_mul(factor);
    }
    let value = u128::try_from(Millionths::parse(text).ok()?.0).ok()?;
    u64::try_from((value * u128::from(factor) + added_millionths) / 1_000_000).ok()
}

/// The system's words without its number.
fn system_text(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}
