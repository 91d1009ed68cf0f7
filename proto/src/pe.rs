//! In the making.

/// The attributes in the order of `qconf -s…`.
pub const KEYS: &[&str] = &[];
