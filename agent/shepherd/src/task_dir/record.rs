//! The parts of a task's record, one behind the other: launch document, exec record, result.
//!
//! A part is a small letter that names it, the length of its body and a checksum (CRC-32 of letter,
//! length and body) in four bytes each, and the body. The first releases wrote a capital letter,
//! the length and the body, without a checksum; such parts are still read. Behind the first part
//! that is not whole nothing is read: what was written there is not known.

use proto::launch::pairs::Record;
use proto::launch::{ExecRecord, LaunchDocument, LaunchResult};

/// A part of a task's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The launch document.
    Launch,
    /// The exec record.
    Exec,
    /// The result.
    Result,
}

/// Letter, length and checksum.
const PREFIX_BYTES: usize = 9;

/// Letter and length, of the first releases.
const OLD_PREFIX_BYTES: usize = 5;

impl Part {
    fn letter(self) -> u8 {
        match self {
            Part::Launch => b'l',
            Part::Exec => b'e',
            Part::Result => b'r',
        }
    }

    fn of_letter(letter: u8) -> Option<Self> {
        [Part::Launch, Part::Exec, Part::Result]
            .into_iter()
            .find(|part| part.letter() == letter)
    }

    /// The bytes of a part with this body.
    pub fn encode(self, body: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(PREFIX_BYTES + body.len());
        bytes.push(self.letter());
        bytes.extend_from_slice(&(body.len() as u32).to_le_bytes());
        let sum = checksum(&[&bytes, body]);
        bytes.extend_from_slice(&sum.to_le_bytes());
        bytes.extend_from_slice(body);
        bytes
    }
}

/// The contents of a task's record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// The launch document.
    pub launch: Option<LaunchDocument>,
    /// The exec record.
    pub exec: Option<ExecRecord>,
    /// The result.
    pub result: Option<LaunchResult>,
    /// Whether something is there that is no part, or a part that cannot be read.
    pub is_damaged: bool,
}

impl Contents {
    /// Reads a record.
    pub fn read(bytes: &[u8]) -> Self {
        let mut contents = Contents {
            is_damaged: whole_bytes(bytes) < bytes.len(),
            ..Contents::default()
        };
        for (part, body) in parts(bytes) {
            let is_read = match part {
                Part::Launch => take(&mut contents.launch, body),
                Part::Exec => take(&mut contents.exec, body),
                Part::Result => take(&mut contents.result, body),
            };
            contents.is_damaged |= !is_read;
        }
        contents
    }

    /// Returns whether the record proves that the job was never executed. The exec record precedes
    /// execve(2), so a whole record without one is the proof.
    pub fn proves_no_start(&self) -> bool {
        self.launch.is_some() && self.exec.is_none() && self.result.is_none() && !self.is_damaged
    }
}

/// The first part of a kind counts.
fn take<R: Record>(slot: &mut Option<R>, body: &[u8]) -> bool {
    let read = R::decode(body).ok();
    let is_read = read.is_some();
    if slot.is_none() {
        *slot = read;
    }
    is_read
}

/// The body of the first part of a kind.
pub fn body_of(bytes: &[u8], wanted: Part) -> Option<&[u8]> {
    parts(bytes).find(|(part, _)| *part == wanted).map(|(_, body)| body)
}

/// How many bytes at the beginning are whole parts.
pub fn whole_bytes(bytes: &[u8]) -> usize {
    let mut rest = bytes;
    while let Some((_, _, after)) = split(rest) {
        rest = after;
    }
    bytes.len() - rest.len()
}

/// The whole parts of a record, in the order in which they were written.
fn parts(bytes: &[u8]) -> impl Iterator<Item = (Part, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (part, body, after) = split(rest)?;
        rest = after;
        Some((part, body))
    })
}

fn split(bytes: &[u8]) -> Option<(Part, &[u8], &[u8])> {
    let letter = *bytes.first()?;
    if letter.is_ascii_uppercase() {
        return split_old(bytes);
    }
    let part = Part::of_letter(letter)?;
    let (prefix, rest) = bytes.split_first_chunk::<PREFIX_BYTES>()?;
    let [_, length @ .., a, b, c, d] = *prefix;
    let (body, rest) = rest.split_at_checked(u32::from_le_bytes(length) as usize)?;
    let is_whole = checksum(&[&prefix[..OLD_PREFIX_BYTES], body]) == u32::from_le_bytes([a, b, c, d]);
    is_whole.then_some((part, body, rest))
}

fn split_old(bytes: &[u8]) -> Option<(Part, &[u8], &[u8])> {
    let (prefix, rest) = bytes.split_first_chunk::<OLD_PREFIX_BYTES>()?;
    let [letter, length @ ..] = *prefix;
    let part = Part::of_letter(letter.to_ascii_lowercase())?;
    let (body, rest) = rest.split_at_checked(u32::from_le_bytes(length) as usize)?;
    Some((part, body, rest))
}

/// The table of CRC-32 (IEEE 802.3) for one byte.
const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut value = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 {
                0xEDB8_8320 ^ (value >> 1)
            } else {
                value >> 1
            };
            bit += 1;
        }
        table[byte] = value;
        byte += 1;
    }
    table
};

fn checksum(pieces: &[&[u8]]) -> u32 {
    let step = |sum: u32, byte: &u8| TABLE[usize::from(sum as u8 ^ byte)] ^ (sum >> 8);
    !pieces.iter().flat_map(|piece| piece.iter()).fold(!0, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Vec<(Part, &[u8])> {
        parts(bytes).collect()
    }

    #[test]
    fn the_checksum_is_the_one_of_the_standard() {
        assert_eq!(checksum(&[b"1234", b"56789"]), 0xCBF4_3926);
    }

    #[test]
    fn only_whole_parts_count() {
        let launch = Part::Launch.encode(&[1, 2, 3]);
        let result = Part::Result.encode(&[9, 8]);
        for count in 0..=result.len() {
            let bytes = [&launch[..], &result[..count]].concat();
            let expected = if count == result.len() { 2 } else { 1 };
            assert_eq!(read(&bytes).len(), expected, "{count} bytes of a result");
            assert_eq!(whole_bytes(&bytes) == bytes.len(), count == 0 || count == result.len());
        }
    }

    #[test]
    fn a_changed_byte_is_noticed_wherever_it_is() {
        let bytes = [Part::Launch.encode(&[1, 2, 3]), Part::Exec.encode(&[4])].concat();
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1 << bit;
                assert!(whole_bytes(&damaged) < bytes.len(), "bit {bit} of byte {at}");
            }
        }
    }

    #[test]
    fn parts_of_the_first_releases_are_read_and_followed_by_new_ones() {
        let old = [b'L', 3, 0, 0, 0, 1, 2, 3, b'E', 0, 0, 0, 0];
        let bytes = [&old[..], &Part::Result.encode(&[7])].concat();
        assert_eq!(
            read(&bytes),
            [
                (Part::Launch, &[1u8, 2, 3][..]),
                (Part::Exec, &[]),
                (Part::Result, &[7])
            ]
        );
        assert_eq!(whole_bytes(&bytes), bytes.len());
    }

    #[test]
    fn a_record_proves_that_nothing_was_executed_only_if_it_is_whole() {
        let garbage = Contents::read(&[0x5a; 300]);
        assert!(garbage.is_damaged && !garbage.proves_no_start());
        let undecodable = Contents::read(&Part::Launch.encode(b"no document"));
        assert!(undecodable.is_damaged && !undecodable.proves_no_start());
        assert!(!Contents::read(&[]).proves_no_start());
    }
}
