//! What the options of `qstat` mean: questions to the master, and how to show the answers.

use super::columns::ColumnSet;
use crate::args::CommandLine;
use crate::commands::ask::{self, Format};
use crate::fail::Fail;
use proto::diagnostic::{Code, Diagnostic};
use proto::time::Wall;
use proto::wire::client::{HoldFilter, JobFilter, JobStates, QueueFilter};
use proto::wire::view::{JobRow, PendingTasks};

/// Which of the listings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum View {
    /// Jobs.
    List,
    /// `-f`, `-F`: queue instances with their jobs.
    Full,
    /// `-g c`: cluster queues.
    Summary,
    /// `-j LIST`.
    Details(Vec<String>),
    /// `-j` alone: reasons, with the jobs that each keeps waiting.
    Reasons,
}

/// The holds of `-s` that the master does not tell apart: it knows that a task waits, here it
/// matters for what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct WaitReasons {
    job: bool,
    array: bool,
    start: bool,
}

/// Everything that the command line said.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which listing.
    pub view: View,
    /// How it is written.
    pub format: Format,
    /// Columns and lines beside the usual ones.
    pub columns: ColumnSet,
    /// `-g d`: every array task has a line.
    pub per_task: bool,
    /// Whether running tasks are in the order of their queue instances, as 8.1.9 lists them once it
    /// has read those: with `-g d`, `-g t`, `-urg`, and where queue instances are selected.
    pub by_queue: bool,
    /// `-ne`.
    pub hide_empty: bool,
    /// Which jobs.
    pub jobs: JobFilter,
    /// Which queue instances.
    pub queues: QueueFilter,
    waits: WaitReasons,
}

impl Options {
    /// Reads the options; `caller` is whose jobs are shown without `-u`.
    ///
    /// # Errors
    /// A value that there is not.
    pub fn from_command_line(parsed: &CommandLine, caller: &str) -> Result<Self, Fail> {
        let group = group_letters(parsed)?;
        let (states, waits) = job_states(parsed)?;
        let explain = ask::state_letters(parsed, "-explain", "acAE")?;
        let queues = QueueFilter {
            attributes: ask::last_list(parsed, "-F"),
            explain,
            ..ask::queue_filter(parsed)?
        };
        let view = match jobs(parsed) {
            Some(targets) if targets.is_empty() => View::Reasons,
            Some(targets) => View::Details(targets),
            None if group.contains('c') => View::Summary,
            None if parsed.has("-f") || parsed.has("-F") || !queues.explain.is_empty() => View::Full,
            None => View::List,
        };
        let mut options = Self {
            view,
            format: Format::from_command_line(parsed)?,
            columns: columns(parsed, &group),
            per_task: group.contains('d'),
            by_queue: group.contains(['d', 't']) || parsed.has("-urg"),
            hide_empty: parsed.has("-ne"),
            jobs: JobFilter {
                users: users(parsed, caller),
                states,
                queues: queues_for_jobs(&queues),
                resources: queues.resources.clone(),
                pes: queues.pes.clone(),
                jobs: Vec::new(),
            },
            queues,
            waits,
        };
        options.by_queue |= options.selects_queues();
        Ok(options)
    }

    /// Whether queue instances are selected, so that tasks elsewhere are left out.
    pub fn selects_queues(&self) -> bool {
        let QueueFilter {
            queues,
            resources,
            pes,
            users,
            states,
            attributes: _,
            explain: _,
            load_value: _,
        } = &self.queues;
        !(queues.is_empty() && resources.is_empty() && pes.is_empty() && users.is_empty() && states.is_empty())
    }

    /// Leaves out pending tasks that are not in a hold of `-s hj`, `hd` or `ha`.
    pub fn keep_holds(&self, rows: &mut Vec<JobRow>, now: Wall) {
        let only = self.jobs.states.only_holds;
        if only == HoldFilter::default() {
            return;
        }
        for row in rows.iter_mut() {
            let keep: Vec<bool> = row.pending.iter().map(|group| self.is_held(row, group, now)).collect();
            let mut keep = keep.into_iter();
            row.pending.retain(|_| keep.next().unwrap_or_default());
        }
        rows.retain(|row| !row.pending.is_empty() || !row.tasks.is_empty());
    }

    fn is_held(&self, row: &JobRow, group: &PendingTasks, now: Wall) -> bool {
        let HoldFilter {
            user,
            operator,
            system,
            dependency: _,
            start_time: _,
        } = self.jobs.states.only_holds;
        let WaitReasons { job, array, start } = self.waits;
        let waits = group.condition.held && (row.waits() || !group.holds.any());
        (user && group.holds.user)
            || (operator && group.holds.operator)
            || (system && group.holds.system)
            || (job && waits && !row.predecessors.is_empty())
            || (array && waits && !row.array_predecessors.is_empty())
            || (start && row.start_after.is_some_and(|start| start > now))
    }
}

/// The list of `-j`, whose parts stand between commas or blanks.
fn jobs(parsed: &CommandLine) -> Option<Vec<String>> {
    let words = ask::optional_list(parsed, "-j")?;
    Some(
        words
            .iter()
            .flat_map(|word| word.split_whitespace())
            .map(str::to_owned)
            .collect(),
    )
}

/// The queue instances that a pending job may be able to run in. As in 8.1.9, `-U` leaves out jobs
/// that no queue instance could ever serve; who has access does not matter.
fn queues_for_jobs(queues: &QueueFilter) -> Vec<String> {
    if queues.queues.is_empty() && !queues.users.is_empty() {
        vec!["*".to_owned()]
    } else {
        queues.queues.clone()
    }
}

/// `-u` taken apart; `$user` is the caller, whom the answer is about where `-u` is not given.
fn users(parsed: &CommandLine, caller: &str) -> Vec<String> {
    let named = ask::list(parsed, "-u");
    if named.is_empty() {
        return vec![caller.to_owned()];
    }
    named
        .into_iter()
        .map(|user| if user == "$user" { caller.to_owned() } else { user })
        .collect()
}

fn columns(parsed: &CommandLine, group: &str) -> ColumnSet {
    let subtasks = parsed.has("-t");
    ColumnSet {
        extended: parsed.has("-ext"),
        urgency: parsed.has("-urg"),
        priority: parsed.has("-pri"),
        per_slot: subtasks || group.contains('t'),
        subtasks,
        queue: true,
        requests: parsed.has("-r"),
        binding: !parsed.has("-ncb"),
    }
}

/// The letters of `-g`, which programs also give together (`-g dt`).
fn group_letters(parsed: &CommandLine) -> Result<String, Fail> {
    let letters = ask::list(parsed, "-g").concat();
    match letters.chars().find(|letter| !"cdt".contains(*letter)) {
        None => Ok(letters),
        Some(letter) => {
            let what = format!("wrong character '{letter}' for -g option");
            Err(Diagnostic::new(Code::BadValue, what).at("-g").fix("c, d or t").into())
        }
    }
}

fn unknown_state(letter: char) -> Fail {
    let what = format!("error: invalid job state \"{letter}\"");
    Diagnostic::new(Code::BadValue, what)
        .at("-s")
        .fix("p, r, s, z, hu, ho, hs, hd, hj, ha, h or a")
        .into()
}

/// `-s`: letters of states, and `h` with a letter for one hold or alone for all.
fn job_states(parsed: &CommandLine) -> Result<(JobStates, WaitReasons), Fail> {
    let text = ask::list(parsed, "-s").concat();
    if text.is_empty() {
        return Ok((JobStates::default(), WaitReasons::default()));
    }
    let mut states = JobStates {
        pending: false,
        running: false,
        suspended: false,
        finished: false,
        only_holds: HoldFilter::default(),
        held_on_hosts: HoldFilter::default(),
    };
    let mut waits = WaitReasons::default();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            'p' => states.pending = true,
            'r' => states.running = true,
            's' => states.suspended = true,
            'z' => states.finished = true,
            'a' => {
                states = JobStates {
                    finished: states.finished,
                    ..JobStates::default()
                }
            }
            'h' => hold(
                letters.next_if(|next| "uosdja".contains(*next)),
                &mut states.only_holds,
                &mut waits,
            ),
            _ => return Err(unknown_state(letter)),
        }
    }
    states.held_on_hosts = HoldFilter {
        dependency: false,
        start_time: false,
        ..states.only_holds
    };
    if states.pending {
        // All pending tasks, the held ones among them.
        states.only_holds = HoldFilter::default();
    }
    states.pending |= states.only_holds != HoldFilter::default();
    Ok((states, waits))
}

fn hold(letter: Option<char>, holds: &mut HoldFilter, waits: &mut WaitReasons) {
    let is = |known: char| letter.is_none_or(|letter| letter == known);
    holds.user |= is('u');
    holds.operator |= is('o');
    holds.system |= is('s');
    waits.job |= is('j');
    waits.array |= is('d');
    waits.start |= is('a');
    holds.dependency |= waits.job || waits.array;
    holds.start_time |= waits.start;
}
