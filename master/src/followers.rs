//! The followers of the durable events: files, mail, event clients, waiting commands, snapshots.
//!
//! Each follower is one file. Its type, where it has one, has those of these methods that it needs,
//! and [`Followers`] calls them:
//!
//! | method | when |
//! |---|---|
//! | `before` | before an event is folded: the state still has what the event takes away |
//! | `after` | when the model has folded the event |
//! | `observed` | when the model has folded a soft fact |
//! | `due`, `flush` | at the time that `due` returns |
//!
//! The accounting file and the snapshots take whole batches, because a write and an image cost much
//! more than one event. The schedule file and the run log follow scheduling passes and no events.
//!
//! Followers decide nothing and never change the model. What they do is bounded, for questions wait
//! meanwhile: a batch of accounting lines and a sync of the file every few seconds, one row of the
//! database for a command that waits for a job. What takes longer, such as sending mail and storing
//! a snapshot, is a thread of its own.

pub mod accounting_file;
pub mod mail;
pub mod reporting;
mod run_log;
pub mod schedule_file;
pub mod snapshots;
pub mod subscribers;
mod waiters;

use crate::model::Model;
use crate::store::Store;
use accounting_file::AccountingFile;
use mail::Mailer;
use master_core::config::DerivedChanges;
use master_core::event::Record;
use master_core::observe::Observation;
use proto::wire::stream::Change;
use reporting::ReportingFile;
use schedule_file::ScheduleFile;
use snapshots::Snapshots;
use std::sync::Arc;
use std::time::Duration;
use subscribers::Subscribers;
use tokio::time::Instant;
use waiters::Waiters;

/// How long the accounting file may be ahead of the position that the database has of it. After a
/// crash, the part behind that position is compared again.
const FILE_SYNC: Duration = Duration::from_secs(5);

/// How often files that are turned over are looked at while no record comes: they grow old.
const FILE_LOOK: Duration = Duration::from_secs(3600);

/// The pause between two parts with which the accounting file catches up, so that questions are
/// answered meanwhile.
const PART_PAUSE: Duration = Duration::from_millis(20);

/// The files that follow the events.
pub struct Files {
    /// accounting(5)
    pub accounting: AccountingFile,
    /// The same records as JSON lines, where `master.toml` asks for them.
    pub json_lines: Option<AccountingFile>,
    /// reporting(5)
    pub reporting: ReportingFile,
    /// sge_schedule(5)
    pub schedule: ScheduleFile,
}

impl Files {
    /// Whether accounting files are turned over.
    fn has_limits(&self) -> bool {
        self.accounting.has_limits()
    }
}

/// All followers of the reader thread.
pub struct Followers {
    files: Files,
    /// When the accounting files are synced next. `None` while there is nothing to sync.
    sync_at: Option<Instant>,
    mailer: Mailer,
    /// The event clients.
    pub subscribers: Subscribers,
    /// Commands that wait for a job.
    pub waiters: Waiters,
    /// Images of the state.
    pub snapshots: Snapshots,
}

impl Followers {
    /// Followers of the events from now on. Nobody waits for a job yet.
    pub fn new(files: Files, mailer: Mailer, subscribers: Subscribers, snapshots: Snapshots) -> Self {
        let is_due = files.has_limits() || files.json_lines.as_ref().is_some_and(AccountingFile::is_behind);
        Self {
            files,
            sync_at: is_due.then(Instant::now),
            mailer,
            subscribers,
            waiters: Waiters::default(),
            snapshots,
        }
    }

    /// Takes a batch of events, none of which is folded yet. Accounting records are in the file
    /// before their jobs leave `qstat` (ARCHITECTURE.md "Storage").
    pub fn before_batch(&mut self, records: &[Arc<Record>]) {
        let Files {
            accounting,
            json_lines,
            reporting,
            schedule: _,
        } = &mut self.files;
        let is_written = if reporting.params().accounting {
            accounting.append(records)
        } else {
            accounting.skip(records)
        };
        let has_lines = json_lines.as_mut().is_some_and(|file| file.append(records));
        if is_written || has_lines {
            let due = Instant::now() + FILE_SYNC;
            self.sync_at = Some(self.sync_at.map_or(due, |at| at.min(due)));
        }
    }

    /// Takes an event that is folded next.
    pub fn before(&mut self, model: &Model, record: &Record) {
        self.mailer.before(&model.state, record);
        self.files.reporting.before(&model.state, record);
        self.subscribers.before(&model.state, record);
    }

    /// Takes the event that was folded last, and what changed objects have led to.
    pub fn after(&mut self, model: &Model, store: &Store, record: &Arc<Record>, derived: &DerivedChanges) {
        self.subscribers.after(model, record, derived);
        self.files.reporting.after(&model.state, &model.observations, record);
        self.waiters.after(model, store, record);
    }

    /// Takes the end of a batch, all of which is folded.
    pub fn after_batch(&mut self, model: &Model, store: &Store) {
        self.snapshots.after_batch(&model.state, store);
    }

    /// Takes a soft fact that the model has folded.
    pub fn observed(&mut self, model: &Model, observation: &Observation) {
        self.subscribers.observed(model, observation);
        let now_s = model.statics.clock.now().wall.seconds();
        self.files
            .reporting
            .observed(&model.state, &model.observations, observation, now_s);
    }

    /// Tells event clients that a scheduling pass is wanted.
    pub fn pass_wanted(&mut self, model: &Model) {
        self.subscribers.soft(model, || Some(Change::PassWanted {}));
    }

    /// Appends an entry to the schedule file.
    pub fn schedule_entry(&mut self, entry: &str) {
        self.files.schedule.append(entry);
    }

    /// Notes the shares of users, which a scheduling pass has made anew.
    pub fn shares(&mut self, model: &Model) {
        let now = model.statics.clock.now();
        self.files
            .reporting
            .shares(&model.state, model.scheduling.shares(), now);
    }

    /// Writes down a scheduling pass (`qconf -tsm`).
    pub fn run_log(&self, model: &Model) {
        let path = &model.statics.run_log;
        if let Err(error) = run_log::append(model, path) {
            tracing::warn!("cannot write {}: {error}", path.display());
        }
    }

    /// When [`Followers::flush_due`] is to be called. `None` means that nothing waits.
    pub fn due(&self) -> Option<Instant> {
        self.sync_at.into_iter().chain(self.files.reporting.due()).min()
    }

    /// Writes what is due.
    pub fn flush_due(&mut self, store: &Store) {
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= Instant::now());
        if is_due(self.sync_at) {
            self.sync_accounting(store);
        }
        if is_due(self.files.reporting.due()) {
            self.files.reporting.flush();
        }
    }

    /// Writes everything that waits, at the end of the master.
    pub fn finish(&mut self, model: &Model, store: &mut Store) {
        self.snapshots.finish(store, &model.state);
        self.sync_accounting(store);
        self.files.reporting.flush();
    }

    fn sync_accounting(&mut self, store: &Store) {
        let has_limits = self.files.has_limits();
        let (mut is_failing, mut is_behind) = (false, false);
        let Files {
            accounting, json_lines, ..
        } = &mut self.files;
        for file in std::iter::once(accounting).chain(json_lines) {
            if let Err(error) = file.sync(store) {
                tracing::warn!("{}", crate::error_chain(&error));
                is_failing = true;
            }
            is_behind |= file.is_behind();
        }
        let next = match (is_failing, is_behind) {
            (true, _) => Some(FILE_SYNC),
            (false, true) => Some(PART_PAUSE),
            (false, false) => has_limits.then_some(FILE_LOOK),
        };
        self.sync_at = next.map(|pause| Instant::now() + pause);
    }
}
