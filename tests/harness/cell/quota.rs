//! A quota on a file system for a single program: few kernels have one that a test could use, so
//! the calls that write are replaced.

use super::preload;
use std::path::{Path, PathBuf};
use std::process::Command;

/// While the file `GW_QUOTA_MARK` is there, no regular file in a directory `master` can be written
/// or get room.
const SOURCE: &str = "#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
static int is_beyond(int fd) {
  const char *mark = getenv(\"GW_QUOTA_MARK\");
  struct stat found;
  char name[64], path[4096];
  if (mark == NULL || access(mark, F_OK) != 0 || fstat(fd, &found) != 0 || !S_ISREG(found.st_mode)) return 0;
  snprintf(name, sizeof name, \"/proc/self/fd/%d\", fd);
  ssize_t length = readlink(name, path, sizeof path - 1);
  path[length < 0 ? 0 : length] = 0;
  return strstr(path, \"/master/\") != NULL && strstr(path, \"/run/\") == NULL;
}
#define REFUSE(fd) if (is_beyond(fd)) { errno = EDQUOT; return -1; }
ssize_t write(int fd, const void *from, size_t count) { REFUSE(fd) return syscall(SYS_write, fd, from, count); }
ssize_t pwrite(int fd, const void *from, size_t count, off_t at) { REFUSE(fd) return syscall(SYS_pwrite64, fd, from, count, at); }
ssize_t pwrite64(int fd, const void *from, size_t count, off64_t at) { REFUSE(fd) return syscall(SYS_pwrite64, fd, from, count, at); }
int posix_fallocate(int fd, off_t at, off_t count) { return is_beyond(fd) ? EDQUOT : syscall(SYS_fallocate, fd, 0, at, count) == 0 ? 0 : errno; }
int posix_fallocate64(int fd, off64_t at, off64_t count) { return posix_fallocate(fd, at, count); }
";

/// A library that ends the quota of programs that load it first, while a mark is there.
#[derive(Debug)]
pub struct Quota {
    library: PathBuf,
    mark: PathBuf,
}

impl Quota {
    /// Whether one can be made here.
    pub fn can_be_made() -> bool {
        preload::can_be_built()
    }

    /// Builds the library in `dir`, which the programs must be able to read.
    ///
    /// # Panics
    /// If the compiler refuses it.
    pub fn new(dir: &Path) -> Self {
        Self {
            library: preload::build(dir, "quota", SOURCE),
            mark: dir.join("quota-is-used-up"),
        }
    }

    /// Puts the programs that a command starts under the quota.
    pub fn limit(&self, command: &mut Command) {
        command
            .env("LD_PRELOAD", &self.library)
            .env("GW_QUOTA_MARK", &self.mark);
    }

    /// Uses the quota up, or gives it room again.
    ///
    /// # Panics
    /// If the mark cannot be made or removed.
    pub fn set_used_up(&self, is_used_up: bool) {
        let done = if is_used_up {
            std::fs::write(&self.mark, "")
        } else {
            std::fs::remove_file(&self.mark)
        };
        done.unwrap_or_else(|error| panic!("{}: {error}", self.mark.display()));
    }
}
