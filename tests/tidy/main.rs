//! House rules that the compiler does not check: the import table and the top level, the limits on
//! sizes, what the pure cores may not touch, where `unsafe` may be, and that citations lead
//! somewhere.

mod code;
mod floors;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

const MAX_FUNCTION_LINES: usize = 70;
const MAX_FILE_LINES: usize = 700;

/// Characters, not bytes, of a line that is only a comment.
const MAX_COMMENT_WIDTH: usize = 100;

/// What each package may import of ours, and of the libraries that the table restricts.
const IMPORTS: [(&str, &[&str], &[&str]); 14] = [
    ("proto", &[], &[]),
    ("proto/folder", &[], &["nix"]),
    ("proto/logging", &["proto"], &["nix"]),
    ("proto/quic", &["proto"], &["tokio", "quinn", "rustls"]),
    ("proto/verifier", &["proto"], &["tokio", "nix"]),
    ("proto/version", &[], &[]),
    ("sensors", &["proto"], &["procfs", "sysinfo"]),
    ("agent/core", &["proto"], &[]),
    ("master/core", &["proto"], &[]),
    (
        "agent/shepherd",
        &["proto", "folder", "version"],
        &["nix", "caps", "libc"],
    ),
    (
        "agent",
        &["agent_core", "sensors", "proto", "folder", "logging", "quic", "version"],
        &["tokio", "nix", "procfs"],
    ),
    (
        "master",
        &[
            "master_core",
            "proto",
            "folder",
            "logging",
            "quic",
            "verifier",
            "version",
        ],
        &["tokio", "nix", "rusqlite"],
    ),
    (
        "master/cli",
        &["proto", "quic", "verifier", "version"],
        &["tokio", "nix", "rustix"],
    ),
    ("master/drmaa", &["proto", "cli"], &["nix"]),
];

const OURS: [&str; 11] = [
    "proto",
    "folder",
    "logging",
    "quic",
    "verifier",
    "version",
    "sensors",
    "agent_core",
    "master_core",
    "shepherd",
    "cli",
];

const RESTRICTED: [&str; 10] = [
    "tokio", "quinn", "rustls", "nix", "rustix", "caps", "libc", "procfs", "sysinfo", "rusqlite",
];

/// Packages that the workspace uses, and where.
const USED: [(&str, &str); 8] = [
    ("sysinfo", "sensors"),
    ("procfs", "sensors"),
    ("nix", "agent"),
    ("tokio", "master"),
    ("quinn", "proto/quic"),
    ("rustls", "proto/quic"),
    ("serde", "proto"),
    ("caps", "agent/shepherd"),
];

const FOLDERS: [&str; 6] = ["agent", "master", "proto", "sensors", "systemd", "tests"];
const FILES: [&str; 8] = [
    "Cargo.toml",
    "Cargo.lock",
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE-MIT",
    "LICENSE-APACHE",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Every Rust source below the folders of the workspace.
fn sources() -> Vec<PathBuf> {
    files(&["rs"], FOLDERS.iter().map(|folder| root().join(folder)).collect())
}

/// All files with these extensions below the directories.
fn files(extensions: &[&str], mut open: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut found = Vec::new();
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(&dir).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                if path.file_name().is_none_or(|name| name != "target") {
                    open.push(path);
                }
            } else if path
                .extension()
                .and_then(|it| it.to_str())
                .is_some_and(|it| extensions.contains(&it))
            {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap().display().to_string()
}

fn assert_none(rule: &str, offences: &[String]) {
    assert!(offences.is_empty(), "{rule}:\n  {}", offences.join("\n  "));
}

/// Whether a path is a test: below `tests`, or a `tests.rs`, or a helper of tests.
fn is_test(path: &Path) -> bool {
    let path = shown(path);
    path.split('/')
        .any(|part| part == "tests" || part == "testing.rs" || part == "tests.rs" || part == "testing")
}

/// The named dependencies of one table of a manifest.
fn dependencies(package: &str, table: &str) -> BTreeSet<String> {
    let text = std::fs::read_to_string(root().join(package).join("Cargo.toml")).unwrap();
    let manifest: toml::Table = text.parse().unwrap();
    manifest
        .get(table)
        .and_then(toml::Value::as_table)
        .map(|table| table.keys().cloned().collect())
        .unwrap_or_default()
}

#[test]
fn the_top_level_holds_what_the_code_map_names() {
    let mut offences = Vec::new();
    for entry in std::fs::read_dir(root()).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        let known = FOLDERS.contains(&name.as_str()) || FILES.contains(&name.as_str()) || name.starts_with('.');
        if !known && name != "target" {
            offences.push(name);
        }
    }
    assert_none("at the top level beside what ARCHITECTURE.md names", &offences);
    let missing: Vec<String> = FILES
        .iter()
        .filter(|file| !root().join(file).exists())
        .map(|file| (*file).to_owned())
        .collect();
    assert_none("missing at the top level", &missing);
}

#[test]
fn packages_import_what_the_table_allows() {
    let mut offences = Vec::new();
    for (package, ours, restricted) in IMPORTS {
        for name in dependencies(package, "dependencies") {
            let foreign = OURS.contains(&name.as_str()) && !ours.contains(&name.as_str());
            let reserved = RESTRICTED.contains(&name.as_str()) && !restricted.contains(&name.as_str());
            if foreign || reserved {
                offences.push(format!("{package} imports {name}"));
            }
        }
    }
    assert_none("imports that the code map of ARCHITECTURE.md does not allow", &offences);
}

#[test]
fn the_shepherd_depends_on_its_complete_list_and_nothing_else() {
    let allowed: BTreeSet<String> = ["proto", "folder", "version", "nix", "caps", "libc"]
        .map(str::to_owned)
        .into();
    let offences: Vec<String> = dependencies("agent/shepherd", "dependencies")
        .difference(&allowed)
        .cloned()
        .collect();
    assert_none("the root part depends on", &offences);
}

#[test]
fn each_package_is_used_where_the_code_map_places_it() {
    let mut offences = Vec::new();
    for (package, place) in USED {
        let used = sources().iter().any(|path| {
            shown(path).starts_with(&format!("{place}/src/"))
                && std::fs::read_to_string(path).unwrap().contains(&format!("{package}::"))
        });
        if !used || !dependencies(place, "dependencies").contains(package) {
            offences.push(format!("{package} in {place}"));
        }
    }
    assert_none("packages that are not used where they belong", &offences);
}

/// Collects the names of types.
struct TypeNames(Vec<String>);

impl<'ast> Visit<'ast> for TypeNames {
    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.0.push(item.ident.to_string());
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.0.push(item.ident.to_string());
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.0.push(item.ident.to_string());
    }
}

/// Words that say nothing of what a thing is, beside those of one word that end in `ed`.
const NO_NOUNS: [&str; 16] = [
    "Asks", "Done", "Due", "Found", "Given", "Held", "Kept", "Known", "Made", "Rests", "Said", "Seen", "Taken",
    "Takes", "Then", "Told",
];

#[test]
fn types_are_nouns_and_none_is_twice_in_a_crate() {
    let mut offences = Vec::new();
    let mut places = BTreeMap::<(String, String), Vec<String>>::new();
    for path in sources() {
        let mut names = TypeNames(Vec::new());
        names.visit_file(&syn::parse_file(&std::fs::read_to_string(&path).unwrap()).unwrap());
        for name in names.0 {
            let words = name.chars().filter(|c| c.is_uppercase()).count();
            if NO_NOUNS.contains(&name.as_str()) || (words == 1 && name.ends_with("ed") && name != "Seed") {
                offences.push(format!("{}: {name} is no noun", shown(&path)));
            }
            if let Some((package, _)) = shown(&path).split_once("/src/") {
                places.entry((package.to_owned(), name)).or_default().push(shown(&path));
            }
        }
    }
    for ((_, name), paths) in places.into_iter().filter(|(_, paths)| paths.len() > 1) {
        offences.push(format!("{name} is in {}", paths.join(" and ")));
    }
    assert_none("names of types", &offences);
}

/// Collects functions that are too long.
struct Lengths<'a> {
    path: &'a Path,
    offences: Vec<String>,
}

impl Lengths<'_> {
    fn measure(&mut self, name: &syn::Ident, block: proc_macro2::Span) {
        let lines = block.end().line - block.start().line + 1;
        if lines > MAX_FUNCTION_LINES {
            self.offences
                .push(format!("{}: {name} has {lines} lines", shown(self.path)));
        }
    }
}

impl<'ast> Visit<'ast> for Lengths<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.measure(&item.sig.ident, item.span());
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.measure(&item.sig.ident, item.span());
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        self.measure(&item.sig.ident, item.span());
        visit::visit_trait_item_fn(self, item);
    }
}

#[test]
fn no_function_passes_seventy_lines_and_no_file_seven_hundred() {
    let mut offences = Vec::new();
    for path in sources() {
        let text = std::fs::read_to_string(&path).unwrap();
        let lines = text.lines().count();
        if lines > MAX_FILE_LINES {
            offences.push(format!("{} has {lines} lines", shown(&path)));
        }
        let file = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", shown(&path)));
        let mut lengths = Lengths {
            path: &path,
            offences: Vec::new(),
        };
        lengths.visit_file(&file);
        offences.extend(lengths.offences);
    }
    assert_none("too long", &offences);
}

#[test]
fn no_comment_is_wider_than_a_hundred_characters() {
    let mut offences = Vec::new();
    for path in sources() {
        let text = std::fs::read_to_string(&path).unwrap();
        for (index, line) in text.lines().enumerate() {
            let is_comment = line.trim_start().starts_with("//");
            let width = line.chars().count();
            if is_comment && width > MAX_COMMENT_WIDTH {
                offences.push(format!("{}:{}: {width} characters", shown(&path), index + 1));
            }
        }
    }
    assert_none("comments that are too wide", &offences);
}

/// Packages with `unsafe`, and the files that may have it: all of the package, or one.
const UNSAFE: [(&str, Option<&str>); 2] = [
    ("agent/shepherd", None),
    ("master/drmaa", Some("master/drmaa/src/ffi.rs")),
];

#[test]
fn unsafe_code_is_in_the_shepherd_and_one_file_of_the_drmaa_library() {
    let mut offences = Vec::new();
    for (package, _, _) in IMPORTS {
        let text = std::fs::read_to_string(root().join(package).join("Cargo.toml")).unwrap();
        match UNSAFE.iter().find(|(known, _)| *known == package) {
            None if !text.contains("[lints]\nworkspace = true") => offences.push(format!(
                "{package}/Cargo.toml does not take the workspace's lints, which forbid unsafe code"
            )),
            Some(_) if !text.contains("undocumented_unsafe_blocks = \"deny\"") => {
                offences.push(format!(
                    "{package}/Cargo.toml does not ask for a reason on each unsafe block"
                ));
            }
            Some((_, Some(_))) if !text.contains("unsafe_code = \"deny\"") => {
                offences.push(format!(
                    "{package}/Cargo.toml does not deny unsafe code outside of one file"
                ));
            }
            None | Some(_) => {}
        }
    }
    for (package, only) in UNSAFE {
        let Some(only) = only else { continue };
        let of_package = |path: &&PathBuf| shown(path).starts_with(&format!("{package}/")) && shown(path) != only;
        let allows = |path: &&PathBuf| std::fs::read_to_string(path).unwrap().contains("allow(unsafe_code");
        let all = sources();
        offences.extend(all.iter().filter(of_package).filter(allows).map(|path| shown(path)));
    }
    assert_none("unsafe code could be in", &offences);
}

/// What must not appear in the pure cores, and why.
const BANNED_IN_CORES: [(&str, &str); 9] = [
    ("std::fs", "a core has no files"),
    ("std::net", "a core has no sockets"),
    ("std::env", "a core has no environment"),
    ("std::thread", "a core has no threads"),
    ("std::process", "a core has no processes"),
    ("SystemTime", "a core is told the time"),
    ("Instant", "a core is told the time"),
    ("HashMap", "its order is random: replay must equal live"),
    ("HashSet", "its order is random: replay must equal live"),
];

/// Collects what the pure cores must not name.
struct Bans {
    found: BTreeMap<String, &'static str>,
}

impl<'ast> Visit<'ast> for Bans {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.judge(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_use_tree(&mut self, tree: &'ast syn::UseTree) {
        self.judge(flatten(tree));
        visit::visit_use_tree(self, tree);
    }
}

impl Bans {
    fn judge(&mut self, segments: Vec<String>) {
        let text = segments.join("::");
        for (banned, why) in BANNED_IN_CORES {
            if text.starts_with(banned) || segments.iter().any(|segment| segment == banned) {
                self.found.insert(text.clone(), why);
            }
        }
    }
}

fn flatten(tree: &syn::UseTree) -> Vec<String> {
    match tree {
        syn::UseTree::Path(path) => [path.ident.to_string()]
            .into_iter()
            .chain(flatten(&path.tree))
            .collect(),
        syn::UseTree::Name(name) => vec![name.ident.to_string()],
        syn::UseTree::Rename(rename) => vec![rename.ident.to_string()],
        syn::UseTree::Glob(_) | syn::UseTree::Group(_) => Vec::new(),
    }
}

#[test]
fn the_cores_touch_neither_clock_nor_world() {
    let mut offences = Vec::new();
    let in_core = |path: &PathBuf| {
        ["agent/core/src", "master/core/src"]
            .iter()
            .any(|core| shown(path).starts_with(core))
    };
    for path in sources().into_iter().filter(in_core).filter(|path| !is_test(path)) {
        let file = syn::parse_file(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let mut bans = Bans { found: BTreeMap::new() };
        bans.visit_file(&file);
        offences.extend(
            bans.found
                .into_iter()
                .map(|(name, why)| format!("{}: {name} ({why})", shown(&path))),
        );
    }
    assert_none("in a pure core", &offences);
}

#[test]
fn every_module_says_its_duty() {
    let silent = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).unwrap();
        !is_test(path) && !text.trim_start().starts_with("//!")
    };
    let offences: Vec<String> = sources().into_iter().filter(silent).map(|path| shown(&path)).collect();
    assert_none("files that do not begin with what they are for", &offences);
}

#[test]
fn no_test_is_ignored_without_a_reason_and_no_stub_is_left() {
    let mut offences = Vec::new();
    for path in sources()
        .into_iter()
        .filter(|path| !shown(path).ends_with("tests/tidy/main.rs"))
    {
        let text = std::fs::read_to_string(&path).unwrap();
        for (index, line) in text.lines().enumerate() {
            let bare = line.trim();
            if bare == "#[ignore]" || bare.contains("todo!(") || bare.contains("unimplemented!(") {
                offences.push(format!("{}:{}: {bare}", shown(&path), index + 1));
            }
        }
    }
    assert_none("left undone", &offences);
}

/// Prefixes of the numbers by which features were once known. Nobody outside can look them up.
const FEATURE_IDS: [&str; 41] = [
    "CPX", "VAL", "LOAD", "SENS", "CONS", "MATCH", "STR", "EXCL", "QUE", "HST", "CFG", "EXE", "LIM", "ENV", "JOB",
    "PE", "URG", "TIX", "PRI", "QSEL", "THR", "RES", "AR", "RQS", "CAL", "SUB", "CAT", "EVT", "SCH", "NET", "CLI",
    "OUT", "SEC", "ACC", "HA", "DRM", "GUI", "JSV", "IJS", "OCS", "OPS",
];

/// Documents that are not in the repository.
const UNKNOWN_DOCUMENTS: [&str; 3] = ["DESIGN", "SEMANTICS", "CATALOGUE"];

/// Files that people read: sources, documents, scripts and settings. The changelog may say
/// anything, and this file names what it refuses.
fn readable_files() -> Vec<PathBuf> {
    let mut open: Vec<PathBuf> = FOLDERS.iter().map(|folder| root().join(folder)).collect();
    open.extend(
        [".github", ".ci"]
            .map(|folder| root().join(folder))
            .into_iter()
            .filter(|path| path.exists()),
    );
    let mut found = files(&["rs", "md", "toml", "sh", "py", "yml"], open);
    found.extend(FILES.map(|file| root().join(file)));
    found.retain(|path| !["CHANGELOG.md", "tests/tidy/main.rs", "Cargo.lock"].contains(&shown(path).as_str()));
    found
}

/// The text of a file on one line, without the marks of comments, so that a citation may be
/// wrapped.
fn on_one_line(text: &str) -> String {
    let bare = |line: &str| {
        line.trim_start()
            .trim_start_matches(['/', '!', '#', '*'])
            .trim()
            .to_owned()
    };
    text.lines().map(bare).collect::<Vec<String>>().join(" ")
}

/// A document that is cited in a file: beside it, at the root, or the only one of its name.
fn cited_document(citing: &Path, name: &str) -> Option<PathBuf> {
    let near = [citing.parent().unwrap().join(name), root().join(name)]
        .into_iter()
        .find(|path| path.exists());
    let by_name = || {
        let all = files(&["md"], FOLDERS.iter().map(|folder| root().join(folder)).collect());
        let mut same = all.into_iter().filter(|path| path.ends_with(name));
        same.next().filter(|_| same.next().is_none())
    };
    near.or_else(by_name)
}

/// What a citation names behind `FILE.md`: `"Heading"`, or `section 1.2` and
/// `sections 1, 2.3 and 4`.
fn cited_sections(rest: &str) -> Vec<String> {
    if let Some(heading) = rest.strip_prefix(" \"").and_then(|rest| rest.split_once('"')) {
        return vec![heading.0.to_owned()];
    }
    let Some(mut rest) = rest
        .strip_prefix(" sections ")
        .or_else(|| rest.strip_prefix(" section "))
    else {
        return Vec::new();
    };
    let mut numbers = Vec::new();
    loop {
        let end = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let number = rest[..end].trim_end_matches('.');
        if number.is_empty() {
            return numbers;
        }
        numbers.push(format!("{number} "));
        let after = &rest[number.len()..];
        let next = [", ", " and ", " to "]
            .iter()
            .find_map(|separator| after.strip_prefix(separator));
        let Some(next) = next else { return numbers };
        rest = next;
    }
}

/// Whether a document has a heading: the whole text of one, or a number that ends with a blank and
/// begins one.
fn has_heading(document: &str, section: &str) -> bool {
    let headings = document
        .lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| line.trim_start_matches('#').trim());
    headings
        .into_iter()
        .any(|heading| heading == section || section.ends_with(' ') && heading.starts_with(section))
}

#[test]
fn every_cited_section_exists() {
    let mut offences = Vec::new();
    for path in readable_files() {
        let text = on_one_line(&std::fs::read_to_string(&path).unwrap());
        for (at, _) in text.match_indices(".md") {
            let is_of_name = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
            let begin = text[..at].rfind(|c| !is_of_name(c)).map_or(0, |before| before + 1);
            let (name, rest) = (&text[begin..at + 3], text[at + 3..].trim_start_matches('`'));
            for section in cited_sections(rest) {
                let document = cited_document(&path, name).and_then(|path| std::fs::read_to_string(path).ok());
                if !document.is_some_and(|document| has_heading(&document, &section)) {
                    offences.push(format!("{}: {name}, {section}", shown(&path)));
                }
            }
        }
    }
    assert_none("citations of sections that are not there", &offences);
}

/// The words of a text that are in capitals, with the number behind a dash if there is one.
fn capitals(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_');
    words.map(|word| word.split_once('-').unwrap_or((word, "")))
}

#[test]
fn nothing_cites_what_is_not_in_the_repository() {
    let is_id = |word: &str, number: &str| {
        let is_number = (2..=3).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit());
        is_number && FEATURE_IDS.contains(&word)
    };
    let mut offences = Vec::new();
    for path in readable_files() {
        let text = std::fs::read_to_string(&path).unwrap();
        for (index, line) in text.lines().enumerate() {
            let bad = capitals(line).find(|(word, number)| UNKNOWN_DOCUMENTS.contains(word) || is_id(word, number));
            offences.extend(bad.map(|(word, number)| format!("{}:{}: {word} {number}", shown(&path), index + 1)));
        }
    }
    assert_none("citations of what is not in the repository", &offences);
}

#[test]
fn a_citation_of_several_sections_names_each() {
    assert_eq!(
        cited_sections(" sections 3.3, 9 and 14.1. More"),
        ["3.3 ", "9 ", "14.1 "]
    );
    assert_eq!(cited_sections(" section 2), 3"), ["2 "]);
    assert_eq!(cited_sections(" \"On a host\" and more"), ["On a host"]);
    assert_eq!(cited_sections(" says more"), [] as [&str; 0]);
    assert!(has_heading("# A\n### 1.2 The sum", "1.2 ") && !has_heading("## 1.2 The sum", "1 "));
    assert_eq!(on_one_line("/// See X.md\n    /// section 1."), "See X.md section 1.");
}
