//! `qevent`: runs scripts when jobs and tasks end.

use crate::args::{CommandDef, Operands, ValueCount, flag, unsupported, with};
use crate::cell_address::CellAddress;
use crate::client::Client;
use crate::commands::{Outcome, ask};
use crate::fail::Fail;
use crate::{exit, output};
use proto::diagnostic::{Code, Diagnostic};
use proto::id::SubmitSeq;
use proto::wire::client::{Answer, Query};
use proto::wire::stream::{Change, Item, StreamStart, Subscription, TaskFate};
use proto::wire::view::Data;
use std::ops::ControlFlow;
use std::process::Command;

/// The file in the working directory that names this process, so that a script can end it.
const PID_FILE: &str = "qevent.pid";

pub const QEVENT: CommandDef = CommandDef {
    name: "qevent",
    summary: "Runs scripts when jobs and tasks end, until it is ended: kill $(cat qevent.pid). To managers it tells of all jobs, to\n\
              others of their own.",
    operand_placeholder: "",
    operands: Operands::None,
    options: &[
        flag("-h", "print this help"),
        flag("-help", "print this help"),
        unsupported(flag("-sm", "print events"), "gridwright events prints what happens"),
        unsupported(
            flag("-subscribe", "print events"),
            "gridwright events prints what happens",
        ),
        with(
            "-trigger",
            ValueCount::Two,
            "event script",
            "run the script with the event, the job and the task; JB_END: a job is gone, JB_TASK_END: a task has ended",
        ),
        unsupported(flag("-ts", "test suite"), "there is no such test suite"),
        unsupported(flag("-testsuite", "test suite"), "there is no such test suite"),
    ],
    exit_codes: "1 refused, no master, or no script; 2 wrong option",
};

/// What a script is run for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Job,
    Task,
}

impl Event {
    const NAMES: [(&'static str, Event); 2] = [("JB_END", Event::Job), ("JB_TASK_END", Event::Task)];

    fn name(self) -> &'static str {
        match self {
            Event::Job => "JB_END",
            Event::Task => "JB_TASK_END",
        }
    }

    /// What an element of the stream is, and of which task. `last` is the task that has ended last:
    /// the end of its job comes right behind it. Of a job that left before it ran the task is 0.
    #[allow(clippy::wildcard_enum_match_arm, reason = "qevent(1) prints these two kinds")]
    fn of_item(item: &Item, last: &mut Option<(SubmitSeq, u32)>) -> Option<(Event, u32)> {
        match &item.change {
            Change::JobFinished { job } => {
                let task = last.take().filter(|(of, _)| of == job).map_or(0, |(_, task)| task);
                Some((Event::Job, task))
            }
            Change::TaskEnded {
                task,
                then: TaskFate::Done,
                ..
            } => {
                *last = Some((task.seq, task.task.0));
                Some((Event::Task, task.task.0))
            }
            _ => None,
        }
    }
}

/// Runs `qevent`.
pub fn run(words: Vec<String>) -> Outcome {
    let parsed = QEVENT.parse(words)?;
    if parsed.has("-help") || parsed.has("-h") {
        output::data(&QEVENT.help());
        return Ok(exit::OK);
    }
    let given = parsed.given.iter().filter(|given| given.name == "-trigger");
    let triggers: Vec<(Event, String)> = given.map(|given| trigger(&given.values)).collect::<Result<_, Fail>>()?;
    if triggers.is_empty() {
        let refusal = Diagnostic::new(Code::BadSyntax, "qevent: no -trigger is given");
        return Err(Fail::new(exit::USAGE, refusal.fix("qevent -trigger JB_END SCRIPT")));
    }
    write_pid()?;
    let kinds = ["job-finished", "task-ended"].map(str::to_owned).into();
    let all = Subscription {
        name: "qevent".to_owned(),
        start: StreamStart::Now,
        kinds,
        ..Subscription::default()
    };
    let own = Subscription {
        owners: vec![ask::login_name().as_str().into()],
        ..all.clone()
    };
    let refusal = match read(all, &triggers)? {
        refusal if refusal.code == Code::NotPermitted => read(own, &triggers)?,
        refusal => refusal,
    };
    Err(refusal.into())
}

fn trigger(values: &[String]) -> Result<(Event, String), Fail> {
    let [name, script] = values else {
        return Err(Fail::bad_value(
            "qevent: -trigger takes an event and a script".to_owned(),
        ));
    };
    let known = Event::NAMES.iter().find(|(known, _)| known == name);
    let fix = "JB_END or JB_TASK_END";
    let (_, event) = known.ok_or_else(|| Fail::bad_value(format!("qevent: \"{name}\" is no event")).fix(fix))?;
    Ok((*event, script.clone()))
}

fn write_pid() -> Result<(), Fail> {
    std::fs::write(PID_FILE, format!("{}\n", std::process::id())).map_err(|error| {
        let refusal = Diagnostic::new(Code::SystemRefused, "error: cannot write the process id").at(PID_FILE);
        refusal
            .why(error.to_string())
            .fix("start it in a directory of yours")
            .into()
    })
}

/// Reads to the end, which is a refusal.
fn read(subscription: Subscription, triggers: &[(Event, String)]) -> Result<Diagnostic, Fail> {
    let mut client = Client::connect(&CellAddress::from_environment(), "qevent")?;
    let mut end = Diagnostic::new(Code::NoMaster, "error: the master tells no more events");
    let mut last = None;
    client.query_while(Query::Events(subscription), |part| {
        if let Some(Answer::Refused(refusal)) = part.answers.first() {
            end = refusal.clone();
        }
        if let Some(Data::Events(items)) = &part.data {
            items.iter().for_each(|item| start(item, triggers, &mut last));
        }
        ControlFlow::Continue(())
    })?;
    Ok(end)
}

/// Runs the scripts for one element, one after the other.
fn start(item: &Item, triggers: &[(Event, String)], last: &mut Option<(SubmitSeq, u32)>) {
    let (Some((event, task)), Some(job)) = (Event::of_item(item, last), item.job) else {
        return;
    };
    for (_, script) in triggers.iter().filter(|(wanted, _)| *wanted == event) {
        let ended = Command::new(script)
            .args([event.name(), &job.to_string(), &task.to_string()])
            .status();
        match ended.map(|status| status.code()) {
            Ok(Some(0)) => {}
            Ok(Some(code)) => output::note(&format!("error: exit status of script: {code}")),
            Ok(None) => output::note("error: script was ended by a signal"),
            Err(error) => output::note(&format!("error: cannot run {script}: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::id::{CellId, EventSeq, TaskId, TaskKey};
    use proto::time::Wall;
    use proto::wire::stream::Source;

    fn item(change: Change) -> Item {
        Item {
            seq: EventSeq(1),
            time: Wall(0),
            source: Source::Event,
            by: "master".to_owned(),
            job: None,
            change,
        }
    }

    #[test]
    fn the_end_of_a_job_and_of_a_task_are_events_and_another_start_is_none() {
        let task = TaskKey {
            cell: CellId(7),
            seq: SubmitSeq(4),
            task: TaskId(3),
            pe_task: 0,
            attempt: 2,
        };
        let ended = |then| {
            item(Change::TaskEnded {
                task,
                then,
                record: None,
            })
        };
        let finished = item(Change::JobFinished { job: SubmitSeq(4) });
        let mut last = None;
        assert_eq!(Event::of_item(&finished, &mut last), Some((Event::Job, 0)));
        assert_eq!(
            Event::of_item(&ended(TaskFate::Done), &mut last),
            Some((Event::Task, 3))
        );
        assert_eq!(Event::of_item(&ended(TaskFate::Pending), &mut last), None);
        assert_eq!(Event::of_item(&finished, &mut last), Some((Event::Job, 3)));
    }

    #[test]
    fn only_known_events_have_triggers() {
        let words = |name: &str| [name.to_owned(), "script".to_owned()];
        assert!(matches!(trigger(&words("JB_END")), Ok((Event::Job, script)) if script == "script"));
        assert!(trigger(&words("FOO")).is_err());
    }
}
