//! Which jobs and tasks the words of `gridwright explain` mean: what `qsub` and `qstat` print, and
//! what other commands take.

use crate::client::Client;
use crate::commands::ask;
use crate::exit;
use crate::fail::Fail;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::JobNumber;
use proto::request::TaskRange;
use proto::wire::client::{JobFilter, Query};

use super::ended;

/// A job, and its tasks that are meant; no range means all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TargetJob {
    pub number: JobNumber,
    pub tasks: Vec<TaskRange>,
}

/// A word that a user writes for jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Word<'a> {
    /// `67`, `67.3`, `67.1-4:1`.
    Number(TargetJob),
    /// `name`, `run.sh`, `name*`; with tasks if nothing is called so as a whole: `name.3`.
    Name {
        whole: &'a str,
        with_tasks: Option<(&'a str, TaskRange)>,
    },
}

/// Reads a word.
///
/// # Errors
/// A number with something behind its dot that is no range of tasks.
pub(super) fn word(text: &str) -> Result<Word<'_>, Fail> {
    let number = |text: &str| {
        text.parse()
            .ok()
            .filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
            .map(JobNumber)
    };
    if let Some(number) = number(text) {
        return Ok(Word::Number(TargetJob {
            number,
            tasks: Vec::new(),
        }));
    }
    if let Some((job, tasks)) = text.split_once('.')
        && let Some(number) = number(job)
    {
        let range = TaskRange::parse(tasks).map_err(|error| {
            let what = format!("gridwright explain: {}", error.diagnostic().what);
            Fail::bad_value(what).fix("write JOB.TASK or JOB.FIRST-LAST:STEP, such as 67.3 or 67.1-4:1")
        })?;
        return Ok(Word::Number(TargetJob {
            number,
            tasks: vec![range],
        }));
    }
    let with_tasks = text
        .rsplit_once('.')
        .and_then(|(name, tasks)| Some((name, TaskRange::parse(tasks).ok()?)));
    Ok(Word::Name {
        whole: text,
        with_tasks,
    })
}

/// The jobs that a word means, those that have ended only where no other is called so.
///
/// # Errors
/// See [`word`]. Also fails if there is no such job.
pub(super) fn jobs(client: &mut Client, text: &str) -> Result<Vec<TargetJob>, Fail> {
    let (whole, with_tasks) = match word(text)? {
        Word::Number(chosen) => return Ok(vec![chosen]),
        Word::Name { whole, with_tasks } => (whole, with_tasks),
    };
    let names = [
        Some((whole, Vec::new())),
        with_tasks.map(|(name, range)| (name, vec![range])),
    ];
    for (name, tasks) in names.iter().flatten() {
        let filter = JobFilter {
            jobs: vec![(*name).to_owned()],
            ..JobFilter::default()
        };
        let rows = ask::jobs(client, Query::Jobs(filter))?;
        if !rows.is_empty() {
            return Ok(rows
                .iter()
                .map(|row| TargetJob {
                    number: row.number,
                    tasks: tasks.clone(),
                })
                .collect());
        }
    }
    for (name, tasks) in names.iter().flatten() {
        if let Some(number) = ended::last_called(client, name, tasks)? {
            return Ok(vec![TargetJob {
                number,
                tasks: tasks.clone(),
            }]);
        }
    }
    let refusal = Diagnostic::new(Code::UnknownJob, format!("job \"{text}\" does not exist"));
    Err(Fail::new(
        exit::FAILED,
        refusal.fix("qstat -u '*' lists the jobs; of those that have ended: qacct -j"),
    ))
}

/// Returns the refusal for tasks that the job does not have and that never ran.
pub(super) fn no_such_task(job: &TargetJob) -> Fail {
    let ranges: Vec<String> = job.tasks.iter().map(ToString::to_string).collect();
    let what = format!("job {} has no task {}", job.number, ranges.join(","));
    let refusal = Diagnostic::new(Code::UnknownJob, what);
    Fail::new(
        exit::FAILED,
        refusal.fix(format!("qstat -j {} shows its tasks", job.number)),
    )
}
