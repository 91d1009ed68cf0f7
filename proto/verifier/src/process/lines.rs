//! Lines of a stream, with a bound for each.

use crate::dialog::{JsvFault, LINE_BYTES_MAX};
use proto::text;

/// Bytes that were read and are not lines yet.
#[derive(Debug, Default)]
pub(super) struct LineBuffer {
    bytes: Vec<u8>,
    /// How far it was searched for a line break.
    searched: usize,
}

impl LineBuffer {
    /// Adds what was read.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole line, without its line break.
    ///
    /// # Errors
    /// A line that is too long.
    pub(super) fn next_line(&mut self) -> Result<Option<String>, JsvFault> {
        let found = self.bytes[self.searched..].iter().position(|byte| *byte == b'\n');
        let Some(end) = found.map(|at| self.searched + at) else {
            self.searched = self.bytes.len();
            return match self.bytes.len() > LINE_BYTES_MAX {
                true => Err(JsvFault::LongLine),
                false => Ok(None),
            };
        };
        let line = text::from_bytes(&self.bytes[..end]);
        self.bytes.drain(..=end);
        self.searched = 0;
        Ok(Some(line))
    }

    /// Whether everything that was read was taken.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}
