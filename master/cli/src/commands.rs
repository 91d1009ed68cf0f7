//! One module a command, and the table of names.

mod ask;
#[cfg(test)]
mod captured;
mod demo;
mod doctor;
mod down;
mod env;
mod events;
mod explain;
mod help;
mod hold;
mod host;
mod join;
mod qacct;
mod qalter;
mod qconf;
mod qdel;
mod qevent;
mod qhost;
mod qmod;
mod qping;
mod qquota;
mod qrdel;
mod qrsh;
mod qrstat;
mod qrsub;
mod qsched;
mod qselect;
mod qstat;
mod qsub;
mod sensor;
mod shares;
mod token;
mod unsupported;
mod up;

use crate::fail::Fail;
use crate::{exit, output};
use std::process::ExitCode;

/// What a command returns: its exit code, or a refusal that ends it.
pub type Outcome = Result<u8, Fail>;

/// A command.
pub struct Entry {
    /// The link or first word that calls it.
    pub name: &'static str,
    /// The function behind it.
    run: fn(Vec<String>) -> Outcome,
    /// What it does, for the overview.
    pub line: &'static str,
}

/// Every name that `gridwright` answers to, as a link or as its first word: its own commands, then
/// those of Grid Engine.
pub const COMMANDS: &[Entry] = &[
    Entry { name: "up", run: up::run, line: "creates a cell in a directory, or starts its daemons that do not run" },
    Entry { name: "down", run: down::run, line: "ends the daemons of a directory; jobs go on" },
    Entry { name: "env", run: env::run, line: "prints the settings of a shell that works with a cell" },
    Entry { name: "join", run: join::run, line: "makes this machine a host of a cell, with a token" },
    Entry { name: "token", run: token::run, line: "makes, lists and revokes the tokens with which hosts join" },
    Entry { name: "host", run: host::run, line: "lists the hosts of the cell, removes and revokes one" },
    Entry { name: "doctor", run: doctor::run, line: "checks this host and says what is wrong and how to mend it" },
    Entry { name: "explain", run: explain::run, line: "says why a job waits, where it runs or how it ended" },
    Entry { name: "events", run: events::run, line: "prints what happens in the cell, as it happens" },
    Entry { name: "sensor", run: sensor::run, line: "shows the load sensors, or tries a script that is to be one" },
    Entry {
        name: "shares",
        run: shares::run,
        line: "prints the share tree: what each node is entitled to and has used",
    },
    Entry { name: "demo", run: demo::run, line: "shows the main things in a cell of its own, in under a minute" },
    Entry { name: "qsub", run: qsub::run, line: "submits a job" },
    Entry { name: "qstat", run: qstat::run, line: "shows jobs and queues; -j JOB everything about a job" },
    Entry { name: "qdel", run: qdel::run, line: "deletes jobs and tasks" },
    Entry { name: "qhold", run: hold::hold, line: "holds pending jobs and tasks" },
    Entry { name: "qrls", run: hold::release, line: "releases held jobs and tasks" },
    Entry { name: "qalter", run: qalter::alter, line: "changes jobs" },
    Entry { name: "qresub", run: qalter::resubmit, line: "submits copies of jobs" },
    Entry { name: "qacct", run: qacct::run, line: "shows what jobs that have ended used, and why they ended" },
    Entry { name: "qhost", run: qhost::run, line: "shows hosts with their load values and resources" },
    Entry { name: "qselect", run: qselect::run, line: "prints the names of the queue instances that fit" },
    Entry { name: "qquota", run: qquota::run, line: "shows what resource quotas limit and how much of it is used" },
    Entry { name: "qmod", run: qmod::run, line: "enables, disables, suspends and clears queues and jobs" },
    Entry { name: "qconf", run: qconf::run, line: "shows and changes the configuration" },
    Entry { name: "qrsub", run: qrsub::run, line: "reserves slots in advance" },
    Entry { name: "qrstat", run: qrstat::run, line: "shows advance reservations" },
    Entry { name: "qrdel", run: qrdel::run, line: "deletes advance reservations" },
    Entry { name: "qsched", run: qsched::run, line: "shows what is kept for tasks that wait" },
    Entry { name: "qrsh", run: qrsh::run, line: "inside of a parallel job: runs a command on another host of it" },
    Entry { name: "qping", run: qping::run, line: "asks whether the master or an agent answers" },
    Entry { name: "qevent", run: qevent::run, line: "runs a script whenever a job or a task has ended" },
];

/// Runs the command of that name; `gridwright NAME …` is `NAME …`.
pub fn run(name: &str, mut words: Vec<String>) -> ExitCode {
    let mut name = name.to_owned();
    if name == "gridwright" && !words.is_empty() {
        name = words.remove(0);
    }
    ExitCode::from(call(&name, words))
}

fn call(name: &str, words: Vec<String>) -> u8 {
    match COMMANDS.iter().find(|entry| entry.name == name) {
        Some(_) if help::is_version(&words) => help::version(),
        Some(entry) => (entry.run)(help::spelt_out(name, words)).unwrap_or_else(|fail| {
            output::diagnostic(&fail.diagnostic);
            fail.exit
        }),
        None => help::answer(name, &words).or_else(|| unsupported::refuse(name)).unwrap_or_else(|| unknown(name)),
    }
}

fn unknown(name: &str) -> u8 {
    let near = COMMANDS.iter().map(|entry| entry.name).min_by_key(|known| crate::args::distance(known, name));
    output::note(&format!("gridwright: no command \"{name}\""));
    match near.filter(|near| crate::args::distance(near, name) <= 2) {
        Some(near) => output::note(&format!("  fix: did you mean {near}? All commands: gridwright help")),
        None => output::note("  fix: gridwright help lists the commands"),
    }
    exit::USAGE
}
