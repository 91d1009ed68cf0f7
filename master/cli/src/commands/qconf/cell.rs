//! What `qconf` asks of the cell itself: where its scheduler is, a scheduling pass, and the end of daemons.

use super::session::{Format, Session, unexpected};
use super::{elements, show};
use crate::commands::Outcome;
use crate::fail::Fail;
use crate::output::json::Document;
use crate::{exit, output};
use proto::object::ObjectKind;
use proto::wire::client::{Command, Query};
use proto::wire::view::Data;

/// `-sss`: the host of the scheduler, which is a part of the master.
pub fn scheduler_host(session: &mut Session) -> Outcome {
    let host = master_host(session)?;
    show::print_names(session.format, "scheduler host", &[host]);
    Ok(exit::OK)
}

/// `-secl`: who reads the events of the cell. That is the scheduler.
pub fn event_clients(session: &mut Session) -> Outcome {
    let host = master_host(session)?;
    match session.format {
        Format::Text => output::data(&client_table(&[(1, "scheduler", &host)])),
        Format::Json => {
            let client = serde_json::json!({ "id": 1, "name": "scheduler", "host": host });
            output::data(&Document::new().with("event_clients", &[client]).finish());
        }
    }
    Ok(exit::OK)
}

fn client_table(clients: &[(u32, &str, &str)]) -> String {
    let rows: String = clients.iter().map(|(id, name, host)| format!("{id:>8} {name:<15} {host:<25}\n")).collect();
    format!("{:>8} {:<15} {:<25}\n{}\n{rows}", "ID", "NAME", "HOST", "-".repeat(50))
}

fn master_host(session: &mut Session) -> Result<String, Fail> {
    let Data::Status(status) = session.ask(Query::Status)? else { return Err(unexpected()) };
    Ok(status.host)
}

/// `-tsm`.
pub fn trigger_scheduling(session: &mut Session) -> Outcome {
    session.command(Command::TriggerScheduling)
}

/// `-km`.
pub fn shutdown_master(session: &mut Session) -> Outcome {
    session.command(Command::Shutdown { hosts: Vec::new(), kill_jobs: false })
}

/// `-ke`, `-kej`: hosts, or `all`.
pub fn shutdown_agents(session: &mut Session, kill_jobs: bool, values: &[String]) -> Outcome {
    let mut hosts: Vec<String> = elements(values).map(str::to_owned).collect();
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
        assert_eq!(client_table(&[(1, "scheduler", "vm")]), recorded);
    }
}
