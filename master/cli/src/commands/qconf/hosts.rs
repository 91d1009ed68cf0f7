//! Whether there is a host of a name that `-ah` or `-as` is given.
//!
//! A host of the cell is known by the name in its certificate, whatever a name service says. A host that is to join later is looked up
//! where the command runs, as Grid Engine does it, so that a misspelt name is noticed.

use super::session::Session;
use crate::fail::Fail;
use proto::diagnostic::{Code, Diagnostic};
use proto::object::ObjectKind;
use proto::wire::client::Query;
use proto::wire::view::Data;
use std::net::{IpAddr, ToSocketAddrs};

/// # Errors
/// If the cell has no host of that name and the name does not resolve; if the master cannot be reached.
pub fn must_be_known(session: &mut Session, name: &str) -> Result<(), Fail> {
    if is_in_cell(session, name)? || resolves(name) {
        return Ok(());
    }
    let what = format!("can't resolve hostname \"{name}\"");
    let refusal = Diagnostic::new(Code::UnknownObject, what)
        .why("no host of the cell has that name, and no name service knows it");
    Err(refusal.fix("qconf -sel lists the execution hosts; a host that joins is one of them").into())
}

fn is_in_cell(session: &mut Session, name: &str) -> Result<bool, Fail> {
    let Data::Names(names) = session.ask(Query::HostNames { names: vec![name.to_owned()] })? else {
        return Ok(false);
    };
    let name = names.first().map_or(name, String::as_str);
    for kind in [ObjectKind::ExecHost, ObjectKind::AdminHosts, ObjectKind::SubmitHosts] {
        if session.names(kind)?.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// An address is not a name: hosts are known by names.
fn resolves(name: &str) -> bool {
    name.parse::<IpAddr>().is_err() && (name, 0).to_socket_addrs().is_ok_and(|mut found| found.next().is_some())
}
