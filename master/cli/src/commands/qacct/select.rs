//! Which records: the options of `qacct` as one predicate, and the columns that they put into the
//! table.

use super::bad_value;
use super::entry::AccountingEntry;
use super::file::WantedRecords;
use super::table::Column;
use crate::args::CommandLine;
use crate::commands::ask;
use crate::exit;
use crate::fail::Fail;
use crate::output::time::{self, Clock};
use nix::unistd::Gid;
use proto::accounting::AccountingRecord;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::{HostName, QueueInstanceName, TaskId};
use proto::request::TaskRange;
use proto::time::Wall;
use proto::wire::client::AccountingFilter;
use std::collections::BTreeSet;
use verifier::date;

/// One option that groups and may select.
#[derive(Clone, Debug)]
struct Group {
    column: Column,
    /// Without a value every record is meant.
    value: Option<FilterValue>,
}

/// The value of such an option. Only `-q` takes patterns.
#[derive(Clone, Debug)]
enum FilterValue {
    /// A name as it is written in the record.
    Name(String),
    /// A host, in any case.
    Host(String),
    /// A number of slots or of an advance reservation.
    Number(u32),
    /// A pattern of cluster queues.
    Queue(String),
    /// Patterns of cluster queues and of hosts.
    Instance(String, String),
    /// `queue@@group`, and the queue instances that it names now.
    InGroup(String, BTreeSet<QueueInstanceName>),
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
    /// Which of the jobs of `-j` have a record, whatever `-l` says about it.
    found: BTreeSet<usize>,
}

/// The jobs of `-j`: none where it is not given, empty for all. An empty word is no word for all:
/// it names nothing.
fn jobs(parsed: &CommandLine) -> Option<Vec<String>> {
    let jobs = ask::optional_list(parsed, "-j")?;
    let word = parsed.value("-j").filter(|_| jobs.is_empty());
    Some(word.map_or(jobs, |word| vec![word.to_owned()]))
}

impl Selection {
    /// Reads the options.
    ///
    /// # Errors
    /// A time, number or range that does not read.
    pub fn from_command_line(parsed: &CommandLine, clock: &Clock) -> Result<Self, Fail> {
        let moment = |name: &str| {
            let Some(text) = parsed.value(name) else {
                return Ok(None);
            };
            let moment = date::parse(text, clock.this_year(), clock.zone());
            moment
                .map(Some)
                .map_err(|why| bad_value(name, text, &format!("{why} Write [[CC]YY]MMDDhhmm[.SS]")))
        };
        let jobs = jobs(parsed);
        if parsed.has("-t") && jobs.is_none() {
            let what = "error: -t option requires -j option with an argument";
            return Err(Fail::new(
                exit::FAILED,
                Diagnostic::new(Code::BadSyntax, what).at("-t").fix("add -j JOB"),
            ));
        }
        let tasks = match parsed.value("-t") {
            Some(text) => {
                Some(TaskRange::parse(text).map_err(|_| bad_value("-t", text, "a task or a range of tasks: 1-10:2"))?)
            }
            None => None,
        };
        let days = match parsed.value("-d") {
            Some(text) => Some(
                text.parse::<u32>()
                    .map_err(|_| bad_value("-d", text, "a number of days"))?,
            ),
            None => None,
        };
        let (begin, end) = period(moment("-b")?, moment("-e")?, days);
        Ok(Self {
            jobs,
            tasks,
            begin,
            end,
            by_end: parsed.has("-E"),
            groups: groups(parsed)?,
            queues: None,
            ignored: 0,
            found: BTreeSet::new(),
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
        let mut columns: Vec<_> = self.groups.iter().map(|group| (group.column, group.text())).collect();
        // A queue that is named is shown by its hosts.
        if self
            .groups
            .iter()
            .any(|group| group.column == Column::Queue && group.value.is_some())
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

    /// The jobs of `-j` without a record.
    pub fn missing(&self) -> Vec<&str> {
        let jobs = self.jobs.iter().flatten().enumerate();
        jobs.filter(|(at, _)| !self.found.contains(at))
            .map(|(_, job)| job.as_str())
            .collect()
    }

    /// The hosts that `-h` and `-q queue@host` name.
    pub fn hosts(&self) -> Vec<String> {
        self.groups.iter().filter_map(|group| group.host().cloned()).collect()
    }

    /// The same selection with what the cell calls these hosts, one for each of
    /// [`Selection::hosts`].
    pub fn call_hosts(&mut self, names: Vec<String>) {
        let hosts = self.groups.iter_mut().filter_map(Group::host_mut);
        hosts.zip(names).for_each(|(host, name)| *host = name);
    }

    /// The `queue@@group` of `-q`.
    pub fn group_pattern(&self) -> Option<&str> {
        self.groups.iter().find_map(|group| match &group.value {
            Some(FilterValue::InGroup(pattern, _)) => Some(pattern.as_str()),
            Some(
                FilterValue::Name(_)
                | FilterValue::Host(_)
                | FilterValue::Number(_)
                | FilterValue::Queue(_)
                | FilterValue::Instance(..),
            )
            | None => None,
        })
    }

    /// From now on `queue@@group` means these queue instances.
    pub fn resolve_group(&mut self, instances: BTreeSet<QueueInstanceName>) {
        for group in &mut self.groups {
            if let Some(FilterValue::InGroup(_, known)) = &mut group.value {
                known.clone_from(&instances);
            }
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

    /// What files can be left out for, or skipped in.
    pub fn wanted(&self) -> WantedRecords {
        let jobs = self.jobs.as_ref().filter(|jobs| !jobs.is_empty());
        let numbers = jobs.and_then(|jobs| jobs.iter().map(|job| job.parse().ok()).collect());
        WantedRecords {
            jobs: numbers,
            begin: self.begin,
            end: self.end,
            by_end: self.by_end,
        }
    }

    /// Those of some entries that are meant, in their order.
    pub fn choose(&mut self, mut entries: Vec<AccountingEntry>) -> Vec<AccountingEntry> {
        entries.retain(|entry| self.admits(&entry.record));
        self.find(&entries);
        let Some([all, suitable]) = &self.queues else {
            return entries;
        };
        // A job that never started was in no queue that could have offered something.
        entries.retain(|entry| entry.record.started.0 > 0);
        let before = entries.len();
        entries.retain(|entry| all.contains(&instance(&entry.record)));
        self.ignored += before - entries.len();
        entries.retain(|entry| suitable.contains(&instance(&entry.record)));
        entries
    }

    fn find(&mut self, entries: &[AccountingEntry]) {
        let jobs = self.jobs.as_deref().unwrap_or_default();
        let is_found = |job: &String| entries.iter().any(|entry| names_job(job, &entry.record));
        let found = jobs
            .iter()
            .enumerate()
            .filter(|(_, job)| is_found(job))
            .map(|(at, _)| at);
        self.found.extend(found.collect::<Vec<_>>());
    }

    fn admits(&self, record: &AccountingRecord) -> bool {
        let moment = if self.by_end { record.ended } else { record.started };
        let jobs = self.jobs.as_deref().unwrap_or_default();
        (jobs.is_empty() || jobs.iter().any(|job| names_job(job, record)))
            && self
                .tasks
                .is_none_or(|tasks| tasks.contains(TaskId(record.task_number)))
            && self.begin.is_none_or(|begin| moment >= begin)
            && self.end.is_none_or(|end| moment <= end)
            && self.groups.iter().all(|group| group.admits(record))
    }
}

/// The begin and the end of what `-b`, `-e` and `-d` mean together: the days follow a begin, and
/// stand before an end. With both they have no effect, and with neither they are the last ones.
fn period(begin: Option<Wall>, end: Option<Wall>, days: Option<u32>) -> (Option<Wall>, Option<Wall>) {
    const DAY_MS: i64 = 86_400_000;
    let days_ms = days.map(|days| i64::from(days) * DAY_MS);
    match (begin, end, days_ms) {
        (Some(begin), None, Some(days_ms)) => (Some(begin), Some(Wall(begin.0.saturating_add(days_ms)))),
        (None, Some(end), Some(days_ms)) => (Some(Wall(end.0.saturating_sub(days_ms))), Some(end)),
        (None, None, Some(days_ms)) => (Some(Wall(time::now().0.saturating_sub(days_ms))), None),
        (begin, end, Some(_) | None) => (begin, end),
    }
}

fn instance(record: &AccountingRecord) -> QueueInstanceName {
    QueueInstanceName {
        queue: record.queue.clone(),
        host: record.host.clone(),
    }
}

impl Group {
    /// The value as it stands on the command line, which makes its column as wide.
    fn text(&self) -> Option<String> {
        Some(match self.value.as_ref()? {
            FilterValue::Name(text)
            | FilterValue::Host(text)
            | FilterValue::Queue(text)
            | FilterValue::InGroup(text, _) => text.clone(),
            FilterValue::Instance(queue, host) => format!("{queue}@{host}"),
            FilterValue::Number(number) => number.to_string(),
        })
    }

    fn host(&self) -> Option<&String> {
        match self.value.as_ref()? {
            FilterValue::Host(host) | FilterValue::Instance(_, host) => Some(host),
            FilterValue::Name(_) | FilterValue::Number(_) | FilterValue::Queue(_) | FilterValue::InGroup(..) => None,
        }
    }

    fn host_mut(&mut self) -> Option<&mut String> {
        match self.value.as_mut()? {
            FilterValue::Host(host) | FilterValue::Instance(_, host) => Some(host),
            FilterValue::Name(_) | FilterValue::Number(_) | FilterValue::Queue(_) | FilterValue::InGroup(..) => None,
        }
    }

    fn admits(&self, record: &AccountingRecord) -> bool {
        let is_host = |pattern: &String| ask::matches(&pattern.to_ascii_lowercase(), record.host.as_str());
        match &self.value {
            None => true,
            Some(FilterValue::Name(name)) => *name == self.column.value(record),
            Some(FilterValue::Host(host)) => HostName::new(host) == record.host,
            Some(FilterValue::Number(number)) => number.to_string() == self.column.value(record),
            Some(FilterValue::Queue(queue)) => ask::matches(queue, record.queue.as_str()),
            Some(FilterValue::Instance(queue, host)) => ask::matches(queue, record.queue.as_str()) && is_host(host),
            Some(FilterValue::InGroup(_, instances)) => instances.contains(&instance(record)),
        }
    }
}

fn groups(parsed: &CommandLine) -> Result<Vec<Group>, Fail> {
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
    let mut groups: Vec<Group> = Vec::new();
    for (name, column) in options.into_iter().filter(|(name, _)| parsed.has(name)) {
        let value = parsed.value(name).map(|text| wanted(name, column, text)).transpose()?;
        groups.push(Group { column, value });
    }
    // -o and -u are one option with two names.
    groups.dedup_by(|b, a| a.column == b.column && b.value.is_none());
    Ok(groups)
}

fn wanted(option: &str, column: Column, text: &str) -> Result<FilterValue, Fail> {
    Ok(match column {
        Column::Host => FilterValue::Host(text.to_owned()),
        Column::Slots | Column::Reservation => {
            FilterValue::Number(text.parse().map_err(|_| bad_value(option, text, "a number"))?)
        }
        Column::Group => FilterValue::Name(group_name(text)),
        Column::Queue => match text.split_once('@') {
            None => FilterValue::Queue(text.to_owned()),
            Some((_, host)) if host.starts_with('@') => FilterValue::InGroup(text.to_owned(), BTreeSet::new()),
            Some((queue, host)) => FilterValue::Instance(queue.to_owned(), host.to_owned()),
        },
        Column::Owner | Column::Project | Column::Department | Column::Account | Column::Pe => {
            FilterValue::Name(text.to_owned())
        }
    })
}

/// A text that begins with a digit is a gid; one that this host does not know stays as it is.
fn group_name(text: &str) -> String {
    let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
    let gid = digits.parse().ok().map(Gid::from_raw);
    let group = gid.and_then(|gid| nix::unistd::Group::from_gid(gid).ok().flatten());
    group.map_or_else(|| text.to_owned(), |group| group.name)
}

/// Whether a record is of the job with that number or name.
fn names_job(target: &str, record: &AccountingRecord) -> bool {
    match target.parse::<u32>() {
        Ok(number) => number == record.job_number.0,
        Err(_) => ask::matches(target, &record.job_name),
    }
}
