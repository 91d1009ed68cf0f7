//! Tells the service manager that the agent is ready (sd_notify(3)).

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Sends `message` to the manager that `NOTIFY_SOCKET` names, if there is one.
pub fn tell_manager(message: &str) {
    let Some(address) = std::env::var_os("NOTIFY_SOCKET") else {
        return;
    };
    if let Err(error) = send(&address, message) {
        tracing::warn!("cannot tell the service manager {message}: {error}");
    }
}

fn send(address: &std::ffi::OsStr, message: &str) -> io::Result<()> {
    let socket = UnixDatagram::unbound()?;
    let address = match address.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(address)?,
    };
    socket.send_to_addr(message.as_bytes(), &address).map(drop)
}
