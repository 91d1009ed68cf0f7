//! The numbers of SEMANTICS section 1.
