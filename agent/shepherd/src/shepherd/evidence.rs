//! Which limit ended a task, and how sure that is (ARCHITECTURE.md "On a host").
//!
//! A job that fails for another reason under a limit is not blamed on it: without a signal of the kernel or a peak near the
//! bound there is no hit at all.

use super::sampler::Peaks;
use crate::cgroup::{GroupAround, GroupKills};
use proto::launch::{Bound, Cause, Evidence, LaunchDocument, LimitHit, ProcessLimit, Resource, TaskUsage};
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};

/// What is known when the main process has ended.
pub struct Facts<'a> {
    /// What was asked for.
    pub document: &'a LaunchDocument,
    /// How the main process ended.
    pub cause: &'a Cause,
    /// What the task used.
    pub usage: &'a TaskUsage,
    /// CPU milliseconds of the main process and what it waited for.
    pub main_cpu_ms: u64,
    /// The largest values of one process.
    pub peaks: Peaks,
    /// A soft limit of the whole task at which SIGXCPU was sent.
    pub soft: Option<&'a LimitHit>,
    /// Processes of the task's own cgroup killed for want of memory.
    pub oom_kills: u64,
    /// Such processes of the group around the task, while it ran.
    pub around: Option<&'a GroupAround>,
}

/// The limit behind the end of a task that the shepherd did not end itself.
pub fn judge(facts: &Facts<'_>) -> Option<LimitHit> {
    if facts.oom_kills > 0 {
        return Some(out_of_memory(facts));
    }
    match facts.cause {
        Cause::Signalled { signal, .. } => by_signal(facts, *signal),
        // A shell reports the signal of its child as 128 + signal; a program may return that number by itself.
        Cause::Exited(code) if *code > 128 => {
            let hit = by_signal(facts, i32::from(*code) - 128)?;
            // Only a limit of the processor is proved by what was used.
            let evidence = if hit.limit == "h_cpu" { hit.evidence } else { hit.evidence.min_likely() };
            Some(LimitHit { evidence, ..hit })
        }
        Cause::Exited(0) | Cause::FailedToStart(_) | Cause::ShepherdDied => None,
        Cause::Exited(_) => memory_near(facts),
    }
}

fn by_signal(facts: &Facts<'_>, signal: i32) -> Option<LimitHit> {
    match signal {
        libc::SIGXCPU => facts.soft.cloned().or_else(|| cpu(facts, "s_cpu", |limit| limit.soft, false)),
        libc::SIGKILL => cpu(facts, "h_cpu", |limit| limit.hard, true).or_else(|| by_group_around(facts)),
        libc::SIGXFSZ => {
            let limit = find(facts, Resource::FileSize)?;
            let name = if limit.soft == limit.hard { "h_fsize" } else { "s_fsize" };
            finite(limit.soft).map(|bound| hit(name, bound, bound, Evidence::Certain))
        }
        libc::SIGSEGV | libc::SIGABRT | libc::SIGBUS => memory_near(facts).or_else(|| unseen_stack(facts, signal)),
        _ => memory_near(facts),
    }
}

/// A CPU limit of each process. SIGXCPU is the kernel's own word; SIGKILL has other causes too, so
/// it counts only if the process used CPU time. The kernel counts whole ticks, and on a loaded host
/// it charges a process for more than it used: half of the limit is proof enough.
fn cpu(facts: &Facts<'_>, name: &str, bound: fn(&ProcessLimit) -> Bound, needs_proof: bool) -> Option<LimitHit> {
    let limit = find(facts, Resource::Cpu)?;
    let bound = finite(bound(limit))?;
    if needs_proof && facts.main_cpu_ms < bound.saturating_mul(500) {
        return None;
    }
    let name = if limit.soft == limit.hard { "h_cpu" } else { name };
    let used_s = facts.main_cpu_ms.saturating_add(500) / 1000;
    Some(hit(name, bound, used_s, Evidence::Certain))
}

/// The kernel killed a process for want of memory in the group that the task shares with others of
/// its host.
fn by_group_around(facts: &Facts<'_>) -> Option<LimitHit> {
    let GroupKills { count, bound } = facts.around?.kills();
    let reached = facts.usage.maxrss_bytes;
    (count > 0).then(|| hit(GROUP_MEMORY, bound.unwrap_or(0), reached, Evidence::Likely))
}

/// The name of a memory limit that is the host's and no attribute.
const GROUP_MEMORY: &str = "memory of the host's group";

/// Limits at which an allocation fails: likely, when the peak came within a tenth of the bound.
fn memory_near(facts: &Facts<'_>) -> Option<LimitHit> {
    let seen = [
        ("vmem", Resource::AddressSpace, facts.peaks.address_space),
        ("data", Resource::Data, facts.peaks.data),
        ("stack", Resource::Stack, facts.peaks.stack),
    ];
    seen.into_iter().find_map(|(name, resource, peak)| {
        let limit = find(facts, resource)?;
        let bound = finite(limit.soft)?;
        let near = peak >= bound - bound / 10;
        near.then(|| hit(&prefixed(limit, name), bound, peak, Evidence::Likely))
    })
}

/// A stack overflow is a SIGSEGV like any other; between two samples its size is not seen.
fn unseen_stack(facts: &Facts<'_>, signal: i32) -> Option<LimitHit> {
    let limit = find(facts, Resource::Stack).filter(|_| signal == libc::SIGSEGV)?;
    let bound = finite(limit.soft)?;
    Some(hit(&prefixed(limit, "stack"), bound, facts.peaks.stack, Evidence::Unknown))
}

fn out_of_memory(facts: &Facts<'_>) -> LimitHit {
    let limits = &facts.document.task_limits;
    let (name, bound) = match (limits.h_rss_bytes, limits.h_vmem_bytes) {
        (Some(bytes), _) => ("h_rss", bytes),
        (None, Some(bytes)) => ("h_vmem", bytes),
        (None, None) => (GROUP_MEMORY, facts.around.and_then(|around| around.kills().bound).unwrap_or(0)),
    };
    hit(name, bound, facts.usage.maxrss_bytes.max(bound), Evidence::Certain)
}

/// The memory limit that an allocation of a failed job ran into, if the job itself says that memory
/// was missing.
pub fn refused_memory(document: &LaunchDocument, peaks: Peaks) -> Option<LimitHit> {
    let seen = [("vmem", Resource::AddressSpace, peaks.address_space), ("data", Resource::Data, peaks.data)];
    seen.into_iter().find_map(|(name, resource, peak)| {
        let limit = document.limits.iter().find(|limit| limit.resource == resource)?;
        Some(hit(&prefixed(limit, name), finite(limit.soft)?, peak, Evidence::Likely))
    })
}

/// Words by which languages and their libraries report that an allocation failed, in small letters.
const MISSING_MEMORY: [&str; 8] = [
    "memoryerror",
    "bad_alloc",
    "cannot allocate",
    "can't allocate",
    "outofmemory",
    "out of memory",
    "memory exhausted",
    "insufficient virtual memory",
];

/// The most bytes at the end of a file that are looked through.
const LOOKED_THROUGH: u64 = 64 << 10;

/// The length of a plain file; `None` for anything else.
pub fn length_of_file(stream: &OwnedFd) -> Option<u64> {
    let found = stream.try_clone().map(File::from).and_then(|file| file.metadata()).ok()?;
    found.is_file().then_some(found.size())
}

/// Whether a program wrote to a file, behind its first `from` bytes, that memory was missing.
pub fn says_memory_is_missing(stream: &OwnedFd, from: u64) -> bool {
    let Some(end) = length_of_file(stream).filter(|end| *end > from) else { return false };
    // The stream itself is open for writing alone.
    let Ok(file) = File::open(format!("/proc/self/fd/{}", stream.as_raw_fd())) else { return false };
    let start = from.max(end.saturating_sub(LOOKED_THROUGH));
    let mut bytes = vec![0; usize::try_from(end - start).unwrap_or(0)];
    let count = file.read_at(&mut bytes, start).unwrap_or(0);
    let text = String::from_utf8_lossy(&bytes[..count]).to_lowercase();
    MISSING_MEMORY.iter().any(|words| text.contains(words))
}

fn prefixed(limit: &ProcessLimit, name: &str) -> String {
    let prefix = if limit.soft == limit.hard { 'h' } else { 's' };
    format!("{prefix}_{name}")
}

fn find<'a>(facts: &Facts<'a>, resource: Resource) -> Option<&'a ProcessLimit> {
    facts.document.limits.iter().find(|limit| limit.resource == resource)
}

fn finite(bound: Bound) -> Option<u64> {
    match bound {
        Bound::Finite(value) => Some(value),
        Bound::Infinity => None,
    }
}

/// A limit that was reached.
pub fn hit(limit: &str, bound: u64, reached: u64, evidence: Evidence) -> LimitHit {
    LimitHit { limit: limit.to_owned(), bound, reached, evidence }
}

/// Weakens evidence that came second hand.
trait SecondHand {
    fn min_likely(self) -> Self;
}

impl SecondHand for Evidence {
    fn min_likely(self) -> Self {
        match self {
            Evidence::Certain | Evidence::Likely => Evidence::Likely,
            Evidence::Unknown => Evidence::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_behind_the_beginning_count() {
        let path = std::env::temp_dir().join(format!("gridwright-words-{}", std::process::id()));
        for (text, from, expected) in [
            ("MemoryError\n", 0, true),
            ("MemoryError\n", 12, false),
            ("std::bad_alloc\n", 0, true),
            ("fork: Cannot allocate memory\n", 0, true),
            ("no memory error here\n", 0, false),
            ("", 0, false),
        ] {
            std::fs::write(&path, text).expect("written");
            let stream = std::fs::OpenOptions::new().append(true).open(&path).expect("it is there");
            assert_eq!(says_memory_is_missing(&stream.into(), from), expected, "{text}");
        }
        std::fs::remove_file(&path).expect("cleaned");
        let nothing = std::fs::OpenOptions::new().write(true).open("/dev/null").expect("there");
        assert!(!says_memory_is_missing(&nothing.into(), 0));
    }
}
