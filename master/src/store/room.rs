//! Rows as they lie in the database: MessagePack, compressed where that saves something. The names
//! of fields, of hosts and of users come again with each event of a row, so that it takes a tenth.

use super::damage::RowDamage;
use lz4_flex::block;
use proto::wire::frame;
use serde::Serialize;
use std::borrow::Cow;

/// What a compressed row begins with, before the length of what is in it, four bytes, least first.
/// MessagePack never uses it.
const PACKED: u8 = 0xc1;

/// Bytes before what is compressed.
const HEAD: usize = 5;

/// The fewest bytes that are worth it.
const LEAST: usize = 256;

/// How much longer than itself something may be that LZ4 has compressed: a damaged length claims no
/// memory.
const RATIO: usize = 256;

/// Where rows are made, kept for the next.
#[derive(Default)]
pub(super) struct Room {
    plain: Vec<u8>,
    packed: Vec<u8>,
}

impl Room {
    /// A row with `content`.
    pub(super) fn row(&mut self, content: &impl Serialize) -> &[u8] {
        self.plain.clear();
        frame::write(&mut self.plain, content);
        let Some(len) = u32::try_from(self.plain.len())
            .ok()
            .filter(|_| self.plain.len() >= LEAST)
        else {
            return &self.plain;
        };
        let most = HEAD + block::get_maximum_output_size(self.plain.len());
        if self.packed.len() < most {
            self.packed.resize(most, 0);
        }
        self.packed[0] = PACKED;
        self.packed[1..HEAD].copy_from_slice(&len.to_le_bytes());
        match block::compress_into(&self.plain, &mut self.packed[HEAD..]) {
            Ok(count) if HEAD + count < self.plain.len() => &self.packed[..HEAD + count],
            Ok(_) | Err(_) => &self.plain,
        }
    }
}

/// The MessagePack in a row.
pub(super) fn content(row: &[u8]) -> Result<Cow<'_, [u8]>, RowDamage> {
    let Some((&PACKED, rest)) = row.split_first() else {
        return Ok(Cow::Borrowed(row));
    };
    let (len, packed) = rest.split_first_chunk().ok_or(RowDamage::CutOff)?;
    let len = u32::from_le_bytes(*len) as usize;
    if len / RATIO > packed.len() {
        return Err(RowDamage::TooLong(len));
    }
    let plain = block::decompress(packed, len)?;
    if plain.len() == len {
        Ok(Cow::Owned(plain))
    } else {
        Err(RowDamage::OtherLength {
            got: plain.len(),
            expected: len,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_row_takes_a_tenth_where_names_come_again() {
        let mut room = Room::default();
        let content_of = |row: &[u8]| rmp_serde::from_slice::<Vec<String>>(&content(row).unwrap()).unwrap();
        for text in [vec!["task-started".to_owned(); 200], vec!["x".to_owned()]] {
            let row = room.row(&text).to_vec();
            assert_eq!(content_of(&row), text);
            assert_eq!(row.len() < frame::encode(&text).len() / 10, text.len() > 1);
        }
    }

    #[test]
    fn what_is_no_row_is_refused_and_takes_no_memory() {
        for (row, why) in [
            (&[PACKED, 1][..], "it is cut off"),
            (
                &[PACKED, 0xff, 0xff, 0xff, 0xff, 0, 0],
                "it cannot hold 4294967295 bytes",
            ),
            (&[PACKED, 9, 0, 0, 0, 0x10, 7], "it holds 1 bytes, not 9"),
        ] {
            assert_eq!(content(row).unwrap_err().to_string(), why);
        }
        assert!(
            content(&[PACKED, 1, 0, 0, 0, 0xf0]).is_err(),
            "the compressed part is damaged"
        );
    }

    proptest! {
        #[test]
        fn every_row_reads_back(texts in prop::collection::vec("[a-c]{0,40}", 0..60)) {
            let mut room = Room::default();
            let row = room.row(&texts);
            prop_assert_eq!(rmp_serde::from_slice::<Vec<String>>(&content(row).unwrap()).unwrap(), texts);
        }

        #[test]
        fn no_bytes_break_the_reader(row in prop::collection::vec(any::<u8>(), 0..200)) {
            drop(content(&row));
            drop(content(&[&[PACKED], &row[..]].concat()));
        }
    }
}
