//! Messages between the threads of the master, and the answers to them.
//!
//! Each thread has one kind of input: [`DriverInput`], [`ReaderInput`], [`SchedulerInput`]. The
//! reader also takes questions and subscriptions, each from a queue of its own. The messages stand
//! here, and not beside their receivers, so that threads that send to each other do not import each
//! other.

mod stream;

pub use stream::{NewsItem, Stream, StreamFilter, StreamPrelude, SubscribeRequest};

use crate::model::{Monitoring, SchedulingUpdate};
use crate::query::{AnswerPart, Walk};
use crate::reserve::DiskRoom;
use master_core::effect::{Input, Placer, ReplyTo};
use master_core::event::Record;
use master_core::observe::Observation;
use proto::diagnostic::Diagnostic;
use proto::id::HostName;
use proto::job::Owner;
use proto::wire::client::{Query, Reply};
use proto::wire::stream::Order;
use std::sync::Arc;
use tokio::sync::oneshot;

/// An input of the core thread.
#[derive(Debug)]
pub enum DriverInput {
    /// An input of the core.
    Core(Input),
    /// An answer that the shell made itself, to be given behind everything that came before it.
    Deliver(ReplyTo, Box<Reply>),
    /// A scheduling pass is over. Its orders came before.
    Planned,
    /// The end, after all earlier inputs.
    Stop,
}

/// An input of the reader thread. The driver sends them in the order in which they are true; the
/// scheduler thread sends [`ReaderInput::Scheduling`], in no order with the others.
#[derive(Debug)]
pub enum ReaderInput {
    /// Events that are durable.
    Events(Vec<Arc<Record>>),
    /// A soft fact.
    Observed(Observation),
    /// An answer to a change. The reader gives it once it has folded the events before it.
    Deliver(ReplyTo, Box<Reply>),
    /// Reasons and priorities of a scheduling pass.
    Scheduling(Box<SchedulingUpdate>),
    /// A user wants a scheduling pass. Event clients hear of it, because they may be schedulers.
    PassWanted,
    /// Event clients are to be cut off.
    CutOff {
        /// Takes the answer.
        to: ReplyTo,
        /// The clients. An empty list means all.
        ids: Vec<u32>,
        /// Whether the caller may cut off clients of other users.
        is_manager: bool,
        /// The caller, as `user@host`.
        by: String,
    },
    /// The end: a last snapshot.
    Stop,
}

/// An input of the scheduler thread. The driver sends them in the order in which they are true.
#[derive(Debug)]
pub enum SchedulerInput {
    /// Events that are durable.
    Events(Vec<Arc<Record>>),
    /// A soft fact.
    Observed(Observation),
    /// An order that the core refused.
    Refused {
        /// The order.
        order: Box<Order>,
        /// The reason.
        why: Diagnostic,
    },
    /// A pass is wanted now.
    Trigger(Monitoring),
    /// Other programs place jobs from now on, or this scheduler does again.
    Placing(Placer),
    /// Whether the disk has room for starts.
    Room(DiskRoom),
    /// The end.
    Stop,
}

/// A question, and where its answer goes.
pub struct Question {
    /// The question.
    pub query: Query,
    /// The host of the command that asks. `localhost` in the question means this host.
    pub from: HostName,
    /// The user who asks. `None` means the master itself.
    pub asker: Option<Owner>,
    /// Takes the answer.
    pub answer: Answer,
}

/// A request for the next part of an answer.
pub struct MoreRequest {
    /// The rest of the answer.
    pub rest: Box<Walk>,
    /// Takes the next part.
    pub answer: Answer,
}

/// Takes an answer, or one part of it.
pub type Answer = oneshot::Sender<AnswerPart>;
