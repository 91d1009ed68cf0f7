//! Who may submit, to which project, with which deadline; and users that come into being by
//! themselves.

use super::checks::{did_you_mean, rejected};
use crate::config::Configuration;
use crate::decide::Turn;
use crate::event::{Event, StoredObject};
use crate::state::State;
use proto::conf::EnforceUser;
use proto::diagnostic::Diagnostic;
use proto::job::JobSpec;
use proto::object::value::{OptionalValue, Reference};
use proto::object::{Object, ObjectKind};
use proto::project::User;
use proto::time::Wall;
use proto::userset::DEADLINE_USERS;

/// A job that names no project belongs to the default project of its owner.
pub(super) fn assign_project(config: &Configuration, spec: &mut JobSpec) {
    if spec.project.is_none() {
        let user = config.users.get(spec.owner.user.as_str());
        let project = user.and_then(|user| user.default_project.value());
        let automatic = || automatic_project(config).filter(|_| user.is_none());
        spec.project = project.or_else(automatic).map(|project| project.as_str().to_owned());
    }
}

/// The default project of users that come into being by themselves.
fn automatic_project(config: &Configuration) -> Option<&Reference> {
    let settings = &config.settings;
    settings
        .auto_user_default_project
        .value()
        .filter(|_| settings.enforce_user == EnforceUser::Auto)
}

/// Whether the owner of a job may submit at all.
///
/// # Errors
/// In the words of 8.1.9, if not.
pub(super) fn check_user(config: &Configuration, spec: &JobSpec) -> Result<(), Diagnostic> {
    let user = &spec.owner.user;
    let settings = config.settings_of(&spec.submit_host);
    if !config.admits(&spec.owner, &settings.user_lists, &settings.xuser_lists) {
        let what = format!("{user}@{} is not allowed to submit jobs", spec.submit_host);
        return Err(rejected(&what).fix("user_lists and xuser_lists of qconf -sconf name the access lists that decide"));
    }
    if config.settings.enforce_user == EnforceUser::Yes && !config.users.contains_key(user.as_str()) {
        return Err(rejected(&format!("the user \"{user}\" does not exist")).fix("a manager adds it: qconf -auser"));
    }
    Ok(())
}

/// Whether the owner of a job may have its project.
///
/// # Errors
/// In the words of 8.1.9, if not.
pub(in crate::decide) fn check_project(config: &Configuration, spec: &JobSpec) -> Result<(), Diagnostic> {
    let settings = &config.settings;
    let Some(name) = &spec.project else {
        if !settings.projects.is_empty() {
            let what = "no project was supplied and only certain projects are allowed to submit jobs";
            return Err(rejected(what)
                .at("-P")
                .fix(format!("name one of {}", settings.projects)));
        }
        if settings.enforce_project.0 {
            return Err(rejected("no project assigned to job")
                .at("-P")
                .fix("name one: qconf -sprjl lists them"));
        }
        return Ok(());
    };
    let Some(project) = config.projects.get(name) else {
        let what = format!("the requested project \"{name}\" does not exist");
        let names = config.projects.keys().map(|name| name.as_str());
        return Err(rejected(&what)
            .at("-P")
            .fix(did_you_mean(name, names, "qconf -sprjl lists them")));
    };
    if !config.admits(&spec.owner, &project.acl, &project.xacl) {
        let what = format!("no access to project \"{name}\" for user \"{}\"", spec.owner.user);
        return Err(rejected(&what)
            .at("-P")
            .fix(format!("qconf -sprj {name} names the access lists that decide")));
    }
    let is_admitted = settings.projects.is_empty() || settings.projects.contains(name);
    if settings.xprojects.contains(name) || !is_admitted {
        let what = format!("project \"{name}\" is not allowed to submit jobs");
        return Err(rejected(&what)
            .at("-P")
            .fix("projects and xprojects of qconf -sconf decide"));
    }
    Ok(())
}

/// Whether the owner of a job may set a deadline.
///
/// # Errors
/// If the job has one and its owner is not in `deadlineusers`.
pub(in crate::decide) fn check_deadline(config: &Configuration, spec: &JobSpec) -> Result<(), Diagnostic> {
    if spec.deadline.is_none() || config.is_in_list(&spec.owner, DEADLINE_USERS) {
        return Ok(());
    }
    let user = &spec.owner.user;
    let what = format!("the user \"{user}\" is not a deadline initiation user");
    Err(rejected(&what)
        .at("-dl")
        .fix(format!("an operator adds it: qconf -au {user} {DEADLINE_USERS}")))
}

/// That access lists keep the owner of a job from every queue instance, or that there is none, if
/// so (in the words of 8.1.9).
pub(in crate::decide) fn admitted_nowhere(config: &Configuration, spec: &JobSpec) -> Option<String> {
    let guards = |(_, settings): (_, &std::sync::Arc<proto::queue::QueueInstanceSettings>)| {
        (!settings.user_lists.is_empty() || !settings.xuser_lists.is_empty())
            && !config.admits(&spec.owner, &settings.user_lists, &settings.xuser_lists)
    };
    config
        .resolved
        .iter()
        .all(guards)
        .then(|| format!("warning: {}'s job is not allowed to run in any queue", spec.owner.user))
}

/// `enforce_user auto`: the owner of a job that is accepted becomes a user.
pub(super) fn add_user(turn: &mut Turn<'_>, name: &str) {
    let config = &turn.state().config;
    let settings = &config.settings;
    if settings.enforce_user != EnforceUser::Auto || config.users.contains_key(name) {
        return;
    }
    let user = User {
        oticket: settings.auto_user_oticket,
        fshare: settings.auto_user_fshare,
        delete_time: delete_time(turn.now.wall, settings.auto_user_delete_time),
        default_project: OptionalValue(settings.auto_user_default_project.value().cloned()),
        ..User::template(name)
    };
    store(turn, name, Some(&user));
}

/// Deletes the users whose time has come; those with jobs, or in the share tree, stay for another
/// while.
pub(in crate::decide) fn expire_users(turn: &mut Turn<'_>) {
    for name in due(turn.state(), turn.now.wall) {
        let state = turn.state();
        let while_s = state.config.settings.auto_user_delete_time;
        let is_shared = state
            .config
            .share_tree
            .as_ref()
            .is_some_and(|tree| tree.has_user(&name));
        let is_needed = is_shared || state.index.job_count(&name.as_str().into()) > 0;
        let user = state.config.users.get(&name).filter(|_| is_needed);
        let kept = user.map(|user| User {
            delete_time: delete_time(turn.now.wall, while_s),
            ..User::clone(user)
        });
        store(turn, &name, kept.as_ref());
    }
}

/// The users whose time has come.
fn due(state: &State, now: Wall) -> Vec<String> {
    let due = state
        .config
        .expiring
        .iter()
        .take_while(|(at, _)| i64::from(*at) <= now.seconds());
    due.map(|(_, name)| name.clone()).collect()
}

/// So many seconds from now; 0 is never.
fn delete_time(now: Wall, seconds: u32) -> u32 {
    if seconds == 0 {
        0
    } else {
        u32::try_from(now.seconds()).unwrap_or(0).saturating_add(seconds)
    }
}

fn store(turn: &mut Turn<'_>, name: &str, user: Option<&User>) {
    let object = StoredObject {
        kind: ObjectKind::User,
        name: name.to_owned(),
        fields: user.map(Object::write),
    };
    turn.record(Event::ObjectsChanged(vec![object]));
}
