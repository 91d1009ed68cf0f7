//! Who asks a question, where the answer depends on it.

use crate::model::Model;
use master_core::decide::Caller;
use master_core::effect::MasterHost;
use proto::id::{HostName, UserName};
use proto::job::Owner;

/// The parts of an answer that a user may see.
pub struct Viewer(Visibility);

enum Visibility {
    Everything,
    /// Only the environments of this user's own jobs.
    Own(Option<UserName>),
}

impl Viewer {
    /// The one who asks on host `from`; the master, if there is no `asker`.
    pub fn new(model: &Model, asker: Option<Owner>, from: HostName) -> Self {
        if model.state.config.settings.qmaster().show_job_environment {
            return Self(Visibility::Everything);
        }
        let Some(owner) = asker else {
            return Self(Visibility::Own(None));
        };
        let master_host = Some(HostName::new(&model.statics.host));
        let master = MasterHost {
            master_host,
            ..MasterHost::default()
        };
        let caller = Caller::new(&model.state, &master, owner, from);
        let own = || Visibility::Own(Some(caller.owner.user.clone()));
        Self(if caller.is_operator() {
            Visibility::Everything
        } else {
            own()
        })
    }

    /// Whether the values of the environment of a job of `owner` are shown.
    pub fn sees_environment_of(&self, owner: &UserName) -> bool {
        match &self.0 {
            Visibility::Everything => true,
            Visibility::Own(user) => user.as_ref() == Some(owner),
        }
    }
}
