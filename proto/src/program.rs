//! The command lines of the daemons, as data: each program prints its help from here, and
//! `gridwright man` makes its manual page from it.

use crate::log::VARIABLE_HELP;
use std::fmt::Write as _;

/// A program that is started with a command and options.
#[derive(Clone, Copy, Debug)]
pub struct ProgramDef {
    /// The name of its file.
    pub name: &'static str,
    /// What it is, in a few words.
    pub summary: &'static str,
    /// What may follow the name, a line for each command.
    pub usages: &'static [&'static str],
    /// The commands, and what each does.
    pub commands: &'static [(&'static str, &'static str)],
    /// The options with their values, and what each means.
    pub options: &'static [(&'static str, &'static str)],
    /// What the exit codes mean.
    pub exit_codes: &'static str,
}

impl ProgramDef {
    /// What the program prints and then ends, if its first word asks for help or for its version.
    /// `version` is the whole line.
    pub fn answer(&self, first: Option<&str>, version: &str) -> Option<String> {
        match first? {
            "--help" | "-help" | "-h" | "help" => Some(self.help()),
            "--version" | "-version" | "-V" => Some(version.to_owned()),
            _ => None,
        }
    }

    /// The text of `--help`.
    pub fn help(&self) -> String {
        let mut text = format!("{}: {}\n\n", self.name, self.summary);
        for (at, usage) in self.usages.iter().enumerate() {
            let head = if at == 0 { "usage:" } else { "      " };
            let _ = writeln!(text, "{head} {} {usage}", self.name);
        }
        for table in [self.commands, self.options] {
            let width = table.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
            text.push('\n');
            for (name, meaning) in table {
                let _ = writeln!(text, "  {name:<width$}  {meaning}");
            }
        }
        let _ = write!(text, "\nexit codes: {}\n\n{VARIABLE_HELP}", self.exit_codes);
        text
    }
}

const DIR: (&str, &str) = ("--dir DIR", "the state directory of the cell on this host");
const DAEMON: (&str, &str) = ("--daemon", "begin a new session, apart from the terminal");
const HELP: (&str, &str) = ("--help", "print this help");
const VERSION: (&str, &str) = ("--version", "print the version");

/// The daemons of a cell.
pub const DAEMONS: [&ProgramDef; 3] = [&MASTER, &AGENT, &SHEPHERD];

/// `gridwright-master`.
pub const MASTER: ProgramDef = ProgramDef {
    name: "gridwright-master",
    summary: "the master of a Gridwright cell",
    usages: &[
        "init --dir DIR [--port PORT] [--slots N] [--host NAME]",
        "run --dir DIR [--daemon] [--log-file]",
        "check --dir DIR",
        "tree --dir DIR",
        "part --dir DIR --original PATH",
        "backup --dir DIR",
        "restore --dir DIR [--until-event N | --until-ms MS]",
        "mail --mailer PATH [--mailer PATH ...]",
        "jsv --for ACCOUNT [--script PATH ...] [--listen SOCKET]",
    ],
    commands: &[
        ("init", "makes a new cell in DIR"),
        ("run", "runs the master; SIGTERM ends it"),
        (
            "check",
            "replays the log of DIR, which may be a copy, and says what it found; changes nothing",
        ),
        (
            "tree",
            "writes into DIR of a host that has joined what site scripts look for: default/common, util, utilbin, bin",
        ),
        (
            "part",
            "makes the copied cell in DIR one of its own: nothing runs in it, its queues are disabled (gridwright up --as-copy)",
        ),
        (
            "backup",
            "writes a backup of the cell in DIR to standard output; the master may run (gridwright backup)",
        ),
        (
            "restore",
            "makes the cell of the backup on standard input in DIR (gridwright restore)",
        ),
        (
            "mail",
            "runs the mailer for a letter of the master on standard input; systemd starts it (gridwright-mail.socket)",
        ),
        (
            "jsv",
            "runs job submission verifiers as its own account for a master of another one; systemd starts it (gridwright-jsv@.socket)",
        ),
    ],
    options: &[
        DIR,
        (
            "--port PORT",
            "UDP port of a new cell (default: $SGE_QMASTER_PORT, else 6444)",
        ),
        (
            "--slots N",
            "slots of all.q on each host (default: processors of this machine)",
        ),
        (
            "--host NAME",
            "name of this host (default: as hostname says, up to the first dot)",
        ),
        (
            "--original PATH",
            "the directory that DIR is a copy of; it is recorded and has no other effect",
        ),
        (
            "--until-event N",
            "restore: the last event that the cell keeps (default: all of them)",
        ),
        (
            "--until-ms MS",
            "restore: the time of the last event that the cell keeps, in milliseconds since 1970",
        ),
        (
            "--mailer PATH",
            "mail: a mailer that may be run; all others are refused",
        ),
        (
            "--for ACCOUNT",
            "jsv: the account of the master, by name or number; all others are turned away",
        ),
        (
            "--script PATH",
            "jsv: a verifier that may be run; all others are refused",
        ),
        (
            "--listen SOCKET",
            "jsv: the socket to make; without it standard input is the socket",
        ),
        DAEMON,
        ("--log-file", "log to DIR/log/master.log instead of standard error"),
        HELP,
        VERSION,
    ],
    exit_codes: "0 done; 1 it failed, the message says why; 2 wrong command line; 3 a master is running already",
};

/// `gridwright-agent`.
pub const AGENT: ProgramDef = ProgramDef {
    name: "gridwright-agent",
    summary: "the agent of one host: measures load, runs load sensors, passes orders on to the launcher",
    usages: &[
        "run --dir DIR [--sensor-user NAME|UID:GID] [--daemon] [--log-file FILE]",
        "sim --dir DIR --count N [--slots S] [--load FILE] [--daemon] [--log-file FILE]",
        "join MASTER[:PORT] TOKEN --dir DIR [--host NAME]",
        "sensor-check SCRIPT [ARGUMENTS] [--dir DIR] [--user NAME|UID:GID] [--deadline SECONDS] [--cell-facts]",
        "loadcheck [-int] [-loadval NAME] | -cb",
    ],
    commands: &[
        ("run", "the agent of this host, until SIGTERM; jobs go on without it"),
        ("sim", "N hosts sim0001, sim0002 ... that only pretend to run jobs"),
        (
            "join",
            "enrols this host with a token and writes its certificates; - reads the token from standard input",
        ),
        (
            "sensor-check",
            "runs a load sensor through the whole protocol and says what was understood",
        ),
        (
            "loadcheck",
            "prints the load values of this host, as loadcheck of Grid Engine does; -int without fractions of memory",
        ),
    ],
    options: &[
        DIR,
        (
            "--sensor-user NAME|UID:GID",
            "as whom load sensors run (default: gridwright-sensor)",
        ),
        (
            "--user NAME|UID:GID",
            "sensor-check: as whom the sensor runs (default: as the cell's sensors if root calls it, else as the caller)",
        ),
        (
            "--deadline SECONDS",
            "sensor-check: how long an answer may take (default: 60)",
        ),
        (
            "--cell-facts",
            "sensor-check: standard input tells what the cell has: lines type NAME TYPE, host NAME, interval SECONDS",
        ),
        ("--count N", "sim: how many hosts"),
        ("--slots S", "sim: slots of each host (default: those of the queue)"),
        (
            "--load FILE",
            "sim: name=value lines that replace load values of this machine",
        ),
        (
            "--host NAME",
            "join: the name of this host (default: hostname, up to the first dot)",
        ),
        DAEMON,
        ("--log-file FILE", "append the log to FILE instead of standard error"),
        HELP,
        VERSION,
    ],
    exit_codes: "0 done; 1 failed; 2 wrong usage",
};

/// `gridwright-shepherd`.
pub const SHEPHERD: ProgramDef = ProgramDef {
    name: "gridwright-shepherd",
    summary: "the launcher of one host: starts the jobs, with one shepherd for each task",
    usages: &[
        "launch --dir DIR [--agent-uid USER] [--agent-gid GROUP] [--single-user] [--daemon] [--fd N] [--log-file FILE]",
        "adopt --dir DIR",
        "hold --dir DIR",
    ],
    commands: &[
        ("launch", "runs tasks until SIGTERM; they go on without it"),
        (
            "adopt",
            "makes a copied directory one of its own: its tasks are dropped, no process is touched",
        ),
        (
            "hold",
            "keeps the control group of gridwright-jobs.service, in which tasks get theirs, until SIGTERM",
        ),
    ],
    options: &[
        (
            "--dir DIR",
            "the state directory; tasks are kept in DIR/tasks, the socket is DIR/run/launcher/launcher.sock",
        ),
        (
            "--agent-uid USER",
            "the only user that may give orders, a name or a uid (default: this process's own)",
        ),
        (
            "--agent-gid GROUP",
            "the group that may read what tasks leave behind, a name or a gid",
        ),
        ("--single-user", "run every task as this process's own user"),
        DAEMON,
        ("--fd N", "take orders on this inherited socket as well"),
        (
            "--log-file FILE",
            "log to FILE, which is turned over when it is full; SIGHUP opens it anew",
        ),
        HELP,
        VERSION,
    ],
    exit_codes: "0 ended by SIGTERM, or done; 1 failed; 2 wrong usage",
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_usage_names_is_explained_and_nothing_else_is() {
        for program in DAEMONS {
            let usages = program.usages.join(" ");
            let words = |text: &str| -> Vec<String> {
                text.split([' ', '[', ']'])
                    .filter(|word| word.starts_with("--"))
                    .map(str::to_owned)
                    .collect()
            };
            let named: std::collections::BTreeSet<String> = words(&usages).into_iter().collect();
            let mut explained: std::collections::BTreeSet<String> =
                program.options.iter().flat_map(|(option, _)| words(option)).collect();
            for general in ["--help", "--version"] {
                assert!(explained.remove(general), "{}", program.name);
            }
            assert_eq!(named, explained, "{}", program.name);
            let commands: Vec<&str> = program
                .usages
                .iter()
                .filter_map(|usage| usage.split(' ').next())
                .collect();
            assert_eq!(
                commands,
                program.commands.iter().map(|(name, _)| *name).collect::<Vec<_>>()
            );
            assert!(program.help().starts_with(program.name) && program.help().contains("GRIDWRIGHT_LOG"));
            for (word, answer) in [("-help", program.help()), ("--version", "1\n".to_owned())] {
                assert_eq!(program.answer(Some(word), "1\n"), Some(answer), "{word}");
            }
            assert_eq!(
                (program.answer(None, ""), program.answer(Some("run"), "")),
                (None, None)
            );
        }
    }
}
