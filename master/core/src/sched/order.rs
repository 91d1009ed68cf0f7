//! In which order pending jobs are tried: the queue of buckets, urgency, and the numbers that
//! `qstat -urg` and `-pri` show (ALGORITHMS.md section 1).

pub(crate) mod heads;
pub(crate) mod numbers;
pub(crate) mod open_urgencies;
pub(crate) mod queue;
pub(crate) mod urgency;
