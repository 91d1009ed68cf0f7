//! Section 8: the daemons, from the tables of their own command lines.

use super::page::{File, Page};
use proto::program::{AGENT, DAEMONS, MASTER, ProgramDef, SHEPHERD};

/// Names under which Grid Engine documents its daemons, and ours in their place.
const ALIASES: [(&str, &ProgramDef); 3] = [
    ("sge_qmaster", &MASTER),
    ("sge_execd", &AGENT),
    ("sge_shepherd", &SHEPHERD),
];

/// A page for each daemon.
pub fn pages() -> Vec<File> {
    let aliases = ALIASES.iter().map(|(name, program)| File::alias(name, program.name, 8));
    DAEMONS.into_iter().map(page).chain(aliases).collect()
}

struct DaemonTexts {
    description: &'static [&'static str],
    files: &'static [(&'static str, &'static str)],
    see_also: &'static str,
}

const MASTER_WORDS: DaemonTexts = DaemonTexts {
    description: &[
        "The master knows the configuration of the cell, takes jobs, decides where they run, and keeps accounting. It \
         stores each change in a database before anybody hears of it. Running jobs do not need it.",
        "`gridwright up` and the unit `gridwright-master.service` start it. SIGTERM ends it, SIGHUP opens its log anew.",
    ],
    files: &[
        (
            "DIR/etc/cell.toml",
            "The identity of the cell, the host and the port of the master.",
        ),
        (
            "DIR/etc/master.toml",
            "Settings and limits. Each key is explained there; an unknown key is refused.",
        ),
        ("DIR/master/state.db", "Event log, snapshots and accounting."),
        ("DIR/log/master.log", "The log, with `--log-file`."),
    ],
    see_also: "gridwright-up(1), gridwright-agent(8), sge_conf(5), sched_conf(5)",
};

const AGENT_WORDS: DaemonTexts = DaemonTexts {
    description: &[
        "The agent is the part of a host that talks to the master. It has no special rights and never starts a job \
         itself: the launcher, gridwright-shepherd(8), does.",
        "`gridwright up`, `gridwright join` and the unit `gridwright-agent.service` start it. SIGTERM ends it, and jobs go on.",
    ],
    files: &[
        (
            "DIR/etc/agent.toml",
            "Settings. Each key is explained there; an unknown key is refused.",
        ),
        (
            "DIR/agent/host.key",
            "The key of the host. Who reads it can act as this host.",
        ),
        (
            "DIR/log/agent.log",
            "The log of a cell that `gridwright up` has started.",
        ),
    ],
    see_also: "gridwright-join(1), gridwright-sensor(1), gridwright-master(8), gridwright-shepherd(8), sge_load_sensor(5)",
};

const SHEPHERD_WORDS: DaemonTexts = DaemonTexts {
    description: &[
        "The launcher starts the tasks of jobs on its host under the accounts of their owners. Each task has a shepherd: \
         it sets limits, measures what the task uses, ends it when it has to, and writes down the result.",
        "It runs as root, unless all jobs of the cell are those of one user. `gridwright up`, `gridwright join` and the unit \
         `gridwright-launcher.service` start it. SIGTERM ends it, and jobs go on.",
    ],
    files: &[
        (
            "DIR/etc/launcher.conf",
            "Settings, among them the programs that may run as root.",
        ),
        ("DIR/tasks/journal", "The durable list of starts. Never remove it."),
        ("DIR/tasks/KEY/active", "What a job finds as `$SGE_JOB_SPOOL_DIR`."),
        (
            "DIR/log/launcher.log",
            "The log of a cell that `gridwright up` has started.",
        ),
    ],
    see_also: "gridwright-agent(8), queue_conf(5), setrlimit(2)",
};

fn words_of(program: &ProgramDef) -> &'static DaemonTexts {
    match program.name {
        "gridwright-master" => &MASTER_WORDS,
        "gridwright-agent" => &AGENT_WORDS,
        _ => &SHEPHERD_WORDS,
    }
}

fn page(program: &'static ProgramDef) -> File {
    let words = words_of(program);
    let mut page = Page::new(program.name, 8, program.summary);
    page.section("SYNOPSIS");
    program
        .usages
        .iter()
        .for_each(|usage| page.synopsis(program.name, usage));
    page.section("DESCRIPTION");
    words.description.iter().for_each(|text| page.paragraph(text));
    for (title, table) in [("COMMANDS", program.commands), ("OPTIONS", program.options)] {
        page.section(title);
        for (term, meaning) in table {
            let (name, value) = term.split_once(' ').unwrap_or((term, ""));
            page.item(name, value, &[meaning]);
        }
    }
    page.section("EXIT STATUS");
    for part in program.exit_codes.split("; ") {
        let (code, meaning) = part.split_once(' ').unwrap_or((part, ""));
        page.item(code, "", &[meaning]);
    }
    page.section("ENVIRONMENT");
    page.item(
        "GRIDWRIGHT_LOG",
        "",
        &["Which lines are logged: `off`, `error`, `warn`, `info` (the default), `debug` or `trace`; `MODULE=LEVEL` for one part \
           of the program. Several are separated by commas."],
    );
    page.section("FILES");
    words
        .files
        .iter()
        .for_each(|(name, meaning)| page.item(name, "", &[meaning]));
    page.section("SEE ALSO");
    page.paragraph(words.see_also);
    page.file(program.name, 8)
}
