//! Answers about many jobs, made in parts: what happens, and who else asks, comes in between.
//!
//! A walk goes over the jobs in the order of their submission, those that were there when it was
//! asked for. Each is told once, as it is when its part is made.

use super::detail::detail;
use super::filter::ParsedFilter;
use super::row;
use crate::query::select::Jobs;
use crate::query::viewer::Viewer;
use crate::query::{Model, parts};
use master_core::explain::{self, PositionAnswer, PositionCount, Question};
use master_core::sched::TaskPhase;
use master_core::sched::finding::{Findings, SavedFindings};
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
    what: WalkKind,
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
        aside: Option<Box<SavedFindings>>,
    },
    Reasons {
        aside: Option<Box<SavedFindings>>,
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
                aside: None,
            },
        )
    }

    /// The answer to [`proto::wire::client::Query::Reasons`].
    pub(in crate::query) fn reasons(model: &Model) -> Self {
        Self::new(model, None, WalkKind::Reasons { aside: None })
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

    fn new(model: &Model, only: Option<BTreeSet<SubmitSeq>>, what: WalkKind) -> Self {
        Self {
            what,
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
            mut what,
            only,
            after,
            until,
        } = self;
        // Why one job waits may take as long to be found out as a whole part should.
        let is_long = matches!(what, WalkKind::Details { .. } | WalkKind::Reasons { .. });
        let jobs = if is_long { 1 } else { JOBS };
        let mut stretch = WalkPart {
            after,
            until,
            only: only.as_ref(),
            end,
            jobs,
            is_last: false,
        };
        let (mut replies, has_told) = what.tell(model, &mut stretch);
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
                what,
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
                aside,
            } => {
                let mut findings = resume(model, aside.take());
                let (mut replies, has_told) = details(model, stretch, &mut findings, viewer, jobs, missing);
                *aside = Some(Box::new(findings.aside()));
                if stretch.is_last
                    && let Some(last) = replies.last_mut()
                {
                    last.answers = missing.iter().map(|place| refuse(&targets[*place])).collect();
                }
                (replies, has_told)
            }
            WalkKind::Reasons { aside } => {
                let is_first = aside.is_none();
                let mut findings = resume(model, aside.take());
                let told = reasons(model, stretch, &mut findings, is_first);
                *aside = Some(Box::new(findings.aside()));
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

fn resume(model: &Model, aside: Option<Box<SavedFindings>>) -> Findings<'_> {
    match aside {
        Some(aside) => Findings::resume(&model.state, &model.observations, *aside),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{self, cell_events, ended_task, key, spec};
    use master_core::event::{Actor, Event, Record, TaskFate};
    use proto::id::{EventSeq, UserName};
    use proto::job::{HoldChange, Holds, JobSpec};
    use proto::request::{TaskRange, TaskSet};
    use proto::time::{Now, Tick, Wall};
    use proto::wire::client::{HoldFilter, JobStates};
    use proto::wire::view::PendingTasks;
    use std::sync::Arc;

    /// A model of a cell in which jobs are submitted, run and leave as a test says it.
    struct ModelCell(Model);

    impl ModelCell {
        fn new() -> Self {
            Self(testing::model(&cell_events(0)))
        }

        fn happens(&mut self, event: Event) {
            let seq = EventSeq(self.0.state.last.0 + 1);
            let now = Now {
                tick: Tick(seq.0 * 10),
                wall: Wall(1_800_000_000_000 + seq.0.cast_signed() * 10),
            };
            self.0.apply(&Record {
                seq,
                now,
                actor: Actor::Master,
                request: None,
                event,
            });
        }

        fn submit(&mut self, job: u64, change: impl FnOnce(&mut JobSpec)) {
            let mut spec = JobSpec {
                name: format!("job{job}"),
                ..spec()
            };
            change(&mut spec);
            let number = JobNumber(u32::try_from(job).unwrap());
            let (waits_for, array_waits_for) = (Vec::new(), Vec::new());
            self.happens(Event::JobSubmitted {
                seq: SubmitSeq(job),
                number,
                spec: Arc::new(spec),
                waits_for,
                array_waits_for,
            });
        }

        /// A job runs and leaves.
        fn run(&mut self, job: u64) {
            let key = key(job, 1);
            self.happens(Event::TaskPlaced {
                key,
                granted: testing::granted(),
                pe: None,
                maps: Vec::new(),
            });
            self.happens(Event::TaskStarted { key, at: Wall(0) });
            self.happens(ended_task(0, job, 1).event);
            self.happens(Event::JobFinished { seq: SubmitSeq(job) });
        }

        /// The next part, which has no more time than it takes to look at the clock once.
        fn part(&self, walk: Walk) -> (Vec<Reply>, Option<Walk>) {
            walk.step(&self.0, Instant::now())
        }

        /// All parts of a walk, and what happens between them.
        fn walk(&mut self, walk: Walk, mut meanwhile: impl FnMut(&mut Self, usize)) -> Vec<Vec<Reply>> {
            let (mut parts, mut rest) = (Vec::new(), Some(walk));
            while let Some(walk) = rest.take() {
                let (replies, next) = self.part(walk);
                assert!(
                    replies.iter().all(|reply| reply.more || next.is_none()),
                    "only the last is without more"
                );
                parts.push(replies);
                rest = next;
                meanwhile(self, parts.len());
            }
            assert!(!parts.last().and_then(|last| last.last()).unwrap().more);
            parts
        }
    }

    fn nobody(model: &Model) -> Viewer {
        Viewer::new(model, None, "login".into())
    }

    fn all() -> JobFilter {
        let states = JobStates {
            pending: true,
            running: true,
            suspended: true,
            finished: true,
            ..Default::default()
        };
        JobFilter {
            states,
            ..JobFilter::default()
        }
    }

    fn told(replies: &[Reply]) -> Vec<u32> {
        let of = |reply: &Reply| match &reply.data {
            Some(Data::Jobs(rows)) => rows.iter().map(|row| row.number.0).collect(),
            Some(Data::JobDetails(found)) => found.iter().map(|detail| detail.row.number.0).collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        };
        replies.iter().flat_map(of).collect()
    }

    #[test]
    fn each_job_is_told_once_whatever_happens_while_others_are() {
        let mut cell = ModelCell::new();
        (1..=100).for_each(|job| cell.submit(job, |_| ()));
        cell.run(3);
        let walk = Walk::rows(&cell.0, &all()).ok().unwrap();
        let parts = cell.walk(walk, |cell, parts| {
            if parts == 2 {
                // One that was told, one that comes, and one that is new.
                [10, 90].into_iter().for_each(|job| cell.run(job));
                cell.submit(101, |_| ());
            }
        });
        assert!(parts.len() > 4, "{} parts of {JOBS} jobs", parts.len());
        let mut jobs: Vec<u32> = parts.iter().flat_map(|part| told(part)).collect();
        assert_eq!(
            jobs.iter().position(|job| *job == 90),
            Some(32 + 16 + 1),
            "with the part after it has left"
        );
        jobs.sort_unstable();
        assert_eq!(jobs, (1..=100).collect::<Vec<u32>>());
    }

    #[test]
    fn tasks_in_one_condition_are_one_group_whatever_their_errors_say() {
        let mut cell = ModelCell::new();
        cell.submit(1, |spec| spec.array = TaskRange::parse("1-6").ok());
        for task in [2, 4, 5] {
            let key = key(1, task);
            cell.happens(Event::TaskPlaced {
                key,
                granted: testing::granted(),
                pe: None,
                maps: Vec::new(),
            });
            let then = TaskFate::Error {
                reason: format!("11/26/2026 05:20:0{task} [58001:{task}]: no such file"),
            };
            let ended = Event::TaskEnded {
                key,
                record: None,
                then,
                saved_pid: None,
                charged: None,
            };
            cell.happens(ended);
        }
        let (replies, _) = cell.part(Walk::rows(&cell.0, &all()).ok().unwrap());
        let Some(Data::Jobs(rows)) = &replies[0].data else {
            panic!()
        };
        let shown = |group: &PendingTasks| {
            let tasks: TaskSet = group.tasks.iter().flat_map(|range| range.iter()).collect();
            (group.condition.letters(), tasks.to_string(), group.since)
        };
        let submitted = rows[0].submitted;
        let groups: Vec<_> = rows[0].pending.iter().map(shown).collect();
        let expected = [("qw", "1,3,6"), ("Eqw", "2,4,5")];
        assert_eq!(
            groups,
            expected.map(|(state, tasks)| (state.to_owned(), tasks.to_owned(), submitted))
        );
    }

    #[test]
    fn a_part_in_which_nothing_is_told_is_no_reply() {
        let mut cell = ModelCell::new();
        let bob = |spec: &mut JobSpec| spec.owner.user = UserName::from("bob");
        (1..=100).for_each(|job| {
            if job == 50 {
                cell.submit(job, bob)
            } else {
                cell.submit(job, |_| ())
            }
        });
        for (user, jobs) in [("bob", vec![50]), ("carol", vec![])] {
            let filter = JobFilter {
                users: vec![user.to_owned()],
                ..all()
            };
            let walk = Walk::rows(&cell.0, &filter).ok().unwrap();
            let parts = cell.walk(walk, |_, _| ());
            let replies = parts.iter().map(Vec::len).sum::<usize>();
            assert_eq!((told(&parts.concat()), replies), (jobs.clone(), jobs.len() + 1));
        }
    }

    #[test]
    fn held_tasks_on_hosts_are_shown_with_their_hold_whatever_their_state() {
        let mut cell = ModelCell::new();
        (1..=3).for_each(|job| cell.submit(job, |_| ()));
        for job in [1, 2] {
            let (key, maps) = (key(job, 1), Vec::new());
            cell.happens(Event::TaskPlaced {
                key,
                granted: testing::granted(),
                pe: None,
                maps,
            });
            cell.happens(Event::TaskStarted { key, at: Wall(0) });
        }
        let change = HoldChange {
            set: Holds {
                user: true,
                ..Holds::default()
            },
            ..HoldChange::default()
        };
        cell.happens(Event::HoldsChanged {
            seq: SubmitSeq(1),
            tasks: vec![TaskRange::new(1, 1, 1).unwrap()],
            change,
        });
        let [none, user, system] = [(false, false), (true, false), (false, true)].map(|(user, system)| HoldFilter {
            user,
            system,
            ..HoldFilter::default()
        });
        for (pending, running, held_on_hosts, expected) in [
            (false, false, none, vec![]),
            (false, false, user, vec![1]),
            (false, false, system, vec![]),
            (false, true, system, vec![1, 2]),
            (true, false, user, vec![1, 3]),
        ] {
            let states = JobStates {
                pending,
                running,
                suspended: false,
                held_on_hosts,
                ..JobStates::default()
            };
            let filter = JobFilter {
                states,
                ..JobFilter::default()
            };
            let walk = Walk::rows(&cell.0, &filter).ok().unwrap();
            assert_eq!(told(&cell.walk(walk, |_, _| ()).concat()), expected, "{states:?}");
        }
    }

    #[test]
    fn jobs_that_are_named_by_number_are_all_that_is_looked_at() {
        let mut cell = ModelCell::new();
        (1..=100).for_each(|job| cell.submit(job, |_| ()));
        let targets = ["70", "3", "999", "3"].map(str::to_owned).to_vec();
        let walk = Walk::details(&cell.0, targets, nobody(&cell.0));
        let parts = cell.walk(walk, |_, _| ());
        assert_eq!(
            (told(&parts.concat()), parts.len()),
            (vec![3, 70], 3),
            "a look at the clock after each"
        );
        assert_eq!(parts.concat().last().unwrap().answers, [refuse("999")]);
        let (replies, rest) = cell.part(Walk::details(
            &cell.0,
            vec!["job7?".to_owned(), "nosuch".to_owned()],
            nobody(&cell.0),
        ));
        assert!(replies.is_empty(), "none of the first has such a name");
        let parts = cell.walk(rest.unwrap(), |_, _| ());
        assert_eq!(told(&parts.concat()), (70..80).collect::<Vec<u32>>());
        assert_eq!(parts.concat().last().unwrap().answers, [refuse("nosuch")]);
        let filter = JobFilter {
            jobs: vec!["12".to_owned()],
            ..all()
        };
        let (replies, rest) = cell.part(Walk::rows(&cell.0, &filter).ok().unwrap());
        assert_eq!((told(&replies), rest.is_none()), (vec![12], true));
    }

    #[test]
    fn lines_are_told_once_for_all_jobs_that_have_them() {
        let mut cell = ModelCell::new();
        let held = |spec: &mut JobSpec| {
            spec.holds = Holds {
                user: true,
                ..Holds::default()
            }
        };
        (1..=40).for_each(|job| {
            if job % 10 == 0 {
                cell.submit(job, held)
            } else {
                cell.submit(job, |_| ())
            }
        });
        let walk = Walk::reasons(&cell.0);
        let parts = cell.walk(walk, |_, _| ()).concat();
        let waiting = parts.iter().flat_map(|part| match &part.data {
            Some(Data::Reasons(waiting)) => waiting.clone(),
            other => panic!("{other:?}"),
        });
        let (of_all, of_jobs): (Vec<SchedulingLines>, Vec<SchedulingLines>) =
            waiting.partition(|waiting| waiting.jobs.is_empty());
        assert_eq!(of_all.len(), 1, "in the first part: {of_all:?}");
        assert!(of_all[0].lines.concat().contains("all.q@node1"), "{of_all:?}");
        let held = of_jobs
            .iter()
            .filter(|waiting| waiting.lines.concat().contains("hold state"));
        assert_eq!(
            held.flat_map(|waiting| &waiting.jobs)
                .map(|job| job.0)
                .collect::<Vec<_>>(),
            [10, 20, 30, 40]
        );
    }

    #[test]
    fn the_place_of_a_job_counts_all_others_part_by_part() {
        let mut cell = ModelCell::new();
        (1..=100).for_each(|job| cell.submit(job, |_| ()));
        let walk = Walk::explanation(&cell.0, JobNumber(60), &[]).unwrap();
        let parts = cell.walk(walk, |_, _| ());
        assert!(parts.len() > 4 && parts[..parts.len() - 1].iter().all(Vec::is_empty));
        let Some(Data::Explanation(explanation)) = &parts.concat()[0].data else {
            panic!()
        };
        let order = explanation.order.as_ref().unwrap();
        assert_eq!((order.place, order.of), (Some(60), 100));
        assert!(
            Walk::explanation(&cell.0, JobNumber(101), &[])
                .is_err_and(|reply| reply.answers.iter().any(Answer::is_refusal))
        );
    }
}
