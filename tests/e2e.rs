//! Real cells with the built programs: `cargo build --workspace` comes before. `tests/long` runs the longer forms.

#![expect(clippy::unwrap_used, reason = "a test fails where something is not there")]

#[path = "e2e/life.rs"]
mod life;
