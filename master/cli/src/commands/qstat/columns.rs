//! The columns of one line of jobs: which there are, the heading above them, and the line itself.

use super::shown::JobLine;
use crate::output::time::Clock;
use crate::output::value::{cut, days_clock, memory_seconds, millionths, transferred};
use proto::wire::view::PriorityNumbers;
use std::fmt::Write as _;

/// Which columns and lines are shown beside the usual ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ColumnSet {
    /// `-ext`.
    pub extended: bool,
    /// `-urg`.
    pub urgency: bool,
    /// `-pri`.
    pub priority: bool,
    /// `-g t`: a line for each slot.
    pub per_slot: bool,
    /// `-t`: the heading of subtasks behind the task.
    pub subtasks: bool,
    /// Whether the queue has a column: not below the queue's own line in `-f`.
    pub queue: bool,
    /// `-r`: lines with what the job asked for.
    pub requests: bool,
    /// Whether `-r` and `-j` tell the binding; `-ncb` leaves it out.
    pub binding: bool,
}

impl ColumnSet {
    /// Whether the time has a column: `-ext` alone has no room for it.
    pub fn time(self) -> bool {
        !self.extended || self.urgency || self.priority || self.subtasks
    }

    /// The heading, with the blank at its end that 8.1.9 prints.
    pub fn heading(self) -> String {
        let parts = [
            (true, "job-ID  prior   "),
            (self.urgency || self.priority, "nurg    "),
            (self.priority, "npprior "),
            (self.extended || self.priority, "ntckts  "),
            (self.urgency, "urg      rrcontr  wtcontr  dlcontr  "),
            (self.priority, " ppri "),
            (true, "name       user         "),
            (self.extended, "project          department "),
            (true, "state "),
            (self.time(), "submit/start at     "),
            (self.urgency, " deadline           "),
            (
                self.extended,
                "cpu        mem     io      tckts ovrts otckt ftckt stckt share ",
            ),
            (self.queue, "queue                          "),
            (
                true,
                if self.per_slot {
                    "master ja-task-ID "
                } else {
                    "slots ja-task-ID "
                },
            ),
            (self.subtasks, "task-ID state cpu        mem     io      stat failed "),
        ];
        parts
            .into_iter()
            .filter(|(is_shown, _)| *is_shown)
            .map(|(_, text)| text)
            .collect()
    }

    /// The line of dashes below the heading: as long as 8.1.9 counts, which is right for the plain
    /// list alone.
    pub fn rule(self) -> String {
        let (more, less) = match (self.extended, self.urgency, self.priority) {
            (true, false, false) if self.subtasks => (0, 20),
            (_, _, false) if !(self.extended && self.urgency) => (0, 0),
            (true, true, false) => (0, 20),
            (false, false, _) => (5, 0),
            (false, true, _) => (13, 0),
            (true, false, _) => (0, 7),
            (true, true, true) => (1, 0),
        };
        "-".repeat((self.heading().len() - 1 + more).saturating_sub(less))
    }

    /// One line without its newline. Lines that only add a slot to the one above repeat nothing of
    /// it.
    pub fn line(self, shown: &JobLine<'_>, clock: &Clock) -> String {
        let mut line = self.head(shown, clock);
        if shown.is_repeat {
            line = " ".repeat(line.chars().count());
        }
        if self.queue {
            let queue = shown.instance.as_ref().map(ToString::to_string).unwrap_or_default();
            let _ = write!(line, "{:<30} ", cut(&queue, 30));
        }
        self.tail(shown, &mut line);
        line
    }

    /// Everything left of the queue.
    fn head(self, shown: &JobLine<'_>, clock: &Clock) -> String {
        let JobLine { job, priority, .. } = shown;
        let mut line = format!("{:>7} {:>7} ", job.number, millionths(priority.prior, 5));
        self.numbers(shown, &mut line);
        let _ = write!(line, "{:<10} {:<12} ", cut(&job.name, 10), cut(job.owner.as_str(), 12));
        if self.extended {
            let project = job.project.as_deref().unwrap_or("NA");
            let _ = write!(line, "{:<16} {:<10} ", cut(project, 16), cut(&job.department, 10));
        }
        let _ = write!(line, "{:<5} ", cut(&shown.letters, 5));
        if self.time() {
            let _ = write!(line, "{} ", clock.slashes(shown.moment));
        }
        if self.urgency {
            let deadline = job.deadline.map(|deadline| clock.slashes(deadline)).unwrap_or_default();
            let _ = write!(line, "{deadline:<19} ");
        }
        if self.extended {
            usage(shown, &mut line);
            tickets(shown, &mut line);
        }
        line
    }

    /// The numbers behind the priority.
    fn numbers(self, shown: &JobLine<'_>, line: &mut String) {
        let PriorityNumbers {
            npprior,
            nurg,
            ntckts,
            urg,
            rrcontr,
            wtcontr,
            dlcontr,
            ..
        } = shown.priority;
        let parts = [
            (self.urgency || self.priority, nurg),
            (self.priority, npprior),
            (self.extended || self.priority, ntckts),
        ];
        for (_, number) in parts.into_iter().filter(|(is_shown, _)| *is_shown) {
            let _ = write!(line, "{:>7} ", millionths(number, 5));
        }
        for number in [urg, rrcontr, wtcontr, dlcontr].into_iter().filter(|_| self.urgency) {
            let _ = write!(line, "{:>8} ", millionths(number, 0));
        }
        if self.priority {
            let _ = write!(line, "{:>5} ", shown.job.posix_priority);
        }
    }

    /// Slots or role, then the task. Without a task seven blanks stand there, which programs may
    /// count on.
    fn tail(self, shown: &JobLine<'_>, line: &mut String) {
        if self.per_slot {
            let _ = write!(line, "{:<6} ", shown.role.text());
        } else {
            let _ = write!(line, "{:>5} ", shown.slots);
        }
        line.push_str(shown.tasks.as_deref().unwrap_or("       "));
    }
}

/// `cpu mem io`: blank while pending, NA until the host told something.
fn usage(shown: &JobLine<'_>, line: &mut String) {
    let [cpu, memory, io] = match (shown.task, shown.usage()) {
        (_, Some(usage)) => [days_clock(usage.cpu_ms), memory_seconds(usage), transferred(usage)],
        (Some(_), None) => ["NA"; 3].map(str::to_owned),
        (None, None) => Default::default(),
    };
    let _ = write!(line, "{cpu:<10} {:<7} {:<7} ", cut(&memory, 7), cut(&io, 7));
}

/// `tckts ovrts otckt ftckt stckt share`; NA once the job has left.
fn tickets(shown: &JobLine<'_>, line: &mut String) {
    if shown.has_left {
        *line += &format!("{:>5} ", "NA").repeat(6);
        return;
    }
    let PriorityNumbers {
        otckt,
        ftckt,
        stckt,
        tckts,
        share,
        ..
    } = shown.priority;
    for number in [tckts, i64::from(shown.job.override_tickets), otckt, ftckt, stckt] {
        let _ = write!(line, "{number:>5} ");
    }
    let _ = write!(line, "{}  ", millionths(share, 2));
}
