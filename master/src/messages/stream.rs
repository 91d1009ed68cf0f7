//! A subscription to the event stream, and the stream that answers it.

use master_core::event::Record;
use master_core::observe::Observations;
use master_core::state::State;
use master_core::state::job::Job;
use proto::diagnostic::Diagnostic;
use proto::id::{EventSeq, HostName, JobNumber, SubmitSeq, UserName};
use proto::job::Owner;
use proto::wire::stream::{Change, Item, Subscription};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// A wish to read the event stream.
#[derive(Debug)]
pub struct SubscribeRequest {
    /// The part of the stream that is wanted.
    pub subscription: Subscription,
    /// The user.
    pub owner: Owner,
    /// The host that vouches for the user.
    pub host: HostName,
    /// Takes the stream, or the refusal.
    pub answer: oneshot::Sender<Result<Stream, Diagnostic>>,
}

/// One stream, for the thread that sends it to a client.
#[derive(Debug)]
pub struct Stream {
    /// The part before the news.
    pub beginning: StreamPrelude,
    /// Chooses the changes that the client wants.
    pub filter: StreamFilter,
    /// How long news are gathered before they are sent. Zero means not at all.
    pub every: Duration,
    /// The news.
    pub live: mpsc::Receiver<NewsItem>,
    /// Resolves when the client is cut off.
    pub cut: oneshot::Receiver<Diagnostic>,
}

/// Chooses the changes of a stream that a client wants.
#[derive(Debug, Default)]
pub struct StreamFilter {
    /// Kinds of changes. An empty list means all.
    kinds: Vec<String>,
    /// Owners of jobs. An empty list means all.
    owners: Vec<UserName>,
    /// The present jobs of these owners.
    jobs: BTreeSet<SubmitSeq>,
}

impl StreamFilter {
    /// A filter for a cell in this state.
    pub fn new(kinds: Vec<String>, owners: Vec<UserName>, state: &State) -> Self {
        let is_theirs = |job: &&Job| owners.contains(&job.spec.owner.user);
        let jobs = if owners.is_empty() {
            BTreeSet::new()
        } else {
            state.jobs.values().filter(is_theirs).map(|job| job.seq).collect()
        };
        Self { kinds, owners, jobs }
    }

    /// Whether the client wants a change. To be called once for each change, in their order: the
    /// filter follows which jobs there are.
    pub fn takes(&mut self, change: &Change) -> bool {
        let is_theirs = self.owners.is_empty() || self.is_of_owners(change);
        is_theirs && (self.kinds.is_empty() || self.kinds.iter().any(|kind| kind == change.kind()))
    }

    /// Whether the client names a kind.
    pub fn names(&self, kind: &str) -> bool {
        self.kinds.iter().any(|wanted| wanted == kind)
    }

    fn is_of_owners(&mut self, change: &Change) -> bool {
        #[allow(clippy::wildcard_enum_match_arm, reason = "a change knows which job it is about")]
        match change {
            Change::JobAdded { job } if self.owners.contains(&job.spec.owner.user) => {
                self.jobs.insert(job.seq);
                true
            }
            Change::JobFinished { job } => self.jobs.remove(job),
            Change::Complete {} => true,
            change => change.job().is_some_and(|job| self.jobs.contains(&job)),
        }
    }
}

/// The part of a stream before the news.
#[derive(Debug)]
pub enum StreamPrelude {
    /// Everything that is true.
    Full(Box<State>, Box<Observations>),
    /// Events of the log, and the soft facts.
    Log {
        /// The last event that the client has.
        after: EventSeq,
        /// The last event before the news.
        until: EventSeq,
        /// The soft facts.
        soft: Vec<Item>,
    },
    /// Nothing but the word that the stream has begun, for clients that name its kind.
    Nothing {
        /// The last event before the news.
        last: EventSeq,
    },
}

/// One piece of news.
#[derive(Clone, Debug)]
pub enum NewsItem {
    /// An event, and the number of the job that it is about.
    Event(Arc<Record>, Option<JobNumber>),
    /// A soft fact.
    Soft(Arc<Item>),
}
