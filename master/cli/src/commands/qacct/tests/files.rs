//! Accounting files as they lie on the disk: turned over, compressed, with and without an index.

use super::{LINES, selection};
use crate::commands::ask::Format;
use crate::commands::qacct::archive::Archive;
use crate::commands::qacct::{file, rotated};
use flate2::Compression;
use flate2::write::GzEncoder;
use proto::accounting::index::IndexBuilder;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory of a test's own, removed with it.
struct FilesDir(PathBuf);

impl FilesDir {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("gridwright-qacct-{}-{count}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes lines of jobs with these numbers, each with a start at that second.
    fn write(&self, name: &str, records: &[(u32, u64)]) -> &Self {
        let text: String = records.iter().map(|(job, start)| line(*job, *start)).collect();
        std::fs::write(self.path(name), text).unwrap();
        self
    }

    fn compress(&self, name: &str) -> &Self {
        let text = std::fs::read(self.path(name)).unwrap();
        // Two members, as `cat a.gz b.gz` makes them.
        let mut packed = Vec::new();
        for part in [&text[..7], &text[7..]] {
            let mut encoder = GzEncoder::new(&mut packed, Compression::fast());
            encoder.write_all(part).unwrap();
            encoder.finish().unwrap();
        }
        std::fs::write(self.path(&format!("{name}.gz")), packed).unwrap();
        std::fs::remove_file(self.path(name)).unwrap();
        self
    }

    /// Makes the index of a file as the master does.
    fn index(&self, name: &str) -> &Self {
        let text = std::fs::read_to_string(self.path(name)).unwrap();
        let (mut builder, mut place) = (IndexBuilder::default(), 0);
        for line in text.lines() {
            builder.take(place, line.as_bytes());
            place += line.len() as u64 + 1;
        }
        std::fs::write(self.path(&format!("{name}.index")), builder.finish(place)).unwrap();
        self
    }
}

impl Drop for FilesDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn line(job: u32, start: u64) -> String {
    let mut fields: Vec<String> = LINES[1].split(':').map(str::to_owned).collect();
    (fields[5], fields[9], fields[10]) = (job.to_string(), start.to_string(), (start + 5).to_string());
    fields.join(":") + "\n"
}

/// The jobs that are read for a command line, with `-rotated`.
fn jobs(path: &Path, line: &str) -> Vec<u32> {
    let wanted = selection(line).wanted();
    let mut found = Vec::new();
    for mut source in rotated::family(path).unwrap() {
        file::read(&mut source, &wanted, |entry| found.push(entry.record.job_number.0)).unwrap();
    }
    found
}

#[test]
fn files_are_read_from_the_oldest_to_the_newest_whoever_turned_them_over() {
    let dir = FilesDir::new();
    dir.write("accounting", &[(9, 900)])
        .write("accounting.0", &[(8, 800)])
        .write("accounting.1", &[(7, 700)])
        .write("accounting.10", &[(6, 600)])
        .compress("accounting.10")
        .write("accounting-20261101", &[(1, 100), (2, 200)])
        .compress("accounting-20261101")
        .write("accounting-20261126-0002", &[(5, 500)])
        .write("accounting-20261126-0001", &[(3, 300), (4, 400)])
        .index("accounting-20261126-0001")
        .write("accounting.jsonl", &[(99, 1)])
        .write("accounting.old", &[(98, 1)]);
    assert_eq!(jobs(&dir.path("accounting"), ""), [1, 2, 3, 4, 5, 6, 7, 8, 9]);
}

#[test]
fn a_file_with_two_names_is_read_once() {
    let dir = FilesDir::new();
    dir.write("accounting", &[(1, 100)]);
    std::fs::hard_link(dir.path("accounting"), dir.path("accounting-20261126-0001")).unwrap();
    std::fs::create_dir(dir.path("common")).unwrap();
    std::os::unix::fs::symlink("../accounting", dir.path("common/accounting")).unwrap();
    assert_eq!(jobs(&dir.path("accounting"), ""), [1]);
    dir.write("accounting-20261125-0001", &[(2, 50)]);
    assert_eq!(
        jobs(&dir.path("common/accounting"), ""),
        [2, 1],
        "beside the file itself"
    );
    assert!(rotated::has_family(&dir.path("common/accounting")));
}

#[test]
fn an_index_finds_jobs_and_leaves_out_files_of_other_times() {
    let dir = FilesDir::new();
    dir.write("accounting-20261126-0001", &[(3, 300), (7, 310), (3, 320)])
        .index("accounting-20261126-0001")
        .write("accounting", &[(4, 400)]);
    let path = dir.path("accounting");
    assert_eq!(jobs(&path, "-j 3"), [3, 3, 4], "what is read is looked through later");
    assert_eq!(jobs(&path, "-j 7,3"), [3, 7, 3, 4], "in the order of the file");
    assert_eq!(jobs(&path, "-j 5"), [4]);
    assert_eq!(jobs(&path, "-j 3,x100*"), [3, 7, 3, 4], "names need all lines");
    assert_eq!(jobs(&path, "-b 203001010000"), [4]);
    assert_eq!(jobs(&path, "-e 202001010000"), [3, 7, 3, 4]);
}

#[test]
fn an_index_that_does_not_fit_is_not_believed() {
    let dir = FilesDir::new();
    dir.write("accounting-20261126-0001", &[(3, 300), (7, 310)])
        .index("accounting-20261126-0001")
        .write("accounting-20261126-0001", &[(7, 300), (3, 310)])
        .write("accounting", &[]);
    let path = dir.path("accounting");
    assert_eq!(jobs(&path, "-j 3"), [7, 3], "its places have other jobs");
    dir.write("accounting-20261126-0001", &[(7, 300), (3, 310), (3, 320)]);
    assert_eq!(jobs(&path, "-j 3"), [7, 3, 3], "the file is longer");
    std::fs::write(dir.path("accounting-20261126-0001.index"), b"GWACCT01").unwrap();
    assert_eq!(jobs(&path, "-j 3"), [7, 3, 3], "it is cut off");
}

#[test]
fn a_file_compressed_by_something_else_is_refused() {
    let dir = FilesDir::new();
    dir.write("accounting", &[(1, 1)]).write("accounting.1.xz", &[(2, 2)]);
    let refused = rotated::family(&dir.path("accounting")).unwrap_err();
    assert!(
        refused.diagnostic.to_string().contains("accounting.1.xz"),
        "{refused:?}"
    );
}

#[test]
fn a_file_that_was_turned_over_meanwhile_is_noticed() {
    let dir = FilesDir::new();
    dir.write("accounting", &[(2, 2)]).write("accounting.1", &[(1, 1)]);
    let mut sources = rotated::family(&dir.path("accounting")).unwrap();
    std::fs::rename(dir.path("accounting.1"), dir.path("accounting.2")).unwrap();
    dir.write("accounting.1", &[(2, 2)]);
    assert!(sources[0].open().is_err());
    std::fs::remove_file(dir.path("accounting.1")).unwrap();
    assert!(sources[0].open().is_err());
    assert!(sources[1].open().is_ok(), "it was opened before");
}

#[test]
fn an_archive_is_a_file_that_qacct_reads_and_replaces_none() {
    let dir = FilesDir::new();
    let path = dir.path("old.acct");
    let name = path.to_str().unwrap();
    let entries = super::entries();
    let archive = |format| {
        let mut archive = Archive::begin(name, format).unwrap();
        entries.iter().for_each(|entry| archive.add(entry));
        archive.finish().unwrap()
    };
    assert_eq!(archive(Format::Text), LINES.len());
    assert_eq!(jobs(&path, ""), [1, 205, 12, 12]);
    assert!(Archive::begin(name, Format::Text).is_err(), "it exists");
    std::fs::remove_file(&path).unwrap();
    assert_eq!(archive(Format::Json), LINES.len());
    let text = std::fs::read_to_string(&path).unwrap();
    let first: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&first["job_number"], &first["wallclock_ms"]),
        (&1.into(), &253_000.into())
    );
    std::fs::remove_file(&path).unwrap();
    drop(Archive::begin(name, Format::Text).unwrap());
    assert_eq!(std::fs::read_dir(&dir.0).unwrap().count(), 0, "a draft is removed");
}
