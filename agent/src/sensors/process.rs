//! The pipes of one sensor's process.

use std::io;
use std::os::fd::OwnedFd;
use tokio::net::unix::pipe::{Receiver, Sender};

/// Bytes that one read takes at most.
const READ_BYTES: usize = 16 << 10;

/// Bytes that are read after the end of a process: what a pipe holds.
const REST_BYTES: usize = 64 << 10;

/// Our ends of the pipes, and the process once it is known.
#[derive(Debug)]
pub struct Process {
    /// None until the launcher has said it.
    pub pid: Option<i32>,
    stdin: Option<Sender>,
    stdout: Option<Receiver>,
    stderr: Option<Receiver>,
}

/// Something that came out of a process.
#[derive(Debug)]
pub enum Output {
    /// Bytes of its standard output.
    Out(Vec<u8>),
    /// It closed its standard output.
    OutEnd,
    /// Bytes of its standard error.
    Err(Vec<u8>),
}

impl Process {
    /// New pipes, and the process's ends of them.
    pub fn new() -> io::Result<(Self, [OwnedFd; 3])> {
        let (their_in, our_in) = io::pipe()?;
        let (our_out, their_out) = io::pipe()?;
        let (our_err, their_err) = io::pipe()?;
        let process = Self {
            pid: None,
            stdin: Some(Sender::from_owned_fd(our_in.into())?),
            stdout: Some(Receiver::from_owned_fd(our_out.into())?),
            stderr: Some(Receiver::from_owned_fd(our_err.into())?),
        };
        Ok((process, [their_in.into(), their_out.into(), their_err.into()]))
    }

    /// Writes without waiting. That nobody reads is no news: the end of the process will be.
    pub fn write(&self, bytes: &[u8]) {
        if let Some(stdin) = &self.stdin {
            // Not through tokio: it refuses until it has seen the pipe writable once, and the first
            // request would be lost.
            let _ = nix::unistd::write(stdin, bytes);
        }
    }

    /// Closes its standard input.
    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// The next output; standard output only where `read_out` says so. Waits for ever once both are
    /// closed. Cancel safe.
    pub async fn output(&mut self, read_out: bool) -> Output {
        loop {
            let (from_out, result) = tokio::select! {
                result = ready(&self.stdout), if read_out && self.stdout.is_some() => (true, result),
                result = ready(&self.stderr), if self.stderr.is_some() => (false, result),
                else => return std::future::pending().await,
            };
            let pipe = if from_out { &mut self.stdout } else { &mut self.stderr };
            let taken = match result {
                Ok(()) => take(pipe, READ_BYTES),
                Err(error) => Err(error),
            };
            match taken {
                Ok(bytes) if !bytes.is_empty() => {
                    return if from_out {
                        Output::Out(bytes)
                    } else {
                        Output::Err(bytes)
                    };
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Ok(_) | Err(_) => {
                    *pipe = None;
                    if from_out {
                        return Output::OutEnd;
                    }
                }
            }
        }
    }

    /// What is left in the pipes, as far as it is there: standard output, then standard error.
    pub fn rest(&mut self) -> (Vec<u8>, Vec<u8>) {
        let all = |pipe: &mut Option<Receiver>| {
            let mut rest = Vec::new();
            while rest.len() < REST_BYTES {
                match take(pipe, READ_BYTES) {
                    Ok(bytes) if !bytes.is_empty() => rest.extend_from_slice(&bytes),
                    Ok(_) | Err(_) => break,
                }
            }
            rest
        };
        (all(&mut self.stdout), all(&mut self.stderr))
    }
}

async fn ready(pipe: &Option<Receiver>) -> io::Result<()> {
    match pipe {
        Some(pipe) => pipe.readable().await,
        None => std::future::pending().await,
    }
}

/// Bytes that are there now; none at the end.
fn take(pipe: &Option<Receiver>, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; most];
    let count = match pipe {
        Some(pipe) => pipe.try_read(&mut bytes)?,
        None => 0,
    };
    bytes.truncate(count);
    Ok(bytes)
}
