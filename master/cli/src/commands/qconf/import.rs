//! `-import`: a whole cell from the files that `-export`, or `save_sge_config.sh` of 8.1.9, has
//! written. All of it or nothing.
//!
//! Objects of the files are added or take the place of those of their names; what has no file stays
//! as it is.

use super::layout::{ENTRIES, SavedEntry, WRITTEN, entry};
use super::session::Session;
use super::{change, diff, export, text};
use crate::commands::Outcome;
use crate::fail::Fail;
use crate::{exit, output};
use order::ordered;
use proto::diagnostic::{Code, Diagnostic};
use proto::object::{Fields, LineWrap, ObjectKind};
use proto::wire::client::{Import, ObjectAction, ObjectChange};
use std::collections::BTreeSet;
use std::path::Path;

mod order;

/// An object of a file.
#[derive(Clone, Debug)]
pub struct SavedObject {
    /// Its kind.
    pub kind: ObjectKind,
    /// Its name; empty for what exists once.
    pub name: String,
    /// Its file.
    pub path: String,
    /// What the file says.
    pub fields: Fields,
}

/// What a directory holds.
#[derive(Default)]
struct SavedCell {
    objects: Vec<SavedObject>,
    last_job: Option<u32>,
    last_reservation: Option<u32>,
    /// Whether anything is wrong; it is told already.
    is_bad: bool,
}

/// `-import DIR`.
pub fn import(session: &mut Session, dir: &str) -> Outcome {
    let dir = Path::new(dir);
    let found = read(dir)?;
    if found.is_bad {
        output::note("nothing has been changed");
        return Ok(exit::FAILED);
    }
    let SavedCell {
        objects,
        last_job,
        last_reservation,
        is_bad: _,
    } = found;
    let present = PresentObjects::fetch(session, &objects)?;
    let changes = changes(session, &present, objects.clone())?;
    let counts = counts(&changes, objects.len());
    if session.dry_run {
        show(session, &present, &changes)?;
    }
    let sent = changes.into_iter().map(|(read, action)| ObjectChange {
        kind: read.kind,
        name: read.name,
        action,
    });
    let import = Import {
        changes: sent.collect(),
        last_job,
        last_reservation,
    };
    let code = session.import(import, |place| located(&objects, place))?;
    match (code, session.dry_run) {
        (exit::OK, false) => output::note(&counts),
        (exit::OK, true) => output::note(&format!("{counts}: nothing has been changed (--dry-run)")),
        _ => output::note("nothing has been changed"),
    }
    Ok(code)
}

/// Reads all files of a directory, and tells all that is wrong with them.
///
/// # Errors
/// If it cannot be read, or is no saved cell.
fn read(dir: &Path) -> Result<SavedCell, Fail> {
    let names = export::entries(dir)?;
    if names.is_empty() {
        let what = format!("error: there is nothing to import in {}", dir.display());
        return Err(Diagnostic::new(Code::BadValue, what)
            .fix("name the directory of a saved cell")
            .into());
    }
    let mut found = SavedCell::default();
    for name in names.iter().filter(|name| entry(name).is_none()) {
        let what = format!("error: unknown file {}", dir.join(name).display());
        let fix = "take it away; names that begin with a dot are passed over";
        found.refuse(
            &Diagnostic::new(Code::BadValue, what)
                .why("it is no part of a saved cell")
                .fix(fix),
        );
    }
    for (name, entry) in ENTRIES
        .iter()
        .filter(|(name, _)| names.iter().any(|there| there == name))
    {
        read_entry(&mut found, &dir.join(name), *entry)?;
    }
    Ok(found)
}

fn read_entry(found: &mut SavedCell, path: &Path, entry: SavedEntry) -> Result<(), Fail> {
    match entry {
        SavedEntry::Objects(kind) => {
            for name in export::entries(path)? {
                found.object(kind, &name, &path.join(&name))?;
            }
        }
        SavedEntry::Once(kind) => found.object(kind, "", path)?,
        SavedEntry::Names(kind) => {
            let text = change::read(&path.to_string_lossy())?;
            for name in text.lines().map(str::trim).filter(|name| !name.is_empty()) {
                let path = path.display().to_string();
                found.objects.push(SavedObject {
                    kind,
                    name: name.to_owned(),
                    path,
                    fields: Fields::new(),
                });
            }
        }
        SavedEntry::LastJob => found.last_job = found.number(path)?,
        SavedEntry::LastReservation => found.last_reservation = found.number(path)?,
        SavedEntry::Cell => {
            for name in export::entries(path)?
                .iter()
                .filter(|name| WRITTEN.contains(&name.as_str()))
            {
                output::note(&format!(
                    "{} is not taken over: copy it to $SGE_ROOT/$SGE_CELL/common if it is to hold here",
                    path.join(name).display()
                ));
            }
        }
        SavedEntry::Installation => {}
    }
    Ok(())
}

impl SavedCell {
    fn refuse(&mut self, refusal: &Diagnostic) {
        output::diagnostic(refusal);
        self.is_bad = true;
    }

    /// Reads the file of an object; an empty one says that there is none.
    fn object(&mut self, kind: ObjectKind, name: &str, path: &Path) -> Result<(), Fail> {
        let place = path.display().to_string();
        let content = change::read(&place)?;
        if content.trim().is_empty() {
            return Ok(());
        }
        match text::parse(kind, name, &content) {
            Err(refusals) => {
                change::refuse(kind, &place, &refusals);
                self.is_bad = true;
            }
            Ok(fields) => {
                let inside = kind.name_in(&fields).unwrap_or(name).to_owned();
                if inside != name {
                    let what = format!("error: {place} holds the {kind} \"{inside}\"");
                    self.refuse(&Diagnostic::new(Code::BadValue, what).fix(format!("call the file {inside}")));
                }
                self.objects.push(SavedObject {
                    kind,
                    name: inside,
                    path: place,
                    fields,
                });
            }
        }
        Ok(())
    }

    fn number(&mut self, path: &Path) -> Result<Option<u32>, Fail> {
        let text = change::read(&path.to_string_lossy())?;
        if let Ok(number) = text.trim().parse() {
            return Ok(Some(number));
        }
        let what = format!("error: \"{}\" is no number", text.trim());
        self.refuse(&Diagnostic::new(Code::BadValue, what).at(path.display().to_string()));
        Ok(None)
    }
}

/// The objects that there are now, of the kinds that the files have.
struct PresentObjects {
    names: BTreeSet<(ObjectKind, String)>,
}

impl PresentObjects {
    fn fetch(session: &mut Session, objects: &[SavedObject]) -> Result<Self, Fail> {
        let kinds: BTreeSet<ObjectKind> = objects.iter().map(|read| read.kind).collect();
        let mut names = BTreeSet::new();
        for kind in kinds {
            let is_once = matches!(kind, ObjectKind::ComplexTable | ObjectKind::SchedulerConf);
            let of_kind = if is_once || kind == ObjectKind::ShareTree && export::exists(session, kind)? {
                vec![String::new()]
            } else if kind == ObjectKind::ShareTree {
                Vec::new()
            } else {
                export::names(session, kind)?
            };
            names.extend(of_kind.into_iter().map(|name| (kind, name)));
        }
        Ok(Self { names })
    }

    fn has(&self, read: &SavedObject) -> bool {
        self.names.contains(&(read.kind, read.name.clone()))
    }
}

/// What is to be sent, in an order in which it can be made; objects that are as their files say are
/// left out.
fn changes(
    session: &mut Session,
    present: &PresentObjects,
    objects: Vec<SavedObject>,
) -> Result<Vec<(SavedObject, ObjectAction)>, Fail> {
    let mut changes = Vec::new();
    for read in ordered(objects, session)? {
        let is_there = present.has(&read)
            || changes
                .iter()
                .any(|(before, _): &(SavedObject, _)| is_same(before, &read));
        if !is_there {
            let fields = read.fields.clone();
            changes.push((read, ObjectAction::Add(fields)));
        } else if !read.fields.is_empty() && !is_unchanged(session, &read, &changes)? {
            let fields = read.fields.clone();
            changes.push((read, ObjectAction::Replace(fields)));
        }
    }
    Ok(changes)
}

fn is_same(one: &SavedObject, other: &SavedObject) -> bool {
    (one.kind, &one.name) == (other.kind, &other.name)
}

/// Whether an object is already as its file says, after what is sent before it.
fn is_unchanged(
    session: &mut Session,
    read: &SavedObject,
    earlier: &[(SavedObject, ObjectAction)],
) -> Result<bool, Fail> {
    if earlier.iter().any(|(before, _)| is_same(before, read)) {
        return Ok(false);
    }
    let now = text::without_reported(read.kind, &session.object(read.kind, &read.name)?);
    let new = read
        .kind
        .settle(&read.name, &read.fields)
        .unwrap_or_else(|_| read.fields.clone());
    Ok(now == text::without_reported(read.kind, &new))
}

fn counts(changes: &[(SavedObject, ObjectAction)], total: usize) -> String {
    let changed: BTreeSet<(ObjectKind, &str)> = changes
        .iter()
        .map(|(read, _)| (read.kind, read.name.as_str()))
        .collect();
    let added = changes
        .iter()
        .filter(|(_, action)| matches!(action, ObjectAction::Add(_)))
        .count();
    let modified = changed.len() - added;
    format!(
        "{added} objects added, {modified} changed, {} as they were",
        total - changed.len()
    )
}

/// `--dry-run`: what would become of each object.
fn show(session: &mut Session, present: &PresentObjects, changes: &[(SavedObject, ObjectAction)]) -> Result<(), Fail> {
    for (at, (read, _)) in changes.iter().enumerate() {
        if changes[at + 1..].iter().any(|(later, _)| is_same(later, read)) {
            continue;
        }
        let before = match present.has(read) {
            true => export::object_text(session, read.kind, &read.name)?,
            false => String::new(),
        };
        output::data(&shown(read.kind, &read.name, &before, &read.fields));
    }
    Ok(())
}

/// What goes and what comes, under the name of the object.
pub fn shown(kind: ObjectKind, name: &str, before: &str, after: &Fields) -> String {
    let after = kind.settle(name, after).unwrap_or_else(|_| after.clone());
    let after = text::print(kind, name, &text::without_reported(kind, &after), LineWrap::SingleLine);
    let head = format!("{kind} {name}");
    // A longer name moves the columns of the whole table.
    let is_same = if kind == ObjectKind::ComplexTable {
        diff::has_same_words
    } else {
        diff::is_equal
    };
    let changed = diff::lines(before, &after, is_same);
    format!(
        "@@ {} @@\n{}",
        head.trim_end(),
        if changed.is_empty() && before.is_empty() {
            "+\n"
        } else {
            &changed
        }
    )
}

/// A place in the words of the master, `KIND NAME: ATTRIBUTE`, as file and line.
fn located(objects: &[SavedObject], place: String) -> String {
    let meant = objects.iter().find_map(|read| {
        let rest = place.strip_prefix(&format!("{} {}: ", read.kind, read.name))?;
        Some((read, rest.to_owned()))
    });
    let Some((read, rest)) = meant else { return place };
    let line = text::place_in(&read.path, &read.fields, rest.clone());
    match (line == rest, rest.is_empty()) {
        (true, true) => read.path.clone(),
        (true, false) => format!("{}: {rest}", read.path),
        (false, _) => line,
    }
}
