//! Measures a real cell: each measure brings one up in a temporary directory with the programs
//! beside this one, prints a line of a table, and ends the cell. What the numbers mean and what
//! they were is in `README.md`.
//!
//! Deliberately absent: assertions on time. A measure fails only when a task is lost or was not run
//! as it should.

mod clock;
mod cluster;
mod day;
mod dispatch;
mod fleet;
mod floor;
mod idle;
mod latency;
mod matching;
mod million;
mod node;
mod objects;
mod policy;
mod reports;
mod reservation;
mod scheduling;
mod talk;
mod throughput;
mod usage;
mod verifier;

use mimalloc::MiMalloc;
use std::process::ExitCode;
use std::time::Duration;

/// The master's, so that what is measured without daemons is what the master needs.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// What can be measured, in the order in which `all` does it.
const MEASURES: [&str; 19] = [
    "floor",
    "array",
    "separate",
    "latency",
    "verifier",
    "reports",
    "idle",
    "node",
    "groups",
    "sampler",
    "objects",
    "matching",
    "scheduling",
    "reservation",
    "policy",
    "day",
    "dispatch",
    "tasks",
    "million",
];

/// What the scheduler is given where nothing else is said.
const SIZE: scheduling::Size = scheduling::Size {
    hosts: 10_000,
    jobs: 1_000_000,
    categories: 1_000,
};

/// How much of everything.
struct Options {
    measures: Vec<String>,
    /// Tasks of an array.
    tasks: u32,
    /// Separate jobs.
    jobs: u32,
    /// Simulated hosts that report.
    hosts: u32,
    /// What the scheduler is given.
    size: scheduling::Size,
    /// Of the day that is simulated.
    hours: u64,
    /// What that day is drawn from.
    seed: u64,
    /// What is dispatched to simulated hosts.
    work: Vec<dispatch::Work>,
    /// How long the idle cell is watched, in seconds.
    idle_s: u64,
}

fn main() -> ExitCode {
    match parse(std::env::args().skip(1)) {
        Ok(options) => {
            options.measures.iter().for_each(|measure| run(measure, &options));
            ExitCode::SUCCESS
        }
        Err(text) => {
            eprintln!(
                "{text}\nusage: bench [--tasks N] [--jobs N] [--hosts N] [--idle SECONDS]\n             [--size HOSTS] [--pending JOBS] [--categories N]\n             [--hours N] [--seed N] [--work HOSTSxSLOTSxJOBS] MEASURE..."
            );
            eprintln!("measures: {}, or all", MEASURES.join(", "));
            ExitCode::from(2)
        }
    }
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options {
        measures: Vec::new(),
        tasks: 10_000,
        jobs: 1_000,
        hosts: 500,
        size: SIZE,
        hours: 24,
        seed: 1,
        idle_s: 180,
        work: Vec::new(),
    };
    while let Some(word) = words.next() {
        let mut number = || {
            words
                .next()
                .and_then(|value| value.parse().ok())
                .ok_or(format!("{word} needs a number"))
        };
        match word.as_str() {
            "--tasks" => options.tasks = number()?,
            "--jobs" => options.jobs = number()?,
            "--hosts" => options.hosts = number()?,
            "--size" => options.size.hosts = number()?,
            "--pending" => options.size.jobs = number()?,
            "--categories" => options.size.categories = number()?,
            "--hours" => options.hours = number()?.into(),
            "--seed" => options.seed = number()?.into(),
            "--work" => options.work.push(work(words.next())?),
            "--idle" => options.idle_s = number()?.into(),
            "all" => options.measures.extend(MEASURES.map(str::to_owned)),
            measure if MEASURES.contains(&measure) => options.measures.push(word),
            _ => return Err(format!("unknown word {word:?}")),
        }
    }
    if options.measures.is_empty() {
        Err("nothing to measure".to_owned())
    } else {
        Ok(options)
    }
}

/// `HOSTSxSLOTSxJOBS`.
fn work(word: Option<String>) -> Result<dispatch::Work, String> {
    let word = word.unwrap_or_default();
    let numbers: Vec<u32> = word.split('x').filter_map(|number| number.parse().ok()).collect();
    match numbers[..] {
        [hosts, slots, jobs] => Ok(dispatch::Work { hosts, slots, jobs }),
        _ => Err(format!("--work needs HOSTSxSLOTSxJOBS, not {word:?}")),
    }
}

fn run(measure: &str, options: &Options) {
    match measure {
        "floor" => floor::measure(),
        "array" => throughput::arrays(options.tasks),
        "separate" => throughput::separate(options.jobs),
        "latency" => latency::measure(),
        "verifier" => verifier::measure(),
        "reports" => reports::measure(options.hosts),
        "objects" => objects::measure(),
        "matching" => matching::measure(),
        "scheduling" => scheduling::measure(options.size),
        "reservation" => reservation::measure(options.size.hosts),
        "policy" => policy::measure(options.size.jobs),
        "day" => day::measure(options.hours, options.seed),
        "dispatch" if options.work.is_empty() => dispatch::WORKS.into_iter().for_each(dispatch::measure),
        "dispatch" => options.work.iter().copied().for_each(dispatch::measure),
        "tasks" => dispatch::tasks(options.tasks),
        "million" => million::measure(),
        "idle" => idle::measure(Duration::from_secs(options.idle_s)),
        "node" => node::idle(Duration::from_secs(options.idle_s)),
        "groups" => node::groups(options.tasks.min(500)),
        "sampler" => node::sampler(Duration::from_secs(options.idle_s)),
        other => unreachable!("{other} passed the parser"),
    }
}
