//! One table of what each obstacle is about: its rows are all that most code has to know of it.
//!
//! To add an obstacle, add a row here and its words in `explain/words.rs` and `explain/plain.rs`.
//! The ranking, the numbers, the holders and the advice of `gridwright explain` follow from the
//! row, and so does whether `qstat -j` names it for every job. Reasons about different attributes
//! stay apart only if `reason/group.rs` compares them.

use super::{Obstacle, Overload, PartialRoom, QuotaDenial, Shortage};
use proto::id::{AttributeName, PeName};

/// What is known of an obstacle beside its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReasonFacts<'a> {
    /// Where the cause lies.
    pub cause: ReasonCause,
    /// How far from starting the job is: 0 too little of an amount is free, 1 a value has to
    /// change, such as the load, 2 the queue instance has to change its state, 3 the complex or the
    /// kind of the job stands against it, 4 a list does, 5 the job itself asks to run elsewhere.
    pub distance: u32,
    /// What there is too little or too much of.
    pub about: ReasonSubject<'a>,
    /// What ends it, where that is sure.
    pub remedy: Remedy<'a>,
}

/// Where the cause of an obstacle lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReasonCause {
    /// The queue instance takes no job at all for now, whatever it asks for.
    Instance,
    /// The requests of the job: sentences begin with them.
    Requests,
    /// Rules and lists.
    Rules,
}

/// What there is too little or too much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReasonSubject<'a> {
    /// Nothing that has a number.
    Nothing,
    /// An attribute, without numbers.
    Attribute(&'a str),
    /// An amount or value of an attribute.
    Shortage(&'a Shortage),
    /// A threshold.
    Threshold(&'a Overload),
    /// The slots of the queue instance, all taken: so many.
    Slots(u32),
    /// An object that one job has alone.
    Exclusive {
        /// The exclusive attribute.
        attribute: &'a AttributeName,
        /// Whether the waiting job asks for it.
        is_asked: bool,
    },
    /// The slots of a parallel environment.
    PeSlots {
        /// The environment.
        pe: &'a PeName,
        /// The slots found.
        slots: u32,
        /// The least number that would do.
        needed: u32,
        /// The slots of the environment, where it is these that are too few.
        of: Option<u32>,
    },
    /// The host that has most room for a parallel job.
    Room(&'a PartialRoom),
    /// A limit of a resource quota set.
    Quota(&'a QuotaDenial),
}

/// What ends an obstacle. Text is made in [`crate::explain`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy<'a> {
    /// Waiting, or nothing that is known.
    Unknown,
    /// An operator enables the queue instance.
    Enable,
    /// An operator resumes the queue instance.
    Resume,
    /// The calendar of the queue instance opens it.
    Calendar,
    /// The superordinate queue has less to do.
    SuperordinateQueue,
    /// An operator clears the error.
    ClearError,
    /// Somebody sets the ambiguous attributes.
    SetAmbiguous,
    /// The agent of the host connects.
    Agent,
    /// The host becomes well.
    Host,
    /// The job asks for an attribute.
    AskFor(&'a AttributeName),
    /// Something offers the attribute.
    Offer(&'a str),
    /// An access list of the object admits the user.
    AccessList,
    /// An access list of the parallel environment admits the user.
    PeAccessList(&'a PeName),
    /// The job names a project.
    NameProject,
    /// The job names another project.
    ChangeProject,
    /// The job names a parallel environment that exists.
    NamePe,
    /// Less is in use of the quota, or the job asks for less.
    Quota(&'a QuotaDenial),
}

impl Obstacle {
    /// What is known of the obstacle beside its words.
    pub fn facts(&self) -> ReasonFacts<'_> {
        use ReasonCause::{Instance, Requests, Rules};
        use ReasonSubject as About;
        let nothing = About::Nothing;
        let (cause, distance, about, remedy) = match self {
            Obstacle::Disabled => (Instance, 2, nothing, Remedy::Enable),
            Obstacle::Suspended => (Instance, 2, nothing, Remedy::Resume),
            Obstacle::ClosedByCalendar | Obstacle::SuspendedByCalendar => (Instance, 2, nothing, Remedy::Calendar),
            Obstacle::Subordinate | Obstacle::Preempted => (Instance, 1, nothing, Remedy::SuperordinateQueue),
            Obstacle::InError => (Instance, 2, nothing, Remedy::ClearError),
            Obstacle::Ambiguous => (Instance, 2, nothing, Remedy::SetAmbiguous),
            Obstacle::NoContact => (Instance, 2, nothing, Remedy::Agent),
            Obstacle::HostUnfit { .. } => (Instance, 2, nothing, Remedy::Host),
            Obstacle::Full { slots } => (Instance, 0, About::Slots(*slots), Remedy::Unknown),
            Obstacle::Overloaded(overload) | Obstacle::SuspendAlarm(overload) => {
                (Instance, 1, About::Threshold(overload), Remedy::Unknown)
            }
            Obstacle::MayRunThere => (Rules, 2, nothing, Remedy::Unknown),
            Obstacle::NotInQueueList | Obstacle::NotReserved { .. } => (Rules, 5, nothing, Remedy::Unknown),
            Obstacle::NotInMasterQueues
            | Obstacle::NotInSlaveQueues
            | Obstacle::NotInPe { .. }
            | Obstacle::NotInCkptList { .. } => (Rules, 4, nothing, Remedy::Unknown),
            Obstacle::WrongType { .. } => (Rules, 3, nothing, Remedy::Unknown),
            Obstacle::NoAccess { .. } => (Rules, 4, nothing, Remedy::AccessList),
            Obstacle::NoPeAccess { pe } => (Rules, 4, nothing, Remedy::PeAccessList(pe)),
            Obstacle::NoProject { project: None, .. } => (Rules, 4, nothing, Remedy::NameProject),
            Obstacle::NoProject { project: Some(_), .. } => (Rules, 4, nothing, Remedy::ChangeProject),
            Obstacle::Forced { attribute } => (
                Rules,
                3,
                About::Attribute(attribute.as_str()),
                Remedy::AskFor(attribute),
            ),
            Obstacle::UnknownResource { attribute } => {
                (Requests, 3, About::Attribute(attribute), Remedy::Offer(attribute))
            }
            Obstacle::Offers(shortage) => {
                let distance = u32::from(shortage.capacity.is_none());
                (Requests, distance, About::Shortage(shortage), Remedy::Unknown)
            }
            Obstacle::InUse { attribute, is_asked } => {
                let is_asked = *is_asked;
                (Requests, 0, About::Exclusive { attribute, is_asked }, Remedy::Unknown)
            }
            Obstacle::NoMore(room) => (Requests, 0, About::Room(room), Remedy::Unknown),
            Obstacle::PeOffers { pe, slots, needed, of } => {
                let (slots, needed, of) = (*slots, *needed, *of);
                (Rules, 0, About::PeSlots { pe, slots, needed, of }, Remedy::Unknown)
            }
            Obstacle::Quota(denial) => (Rules, 0, About::Quota(denial), Remedy::Quota(denial)),
            Obstacle::NoSuchPe { .. } => (Rules, 0, nothing, Remedy::NamePe),
            Obstacle::NoInstances | Obstacle::NoSuchJob | Obstacle::WrongSlots { .. } => {
                (Rules, 0, nothing, Remedy::Unknown)
            }
        };
        ReasonFacts {
            cause,
            distance,
            about,
            remedy,
        }
    }
}
