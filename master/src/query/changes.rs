//! `gridwright changes`: who changed which object, host, queue instance, or job of somebody else,
//! and when. Read from the log beside the reader thread, part by part.
//!
//! The log is read from its beginning whatever the question is, because the value before a change
//! is in an earlier event. Only the newest changes that match are kept: so many as the question
//! asks for, and no more than [`MOST_CHANGES`] with [`MOST_BYTES`].

mod difference;
mod jobs;
#[cfg(test)]
mod tests;
mod tracker;

use super::select::Patterns;
use crate::store::{EventHead, SelectLimits, Store, StoreError, UndecodedEvent};
use master_core::event::Actor;
use master_core::stream::by;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::EventSeq;
use proto::wire::client::{ChangeFilter, Reply};
use proto::wire::view::{ChangeHistory, ChangeView, Data, LogBeginning};
use std::collections::VecDeque;
use std::path::PathBuf;
use tracker::Tracker;

/// The most changes of one answer.
const MOST_CHANGES: usize = 10_000;

/// The most bytes of names and values in one answer.
const MOST_BYTES: usize = 8 << 20;

/// The bytes of names and values from which on a part of an answer is full.
const PART_BYTES: usize = 256 << 10;

/// The most names of others beside the name of a change.
const MOST_NAMES: usize = 20;

/// How much of the log is read for one part. The bytes bound the time of a part: one run is in
/// memory, and one event of it is decoded.
const PART_LOG: SelectLimits = SelectLimits {
    runs: 200,
    bytes: 16 << 20,
};

/// One question of [`proto::wire::client::Query::Changes`], while it is answered.
pub struct Changes {
    database: PathBuf,
    filter: ChangeFilter,
    /// The patterns of users, and those of `user@host`.
    users: Patterns,
    users_at_hosts: Patterns,
    objects: Patterns,
    store: Option<Store>,
    /// The last event that was looked at.
    after: EventSeq,
    log: Option<LogBeginning>,
    tracker: Tracker,
    newest: NewestChanges,
    of_older_jobs: u64,
    /// Whether the whole log was read, and what was found is sent.
    is_read: bool,
}

impl Changes {
    /// A question to the database at that path.
    pub fn new(database: PathBuf, filter: ChangeFilter) -> Self {
        let most = usize::try_from(filter.most).unwrap_or(MOST_CHANGES).min(MOST_CHANGES);
        let (users_at_hosts, users): (Vec<_>, Vec<_>) =
            filter.users.iter().cloned().partition(|pattern| pattern.contains('@'));
        Self {
            database,
            users: Patterns::new(&users),
            users_at_hosts: Patterns::new(&users_at_hosts),
            objects: Patterns::new(&filter.objects),
            filter,
            store: None,
            after: EventSeq(0),
            log: None,
            tracker: Tracker::default(),
            newest: NewestChanges::new(most),
            of_older_jobs: 0,
            is_read: false,
        }
    }

    /// The next part of the answer; the last one is without `more`. Blocks while it reads, and
    /// holds no lock of the database between two parts.
    pub fn part(&mut self) -> Reply {
        if let Err(error) = self.read() {
            let refusal = Diagnostic::new(Code::SystemRefused, "cannot read the log of the cell");
            return Reply::refusal(refusal.why(crate::error_chain(&error)));
        }
        if !self.is_read {
            return Self::nothing_yet();
        }
        let changes = self.newest.take_part();
        let more = !self.newest.changes.is_empty();
        let history = ChangeHistory {
            log: self.log.filter(|_| !more),
            left_out: if more { 0 } else { self.newest.left_out },
            of_older_jobs: if more { 0 } else { self.of_older_jobs },
            changes,
        };
        Reply {
            more,
            ..Reply::data(Data::Changes(history))
        }
    }

    /// A part while the log is still being read.
    pub fn nothing_yet() -> Reply {
        Reply {
            more: true,
            ..Reply::data(Data::Changes(ChangeHistory::default()))
        }
    }

    /// Reads the next runs of the log.
    fn read(&mut self) -> Result<(), StoreError> {
        if self.is_read {
            return Ok(());
        }
        let store = match self.store.take() {
            Some(store) => store,
            None => self.open()?,
        };
        match store.select(self.after, tracker::KINDS, PART_LOG, |event| self.take(event))? {
            Some(last) => (self.after, self.store) = (last, Some(store)),
            None => self.is_read = true,
        }
        Ok(())
    }

    /// Opens the database and finds out where its log begins.
    fn open(&mut self) -> Result<Store, StoreError> {
        let store = Store::open_to_read(&self.database)?;
        self.log = store.oldest_event()?.map(|(seq, at)| LogBeginning {
            at,
            is_whole: seq == EventSeq(1),
        });
        self.tracker.knows_all = self.log.is_none_or(|log| log.is_whole);
        Ok(store)
    }

    /// Follows an event, and keeps the changes in it that match.
    fn take(&mut self, event: &UndecodedEvent<'_>) -> Result<(), StoreError> {
        let of_older_jobs = self.tracker.of_older_jobs;
        let changes = self.tracker.follow(event)?;
        let EventHead {
            now, actor, request, ..
        } = &event.head;
        let is_early = self.filter.since.is_some_and(|since| now.wall < since);
        if is_early || !self.is_by(actor) {
            return Ok(());
        }
        self.of_older_jobs += self.tracker.of_older_jobs - of_older_jobs;
        for change in changes {
            if self.is_about(&change) {
                self.newest.push(change, *request);
            }
        }
        Ok(())
    }

    fn is_by(&self, actor: &Actor) -> bool {
        if self.filter.users.is_empty() {
            return true;
        }
        match actor {
            Actor::User { user, .. } => self.users.any(user.as_str()) || self.users_at_hosts.any(&by(actor)),
            Actor::Agent(_) | Actor::Scheduler(_) | Actor::Master => self.users.any(""),
        }
    }

    fn is_about(&self, change: &ChangeView) -> bool {
        self.objects.admit(&change.name) || self.objects.any(&change.kind)
    }
}

/// The newest changes that were found.
struct NewestChanges {
    most: usize,
    changes: VecDeque<ChangeView>,
    bytes: usize,
    left_out: u64,
    /// The request behind the last of them, and what it changed last.
    request: Option<proto::id::RequestId>,
    name: String,
}

impl NewestChanges {
    fn new(most: usize) -> Self {
        Self {
            most,
            changes: VecDeque::new(),
            bytes: 0,
            left_out: 0,
            request: None,
            name: String::new(),
        }
    }

    /// Keeps a change, and drops the oldest ones where there are too many then. What one request
    /// does to many queue instances, to many jobs, or to the tasks of a job is one change.
    fn push(&mut self, change: ChangeView, request: Option<proto::id::RequestId>) {
        let is_same_request = request.is_some() && self.request == request;
        let is_same_name = self.name == change.name;
        self.name.clone_from(&change.name);
        if is_same_request
            && let Some(last) = self.changes.back_mut()
            && is_alike(last, &change)
        {
            last.tasks += change.tasks;
            if !is_same_name && last.with.len() < MOST_NAMES {
                self.bytes += change.name.len();
                last.with.push(change.name);
            } else if !is_same_name {
                last.others += 1;
            }
            return;
        }
        self.request = request;
        self.bytes += bytes(&change);
        self.changes.push_back(change);
        while self.changes.len() > self.most || self.bytes > MOST_BYTES {
            let Some(oldest) = self.changes.pop_front() else { return };
            self.bytes -= bytes(&oldest);
            self.left_out += 1;
        }
    }

    /// Takes so many of the oldest out as one part holds.
    fn take_part(&mut self) -> Vec<ChangeView> {
        let (mut part, mut size) = (Vec::new(), 0);
        while size < PART_BYTES
            && let Some(change) = self.changes.pop_front()
        {
            size += bytes(&change);
            part.push(change);
        }
        part
    }
}

/// Whether two changes of one request differ only in the job, the task or the queue instance.
fn is_alike(last: &ChangeView, change: &ChangeView) -> bool {
    ["job", "queue instance"].contains(&&*change.kind)
        && (&last.kind, last.action, &last.by) == (&change.kind, change.action, &change.by)
        && last.is_earlier_unknown == change.is_earlier_unknown
}

/// The bytes that a change takes in an answer, roughly.
fn bytes(change: &ChangeView) -> usize {
    /// Numbers, names of fields and the rest.
    const BASE: usize = 200;
    let len = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let of_fields = change
        .fields
        .iter()
        .map(|field| field.name.len() + len(&field.old) + len(&field.new) + BASE / 4);
    let of_others: usize = change.with.iter().map(String::len).sum();
    BASE + change.name.len() + of_others + of_fields.sum::<usize>()
}
