//! Who a caller is and what that allows (ARCHITECTURE.md "Transport and identity").

use crate::effect::MasterHost;
use crate::state::State;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::{HostName, UserName};
use proto::job::{HoldChange, Owner};

/// A user behind a command, with the rights that the user and the host together have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The user.
    pub owner: Owner,
    /// The host that vouches for the user.
    pub host: HostName,
    role: Role,
}

/// What a user may do, from least to most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    User,
    Operator,
    Manager,
}

/// Whether a host vouches for its root, by number or by name.
fn is_root(owner: &Owner) -> bool {
    owner.uid == 0 || owner.user.as_str() == "root"
}

impl Caller {
    /// A user with the rights of its role. A manager is one only on an administrative host, and
    /// root only on the master's own: whoever is root of another host would else be root of the
    /// cell, in the list of managers or not.
    pub fn new(state: &State, site: &MasterHost, owner: Owner, host: HostName) -> Self {
        let config = &state.config;
        let is_elsewhere = site.master_host.as_ref().is_some_and(|master| *master != host);
        let role = if !config.admin_hosts.contains(&host) || (is_root(&owner) && is_elsewhere) {
            Role::User
        } else if owner.uid == 0 || config.managers.contains(&owner.user) {
            Role::Manager
        } else if config.operators.contains(&owner.user) {
            Role::Operator
        } else {
            Role::User
        };
        Self { owner, host, role }
    }

    /// Whether the caller would administer the cell from another host.
    pub fn is_manager_elsewhere(&self, state: &State) -> bool {
        !self.is_manager() && (is_root(&self.owner) || state.config.managers.contains(self.user()))
    }

    /// The login name.
    pub fn user(&self) -> &UserName {
        &self.owner.user
    }

    /// `user@host`, as messages of 8.1.9 name who did something.
    pub fn at_host(&self) -> String {
        format!("{}@{}", self.owner.user, self.host)
    }

    /// Whether the caller administers the cell.
    pub fn is_manager(&self) -> bool {
        self.role >= Role::Manager
    }

    /// Whether the caller may act on everybody's jobs.
    pub fn is_operator(&self) -> bool {
        self.role >= Role::Operator
    }

    /// Whether the caller may act on jobs of this user.
    pub fn may_act_for(&self, owner: &UserName) -> bool {
        self.is_operator() || owner == self.user()
    }

    /// # Errors
    /// Unless the caller is a manager.
    pub fn must_be_manager(&self) -> Result<(), Diagnostic> {
        if self.is_manager() {
            return Ok(());
        }
        let what = format!("denied: \"{}\" must be manager for this operation", self.user());
        Err(Diagnostic::new(Code::NotPermitted, what)
            .fix("ask a manager; managers are believed on administrative hosts only"))
    }

    /// # Errors
    /// Unless the caller is at least an operator.
    pub fn must_be_operator(&self) -> Result<(), Diagnostic> {
        if self.is_operator() {
            return Ok(());
        }
        let what = format!("denied: \"{}\" must be operator for this operation", self.user());
        Err(Diagnostic::new(Code::NotPermitted, what)
            .fix("ask an operator or a manager; they are believed on administrative hosts only"))
    }

    /// # Errors
    /// Unless the host may submit jobs.
    pub fn must_be_on_submit_host(&self, state: &State) -> Result<(), Diagnostic> {
        if state.config.submit_hosts.contains(&self.host) {
            return Ok(());
        }
        let what = format!("denied: host \"{}\" is no submit host", self.host);
        Err(Diagnostic::new(Code::HostNotPermitted, what).fix(format!("a manager adds it: qconf -as {}", self.host)))
    }

    /// # Errors
    /// Unless the host may submit or administer: every command on jobs needs that.
    pub fn must_be_on_known_host(&self, state: &State) -> Result<(), Diagnostic> {
        let config = &state.config;
        if config.submit_hosts.contains(&self.host) || config.admin_hosts.contains(&self.host) {
            return Ok(());
        }
        let what = format!("denied: host \"{}\" is neither submit nor admin host", self.host);
        Err(Diagnostic::new(Code::HostNotPermitted, what).fix(format!("a manager adds it: qconf -as {}", self.host)))
    }

    /// Whether the caller may make a change of holds: the owner's hold, the operator's, the
    /// system's.
    ///
    /// # Errors
    /// With the first hold that needs another role.
    pub fn may_change_holds(&self, change: HoldChange) -> Result<(), Diagnostic> {
        let HoldChange { set, release } = change;
        let denied = |role: &str, hold: &str, setting: bool| {
            let verb = if setting { "set" } else { "remove" };
            let what = format!("denied: \"{}\" must be {role} to {verb} {hold} hold", self.user());
            let fix = match role {
                "manager" => "ask a manager: qconf -sm lists them",
                _ => "ask an operator or a manager: qconf -so and -sm list them",
            };
            Err(Diagnostic::new(Code::HoldNotPermitted, what).fix(fix))
        };
        if (set.system || release.system) && !self.is_manager() {
            return denied("manager", "manager", set.system);
        }
        if (set.operator || release.operator) && !self.is_operator() {
            return denied("operator", "operator", set.operator);
        }
        Ok(())
    }
}
