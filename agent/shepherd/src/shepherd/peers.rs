//! The sockets over which a shepherd hears orders and tells what happens: the launcher that forked
//! it, and any later one.

use proto::launch::{Notice, Request, frame, unframe};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

/// The most bytes of requests that wait for their end.
const MAX_BUFFERED: usize = 1 << 16;

/// All peers of one shepherd.
pub struct Peers {
    listener: Option<UnixListener>,
    peers: Vec<Peer>,
}

struct Peer {
    stream: UnixStream,
    buffer: Vec<u8>,
}

impl Peers {
    /// Starts with the launcher's socket.
    pub fn new(control: UnixStream) -> Self {
        let mut peers = Peers {
            listener: None,
            peers: Vec::new(),
        };
        peers.add(control);
        peers
    }

    /// Listens for later launchers where that is possible.
    pub fn listen(&mut self, socket: &Path) {
        // Without the socket the task still runs; only a restarted launcher could not signal it.
        self.listener = UnixListener::bind(socket)
            .ok()
            .filter(|listener| listener.set_nonblocking(true).is_ok());
    }

    fn add(&mut self, stream: UnixStream) {
        if stream.set_nonblocking(true).is_ok() {
            self.peers.push(Peer {
                stream,
                buffer: Vec::new(),
            });
        }
    }

    /// What to wait for.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.listener
            .iter()
            .map(AsFd::as_fd)
            .chain(self.peers.iter().map(|peer| peer.stream.as_fd()))
    }

    /// Takes new peers, tells them `greeting`, and returns every request that is complete.
    pub fn receive(&mut self, greeting: Option<&Notice>) -> Vec<Request> {
        while let Some((stream, _)) = self.listener.as_ref().and_then(|listener| listener.accept().ok()) {
            self.add(stream);
            if let (Some(notice), Some(peer)) = (greeting, self.peers.last_mut()) {
                // A peer that cannot be written to is found out by the next read.
                let _ = peer.stream.write_all(&frame(notice));
            }
        }
        let mut requests = Vec::new();
        self.peers.retain_mut(|peer| peer.read(&mut requests).is_ok());
        requests
    }

    /// Tells every peer; one that does not take it is dropped and may connect again.
    pub fn tell(&mut self, notice: &Notice) {
        let bytes = frame(notice);
        self.peers.retain_mut(|peer| peer.stream.write_all(&bytes).is_ok());
    }

    /// Tells every peer the last word, waiting up to five seconds for a slow one. Says whether
    /// anybody heard it.
    pub fn tell_last(&mut self, notice: &Notice) -> bool {
        for peer in &self.peers {
            // The result is on disk: a peer that misses this finds it there.
            let _ = peer.stream.set_nonblocking(false);
            let _ = peer.stream.set_write_timeout(Some(Duration::from_secs(5)));
        }
        self.tell(notice);
        !self.peers.is_empty()
    }

    /// Gives up the launcher's socket where it is the only one, nobody else was ever asked in, and
    /// nothing on it is half read.
    pub fn only_control(&mut self) -> Option<UnixStream> {
        if self.listener.is_some() || self.peers.len() != 1 || !self.peers[0].buffer.is_empty() {
            return None;
        }
        self.peers.pop().map(|peer| peer.stream)
    }
}

impl Peer {
    fn read(&mut self, requests: &mut Vec<Request>) -> io::Result<()> {
        let mut chunk = [0; 4096];
        loop {
            match self.stream.read(&mut chunk) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.buffer.extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if self.buffer.len() > MAX_BUFFERED {
                return Err(ErrorKind::InvalidData.into());
            }
        }
        while let Some((request, taken)) = self.next()? {
            self.buffer.drain(..taken);
            requests.push(request);
        }
        Ok(())
    }

    fn next(&self) -> io::Result<Option<(Request, usize)>> {
        unframe::<Request>(&self.buffer).map_err(|error| io::Error::new(ErrorKind::InvalidData, error))
    }
}
