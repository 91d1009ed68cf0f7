//! Why something may not run somewhere, with the numbers. Text is made in [`crate::explain`].

pub mod facts;
pub mod group;
mod nearness;
mod value;

pub use nearness::nearness;
pub use value::Value;

use crate::ledger::Level;
use crate::ledger::quota::Scope;
use proto::amount::{Amount, Type};
use proto::complex::Relop;
use proto::id::{AttributeName, PeName, ReservationId};
use proto::wire::view::Dominance;
use std::sync::Arc;

/// One reason, about one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// The object that says no.
    pub level: Level,
    /// Why.
    pub what: Obstacle,
}

/// Why an object says no.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// The queue instance is disabled.
    Disabled,
    /// The queue instance is suspended.
    Suspended,
    /// The calendar of the queue instance has it closed.
    ClosedByCalendar,
    /// The calendar of the queue instance has it suspended.
    SuspendedByCalendar,
    /// A queue instance of the host to which this one is subordinate has it suspended.
    Subordinate,
    /// A task would give way at once to those of a superordinate queue.
    Preempted,
    /// The queue instance is in error.
    InError,
    /// Host groups give the queue instance different values of an attribute.
    Ambiguous,
    /// The agent of the host is not connected, or was not heard for too long.
    NoContact,
    /// The host cannot start tasks at the moment.
    HostUnfit {
        /// The reason that the host gives.
        why: Arc<str>,
    },
    /// All slots of the queue instance are taken.
    Full {
        /// How many there are.
        slots: u32,
    },
    /// A load threshold of the queue instance is reached.
    Overloaded(Overload),
    /// A suspend threshold of the queue instance is reached.
    SuspendAlarm(Overload),
    /// The queue instance is not in the job's hard queue list.
    NotInQueueList,
    /// The advance reservation of the job has it not.
    NotReserved {
        /// The reservation.
        reservation: ReservationId,
    },
    /// The queue instance is in the job's hard queue list, but not in its list for the master.
    NotInMasterQueues,
    /// The queue instance is not in the job's list for slots that are not the master's.
    NotInSlaveQueues,
    /// The queue instance takes no jobs of this kind.
    WrongType {
        /// Which kind: `batch` or `interactive`.
        kind: &'static str,
    },
    /// The parallel environment is not in the queue instance's list.
    NotInPe {
        /// The name or pattern that the job gives.
        pe: String,
    },
    /// The checkpointing environment is not in the queue instance's list.
    NotInCkptList {
        /// The environment.
        name: String,
    },
    /// The host may still run an attempt of the job that was given up.
    MayRunThere,
    /// The access lists of the object do not admit the user.
    NoAccess {
        /// Whether all instances of the queue have the same lists.
        whole_queue: bool,
    },
    /// The project lists of the object do not admit the job.
    NoProject {
        /// The job's project, if it has one.
        project: Option<String>,
        /// Whether the project is in the list of excluded ones.
        excluded: bool,
        /// Whether all instances of the queue have the same lists.
        whole_queue: bool,
    },
    /// The access lists of a parallel environment do not admit the user.
    NoPeAccess {
        /// The environment.
        pe: PeName,
    },
    /// The attribute is defined on no level of the queue instance.
    UnknownResource {
        /// The name.
        attribute: String,
    },
    /// The object has a FORCED attribute for which the job does not ask.
    Forced {
        /// The name.
        attribute: AttributeName,
    },
    /// The object offers too little, or something else.
    Offers(Shortage),
    /// Somebody has the object alone; or the job asks for that, and others use the object.
    InUse {
        /// The exclusive attribute.
        attribute: AttributeName,
        /// Whether the job asks for it.
        is_asked: bool,
    },
    /// No parallel environment has the name that the job gives.
    NoSuchPe {
        /// The name or pattern.
        pe: String,
    },
    /// The parallel environment has too few slots that the job could use.
    PeOffers {
        /// The environment.
        pe: PeName,
        /// The slots found.
        slots: u32,
        /// The least number that would do.
        needed: u32,
        /// The slots of the environment, where it is these that are too few.
        of: Option<u32>,
    },
    /// What leaves a parallel job no more slots on the host that has most for it. 8.1.9 knows
    /// nothing of the kind.
    NoMore(Box<PartialRoom>),
    /// A rule of a resource quota set has no room for it.
    Quota(Box<QuotaDenial>),
    /// There is no queue instance at all, or not the one that is meant.
    NoInstances,
    /// The job is gone.
    NoSuchJob,
    /// An order gives slots that the job did not ask for, or not as its parallel environment
    /// spreads them.
    WrongSlots {
        /// The slots it gives.
        slots: u32,
    },
}

/// A threshold that is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overload {
    /// The attribute.
    pub attribute: AttributeName,
    /// Its type.
    pub r#type: Type,
    /// The comparison under which there is an alarm.
    pub relop: Relop,
    /// The value; none where it is not known, which is an alarm too.
    pub value: Option<Value>,
    /// Where the value comes from.
    pub dominance: Dominance,
    /// The limit as it was set.
    pub limit: String,
}

/// What is asked of an attribute, and what there is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// The attribute.
    pub attribute: AttributeName,
    /// Its type, which decides how numbers are printed.
    pub r#type: Type,
    /// Where the offer comes from.
    pub dominance: Dominance,
    /// What the job needs here: for all of its slots where they share.
    pub needed: Value,
    /// What is free.
    pub free: Value,
    /// What there is in all, of a consumable.
    pub capacity: Option<Amount>,
}

/// A place where a parallel job finds some slots and too few, and what leaves no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartialRoom {
    /// The environment.
    pub pe: PeName,
    /// The slots that it finds there, with that of a master that is no task.
    pub slots: u32,
    /// So many there would do, if nothing changes elsewhere.
    pub wanted: u32,
    /// What there is too little of for so many.
    pub why: Obstacle,
}

/// A limit of a resource quota set that is in the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaDenial {
    /// The rule, as `set/rule`.
    pub rule: String,
    /// Who shares the limit.
    pub scope: Scope,
    /// The attribute that is limited.
    pub attribute: AttributeName,
    /// Its type, which decides how numbers are printed.
    pub r#type: Type,
    /// What the job needs, with all slots that it must have, or that must be on one host where the
    /// limit is that of a host; none if it must ask for the attribute (FORCED) and does not.
    pub needed: Option<Value>,
    /// Whether the limit has to have room for all of that: no part of it can be where the limit
    /// does not count.
    pub is_whole: bool,
    /// What others have in use, of a consumable.
    pub used: Option<Amount>,
    /// The limit.
    pub limit: Value,
}

impl Reason {
    /// A reason about one object.
    pub fn new(level: Level, what: Obstacle) -> Reason {
        Reason { level, what }
    }
}
