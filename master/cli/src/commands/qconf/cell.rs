//! What `qconf` asks of the cell itself: where its scheduler is, a scheduling pass, and the end of
//! daemons.

use super::session::{DataFormat, Session, unexpected};
use super::{elements, show};
use crate::commands::Outcome;
use crate::fail::Fail;
use crate::output::json::JsonDocument;
use crate::{exit, output};
use proto::diagnostic::{Code, Diagnostic};
use proto::object::ObjectKind;
use proto::wire::client::{Command, Query};
use proto::wire::stream::EventClient;
use proto::wire::view::Data;

/// `-sss`: the host of the scheduler, which is a part of the master.
pub fn scheduler_host(session: &mut Session) -> Outcome {
    let host = master_host(session)?;
    show::print_names(session.format, "scheduler host", &[host]);
    Ok(exit::OK)
}

/// `-secl`: who reads the events of the cell, the scheduler first.
pub fn event_clients(session: &mut Session) -> Outcome {
    let Data::EventClients(clients) = session.ask(Query::EventClients)? else {
        return Err(unexpected());
    };
    match session.format {
        DataFormat::Text => output::data(&client_table(&clients)),
        DataFormat::Json => output::data(&JsonDocument::new().with("event_clients", &clients).finish()),
    }
    Ok(exit::OK)
}

fn client_table(clients: &[EventClient]) -> String {
    let row = |EventClient { id, name, host }: &EventClient| format!("{id:>8} {name:<15} {host:<25}\n");
    let rows: String = clients.iter().map(row).collect();
    format!("{:>8} {:<15} {:<25}\n{}\n{rows}", "ID", "NAME", "HOST", "-".repeat(50))
}

/// `-kec`: cuts event clients off, by number or all. What is no number is refused; 8.1.9 says
/// nothing to it.
pub fn kill_event_clients(session: &mut Session, values: &[String]) -> Outcome {
    let words: Vec<&str> = elements(values).collect();
    if words == ["all"] {
        return session.command(Command::KillEventClients { ids: Vec::new() });
    }
    let number = |word: &&str| {
        word.parse().map_err(|_| {
            let what = format!("error: \"{word}\" is no number of an event client");
            Fail::from(
                Diagnostic::new(Code::BadValue, what)
                    .at("-kec")
                    .fix("qconf -secl lists the numbers; all means all"),
            )
        })
    };
    let ids: Vec<u32> = words.iter().map(number).collect::<Result<_, Fail>>()?;
    if ids.is_empty() {
        // No number would mean all.
        output::note("error: no event client is named");
        return Ok(exit::FAILED);
    }
    session.command(Command::KillEventClients { ids })
}

fn master_host(session: &mut Session) -> Result<String, Fail> {
    let Data::Status(status) = session.ask(Query::Status)? else {
        return Err(unexpected());
    };
    Ok(status.host)
}

/// `-tsm`.
pub fn trigger_scheduling(session: &mut Session) -> Outcome {
    session.command(Command::TriggerScheduling)
}

/// `-clearusage`: of the users that are named, or of everybody.
pub fn clear_usage(session: &mut Session, values: &[String]) -> Outcome {
    let users: Vec<String> = elements(values).map(str::to_owned).collect();
    if users.is_empty() && !values.is_empty() {
        // No user would mean all.
        output::note("error: no user is named");
        return Ok(exit::FAILED);
    }
    session.command(Command::ClearUsage { users })
}

/// `-km`.
pub fn shutdown_master(session: &mut Session) -> Outcome {
    session.command(Command::Shutdown {
        hosts: Vec::new(),
        kill_jobs: false,
    })
}

/// `-ke`, `-kej`: hosts, or `all`.
pub fn shutdown_agents(session: &mut Session, kill_jobs: bool, values: &[String]) -> Outcome {
    let words = elements(values).flat_map(str::split_ascii_whitespace);
    let mut hosts: Vec<String> = words.map(str::to_owned).collect();
    if hosts == ["all"] {
        hosts = session.names(ObjectKind::ExecHost)?;
    }
    if hosts.is_empty() {
        // No hosts would mean the master.
        output::note("no execution host defined");
        return Ok(exit::FAILED);
    }
    session.command(Command::Shutdown { hosts, kill_jobs })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_clients_are_a_table_as_8_1_9_prints_it() {
        let recorded = "      ID NAME            HOST                     
--------------------------------------------------
       1 scheduler       vm                       
";
        let scheduler = EventClient {
            id: 1,
            name: "scheduler".to_owned(),
            host: "vm".into(),
        };
        assert_eq!(client_table(&[scheduler]), recorded);
    }
}
