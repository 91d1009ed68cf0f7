//! Limits of a job's task on a host: which there are, and which values are in force there
//! (ALGORITHMS.md section 12).
//!
//! Everything here is arithmetic. Setting limits, watching usage and ending tasks is the business
//! of the shepherd and the sampler.

mod effective;
mod params;
#[cfg(test)]
mod tests;

pub use effective::{Grant, effective, together};

use crate::amount::{Amount, Type};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a limit bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum LimitKind {
    /// Seconds since the start, `h_rt`.
    Rt,
    /// Seconds of processor time, `h_cpu`.
    Cpu,
    /// Bytes of each file written, `h_fsize`.
    Fsize,
    /// Bytes of a process's data segment, `h_data`.
    Data,
    /// Bytes of a process's stack, `h_stack`.
    Stack,
    /// Bytes of a core file, `h_core`.
    Core,
    /// Bytes of resident memory, `h_rss`.
    Rss,
    /// Bytes of address space, `h_vmem`.
    Vmem,
    /// Open files, `H_DESCRIPTORS` of `execd_params`.
    Descriptors,
    /// Processes of the user, `H_MAXPROC` of `execd_params`.
    MaxProc,
    /// Bytes of locked memory, `H_MEMORYLOCKED` of `execd_params`.
    MemoryLocked,
    /// File locks, `H_LOCKS` of `execd_params`.
    Locks,
}

/// What `h_vmem` and `s_vmem` limit: `H_VMEM` of `execd_params`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VmemMeaning {
    /// Address space, as in 8.1.9.
    #[default]
    Address,
    /// Memory in use by all processes of the task together, kept by its control group. Address
    /// space is not limited.
    Memory,
}

/// Which of the two limits of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum BoundKind {
    /// A signal that a program may handle.
    Soft,
    /// The end.
    Hard,
}

impl BoundKind {
    /// Both.
    pub const ALL: [BoundKind; 2] = [BoundKind::Soft, BoundKind::Hard];
}

impl LimitKind {
    /// The kinds that are attributes, so that jobs may request them and queues configure them.
    pub const ATTRIBUTES: [LimitKind; 8] = [
        LimitKind::Rt,
        LimitKind::Cpu,
        LimitKind::Fsize,
        LimitKind::Data,
        LimitKind::Stack,
        LimitKind::Core,
        LimitKind::Rss,
        LimitKind::Vmem,
    ];
    /// The kinds that only `execd_params` sets.
    pub const PARAMS: [LimitKind; 4] = [
        LimitKind::Descriptors,
        LimitKind::MaxProc,
        LimitKind::MemoryLocked,
        LimitKind::Locks,
    ];

    /// The attribute, such as `h_vmem`, or the key of `execd_params`, such as `S_LOCKS`.
    pub fn name(self, bound: BoundKind) -> &'static str {
        let [soft, hard] = match self {
            LimitKind::Rt => ["s_rt", "h_rt"],
            LimitKind::Cpu => ["s_cpu", "h_cpu"],
            LimitKind::Fsize => ["s_fsize", "h_fsize"],
            LimitKind::Data => ["s_data", "h_data"],
            LimitKind::Stack => ["s_stack", "h_stack"],
            LimitKind::Core => ["s_core", "h_core"],
            LimitKind::Rss => ["s_rss", "h_rss"],
            LimitKind::Vmem => ["s_vmem", "h_vmem"],
            LimitKind::Descriptors => ["S_DESCRIPTORS", "H_DESCRIPTORS"],
            LimitKind::MaxProc => ["S_MAXPROC", "H_MAXPROC"],
            LimitKind::MemoryLocked => ["S_MEMORYLOCKED", "H_MEMORYLOCKED"],
            LimitKind::Locks => ["S_LOCKS", "H_LOCKS"],
        };
        match bound {
            BoundKind::Soft => soft,
            BoundKind::Hard => hard,
        }
    }

    /// The type of its values.
    pub fn value_type(self) -> Type {
        match self {
            LimitKind::Rt | LimitKind::Cpu => Type::Time,
            LimitKind::Fsize | LimitKind::Data | LimitKind::Stack | LimitKind::Core => Type::Memory,
            LimitKind::Rss | LimitKind::Vmem | LimitKind::MemoryLocked => Type::Memory,
            LimitKind::Descriptors | LimitKind::MaxProc | LimitKind::Locks => Type::Int,
        }
    }

    /// The resource of setrlimit(2) that carries it; none for run time, which a clock bounds.
    pub fn rlimit(self) -> Option<&'static str> {
        match self {
            LimitKind::Rt => None,
            LimitKind::Cpu => Some("RLIMIT_CPU"),
            LimitKind::Fsize => Some("RLIMIT_FSIZE"),
            LimitKind::Data => Some("RLIMIT_DATA"),
            LimitKind::Stack => Some("RLIMIT_STACK"),
            LimitKind::Core => Some("RLIMIT_CORE"),
            LimitKind::Rss => Some("RLIMIT_RSS"),
            LimitKind::Vmem => Some("RLIMIT_AS"),
            LimitKind::Descriptors => Some("RLIMIT_NOFILE"),
            LimitKind::MaxProc => Some("RLIMIT_NPROC"),
            LimitKind::MemoryLocked => Some("RLIMIT_MEMLOCK"),
            LimitKind::Locks => Some("RLIMIT_LOCKS"),
        }
    }

    /// Whether a value holds for one slot, so that a task with more slots on the host gets as many
    /// times that.
    pub fn is_per_slot(self) -> bool {
        match self {
            LimitKind::Cpu | LimitKind::Vmem | LimitKind::Data | LimitKind::Stack | LimitKind::Rss => true,
            LimitKind::Descriptors | LimitKind::MaxProc | LimitKind::MemoryLocked | LimitKind::Locks => true,
            LimitKind::Rt | LimitKind::Fsize | LimitKind::Core => false,
        }
    }

    /// The least value that is set, because below it not even a shell starts.
    pub fn floor(self) -> Amount {
        const KIB: i64 = 1 << 10;
        const MIB: i64 = 1 << 20;
        Amount::from_base(match self {
            LimitKind::Vmem | LimitKind::Data | LimitKind::Rss => 10 * MIB,
            LimitKind::Stack => MIB,
            LimitKind::Cpu => 2,
            LimitKind::Fsize => 15 * KIB,
            LimitKind::Descriptors => 100,
            LimitKind::MaxProc => 20,
            LimitKind::MemoryLocked => 4 * KIB,
            LimitKind::Locks => 2,
            LimitKind::Rt | LimitKind::Core => 0,
        })
    }

    /// The largest value that is set: 65,535 descriptors, no bound for the others.
    pub fn ceiling(self) -> Amount {
        if self == LimitKind::Descriptors {
            Amount::from_base(65_535)
        } else {
            Amount::INFINITY
        }
    }
}

/// The two limits of one kind; none leaves in force what is inherited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// The soft limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soft: Option<Amount>,
    /// The hard limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hard: Option<Amount>,
}

impl Bounds {
    /// One of the two.
    pub fn get(self, bound: BoundKind) -> Option<Amount> {
        match bound {
            BoundKind::Soft => self.soft,
            BoundKind::Hard => self.hard,
        }
    }

    /// Whether neither is set.
    pub fn is_empty(self) -> bool {
        self.soft.is_none() && self.hard.is_none()
    }
}

/// Limits by kind: what a queue configures, what `execd_params` says, or what is in force for a
/// task.
///
/// Kinds without a limit are not kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LimitSet(BTreeMap<LimitKind, Bounds>);

impl LimitSet {
    /// The two limits of a kind.
    pub fn get(&self, kind: LimitKind) -> Bounds {
        self.0.get(&kind).copied().unwrap_or_default()
    }

    /// Sets the two limits of a kind.
    pub fn set(&mut self, kind: LimitKind, bounds: Bounds) {
        if bounds.is_empty() {
            self.0.remove(&kind);
        } else {
            self.0.insert(kind, bounds);
        }
    }

    /// Sets one limit.
    pub fn set_bound(&mut self, kind: LimitKind, bound: BoundKind, amount: Amount) {
        let bounds = self.0.entry(kind).or_default();
        match bound {
            BoundKind::Soft => bounds.soft = Some(amount),
            BoundKind::Hard => bounds.hard = Some(amount),
        }
    }

    /// The kinds with a limit, in the order of [`LimitKind`].
    pub fn iter(&self) -> impl Iterator<Item = (LimitKind, Bounds)> + '_ {
        self.0.iter().map(|(kind, bounds)| (*kind, *bounds))
    }

    /// Whether there is no limit at all.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
