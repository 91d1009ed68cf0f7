//! The ordinary account that the tour's jobs run as when root starts it.

use crate::fail::Fail;
use nix::unistd::User;
use proto::diagnostic::{Code, Diagnostic};
use std::process::Command;

/// The account's name.
const NAME: &str = "gridwright-demo";

/// An ordinary account; one that was made for the tour is removed with it.
pub struct Account {
    /// Login name.
    pub name: String,
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
    /// Home directory.
    pub home: String,
    made: bool,
}

impl Account {
    /// The caller's own account, or for root one made for the tour.
    ///
    /// # Errors
    /// If the caller is unknown to the name service, or the account cannot be made.
    pub fn for_jobs() -> Result<Self, Fail> {
        let uid = nix::unistd::getuid();
        if !uid.is_root() {
            let user = User::from_uid(uid)
                .ok()
                .flatten()
                .ok_or_else(|| refused("this user is unknown to the name service"))?;
            return Ok(Self::from(user, false));
        }
        if let Some(user) = lookup() {
            return Ok(Self::from(user, false));
        }
        let made = Command::new("useradd").args(["--create-home", "--shell", "/bin/sh", NAME]).output();
        match made {
            Ok(made) if made.status.success() => {}
            Ok(made) => return Err(refused(String::from_utf8_lossy(&made.stderr).trim())),
            Err(error) => return Err(refused(&format!("useradd: {error}"))),
        }
        lookup()
            .map(|user| Self::from(user, true))
            .ok_or_else(|| refused("useradd made it and the name service does not know it"))
    }

    fn from(user: User, made: bool) -> Self {
        let home = user.dir.display().to_string();
        Self { name: user.name, uid: user.uid.as_raw(), gid: user.gid.as_raw(), home, made }
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        if self.made {
            // Nothing is left to do about an account that cannot be removed.
            let _ = Command::new("userdel").args(["--remove", &self.name]).output();
        }
    }
}

fn lookup() -> Option<User> {
    User::from_name(NAME).ok().flatten()
}

fn refused(why: &str) -> Fail {
    let refusal =
        Diagnostic::new(Code::SystemRefused, format!("error: no ordinary account for the demo's jobs ({NAME})"));
    refusal.why(why).fix("run the demo as an ordinary user").into()
}
