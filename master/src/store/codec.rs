//! Events as they are stored: `(seq, tick, wall, kind, version, actor, request, body)`, for ever.
//!
//! A body is MessagePack with named fields, so that a field that a later version adds has its default here. A form that
//! changes in another way gets a new version number and a step in [`upcast`].

use super::StoreError;
use master_core::event::{Event, Record};
use proto::id::{EventSeq, RequestId};
use proto::time::{Now, Tick, Wall};
use proto::wire::frame::encode;
use rusqlite::Row;

/// The version of the forms that this release writes.
const EVENT_VERSION: i64 = 1;

/// One row of the log.
pub(super) struct Stored {
    pub(super) seq: u64,
    pub(super) tick: u64,
    pub(super) wall: i64,
    pub(super) kind: String,
    pub(super) version: i64,
    pub(super) actor: Vec<u8>,
    pub(super) request: Option<Vec<u8>>,
    pub(super) body: Vec<u8>,
}

impl Stored {
    pub(super) fn encode(record: &Record) -> Self {
        let Record { seq, now, actor, request, event } = record;
        Self {
            seq: seq.0,
            tick: now.tick.0,
            wall: now.wall.0,
            kind: kind(event).to_owned(),
            version: EVENT_VERSION,
            actor: encode(actor),
            request: request.map(|id| id.0.to_be_bytes().to_vec()),
            body: encode(event),
        }
    }

    pub(super) fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            seq: row.get::<_, i64>(0)?.unsigned_abs(),
            tick: row.get::<_, i64>(1)?.unsigned_abs(),
            wall: row.get(2)?,
            kind: row.get(3)?,
            version: row.get(4)?,
            actor: row.get(5)?,
            request: row.get(6)?,
            body: row.get(7)?,
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
        if self.version != EVENT_VERSION || !KINDS.contains(&self.kind.as_str()) {
            return Err(StoreError::UnknownEvent { seq: self.seq, kind: self.kind.clone(), version: self.version });
        }
        let event: Event = rmp_serde::from_slice(&self.body).map_err(|error| self.damaged(error))?;
        if kind(&event) == self.kind { Ok(event) } else { Err(self.damaged("its body is of another kind")) }
    }

    fn damaged(&self, why: impl ToString) -> StoreError {
        StoreError::Damaged { seq: self.seq, kind: self.kind.clone(), why: why.to_string() }
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
