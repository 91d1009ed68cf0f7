//! References to access lists, projects and checkpointing environments: what is named exists, and
//! what is named stays, in the words of 8.1.9; and who is put into an access list and taken out of
//! it.

use super::change::Refusals;
use super::draft::Draft;
use super::references::still;
use super::sharetree;
use crate::config::Configuration;
use proto::diagnostic::{Code, Diagnostic};
use proto::host::ExecHost;
use proto::object::suggest::nearest;
use proto::object::value::NameList;
use proto::object::{Fields, Object, ObjectKind};
use proto::pe::ParallelEnvironment;
use proto::project::{Project, User};
use proto::queue::{ClusterQueue, Setting};
use proto::userset::{DEFAULT_DEPARTMENT, UserSet, check_entry};

/// Lists that an object names and that do not exist.
fn unknown_lists(config: &Configuration, key: &str, lists: &[String]) -> Refusals {
    let missing = lists.iter().filter(|list| !config.user_sets.contains_key(*list));
    missing
        .map(|list| {
            absent(
                format!("Userset \"{list}\" does not exist"),
                key,
                list,
                config.user_sets.keys(),
            )
        })
        .collect()
}

fn absent<'a>(what: String, key: &str, name: &str, known: impl Iterator<Item = &'a String>) -> Diagnostic {
    let refusal = Diagnostic::new(Code::UnknownObject, what).at(key);
    match nearest(name, known.map(String::as_str)) {
        Some(near) => refusal.fix(format!("did you mean {near}?")),
        None => refusal.fix("add it first"),
    }
}

/// Projects that an object names and that do not exist; `what` says it of one.
fn unknown_projects(config: &Configuration, key: &str, names: &[String], what: impl Fn(&str) -> String) -> Refusals {
    let missing = names.iter().filter(|name| !config.projects.contains_key(*name));
    missing
        .map(|name| absent(what(name), key, name, config.projects.keys()))
        .collect()
}

fn of_setting(setting: &Setting<NameList<String>>, check: impl Fn(&[String]) -> Refusals) -> Refusals {
    setting.values().flat_map(|list| check(list)).collect()
}

/// Access lists, projects and checkpointing environments that a queue names and that do not exist.
pub(super) fn of_queue(config: &Configuration, queue: &ClusterQueue) -> Refusals {
    let mut refusals = of_setting(&queue.user_lists, |lists| unknown_lists(config, "user_lists", lists));
    refusals.extend(of_setting(&queue.xuser_lists, |lists| {
        unknown_lists(config, "xuser_lists", lists)
    }));
    let said = |name: &str| format!("Project \"{name}\" does not exist");
    refusals.extend(of_setting(&queue.projects, |names| {
        unknown_projects(config, "projects", names, said)
    }));
    refusals.extend(of_setting(&queue.xprojects, |names| {
        unknown_projects(config, "xprojects", names, said)
    }));
    refusals.extend(of_setting(&queue.ckpt_list, |names| {
        let missing = names.iter().filter(|name| !config.checkpoints.contains_key(*name));
        let refuse = |name: &String| {
            absent(
                format!("Ckpt \"{name}\" does not exist"),
                "ckpt_list",
                name,
                config.checkpoints.keys(),
            )
        };
        missing.map(refuse).collect()
    }));
    refusals
}

/// The same of a host.
pub(super) fn of_host(config: &Configuration, host: &ExecHost) -> Refusals {
    let said = |key: &'static str| {
        let host = &host.name;
        move |name: &str| {
            format!("denied: project \"{name}\" referenced in {key} of exechost \"{host}\" does not exist")
        }
    };
    let mut refusals = unknown_lists(config, "user_lists", &host.user_lists);
    refusals.extend(unknown_lists(config, "xuser_lists", &host.xuser_lists));
    refusals.extend(unknown_projects(config, "projects", &host.projects, said("projects")));
    refusals.extend(unknown_projects(
        config,
        "xprojects",
        &host.xprojects,
        said("xprojects"),
    ));
    refusals
}

/// The same of a parallel environment.
pub(super) fn of_pe(config: &Configuration, pe: &ParallelEnvironment) -> Refusals {
    let mut refusals = unknown_lists(config, "user_lists", &pe.user_lists);
    refusals.extend(unknown_lists(config, "xuser_lists", &pe.xuser_lists));
    refusals
}

/// The names that an entry of a cluster configuration lists.
fn listed(fields: &Fields, key: &str) -> NameList<String> {
    fields.value(key).and_then(|text| text.parse().ok()).unwrap_or_default()
}

/// The same of the cluster configuration, global or of a host.
pub(super) fn of_conf(config: &Configuration, name: &str, conf: &Fields) -> Refusals {
    let mut refusals = Refusals::new();
    for key in ["user_lists", "xuser_lists"] {
        refusals.extend(unknown_lists(config, key, &listed(conf, key)));
    }
    for key in ["projects", "xprojects"] {
        refusals.extend(unknown_projects(config, key, &listed(conf, key), |project| {
            format!("denied: project \"{project}\" referenced in {key} of configuration \"{name}\" does not exist")
        }));
    }
    let key = "auto_user_default_project";
    refusals.extend(unknown_projects(config, key, &listed(conf, key), |project| {
        format!("denied: project \"{project}\" does not exist")
    }));
    refusals
}

/// Settles an access list or department.
pub(super) fn settle_set(_: &mut Draft<'_>, name: &str, fields: &Fields) -> Result<Fields, Refusals> {
    let set = UserSet::read(name, fields)?;
    if set.name == DEFAULT_DEPARTMENT && !set.entries.is_empty() {
        return Err(vec![default_department()]);
    }
    Ok(set.write())
}

fn default_department() -> Diagnostic {
    let what = format!("all users are assigned to the \"{DEFAULT_DEPARTMENT}\" automatically");
    Diagnostic::new(Code::BadValue, what).fix("add them to a department of its own")
}

/// Settles a project.
pub(super) fn settle_project(draft: &mut Draft<'_>, name: &str, fields: &Fields) -> Result<Fields, Refusals> {
    let project = Project::read(name, fields)?;
    let mut refusals = unknown_lists(&draft.config, "acl", &project.acl);
    refusals.extend(unknown_lists(&draft.config, "xacl", &project.xacl));
    let name = &project.name;
    refusals.extend(
        project
            .acl
            .iter()
            .find(|list| project.xacl.contains(*list))
            .map(|list| {
                let what = format!("denied: multiple occurrences of userset \"{list}\" in project \"{name}\"");
                Diagnostic::new(Code::BadValue, what)
                    .at("xacl")
                    .fix("name it in acl or in xacl")
            }),
    );
    if name == "default" {
        let what = "denied: not allowed add a project with name \"default\"";
        let why = "the word stands for all others in a share tree";
        refusals.push(
            Diagnostic::new(Code::BadValue, what)
                .at("name")
                .why(why)
                .fix("choose another name"),
        );
    }
    if refusals.is_empty() {
        Ok(project.write())
    } else {
        Err(refusals)
    }
}

/// Settles a user.
pub(super) fn settle_user(draft: &mut Draft<'_>, name: &str, fields: &Fields) -> Result<Fields, Refusals> {
    let user = User::read(name, fields)?;
    let project: Vec<String> = user
        .default_project
        .value()
        .map(|project| project.as_str().to_owned())
        .into_iter()
        .collect();
    let said = |name: &str| format!("denied: project \"{name}\" does not exist");
    let refusals = unknown_projects(&draft.config, "default_project", &project, said);
    if refusals.is_empty() {
        Ok(user.write())
    } else {
        Err(refusals)
    }
}

/// Where a name stands in lists of queues, hosts, parallel environments, configurations and
/// projects: `user list of queue "a.q"`.
///
/// `lists` are pairs of an attribute and what messages call it.
fn places(config: &Configuration, lists: &[(&str, &str)], name: &str) -> Vec<String> {
    let mut places = Vec::new();
    let mut look = |said: &str, has: bool, kind: &str, object: &dyn std::fmt::Display| {
        if has {
            places.push(format!("{said} of {kind} \"{object}\""));
        }
    };
    let is_in = |fields: &Fields, key: &str| listed(fields, key).iter().any(|listed| listed == name);
    for (key, said) in lists {
        for project in config.projects.values() {
            let key = if *key == "user_lists" { "acl" } else { "xacl" };
            look(
                said,
                !said.contains("projects") && is_in(&project.write(), key),
                "project",
                &project.name,
            );
        }
        for queue in config.queues.values() {
            let has =
                list_of(queue, key).is_some_and(|list| list.values().any(|list| list.iter().any(|one| one == name)));
            look(said, has, "queue", &queue.name);
        }
        for host in config.exec_hosts.values() {
            look(said, is_in(&host.to_fields(), key), "exechost", &host.name);
        }
        for pe in config.pes.values() {
            look(said, is_in(&pe.to_fields(), key), "parallel environment", &pe.name);
        }
        for conf in std::iter::once(&config.cluster).chain(config.host_confs.values()) {
            look(said, is_in(&conf.to_fields(), key), "configuration", conf.host());
        }
    }
    places
}

fn list_of<'a>(queue: &'a ClusterQueue, key: &str) -> Option<&'a Setting<NameList<String>>> {
    match key {
        "user_lists" => Some(&queue.user_lists),
        "xuser_lists" => Some(&queue.xuser_lists),
        "projects" => Some(&queue.projects),
        "xprojects" => Some(&queue.xprojects),
        _ => None,
    }
}

/// # Errors
/// If anything names an access list.
pub(super) fn to_set(config: &Configuration, name: &str) -> Result<(), Refusals> {
    let users = places(
        config,
        &[("user_lists", "user list"), ("xuser_lists", "xuser list")],
        name,
    );
    still(&users, |first| {
        format!("denied: userset \"{name}\" is still referenced in {first}")
    })
}

/// # Errors
/// If anything but jobs names a project.
pub(super) fn to_project(config: &Configuration, name: &str) -> Result<(), Refusals> {
    let is_default =
        |user: &&std::sync::Arc<User>| user.default_project.value().is_some_and(|own| own.as_str() == name);
    let users: Vec<String> = config
        .users
        .values()
        .filter(is_default)
        .map(|user| format!("user \"{}\"", user.name))
        .collect();
    still(&users, |first| {
        format!("project \"{name}\" is still referenced by {first}")
    })?;
    let mut users = places(config, &[("projects", "projects"), ("xprojects", "xprojects")], name);
    let key = "auto_user_default_project";
    if config.cluster.value(key) == Some(name) {
        users.push(format!("{key} of configuration \"global\""));
    }
    still(&users, |first| {
        format!("denied: project \"{name}\" is still referenced in {first}")
    })?;
    match &config.share_tree {
        Some(tree) if tree.has_project(name) => Err(vec![sharetree::is_named(ObjectKind::Project, name)]),
        Some(_) | None => Ok(()),
    }
}

/// # Errors
/// If the share tree names a user.
pub(super) fn to_user(config: &Configuration, name: &str) -> Result<(), Refusals> {
    match &config.share_tree {
        Some(tree) if tree.has_user(name) => Err(vec![sharetree::is_named(ObjectKind::User, name)]),
        Some(_) | None => Ok(()),
    }
}

/// # Errors
/// If a queue lists a checkpointing environment.
pub(super) fn to_checkpoint(config: &Configuration, name: &str) -> Result<(), Refusals> {
    let lists = |queue: &&std::sync::Arc<ClusterQueue>| {
        queue
            .ckpt_list
            .values()
            .any(|list| list.iter().any(|listed| listed == name))
    };
    let users: Vec<String> = config
        .queues
        .values()
        .filter(lists)
        .map(|queue| format!("queue \"{}\"", queue.name))
        .collect();
    still(&users, |first| {
        format!("denied: Ckpt \"{name}\" is still referenced in {first}.")
    })
}

/// `-au`: puts a user or group into an access list, which comes into being if it is not there.
///
/// # Errors
/// If the entry is there already, or the names cannot be.
pub(super) fn enlist(draft: &mut Draft<'_>, list: &str, entry: &str) -> Result<(), Refusals> {
    proto::object::value::check_name(list).map_err(|bad| vec![bad.refusal("name", list)])?;
    check_entry(entry).map_err(|bad| vec![bad.refusal("entries", entry)])?;
    if list == DEFAULT_DEPARTMENT {
        return Err(vec![default_department()]);
    }
    let mut set = match draft.config.user_sets.get(list) {
        Some(set) => UserSet::clone(set),
        None => UserSet::template(list),
    };
    if set.entries.iter().any(|known| known == entry) {
        let what = format!("\"{entry}\" is already in access list \"{list}\"");
        return Err(vec![
            Diagnostic::new(Code::AlreadyExists, what).fix(format!("qconf -su {list} shows it")),
        ]);
    }
    set.entries.0.push(entry.to_owned());
    draft.store(ObjectKind::UserSet, list, Some(set.write()));
    draft.say(format!("added \"{entry}\" to access list \"{list}\""));
    Ok(())
}

/// `-du`: takes a user or group out of an access list.
///
/// # Errors
/// If the list or the entry is not there.
pub(super) fn strike(draft: &mut Draft<'_>, list: &str, entry: &str) -> Result<(), Refusals> {
    let Some(known) = draft.config.user_sets.get(list) else {
        let what = format!("access list \"{list}\" doesn't exist");
        return Err(vec![
            Diagnostic::new(Code::UnknownObject, what).fix("qconf -sul lists what there is"),
        ]);
    };
    let mut set = UserSet::clone(known);
    set.entries.0.retain(|known| known != entry);
    if set.entries.len() == known.entries.len() {
        let what = format!("user \"{entry}\" is not in access list \"{list}\"");
        return Err(vec![
            Diagnostic::new(Code::UnknownObject, what).fix(format!("qconf -su {list} shows who is")),
        ]);
    }
    draft.store(ObjectKind::UserSet, list, Some(set.write()));
    draft.say(format!("deleted user \"{entry}\" from access list \"{list}\""));
    Ok(())
}

/// The words of a refusal to change what is no access list in this way.
pub(super) fn no_members(kind: ObjectKind) -> Diagnostic {
    let what = format!("denied: a {kind} has no members");
    Diagnostic::new(Code::BadSyntax, what).fix("qconf -au and -du change access lists")
}
