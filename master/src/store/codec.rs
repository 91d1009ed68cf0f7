//! Events as they are stored: `(seq, tick, wall, kind, version, actor, request, body)`, for ever.
//!
//! A body is MessagePack with named fields, so that a field that a later version adds has its
//! default here. A form that changes in another way gets a new version number and a step in
//! [`StoredEvent::upcast`].

use super::{RowDamage, StoreError};
use master_core::event::{Actor, Event, Record};
use proto::cell_version::CellVersion;
use proto::id::{EventSeq, RequestId};
use proto::time::{Now, Tick, Wall};
use proto::wire::frame::encode;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_bytes::{ByteBuf, Bytes};
use std::borrow::Cow;

/// The version of the forms that hold all of an event.
const WHOLE: i64 = 1;

/// The version of an end whose accounting record is in the table of these alone.
const WITHOUT_RECORD: i64 = 2;

/// The version of the first event of a cell that is not of the first version. Releases that know
/// that version alone refuse the log at this event, before they read what they would misread.
const LATER_CELL: i64 = 2;

/// The cause and the time of an event, without the event.
#[derive(Clone, Debug, PartialEq)]
pub struct EventHead {
    /// Its number in the log.
    pub seq: EventSeq,
    /// When it became true.
    pub now: Now,
    /// Who caused it.
    pub actor: Actor,
    /// The changing request behind it, if one was.
    pub request: Option<RequestId>,
}

/// An event in a row of the log. Its body lies there, and is not decoded yet.
pub struct UndecodedEvent<'a> {
    /// Its cause and time.
    pub head: EventHead,
    /// The name of its kind.
    pub kind: &'a str,
    version: i64,
    body: &'a [u8],
}

/// Reads what [`StoredEvent`] writes, without a copy of the body.
impl<'de: 'a, 'a> Deserialize<'de> for UndecodedEvent<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        type BorrowedColumns<'a> = (u64, u64, i64, &'a str, i64, Actor, Option<RequestId>, &'a Bytes);
        let (seq, tick, wall, kind, version, actor, request, body) = BorrowedColumns::deserialize(deserializer)?;
        let now = Now {
            tick: Tick(tick),
            wall: Wall(wall),
        };
        let head = EventHead {
            seq: EventSeq(seq),
            now,
            actor,
            request,
        };
        Ok(Self {
            head,
            kind,
            version,
            body,
        })
    }
}

impl UndecodedEvent<'_> {
    /// Decodes the event.
    ///
    /// # Errors
    /// `UnknownEvent`, `Damaged`.
    pub fn event(&self) -> Result<Event, StoreError> {
        Ok(self.stored(self.body.to_vec()).decode(None)?.event)
    }

    /// Decodes the fields of the event that `T` has. No memory is taken for the others.
    ///
    /// # Errors
    /// `UnknownEvent`, `Damaged`.
    pub fn fields<T: DeserializeOwned>(&self) -> Result<T, StoreError> {
        let stored = self.stored(Vec::new());
        stored.check_form()?;
        rmp_serde::from_slice(self.body).map_err(|error| stored.damaged(error))
    }

    fn stored(&self, body: Vec<u8>) -> StoredEvent<'_> {
        let EventHead {
            seq,
            now,
            actor,
            request,
        } = &self.head;
        StoredEvent {
            seq: seq.0,
            tick: now.tick.0,
            wall: now.wall.0,
            kind: Cow::Owned(self.kind.to_owned()),
            version: self.version,
            actor: Cow::Borrowed(actor),
            request: *request,
            body,
        }
    }
}

/// One event as it is stored.
pub(super) struct StoredEvent<'a> {
    pub(super) seq: u64,
    pub(super) tick: u64,
    pub(super) wall: i64,
    pub(super) kind: Cow<'static, str>,
    pub(super) version: i64,
    pub(super) actor: Cow<'a, Actor>,
    pub(super) request: Option<RequestId>,
    pub(super) body: Vec<u8>,
}

/// As an array of its parts; the body as a string of bytes, so that one that cannot be read is one
/// event's matter.
impl Serialize for StoredEvent<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self {
            seq,
            tick,
            wall,
            kind,
            version,
            actor,
            request,
            body,
        } = self;
        (seq, tick, wall, kind, version, actor, request, Bytes::new(body)).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for StoredEvent<'static> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        type RecordColumns = (u64, u64, i64, String, i64, Actor, Option<RequestId>, ByteBuf);
        let (seq, tick, wall, kind, version, actor, request, body) = RecordColumns::deserialize(deserializer)?;
        let (kind, actor, body) = (kind.into(), Cow::Owned(actor), body.into_vec());
        Ok(Self {
            seq,
            tick,
            wall,
            kind,
            version,
            actor,
            request,
            body,
        })
    }
}

impl<'a> StoredEvent<'a> {
    /// As it is written: an accounting record is stored apart.
    pub(super) fn encode(record: &'a Record) -> Self {
        match without_record(&record.event) {
            Some(rest) => Self::from_record(record, WITHOUT_RECORD, &rest),
            None => Self::whole(record),
        }
    }

    /// With all that an event brings in its body.
    pub(super) fn whole(record: &'a Record) -> Self {
        let is_later = matches!(record.event, Event::CellCreated { version, .. } if version > CellVersion::FIRST);
        let version = if is_later { LATER_CELL } else { WHOLE };
        Self::from_record(record, version, &record.event)
    }

    fn from_record(record: &'a Record, version: i64, event: &Event) -> Self {
        let Record {
            seq,
            now,
            actor,
            request,
            event: _,
        } = record;
        Self {
            seq: seq.0,
            tick: now.tick.0,
            wall: now.wall.0,
            kind: kind(event).into(),
            version,
            actor: Cow::Borrowed(actor),
            request: *request,
            body: encode(event),
        }
    }

    /// Whether its accounting record is stored apart.
    pub(super) fn is_without_record(&self) -> bool {
        self.version == WITHOUT_RECORD && ENDS.contains(&&*self.kind)
    }

    /// The event, with the accounting record that was stored apart.
    pub(super) fn decode(self, accounting: Option<&[u8]>) -> Result<Record, StoreError> {
        let event = self.upcast(accounting)?;
        let now = Now {
            tick: Tick(self.tick),
            wall: Wall(self.wall),
        };
        Ok(Record {
            seq: EventSeq(self.seq),
            now,
            actor: self.actor.into_owned(),
            request: self.request,
            event,
        })
    }

    /// The event in today's form, whichever version wrote it.
    fn upcast(&self, accounting: Option<&[u8]>) -> Result<Event, StoreError> {
        self.check_form()?;
        let mut event: Event = rmp_serde::from_slice(&self.body).map_err(|error| self.damaged(error))?;
        if kind(&event) != self.kind {
            return Err(self.damaged(RowDamage::OtherKind));
        }
        if let Event::CellCreated { version, .. } | Event::CellVersionRaised { version } = event
            && version > CellVersion::NEWEST
        {
            return Err(StoreError::NewerCell { version });
        }
        if self.is_without_record() {
            let bytes = accounting.ok_or_else(|| self.damaged(RowDamage::NoAccountingRecord))?;
            let accounting = rmp_serde::from_slice(bytes).map_err(|error| self.damaged(error))?;
            if let Event::TaskEnded { record, .. } | Event::SlaveEnded { record, .. } = &mut event {
                *record = Some(accounting);
            }
        }
        Ok(event)
    }

    /// Refuses a kind or a version of a kind that is not known here.
    fn check_form(&self) -> Result<(), StoreError> {
        let is_known = match self.version {
            WHOLE => KINDS.contains(&&*self.kind),
            WITHOUT_RECORD if ENDS.contains(&&*self.kind) => true,
            LATER_CELL => self.kind == FIRST_KIND,
            _ => false,
        };
        if !is_known {
            let (seq, kind) = (self.seq, self.kind.clone().into_owned());
            return Err(StoreError::UnknownEvent {
                seq,
                kind,
                version: self.version,
            });
        }
        Ok(())
    }

    fn damaged(&self, why: impl Into<RowDamage>) -> StoreError {
        StoreError::Damaged {
            seq: self.seq,
            kind: self.kind.clone().into_owned(),
            why: why.into(),
        }
    }
}

/// The kind of the first event of a cell.
const FIRST_KIND: &str = "cell-created";

/// The kinds of events that may bring an accounting record.
const ENDS: &[&str] = &["task-ended", "slave-ended"];

/// What an event says beside the accounting record that it brings; none if it brings none.
#[allow(
    clippy::wildcard_enum_match_arm,
    reason = "no other event brings an accounting record"
)]
fn without_record(event: &Event) -> Option<Event> {
    match event {
        Event::TaskEnded {
            key,
            record: Some(_),
            then,
            saved_pid,
            charged,
        } => Some(Event::TaskEnded {
            key: *key,
            record: None,
            then: then.clone(),
            saved_pid: *saved_pid,
            charged: *charged,
        }),
        Event::SlaveEnded {
            key,
            record: Some(_),
            exit_status,
            reason,
            usage,
            rusage,
            charged,
        } => Some(Event::SlaveEnded {
            key: *key,
            record: None,
            exit_status: *exit_status,
            reason: reason.clone(),
            usage: *usage,
            rusage: *rusage,
            charged: *charged,
        }),
        _ => None,
    }
}

/// Declares the names of the kinds, for the database and for the check that a row is of a kind we
/// know.
macro_rules! kinds {
    ($($variant:ident = $name:literal,)*) => {
        pub(crate) const KINDS: &[&str] = &[$($name,)*];

        /// The name of an event's kind, in the database and for people.
        pub(crate) fn kind(event: &Event) -> &'static str {
            match event { $(Event::$variant { .. } => $name,)* }
        }
    };
}

kinds! {
    CellCreated = "cell-created",
    CellVersionRaised = "cell-version-raised",
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
    TaskRebooked = "task-rebooked",
    ErrorCleared = "error-cleared",
    JobFinished = "job-finished",
    InstanceChanged = "instance-changed",
    ObjectsChanged = "objects-changed",
    CertificateIssued = "certificate-issued",
    HostRevoked = "host-revoked",
    HostTasksBound = "host-tasks-bound",
    TokenCreated = "token-created",
    TokenRevoked = "token-revoked",
    TokenUsed = "token-used",
    RequestAnswered = "request-answered",
    NumbersContinued = "numbers-continued",
    UsageCharged = "usage-charged",
    UsageCleared = "usage-cleared",
    ReservationGranted = "reservation-granted",
    ReservationChanged = "reservation-changed",
    ReservationEnded = "reservation-ended",
}
