//! The script of a task as the agent hands it over: a memory file that nobody can change any more.

use super::rules::Refusal;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::stat::fstat;
use proto::launch::MAX_SCRIPT_BYTES;
use std::os::fd::OwnedFd;

/// The size of what came, if that is a sealed memory file of a bearable size. Anything else could
/// change while it is copied, have no end, or hold up its reader.
///
/// # Errors
/// What is wrong with it.
pub fn size(script: &OwnedFd) -> Result<u64, Refusal> {
    let wanted = SealFlag::F_SEAL_WRITE | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SHRINK;
    let seals = fcntl(script, FcntlArg::F_GET_SEALS).map(SealFlag::from_bits_truncate);
    if !seals.is_ok_and(|seals| seals.contains(wanted)) {
        return Err(Refusal::of_host("the script did not come as a sealed memory file"));
    }
    let size = fstat(script)
        .map_err(|errno: Errno| Refusal::of_host(format!("the script: {errno}")))?
        .st_size;
    if size.unsigned_abs() > MAX_SCRIPT_BYTES {
        return Err(Refusal::of_job(format!(
            "the script has {size} bytes; a launcher takes {MAX_SCRIPT_BYTES}"
        )));
    }
    Ok(size.unsigned_abs())
}
