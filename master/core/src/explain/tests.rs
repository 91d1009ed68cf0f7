//! Tests of the words.
