//! Frames on any byte stream: QUIC's, or a Unix socket's. Memory grows with the bytes that came,
//! never with the length that a peer announces, and a frame that has begun must end within a
//! deadline.

use crate::error::StreamError;
use proto::wire::frame::{Frame, Kind, PREFIX_BYTES, announced_len};
use serde::Serialize;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, timeout_at};

/// Bytes that an idle receiver holds, and that one read asks for at first.
const READ_MIN: usize = 1 << 10;

/// Bytes that one read asks for at most, and above which an empty buffer is given back.
const READ_MAX: usize = 64 << 10;

const MIB: usize = 1 << 20;

/// What one stream may cost: the longest frame, and how long a peer may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameLimits {
    /// The longest frame in bytes, without its length prefix. A peer can make the receiver hold
    /// about twice as much.
    pub frame_bytes: usize,
    /// How long one frame may take from its first byte to its last, and how long a peer may block
    /// one that is sent.
    pub frame_deadline: Duration,
    /// How long the stream may be silent between frames; `None`: as long as the connection lives.
    pub idle: Option<Duration>,
}

impl FrameLimits {
    /// The control stream between agent and master: 4 MiB, silent as long as it likes.
    pub const CONTROL: Self = Self::new(4 * MIB, 30, None);
    /// One load or job report on a stream of its own: 1 MiB.
    pub const REPORT: Self = Self::new(MIB, 30, Some(30));
    /// Requests of commands: 16 MiB, which bounds a job script with its environment.
    pub const REQUEST: Self = Self::new(16 * MIB, 60, None);
    /// Replies to commands, which trust who answers: 512 MiB, for the `qstat` of a million tasks.
    pub const REPLY: Self = Self::new(512 * MIB, 600, None);
    /// Enrolment, before anyone is authenticated: 16 KiB.
    pub const JOIN: Self = Self::new(16 << 10, 10, Some(10));

    const fn new(frame_bytes: usize, deadline_s: u64, idle_s: Option<u64>) -> Self {
        let idle = match idle_s {
            Some(seconds) => Some(Duration::from_secs(seconds)),
            None => None,
        };
        Self {
            frame_bytes,
            frame_deadline: Duration::from_secs(deadline_s),
            idle,
        }
    }
}

/// The receiving half of a stream of frames.
///
/// Invariant: `buffer[start..]` is what came and was not yet given out; `since` is when the current
/// wait began, for the rest of a frame if `buffer[start..]` is not empty, for the next one
/// otherwise.
#[derive(Debug)]
pub struct FrameReceiver<R> {
    stream: R,
    limits: FrameLimits,
    buffer: Vec<u8>,
    start: usize,
    since: Option<Instant>,
}

impl<R: AsyncRead + Unpin> FrameReceiver<R> {
    /// Reads frames from `stream`.
    pub fn new(stream: R, limits: FrameLimits) -> Self {
        Self {
            stream,
            limits,
            buffer: Vec::new(),
            start: 0,
            since: None,
        }
    }

    /// The next frame; `None` at the end of the stream. Cancel safe: what came stays for the next
    /// call, and its deadline runs on.
    ///
    /// # Errors
    /// As [`StreamError`]. After `Frame(Malformed)` the next call gives the next frame; after all
    /// others the stream is useless.
    pub async fn recv(&mut self) -> Result<Option<Frame>, StreamError> {
        loop {
            if let Some(frame) = self.take_frame()? {
                return Ok(Some(frame));
            }
            if self.fill().await? == 0 {
                let got = self.buffer.len() - self.start;
                return if got == 0 {
                    Ok(None)
                } else {
                    Err(StreamError::Truncated { got })
                };
            }
        }
    }

    /// The frame at the front of the buffer, if all of it is there.
    fn take_frame(&mut self) -> Result<Option<Frame>, StreamError> {
        let Some((prefix, rest)) = self.buffer[self.start..].split_first_chunk::<PREFIX_BYTES>() else {
            return Ok(None);
        };
        let len = announced_len(*prefix, self.limits.frame_bytes)?;
        let Some(bytes) = rest.get(..len) else {
            return Ok(None);
        };
        let frame = Frame::from_bytes(bytes);
        self.start += PREFIX_BYTES + len;
        self.since = None;
        self.compact();
        Ok(Some(frame?))
    }

    /// Moves what is left to the front once that is cheap, and gives a large empty buffer back.
    fn compact(&mut self) {
        if self.start == self.buffer.len() {
            self.start = 0;
            self.buffer.clear();
            if self.buffer.capacity() > READ_MAX {
                self.buffer = Vec::new();
            }
        } else if self.start > self.buffer.len() / 2 {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
    }

    /// Waits for more bytes; 0 at the end of the stream.
    async fn fill(&mut self) -> Result<usize, StreamError> {
        let inside_frame = self.start < self.buffer.len();
        let since = *self.since.get_or_insert_with(Instant::now);
        let limit = if inside_frame {
            Some(self.limits.frame_deadline)
        } else {
            self.limits.idle
        };
        self.buffer.reserve(self.buffer.len().clamp(READ_MIN, READ_MAX));
        let read = self.stream.read_buf(&mut self.buffer);
        let count = match limit {
            Some(limit) => timeout_at(since + limit, read)
                .await
                .map_err(|_| StreamError::TimedOut(limit))??,
            None => read.await?,
        };
        if !inside_frame {
            self.since = None;
        }
        Ok(count)
    }
}

/// The sending half of a stream of frames.
#[derive(Debug)]
pub struct FrameSender<W> {
    stream: W,
    limits: FrameLimits,
    /// Whole frames that were added, and what a cancelled call left unsent; the next call sends it
    /// first, so that no frame is ever cut.
    unsent: Vec<u8>,
}

impl<W: AsyncWrite + Unpin> FrameSender<W> {
    /// Writes frames to `stream`.
    pub fn new(stream: W, limits: FrameLimits) -> Self {
        Self {
            stream,
            limits,
            unsent: Vec::new(),
        }
    }

    /// Sends one message as a frame. A call that is dropped half-way may have sent it or not, and
    /// leaves the stream whole.
    ///
    /// # Errors
    /// `Frame(Unsendable)` if it is too long, and nothing was sent; `TimedOut` if the peer does not
    /// read; else as [`StreamError`].
    pub async fn send<T: Serialize>(&mut self, kind: Kind, id: u64, message: &T) -> Result<(), StreamError> {
        self.add(kind, id, message)?;
        self.flush().await
    }

    /// Puts one message behind what the next call sends: what goes in one write needs fewer
    /// packets.
    ///
    /// # Errors
    /// `Frame(Unsendable)` if it is too long; then it is not there.
    pub fn add<T: Serialize>(&mut self, kind: Kind, id: u64, message: &T) -> Result<(), StreamError> {
        Ok(Frame::add_to(
            &mut self.unsent,
            kind,
            id,
            message,
            self.limits.frame_bytes,
        )?)
    }

    /// Bytes that were added and are not sent.
    pub fn added(&self) -> usize {
        self.unsent.len()
    }

    /// Sends what was added. A call that is dropped half-way leaves the stream whole.
    ///
    /// # Errors
    /// As [`FrameSender::send`].
    pub async fn send_added(&mut self) -> Result<(), StreamError> {
        self.flush().await
    }

    /// Sends a frame that is already made.
    ///
    /// # Errors
    /// As [`FrameSender::send`].
    pub async fn send_frame(&mut self, frame: &Frame) -> Result<(), StreamError> {
        let bytes = frame.to_bytes(self.limits.frame_bytes)?;
        self.flush().await?;
        self.unsent = bytes;
        self.flush().await
    }

    /// Ends the stream in order: the peer receives `None` after the last frame.
    ///
    /// # Errors
    /// As [`StreamError`].
    pub async fn finish(mut self) -> Result<(), StreamError> {
        self.flush().await?;
        match self.stream.shutdown().await {
            // The peer has gone already, or has read all that it wants.
            Err(error) if error.kind() == std::io::ErrorKind::NotConnected => Ok(()),
            result => Ok(result?),
        }
    }

    async fn flush(&mut self) -> Result<(), StreamError> {
        let limit = self.limits.frame_deadline;
        let deadline = Instant::now() + limit;
        let mut sent = SendGuard {
            bytes: &mut self.unsent,
            count: 0,
        };
        while sent.count < sent.bytes.len() {
            let write = self.stream.write(&sent.bytes[sent.count..]);
            match timeout_at(deadline, write)
                .await
                .map_err(|_| StreamError::TimedOut(limit))??
            {
                0 => return Err(StreamError::Disconnected),
                count => sent.count += count,
            }
        }
        drop(sent);
        Ok(self.stream.flush().await?)
    }
}

/// Takes what was written off the bytes to send, also when the call that writes is dropped.
struct SendGuard<'a> {
    bytes: &'a mut Vec<u8>,
    count: usize,
}

impl Drop for SendGuard<'_> {
    fn drop(&mut self) {
        if self.count == self.bytes.len() {
            *self.bytes = Vec::new();
        } else {
            self.bytes.drain(..self.count);
        }
    }
}

#[cfg(test)]
mod tests;
