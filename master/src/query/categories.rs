//! The categories of jobs, as the scheduler last told them.

use super::parts;
use crate::model::Model;
use master_core::sched::CategoryRow;
use proto::diagnostic::{Code, Diagnostic};
use proto::wire::client::Reply;
use proto::wire::view::{CategoryView, Data};
use std::collections::BTreeSet;

/// Categories of one part of an answer: about a MiB.
const PART: usize = 5_000;

/// The answer to [`proto::wire::client::Query::Categories`]: one of a moment ago at most, as
/// priorities are.
pub(super) fn views(model: &Model, ids: &[u64]) -> Vec<Reply> {
    let all = model.scheduling.categories();
    // Each once, whatever somebody sends.
    let ids: BTreeSet<u64> = ids.iter().copied().collect();
    let found = |id: &u64| all.binary_search_by_key(id, |known| known.id).map(|at| &all[at]);
    let meant: Vec<&CategoryRow> = match ids.iter().map(found).collect::<Result<Vec<_>, _>>() {
        Ok(_) if ids.is_empty() => all.iter().collect(),
        Ok(meant) => meant,
        Err(_) => {
            let unknown = ids.iter().find(|id| found(id).is_err()).map_or(0, |id| *id);
            let refusal = Diagnostic::new(
                Code::UnknownObject,
                format!("job category \"{unknown}\" does not exist"),
            );
            let why = "a category lasts as long as it has jobs, and has another number after a change of the configuration or a restart";
            return vec![Reply::refusal(
                refusal.why(why).fix("qconf -scatl lists the categories that there are"),
            )];
        }
    };
    let complex = &model.state.config.complex;
    let view = |known: &&CategoryRow| CategoryView {
        id: known.id,
        jobs: known.jobs as u64,
        text: known.key.text(complex),
    };
    parts(meant.iter().map(view).collect(), PART, |views| {
        Reply::data(Data::Categories(views))
    })
}
