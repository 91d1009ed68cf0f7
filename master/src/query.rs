//! The query thread: a state of its own, folded from durable events and observations. It answers
//! questions, gives the replies to changes once it has reached them, keeps the classic accounting
//! file and writes snapshots (ARCHITECTURE.md "One input").
//!
//! Readers never block the writer: the driver's messages have a queue of their own, which is served
//! first, and questions wait in another one. Each kind of answer is in the module of its name.
//! Nothing here decides anything.

mod accounting;
mod categories;
mod changes;
mod conditions;
mod hosts;
mod jobs;
mod kept;
mod model;
mod objects;
mod queues;
mod reservations;
mod run_log;
mod schedule_file;
mod select;
mod shares;
mod snapshots;
mod status;
mod stream;
#[cfg(test)]
mod tests;
mod viewer;
mod waiters;

pub use jobs::Walk;
pub use model::{Model, StaticFacts};
pub use reservations::fails;
pub use schedule_file::ScheduleFile;
pub use stream::{Filter, NewsItem, Stream, StreamPrelude, SubscribeRequest};

use crate::accounting_file::AccountingFile;
use crate::mail::Mailer;
use crate::mail::sender::MailQueue;
use crate::replies::Replies;
use crate::reporting::ReportingFile;
use crate::scheduler::{Monitoring, Update};
use crate::signs::Signs;
use crate::store::Store;
use jiff::tz::TimeZone;
use master_core::effect::ReplyTo;
use master_core::event::Record;
use master_core::matching::Mode;
use master_core::names::Rewriter;
use master_core::observe::Observation;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::HostName;
use proto::job::Owner;
use proto::wire::client::{Query, QuotaFilter, Reply};
use proto::wire::stream::Change;
use proto::wire::view::Data;
use snapshots::{SnapshotResult, Snapshots};
use std::sync::Arc;
use std::time::Duration;
use stream::Subscribers;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};
use viewer::Viewer;
use waiters::Waiters;

/// What the driver has for the query thread, in order.
#[derive(Debug)]
pub enum QueryInput {
    /// Events that are durable.
    Events(Vec<Arc<Record>>),
    /// A soft fact.
    Observed(Observation),
    /// An answer to a change, to be given now that the events before it are known here.
    Deliver(ReplyTo, Box<Reply>),
    /// Reasons and priorities of a scheduling pass.
    Scheduling(Box<Update>),
    /// Somebody wants a scheduling pass, which those who schedule outside hear of.
    PassWanted,
    /// Event clients are to be cut off, and the answer to be given.
    CutOff {
        /// Whom to answer.
        to: ReplyTo,
        /// Which; empty is all.
        ids: Vec<u32>,
        /// Whether the caller may end those of others.
        is_manager: bool,
        /// The caller, as `user@host`.
        by: String,
    },
    /// The end: a last snapshot.
    Stop,
}

/// A question, and where its answer goes.
pub struct Question {
    /// What is asked.
    pub query: Query,
    /// The host on which it is asked: `localhost` means it.
    pub from: HostName,
    /// The user who asks. `None` means the master itself.
    pub asker: Option<Owner>,
    /// Takes the answer.
    pub answer: Answer,
}

/// A wish to hear how an answer goes on, of one whose parts were taken.
pub struct MoreRequest {
    /// The rest of the answer.
    pub rest: Box<Walk>,
    /// Takes its next part.
    pub answer: Answer,
}

/// An answer or a part of it.
#[derive(Default)]
pub struct AnswerPart {
    /// In order; all but the last of the answer say that there are more.
    pub replies: Vec<Reply>,
    /// How it goes on. Whoever wants to hear it asks for it: so an answer is made as fast as it is
    /// read, and of one that nobody reads any more nothing is left.
    pub rest: Option<Box<Walk>>,
}

impl From<Vec<Reply>> for AnswerPart {
    fn from(replies: Vec<Reply>) -> Self {
        Self { replies, rest: None }
    }
}

/// Where an answer goes.
pub type Answer = oneshot::Sender<AnswerPart>;

/// When the query thread writes things that are not asked for.
#[derive(Clone, Debug)]
pub struct Upkeep {
    /// Events between two snapshots, at least.
    pub snapshot_events: u64,
    /// Whether a snapshot removes the log before the one that precedes it.
    pub trim_log: bool,
    /// Events that may wait for one event client.
    pub event_queue: usize,
    /// Whether the disk has room for snapshots.
    pub signs: Signs,
}

/// The queues of those who ask.
pub struct QueryQueues {
    /// Questions with an answer.
    pub questions: mpsc::Receiver<Question>,
    /// Those who have heard a part of an answer.
    pub more: mpsc::Receiver<MoreRequest>,
    /// Those who want the event stream.
    pub subscribers: mpsc::Receiver<SubscribeRequest>,
}

/// How long the accounting file may be ahead of what is noted of it; what a crash makes us compare
/// again.
const FILE_SYNC: Duration = Duration::from_secs(5);

/// The pause between two parts of what the accounting file catches up with: others get their turn
/// in it.
const PART_PAUSE: Duration = Duration::from_millis(20);

/// The most inputs that are taken at a time.
const BATCH: usize = 1_024;

/// The most events that are folded between two looks at who asks.
const EVENTS: usize = 256;

/// The most questions that are answered at such a look.
const QUESTIONS: usize = 4;

/// The files that follow the events.
pub struct Files {
    /// accounting(5)
    pub accounting: AccountingFile,
    /// reporting(5)
    pub reporting: ReportingFile,
    /// sge_schedule(5)
    pub schedule: ScheduleFile,
}

/// The thread's things.
pub struct QueryThread {
    model: Model,
    store: Store,
    files: Files,
    postmaster: Mailer,
    outbox: MailQueue,
    replies: Arc<Replies<Reply>>,
    waiters: Waiters,
    subscribers: Subscribers,
    upkeep: Upkeep,
    snapshots: Snapshots,
    sync_at: Option<Instant>,
    /// Before that no part of a long answer is made while there is something else to do: they get
    /// half of the time at most.
    part_at: Instant,
}

/// What woke the thread.
enum WakeCause {
    Inputs,
    Question(Box<Question>),
    More(MoreRequest),
    Subscribe(Box<SubscribeRequest>),
    Snapshot(SnapshotResult),
    Sync,
}

impl QueryThread {
    /// A query thread over `model`, which is the state that the core starts with.
    pub fn new(
        model: Model,
        store: Store,
        files: Files,
        outbox: MailQueue,
        replies: Arc<Replies<Reply>>,
        upkeep: Upkeep,
    ) -> Self {
        let snapshots = Snapshots::new(
            &model.state,
            upkeep.snapshot_events,
            upkeep.trim_log,
            upkeep.signs.clone(),
        );
        Self {
            model,
            store,
            files,
            postmaster: Mailer::new(TimeZone::system()),
            outbox,
            replies,
            waiters: Waiters::default(),
            subscribers: Subscribers::default(),
            upkeep,
            snapshots,
            sync_at: None,
            part_at: Instant::now(),
        }
    }

    /// Works until it is told to stop.
    pub fn run(mut self, mut inputs: mpsc::Receiver<QueryInput>, mut asked: QueryQueues, runtime: &Handle) {
        let mut waiting = Vec::with_capacity(BATCH);
        loop {
            let sync_at = earlier(self.sync_at, self.files.reporting.due());
            let wake = runtime.block_on(async {
                tokio::select! {
                    biased;
                    written = self.snapshots.written() => WakeCause::Snapshot(written),
                    () = sleep_until(sync_at.unwrap_or_else(Instant::now)), if sync_at.is_some() => WakeCause::Sync,
                    _ = inputs.recv_many(&mut waiting, BATCH) => WakeCause::Inputs,
                    Some(question) = asked.questions.recv() => WakeCause::Question(Box::new(question)),
                    Some(subscribe) = asked.subscribers.recv() => WakeCause::Subscribe(Box::new(subscribe)),
                    Some(more) = asked.more.recv() => WakeCause::More(more),
                }
            });
            match wake {
                WakeCause::Inputs if waiting.is_empty() => break,
                WakeCause::Inputs => {
                    let mut is_over = false;
                    for input in waiting.drain(..) {
                        is_over |= self.take(input, &mut asked);
                        self.attend(&mut asked);
                    }
                    if is_over {
                        break;
                    }
                }
                WakeCause::Question(question) => {
                    self.answer(*question);
                    // However many ask, those who have heard a part hear the next.
                    self.attend(&mut asked);
                }
                WakeCause::More(more) => self.go_on(more),
                WakeCause::Subscribe(new) => self.enter(*new),
                WakeCause::Snapshot(written) => written.tell(),
                WakeCause::Sync => self.sync_due(),
            }
        }
        self.snapshots.finish(&mut self.store, &self.model.state);
        self.sync_file();
        self.files.reporting.flush();
    }

    /// Answers a few of those who wait.
    fn attend(&mut self, asked: &mut QueryQueues) {
        let questions = std::iter::from_fn(|| asked.questions.try_recv().ok());
        questions.take(QUESTIONS).for_each(|question| self.answer(question));
        if let Ok(new) = asked.subscribers.try_recv() {
            self.enter(new);
        }
        if !asked.more.is_empty()
            && self.part_at <= Instant::now()
            && let Ok(more) = asked.more.try_recv()
        {
            self.go_on(more);
        }
    }

    /// Makes the next part of a long answer.
    fn go_on(&mut self, more: MoreRequest) {
        let begin = Instant::now();
        let MoreRequest { rest, answer } = more;
        // Whoever asked may have gone.
        if !answer.is_closed() {
            let _ = answer.send(walked(&self.model, *rest));
        }
        let end = Instant::now();
        self.part_at = end + (end - begin);
    }

    fn enter(&mut self, new: SubscribeRequest) {
        self.subscribers.enter(new, &self.model, self.upkeep.event_queue);
    }

    /// Takes one input; true at the end. However much happens at once, who asks waits for a little
    /// of it.
    fn take(&mut self, input: QueryInput, asked: &mut QueryQueues) -> bool {
        match input {
            QueryInput::Events(records) => {
                for records in records.chunks(EVENTS) {
                    self.fold(records);
                    self.attend(asked);
                }
            }
            QueryInput::Observed(observation) => {
                self.model.observe(&observation);
                self.subscribers.observed(&self.model, &observation);
                let Model {
                    state,
                    observations,
                    statics,
                    ..
                } = &self.model;
                let now_s = statics.clock.now().wall.seconds();
                self.files.reporting.observed(state, observations, &observation, now_s);
            }
            QueryInput::Deliver(to, reply) => self.replies.answer(to, *reply),
            QueryInput::Scheduling(update) => self.learn(*update),
            QueryInput::PassWanted => self.subscribers.soft(&self.model, || Some(Change::PassWanted {})),
            QueryInput::CutOff {
                to,
                ids,
                is_manager,
                by,
            } => {
                self.replies.answer(to, self.subscribers.kill(&ids, is_manager, &by));
            }
            QueryInput::Stop => return true,
        }
        false
    }

    /// Takes the news of passes in, and writes one down where that was asked for.
    fn learn(&mut self, mut update: Update) {
        if let Some(entry) = update.schedule.take() {
            self.files.schedule.append(&entry);
        }
        let is_monitored = update.monitoring == Monitoring::On;
        let has_shares = update.shares.is_some();
        self.model.scheduling.take(update);
        if has_shares {
            let Model {
                state,
                statics,
                scheduling,
                ..
            } = &self.model;
            self.files
                .reporting
                .shares(state, scheduling.shares(), statics.clock.now());
        }
        if !is_monitored {
            return;
        }
        let path = &self.model.statics.run_log;
        if let Err(error) = run_log::append(&self.model, path) {
            tracing::warn!("cannot write {}: {error}", path.display());
        }
    }

    /// Accounting records are in the file before their jobs leave `qstat` (ARCHITECTURE.md
    /// "Storage").
    fn fold(&mut self, records: &[Arc<Record>]) {
        let Files {
            accounting, reporting, ..
        } = &mut self.files;
        let is_written = if reporting.params().accounting {
            accounting.append(records)
        } else {
            accounting.skip(records)
        };
        if is_written {
            self.sync_at.get_or_insert_with(|| Instant::now() + FILE_SYNC);
        }
        for record in records {
            let mail = self.postmaster.notice(&self.model.state, record);
            mail.into_iter().for_each(|mail| self.outbox.put(mail));
            self.files.reporting.before(&self.model.state, record);
            let job = master_core::stream::job_number(&self.model.state, &record.event);
            let touched = self.model.apply(record);
            self.subscribers.event(record, job);
            for host in &touched.hosts {
                let config = &self.model.state.config;
                self.subscribers
                    .soft(&self.model, || Some(master_core::stream::instances(config, host)));
            }
            self.files
                .reporting
                .after(&self.model.state, &self.model.observations, record);
            self.waiters.notice(record, &self.model, &self.store);
        }
        self.snapshots.follow(&self.model.state, &self.store);
    }

    fn answer(&mut self, question: Question) {
        let Question {
            mut query,
            from,
            asker,
            answer,
        } = question;
        let Model { state, statics, .. } = &self.model;
        let names = state.config.host_names(&statics.naming, &from);
        Rewriter {
            names,
            complex: &state.config.complex,
        }
        .query(&mut query);
        match query {
            Query::Wait { job } => self.waiters.wait(job, answer, &self.model, &self.store),
            Query::EventClients => {
                let _ = answer.send(vec![self.subscribers.list(&self.model)].into());
            }
            Query::WaitPlaced { job } => self.waiters.wait_placed(job, answer, &self.model, &self.store),
            query => {
                // Whoever asked may have gone.
                let _ = answer.send(respond(&self.model, query, || Viewer::new(&self.model, asker, from)));
            }
        }
    }

    fn sync_due(&mut self) {
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= Instant::now());
        if is_due(self.sync_at) {
            self.sync_file();
        }
        if is_due(self.files.reporting.due()) {
            self.files.reporting.flush();
        }
    }

    fn sync_file(&mut self) {
        let next = match self.files.accounting.sync(&self.store) {
            Ok(()) => self.files.accounting.is_behind().then_some(PART_PAUSE),
            Err(error) => {
                tracing::warn!("{}", crate::error_chain(&error));
                Some(FILE_SYNC)
            }
        };
        self.sync_at = next.map(|pause| Instant::now() + pause);
    }
}

/// The earlier of two times, where there are any.
fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    one.into_iter().chain(other).min()
}

/// The answer to a question that can be answered at once, or its first part.
fn respond(model: &Model, query: Query, viewer: impl FnOnce() -> Viewer) -> AnswerPart {
    let walk = match query {
        Query::Jobs(filter) => Walk::rows(model, &filter),
        Query::JobDetails { targets } => Ok(Walk::details(model, targets, viewer())),
        Query::Reasons => Ok(Walk::reasons(model)),
        Query::Explain { job, tasks } => Walk::explanation(model, job, &tasks),
        query => return whole(model, query).into(),
    };
    match walk {
        Ok(walk) => walked(model, walk),
        Err(reply) => vec![reply].into(),
    }
}

/// The next part of a walk.
fn walked(model: &Model, walk: Walk) -> AnswerPart {
    let (replies, rest) = walk.part(model);
    AnswerPart {
        replies,
        rest: rest.map(Box::new),
    }
}

/// The whole answer to a question, in parts of bearable size.
fn whole(model: &Model, query: Query) -> Vec<Reply> {
    match query {
        Query::Queues(filter) => vec![queues::views(model, &filter)],
        Query::QueuesWithoutHosts => vec![queues::without_hosts(model)],
        Query::Hosts(filter) => vec![hosts::views(model, &filter)],
        Query::Reservations { ids, users } => vec![reservations::views(model, &ids, &users)],
        Query::Kept => kept::tasks(model),
        Query::Quotas(filter) => quotas(model, &filter),
        Query::Object { kind, name } => vec![objects::object(model, kind, &name)],
        Query::Template { kind, name } => vec![objects::template(kind, &name)],
        Query::Names { kind } => vec![objects::names(model, kind)],
        Query::HostGroupTree { name } => vec![objects::host_group_tree(model, &name)],
        Query::Shares => shares::nodes(model),
        Query::Categories { ids } => categories::views(model, &ids),
        Query::Sensors { hosts } => vec![hosts::sensors(model, &hosts)],
        Query::HostNames { names } => vec![Reply::data(Data::Names(names))],
        Query::WithoutEffect => {
            vec![Reply::data(Data::Warnings(
                master_core::decide::objects::without_effect(&model.state.config),
            ))]
        }
        Query::Status => vec![status::status(model)],
        Query::Tokens => vec![hosts::tokens(model)],
        // These are answered elsewhere: accounting and changes by the database, waiting by the
        // waiters, events by the subscribers, jobs by walks.
        Query::Jobs(_)
        | Query::JobDetails { .. }
        | Query::Reasons
        | Query::Explain { .. }
        | Query::Accounting(_)
        | Query::Changes(_)
        | Query::Wait { .. }
        | Query::WaitPlaced { .. }
        | Query::Events(_)
        | Query::EventClients => {
            vec![Reply::refusal(Diagnostic::new(
                Code::BadMessage,
                "this question is not for the query thread",
            ))]
        }
    }
}

/// Rows of `qquota` in a reply.
const QUOTAS_IN_REPLY: usize = 5_000;

/// The answer to [`Query::Quotas`].
fn quotas(model: &Model, filter: &QuotaFilter) -> Vec<Reply> {
    let rows = master_core::matching::quota::rows(&model.cluster(Mode::Now), filter);
    parts(rows, QUOTAS_IN_REPLY, |rows| Reply::data(Data::Quotas(rows)))
}

pub use accounting::Accounting;
pub use changes::Changes;

/// Splits rows into replies of at most `size` rows each, the last one without `more`.
fn parts<T>(rows: Vec<T>, size: usize, make: impl Fn(Vec<T>) -> Reply) -> Vec<Reply> {
    let mut replies = Vec::new();
    let mut rows = rows.into_iter();
    loop {
        let part: Vec<T> = rows.by_ref().take(size).collect();
        let more = rows.len() > 0;
        replies.push(Reply { more, ..make(part) });
        if !more {
            return replies;
        }
    }
}
