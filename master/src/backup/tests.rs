//! Backups that are restored, damaged, and made to do harm.

use super::restore::{Moment, restore};
use super::*;
use crate::init::{Plan, init};
use crate::testing::{TempDir, ended_task};
use lz4_flex::frame::{FrameDecoder, FrameEncoder};
use proto::id::{EventSeq, HostName, UserName};
use proto::limit::VmemMeaning;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use tar::{Builder, EntryType, Header};

fn cell(dir: &TempDir) -> PathBuf {
    let plan = Plan {
        dir: dir.path().join("cell"),
        port: 7_000,
        slots: 3,
        host: HostName::new("node1"),
        user: UserName::from("ann"),
        vmem: VmemMeaning::Address,
    };
    init(&plan).unwrap();
    std::fs::write(plan.dir.join("etc/root-commands"), "/bin/true\n").unwrap();
    std::fs::set_permissions(
        plan.dir.join("etc/root-commands"),
        std::fs::Permissions::from_mode(0o600),
    )
    .unwrap();
    std::fs::write(plan.dir.join("etc/directory"), "inode 1\n").unwrap();
    plan.dir
}

fn backup_of(cell: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    backup(cell, &mut bytes, 1_800_000_000_000).unwrap();
    bytes
}

fn restored(dir: &Path, bytes: &[u8], moment: Moment) -> Result<String, BackupError> {
    restore(dir, bytes, moment, &UserName::from("ann"))
}

fn state_of(dir: &Path) -> State {
    replay(&Store::open(&Layout::new(dir).database()).unwrap())
        .unwrap()
        .state
}

#[test]
fn a_restored_cell_is_the_one_that_was_saved_with_a_later_epoch() {
    let dir = TempDir::new("backup");
    let (from, to) = (cell(&dir), dir.path().join("restored"));
    let bytes = backup_of(&from);
    let report = restored(&to, &bytes, Moment::Newest).unwrap();
    let (old, new) = (state_of(&from), state_of(&to));
    assert!(new.cell == old.cell && new.epoch > old.epoch, "{report}");
    assert_eq!((new.jobs, new.certificates), (old.jobs, old.certificates));
    for name in [
        "master/ca.key",
        "master/tickets.key",
        "agent/host.key",
        "etc/root-commands",
        "etc/cell.toml",
    ] {
        let read = |dir: &Path| {
            let path = dir.join(name);
            let mode = path.metadata().unwrap().permissions().mode();
            (std::fs::read(path).unwrap(), mode)
        };
        assert_eq!(read(&from), read(&to), "{name}");
    }
    assert!(!to.join("etc/directory").exists() && to.join("default/common/accounting").exists());
    let left = std::fs::read_dir(from.join("master")).unwrap();
    let copies = left.filter(|entry| {
        entry
            .as_ref()
            .unwrap()
            .file_name()
            .to_string_lossy()
            .starts_with("backup-")
    });
    assert_eq!(copies.count(), 0);
    let used = restored(&to, &bytes, Moment::Newest).unwrap_err().to_string();
    assert!(used.contains("is in use"), "{used}");
}

#[test]
fn a_cell_is_restored_as_it_was_after_an_event_or_at_a_time() {
    let dir = TempDir::new("backup");
    let from = cell(&dir);
    let last = state_of(&from).last;
    let bytes = backup_of(&from);
    let at = |name: &str, moment| {
        let to = dir.path().join(name);
        restored(&to, &bytes, moment).map(|_| state_of(&to))
    };
    let earlier = at("earlier", Moment::Event(EventSeq(last.0 - 1))).unwrap();
    assert!(
        earlier.certificates.is_empty(),
        "the last event of a new cell is its certificate"
    );
    let late = proto::time::Wall(i64::MAX);
    let same = at("time", Moment::Time(late)).unwrap();
    assert_eq!(same.certificates.len(), 1);
    for (name, moment) in [
        ("later", Moment::Event(EventSeq(last.0 + 1))),
        ("none", Moment::Event(EventSeq(0))),
        ("before", Moment::Time(proto::time::Wall(0))),
    ] {
        let refused = at(name, moment).unwrap_err();
        assert!(matches!(refused, BackupError::NoSuchMoment { .. }), "{name}: {refused}");
        assert!(!dir.path().join(name).exists(), "{name}");
    }
}

#[test]
fn whatever_byte_is_damaged_or_missing_no_cell_is_made() {
    let dir = TempDir::new("backup");
    let (bytes, to) = (backup_of(&cell(&dir)), dir.path().join("restored"));
    let refused = |bytes: &[u8], what: &str| {
        let error = restored(&to, bytes, Moment::Newest).expect_err(what);
        assert!(error.to_string().contains("backup is damaged"), "{what}: {error}");
        assert!(!to.exists(), "{what}");
    };
    let step = bytes.len() / 40;
    for at in (0..40).map(|part| part * step) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        refused(&damaged, &format!("byte {at}"));
        refused(&bytes[..at], &format!("cut off at {at}"));
    }
    for missing in 1..=40 {
        refused(&bytes[..bytes.len() - missing], &format!("without its last {missing}"));
    }
    refused(&[bytes.as_slice(), b"more"].concat(), "with more behind it");
}

/// An entry of an archive that somebody wrote by hand.
struct ForgedEntry<'a> {
    kind: EntryType,
    path: &'a str,
    link: &'a str,
    content: &'a [u8],
}

fn forged(manifest: &Manifest, entries: &[ForgedEntry<'_>]) -> Vec<u8> {
    let text = serde_json::to_vec(manifest).unwrap();
    let first = ForgedEntry {
        kind: EntryType::Regular,
        path: MANIFEST,
        link: "",
        content: &text,
    };
    let mut archive = Builder::new(FrameEncoder::new(Vec::new()));
    for entry in std::iter::once(&first).chain(entries) {
        let mut header = Header::new_gnu();
        header.set_entry_type(entry.kind);
        header.set_size(entry.content.len() as u64);
        header.set_mode(0o6777);
        header.as_gnu_mut().unwrap().name[..entry.path.len()].copy_from_slice(entry.path.as_bytes());
        header.as_gnu_mut().unwrap().linkname[..entry.link.len()].copy_from_slice(entry.link.as_bytes());
        header.set_cksum();
        archive.append(&header, entry.content).unwrap();
    }
    [archive.into_inner().unwrap().finish().unwrap(), archive::END.to_vec()].concat()
}

fn manifest_of(bytes: &[u8]) -> Manifest {
    let mut archive = tar::Archive::new(FrameDecoder::new(bytes));
    let mut entry = archive.entries().unwrap().next().unwrap().unwrap();
    let mut text = Vec::new();
    entry.read_to_end(&mut text).unwrap();
    serde_json::from_slice(&text).unwrap()
}

#[test]
fn an_archive_that_somebody_forged_writes_nothing_outside() {
    let dir = TempDir::new("backup");
    let (real, to) = (manifest_of(&backup_of(&cell(&dir))), dir.path().join("restored"));
    let refused = |manifest: &Manifest, entries: &[ForgedEntry<'_>], expected: &str| {
        let error = restored(&to, &forged(manifest, entries), Moment::Newest)
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected), "{expected}: {error}");
        assert!(!to.exists(), "{expected}");
    };
    for path in [
        "../../evil",
        "/etc/evil",
        "etc/../../evil",
        "etc/.hidden",
        "etc/directory",
        "tasks/1",
        "etc/a/b",
    ] {
        let mut evil = real.clone();
        evil.files[1].path = path.to_owned();
        refused(&evil, &[], "no backup holds");
    }
    let mut twice = real.clone();
    twice.files.push(twice.files[1].clone());
    refused(&twice, &[], "twice");
    let mut large = real.clone();
    large.files[1].bytes = 1 << 40;
    refused(&large, &[], "bytes");
    let mut vast = real.clone();
    vast.files[0].bytes = 1 << 60;
    let no_room = restored(&to, &forged(&vast, &[]), Moment::Newest).unwrap_err();
    assert!(
        matches!(no_room, BackupError::Unwritable { .. }) && !to.exists(),
        "{no_room}"
    );
    let mut keyless = real.clone();
    keyless.files.retain(|file| file.path != "master/ca.key");
    refused(&keyless, &[], "it has no master/ca.key");
    let entry = |kind, path, link| ForgedEntry {
        kind,
        path,
        link,
        content: b"",
    };
    let mut linked = real.clone();
    linked.files[0].bytes = 0;
    refused(
        &linked,
        &[entry(EntryType::Symlink, DATABASE, "/etc/passwd")],
        "not an ordinary file",
    );
    refused(
        &linked,
        &[entry(EntryType::Link, DATABASE, "/etc/passwd")],
        "not an ordinary file",
    );
    refused(&real, &[entry(EntryType::Regular, "../evil", "")], "stands where");
    refused(
        &real,
        &[entry(EntryType::Regular, DATABASE, "")],
        "has 0 bytes in place of",
    );
    assert!(!dir.path().join("evil").exists());
}

#[test]
fn records_of_accounting_are_cut_with_their_events() {
    let dir = TempDir::new("backup");
    let mut store = Store::create(&dir.path().join("state.db")).unwrap();
    let ends: Vec<_> = (1..=10).map(|seq| ended_task(seq, seq, 1)).collect();
    ends.chunks(4).for_each(|run| store.append(run).unwrap());
    for last in [9, 6, 4, 1] {
        store.cut_after(EventSeq(last)).unwrap();
        let mut kept = Vec::new();
        store.replay(EventSeq(0), |record| kept.push(record)).unwrap();
        assert_eq!(kept, ends[..usize::try_from(last).unwrap()]);
        let mut rows = Vec::new();
        let each = |row: Result<crate::store::AccountingRow, _>| {
            rows.push(row.unwrap().seq.0);
            true
        };
        store.accounting(EventSeq(0), None, each).unwrap();
        assert_eq!(rows, (1..=last).collect::<Vec<_>>());
    }
    assert!(matches!(store.cut_after(EventSeq(0)), Ok(())));
}

#[test]
fn an_older_backup_that_is_restored_later_has_the_later_epoch() {
    let dir = TempDir::new("backup");
    let older = backup_of(&cell(&dir));
    let restored_as = |name: &str, bytes: &[u8]| {
        let to = dir.path().join(name);
        restored(&to, bytes, Moment::Newest).unwrap();
        to
    };
    let first = restored_as("first", &older);
    let second = restored_as("second", &backup_of(&first));
    let third = restored_as("third", &older);
    let epoch = |dir: &Path| state_of(dir).epoch;
    assert!(epoch(&first) < epoch(&second) && epoch(&second) <= epoch(&third));
}

/// A backup whose bytes come only after somebody else has made a cell in the directory.
struct LateBytes<'a> {
    bytes: &'a [u8],
    plan: Option<Plan>,
}

impl io::Read for LateBytes<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if let Some(plan) = self.plan.take() {
            init(&plan).unwrap();
        }
        self.bytes.read(into)
    }
}

#[test]
fn a_cell_that_is_made_meanwhile_is_kept() {
    let dir = TempDir::new("backup");
    let (bytes, to) = (backup_of(&cell(&dir)), dir.path().join("restored"));
    let late = LateBytes {
        bytes: &bytes,
        plan: Some(Plan {
            dir: to.clone(),
            port: 7_001,
            slots: 1,
            host: HostName::new("node2"),
            user: UserName::from("ann"),
            vmem: VmemMeaning::Address,
        }),
    };
    let refused = restore(&to, late, Moment::Newest, &UserName::from("ann")).unwrap_err();
    assert!(matches!(refused, BackupError::InUse { .. }), "{refused}");
    let other = crate::config::CellConfig::read(&to.join("etc/cell.toml")).unwrap();
    assert_eq!((other.port, state_of(&to).cell), (7_001, other.cell));
    assert!(to.join("master/ca.key").exists());
    let names = std::fs::read_dir(&to).unwrap();
    let left = names.filter(|entry| {
        entry
            .as_ref()
            .unwrap()
            .file_name()
            .to_string_lossy()
            .starts_with("restored.")
    });
    assert_eq!(left.count(), 0);
}
