//! Spawning and printing the commands of the tour.

use super::account::Account;
use super::interrupt::is_interrupted;
use crate::daemons::wait_for;
use crate::fail::Fail;
use crate::output;
use proto::diagnostic::{Code, Diagnostic};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// How long anything may take, also on a machine at a load of 30.
const PATIENCE: Duration = Duration::from_secs(50);

/// What stands between two records of `qacct -j`.
const SEPARATOR: &str = "==============================================================";

/// Records that are printed.
const SHOWN_RECORDS: usize = 3;

/// What a command printed and returned.
pub struct CommandOutput {
    /// Standard output, then standard error.
    pub text: String,
    /// Exit code.
    pub code: i32,
}

/// As whom a command runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum CommandUser {
    /// The caller, who administers the cell.
    Admin,
    /// The account of the jobs.
    User,
}

/// The tour: where it is and who walks it.
pub struct Tour {
    /// A directory of its own, open to the daemons and the jobs.
    pub dir: PathBuf,
    /// The account of the jobs.
    pub account: Account,
    program: PathBuf,
}

impl Tour {
    /// Makes the directory and the account.
    ///
    /// # Errors
    /// If the system refuses either.
    pub fn begin() -> Result<Self, Fail> {
        let account = Account::for_jobs()?;
        let name = format!("gridwright-demo-{}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        std::fs::create_dir(&dir).map_err(|error| system("make a directory", &error))?;
        std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o755))
            .map_err(|error| system("open it", &error))?;
        let program = crate::programs::reachable(&dir, &["programs"])?.join("gridwright");
        let work = dir.join("work");
        std::fs::create_dir(&work).map_err(|error| system("make a directory", &error))?;
        std::os::unix::fs::chown(&work, Some(account.uid), Some(account.gid))
            .map_err(|error| system("give it away", &error))?;
        Ok(Self { dir, account, program })
    }

    /// The state directory of the cell.
    pub fn cell(&self) -> PathBuf {
        self.dir.join("cell")
    }

    /// The directory of the jobs.
    pub fn work(&self) -> PathBuf {
        self.dir.join("work")
    }

    /// Ends the cell and removes the directory.
    pub fn end(&self, keep: bool) {
        let cell = self.cell().display().to_string();
        if self.cell().join("etc/cell.toml").exists() {
            self.quiet(CommandUser::Admin, &["down", "--dir", &cell, "--kill-jobs"]);
            self.quiet(CommandUser::Admin, &["down", "--dir", &cell]);
        }
        if keep {
            output::note(&format!("kept: {}", self.dir.display()));
        } else {
            // A directory that cannot be removed is in the temporary directory and harms nobody.
            let _ = std::fs::remove_dir_all(&self.dir);
        }
    }

    /// Prints what comes next.
    pub fn headline(&self, name: &str) {
        output::data(&format!("\n=== {name}\n"));
    }

    /// Prints a remark.
    pub fn say(&self, text: &str) {
        output::data(&format!("# {text}\n"));
    }

    /// Runs a command and prints it with what it said.
    pub fn show(&self, who: CommandUser, words: &[&str]) -> CommandOutput {
        let said = self.quiet(who, words);
        output::data(&format!("$ {}\n{}", typed(words), said.text));
        said
    }

    /// The same; an exit code other than 0 ends the step.
    ///
    /// # Errors
    /// If the command fails.
    pub fn must(&self, who: CommandUser, words: &[&str]) -> Result<String, Fail> {
        let said = self.show(who, words);
        if is_interrupted() {
            return Err(failed("interrupted".to_owned()));
        }
        if said.code == 0 {
            Ok(said.text)
        } else {
            Err(failed(format!("{} returned {}", words.join(" "), said.code)))
        }
    }

    /// Runs a command without printing it.
    pub fn quiet(&self, who: CommandUser, words: &[&str]) -> CommandOutput {
        let mut command = Command::new(&self.program);
        command.args(words).current_dir(self.work());
        command
            .env("GRIDWRIGHT_DIR", self.cell())
            .env("SGE_ROOT", self.cell())
            .env("SGE_SINGLE_LINE", "1");
        if who == CommandUser::User && nix::unistd::getuid().is_root() {
            let Account {
                name, uid, gid, home, ..
            } = &self.account;
            command
                .uid(*uid)
                .gid(*gid)
                .env("HOME", home)
                .env("USER", name)
                .env("LOGNAME", name);
        }
        match command.output() {
            Ok(out) => {
                let text = format!(
                    "{}{}",
                    String::from_utf8_lossy(&out.stdout),
                    String::from_utf8_lossy(&out.stderr)
                );
                CommandOutput {
                    text,
                    code: out.status.code().unwrap_or(-1),
                }
            }
            Err(error) => CommandOutput {
                text: format!("{error}\n"),
                code: -1,
            },
        }
    }

    /// Repeats a command until what it says holds, then prints it.
    ///
    /// # Errors
    /// If it does not hold in time; the last answer is printed.
    pub fn until(
        &self,
        who: CommandUser,
        words: &[&str],
        what: &str,
        holds: impl Fn(&CommandOutput) -> bool,
    ) -> Result<CommandOutput, Fail> {
        let (said, outcome) = self.repeat(who, words, what, holds);
        output::data(&format!("$ {}\n{}", typed(words), said.text));
        outcome.map(|()| said)
    }

    /// Repeats a command until what it says holds: its last answer, and whether that came in time.
    fn repeat(
        &self,
        who: CommandUser,
        words: &[&str],
        what: &str,
        holds: impl Fn(&CommandOutput) -> bool,
    ) -> (CommandOutput, Result<(), Fail>) {
        let mut last = self.quiet(who, words);
        let fine = wait_for(PATIENCE, || {
            if holds(&last) || is_interrupted() {
                return true;
            }
            last = self.quiet(who, words);
            holds(&last)
        });
        let outcome = match (is_interrupted(), fine) {
            (true, _) => Err(failed("interrupted".to_owned())),
            (false, true) => Ok(()),
            (false, false) => Err(failed(format!("{what}: not within {} s", PATIENCE.as_secs()))),
        };
        (last, outcome)
    }

    /// Submits a job and returns its number.
    ///
    /// # Errors
    /// If it is not accepted.
    pub fn submit(&self, words: &[&str]) -> Result<String, Fail> {
        let mut all = vec!["qsub", "-cwd", "-j", "y"];
        all.extend(words);
        let text = self.must(CommandUser::User, &all)?;
        let number: String = text
            .chars()
            .skip_while(|c| !c.is_ascii_digit())
            .take_while(char::is_ascii_digit)
            .collect();
        if number.is_empty() {
            Err(failed("qsub told no job number".to_owned()))
        } else {
            Ok(number)
        }
    }

    /// Waits until accounting knows `count` tasks of a job.
    ///
    /// # Errors
    /// If it does not in time.
    pub fn accounted(&self, job: &str, count: usize) -> Result<String, Fail> {
        let words = ["qacct", "-j", job];
        let said = self.repeat(CommandUser::User, &words, "the accounting record", |said| {
            said.text.lines().filter(|line| line.starts_with("jobnumber")).count() >= count
        });
        let (said, outcome) = said;
        output::data(&format!("$ {}\n{}", typed(&words), telling(&said.text)));
        outcome.map(|()| said.text)
    }

    /// Writes a file of the tour.
    ///
    /// # Errors
    /// If the system refuses it.
    pub fn write(&self, name: &str, text: &str, mode: u32) -> Result<PathBuf, Fail> {
        let path = self.dir.join(name);
        std::fs::write(&path, text).map_err(|error| system("write a file", &error))?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode))
            .map_err(|error| system("write a file", &error))?;
        Ok(path)
    }
}

/// A command as it would be typed.
fn typed(words: &[&str]) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    let quoted = |word: &&str| {
        if !word.is_empty() && word.chars().all(is_plain) {
            (*word).to_owned()
        } else {
            format!("'{word}'")
        }
    };
    let line = words.iter().map(quoted).collect::<Vec<_>>().join(" ");
    if words[0].starts_with('q') {
        line
    } else {
        format!("gridwright {line}")
    }
}

/// Of accounting records the lines that tell something here: of the first ones all of them, of many
/// the rest is counted.
fn telling(text: &str) -> String {
    const KEYS: [&str; 9] = [
        "jobnumber",
        "taskid",
        "hostname",
        "owner",
        "failed",
        "exit_status",
        "ru_wallclock",
        "peak_rss",
        "limit",
    ];
    let records: Vec<&str> = text
        .split(SEPARATOR)
        .map(str::trim_start)
        .filter(|record| !record.is_empty())
        .collect();
    let mut shown = String::new();
    for record in records.iter().take(SHOWN_RECORDS) {
        let is_telling = |line: &&str| line.split_whitespace().next().is_some_and(|key| KEYS.contains(&key));
        record
            .lines()
            .filter(is_telling)
            .for_each(|line| shown += &format!("{}\n", line.trim_end()));
        shown += "[... more lines]\n";
    }
    match records.len().saturating_sub(SHOWN_RECORDS) {
        0 => shown,
        more => shown + &format!("[... {more} more records]\n"),
    }
}

/// A step that did not show what it should.
pub fn failed(what: String) -> Fail {
    Diagnostic::new(Code::WrongState, what).into()
}

/// Ends the step unless something holds.
///
/// # Errors
/// If it does not hold.
pub fn verify(holds: bool, what: &str) -> Result<(), Fail> {
    if holds {
        output::data(&format!("ok: {what}\n"));
        return Ok(());
    }
    Err(failed(format!("expected that {what}")))
}

/// The value behind a key in a block of `qacct -j`.
pub fn field<'a>(block: &'a str, key: &str) -> &'a str {
    let line = block.lines().find(|line| line.split_whitespace().next() == Some(key));
    line.map(|line| line[key.len()..].trim()).unwrap_or_default()
}

fn system(what: &str, error: &std::io::Error) -> Fail {
    Diagnostic::new(Code::SystemRefused, format!("error: cannot {what}"))
        .why(error.to_string())
        .into()
}

/// The path as a word of a command.
pub fn word(path: &Path) -> String {
    path.display().to_string()
}
