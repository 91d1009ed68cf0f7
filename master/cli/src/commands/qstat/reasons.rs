//! Why jobs wait: the lines of scheduling info, those about the cluster apart from those about jobs
//! (`qstat -j` without a list, `messages` of `-j -xml`).

use crate::output::xml::XmlDocument;
use proto::id::JobNumber;
use proto::wire::view::{JobDetail, SchedulingLines};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Numbers of messages, by a part of their text; the first that fits counts. 0 stands for what
/// 8.1.9 never says.
const NUMBERS: &[(&str, bool, u32)] = &[
    ("dropped because it is temporarily not available", true, 40),
    ("dropped because it is disabled", true, 39),
    ("dropped because it is full", true, 37),
    ("dropped because it is overloaded", true, 36),
    ("All queues dropped because of overload or full", true, 28),
    ("(Collecting of scheduler job information is turned off)", true, 29),
    ("(Scheduler job information not available for every job)", true, 30),
    ("error state", false, 32),
    ("hold state", false, 33),
    ("execution time not reached", false, 31),
    ("job dependencies", false, 35),
    ("max_aj_instances", false, 45),
    ("has no permission for ", false, 1),
    ("does not have the correct project ", false, 3),
    ("not contained in its hard queue list", false, 6),
    ("is not in PE list", false, 8),
    ("is not of type checkpointing", false, 9),
    ("is not of type batch", false, 12),
    ("because no access to PE ", false, 25),
    ("cannot run in PE ", false, 24),
    ("cannot run because it exceeds limit ", false, 50),
    ("cannot run globally because ", false, 20),
    (") cannot run in queue ", false, 17),
];

/// How a list of jobs tells what a job alone tells otherwise, by how that ends.
const OF_LISTS: &[(&str, &str)] = &[
    ("error state", "Jobs dropped because of error state"),
    ("hold state", "Jobs dropped because of hold state"),
    (
        "execution time not reached",
        "Jobs can not run because execution time not reached",
    ),
    ("job dependencies", "Job dropped because of job dependencies"),
    ("due to '-tc'", "Not all array tasks may be started due to '-tc'"),
    (
        "due to 'max_aj_instances'",
        "Not all array tasks may be started due to 'max_aj_instances'",
    ),
];

/// Lines with the jobs that they are about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Reasons {
    /// About the cluster.
    global: Vec<String>,
    /// About jobs, in the order in which they were found.
    jobs: Vec<Message>,
}

/// One line, and the jobs that it is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Message {
    text: String,
    jobs: Vec<JobNumber>,
}

impl Reasons {
    /// Gathers the lines of jobs.
    pub fn from_details(details: &[JobDetail]) -> Self {
        let mut gathered = ReasonCollector::default();
        for JobDetail {
            row, scheduling_info, ..
        } in details
        {
            gathered.add(scheduling_info, &[row.number]);
        }
        gathered.reasons
    }

    /// Gathers the lines of all jobs for a list of jobs, those about their states first.
    pub fn of_list(waiting: &[SchedulingLines]) -> Self {
        let mut gathered = ReasonCollector::default();
        waiting
            .iter()
            .for_each(|SchedulingLines { lines, jobs }| gathered.add(lines, jobs));
        let Self { global, mut jobs } = gathered.reasons;
        let place = |text: &str| {
            OF_LISTS
                .iter()
                .position(|(end, _)| text.ends_with(end))
                .unwrap_or(OF_LISTS.len())
        };
        jobs.sort_by_key(|message| place(&message.text));
        for message in &mut jobs {
            message.jobs.sort_unstable();
            if let Some((_, text)) = OF_LISTS.get(place(&message.text)) {
                (*text).clone_into(&mut message.text);
            }
        }
        Self { global, jobs }
    }

    /// The text of `qstat -j`.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut label = "scheduling info:";
        for line in &self.global {
            let _ = writeln!(text, "{label:<27} {line}");
            label = "";
        }
        for Message { text: line, jobs } in &self.jobs {
            let jobs = jobs.iter().map(ToString::to_string).collect::<Vec<_>>().join(",\t");
            let gap = if text.is_empty() { "" } else { "\n" };
            let _ = writeln!(text, "{gap}{line}\n\t{jobs}");
        }
        text
    }

    /// The document of `qstat -j -xml`.
    pub fn xml(&self) -> String {
        let mut document = XmlDocument::new("message", "message");
        self.element(&mut document);
        document.finish()
    }

    /// The lists of messages, in an element of their own.
    pub fn element(&self, document: &mut XmlDocument) {
        document.open("element");
        if !self.jobs.is_empty() {
            document.open("SME_message_list");
            for Message { text, jobs } in &self.jobs {
                message(document, text, jobs);
            }
            document.close();
        }
        if !self.global.is_empty() {
            document.open("SME_global_message_list");
            for line in &self.global {
                message(document, line, &[]);
            }
            document.close();
        }
        document.close();
    }
}

/// Reasons while they are gathered, and where each line is among them.
#[derive(Default)]
struct ReasonCollector {
    reasons: Reasons,
    global: BTreeSet<String>,
    jobs: BTreeMap<String, usize>,
}

impl ReasonCollector {
    fn add(&mut self, lines: &[String], jobs: &[JobNumber]) {
        let Reasons { global, jobs: messages } = &mut self.reasons;
        for line in lines {
            if is_global(line) {
                if self.global.insert(line.clone()) {
                    global.push(line.clone());
                    // What makes a queue unusable comes before what fills it, as in 8.1.9.
                    global.sort_by_key(|line| Reverse(number(line)));
                }
                continue;
            }
            match self.jobs.get(line) {
                Some(place) => messages[*place].jobs.extend(jobs),
                None => {
                    self.jobs.insert(line.clone(), messages.len());
                    messages.push(Message {
                        text: line.clone(),
                        jobs: jobs.to_vec(),
                    });
                }
            }
        }
    }
}

fn message(document: &mut XmlDocument, line: &str, jobs: &[JobNumber]) {
    document.open("element");
    if !jobs.is_empty() {
        document.open("MES_job_number_list");
        for job in jobs {
            document.open("ulong_sublist");
            document.leaf("ULNG_value", job);
            document.close();
        }
        document.close();
    }
    document.leaf("MES_message_number", number(line));
    document.leaf("MES_message", line);
    document.close();
}

fn number(line: &str) -> u32 {
    known(line).map_or(0, |(_, _, number)| *number)
}

fn is_global(line: &str) -> bool {
    known(line).is_some_and(|(_, is_global, _)| *is_global) || line.starts_with("queue instance ")
}

fn known(line: &str) -> Option<&'static (&'static str, bool, u32)> {
    NUMBERS.iter().find(|(part, _, _)| line.contains(part))
}
