//! `qping`: whether the master, or the agent of a host, answers and for how long it has been up.
//!
//! Components are asked through the site's own socket: host, port and id are not dialled, but have
//! to be those of the component. Message traces of 8.1.9 (`-dump`) are deliberately absent.

use crate::args::{CommandDef, CommandLine, Operands, ValueCount, flag, unsupported, with};
use crate::cell_address::CellAddress;
use crate::client::Client;
use crate::commands::Outcome;
use crate::commands::ask::{self, Format, unexpected};
use crate::fail::Fail;
use crate::output::json;
use crate::output::time::{self, Clock};
use crate::{exit, output};
use proto::diagnostic::{Code, Diagnostic};
use proto::id::HostName;
use proto::time::Wall;
use proto::wire::client::{HostFilter, Query};
use proto::wire::view::{CellStatus, Data, HostView};
use std::fmt::Write as _;
use std::time::Duration;

pub const QPING: CommandDef = CommandDef {
    name: "qping",
    summary: "Asks the master (component qmaster) or the agent of a host (component execd) how it is.",
    operand_placeholder: "[host port component id]",
    operands: Operands::Anywhere,
    options: &[
        unsupported(
            flag("-dump", "dump communication"),
            "the daemons' logs tell connections: log/ of the cell",
        ),
        flag("-f", "show full status information, again and again"),
        with("-fmt", ValueCount::One, "text|json", "how to write the answer"),
        flag("-help", "print this help"),
        with(
            "-i",
            ValueCount::One,
            "interval",
            "seconds between two questions (default 1)",
        ),
        flag("-info", "show full status information and exit"),
        flag("-noalias", "ignore host aliases (there are none)"),
        flag("-ssl", "use a secure connection (it always is)"),
        flag("-tcp", "use TCP (accepted and ignored)"),
    ],
    exit_codes: "0 answered; 1 no answer, or a wrong option",
};

/// Who is asked, in the words of 8.1.9.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Endpoint {
    host: String,
    port: String,
    component: String,
    id: String,
}

/// One answer.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Health {
    up_s: u64,
    clients: u32,
    info: String,
}

/// Runs `qping`. Without operands it asks the master of this shell's cell.
pub fn run(words: Vec<String>) -> Outcome {
    let parsed = QPING.parse(words)?;
    if parsed.has("-help") {
        output::data(&QPING.help());
        return Ok(exit::OK);
    }
    let interval = interval(&parsed)?;
    let format = Format::from_command_line(&parsed)?;
    let clock = Clock::local();
    let mut named = Endpoint::from_operands(&parsed.operands)?;
    let is_full = parsed.has("-info") || parsed.has("-f");
    let is_once = parsed.has("-info") || format == Format::Json;
    let mut message = 0_u64;
    loop {
        message += 1;
        let status = ask_status(named.as_ref(), format)?;
        let endpoint = named.get_or_insert_with(|| Endpoint::of_master(&status));
        endpoint.must_be_of(&status)?;
        if format == Format::Json {
            output::data(&json::JsonDocument::new().with("status", &status).finish());
            return Ok(exit::OK);
        }
        let health = if endpoint.is_agent() {
            agent(endpoint)?
        } else {
            Health::of_master(&status)
        };
        let text = match is_full {
            true => health.full(message, time::now(), &clock),
            false => health.line(endpoint, time::now(), &clock),
        };
        output::data(&text);
        if is_once {
            return Ok(exit::OK);
        }
        std::thread::sleep(interval);
    }
}

fn interval(parsed: &CommandLine) -> Result<Duration, Fail> {
    let text = parsed.value("-i").unwrap_or("1");
    let seconds = text.parse::<u64>().ok().filter(|seconds| *seconds > 0);
    let seconds = seconds
        .ok_or_else(|| Fail::bad_value(format!("error: -i: invalid value \"{text}\"")).fix("seconds, 1 or more"))?;
    Ok(Duration::from_secs(seconds))
}

fn ask_status(endpoint: Option<&Endpoint>, format: Format) -> Result<CellStatus, Fail> {
    let mut client = ask::connect("qping", format).map_err(|fail| match endpoint {
        Some(endpoint) => endpoint.unreachable(&fail.diagnostic),
        None => fail,
    })?;
    match ask::data(&mut client, Query::Status)? {
        Some(Data::Status(status)) => Ok(*status),
        other => unexpected(other.as_ref()),
    }
}

/// What the master knows of a host's agent.
fn agent(endpoint: &Endpoint) -> Result<Health, Fail> {
    let mut client = Client::connect(&CellAddress::from_environment(), "qping")?;
    let filter = HostFilter {
        hosts: vec![endpoint.host.clone()],
        ..HostFilter::default()
    };
    let hosts = ask::hosts(&mut client, Query::Hosts(filter))?;
    match hosts.into_iter().find(|host| !host.host.is_global()) {
        Some(host) if host.connected => Ok(Health::of_agent(&host)),
        Some(_) | None => {
            let refusal = Diagnostic::new(Code::NoMaster, "the agent is not connected to the master");
            Err(endpoint.unreachable(&refusal))
        }
    }
}

impl Endpoint {
    /// The four operands; none if there are none.
    fn from_operands(operands: &[String]) -> Result<Option<Self>, Fail> {
        match operands {
            [] => Ok(None),
            [host, port, component, id] => Ok(Some(Self {
                host: host.clone(),
                port: port.clone(),
                component: component.clone(),
                id: id.clone(),
            })),
            _ => {
                let refusal = Diagnostic::new(Code::BadSyntax, "qping: wrong operands");
                Err(refusal
                    .fix("qping [options] HOST PORT qmaster|execd ID, or nothing behind the options")
                    .into())
            }
        }
    }

    fn of_master(status: &CellStatus) -> Self {
        Self {
            host: status.host.clone(),
            port: status.port.to_string(),
            component: "qmaster".to_owned(),
            id: "1".to_owned(),
        }
    }

    /// Whether somebody of this cell listens at the named host and port, and is who was named.
    /// Agents listen nowhere: theirs is the port that 8.1.9 would have, of `SGE_EXECD_PORT`, 6445,
    /// or the one behind the master's.
    fn must_be_of(&self, status: &CellStatus) -> Result<(), Fail> {
        let short = |host: &str| HostName::new(host).short().to_owned();
        let is_here = short(&self.host) == short(&status.host) || short(&self.host) == "localhost";
        let master = status.port;
        let agent = std::env::var("SGE_EXECD_PORT").ok().and_then(|text| text.parse().ok());
        let port = self.port.parse::<u16>().ok();
        let is_master = is_here && port == Some(master);
        let is_agent = !is_master
            && port.is_some_and(|port| Some(port) == agent || [6445, master.wrapping_add(1)].contains(&port));
        let Self {
            host, component, id, ..
        } = self;
        let asked = format!("{host}/{component}/{id}");
        let said = match (is_master, is_agent, component.as_str(), id.as_str()) {
            (true, _, "qmaster", "1") | (_, true, "execd", "1") => return Ok(()),
            (true, _, _, _) => format!(
                "access denied: local endpoint \"{host}/qmaster/1\" doesn't match requested endpoint \"{asked}\""
            ),
            (_, true, _, _) => {
                format!("access denied: local endpoint \"{host}/execd/1\" doesn't match requested endpoint \"{asked}\"")
            }
            _ => format!("got select error: Connection refused\ngot select error: closing \"{asked}\""),
        };
        let refusal = Diagnostic::new(Code::NoMaster, said);
        let refusal = refusal
            .why(format!("the master of this cell is {} port {master}", status.host))
            .fix("name that host and port, or set GRIDWRIGHT_DIR to the directory of the cell that is meant");
        Err(self.unreachable(&refusal))
    }

    fn is_agent(&self) -> bool {
        self.component == "execd"
    }

    fn name(&self) -> String {
        format!("{}/{}/{} at port {}", self.host, self.component, self.id, self.port)
    }

    /// Nobody answers: the words of 8.1.9 on stdout, the reason on stderr.
    fn unreachable(&self, refusal: &Diagnostic) -> Fail {
        output::data(&format!("endpoint {}: can't find connection\n", self.name()));
        Fail::new(exit::FAILED, refusal.clone())
    }
}

impl Health {
    fn of_master(status: &CellStatus) -> Self {
        let info = format!(
            "MAIN: R (0.00) | software {}, cell version {}: {} of {} hosts connected, {} reporting, {} pending, {} running, {} passes | OK",
            status.software,
            status.cell_version,
            status.hosts_connected,
            status.hosts,
            status.hosts_reporting,
            status.pending,
            status.running,
            status.passes
        );
        Self {
            up_s: status.uptime_ms / 1000,
            clients: status.hosts_connected,
            info,
        }
    }

    fn of_agent(host: &HostView) -> Self {
        let info = match host.report_age_ms {
            Some(age) => format!("last load report {} s ago | OK", age / 1000),
            None => "no load report yet | OK".to_owned(),
        };
        Self {
            up_s: host.agent_up_ms.unwrap_or_default() / 1000,
            clients: 1,
            info,
        }
    }

    fn line(&self, endpoint: &Endpoint, now: Wall, clock: &Clock) -> String {
        format!(
            "{} endpoint {} is up for {} seconds\n",
            clock.slashes(now),
            endpoint.name(),
            self.up_s
        )
    }

    fn full(&self, message: u64, now: Wall, clock: &Clock) -> String {
        let up_s = i64::try_from(self.up_s).unwrap_or_default();
        let start = now.seconds().saturating_sub(up_s);
        let started = format!("{} ({start})", clock.slashes(Wall::from_seconds(start)));
        let mut text = format!("{}:\n", clock.slashes(now));
        for (key, value) in [
            ("SIRM version:", "0.1".to_owned()),
            ("SIRM message id:", message.to_string()),
            ("start time:", started),
            ("run time [s]:", self.up_s.to_string()),
            ("messages in read buffer:", "0".to_owned()),
            ("messages in write buffer:", "0".to_owned()),
            ("no. of connected clients:", self.clients.to_string()),
            ("status:", "0".to_owned()),
            ("info:", self.info.clone()),
            ("Monitor:", "disabled".to_owned()),
        ] {
            let _ = writeln!(text, "{key:<25} {value}");
        }
        text.push_str("\n\n");
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::tz::TimeZone;

    fn master() -> (Endpoint, Health) {
        let status = CellStatus {
            host: "vm".to_owned(),
            port: 6444,
            uptime_ms: 3_118_500,
            ..CellStatus::default()
        };
        (Endpoint::of_master(&status), Health::of_master(&status))
    }

    #[test]
    fn a_line_tells_how_long_the_master_is_up() {
        let (endpoint, health) = master();
        let line = health.line(&endpoint, Wall::from_seconds(1_795_226_134), &Clock::new(TimeZone::UTC));
        assert_eq!(
            line,
            "11/21/2026 01:55:34 endpoint vm/qmaster/1 at port 6444 is up for 3118 seconds\n"
        );
    }

    #[test]
    fn an_agent_tells_how_long_it_is_up() {
        let hosts = crate::commands::captured::hosts();
        let mut host = hosts.into_iter().find(|host| host.connected).unwrap();
        assert_eq!(Health::of_agent(&host).up_s, 0);
        host.agent_up_ms = Some(1_950_700);
        assert_eq!(Health::of_agent(&host).up_s, 1950);
    }

    #[test]
    fn the_full_form_has_the_lines_of_8_1_9() {
        let (_, health) = master();
        let text = health.full(1, Wall::from_seconds(1_795_226_134), &Clock::new(TimeZone::UTC));
        let expected = "11/21/2026 01:55:34:\n\
            SIRM version:             0.1\n\
            SIRM message id:          1\n\
            start time:               11/21/2026 01:03:36 (1795223016)\n\
            run time [s]:             3118\n\
            messages in read buffer:  0\n\
            messages in write buffer: 0\n\
            no. of connected clients: 0\n\
            status:                   0\n";
        assert!(text.starts_with(expected), "{text}");
        assert!(text.ends_with("Monitor:                  disabled\n\n\n"));
    }

    #[test]
    fn a_master_elsewhere_or_at_another_port_does_not_answer() {
        let status = CellStatus {
            host: "vm.site".to_owned(),
            port: 6444,
            ..CellStatus::default()
        };
        for (host, port, component, answers) in [
            ("vm", "6444", "qmaster", true),
            ("VM.site", "6444", "qmaster", true),
            ("localhost", "6444", "qmaster", true),
            ("vm", "6445", "qmaster", false),
            ("nosuchhost", "6444", "qmaster", false),
            ("n1", "6445", "execd", true),
        ] {
            let words = [host, port, component, "1"].map(str::to_owned);
            let endpoint = Endpoint::from_operands(&words).unwrap().unwrap();
            assert_eq!(
                endpoint.must_be_of(&status).is_ok(),
                answers,
                "{host} {port} {component}"
            );
        }
    }

    #[test]
    fn operands_are_all_four_or_none() {
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(Endpoint::from_operands(&[]).unwrap(), None);
        assert!(
            Endpoint::from_operands(&words("vm 6444 qmaster 1"))
                .unwrap()
                .is_some_and(|endpoint| !endpoint.is_agent())
        );
        for bad in ["vm", "vm 6444 qmaster"] {
            assert!(Endpoint::from_operands(&words(bad)).is_err(), "{bad}");
        }
    }
}
