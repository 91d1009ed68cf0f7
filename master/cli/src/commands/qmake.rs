//! `qmake`: GNU make whose recipe lines run on the hosts of a parallel job, or as jobs of their
//! own.
//!
//! Make itself is the one of the host. It is told that its shell is this program, which gives each
//! recipe line a slot: see [`recipe`].

mod recipe;

use crate::args::ValueCount::{One, Two};
use crate::args::{CommandDef, Operands, flag, with};
use crate::commands::Outcome;
use crate::fail::Fail;
use crate::{exit, output};
use proto::diagnostic::{Code, Diagnostic};
use recipe::{RecipeMode, Slots};
use std::ffi::OsStr;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

/// The word with which make calls this program for a recipe line.
const RECIPE: &str = "--recipe-line";

pub const QMAKE: CommandDef = CommandDef {
    name: "qmake",
    summary: "Runs GNU make, whose recipe lines run on the hosts of a parallel job (-pe, or -inherit inside of one), or,\n\
              outside of one, as jobs of their own. All options of qrsh may come before --, those of make behind it.",
    operand_placeholder: "[options of qrsh] -- [options and targets of make]",
    operands: Operands::EndOptionsOrDashes,
    options: &[
        flag("-cwd", "the job runs in the current directory"),
        flag("-help", "print this help"),
        flag(
            "-inherit",
            "do not submit a job: inside of a parallel job, use its slots",
        ),
        with("-l", One, "resource_list", "request resources"),
        with(
            "-pe",
            Two,
            "pe-name slot_range",
            "submit a parallel job, and run the lines in its slots",
        ),
        with("-q", One, "wc_queue_list", "bind the job to queues"),
        with("-v", One, "variable_list", "export these environment variables"),
        flag("-V", "export all environment variables"),
        flag("-verbose", "say on stderr where each line runs"),
    ],
    exit_codes: "that of make; 1 make was not found, or a job could not be submitted",
};

/// The words of a `qmake`, on both sides of `--`.
#[derive(Debug, PartialEq, Eq)]
struct MakeRequest {
    /// Options of qrsh, without `-inherit`.
    of_job: Vec<String>,
    is_inherit: bool,
    of_make: Vec<String>,
}

impl MakeRequest {
    fn parse(words: &[String]) -> Self {
        let mut sides = words.splitn(2, |word| word == "--");
        let (before, after) = (sides.next().unwrap_or_default(), sides.next().unwrap_or_default());
        Self {
            of_job: before.iter().filter(|word| *word != "-inherit").cloned().collect(),
            is_inherit: before.iter().any(|word| word == "-inherit"),
            of_make: after.to_vec(),
        }
    }

    fn has(&self, option: &str) -> bool {
        self.of_job.iter().any(|word| word == option)
    }
}

/// Runs `qmake`.
pub fn run(words: Vec<String>) -> Outcome {
    if let [RECIPE, line] = words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        return recipe::run(line);
    }
    let request = MakeRequest::parse(&words);
    if request.has("-help") || request.has("--help") {
        output::data(&QMAKE.help());
        return Ok(exit::OK);
    }
    let is_in_job = std::env::var_os("JOB_ID").is_some();
    if !request.is_inherit && request.has("-pe") {
        return submitted(&request);
    }
    let mode = match Slots::from_environment() {
        Some(slots) if request.is_inherit => RecipeMode::Slots(slots),
        None if request.is_inherit && is_in_job => RecipeMode::Slots(Slots::of_serial_job()),
        Some(_) | None => RecipeMode::Jobs(request.of_job.clone()),
    };
    make(&request, &mode)
}

/// Has the job submitted that runs make: this command with `-inherit`, inside of it.
fn submitted(request: &MakeRequest) -> Outcome {
    let mut command = own("qrsh")?;
    command.arg("-noshell").args(&request.of_job);
    command.arg(path_in_job()).args(["-inherit"]);
    if request.has("-verbose") {
        command.arg("-verbose");
    }
    command.arg("--").args(&request.of_make);
    finished(command.status(), "qrsh")
}

/// Where the hosts of the cell have this command.
fn path_in_job() -> PathBuf {
    let directory = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    match (directory("SGE_ROOT"), directory("SGE_ARCH")) {
        (Some(root), Some(arch)) => Path::new(&root).join("bin").join(arch).join(QMAKE.name),
        _ => PathBuf::from(QMAKE.name),
    }
}

/// This program under the name of one of its commands.
fn own(name: &str) -> Result<Command, Fail> {
    let program = std::env::current_exe().map_err(|error| not_started(name, &error))?;
    let mut command = Command::new(program);
    command.arg(name);
    Ok(command)
}

/// Runs make with this program as the shell of its recipe lines. `$(shell ...)` outside of recipes
/// has the usual shell: there make knows no target.
fn make(request: &MakeRequest, mode: &RecipeMode) -> Outcome {
    let program = find_make()?;
    let room = mode.prepare()?;
    let own = std::env::current_exe().map_err(|error| not_started("make", &error))?;
    let shell = recipe::shell(room.path(), &own)?;
    let mut command = Command::new(&program);
    command
        .arg(format!("MAKE={}", program.display()))
        .arg(format!("SHELL=$(if $@,{},/bin/sh)", shell.display()))
        .arg(format!(".SHELLFLAGS=$(if $@,{RECIPE},-c)"))
        .env(recipe::ROOM, room.path())
        .env(recipe::MAKE, &program);
    if request.has("-verbose") {
        command.env(recipe::VERBOSE, "1");
    }
    if let Some(slots) = mode.slots()
        && !request.of_make.iter().any(|word| is_jobs_option(word))
    {
        command.arg(format!("-j{slots}"));
    }
    command.args(&request.of_make);
    finished(command.status(), "make")
}

/// Whether a word is make's `-j`, with its number or before it.
fn is_jobs_option(word: &str) -> bool {
    word.starts_with("-j") || word.starts_with("--jobs")
}

/// GNU make, by its whole path: a line with it is a sub-make.
fn find_make() -> Result<PathBuf, Fail> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|directory| directory.join("make"));
    found.into_iter().find(|program| program.is_file()).ok_or_else(|| {
        let what = "qmake: there is no make on this host";
        let refusal = Diagnostic::new(Code::SystemRefused, what).why("no directory of PATH has it");
        Fail::new(
            exit::FAILED,
            refusal.fix("install GNU make, or export PATH to the job with -v PATH"),
        )
    })
}

/// The exit code of a program that ran.
fn finished(status: std::io::Result<ExitStatus>, program: &str) -> Outcome {
    let status = status.map_err(|error| not_started(program, &error))?;
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    Ok(u8::try_from(code).unwrap_or(exit::FAILED))
}

fn not_started(program: impl AsRef<OsStr>, error: &std::io::Error) -> Fail {
    let what = format!("qmake: cannot run {}", program.as_ref().display());
    let refusal = Diagnostic::new(Code::SystemRefused, what).why(error.to_string());
    Fail::new(exit::FAILED, refusal.fix("gridwright doctor examines this host"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_the_job_stand_before_those_of_make() {
        let parse = |line: &str| {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            let MakeRequest {
                of_job,
                is_inherit,
                of_make,
            } = MakeRequest::parse(&words);
            (of_job.join(" "), is_inherit, of_make.join(" "))
        };
        let given = |job: &str, is_inherit, make: &str| (job.to_owned(), is_inherit, make.to_owned());
        assert_eq!(
            parse("-cwd -pe make 2 -- -k all -- x"),
            given("-cwd -pe make 2", false, "-k all -- x")
        );
        assert_eq!(parse("-inherit --"), given("", true, ""));
        assert_eq!(parse("-inherit -verbose"), given("-verbose", true, ""));
    }

    #[test]
    fn a_number_of_jobs_that_is_given_stays() {
        for word in ["-j", "-j4", "--jobs=2"] {
            assert!(is_jobs_option(word), "{word}");
        }
        assert!(!is_jobs_option("-k") && !is_jobs_option("all"));
    }
}
