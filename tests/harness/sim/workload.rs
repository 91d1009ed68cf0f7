//! What users do, from the seed.

use super::agenda::Happening;
use super::launcher::Program;
use super::world::World;
use proto::id::{JobNumber, SubmitSeq};
use proto::job::{HoldChange, Holds, JobChanges, JobSpec, Owner, PeRequest, Program as JobProgram, Requests};
use proto::request::{ResourceList, SlotRange, TaskRange};
use proto::time::Wall;
use proto::wire::client::{Command, JobSelection, JobTarget, ModifyAction};
use std::sync::Arc;

/// How many of their jobs users remember.
const REMEMBERED: usize = 100;
/// How long after the last fault what waits for a failed job is let go.
const FREED_AFTER_MS: u64 = 300_000;

/// So many acts of a thousand concern advance reservations where users act as on a real day.
const RESERVATIONS_OF_A_DAY: u64 = 6;
/// So many kinds of jobs are usual then.
const USUAL: usize = 40;

/// What parallel jobs ask for: for all slots, for the master's and for the others. The most of each
/// that a master and two slaves, one of them beside it, may ask for together is there, and stays so
/// if a part of it is altered.
const SCOPES: [(&str, &str, &str); 12] = [
    ("", "lic=1", ""),
    ("", "", "lic=1"),
    ("", "lic=1", "lic=1"),
    ("", "gpu=1", "gpu=1"),
    ("", "gpu=1", "h_vmem=3G"),
    ("h_vmem=1G", "gpu=1", ""),
    ("lic=1", "", "gpu=1"),
    ("lic=1", "h_vmem=5G", "h_vmem=3G"),
    ("gpu=1", "h_vmem=4G", "h_vmem=1G,lic=1"),
    ("", "h_vmem=2G,lic=1", "gpu=1"),
    ("", "gpu=1,lic=1", "h_vmem=2G,lic=1"),
    ("", "", ""),
];
/// Queues of the master and of the slaves, in which all slots are on one host, ...
const QUEUES_OF_A_HOST: [(&str, &str); 6] = [
    ("", ""),
    ("", ""),
    ("", "b.q"),
    ("b.q", ""),
    ("b.q", "all.q"),
    ("all.q", "b.q"),
];
/// ... and where a master has a slot more: in the queue instance of a slave, or in one of its own.
const QUEUES_OF_SEVERAL: [(&str, &str); 6] = [
    ("", ""),
    ("", ""),
    ("", "all.q"),
    ("b.q", ""),
    ("all.q", "all.q"),
    ("b.q", "all.q"),
];

/// The name of a job that ends within so many seconds.
const WITHIN: &str = "within";

/// Somebody, by name.
pub(super) fn owner(user: &str) -> Owner {
    let uid = 2_000 + user.bytes().map(u32::from).sum::<u32>();
    Owner {
        user: user.into(),
        uid,
        gid: 2_000,
        group: "users".to_owned(),
        groups: Vec::new(),
    }
}

/// A script of a user; its name says what it does (see [`World::program`]).
pub(super) fn job(user: &str, name: &str) -> JobSpec {
    JobSpec {
        name: name.to_owned(),
        program: JobProgram::Script {
            path: "job.sh".to_owned(),
            content: Arc::from(&b"#!/bin/sh\nsleep 1\n"[..]),
        },
        args: Vec::new(),
        owner: owner(user).into(),
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
        environment: Vec::new().into(),
        account: None,
        project: None,
        priority: 0,
        job_share: 0,
        override_tickets: 0,
        requests: Requests::default().into(),
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
        checkpoint: None,
        occasion: None,
        reservation: None,
        directive_prefix: None,
        session: None,
    }
}

pub(super) fn jobs(number: JobNumber) -> JobSelection {
    let target = JobTarget {
        job: number.to_string(),
        tasks: Vec::new(),
    };
    JobSelection {
        targets: vec![target],
        ..JobSelection::default()
    }
}

fn holding(holds: HoldChange) -> JobChanges {
    JobChanges {
        holds: Some(holds),
        ..JobChanges::default()
    }
}

const SYSTEM_HOLD: Holds = Holds {
    user: false,
    operator: false,
    system: true,
};
const USER_HOLD: Holds = Holds {
    user: true,
    operator: false,
    system: false,
};

impl World {
    /// What a job of that name does on a host. After the end of all faults everything ends well and
    /// soon, `forever` excepted.
    pub(super) fn program(&mut self, name: &str) -> Program {
        let plain = |runs_ms, exit| Program {
            runs_ms,
            exit,
            start_fails: 0,
        };
        let runs_ms = 10 + self.random.around(self.plan.pace.run_ms);
        if let Some(seconds) = name
            .strip_prefix(WITHIN)
            .and_then(|seconds| seconds.parse::<u64>().ok())
        {
            return plain(self.random.between(10, 1_000 * seconds), 0);
        }
        match name {
            "forever" => plain(self.plan.pace.forever_ms, 0),
            _ if self.healed => plain(runs_ms.min(5_000), 0),
            "again" if self.random.chance(500) => plain(runs_ms, 99),
            "fails" if self.random.chance(500) => plain(runs_ms, 100),
            "nostart" if self.random.chance(500) => Program {
                runs_ms,
                exit: 0,
                start_fails: self.random.pick(&[7, 8, 26, 17]).unwrap_or(26),
            },
            _ => plain(runs_ms, if self.random.chance(100) { 1 } else { 0 }),
        }
    }

    /// A user does something, and plans what to do next.
    pub(super) fn user_acts(&mut self) {
        if self.healed || self.plan.jobs == 0 {
            return;
        }
        let wait = 1 + self.random.around(self.users_pause_ms());
        self.soon(wait, Happening::UserActs);
        let user = self.random.pick(&["u1", "u2", "u3"]).unwrap_or("u1");
        if self.plan.calm {
            return self.submit_calmly(user);
        }
        if self.random.chance(if self.plan.watch.is_some() {
            RESERVATIONS_OF_A_DAY
        } else {
            50
        }) {
            self.reservation_acts();
        } else if self.counts.jobs < self.plan.jobs && self.random.chance(600) && self.users_submit() {
            self.counts.jobs += 1;
            let spec = self.draw_usual_job(user);
            self.command(user, Command::Submit(Box::new(spec)));
        } else if let Some(number) = self.draw_number() {
            let command = if self.random.chance(600) {
                self.draw_change(number)
            } else {
                self.draw_rarer_change(number)
            };
            self.command("boss", command);
        }
    }

    /// A job that is there, or one of which somebody knows and which may be gone.
    fn draw_number(&mut self) -> Option<JobNumber> {
        if self.random.chance(700) {
            let there = self.witness.present();
            let (first, last) = (there.first_key_value()?.0.0, there.last_key_value()?.0.0);
            let from = SubmitSeq(self.random.between(first, last));
            return there.range(from..).next().map(|(_, job)| job.number);
        }
        self.random.pick(&self.users.jobs)
    }

    /// A job that ends within the time that it asks for.
    fn submit_calmly(&mut self, user: &str) {
        if self.counts.jobs == self.plan.jobs {
            return;
        }
        self.counts.jobs += 1;
        let seconds = 4_u64 << self.random.below(5);
        let mut spec = job(user, &format!("{WITHIN}{seconds}"));
        let shape = self.random.below(6);
        // A parallel job that asks for two licences a slot would wait for ever.
        let licences = if shape < 3 { "lic=1," } else { "lic=2," };
        let asked = ["", "", "lic=1,", licences, "h_vmem=3G,", "gpu=1,", "gpu=1,h_vmem=1G,"];
        let asked = self.random.pick(&asked).unwrap_or_default();
        spec.requests.hard = self.draw_resources(asked);
        match shape {
            0 => spec.requests.pe = self.draw_pe("smp"),
            1 | 2 => spec.requests.pe = self.draw_pe("mpi"),
            3 => spec.array = TaskRange::new(1, 3, 1).ok(),
            _ => {}
        }
        self.draw_scopes(&mut spec);
        let length = self.draw_resources(&format!("h_rt={seconds}"));
        spec.requests.hard.extend(length);
        spec.reserve = self.random.chance(600);
        spec.priority = -100 * self.random.below(4) as i32;
        self.command(user, Command::Submit(Box::new(spec)));
    }

    /// On a real day users mostly ask for what they asked for before.
    fn draw_usual_job(&mut self, user: &str) -> JobSpec {
        if self.plan.watch.is_none() || self.random.chance(30) {
            return self.draw_job(user);
        }
        if self.users.usual.len() < USUAL {
            let spec = self.draw_job(user);
            self.users.usual.push(spec.requests.clone());
            return spec;
        }
        let requests = self.random.pick(&self.users.usual).unwrap_or_default();
        JobSpec {
            requests,
            ..self.draw_job(user)
        }
    }

    fn draw_job(&mut self, user: &str) -> JobSpec {
        let name = self
            .random
            .pick(&["plain", "plain", "plain", "again", "fails", "nostart", "forever"])
            .unwrap_or("plain");
        let mut spec = job(user, name);
        if self.random.chance(350) {
            let last = self.random.between(1, 8) as u32;
            let is_busy = self.plan.watch.is_some();
            spec.array = TaskRange::new(1, last, 1).ok();
            spec.task_concurrency = self
                .random
                .pick(if is_busy {
                    &[None, Some(4)]
                } else {
                    &[None, Some(1), Some(2)]
                })
                .flatten();
        }
        match self.random.below(14) {
            0 => spec.requests.pe = self.draw_pe("smp"),
            1 => spec.requests.pe = self.draw_pe("mpi"),
            2 | 3 => spec.requests.hard = self.draw_resources("lic=1"),
            4 => spec.requests.hard = self.draw_resources("h_vmem=3G"),
            5 => spec.requests.hard = self.draw_resources("lic=2,h_vmem=1G"),
            6 => spec.requests.hard = self.draw_resources("gpu=1"),
            7 => {
                spec.requests.hard = self.draw_resources("gpu=1,h_vmem=1G");
                spec.requests.pe = self.draw_pe("mpi");
            }
            8 => {
                let one = if self.plan.watch.is_some() { "all.q" } else { "all.q@h1" };
                spec.requests.hard_queues = self.random.pick(&["b.q", one]).map(str::to_owned).into_iter().collect()
            }
            _ => {}
        }
        self.draw_scopes(&mut spec);
        self.draw_order(&mut spec);
        self.send_to_reservation(&mut spec);
        self.draw_length(&mut spec);
        if self.random.chance(80) {
            spec.start_after = Some(self.draw_start());
        }
        spec.immediate = self.random.chance(40);
        spec.rerunnable = self.random.pick(&[None, Some(true), Some(false)]).flatten();
        spec
    }

    /// Whether anybody asks for something else for masters than for slaves. On a day of a large
    /// cell nobody does: it is measured.
    pub(super) fn has_scopes(&self) -> bool {
        self.plan.watch.is_none()
    }

    /// Some parallel jobs ask for something else for the master than for the slaves.
    pub(super) fn draw_scopes(&mut self, spec: &mut JobSpec) {
        let Some(pe) = spec
            .requests
            .pe
            .clone()
            .filter(|_| self.has_scopes() && self.random.chance(500))
        else {
            return;
        };
        let (hard, master, slaves) = self.random.pick(&SCOPES).unwrap_or_default();
        let (master_queue, slave_queue) = self
            .random
            .pick(if pe.name == "smp" {
                &QUEUES_OF_A_HOST
            } else {
                &QUEUES_OF_SEVERAL
            })
            .unwrap_or_default();
        let list = |queue: &str| {
            if queue.is_empty() {
                Vec::new()
            } else {
                vec![queue.to_owned()]
            }
        };
        spec.requests.hard = self.draw_resources(hard);
        spec.requests.master = self.draw_resources(master);
        spec.requests.slaves = self.draw_resources(slaves);
        (spec.requests.master_queues, spec.requests.slave_queues) = (list(master_queue), list(slave_queue));
    }

    /// The master, or the slaves, of a job are to have something else.
    fn draw_scope(&mut self) -> JobChanges {
        let resources = self
            .random
            .pick(&["", "lic=1", "gpu=1", "h_vmem=1G"])
            .unwrap_or_default();
        let resources = Some(self.draw_resources(resources));
        if self.random.chance(500) {
            return JobChanges {
                master: resources,
                ..JobChanges::default()
            };
        }
        JobChanges {
            slaves: resources,
            ..JobChanges::default()
        }
    }

    fn draw_start(&mut self) -> Wall {
        let wait = self.random.between(0, 60_000) as i64;
        Wall(self.wall().0 + wait - 5_000)
    }

    /// How long it runs at most, as it says, and whether slots are kept for it.
    fn draw_length(&mut self, spec: &mut JobSpec) {
        spec.reserve = self.random.chance(200);
        if self.random.chance(400) {
            // People ask for round numbers, and so for few.
            let seconds = (self.plan.pace.run_ms / 2_000) << self.random.below(5);
            let mut hard = spec.requests.hard.clone();
            hard.extend(self.draw_resources(&format!("h_rt={seconds}")));
            spec.requests.hard = hard;
        }
    }

    /// Holds and predecessors.
    fn draw_order(&mut self, spec: &mut JobSpec) {
        let known = self.users.jobs[self.users.jobs.len().saturating_sub(REMEMBERED)..].to_vec();
        match self.random.below(10) {
            0 => spec.holds = USER_HOLD,
            1 | 2 => spec
                .predecessors
                .extend(self.random.pick(&known).map(|number| number.to_string())),
            3 => {
                let state = &self.kept.home().state;
                let arrays = known.iter().filter_map(|number| state.job(*number));
                let arrays: Vec<(JobNumber, TaskRange)> = arrays
                    .filter_map(|job| job.spec.array.map(|range| (job.number, range)))
                    .collect();
                if let Some((number, range)) = self.random.pick(&arrays) {
                    spec.array = Some(range);
                    spec.array_predecessors = vec![number.to_string()];
                }
            }
            _ => {}
        }
    }

    pub(super) fn draw_pe(&mut self, name: &str) -> Option<PeRequest> {
        let slots = self.random.pick(&["2", "1-3", "2-4"]).unwrap_or("2");
        SlotRange::parse(slots).ok().map(|slots| PeRequest {
            name: name.to_owned(),
            slots,
        })
    }

    pub(super) fn draw_resources(&mut self, text: &str) -> Vec<proto::request::ResourceRequest> {
        ResourceList::parse(text).map(Into::into).unwrap_or_default()
    }

    fn draw_change(&mut self, number: JobNumber) -> Command {
        let modify = |action| Command::Modify {
            action,
            targets: vec![number.to_string()],
            force: false,
        };
        let alter = |changes| Command::Alter {
            jobs: jobs(number),
            changes: Box::new(changes),
        };
        match self.random.below(12) {
            0 | 1 => Command::Delete {
                jobs: jobs(number),
                force: false,
            },
            2 => alter(JobChanges {
                holds: Some(HoldChange {
                    set: USER_HOLD,
                    ..HoldChange::default()
                }),
                ..JobChanges::default()
            }),
            3 => release(number),
            4 => modify(ModifyAction::SuspendJob),
            5 | 6 => modify(ModifyAction::UnsuspendJob),
            7 => modify(ModifyAction::RescheduleJob),
            8 => modify(ModifyAction::ClearJobError),
            9 => alter(JobChanges {
                priority: Some(-5),
                ..JobChanges::default()
            }),
            10 => alter(JobChanges {
                hard: Some(self.draw_resources("lic=1")),
                ..JobChanges::default()
            }),
            _ => {
                let other = self.random.pick(&self.users.jobs).map(|number| number.to_string());
                alter(JobChanges {
                    predecessors: Some(other.into_iter().collect()),
                    ..JobChanges::default()
                })
            }
        }
    }

    /// What is done by force, to single tasks, and to copies.
    fn draw_rarer_change(&mut self, number: JobNumber) -> Command {
        let task = self.random.between(1, 8) as u32;
        let one = JobTarget {
            job: number.to_string(),
            tasks: TaskRange::new(task, task, 1).into_iter().collect(),
        };
        let one = JobSelection {
            targets: vec![one],
            ..JobSelection::default()
        };
        let alter = |jobs, changes| Command::Alter {
            jobs,
            changes: Box::new(changes),
        };
        match self.random.below(10) {
            0 => Command::Delete {
                jobs: jobs(number),
                force: true,
            },
            1 => Command::Delete {
                jobs: one,
                force: self.random.chance(300),
            },
            2 => {
                let action = ModifyAction::RescheduleJob;
                Command::Modify {
                    action,
                    targets: vec![number.to_string()],
                    force: true,
                }
            }
            3 | 4 => Command::Resubmit {
                jobs: jobs(number),
                changes: Box::default(),
            },
            5 => {
                let changes = JobChanges {
                    start_after: Some(self.draw_start()),
                    ..JobChanges::default()
                };
                alter(jobs(number), changes)
            }
            6 => {
                let changes = JobChanges {
                    task_concurrency: Some(self.random.between(0, 3) as u32),
                    ..JobChanges::default()
                };
                alter(jobs(number), changes)
            }
            7 => {
                let set = HoldChange {
                    set: SYSTEM_HOLD,
                    ..HoldChange::default()
                };
                alter(one, holding(set))
            }
            8 => {
                let release = HoldChange {
                    release: SYSTEM_HOLD,
                    ..HoldChange::default()
                };
                alter(one, holding(release))
            }
            _ => alter(jobs(number), self.draw_requests(number)),
        }
    }

    /// Other requests of a job, sometimes those of its master alone.
    fn draw_requests(&mut self, number: JobNumber) -> JobChanges {
        // A parallel job that asks for two licences a slot would wait for ever.
        let state = &self.kept.home().state;
        let is_parallel = state.job(number).is_some_and(|job| job.spec.requests.pe.is_some());
        if is_parallel && self.has_scopes() && self.random.chance(400) {
            return self.draw_scope();
        }
        let resources = self
            .random
            .pick(&["gpu=1", "h_vmem=2G", if is_parallel { "lic=1" } else { "lic=2" }]);
        let resources = resources.unwrap_or("gpu=1");
        JobChanges {
            hard: Some(self.draw_resources(resources)),
            ..JobChanges::default()
        }
    }

    /// After the end of all faults somebody tidies up: holds are released, errors cleared, what
    /// never ends is deleted.
    pub(super) fn tidy_jobs(&mut self) {
        let is_late = self.time > self.plan.length_ms + FREED_AFTER_MS;
        // What runs for hours is not waited for.
        let is_cut = is_late && self.plan.watch.is_some();
        let mut commands = Vec::new();
        let reservations: Vec<_> = self.state().reservations.keys().copied().collect();
        reservations.into_iter().for_each(|id| self.give_up(id, false));
        for job in self.state().jobs.values() {
            let number = job.number;
            let act = |action| Command::Modify {
                action,
                targets: vec![number.to_string()],
                force: false,
            };
            if is_cut || job.spec.name == "forever" {
                commands.push(Command::Delete {
                    jobs: jobs(number),
                    force: false,
                });
            }
            if job.present().iter().any(|task| job.holds(task).any()) {
                commands.push(release(number));
            }
            if job.placements().any(|(_, placement)| placement.suspended) {
                commands.push(act(ModifyAction::UnsuspendJob));
            }
            if job.tasks.values().any(|task| task.place.error().is_some()) {
                commands.push(act(ModifyAction::ClearJobError));
            }
            if is_late && !(job.waits_for.is_empty() && job.array_waits_for.is_empty()) {
                commands.push(free(number));
            }
        }
        for command in commands {
            self.command("boss", command);
        }
    }
}

/// Lets a job go that waits for one that has failed.
pub(super) fn free(number: JobNumber) -> Command {
    let changes = JobChanges {
        predecessors: Some(Vec::new()),
        array_predecessors: Some(Vec::new()),
        ..JobChanges::default()
    };
    Command::Alter {
        jobs: jobs(number),
        changes: Box::new(changes),
    }
}

pub(super) fn release(number: JobNumber) -> Command {
    let change = HoldChange {
        release: Holds {
            user: true,
            operator: true,
            system: true,
        },
        ..HoldChange::default()
    };
    Command::Alter {
        jobs: jobs(number),
        changes: Box::new(JobChanges {
            holds: Some(change),
            ..JobChanges::default()
        }),
    }
}
