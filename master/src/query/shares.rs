//! The share tree with what each part of it gets, as the scheduler last told it.

use super::parts;
use crate::model::Model;
use proto::diagnostic::{Code, Diagnostic};
use proto::wire::client::{Answer, Reply};
use proto::wire::view::Data;

/// Nodes of one part of an answer: about a MiB.
const PART: usize = 2_000;

/// The answer to [`proto::wire::client::Query::Shares`]: one of a moment ago at most, as priorities
/// are.
pub(super) fn nodes(model: &Model) -> Vec<Reply> {
    let config = &model.state.config;
    if config.share_tree.is_none() {
        let refusal = Diagnostic::new(Code::UnknownObject, "no sharetree element");
        return vec![Reply::refusal(
            refusal
                .why("the cell has no share tree")
                .fix("make one with qconf -mstree"),
        )];
    }
    let nodes = model.scheduling.shares().to_vec();
    let mut replies = parts(nodes, PART, |nodes| Reply::data(Data::Shares(nodes)));
    if config.scheduler.weight_tickets_share == 0 {
        let off = Diagnostic::new(
            Code::NotSupported,
            "the share tree decides about nothing: weight_tickets_share is 0",
        );
        let told = off.fix("set it with qconf -msconf, to 10000 for example");
        replies
            .last_mut()
            .into_iter()
            .for_each(|last| last.answers.push(Answer::Warning(told.clone())));
    }
    replies
}
