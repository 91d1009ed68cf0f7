//! Frames on a blocking stream, for commands: they send one request, wait for its answer, and need
//! no runtime.
//!
//! Deadlines are the stream's own (`set_read_timeout`); one that passes is [`StreamError::Io`].

use crate::error::StreamError;
use proto::wire::frame::{Frame, Kind, PREFIX_BYTES, announced_len};
use serde::Serialize;
use std::io::{ErrorKind, Read, Write};

/// Sends one message as a frame of at most `limit` bytes.
///
/// # Errors
/// `Frame(Unsendable)` if it is too long, and nothing was sent; else as [`StreamError`].
pub fn send<T: Serialize>(
    stream: &mut impl Write,
    kind: Kind,
    id: u64,
    message: &T,
    limit: usize,
) -> Result<(), StreamError> {
    stream.write_all(&Frame::new(kind, id, message).to_bytes(limit)?)?;
    Ok(stream.flush()?)
}

/// Receives the next frame of at most `limit` bytes; `None` at the end of the stream.
///
/// # Errors
/// As [`StreamError`]. After `Frame(Malformed)` the next call gives the next frame.
pub fn recv(stream: &mut impl Read, limit: usize) -> Result<Option<Frame>, StreamError> {
    let mut prefix = Vec::with_capacity(PREFIX_BYTES);
    read_up_to(stream, PREFIX_BYTES, &mut prefix)?;
    let Ok(prefix) = <[u8; PREFIX_BYTES]>::try_from(&prefix[..]) else {
        return if prefix.is_empty() {
            Ok(None)
        } else {
            Err(StreamError::Truncated { got: prefix.len() })
        };
    };
    let len = announced_len(prefix, limit)?;
    let mut bytes = Vec::new();
    read_up_to(stream, len, &mut bytes)?;
    if bytes.len() < len {
        return Err(StreamError::Truncated {
            got: PREFIX_BYTES + bytes.len(),
        });
    }
    Ok(Some(Frame::from_bytes(&bytes)?))
}

/// Reads until `count` bytes or the end; `bytes` grows with what comes. A stream whose peer has
/// vanished has ended.
fn read_up_to(stream: &mut impl Read, count: usize, bytes: &mut Vec<u8>) -> Result<(), StreamError> {
    match stream.take(count as u64).read_to_end(bytes) {
        Err(error) if error.kind() != ErrorKind::ConnectionReset => Err(error.into()),
        Ok(_) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_request_and_its_reply_cross_a_unix_socket() {
        let (mut near, mut far) = UnixStream::pair().unwrap();
        send(&mut near, Kind::Request, 3, &"qstat", 1024).unwrap();
        let request = recv(&mut far, 1024).unwrap().unwrap();
        assert_eq!(
            (request.id, request.message::<String>().unwrap().as_str()),
            (3, "qstat")
        );
        drop(far);
        assert_eq!(recv(&mut near, 1024).unwrap(), None);
    }

    #[test]
    fn truncated_and_too_long_frames_are_refused() {
        for (input, expected) in [
            (&[0, 0][..], "the stream ended inside a frame, after 2 bytes of it"),
            (
                &[0, 0, 0, 9, 1][..],
                "the stream ended inside a frame, after 5 bytes of it",
            ),
            (
                &[0x40, 0, 0, 0][..],
                "a frame of 1073741824 bytes is above the limit of 1024",
            ),
        ] {
            assert_eq!(recv(&mut &*input, 1024).unwrap_err().to_string(), expected);
        }
    }
}
