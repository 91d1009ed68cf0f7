//! `qsched`: shows what the scheduler keeps for jobs that wait, and from when on.
//!
//! 8.1.9's reads the file `schedule` behind a helper that has to run all the time. This one asks
//! the master: it needs neither that nor `MONITOR=1`, and works on every host.

use crate::args::{CommandDef, CommandLine, Operands, ValueCount, flag, with};
use crate::cell_address::CellAddress;
use crate::client::Client;
use crate::commands::Outcome;
use crate::commands::ask;
use crate::fail::Fail;
use crate::output::time::Clock;
use crate::{exit, output};
use proto::diagnostic::{Code, Diagnostic};
use proto::wire::client::{Answer, Query, QueueFilter};
use proto::wire::view::{Data, KeptTask, QueueView, ResourceValue};
use std::collections::BTreeMap;
use std::fmt::Write as _;

pub const QSCHED: CommandDef = CommandDef {
    name: "qsched",
    summary: "Shows what is kept for jobs that wait; without -u and -j those of the user who asks.",
    operand_placeholder: "",
    operands: Operands::None,
    options: &[
        flag("-a", "those of all users (--all)"),
        flag("-f", "all that is known of each (--full)"),
        flag("-h", "print this help (--help)"),
        flag("-help", "print this help"),
        with(
            "-j",
            ValueCount::One,
            "jid_list",
            "these jobs, or tasks as 7.1 (--jid=)",
        ),
        flag(
            "-q",
            "by queue instance: what is free, and the tasks for which something is kept there (--queues)",
        ),
        with(
            "-s",
            ValueCount::One,
            "j",
            "by job number in place of start time (--sort=)",
        ),
        with(
            "-u",
            ValueCount::One,
            "user_list",
            "those of these users; * is everybody (--user=)",
        ),
    ],
    exit_codes: "0 printed, perhaps nothing; 2 a wrong option",
};

/// The long names of options, as getopt_long(3) takes them.
const LONG: &[(&str, &str)] = &[
    ("--all", "-a"),
    ("--full", "-f"),
    ("--help", "-h"),
    ("--jid", "-j"),
    ("--queues", "-q"),
    ("--sort", "-s"),
    ("--user", "-u"),
];

/// The attribute that is shown beside slots.
const H_VMEM: &str = "h_vmem";

/// Runs `qsched`.
pub fn run(words: Vec<String>) -> Outcome {
    let parsed = QSCHED.parse(short(words))?;
    if parsed.has("-help") || parsed.has("-h") {
        output::data(&QSCHED.help());
        return Ok(exit::OK);
    }
    if parsed.value("-s").is_some_and(|by| by != "j") {
        let what = "qsched: invalid option argument of \"-s\"";
        return Err(Fail::new(
            exit::USAGE,
            Diagnostic::new(Code::BadSyntax, what).fix("write -s j"),
        ));
    }
    let mut client = Client::connect(&CellAddress::from_environment(), "qsched")?;
    let reply = client.query(Query::Kept)?;
    if let Some(Answer::Refused(refusal)) = reply.answers.into_iter().next() {
        return Err(refusal.into());
    }
    let Some(Data::Kept(mut tasks)) = reply.data else {
        return Err(unfit());
    };
    tasks.retain(|task| is_meant(&parsed, task));
    if parsed.has("-s") {
        tasks.sort_by_key(|task| (task.job, task.task));
    }
    let clock = Clock::local();
    let text = if parsed.has("-q") {
        let filter = QueueFilter {
            attributes: Some(vec![H_VMEM.to_owned()]),
            ..QueueFilter::default()
        };
        let Some(Data::Queues(queues)) = client.query(Query::Queues(filter))?.data else {
            return Err(unfit());
        };
        by_queue(&tasks, &queues)
    } else if parsed.has("-f") {
        tasks.iter().map(|task| block(task, &clock)).collect()
    } else {
        table(&tasks, &clock)
    };
    output::data(&text);
    Ok(exit::OK)
}

fn unfit() -> Fail {
    Diagnostic::new(Code::BadMessage, "error: the master's answer does not fit the question").into()
}

/// The words with long options written short.
fn short(words: Vec<String>) -> Vec<String> {
    let short = |word: String| {
        let (name, value) = word
            .split_once('=')
            .map_or((word.as_str(), None), |(name, value)| (name, Some(value)));
        match LONG.iter().find(|(long, _)| *long == name) {
            Some((_, short)) => [Some((*short).to_owned()), value.map(str::to_owned)]
                .into_iter()
                .flatten()
                .collect(),
            None => vec![word],
        }
    };
    words.into_iter().flat_map(short).collect()
}

fn is_meant(parsed: &CommandLine, task: &KeptTask) -> bool {
    let (users, jobs) = (ask::list(parsed, "-u"), ask::list(parsed, "-j"));
    let is_of = |user: &String| user == "*" || *user == task.user.as_str();
    let is_own = users.is_empty() && (!jobs.is_empty() || ask::login_name() == task.user.as_str());
    let is_named = jobs.is_empty()
        || jobs
            .iter()
            .any(|job| *job == task.job.to_string() || *job == name(task));
    is_named && (parsed.has("-a") || is_own || users.iter().any(is_of))
}

/// `JOB.TASK`.
fn name(task: &KeptTask) -> String {
    format!("{}.{}", task.job, task.task)
}

/// A row for each task, under a head that is always there; columns as wide as they need.
fn table(tasks: &[KeptTask], clock: &Clock) -> String {
    let row = |task: &KeptTask| {
        let (start, end) = (
            clock.slashes(task.start),
            task.end.map_or_else(|| "-".to_owned(), |end| clock.slashes(end)),
        );
        [
            name(task),
            task.user.to_string(),
            start,
            end,
            task.slots.to_string(),
            task.h_vmem.clone(),
        ]
    };
    let head = ["job-ID", "user", "start", "end", "slots", H_VMEM].map(str::to_owned);
    let rows: Vec<[String; 6]> = tasks.iter().map(row).collect();
    let least = [0, 0, "11/21/2026 01:09:55".len(), "11/21/2026 01:09:55".len(), 0, 0];
    let width = |column: usize| {
        let all = rows.iter().chain([&head]).map(|row| row[column].chars().count());
        all.max().unwrap_or(0).max(least[column])
    };
    let widths: [usize; 6] = std::array::from_fn(width);
    let rule: [String; 6] = widths.map(|width| "-".repeat(width));
    let mut text = String::new();
    for row in [&head, &rule].into_iter().chain(&rows) {
        let (left, right) = row.split_at(4);
        let left = left.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        let right = right
            .iter()
            .zip(&widths[4..])
            .map(|(cell, width)| format!("{cell:>width$}"));
        let line: Vec<String> = left.chain(right).collect();
        text.push_str(line.join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// All that is known of a task.
fn block(task: &KeptTask, clock: &Clock) -> String {
    let mut text = format!("Job {}\n", name(task));
    let mut put = |name: &str, value: &str| {
        if !value.is_empty() {
            // A string takes everything.
            let _ = writeln!(text, "    {name:<9} = {value}");
        }
    };
    put("user", task.user.as_str());
    put("start", &clock.asctime(task.start));
    put(
        "end",
        &task.end.map_or_else(|| "-".to_owned(), |end| clock.asctime(end)),
    );
    put("slots", &task.slots.to_string());
    put(H_VMEM, &task.h_vmem);
    put("pe", &uses(task, "P"));
    put("queue", &uses(task, "Q"));
    put("resources", &uses(task, "GH"));
    text.push('\n');
    text
}

/// What a task takes at such levels: `all.q@h1 (gmem = 400M, slots = 2) all.q@h2 (…)`, by name.
fn uses(task: &KeptTask, levels: &str) -> String {
    let mut objects: BTreeMap<(char, &str), BTreeMap<&str, &str>> = BTreeMap::new();
    for one in task.uses.iter().filter(|one| levels.contains(one.level)) {
        objects
            .entry((one.level, &one.object))
            .or_default()
            .insert(&one.resource, &one.amount);
    }
    let objects = objects.into_iter().map(|((_, object), resources)| {
        let resources: Vec<String> = resources
            .into_iter()
            .map(|(resource, amount)| format!("{resource} = {amount}"))
            .collect();
        format!("{object} ({})", resources.join(", "))
    });
    objects.collect::<Vec<String>>().join(" ")
}

/// Queue instances with free slots, or where something is kept: what is free now, and for whom
/// something is kept.
fn by_queue(tasks: &[KeptTask], queues: &[QueueView]) -> String {
    let mut text = String::new();
    for view in queues {
        let instance = format!("{}@{}", view.queue, view.host);
        let has = |task: &&KeptTask| task.uses.iter().any(|one| one.level == 'Q' && one.object == instance);
        let kept: Vec<String> = tasks.iter().filter(has).map(name).collect();
        let free = view.total.saturating_sub(view.used).saturating_sub(view.reserved);
        if free == 0 && kept.is_empty() {
            continue;
        }
        let h_vmem = view.resources.iter().find(|resource| resource.name.as_str() == H_VMEM);
        let h_vmem = h_vmem.map_or_else(
            || "infinity".to_owned(),
            |resource| match &resource.value {
                ResourceValue::Amount(amount) if !amount.is_infinite() => amount.print(resource.r#type),
                ResourceValue::Amount(_) => "infinity".to_owned(),
                ResourceValue::Text(text) => text.clone(),
            },
        );
        // A string takes everything.
        let _ = writeln!(
            text,
            "{}",
            format!("{instance}: slots={free} {H_VMEM}={h_vmem} {}", kept.join(" ")).trim_end()
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::tz::TimeZone;
    use proto::id::{JobNumber, TaskId};
    use proto::time::Wall;
    use proto::wire::view::KeptUse;

    fn kept(job: u32, task: u32, uses: &[(char, &str, &str, &str)]) -> KeptTask {
        let one = |(level, object, resource, amount): &(char, &str, &str, &str)| KeptUse {
            level: *level,
            object: (*object).to_owned(),
            resource: (*resource).to_owned(),
            amount: (*amount).to_owned(),
        };
        KeptTask {
            job: JobNumber(job),
            task: TaskId(task),
            user: "u1".into(),
            start: Wall::from_seconds(1_795_365_356),
            end: Some(Wall::from_seconds(1_795_365_516)),
            slots: 8,
            h_vmem: "0".to_owned(),
            uses: uses.iter().map(one).collect(),
        }
    }

    #[test]
    fn the_table_is_that_of_8_1_9() {
        let clock = Clock::new(TimeZone::UTC);
        let told = table(&[kept(3, 1, &[]), kept(3, 2, &[])], &clock);
        let expected = "job-ID  user  start                end                  slots  h_vmem\n\
                        ------  ----  -------------------  -------------------  -----  ------\n\
                        3.1     u1    11/22/2026 16:35:56  11/22/2026 16:38:36      8       0\n\
                        3.2     u1    11/22/2026 16:35:56  11/22/2026 16:38:36      8       0\n";
        assert_eq!(told, expected);
        assert_eq!(table(&[], &clock).lines().count(), 2);
    }

    #[test]
    fn everything_of_a_task_is_that_of_8_1_9() {
        let uses = [
            ('P', "mpi", "slots", "8"),
            ('H', "sim0003", "hlic", "2"),
            ('Q', "all.q@sim0003", "slots", "2"),
            ('Q', "all.q@sim0001", "slots", "2"),
            ('Q', "all.q@sim0001", "gmem", "400M"),
            ('H', "sim0001", "hlic", "2"),
        ];
        let expected = "Job 3.1\n    user      = u1\n    start     = Sun Nov 22 16:35:56 2026\n    \
                        end       = Sun Nov 22 16:38:36 2026\n    slots     = 8\n    h_vmem    = 0\n    \
                        pe        = mpi (slots = 8)\n    \
                        queue     = all.q@sim0001 (gmem = 400M, slots = 2) all.q@sim0003 (slots = 2)\n    \
                        resources = sim0001 (hlic = 2) sim0003 (hlic = 2)\n\n";
        assert_eq!(block(&kept(3, 1, &uses), &Clock::new(TimeZone::UTC)), expected);
    }

    #[test]
    fn tasks_are_chosen_by_user_job_and_number() {
        let parse = |words: &[&str]| {
            QSCHED
                .parse(short(words.iter().map(|word| (*word).to_owned()).collect()))
                .unwrap()
        };
        let task = kept(3, 1, &[]);
        for words in [
            &["-a"][..],
            &["-u", "u2,u1"],
            &["--user=*"],
            &["-j", "3"],
            &["--jid=7,3.1"],
            &["--all", "-j", "3"],
        ] {
            assert!(is_meant(&parse(words), &task), "{words:?}");
        }
        for words in [
            &["-u", "u2"][..],
            &["-j", "3.2"],
            &["-a", "-j", "4"],
            &["-u", "u2", "-j", "3"],
        ] {
            assert!(!is_meant(&parse(words), &task), "{words:?}");
        }
    }
}
