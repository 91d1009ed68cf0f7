//! Which cores a task gets.
//!
//! The contract of [`choose`]: it is a function of its arguments alone. The result marks threads
//! that the argument has not marked, exactly as many as were asked for, and by whole cores. If the
//! request cannot be met as a whole, the result says why, and nothing is chosen.

use super::request::{BindingStrategy, CoreAmount};
use super::topology::{CorePlace, Topology, count};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Why a task is not bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BindingObstacle {
    /// The host reports no topology.
    NoTopology,
    /// The agent of the host is of a version that binds no tasks.
    OldAgent,
    /// `ENABLE_BINDING` of `execd_params` is false.
    Disabled,
    /// Fewer cores are free than are wanted.
    TooFew {
        /// The number of cores wanted.
        wanted: u32,
        /// The number of cores of which no thread is in use.
        free: u32,
    },
    /// No first core leads to cores that are all free.
    NoStride {
        /// The number of cores wanted.
        wanted: u32,
        /// The distance from one to the next.
        step: u32,
    },
    /// The host has no such core.
    Missing(CorePlace),
    /// The cores end in front of the last one wanted.
    PastEnd {
        /// The first core wanted.
        first: CorePlace,
        /// The number of cores wanted.
        wanted: u32,
    },
    /// Another task has the core.
    InUse(CorePlace),
    /// It asks for no cores.
    Nothing,
}

impl fmt::Display for BindingObstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BindingObstacle::NoTopology => f.write_str("the host reports no topology"),
            BindingObstacle::OldAgent => f.write_str("the agent of the host is of an older version"),
            BindingObstacle::Disabled => f.write_str("ENABLE_BINDING is false in execd_params"),
            BindingObstacle::TooFew { wanted, free } => {
                write!(f, "it asks for {wanted} free cores, and the host has {free}")
            }
            BindingObstacle::NoStride { wanted, step } => {
                write!(f, "no {wanted} free cores are {step} apart from one another")
            }
            BindingObstacle::Missing(place) => write!(f, "the host has no core {place}"),
            BindingObstacle::PastEnd { first, wanted } => {
                write!(f, "the host has fewer than {wanted} cores from core {first} on")
            }
            BindingObstacle::InUse(place) => write!(f, "core {place} is in use by another task"),
            BindingObstacle::Nothing => f.write_str("it asks for no cores"),
        }
    }
}

/// The cores that a task gets on a host, as marks.
///
/// `host` has the cores in use marked. `slots` is the number of slots that the task has there, for
/// the amount `slots`.
///
/// # Errors
/// The first reason for which the request cannot be met.
pub fn choose(host: &Topology, strategy: &BindingStrategy, slots: u32) -> Result<Topology, BindingObstacle> {
    let positions = match strategy {
        BindingStrategy::Linear { amount, first } => {
            let wanted = match *amount {
                CoreAmount::Slots => slots.max(1),
                CoreAmount::Cores(cores) => cores,
            };
            match first {
                Some(first) => stride(host, *first, wanted, 1)?,
                None => linear(host, wanted)?,
            }
        }
        BindingStrategy::Striding { amount, step, first } => match first {
            Some(first) => stride(host, *first, *amount, *step)?,
            None => first_stride(host, *amount, *step)?,
        },
        BindingStrategy::Explicit(places) => places
            .iter()
            .map(|place| free_position(host, *place))
            .collect::<Result<_, _>>()?,
    };
    if positions.is_empty() {
        return Err(BindingObstacle::Nothing);
    }
    let mut chosen = host.unmarked();
    for position in positions {
        chosen.mark(position, host.cores()[position].all_threads());
    }
    Ok(chosen)
}

/// The cores of sockets that are wholly free come first, in their order; then those of the sockets
/// with the most free cores.
fn linear(host: &Topology, wanted: u32) -> Result<Vec<usize>, BindingObstacle> {
    let free = host.free_cores();
    if wanted > free {
        return Err(BindingObstacle::TooFew { wanted, free });
    }
    let mut sockets: Vec<Vec<usize>> = vec![Vec::new(); host.sockets() as usize];
    let mut is_used = vec![false; sockets.len()];
    for (position, core) in host.cores().iter().enumerate() {
        let socket = core.place.socket as usize;
        is_used[socket] |= !core.is_free();
        if core.is_free() {
            sockets[socket].push(position);
        }
    }
    let mut order: Vec<usize> = (0..sockets.len()).collect();
    order.sort_by_key(|socket| match is_used[*socket] {
        false => (false, 0),
        true => (true, usize::MAX - sockets[*socket].len()),
    });
    let in_order = order.into_iter().flat_map(|socket| sockets[socket].iter().copied());
    Ok(in_order.take(wanted as usize).collect())
}

/// The cores from a first one on, `step` apart, over the ends of sockets.
fn stride(host: &Topology, first: CorePlace, wanted: u32, step: u32) -> Result<Vec<usize>, BindingObstacle> {
    let start = host.position(first).ok_or(BindingObstacle::Missing(first))?;
    let positions: Vec<usize> = positions(start, wanted, step, host.cores().len()).collect();
    if count(positions.iter()) < wanted {
        return Err(BindingObstacle::PastEnd { first, wanted });
    }
    match positions.iter().find(|position| !host.cores()[**position].is_free()) {
        Some(position) => Err(BindingObstacle::InUse(host.cores()[*position].place)),
        None => Ok(positions),
    }
}

/// The cores of the first stride that is free.
fn first_stride(host: &Topology, wanted: u32, step: u32) -> Result<Vec<usize>, BindingObstacle> {
    let cores = host.cores();
    let free = host.free_cores();
    if wanted > free {
        return Err(BindingObstacle::TooFew { wanted, free });
    }
    let from = |start| positions(start, wanted, step, cores.len());
    let is_fit = |start: &usize| count(from(*start).take_while(|position| cores[*position].is_free())) == wanted;
    let start = (0..cores.len()).find(is_fit);
    let start = start.ok_or(BindingObstacle::NoStride { wanted, step })?;
    Ok(from(start).collect())
}

/// The positions of a stride that exist. A step of 0 leads nowhere, as in Grid Engine 8.1.9.
fn positions(start: usize, wanted: u32, step: u32, cores: usize) -> impl Iterator<Item = usize> {
    let end = if step == 0 { start } else { cores };
    (start..end).step_by(step.max(1) as usize).take(wanted as usize)
}

fn free_position(host: &Topology, place: CorePlace) -> Result<usize, BindingObstacle> {
    let position = host.position(place).ok_or(BindingObstacle::Missing(place))?;
    match host.cores()[position].is_free() {
        true => Ok(position),
        false => Err(BindingObstacle::InUse(place)),
    }
}
