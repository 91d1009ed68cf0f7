//! Tells whoever started the master that it answers: a file, and a datagram to systemd
//! (sd_notify(3)).

use crate::layout::Layout;
use std::io;
use std::os::unix::net::UnixDatagram;

/// Makes `run/master/ready` and, under systemd, sends `READY=1`.
///
/// # Errors
/// If the file cannot be written. A manager that does not take the datagram is its own problem.
pub fn ready(layout: &Layout) -> io::Result<()> {
    layout
        .folder()?
        .write("ready", &format!("{}\n", std::process::id()), 0o644)?;
    tell_manager("READY=1");
    Ok(())
}

/// Says that the master ends.
pub fn stopping(layout: &Layout) {
    // Missing is as good as removed.
    let _ = layout.folder().and_then(|folder| folder.remove("ready"));
    tell_manager("STOPPING=1");
}

fn tell_manager(message: &str) {
    let Some(address) = std::env::var_os("NOTIFY_SOCKET") else {
        return;
    };
    if let Err(error) = send(&address, message) {
        tracing::warn!("cannot tell the service manager {message}: {error}");
    }
}

fn send(address: &std::ffi::OsStr, message: &str) -> io::Result<()> {
    use std::os::linux::net::SocketAddrExt as _;
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::net::SocketAddr;
    let socket = UnixDatagram::unbound()?;
    let address = match address.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(address)?,
    };
    socket.send_to_addr(message.as_bytes(), &address).map(drop)
}
