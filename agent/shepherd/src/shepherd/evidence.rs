//! Which limit ended a task, and how sure that is (ARCHITECTURE.md "On a host").
//!
//! A job that fails for another reason under a limit is not blamed on it: without a signal of the
//! kernel or a peak near the bound there is no hit at all.

use super::control::{MemoryLimit, TaskControl};
use super::sampler::Peaks;
use crate::cgroup::{GroupKills, InheritedCgroup};
use proto::launch::{
    BoundValue, EndCause, HostEvidence, HostLimitHit, LaunchDocument, ProcessLimit, Resource, TaskUsage,
};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, MetadataExt};

/// What is known when the main process has ended.
pub struct EndFacts<'a> {
    /// What was asked for.
    pub document: &'a LaunchDocument,
    /// How the main process ended.
    pub cause: &'a EndCause,
    /// What the task used.
    pub usage: &'a TaskUsage,
    /// CPU milliseconds of the main process and what it waited for.
    pub main_cpu_ms: u64,
    /// The largest values of one process.
    pub peaks: Peaks,
    /// A soft limit of the whole task at which SIGXCPU was sent.
    pub soft: Option<&'a HostLimitHit>,
    /// The task's own control group.
    pub group: &'a GroupFacts,
    /// Such processes of the group around the task, while it ran.
    pub around: Option<&'a InheritedCgroup>,
}

/// The facts about the control group of a task, before its end removes it. All are 0 for a task
/// without one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupFacts {
    /// Processes that the kernel killed for want of memory.
    pub oom_kills: u64,
    /// The limit of memory, if the group came to it.
    pub reached: Option<MemoryLimit>,
    /// The most memory that the group had.
    pub peak_bytes: Option<u64>,
    /// How often a process or thread could not be made.
    pub refused_processes: u64,
}

impl GroupFacts {
    /// The facts now.
    pub fn of_control(control: &TaskControl) -> Self {
        let Some(group) = control.group() else {
            return GroupFacts::default();
        };
        GroupFacts {
            oom_kills: group.oom_kills(),
            reached: control.hard_memory().filter(|_| group.has_hit_its_memory()),
            peak_bytes: group.memory_peak(),
            refused_processes: group.refused_processes(),
        }
    }
}

/// The limit behind the end of a task that the shepherd did not end itself.
pub fn judge(facts: &EndFacts<'_>) -> Option<HostLimitHit> {
    if facts.group.oom_kills > 0 {
        return Some(out_of_memory(facts));
    }
    by_cause(facts).or_else(|| refused_process(facts))
}

/// A job that failed after a process or thread could not be made for it.
fn refused_process(facts: &EndFacts<'_>) -> Option<HostLimitHit> {
    let is_well = *facts.cause == EndCause::Exited(0) || facts.group.refused_processes == 0;
    let bound = facts.document.task_limits.h_maxproc.filter(|_| !is_well)?;
    Some(hit("h_maxproc", bound, bound, HostEvidence::Likely))
}

fn by_cause(facts: &EndFacts<'_>) -> Option<HostLimitHit> {
    match facts.cause {
        EndCause::Signalled { signal, .. } => by_signal(facts, *signal),
        // A shell reports the signal of its child as 128 + signal; a program may return that number
        // by itself.
        EndCause::Exited(code) if *code > 128 => {
            let hit = by_signal(facts, i32::from(*code) - 128)?;
            // Only a limit of the processor is proved by what was used, and only if that was all of
            // it.
            let is_proved = hit.limit == "h_cpu" && missing_ms(facts.main_cpu_ms, hit.bound) <= RESOLUTION_MS;
            let evidence = if is_proved {
                hit.evidence
            } else {
                hit.evidence.min_likely()
            };
            Some(HostLimitHit { evidence, ..hit })
        }
        EndCause::Exited(0) | EndCause::FailedToStart(_) | EndCause::ShepherdDied => None,
        EndCause::Exited(_) => memory_near(facts),
    }
}

fn by_signal(facts: &EndFacts<'_>, signal: i32) -> Option<HostLimitHit> {
    match signal {
        libc::SIGXCPU => facts
            .soft
            .cloned()
            .or_else(|| cpu(facts, "s_cpu", |limit| limit.soft, false)),
        libc::SIGKILL => by_kill(facts),
        libc::SIGXFSZ => {
            let limit = find(facts, Resource::FileSize)?;
            let name = if limit.soft == limit.hard { "h_fsize" } else { "s_fsize" };
            finite(limit.soft).map(|bound| hit(name, bound, bound, HostEvidence::Certain))
        }
        libc::SIGSEGV | libc::SIGABRT | libc::SIGBUS => memory_near(facts).or_else(|| unseen_stack(facts, signal)),
        _ => memory_near(facts),
    }
}

/// SIGKILL has many senders. One that the kernel counted for want of memory explains it better than
/// a part of the processor time.
fn by_kill(facts: &EndFacts<'_>) -> Option<HostLimitHit> {
    let by_cpu = cpu(facts, "h_cpu", |limit| limit.hard, true);
    if by_cpu
        .as_ref()
        .is_some_and(|hit| missing_ms(facts.main_cpu_ms, hit.bound) <= TICKS_MS)
    {
        return by_cpu;
    }
    by_group_around(facts).or(by_cpu)
}

/// A CPU limit of each process. SIGXCPU is the kernel's own word; SIGKILL has other causes too, so
/// it counts only as far as CPU time was used.
fn cpu(
    facts: &EndFacts<'_>,
    name: &str,
    bound: fn(&ProcessLimit) -> BoundValue,
    needs_proof: bool,
) -> Option<HostLimitHit> {
    let limit = find(facts, Resource::Cpu)?;
    let bound = finite(bound(limit))?;
    let evidence = if needs_proof {
        proof_of_use(facts.main_cpu_ms, bound)?
    } else {
        HostEvidence::Certain
    };
    let name = if limit.soft == limit.hard { "h_cpu" } else { name };
    let used_s = facts.main_cpu_ms.saturating_add(500) / 1000;
    Some(hit(name, bound, used_s, evidence))
}

/// The clock of the kernel's CPU limit and the one of getrusage(2) differ by ticks.
const TICKS_MS: u64 = 100;

/// A CPU limit is a number of whole seconds.
const RESOLUTION_MS: u64 = 1000;

/// The milliseconds that a process had left of a limit of CPU seconds.
fn missing_ms(used_ms: u64, bound_s: u64) -> u64 {
    bound_s.saturating_mul(1000).saturating_sub(used_ms)
}

/// Returns how sure a SIGKILL came from a limit of CPU seconds.
///
/// The kernel counts whole ticks, and on a loaded host it charges a process for more than it used.
/// So the limit is certain from a tenth, but at least a second, below it. From half of it the limit
/// is likely.
fn proof_of_use(used_ms: u64, bound_s: u64) -> Option<HostEvidence> {
    let bound_ms = bound_s.saturating_mul(1000);
    let half_ms = bound_ms / 2;
    let certain_ms = bound_ms.saturating_sub((bound_ms / 10).max(RESOLUTION_MS)).max(half_ms);
    match used_ms {
        used if used >= certain_ms => Some(HostEvidence::Certain),
        used if used >= half_ms => Some(HostEvidence::Likely),
        _ => None,
    }
}

/// The kernel killed a process for want of memory in the group that the task shares with others of
/// its host.
fn by_group_around(facts: &EndFacts<'_>) -> Option<HostLimitHit> {
    let GroupKills { count, bound } = facts.around?.kills();
    let reached = facts.usage.maxrss_bytes;
    (count > 0).then(|| hit(GROUP_MEMORY, bound.unwrap_or(0), reached, HostEvidence::Likely))
}

/// The name of a memory limit that is the host's and no attribute.
const GROUP_MEMORY: &str = "memory of the host's group";

/// Limits at which an allocation fails: likely, when the peak came within a tenth of the bound.
fn memory_near(facts: &EndFacts<'_>) -> Option<HostLimitHit> {
    let seen = [
        ("vmem", Resource::AddressSpace, facts.peaks.address_space),
        ("data", Resource::Data, facts.peaks.data),
        ("stack", Resource::Stack, facts.peaks.stack),
    ];
    seen.into_iter().find_map(|(name, resource, peak)| {
        let limit = find(facts, resource)?;
        let bound = finite(limit.soft)?;
        let near = peak >= bound - bound / 10;
        near.then(|| hit(&prefixed(limit, name), bound, peak, HostEvidence::Likely))
    })
}

/// A stack overflow is a SIGSEGV like any other; between two samples its size is not seen.
fn unseen_stack(facts: &EndFacts<'_>, signal: i32) -> Option<HostLimitHit> {
    let limit = find(facts, Resource::Stack).filter(|_| signal == libc::SIGSEGV)?;
    let bound = finite(limit.soft)?;
    Some(hit(
        &prefixed(limit, "stack"),
        bound,
        facts.peaks.stack,
        HostEvidence::Unknown,
    ))
}

fn out_of_memory(facts: &EndFacts<'_>) -> HostLimitHit {
    if let Some(MemoryLimit { name, bytes }) = facts.group.reached {
        let peak = facts.group.peak_bytes.unwrap_or(bytes);
        return hit(name, bytes, peak, HostEvidence::Certain);
    }
    // The kernel chose a process of this task because a group around it, or the host, had no
    // memory.
    let bound = facts.around.and_then(|around| around.kills().bound).unwrap_or(0);
    hit(GROUP_MEMORY, bound, facts.usage.maxrss_bytes, HostEvidence::Likely)
}

/// The memory limit that an allocation of a failed job ran into, if the job itself says that memory
/// was missing. A limit is not blamed if the job was never seen to use a quarter of it.
pub fn refused_memory(document: &LaunchDocument, peaks: Peaks) -> Option<HostLimitHit> {
    let seen = [
        ("vmem", Resource::AddressSpace, peaks.address_space),
        ("data", Resource::Data, peaks.data),
    ];
    seen.into_iter().find_map(|(name, resource, peak)| {
        let limit = document.limits.iter().find(|limit| limit.resource == resource)?;
        let bound = finite(limit.soft)?;
        may_have_refused(bound, peak).then(|| hit(&prefixed(limit, name), bound, peak, HostEvidence::Likely))
    })
}

/// Whether an allocation may have failed at a bound. A program that ends before its first sample
/// has a peak of 0.
fn may_have_refused(bound: u64, peak: u64) -> bool {
    peak == 0 || peak >= bound / 4
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

/// Words in a line about the memory of a device, which no limit of ours concerns.
const OTHER_MEMORY: [&str; 5] = ["cuda", "gpu", "hip out of", "tensor", "device"];

/// The most bytes at the end of a file that are looked through.
const LOOKED_THROUGH: u64 = 64 << 10;

/// The length of a plain file; `None` for anything else.
pub fn length_of_file(stream: &OwnedFd) -> Option<u64> {
    let found = stream
        .try_clone()
        .map(File::from)
        .and_then(|file| file.metadata())
        .ok()?;
    found.is_file().then_some(found.size())
}

/// Whether a program wrote to a file, behind its first `from` bytes, that memory was missing.
pub fn says_memory_is_missing(file: &File, from: u64) -> bool {
    let end = file
        .metadata()
        .map_or(0, |found| if found.is_file() { found.size() } else { 0 });
    if end <= from {
        return false;
    }
    let start = from.max(end.saturating_sub(LOOKED_THROUGH));
    let mut bytes = vec![0; usize::try_from(end - start).unwrap_or(0)];
    let count = file.read_at(&mut bytes, start).unwrap_or(0);
    String::from_utf8_lossy(&bytes[..count])
        .to_lowercase()
        .lines()
        .any(is_about_memory)
}

/// Whether a line in small letters says that memory of the host was missing.
fn is_about_memory(line: &str) -> bool {
    let has = |words: &[&str]| words.iter().any(|words| line.contains(words));
    has(&MISSING_MEMORY) && !has(&OTHER_MEMORY)
}

fn prefixed(limit: &ProcessLimit, name: &str) -> String {
    let prefix = if limit.soft == limit.hard { 'h' } else { 's' };
    format!("{prefix}_{name}")
}

fn find<'a>(facts: &EndFacts<'a>, resource: Resource) -> Option<&'a ProcessLimit> {
    facts.document.limits.iter().find(|limit| limit.resource == resource)
}

fn finite(bound: BoundValue) -> Option<u64> {
    match bound {
        BoundValue::Finite(value) => Some(value),
        BoundValue::Infinity => None,
    }
}

/// A limit that was reached.
pub fn hit(limit: &str, bound: u64, reached: u64, evidence: HostEvidence) -> HostLimitHit {
    HostLimitHit {
        limit: limit.to_owned(),
        bound,
        reached,
        evidence,
    }
}

/// Weakens evidence that came second hand.
trait IndirectEvidence {
    fn min_likely(self) -> Self;
}

impl IndirectEvidence for HostEvidence {
    fn min_likely(self) -> Self {
        match self {
            HostEvidence::Certain | HostEvidence::Likely => HostEvidence::Likely,
            HostEvidence::Unknown => HostEvidence::Unknown,
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
            (
                "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\n",
                0,
                false,
            ),
            ("RuntimeError: HIP out of memory\n", 0, false),
            ("cannot allocate tensor of shape [4096]\n", 0, false),
            ("CUDA is ready\nError: cannot allocate vector of size 3.7 Gb\n", 0, true),
        ] {
            std::fs::write(&path, text).expect("written");
            let file = File::open(&path).expect("it is there");
            assert_eq!(says_memory_is_missing(&file, from), expected, "{text}");
        }
        std::fs::remove_file(&path).expect("cleaned");
        assert!(!says_memory_is_missing(&File::open("/dev/null").expect("there"), 0));
    }

    #[test]
    fn a_limit_of_the_processor_is_certain_only_near_its_end() {
        for (used_ms, bound_s, expected) in [
            (60_000, 100, Some(HostEvidence::Likely)),
            (89_999, 100, Some(HostEvidence::Likely)),
            (90_000, 100, Some(HostEvidence::Certain)),
            (49_999, 100, None),
            (18_000_000, 36_000, Some(HostEvidence::Likely)),
            (2_000, 3, Some(HostEvidence::Certain)),
            (1_600, 3, Some(HostEvidence::Likely)),
            (500, 1, Some(HostEvidence::Certain)),
            (499, 1, None),
        ] {
            assert_eq!(proof_of_use(used_ms, bound_s), expected, "{used_ms} of {bound_s}");
        }
        assert_eq!((missing_ms(2_950, 3), missing_ms(3_100, 3)), (50, 0));
    }

    #[test]
    fn a_memory_limit_far_from_what_was_seen_has_refused_nothing() {
        let gib = 1 << 30;
        for (bound, peak, expected) in [
            (500 * gib, 3 * gib, false),
            (4 * gib, gib, true),
            (4 * gib, gib - 1, false),
            (500 * gib, 0, true),
        ] {
            assert_eq!(may_have_refused(bound, peak), expected, "{peak} of {bound}");
        }
    }
}
