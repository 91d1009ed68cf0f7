//! The README and the guides say what is true: their examples run, and their commands, options and
//! links exist.
//!
//! A block ```` ```console ```` has lines `$ COMMAND`, below a command its further lines as
//! `> LINE`, and then its output.
//!
//! All blocks of a document run in order, in one shell of an ordinary user, who is called `ann` and
//! whose host is called `node1`. Times and numbers are masked; `…` stands for any text. A command
//! that only asks is repeated until it answers as shown. In a block ```` ```sh ````, which needs
//! root or another machine, and in `code` of the text only names and options are checked.
//!
//! `GRIDWRIGHT_DOCS=write` writes the output of a command into the document where it differs from
//! what is shown.

mod commands;

use gridwright_tests::cell::{Account, Programs, TempDir, wait_for, wait_until};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// Documents with examples or commands. `master/COMPATIBILITY.md` is not among them: it names
/// options that there are not.
const DOCUMENTS: [&str; 14] = [
    "README.md",
    "agent/README.md",
    "sensors/README.md",
    "master/README.md",
    "master/cli/README.md",
    "master/python/README.md",
    "master/ALGORITHMS.md",
    "master/EVENTS.md",
    "master/GLOSSARY.md",
    "ARCHITECTURE.md",
    ".github/SECURITY.md",
    "systemd/README.md",
    "CONTRIBUTING.md",
    "tests/README.md",
];

/// Commands that only ask, by their first words.
const QUESTIONS: &str = "qstat|qhost|qacct|qquota|qselect|qrstat|qconf -s|cat|ls|gridwright explain|\
                         gridwright sensor status|gridwright host list|gridwright shares|gridwright doctor";

/// How long a question is repeated.
const PATIENCE: Duration = Duration::from_secs(60);

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn is_writing() -> bool {
    std::env::var("GRIDWRIGHT_DOCS").is_ok_and(|value| value == "write")
}

/// The lines of the blocks of one language, each block with the number of its first line.
fn blocks(text: &str, language: &str) -> Vec<(usize, Vec<String>)> {
    let (mut found, mut open) = (Vec::<(usize, Vec<String>)>::new(), None::<bool>);
    for (number, line) in text.lines().enumerate() {
        match (line.strip_prefix("```"), open) {
            (Some(tag), None) => {
                open = Some(tag == language);
                if tag == language {
                    found.push((number + 1, Vec::new()));
                }
            }
            (Some(_), Some(_)) => open = None,
            (None, Some(true)) => found.last_mut().unwrap().1.push(line.to_owned()),
            (None, _) => {}
        }
    }
    found
}

/// One command of a console block and what the document shows below it.
struct Step {
    command: String,
    shown: String,
    /// The lines of the document that show the output.
    lines: std::ops::Range<usize>,
}

fn steps(text: &str) -> Vec<Step> {
    let mut steps = Vec::<Step>::new();
    for (first, lines) in blocks(text, "console") {
        for (number, line) in (first..).zip(lines) {
            let is_fresh = steps.last().is_some_and(|step| step.shown.is_empty());
            if let Some(command) = line.strip_prefix("$ ") {
                steps.push(Step {
                    command: command.to_owned(),
                    shown: String::new(),
                    lines: number + 1..number + 1,
                });
                continue;
            }
            let step = steps.last_mut().expect("a console block begins with a command");
            step.lines.end = number + 1;
            if let (Some(more), true) = (line.strip_prefix("> "), is_fresh) {
                step.command.push_str(&format!("\n{more}"));
                step.lines.start = number + 1;
            } else {
                step.shown.push_str(&format!("{line}\n"));
            }
        }
    }
    steps
}

/// A shell of an ordinary user in a home directory that is removed with it, and with all that runs
/// there.
struct Shell {
    child: Child,
    stdin: ChildStdin,
    account: Arc<Account>,
    temp: TempDir,
}

impl Shell {
    fn start() -> Self {
        let (temp, account) = (TempDir::new(), Account::shared());
        let programs = Programs::find(temp.path());
        let home = temp.path().join("home");
        copy(
            &root().join("sensors/scripts"),
            &home.join("gridwright/sensors/scripts"),
        );
        let given = Command::new("chown")
            .args(["-R", &format!("{}:{}", account.uid, account.gid)])
            .arg(&home)
            .status();
        assert!(given.is_ok_and(|status| status.success()), "chown {}", home.display());
        let path = format!(
            "{}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            programs.dir().display()
        );
        let mut command = Command::new("bash");
        command
            .args(["--norc", "-s"])
            .env_clear()
            .env("PATH", path)
            .env("HOME", &home)
            .env("LC_ALL", "C.UTF-8");
        // Any free port: cells of other tests look for one at the same time.
        command.env("SGE_QMASTER_PORT", "0");
        command
            .env("USER", &account.name)
            .env("LOGNAME", &account.name)
            .current_dir(&home);
        if account.is_made() {
            command.uid(account.uid).gid(account.gid);
        }
        let out = std::fs::File::create(temp.path().join("out")).unwrap();
        let err = out.try_clone().unwrap();
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(out)
            .stderr(err)
            .spawn()
            .expect("bash starts");
        let stdin = child.stdin.take().unwrap();
        Self {
            child,
            stdin,
            account,
            temp,
        }
    }

    /// Runs a command to its end and returns what it printed, with the names that documents use.
    fn run(&mut self, command: &str) -> String {
        let (script, out) = (self.temp.path().join("step"), self.temp.path().join("out"));
        let read = || String::from_utf8_lossy(&std::fs::read(&out).unwrap_or_default()).into_owned();
        let (before, mark) = (read().len(), "--- end of step ---\n");
        std::fs::write(&script, format!("{}\n", replace_word(command, "node1", &host()))).unwrap();
        writeln!(
            self.stdin,
            ". {} </dev/null; echo '{}'",
            script.display(),
            mark.trim_end()
        )
        .unwrap();
        wait_until(
            || format!("the end of {command:?}: {}", read()),
            || read()[before..].ends_with(mark),
        );
        let said = read()[before..].strip_suffix(mark).unwrap().to_owned();
        let said = self.with_names(&said);
        if command.starts_with("gridwright up") {
            // Two cells on one machine would share /tmp/JOB.TASK.QUEUE.
            self.run("gridwright qconf -mattr queue tmpdir ~ all.q; true");
        }
        said
    }

    /// The text with the names that documents use.
    fn with_names(&self, text: &str) -> String {
        let text = text.replace(&self.temp.path().join("home").display().to_string(), "/home/ann");
        let text = replace_word(&text, &self.account.name, "ann");
        replace_word(&text, &host(), "node1")
    }

    /// Runs a step, again and again if it only asks, until it says what is shown.
    fn follow(&mut self, step: &Step) -> Result<(), String> {
        let mut said = self.run(&step.command);
        // An account or a host may be called like a word of the output.
        let shown = self.with_names(&step.shown);
        let is_question = QUESTIONS.split('|').any(|question| step.command.starts_with(question));
        let patience = if is_writing() {
            Duration::from_secs(15)
        } else {
            PATIENCE
        };
        if is_question && !agrees(&shown, &said) {
            wait_for(patience, || {
                said = self.run(&step.command);
                agrees(&shown, &said)
            });
        }
        if agrees(&shown, &said) { Ok(()) } else { Err(said) }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let down = "test ! -e ~/cell || gridwright down --dir ~/cell --kill-jobs; exit";
        let _ = writeln!(self.stdin, "{down}");
        let _ = self.child.wait();
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// The name of this machine, which documents call `node1`.
fn host() -> String {
    let name = nix::unistd::gethostname().unwrap().to_string_lossy().into_owned();
    name.split('.').next().unwrap().to_owned()
}

fn replace_word(text: &str, word: &str, by: &str) -> String {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let (mut all, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(word) {
        let (before, after) = (&rest[..at], &rest[at + word.len()..]);
        let is_whole = !is_part(before.chars().last()) && !is_part(after.chars().next());
        all.push_str(before);
        all.push_str(if is_whole { by } else { word });
        rest = after;
    }
    all + rest
}

/// Masks what differs from run to run: times, measured and long numbers, days, months, and how wide
/// columns are. Units and numbers of up to three digits stay, but not in the line of a host, which
/// is about the machine.
fn mask(text: &str) -> String {
    let line = |line: &str| {
        let is_host = line.contains("lx-a");
        line.split_whitespace()
            .map(|word| mask_word(word, is_host))
            .collect::<Vec<_>>()
            .join(" ")
    };
    text.trim_end().lines().map(line).collect::<Vec<_>>().join("\n")
}

fn mask_word(word: &str, is_host: bool) -> String {
    let names = "Mon Tue Wed Thu Fri Sat Sun Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec";
    if names.split(' ').any(|name| name == word) {
        return "DAY".to_owned();
    }
    let word = word.replace("lx-arm64", "lx-amd64");
    let (mut masked, mut rest) = (String::new(), word.as_str());
    while let Some(c) = rest.chars().next() {
        let number = rest
            .find(|c: char| !c.is_ascii_digit() && !".:/".contains(c))
            .unwrap_or(rest.len());
        if c.is_ascii_digit() {
            let (number, behind) = rest.split_at(number);
            let is_kept = !is_host && number.len() <= 3 && number.bytes().all(|byte| byte.is_ascii_digit());
            masked.push_str(if is_kept { number } else { "#" });
            rest = if is_host {
                behind.trim_start_matches(['K', 'M', 'G', 'T'])
            } else {
                behind
            };
            continue;
        }
        if !("-=".contains(c) && masked.ends_with(c)) {
            masked.push(c);
        }
        rest = &rest[c.len_utf8()..];
    }
    if masked == "-" { "#".to_owned() } else { masked }
}

/// Whether an output is as shown, where `…` stands for any text.
fn agrees(shown: &str, said: &str) -> bool {
    let (shown, said) = (mask(shown).replace("…\n", "…").replace("\n…", "…"), mask(said));
    let pieces: Vec<&str> = shown.split('…').collect();
    let [first, middle @ .., last] = pieces.as_slice() else {
        return shown == said;
    };
    let Some(mut rest) = said.strip_prefix(first) else {
        return false;
    };
    for piece in middle {
        let Some(at) = rest.find(piece) else { return false };
        rest = &rest[at + piece.len()..];
    }
    rest.ends_with(last)
}

/// Runs the examples of one document. `prepare` comes before them.
fn follow(document: &str, prepare: &str) {
    let path = root().join(document);
    let text = std::fs::read_to_string(&path).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut shell = Shell::start();
    let said = shell.run(prepare);
    assert!(!said.contains("error:"), "{said}");
    let (mut differences, mut shift) = (Vec::new(), 0isize);
    for step in steps(&text) {
        let Err(said) = shell.follow(&step) else { continue };
        differences.push(format!(
            "$ {}\n--- shown\n{}--- printed\n{said}",
            step.command, step.shown
        ));
        let said: Vec<String> = said.trim_end().lines().map(|line| line.trim_end().to_owned()).collect();
        let at = |line: usize| line.checked_add_signed(shift).unwrap();
        let (range, more) = (
            at(step.lines.start)..at(step.lines.end),
            said.len() as isize - step.lines.len() as isize,
        );
        lines.splice(range, said);
        shift += more;
    }
    if is_writing() {
        std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    } else {
        assert!(
            differences.is_empty(),
            "{document} differs from what is printed:\n{}",
            differences.join("\n")
        );
    }
}

/// Brings up the cell of guides that begin where the README ends.
const CELL: &str = "gridwright up --dir ~/cell --detach --slots 4\neval \"$(gridwright env --dir ~/cell)\"";

#[test]
fn examples_of_the_readme_run() {
    follow("README.md", "true");
}

#[test]
fn examples_for_compute_nodes_run() {
    follow("agent/README.md", CELL);
}

#[test]
fn examples_for_authors_of_sensors_run() {
    follow("sensors/README.md", CELL);
}

#[test]
fn examples_for_administrators_run() {
    follow("master/README.md", CELL);
}

#[test]
fn examples_for_users_run() {
    follow("master/cli/README.md", CELL);
}
