//! What `qsub`, `qalter` and `qresub` share: the options that describe a job, where they come from,
//! and what they mean.

pub mod aliases;
pub mod description;
pub mod empty;
pub mod environment;
pub mod options;
pub mod request;
pub mod script;
pub mod selection;
pub mod sources;
pub mod verifiers;
