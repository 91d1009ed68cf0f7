//! What holds for every cluster and every job.
