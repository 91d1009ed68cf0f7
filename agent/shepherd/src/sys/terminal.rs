//! System calls about terminals.

use std::io;
use std::os::fd::{AsRawFd, RawFd};

/// Makes a terminal that no session has the controlling terminal of this process, which leads a
/// session.
///
/// # Errors
/// Those of ioctl(2).
pub fn take_terminal(terminal: RawFd) -> io::Result<()> {
    // SAFETY: TIOCSCTTY takes an integer.
    checked(unsafe { libc::ioctl(terminal, libc::TIOCSCTTY, 0) })
}

/// Sets the size of a terminal's window. Its foreground processes get SIGWINCH.
///
/// # Errors
/// Those of ioctl(2).
pub fn set_window_size(terminal: &impl AsRawFd, size: &libc::winsize) -> io::Result<()> {
    let size: *const libc::winsize = size;
    // SAFETY: TIOCSWINSZ reads a winsize, to which the pointer points.
    checked(unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCSWINSZ, size) })
}

/// The size of a terminal's window.
///
/// # Errors
/// Those of ioctl(2).
#[cfg(test)]
pub fn window_size(terminal: &impl AsRawFd) -> io::Result<libc::winsize> {
    let mut size = libc::winsize {
        ws_row: 0,
        ws_col: 0,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    let place: *mut libc::winsize = &raw mut size;
    // SAFETY: TIOCGWINSZ writes a winsize, to which the pointer points.
    checked(unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCGWINSZ, place) }).map(|()| size)
}

fn checked(status: libc::c_int) -> io::Result<()> {
    if status == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
