//! The reader thread: a model of its own, folded from durable events and observations. It answers
//! questions ([`crate::query`]), delivers the replies to changes once it has reached them, and lets
//! the followers see what happens ([`crate::followers`]). ARCHITECTURE.md "One input".
//!
//! Readers never block the writer: the driver's messages have a queue of their own, which is served
//! first, and questions wait in another one. Nothing here decides anything.

use crate::followers::Followers;
use crate::followers::snapshots::SnapshotResult;
use crate::messages::{MoreRequest, Question, ReaderInput, SubscribeRequest};
use crate::model::{Model, Monitoring, SchedulingUpdate};
use crate::query::{Viewer, respond, walked};
use crate::replies::Replies;
use crate::store::Store;
use master_core::event::Record;
use master_core::names::Rewriter;
use proto::wire::client::{Query, Reply};
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

/// The queues of those who ask.
pub struct QueryQueues {
    /// Questions with an answer.
    pub questions: mpsc::Receiver<Question>,
    /// Requests for the next part of an answer.
    pub more: mpsc::Receiver<MoreRequest>,
    /// Requests for the event stream.
    pub subscribers: mpsc::Receiver<SubscribeRequest>,
}

/// The most inputs that are taken at a time.
const BATCH: usize = 1_024;

/// The most events that are folded between two looks at the questions.
const EVENTS: usize = 256;

/// The most questions that are answered at such a look.
const QUESTIONS: usize = 4;

/// The state of the thread.
pub struct Reader {
    model: Model,
    store: Store,
    followers: Followers,
    replies: Arc<Replies<Reply>>,
    /// No part of a long answer is made before this time while other work waits: long answers get
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
    Due,
}

impl Reader {
    /// A reader over `model`, which has the state that the core starts with.
    pub fn new(model: Model, store: Store, followers: Followers, replies: Arc<Replies<Reply>>) -> Self {
        Self {
            model,
            store,
            followers,
            replies,
            part_at: Instant::now(),
        }
    }

    /// Works until it is told to stop.
    pub fn run(mut self, mut inputs: mpsc::Receiver<ReaderInput>, mut queues: QueryQueues, runtime: &Handle) {
        let mut waiting = Vec::with_capacity(BATCH);
        loop {
            let due = self.followers.due();
            let wake = runtime.block_on(async {
                tokio::select! {
                    biased;
                    written = self.followers.snapshots.written() => WakeCause::Snapshot(written),
                    () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => WakeCause::Due,
                    _ = inputs.recv_many(&mut waiting, BATCH) => WakeCause::Inputs,
                    Some(question) = queues.questions.recv() => WakeCause::Question(Box::new(question)),
                    Some(subscribe) = queues.subscribers.recv() => WakeCause::Subscribe(Box::new(subscribe)),
                    Some(more) = queues.more.recv() => WakeCause::More(more),
                }
            });
            match wake {
                WakeCause::Inputs if waiting.is_empty() => break,
                WakeCause::Inputs => {
                    let mut is_over = false;
                    for input in waiting.drain(..) {
                        is_over |= self.take(input, &mut queues);
                        self.attend(&mut queues);
                    }
                    if is_over {
                        break;
                    }
                }
                WakeCause::Question(question) => {
                    self.answer(*question);
                    // However many ask, long answers go on.
                    self.attend(&mut queues);
                }
                WakeCause::More(more) => self.go_on(more),
                WakeCause::Subscribe(new) => self.enter(*new),
                WakeCause::Snapshot(written) => written.log(),
                WakeCause::Due => self.followers.flush_due(&self.store),
            }
        }
        self.followers.finish(&self.model, &mut self.store);
    }

    /// Answers a few of those who wait.
    fn attend(&mut self, queues: &mut QueryQueues) {
        let questions = std::iter::from_fn(|| queues.questions.try_recv().ok());
        questions.take(QUESTIONS).for_each(|question| self.answer(question));
        if let Ok(new) = queues.subscribers.try_recv() {
            self.enter(new);
        }
        if !queues.more.is_empty()
            && self.part_at <= Instant::now()
            && let Ok(more) = queues.more.try_recv()
        {
            self.go_on(more);
        }
    }

    /// Makes the next part of a long answer.
    fn go_on(&mut self, more: MoreRequest) {
        let begin = Instant::now();
        let MoreRequest { rest, answer } = more;
        // The receiver may have gone.
        if !answer.is_closed() {
            let _ = answer.send(walked(&self.model, *rest));
        }
        let end = Instant::now();
        self.part_at = end + (end - begin);
    }

    fn enter(&mut self, new: SubscribeRequest) {
        self.followers.subscribers.enter(new, &self.model);
    }

    /// Takes one input. Returns true at the end. However many events come at once, a question waits
    /// only for a few of them.
    fn take(&mut self, input: ReaderInput, queues: &mut QueryQueues) -> bool {
        match input {
            ReaderInput::Events(records) => {
                for records in records.chunks(EVENTS) {
                    self.fold(records);
                    self.attend(queues);
                }
            }
            ReaderInput::Observed(observation) => {
                self.model.observe(&observation);
                self.followers.observed(&self.model, &observation);
            }
            ReaderInput::Deliver(to, reply) => self.replies.answer(to, *reply),
            ReaderInput::Scheduling(update) => self.learn(*update),
            ReaderInput::PassWanted => self.followers.pass_wanted(&self.model),
            ReaderInput::CutOff {
                to,
                ids,
                is_manager,
                by,
            } => {
                let reply = self.followers.subscribers.kill(&ids, is_manager, &by);
                self.replies.answer(to, reply);
            }
            ReaderInput::Stop => return true,
        }
        false
    }

    fn fold(&mut self, records: &[Arc<Record>]) {
        self.followers.before_batch(records);
        for record in records {
            self.followers.before(&self.model, record);
            let derived = self.model.apply(record);
            self.followers.after(&self.model, &self.store, record, &derived);
        }
        self.followers.after_batch(&self.model, &self.store);
    }

    /// Takes in the results of scheduling passes.
    fn learn(&mut self, mut update: SchedulingUpdate) {
        if let Some(entry) = update.schedule.take() {
            self.followers.schedule_entry(&entry);
        }
        let (monitoring, has_shares) = (update.monitoring, update.shares.is_some());
        self.model.scheduling.take(update);
        if has_shares {
            self.followers.shares(&self.model);
        }
        if monitoring == Monitoring::On {
            self.followers.run_log(&self.model);
        }
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
        let Followers {
            waiters, subscribers, ..
        } = &mut self.followers;
        #[allow(
            clippy::wildcard_enum_match_arm,
            reason = "all other questions are answered from the model alone"
        )]
        match query {
            Query::Wait { job } => waiters.wait(job, answer, &self.model, &self.store),
            Query::EventClients => {
                let _ = answer.send(vec![subscribers.list(&self.model)].into());
            }
            Query::WaitPlaced { job } => waiters.wait_placed(job, answer, &self.model, &self.store),
            query => {
                // The receiver may have gone.
                let _ = answer.send(respond(&self.model, query, || Viewer::new(&self.model, asker, from)));
            }
        }
    }
}
