//! Sending a message with descriptors on a Unix stream socket (unix(7), SCM_RIGHTS), and sealed
//! memory files.

use crate::messages::Attachment;
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
use std::fs::File;
use std::io::{self, IoSlice, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use tokio::io::Interest;
use tokio::net::UnixStream;

/// Returns the descriptors that go along with a message.
///
/// # Errors
/// No descriptor or no memory is left for a script.
pub(super) fn descriptors(attached: Attachment) -> io::Result<Vec<OwnedFd>> {
    Ok(match attached {
        Attachment::Nothing => Vec::new(),
        Attachment::Script(content) => vec![sealed(&content)?],
        Attachment::Streams(streams) => streams.into(),
        Attachment::Session(streams, script) => Vec::from(streams).into_iter().chain([sealed(&script)?]).collect(),
    })
}

/// Sends a whole message; the descriptors ride with its first byte.
pub(super) async fn send_message(stream: &UnixStream, bytes: &[u8], descriptors: &[OwnedFd]) -> io::Result<()> {
    let raw: Vec<RawFd> = descriptors.iter().map(AsRawFd::as_raw_fd).collect();
    let mut sent = 0;
    while sent < bytes.len() {
        let rights = if sent == 0 { raw.as_slice() } else { &[] };
        let send = || send_part(stream.as_raw_fd(), &bytes[sent..], rights);
        sent += stream.async_io(Interest::WRITABLE, send).await?;
    }
    Ok(())
}

fn send_part(socket: RawFd, bytes: &[u8], rights: &[RawFd]) -> io::Result<usize> {
    let rights = [ControlMessage::ScmRights(rights)];
    let control: &[ControlMessage<'_>] = if matches!(&rights[0], ControlMessage::ScmRights([])) {
        &[]
    } else {
        &rights
    };
    let flags = MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT;
    Ok(sendmsg::<()>(socket, &[IoSlice::new(bytes)], control, flags, None)?)
}

/// A memory file that nobody can change any more: the launcher runs what the agent checked.
fn sealed(content: &[u8]) -> io::Result<OwnedFd> {
    let mut file = File::from(memfd_create(
        "script",
        MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING,
    )?);
    file.write_all(content)?;
    let seals = SealFlag::F_SEAL_WRITE | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_SEAL;
    fcntl(&file, FcntlArg::F_ADD_SEALS(seals))?;
    Ok(file.into())
}
