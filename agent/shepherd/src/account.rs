//! Who a task runs as, by this host's name service.
//!
//! Called only in forked children: a directory that does not answer holds up one task, whose
//! shepherd has a deadline.

use nix::errno::Errno;
use nix::unistd::{Gid, Group, Uid, User, getgrouplist};
use proto::launch::{Account, FailedCodes, Failure};
use std::ffi::CString;

/// A user as this host knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The login name.
    pub name: String,
    /// The uid.
    pub uid: u32,
    /// The primary group of the task.
    pub gid: u32,
    /// All groups of the user on this host, the primary one included.
    pub groups: Vec<Gid>,
    /// The home directory.
    pub home: String,
    /// The login shell.
    pub shell: String,
}

/// The login shell of an account; `/bin/sh` where the name service names none (passwd(5)).
pub fn shell_of(identity: &Identity) -> &str {
    match identity.shell.as_str() {
        "" => "/bin/sh",
        shell => shell,
    }
}

/// Checks that name, uid and group of a task's account agree on this host, and takes the group: the
/// host's own rules were asked about that one and no other.
///
/// # Errors
/// A [`Failure`] that is the user's, or the host's directory's, with both numbers.
pub fn of_task(mut identity: Identity, account: &Account) -> Result<Identity, Failure> {
    if identity.uid != account.uid {
        return Err(no_user(format!(
            "user {:?} has uid {} on this host but uid {} where the job was submitted: the hosts must agree",
            account.user, identity.uid, account.uid
        )));
    }
    if !identity.groups.contains(&Gid::from_raw(account.gid)) {
        let known: Vec<String> = identity.groups.iter().map(ToString::to_string).collect();
        return Err(no_user(format!(
            "user {:?} had group {} where the job was submitted but has only {} on this host: the hosts must agree",
            account.user,
            account.gid,
            known.join(", ")
        )));
    }
    identity.gid = account.gid;
    Ok(identity)
}

/// Looks up a user by name, or by number if no such name exists (users that only a host's own file
/// knows).
///
/// # Errors
/// A [`Failure`] if the user is unknown or the name service fails.
pub fn by_name(name: &str) -> Result<Identity, Failure> {
    let user = User::from_name(name)
        .or_else(|errno| if is_unknown(errno) { Ok(None) } else { Err(errno) })
        .map_err(|errno| Failure::of_host(format!("user {name:?}: the name service failed: {errno}"), errno as i32))?
        .ok_or_else(|| no_user(format!("user {name:?} is unknown on this host")))?;
    let gid = user.gid.as_raw();
    Ok(Identity {
        name: name.to_owned(),
        uid: user.uid.as_raw(),
        gid,
        groups: groups_of(name, user.gid),
        home: user.dir.to_string_lossy().into_owned(),
        shell: user.shell.to_string_lossy().into_owned(),
    })
}

/// The numbers by which getpwnam(3) says no more than that it knows no such name. Any other is a
/// name service that does not work.
fn is_unknown(errno: Errno) -> bool {
    matches!(errno, Errno::ENOENT | Errno::ESRCH | Errno::EBADF | Errno::EPERM)
}

/// The account this process runs as, where everything runs as one user.
///
/// # Errors
/// A [`Failure`] if the task is another user's.
pub fn own(account: &Account) -> Result<Identity, Failure> {
    let uid = Uid::effective().as_raw();
    if account.uid != uid {
        return Err(no_user(format!(
            "this cluster runs as uid {uid} alone and cannot start a task of user {:?} (uid {})",
            account.user, account.uid
        )));
    }
    let user = User::from_uid(Uid::effective()).ok().flatten();
    let home = user.as_ref().map(|user| user.dir.to_string_lossy().into_owned());
    Ok(Identity {
        name: account.user.clone(),
        uid,
        gid: Gid::effective().as_raw(),
        groups: Vec::new(),
        home: home
            .or_else(|| std::env::var("HOME").ok())
            .unwrap_or_else(|| "/".into()),
        shell: user.map_or_else(|| "/bin/sh".into(), |user| user.shell.to_string_lossy().into_owned()),
    })
}

/// A user known by number alone, such as a sensor's on a host without such an account.
pub fn by_number(uid: u32) -> Identity {
    Identity {
        name: uid.to_string(),
        uid,
        gid: uid,
        groups: Vec::new(),
        home: "/".into(),
        shell: "/bin/sh".into(),
    }
}

/// The home directory of `~name`, `None` if the user is unknown.
pub fn home_of(name: &str) -> Option<String> {
    User::from_name(name)
        .ok()
        .flatten()
        .map(|user| user.dir.to_string_lossy().into_owned())
}

/// The name of a group, if it has one.
pub fn group_name(gid: u32) -> Option<String> {
    Group::from_gid(Gid::from_raw(gid))
        .ok()
        .flatten()
        .map(|group| group.name)
}

fn groups_of(name: &str, gid: Gid) -> Vec<Gid> {
    let listed = CString::new(name).ok().and_then(|name| getgrouplist(&name, gid).ok());
    listed.unwrap_or_else(|| vec![gid])
}

fn no_user(text: String) -> Failure {
    Failure {
        failed: FailedCodes::NO_USER,
        text,
        errno: 0,
        path: String::new(),
    }
}
