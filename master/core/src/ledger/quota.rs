//! What is counted for resource quotas: scopes, the owners whose use they add up, and the sums
//! (ALGORITHMS.md section 15). What a rule leaves for a job is said by
//! [`matching::quota`](crate::matching::quota).

pub(crate) mod scope;
mod usage;

pub use scope::{CountedScope, JobOwner, QuotaLimits, Scope};
pub use usage::QuotaUsage;
