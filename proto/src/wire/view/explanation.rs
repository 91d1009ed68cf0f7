//! Why a job waits, as the master tells it: enough for the text and the JSON of
//! `gridwright explain`.

use super::TaskRow;
use crate::id::{JobNumber, ReservationId, TaskId, UserName};
use crate::job::GrantedSlots;
use crate::time::Wall;
use serde::{Deserialize, Serialize};

/// Why a job waits, with numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Explanation {
    /// The job.
    pub job: u32,
    /// Its name.
    pub name: String,
    /// Its owner.
    pub owner: String,
    /// One sentence.
    pub summary: String,
    /// Reasons, nearest miss first.
    pub reasons: Vec<WaitReason>,
    /// When it starts at the latest for all that is known, where slots are kept for it.
    #[serde(default)]
    pub starts: Option<Wall>,
    /// These slots, the master's first.
    #[serde(default)]
    pub kept: Vec<GrantedSlots>,
    /// Where it is in the order in which jobs are looked at.
    #[serde(default)]
    pub order: Option<OrderPosition>,
    /// Whether nothing but that order keeps it waiting: it would fit if jobs in front took nothing.
    pub by_order: bool,
    /// Tasks on hosts, among those that were asked about; the first few.
    pub tasks: Vec<TaskRow>,
    /// How many of the tasks that were asked about are on hosts.
    pub on_hosts: u32,
    /// How many of them wait.
    pub pending: u32,
}

/// Where a pending job is in the order in which jobs are looked at, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OrderPosition {
    /// The place of the job, 1 for the first. `None` if the job is not considered, or if priorities
    /// do not decide.
    pub place: Option<u64>,
    /// How many pending jobs have a place.
    pub of: u64,
    /// Why it has no place, or what its place means.
    pub remark: Option<String>,
    /// Its dispatch priority, in millionths.
    pub prior: i64,
    /// The terms whose sum is the priority.
    pub terms: Vec<PriorityTerm>,
    /// Jobs in front of it, the nearest first; a few of them.
    pub in_front: Vec<JobInFront>,
    /// How many jobs of each user are in front of it, most first; a few of them.
    pub users_in_front: Vec<(UserName, u64)>,
}

/// One term of a dispatch priority. Numbers are millionths.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PriorityTerm {
    /// `posix priority`, `urgency`, `tickets`.
    pub name: String,
    /// The number that is normalised.
    pub raw: i64,
    /// The named parts whose sum is the raw number. Empty for the first term.
    pub parts: Vec<(String, i64)>,
    /// The normalised number, 0 to 1.
    pub normalised: i64,
    /// The weight in the scheduler configuration.
    pub weight: i64,
    /// Weight and normalised number multiplied.
    pub value: i64,
}

/// A job in front of another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobInFront {
    /// The job.
    pub job: JobNumber,
    /// Its owner.
    pub owner: UserName,
    /// Its dispatch priority, in millionths.
    pub prior: i64,
}

/// One reason, grouped over the objects it holds for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitReason {
    /// The reason in the words of 8.1.9 where it has any.
    pub text: String,
    /// The attribute, where one is the cause.
    pub attribute: Option<String>,
    /// `global`, `host`, `queue`, `pe`, `job`.
    pub level: String,
    /// The needed amount or value, printed by its type.
    pub needed: Option<String>,
    /// The free amount or the present value.
    pub free: Option<String>,
    /// The total amount.
    pub capacity: Option<String>,
    /// For how many objects it holds.
    pub count: u32,
    /// Some of them.
    pub examples: Vec<String>,
    /// Advice, if it is certain to help.
    pub hint: Option<String>,
    /// Further facts about the reason.
    #[serde(default)]
    pub context: ReasonContext,
}

/// Facts about a reason besides its sentence and its numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReasonContext {
    /// How `needed` and `free` of the reason compare.
    pub comparison: Comparison,
    /// Whether it stays, however long the job waits, unless somebody changes the job or the cell.
    pub permanent: bool,
    /// When it is over by itself, where that is known.
    pub until: Option<Wall>,
    /// Tasks and reservations that have what is missing, those first that give it back first; the
    /// first few.
    pub holders: Vec<Holder>,
    /// How many there are in all.
    pub holders_count: u32,
    /// Jobs that have to end first; the first few.
    pub predecessors: Vec<Predecessor>,
}

/// How the two values of a reason compare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Comparison {
    /// `needed` is an amount, and `free` is the remaining amount.
    #[default]
    Amount,
    /// `needed` is a value that the job asks for, `free` is the one that is there: a text, a truth
    /// value, or a number of no amount.
    Value,
    /// `needed` is a threshold, `free` is the load that reaches it.
    Threshold,
}

/// A task or an advance reservation that has some of what a job waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Holder {
    /// The job; `None` of a reservation.
    pub job: Option<JobNumber>,
    /// The task, if the job is an array.
    pub task: Option<TaskId>,
    /// The reservation, if it is one.
    pub reservation: Option<ReservationId>,
    /// The owner.
    pub owner: String,
    /// How much it has, printed by the type of the attribute.
    pub amount: String,
    /// When it gives that back at the latest, where a limit or a request of the run time says so.
    pub until: Option<Wall>,
}

/// A job that has to end before another starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Predecessor {
    /// The job.
    pub job: JobNumber,
    /// Its name.
    pub name: String,
    /// Its owner.
    pub owner: String,
    /// `runs`, `waits`, `is held`, `is in error`; `has ended` where its successors are held all the
    /// same.
    pub state: String,
    /// The queue instance of its first running task, if one runs.
    pub place: Option<String>,
    /// Since when that task runs.
    pub since: Option<Wall>,
    /// When that task ends at the latest, where a limit or a request of the run time says so.
    pub until: Option<Wall>,
}
