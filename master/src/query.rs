//! Answers to questions, from the model of the reader thread. Each kind of answer is in the module
//! of its name. Long answers are walks, which go on part by part. Nothing here decides anything.
//!
//! Not answered here: questions that wait for a job, and the event stream. Followers answer those.

mod accounting;
mod categories;
mod changes;
mod conditions;
mod hosts;
mod jobs;
mod kept;
mod objects;
mod queues;
mod reservations;
mod select;
mod shares;
mod status;
mod viewer;

pub use accounting::Accounting;
pub use changes::Changes;
pub use jobs::Walk;
pub use reservations::fails;
pub use viewer::Viewer;

use crate::model::Model;
use master_core::matching::Mode;
use proto::diagnostic::{Code, Diagnostic};
use proto::wire::client::{Query, QuotaFilter, Reply};
use proto::wire::view::Data;

/// An answer, or one part of it.
#[derive(Default)]
pub struct AnswerPart {
    /// The replies, in order. All but the last one of an answer say that more follow.
    pub replies: Vec<Reply>,
    /// The rest of the answer. It is made when its receiver asks for it, so an answer is made as
    /// fast as it is read.
    pub rest: Option<Box<Walk>>,
}

impl From<Vec<Reply>> for AnswerPart {
    fn from(replies: Vec<Reply>) -> Self {
        Self { replies, rest: None }
    }
}

/// The answer to a question that can be answered at once, or its first part.
pub fn respond(model: &Model, query: Query, viewer: impl FnOnce() -> Viewer) -> AnswerPart {
    #[allow(clippy::wildcard_enum_match_arm, reason = "all other answers are made in one part")]
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
pub fn walked(model: &Model, walk: Walk) -> AnswerPart {
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
