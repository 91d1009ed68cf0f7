//! References between objects: what an object names exists, and what is named stays.

mod resource_maps;
mod subordinates;

use super::access;
use super::change::Refusals;
use super::quotas;
use crate::config::Configuration;
use proto::amount::{Amount, Type};
use proto::complex::{Attribute, Complex};
use proto::container::{ContainerRuntime, is_container};
use proto::diagnostic::{Code, Diagnostic};
use proto::host::ExecHost;
use proto::hostgroup::{HostGroup, HostList, HostOrGroup};
use proto::id::{CalendarName, HostGroupName, HostName, PeName, QueueName};
use proto::object::suggest::nearest;
use proto::object::value::Assignments;
use proto::policy::SchedulerConf;
use proto::queue::ClusterQueue;

/// What a host names and does not exist or fit.
pub(super) fn of_host(config: &Configuration, host: &ExecHost) -> Refusals {
    let place = format!("complex_values of host {}", host.name);
    let complex = &config.complex;
    let mut refusals = values_or(
        complex,
        &host.complex_values,
        &place,
        not_in_complex,
        resource_maps::bad_capacity,
    );
    let scaled = host.load_scaling.iter();
    refusals.extend(scaled.filter_map(|(name, _)| unknown(complex, name.as_str(), "load_scaling", not_in_complex)));
    let reported = host.report_variables.iter();
    refusals.extend(reported.filter_map(|name| unknown(complex, name.as_str(), "report_variables", no_resource)));
    refusals.extend(access::of_host(config, host));
    refusals
}

/// What a queue names and does not exist or fit.
pub(super) fn of_queue(config: &Configuration, queue: &ClusterQueue) -> Refusals {
    let mut refusals = members(config, &queue.hostlist);
    for (attribute, id) in queue.overrides() {
        if let HostOrGroup::Group(group) = id {
            refusals.extend(unknown_group(config, group).map(|refusal| refusal.at(attribute)));
        }
    }
    for pe in queue.pe_list.values().flat_map(|list| list.iter()) {
        if !config.pes.contains_key(pe) {
            refusals.push(unknown_pe(config, pe));
        }
    }
    refusals.extend(
        queue
            .calendar
            .values()
            .filter_map(|name| unknown_calendar(config, name.value()?.as_str())),
    );
    refusals.extend(subordinates::of_queue(config, queue));
    refusals.extend(values_of_queue(config, queue));
    refusals.extend(access::of_queue(config, queue));
    refusals
}

fn values_of_queue(config: &Configuration, queue: &ClusterQueue) -> Refusals {
    let complex = &config.complex;
    let check = |list: &Assignments, key: &str| {
        values_or(
            complex,
            list,
            &format!("{key} of queue {}", queue.name),
            no_attribute,
            bad_value,
        )
    };
    let place = format!("complex_values of queue {}", queue.name);
    let capacities = queue
        .complex_values
        .values()
        .flat_map(|list| values_or(complex, list, &place, no_attribute, bad_queue_capacity));
    let thresholds = queue
        .load_thresholds
        .values()
        .flat_map(|list| check(list, "load_thresholds"));
    let suspend = queue
        .suspend_thresholds
        .values()
        .flat_map(|list| check(list, "suspend_thresholds"));
    capacities.chain(thresholds).chain(suspend).collect()
}

/// Groups that a host group names and that do not exist, and circles of groups. Hosts that are not
/// there yet may be named.
pub(super) fn of_group(config: &Configuration, group: &HostGroup) -> Refusals {
    config.groups().check(group).err().into_iter().collect()
}

/// What the scheduler configuration names and does not exist.
pub(super) fn of_scheduler(config: &Configuration, conf: &SchedulerConf) -> Refusals {
    let complex = &config.complex;
    let mut refusals: Refusals = conf
        .load_formula
        .attributes()
        .filter_map(|name| match complex.lookup(name.as_str()) {
            None => unknown(complex, name.as_str(), "load_formula", not_in_formula),
            Some(attribute) => (!attribute.r#type.is_numeric()).then(|| {
                let kinds = "String, CString, ReString or Host attributes";
                let what = format!("{kinds} are not allowed in \"load_formula\": \"{name}\"");
                Diagnostic::new(Code::BadValue, what).at("load_formula")
            }),
        })
        .collect();
    refusals.extend(
        conf.bad_duration_offset()
            .map(|bad| bad.refusal("params", &conf.params.to_string())),
    );
    let adjusted = &conf.job_load_adjustments;
    refusals.extend(values_or(complex, adjusted, "job_load_adjustments", denied, bad_value));
    refusals.extend(conf.settle_times().filter_map(|(name, _)| unsettled(complex, name)));
    refusals
}

/// Settle times are found by the full names of numeric attributes.
fn unsettled(complex: &Complex, name: &str) -> Option<Diagnostic> {
    let Some(attribute) = complex.lookup(name) else {
        return unknown(complex, name, "params SETTLE_TIME", denied);
    };
    let refuse = |what: String| Diagnostic::new(Code::BadValue, what).at("params SETTLE_TIME");
    if attribute.name.as_str() != name {
        let what = format!("denied: \"{name}\" is the shortcut of an attribute");
        return Some(refuse(what).fix(format!("name it in full: {}", attribute.name)));
    }
    (!attribute.r#type.is_numeric()).then(|| refuse(format!("denied: attribute \"{name}\" is no number")))
}

/// Values in hosts and queues that the complex does not take, after it changed.
pub(super) fn invalid_values(config: &Configuration) -> Refusals {
    let hosts = config.exec_hosts.values().flat_map(|host| of_host(config, host));
    let queues = config.queues.values().flat_map(|queue| values_of_queue(config, queue));
    let quotas = config.quotas.values().flat_map(|set| set.check(&config.complex));
    hosts
        .chain(queues)
        .chain(of_scheduler(config, &config.scheduler))
        .chain(quotas)
        .collect()
}

/// # Errors
/// If queues or host groups name a host.
pub(super) fn to_host(config: &Configuration, host: &HostName) -> Result<(), Refusals> {
    let groups = config.groups();
    let queues = config
        .queues
        .values()
        .filter(|queue| queue.hosts(&groups).contains(host));
    let mut users: Vec<String> = queues
        .map(|queue| format!("cluster queue \"{}\"", queue.name))
        .collect();
    let is_member = |group: &&HostGroup| group.members.contains(&HostOrGroup::Host(host.clone()));
    users.extend(
        groups
            .iter()
            .filter(is_member)
            .map(|group| format!("host group \"{}\"", group.name)),
    );
    still(&users, |first| {
        format!("Host object \"{host}\" is still referenced in {first}.")
    })
}

/// # Errors
/// If queues or host groups name a group.
pub(super) fn to_group(config: &Configuration, name: &HostGroupName) -> Result<(), Refusals> {
    let id = HostOrGroup::Group(name.clone());
    let uses = |queue: &&std::sync::Arc<ClusterQueue>| {
        queue.hostlist.contains(&id) || queue.overrides().iter().any(|(_, used)| **used == id)
    };
    let queues: Vec<String> = config
        .queues
        .values()
        .filter(uses)
        .map(|queue| queue.name.to_string())
        .collect();
    let refuse = |users: &str, list: &[String]| {
        let what = format!("denied: these {users} still reference \"{name}\": {}", list.join(", "));
        Err(vec![Diagnostic::new(Code::StillReferenced, what)])
    };
    if !queues.is_empty() {
        return refuse("cluster queues", &queues);
    }
    let groups: Vec<String> = config
        .groups()
        .parents_of(name)
        .into_iter()
        .map(ToString::to_string)
        .collect();
    if groups.is_empty() {
        Ok(())
    } else {
        refuse("hostgroups", &groups)
    }
}

/// # Errors
/// If queues name a parallel environment.
pub(super) fn to_pe(config: &Configuration, name: &PeName) -> Result<(), Refusals> {
    let uses = |queue: &&std::sync::Arc<ClusterQueue>| queue.pe_list.values().any(|list| list.contains(name));
    let users: Vec<String> = config
        .queues
        .values()
        .filter(uses)
        .map(|queue| format!("queue \"{}\"", queue.name))
        .collect();
    still(&users, |first| {
        format!("denied: Parallel environment \"{name}\" is still referenced in {first}.")
    })
}

/// # Errors
/// If hosts, queues or the scheduler configuration name an attribute, in full or by its shortcut.
pub(super) fn to_attribute(config: &Configuration, name: &str) -> Result<(), Refusals> {
    let is_meant = |used: &str| {
        config
            .complex
            .lookup(used)
            .is_some_and(|attribute| attribute.name.as_str() == name)
    };
    let is_in = |list: &Assignments| list.iter().any(|(used, _)| is_meant(used.as_str()));
    let mut users: Vec<String> = Vec::new();
    for host in config.exec_hosts.values() {
        let is_listed = is_in(&host.complex_values);
        if is_listed
            || resource_maps::is_characteristic(config, host, is_meant)
            || host.load_scaling.iter().any(|(used, _)| is_meant(used.as_str()))
        {
            users.push(format!("host \"{}\"", host.name));
        }
    }
    for queue in config.queues.values() {
        let thresholds = queue.load_thresholds.values().chain(queue.suspend_thresholds.values());
        if queue.complex_values.values().chain(thresholds).any(is_in) {
            users.push(format!("queue \"{}\"", queue.name));
        }
    }
    let scheduler = &config.scheduler;
    let is_settled = scheduler.settle_times().any(|(used, _)| is_meant(used));
    let is_loaded = scheduler.load_formula.attributes().any(|used| is_meant(used.as_str()));
    if is_settled || is_loaded || is_in(&scheduler.job_load_adjustments) {
        users.push("scheduler configuration".to_owned());
    }
    users.extend(quotas::sets_limiting(config, is_meant));
    still(&users, |first| {
        format!("denied: Complex attribute \"{name}\" is still referenced in {first}.")
    })
}

/// # Errors
/// If queues use a calendar.
pub(super) fn to_calendar(config: &Configuration, name: &CalendarName) -> Result<(), Refusals> {
    let uses = config.queues.values().filter(|queue| {
        queue
            .calendar
            .values()
            .any(|used| used.value().is_some_and(|used| used.as_str() == name.as_str()))
    });
    let users: Vec<String> = uses.map(|queue| format!("queue \"{}\"", queue.name)).collect();
    still(&users, |first| {
        format!("denied: Calendar \"{name}\" is still referenced in {first}")
    })
}

/// # Errors
/// If other queues name a queue in their `subordinate_list`.
pub(super) fn to_queue(config: &Configuration, name: &QueueName) -> Result<(), Refusals> {
    let users: Vec<String> = subordinates::above(config, name)
        .into_iter()
        .map(|queue| format!("cluster queue \"{queue}\""))
        .collect();
    still(&users, |first| {
        format!("Cluster queue \"{name}\" is referenced in {first} as a subordinate. Deletion denied")
    })
}

/// # Errors
/// If there are users, all of which the refusal names.
pub(super) fn still(users: &[String], what: impl Fn(&str) -> String) -> Result<(), Refusals> {
    let Some(first) = users.first() else { return Ok(()) };
    let refusal = Diagnostic::new(Code::StillReferenced, what(first));
    Err(vec![if users.len() > 1 {
        refusal.why(format!("it is used by {}", users.join(", ")))
    } else {
        refusal
    }])
}

fn members(config: &Configuration, list: &HostList) -> Refusals {
    let unknown = |member: &HostOrGroup| match member {
        HostOrGroup::Host(_) => None,
        HostOrGroup::Group(group) => unknown_group(config, group),
    };
    list.iter()
        .filter_map(unknown)
        .map(|refusal| refusal.at("hostlist"))
        .collect()
}

fn unknown_group(config: &Configuration, group: &HostGroupName) -> Option<Diagnostic> {
    (!config.host_groups.contains_key(group)).then(|| {
        let what = format!("denied: host group \"{group}\" does not exist");
        Diagnostic::new(Code::UnknownObject, what).fix(format!("add it first: qconf -ahgrp {group}"))
    })
}

/// In the words of 8.1.9.
fn unknown_calendar(config: &Configuration, name: &str) -> Option<Diagnostic> {
    if config.calendars.contains_key(name) {
        return None;
    }
    let what = format!("Calendar \"{name}\" does not exist");
    let refusal = Diagnostic::new(Code::UnknownObject, what).at("calendar");
    Some(match nearest(name, config.calendars.keys().map(CalendarName::as_str)) {
        Some(near) => refusal.fix(format!("did you mean {near}?")),
        None => refusal.fix(format!("add it first: qconf -acal {name}")),
    })
}

fn unknown_pe(config: &Configuration, pe: &PeName) -> Diagnostic {
    let what = format!("Parallel environment \"{pe}\" does not exist");
    let refusal = Diagnostic::new(Code::UnknownObject, what).at("pe_list");
    match nearest(pe.as_str(), config.pes.keys().map(PeName::as_str)) {
        Some(near) => refusal.fix(format!("did you mean {near}?")),
        None => refusal.fix(format!("add it first: qconf -ap {pe}")),
    }
}

/// How 8.1.9 says that an attribute does not exist: in a queue, in a host, among what a host
/// reports; and where it says nothing.
fn no_attribute(name: &str) -> String {
    format!("Complex attribute \"{name}\" does not exist")
}

fn not_in_complex(name: &str) -> String {
    format!("denied: attribute \"{name}\" is not a complex attribute")
}

fn no_resource(name: &str) -> String {
    format!("unknown resource \"{name}\"")
}

fn not_in_formula(name: &str) -> String {
    format!("\"load_formula\" references not existing complex attribute \"{name}\"")
}

fn denied(name: &str) -> String {
    format!("denied: unknown attribute \"{name}\"")
}

fn unknown(complex: &Complex, name: &str, place: &str, said: fn(&str) -> String) -> Option<Diagnostic> {
    complex.lookup(name).is_none().then(|| {
        let refusal = Diagnostic::new(Code::UnknownResource, said(name)).at(place);
        match nearest(name, complex.iter().map(|attribute| attribute.name.as_str())) {
            Some(near) => refusal.fix(format!("did you mean {near}?")),
            None => refusal.fix("qconf -sc lists the attributes, qconf -mc adds one"),
        }
    })
}

/// The assignments whose attribute does not exist, as `said` says, or of whose value `bad` says
/// what is wrong.
fn values_or(
    complex: &Complex,
    list: &Assignments,
    place: &str,
    said: fn(&str) -> String,
    bad: fn(&Complex, &Attribute, &str) -> Option<Diagnostic>,
) -> Refusals {
    let check = |(name, value): &(proto::id::AttributeName, String)| match complex.lookup(name.as_str()) {
        None => unknown(complex, name.as_str(), place, said),
        Some(attribute) => bad(complex, attribute, value).map(|refusal| refusal.at(place)),
    };
    list.iter().filter_map(check).collect()
}

/// Ids belong to a machine or to the cluster: two queues of one host would give out the same.
fn bad_queue_capacity(complex: &Complex, attribute: &Attribute, value: &str) -> Option<Diagnostic> {
    if attribute.r#type != Type::RsMap {
        return bad_value(complex, attribute, value);
    }
    let what = format!(
        "denied: attribute \"{}\" is a resource map, which a queue cannot have",
        attribute.name
    );
    Some(Diagnostic::new(Code::BadValue, what).fix("set it in complex_values of the host (qconf -me) or of global"))
}

pub(super) fn bad_value(_: &Complex, attribute: &Attribute, value: &str) -> Option<Diagnostic> {
    if is_container(attribute) && ContainerRuntime::parse(value).is_none() {
        let runtimes: Vec<&str> = ContainerRuntime::ALL.iter().map(|runtime| runtime.as_str()).collect();
        let what = format!("denied: \"{value}\" is not a container runtime");
        let fix = format!(
            "name the program of the host that runs containers: {}",
            runtimes.join(", ")
        );
        return Some(Diagnostic::new(Code::BadValue, what).fix(fix));
    }
    if !attribute.r#type.is_numeric() {
        return None;
    }
    let name = &attribute.name;
    match Amount::parse(value, attribute.r#type) {
        Ok(amount) if attribute.consumable.is_consumable() && amount < Amount::ZERO => {
            let what = format!("denied: invalid value \"{value}\" of attribute \"{name}\"");
            let why = format!("{name} is a consumable: there cannot be less than nothing of it");
            Some(Diagnostic::new(Code::BadValue, what).why(why))
        }
        Ok(_) => None,
        Err(error) => {
            let refusal = error.diagnostic(name.as_str(), value);
            Some(Diagnostic {
                why: format!("{}: {}", refusal.place, refusal.why),
                ..refusal
            })
        }
    }
}
