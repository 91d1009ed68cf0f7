//! The scheduler: a model of its own, kept current by events and observations, from which passes plan orders (DESIGN section 6).
pub mod assign;
pub mod order;
pub mod reason;
