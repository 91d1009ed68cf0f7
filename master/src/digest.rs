//! Checksums: of files in backups, and of states, by which two replays are compared.

use master_core::state::State;
use ring::digest::{Context, SHA256};
use std::io::{self, Write};

/// The SHA-256 of a state, in hexadecimal: two states are the same if theirs is.
pub fn digest(state: &State) -> String {
    let mut hasher = Hasher::new();
    rmp_serde::encode::write_named(&mut hasher, state).expect("a state is plain data with string keys");
    hasher.finish()
}

/// Takes bytes for a SHA-256.
pub struct Hasher(Context);

impl Hasher {
    /// One that has taken nothing.
    pub fn new() -> Self {
        Self(Context::new(&SHA256))
    }

    /// The SHA-256 of what was written, in hexadecimal.
    pub fn finish(self) -> String {
        data_encoding::HEXLOWER.encode(self.0.finish().as_ref())
    }
}

impl Write for Hasher {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
