//! `gridwright join`: makes this machine a host of a cell.

use crate::args::{CommandDef, Operands, Values, flag, with};
use crate::commands::{Outcome, up};
use crate::fail::Fail;
use crate::site::place::{self, Purpose};
use crate::{daemons, directory, exit, output};
use proto::diagnostic::{Code, Diagnostic};
use proto::wire::view::CellStatus;
use std::path::Path;
use std::process::{Command, Stdio};

const JOIN: CommandDef = CommandDef {
    name: "gridwright join",
    summary: "Enrols this machine in a cell with a token (made by gridwright token) and starts its launcher and agent.",
    operand_placeholder: "MASTER[:PORT] TOKEN",
    operands: Operands::Anywhere,
    options: &[
        place::DIR,
        with("--host", Values::One, "NAME", "the name of this host (default: hostname)"),
        with("--wait", Values::One, "SECONDS", "how long its first load report may take (default: 60)"),
        flag("-help", "print this help"),
        flag("--help", "print this help"),
    ],
    exit_codes: "0 joined, and the first load report is in; 1 refused, the message says how to fix it; 2 wrong option",
};

/// Runs `gridwright join`.
pub fn run(words: Vec<String>) -> Outcome {
    let parsed = JOIN.parse(words.clone())?;
    if parsed.has("-help") || parsed.has("--help") {
        output::data(&JOIN.help());
        return Ok(exit::OK);
    }
    let [master, token] = parsed.operands.as_slice() else {
        let refusal = Diagnostic::new(Code::BadSyntax, "gridwright join: write gridwright join MASTER[:PORT] TOKEN");
        return Err(Fail::new(exit::USAGE, refusal.fix("make a token on the master: gridwright token")));
    };
    daemons::check_environment()?;
    let patience = up::patience(&parsed, "gridwright join")?;
    let dir = up::directory(&parsed, Purpose::Make)?;
    up::go_where_all_reach_us("join", &dir, words)?;
    let is_copy = matches!(directory::standing(&dir), directory::Standing::Copy(_));
    let mut command = Command::new(daemons::program("gridwright-agent")?);
    command.args(["join", master, token]).arg("--dir").arg(&dir);
    if let Some(host) = parsed.value("--host") {
        command.args(["--host", host]);
    }
    // It says why it refused; how daemons are started by hand is nothing for who has them started.
    let done = command.stderr(Stdio::inherit()).output().map_err(|error| {
        Diagnostic::new(Code::SystemRefused, "error: cannot start gridwright-agent").why(error.to_string())
    })?;
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
    let CellStatus { hosts_reporting, hosts, host: master, .. } = status;
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

/// Writes what `gridwright env`, the q* commands and site scripts need on this host.
fn write_tree(dir: &Path) -> Result<(), Fail> {
    let refuse = |why: String| {
        let what = "error: the host has joined, but its files for commands cannot be written";
        let fix = format!("repeat that step: gridwright-master tree --dir {}", dir.display());
        Fail::from(Diagnostic::new(Code::SystemRefused, what).why(why).fix(fix))
    };
    let mut command = Command::new(daemons::program("gridwright-master")?);
    let done = command.arg("tree").arg("--dir").arg(dir).output().map_err(|error| refuse(error.to_string()))?;
    if done.status.success() { Ok(()) } else { Err(refuse(String::from_utf8_lossy(&done.stderr).trim().to_owned())) }
}
