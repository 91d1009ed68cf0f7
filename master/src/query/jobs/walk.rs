//! Answers about many jobs, made in parts: what happens, and who else asks, comes in between.
//!
//! A walk goes over the jobs in the order of their submission, those that were there when it was
//! asked for. Each is told once, as it is when its part is made.

#[cfg(test)]
mod tests;

use super::detail::detail;
use super::filter::ParsedFilter;
use super::row;
use crate::model::Model;
use crate::query::parts;
use crate::query::select::Jobs;
use crate::query::viewer::Viewer;
use master_core::explain::{self, PositionAnswer, PositionCount, Question};
use master_core::sched::TaskPhase;
use master_core::sched::report::finding::{Findings, SavedFindings};
use master_core::state::State;
use master_core::state::job::{FinishedJob, Job};
use proto::diagnostic::{Code, Diagnostic};
use proto::id::{JobNumber, SubmitSeq};
use proto::request::TaskRange;
use proto::wire::client::{Answer, JobFilter, Reply};
use proto::wire::view::{Data, Explanation, JobDetail, JobRow, SchedulingLines};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::time::{Duration, Instant};

/// Rows of one part of an answer: about a MiB.
const PART: usize = 1_000;

/// How long one part may take, for which everybody else waits.
const STEP: Duration = Duration::from_millis(2);

/// Jobs that are looked at between two looks at the clock, where each takes a few microseconds.
const JOBS: usize = 16;

/// Tasks on hosts that an explanation names.
const TASKS_EXPLAINED: usize = 10;

/// A walk, and how far it has come.
pub struct Walk {
    kind: WalkKind,
    /// The jobs that are named by their numbers; none where all are looked at.
    only: Option<BTreeSet<SubmitSeq>>,
    /// The last job that was looked at.
    after: SubmitSeq,
    /// The last job there was when the walk began.
    until: SubmitSeq,
}

/// What is told of each job.
enum WalkKind {
    Rows {
        chosen: Box<ParsedFilter>,
        /// The one that had left last when the part before was made.
        left: Option<SubmitSeq>,
    },
    Details {
        targets: Vec<String>,
        jobs: Jobs,
        /// The places of targets that no job had yet.
        missing: BTreeSet<usize>,
        viewer: Viewer,
        saved: Option<Box<SavedFindings>>,
    },
    Reasons {
        saved: Option<Box<SavedFindings>>,
    },
    Explanation {
        explanation: Box<Explanation>,
        /// Who is in front of the job.
        counting: Box<PositionCount>,
    },
}

impl Walk {
    /// The answer to [`proto::wire::client::Query::Jobs`].
    ///
    /// # Errors
    /// The refusal of a resource that the complex does not know.
    pub(in crate::query) fn rows(model: &Model, filter: &JobFilter) -> Result<Self, Reply> {
        let chosen = Box::new(ParsedFilter::new(model, filter).map_err(|refusal| Reply::refusal(*refusal))?);
        let only = only(&model.state, chosen.jobs());
        Ok(Self::new(model, only, WalkKind::Rows { chosen, left: None }))
    }

    /// The answer to [`proto::wire::client::Query::JobDetails`].
    pub(in crate::query) fn details(model: &Model, targets: Vec<String>, viewer: Viewer) -> Self {
        let jobs = Jobs::new(&targets);
        let only = only(&model.state, &jobs);
        let missing = (0..targets.len()).collect();
        Self::new(
            model,
            only,
            WalkKind::Details {
                targets,
                jobs,
                missing,
                viewer,
                saved: None,
            },
        )
    }

    /// The answer to [`proto::wire::client::Query::Reasons`].
    pub(in crate::query) fn reasons(model: &Model) -> Self {
        Self::new(model, None, WalkKind::Reasons { saved: None })
    }

    /// The answer to [`proto::wire::client::Query::Explain`].
    ///
    /// # Errors
    /// What is answered instead: of a job that does not exist, or for which it does not matter what
    /// other jobs there are.
    pub(in crate::query) fn explanation(model: &Model, number: JobNumber, tasks: &[TaskRange]) -> Result<Self, Reply> {
        let Some(job) = model.state.job(number) else {
            return Err(Reply::refusal(gone(&model.state, number)));
        };
        let question = Question {
            seq: job.seq,
            tasks,
            zone: &model.statics.zone,
        };
        let mut explanation = Box::new(explain::explain(&mut model.findings(), question));
        explanation.tasks = row::on_hosts(model, job, tasks, TASKS_EXPLAINED);
        let numbers = model.scheduling.priority(job.seq, TaskPhase::Pending);
        explanation.order = match explain::place(&model.state, &numbers, job.seq, model.statics.clock.now()) {
            PositionAnswer::Counted(counting) => {
                return Ok(Self::new(model, None, WalkKind::Explanation { explanation, counting }));
            }
            PositionAnswer::Apart(place) => Some(place),
            PositionAnswer::Nothing => None,
        };
        Err(Reply::data(Data::Explanation(explanation)))
    }

    fn new(model: &Model, only: Option<BTreeSet<SubmitSeq>>, kind: WalkKind) -> Self {
        Self {
            kind,
            only,
            after: SubmitSeq(0),
            until: model.state.last_submit,
        }
    }

    /// The next part, and the walk if it goes on. A part in which nothing is told has no replies
    /// before the last.
    pub(in crate::query) fn part(self, model: &Model) -> (Vec<Reply>, Option<Self>) {
        self.step(model, Instant::now() + STEP)
    }

    fn step(self, model: &Model, end: Instant) -> (Vec<Reply>, Option<Self>) {
        let Self {
            mut kind,
            only,
            after,
            until,
        } = self;
        // Why one job waits may take as long to be found out as a whole part should.
        let is_long = matches!(kind, WalkKind::Details { .. } | WalkKind::Reasons { .. });
        let jobs = if is_long { 1 } else { JOBS };
        let mut stretch = WalkPart {
            after,
            until,
            only: only.as_ref(),
            end,
            jobs,
            is_last: false,
        };
        let (mut replies, has_told) = kind.tell(model, &mut stretch);
        let WalkPart { after, is_last, .. } = stretch;
        if is_last {
            return (replies, None);
        }
        replies.iter_mut().for_each(|reply| reply.more = true);
        if !has_told {
            replies.clear();
        }
        (
            replies,
            Some(Self {
                kind,
                only,
                after,
                until,
            }),
        )
    }
}

impl WalkKind {
    /// The replies about the jobs of one part, and whether anything is told in them.
    fn tell(&mut self, model: &Model, stretch: &mut WalkPart<'_>) -> (Vec<Reply>, bool) {
        match self {
            WalkKind::Rows { chosen, left } => rows(model, stretch, chosen, left),
            WalkKind::Details {
                targets,
                jobs,
                missing,
                viewer,
                saved,
            } => {
                let mut findings = resume(model, saved.take());
                let (mut replies, has_told) = details(model, stretch, &mut findings, viewer, jobs, missing);
                *saved = Some(Box::new(findings.aside()));
                if stretch.is_last
                    && let Some(last) = replies.last_mut()
                {
                    last.answers = missing.iter().map(|place| refuse(&targets[*place])).collect();
                }
                (replies, has_told)
            }
            WalkKind::Reasons { saved } => {
                let is_first = saved.is_none();
                let mut findings = resume(model, saved.take());
                let told = reasons(model, stretch, &mut findings, is_first);
                *saved = Some(Box::new(findings.aside()));
                told
            }
            WalkKind::Explanation { explanation, counting } => {
                count(model, stretch, counting);
                let told = stretch.is_last.then(|| {
                    explanation.order = Some(counting.place());
                    Reply::data(Data::Explanation(explanation.clone()))
                });
                (told.into_iter().collect(), false)
            }
        }
    }
}

/// The jobs of one part.
struct WalkPart<'w> {
    after: SubmitSeq,
    until: SubmitSeq,
    only: Option<&'w BTreeSet<SubmitSeq>>,
    end: Instant,
    /// How many are looked at between two looks at the clock.
    jobs: usize,
    /// Whether the walk is at its end.
    is_last: bool,
}

impl WalkPart<'_> {
    /// Goes over jobs until the part is full, as `tell` says it, or has taken its time.
    fn walk<'m>(&mut self, state: &'m State, mut tell: impl FnMut(&'m Job) -> usize) {
        let range = (Bound::Excluded(self.after), Bound::Included(self.until));
        let mut all = self.only.is_none().then(|| state.jobs.range(range).map(|(_, job)| job));
        let mut only = self
            .only
            .into_iter()
            .flat_map(|only| only.range(range))
            .filter_map(|seq| state.jobs.get(seq));
        let mut next = || all.as_mut().map_or_else(|| only.next(), Iterator::next);
        let mut looked_at = 0;
        while let Some(job) = next() {
            (self.after, looked_at) = (job.seq, looked_at + 1);
            if tell(job) >= PART || (looked_at % self.jobs == 0 && Instant::now() >= self.end) {
                return;
            }
        }
        self.is_last = true;
    }
}

/// Returns the refusal for a job that does not exist. It says if the job was deleted before it ran.
fn gone(state: &State, number: JobNumber) -> Diagnostic {
    let refusal = Diagnostic::new(Code::UnknownJob, format!("job {number} does not exist"));
    let refusal = refusal.fix("qstat lists the jobs; one that has ended: qacct -j JOB");
    let finished = state.finished.iter().rev().find(|job| job.number == number);
    match finished.filter(|job| !job.tasks.is_empty() && job.tasks.iter().all(|task| task.deleted)) {
        Some(_) => refusal.why("it was deleted before it ran"),
        None => refusal,
    }
}

/// The jobs that are named, where each is by its number.
fn only(state: &State, jobs: &Jobs) -> Option<BTreeSet<SubmitSeq>> {
    let numbers = jobs.numbers().filter(|numbers| !numbers.is_empty())?;
    Some(
        numbers
            .iter()
            .filter_map(|number| state.by_number.get(number))
            .copied()
            .collect(),
    )
}

fn resume(model: &Model, saved: Option<Box<SavedFindings>>) -> Findings<'_> {
    match saved {
        Some(saved) => Findings::resume(&model.state, &model.observations, *saved),
        None => model.findings(),
    }
}

fn rows(
    model: &Model,
    stretch: &mut WalkPart<'_>,
    chosen: &ParsedFilter,
    left: &mut Option<SubmitSeq>,
) -> (Vec<Reply>, bool) {
    // Who has left since the part before was told in it or in one before that, if the walk had come
    // so far.
    let gone = if chosen.has_finished() {
        finished_since(&model.state, *left)
    } else {
        Vec::new()
    };
    let is_new = |job: &&FinishedJob| job.seq > stretch.after && job.seq <= stretch.until;
    let finished: Vec<JobRow> = gone
        .into_iter()
        .filter(is_new)
        .filter(|job| chosen.admits(&job.spec, job.number))
        .map(|job| row::finished(&model.state.config, job))
        .collect();
    *left = model.state.finished.back().map(|job| job.seq).or(*left);
    let mut told: Vec<JobRow> = Vec::new();
    let keep = |rows: &mut Vec<JobRow>, mut row: JobRow| {
        chosen.keep_tasks(model, &mut row);
        if !row.pending.is_empty() || !row.tasks.is_empty() {
            rows.push(row);
        }
    };
    stretch.walk(&model.state, |job| {
        if chosen.admits(&job.spec, job.number) {
            keep(&mut told, row::present(model, job));
        }
        told.len()
    });
    finished.into_iter().for_each(|row| keep(&mut told, row));
    let has_told = !told.is_empty();
    (parts(told, PART, |rows| Reply::data(Data::Jobs(rows))), has_told)
}

/// The jobs that have left after another, in that order; all that are known where it is unknown.
fn finished_since(state: &State, last: Option<SubmitSeq>) -> Vec<&FinishedJob> {
    let mut since: Vec<_> = state
        .finished
        .iter()
        .rev()
        .take_while(|job| Some(job.seq) != last)
        .collect();
    since.reverse();
    since
}

fn details(
    model: &Model,
    stretch: &mut WalkPart<'_>,
    findings: &mut Findings<'_>,
    viewer: &Viewer,
    jobs: &Jobs,
    missing: &mut BTreeSet<usize>,
) -> (Vec<Reply>, bool) {
    let mut told: Vec<JobDetail> = Vec::new();
    stretch.walk(&model.state, |job| {
        let mut is_meant = jobs.is_empty();
        for place in jobs.meaning(job.number, &job.spec.name) {
            missing.remove(&place);
            is_meant = true;
        }
        if is_meant {
            told.push(detail(model, findings, viewer, job));
        }
        told.len()
    });
    let has_told = !told.is_empty();
    (
        parts(told, PART, |details| Reply::data(Data::JobDetails(details))),
        has_told,
    )
}

/// The name alone is what the command prints under its heading `Following jobs do not exist`.
fn refuse(target: &str) -> Answer {
    Answer::Refused(Diagnostic::new(Code::UnknownJob, target))
}

fn count(model: &Model, stretch: &mut WalkPart<'_>, counting: &mut PositionCount) {
    stretch.walk(&model.state, |other| {
        counting.look(
            &model.state,
            other,
            model.scheduling.priority(other.seq, TaskPhase::Pending).prior,
        );
        0
    });
}

fn reasons(
    model: &Model,
    stretch: &mut WalkPart<'_>,
    findings: &mut Findings<'_>,
    is_first: bool,
) -> (Vec<Reply>, bool) {
    let mut alike: BTreeMap<Vec<String>, Vec<JobNumber>> = BTreeMap::new();
    stretch.walk(&model.state, |job| {
        let lines = explain::info_of_one(findings, job);
        if !lines.is_empty() {
            alike.entry(lines).or_default().push(job.number);
        }
        alike.len()
    });
    let mut told: Vec<SchedulingLines> = alike
        .into_iter()
        .map(|(lines, jobs)| SchedulingLines { lines, jobs })
        .collect();
    // Lines appear in the order in which jobs have them.
    told.sort_by_key(|waiting| waiting.jobs[0]);
    if is_first && !model.state.jobs.is_empty() {
        told.insert(
            0,
            SchedulingLines {
                lines: explain::info_of_all(findings),
                jobs: Vec::new(),
            },
        );
    }
    let has_told = !told.is_empty();
    (vec![Reply::data(Data::Reasons(told))], has_told)
}
