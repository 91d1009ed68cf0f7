//! `gridwright token`: the right for a host to join is made, listed and taken away.

use crate::args::{CommandDef, CommandLine, Operands, ValueCount, flag, with};
use crate::cell_address::CellAddress;
use crate::cell_address::place::DIR;
use crate::client::Client;
use crate::commands::Outcome;
use crate::commands::ask::{self, Format};
use crate::fail::Fail;
use crate::output::json;
use crate::output::time::{self, Clock};
use crate::{exit, output};
use proto::diagnostic::{Code, Diagnostic};
use proto::time::Wall;
use proto::wire::client::{Command, Query};
use proto::wire::view::{Data, TokenView};

pub const TOKEN: CommandDef = CommandDef {
    name: "gridwright token",
    summary: "create, or nothing: makes a join token. It is printed once and stored only as a hash.\n\
              list: shows the tokens with which hosts may join. revoke ID: no host joins with it any more.",
    operand_placeholder: "[create] | list | revoke ID|TOKEN ...",
    operands: Operands::Anywhere,
    options: &[
        DIR,
        with(
            "-fmt",
            ValueCount::One,
            "text|json",
            "list: how to print (default: text)",
        ),
        with(
            "--uses",
            ValueCount::One,
            "N",
            "create: how many hosts may join with it (default: 1)",
        ),
        with(
            "--valid",
            ValueCount::One,
            "TIME",
            "create: how long, in seconds or as 90s, 30m, 1h, 7d (default: 1h)",
        ),
        with(
            "--hosts",
            ValueCount::One,
            "PATTERN",
            "create: which names may join with it (default: *)",
        ),
        flag("-help", "print this help"),
    ],
    exit_codes: "0 printed, or revoked; 1 refused; 2 wrong option or word; 7 value does not parse",
};

/// The length of a token's id: the characters of its hash that `list` shows.
const ID: usize = 12;

/// How long a token is valid if nothing else is said.
const VALID_S: u64 = 3600;

/// Runs `gridwright token`.
pub fn run(words: Vec<String>) -> Outcome {
    let parsed = TOKEN.parse(words)?;
    if parsed.has("-help") {
        output::data(&TOKEN.help());
        return Ok(exit::OK);
    }
    let words: Vec<&str> = parsed.operands.iter().map(String::as_str).collect();
    match words.as_slice() {
        [] | ["create"] => create(&parsed),
        ["list"] => list(&parsed),
        ["revoke", ids @ ..] if !ids.is_empty() => revoke(&parsed, ids),
        ["revoke"] => Err(usage(
            "gridwright token: revoke needs the id of a token",
            "gridwright token list shows them",
        )),
        [.., other] => {
            let what = format!("gridwright token: invalid argument \"{other}\"");
            Err(usage(
                &what,
                "write create, list or revoke ID; all options: gridwright token -help",
            ))
        }
    }
}

fn usage(what: &str, fix: &str) -> Fail {
    Fail::new(exit::USAGE, Diagnostic::new(Code::BadSyntax, what).fix(fix))
}

fn create(parsed: &CommandLine) -> Outcome {
    let uses = parsed.value("--uses").map_or(Ok(1), |text| {
        let bad = || Fail::bad_value(format!("gridwright token: --uses {text} is not a number of hosts"));
        text.parse::<u32>()
            .map_err(|_| bad().fix("give a whole number from 1 to 4294967295"))
    })?;
    let valid_s = parsed.value("--valid").map_or(Ok(VALID_S), |text| {
        let bad = || Fail::bad_value(format!("gridwright token: --valid {text} is not a time"));
        seconds(text).ok_or_else(|| bad().fix("give seconds, or a number with s, m, h or d, such as 30m"))
    })?;
    let host_pattern = parsed.value("--hosts").unwrap_or("*").to_owned();
    let mut client = Client::connect(&CellAddress::from_command_line(parsed), "gridwright token")?;
    let reply = client.change(Command::CreateToken {
        uses,
        valid_s,
        host_pattern,
    })?;
    if let Some(Data::Token(token)) = &reply.data {
        output::data(&format!("{token}\n"));
    }
    Ok(output::answers(&reply.answers))
}

/// A time as people write it, in seconds.
pub fn seconds(text: &str) -> Option<u64> {
    let (number, unit_s) = match text.char_indices().last()? {
        (at, 's') => (&text[..at], 1),
        (at, 'm') => (&text[..at], 60),
        (at, 'h') => (&text[..at], 3600),
        (at, 'd') => (&text[..at], 86_400),
        _ => (text, 1),
    };
    number.parse::<u64>().ok()?.checked_mul(unit_s)
}

fn list(parsed: &CommandLine) -> Outcome {
    let format = Format::from_command_line(parsed)?;
    let mut client = ask::connect_at(&CellAddress::from_command_line(parsed), "gridwright token", format)?;
    let tokens = match ask::data(&mut client, Query::Tokens)? {
        Some(Data::Tokens(tokens)) => tokens,
        other => return ask::unexpected(other.as_ref()),
    };
    match format {
        Format::Json => output::data(&json::JsonDocument::new().with("tokens", &tokens).finish()),
        Format::Text | Format::Xml => output::data(&table(&tokens, time::now(), &Clock::local())),
    }
    Ok(exit::OK)
}

fn table(tokens: &[TokenView], now: Wall, clock: &Clock) -> String {
    let row = |token: &TokenView| {
        let end = if token.expires <= now { " (expired)" } else { "" };
        let TokenView {
            id,
            uses_left,
            expires,
            host_pattern,
        } = token;
        format!(
            "{id:<12}  {uses_left:>4}  {}  {host_pattern}{end}\n",
            clock.slashes(*expires)
        )
    };
    let head = format!("{:<12}  {:>4}  {:<19}  {}\n", "ID", "USES", "VALID UNTIL", "HOSTS");
    if tokens.is_empty() {
        String::new()
    } else {
        head + &tokens.iter().map(row).collect::<String>()
    }
}

fn revoke(parsed: &CommandLine, ids: &[&str]) -> Outcome {
    let mut client = Client::connect(&CellAddress::from_command_line(parsed), "gridwright token")?;
    let mut code = exit::OK;
    for id in ids {
        // Who has the token itself may give that.
        let id = id.parse::<quic::JoinToken>().map_or_else(
            |_| (*id).to_owned(),
            |token| token.hash().to_string().chars().take(ID).collect(),
        );
        code = code.max(output::answers(&client.change(Command::RevokeToken { id })?.answers));
    }
    Ok(code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::tz::TimeZone;

    #[test]
    fn times_are_written_in_seconds_or_with_a_unit() {
        for (text, expected) in [
            ("3600", Some(3600)),
            ("90s", Some(90)),
            ("30m", Some(1800)),
            ("1h", Some(3600)),
            ("7d", Some(604_800)),
            ("h", None),
            ("", None),
            ("-1h", None),
            ("1.5h", None),
            ("99999999999999999999d", None),
            ("9999999999999999999d", None),
        ] {
            assert_eq!(seconds(text), expected, "{text}");
        }
    }

    #[test]
    fn tokens_are_listed_with_what_is_left_of_them() {
        let token = |id: &str, expires| TokenView {
            id: id.to_owned(),
            uses_left: 2,
            expires: Wall::from_seconds(expires),
            host_pattern: "node*".to_owned(),
        };
        let text = table(
            &[token("0123456789ab", 10), token("ffffffffffff", 30)],
            Wall::from_seconds(20),
            &Clock::new(TimeZone::UTC),
        );
        let expected = "\
ID            USES  VALID UNTIL          HOSTS
0123456789ab     2  01/01/1970 00:00:10  node* (expired)
ffffffffffff     2  01/01/1970 00:00:30  node*
";
        assert_eq!(text, expected);
    }
}
