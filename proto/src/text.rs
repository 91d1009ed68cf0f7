//! Bytes that are not UTF-8, kept in text.
//!
//! Words of a command line, lines of a script and values of an environment may hold any bytes. They
//! travel as text, in which each byte that is not a part of UTF-8 is one character of a block for
//! private use: U+EF80 to U+EFFF for the bytes 0x80 to 0xFF. Characters of this block in the input
//! are kept as the bytes that they are made of, so that every input comes back unchanged. All such
//! bytes are above ASCII: no separator, blank or NUL can come out of one.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

const BLOCK: std::ops::RangeInclusive<char> = '\u{ef80}'..='\u{efff}';

/// Bytes as text.
///
/// ```
/// # use gridwright_proto::text;
/// let kept = text::from_bytes(b"caf\xe9");
/// assert_eq!(text::to_bytes(&kept).as_ref(), b"caf\xe9");
/// assert_eq!(text::from_bytes("café".as_bytes()), "café");
/// ```
pub fn from_bytes(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match BLOCK.contains(&character) {
                true => text.extend(character.encode_utf8(&mut [0; 4]).bytes().map(kept)),
                false => text.push(character),
            }
        }
        text.extend(chunk.invalid().iter().copied().map(kept));
    }
    text
}

/// The bytes that a text stands for.
pub fn to_bytes(text: &str) -> Cow<'_, [u8]> {
    if is_plain(text) {
        return Cow::Borrowed(text.as_bytes());
    }
    let mut bytes = Vec::with_capacity(text.len());
    for character in text.chars() {
        match byte_of(character) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Cow::Owned(bytes)
}

/// The text as a document in UTF-8 shows it. Bytes that are not UTF-8 become U+FFFD; characters of
/// the block that were in the input come back as they were.
pub fn to_utf8(text: &str) -> Cow<'_, str> {
    match to_bytes(text) {
        Cow::Borrowed(_) => Cow::Borrowed(text),
        Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
    }
}

/// Whether a text stands for itself: it keeps no bytes.
pub fn is_plain(text: &str) -> bool {
    !text.chars().any(|character| BLOCK.contains(&character))
}

/// A name of the system as text.
pub fn from_os(name: &OsStr) -> String {
    from_bytes(name.as_bytes())
}

/// The name of the system, such as a path, that a text stands for.
pub fn to_os(text: &str) -> OsString {
    OsString::from_vec(to_bytes(text).into_owned())
}

/// The character that keeps a byte, which is 0x80 or above.
fn kept(byte: u8) -> char {
    char::from_u32(0xef00 + u32::from(byte)).expect("U+EF00 to U+EFFF are characters")
}

/// The byte that a character keeps.
pub fn byte_of(character: char) -> Option<u8> {
    BLOCK
        .contains(&character)
        .then(|| u32::from(character).to_le_bytes()[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sequence_of_bytes_comes_back_and_utf_8_stays_as_it_is() {
        let cases: [&[u8]; 8] = [
            b"",
            b"plain",
            "Gr\u{fc}\u{df}e \u{65e5}\u{672c}".as_bytes(),
            b"\xff",
            b"a\xffb\xc3",
            b"\xc3\x28\x80\xfe",
            "\u{ef80}\u{efff}\u{ef7f}\u{f000}".as_bytes(),
            b"\xed\xa0\x80 \xf4\x90\x80\x80",
        ];
        for bytes in cases {
            let text = from_bytes(bytes);
            assert_eq!(to_bytes(&text).as_ref(), bytes, "{text:?}");
        }
        let mut state = 1u64;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            state.to_be_bytes()[0]
        };
        for _ in 0..20_000 {
            let length = usize::from(next() % 9);
            let bytes: Vec<u8> = (0..length)
                .map(|_| [next(), 0xee, 0xbe, 0xef, 0x80][usize::from(next() % 5)])
                .collect();
            assert_eq!(to_bytes(&from_bytes(&bytes)).as_ref(), bytes);
        }
        assert_eq!(from_bytes("caf\u{e9}".as_bytes()), "caf\u{e9}");
    }

    #[test]
    fn no_kept_byte_is_ascii() {
        for character in BLOCK {
            assert!(byte_of(character).is_some_and(|byte| byte >= 0x80));
        }
        assert_eq!(byte_of('/'), None);
    }
}
