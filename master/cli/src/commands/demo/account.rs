//! The ordinary account that the tour's jobs run as when root starts it.

use crate::daemons;
use crate::fail::Fail;
use nix::unistd::User;
use proto::diagnostic::{Code, Diagnostic};
use std::ffi::OsString;
use std::io;
use std::process::Command;
use std::time::Duration;

/// Accounts of tours begin so; the process id of the tour follows, so that two at once have one
/// each.
const PREFIX: &str = "gw-demo-";

/// How long another command may keep the files of accounts locked.
const PATIENCE: Duration = Duration::from_secs(20);

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
        let name = format!("{PREFIX}{}", std::process::id());
        // One that is there already is of a tour that was killed and whose process id has come
        // round.
        if lookup(&name).is_none() {
            manage(Command::new("useradd").args(["--create-home", "--shell", "/bin/sh", &name]))
                .map_err(|error| refused(&error.to_string()))?;
        }
        lookup(&name)
            .map(|user| Self::from(user, true))
            .ok_or_else(|| refused("useradd made it and the name service does not know it"))
    }

    fn from(user: User, made: bool) -> Self {
        let home = user.dir.display().to_string();
        Self {
            name: user.name,
            uid: user.uid.as_raw(),
            gid: user.gid.as_raw(),
            home,
            made,
        }
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        if self.made {
            // Nothing is left to do about an account that cannot be removed.
            let _ = manage(Command::new("userdel").args(["--remove", &self.name]));
        }
    }
}

fn lookup(name: &str) -> Option<User> {
    User::from_name(name).ok().flatten()
}

/// An account is not made or removed.
#[derive(Debug, thiserror::Error)]
enum AccountError {
    #[error("{}: {error}", program.display())]
    NotRun { program: OsString, error: io::Error },
    /// The command refuses, with these words.
    #[error("{0}")]
    Refused(String),
}

impl AccountError {
    /// Whether the next attempt may succeed.
    fn is_passing(&self) -> bool {
        match self {
            AccountError::NotRun { .. } => false,
            AccountError::Refused(words) => words.contains("lock") || words.contains("currently used"),
        }
    }
}

/// Runs a command that changes accounts, again while another one has them locked or a process of
/// the account still ends.
fn manage(command: &mut Command) -> Result<(), AccountError> {
    let mut outcome = Ok(());
    daemons::wait_for(PATIENCE, || {
        outcome = once(command);
        !outcome.as_ref().is_err_and(AccountError::is_passing)
    });
    outcome
}

fn once(command: &mut Command) -> Result<(), AccountError> {
    let done = command.output().map_err(|error| AccountError::NotRun {
        program: command.get_program().to_owned(),
        error,
    })?;
    if done.status.success() {
        Ok(())
    } else {
        let words = String::from_utf8_lossy(&done.stderr).trim().to_owned();
        Err(AccountError::Refused(words))
    }
}

fn refused(why: &str) -> Fail {
    let refusal = Diagnostic::new(Code::SystemRefused, "error: no ordinary account for the demo's jobs");
    refusal.why(why).fix("run the demo as an ordinary user").into()
}
