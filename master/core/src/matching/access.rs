//! Who may use an object: access lists and projects (SEMANTICS section 3, CATALOGUE ACL).
//!
//! Access lists are no objects of a cell yet, and a configuration that names one is refused. So a list that is named
//! admits nobody and excludes nobody.

use super::Cluster;
use super::demand::Demand;
use crate::ledger::Level;
use crate::sched::reason::What;
use proto::id::HostName;
use proto::object::value::NameList;
use proto::pe::ParallelEnvironment;

impl Cluster<'_> {
    /// Why the owner or the project of a job may not use an object, if so.
    pub fn denied(&self, level: &Level, demand: &Demand) -> Option<What> {
        let (users, projects, excluded) = match level {
            Level::Global => return self.denied(&Level::Host(HostName::global()), demand),
            Level::Host(host) => {
                let host = self.config.exec_hosts.get(host)?;
                (&host.user_lists, &host.projects, &host.xprojects)
            }
            Level::Instance(instance) => {
                let settings = self.settings(instance)?;
                (&settings.user_lists, &settings.projects, &settings.xprojects)
            }
        };
        if !users.is_empty() {
            return Some(What::NoAccess);
        }
        is_excluded(demand.project.as_ref(), projects, excluded).then_some(What::NoProject)
    }
}

/// Whether the owner of a job may use a parallel environment.
pub fn may_use_pe(pe: &ParallelEnvironment) -> bool {
    pe.user_lists.is_empty()
}

fn is_excluded(project: Option<&String>, admitted: &NameList<String>, excluded: &NameList<String>) -> bool {
    match project {
        None => !admitted.is_empty(),
        Some(project) => excluded.contains(project) || (!admitted.is_empty() && !admitted.contains(project)),
    }
}
