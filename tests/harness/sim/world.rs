//! Everything there is, and the loop that lets it happen.

use super::agenda::{Agenda, Happening, HostIndex, LinkId};
use super::agent::Node;
use super::apart::ThreadedValue;
use super::faults::{Counts, Faults};
use super::kept::{MasterDisk, Snapshots};
use super::link::Link;
use super::master::Master;
use super::random::Random;
use super::rival::Rival;
use super::rules::Rules;
use super::setting;
use super::slaves;
use super::trace::Trace;
use super::users::Users;
use super::witness::Witness;
use master_core::event::StoredObject;
use proto::id::HostName;
use std::collections::BTreeMap;

/// How long after the last fault everything must have ended.
const PATIENCE_MS: u64 = 3_600_000;

/// Between two rounds of tidying.
const TIDY_MS: u64 = 45_000;

/// What a run is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// From which everything is drawn.
    pub seed: u64,
    /// How many hosts.
    pub hosts: usize,
    /// How many jobs are submitted at most.
    pub jobs: u64,
    /// How long users act and things break, in milliseconds of virtual time.
    pub length_ms: u64,
    /// Mean time between two commands, in milliseconds.
    pub user_ms: u64,
    /// What breaks.
    pub faults: Faults,
    /// How often what is checked.
    pub checks: Checks,
    /// How much of everything happens on its own.
    pub pace: Pace,
    /// Mean time between two acts of the administrator, and two orders of the rival scheduler, in
    /// milliseconds; 0 is never.
    pub meddle_ms: u64,
    /// Whether users do nothing but submit jobs that end in time, so that each reservation is a
    /// promise.
    pub calm: bool,
    /// Who keeps the cell in balance, as on a real one; none lets everything that is stuck lie
    /// until the end.
    pub watch: Option<Watch>,
    /// Whether the log and the scheduler's model are kept by threads of their own. What happens is
    /// the same, and a broken rule is found a few steps later.
    pub is_apart: bool,
}

/// How those act who watch over a cell that runs for long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watch {
    /// Between two looks at all jobs, in milliseconds.
    pub every_ms: u64,
    /// While more jobs than this could start and find no place, users submit nothing.
    pub most_waiting: u64,
    /// How long users wait at most for a job to start, in milliseconds.
    pub patience_ms: u64,
}

/// How often walks over everything are made. What an event touched is checked after every event in
/// any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checks {
    /// After how many inputs of the core its state is checked as a whole.
    pub every_inputs: u64,
    /// After how many syncs the states of core, scheduler and log, and the whole ledger, are
    /// compared.
    pub every_syncs: u64,
    /// After how many events the sums that are kept from event to event are added up anew, and
    /// compared.
    pub every_events: u64,
}

/// Mean times in milliseconds of what daemons and tasks do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Between two load reports of a host.
    pub report_ms: u64,
    /// Between two words of a launcher on what a task uses.
    pub usage_ms: u64,
    /// Between two lists of tickets of running tasks, at least.
    pub tickets_ms: u64,
    /// From a pass to the next one, at least.
    pub pass_ms: u64,
    /// From a pass that makes reservations anew to the next one, at least; those in between keep
    /// what there is.
    pub reserve_ms: u64,
    /// How long most tasks run.
    pub run_ms: u64,
    /// How long those run that nobody expects to end by themselves.
    pub forever_ms: u64,
}

impl Pace {
    /// Minutes, in which as much happens as otherwise in a day.
    const QUICK: Pace = Pace {
        report_ms: 20_000,
        usage_ms: 10_000,
        tickets_ms: 0,
        pass_ms: 0,
        reserve_ms: 0,
        run_ms: 8_000,
        forever_ms: 100 * 24 * 3_600_000,
    };

    /// Of a cell that plans once a minute, and whose jobs run for minutes and hours.
    const REAL: Pace = Pace {
        report_ms: 90_000,
        usage_ms: 600_000,
        tickets_ms: 60_000,
        pass_ms: 60_000,
        reserve_ms: 900_000,
        run_ms: 3 * 3_600_000,
        forever_ms: 9 * 3_600_000,
    };
}

impl Plan {
    /// A quiet day of a small cluster.
    pub fn quiet(seed: u64) -> Plan {
        let (hosts, jobs, length_ms, user_ms) = (3, 20, 240_000, 6_500);
        let checks = Checks {
            every_inputs: 1,
            every_syncs: 32,
            every_events: 1,
        };
        Plan {
            seed,
            hosts,
            jobs,
            length_ms,
            user_ms,
            faults: Faults::NONE,
            checks,
            pace: Pace::QUICK,
            meddle_ms: 0,
            calm: false,
            watch: None,
            is_apart: false,
        }
    }

    /// A day on which jobs come and end in time, and no more: every reservation of the scheduler is
    /// judged.
    pub fn calm(seed: u64) -> Plan {
        let pace = Pace {
            reserve_ms: 2_000,
            ..Pace::QUICK
        };
        let checks = Checks {
            every_inputs: 256,
            every_syncs: 256,
            every_events: 256,
        };
        Plan {
            hosts: 4,
            jobs: 60,
            user_ms: 3_000,
            pace,
            checks,
            calm: true,
            ..Plan::quiet(seed)
        }
    }

    /// A bad day of a small cluster.
    pub fn stormy(seed: u64) -> Plan {
        let checks = Checks {
            every_inputs: 16,
            every_events: 16,
            ..Plan::quiet(seed).checks
        };
        Plan {
            faults: Faults::MANY,
            checks,
            meddle_ms: 12_000,
            ..Plan::quiet(seed)
        }
    }
}

impl Plan {
    /// A bad day of a larger cluster, longer and with every state checked.
    pub fn long(seed: u64) -> Plan {
        let checks = Plan::quiet(seed).checks;
        Plan {
            hosts: 8,
            jobs: 120,
            length_ms: 1_200_000,
            checks,
            ..Plan::stormy(seed)
        }
    }

    /// So many minutes of a cluster of a thousand hosts, at the pace of a real one. Its slots are
    /// taken within the first hour, and about as many jobs end as come. A few hosts break at any
    /// time.
    pub fn large(seed: u64, minutes: u64) -> Plan {
        Plan {
            hosts: 1_000,
            jobs: u64::MAX,
            length_ms: minutes * 60_000,
            user_ms: 3_600,
            faults: Faults::SOME,
            // After an input nothing else goes on, after a sync two walks at once.
            checks: Checks {
                every_inputs: u64::MAX,
                every_syncs: 20_000,
                every_events: 50_000,
            },
            pace: Pace::REAL,
            meddle_ms: 240_000,
            watch: Some(Watch {
                every_ms: 180_000,
                most_waiting: 250,
                patience_ms: 4 * 3_600_000,
            }),
            is_apart: true,
            ..Plan::quiet(seed)
        }
    }
}

/// A cluster, its users and its fate.
#[derive(Debug)]
pub struct World {
    pub(super) plan: Plan,
    pub(super) time: u64,
    pub(super) random: Random,
    pub(super) agenda: Agenda,
    pub(super) trace: Trace,
    pub(super) counts: Counts,
    pub(super) witness: Witness,
    pub(super) rival: Rival,
    /// What administrators change, as it was in the beginning.
    pub(super) setting: Vec<StoredObject>,
    pub(super) nodes: Vec<Node>,
    pub(super) links: BTreeMap<LinkId, Link>,
    pub(super) link_count: LinkId,
    pub(super) kept: ThreadedValue<MasterDisk>,
    pub(super) snapshots: ThreadedValue<Snapshots>,
    pub(super) master: Option<Master>,
    pub(super) master_life: u64,
    pub(super) wall_offset: i64,
    pub(super) users: Users,
    /// Whether the time of faults is over.
    pub(super) healed: bool,
    pub(super) inputs: u64,
    pub(super) syncs: u64,
}

impl World {
    /// A cluster before its first millisecond.
    pub fn new(plan: Plan) -> World {
        let names: Vec<HostName> = (1..=plan.hosts)
            .map(|index| HostName::new(&format!("h{index}")))
            .collect();
        let mut world = World {
            plan,
            time: 0,
            random: Random::new(plan.seed),
            agenda: Agenda::default(),
            trace: Trace::default(),
            counts: Counts::default(),
            witness: Witness::new(slaves::is_summed_up(plan.seed)),
            rival: Rival::default(),
            setting: setting::changeable(&names, plan.seed, plan.calm),
            nodes: names.iter().cloned().map(Node::new).collect(),
            links: BTreeMap::new(),
            link_count: 0,
            kept: ThreadedValue::new(MasterDisk::new(Rules::new(plan.checks.every_events)), plan.is_apart),
            snapshots: ThreadedValue::new(Snapshots::default(), plan.is_apart),
            master: None,
            master_life: 0,
            wall_offset: 0,
            users: Users::default(),
            healed: false,
            inputs: 0,
            syncs: 0,
        };
        let objects = world.setting.iter().cloned().chain(setting::fixed());
        world.create_cell(objects.collect());
        for host in 0..plan.hosts {
            world.soon(0, Happening::LauncherStarts { host });
            world.soon(10, Happening::AgentStarts { host });
        }
        world.soon(100, Happening::UserActs);
        world.soon(TIDY_MS, Happening::Tidies);
        world.plan_fault();
        world.plan_meddling(Happening::AdministratorActs);
        world.plan_meddling(Happening::RivalOrders);
        world.plan_watch();
        world.soon(plan.length_ms, Happening::Heals);
        world
    }

    /// Wants the last things that happened to be kept as text, or printed at once. Then everything
    /// is judged in the step in which it happens.
    pub fn keep_trace(&mut self, aloud: bool) {
        self.plan.is_apart = false;
        self.kept.stay_home();
        self.snapshots.stay_home();
        self.master.iter_mut().for_each(|master| master.planner.stay_home());
        (self.trace.wanted, self.trace.aloud) = (true, aloud);
    }

    /// What happened so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The last things that happened, as far as they were kept.
    pub fn last_words(&self) -> String {
        format!("at step {}, {} ms:\n{}", self.counts.steps, self.time, self.trace)
    }

    /// Lets everything happen until it is over.
    ///
    /// # Panics
    /// If an invariant does not hold, or something never ends.
    pub fn run(&mut self) {
        loop {
            if self.healed && self.is_over_on_hosts() {
                self.kept.home();
                if self.is_over() {
                    break;
                }
            }
            self.step();
            if self.time >= self.plan.length_ms + PATIENCE_MS {
                self.kept.home();
                panic!("not everything ends: {}", self.left());
            }
        }
        self.check_end();
    }

    /// Lets one thing happen.
    pub(super) fn step(&mut self) {
        let (at, happening) = self.agenda.next().expect("something is planned until the end");
        self.time = at;
        self.counts.steps += 1;
        self.happen(happening);
    }

    /// What has not ended.
    fn left(&self) -> String {
        let jobs = self.state().jobs.values();
        let job = |job: &master_core::state::job::Job| {
            format!(
                "job {} ({}) waits for {:?}, untouched {:?}, {:?}",
                job.number, job.spec.name, job.waits_for, job.untouched, job.tasks
            )
        };
        let jobs: Vec<String> = jobs.map(job).collect();
        let directories = self
            .nodes
            .iter()
            .map(|node| format!("{}: {:?}", node.name, node.directories));
        jobs.into_iter()
            .chain(directories)
            .chain([format!("{:?}", self.state().instances)])
            .collect::<Vec<_>>()
            .join("\n")
    }

    pub(super) fn soon(&mut self, wait: u64, happening: Happening) {
        self.agenda.plan(self.time + wait, happening);
    }

    pub(super) fn trace(&mut self, line: impl FnOnce() -> String) {
        let time = self.time;
        self.trace.note(|| format!("{time:>9} {}", line()));
    }

    fn happen(&mut self, happening: Happening) {
        if looks(&happening) {
            self.kept.home();
        }
        match happening {
            Happening::MasterStarts => self.master_starts(),
            Happening::MasterTurns { life } => self.master_turns(life),
            Happening::MasterSynced { life } => self.master_synced(life),
            Happening::MasterTimer { life, armed } => self.master_timer(life, armed),
            Happening::SchedulerSteps { life, planned } => self.scheduler_steps(life, planned),
            Happening::OrdersArrive {
                life,
                scheduler,
                orders,
            } => self.orders_arrive(life, scheduler, orders),
            Happening::Delivery { link, to } => self.deliver(link, to),
            Happening::Lost { link, by } => self.link_lost(link, by),
            Happening::ReportDue { host, life, link } => self.report_due(host, life, link),
            Happening::ReportArrives { link, report } => self.report_arrives(link, report),
            Happening::UserActs => self.user_acts(),
            Happening::CommandArrives { id } => self.command_arrives(id),
            Happening::CommandRepeats { id } => self.command_repeats(id),
            Happening::ReplyArrives { id, reply } => self.reply_arrives(id, *reply),
            Happening::FaultStrikes => self.fault_strikes(),
            Happening::AdministratorActs => self.administrator_acts(),
            Happening::RivalOrders => self.rival_orders(),
            Happening::PartitionEnds { host } => self.trace(|| format!("host {host} is reached again")),
            Happening::Heals => self.heals(),
            Happening::Tidies => self.tidies(),
            Happening::Watches => self.watches(),
            other => self.happen_on_host(other),
        }
    }

    fn happen_on_host(&mut self, happening: Happening) {
        match happening {
            Happening::HostBoots { host } => self.host_boots(host),
            Happening::AgentStarts { host } => self.agent_starts(host),
            Happening::AgentDials { host, life } => self.agent_dials(host, life),
            Happening::AgentSeeksLauncher { host, life } => self.agent_seeks_launcher(host, life),
            Happening::AgentTimer { host, life, at } => self.agent_timer(host, life, at),
            Happening::LauncherStarts { host } => self.launcher_starts(host),
            Happening::RequestReachesLauncher { host, session } => self.request_reaches_launcher(host, session),
            Happening::NoticeReachesAgent { host, session } => self.notice_reaches_agent(host, session),
            Happening::TaskExecutes { host, key, boot } => self.task_executes(host, key, boot),
            Happening::TaskEnds { host, key, boot, run } => self.task_ends(host, key, boot, run),
            Happening::TaskTerminated { host, key, boot } => self.task_terminated(host, key, boot),
            Happening::Undertaker { host, key, boot } => self.undertaker(host, key, boot),
            Happening::UsageKnown { host, key, boot } => self.usage_known(host, key, boot),
            Happening::SlaveWanted { host, key, boot } => self.slave_wanted(host, key, boot),
            other => unreachable!("{other:?} concerns no host"),
        }
    }

    /// From here on nothing breaks any more. What is broken heals by itself.
    fn heals(&mut self) {
        self.trace(|| "everything heals".to_owned());
        self.healed = true;
        let hosts: Vec<HostIndex> = (0..self.nodes.len()).collect();
        for host in hosts {
            self.nodes[host].cut_off_until = self.nodes[host].cut_off_until.min(self.time);
            self.nodes[host].sick_until = self.nodes[host].sick_until.min(self.time);
        }
    }

    fn tidies(&mut self) {
        if self.healed {
            self.tidy_cell();
            self.tidy_jobs();
        } else {
            self.clear_queue_errors();
        }
        self.soon(TIDY_MS, Happening::Tidies);
    }
}

/// Whether somebody looks at what is durable when this happens. Who looks now and then only calls
/// it home himself.
fn looks(happening: &Happening) -> bool {
    matches!(
        happening,
        Happening::AdministratorActs | Happening::RivalOrders | Happening::Tidies | Happening::Watches
    )
}
