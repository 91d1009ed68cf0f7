//! One module a command, and the table of names.

mod ask;
mod backup;
#[cfg(test)]
mod captured;
mod changes;
mod completions;
mod demo;
mod doctor;
mod down;
mod env;
mod events;
mod explain;
mod finalize;
mod help;
mod hold;
mod host;
mod join;
mod man;
mod qacct;
mod qalter;
mod qconf;
mod qdel;
mod qevent;
mod qhost;
mod qmake;
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
mod resources;
mod restore;
mod sensor;
mod shares;
mod token;
mod unsupported;
mod up;

pub use qsub::template::JobTemplate;

use crate::args::CommandDef;
use crate::fail::Fail;
use crate::job::options;
use crate::{exit, output};
use std::process::ExitCode;

/// What a command returns: its exit code, or a refusal that ends it.
pub type Outcome = Result<u8, Fail>;

/// A command.
pub struct CommandEntry {
    /// The link or first word that calls it.
    pub name: &'static str,
    /// The function behind it.
    run: fn(Vec<String>) -> Outcome,
    /// Its command lines: its own, and those of subcommands with options of their own.
    pub defs: fn() -> Vec<&'static CommandDef>,
    /// What it does, for the overview.
    pub line: &'static str,
}

const fn entry(
    name: &'static str,
    run: fn(Vec<String>) -> Outcome,
    defs: fn() -> Vec<&'static CommandDef>,
    line: &'static str,
) -> CommandEntry {
    CommandEntry { name, run, defs, line }
}

/// Every name that `gridwright` answers to, as a link or as its first word: its own commands, then
/// those of Grid Engine.
pub const COMMANDS: &[CommandEntry] = &[
    entry(
        "up",
        up::run,
        || vec![&up::UP],
        "creates a cell, or starts its daemons that do not run",
    ),
    entry(
        "down",
        down::run,
        || vec![&down::DOWN],
        "ends the daemons of a directory; jobs go on",
    ),
    entry(
        "env",
        env::run,
        || vec![&env::ENV],
        "prints the settings of a shell that works with a cell",
    ),
    entry(
        "join",
        join::run,
        || vec![&join::JOIN],
        "makes this machine a host of a cell, with a token",
    ),
    entry(
        "token",
        token::run,
        || vec![&token::TOKEN],
        "makes, lists and revokes the tokens with which hosts join",
    ),
    entry(
        "host",
        host::run,
        || vec![&host::HOST],
        "lists the hosts of the cell, removes and revokes one",
    ),
    entry(
        "backup",
        backup::run,
        || vec![&backup::BACKUP],
        "writes a backup of a cell, while it runs",
    ),
    entry(
        "restore",
        restore::run,
        || vec![&restore::RESTORE],
        "makes the cell of a backup in a new directory",
    ),
    entry(
        "finalize",
        finalize::run,
        || vec![&finalize::FINALIZE],
        "ends an upgrade: allows what the older release cannot read",
    ),
    entry(
        "doctor",
        doctor::run,
        || vec![&doctor::DOCTOR],
        "checks this host, or the cell, and says how to mend what is wrong",
    ),
    entry(
        "explain",
        explain::run,
        || vec![&explain::EXPLAIN],
        "says why a job waits, where it runs or how it ended",
    ),
    entry(
        "events",
        events::run,
        || vec![&events::EVENTS],
        "prints what happens in the cell, as it happens",
    ),
    entry(
        "changes",
        changes::run,
        || vec![&changes::CHANGES],
        "prints who changed what in the cell, and when",
    ),
    entry(
        "sensor",
        sensor::run,
        || vec![&sensor::STATUS, &sensor::CHECK],
        "shows the load sensors, or tries a script that is to be one",
    ),
    entry(
        "resources",
        resources::run,
        || vec![&resources::RESOURCES],
        "prints the resource map of this host's GPUs",
    ),
    entry(
        "shares",
        shares::run,
        || vec![&shares::SHARES],
        "prints the share tree: what each node is entitled to and has used",
    ),
    entry(
        "demo",
        demo::run,
        || vec![&demo::DEMO],
        "shows the main things in a cell of its own, in under a minute",
    ),
    entry(
        "man",
        man::run,
        || vec![&man::MAN],
        "writes the manual pages into a directory",
    ),
    entry(
        "completions",
        completions::run,
        || vec![&completions::COMPLETIONS],
        "prints what lets a shell complete words",
    ),
    entry("qsub", qsub::run, || vec![&options::QSUB], "submits a job"),
    entry(
        "qstat",
        qstat::run,
        || vec![&qstat::QSTAT],
        "shows jobs and queues; -j JOB everything about a job",
    ),
    entry("qdel", qdel::run, || vec![&qdel::QDEL], "deletes jobs and tasks"),
    entry(
        "qhold",
        hold::hold,
        || vec![&hold::QHOLD],
        "holds pending jobs and tasks",
    ),
    entry(
        "qrls",
        hold::release,
        || vec![&hold::QRLS],
        "releases held jobs and tasks",
    ),
    entry("qalter", qalter::alter, || vec![&options::QALTER], "changes jobs"),
    entry(
        "qresub",
        qalter::resubmit,
        || vec![&options::QRESUB],
        "submits copies of jobs",
    ),
    entry(
        "qacct",
        qacct::run,
        || vec![&qacct::QACCT],
        "shows what jobs that have ended used, and why they ended",
    ),
    entry(
        "qhost",
        qhost::run,
        || vec![&qhost::QHOST],
        "shows hosts with their load values and resources",
    ),
    entry(
        "qselect",
        qselect::run,
        || vec![&qselect::QSELECT],
        "prints the names of the queue instances that fit",
    ),
    entry(
        "qquota",
        qquota::run,
        || vec![&qquota::QQUOTA],
        "shows what resource quotas limit and how much of it is used",
    ),
    entry(
        "qmod",
        qmod::run,
        || vec![&qmod::QMOD],
        "enables, disables, suspends and clears queues and jobs",
    ),
    entry(
        "qconf",
        qconf::run,
        || vec![&qconf::QCONF],
        "shows and changes the configuration",
    ),
    entry(
        "qrsub",
        qrsub::run,
        || vec![&options::QRSUB],
        "reserves slots in advance",
    ),
    entry(
        "qrstat",
        qrstat::run,
        || vec![&qrstat::QRSTAT],
        "shows advance reservations",
    ),
    entry(
        "qrdel",
        qrdel::run,
        || vec![&qrdel::QRDEL],
        "deletes advance reservations",
    ),
    entry(
        "qsched",
        qsched::run,
        || vec![&qsched::QSCHED],
        "shows what is kept for tasks that wait",
    ),
    entry(
        "qlogin",
        qrsh::run_qlogin,
        || vec![&qrsh::QLOGIN],
        "runs a login shell as a job",
    ),
    entry(
        "qsh",
        qrsh::run_qsh,
        || vec![&qrsh::QSH],
        "runs a terminal window as a job",
    ),
    entry(
        "qrsh",
        qrsh::run,
        || vec![&qrsh::QRSH],
        "runs a command as an interactive job, or in a parallel job",
    ),
    entry(
        "qmake",
        qmake::run,
        || vec![&qmake::QMAKE],
        "runs make, its lines on the hosts of a parallel job",
    ),
    entry(
        "qping",
        qping::run,
        || vec![&qping::QPING],
        "asks whether the master or an agent answers",
    ),
    entry(
        "qevent",
        qevent::run,
        || vec![&qevent::QEVENT],
        "runs a script whenever a job or a task has ended",
    ),
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
        None => help::answer(name, &words)
            .or_else(|| unsupported::refuse(name))
            .unwrap_or_else(|| unknown(name)),
    }
}

fn unknown(name: &str) -> u8 {
    let near = COMMANDS
        .iter()
        .map(|entry| entry.name)
        .min_by_key(|known| crate::args::distance(known, name));
    output::note(&format!("gridwright: no command \"{name}\""));
    match near.filter(|near| crate::args::distance(near, name) <= 2) {
        Some(near) => output::note(&format!("  fix: did you mean {near}? All commands: gridwright help")),
        None => output::note("  fix: gridwright help lists the commands"),
    }
    exit::USAGE
}
