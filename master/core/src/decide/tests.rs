//! Decisions, tested as a small language.
