//! Lines of `qstat`: jobs taken apart into what one line shows, in the order of 8.1.9.

use crate::output::json;
use proto::id::{HostName, JobNumber, QueueInstanceName};
use proto::job::{GrantedSlots, Holds, Phase};
use proto::request::TaskSet;
use proto::time::Wall;
use proto::usage::Usage;
use proto::wire::view::{JobRow, PendingTasks, PriorityNumbers, QueueView, TaskRow};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Which of a task's slots a line of `-g t` is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The job is pending or has left the cell.
    None,
    /// The slot that runs the job script.
    Master,
    /// Any other slot.
    Slave,
}

impl Role {
    /// The word in the column `master`.
    pub fn text(self) -> &'static str {
        match self {
            Role::None => "",
            Role::Master => "MASTER",
            Role::Slave => "SLAVE",
        }
    }
}

/// What one line shows.
#[derive(Clone, Debug)]
pub struct JobLine<'a> {
    /// The job.
    pub job: &'a JobRow,
    /// The task, where the line is about one that is on a host.
    pub task: Option<&'a TaskRow>,
    /// Whether the line is about tasks that have left the cell.
    pub has_left: bool,
    /// State letters.
    pub letters: String,
    /// Zero for what is not looked at: held tasks and those above a limit of their array.
    pub priority: PriorityNumbers,
    /// When it was submitted, or started.
    pub moment: Wall,
    /// Where it runs.
    pub instance: Option<&'a QueueInstanceName>,
    /// Which of its slots this is.
    pub role: Role,
    /// How many slots this line stands for.
    pub slots: u32,
    /// The column `ja-task-ID`; none if the job is no array.
    pub tasks: Option<String>,
    /// Whether the line above is of the same task, so that only its slot is new.
    pub is_repeat: bool,
}

impl JobLine<'_> {
    /// Use so far, once the host tells it. Other slots than the first have no numbers of their own.
    pub fn usage(&self) -> Option<&Usage> {
        let task = self.task.filter(|task| task.condition.phase == Phase::Running)?;
        (self.role != Role::Slave).then_some(&task.usage)
    }

    /// The queue instance of the first slot.
    pub fn master_queue(&self) -> Option<&QueueInstanceName> {
        self.task?.granted.first().map(|granted| &granted.instance)
    }
}

/// Tasks on hosts, by job number and task: one line each, or one for each slot.
pub fn running(rows: &[JobRow], per_slot: bool) -> Vec<JobLine<'_>> {
    let mut lines = Vec::new();
    for (job, task) in on_hosts(rows) {
        let total = task.granted.iter().map(|granted| granted.slots).sum();
        let first = task.granted.first().map(|granted| &granted.instance);
        let whole = JobLine {
            slots: total,
            instance: first,
            ..on_host(job, task)
        };
        if per_slot {
            lines.extend(
                task.granted
                    .iter()
                    .enumerate()
                    .flat_map(|(at, granted)| slots(&whole, granted, at == 0)),
            );
        } else {
            lines.push(whole);
        }
    }
    mark_repeats(&mut lines);
    lines
}

/// The same, in the `order` of these queue instances; what is in none of them comes behind.
pub fn listed<'a>(rows: &'a [JobRow], per_slot: bool, order: &[QueueView]) -> Vec<JobLine<'a>> {
    let mut lines = running(rows, per_slot);
    if !order.is_empty() {
        let places: BTreeMap<_, _> = order.iter().map(instance_of).zip(0..).collect();
        let place = |line: &JobLine<'_>| line.instance.and_then(|instance| places.get(instance).copied());
        lines.sort_by_key(|line| place(line).unwrap_or(usize::MAX));
        mark_repeats(&mut lines);
    }
    lines
}

/// Tasks by the queue instances that they have slots of; in each by job number and task.
pub fn by_instance(rows: &[JobRow], per_slot: bool) -> BTreeMap<&QueueInstanceName, Vec<JobLine<'_>>> {
    let mut lines: BTreeMap<&QueueInstanceName, Vec<JobLine<'_>>> = BTreeMap::new();
    for (job, task) in on_hosts(rows) {
        for (at, granted) in task.granted.iter().enumerate() {
            // A master that is no task takes a slot where no task is.
            let slots_here = granted.slots.max(u32::from(at == 0));
            let here = JobLine {
                slots: slots_here,
                instance: Some(&granted.instance),
                ..on_host(job, task)
            };
            let there = lines.entry(&granted.instance).or_default();
            if per_slot {
                there.extend(slots(&here, granted, at == 0));
            } else {
                there.push(here);
            }
        }
    }
    lines.values_mut().for_each(|lines| mark_repeats(lines));
    lines
}

/// Every slot by its host; on each by job number and task.
pub fn by_host(rows: &[JobRow]) -> BTreeMap<&HostName, Vec<JobLine<'_>>> {
    let mut lines: BTreeMap<&HostName, Vec<JobLine<'_>>> = BTreeMap::new();
    for line in running(rows, true) {
        if let Some(instance) = line.instance {
            lines.entry(&instance.host).or_default().push(line);
        }
    }
    lines.values_mut().for_each(|lines| mark_repeats(lines));
    lines
}

/// The name of a queue instance, to look its tasks up.
pub fn instance_of(queue: &QueueView) -> QueueInstanceName {
    QueueInstanceName {
        queue: queue.queue.clone(),
        host: queue.host.clone(),
    }
}

/// Pending tasks: by falling priority, then by job number, condition and task. Array tasks in one
/// condition share a line unless each has its own (`-g d`).
pub fn pending(rows: &[JobRow], per_task: bool) -> Vec<JobLine<'_>> {
    let mut groups: Vec<(TaskSet, JobLine<'_>, u8)> = Vec::new();
    for job in rows {
        for group in &job.pending {
            let tasks = group.tasks.iter().flat_map(|range| range.iter()).collect();
            groups.push((tasks, waiting(job, group), rank(group)));
        }
    }
    let first = |set: &TaskSet| set.iter().next();
    groups.sort_by(|(a_tasks, a, a_rank), (b_tasks, b, b_rank)| {
        let by_priority = b.priority.prior.cmp(&a.priority.prior);
        let by_job = || (a.job.number, a_rank, first(a_tasks)).cmp(&(b.job.number, b_rank, first(b_tasks)));
        by_priority.then_with(by_job)
    });
    let mut lines = Vec::new();
    for (tasks, line, _) in groups {
        match (line.job.array, per_task) {
            (None, _) => lines.push(line),
            (Some(_), false) => lines.push(JobLine {
                tasks: Some(tasks.to_string()),
                ..line
            }),
            (Some(_), true) => {
                lines.extend(tasks.iter().map(|task| JobLine {
                    tasks: Some(task.to_string()),
                    ..line.clone()
                }));
            }
        }
    }
    lines
}

/// Where a group of tasks stands among those of its job, as in 8.1.9: tasks that were on a host
/// before come first, then the others by their holds.
fn rank(group: &PendingTasks) -> u8 {
    if group.condition.error || group.condition.restarted {
        return 0;
    }
    let Holds { user, operator, system } = group.holds;
    match (user, operator, system) {
        (false, false, false) if group.condition.held => 5,
        (false, false, false) => 1,
        (true, false, false) => 2,
        (false, true, false) => 3,
        (false, false, true) => 4,
        (true, true, false) => 6,
        (true, false, true) => 7,
        (false, true, true) => 8,
        (true, true, true) => 9,
    }
}

/// Jobs that have left, in the order in which they did. All tasks of an array share a line, also
/// with `-g d`.
pub fn finished(rows: &[JobRow]) -> Vec<JobLine<'_>> {
    rows.iter().filter_map(left).collect()
}

fn left(job: &JobRow) -> Option<JobLine<'_>> {
    let tasks: Vec<&TaskRow> = job
        .tasks
        .iter()
        .filter(|task| task.condition.phase == Phase::Finished)
        .collect();
    let first = *tasks.first()?;
    let numbers = || tasks.iter().map(|task| task.task).collect::<TaskSet>().to_string();
    let slots = first
        .granted
        .iter()
        .map(|granted| granted.slots)
        .sum::<u32>()
        .max(job.slots);
    Some(JobLine {
        task: None,
        has_left: true,
        moment: job.submitted,
        slots,
        role: Role::None,
        tasks: job.array.map(|_| numbers()),
        ..on_host(job, first)
    })
}

fn on_hosts(rows: &[JobRow]) -> Vec<(&JobRow, &TaskRow)> {
    let mut found: Vec<_> = rows
        .iter()
        .flat_map(|job| job.tasks.iter().map(move |task| (job, task)))
        .collect();
    found.retain(|(_, task)| match task.condition.phase {
        Phase::Transferring | Phase::Running => true,
        Phase::Pending | Phase::Finished => false,
    });
    found.sort_by_key(|(job, task)| (job.number, task.task));
    found
}

fn on_host<'a>(job: &'a JobRow, task: &'a TaskRow) -> JobLine<'a> {
    JobLine {
        job,
        task: Some(task),
        has_left: false,
        letters: task.condition.letters(),
        priority: on_host_priority(job, task),
        moment: task.started,
        instance: None,
        role: Role::Master,
        slots: job.slots,
        tasks: job.array.map(|_| task.task.to_string()),
        is_repeat: false,
    }
}

/// What 8.1.9 keeps for each job is 0 while its array may not start more tasks; what it keeps for
/// each task stays.
fn on_host_priority(job: &JobRow, task: &TaskRow) -> PriorityNumbers {
    if !job.pending.iter().any(|group| group.concurrency_blocked) {
        return task.priority;
    }
    let PriorityNumbers {
        prior,
        ntckts,
        otckt,
        ftckt,
        stckt,
        tckts,
        share,
        ..
    } = task.priority;
    PriorityNumbers {
        prior,
        ntckts,
        otckt,
        ftckt,
        stckt,
        tckts,
        share,
        ..PriorityNumbers::default()
    }
}

fn waiting<'a>(job: &'a JobRow, group: &'a PendingTasks) -> JobLine<'a> {
    let is_too_early = job.start_after.is_some() && job.priority.prior == 0;
    let is_looked_at = !group.condition.held && !group.concurrency_blocked && !is_too_early;
    let npprior = if group.error.is_some() { 0 } else { job.priority.npprior };
    JobLine {
        job,
        task: None,
        has_left: false,
        letters: group.condition.letters(),
        priority: if is_looked_at {
            PriorityNumbers {
                npprior,
                ..job.priority
            }
        } else {
            PriorityNumbers::default()
        },
        moment: group.since,
        instance: None,
        role: Role::None,
        slots: job.slots,
        tasks: None,
        is_repeat: false,
    }
}

/// One line for each slot of an instance; the first of the first instance is the master.
fn slots<'a>(whole: &JobLine<'a>, granted: &'a GrantedSlots, is_first: bool) -> Vec<JobLine<'a>> {
    let role = |at: u32| if is_first && at == 0 { Role::Master } else { Role::Slave };
    let one = |at| JobLine {
        role: role(at),
        slots: 1,
        instance: Some(&granted.instance),
        ..whole.clone()
    };
    (0..granted.slots.max(u32::from(is_first))).map(one).collect()
}

fn mark_repeats(lines: &mut [JobLine<'_>]) {
    let key = |line: &JobLine<'_>| (line.job.number, line.task.map(|task| task.task), line.instance.cloned());
    if let Some(first) = lines.first_mut() {
        first.is_repeat = false;
    }
    for at in 1..lines.len() {
        lines[at].is_repeat = key(&lines[at]) == key(&lines[at - 1]);
    }
}

/// Leaves out tasks that have no slot in any of these queue instances.
pub fn keep_tasks_in(rows: &mut [JobRow], queues: &[QueueView]) {
    let meant: BTreeSet<QueueInstanceName> = queues.iter().map(instance_of).collect();
    for row in rows {
        row.tasks.retain(|task| {
            task.condition.phase == Phase::Finished
                || task.granted.iter().any(|granted| meant.contains(&granted.instance))
        });
    }
}

/// The rows as JSON, each task and group with its state letters; what is not looked at is told
/// apart by its condition.
pub fn with_letters(rows: &[JobRow]) -> Vec<Value> {
    rows.iter().map(row_with_letters).collect()
}

/// One row as JSON with state letters.
pub fn row_with_letters(row: &JobRow) -> Value {
    let mut value = json::value(row);
    let pending = row.pending.iter().map(|group| group.condition.letters());
    let tasks = row.tasks.iter().map(|task| task.condition.letters());
    for (part, letters) in [("pending", pending.collect::<Vec<_>>()), ("tasks", tasks.collect())] {
        let entries = value.get_mut(part).and_then(Value::as_array_mut).into_iter().flatten();
        for (entry, letters) in entries.zip(letters) {
            entry["state"] = Value::from(letters);
        }
    }
    value
}

/// Numbers in the form of lists: `1, 2`.
pub fn numbers(jobs: &[JobNumber]) -> String {
    jobs.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
