//! The lines of the reporting file: `TIME:TYPE:…`, fields as reporting(5) has them.

use master_core::event::{Actor, Event, InstanceState, Record, TaskFate};
use master_core::ledger::Level;
use master_core::observe::Observations;
use master_core::state::State;
use master_core::state::job::{Job, Placement};
use proto::accounting::AccountingRecord;
use proto::amount::Amount;
use proto::conf::ReportingParams;
use proto::id::{HostName, QueueInstanceName, TaskId};
use proto::job::GrantedSlots;
use proto::object::value::Assignments;
use proto::reporting::{self, RecordType};
use proto::request::TaskRange;
use proto::time::Wall;
use proto::wire::view::ShareNode;
use std::fmt::Write as _;

/// The posix priority 0 in the numbers of 8.1.9.
const BASE_PRIORITY: i32 = 1024;

/// Takes lines.
pub(super) struct Lines<'a> {
    /// Where they go.
    pub out: &'a mut String,
    /// The master's host.
    pub master: &'a str,
    /// What is true, before or behind the event at hand.
    pub cell: &'a State,
    /// What is to be written.
    pub params: &'a ReportingParams,
}

/// One `job_log` record.
struct JobLogRecord<'a> {
    at: i64,
    event: &'a str,
    task: i64,
    state: &'a str,
    user: &'a str,
    host: &'a str,
    message: &'a str,
}

impl Lines<'_> {
    /// The records of an event, from the state before it.
    #[allow(
        clippy::wildcard_enum_match_arm,
        reason = "reporting(5) has lines for these events only"
    )]
    pub fn of_event(&mut self, record: &Record) {
        let state = self.cell;
        let at = record.now.wall.seconds();
        match &record.event {
            Event::JobSubmitted { number, spec, .. } => {
                let job = Facts::of_spec(self.cell, number.0, spec, record.now.wall);
                self.submitted(at, &job, &record.actor);
            }
            Event::TaskPlaced { key, .. } => {
                let Some(job) = state.jobs.get(&key.seq) else { return };
                self.by_master(at, job, key.task, ("sent", "t"), "sent to execd");
            }
            Event::TaskStarted { key, .. } => {
                let Some(job) = state.jobs.get(&key.seq) else { return };
                self.by_master(at, job, key.task, ("delivered", "r"), "job received by execd");
            }
            Event::TaskEnded {
                key,
                record: ended,
                then,
                ..
            } => {
                let Some((job, _, placement)) = state.placed(*key) else {
                    return;
                };
                self.ended(at, job, placement, ended.as_deref(), then);
            }
            Event::SlaveEnded {
                record: Some(ended), ..
            } => self.line(at, &reporting::ACCT, &ended.to_line()),
            Event::TasksDeleted { seq, tasks } => {
                let Some(job) = state.jobs.get(seq) else { return };
                self.deleted(at, job, tasks, &record.actor);
            }
            Event::TaskSuspended { key, suspended } | Event::TaskThresholdSuspended { key, suspended } => {
                let Some(job) = state.jobs.get(&key.seq) else { return };
                self.suspended(at, job, key.task, *suspended, &record.actor);
            }
            Event::InstanceChanged { instance, state } => self.instance_changed(at, instance, state),
            _ => {}
        }
    }

    fn submitted(&mut self, at: i64, job: &Facts<'_>, actor: &Actor) {
        self.new_job(at, job);
        let (user, host) = self.actor(actor);
        self.step(
            job,
            &JobLogRecord {
                at,
                event: "pending",
                task: -1,
                state: "",
                user: &user,
                host: &host,
                message: "new job",
            },
        );
    }

    fn suspended(&mut self, at: i64, job: &Job, task: TaskId, is_suspended: bool, actor: &Actor) {
        let (event, letter) = if is_suspended {
            ("suspended", "s")
        } else {
            ("unsuspended", "r")
        };
        let (user, host) = self.actor(actor);
        let task = task_number(job, task);
        self.step(
            &Facts::of_job(self.cell, job),
            &JobLogRecord {
                at,
                event,
                task,
                state: letter,
                user: &user,
                host: &host,
                message: "",
            },
        );
    }

    fn instance_changed(&mut self, at: i64, instance: &QueueInstanceName, state: &InstanceState) {
        let letters = [
            (state.disabled, 'd'),
            (state.suspended, 's'),
            (!state.errors.is_empty(), 'E'),
        ];
        let letters: String = letters
            .into_iter()
            .filter_map(|(is_set, letter)| is_set.then_some(letter))
            .collect();
        self.line(
            at,
            &reporting::QUEUE,
            &format!("{}:{}:{at}:{letters}", instance.queue, instance.host),
        );
    }

    fn ended(&mut self, at: i64, job: &Job, placement: &Placement, ended: Option<&AccountingRecord>, then: &TaskFate) {
        if let Some(ended) = ended {
            self.line(at, &reporting::ACCT, &ended.to_line());
        }
        let facts = Facts::of_job(self.cell, job);
        let task = task_number(job, placement.key.task);
        let host = placement.host().to_string();
        let state = if placement.started.is_some() { "r" } else { "t" };
        let by_host = |event, message| JobLogRecord {
            at,
            event,
            task,
            state,
            user: "execution daemon",
            host: &host,
            message,
        };
        match then {
            TaskFate::Done => {
                self.step(&facts, &by_host("finished", "job exited"));
                self.gone(at, &facts, task, state);
            }
            TaskFate::Requeued | TaskFate::Error { .. } => {
                let (event, message) = if matches!(then, TaskFate::Error { .. }) {
                    ("error", "job set in error state")
                } else {
                    ("restart", "job didn't get resources -> schedule it again")
                };
                self.step(&facts, &by_host(event, message));
                let message = format!("rescheduling job {}.{}", job.number, placement.key.task);
                let master = self.master.to_owned();
                self.step(
                    &facts,
                    &JobLogRecord {
                        at,
                        event: "restart",
                        task,
                        state,
                        user: "master",
                        host: &master,
                        message: &message,
                    },
                );
            }
        }
    }

    fn deleted(&mut self, at: i64, job: &Job, tasks: &[TaskRange], actor: &Actor) {
        let (user, host) = self.actor(actor);
        let facts = Facts::of_job(self.cell, job);
        for task in tasks.iter().flat_map(|range| range.iter()) {
            let task = task_number(job, task);
            self.step(
                &facts,
                &JobLogRecord {
                    at,
                    event: "deleted",
                    task,
                    state: "",
                    user: &user,
                    host: &host,
                    message: "job deleted",
                },
            );
            self.gone(at, &facts, task, "");
        }
    }

    /// What 8.1.9 tells about a task that is over.
    fn gone(&mut self, at: i64, facts: &Facts<'_>, task: i64, state: &str) {
        let master = self.master.to_owned();
        let message = "job waits for scheduler's deletion";
        self.step(
            facts,
            &JobLogRecord {
                at,
                event: "finished",
                task,
                state,
                user: "master",
                host: &master,
                message,
            },
        );
        let message = "job deleted by scheduler";
        self.step(
            facts,
            &JobLogRecord {
                at,
                event: "deleted",
                task,
                state: "T",
                user: "scheduler",
                host: &master,
                message,
            },
        );
    }

    fn by_master(&mut self, at: i64, job: &Job, task: TaskId, (event, state): (&str, &str), message: &str) {
        let master = self.master.to_owned();
        let task = task_number(job, task);
        self.step(
            &Facts::of_job(self.cell, job),
            &JobLogRecord {
                at,
                event,
                task,
                state,
                user: "master",
                host: &master,
                message,
            },
        );
    }

    fn new_job(&mut self, at: i64, job: &Facts<'_>) {
        let rest = format!(
            "{}:{}:-1:NONE:{}:{}",
            job.submitted,
            job.number,
            job.identity(),
            job.priority
        );
        self.line(at, &reporting::NEW_JOB, &rest);
    }

    fn step(&mut self, job: &Facts<'_>, step: &JobLogRecord<'_>) {
        if !self.params.joblog {
            return;
        }
        let JobLogRecord {
            at,
            event,
            task,
            state,
            user,
            host,
            message,
        } = step;
        let rest = format!(
            "{at}:{event}:{}:{task}:NONE:{state}:{user}:{host}:0:{}:{}:{}:{}",
            job.number,
            job.priority,
            job.submitted,
            job.identity(),
            plain(message)
        );
        self.line(*at, &reporting::JOB_LOG, &rest);
    }

    /// The use of consumables where slots were taken or freed, from the state behind it.
    pub fn of_consumables(&mut self, at: i64, granted: &[GrantedSlots]) {
        let state = self.cell;
        let mut hosts: Vec<HostName> = vec![HostName::global()];
        for granted in granted {
            let instance = &granted.instance;
            let Some(settings) = state.config.resolved.get(instance) else {
                continue;
            };
            let mut values = settings.complex_values.clone();
            values.0.insert(0, ("slots".into(), settings.slots.to_string()));
            let used = self.used(state, &Level::Instance(instance.clone()), &values);
            if !used.is_empty() {
                self.line(
                    at,
                    &reporting::QUEUE_CONSUMABLE,
                    &format!("{}:{}:{at}::{used}", instance.queue, instance.host),
                );
            }
            if !hosts.contains(&instance.host) {
                hosts.push(instance.host.clone());
            }
        }
        for host in hosts {
            let Some(known) = state.config.exec_hosts.get(&host) else {
                continue;
            };
            let level = if host.is_global() {
                Level::Global
            } else {
                Level::Host(host.clone())
            };
            let used = self.used(state, &level, &known.complex_values);
            if !used.is_empty() {
                self.line(at, &reporting::HOST_CONSUMABLE, &format!("{host}:{at}:X:{used}"));
            }
        }
    }

    /// `name=used=capacity` of the consumables that are to be told.
    fn used(&self, state: &State, level: &Level, capacities: &Assignments) -> String {
        let mut text = String::new();
        for (name, capacity) in &capacities.0 {
            let Some(attribute) = state.config.complex.lookup(name.as_str()) else {
                continue;
            };
            let is_told = self.params.log_consumables || is_reported(state, level, attribute.name.as_str());
            if !is_told || !attribute.consumable.is_consumable() {
                continue;
            }
            let Ok(capacity) = Amount::parse(capacity, attribute.r#type) else {
                continue;
            };
            let booked = state.in_use(level, attribute.name.as_str());
            let (booked, capacity) = (
                booked.decimal_text(attribute.r#type),
                capacity.decimal_text(attribute.r#type),
            );
            let comma = if text.is_empty() { "" } else { "," };
            // A string takes everything.
            let _ = write!(text, "{comma}{}={booked}={capacity}", attribute.name);
        }
        text
    }

    /// The values of a load report that `report_variables` names.
    pub fn of_load(&mut self, observations: &Observations, host: &HostName, at: i64) {
        let Some(load) = observations.load.get(host) else {
            return;
        };
        let level = Level::Host(host.clone());
        let told = load
            .iter()
            .filter(|(name, _)| is_reported(self.cell, &level, name.as_str()));
        let values: Vec<String> = told
            .map(|(name, entry)| format!("{name}={}", plain(&entry.text)))
            .collect();
        if !values.is_empty() {
            self.line(at, &reporting::HOST, &format!("{host}:{at}:X:{}", values.join(",")));
        }
    }

    fn actor(&self, actor: &Actor) -> (String, String) {
        match actor {
            Actor::User { user, host } => (user.to_string(), host.to_string()),
            Actor::Agent(host) => ("execution daemon".to_owned(), host.to_string()),
            Actor::Scheduler(_) => ("scheduler".to_owned(), self.master.to_owned()),
            Actor::Master => ("master".to_owned(), self.master.to_owned()),
        }
    }

    /// One node of the share tree.
    pub fn of_share(&mut self, node: &ShareNode, at: i64) {
        let ShareNode {
            path,
            depth: _,
            user,
            project,
            shares,
            job_count,
            usage_time,
            ..
        } = node;
        let user = user.as_ref().map_or("", |user| user.as_str());
        let project = project.as_deref().unwrap_or("");
        let mut rest = format!(
            "{at}:{usage_time}:{}:{user}:{}:{shares}:{job_count}:",
            plain(path),
            plain(project)
        );
        let parts = [
            node.level,
            node.total,
            node.long_target_share,
            node.short_target_share,
            node.actual_share,
        ];
        let used = [
            node.usage, node.cpu, node.mem, node.io, node.ltcpu, node.ltmem, node.ltio,
        ];
        for millionths in parts.map(i128::from).into_iter().chain(used) {
            let _ = write!(rest, "{}.{:06}:", millionths / 1_000_000, millionths % 1_000_000);
        }
        self.line(at, &reporting::SHARELOG, &rest);
    }

    /// One record, with the fields of its type.
    pub fn line(&mut self, at: i64, r#type: &RecordType, fields: &str) {
        debug_assert!(r#type.has_fields(fields), "{}: {fields}", r#type.name);
        let _ = writeln!(self.out, "{at}:{}:{fields}", r#type.name);
    }
}

/// What records say about a job.
struct Facts<'a> {
    number: u32,
    submitted: i64,
    name: &'a str,
    owner: &'a str,
    group: &'a str,
    project: &'a str,
    department: &'a str,
    account: &'a str,
    priority: i32,
}

impl<'a> Facts<'a> {
    /// The fields that every record of a job has, in their order.
    fn identity(&self) -> String {
        format!(
            "{}:{}:{}:{}:{}:{}",
            plain(self.name),
            self.owner,
            plain(self.group),
            self.project,
            self.department,
            plain(self.account)
        )
    }

    fn of_job(state: &'a State, job: &'a Job) -> Self {
        Self::of_spec(state, job.number.0, &job.spec, job.submitted)
    }

    fn of_spec(state: &'a State, number: u32, spec: &'a proto::job::JobSpec, submitted: Wall) -> Self {
        Self {
            number,
            submitted: submitted.seconds(),
            name: &spec.name,
            owner: spec.owner.user.as_str(),
            group: &spec.owner.group,
            department: state.config.access.department_of(&spec.owner),
            project: spec.project.as_deref().unwrap_or(""),
            account: spec.account.as_deref().unwrap_or("sge"),
            priority: BASE_PRIORITY + spec.priority,
        }
    }
}

/// 8.1.9 writes 0 for a job that is no array.
fn task_number(job: &Job, task: TaskId) -> i64 {
    job.spec.array.map_or(0, |_| i64::from(task.0))
}

/// Whether `report_variables` of the host, or of the pseudo host `global`, names an attribute.
fn is_reported(state: &State, level: &Level, attribute: &str) -> bool {
    let own = match level {
        Level::Global => None,
        Level::Host(host) => Some(host),
        Level::Instance(instance) => Some(&instance.host),
    };
    let global = HostName::global();
    let hosts = own
        .into_iter()
        .chain([&global])
        .filter_map(|host| state.config.exec_hosts.get(host));
    hosts
        .flat_map(|host| host.report_variables.iter())
        .any(|name| name.as_str() == attribute)
}

/// A text that cannot be taken for fields or lines.
pub(super) fn plain(text: &str) -> String {
    text.replace([':', '\n'], " ")
}
