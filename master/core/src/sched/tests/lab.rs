//! A cell in a few lines of text, for tests: objects, jobs, passes and what is expected of them.
//!
//! ```text
//! complex lic lic INT <= YES YES 0 0      one more attribute, or another definition of one
//! global lic=5                             complex_values of the cluster
//! host a lic=4 | mem_free=8G               complex_values, then load values; the host connects
//! load a mem_free=4G                       a new load report
//! scale a mem_free=0.5                     the load_scaling of a host
//! queue all.q a,b slots=4 seq_no=10        a cluster queue on hosts, with attributes
//! group @g a b                             a host group
//! list staff u1 @g                         an access list
//! user u1 100 5                            a user: functional shares, perhaps override tickets
//! project p1 100 / department d1 50 0 u1   the same of a project, of a department with its users
//! tree u1=100 grp=300 grp/u2=1 p1!=50      the share tree: paths with shares, projects with a mark
//! pe mpi 100 $round_robin                  an environment in the pe_list of every queue by default
//! calendar day NONE mon-fri=9-17           a calendar: year and week
//! conf queue_sort_method seqno             the scheduler configuration
//! quota r users {*} to slots=2 | to slots=9  a set with its rules; without any it is deleted
//! job 1 -l lic=1 -pe mpi 2-4 -q all.q      a job with options of qsub and qalter, also -soft -p -P
//!                                          -js -ot -t -tc -now -h, and its owner behind -u
//! reserve 1 100 200 -pe mpi 2 -l lic=1     an advance reservation from 100 s after now until 200 s
//!                                          after, if it can be granted
//! ! 1 all.q@a:2                            what it was granted; `! 1 nothing` if it was not
//! begin 1 / over 1                         its time has come; it is over, its jobs count as others
//! pass                                     a whole pass; its orders become events
//! run 1                                    the host says that the task runs
//! T 1 3                                    the tasks that suspend thresholds have suspended, the
//!                                          oldest first; `T -` if none
//! again 1 / again 1.2                      a task ends with exit status 99
//! end 1 / end 1.2 / disable all.q@a / lose a / wait 60 / back 60 / delete 1.2 …
//! = 1 all.q@a                              what the last pass placed, in order, or `= nothing`
//! @ 2 +90 all.q@a:2                        what is kept for a job, and in how many seconds;
//!                                          `@ 2 nothing` if nothing is
//! $ 1 100 2500 0 / $ 1 r 0 0 833           override, functional and share tree tickets of a job:
//!                                          pending, or of its running tasks
//! charge 1 10042                           a running job has used so many ms of processor time
//! / /p1/u1 2 500000 500000 300000 119326   a node of the share tree: tasks, total, long and short
//!                                          target, actual share
//! % r/1 slots=2/2 users u1                 a row of qquota; `% nothing` if there is none
//! ? 2 (-l lic=9) cannot run globally …     a line of scheduling info
//! ```

mod expectations;
mod objects;

use crate::decide::check::check_grant;
use crate::event::{Actor, Event, InstanceState, Record, TaskFate};
use crate::explain::{forever, never_suits};
use crate::ledger::Grant;
use crate::ledger::Level;
use crate::matching::{Cluster, Demand, Mode};
use crate::observe::Observation;
use crate::observe::Observations;
use crate::reason::{Obstacle, Reason};
use crate::sched::assign::Assignment;
use crate::sched::model::Model;
use crate::sched::report::finding::Findings;
use crate::sched::reserve::advance::find;
use crate::sched::{ReservationMode, Scheduler};
use crate::state::State;
use crate::state::job::{Job, Placement};
use proto::accounting::AccountingRecord;
use proto::cell_version::CellVersion;
use proto::id::{CellId, EventSeq, HostName, JobNumber, QueueInstanceName, ReservationId, SubmitSeq, TaskId, TaskKey};
use proto::job::{HoldChange, Holds, JobSpec, PeRequest};
use proto::load::LoadReport;
use proto::request::{ResourceList, SlotRange, TaskRange};
use proto::reservation::{ReservationSpec, ReservationState};
use proto::time::{Now, Tick, Wall, Zone};
use proto::usage::{Consumption, FailedCode, Rusage, Usage};
use proto::wire::client::QuotaFilter;
use proto::wire::stream::Order;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Runs a script and compares what it expects.
pub fn check(script: &str) {
    check_in(Lab::new(), script);
}

/// The same in a cell that is there.
pub fn check_in(mut lab: Lab, script: &str) {
    for line in script
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        lab.line(line);
        lab.state().check();
        lab.assert_tasks_are_found();
        lab.assert_places_are_found();
        let model = lab.scheduler.model();
        let instances = |model: &Model| -> Vec<_> {
            model
                .instance_ids
                .sites()
                .flat_map(|(_, site)| site.instances.clone())
                .collect()
        };
        assert_eq!(
            instances(model),
            instances(&Model::new(model.state().clone(), Zone::utc())),
            "after {line}"
        );
    }
    assert!(
        lab.placed.is_empty(),
        "placed and not expected: {:?}\n{script}",
        lab.placed
    );
}

/// A cell under test.
pub struct Lab {
    pub scheduler: Scheduler,
    pub now: Now,
    sequences: BTreeMap<HostName, u64>,
    /// What was placed and not yet expected.
    pub placed: Vec<String>,
    /// Steps in a slice: few, so that passes go over several.
    pub budget: usize,
    /// What passes do with the reservations of the pass before.
    pub reserving: ReservationMode,
}

impl Lab {
    pub fn new() -> Lab {
        let mut lab = Lab {
            scheduler: Scheduler::new(State::new(), Zone::utc()),
            now: Now {
                tick: Tick(1_000_000_000),
                wall: Wall(1_800_000_000_000),
            },
            sequences: BTreeMap::new(),
            placed: Vec::new(),
            budget: 3,
            reserving: ReservationMode::Anew,
        };
        lab.event(Event::CellCreated {
            cell: CellId(1),
            version: CellVersion::NEWEST,
        });
        lab
    }

    pub fn state(&self) -> &State {
        self.scheduler.model().state()
    }

    /// Why jobs wait now.
    pub fn findings(&self) -> Findings<'_> {
        self.scheduler.model().findings(self.now)
    }

    pub fn event(&mut self, event: Event) {
        let seq = EventSeq(self.state().last.0 + 1);
        self.scheduler.apply(&Record {
            seq,
            now: self.now,
            actor: Actor::Master,
            request: None,
            event,
        });
    }

    pub fn line(&mut self, line: &str) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let words: Vec<&str> = rest.split_whitespace().collect();
        match word {
            "complex" => self.complex(rest),
            "global" => self.exec_host("global", rest),
            "host" => self.host(&words),
            "load" => self.load(words[0], &words[1..]),
            "scale" => self.scale(words[0], words[1]),
            "queue" => self.queue(&words),
            "group" => self.group(words[0], &words[1..]),
            "list" => self.list(words[0], &words[1..]),
            "user" | "project" | "department" => self.holder(word, &words),
            "tree" => self.tree(&words),
            "$" => self.expect_tickets(words[0], &words[1..]),
            "charge" => self.charge(words[0], words[1].parse().unwrap()),
            "/" => self.expect_node(words[0], &words[1..]),
            "pe" => self.pe(&words),
            "calendar" => self.calendar(&words),
            "conf" => self.conf(words[0], &words[1..].join(" ")),
            "quota" => self.quota(words[0], words[1..].join(" ").as_str()),
            "job" => self.job(&words),
            "reserve" => self.reserve(&words),
            "begin" => self.reservation(words[0], ReservationState::Running),
            "over" => self.reservation(words[0], ReservationState::Deleted),
            "!" => self.expect_grant(words[0], &words[1..].join(" ")),
            "pass" => self.pass(),
            "end" => self.end(words[0]),
            "again" => self.ask_again(words[0]),
            "delete" => self.delete(words[0]),
            "run" => words.iter().for_each(|name| self.run(name)),
            "T" => assert_eq!(self.threshold_suspended(), rest),
            "release" => self.release(words[0]),
            "disable" => self.instance(words[0], true),
            "enable" => self.instance(words[0], false),
            "lose" => self.contact(words[0], false),
            "find" => self.contact(words[0], true),
            "wait" => self.wait(words[0].parse().unwrap()),
            "back" => self.now.wall = Wall(self.now.wall.0 - 1000 * words[0].parse::<i64>().unwrap()),
            "=" => assert_eq!(
                if self.placed.is_empty() {
                    "nothing".to_owned()
                } else {
                    self.placed.remove(0)
                },
                rest
            ),
            "@" => self.expect_reservation(words[0], rest.split_once(' ').map_or("nothing", |(_, rest)| rest)),
            "%" => self.expect_quota(rest),
            "?" => self.expect_info(words[0], rest.split_once(' ').unwrap().1),
            other => panic!("unknown word {other}"),
        }
    }

    fn host(&mut self, words: &[&str]) {
        let bar = words.iter().position(|word| *word == "|").unwrap_or(words.len());
        self.exec_host(words[0], &words[1..bar].join(","));
        self.contact(words[0], true);
        let mut values = vec!["np_load_avg=0", "num_proc=4"];
        values.extend(words.iter().skip(bar + 1));
        self.load(words[0], &values);
    }

    pub fn contact(&mut self, host: &str, connected: bool) {
        self.scheduler.observe(&Observation::Contact {
            host: host.into(),
            at: self.now.tick,
            connected,
        });
    }

    /// A host named `global` stands for a sensor on the first host.
    fn load(&mut self, host: &str, values: &[&str]) {
        let sequence = self.sequences.entry(host.into()).or_default();
        *sequence += 1;
        let pairs = values.iter().map(|pair| pair.split_once('=').unwrap());
        let values = pairs.map(|(name, value)| (name.into(), value.to_owned())).collect();
        let values = BTreeMap::from([(host.into(), values)]);
        let report = LoadReport {
            sequence: *sequence,
            values,
            ..LoadReport::default()
        };
        let at = self.now.tick;
        self.scheduler.observe(&Observation::Load {
            host: host.into(),
            at,
            report: Box::new(report),
        });
    }

    pub fn charge(&mut self, job: &str, cpu_ms: u64) {
        let task = &self.state().jobs[&SubmitSeq(job.parse().unwrap())].tasks[&TaskId(1)];
        let consumed = Consumption {
            cpu_ms,
            ..Consumption::default()
        };
        let tasks = vec![(task.place.placement().unwrap().key, consumed)];
        self.event(Event::UsageCharged { tasks });
    }

    /// The rows of `qquota`.
    pub fn quotas(&self) -> Vec<String> {
        let cluster = Cluster::of_state(self.state(), self.scheduler.model().observations(), Mode::Now);
        let rows = crate::matching::quota::rows(&cluster, &QuotaFilter::default())
            .into_iter()
            .map(|row| {
                let used = row.used.map_or_else(String::new, |used| format!("{used}/"));
                let filters = row
                    .filters
                    .iter()
                    .map(|(name, names)| match row.expanded.contains(name) {
                        true => format!(" {name} {{{}}}", names.join(",")),
                        false => format!(" {name} {}", names.join(",")),
                    });
                format!(
                    "{} {}={used}{}{}",
                    row.rule,
                    row.resource,
                    row.limit,
                    filters.collect::<String>()
                )
            });
        rows.collect()
    }

    pub fn job(&mut self, words: &[&str]) {
        let number: u32 = words[0].parse().unwrap();
        let mut waits_for = Vec::new();
        let spec = spec(&words[1..], &mut waits_for);
        let (seq, number) = (SubmitSeq(u64::from(number)), JobNumber(number));
        let spec = Arc::new(spec);
        self.event(Event::JobSubmitted {
            seq,
            number,
            spec,
            waits_for,
            array_waits_for: Vec::new(),
        });
    }

    fn reserve(&mut self, words: &[&str]) {
        let at = |text: &str| Wall(self.now.wall.0 + 1000 * text.parse::<i64>().unwrap());
        let (start, end) = (at(words[1]), at(words[2]));
        let JobSpec { owner, requests, .. } = spec(&words[3..], &mut Vec::new());
        let text = r#"{"owner": {"user": "u1", "uid": 2001, "gid": 2001, "group": "u1"}}"#;
        let (owner, requests) = ((*owner).clone(), (*requests).clone());
        let asked = ReservationSpec {
            owner,
            requests,
            ..serde_json::from_str(text).unwrap()
        };
        let demand = Demand::of_reservation(&self.state().config, &asked);
        let model = self.scheduler.model();
        let found = find(
            model.state(),
            model.observations(),
            Zone::utc(),
            &demand,
            (start, end),
            self.now,
        );
        if let Ok(Assignment { granted, pe }) = found {
            let id = ReservationId(words[0].parse().unwrap());
            self.event(Event::ReservationGranted {
                id,
                spec: Arc::new(asked),
                start,
                end,
                granted,
                pe,
            });
        }
    }

    fn reservation(&mut self, id: &str, state: ReservationState) {
        self.event(Event::ReservationChanged {
            id: ReservationId(id.parse().unwrap()),
            state,
        });
    }

    /// A whole pass after which nothing that waits could have been started.
    pub fn pass(&mut self) {
        self.place();
        // What is kept for a job that then starts elsewhere is free for the next pass.
        if self.reserving == ReservationMode::Anew {
            self.assert_nothing_fits();
        }
    }

    /// A whole pass. Every order must pass the core's own check before it becomes true.
    pub fn place(&mut self) {
        self.scheduler.begin(self.now, self.reserving);
        loop {
            let slice = self.scheduler.next(self.budget);
            self.assert_counts();
            for order in &slice.orders {
                self.execute(order);
                self.assert_counts();
            }
            if slice.finished {
                break;
            }
        }
    }

    /// A short search for the place of a job on an empty cluster finds one where the whole search
    /// does.
    fn assert_places_are_found(&self) {
        let (state, observations) = (self.state(), self.scheduler.model().observations());
        for job in state.jobs.values().filter(|_| !state.config.resolved.is_empty()) {
            let [short, whole] = [never_suits, forever].map(|find| find(state, observations, &job.spec).is_none());
            assert_eq!(short, whole, "of job {}", job.number);
        }
    }

    fn execute(&mut self, order: &Order) {
        match order {
            Order::Start { seq, task, granted, pe } => {
                let state = self.state();
                assert_eq!(
                    check_start(state, self.scheduler.model().observations(), order, self.now),
                    Ok(()),
                    "{order:?}"
                );
                let job = &state.jobs[seq];
                let attempt = job.tasks.get(task).map_or(0, |task| task.attempts) + 1;
                let grant = Grant::of_slots(granted, pe.as_ref());
                let observations = self.scheduler.model().observations();
                let maps = state
                    .choose_ids(observations, &job.spec, grant)
                    .expect("what fits has free ids");
                let binding = state.choose_cores(observations, &job.spec, grant);
                let name = if job.spec.array.is_some() {
                    format!("{}.{task}", seq.0)
                } else {
                    seq.0.to_string()
                };
                let places: Vec<String> = granted.iter().map(place_text).collect();
                self.placed.push(format!("{name} {}", places.join(" ")));
                let key = TaskKey {
                    cell: CellId(1),
                    seq: *seq,
                    task: *task,
                    pe_task: 0,
                    attempt,
                };
                self.event(Event::TaskPlaced {
                    key,
                    granted: granted.clone(),
                    pe: pe.clone(),
                    maps,
                    binding,
                });
            }
            Order::RejectImmediate { seq } => {
                self.placed.push(format!("{} rejected", seq.0));
                let tasks = self.state().jobs[seq].present().ranges();
                self.event(Event::TasksDeleted { seq: *seq, tasks });
                self.event(Event::JobFinished { seq: *seq });
            }
            Order::SuspendByThreshold { key, suspended } => {
                self.event(Event::TaskThresholdSuspended {
                    key: *key,
                    suspended: *suspended,
                });
            }
        }
    }

    /// What is placed of a task that a script names.
    fn placement(&self, name: &str) -> &Placement {
        let (seq, task) = task(name);
        self.state().jobs[&seq].tasks[&task].place.placement().unwrap()
    }

    fn ask_again(&mut self, name: &str) {
        let placement = self.placement(name);
        let key = placement.key;
        let record = exit_99(placement, &self.state().jobs[&key.seq]);
        let record = Some(Box::new(record));
        self.event(Event::TaskEnded {
            key,
            record,
            then: TaskFate::Requeued,
            saved_pid: None,
            charged: None,
        });
    }

    fn delete(&mut self, name: &str) {
        let (seq, task) = task(name);
        let tasks = TaskRange::new(task.0, task.0, 1).into_iter().collect();
        self.event(Event::TasksDeleted { seq, tasks });
    }

    pub fn end(&mut self, name: &str) {
        let key = self.placement(name).key;
        let seq = key.seq;
        self.event(Event::TaskEnded {
            key,
            record: None,
            then: TaskFate::Done,
            saved_pid: None,
            charged: None,
        });
        if self.state().jobs[&seq].is_empty() {
            self.event(Event::JobFinished { seq });
        }
    }

    fn run(&mut self, name: &str) {
        let seq = SubmitSeq(name.parse().unwrap());
        let key = self.state().jobs[&seq].tasks[&TaskId(1)].place.placement().unwrap().key;
        self.event(Event::TaskStarted { key, at: self.now.wall });
    }

    fn release(&mut self, name: &str) {
        let seq = SubmitSeq(name.parse().unwrap());
        let all = Holds {
            user: true,
            operator: true,
            system: true,
        };
        let tasks = self.state().jobs[&seq].present().ranges();
        let change = HoldChange {
            set: Holds::default(),
            release: all,
        };
        self.event(Event::HoldsChanged { seq, tasks, change });
    }

    fn instance(&mut self, name: &str, disabled: bool) {
        let (queue, host) = name.split_once('@').unwrap();
        let instance = QueueInstanceName {
            queue: queue.into(),
            host: host.into(),
        };
        self.event(Event::InstanceChanged {
            instance,
            state: InstanceState {
                disabled,
                ..InstanceState::default()
            },
        });
    }

    pub fn wait(&mut self, seconds: u64) {
        self.now.tick = self.now.tick.plus_ms(seconds * 1000);
        self.now.wall = Wall(self.now.wall.0 + i64::try_from(seconds * 1000).unwrap());
    }
}

/// A part of what a task has, as tests write it.
pub fn place_text(granted: &proto::job::GrantedSlots) -> String {
    match granted.slots {
        1 => granted.instance.to_string(),
        slots => format!("{}:{slots}", granted.instance),
    }
}

/// The number of a job and a task of it, as `1` or `1.2`.
fn task(name: &str) -> (SubmitSeq, TaskId) {
    let (seq, task) = name.split_once('.').unwrap_or((name, "1"));
    (SubmitSeq(seq.parse().unwrap()), TaskId(task.parse().unwrap()))
}

/// What is accounted of a task that ended with exit status 99.
fn exit_99(placement: &Placement, job: &Job) -> AccountingRecord {
    AccountingRecord {
        key: placement.key,
        queue: placement.master().queue.clone(),
        host: placement.host().clone(),
        group: job.spec.owner.group.clone(),
        owner: job.spec.owner.user.clone(),
        job_name: job.spec.name.clone(),
        job_number: job.number,
        account: "sge".to_owned(),
        priority: 0,
        submitted: job.submitted,
        started: placement.placed,
        ended: placement.placed,
        failed: FailedCode::RESCHEDULING,
        reason: String::new(),
        exit_status: 99,
        wallclock_ms: 0,
        rusage: Rusage::default(),
        project: None,
        department: "defaultdepartment".to_owned(),
        granted_pe: None,
        slots: placement.slots(),
        task_number: placement.key.task.0,
        usage: Usage::default(),
        category: String::new(),
        limit: None,
        maps: Vec::new(),
        pe_task: None,
        reservation: None,
        deleted_by: None,
        context: Default::default(),
    }
}

/// The specification of a job of that user who asks for nothing.
pub fn plain_spec() -> JobSpec {
    let text = r#"{"name": "sleep", "program": {"command": {"command": "sleep"}}, "submit_host": "a",
        "owner": {"user": "u1", "uid": 2001, "gid": 2001, "group": "u1"}}"#;
    serde_json::from_str(text).unwrap()
}

/// The specification that options of `qsub` make.
pub fn spec(words: &[&str], waits_for: &mut Vec<SubmitSeq>) -> JobSpec {
    let mut spec = plain_spec();
    let (mut words, mut soft, mut scope) = (words.iter(), false, "global");
    while let Some(option) = words.next() {
        let mut value = || *words.next().unwrap();
        let requests = &mut spec.requests;
        match *option {
            "-soft" => soft = true,
            "-scope" => scope = value(),
            "-l" if scope == "master" => requests.master.extend(Vec::from(ResourceList::parse(value()).unwrap())),
            "-l" if scope == "slave" => requests.slaves.extend(Vec::from(ResourceList::parse(value()).unwrap())),
            "-q" if scope == "master" => requests.master_queues.extend(value().split(',').map(str::to_owned)),
            "-q" if scope == "slave" => requests.slave_queues.extend(value().split(',').map(str::to_owned)),
            "-l" if soft => requests.soft.extend(Vec::from(ResourceList::parse(value()).unwrap())),
            "-l" => requests.hard.extend(Vec::from(ResourceList::parse(value()).unwrap())),
            "-q" if soft => requests.soft_queues.extend(value().split(',').map(str::to_owned)),
            "-q" => requests.hard_queues.extend(value().split(',').map(str::to_owned)),
            "-masterq" => requests.master_queues.extend(value().split(',').map(str::to_owned)),
            "-pe" => {
                let name = value().to_owned();
                requests.pe = Some(PeRequest {
                    name,
                    slots: SlotRange::parse(value()).unwrap(),
                });
            }
            "-par" => requests.allocation_rule = Some(value().parse().unwrap()),
            "-p" => spec.priority = value().parse().unwrap(),
            "-t" => spec.array = Some(TaskRange::parse(value()).unwrap()),
            "-tc" => spec.task_concurrency = Some(value().parse().unwrap()),
            "-u" => spec.owner.user = value().into(),
            "-js" => spec.job_share = value().parse().unwrap(),
            "-ot" => spec.override_tickets = value().parse().unwrap(),
            "-P" => spec.project = Some(value().to_owned()),
            "-R" => spec.reserve = true,
            "-ar" => spec.reservation = Some(ReservationId(value().parse().unwrap())),
            "-now" => spec.immediate = true,
            "-h" => spec.holds.user = true,
            "-after" => spec.start_after = Some(Wall(1_800_000_000_000 + 1000 * value().parse::<i64>().unwrap())),
            "-dl" => spec.deadline = Some(Wall(1_800_000_000_000 + 1000 * value().parse::<i64>().unwrap())),
            "-hold_jid" => waits_for.push(SubmitSeq(value().parse().unwrap())),
            other => panic!("unknown option {other}"),
        }
    }
    spec
}

/// Whether an order is possible as the cluster is now, see [`check_grant`]. An order that starts
/// nothing always is.
///
/// # Errors
/// With everything that stands against it.
pub(crate) fn check_start(
    state: &State,
    observations: &Observations,
    order: &Order,
    now: Now,
) -> Result<(), Vec<Reason>> {
    let (seq, granted, pe) = match order {
        Order::Start {
            seq,
            task: _,
            granted,
            pe,
        } => (seq, granted, pe.as_ref()),
        Order::RejectImmediate { .. } | Order::SuspendByThreshold { .. } => return Ok(()),
    };
    let Some(job) = state.jobs.get(seq) else {
        return Err(vec![Reason::new(Level::Global, Obstacle::NoSuchJob)]);
    };
    // The core decides which tasks avoid which hosts: another task of the job may go there.
    let demand = Demand::new(&state.config, &job.spec);
    check_grant(state, observations, &demand, Grant::of_slots(granted, pe), now)
}
