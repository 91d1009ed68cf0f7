//! Why a job waits, in words: for `qstat -j`, `-w` and `gridwright explain`.
//!
//! Text is made here and nowhere else; the numbers come from the scheduler's findings and from the
//! state. Nothing is decided here.

mod advice;
mod forever;
mod hints;
mod holders;
mod info;
mod instance;
mod job;
mod numbers;
mod order;
mod plain;
mod reservation;
#[cfg(test)]
mod tests;
mod words;

pub use advice::{Question, explain};
#[cfg(test)]
pub(crate) use forever::forever;
pub use forever::never_suits;
pub use info::{cluster_info, info_of_all, info_of_one, job_info, scheduling_info};
pub use instance::{state_letters, state_reasons};
pub use order::{PositionAnswer, PositionCount, place};
pub use reservation::{ReservationObstacle, vain_reservation};
pub use words::{sentence, sentence_of_overload};
