//! What reaches the terminal of an interactive job: keystrokes, the size of the window, and the end
//! of the input, as the agent writes them to the pipe that the shepherd reads.
//!
//! Each piece is a kind, a length and that many bytes, and no longer than what a pipe takes whole
//! (`PIPE_BUF` of pipe(7)): an agent that dies leaves no half of one behind.

use super::pairs::{DecodeError, record};
use serde::{Deserialize, Serialize};

/// The size of a window, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowSize {
    /// Lines.
    pub rows: u32,
    /// Characters of a line.
    pub columns: u32,
}
record!(WindowSize { rows, columns });

impl Default for WindowSize {
    fn default() -> Self {
        Self { rows: 24, columns: 80 }
    }
}

/// One piece of the input of a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TerminalInput {
    /// Bytes as they were typed.
    Bytes(Vec<u8>),
    /// The window has another size.
    Window(WindowSize),
    /// Nothing more will be typed.
    End,
}

/// The most bytes of [`TerminalInput::Bytes`].
pub const MAX_TYPED_BYTES: usize = 1024;

/// Kind and length.
const HEAD_BYTES: usize = 3;

impl TerminalInput {
    /// As it stands in the pipe. Bytes behind [`MAX_TYPED_BYTES`] are left out.
    pub fn encode(&self) -> Vec<u8> {
        let framed = |kind: u8, body: &[u8]| {
            let body = &body[..body.len().min(MAX_TYPED_BYTES)];
            // At most MAX_TYPED_BYTES.
            let length = (body.len() as u16).to_le_bytes();
            [&[kind], length.as_slice(), body].concat()
        };
        match self {
            TerminalInput::Bytes(bytes) => framed(b'd', bytes),
            TerminalInput::Window(WindowSize { rows, columns }) => {
                framed(b'w', &[rows.to_le_bytes(), columns.to_le_bytes()].concat())
            }
            TerminalInput::End => framed(b'e', &[]),
        }
    }

    /// Takes the first piece out of a buffer; `None` if it is not whole yet.
    ///
    /// # Errors
    /// Bytes that no agent writes: the rest of the pipe has no meaning then.
    pub fn take_from(buffer: &mut Vec<u8>) -> Result<Option<Self>, DecodeError> {
        let bad = || DecodeError::BadValue("terminal input");
        let Some(head) = buffer.first_chunk::<HEAD_BYTES>() else {
            return Ok(None);
        };
        let (kind, length) = (head[0], usize::from(u16::from_le_bytes([head[1], head[2]])));
        if length > MAX_TYPED_BYTES {
            return Err(bad());
        }
        let Some(body) = buffer.get(HEAD_BYTES..HEAD_BYTES + length) else {
            return Ok(None);
        };
        let number = |at: usize| {
            let bytes = body.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
            bytes.map(u32::from_le_bytes).ok_or_else(bad)
        };
        let piece = match kind {
            b'd' => TerminalInput::Bytes(body.to_vec()),
            b'w' => TerminalInput::Window(WindowSize {
                rows: number(0)?,
                columns: number(4)?,
            }),
            b'e' => TerminalInput::End,
            _ => return Err(bad()),
        };
        buffer.drain(..HEAD_BYTES + length);
        Ok(Some(piece))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_read_as_they_were_written_however_they_are_cut() {
        let pieces = [
            TerminalInput::Bytes(b"ls\r".to_vec()),
            TerminalInput::Window(WindowSize { rows: 40, columns: 120 }),
            TerminalInput::Bytes(vec![b'x'; MAX_TYPED_BYTES]),
            TerminalInput::End,
        ];
        let written: Vec<u8> = pieces.iter().flat_map(TerminalInput::encode).collect();
        for cut in [1, 2, 3, 7, 1000] {
            let (mut buffer, mut found) = (Vec::new(), Vec::new());
            for part in written.chunks(cut) {
                buffer.extend_from_slice(part);
                while let Some(piece) = TerminalInput::take_from(&mut buffer).unwrap() {
                    found.push(piece);
                }
            }
            assert_eq!((found.as_slice(), buffer.len()), (&pieces[..], 0), "{cut}");
        }
    }

    #[test]
    fn bytes_that_no_agent_writes_are_refused() {
        for bytes in [&b"z\0\0"[..], b"d\xff\xff", b"w\x02\0xx"] {
            assert!(TerminalInput::take_from(&mut bytes.to_vec()).is_err(), "{bytes:?}");
        }
    }
}
