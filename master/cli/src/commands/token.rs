//! `gridwright token`: the right for a host to join; `gridwright host revoke` takes it away.

use crate::args::{CommandDef, Operands, Values, flag, with};
use crate::client::Client;
use crate::commands::Outcome;
use crate::fail::Fail;
use crate::site::Site;
use crate::{exit, output};
use proto::diagnostic::{Code, Diagnostic};
use proto::wire::client::Command;
use proto::wire::view::Data;

const TOKEN: CommandDef = CommandDef {
    name: "gridwright token",
    summary: "Makes a join token. It is printed once and stored only as a hash.",
    operand_placeholder: "",
    operands: Operands::Anywhere,
    options: &[
        with("--uses", Values::One, "N", "how many hosts may join with it (default: 1)"),
        with("--valid", Values::One, "SECONDS", "how long it may be used (default: 3600)"),
        with("--hosts", Values::One, "PATTERN", "which names may join with it (default: *)"),
        crate::site::place::DIR,
        flag("-help", "print this help"),
        flag("--help", "print this help"),
    ],
    exit_codes: "0 printed; 1 refused; 2 wrong option; 7 value does not parse",
};

const HOST: CommandDef = CommandDef {
    name: "gridwright host",
    summary: "revoke HOST: its certificates are no longer admitted, and its connections end. rebind HOST: its next agent is let in \
              although its task directory is another one; tasks that it does not know are lost then.",
    operand_placeholder: "revoke|rebind HOST",
    operands: Operands::Anywhere,
    options: &[crate::site::place::DIR, flag("-help", "print this help"), flag("--help", "print this help")],
    exit_codes: "0 done; 1 refused; 2 wrong option",
};

/// Runs `gridwright token`.
pub fn create(words: Vec<String>) -> Outcome {
    let parsed = TOKEN.parse(words)?;
    if parsed.has("-help") || parsed.has("--help") {
        output::data(&TOKEN.help());
        return Ok(exit::OK);
    }
    match parsed.operands.as_slice() {
        [] => {}
        [verb] if verb == "create" => {}
        [other, ..] => {
            let refusal = Diagnostic::new(Code::BadSyntax, format!("gridwright token: invalid argument \"{other}\""));
            return Err(Fail::new(exit::USAGE, refusal.fix("all options: gridwright token -help")));
        }
    }
    let number = |name: &str, default: u64| match parsed.value(name) {
        None => Ok(default),
        Some(text) => text.parse().map_err(|_| {
            Fail::bad_value(format!("gridwright token: {name} {text} is not a number")).fix("give a whole number")
        }),
    };
    let uses = u32::try_from(number("--uses", 1)?)
        .map_err(|_| Fail::bad_value("gridwright token: --uses is too large").fix("give at most 4294967295"))?;
    let valid_s = number("--valid", 3600)?;
    let host_pattern = parsed.value("--hosts").unwrap_or("*").to_owned();
    let command = Command::CreateToken { uses, valid_s, host_pattern };
    let reply = Client::connect(&Site::of(&parsed), "gridwright token")?.change(command)?;
    if let Some(Data::Token(token)) = &reply.data {
        output::data(&format!("{token}\n"));
    }
    Ok(output::answers(&reply.answers))
}

/// Runs `gridwright host`.
pub fn host(words: Vec<String>) -> Outcome {
    let parsed = HOST.parse(words)?;
    match parsed.operands.as_slice() {
        [verb, host] if verb == "revoke" || verb == "rebind" => {
            let host = host.clone();
            let command = if verb == "revoke" { Command::RevokeHost { host } } else { Command::RebindHost { host } };
            let reply = Client::connect(&Site::of(&parsed), "gridwright host")?.change(command)?;
            Ok(output::answers(&reply.answers))
        }
        _ if parsed.has("-help") || parsed.has("--help") => {
            output::data(&HOST.help());
            Ok(exit::OK)
        }
        _ => {
            let refusal = Diagnostic::new(Code::BadSyntax, "gridwright host: write revoke HOST or rebind HOST");
            Err(Fail::new(exit::USAGE, refusal.fix("gridwright host revoke HOST; qconf -sel lists the hosts")))
        }
    }
}
