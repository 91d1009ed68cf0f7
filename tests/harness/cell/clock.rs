//! A wrong clock for single programs: the system's cannot be set for one of them, so the call that
//! reads it is replaced.

use super::preload;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Adds `GW_CLOCK_S` seconds to the time of day; the monotone clock stays right.
const SOURCE: &str = "#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec *now) {
  const char *shift = getenv(\"GW_CLOCK_S\");
  int done = syscall(SYS_clock_gettime, id, now);
  if (done == 0 && id == CLOCK_REALTIME && shift != NULL) now->tv_sec += atol(shift);
  return done;
}
";

/// A library that shifts the time of day of programs that load it first.
#[derive(Debug)]
pub struct Clock(PathBuf);

impl Clock {
    /// Whether one can be made here.
    pub fn can_be_shifted() -> bool {
        preload::can_be_built()
    }

    /// Builds the library in `dir`, which the programs must be able to read.
    ///
    /// # Panics
    /// If the compiler refuses it.
    pub fn new(dir: &Path) -> Self {
        Self(preload::build(dir, "clock", SOURCE))
    }

    /// Lets a command see a time of day that is `seconds` later.
    pub fn shift(&self, command: &mut Command, seconds: i64) {
        command
            .env("LD_PRELOAD", &self.0)
            .env("GW_CLOCK_S", seconds.to_string());
    }
}
