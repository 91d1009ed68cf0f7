//! Whether a state directory is the one that its records belong to, and what its settings say about
//! its place.

use proto::diagnostic::Diagnostic;
use proto::directory::{DirectoryIdentity, FILE, Kinship};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The relation of a state directory to the one that its file records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DirectoryRelation {
    /// It is the one that it says.
    Original,
    /// It is a copy of this one.
    Copy(Box<DirectoryIdentity>),
    /// It says nothing: no launcher of this release has run in it.
    Unknown,
}

/// Reads the file of a state directory and decides whether the directory is a copy.
pub fn relation(dir: &Path) -> DirectoryRelation {
    let recorded = std::fs::read_to_string(dir.join(FILE))
        .ok()
        .and_then(|text| DirectoryIdentity::parse(&text));
    let (Some(recorded), Ok(metadata)) = (recorded, dir.metadata()) else {
        return DirectoryRelation::Unknown;
    };
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let is_copy = match recorded.kinship(&DirectoryIdentity::from_metadata(dir, &metadata, boot.trim())) {
        Kinship::Same => false,
        // A snapshot that is mounted beside its original, or the original, mounted anew while
        // nothing of it ran.
        Kinship::OtherDevice => is_in_use(recorded.device, recorded.inode),
        Kinship::Copy => true,
    };
    if is_copy {
        DirectoryRelation::Copy(Box::new(recorded))
    } else {
        DirectoryRelation::Original
    }
}

/// Refuses to start anything in a copy.
///
/// # Errors
/// The refusal with its remedy.
pub fn refuse_copy(dir: &Path) -> Result<(), Diagnostic> {
    match relation(dir) {
        DirectoryRelation::Copy(recorded) => Err(recorded.refusal(dir)),
        DirectoryRelation::Original | DirectoryRelation::Unknown => Ok(()),
    }
}

/// Whether the original of a copy is at work on this machine: its launcher or one of its tasks. The
/// device and the inode that are on record mean nothing after a boot or on another machine.
pub fn is_at_work(original: &DirectoryIdentity) -> bool {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    boot.trim() == original.boot && is_in_use(original.device, original.inode)
}

/// Whether a process works in a directory, as launchers and shepherds do.
fn is_in_use(device: u64, inode: u64) -> bool {
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return true;
    };
    processes.flatten().any(|process| {
        let cwd = std::fs::metadata(process.path().join("cwd"));
        cwd.is_ok_and(|cwd| (cwd.dev(), cwd.ino()) == (device, inode))
    })
}

/// The directory that a settings file names, with the line that does.
fn named_root(settings: &str) -> Option<(&str, PathBuf)> {
    let line = settings
        .lines()
        .find(|line| line.starts_with("SGE_ROOT=") || line.starts_with("setenv SGE_ROOT "))?;
    let word = line
        .trim_start_matches("setenv SGE_ROOT ")
        .trim_start_matches("SGE_ROOT=");
    let word = word.strip_suffix("; export SGE_ROOT").unwrap_or(word);
    let inner = word.strip_prefix('\'').and_then(|word| word.strip_suffix('\''))?;
    Some((line, PathBuf::from(inner.replace(r"'\''", "'").replace(r"\!", "!"))))
}

/// Another directory that a settings file of `dir` names: `dir` has moved, or is a copy.
pub fn stale_root(dir: &Path, settings: &str) -> Option<PathBuf> {
    let (_, named) = named_root(settings)?;
    let is_own = named == dir
        || dir
            .canonicalize()
            .is_ok_and(|dir| named.canonicalize().is_ok_and(|named| named == dir));
    (!is_own).then_some(named)
}

/// A settings file of `dir` with the place where `dir` is.
pub fn settings_in_place(dir: &Path, settings: String) -> String {
    if stale_root(dir, &settings).is_none() {
        return settings;
    }
    let Some((line, _)) = named_root(&settings) else {
        return settings;
    };
    let quoted = format!("'{}'", dir.display().to_string().replace('\'', r"'\''"));
    let own = if line.starts_with("setenv") {
        format!("setenv SGE_ROOT {}", quoted.replace('!', r"\!"))
    } else {
        format!("SGE_ROOT={quoted}; export SGE_ROOT")
    };
    settings.replacen(line, &own, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_name_the_directory_that_they_lie_in() {
        let own = Path::new("/new/it's");
        let cases = [
            (
                "SGE_ROOT='/old'; export SGE_ROOT\nSGE_CELL=default; export SGE_CELL\n",
                "SGE_ROOT='/new/it'\\''s'; export SGE_ROOT\nSGE_CELL=default; export SGE_CELL\n",
            ),
            (
                "# site\nsetenv SGE_ROOT '/old'\n",
                "# site\nsetenv SGE_ROOT '/new/it'\\''s'\n",
            ),
            ("SGE_CELL=default\n", "SGE_CELL=default\n"),
        ];
        for (settings, expected) in cases {
            let placed = settings_in_place(own, settings.to_owned());
            assert_eq!(placed, expected);
            assert_eq!(stale_root(own, &placed), None, "{placed}");
        }
    }

    #[test]
    fn a_directory_that_is_reached_by_a_link_is_not_another_one() {
        let base = std::env::temp_dir().join(format!("gridwright-place-{}", std::process::id()));
        std::fs::create_dir_all(base.join("cell")).unwrap();
        std::os::unix::fs::symlink("cell", base.join("link")).unwrap();
        let settings = format!("SGE_ROOT='{}'; export SGE_ROOT\n", base.join("cell").display());
        let stale = stale_root(&base.join("link"), &settings);
        std::fs::remove_dir_all(&base).unwrap();
        assert_eq!(stale, None);
    }

    #[test]
    fn a_directory_is_told_from_its_copy() {
        let base = std::env::temp_dir().join(format!("gridwright-copy-{}", std::process::id()));
        let [original, copy] = ["original", "copy"].map(|name| base.join(name));
        for dir in [&original, &copy] {
            std::fs::create_dir_all(dir.join("etc")).unwrap();
        }
        assert_eq!(relation(&original), DirectoryRelation::Unknown);
        let identity = DirectoryIdentity::from_metadata(&original, &original.metadata().unwrap(), "an earlier boot");
        for dir in [&original, &copy] {
            std::fs::write(dir.join(FILE), identity.to_string()).unwrap();
        }
        let found = [relation(&original), relation(&copy)];
        let moved = base.join("moved");
        std::fs::rename(&original, &moved).unwrap();
        let found = [found, [relation(&moved), DirectoryRelation::Unknown]].concat();
        std::fs::remove_dir_all(&base).unwrap();
        assert_eq!(
            found[..3],
            [
                DirectoryRelation::Original,
                DirectoryRelation::Copy(Box::new(identity)),
                DirectoryRelation::Original
            ]
        );
    }
}
