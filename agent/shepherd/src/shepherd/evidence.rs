//! Which limit ended a task, and how sure that is (ARCHITECTURE.md "On a host").
//!
//! A job that fails for another reason under a limit is not blamed on it: without a signal of the kernel or a peak near the
//! bound there is no hit at all.

use super::sampler::Peaks;
use proto::launch::{Bound, Cause, Evidence, LaunchDocument, LimitHit, ProcessLimit, Resource, TaskUsage};

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
            Some(LimitHit { evidence: hit.evidence.min_likely(), ..hit })
        }
        Cause::Exited(0) | Cause::FailedToStart(_) | Cause::ShepherdDied => None,
        Cause::Exited(_) => memory_near(facts),
    }
}

fn by_signal(facts: &Facts<'_>, signal: i32) -> Option<LimitHit> {
    match signal {
        libc::SIGXCPU => facts.soft.cloned().or_else(|| cpu(facts, "s_cpu", |limit| limit.soft, false)),
        libc::SIGKILL => cpu(facts, "h_cpu", |limit| limit.hard, true),
        libc::SIGXFSZ => {
            let limit = find(facts, Resource::FileSize)?;
            let name = if limit.soft == limit.hard { "h_fsize" } else { "s_fsize" };
            finite(limit.soft).map(|bound| hit(name, bound, bound, Evidence::Certain))
        }
        libc::SIGSEGV | libc::SIGABRT | libc::SIGBUS => memory_near(facts).or_else(|| unseen_stack(facts, signal)),
        _ => memory_near(facts),
    }
}

/// The kernel's clock of a CPU limit and the one of rusage differ by ticks.
const CPU_SLACK_MS: u64 = 100;

/// A CPU limit of each process. SIGXCPU is the kernel's own word; SIGKILL has other causes too, so the time must have been
/// used.
fn cpu(facts: &Facts<'_>, name: &str, bound: fn(&ProcessLimit) -> Bound, needs_proof: bool) -> Option<LimitHit> {
    let limit = find(facts, Resource::Cpu)?;
    let bound = finite(bound(limit))?;
    let used_ms = facts.main_cpu_ms + CPU_SLACK_MS;
    let bound_ms = bound.saturating_mul(1000);
    let evidence = if !needs_proof || used_ms >= bound_ms {
        Evidence::Certain
    } else if used_ms >= bound_ms / 4 * 3 {
        // A kernel that counts whole ticks may have seen much more than was used.
        Evidence::Likely
    } else {
        return None;
    };
    let name = if limit.soft == limit.hard { "h_cpu" } else { name };
    Some(hit(name, bound, used_ms / 1000, evidence))
}

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
        (None, None) => ("memory", 0),
    };
    hit(name, bound, facts.usage.maxrss_bytes.max(bound), Evidence::Certain)
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
