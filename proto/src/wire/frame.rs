//! The frame `{ kind, id, body }`: a 4-byte big-endian length, then MessagePack with named fields.
//!
//! Unknown fields are ignored and new fields have defaults, so that versions one release apart run
//! together. A body that does not decode is refused singly: the stream goes on behind it.

use crate::diagnostic::{Code, Diagnostic};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// The bytes of the length prefix.
pub const PREFIX_BYTES: usize = 4;

/// What a frame needs beside its body, at most.
const HEAD_BYTES: usize = 64;

/// What a frame's body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// First on every stream: who speaks, which version, what it offers.
    Hello,
    /// Asks for something and expects a [`Kind::Reply`] with the same id.
    Request,
    /// Answers the request of the same id.
    Reply,
    /// A message of the control stream, not answered by itself.
    Control,
    /// A load report.
    Load,
    /// What slave tasks read and write: a [`slave::Message`](super::slave::Message).
    Slave,
    /// A [`Diagnostic`] about the frame of the same id, or (id 0) about the connection.
    Refusal,
    /// Something newer: refused singly by the receiver.
    #[serde(other)]
    Unknown,
}

/// One message on a stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// What the body is.
    pub kind: Kind,
    /// Chosen by the sender; an answer carries the id of what it answers.
    pub id: u64,
    /// The message in MessagePack with named fields.
    #[serde(with = "bytes")]
    pub body: Vec<u8>,
}

/// Serde of a byte string: without it a body would travel as an array of numbers.
pub(super) mod bytes {
    use serde::{Deserializer, Serializer, de};
    use std::fmt;

    pub fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(bytes)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        struct Bytes;
        impl de::Visitor<'_> for Bytes {
            type Value = Vec<u8>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a byte string")
            }
            fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
                Ok(bytes.to_vec())
            }
            fn visit_byte_buf<E: de::Error>(self, bytes: Vec<u8>) -> Result<Vec<u8>, E> {
                Ok(bytes)
            }
        }
        deserializer.deserialize_byte_buf(Bytes)
    }
}

/// The bytes on the wire are not a frame, or a frame's body is not the message it should be.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The length prefix is above the limit of this stream; nothing was allocated for it.
    #[error("a frame of {len} bytes is above the limit of {limit}")]
    TooLong {
        /// What the prefix says.
        len: usize,
        /// What this stream accepts.
        limit: usize,
    },
    /// The bytes are not MessagePack of the expected shape.
    #[error("a frame does not decode")]
    Malformed(#[source] rmp_serde::decode::Error),
    /// The message cannot be written, because it is longer than the receiver would accept.
    #[error("a message of {len} bytes is above the limit of {limit}")]
    Unsendable {
        /// The size of the message.
        len: usize,
        /// The limit of the stream.
        limit: usize,
    },
}

impl FrameError {
    /// The refusal that tells the peer.
    pub fn diagnostic(&self) -> Diagnostic {
        let why = match self {
            FrameError::TooLong { .. } | FrameError::Unsendable { .. } => String::new(),
            FrameError::Malformed(source) => source.to_string(),
        };
        Diagnostic::new(Code::BadMessage, self.to_string())
            .why(why)
            .fix("check that both sides run versions at most one release apart")
    }
}

impl Frame {
    /// A frame around `message`.
    pub fn new<T: Serialize>(kind: Kind, id: u64, message: &T) -> Self {
        Self {
            kind,
            id,
            body: encode(message),
        }
    }

    /// The message in the body.
    ///
    /// # Errors
    /// `Malformed` if the body is not a `T`.
    pub fn message<T: DeserializeOwned>(&self) -> Result<T, FrameError> {
        rmp_serde::from_slice(&self.body).map_err(FrameError::Malformed)
    }

    /// The frame as it goes on a stream, with its length prefix.
    ///
    /// # Errors
    /// `Unsendable` if the frame is above `limit` bytes: the receiver would end the stream.
    pub fn to_bytes(&self, limit: usize) -> Result<Vec<u8>, FrameError> {
        let mut bytes = Vec::with_capacity(self.body.len() + HEAD_BYTES);
        bytes.extend_from_slice(&[0; PREFIX_BYTES]);
        self.serialize(&mut rmp_serde::Serializer::new(&mut bytes).with_struct_map())
            .expect("a frame holds nothing that MessagePack cannot express, and a Vec takes every byte");
        let len = bytes.len() - PREFIX_BYTES;
        let prefix = u32::try_from(len)
            .ok()
            .filter(|_| len <= limit)
            .ok_or(FrameError::Unsendable { len, limit })?;
        bytes[..PREFIX_BYTES].copy_from_slice(&prefix.to_be_bytes());
        Ok(bytes)
    }

    /// Puts a frame around `message` behind `bytes`, as it goes on a stream, with its length
    /// prefix. The message is written once.
    ///
    /// # Errors
    /// `Unsendable` if the frame is above `limit` bytes; then `bytes` are as they were.
    pub fn add_to<T: Serialize>(
        bytes: &mut Vec<u8>,
        kind: Kind,
        id: u64,
        message: &T,
        limit: usize,
    ) -> Result<(), FrameError> {
        let begin = bytes.len();
        bytes.reserve(MESSAGE_BYTES);
        bytes.extend_from_slice(&[0; PREFIX_BYTES]);
        let head = Self {
            kind,
            id,
            body: Vec::new(),
        };
        head.serialize(&mut rmp_serde::Serializer::new(&mut *bytes).with_struct_map())
            .expect("a frame holds nothing that MessagePack cannot express, and a Vec takes every byte");
        // The head ends with an empty body. In its place comes one whose length, four bytes, is
        // known in the end.
        bytes.truncate(bytes.len() - EMPTY_BODY_BYTES);
        bytes.extend_from_slice(&[BIN_32, 0, 0, 0, 0]);
        let body = bytes.len();
        write(bytes, message);
        let len = bytes.len() - begin - PREFIX_BYTES;
        let Some((prefix, body_len)) = u32::try_from(len)
            .ok()
            .filter(|_| len <= limit)
            .zip((bytes.len() - body).try_into().ok())
        else {
            bytes.truncate(begin);
            return Err(FrameError::Unsendable { len, limit });
        };
        bytes[begin..begin + PREFIX_BYTES].copy_from_slice(&u32::to_be_bytes(prefix));
        bytes[body - 4..body].copy_from_slice(&u32::to_be_bytes(body_len));
        Ok(())
    }

    /// The frame in `bytes`, which are what followed the length prefix.
    ///
    /// # Errors
    /// `Malformed` if the bytes are not a frame.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, FrameError> {
        rmp_serde::from_slice(bytes).map_err(FrameError::Malformed)
    }
}

/// The length that a prefix announces, checked before anything is allocated.
///
/// # Errors
/// `TooLong` if it is above `limit`.
pub fn announced_len(prefix: [u8; PREFIX_BYTES], limit: usize) -> Result<usize, FrameError> {
    let len = u32::from_be_bytes(prefix) as usize;
    if len <= limit {
        Ok(len)
    } else {
        Err(FrameError::TooLong { len, limit })
    }
}

/// What an empty byte string takes in MessagePack: its kind and a length of one byte.
const EMPTY_BODY_BYTES: usize = 2;

/// MessagePack's mark of a byte string whose length has four bytes.
const BIN_32: u8 = 0xc6;

/// Room that a message begins with: most need no more.
const MESSAGE_BYTES: usize = 1 << 10;

/// A message as MessagePack with named fields.
pub fn encode<T: Serialize>(message: &T) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(MESSAGE_BYTES);
    write(&mut bytes, message);
    bytes
}

/// Puts a message as MessagePack with named fields behind `bytes`.
pub fn write<T: Serialize>(bytes: &mut Vec<u8>, message: &T) {
    rmp_serde::encode::write_named(bytes, message)
        .expect("our messages are plain data with string keys, and a Vec takes every byte");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_reads_back_from_its_bytes() {
        let frame = Frame::new(Kind::Request, 7, &("qstat", 3));
        let bytes = frame.to_bytes(1024).unwrap();
        let len = announced_len(bytes[..4].try_into().unwrap(), 1024).unwrap();
        assert_eq!(len, bytes.len() - 4);
        let back = Frame::from_bytes(&bytes[4..]).unwrap();
        assert_eq!(back, frame);
        assert_eq!(back.message::<(String, i32)>().unwrap(), ("qstat".to_owned(), 3));
    }

    #[test]
    fn frames_in_one_buffer_read_back_one_after_the_other() {
        let mut bytes = Vec::new();
        for (id, message) in [(1, String::new()), (2, "qstat".to_owned()), (3, "x".repeat(70_000))] {
            let begin = bytes.len();
            Frame::add_to(&mut bytes, Kind::Control, id, &message, 1 << 20).unwrap();
            let len = announced_len(bytes[begin..begin + 4].try_into().unwrap(), 1 << 20).unwrap();
            assert_eq!(len, bytes.len() - begin - 4);
            assert_eq!(
                Frame::from_bytes(&bytes[begin + 4..]).unwrap(),
                Frame::new(Kind::Control, id, &message)
            );
        }
        let before = bytes.clone();
        let refused = Frame::add_to(&mut bytes, Kind::Load, 4, &vec![1u8; 200], 100);
        assert!(matches!(refused, Err(FrameError::Unsendable { .. })) && bytes == before);
    }

    #[test]
    fn a_length_above_the_limit_is_refused_before_allocation() {
        assert!(matches!(
            announced_len([0x40, 0, 0, 0], 1 << 20),
            Err(FrameError::TooLong { len: 0x4000_0000, .. })
        ));
        assert!(matches!(
            Frame::new(Kind::Load, 1, &vec![1u8; 200]).to_bytes(100),
            Err(FrameError::Unsendable { .. })
        ));
    }

    #[test]
    fn an_unknown_kind_still_decodes_so_that_it_can_be_refused_singly() {
        #[derive(Serialize)]
        struct NewerFrame {
            kind: &'static str,
            id: u64,
            #[serde(with = "super::bytes")]
            body: Vec<u8>,
            colour: u8,
        }
        let bytes = encode(&NewerFrame {
            kind: "teleport",
            id: 9,
            body: vec![],
            colour: 1,
        });
        let frame = Frame::from_bytes(&bytes).unwrap();
        assert_eq!((frame.kind, frame.id), (Kind::Unknown, 9));
    }
}
