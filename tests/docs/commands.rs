//! Commands, options and links in documents exist.

use super::{DOCUMENTS, blocks, root};
use gridwright_tests::cell::{Programs, TempDir};
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// What the programs say of themselves.
struct ProgramFacts {
    programs: Programs,
    commands: BTreeSet<String>,
    options: BTreeMap<String, BTreeSet<String>>,
}

impl ProgramFacts {
    fn ask(temp: &TempDir) -> Self {
        let programs = Programs::find(temp.path());
        let mut known = Self {
            programs,
            commands: BTreeSet::new(),
            options: BTreeMap::new(),
        };
        let overview = known.said(&["help"]);
        let lines = overview.lines().filter_map(|line| line.strip_prefix("   "));
        known.commands = lines
            .filter_map(|line| line.split_whitespace().next())
            .map(str::to_owned)
            .collect();
        assert!(
            known.commands.contains("qsub") && known.commands.contains("up"),
            "{overview}"
        );
        known
    }

    fn said(&self, words: &[&str]) -> String {
        let output = Command::new(self.programs.gridwright()).args(words).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The options of a command, as its help lists them.
    fn options(&mut self, command: &[&str]) -> &BTreeSet<String> {
        let key = command.join(" ");
        if !self.options.contains_key(&key) {
            let help = self.said(&[command, &["-help"]].concat());
            let names = help
                .lines()
                .filter_map(|line| line.trim_start().strip_prefix('[')?.split([' ', ']']).next());
            self.options.insert(key.clone(), names.map(str::to_owned).collect());
        }
        &self.options[&key]
    }

    /// Returns what is wrong with the commands of a line of shell.
    fn faults(&mut self, line: &str) -> Vec<String> {
        let line = line.split(" #").next().unwrap_or_default();
        let parts = line.split(['|', ';', '&', '(', ')', '`']);
        let mut faults = Vec::new();
        for part in parts {
            let words: Vec<&str> = part
                .split_whitespace()
                .map(|word| word.trim_matches(['"', '\'']))
                .collect();
            let is_before = |word: &&str| word.contains('=') || ["sudo", "eval", ""].contains(word);
            let Some(at) = words.iter().position(|word| !is_before(word)) else {
                continue;
            };
            let is_own = words[at].rsplit('/').next() == Some("gridwright");
            if !is_own && !self.is_classic(words[at]) {
                continue;
            }
            let command = words.get(at + usize::from(is_own)).copied().unwrap_or("help");
            if !self.commands.contains(command) {
                let is_general = ["help", "--version", "COMMAND"].contains(&command) || command.starts_with('.');
                faults.extend((!is_general).then(|| format!("no command {command}: {line}")));
                continue;
            }
            let of_check = [command, "check"];
            let is_check = command == "sensor" && words.get(at + 2) == Some(&"check");
            let command = if is_check { &of_check[..] } else { &of_check[..1] };
            let given = words.iter().skip(at + 1).filter(|word| is_option(word));
            let options = self.options(command);
            let unknown = given.filter(|word| !options.contains(word.split('=').next().unwrap_or_default()));
            faults.extend(unknown.map(|word| format!("{} has no option {word}: {line}", command.join(" "))));
        }
        faults
    }

    fn is_classic(&self, word: &str) -> bool {
        word.starts_with('q') && self.commands.contains(word)
    }
}

fn is_option(word: &str) -> bool {
    word.trim_start_matches('-')
        .starts_with(|c: char| c.is_ascii_alphabetic())
        && word.starts_with('-')
}

/// What stands between single backticks outside of blocks, in one line.
fn code_spans(text: &str) -> Vec<String> {
    let mut is_block = false;
    let outside = text.lines().filter(|line| {
        let is_fence = line.starts_with("```");
        is_block ^= is_fence;
        !is_block && !is_fence
    });
    outside
        .flat_map(|line| line.split('`').skip(1).step_by(2).map(str::to_owned))
        .collect()
}

#[test]
fn commands_and_options_in_documents_exist() {
    let temp = TempDir::new();
    let mut known = ProgramFacts::ask(&temp);
    let mut faults = Vec::new();
    for document in DOCUMENTS {
        let text = std::fs::read_to_string(root().join(document)).unwrap();
        let shell = blocks(&text, "sh").into_iter().flat_map(|(_, lines)| lines);
        for line in shell.chain(code_spans(&text)) {
            faults.extend(
                known
                    .faults(&line)
                    .into_iter()
                    .map(|fault| format!("{document}: {fault}")),
            );
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_program_prints_its_help_and_its_version() {
    let temp = TempDir::new();
    let programs = Programs::find(temp.path());
    for name in [
        "gridwright",
        "gridwright-master",
        "gridwright-agent",
        "gridwright-shepherd",
    ] {
        let said = |word: &str| {
            let output = Command::new(programs.dir().join(name)).arg(word).output().unwrap();
            assert!(
                output.status.success() && output.stderr.is_empty(),
                "{name} {word}: {output:?}"
            );
            String::from_utf8(output.stdout).unwrap()
        };
        let (help, version) = (said("--help"), said("--version"));
        assert!(
            help.contains("usage: gridwright") && said("-help") == help && said("-h") == help,
            "{name}: {help}"
        );
        let product = if name == "gridwright" { "Gridwright" } else { name };
        assert!(
            version.starts_with(&format!("{product} {}", env!("CARGO_PKG_VERSION"))),
            "{name}: {version}"
        );
        assert!(
            said("-version") == version && said("-V") == version,
            "{name}: {version}"
        );
    }
}

#[test]
fn links_of_documents_lead_to_files() {
    let mut faults = Vec::new();
    for document in DOCUMENTS {
        let path = root().join(document);
        let text = std::fs::read_to_string(&path).unwrap();
        for target in text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split([')', '#']).next())
        {
            let is_file = !target.is_empty() && !target.contains("://");
            if is_file && !path.parent().unwrap().join(target).exists() {
                faults.push(format!("{document}: {target}"));
            }
        }
    }
    assert!(
        faults.is_empty(),
        "links to files that are not there:\n{}",
        faults.join("\n")
    );
}

#[test]
fn packages_and_tests_that_documents_run_exist() {
    let manifests = [
        "proto",
        "proto/logging",
        "proto/quic",
        "proto/version",
        "sensors",
        "agent",
        "agent/core",
        "agent/shepherd",
    ];
    let manifests = manifests
        .iter()
        .chain(&["master", "master/core", "master/cli", "tests"]);
    let read = |package: &&str| std::fs::read_to_string(root().join(package).join("Cargo.toml")).unwrap();
    let names: String = manifests.map(read).collect();
    for document in DOCUMENTS {
        let text = std::fs::read_to_string(root().join(document)).unwrap();
        let words: Vec<&str> = text
            .split(|c: char| c.is_whitespace() || "`'\"),.;".contains(c))
            .collect();
        for pair in words
            .windows(2)
            .filter(|pair| ["-p", "--test", "--bin"].contains(&pair[0]))
        {
            let is_meant = pair[0] != "-p" || pair[1].starts_with("gridwright");
            let known = names.contains(&format!("name = \"{}\"", pair[1]));
            assert!(known || !is_meant, "{document}: {} {} does not exist", pair[0], pair[1]);
        }
    }
}
