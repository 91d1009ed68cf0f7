//! Launcher, shepherd and sampler: the only code that runs as root for a job (ARCHITECTURE.md "On a
//! host").
//!
//! Single-threaded, without async, without network and without a third party's data formats. What
//! arrives is [`proto::launch`], from the agent's uid alone.

#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

pub mod account;
pub mod cgroup;
pub mod journal;
pub mod launcher;
pub mod log;
pub mod proc;
pub mod shepherd;
pub mod sys;
pub mod task_dir;
pub mod trusted;
