//! One Unix stream socket: messages in with their descriptors, messages out, never blocking.

use crate::sys;
use nix::sys::socket::{ControlMessage, MsgFlags, UnixAddr, sendmsg};
use proto::launch::pairs::Record;
use proto::launch::{MAX_DOCUMENT_BYTES, frame, unframe};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// The most bytes that wait for a peer that does not read; it is dropped then and lists its tasks
/// when it returns.
const MAX_UNSENT: usize = 64 << 20;

/// The most descriptors that wait for their message.
const MAX_DESCRIPTORS: usize = 64;

/// A peer: the agent, or a shepherd.
pub struct Connection {
    stream: UnixStream,
    incoming: Vec<u8>,
    /// How much of it was taken. It goes all at once: one message after the other would move the
    /// rest each time.
    taken: usize,
    /// One entry for each message that came with descriptors. If this process had no free
    /// descriptors left, some of a message are lost: its entry is then shorter, and it does not get
    /// those of the next message.
    descriptors: VecDeque<Vec<OwnedFd>>,
    outgoing: Vec<u8>,
    /// Whether its owner waits until it can be written to.
    pub waits_for_room: bool,
}

impl Connection {
    /// Takes the socket over.
    ///
    /// # Errors
    /// Those of fcntl(2).
    pub fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Connection {
            stream,
            incoming: Vec::new(),
            taken: 0,
            descriptors: VecDeque::new(),
            outgoing: Vec::new(),
            waits_for_room: false,
        })
    }

    /// Gives the socket back, where nothing waits in either direction.
    pub fn into_stream(self) -> UnixStream {
        self.stream
    }

    /// The socket, to wait for.
    pub fn stream(&self) -> &UnixStream {
        &self.stream
    }

    /// Whether something waits to be sent.
    pub fn has_unsent(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// Whether more waits to be sent than may.
    pub fn is_overfull(&self) -> bool {
        self.outgoing.len() > MAX_UNSENT
    }

    /// Reads what is there.
    ///
    /// # Errors
    /// `UnexpectedEof` when the peer is gone; the messages before that are complete.
    pub fn fill(&mut self) -> io::Result<()> {
        let mut chunk = [0; 1 << 14];
        self.drop_taken();
        loop {
            let sys::SocketRead { count, descriptors } = match sys::receive(&self.stream, &mut chunk) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                received => received?,
            };
            self.descriptors.extend(descriptors);
            if count == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            self.incoming.extend_from_slice(&chunk[..count]);
            if self.waiting_descriptors() > MAX_DESCRIPTORS || self.incoming.len() > 2 * MAX_DOCUMENT_BYTES {
                return Err(ErrorKind::InvalidData.into());
            }
            if count < chunk.len() {
                return Ok(());
            }
        }
    }

    /// The next complete message.
    ///
    /// # Errors
    /// `InvalidData`: the connection is of no more use.
    pub fn next<R: Record>(&mut self) -> io::Result<Option<R>> {
        let left = &self.incoming[self.taken..];
        let found = unframe(left).map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
        match found {
            Some((message, taken)) => {
                self.taken += taken;
                Ok(Some(message))
            }
            None => {
                self.drop_taken();
                Ok(None)
            }
        }
    }

    fn drop_taken(&mut self) {
        self.incoming.drain(..self.taken);
        self.taken = 0;
    }

    fn waiting_descriptors(&self) -> usize {
        self.descriptors.iter().map(|of_message| of_message.len().max(1)).sum()
    }

    /// The descriptors of the next message that came with some; `None` if they are not `N`.
    pub fn take_descriptors<const N: usize>(&mut self) -> Option<[OwnedFd; N]> {
        self.descriptors.pop_front()?.try_into().ok()
    }

    /// The same for a number that is known at run time.
    pub fn take_attached(&mut self, count: usize) -> Option<Vec<OwnedFd>> {
        if count == 0 {
            return Some(Vec::new());
        }
        self.descriptors
            .pop_front()
            .filter(|of_message| of_message.len() == count)
    }

    /// Queues a message for the next [`Connection::flush`].
    pub fn queue<R: Record>(&mut self, message: &R) {
        self.outgoing.extend_from_slice(&frame(message));
    }

    /// Sends a message and perhaps descriptors with it, behind what was queued.
    ///
    /// # Errors
    /// As [`Connection::send`].
    pub fn send_with<R: Record>(&mut self, message: &R, descriptors: &[OwnedFd]) -> io::Result<()> {
        self.queue(message);
        if !descriptors.is_empty() {
            let rights: Vec<_> = descriptors.iter().map(AsRawFd::as_raw_fd).collect();
            let parts = [IoSlice::new(&self.outgoing)];
            let control = [ControlMessage::ScmRights(&rights)];
            let flags = MsgFlags::MSG_NOSIGNAL;
            let sent = sendmsg::<UnixAddr>(self.stream.as_raw_fd(), &parts, &control, flags, None)?;
            self.outgoing.drain(..sent);
        }
        self.flush()
    }

    /// Queues a message and sends what can be sent.
    ///
    /// # Errors
    /// The peer is gone, or does not read.
    pub fn send<R: Record>(&mut self, message: &R) -> io::Result<()> {
        self.queue(message);
        self.flush()
    }

    /// Sends what can be sent.
    ///
    /// # Errors
    /// As [`Connection::send`].
    pub fn flush(&mut self) -> io::Result<()> {
        let mut sent = 0;
        while sent < self.outgoing.len() {
            match self.stream.write(&self.outgoing[sent..]) {
                Ok(count) => sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.outgoing.drain(..sent);
        if self.is_overfull() {
            Err(ErrorKind::WouldBlock.into())
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::launch::Request;

    fn pair() -> (UnixStream, Connection) {
        let (theirs, ours) = UnixStream::pair().unwrap();
        (theirs, Connection::new(ours).unwrap())
    }

    #[test]
    fn messages_come_whole_and_in_order_however_they_were_cut() {
        let (mut peer, mut connection) = pair();
        let order = [Request::List, Request::Examine, Request::List];
        let bytes: Vec<u8> = order.iter().flat_map(frame).collect();
        let mut heard = Vec::new();
        for byte in &bytes {
            peer.write_all(&[*byte]).unwrap();
            connection.fill().unwrap();
            heard.extend(connection.next::<Request>().unwrap());
        }
        assert_eq!(heard, order);
        peer.write_all(&bytes).unwrap();
        connection.fill().unwrap();
        for expected in order {
            assert_eq!(connection.next().unwrap(), Some(expected));
        }
        assert_eq!(connection.next::<Request>().unwrap(), None);
        assert!(connection.incoming.is_empty());
    }

    #[test]
    fn a_peer_that_asks_and_does_not_read_is_overfull() {
        let (_peer, mut connection) = pair();
        connection.outgoing.resize(MAX_UNSENT, 0);
        assert!(!connection.is_overfull());
        connection.queue(&Request::List);
        assert!(connection.is_overfull());
    }
}
