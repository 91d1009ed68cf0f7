//! The format: `GWL`, one byte of version, then pairs of
//! `key length (1) key value length (4, little endian) value`.
//!
//! A key that occurs several times is a list, in order. A value that is itself a record holds pairs
//! without the magic. The depth is that of the types, so a hostile document cannot make the reader
//! recurse.

use crate::id::TaskKey;
use std::collections::BTreeMap;

/// The newest version that is read. Raised when a reader must not ignore what a newer writer says.
pub const VERSION: u8 = 2;

/// The version of documents that say nothing which an older reader must not ignore.
pub const FIRST_VERSION: u8 = 1;

/// The longest document and the longest message that is read: environments and argument lists fit
/// many times.
pub const MAX_DOCUMENT_BYTES: usize = 8 << 20;

/// The most pairs that one record may hold.
pub const MAX_PAIRS: usize = 1 << 17;

const MAGIC: &[u8; 3] = b"GWL";

/// Why bytes are no document of this format and version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The bytes do not begin with the magic.
    #[error("not a launch document")]
    NotADocument,
    /// A newer version than [`VERSION`].
    #[error("launch document of version {0}, this program reads version {VERSION}")]
    Version(u8),
    /// Longer than [`MAX_DOCUMENT_BYTES`], or more than [`MAX_PAIRS`] pairs in a record.
    #[error("launch document over its limit")]
    TooLarge,
    /// The bytes end inside a pair, or a key is empty or not ASCII.
    #[error("launch document is damaged")]
    Damaged,
    /// A key that must be there is not.
    #[error("{0}: missing in the launch document")]
    Missing(&'static str),
    /// A key that must occur once occurs several times.
    #[error("{0}: given more than once in the launch document")]
    Repeated(&'static str),
    /// A value is not of its key's type.
    #[error("{0}: bad value in the launch document")]
    BadValue(&'static str),
}

/// A value under one key.
pub trait Value: Sized {
    /// Appends the bytes of the value.
    fn put(&self, out: &mut Vec<u8>);
    /// Reads the value from exactly these bytes; `None` if they are no such value.
    fn take(bytes: &[u8]) -> Option<Self>;
}

/// What a field of a record holds: one value, perhaps one (`Option`), or any number (`Vec`).
pub trait Slot: Sized {
    /// Writes the pairs of this field.
    fn write(&self, key: &'static str, writer: &mut Writer);
    /// Reads the field from its pairs.
    ///
    /// # Errors
    /// Missing, repeated or malformed values.
    fn read(key: &'static str, reader: &mut PairReader<'_>) -> Result<Self, DecodeError>;
}

/// A struct or enum made of pairs.
pub trait Record: Sized {
    /// Writes all pairs.
    fn write_pairs(&self, writer: &mut Writer);
    /// Reads the record from its pairs.
    ///
    /// # Errors
    /// The first field that is missing, repeated or malformed.
    fn read_pairs(reader: &mut PairReader<'_>) -> Result<Self, DecodeError>;

    /// The version that a reader must know at least to understand this record.
    fn version(&self) -> u8 {
        FIRST_VERSION
    }

    /// The record as a document of its own, with magic and version.
    fn encode(&self) -> Vec<u8> {
        let mut writer = Writer {
            out: Vec::with_capacity(512),
        };
        writer.out.extend_from_slice(MAGIC);
        writer.out.push(self.version());
        self.write_pairs(&mut writer);
        writer.out
    }

    /// Reads a document made by [`Record::encode`].
    ///
    /// # Errors
    /// Any [`DecodeError`]; never panics, whatever the bytes are.
    fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        if bytes.len() > MAX_DOCUMENT_BYTES {
            return Err(DecodeError::TooLarge);
        }
        let rest = bytes.strip_prefix(MAGIC).ok_or(DecodeError::NotADocument)?;
        let (&version, rest) = rest.split_first().ok_or(DecodeError::NotADocument)?;
        if !(FIRST_VERSION..=VERSION).contains(&version) {
            return Err(DecodeError::Version(version));
        }
        Self::read_pairs(&mut PairReader::new(rest)?)
    }
}

/// Collects the pairs of a record.
pub struct Writer {
    out: Vec<u8>,
}

impl Writer {
    /// Appends one pair.
    pub fn put<V: Value>(&mut self, key: &'static str, value: &V) {
        debug_assert!(!key.is_empty() && key.len() < 256);
        self.out.push(key.len() as u8);
        self.out.extend_from_slice(key.as_bytes());
        let length_at = self.out.len();
        self.out.extend_from_slice(&[0; 4]);
        value.put(&mut self.out);
        let length = (self.out.len() - length_at - 4) as u32;
        self.out[length_at..length_at + 4].copy_from_slice(&length.to_le_bytes());
    }
}

/// The pairs of a record, by key.
pub struct PairReader<'a> {
    pairs: BTreeMap<&'a [u8], Vec<&'a [u8]>>,
}

impl<'a> PairReader<'a> {
    /// Splits bytes into pairs.
    ///
    /// # Errors
    /// [`DecodeError::Damaged`] and [`DecodeError::TooLarge`].
    pub fn new(mut bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut pairs: BTreeMap<_, Vec<_>> = BTreeMap::new();
        let mut count = 0;
        while !bytes.is_empty() {
            let (key, value, rest) = split_pair(bytes).ok_or(DecodeError::Damaged)?;
            pairs.entry(key).or_default().push(value);
            bytes = rest;
            count += 1;
            if count > MAX_PAIRS {
                return Err(DecodeError::TooLarge);
            }
        }
        Ok(PairReader { pairs })
    }

    fn take(&mut self, key: &'static str) -> Vec<&'a [u8]> {
        self.pairs.remove(key.as_bytes()).unwrap_or_default()
    }
}

fn split_pair(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (&key_length, rest) = bytes.split_first()?;
    let (key, rest) = rest.split_at_checked(key_length.into())?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let (value, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    (!key.is_empty() && key.is_ascii()).then_some((key, value, rest))
}

impl<V: Value> Slot for V {
    fn write(&self, key: &'static str, writer: &mut Writer) {
        writer.put(key, self);
    }

    fn read(key: &'static str, reader: &mut PairReader<'_>) -> Result<Self, DecodeError> {
        match reader.take(key)[..] {
            [] => Err(DecodeError::Missing(key)),
            [bytes] => V::take(bytes).ok_or(DecodeError::BadValue(key)),
            _ => Err(DecodeError::Repeated(key)),
        }
    }
}

impl<V: Value> Slot for Option<V> {
    fn write(&self, key: &'static str, writer: &mut Writer) {
        if let Some(value) = self {
            writer.put(key, value);
        }
    }

    fn read(key: &'static str, reader: &mut PairReader<'_>) -> Result<Self, DecodeError> {
        match reader.take(key)[..] {
            [] => Ok(None),
            [bytes] => V::take(bytes).map(Some).ok_or(DecodeError::BadValue(key)),
            _ => Err(DecodeError::Repeated(key)),
        }
    }
}

impl<V: Value> Slot for Vec<V> {
    fn write(&self, key: &'static str, writer: &mut Writer) {
        for value in self {
            writer.put(key, value);
        }
    }

    fn read(key: &'static str, reader: &mut PairReader<'_>) -> Result<Self, DecodeError> {
        reader
            .take(key)
            .into_iter()
            .map(|bytes| V::take(bytes).ok_or(DecodeError::BadValue(key)))
            .collect()
    }
}

/// Implements [`Value`] for integers: little endian, full width.
macro_rules! integers {
    ($($type:ty)*) => {$(
        impl Value for $type {
            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
            fn take(bytes: &[u8]) -> Option<Self> {
                Some(<$type>::from_le_bytes(bytes.try_into().ok()?))
            }
        }
    )*};
}
integers!(u8 u32 u64 u128 i32);

impl Value for bool {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn take(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0] => Some(false),
            [1] => Some(true),
            _ => None,
        }
    }
}

/// Text in UTF-8 without NUL, since each of them may become a C string.
impl Value for String {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.as_bytes());
    }

    fn take(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        (!bytes.contains(&0)).then(|| text.to_owned())
    }
}

impl Value for TaskKey {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.to_string().as_bytes());
    }

    fn take(bytes: &[u8]) -> Option<Self> {
        std::str::from_utf8(bytes).ok()?.parse().ok()
    }
}

/// Writes `kind`, which tells the variants of an enum apart.
pub(super) fn put_kind(writer: &mut Writer, kind: &str) {
    writer.put("kind", &kind.to_owned());
}

/// Reads what [`put_kind`] wrote.
pub(super) fn read_kind(reader: &mut PairReader<'_>) -> Result<String, DecodeError> {
    Slot::read("kind", reader)
}

/// A record as a value inside another record.
///
/// A macro, because a blanket implementation would overlap with those of the plain values.
macro_rules! nested {
    ($($type:ty)*) => {$(
        impl $crate::launch::pairs::Value for $type {
            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&$crate::launch::pairs::body(self));
            }
            fn take(bytes: &[u8]) -> Option<Self> {
                let mut reader = $crate::launch::pairs::PairReader::new(bytes).ok()?;
                <$type as $crate::launch::pairs::Record>::read_pairs(&mut reader).ok()
            }
        }
    )*};
}
pub(super) use nested;

/// The pairs of a record without magic and version.
pub(super) fn body<R: Record>(record: &R) -> Vec<u8> {
    let mut writer = Writer { out: Vec::new() };
    record.write_pairs(&mut writer);
    writer.out
}

/// Implements [`Record`] for a struct from the list of its fields, so that writing and reading
/// cannot disagree. The key is the field's name.
macro_rules! record {
    ($type:ident { $($field:ident),* $(,)? }) => {
        record!($type { $($field),* } where |_record| $crate::launch::pairs::FIRST_VERSION);
    };
    ($type:ident { $($field:ident),* $(,)? } where |$record:ident| $version:expr) => {
        impl $crate::launch::pairs::Record for $type {
            fn version(&self) -> u8 {
                let $record = self;
                $version
            }
            fn write_pairs(&self, writer: &mut $crate::launch::pairs::Writer) {
                let $type { $($field),* } = self;
                $($crate::launch::pairs::Slot::write($field, stringify!($field), writer);)*
            }
            fn read_pairs(
                reader: &mut $crate::launch::pairs::PairReader<'_>,
            ) -> Result<Self, $crate::launch::pairs::DecodeError> {
                $(let $field = $crate::launch::pairs::Slot::read(stringify!($field), reader)?;)*
                Ok($type { $($field),* })
            }
        }
        $crate::launch::pairs::nested!($type);
    };
}
pub(super) use record;

/// Implements [`Value`] for an enum without fields by one word for each variant.
macro_rules! words {
    ($type:ident { $($variant:ident = $word:literal),* $(,)? }) => {
        impl $type {
            /// Every variant, in the order of declaration.
            pub const ALL: &[$type] = &[$($type::$variant),*];

            /// The word for it in documents, logs and messages.
            pub fn as_str(self) -> &'static str {
                match self { $($type::$variant => $word),* }
            }
        }

        impl $crate::launch::pairs::Value for $type {
            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(self.as_str().as_bytes());
            }
            fn take(bytes: &[u8]) -> Option<Self> {
                Self::ALL.iter().copied().find(|variant| variant.as_str().as_bytes() == bytes)
            }
        }
    };
}
pub(super) use words;
