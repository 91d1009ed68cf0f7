//! `gridwright events`: what happens in the cell, as it happens.

use crate::args::{CommandDef, CommandLine, Operands, ValueCount, flag, with};
use crate::cell_address::CellAddress;
use crate::commands::Outcome;
use crate::commands::ask::{self, Format};
use crate::fail::Fail;
use crate::output::json;
use crate::output::time::Clock;
use crate::{exit, output};
use proto::diagnostic::{Code, Diagnostic};
use proto::id::{EventSeq, TaskKey, UserName};
use proto::job::GrantedSlots;
use proto::request::TaskRange;
use proto::wire::client::{Answer, Query};
use proto::wire::stream::{
    Change, Item, ObjectState, Source, StreamStart, Subscription, SuspendCause, TaskFate, VERSION,
};
use proto::wire::view::Data;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// How long a master that has gone away is looked for.
const LOOK_FOR: Duration = Duration::from_secs(60);

/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(200);

/// Names of objects in one line.
const NAMES: usize = 5;

pub const EVENTS: CommandDef = CommandDef {
    name: "gridwright events",
    summary: "Prints what happens in the cell, a line for each event, until it is interrupted. For managers,\n\
              of everybody's own jobs for all.\n\
              What the lines of --fmt json hold, and what of it is stable: master/EVENTS.md.",
    operand_placeholder: "",
    operands: Operands::None,
    options: &[
        with(
            "--every",
            ValueCount::One,
            "SECONDS",
            "gather news, and print of what changes often the latest (default: 0)",
        ),
        with(
            "--fmt",
            ValueCount::One,
            "text|json",
            "how to print: a line for people, or one JSON object a line",
        ),
        with("-fmt", ValueCount::One, "text|json", "the same"),
        with(
            "--from",
            ValueCount::One,
            "SEQ",
            "begin with the event of that number, which is in the log",
        ),
        flag("--full", "begin with everything that is true now"),
        with("--kind", ValueCount::One, "KIND,...", "only events of these kinds"),
        with(
            "--name",
            ValueCount::One,
            "NAME",
            "the name that qconf -secl shows (default: events)",
        ),
        with(
            "--owner",
            ValueCount::One,
            "USER,...",
            "only what becomes of jobs of these users; of their own all may ask",
        ),
        crate::cell_address::place::DIR,
        flag("-help", "print this help"),
        flag("--help", "print this help"),
    ],
    exit_codes: "0 the reader of the output went away; 1 cut off, refused or no master; 2 wrong option",
};

/// Runs `gridwright events`.
pub fn run(words: Vec<String>) -> Outcome {
    let parsed = EVENTS.parse(words)?;
    if parsed.has("-help") || parsed.has("--help") {
        output::data(&EVENTS.help());
        return Ok(exit::OK);
    }
    let is_json = is_json(&parsed)?;
    let name = parsed.value("--name").unwrap_or("events").to_owned();
    let every_s = parsed.value("--every").map_or(Ok(0), |text| {
        let fix = "a number of seconds";
        text.parse()
            .map_err(|_| Fail::bad_value(format!("error: \"{text}\" is no time")).fix(fix))
    })?;
    let owners = ask::list(&parsed, "--owner").into_iter().map(UserName::from).collect();
    let kinds = ask::list(&parsed, "--kind");
    let subscription = Subscription {
        name,
        start: start(&parsed)?,
        kinds,
        owners,
        every_s,
    };
    Reader {
        address: CellAddress::from_command_line(&parsed),
        subscription,
        is_json,
        clock: Clock::local(),
        last_seq: None,
    }
    .read()
}

/// One run: what is asked for, how it is printed, and how far it has come.
struct Reader {
    address: CellAddress,
    subscription: Subscription,
    is_json: bool,
    clock: Clock,
    /// The last event of which nothing is missing.
    last_seq: Option<EventSeq>,
}

impl Reader {
    /// Reads to the end. A master that goes away is looked for, and the stream goes on behind the
    /// last event that came.
    fn read(mut self) -> Outcome {
        let mut lost = Instant::now();
        loop {
            let before = self.last_seq;
            let error = match self.read_once() {
                Ok(code) => return Ok(code),
                Err(error) => error,
            };
            if self.last_seq != before {
                lost = Instant::now();
            }
            let Some(last) = self.last_seq.filter(|_| lost.elapsed() < LOOK_FOR) else {
                return Err(error.into());
            };
            self.subscription.start = StreamStart::From(EventSeq(last.0 + 1));
            std::thread::sleep(PAUSE);
        }
    }

    /// Reads until the stream ends; as an error where that is because there is no master.
    fn read_once(&mut self) -> Result<u8, Diagnostic> {
        let format = if self.is_json { Format::Json } else { Format::Text };
        let mut client = ask::connect_at(&self.address, "gridwright events", format).map_err(|fail| fail.diagnostic)?;
        let (query, mut ended) = (Query::Events(self.subscription.clone()), Ok(exit::OK));
        client.query_while(query, |part| match part.answers.first() {
            Some(Answer::Refused(refusal)) if refusal.code == Code::NoMaster => {
                ended = Err(refusal.clone());
                ControlFlow::Break(())
            }
            Some(_) => {
                ended = Ok(output::answers(&part.answers));
                ControlFlow::Continue(())
            }
            None => {
                let Some(Data::Events(items)) = &part.data else {
                    return ControlFlow::Continue(());
                };
                // The full state has been told only once it is complete.
                let is_place = |item: &&Item| item.source == Source::Event || item.change == Change::Complete {};
                // Of some owners the log does not tell.
                if self.subscription.owners.is_empty() {
                    self.last_seq = items.iter().rev().find(is_place).map(|item| item.seq).or(self.last_seq);
                }
                print(items, self.is_json, &self.clock)
            }
        })?;
        ended
    }
}

fn is_json(parsed: &CommandLine) -> Result<bool, Fail> {
    match parsed.value("--fmt").or(parsed.value("-fmt")) {
        None | Some("text") => Ok(false),
        Some("json") => Ok(true),
        Some(other) => Err(Fail::bad_value(format!("error: unknown format \"{other}\"")).fix("text or json")),
    }
}

fn start(parsed: &CommandLine) -> Result<StreamStart, Fail> {
    match (parsed.value("--from"), parsed.has("--full")) {
        (Some(_), true) => {
            let what = "gridwright events: --from and --full do not go together";
            Err(Fail::new(
                exit::USAGE,
                Diagnostic::new(Code::BadSyntax, what).fix("leave one of them out"),
            ))
        }
        (Some(text), false) => text.parse().map(|seq| StreamStart::From(EventSeq(seq))).map_err(|_| {
            Fail::bad_value(format!("error: \"{text}\" is no number of an event"))
                .fix("a number, as in the first column")
        }),
        (None, true) => Ok(StreamStart::Full),
        (None, false) => Ok(StreamStart::Now),
    }
}

/// Prints a part; it ends when nobody reads any more.
fn print(items: &[Item], is_json: bool, clock: &Clock) -> ControlFlow<()> {
    let line = |item: &Item| {
        if is_json {
            json_line(item)
        } else {
            text_line(item, clock)
        }
    };
    let text: String = items.iter().map(line).collect();
    match output::try_data(&text) {
        Ok(()) => ControlFlow::Continue(()),
        Err(_) => ControlFlow::Break(()),
    }
}

/// One object, as master/EVENTS.md tells.
fn json_line(item: &Item) -> String {
    let Item {
        seq,
        time,
        source,
        by,
        job,
        change,
    } = item;
    let kind = change.kind();
    // Serde writes a kind as an object of one entry, its name.
    let data = json::value(change)
        .get_mut(kind)
        .map(serde_json::Value::take)
        .unwrap_or_default();
    let line = serde_json::json!({
        "version": VERSION, "seq": seq, "time_ms": time, "source": source, "by": by, "job": job, "kind": kind, "data": data,
    });
    json::line(&line)
}

fn text_line(item: &Item, clock: &Clock) -> String {
    let Item {
        seq,
        time,
        source,
        by,
        job,
        change,
    } = item;
    // What is no event has no number of its own.
    let seq = if *source == Source::Event {
        seq.0.to_string()
    } else {
        "-".to_owned()
    };
    let job = job.map_or_else(String::new, |number| format!(" job {number}"));
    let about = about(change);
    let blank = if about.is_empty() { "" } else { " " };
    format!(
        "{seq:>8} {} {:<16}{job}{blank}{about} ({by})\n",
        clock.iso(*time),
        change.kind()
    )
}

/// What an event is about, beside the job.
fn about(change: &Change) -> String {
    match change {
        Change::JobAdded { job } => format!("{} of {}", job.spec.name, job.spec.owner.user),
        Change::JobChanged { spec, .. } => spec.name.clone(),
        Change::HoldsChanged { tasks, .. }
        | Change::ErrorCleared { tasks, .. }
        | Change::TasksDeleted { tasks, .. } => ranges(tasks),
        Change::TasksFailed { tasks, reason, .. } => format!("{}: {reason}", ranges(tasks)),
        Change::TaskPlaced { task, granted, .. } => format!("{} in {}", attempt(task), places(granted)),
        Change::TaskStarted { task } => attempt(task),
        Change::TaskEnded { task, then, record } => {
            let status = record
                .as_ref()
                .map(|record| format!(": exit status {}", record.exit_status));
            format!("{}{}{}", attempt(task), status.unwrap_or_default(), next(then))
        }
        Change::TaskSuspended { task, cause, suspended } => {
            let verb = if *suspended { "stopped" } else { "goes on" };
            format!("{} {verb} ({})", attempt(task), cause_name(*cause))
        }
        Change::TaskEnding { task, again } => {
            format!("{}{}", attempt(task), if *again { ", to run again" } else { "" })
        }
        Change::InstanceChanged { instance, .. } => instance.to_string(),
        Change::ObjectsChanged { objects } => names(objects),
        Change::Instances { host, instances } => format!("{host}: {}", places(instances)),
        Change::Contact { host, connected } => format!("{host} {}", if *connected { "connected" } else { "lost" }),
        Change::Load { host, values, .. } => {
            format!(
                "{host}: {} values",
                values.values().map(std::collections::BTreeMap::len).sum::<usize>()
            )
        }
        Change::Other { what } => what.clone(),
        Change::JobFinished { .. } | Change::PassWanted {} | Change::Complete {} => String::new(),
    }
}

/// The first objects by name, and how many more there are.
fn names(objects: &[ObjectState]) -> String {
    let name = |object: &ObjectState| format!("{} {}", object.kind, object.name).trim_end().to_owned();
    let names: Vec<String> = objects.iter().take(NAMES).map(name).collect();
    let more = match objects.len().saturating_sub(NAMES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    names.join(", ") + &more
}

fn attempt(task: &TaskKey) -> String {
    format!("task {} attempt {}", task.task, task.attempt)
}

fn ranges(tasks: &[TaskRange]) -> String {
    let tasks: Vec<String> = tasks.iter().map(TaskRange::to_string).collect();
    format!("tasks {}", tasks.join(","))
}

fn places(granted: &[GrantedSlots]) -> String {
    let places: Vec<String> = granted
        .iter()
        .map(|granted| format!("{}:{}", granted.instance, granted.slots))
        .collect();
    places.join(" ")
}

fn next(then: &TaskFate) -> String {
    match then {
        TaskFate::Done => String::new(),
        TaskFate::Pending => ", pending again".to_owned(),
        TaskFate::Error { reason } => format!(", in error: {reason}"),
    }
}

fn cause_name(cause: SuspendCause) -> &'static str {
    match cause {
        SuspendCause::Hand => "by hand",
        SuspendCause::Threshold => "threshold",
        SuspendCause::Preemption => "superordinate queue",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::tz::TimeZone;
    use proto::id::{CellId, JobNumber, QueueInstanceName, SubmitSeq, TaskId};
    use proto::time::Wall;

    fn placed() -> Item {
        let task = TaskKey {
            cell: CellId(7),
            seq: SubmitSeq(4),
            task: TaskId(1),
            pe_task: 0,
            attempt: 2,
        };
        let instance = QueueInstanceName {
            queue: "all.q".into(),
            host: "h1".into(),
        };
        let granted = vec![GrantedSlots { instance, slots: 2 }];
        Item {
            seq: EventSeq(12),
            time: Wall(1_800_000_000_500),
            source: Source::Event,
            by: "scheduler default".to_owned(),
            job: Some(JobNumber(9)),
            change: Change::TaskPlaced {
                task,
                granted,
                pe: None,
            },
        }
    }

    #[test]
    fn a_line_of_json_is_one_object_of_the_documented_shape() {
        let line = json_line(&placed());
        assert_eq!(line.matches('\n').count(), 1);
        let read: serde_json::Value = serde_json::from_str(&line).unwrap();
        let expected = serde_json::json!({
            "version": 1, "seq": 12, "time_ms": 1_800_000_000_500_i64, "source": "event", "by": "scheduler default",
            "job": 9, "kind": "task-placed",
            "data": {
                "task": { "cell": 7, "seq": 4, "task": 1, "pe_task": 0, "attempt": 2 },
                "granted": [{ "instance": { "queue": "all.q", "host": "h1" }, "slots": 2 }],
                "pe": null,
            },
        });
        assert_eq!(read, expected);
    }

    #[test]
    fn a_line_for_people_says_the_same() {
        let clock = Clock::new(TimeZone::UTC);
        assert_eq!(
            text_line(&placed(), &clock),
            "      12 2027-01-15T08:00:00 task-placed      job 9 task 1 attempt 2 in all.q@h1:2 (scheduler default)\n"
        );
        let complete = Item {
            source: Source::Soft,
            job: None,
            change: Change::Complete {},
            ..placed()
        };
        assert!(text_line(&complete, &clock).starts_with("       - "));
    }
}
