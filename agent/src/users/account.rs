//! Who is at the other end of a Unix socket: the kernel says the uid, the name service the names.
//! It may hang, so it is asked outside the tasks of the runtime and with a deadline.

use nix::unistd::{Gid, Group, Uid, User, getgrouplist};
use proto::diagnostic::{Code, Diagnostic};
use proto::id::UserName;
use proto::job::Owner;
use std::ffi::CString;
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::time::timeout;

/// How long the name service may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The user of a socket's peer, as the kernel and the name service of this host say.
pub(super) async fn who(stream: &UnixStream) -> Result<Owner, Diagnostic> {
    let system = |error: std::io::Error| {
        Diagnostic::new(Code::SystemRefused, "error: the user of this command is not known").why(error.to_string())
    };
    let peer = stream.peer_cred().map_err(system)?;
    let (uid, gid) = (Uid::from_raw(peer.uid()), Gid::from_raw(peer.gid()));
    let asked = tokio::task::spawn_blocking(move || look_up(uid, gid));
    match timeout(PATIENCE, asked).await {
        Ok(Ok(owner)) => owner,
        Ok(Err(_)) | Err(_) => Err(Diagnostic::new(
            Code::UnknownUser,
            format!("error: the name of uid {uid} is not known"),
        )
        .why(format!(
            "the name service of this host did not answer within {} s",
            PATIENCE.as_secs()
        ))
        .fix(format!("check it with: getent passwd {uid}"))),
    }
}

fn look_up(uid: Uid, gid: Gid) -> Result<Owner, Diagnostic> {
    let unknown = |why: String| {
        Diagnostic::new(Code::UnknownUser, format!("error: uid {uid} has no name on this host"))
            .why(why)
            .fix(format!("check it with: getent passwd {uid}"))
    };
    let user = User::from_uid(uid).map_err(|errno| unknown(errno.to_string()))?;
    let user = user.ok_or_else(|| unknown("the name service does not know it".to_owned()))?;
    let name = CString::new(user.name.as_str()).map_err(|error| unknown(error.to_string()))?;
    let groups = getgrouplist(&name, gid).unwrap_or_default();
    Ok(Owner {
        user: UserName::from(user.name),
        uid: uid.as_raw(),
        gid: gid.as_raw(),
        group: group_name(gid),
        groups: groups
            .into_iter()
            .filter(|group| *group != gid)
            .map(group_name)
            .collect(),
    })
}

/// The name of a group, or its number where it has none.
fn group_name(gid: Gid) -> String {
    Group::from_gid(gid)
        .ok()
        .flatten()
        .map_or_else(|| gid.to_string(), |group| group.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_peer_of_a_socket_is_who_made_it() {
        let (near, _far) = UnixStream::pair().unwrap();
        let owner = who(&near).await.unwrap();
        assert_eq!(owner.uid, nix::unistd::getuid().as_raw());
        assert_eq!(
            owner.user.as_str(),
            User::from_uid(nix::unistd::getuid()).unwrap().unwrap().name
        );
    }

    #[test]
    fn a_uid_without_a_name_is_refused_with_the_uid() {
        let refusal = look_up(Uid::from_raw(3_999_999_999), Gid::from_raw(0)).unwrap_err();
        assert_eq!(refusal.code, Code::UnknownUser);
        assert!(refusal.what.contains("3999999999"), "{refusal}");
    }
}
