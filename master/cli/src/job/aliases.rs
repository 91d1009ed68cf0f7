//! `sge_aliases(5)`: under which path a working directory is found on other hosts.

use crate::cell_address::CellAddress;
use crate::exit;
use crate::fail::Fail;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::HostName;
use proto::job::HostPath;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The directory by execution host, as the file of the cell and then that of the user say; empty
/// where neither names it.
///
/// # Errors
/// A file that is there and cannot be read, or a line that is not of four words.
pub fn of_directory(site: &CellAddress, directory: &str, submit_host: &HostName) -> Result<Vec<HostPath>, Fail> {
    let own = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".sge_aliases"));
    let mut found = Vec::new();
    for file in [site.dir().join("default/common/sge_aliases")].into_iter().chain(own) {
        match std::fs::read_to_string(&file) {
            Ok(text) => found.extend(in_text(&file, &text, directory, submit_host)?),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => {
                let refusal = Diagnostic::new(Code::SystemRefused, "error: cannot read the path aliases")
                    .at(file.display().to_string())
                    .why(error.to_string());
                return Err(Fail::new(exit::FAILED, refusal));
            }
        }
    }
    Ok(found)
}

/// The entries of one file that concern the directory:
/// `source submit-host execution-host replacement`.
fn in_text(file: &Path, text: &str, directory: &str, submit_host: &HostName) -> Result<Vec<HostPath>, Fail> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let words: Vec<&str> = line.split('#').next().unwrap_or_default().split_whitespace().collect();
        let [source, from, to, replacement] = words[..] else {
            if words.is_empty() {
                continue;
            }
            let refusal = Diagnostic::new(Code::BadSyntax, "error: a path alias has four words")
                .at(format!("{} line {}", file.display(), index + 1))
                .fix("SOURCE-PATH SUBMIT-HOST EXECUTION-HOST REPLACEMENT-PATH, * for any host");
            return Err(Fail::new(exit::FAILED, refusal));
        };
        let is_from_here = named(from).is_none_or(|host| host == *submit_host || host.short() == submit_host.short());
        if let Some(rest) = behind(source, directory).filter(|_| is_from_here) {
            found.push(HostPath {
                host: named(to),
                path: format!("{replacement}{rest}"),
            });
        }
    }
    Ok(found)
}

/// A host, or none for every one.
fn named(word: &str) -> Option<HostName> {
    (word != "*").then(|| HostName::new(word))
}

/// What stands behind the leading part of a path. `/a` leads `/a/b`, and not `/ab`.
fn behind<'a>(source: &str, path: &'a str) -> Option<&'a str> {
    let rest = path.strip_prefix(source)?;
    (source.ends_with('/') || rest.is_empty() || rest.starts_with('/')).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str =
        "# automounter\n/tmp_mnt/ * * /\n/home/a  login1 *  /export/a # all\n/home/a login2 node7 /data/a\n\n";

    fn shown(directory: &str, host: &str) -> Vec<(Option<String>, String)> {
        let found = in_text("f".as_ref(), FILE, directory, &HostName::new(host)).unwrap();
        found
            .into_iter()
            .map(|path| (path.host.map(|host| host.to_string()), path.path))
            .collect()
    }

    #[test]
    fn the_leading_part_is_replaced_by_host() {
        assert_eq!(shown("/tmp_mnt/x/y", "any"), [(None, "/x/y".to_owned())]);
        assert_eq!(shown("/home/a/b", "LOGIN1"), [(None, "/export/a/b".to_owned())]);
        assert_eq!(
            shown("/home/a", "login2.site"),
            [(Some("node7".to_owned()), "/data/a".to_owned())]
        );
        assert_eq!(shown("/home/a", "login3"), []);
        assert_eq!(shown("/home/ab", "login1"), []);
    }

    #[test]
    fn a_line_that_is_no_alias_is_refused_with_its_place() {
        let fail = in_text("/x/f".as_ref(), "# a\n/a * /b\n", "/c", &HostName::new("h")).unwrap_err();
        assert_eq!(fail.diagnostic.place, "/x/f line 2");
    }
}
