//! One change of one object.

use super::draft::{Draft, first_task_in};
use super::supported::Origin;
use super::{access, complex, kinds, members, sharetree, strict, supported, words};
use crate::state::job::Job;
use proto::diagnostic::{Code, Diagnostic};
use proto::hostgroup::HostOrGroup;
use proto::id::{HostName, QueueInstanceName};
use proto::object::edit::{self, Operation};
use proto::object::{Fields, Form, ObjectKind};
use proto::wire::client::{AttributeEdit, ObjectAction, ObjectChange};

/// Everything that is wrong with a change.
pub(super) type Refusals = Vec<Diagnostic>;

/// Makes a change on a draft.
pub(super) fn change(draft: &mut Draft<'_>, change: &ObjectChange) -> Result<(), Refusals> {
    let ObjectChange { kind, name, action } = change;
    match kind.form() {
        Form::Once if *kind == ObjectKind::ComplexTable => complex::change(draft, name, action),
        Form::Once if *kind == ObjectKind::ShareTree => sharetree::change(draft, action),
        Form::Named | Form::OfHost | Form::Once => change_object(draft, *kind, name, action),
        Form::Bare => change_list(draft, *kind, name, action),
    }
}

fn change_object(draft: &mut Draft<'_>, kind: ObjectKind, name: &str, action: &ObjectAction) -> Result<(), Refusals> {
    match action {
        ObjectAction::Add(fields) => put(draft, kind, name, fields, Purpose::Add),
        ObjectAction::Replace(fields) => put(draft, kind, name, fields, Purpose::Replace),
        ObjectAction::Delete => delete(draft, kind, &canonical(draft, kind, name)),
        ObjectAction::Attribute { edit, attribute, value } => {
            edit_attribute(draft, kind, name, operation(*edit), attribute, value)
        }
        ObjectAction::Purge { attributes } => purge(draft, kind, name, attributes),
        ObjectAction::Clean => clean(draft, kind, name),
        ObjectAction::Enlist { .. } | ObjectAction::Strike { .. } if kind != ObjectKind::UserSet => {
            Err(vec![access::no_members(kind)])
        }
        ObjectAction::Enlist { entry } => access::enlist(draft, name, entry),
        ObjectAction::Strike { entry } => access::strike(draft, name, entry),
    }
}

/// Why a whole object is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Add,
    Replace,
}

fn put(draft: &mut Draft<'_>, kind: ObjectKind, name: &str, fields: &Fields, purpose: Purpose) -> Result<(), Refusals> {
    let name = named(draft, kind, name, fields)?;
    let exists = fields_of(draft, kind, &name).is_some();
    match (purpose, exists) {
        // As in 8.1.9 a configuration of a host is written with either option.
        (Purpose::Replace, false) if kind == ObjectKind::ClusterConf => {}
        (Purpose::Add, true) => return Err(vec![words::exists(kind, &name)]),
        (Purpose::Replace, false) => return Err(vec![words::not_there(kind, &name)]),
        (Purpose::Add, false) | (Purpose::Replace, true) => {}
    }
    if purpose == Purpose::Add && draft.origin == Origin::Hand {
        new_name(kind, &name)?;
    }
    store(draft, kind, &name, fields)?;
    let said = if exists { words::modified } else { words::added };
    draft.say(said(draft.caller, kind, &name));
    Ok(())
}

/// A new object has no name that 8.1.9 keeps for itself, or that commands would take for a pattern;
/// a cell that is taken over may have some.
fn new_name(kind: ObjectKind, name: &str) -> Result<(), Refusals> {
    let keyword = ["ALL", "TEMPLATE"]
        .into_iter()
        .find(|keyword| name.eq_ignore_ascii_case(keyword));
    if let Some(keyword) = keyword.filter(|_| kind.form() == Form::Named) {
        let what = format!("Keyword (\"{keyword}\") not allowed as objectname");
        let why = "the word stands for all objects, or for a new one";
        return Err(vec![
            Diagnostic::new(Code::BadValue, what)
                .why(why)
                .fix("choose another name"),
        ]);
    }
    if name.starts_with('.') {
        let what = "Dot ('.') not allowed as first character of objectname";
        return Err(vec![Diagnostic::new(Code::BadValue, what).fix("choose another name")]);
    }
    let Some(letter) = name.chars().find(|letter| "*?&!".contains(*letter)) else {
        return Ok(());
    };
    let what = format!("denied: the name \"{name}\" of a {kind} contains '{letter}'");
    let refusal = Diagnostic::new(Code::BadValue, what).why("commands take such a name for a pattern");
    Err(vec![refusal.fix("choose a name without * ? & !")])
}

/// The name that an object is stored under; the text of the object names it too, and both must
/// agree.
fn named(draft: &Draft<'_>, kind: ObjectKind, name: &str, fields: &Fields) -> Result<String, Refusals> {
    let inside = kind.name_in(fields).unwrap_or(name);
    let (inside, outside) = (canonical(draft, kind, inside), canonical(draft, kind, name));
    if name.is_empty() || inside == outside {
        return Ok(inside);
    }
    let what = format!("denied: the name of a {kind} cannot be changed from \"{outside}\" to \"{inside}\"");
    Err(vec![
        Diagnostic::new(Code::Immutable, what).fix("add an object of the new name and delete the old one"),
    ])
}

/// A name as objects are found by it.
fn canonical(draft: &Draft<'_>, kind: ObjectKind, name: &str) -> String {
    (kinds::row(kind).canonical)(draft, name)
}

/// An object as the changes so far leave it; none if it does not exist.
fn fields_of(draft: &Draft<'_>, kind: ObjectKind, name: &str) -> Option<Fields> {
    draft.config.object_fields(kind, name)
}

/// Checks an object and sets it in the form in which it prints.
fn store(draft: &mut Draft<'_>, kind: ObjectKind, name: &str, fields: &Fields) -> Result<(), Refusals> {
    let before = fields_of(draft, kind, name);
    let settled = (kinds::row(kind).settle)(draft, name, fields)?;
    strict::check(kind, before.as_ref(), fields)?;
    let fields = settled;
    let warnings = supported::check(kind, before.as_ref(), &fields, draft.origin)?;
    warnings.into_iter().for_each(|warning| draft.warn(warning));
    draft.store(kind, name, Some(fields));
    Ok(())
}

fn delete(draft: &mut Draft<'_>, kind: ObjectKind, name: &str) -> Result<(), Refusals> {
    if kind.form() == Form::Once || name == HostName::global().as_str() {
        let what = if kind == ObjectKind::ClusterConf {
            format!("can't delete configuration \"{name}\" from list")
        } else {
            format!("denied: the {kind} {name} cannot be deleted").replace("  ", " ")
        };
        return Err(vec![Diagnostic::new(Code::Immutable, what).why("every cell has it")]);
    }
    if fields_of(draft, kind, name).is_none() {
        return Err(vec![words::absent(kind, name)]);
    }
    (kinds::row(kind).unused)(&draft.config, name)?;
    in_use(draft, kind, name)?;
    asked_for(draft, kind, name)?;
    draft.store(kind, name, None);
    draft.say(words::removed(draft.caller, kind, name));
    Ok(())
}

/// Queues with jobs and hosts with jobs stay.
fn in_use(draft: &Draft<'_>, kind: ObjectKind, name: &str) -> Result<(), Refusals> {
    let is_meant = |instance: &QueueInstanceName| (kinds::row(kind).has_instance)(name, instance);
    let state = draft.state;
    let used = state.used_instances().into_iter().find(is_meant);
    let Some((instance, key)) = used.and_then(|instance| Some((instance.clone(), first_task_in(state, &instance)?)))
    else {
        return Ok(());
    };
    let task = state
        .placed(key)
        .map(|(job, _, _)| job.task_name(key.task))
        .unwrap_or_default();
    let what = format!("denied: queue \"{instance}\" still contains jobs");
    let refusal = Diagnostic::new(Code::StillReferenced, what).why(format!("{task} runs there"));
    Err(vec![refusal.fix(format!(
        "disable it with qmod -d {instance} and wait, or end the jobs with qdel"
    ))])
}

/// A checkpointing environment of a job stays.
fn asked_for(draft: &Draft<'_>, kind: ObjectKind, name: &str) -> Result<(), Refusals> {
    let asks = |job: &&Job| kind == ObjectKind::Checkpoint && job.spec.checkpoint.as_deref() == Some(name);
    let Some(job) = draft.state.jobs.values().find(asks) else {
        return Ok(());
    };
    let what = format!(
        "denied: Checkpointing object \"{name}\" is still referenced in job {}.",
        job.number
    );
    Err(vec![Diagnostic::new(Code::StillReferenced, what)])
}

fn operation(edit: AttributeEdit) -> Operation {
    match edit {
        AttributeEdit::Add => Operation::Add,
        AttributeEdit::Delete => Operation::Delete,
        AttributeEdit::Modify => Operation::Modify,
        AttributeEdit::Replace => Operation::Replace,
    }
}

/// The object of a name and the part of it that is meant: `queue@host` and `queue@@group` are parts
/// of a queue.
fn part(draft: &Draft<'_>, kind: ObjectKind, name: &str) -> Result<(String, Option<HostOrGroup>), Refusals> {
    match name.split_once('@').filter(|_| kind == ObjectKind::Queue) {
        None => Ok((canonical(draft, kind, name), None)),
        Some((queue, domain)) => match domain.parse() {
            Ok(domain) => Ok((queue.to_owned(), Some(members::called(draft, domain)))),
            Err(bad) => Err(vec![bad.refusal("queue", name)]),
        },
    }
}

fn edit_attribute(
    draft: &mut Draft<'_>,
    kind: ObjectKind,
    name: &str,
    operation: Operation,
    attribute: &str,
    value: &str,
) -> Result<(), Refusals> {
    if kind == ObjectKind::ResourceQuota {
        return edit_quota(draft, name, operation, attribute, value);
    }
    let (name, domain) = part(draft, kind, name)?;
    if let Some(HostOrGroup::Group(group)) = &domain
        && !draft.config.host_groups.contains_key(group)
    {
        let what = format!("Did not modify \"{attribute}\" for host group \"{group}\" which does not exist.");
        return Err(vec![
            Diagnostic::new(Code::UnknownObject, what).fix(format!("add it first: qconf -ahgrp {group}")),
        ]);
    }
    let value = &members::value(draft, attribute, value);
    edit::check_attribute(kind, attribute, value).map_err(|refusal| vec![refusal])?;
    let before = fields_of(draft, kind, &name).ok_or_else(|| vec![words::not_there(kind, &name)])?;
    let edited =
        edit::edit(kind, &before, operation, attribute, value, domain.as_ref()).map_err(|refusal| vec![refusal])?;
    store(draft, kind, &name, &edited.fields)?;
    edited.notes.into_iter().for_each(|note| draft.say(note));
    if edited.is_told {
        draft.say(words::modified(draft.caller, kind, &name));
    }
    Ok(())
}

/// The limits of a set are those of a rule: `set/rule`.
fn edit_quota(
    draft: &mut Draft<'_>,
    name: &str,
    operation: Operation,
    attribute: &str,
    value: &str,
) -> Result<(), Refusals> {
    let kind = ObjectKind::ResourceQuota;
    let (name, rule) = proto::quota::set_and_rule(name);
    let set = draft
        .config
        .quotas
        .get(&name)
        .cloned()
        .ok_or_else(|| vec![words::absent(kind, name.as_str())])?;
    let edited = proto::quota::edit(&set, rule, operation, attribute, value).map_err(|refusal| vec![refusal])?;
    store(draft, kind, name.as_str(), &edited.fields)?;
    edited.notes.into_iter().for_each(|note| draft.say(note));
    draft.say(words::modified(draft.caller, kind, name.as_str()));
    Ok(())
}

fn purge(draft: &mut Draft<'_>, kind: ObjectKind, name: &str, attributes: &[String]) -> Result<(), Refusals> {
    let (name, domain) = part(draft, kind, name)?;
    let Some(domain) = domain else {
        let what = format!("error: Given object_instance \"{name}\" is incomplete");
        return Err(vec![
            Diagnostic::new(Code::BadSyntax, what).fix("name it as queue@host or queue@@group"),
        ]);
    };
    let before = fields_of(draft, kind, &name).ok_or_else(|| {
        let what = format!("error: Cluster queue entry \"{name}\" does not exist");
        vec![Diagnostic {
            what,
            ..words::absent(kind, &name)
        }]
    })?;
    let mut fields = before.clone();
    let mut missing = Vec::new();
    // The name and the host list are the same on all hosts.
    let all = attributes.iter().any(|attribute| attribute == "*");
    let keys: Vec<&str> = if all {
        kind.keys()[2..].to_vec()
    } else {
        attributes.iter().map(String::as_str).collect()
    };
    for key in keys {
        match edit::purge(kind, &fields, key, &domain).map_err(|refusal| vec![refusal])? {
            Some(without) => fields = without,
            None => missing.push(key),
        }
    }
    // An attribute that was not named one by one is missed only if there is none at all.
    let missed = if !all {
        missing
    } else if fields == before {
        vec!["*"]
    } else {
        Vec::new()
    };
    let warn = |key: &str| {
        let fix = format!("qconf -sq {name} shows which values hosts and groups have of their own");
        Diagnostic::new(Code::UnknownObject, edit::not_found(key, &domain)).fix(fix)
    };
    missed.into_iter().map(warn).for_each(|warning| draft.warn(warning));
    if fields == before {
        return Ok(());
    }
    store(draft, kind, &name, &fields)?;
    draft.say(words::modified(draft.caller, kind, &name));
    Ok(())
}

fn clean(draft: &mut Draft<'_>, kind: ObjectKind, name: &str) -> Result<(), Refusals> {
    if kind != ObjectKind::Queue {
        let what = format!("denied: a {kind} cannot be cleaned of jobs");
        return Err(vec![
            Diagnostic::new(Code::BadSyntax, what).fix("name a queue: qconf -cq QUEUE"),
        ]);
    }
    let (queue, domain) = part(draft, kind, name)?;
    let is_meant = |instance: &QueueInstanceName| {
        instance.queue == *queue.as_str()
            && domain
                .as_ref()
                .is_none_or(|domain| draft.state.config.is_in(&instance.host, domain))
    };
    let mut found: Vec<QueueInstanceName> = draft.state.used_instances().into_iter().filter(is_meant).collect();
    let idle = draft
        .state
        .config
        .resolved
        .keys()
        .filter(|instance| is_meant(instance) && !found.contains(instance))
        .cloned();
    let idle: Vec<QueueInstanceName> = idle.collect();
    found.extend(idle);
    if found.is_empty() {
        let what = format!("invalid queue or job \"{name}\"");
        return Err(vec![Diagnostic {
            what,
            ..words::absent(kind, name)
        }]);
    }
    found
        .iter()
        .for_each(|instance| draft.say(format!("{} purged queue \"{instance}\"", draft.caller.at_host())));
    draft.cleaned.extend(found);
    Ok(())
}

/// `-ah -dh -as -ds -am -dm -ao -do`: names in lists.
fn change_list(draft: &mut Draft<'_>, kind: ObjectKind, name: &str, action: &ObjectAction) -> Result<(), Refusals> {
    let name = canonical(draft, kind, name);
    let exists = draft.config.object_fields(kind, &name).is_some();
    match action {
        // Programs add hosts again and again: as in 8.1.9 one that is there is no failure.
        ObjectAction::Add(_) if exists && matches!(kind, ObjectKind::AdminHosts | ObjectKind::SubmitHosts) => {
            draft.warn(words::exists(kind, &name));
            Ok(())
        }
        ObjectAction::Add(_) if exists => Err(vec![words::exists(kind, &name)]),
        ObjectAction::Add(_) => {
            store(draft, kind, &name, &Fields::new())?;
            draft.say(words::added(draft.caller, kind, &name));
            Ok(())
        }
        ObjectAction::Delete if !exists => Err(vec![words::absent(kind, &name)]),
        ObjectAction::Delete => {
            may_leave_list(draft, kind, &name)?;
            draft.store(kind, &name, None);
            draft.say(words::removed(draft.caller, kind, &name));
            Ok(())
        }
        ObjectAction::Replace(_)
        | ObjectAction::Attribute { .. }
        | ObjectAction::Purge { .. }
        | ObjectAction::Enlist { .. }
        | ObjectAction::Strike { .. }
        | ObjectAction::Clean => {
            let what = format!("denied: names are added to the {kind} and deleted from it, nothing else");
            Err(vec![Diagnostic::new(Code::BadSyntax, what)])
        }
    }
}

/// Nobody takes from himself, or from everybody, the right to administer.
fn may_leave_list(draft: &Draft<'_>, kind: ObjectKind, name: &str) -> Result<(), Refusals> {
    let config = &draft.config;
    let master = draft.site.master_host.as_ref().unwrap_or(&draft.caller.host);
    if kind == ObjectKind::AdminHosts && draft.site.master_host.is_some() && master.as_str() == name {
        let what = format!("denied: can't delete master host \"{name}\" from admin host list");
        return Err(vec![
            Diagnostic::new(Code::Immutable, what).why("without it nobody could administer the cell"),
        ]);
    }
    if kind == ObjectKind::AdminHosts && (master.as_str() == name || config.admin_hosts.len() == 1) {
        let what = format!("denied: can't delete host \"{name}\" from admin host list");
        let why = "this command comes from that host, or it is the last one: nobody could add it again";
        return Err(vec![
            Diagnostic::new(Code::Immutable, what)
                .why(why)
                .fix("delete it from another administrative host"),
        ]);
    }
    if kind == ObjectKind::Managers && (name == "root" || config.managers.len() == 1) {
        let what = format!("may not remove user \"{name}\" from manager list");
        return Err(vec![
            Diagnostic::new(Code::Immutable, what).why("the cell always has a manager"),
        ]);
    }
    Ok(())
}
