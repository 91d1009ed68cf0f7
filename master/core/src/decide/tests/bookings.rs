//! The law of the ledger: what is booked is the sum over the placed tasks, never below zero, and
//! above a capacity only where that was lowered under running tasks, whatever happens to tasks and
//! to the configuration.

use super::Cell;
use super::cell::{array, job, resources, result};
use crate::ledger::Level;
use crate::state::job::Placement;
use proptest::prelude::*;
use proto::amount::Amount;
use proto::complex::Complex;
use proto::host::ExecHost;
use proto::hostgroup::HostGroup;
use proto::id::{HostName, QueueInstanceName, TaskId, TaskKey};
use proto::job::{GrantedSlots, JobSpec, PeRequest, Requests};
use proto::object::{Fields, Object, ObjectKind};
use proto::pe::ParallelEnvironment;
use proto::request::SlotRange;
use proto::rsmap::{GrantedIds, IdMap};
use proto::usage::{Exit, FailedCode};
use proto::wire::agent::TaskReportState;
use proto::wire::client::{AttributeEdit, Command, ObjectAction, ObjectChange};
use proto::wire::stream::Order;
use std::collections::{BTreeMap, BTreeSet};

const HOSTS: [&str; 3] = ["h1", "h2", "h3"];

#[derive(Clone, Debug)]
enum BookingStep {
    Submit { licences: u32, parallel: bool },
    Place { job: u32, task: u32, slots: [u32; 3] },
    End { index: u32, again: bool },
    Charge { kind: &'static str, default: u32 },
    Capacity { host: usize, licences: u32, first_id: u32 },
    Slots { slots: u32 },
    Member { host: usize, is_in: bool },
    Restart,
}

fn act() -> impl Strategy<Value = BookingStep> {
    let kind = prop_oneof![Just("NO"), Just("YES"), Just("JOB"), Just("HOST")];
    prop_oneof![
        3 => (0u32..3, any::<bool>()).prop_map(|(licences, parallel)| BookingStep::Submit { licences, parallel }),
        8 => (1u32..8, 1u32..4, prop::array::uniform3(0u32..3)).prop_map(|(job, task, slots)| BookingStep::Place { job, task, slots }),
        3 => (0u32..8, any::<bool>()).prop_map(|(index, again)| BookingStep::End { index, again }),
        2 => (kind, 0u32..2).prop_map(|(kind, default)| BookingStep::Charge { kind, default }),
        2 => (0usize..4, 0u32..7, 0u32..4)
            .prop_map(|(host, licences, first_id)| BookingStep::Capacity { host, licences, first_id }),
        1 => (0u32..6).prop_map(|slots| BookingStep::Slots { slots }),
        2 => (0usize..3, any::<bool>()).prop_map(|(host, is_in)| BookingStep::Member { host, is_in }),
        1 => Just(BookingStep::Restart),
    ]
}

fn complex(kind: &str, default: u32) -> ObjectAction {
    let of_map = if kind == "NO" { "JOB" } else { kind };
    let text = format!("{}\nlic lic INT <= YES {kind} {default} 0", Complex::built_in());
    let text = format!("{text}\ngpu gpu RSMAP <= YES {of_map} {default} 0");
    ObjectAction::Replace(Complex::parse(&text).unwrap().write())
}

fn change(cell: &mut Cell, kind: ObjectKind, name: &str, action: ObjectAction) {
    let change = ObjectChange {
        kind,
        name: name.to_owned(),
        action,
    };
    cell.command("boss", Command::Objects(vec![change]));
}

fn edit(cell: &mut Cell, kind: ObjectKind, name: &str, edit: AttributeEdit, attribute: &str, value: &str) {
    let action = ObjectAction::Attribute {
        edit,
        attribute: attribute.to_owned(),
        value: value.to_owned(),
    };
    change(cell, kind, name, action);
}

/// Three hosts in a group, a queue on it, a parallel environment, licences everywhere.
fn cell() -> Cell {
    let mut cell = Cell::ready();
    change(&mut cell, ObjectKind::ComplexTable, "", complex("YES", 0));
    let with = |mut fields: Fields, key: &str, value: &str| {
        fields.set(key, value);
        ObjectAction::Add(fields)
    };
    let host = ExecHost::template("h3".into()).to_fields();
    change(
        &mut cell,
        ObjectKind::ExecHost,
        "h3",
        with(host, "complex_values", "lic=2,gpu=4(0-3)"),
    );
    let group = HostGroup::template("@g".into()).to_fields();
    change(
        &mut cell,
        ObjectKind::HostGroup,
        "@g",
        with(group, "hostlist", "h1 h2 h3"),
    );
    let pe = ParallelEnvironment::template("mpi".into()).to_fields();
    change(
        &mut cell,
        ObjectKind::Pe,
        "mpi",
        with(with_slots(pe), "allocation_rule", "$round_robin"),
    );
    edit(
        &mut cell,
        ObjectKind::Queue,
        "all.q",
        AttributeEdit::Replace,
        "hostlist",
        "@g",
    );
    edit(
        &mut cell,
        ObjectKind::Queue,
        "all.q",
        AttributeEdit::Replace,
        "pe_list",
        "mpi",
    );
    edit(
        &mut cell,
        ObjectKind::ExecHost,
        "global",
        AttributeEdit::Replace,
        "complex_values",
        "lic=4,gpu=6(0-5)",
    );
    cell.connect("h3");
    cell
}

fn with_slots(mut pe: Fields) -> Fields {
    pe.set("slots", "100");
    pe
}

fn submit(cell: &mut Cell, licences: u32, parallel: bool) {
    let pe = PeRequest {
        name: "mpi".to_owned(),
        slots: SlotRange::parse("1-6").unwrap(),
    };
    let hard = if licences == 0 {
        Vec::new()
    } else {
        resources(&format!("lic={licences},gpu={licences}"))
    };
    let requests = Requests {
        hard,
        pe: parallel.then_some(pe),
        ..Requests::default()
    };
    cell.submit(JobSpec {
        requests: requests.into(),
        ..if parallel { array("1-3") } else { job() }
    });
}

/// Sets how many licences a host has, or the cluster beyond the last host.
fn set_capacity(cell: &mut Cell, host: usize, licences: u32, first_id: u32) {
    let name = HOSTS.get(host).copied().unwrap_or("global");
    let values = match (licences, first_id) {
        (6, _) => "NONE".to_owned(),
        (0, _) => "lic=0,gpu=0".to_owned(),
        // Two jobs may share each device.
        (_, 3) => format!("lic={licences},gpu={}(0-{1} 0-{1})", 2 * licences, licences - 1),
        _ => format!("lic={licences},gpu={licences}({first_id}-{})", first_id + licences - 1),
    };
    edit(
        cell,
        ObjectKind::ExecHost,
        name,
        AttributeEdit::Replace,
        "complex_values",
        &values,
    );
}

fn perform(cell: &mut Cell, act: &BookingStep) {
    match act.clone() {
        BookingStep::Submit { licences, parallel } => {
            submit(cell, licences, parallel);
        }
        BookingStep::Place { job, task, slots } if cell.exists(job) => place(cell, job, task, slots),
        BookingStep::Place { .. } => {}
        BookingStep::End { index, again } => end(cell, index, again),
        BookingStep::Charge { kind, default } => {
            let default = if kind == "NO" { 0 } else { default };
            change(cell, ObjectKind::ComplexTable, "", complex(kind, default));
        }
        BookingStep::Capacity {
            host,
            licences,
            first_id,
        } => {
            set_capacity(cell, host, licences, first_id);
        }
        BookingStep::Slots { slots } => {
            edit(
                cell,
                ObjectKind::Queue,
                "all.q",
                AttributeEdit::Replace,
                "slots",
                &slots.to_string(),
            );
        }
        BookingStep::Member { host, is_in } => {
            let how = if is_in {
                AttributeEdit::Add
            } else {
                AttributeEdit::Delete
            };
            edit(cell, ObjectKind::HostGroup, "@g", how, "hostlist", HOSTS[host]);
        }
        BookingStep::Restart => {
            let stored = rmp_serde::to_vec_named(cell.core.state()).unwrap();
            let state = rmp_serde::from_slice::<crate::state::State>(&stored)
                .unwrap()
                .restored();
            assert!(state == *cell.core.state(), "a snapshot restores");
        }
    }
}

fn place(cell: &mut Cell, number: u32, task: u32, slots: [u32; 3]) {
    let job = cell.job(number);
    let (seq, pe) = (job.seq, job.spec.requests.pe.as_ref().map(|pe| pe.name.as_str().into()));
    let part = |(host, slots): (&str, u32)| {
        let instance = QueueInstanceName {
            queue: "all.q".into(),
            host: host.into(),
        };
        (slots > 0).then_some(GrantedSlots { instance, slots })
    };
    let granted = HOSTS.into_iter().zip(slots).filter_map(part).collect();
    let orders = vec![Order::Start {
        seq,
        task: TaskId(task),
        granted,
        pe,
    }];
    cell.input(crate::effect::Input::Orders {
        scheduler: "any".to_owned(),
        orders,
    });
}

fn end(cell: &mut Cell, index: u32, again: bool) {
    let placements = cell.core.state().jobs.values().flat_map(|job| job.placements());
    let placed: Vec<(TaskKey, HostName)> = placements.map(|(_, at)| (at.key, at.host().clone())).collect();
    if let Some((key, host)) = placed.get(index as usize % placed.len().max(1)) {
        let exit = if again { Exit::Code(99) } else { Exit::Code(0) };
        let ended = Box::new(result(exit, FailedCode::NO, ""));
        cell.report(*key, host.as_str(), TaskReportState::Ended(ended));
    }
}

/// What the placed tasks take at a level, added up anew.
fn sum(cell: &Cell, level: &Level, attribute: &str) -> i64 {
    let state = cell.core.state();
    let complex = &state.config.complex;
    let kind = complex.lookup(attribute).unwrap();
    let is_at = |instance: &QueueInstanceName| match level {
        Level::Global => true,
        Level::Host(host) => instance.host == *host,
        Level::Instance(at) => instance == at,
    };
    let task = |spec: &JobSpec, at: &Placement| {
        let granted: &[GrantedSlots] = &at.granted;
        let is_here = |map: &&GrantedIds| map.attribute.as_str() == attribute && Level::of_host(&map.host) == *level;
        if let Some(map) = at.maps.iter().find(is_here) {
            return i64::try_from(map.ids.len()).unwrap();
        }
        let request = spec.requests.hard.iter().find(|request| request.name == attribute);
        let asked = request.and_then(|request| request.value.as_ref()?.parse().ok());
        let default = kind.default_amount().finite().unwrap();
        let amount = if attribute == "slots" {
            1
        } else {
            asked.unwrap_or(default)
        };
        let here = || granted.iter().filter(|part| is_at(&part.instance));
        let hosts: BTreeSet<_> = here().map(|part| &part.instance.host).collect();
        amount
            * match kind.consumable.as_str() {
                "YES" => here().map(|part| i64::from(part.slots)).sum(),
                "JOB" => i64::from(is_at(&granted[0].instance)),
                "HOST" => i64::try_from(hosts.len()).unwrap(),
                _ => 0,
            }
    };
    let jobs = state.jobs.values();
    jobs.flat_map(|job| job.placements().map(|(_, at)| task(&job.spec, at)))
        .sum()
}

fn capacity(cell: &Cell, level: &Level, attribute: &str) -> Option<i64> {
    let config = &cell.core.state().config;
    let host = match (level, attribute) {
        (Level::Instance(at), "slots") => return Some(config.resolved.get(at).map_or(0, |at| i64::from(at.slots))),
        (Level::Global, _) => HostName::global(),
        (Level::Host(host), _) => host.clone(),
        (Level::Instance(_), _) => return None,
    };
    let text = config.exec_hosts[&host].complex_values.value(attribute)?;
    IdMap::amount_of(text).unwrap().finite()
}

fn booked(cell: &Cell) -> Vec<(Level, &'static str, i64)> {
    let hosts = HOSTS.map(|host| Level::Host(host.into()));
    let instance = |host: &str| QueueInstanceName {
        queue: "all.q".into(),
        host: host.into(),
    };
    let instances = HOSTS.map(|host| Level::Instance(instance(host)));
    let levels = [Level::Global].into_iter().chain(hosts).chain(instances);
    let ledger = &cell.core.state().ledger;
    let pairs = levels.flat_map(|level| ["lic", "slots", "gpu"].map(|attribute| (level.clone(), attribute)));
    pairs
        .map(|(level, name)| (level.clone(), name, ledger.booked(&level, name).finite().unwrap()))
        .collect()
}

/// How often each id is in use, by host.
fn ids_in_use(cell: &Cell) -> BTreeMap<(HostName, String), usize> {
    let placements = cell.core.state().jobs.values().flat_map(|job| job.placements());
    let mut used = BTreeMap::new();
    for (host, id) in placements
        .flat_map(|(_, at)| &at.maps)
        .flat_map(|map| map.ids.iter().map(|id| (&map.host, id)))
    {
        *used.entry((host.clone(), id.clone())).or_default() += 1;
    }
    used
}

/// Each id that more tasks have than before is free as often as that.
fn assert_ids_are_given_once(cell: &Cell, before: &BTreeMap<(HostName, String), usize>) {
    for ((host, id), now) in ids_in_use(cell) {
        let place = (host, id);
        if now > before.get(&place).copied().unwrap_or(0) {
            let values = &cell.core.state().config.exec_hosts[&place.0].complex_values;
            let map = IdMap::parse(values.value("gpu").expect("ids come from a map")).unwrap();
            let there = map.ids().iter().filter(|known| **known == place.1).count();
            assert!(now <= there, "{place:?} is given {now} times and there {there} times");
        }
    }
}

proptest! {
    #![proptest_config(crate::testing::cases(48))]

    #[test]
    fn what_is_booked_is_what_placed_tasks_take_whatever_becomes_of_the_configuration(
        acts in prop::collection::vec(act(), 1..60)
    ) {
        let mut cell = cell();
        let mut before = booked(&cell);
        for act in &acts {
            let used = ids_in_use(&cell);
            perform(&mut cell, act);
            assert_ids_are_given_once(&cell, &used);
            let after = booked(&cell);
            for ((level, name, now), (_, _, then)) in after.iter().zip(&before) {
                prop_assert_eq!(*now, sum(&cell, level, name), "{} at {} after {:?}", name, level, act);
                let lowered = !matches!(act, BookingStep::Place { .. });
                let within = capacity(&cell, level, name).is_none_or(|capacity| *now <= capacity || now <= then);
                prop_assert!(lowered || within, "{} at {} after {:?}: {} taken", name, level, act, now);
            }
            before = after;
        }
        cell.assert_replay_is_live();
    }
}

#[test]
fn what_is_made_consumable_under_running_tasks_is_booked_for_them_from_then_on() {
    let mut cell = cell();
    change(&mut cell, ObjectKind::ComplexTable, "", complex("NO", 0));
    perform(
        &mut cell,
        &BookingStep::Submit {
            licences: 2,
            parallel: true,
        },
    );
    perform(
        &mut cell,
        &BookingStep::Place {
            job: 1,
            task: 1,
            slots: [2, 1, 0],
        },
    );
    let lic = |cell: &Cell, host: &str| cell.core.state().ledger.booked(&Level::Host(host.into()), "lic");
    let amounts = |numbers: [i64; 2]| numbers.map(Amount::from_base);
    for (kind, expected) in [("YES", [4, 2]), ("JOB", [2, 0]), ("HOST", [2, 2]), ("NO", [0, 0])] {
        change(&mut cell, ObjectKind::ComplexTable, "", complex(kind, 0));
        assert_eq!([lic(&cell, "h1"), lic(&cell, "h2")], amounts(expected), "{kind}");
    }
    change(&mut cell, ObjectKind::ComplexTable, "", complex("YES", 0));
    // Out of the group it runs on, and still takes what it took.
    perform(&mut cell, &BookingStep::Member { host: 0, is_in: false });
    perform(
        &mut cell,
        &BookingStep::Capacity {
            host: 0,
            licences: 1,
            first_id: 0,
        },
    );
    assert_eq!(lic(&cell, "h1"), Amount::from_base(4));
    perform(
        &mut cell,
        &BookingStep::Submit {
            licences: 1,
            parallel: false,
        },
    );
    perform(
        &mut cell,
        &BookingStep::Place {
            job: 2,
            task: 1,
            slots: [1, 0, 0],
        },
    );
    assert_eq!(
        cell.core.state().jobs.values().map(|job| job.active).sum::<u32>(),
        1,
        "neither is it in the queue nor is there a licence"
    );
    end(&mut cell, 0, false);
    assert_eq!([lic(&cell, "h1"), lic(&cell, "h2")], amounts([0, 0]));
}
