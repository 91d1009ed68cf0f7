//! Who asks a question, where the answer depends on it.

use super::Model;
use master_core::core::Site;
use master_core::decide::Caller;
use proto::id::{HostName, UserName};
use proto::job::Owner;

/// The parts of an answer that a user may see.
pub struct Viewer(Sight);

enum Sight {
    Everything,
    /// Only the environments of this user's own jobs.
    Own(Option<UserName>),
}

impl Viewer {
    /// The one who asks on host `from`; the master, if there is no `asker`.
    pub fn new(model: &Model, asker: Option<Owner>, from: HostName) -> Self {
        if model.state.config.settings.qmaster().show_job_environment {
            return Self(Sight::Everything);
        }
        let Some(owner) = asker else {
            return Self(Sight::Own(None));
        };
        let master_host = Some(HostName::new(&model.statics.host));
        let site = Site {
            master_host,
            ..Site::default()
        };
        let caller = Caller::new(&model.state, &site, owner, from);
        let own = || Sight::Own(Some(caller.owner.user.clone()));
        Self(if caller.is_operator() { Sight::Everything } else { own() })
    }

    /// Whether the values of the environment of a job of `owner` are shown.
    pub fn sees_environment_of(&self, owner: &UserName) -> bool {
        match &self.0 {
            Sight::Everything => true,
            Sight::Own(user) => user.as_ref() == Some(owner),
        }
    }
}
