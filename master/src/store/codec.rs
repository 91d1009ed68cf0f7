//! Events as they are stored: `(seq, tick, wall, kind, version, actor, request, body)`, for ever.
//!
//! A body is MessagePack with named fields, so that a field that a later version adds has its default here. A form that
//! changes in another way gets a new version number and a step in [`Stored::upcast`].

use super::StoreError;
use master_core::event::{Event, Record};
use proto::id::{EventSeq, RequestId};
use proto::time::{Now, Tick, Wall};
use proto::wire::frame::encode;
use rusqlite::Row;
use std::borrow::Cow;

/// The version of the forms that hold all of an event.
const WHOLE: i64 = 1;

/// The version of an end whose accounting record is in the table of these alone.
const WITHOUT_RECORD: i64 = 2;

/// One row of the log.
pub(super) struct Stored {
    pub(super) seq: u64,
    pub(super) tick: u64,
    pub(super) wall: i64,
    pub(super) kind: Cow<'static, str>,
    pub(super) version: i64,
    pub(super) actor: Vec<u8>,
    pub(super) request: Option<Vec<u8>>,
    pub(super) body: Vec<u8>,
    /// The accounting record beside it, if there is one.
    pub(super) accounting: Option<Vec<u8>>,
}

impl Stored {
    /// As it is written: an accounting record is encoded once.
    pub(super) fn encode(record: &Record) -> Self {
        match (without_record(&record.event), record.event.accounting()) {
            (Some(rest), Some(accounting)) => {
                Self { accounting: Some(encode(accounting)), ..Self::of(record, WITHOUT_RECORD, &rest) }
            }
            _ => Self::whole(record),
        }
    }

    /// With all that an event brings in its body.
    pub(super) fn whole(record: &Record) -> Self {
        Self::of(record, WHOLE, &record.event)
    }

    fn of(record: &Record, version: i64, event: &Event) -> Self {
        let Record { seq, now, actor, request, event: _ } = record;
        Self {
            seq: seq.0,
            tick: now.tick.0,
            wall: now.wall.0,
            kind: kind(event).into(),
            version,
            actor: encode(actor),
            request: request.map(|id| id.0.to_be_bytes().to_vec()),
            body: encode(event),
            accounting: None,
        }
    }

    pub(super) fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            seq: row.get::<_, i64>(0)?.unsigned_abs(),
            tick: row.get::<_, i64>(1)?.unsigned_abs(),
            wall: row.get(2)?,
            kind: row.get::<_, String>(3)?.into(),
            version: row.get(4)?,
            actor: row.get(5)?,
            request: row.get(6)?,
            body: row.get(7)?,
            accounting: row.get(8)?,
        })
    }

    pub(super) fn decode(&self) -> Result<Record, StoreError> {
        let event = self.upcast()?;
        let actor = rmp_serde::from_slice(&self.actor).map_err(|error| self.damaged(error))?;
        let request = match &self.request {
            None => None,
            Some(bytes) => {
                let id = bytes[..].try_into().map_err(|_| self.damaged("its request id has not 16 bytes"))?;
                Some(RequestId(u128::from_be_bytes(id)))
            }
        };
        let now = Now { tick: Tick(self.tick), wall: Wall(self.wall) };
        Ok(Record { seq: EventSeq(self.seq), now, actor, request, event })
    }

    /// The event in today's form, whichever version wrote it.
    fn upcast(&self) -> Result<Event, StoreError> {
        let is_known = match self.version {
            WHOLE => KINDS.contains(&&*self.kind),
            WITHOUT_RECORD => ENDS.contains(&&*self.kind),
            _ => false,
        };
        if !is_known {
            let (seq, kind) = (self.seq, self.kind.clone().into_owned());
            return Err(StoreError::UnknownEvent { seq, kind, version: self.version });
        }
        let mut event: Event = rmp_serde::from_slice(&self.body).map_err(|error| self.damaged(error))?;
        if kind(&event) != self.kind {
            return Err(self.damaged("its body is of another kind"));
        }
        if self.version == WITHOUT_RECORD {
            let bytes = self.accounting.as_ref().ok_or_else(|| self.damaged("its accounting record is missing"))?;
            let accounting = rmp_serde::from_slice(bytes).map_err(|error| self.damaged(error))?;
            if let Event::TaskEnded { record, .. } | Event::SlaveEnded { record, .. } = &mut event {
                *record = Some(accounting);
            }
        }
        Ok(event)
    }

    fn damaged(&self, why: impl ToString) -> StoreError {
        StoreError::Damaged { seq: self.seq, kind: self.kind.clone().into_owned(), why: why.to_string() }
    }
}

/// The kinds of events that may bring an accounting record.
const ENDS: &[&str] = &["task-ended", "slave-ended"];

/// What an event says beside the accounting record that it brings; none if it brings none.
fn without_record(event: &Event) -> Option<Event> {
    match event {
        Event::TaskEnded { key, record: Some(_), then, saved_pid, charged } => Some(Event::TaskEnded {
            key: *key,
            record: None,
            then: then.clone(),
            saved_pid: *saved_pid,
            charged: *charged,
        }),
        Event::SlaveEnded { key, record: Some(_), exit_status, reason, usage, rusage, charged } => {
            Some(Event::SlaveEnded {
                key: *key,
                record: None,
                exit_status: *exit_status,
                reason: reason.clone(),
                usage: *usage,
                rusage: *rusage,
                charged: *charged,
            })
        }
        _ => None,
    }
}

/// Declares the names of the kinds, for the database and for the check that a row is of a kind we know.
macro_rules! kinds {
    ($($variant:ident = $name:literal,)*) => {
        pub(super) const KINDS: &[&str] = &[$($name,)*];

        /// The name of an event's kind, in the database and for people.
        pub(crate) fn kind(event: &Event) -> &'static str {
            match event { $(Event::$variant { .. } => $name,)* }
        }
    };
}

kinds! {
    CellCreated = "cell-created",
    EpochRaised = "epoch-raised",
    WallJumped = "wall-jumped",
    JobSubmitted = "job-submitted",
    JobAltered = "job-altered",
    HoldsChanged = "holds-changed",
    TaskPlaced = "task-placed",
    TaskStarted = "task-started",
    TaskEnded = "task-ended",
    SlavePlaced = "slave-placed",
    SlaveStarted = "slave-started",
    SlaveEnded = "slave-ended",
    TaskUnconfirmed = "task-unconfirmed",
    TaskConfirmedGone = "task-confirmed-gone",
    TasksDeleted = "tasks-deleted",
    TaskDeletionRequested = "task-deletion-requested",
    TaskRescheduleRequested = "task-reschedule-requested",
    TaskSuspended = "task-suspended",
    TaskMigrationRequested = "task-migration-requested",
    TaskThresholdSuspended = "task-threshold-suspended",
    TaskPreempted = "task-preempted",
    ErrorCleared = "error-cleared",
    JobFinished = "job-finished",
    InstanceChanged = "instance-changed",
    ObjectsChanged = "objects-changed",
    CertificateIssued = "certificate-issued",
    HostRevoked = "host-revoked",
    TokenCreated = "token-created",
    TokenUsed = "token-used",
    RequestAnswered = "request-answered",
    NumbersContinued = "numbers-continued",
    UsageCharged = "usage-charged",
    UsageCleared = "usage-cleared",
    ReservationGranted = "reservation-granted",
    ReservationChanged = "reservation-changed",
    ReservationEnded = "reservation-ended",
}
