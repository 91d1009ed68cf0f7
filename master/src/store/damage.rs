//! Bytes of the database that do not hold what was written, and files that are not a database of
//! this program.

use super::SCHEMA_VERSION;
use data_encoding::HEXLOWER;
use lz4_flex::block::DecompressError;

/// A row of the database is damaged. The text completes "is damaged:".
#[derive(Debug, thiserror::Error)]
pub enum RowDamage {
    /// A compressed row ends before its content begins.
    #[error("it is cut off")]
    CutOff,
    /// A compressed row says that it holds more bytes than any compression gives.
    #[error("it cannot hold {0} bytes")]
    TooLong(usize),
    /// The compressed bytes are damaged.
    #[error(transparent)]
    Packing(#[from] DecompressError),
    /// A compressed row holds another number of bytes than it says.
    #[error("it holds {got} bytes, not {expected}")]
    OtherLength {
        /// The bytes that it holds.
        got: usize,
        /// The bytes that it says.
        expected: usize,
    },
    /// The MessagePack is damaged, or has another form.
    #[error(transparent)]
    Decoding(#[from] rmp_serde::decode::Error),
    /// A script has another checksum than its name.
    #[error("its bytes are not those of its checksum")]
    OtherChecksum,
    /// An event is of another kind than its row says.
    #[error("its body is of another kind")]
    OtherKind,
    /// The accounting record of an event is not in its own table.
    #[error("its accounting record is missing")]
    NoAccountingRecord,
    /// The id of a request has another length.
    #[error("its request id is {}, which are not 16 bytes", HEXLOWER.encode(.0))]
    RequestId(Vec<u8>),
}

/// A file is not a database that this version can use.
#[derive(Debug, thiserror::Error)]
pub enum ForeignFile {
    /// Another program has made it.
    #[error("its header is another program's")]
    OtherProgram,
    /// Its tables are of a version that this one does not know.
    #[error("its tables are of version {0}, ours of version {SCHEMA_VERSION}")]
    OtherVersion(i32),
}
