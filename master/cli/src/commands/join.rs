//! `gridwright join`: makes this machine a host of a cell.

use crate::args::{CommandDef, CommandLine, Operands, ValueCount, flag, with};
use crate::cell_address::place::{self, Purpose};
use crate::commands::{Outcome, up};
use crate::fail::Fail;
use crate::{daemons, directory, exit, output};
use proto::diagnostic::{Code, Diagnostic};
use proto::wire::view::CellStatus;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::path::Path;
use std::process::{Command, Output, Stdio};

pub const JOIN: CommandDef = CommandDef {
    name: "gridwright join",
    summary: "Enrols this machine in a cell with a token (made by gridwright token create) and starts its launcher and agent.",
    operand_placeholder: "MASTER[:PORT] --token-file FILE | MASTER[:PORT] - | MASTER[:PORT] TOKEN",
    operands: Operands::Anywhere,
    options: &[
        place::DIR,
        with(
            "--token-file",
            ValueCount::One,
            "FILE",
            "where the token is; - is standard input. On the command line every user of this host could read it",
        ),
        with(
            "--host",
            ValueCount::One,
            "NAME",
            "the name of this host (default: hostname)",
        ),
        with(
            "--wait",
            ValueCount::One,
            "SECONDS",
            "how long its first load report may take (default: 60)",
        ),
        flag("-help", "print this help"),
        flag("--help", "print this help"),
    ],
    exit_codes: "0 joined, and the first load report is in; 1 refused, the message says how to fix it; 2 wrong option",
};

/// More than any token has.
const TOKEN_BYTES: u64 = 64 << 10;

/// Runs `gridwright join`.
pub fn run(words: Vec<String>) -> Outcome {
    let parsed = JOIN.parse(words.clone())?;
    if parsed.has("-help") || parsed.has("--help") {
        output::data(&JOIN.help());
        return Ok(exit::OK);
    }
    let (master, token) = given(&parsed)?;
    daemons::check_environment()?;
    let patience = up::patience(&parsed, "gridwright join")?;
    let dir = up::directory(&parsed, Purpose::Make)?;
    up::go_where_all_reach_us("join", &dir, words)?;
    let is_copy = matches!(directory::relation(&dir), directory::DirectoryRelation::Copy(_));
    let mut command = Command::new(daemons::program("gridwright-agent")?);
    command.args(["join", master, "-"]).arg("--dir").arg(&dir);
    if place::is_environment_of_other(&dir) {
        command.env_remove(place::PORT_VARIABLE);
    }
    if let Some(host) = parsed.value("--host") {
        command.args(["--host", host]);
    }
    let done = handed_over(command, &token.read()?)?;
    if !done.status.success() {
        return Ok(exit::FAILED);
    }
    let said = String::from_utf8_lossy(&done.stdout);
    output::data(&said.lines().take(1).fold(String::new(), |all, line| all + line + "\n"));
    if is_copy {
        up::copy::adopt(&dir)?;
    }
    write_tree(&dir)?;
    let status = up::start_existing(&dir, patience)?;
    let host = up::host_of(&dir).map_or_else(String::new, |host| format!(" as {host}"));
    let CellStatus {
        hosts_reporting,
        hosts,
        host: master,
        ..
    } = status;
    output::data(&format!(
        "joined{host}: {hosts_reporting} of {hosts} hosts report to {master}; its launcher and agent run\n"
    ));
    output::note(&format!(
        "nothing starts them again after a boot or restarts them: gridwright up --dir {} does; where the units are installed: \
         gridwright down --dir {0}; systemctl enable --now gridwright-launcher gridwright-agent",
        dir.display()
    ));
    Ok(exit::OK)
}

/// Where the token is.
enum TokenSource<'a> {
    Word(&'a str),
    File(&'a str),
    Input,
}

/// The master and the token that the command line names.
fn given(parsed: &CommandLine) -> Result<(&str, TokenSource<'_>), Fail> {
    let token = |word| {
        if word == "-" {
            TokenSource::Input
        } else {
            TokenSource::Word(word)
        }
    };
    match (parsed.operands.as_slice(), parsed.value("--token-file")) {
        ([master, word], None) => Ok((master, token(word))),
        ([master], Some("-")) => Ok((master, TokenSource::Input)),
        ([master], Some(file)) => Ok((master, TokenSource::File(file))),
        _ => {
            let what = "gridwright join: write gridwright join MASTER[:PORT] --token-file FILE";
            let fix = "make a token on the master: gridwright token create; the word - in place of the file is standard input";
            Err(Fail::new(exit::USAGE, Diagnostic::new(Code::BadSyntax, what).fix(fix)))
        }
    }
}

impl TokenSource<'_> {
    /// The first line of where it is.
    fn read(&self) -> Result<String, Fail> {
        let refuse = |place: &str, error: std::io::Error| {
            let refusal = Diagnostic::new(Code::SystemRefused, "error: the token cannot be read").at(place);
            Fail::from(
                refusal
                    .why(error.to_string())
                    .fix("put the line that gridwright token create prints there"),
            )
        };
        match self {
            TokenSource::Word(word) => Ok((*word).to_owned()),
            TokenSource::File(file) => std::fs::File::open(file)
                .and_then(first_line)
                .map_err(|error| refuse(file, error)),
            TokenSource::Input => first_line(std::io::stdin()).map_err(|error| refuse("standard input", error)),
        }
    }
}

fn first_line(source: impl Read) -> std::io::Result<String> {
    let mut line = String::new();
    BufReader::new(source.take(TOKEN_BYTES)).read_line(&mut line)?;
    Ok(line.trim().to_owned())
}

/// Runs the agent's part, which reads the token from its standard input: its command line is seen
/// by everybody on the host. It says why it refused; how daemons are started by hand is nothing for
/// who has them started.
fn handed_over(mut command: Command, token: &str) -> Result<Output, Fail> {
    let refuse = |error: std::io::Error| {
        Diagnostic::new(Code::SystemRefused, "error: cannot start gridwright-agent").why(error.to_string())
    };
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit());
    let mut child = command.spawn().map_err(refuse)?;
    if let Some(mut input) = child.stdin.take() {
        // One that ended early says why itself.
        let _ = writeln!(input, "{token}");
    }
    Ok(child.wait_with_output().map_err(refuse)?)
}

/// Writes what `gridwright env`, the q* commands and site scripts need on this host.
fn write_tree(dir: &Path) -> Result<(), Fail> {
    let refuse = |why: String| {
        let what = "error: the host has joined, but its files for commands cannot be written";
        let fix = format!("repeat that step: gridwright-master tree --dir {}", dir.display());
        Fail::from(Diagnostic::new(Code::SystemRefused, what).why(why).fix(fix))
    };
    let mut command = Command::new(daemons::program("gridwright-master")?);
    let done = command
        .arg("tree")
        .arg("--dir")
        .arg(dir)
        .output()
        .map_err(|error| refuse(error.to_string()))?;
    if done.status.success() {
        Ok(())
    } else {
        Err(refuse(String::from_utf8_lossy(&done.stderr).trim().to_owned()))
    }
}
