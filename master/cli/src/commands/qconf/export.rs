//! `-export`: the whole configuration as files, in the layout of `save_sge_config.sh`, so that it
//! lives in version control.
//!
//! Only what people configure is written: no load values, no job numbers, no dates. The same cell
//! gives the same bytes. What lies in the directory and is part of the layout is replaced; objects
//! that are gone lose their files.

use super::layout::{ENTRIES, SavedEntry, entry};
use super::session::Session;
use super::text;
use crate::commands::Outcome;
use crate::fail::Fail;
use crate::{exit, output};
use proto::diagnostic::{Code, Diagnostic};
use proto::object::{LineWrap, ObjectKind};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// `-export DIR`.
pub fn export(session: &mut Session, dir: &str) -> Outcome {
    let files = collect(session)?;
    let dir = Path::new(dir);
    refuse_strangers(dir)?;
    clear(dir)?;
    for (path, text) in &files {
        write(&dir.join(path), text)?;
    }
    output::note(&format!("{} files are written to {}", files.len(), dir.display()));
    Ok(exit::OK)
}

/// Every file of the cell with its text, by path.
fn collect(session: &mut Session) -> Result<BTreeMap<PathBuf, String>, Fail> {
    let mut files = BTreeMap::new();
    for (name, entry) in ENTRIES {
        match entry {
            SavedEntry::Objects(kind) => {
                for object in names(session, *kind)? {
                    files.insert(Path::new(name).join(&object), object_text(session, *kind, &object)?);
                }
            }
            SavedEntry::Once(kind) => {
                if exists(session, *kind)? {
                    files.insert(PathBuf::from(name), object_text(session, *kind, "")?);
                }
            }
            SavedEntry::Names(kind) => {
                let lines = session.names(*kind)?.into_iter().map(|name| name + "\n").collect();
                files.insert(PathBuf::from(name), lines);
            }
            SavedEntry::LastJob | SavedEntry::LastReservation | SavedEntry::Installation | SavedEntry::Cell => {}
        }
    }
    Ok(files)
}

/// The names of all objects of a kind, with those that stand in no list.
pub fn names(session: &mut Session, kind: ObjectKind) -> Result<Vec<String>, Fail> {
    let mut names = session.names(kind)?;
    if matches!(kind, ObjectKind::ExecHost | ObjectKind::ClusterConf) {
        names.insert(0, "global".to_owned());
    }
    Ok(names)
}

/// Whether there is the object of a kind that exists once: of these only the share tree may be
/// absent.
pub fn exists(session: &mut Session, kind: ObjectKind) -> Result<bool, Fail> {
    Ok(kind != ObjectKind::ShareTree || !session.names(kind)?.is_empty())
}

/// An object as its file has it: without what its host reports.
pub fn object_text(session: &mut Session, kind: ObjectKind, name: &str) -> Result<String, Fail> {
    let fields = text::without_reported(kind, &session.object(kind, name)?);
    Ok(text::print(kind, name, &fields, LineWrap::SingleLine))
}

/// Nothing is written beside files that are no part of a saved cell. Files whose names begin with a
/// dot may be there: version control keeps its own.
fn refuse_strangers(dir: &Path) -> Result<(), Fail> {
    let strangers: Vec<String> = entries(dir)?.into_iter().filter(|name| entry(name).is_none()).collect();
    let Some(first) = strangers.first() else { return Ok(()) };
    let what = format!("error: {} is no part of a saved cell", dir.join(first).display());
    let fix = "name a new directory, an empty one, or one that -export has written";
    Err(Diagnostic::new(Code::BadValue, what)
        .why(format!("it holds {}", strangers.join(" ")))
        .fix(fix)
        .into())
}

/// The entries of a directory, in order; none if it does not exist. Names that begin with a dot are
/// left out.
pub fn entries(dir: &Path) -> Result<Vec<String>, Fail> {
    let read = match std::fs::read_dir(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        read => read.map_err(|error| failed("read", dir, &error))?,
    };
    let names = read.map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()));
    let mut names = names
        .collect::<Result<Vec<String>, _>>()
        .map_err(|error| failed("read", dir, &error))?;
    names.retain(|name| !name.starts_with('.'));
    names.sort();
    Ok(names)
}

/// Takes the files of an earlier export away.
fn clear(dir: &Path) -> Result<(), Fail> {
    for name in entries(dir)? {
        let path = dir.join(&name);
        match entry(&name) {
            Some(SavedEntry::Objects(_)) => {
                for object in entries(&path)? {
                    let path = path.join(object);
                    std::fs::remove_file(&path).map_err(|error| failed("remove", &path, &error))?;
                }
            }
            Some(SavedEntry::Once(_) | SavedEntry::Names(_)) => {
                std::fs::remove_file(&path).map_err(|error| failed("remove", &path, &error))?;
            }
            Some(SavedEntry::LastJob | SavedEntry::LastReservation | SavedEntry::Installation | SavedEntry::Cell)
            | None => {}
        }
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), Fail> {
    let parent = path.parent().unwrap_or(path);
    std::fs::create_dir_all(parent).map_err(|error| failed("make", parent, &error))?;
    std::fs::write(path, text).map_err(|error| failed("write", path, &error))
}

/// The system did not let us.
pub fn failed(what: &str, path: &Path, error: &std::io::Error) -> Fail {
    let refusal = Diagnostic::new(Code::SystemRefused, format!("error: cannot {what} {}", path.display()));
    refusal
        .why(error.to_string())
        .fix("name a directory that you may read and write")
        .into()
}
