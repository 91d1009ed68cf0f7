//! Spawning and printing the commands of the tour.

use super::account::Account;
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

/// Of a listing more than twice as long, so many lines are printed from its head.
const SHOWN_LINES: usize = 48;

/// What a command printed and returned.
pub struct Said {
    /// Standard output, then standard error.
    pub text: String,
    /// Exit code.
    pub code: i32,
}

/// As whom a command runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum As {
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
        let program = crate::programs::reachable(&dir.join("programs"))?.join("gridwright");
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
            self.quiet(As::Admin, &["down", "--dir", &cell, "--kill-jobs"]);
            self.quiet(As::Admin, &["down", "--dir", &cell]);
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
    pub fn show(&self, who: As, words: &[&str]) -> Said {
        let said = self.quiet(who, words);
        let command =
            if words[0].starts_with('q') { words.join(" ") } else { format!("gridwright {}", words.join(" ")) };
        output::data(&format!("$ {command}\n{}", said.text));
        said
    }

    /// The same; an exit code other than 0 ends the step.
    ///
    /// # Errors
    /// If the command fails.
    pub fn must(&self, who: As, words: &[&str]) -> Result<String, Fail> {
        let said = self.show(who, words);
        if said.code == 0 { Ok(said.text) } else { Err(failed(format!("{} returned {}", words.join(" "), said.code))) }
    }

    /// Runs a command without printing it.
    pub fn quiet(&self, who: As, words: &[&str]) -> Said {
        let mut command = Command::new(&self.program);
        command.args(words).current_dir(self.work());
        command.env("GRIDWRIGHT_DIR", self.cell()).env("SGE_ROOT", self.cell()).env("SGE_SINGLE_LINE", "1");
        if who == As::User && nix::unistd::getuid().is_root() {
            let Account { name, uid, gid, home, .. } = &self.account;
            command.uid(*uid).gid(*gid).env("HOME", home).env("USER", name).env("LOGNAME", name);
        }
        match command.output() {
            Ok(out) => {
                let text = format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
                Said { text, code: out.status.code().unwrap_or(-1) }
            }
            Err(error) => Said { text: format!("{error}\n"), code: -1 },
        }
    }

    /// Repeats a command until what it says holds, then prints it.
    ///
    /// # Errors
    /// If it does not hold in time; the last answer is printed.
    pub fn until(&self, who: As, words: &[&str], what: &str, holds: impl Fn(&Said) -> bool) -> Result<Said, Fail> {
        let mut last = self.quiet(who, words);
        let fine = wait_for(PATIENCE, || {
            if holds(&last) {
                return true;
            }
            last = self.quiet(who, words);
            holds(&last)
        });
        output::data(&format!("$ {}\n{}", words.join(" "), shortened(&last.text)));
        if fine { Ok(last) } else { Err(failed(format!("{what}: not within {} s", PATIENCE.as_secs()))) }
    }

    /// Submits a job and returns its number.
    ///
    /// # Errors
    /// If it is not accepted.
    pub fn submit(&self, words: &[&str]) -> Result<String, Fail> {
        let mut all = vec!["qsub", "-cwd", "-j", "y"];
        all.extend(words);
        let text = self.must(As::User, &all)?;
        let number: String =
            text.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
        if number.is_empty() { Err(failed("qsub told no job number".to_owned())) } else { Ok(number) }
    }

    /// Waits until accounting knows `count` tasks of a job.
    ///
    /// # Errors
    /// If it does not in time.
    pub fn accounted(&self, job: &str, count: usize) -> Result<String, Fail> {
        let said = self.until(As::User, &["qacct", "-j", job], "the accounting record", |said| {
            said.text.lines().filter(|line| line.starts_with("jobnumber")).count() >= count
        })?;
        Ok(said.text)
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

/// A long listing without its middle.
fn shortened(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    if lines.len() <= 2 * SHOWN_LINES {
        return text.to_owned();
    }
    let (head, tail) = (&lines[..SHOWN_LINES], &lines[lines.len() - SHOWN_LINES / 4..]);
    let left_out = lines.len() - head.len() - tail.len();
    format!("{}\n[... {left_out} lines ...]\n{}\n", head.join("\n"), tail.join("\n"))
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
    Diagnostic::new(Code::SystemRefused, format!("error: cannot {what}")).why(error.to_string()).into()
}

/// The path as a word of a command.
pub fn word(path: &Path) -> String {
    path.display().to_string()
}
