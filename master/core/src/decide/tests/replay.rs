//! The law behind the log: replay equals live, whatever happens.

use super::cell::{array, job, result, selection};
use super::*;
use crate::event::Record;
use crate::state::State;
use proptest::prelude::*;
use proto::id::{HostName, TaskKey};
use proto::job::{HoldChange, Holds, JobChanges, JobSpec};
use proto::usage::{Exit, FailedCode};
use proto::wire::agent::TaskReportState;
use proto::wire::client::{Command, ModifyAction};
use std::sync::Arc;

/// Something that happens; numbers are taken modulo what there is.
#[derive(Clone, Debug)]
enum ReplayStep {
    Submit { tasks: u32, after: u32, rerunnable: bool },
    Delete { job: u32, task: u32 },
    Force { job: u32 },
    Hold { job: u32, task: u32, set: bool },
    Alter { job: u32, after: u32 },
    Place { job: u32, task: u32, host: u32 },
    Running { index: u32 },
    End { index: u32, code: u8, failed: u8 },
    Unknown { index: u32 },
    Suspend { job: u32, on: bool },
    Reschedule { job: u32 },
    Clear { job: u32 },
    Lose { host: u32 },
    Connect { host: u32, keeps: bool },
    Pass { ms: u64 },
}

fn act() -> impl Strategy<Value = ReplayStep> {
    let small = || 0u32..12;
    prop_oneof![
        4 => (1u32..6, small(), any::<bool>()).prop_map(|(tasks, after, rerunnable)| ReplayStep::Submit { tasks, after, rerunnable }),
        2 => (small(), 0u32..6).prop_map(|(job, task)| ReplayStep::Delete { job, task }),
        1 => small().prop_map(|job| ReplayStep::Force { job }),
        2 => (small(), 0u32..6, any::<bool>()).prop_map(|(job, task, set)| ReplayStep::Hold { job, task, set }),
        1 => (small(), small()).prop_map(|(job, after)| ReplayStep::Alter { job, after }),
        8 => (small(), 1u32..6, 0u32..2).prop_map(|(job, task, host)| ReplayStep::Place { job, task, host }),
        4 => small().prop_map(|index| ReplayStep::Running { index }),
        5 => (small(), prop_oneof![Just(0u8), Just(1), Just(99), Just(100)], prop_oneof![5 => Just(0u8), 1 => Just(26), 1 => Just(8)])
            .prop_map(|(index, code, failed)| ReplayStep::End { index, code, failed }),
        1 => small().prop_map(|index| ReplayStep::Unknown { index }),
        2 => (small(), any::<bool>()).prop_map(|(job, on)| ReplayStep::Suspend { job, on }),
        1 => small().prop_map(|job| ReplayStep::Reschedule { job }),
        1 => small().prop_map(|job| ReplayStep::Clear { job }),
        1 => (0u32..2).prop_map(|host| ReplayStep::Lose { host }),
        2 => (0u32..2, any::<bool>()).prop_map(|(host, keeps)| ReplayStep::Connect { host, keeps }),
        1 => (0u64..400_000).prop_map(|ms| ReplayStep::Pass { ms }),
    ]
}

fn host(index: u32) -> &'static str {
    ["h1", "h2"][index as usize % 2]
}

fn placed(cell: &Cell, index: u32) -> Option<(TaskKey, String)> {
    let jobs = cell.core.state().jobs.values();
    let placements: Vec<_> = jobs
        .flat_map(|job| job.placements())
        .map(|(_, place)| (place.key, place.host().to_string()))
        .collect();
    let found = placements.get(index as usize % placements.len().max(1))?.clone();
    cell.core
        .memory
        .agents
        .connection(&HostName::new(&found.1))
        .map(|_| found)
}

fn target(job: u32, task: u32) -> String {
    if task == 0 {
        job.to_string()
    } else {
        format!("{job}.{task}")
    }
}

fn submit(cell: &mut Cell, tasks: u32, after: u32, rerunnable: bool) {
    let predecessors = if after == 0 {
        Vec::new()
    } else {
        vec![after.to_string()]
    };
    let base = if tasks == 1 {
        job()
    } else {
        array(&format!("1-{tasks}"))
    };
    cell.submit(JobSpec {
        predecessors,
        rerunnable: Some(rerunnable),
        ..base
    });
}

/// Sets or takes back a user's hold.
fn hold(cell: &mut Cell, target: &str, set: bool) {
    let user = Holds {
        user: true,
        ..Holds::default()
    };
    let change = if set {
        HoldChange {
            set: user,
            ..HoldChange::default()
        }
    } else {
        HoldChange {
            release: user,
            ..HoldChange::default()
        }
    };
    alter(
        cell,
        target,
        JobChanges {
            holds: Some(change),
            ..JobChanges::default()
        },
    );
}

fn perform(cell: &mut Cell, act: &ReplayStep) {
    match act.clone() {
        ReplayStep::Submit {
            tasks,
            after,
            rerunnable,
        } => {
            submit(cell, tasks, after, rerunnable);
        }
        ReplayStep::Delete { job, task } => drop(cell.qdel("u1", &[&target(job, task)])),
        ReplayStep::Force { job } => drop(cell.qdel_force("op", &[&target(job, 0)])),
        ReplayStep::Hold { job, task, set } => {
            hold(cell, &target(job, task), set);
        }
        ReplayStep::Alter { job, after } => {
            let changes = JobChanges {
                predecessors: Some(vec![after.to_string()]),
                priority: Some(-1),
                ..JobChanges::default()
            };
            alter(cell, &target(job, 0), changes);
        }
        ReplayStep::Place { job, task, host: index } if cell.exists(job) => drop(cell.order(job, task, host(index))),
        ReplayStep::Place { .. } => {}
        ReplayStep::Running { index } => report(cell, index, TaskReportState::Running { for_ms: 10 }),
        ReplayStep::End { index, code, failed } => {
            let exit = if failed == 0 {
                Exit::Code(code)
            } else {
                Exit::NotStarted
            };
            report(
                cell,
                index,
                TaskReportState::Ended(Box::new(result(exit, FailedCode(failed), "why"))),
            );
        }
        ReplayStep::Unknown { index } => report(cell, index, TaskReportState::Unknown),
        ReplayStep::Suspend { job, on } => {
            let action = if on {
                ModifyAction::SuspendJob
            } else {
                ModifyAction::UnsuspendJob
            };
            cell.qmod("u1", action, &job.to_string());
        }
        ReplayStep::Reschedule { job } => drop(cell.qmod("u1", ModifyAction::RescheduleJob, &job.to_string())),
        ReplayStep::Clear { job } => drop(cell.qmod("u1", ModifyAction::ClearJobError, &job.to_string())),
        ReplayStep::Lose { host: index } => {
            if cell
                .core
                .memory
                .agents
                .connection(&HostName::new(host(index)))
                .is_some()
            {
                cell.disconnect(host(index));
            }
        }
        ReplayStep::Connect { host: index, keeps } => connect(cell, host(index), keeps),
        ReplayStep::Pass { ms } => cell.pass(ms),
    }
}

fn alter(cell: &mut Cell, target: &str, changes: JobChanges) {
    cell.command(
        "u1",
        Command::Alter {
            jobs: selection(&[target]),
            changes: Box::new(changes),
        },
    );
}

fn report(cell: &mut Cell, index: u32, state: TaskReportState) {
    if let Some((key, host)) = placed(cell, index) {
        cell.report(key, &host, state);
    }
}

fn connect(cell: &mut Cell, host: &str, keeps: bool) {
    let keys: Vec<TaskKey> = cell.core.state().index.on_host(&host.into()).collect();
    let report = |key| proto::wire::agent::TaskReport {
        key,
        state: TaskReportState::Running { for_ms: 10 },
    };
    cell.connect_with(host, 1, keys.into_iter().filter(|_| keeps).map(report).collect());
}

/// The fold of the records as they come back from a form of storage.
fn replayed<E: std::fmt::Debug>(log: &[Arc<Record>], store: impl Fn(&Record) -> Result<Record, E>) -> State {
    let mut state = State::new();
    for record in log {
        let stored = store(record).expect("records are stored and read");
        assert_eq!(stored, **record);
        state.apply(&stored);
    }
    state
}

proptest! {
    #![proptest_config(crate::testing::cases(48))]

    #[test]
    fn replay_equals_live_over_every_form_of_storage(acts in prop::collection::vec(act(), 1..80)) {
        let mut cell = Cell::ready();
        acts.iter().for_each(|act| perform(&mut cell, act));
        let live = cell.core.state();
        let binary = |record: &Record| rmp_serde::from_slice::<Record>(&rmp_serde::to_vec_named(record).expect("it encodes"));
        prop_assert!(replayed(&cell.log, binary) == *live);
        let text = |record: &Record| serde_json::from_str::<Record>(&serde_json::to_string(record).expect("it encodes"));
        prop_assert!(replayed(&cell.log, text) == *live);
        let snapshot = rmp_serde::to_vec_named(live).expect("it encodes");
        let restored = rmp_serde::from_slice::<State>(&snapshot).expect("it reads").restored();
        prop_assert!(restored == *live, "a snapshot restores");
        restored.check();
    }

    #[test]
    fn every_attempt_that_reached_its_end_is_accounted_once(acts in prop::collection::vec(act(), 1..80)) {
        let mut cell = Cell::ready();
        acts.iter().for_each(|act| perform(&mut cell, act));
        let keys: Vec<TaskKey> = cell.records().iter().map(|record| record.key).collect();
        let once: std::collections::BTreeSet<TaskKey> = keys.iter().copied().collect();
        prop_assert_eq!(once.len(), keys.len());
    }
}
