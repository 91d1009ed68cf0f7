//! Hosts that people name in host lists: by their one name, and those that are not there yet.
//!
//! As in 8.1.9 a host may be named before its agent comes: it becomes an execution host at once,
//! whose queue instances are in state `u` until it reports. Programs that grow and shrink clusters
//! add hosts to `@allhosts` first.

use super::change::Refusals;
use super::draft::Draft;
use proto::diagnostic::{Code, Diagnostic};
use proto::host::ExecHost;
use proto::hostgroup::{HostList, HostOrGroup};
use proto::id::HostName;
use proto::object::ObjectKind;
use std::collections::BTreeSet;

/// A host or group by its one name.
pub(super) fn called(draft: &Draft<'_>, member: HostOrGroup) -> HostOrGroup {
    match member {
        HostOrGroup::Host(host) => HostOrGroup::Host(draft.host_names().canonical(host.as_str())),
        HostOrGroup::Group(group) => HostOrGroup::Group(group),
    }
}

/// The value of an attribute that is edited, with hosts by their one name where it is a list of
/// them.
pub(super) fn value(draft: &Draft<'_>, attribute: &str, value: &str) -> String {
    match value.parse::<HostList>() {
        Ok(list) if attribute == "hostlist" => canonical(draft, list).to_string(),
        // What does not parse is refused by whoever edits it.
        Ok(_) | Err(_) => value.to_owned(),
    }
}

/// The list with every host by its one name; those that are new become execution hosts.
///
/// # Errors
/// If the list names the pseudo host `global`, which has no queues.
pub(super) fn settle(draft: &mut Draft<'_>, list: HostList) -> Result<HostList, Refusals> {
    let list = canonical(draft, list);
    let hosts = list.iter().filter_map(|member| match member {
        HostOrGroup::Host(host) => Some(host),
        HostOrGroup::Group(_) => None,
    });
    let new: Vec<HostName> = hosts
        .filter(|host| !draft.config.exec_hosts.contains_key(*host))
        .cloned()
        .collect();
    if list.contains(&HostOrGroup::Host(HostName::global())) {
        let what = "denied: \"global\" is no host that has queues";
        return Err(vec![
            Diagnostic::new(Code::BadValue, what)
                .at("hostlist")
                .fix("name hosts or host groups"),
        ]);
    }
    for host in new {
        draft.store(
            ObjectKind::ExecHost,
            host.as_str(),
            Some(ExecHost::template(host.clone()).to_fields()),
        );
    }
    Ok(list)
}

fn canonical(draft: &Draft<'_>, list: HostList) -> HostList {
    let names = draft.host_names();
    let mut seen = BTreeSet::new();
    let members = list.0.into_iter().map(|member| match member {
        HostOrGroup::Host(host) => HostOrGroup::Host(names.canonical(host.as_str())),
        HostOrGroup::Group(group) => HostOrGroup::Group(group),
    });
    HostList(members.filter(|member| seen.insert(member.clone())).collect())
}
