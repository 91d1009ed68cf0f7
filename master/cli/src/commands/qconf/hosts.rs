//! Whether there are hosts of the names that a change gives: of `-ah` and `-as`, of host lists, and
//! of what is set for a host.
//!
//! A host of the cell is known by the name in its certificate, whatever a name service says. A host
//! that is to join later is looked up where the command runs, as Grid Engine does it, so that a
//! misspelt name is noticed.

use super::session::{Session, unexpected};
use crate::fail::Fail;
use proto::diagnostic::{Code, Diagnostic};
use proto::hostgroup::{HostList, HostOrGroup};
use proto::id::HostName;
use proto::object::ObjectKind;
use proto::wire::client::{AttributeEdit, ObjectAction, ObjectChange, Query};
use proto::wire::view::Data;
use std::collections::BTreeSet;
use std::net::{IpAddr, ToSocketAddrs};

/// # Errors
/// If the cell has no host of that name and the name does not resolve; if the master cannot be
/// reached.
pub fn must_be_known(session: &mut Session, name: &str) -> Result<(), Fail> {
    match unknown(session, &[name.to_owned()], &[])?.first() {
        None => Ok(()),
        Some(name) => Err(refusal(format!("can't resolve hostname \"{name}\"")).into()),
    }
}

/// Checks the hosts that changes of objects name: each would become an execution host, or get a
/// configuration.
///
/// # Errors
/// As [`must_be_known`].
pub fn must_be_known_in(session: &mut Session, changes: &[ObjectChange]) -> Result<(), Fail> {
    if let Some(listed) = unknown_listed(session, changes)? {
        return Err(listed.refusal().into());
    }
    let owners: Vec<String> = changes.iter().filter_map(owner_of).collect();
    match unknown(session, &owners, &[])?.first() {
        None => Ok(()),
        Some(name) => Err(refusal(format!("can't resolve hostname \"{name}\"")).into()),
    }
}

/// The execution hosts that changes add.
pub fn added(changes: &[ObjectChange]) -> Vec<String> {
    let is_added =
        |change: &&ObjectChange| change.kind == ObjectKind::ExecHost && matches!(change.action, ObjectAction::Add(_));
    changes
        .iter()
        .filter(is_added)
        .map(|change| change.name.clone())
        .collect()
}

/// Warnings of execution hosts that were added and that nobody knows. They are not refused, because
/// a cloud names hosts before a name service does. The change is made already, so a look that fails
/// is no failure of the command.
pub fn unknown_added(session: &mut Session, added: &[String]) -> Vec<Diagnostic> {
    let unknown = unknown(session, added, &[]).unwrap_or_default();
    unknown.iter().map(|name| warning_of_unknown(name)).collect()
}

fn warning_of_unknown(name: &str) -> Diagnostic {
    let what = format!("warning: host \"{name}\" is added, and no name service knows it");
    Diagnostic::new(Code::UnknownObject, what).fix(format!(
        "if the name is misspelt: qconf -de {name}; the host itself joins with gridwright join"
    ))
}

/// A host in the list of a queue or of a host group that nobody knows.
pub struct UnknownListed<'a> {
    /// The change that lists it.
    pub change: &'a ObjectChange,
    host: String,
}

impl UnknownListed<'_> {
    /// The refusal, without a place.
    pub fn refusal(&self) -> Diagnostic {
        refusal(format!("unable to resolve host \"{}\"", self.host))
    }
}

/// Returns the first host in the lists of queues and host groups that nobody knows: it would become
/// an execution host. Execution hosts that the changes add are known.
///
/// # Errors
/// If the master cannot be reached.
pub fn unknown_listed<'a>(
    session: &mut Session,
    changes: &'a [ObjectChange],
) -> Result<Option<UnknownListed<'a>>, Fail> {
    let listed: Vec<String> = changes.iter().flat_map(listed_in).collect();
    let unknown = unknown(session, &listed, &added_hosts(changes))?;
    let Some(host) = unknown.into_iter().next() else {
        return Ok(None);
    };
    let change = changes.iter().find(|change| listed_in(change).contains(&host));
    Ok(change.map(|change| UnknownListed { change, host }))
}

/// The execution hosts that changes add.
fn added_hosts(changes: &[ObjectChange]) -> Vec<HostName> {
    let is_new = |change: &&ObjectChange| {
        change.kind == ObjectKind::ExecHost && matches!(change.action, ObjectAction::Add(_) | ObjectAction::Replace(_))
    };
    changes
        .iter()
        .filter(is_new)
        .map(|change| HostName::new(&change.name))
        .collect()
}

fn refusal(what: String) -> Diagnostic {
    Diagnostic::new(Code::UnknownObject, what)
        .why("no host of the cell has that name, and no name service knows it")
        .fix("qconf -sel lists the execution hosts; a host that joins is one of them")
}

/// The hosts that a change puts into the list of a queue or of a host group.
fn listed_in(change: &ObjectChange) -> Vec<String> {
    // The master refuses a text that is not a list of hosts.
    let list = host_list(change)
        .and_then(|text| text.parse::<HostList>().ok())
        .unwrap_or_default();
    let hosts = list.iter().filter_map(|member| match member {
        HostOrGroup::Host(host) => Some(host.to_string()),
        HostOrGroup::Group(_) => None,
    });
    hosts.collect()
}

/// The text of the list of hosts that a change gives a queue or a host group.
fn host_list(change: &ObjectChange) -> Option<&str> {
    if !matches!(change.kind, ObjectKind::Queue | ObjectKind::HostGroup) {
        return None;
    }
    match &change.action {
        ObjectAction::Add(fields) | ObjectAction::Replace(fields) => fields.value("hostlist"),
        ObjectAction::Attribute {
            edit: AttributeEdit::Delete,
            ..
        } => None,
        ObjectAction::Attribute { attribute, value, .. } => (attribute == "hostlist").then_some(value),
        ObjectAction::Delete
        | ObjectAction::Purge { .. }
        | ObjectAction::Clean
        | ObjectAction::Enlist { .. }
        | ObjectAction::Strike { .. } => None,
    }
}

/// The host whose configuration a change makes. A host object may be of a host that was removed and
/// has its certificate still.
fn owner_of(change: &ObjectChange) -> Option<String> {
    let is_made = matches!(change.action, ObjectAction::Add(_) | ObjectAction::Replace(_));
    let name = Some(&change.name).filter(|name| !name.is_empty() && *name != HostName::global().as_str());
    name.filter(|_| is_made && change.kind == ObjectKind::ClusterConf)
        .cloned()
}

/// The names that no host of the cell and no host of `added` has, and that do not resolve, as they
/// are given.
fn unknown(session: &mut Session, names: &[String], added: &[HostName]) -> Result<Vec<String>, Fail> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let Data::Names(called) = session.ask(Query::HostNames { names: names.to_vec() })? else {
        return Err(unexpected());
    };
    if called.len() != names.len() {
        return Err(unexpected());
    }
    let mut known: BTreeSet<HostName> = added.iter().cloned().chain([HostName::global()]).collect();
    for kind in [ObjectKind::ExecHost, ObjectKind::AdminHosts, ObjectKind::SubmitHosts] {
        known.extend(session.names(kind)?.iter().map(|name| HostName::new(name)));
    }
    let is_known = |given: &str, called: &str| [given, called].iter().any(|name| known.contains(&HostName::new(name)));
    let pairs = names.iter().zip(&called);
    let unknown = pairs.filter(|(given, called)| !is_known(given, called) && !resolves(given));
    Ok(unknown.map(|(given, _)| given.clone()).collect())
}

/// An address is not a name: hosts are known by names.
fn resolves(name: &str) -> bool {
    name.parse::<IpAddr>().is_err()
        && (name, 0)
            .to_socket_addrs()
            .is_ok_and(|mut found| found.next().is_some())
}
