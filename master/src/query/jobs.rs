//! `qstat` and `qstat -j`: jobs with their tasks.

mod detail;
mod filter;
mod row;

pub(super) use detail::{details, explanation};

use super::{Model, parts};
use filter::Chosen;
use proto::wire::client::{JobFilter, Reply};
use proto::wire::view::Data;

/// Rows of one part of an answer: about a MiB.
const PART: usize = 1_000;

/// The answer to [`proto::wire::client::Query::Jobs`].
pub(super) fn rows(model: &Model, filter: &JobFilter) -> Vec<Reply> {
    let chosen = match Chosen::new(model, filter) {
        Ok(chosen) => chosen,
        Err(refusal) => return vec![Reply::refusal(*refusal)],
    };
    let present = model.state.jobs.values().filter(|job| chosen.admits(&job.spec, job.number));
    let mut rows: Vec<_> = present.map(|job| row::present(model, job)).collect();
    if filter.states.finished {
        let finished = model.state.finished.iter().filter(|job| chosen.admits(&job.spec, job.number));
        rows.extend(finished.map(|job| row::finished(&model.state.config, job)));
    }
    rows.iter_mut().for_each(|row| chosen.keep_tasks(row));
    rows.retain(|row| !row.pending.is_empty() || !row.tasks.is_empty());
    parts(rows, PART, |rows| Reply::data(Data::Jobs(rows)))
}
