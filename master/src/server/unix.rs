//! The Unix socket of commands. The kernel says who is at the other end (SO_PEERCRED), the name
//! service what that user is called.

use super::session::{self, Caller};
use super::{Desk, overloaded};
use crate::layout::Layout;
use nix::unistd::{Gid, Group, Uid, User};
use proto::diagnostic::{Code, Diagnostic};
use proto::id::UserName;
use proto::job::Owner;
use proto::wire::frame::Kind;
use quic::{FrameLimits, FrameReceiver, FrameSender, Share, ShareRefusal, Shares};
use std::ffi::CString;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener as StdListener;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{UnixListener, UnixStream};
use tokio::time::timeout;

/// How long the name service may take to say what a user is called.
const LOOKUP_DEADLINE: Duration = Duration::from_secs(10);

/// Listens on `run/master/master.sock`. The caller holds the lock, so that a socket that is there
/// is nobody's.
///
/// # Errors
/// The system's.
pub fn listen(layout: &Layout) -> io::Result<UnixListener> {
    let folder = layout.folder()?;
    folder.remove("master.sock")?;
    let path = folder.short_path("master.sock");
    let listener = StdListener::bind(&path)?;
    // Everybody may ask; what may be changed depends on who asks.
    fs::set_permissions(&path, Permissions::from_mode(0o666))?;
    listener.set_nonblocking(true)?;
    UnixListener::from_std(listener)
}

/// Serves commands until the task is dropped.
pub async fn accept(listener: UnixListener, desk: Arc<Desk>) {
    let shares = Shares::new(desk.config.clients, desk.config.clients_per_user);
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Too many open files, mostly: those who are connected must go first.
                tracing::warn!("cannot accept a command: {error}");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let desk = desk.clone();
        match place(&shares, &stream) {
            Ok(share) => drop(tokio::spawn(async move {
                serve(stream, desk).await;
                drop(share);
            })),
            Err(refusal) => drop(tokio::spawn(refuse(stream, refusal))),
        }
    }
}

/// A place for a client, by the user that the kernel names.
fn place(shares: &Shares, stream: &UnixStream) -> Result<Share, Diagnostic> {
    let uid = stream.peer_cred().map_err(|error| nobody(error.to_string()))?.uid();
    shares.take(uid).map_err(|full| match full {
        ShareRefusal::All { limit } => overloaded(format!("{limit} commands are connected already"), "clients"),
        ShareRefusal::Each { limit } => overloaded(
            format!("{limit} commands of user id {uid} are connected already"),
            "clients_per_user",
        ),
    })
}

fn nobody(why: String) -> Diagnostic {
    Diagnostic::new(Code::SystemRefused, "cannot tell who is asking").why(why)
}

async fn serve(stream: UnixStream, desk: Arc<Desk>) {
    let owner = match peer(&stream).await {
        Ok(owner) => owner,
        Err(refusal) => return refuse(stream, refusal).await,
    };
    let caller = Caller {
        owner,
        host: desk.host.clone(),
        task: None,
    };
    let requests = FrameLimits {
        frame_bytes: desk.config.client_frame_bytes,
        ..FrameLimits::REQUEST
    };
    let (read, write) = stream.into_split();
    session::serve(
        desk,
        caller,
        FrameReceiver::new(read, requests),
        FrameSender::new(write, FrameLimits::REPLY),
    )
    .await;
}

async fn refuse(stream: UnixStream, refusal: Diagnostic) {
    tracing::info!("{refusal}");
    let mut sender = FrameSender::new(stream, FrameLimits::REPLY);
    // Whoever does not read it does not want to know.
    let _ = sender.send(Kind::Refusal, 0, &refusal).await;
}

/// Who is at the other end.
async fn peer(stream: &UnixStream) -> Result<Owner, Diagnostic> {
    let credentials = stream.peer_cred().map_err(|error| nobody(error.to_string()))?;
    let (uid, gid) = (credentials.uid(), credentials.gid());
    // The name service may be a directory far away: it must not stop the threads that serve others.
    let lookup = tokio::task::spawn_blocking(move || owner(uid, gid));
    match timeout(LOOKUP_DEADLINE, lookup).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(error)) => Err(nobody(error.to_string())),
        Err(_) => Err(nobody(format!(
            "the name service does not answer for {} s",
            LOOKUP_DEADLINE.as_secs()
        ))),
    }
}

fn owner(uid: u32, gid: u32) -> Result<Owner, Diagnostic> {
    let unknown = |why: String| {
        Diagnostic::new(Code::UnknownUser, format!("user id {uid} has no name on this host"))
            .why(why)
            .fix("check the name service: getent passwd")
    };
    let user = User::from_uid(Uid::from_raw(uid)).map_err(|errno| unknown(errno.to_string()))?;
    let user = user.ok_or_else(|| unknown(String::new()))?;
    let name_of = |gid: Gid| {
        Group::from_gid(gid)
            .ok()
            .flatten()
            .map_or_else(|| gid.to_string(), |group| group.name)
    };
    let gid = Gid::from_raw(gid);
    let groups = CString::new(user.name.as_str())
        .ok()
        .and_then(|name| nix::unistd::getgrouplist(&name, gid).ok())
        .unwrap_or_default();
    Ok(Owner {
        user: UserName::from(user.name),
        uid,
        gid: gid.as_raw(),
        group: name_of(gid),
        groups: groups.into_iter().filter(|other| *other != gid).map(name_of).collect(),
    })
}
