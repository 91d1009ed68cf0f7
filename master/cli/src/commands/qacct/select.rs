//! Which records: the options of `qacct` as one predicate, and the columns that they put into the table.

use super::bad_value;
use super::table::Column;
use crate::args::Parsed;
use crate::commands::ask;
use crate::fail::Fail;
use crate::job::date;
use crate::output::time::{self, Clock};
use proto::accounting::AccountingRecord;
use proto::id::{QueueInstanceName, TaskId};
use proto::request::TaskRange;
use proto::time::Wall;
use proto::wire::client::AccountingFilter;
use std::collections::BTreeSet;

/// One option that groups and may select: with a value only records that match it.
#[derive(Clone, Debug)]
struct Group {
    column: Column,
    pattern: Option<String>,
}

/// Everything that selects records.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    jobs: Option<Vec<String>>,
    tasks: Option<TaskRange>,
    begin: Option<Wall>,
    end: Option<Wall>,
    by_end: bool,
    groups: Vec<Group>,
    queues: Option<[BTreeSet<QueueInstanceName>; 2]>,
    ignored: usize,
}

/// The jobs of `-j`: none where it is not given, empty for all. An empty word is no word for all: it names nothing.
fn jobs(parsed: &Parsed) -> Option<Vec<String>> {
    let jobs = ask::optional_list(parsed, "-j")?;
    let word = parsed.value("-j").filter(|_| jobs.is_empty());
    Some(word.map_or(jobs, |word| vec![word.to_owned()]))
}

impl Selection {
    /// Reads the options.
    ///
    /// # Errors
    /// A time, number or range that does not read.
    pub fn of(parsed: &Parsed, clock: &Clock) -> Result<Self, Fail> {
        let moment = |name: &str| {
            let Some(text) = parsed.value(name) else { return Ok(None) };
            let moment = date::parse(text, clock.this_year(), clock.zone());
            moment.map(Some).map_err(|why| bad_value(name, text, &format!("{why} Write [[CC]YY]MMDDhhmm[.SS]")))
        };
        let tasks = match parsed.value("-t") {
            Some(text) => {
                Some(TaskRange::parse(text).map_err(|_| bad_value("-t", text, "a task or a range of tasks: 1-10:2"))?)
            }
            None => None,
        };
        let days = match parsed.value("-d") {
            Some(text) => Some(text.parse::<u32>().map_err(|_| bad_value("-d", text, "a number of days"))?),
            None => None,
        };
        let begin = match (moment("-b")?, days) {
            (Some(begin), _) => Some(begin),
            (None, Some(days)) => Some(Wall(time::now().0.saturating_sub(i64::from(days) * 86_400_000))),
            (None, None) => None,
        };
        Ok(Self {
            jobs: jobs(parsed),
            tasks,
            begin,
            end: moment("-e")?,
            by_end: parsed.has("-E"),
            groups: groups(parsed),
            queues: None,
            ignored: 0,
        })
    }

    /// The jobs of `-j`; empty for all of them, none where blocks are not asked for.
    pub fn jobs(&self) -> Option<&[String]> {
        self.jobs.as_deref()
    }

    /// The range of `-t` as 8.1.9 prints it.
    pub fn task_text(&self) -> Option<String> {
        self.tasks.map(|tasks| tasks.to_string())
    }

    /// The columns of the table, in its order.
    pub fn columns(&self) -> Vec<(Column, Option<String>)> {
        let mut columns: Vec<_> = self.groups.iter().map(|group| (group.column, group.pattern.clone())).collect();
        if self.groups.iter().any(|group| group.column == Column::Queue)
            && !columns.iter().any(|(c, _)| *c == Column::Host)
        {
            columns.push((Column::Host, None));
        }
        columns.sort_by_key(|(column, _)| *column);
        columns
    }

    /// Records of jobs whose queue instance does not exist any more, passed over because of `-l`.
    pub fn ignored(&self) -> usize {
        self.ignored
    }

    /// From now on only records of the second set are chosen; those of neither are counted.
    pub fn only_in(&mut self, queues: &[BTreeSet<QueueInstanceName>; 2]) {
        self.queues = Some(queues.clone());
    }

    /// The hosts that `-h` and `-q queue@host` name.
    pub fn hosts(&self) -> Vec<String> {
        self.groups.iter().filter_map(|group| Some(group.host()?.1.to_owned())).collect()
    }

    /// The same selection with what the cell calls these hosts, one for each of [`Selection::hosts`].
    pub fn call_hosts(&mut self, names: Vec<String>) {
        let groups = self.groups.iter_mut().filter(|group| group.host().is_some());
        for (group, name) in groups.zip(names) {
            group.pattern = group.host().map(|(before, _)| format!("{before}{name}"));
        }
    }

    /// What the master can select by itself.
    pub fn question(&self) -> AccountingFilter {
        let by_start = |moment: Option<Wall>| moment.filter(|_| !self.by_end);
        AccountingFilter {
            jobs: self.jobs.clone().unwrap_or_default(),
            tasks: self.tasks.into_iter().collect(),
            owners: Vec::new(),
            begin: by_start(self.begin),
            end: by_start(self.end),
        }
    }

    /// Those of some records that are meant, in their order.
    pub fn choose(&mut self, mut records: Vec<AccountingRecord>) -> Vec<AccountingRecord> {
        records.retain(|record| self.admits(record));
        let Some([all, suitable]) = &self.queues else { return records };
        let before = records.len();
        let instance =
            |record: &AccountingRecord| QueueInstanceName { queue: record.queue.clone(), host: record.host.clone() };
        records.retain(|record| all.contains(&instance(record)));
        self.ignored += before - records.len();
        records.retain(|record| suitable.contains(&instance(record)));
        records
    }

    fn admits(&self, record: &AccountingRecord) -> bool {
        let moment = if self.by_end { record.ended } else { record.started };
        let jobs = self.jobs.as_deref().unwrap_or_default();
        (jobs.is_empty() || jobs.iter().any(|job| names_job(job, record)))
            && self.tasks.is_none_or(|tasks| tasks.contains(TaskId(record.task_number)))
            && self.begin.is_none_or(|begin| moment >= begin)
            && self.end.is_none_or(|end| moment <= end)
            && self.groups.iter().all(|group| group.admits(record))
    }
}

impl Group {
    /// The host in the pattern, and what stands before it.
    fn host(&self) -> Option<(&str, &str)> {
        let pattern = self.pattern.as_deref()?;
        match self.column {
            Column::Host => Some(("", pattern)),
            Column::Queue => {
                pattern.find('@').map(|at| pattern.split_at(at + 1)).filter(|(_, host)| !host.starts_with('@'))
            }
            Column::Group
            | Column::Owner
            | Column::Project
            | Column::Department
            | Column::Account
            | Column::Slots
            | Column::Pe
            | Column::Reservation => None,
        }
    }

    fn admits(&self, record: &AccountingRecord) -> bool {
        let Some(pattern) = &self.pattern else { return self.column != Column::Pe || record.granted_pe.is_some() };
        match self.column {
            Column::Queue if pattern.contains('@') => {
                ask::matches(pattern, &format!("{}@{}", record.queue, record.host))
            }
            Column::Host => ask::matches(&pattern.to_ascii_lowercase(), record.host.as_str()),
            Column::Queue
            | Column::Group
            | Column::Owner
            | Column::Project
            | Column::Department
            | Column::Account
            | Column::Slots
            | Column::Pe
            | Column::Reservation => ask::matches(pattern, &self.column.value(record)),
        }
    }
}

fn groups(parsed: &Parsed) -> Vec<Group> {
    let options = [
        ("-h", Column::Host),
        ("-q", Column::Queue),
        ("-g", Column::Group),
        ("-o", Column::Owner),
        ("-u", Column::Owner),
        ("-P", Column::Project),
        ("-D", Column::Department),
        ("-A", Column::Account),
        ("-slots", Column::Slots),
        ("-pe", Column::Pe),
        ("-ar", Column::Reservation),
    ];
    let given = options.into_iter().filter(|(name, _)| parsed.has(name));
    let mut groups: Vec<Group> =
        given.map(|(name, column)| Group { column, pattern: parsed.value(name).map(str::to_owned) }).collect();
    // -o and -u are one option with two names.
    groups.dedup_by(|b, a| a.column == b.column && b.pattern.is_none());
    groups
}

/// Whether a record is of the job with that number or name.
pub fn names_job(target: &str, record: &AccountingRecord) -> bool {
    match target.parse::<u32>() {
        Ok(number) => number == record.job_number.0,
        Err(_) => ask::matches(target, &record.job_name),
    }
}
