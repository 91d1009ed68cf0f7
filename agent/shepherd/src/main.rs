//! Launcher, shepherd and sampler: the only code that runs as root for a job.

fn main() {}
