//! `gridwright sensor check` and `sensor status`.

use crate::args::{CommandDef, CommandLine, Operands, ValueCount, flag, with};
use crate::cell_address::CellAddress;
use crate::client::Client;
use crate::commands::Outcome;
use crate::commands::ask::{self, Format};
use crate::fail::Fail;
use crate::output::json;
use crate::{daemons, exit, output};
use proto::amount::{Amount, Type};
use proto::diagnostic::{Code, Diagnostic};
use proto::load::SensorStatus;
use proto::object::ObjectKind;
use proto::wire::client::Query;
use proto::wire::view::Data;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, ExitStatus, Stdio};

/// The command line of `gridwright sensor`.
pub const STATUS: CommandDef = CommandDef {
    name: "gridwright sensor",
    summary: "check SCRIPT runs a load sensor as the agent would and says what was understood; status tells how the cell's sensors do.",
    operand_placeholder: "check SCRIPT | status [HOST ...]",
    operands: Operands::Anywhere,
    options: &[
        with(
            "-fmt",
            ValueCount::One,
            "text|json",
            "how to print the status (default: text)",
        ),
        crate::cell_address::place::DIR,
        flag("-help", "print this help"),
        flag("--help", "print this help"),
    ],
    exit_codes: "0 the sensor is usable, or the status was printed; 1 it is not; 2 wrong option",
};

/// The command line of `gridwright sensor check`.
pub const CHECK: CommandDef = CommandDef {
    name: "gridwright sensor check",
    summary: "Runs a load sensor as the agent would, tells line by line what was understood, and judges it.",
    operand_placeholder: "SCRIPT [ARGUMENTS]",
    operands: Operands::EndOptions,
    options: &[
        with(
            "--deadline",
            ValueCount::One,
            "SECONDS",
            "how long an answer may take (default: 60)",
        ),
        with(
            "--user",
            ValueCount::One,
            "NAME|UID:GID",
            "as whom to run it (default: as the cell's sensors; root only)",
        ),
        crate::cell_address::place::DIR,
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
        let refusal = Diagnostic::new(
            Code::BadSyntax,
            "gridwright sensor: write check SCRIPT, or status [HOST ...]",
        );
        return Err(Fail::new(
            exit::USAGE,
            refusal.fix("all options: gridwright sensor -help"),
        ));
    }
    let is_json = is_json(&parsed)?;
    let hosts = parsed.operands[1..].to_vec();
    let format = if is_json { Format::Json } else { Format::Text };
    let reply = ask::connect_at(&CellAddress::from_command_line(&parsed), "gridwright sensor", format)?
        .query(Query::Sensors { hosts })?;
    if let Some(Data::Sensors(sensors)) = &reply.data {
        if is_json {
            output::data(&json::line(&serde_json::json!({ "version": 1, "sensors": sensors })));
        } else {
            if sensors.values().all(Vec::is_empty) {
                output::note("no load sensor reports: load_sensor of qconf -mconf names the programs to run");
            }
            for (host, sensors) in sensors {
                output::data(
                    &sensors
                        .iter()
                        .map(|sensor| status_text(host.as_str(), sensor))
                        .collect::<String>(),
                );
            }
        }
    }
    Ok(output::answers(&reply.answers))
}

/// Whether `-fmt` asks for JSON.
///
/// # Errors
/// A format that there is not.
pub fn is_json(parsed: &CommandLine) -> Result<bool, Fail> {
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
    let address = CellAddress::from_command_line(&parsed);
    command.arg("sensor-check").arg("--dir").arg(address.dir());
    if let Some(text) = parsed.value("--deadline") {
        let seconds = text.parse::<u32>().ok().filter(|seconds| *seconds > 0);
        let what = format!("gridwright sensor check: --deadline {text} is no number of seconds");
        let seconds = seconds.ok_or_else(|| Fail::bad_value(what).fix("give a whole number from 1 up"))?;
        command.args(["--deadline", &seconds.to_string()]);
    }
    if let Some(user) = parsed.value("--user") {
        command.args(["--user", user]);
    } else if let (true, Some(uid)) = (
        nix::unistd::getuid().is_root(),
        crate::accounts::sensor_uid(address.dir()),
    ) {
        command.args(["--user", &format!("{uid}:{uid}")]);
    }
    let facts = cell_facts(&address);
    if facts.is_none() {
        output::note("the cell does not answer: names and types of values are not checked");
    } else {
        command.arg("--cell-facts").stdin(Stdio::piped());
    }
    command.arg("--").args(&parsed.operands);
    let status = run_with_input(&mut command, facts.as_deref()).map_err(|error| {
        Diagnostic::new(Code::SystemRefused, "error: cannot start gridwright-agent").why(error.to_string())
    })?;
    Ok(status
        .code()
        .and_then(|code| u8::try_from(code).ok())
        .unwrap_or(exit::FAILED))
}

/// Runs a program to its end, with this on its standard input if there is something.
fn run_with_input(command: &mut Command, input: Option<&str>) -> std::io::Result<ExitStatus> {
    let mut child = command.spawn()?;
    if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input) {
        // A program that refuses its arguments reads nothing, and says so itself.
        let _ = stdin.write_all(input.as_bytes());
    }
    child.wait()
}

/// What the checker has to know of the cell, line by line. `None` if the cell does not answer.
fn cell_facts(address: &CellAddress) -> Option<String> {
    let mut client = Client::connect(address, "gridwright sensor").ok()?;
    let mut object = |kind| {
        let query = Query::Object {
            kind,
            name: String::new(),
        };
        match ask::data(&mut client, query) {
            Ok(Some(Data::Object(fields))) => Some(fields),
            _ => None,
        }
    };
    let (complex, conf) = (object(ObjectKind::ComplexTable)?, object(ObjectKind::ClusterConf)?);
    let mut facts = String::new();
    for field in complex.iter() {
        // A line of qconf -sc behind the name: the shortcut, the type, and more.
        if let Some(r#type) = field.value.split_whitespace().nth(1) {
            let _ = writeln!(facts, "type {} {type}", field.key);
        }
    }
    for host in ask::names(&mut client, ObjectKind::ExecHost).ok()? {
        let _ = writeln!(facts, "host {host}");
    }
    let time = conf
        .value("load_report_time")
        .and_then(|text| Amount::parse(text, Type::Time).ok()?.finite());
    if let Some(seconds) = time {
        let _ = writeln!(facts, "interval {seconds}");
    }
    Some(facts)
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
    if sensor.faults.count > 0 {
        let _ = write!(text, ", {} bad values", sensor.faults.count);
    }
    text.push('\n');
    for fault in &sensor.faults.examples {
        let _ = writeln!(text, "  bad value: {fault}");
    }
    if !sensor.last_error.is_empty() {
        let _ = writeln!(text, "  last error: {}", sensor.last_error);
    }
    for line in &sensor.stderr {
        let _ = writeln!(text, "  stderr: {line}");
    }
    text
}
