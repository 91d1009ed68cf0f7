//! The archive of a backup: written in one go, read with bounds against one that somebody made to
//! do harm.

use super::gather::{CELL_FILES, DatabaseCopy, HOST_FILES, SETTINGS_FILES, SMALL_BYTES, SmallFile, is_setting};
use super::{ArchivedFile, BackupError, DATABASE, FORMAT, MANIFEST, Manifest};
use crate::digest::Hasher;
use lz4_flex::frame::{BlockSize, FrameDecoder, FrameEncoder, FrameInfo};
use std::collections::{BTreeSet, VecDeque};
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use tar::{Archive, Builder, Entry, EntryType, Header};

/// The most bytes of a manifest.
const MANIFEST_BYTES: u64 = 1 << 20;

/// The most bytes behind the last file.
const END_BYTES: u64 = 1 << 20;

/// What follows the frame: another frame of LZ4's, of the kind that decoders pass over. An archive
/// that was cut off does not end so.
pub(super) const END: &[u8; 16] = b"\x50\x2a\x4d\x18\x08\x00\x00\x00the end\n";

/// The most bytes that are read at once.
const READ_BYTES: usize = 256 << 10;

/// Writes an archive.
///
/// # Errors
/// The files cannot be read, or `to` takes no more.
pub fn write(to: impl Write, manifest: &Manifest, database: &DatabaseCopy, small: &[SmallFile]) -> io::Result<()> {
    let info = FrameInfo::new()
        .block_size(BlockSize::Max256KB)
        .block_checksums(true)
        .content_checksum(true);
    let mut archive = Builder::new(FrameEncoder::with_frame_info(info, BufWriter::new(to)));
    let text = serde_json::to_vec_pretty(manifest)?;
    let first = ArchivedFile {
        path: MANIFEST.to_owned(),
        mode: 0o600,
        uid: 0,
        bytes: text.len() as u64,
        sha256: String::new(),
    };
    append(&mut archive, manifest, &first, text.as_slice())?;
    for file in &manifest.files {
        match small.iter().find(|small| small.path == file.path) {
            Some(small) => append(&mut archive, manifest, file, small.content.as_slice())?,
            None => append(&mut archive, manifest, file, File::open(database.path())?)?,
        }
    }
    let mut to = archive.into_inner()?.finish().map_err(io::Error::other)?;
    to.write_all(END)?;
    to.flush()
}

fn append(
    to: &mut Builder<impl Write>,
    manifest: &Manifest,
    file: &ArchivedFile,
    content: impl Read,
) -> io::Result<()> {
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::Regular);
    header.set_size(file.bytes);
    header.set_mode(file.mode);
    header.set_uid(file.uid.into());
    header.set_gid(0);
    header.set_mtime(manifest.written_ms.unsigned_abs() / 1_000);
    to.append_data(&mut header, &file.path, content.take(file.bytes))
}

/// Reads the manifest, then gives each file to `take`, with its content. `take` reads all of it.
///
/// # Errors
/// The archive is not one that [`write()`] wrote; the message names the file. `take` fails.
pub fn read(
    from: impl Read,
    begin: impl FnOnce(&Manifest) -> Result<(), BackupError>,
    mut take: impl FnMut(&ArchivedFile, &mut dyn Read) -> Result<(), BackupError>,
) -> Result<Manifest, BackupError> {
    let mut held_back = HeldBackReader::new(from);
    let mut archive = Archive::new(FrameDecoder::new(&mut held_back));
    // In raw form: neither links nor the long names and attributes of extensions are looked at.
    let mut entries = archive.entries().map_err(BackupError::Broken)?.raw(true);
    let mut next = |expected: &str| match entries.next() {
        None => Err(BackupError::Damaged(format!("it ends before {expected}"))),
        Some(entry) => entry.map_err(BackupError::Broken),
    };
    let manifest = manifest(next(MANIFEST)?)?;
    begin(&manifest)?;
    for file in &manifest.files {
        let mut entry = next(&file.path)?;
        check_header(&entry, &file.path, file.bytes)?;
        let mut content = CheckedContent {
            from: &mut entry,
            hasher: Hasher::new(),
        };
        take(file, &mut content)?;
        if content.hasher.finish() != file.sha256 {
            return Err(BackupError::Damaged(format!("{} has another checksum", file.path)));
        }
    }
    // The checksum of the frame is behind the last entry.
    let mut rest = archive.into_inner().take(END_BYTES);
    if io::copy(&mut rest, &mut io::sink()).map_err(BackupError::Broken)? == END_BYTES {
        return Err(BackupError::Damaged("more follows its last file".to_owned()));
    }
    // The decoder takes a frame without its end for a whole one.
    if !held_back.ends_as_written() {
        return Err(BackupError::Damaged("its last bytes are missing".to_owned()));
    }
    Ok(manifest)
}

fn manifest(entry: Entry<'_, impl Read>) -> Result<Manifest, BackupError> {
    let bytes = entry.size();
    check_header(&entry, MANIFEST, bytes)?;
    if bytes > MANIFEST_BYTES {
        return Err(BackupError::Damaged(format!("its manifest has {bytes} bytes")));
    }
    let mut text = Vec::new();
    let mut entry = entry;
    entry.read_to_end(&mut text).map_err(BackupError::Broken)?;
    let manifest: Manifest = serde_json::from_slice(&text)
        .map_err(|error| BackupError::Damaged(format!("its manifest cannot be read: {error}")))?;
    check_manifest(&manifest)?;
    Ok(manifest)
}

/// Nothing but the files that a backup has, each once, with sizes that they can have.
fn check_manifest(manifest: &Manifest) -> Result<(), BackupError> {
    let refuse = |why: String| Err(BackupError::Damaged(why));
    if manifest.format != FORMAT {
        return refuse(format!("its form is {}, this version reads {FORMAT}", manifest.format));
    }
    let most = SETTINGS_FILES + HOST_FILES.len() + CELL_FILES.len() + 1;
    if manifest.files.len() > most {
        return refuse(format!(
            "it names {} files, a backup has {most} at most",
            manifest.files.len()
        ));
    }
    let mut names = BTreeSet::new();
    for file in &manifest.files {
        if !is_of_a_backup(&file.path) {
            return refuse(format!("no backup holds {:?}", file.path));
        }
        if !names.insert(file.path.as_str()) {
            return refuse(format!("it names {} twice", file.path));
        }
        if file.path != DATABASE && file.bytes > SMALL_BYTES {
            return refuse(format!("{} has {} bytes", file.path, file.bytes));
        }
    }
    for needed in [
        DATABASE,
        "etc/cell.toml",
        "etc/master.toml",
        "master/ca.key",
        "master/ca.crt",
    ] {
        if !names.contains(needed) {
            return refuse(format!("it has no {needed}"));
        }
    }
    Ok(())
}

fn is_of_a_backup(path: &str) -> bool {
    match path.split_once('/') {
        Some(("etc", name)) => is_setting(name),
        Some(("agent", name)) => HOST_FILES.contains(&name),
        Some(("master", name)) => path == DATABASE || CELL_FILES.contains(&name),
        Some(_) | None => false,
    }
}

fn check_header(entry: &Entry<'_, impl Read>, path: &str, bytes: u64) -> Result<(), BackupError> {
    let found = entry.path_bytes();
    let refuse = |why: String| Err(BackupError::Damaged(why));
    if *found != *path.as_bytes() {
        let found = String::from_utf8_lossy(&found);
        return refuse(format!("{found:?} stands where {path} has to be"));
    }
    if entry.header().entry_type() != EntryType::Regular {
        return refuse(format!("{path} is not an ordinary file"));
    }
    if entry.size() != bytes {
        return refuse(format!("{path} has {} bytes in place of {bytes}", entry.size()));
    }
    Ok(())
}

/// A reader that keeps the last [`END`]-many bytes back: they are what [`write()`] put behind the
/// frame, if nothing is missing.
struct HeldBackReader<R> {
    from: R,
    held: VecDeque<u8>,
}

impl<R: Read> HeldBackReader<R> {
    const fn new(from: R) -> Self {
        Self {
            from,
            held: VecDeque::new(),
        }
    }

    fn ends_as_written(&self) -> bool {
        self.held.iter().eq(END)
    }
}

impl<R: Read> Read for HeldBackReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let wanted = self.held.len() + into.len();
        let mut more = vec![0; wanted.min(READ_BYTES)];
        while self.held.len() <= END.len() {
            match self.from.read(&mut more)? {
                0 => return Ok(0),
                count => self.held.extend(&more[..count]),
            }
        }
        let count = into.len().min(self.held.len() - END.len());
        for (to, byte) in into.iter_mut().zip(self.held.drain(..count)) {
            *to = byte;
        }
        Ok(count)
    }
}

/// The content of a file, whose checksum is computed while it is read.
struct CheckedContent<'a, R> {
    from: &'a mut R,
    hasher: Hasher,
}

impl<R: Read> Read for CheckedContent<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(into)?;
        self.hasher.write_all(&into[..count])?;
        Ok(count)
    }
}
