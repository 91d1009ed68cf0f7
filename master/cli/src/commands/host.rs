//! `gridwright host`: the hosts of the cell, and how one leaves it.

mod list;
mod remove;

use crate::args::{CommandDef, CommandLine, Operands, ValueCount, flag, with};
use crate::cell_address::CellAddress;
use crate::cell_address::place::DIR;
use crate::client::Client;
use crate::commands::Outcome;
use crate::fail::Fail;
use crate::{exit, output};
use proto::diagnostic::{Code, Diagnostic};
use proto::wire::client::Command;

pub const HOST: CommandDef = CommandDef {
    name: "gridwright host",
    summary: "list: the hosts of the cell, whether they report, and what names them.\n\
              remove HOST: takes a host out of queues, host groups and lists, deletes it and revokes its certificates. It is\n\
              refused while tasks run there: qmod -d '*@HOST' lets no new ones start; --force deletes them as qdel -f does.\n\
              revoke HOST: its certificates are no longer admitted, its connections end; the host stays in the configuration.\n\
              rebind HOST: its next agent is let in although its task directory is another one; tasks that it does not know\n\
              are lost then.",
    operand_placeholder: "list | remove HOST ... | revoke HOST ... | rebind HOST ...",
    operands: Operands::Anywhere,
    options: &[
        DIR,
        flag("--dry-run", "remove: show what names the host and change nothing"),
        with(
            "-fmt",
            ValueCount::One,
            "text|json",
            "list: how to print (default: text)",
        ),
        flag(
            "--force",
            "remove: also with tasks running there, which are deleted and may go on there for a while",
        ),
        flag("-help", "print this help"),
    ],
    exit_codes: "0 printed or done; 1 refused; 2 wrong option or word",
};

/// Runs `gridwright host`.
pub fn run(words: Vec<String>) -> Outcome {
    let parsed = HOST.parse(words)?;
    if parsed.has("-help") {
        output::data(&HOST.help());
        return Ok(exit::OK);
    }
    let words: Vec<&str> = parsed.operands.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["list"] => list::run(&parsed),
        ["remove", hosts @ ..] if !hosts.is_empty() => each(hosts, |host| remove::run(&parsed, host)),
        ["revoke", hosts @ ..] if !hosts.is_empty() => each(hosts, |host| {
            change(&parsed, Command::RevokeHost { host: host.to_owned() })
        }),
        ["rebind", hosts @ ..] if !hosts.is_empty() => each(hosts, |host| {
            change(&parsed, Command::RebindHost { host: host.to_owned() })
        }),
        _ => {
            let what = "gridwright host: write list, remove HOST, revoke HOST or rebind HOST";
            let fix = "gridwright host list shows the hosts; all options: gridwright host -help";
            Err(Fail::new(exit::USAGE, Diagnostic::new(Code::BadSyntax, what).fix(fix)))
        }
    }
}

/// Does something for each host; the first refusal ends it.
fn each(hosts: &[&str], mut act: impl FnMut(&str) -> Outcome) -> Outcome {
    for host in hosts {
        let code = act(host)?;
        if code != exit::OK {
            return Ok(code);
        }
    }
    Ok(exit::OK)
}

fn change(parsed: &CommandLine, command: Command) -> Outcome {
    let mut client = Client::connect(&CellAddress::from_command_line(parsed), "gridwright host")?;
    Ok(output::answers(&client.change(command)?.answers))
}
