//! What the cell is made of at the beginning, and again once everything has healed.

use super::slaves;
use master_core::event::StoredObject;
use proto::calendar::Calendar;
use proto::complex::Complex;
use proto::conf::ClusterConf;
use proto::host::ExecHost;
use proto::hostgroup::HostGroup;
use proto::id::HostName;
use proto::object::{Fields, Object, ObjectKind};
use proto::pe::ParallelEnvironment;
use proto::policy::SchedulerConf;
use proto::queue::ClusterQueue;
use proto::quota::QuotaSet;
use proto::sharetree::ShareTree;

/// Slots of each instance of `all.q`, and of `b.q`.
const SLOTS: [&str; 2] = ["4", "2"];
/// Two hours in which a queue is suspended, open and closed for a minute or two at a time; runs
/// begin at eight.
const CALENDAR: &str = "8:1-8:2,8:4-8:6,8:9-8:10,8:14-8:15,8:20-8:22=suspended 8:3-8:4,8:7-8:9,8:16-8:18,7:50-7:55=off";
/// Licences of a small cell, where they are short.
const LICENCES: &str = "lic=~3";
/// Licences of a large one, where they are short for hours only.
const MANY_LICENCES: &str = "lic=~20";
/// So many hosts make a large cell.
const LARGE: usize = 100;

/// How many times as large as a small one a cell is.
pub(super) fn size(hosts: usize) -> usize {
    hosts.div_ceil(8)
}

/// A text in which `~3` stands for three times the size of the cell.
pub(super) fn scaled(text: &str, size: usize) -> String {
    let mut parts = text.split('~');
    let mut scaled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(part.len());
        let number: usize = part[..end].parse().expect("a number follows the mark");
        scaled += &format!("{}{}", number * size, &part[end..]);
    }
    scaled
}

fn object(kind: ObjectKind, name: &str, fields: Fields) -> StoredObject {
    StoredObject {
        kind,
        name: name.to_owned(),
        fields: Some(fields),
    }
}

/// The complex: how licences, processors of a kind and memory are charged, and what is charged by
/// default of the second.
pub(super) fn complex(lic: &str, gpu: &str, gpu_default: &str, memory: &str) -> Fields {
    let built_in = Complex::built_in().to_string();
    let others = built_in.lines().filter(|line| !line.starts_with("h_vmem"));
    let own = [
        format!("h_vmem h_vmem MEMORY <= YES {memory} 0 0"),
        format!("lic lic INT <= YES {lic} 0 0"),
        format!("gpu gpu INT <= YES {gpu} {gpu_default} 0"),
    ];
    let lines: Vec<&str> = others.chain(own.iter().map(String::as_str)).collect();
    Complex::parse(&lines.join("\n")).expect("the complex reads").write()
}

/// An execution host with its `complex_values`.
pub(super) fn exec_host(name: &HostName, values: &str) -> Fields {
    let mut fields = ExecHost::template(name.clone()).to_fields();
    fields.set("complex_values", values);
    fields
}

/// Rules about where users may have slots; every job has room by itself.
const PLACES: &[&str] = &[
    "users {u1,u2} hosts {@few} to slots=~3",
    "pes !* queues b.q to slots=~4",
    "hosts {*} to slots=5",
];
/// Rules about what users may have of licences.
const LICENCES_OF_USERS: &[&str] = &["users {u3} to lic=~3,slots=~9", "users * to lic=~3"];

/// The same in a large cell.
const MANY_LICENCES_OF_USERS: &[&str] = &["users {u3} to lic=~8,slots=~20", "users * to lic=~9"];

/// A resource quota set that counts, with its rules.
pub(super) fn quota(name: &str, rules: &[&str], size: usize) -> Fields {
    let mut fields: Fields = [("name", name), ("description", "NONE"), ("enabled", "TRUE")]
        .into_iter()
        .collect();
    for (index, rule) in rules.iter().enumerate() {
        fields.set(&QuotaSet::rule_key(index), scaled(rule, size));
    }
    fields
}

fn group(name: &str, hosts: &[&str]) -> StoredObject {
    let mut fields = HostGroup::template(name.into()).to_fields();
    fields.set("hostlist", hosts.join(" "));
    object(ObjectKind::HostGroup, name, fields)
}

fn queue(name: &str, hosts: &str, slots: &str) -> StoredObject {
    let mut queue = ClusterQueue::template(name.into()).to_fields();
    queue.set("hostlist", hosts);
    queue.set("slots", slots);
    queue.set("load_thresholds", "NONE");
    queue.set("pe_list", "smp mpi");
    queue.set("suspend_interval", "0:0:5");
    object(ObjectKind::Queue, name, queue)
}

/// The global configuration: how many tasks of an array may run, and after how long those of an
/// unknown host run again.
pub(super) fn cluster(instances: &str, reschedule_unknown: &str) -> Fields {
    let mut fields = ClusterConf::template().to_fields();
    fields.set("max_aj_instances", instances);
    fields.set("reschedule_unknown", reschedule_unknown);
    fields.set("max_unheard", "00:02:00");
    fields.set("reprioritize", "1");
    fields.set("qmaster_params", "MAX_START_FAILURES=4");
    fields
}

/// What administrators change and what is set again in the end, each after what it names:
/// scheduler, parallel environments, a calendar, queues, hosts, licences, memory, special
/// processors and quotas.
pub(super) fn changeable(hosts: &[HostName], seed: u64, is_calm: bool) -> Vec<StoredObject> {
    let size = size(hosts.len());
    let mut objects = vec![object(ObjectKind::ComplexTable, "", complex("YES", "YES", "0", "YES"))];
    objects.push(object(ObjectKind::ClusterConf, "global", cluster("2000", "00:00:00")));
    let is_large = hosts.len() >= LARGE;
    let licences = scaled(if is_large { MANY_LICENCES } else { LICENCES }, size);
    objects.push(object(
        ObjectKind::ExecHost,
        "global",
        exec_host(&HostName::global(), &licences),
    ));
    for (index, host) in hosts.iter().enumerate() {
        let values = if index % 2 == 0 { "h_vmem=8G,gpu=2" } else { "h_vmem=8G" };
        objects.push(object(ObjectKind::ExecHost, host.as_str(), exec_host(host, values)));
    }
    objects.push(if is_calm {
        calm_scheduler()
    } else {
        scheduler(seed, is_large)
    });
    objects.push(calendar(CALENDAR));
    objects.extend(environments(seed, size, is_large));
    let names: Vec<&str> = hosts.iter().map(HostName::as_str).collect();
    objects.push(group("@all", &names));
    objects.push(group("@few", &names[..size]));
    objects.push(queue("all.q", "@all", SLOTS[0]));
    objects.push(queue("b.q", "@few", SLOTS[1]));
    if is_calm {
        // Where the slots of parallel jobs are laid out under quotas is not exact.
        return objects;
    }
    objects.push(object(
        ObjectKind::ResourceQuota,
        "places",
        quota("places", PLACES, size),
    ));
    let rules = if is_large {
        MANY_LICENCES_OF_USERS
    } else {
        LICENCES_OF_USERS
    };
    objects.push(object(
        ObjectKind::ResourceQuota,
        "licences",
        quota("licences", rules, size),
    ));
    objects
}

/// The scheduler. One seed of four has another algorithm.
fn scheduler(seed: u64, is_large: bool) -> StoredObject {
    let mut scheduler = SchedulerConf::template().to_fields();
    let (algorithm, params) = match seed % 8 {
        3 => ("fcfs", "none"),
        7 => ("fcfs", "USER_SORT=TRUE"),
        _ => ("default", "none"),
    };
    scheduler.set("algorithm", algorithm);
    scheduler.set("params", params);
    scheduler.set("job_load_adjustments", "NONE");
    scheduler.set("weight_tickets_share", "1000");
    scheduler.set("halftime", "1");
    scheduler.set("reprioritize_interval", "0:0:30");
    scheduler.set(
        "halflife_decay_list",
        if seed.is_multiple_of(3) { "cpu=5:mem=-1" } else { "none" },
    );
    let reservations = if is_large { "5" } else { ["5", "0"][(seed % 2) as usize] };
    scheduler.set("max_reservation", reservations);
    scheduler.set(
        "default_duration",
        if seed.is_multiple_of(5) {
            "INFINITY"
        } else if is_large {
            "2:0:0"
        } else {
            "0:0:20"
        },
    );
    object(ObjectKind::SchedulerConf, "", scheduler)
}

/// A scheduler that goes by `-p` and the time of submission alone, and keeps slots for whoever
/// asks.
fn calm_scheduler() -> StoredObject {
    let mut scheduler = SchedulerConf::template().to_fields();
    for weight in [
        "weight_urgency",
        "weight_ticket",
        "weight_waiting_time",
        "weight_deadline",
    ] {
        scheduler.set(weight, "0");
    }
    scheduler.set("job_load_adjustments", "NONE");
    scheduler.set("max_reservation", "20");
    scheduler.set("default_duration", "INFINITY");
    // From the order to the start on a host some seconds may pass.
    scheduler.set("params", "DURATION_OFFSET=0:0:15");
    object(ObjectKind::SchedulerConf, "", scheduler)
}

/// A calendar with these weeks.
fn calendar(week: &str) -> StoredObject {
    let mut calendar = Calendar::template("c".into()).to_fields();
    calendar.set("week", week);
    object(ObjectKind::Calendar, "c", calendar)
}

/// The parallel environments: on one host, and over several. On one seed of four the latter spares
/// what runs beside the master.
fn environments(seed: u64, size: usize, is_large: bool) -> [StoredObject; 2] {
    let slots = if is_large { "~25" } else { "~7" };
    [
        ("smp", "$pe_slots", "~100", "TRUE"),
        ("mpi", "$round_robin", slots, "FALSE"),
    ]
    .map(|(name, rule, slots, first)| {
        let mut pe = ParallelEnvironment::template(name.into()).to_fields();
        pe.set("slots", scaled(slots, size));
        pe.set("allocation_rule", rule);
        slaves::settings(seed)
            .into_iter()
            .for_each(|(key, value)| pe.set(key, value));
        pe.set("job_is_first_task", first);
        // Where it is FALSE, it is not among the fields of an environment.
        if !is_large && name == "mpi" && seed % 4 == 1 {
            pe.set("ign_sreq_on_mhost", "TRUE");
        }
        object(ObjectKind::Pe, name, pe)
    })
}

/// What stays as it is: who may do what, and the share tree.
pub(super) fn fixed() -> Vec<StoredObject> {
    let mut objects = vec![object(ObjectKind::ShareTree, "", ShareTree::template("").write())];
    for (kind, name) in [
        (ObjectKind::SubmitHosts, "sub"),
        (ObjectKind::AdminHosts, "sub"),
        (ObjectKind::Managers, "boss"),
        (ObjectKind::Operators, "op"),
    ] {
        objects.push(object(kind, name, Fields::new()));
    }
    objects
}
