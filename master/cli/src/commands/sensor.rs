//! `gridwright sensor check` and `sensor status`.

use crate::args::{CommandDef, Operands, Parsed, Values, flag, with};
use crate::commands::Outcome;
use crate::commands::ask::{self, Format};
use crate::fail::Fail;
use crate::output::json;
use crate::site::Site;
use crate::{daemons, exit, output};
use proto::diagnostic::{Code, Diagnostic};
use proto::load::SensorStatus;
use proto::wire::client::Query;
use proto::wire::view::Data;
use std::fmt::Write as _;
use std::process::Command;

const STATUS: CommandDef = CommandDef {
    name: "gridwright sensor",
    summary: "check SCRIPT runs a load sensor as the agent would and says what was understood; status tells how the cell's sensors do.",
    operand_placeholder: "check SCRIPT | status [HOST ...]",
    operands: Operands::Anywhere,
    options: &[
        with("-fmt", Values::One, "text|json", "how to print the status (default: text)"),
        flag("-help", "print this help"),
        flag("--help", "print this help"),
    ],
    exit_codes: "0 the sensor is usable, or the status was printed; 1 it is not; 2 wrong option",
};

const CHECK: CommandDef = CommandDef {
    name: "gridwright sensor check",
    summary: "Runs a load sensor as the agent would, tells line by line what was understood, and judges it.",
    operand_placeholder: "SCRIPT [ARGUMENTS]",
    operands: Operands::EndOptions,
    options: &[
        with("--deadline", Values::One, "SECONDS", "how long an answer may take (default: 60)"),
        with("--user", Values::One, "NAME|UID:GID", "as whom to run it (default: as the cell's sensors; root only)"),
        flag("-help", "print this help"),
        flag("--help", "print this help"),
    ],
    exit_codes: "0 it works, perhaps with warnings; 1 it does not; 2 wrong option; 7 value does not parse",
};

/// Runs `gridwright sensor`.
pub fn run(words: Vec<String>) -> Outcome {
    if words.first().is_some_and(|word| word == "check") {
        return check(words[1..].to_vec());
    }
    let parsed = STATUS.parse(words)?;
    if parsed.has("-help") || parsed.has("--help") {
        output::data(&STATUS.help());
        return Ok(exit::OK);
    }
    if parsed.operands.first().is_none_or(|word| word != "status") {
        let refusal = Diagnostic::new(Code::BadSyntax, "gridwright sensor: write check SCRIPT, or status [HOST ...]");
        return Err(Fail::new(exit::USAGE, refusal.fix("all options: gridwright sensor -help")));
    }
    let is_json = is_json(&parsed)?;
    let hosts = parsed.operands[1..].to_vec();
    let reply = ask::connect("gridwright sensor", if is_json { Format::Json } else { Format::Text })?
        .query(Query::Sensors { hosts })?;
    if let Some(Data::Sensors(sensors)) = &reply.data {
        if is_json {
            output::data(&json::line(&serde_json::json!({ "version": 1, "sensors": sensors })));
        } else {
            for (host, sensors) in sensors {
                output::data(&sensors.iter().map(|sensor| status_text(host.as_str(), sensor)).collect::<String>());
            }
        }
    }
    Ok(output::answers(&reply.answers))
}

/// Whether `-fmt` asks for JSON.
///
/// # Errors
/// A format that there is not.
pub fn is_json(parsed: &Parsed) -> Result<bool, Fail> {
    match parsed.value("-fmt") {
        None | Some("text") => Ok(false),
        Some("json") => Ok(true),
        Some(other) => Err(Fail::bad_value(format!("error: unknown format \"{other}\"")).fix("text or json")),
    }
}

/// Hands over to the agent's program, which runs the script as the agent would.
fn check(words: Vec<String>) -> Outcome {
    let parsed = CHECK.parse(words)?;
    if parsed.has("-help") || parsed.has("--help") {
        output::data(&CHECK.help());
        return Ok(exit::OK);
    }
    if parsed.operands.is_empty() {
        let refusal = Diagnostic::new(Code::BadSyntax, "gridwright sensor check: no script is named");
        return Err(Fail::new(
            exit::USAGE,
            refusal.fix("gridwright sensor check SCRIPT, as load_sensor would name it"),
        ));
    }
    let mut command = Command::new(daemons::program("gridwright-agent")?);
    let site = Site::from_environment();
    command.arg("sensor-check").arg("--dir").arg(site.dir());
    if let Some(text) = parsed.value("--deadline") {
        let seconds = text.parse::<u32>().ok().filter(|seconds| *seconds > 0);
        let what = format!("gridwright sensor check: --deadline {text} is no number of seconds");
        let seconds = seconds.ok_or_else(|| Fail::bad_value(what).fix("give a whole number from 1 up"))?;
        command.args(["--deadline", &seconds.to_string()]);
    }
    if let Some(user) = parsed.value("--user") {
        command.args(["--user", user]);
    } else if let (true, Some(uid)) = (nix::unistd::getuid().is_root(), crate::accounts::sensor_uid(site.dir())) {
        command.args(["--user", &format!("{uid}:{uid}")]);
    }
    command.arg("--").args(&parsed.operands);
    let status = command.status().map_err(|error| {
        Diagnostic::new(Code::SystemRefused, "error: cannot start gridwright-agent").why(error.to_string())
    })?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(exit::FAILED))
}

fn status_text(host: &str, sensor: &SensorStatus) -> String {
    let mut text = format!("{host} {}: {}", sensor.command, sensor.health);
    let _ = write!(text, ", {} values", sensor.values);
    if let Some(age) = sensor.age_s {
        let _ = write!(text, ", last block {age} s ago");
    }
    let _ = write!(
        text,
        ", interval {} s, deadline {} s, {} restarts",
        sensor.interval_s, sensor.deadline_s, sensor.restarts
    );
    if let Some(pid) = sensor.pid {
        let _ = write!(text, ", pid {pid}");
    }
    if !sensor.user.is_empty() {
        let _ = write!(text, ", user {}", sensor.user);
    }
    if let Some(back_off) = sensor.back_off_s {
        let _ = write!(text, ", starts again in {back_off} s");
    }
    text.push('\n');
    if !sensor.last_error.is_empty() {
        let _ = writeln!(text, "  last error: {}", sensor.last_error);
    }
    for line in &sensor.stderr {
        let _ = writeln!(text, "  stderr: {line}");
    }
    text
}
