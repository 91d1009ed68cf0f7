//! What the cell is made of, and what its users do, from the seed.

use super::agenda::Happening;
use super::launcher::Program;
use super::world::World;
use master_core::event::StoredObject;
use proto::complex::Complex;
use proto::conf::ClusterConf;
use proto::host::ExecHost;
use proto::id::{HostName, JobNumber};
use proto::job::{HoldChange, Holds, JobChanges, JobSpec, Owner, PeRequest, Program as JobProgram, Requests};
use proto::object::{Fields, ObjectKind};
use proto::pe::ParallelEnvironment;
use proto::policy::SchedulerConf;
use proto::queue::ClusterQueue;
use proto::request::{ResourceList, SlotRange, TaskRange};
use proto::wire::client::{Command, JobSelection, JobTarget, ModifyAction};
use std::sync::Arc;

/// Slots of each queue instance.
const SLOTS: u32 = 4;
/// Licences of the cell.
const LICENCES: u32 = 3;
/// A program that ends only when it is told to.
const FOR_EVER_MS: u64 = 100 * 24 * 3_600_000;
/// How long after the last fault what waits for a failed job is let go.
const FREED_AFTER_MS: u64 = 300_000;

fn object(kind: ObjectKind, name: &str, fields: Fields) -> StoredObject {
    StoredObject { kind, name: name.to_owned(), fields: Some(fields) }
}

fn complex() -> Fields {
    let text = format!("{}\nlic lic INT <= YES YES 0 0\n", Complex::built_in());
    let text: Vec<String> = text
        .lines()
        .map(|line| {
            if line.starts_with("h_vmem") { "h_vmem h_vmem MEMORY <= YES YES 0 0".to_owned() } else { line.to_owned() }
        })
        .collect();
    let complex = Complex::parse(&text.join("\n")).expect("the complex reads");
    let mut fields = Fields::new();
    for line in complex.to_string().lines().filter(|line| !line.starts_with('#')) {
        let (name, rest) = line.split_once(' ').expect("a name and its columns");
        fields.set(name, rest.trim());
    }
    fields
}

fn exec_host(name: &HostName, values: &str) -> StoredObject {
    let mut fields = ExecHost::template(name.clone()).to_fields();
    fields.set("complex_values", values);
    object(ObjectKind::ExecHost, name.as_str(), fields)
}

/// The objects of the cell: one queue on all hosts, two parallel environments, a licence, memory of each host.
pub(super) fn objects(hosts: &[HostName]) -> Vec<StoredObject> {
    let mut objects = vec![object(ObjectKind::ComplexTable, "", complex())];
    objects.push(object(ObjectKind::ClusterConf, "global", ClusterConf::template().to_fields()));
    let mut scheduler = SchedulerConf::template().to_fields();
    scheduler.set("job_load_adjustments", "NONE");
    objects.push(object(ObjectKind::SchedulerConf, "", scheduler));
    objects.push(exec_host(&HostName::global(), &format!("lic={LICENCES}")));
    objects.extend(hosts.iter().map(|host| exec_host(host, "h_vmem=8G")));
    for (name, rule) in [("smp", "$pe_slots"), ("mpi", "$round_robin")] {
        let mut pe = ParallelEnvironment::template(name.into()).to_fields();
        pe.set("slots", "100");
        pe.set("allocation_rule", rule);
        objects.push(object(ObjectKind::Pe, name, pe));
    }
    let mut queue = ClusterQueue::template("all.q".into()).to_fields();
    let names: Vec<&str> = hosts.iter().map(HostName::as_str).collect();
    queue.set("hostlist", names.join(" "));
    queue.set("slots", SLOTS.to_string());
    queue.set("load_thresholds", "NONE");
    queue.set("pe_list", "smp mpi");
    objects.push(object(ObjectKind::Queue, "all.q", queue));
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

/// Somebody, by name.
pub(super) fn owner(user: &str) -> Owner {
    let uid = 2_000 + user.bytes().map(u32::from).sum::<u32>();
    Owner { user: user.into(), uid, gid: 2_000, group: "users".to_owned(), groups: Vec::new() }
}

/// A script of a user; its name says what it does (see [`World::program`]).
pub(super) fn job(user: &str, name: &str) -> JobSpec {
    JobSpec {
        name: name.to_owned(),
        program: JobProgram::Script { path: "job.sh".to_owned(), content: Arc::from(&b"#!/bin/sh\nsleep 1\n"[..]) },
        args: Vec::new(),
        owner: owner(user),
        submit_host: "sub".into(),
        submit_directory: "/home".to_owned(),
        directory: None,
        directory_on: Vec::new(),
        stdout: Vec::new(),
        stderr: Vec::new(),
        stdin: Vec::new(),
        merge_stderr: false,
        shell: Vec::new(),
        use_shell: None,
        environment: Vec::new(),
        account: None,
        project: None,
        priority: 0,
        job_share: 0,
        override_tickets: 0,
        requests: Requests::default(),
        array: None,
        task_concurrency: None,
        holds: Holds::default(),
        predecessors: Vec::new(),
        array_predecessors: Vec::new(),
        start_after: None,
        deadline: None,
        rerunnable: None,
        reserve: false,
        immediate: false,
        notify: false,
        mail: Default::default(),
        mail_to: Vec::new(),
        context: Vec::new(),
        validation: Default::default(),
    }
}

fn jobs(number: JobNumber) -> JobSelection {
    let target = JobTarget { job: number.to_string(), tasks: Vec::new() };
    JobSelection { targets: vec![target], ..JobSelection::default() }
}

const USER_HOLD: Holds = Holds { user: true, operator: false, system: false };

impl World {
    /// What a job of that name does on a host. After the end of all faults everything ends well and soon, `forever` excepted.
    pub(super) fn program(&mut self, name: &str) -> Program {
        let plain = |runs_ms, exit| Program { runs_ms, exit, start_fails: 0 };
        let runs_ms = 10 + self.random.around(8_000);
        match name {
            "forever" => plain(FOR_EVER_MS, 0),
            _ if self.healed => plain(runs_ms.min(5_000), 0),
            "again" if self.random.chance(500) => plain(runs_ms, 99),
            "fails" if self.random.chance(500) => plain(runs_ms, 100),
            "nostart" if self.random.chance(500) => {
                Program { runs_ms, exit: 0, start_fails: self.random.pick(&[8, 26, 17]).unwrap_or(26) }
            }
            _ => plain(runs_ms, if self.random.chance(100) { 1 } else { 0 }),
        }
    }

    /// A user does something, and plans what to do next.
    pub(super) fn user_acts(&mut self) {
        if self.healed || self.plan.jobs == 0 {
            return;
        }
        let wait = 1 + self.random.around(self.plan.user_ms);
        self.soon(wait, Happening::UserActs);
        let user = self.random.pick(&["u1", "u2", "u3"]).unwrap_or("u1");
        if self.counts.jobs < self.plan.jobs && self.random.chance(600) {
            self.counts.jobs += 1;
            let spec = self.draw_job(user);
            self.command(user, Command::Submit(Box::new(spec)));
        } else if let Some(number) = self.random.pick(&self.users.jobs.clone()) {
            let command = self.draw_change(number);
            self.command("boss", command);
        }
    }

    fn draw_job(&mut self, user: &str) -> JobSpec {
        let name =
            self.random.pick(&["plain", "plain", "plain", "again", "fails", "nostart", "forever"]).unwrap_or("plain");
        let mut spec = job(user, name);
        if self.random.chance(350) {
            let last = self.random.between(1, 8) as u32;
            spec.array = TaskRange::new(1, last, 1).ok();
            spec.task_concurrency = self.random.pick(&[None, Some(1), Some(2)]).flatten();
        }
        match self.random.below(12) {
            0 => spec.requests.pe = self.draw_pe("smp"),
            1 => spec.requests.pe = self.draw_pe("mpi"),
            2 | 3 => spec.requests.hard = self.draw_resources("lic=1"),
            4 => spec.requests.hard = self.draw_resources("h_vmem=3G"),
            5 => spec.requests.hard = self.draw_resources("lic=2,h_vmem=1G"),
            _ => {}
        }
        self.draw_order(&mut spec);
        spec.rerunnable = self.random.pick(&[None, Some(true), Some(false)]).flatten();
        spec
    }

    /// Holds and predecessors.
    fn draw_order(&mut self, spec: &mut JobSpec) {
        let known = self.users.jobs.clone();
        match self.random.below(10) {
            0 => spec.holds = USER_HOLD,
            1 | 2 => spec.predecessors.extend(self.random.pick(&known).map(|number| number.to_string())),
            3 => {
                let arrays = known.iter().filter_map(|number| self.disk.state.job(*number));
                let arrays: Vec<(JobNumber, TaskRange)> =
                    arrays.filter_map(|job| job.spec.array.map(|range| (job.number, range))).collect();
                if let Some((number, range)) = self.random.pick(&arrays) {
                    spec.array = Some(range);
                    spec.array_predecessors = vec![number.to_string()];
                }
            }
            _ => {}
        }
    }

    fn draw_pe(&mut self, name: &str) -> Option<PeRequest> {
        let slots = self.random.pick(&["2", "1-3", "2-4"]).unwrap_or("2");
        SlotRange::parse(slots).ok().map(|slots| PeRequest { name: name.to_owned(), slots })
    }

    fn draw_resources(&mut self, text: &str) -> Vec<proto::request::ResourceRequest> {
        ResourceList::parse(text).map(Into::into).unwrap_or_default()
    }

    fn draw_change(&mut self, number: JobNumber) -> Command {
        let modify = |action| Command::Modify { action, targets: vec![number.to_string()], force: false };
        let alter = |changes| Command::Alter { jobs: jobs(number), changes: Box::new(changes) };
        match self.random.below(12) {
            0 | 1 => Command::Delete { jobs: jobs(number), force: false },
            2 => alter(JobChanges {
                holds: Some(HoldChange { set: USER_HOLD, ..HoldChange::default() }),
                ..JobChanges::default()
            }),
            3 => release(number),
            4 => modify(ModifyAction::SuspendJob),
            5 | 6 => modify(ModifyAction::UnsuspendJob),
            7 => modify(ModifyAction::RescheduleJob),
            8 => modify(ModifyAction::ClearJobError),
            9 => alter(JobChanges { priority: Some(-5), ..JobChanges::default() }),
            10 => alter(JobChanges { hard: Some(self.draw_resources("lic=1")), ..JobChanges::default() }),
            _ => {
                let other = self.random.pick(&self.users.jobs.clone()).map(|number| number.to_string());
                alter(JobChanges { predecessors: Some(other.into_iter().collect()), ..JobChanges::default() })
            }
        }
    }

    /// After the end of all faults somebody tidies up: holds are released, errors cleared, what never ends is deleted, once.
    pub(super) fn tidy_jobs(&mut self) {
        let jobs_left: Vec<(JobNumber, bool)> =
            self.disk.state.jobs.values().map(|job| (job.number, job.spec.name == "forever")).collect();
        for (number, is_endless) in jobs_left {
            self.command("boss", release(number));
            for action in [ModifyAction::UnsuspendJob, ModifyAction::ClearJobError] {
                self.command("boss", Command::Modify { action, targets: vec![number.to_string()], force: false });
            }
            if self.time > self.plan.length_ms + FREED_AFTER_MS {
                self.command("boss", free(number));
            }
            if is_endless {
                self.command("boss", Command::Delete { jobs: jobs(number), force: false });
            }
        }
    }

    /// An operator clears the errors of queues.
    pub(super) fn tidy_queues(&mut self) {
        if self.disk.state.instances.is_empty() {
            return;
        }
        let action = ModifyAction::ClearQueueError;
        self.command("boss", Command::Modify { action, targets: vec!["*".to_owned()], force: false });
        self.master_dies();
    }
}

/// Lets a job go that waits for one that has failed (JOB-04).
fn free(number: JobNumber) -> Command {
    let changes =
        JobChanges { predecessors: Some(Vec::new()), array_predecessors: Some(Vec::new()), ..JobChanges::default() };
    Command::Alter { jobs: jobs(number), changes: Box::new(changes) }
}

fn release(number: JobNumber) -> Command {
    let change = HoldChange { release: USER_HOLD, ..HoldChange::default() };
    Command::Alter {
        jobs: jobs(number),
        changes: Box::new(JobChanges { holds: Some(change), ..JobChanges::default() }),
    }
}
