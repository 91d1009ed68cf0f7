//! Who may use an object: access lists and projects.
//!
//! A [`Demand`] says which access lists in use contain the owner of a job; here sets of names are
//! compared. A list that excludes wins. An empty list that admits admits everybody. Where projects
//! are admitted, a job without a project is not.

use super::demand::Demand;
use super::{Cluster, LevelView};
use crate::ledger::{Level, LevelRef};
use crate::reason::Obstacle;
use proto::object::value::NameList;
use proto::pe::ParallelEnvironment;
use std::collections::BTreeSet;

/// The lists that guard an object.
struct Guard<'a> {
    users: &'a NameList<String>,
    xusers: &'a NameList<String>,
    projects: &'a NameList<String>,
    xprojects: &'a NameList<String>,
}

impl Cluster<'_> {
    /// Why the owner or the project of a job may not use an object, if so. Objects above it are not
    /// judged.
    pub fn denied(&self, view: &LevelView<'_, '_>, demand: &Demand) -> Option<Obstacle> {
        let (guard, level) = (guard(view)?, view.level);
        if !admits(guard.users, guard.xusers, &demand.lists) {
            return Some(Obstacle::NoAccess {
                whole_queue: self.is_same_everywhere(level),
            });
        }
        let project = demand.project.as_ref();
        let excluded = project.is_some_and(|project| guard.xprojects.contains(project));
        let missing = || match project {
            None => !guard.projects.is_empty(),
            Some(project) => !guard.projects.is_empty() && !guard.projects.contains(project),
        };
        (excluded || missing()).then(|| Obstacle::NoProject {
            project: project.cloned(),
            excluded,
            whole_queue: self.is_same_everywhere(level),
        })
    }

    /// Whether an object lets everybody in.
    pub fn is_open_to_all(&self, view: &LevelView<'_, '_>) -> bool {
        guard(view).is_none_or(
            |Guard {
                 users,
                 xusers,
                 projects,
                 xprojects,
             }| { users.is_empty() && xusers.is_empty() && projects.is_empty() && xprojects.is_empty() },
        )
    }

    /// Whether the guards of a queue instance are those of its whole cluster queue.
    fn is_same_everywhere(&self, level: LevelRef<'_>) -> bool {
        let LevelRef::Instance(instance) = level else {
            return false;
        };
        self.config.queues.get(&instance.queue).is_some_and(|queue| {
            [&queue.user_lists, &queue.xuser_lists, &queue.projects, &queue.xprojects]
                .iter()
                .all(|list| list.overrides.is_empty())
        })
    }

    /// Whether one of these users may use an object and all above it (`-U`): by name, because the
    /// groups of other users are not known.
    pub fn admits_users(&self, level: &Level, users: &[String]) -> bool {
        let views = self.above(level);
        let admits_user = |user: &String| {
            let lists = self.config.access.lists_of_user(user);
            views
                .iter()
                .filter_map(guard)
                .all(|guard| admits(guard.users, guard.xusers, &lists))
        };
        users.iter().any(admits_user)
    }
}

/// The access lists that keep somebody out of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Barrier {
    /// The object admits the members of these lists alone.
    Admits(Vec<String>),
    /// The object excludes the members of this list.
    Excludes(String),
}

impl Cluster<'_> {
    /// Which access lists keep the owner of a job out of an object, if lists do. Objects above it
    /// do not count.
    pub fn barrier(&self, level: &Level, demand: &Demand) -> Option<Barrier> {
        let view = *self.above(level).first()?;
        let guard = guard(&view)?;
        barrier(guard.users, guard.xusers, &demand.lists)
    }
}

/// Which access lists keep the owner of a job out of a parallel environment, if lists do.
pub fn pe_barrier(pe: &ParallelEnvironment, demand: &Demand) -> Option<Barrier> {
    barrier(&pe.user_lists, &pe.xuser_lists, &demand.lists)
}

fn barrier(admitted: &NameList<String>, excluded: &NameList<String>, lists: &BTreeSet<String>) -> Option<Barrier> {
    if let Some(list) = excluded.iter().find(|list| lists.contains(*list)) {
        return Some(Barrier::Excludes(list.clone()));
    }
    (!admits(admitted, excluded, lists)).then(|| Barrier::Admits(admitted.iter().cloned().collect()))
}

/// What guards a level, if it is there.
fn guard<'a>(view: &LevelView<'a, '_>) -> Option<Guard<'a>> {
    let of_host = view.host.map(|host| Guard {
        users: &host.user_lists,
        xusers: &host.xuser_lists,
        projects: &host.projects,
        xprojects: &host.xprojects,
    });
    of_host.or_else(|| {
        view.settings.map(|settings| Guard {
            users: &settings.user_lists,
            xusers: &settings.xuser_lists,
            projects: &settings.projects,
            xprojects: &settings.xprojects,
        })
    })
}

/// Whether lists admit somebody who is in `lists`.
fn admits(admitted: &NameList<String>, excluded: &NameList<String>, lists: &BTreeSet<String>) -> bool {
    let is_in = |list: &String| lists.contains(list);
    !excluded.iter().any(is_in) && (admitted.is_empty() || admitted.iter().any(is_in))
}

/// Whether the owner of a job may use a parallel environment.
pub fn may_use_pe(pe: &ParallelEnvironment, demand: &Demand) -> bool {
    admits(&pe.user_lists, &pe.xuser_lists, &demand.lists)
}
