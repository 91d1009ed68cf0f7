//! The agent's process around its core, as `agent/src/driver.rs` and `agent/src/link.rs` do it: a
//! hello first, then what the core says; a connection that is over is opened again after a pause.

use super::agenda::{Happening, HostIndex, LinkId, Side};
use super::launcher::{Launcher, TaskDirectory};
use super::link::{DownMessage, UpMessage};
use super::world::World;
use agent_core::core::{Core, Effect, Input, Now};
use agent_core::host_paths::HostPaths;
use proto::cell_version::CellVersion;
use proto::id::{Epoch, HostName, TaskKey};
use proto::load::LoadReport;
use proto::wire::agent::{AgentHello, AgentMessage, MasterMessage, PROTOCOL_VERSION};
use std::collections::BTreeMap;

/// One machine: what survives its processes, and the processes that it has now.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) name: HostName,
    pub(super) is_up: bool,
    pub(super) boot: u64,
    pub(super) booted: u64,
    pub(super) cut_off_until: u64,
    /// Until when its launcher can start nothing.
    pub(super) sick_until: u64,
    /// Whether its launcher knows that when it is asked.
    pub(super) knows_sickness: bool,
    pub(super) directories: BTreeMap<TaskKey, TaskDirectory>,
    pub(super) epoch: Epoch,
    pub(super) agent: Option<Agent>,
    pub(super) agent_life: u64,
    pub(super) launcher: Option<Launcher>,
    pub(super) sessions: u64,
}

/// A running agent.
#[derive(Debug)]
pub(super) struct Agent {
    core: Core,
    instance: u128,
    pub(super) link: Option<LinkId>,
    /// Whether the core may use the link: it has given up a master that it rejects.
    has_outbox: bool,
    /// What is to be sent after the welcome; none once that has come.
    held: Option<Vec<AgentMessage>>,
    is_ready: bool,
    reports: u64,
    is_full_wanted: bool,
    /// When the core wants to be called, by the boot clock.
    timer: Option<u64>,
    /// The connection to the launcher.
    pub(super) session: Option<u64>,
}

impl Node {
    pub(super) fn new(name: HostName) -> Self {
        Self {
            name,
            is_up: true,
            boot: 1,
            booted: 0,
            cut_off_until: 0,
            sick_until: 0,
            knows_sickness: false,
            directories: BTreeMap::new(),
            epoch: Epoch::default(),
            agent: None,
            agent_life: 0,
            launcher: None,
            sessions: 0,
        }
    }

    pub(super) fn boot_id(&self) -> String {
        format!("boot-{}", self.boot)
    }

    fn site(&self) -> HostPaths {
        HostPaths {
            environment: Vec::new(),
            host: self.name.clone(),
            root: "/cell".to_owned(),
            cell_name: "default".to_owned(),
            arch: "lx-amd64".to_owned(),
            processors: 8,
            cores: Default::default(),
            time_zone: None,
            cgroup_parent: None,
        }
    }
}

impl World {
    /// `CLOCK_BOOTTIME` of a host.
    pub(super) fn boot_ms(&self, host: HostIndex) -> u64 {
        self.time - self.nodes[host].booted + 1_000
    }

    pub(super) fn agent_starts(&mut self, host: HostIndex) {
        let instance = self.random.entropy();
        let node = &mut self.nodes[host];
        if !node.is_up || node.agent.is_some() {
            return;
        }
        node.agent_life += 1;
        let life = node.agent_life;
        node.agent = Some(Agent {
            core: Core::new(node.site(), node.epoch),
            instance,
            link: None,
            has_outbox: false,
            held: None,
            is_ready: false,
            reports: 0,
            is_full_wanted: true,
            timer: None,
            session: None,
        });
        self.trace(|| format!("agent of host {host} starts"));
        self.soon(5, Happening::AgentSeeksLauncher { host, life });
    }

    /// The agent's process ends without a word. It is started again, or its host is.
    pub(super) fn agent_dies(&mut self, host: HostIndex) {
        let Some(agent) = self.nodes[host].agent.take() else {
            return;
        };
        self.counts.agent_crashes += 1;
        self.trace(|| format!("agent of host {host} dies"));
        if let Some(session) = agent.session {
            self.agent_hangs_up(host, session);
        }
        let life = self.nodes[host].agent_life;
        self.break_links_of(Side::Agent, life, Some(host));
        let wait = self.random.around(4_000);
        self.soon(wait, Happening::AgentStarts { host });
    }

    pub(super) fn agent_dials(&mut self, host: HostIndex, life: u64) {
        let (now, master_life) = (self.time, self.master_life);
        let node = &self.nodes[host];
        let Some(agent) = node.agent.as_ref().filter(|_| node.agent_life == life) else {
            return;
        };
        if agent.link.is_some() || !agent.is_ready {
            return;
        }
        if self.master.is_none() || node.cut_off_until > now {
            let wait = self.random.between(100, 10_000);
            return self.soon(wait, Happening::AgentDials { host, life });
        }
        let link = self.open_link(host, life, master_life);
        let (boot_ms, boot_id, wall_ms) = (self.boot_ms(host), self.nodes[host].boot_id(), self.wall().0);
        let node = &mut self.nodes[host];
        let agent = node.agent.as_mut().expect("it was there");
        (agent.link, agent.has_outbox, agent.held) = (Some(link), true, Some(Vec::new()));
        let hello = AgentHello {
            version: PROTOCOL_VERSION,
            cell_version: CellVersion::NEWEST,
            software: String::new(),
            host: node.name.clone(),
            instance: agent.instance,
            epoch: agent.core.epoch(),
            tasks: agent.core.reports(&Now {
                boot_ms,
                boot_id: &boot_id,
            }),
            wall_ms,
            takes_tickets: agent.core.takes_tickets(),
            binds_cores: true,
            boot_ms,
            marks: Vec::new(),
        };
        self.trace(|| format!("host {host} dials, link {link}: {:?}", hello.tasks));
        self.send_up(link, UpMessage::Hello(Box::new(hello)));
    }

    pub(super) fn agent_hears(&mut self, id: LinkId, message: DownMessage) {
        let link = &self.links[&id];
        let (host, life) = (link.host, link.agent_life);
        let node = &mut self.nodes[host];
        let Some(agent) = node
            .agent
            .as_mut()
            .filter(|agent| node.agent_life == life && agent.link == Some(id))
        else {
            return;
        };
        match message {
            DownMessage::Welcome(welcome) => {
                let held = agent.held.take().unwrap_or_default();
                (agent.reports, agent.is_full_wanted) = (0, true);
                held.into_iter()
                    .for_each(|message| self.send_up(id, UpMessage::Message(Box::new(message))));
                self.agent_input(host, Input::Welcome(welcome));
                self.report_due(host, life, id);
            }
            DownMessage::Message(message) => {
                // A doubled order is not the stream's doing, but the master may repeat itself.
                if let MasterMessage::Start(order) = &*message {
                    let key = order.key;
                    self.trace(|| format!("host {host} is told to start {key}"));
                }
                self.agent_input(host, Input::Master(message));
            }
            DownMessage::Close(why) => {
                self.trace(|| format!("host {host} is refused: {why}"));
                self.close_link(id, Side::Agent);
                self.agent_loses(id);
            }
        }
    }

    /// The agent finds out that its connection is over.
    pub(super) fn agent_loses(&mut self, id: LinkId) {
        let Some(link) = self.links.get(&id) else { return };
        let (host, life) = (link.host, link.agent_life);
        let node = &mut self.nodes[host];
        let Some(agent) = node
            .agent
            .as_mut()
            .filter(|agent| node.agent_life == life && agent.link == Some(id))
        else {
            return;
        };
        (agent.link, agent.has_outbox, agent.held) = (None, false, None);
        self.agent_input(host, Input::MasterLost);
        let wait = self.random.between(100, 10_000);
        self.soon(wait, Happening::AgentDials { host, life });
    }

    pub(super) fn agent_input(&mut self, host: HostIndex, input: Input) {
        let (boot_ms, boot_id) = (self.boot_ms(host), self.nodes[host].boot_id());
        let node = &mut self.nodes[host];
        let Some(agent) = &mut node.agent else { return };
        let effects = agent.core.handle(
            input,
            &Now {
                boot_ms,
                boot_id: &boot_id,
            },
        );
        let epoch = agent.core.epoch();
        assert!(epoch >= node.epoch, "an agent obeys no older master");
        node.epoch = epoch;
        let dies = !self.healed && self.random.chance(self.plan.faults.agent_dies_at_input);
        let left = if dies {
            self.random.below(effects.len() as u64 + 1) as usize
        } else {
            effects.len()
        };
        effects
            .into_iter()
            .take(left)
            .for_each(|effect| self.agent_performs(host, effect));
        if dies {
            self.agent_dies(host);
        }
        self.plan_agent_timer(host);
    }

    fn plan_agent_timer(&mut self, host: HostIndex) {
        let boot_ms = self.boot_ms(host);
        let node = &mut self.nodes[host];
        let life = node.agent_life;
        let Some(agent) = &mut node.agent else { return };
        let next = agent.core.next_timer();
        if std::mem::replace(&mut agent.timer, next) != next
            && let Some(at) = next
        {
            self.soon(at.saturating_sub(boot_ms), Happening::AgentTimer { host, life, at });
        }
    }

    pub(super) fn agent_timer(&mut self, host: HostIndex, life: u64, at: u64) {
        let node = &mut self.nodes[host];
        let Some(agent) = node
            .agent
            .as_mut()
            .filter(|agent| node.agent_life == life && agent.timer == Some(at))
        else {
            return;
        };
        agent.timer = None;
        self.agent_input(host, Input::Tick);
    }

    fn agent_performs(&mut self, host: HostIndex, effect: Effect) {
        let Some(agent) = &mut self.nodes[host].agent else {
            return;
        };
        match effect {
            Effect::Send(message) => {
                let Some(link) = agent.link.filter(|_| agent.has_outbox) else {
                    return;
                };
                match &mut agent.held {
                    Some(held) => held.push(*message),
                    None => {
                        self.trace(|| format!("host {host} says {message:?}"));
                        self.send_up(link, UpMessage::Message(message));
                    }
                }
            }
            Effect::Launcher { request, script } => {
                if let Some(session) = agent.session {
                    self.request_leaves(host, session, *request, script.is_some());
                }
            }
            Effect::Ready => {
                if !std::mem::replace(&mut agent.is_ready, true) {
                    let life = self.nodes[host].agent_life;
                    self.soon(1, Happening::AgentDials { host, life });
                }
            }
            Effect::FindUnbegun(keys) => {
                let node = &self.nodes[host];
                let is_unbegun = |key: &TaskKey| node.launcher.is_none() && !node.directories.contains_key(key);
                let unbegun = keys.into_iter().filter(is_unbegun).collect();
                self.agent_input(host, Input::Unbegun(unbegun));
            }
            Effect::ReportNow => {
                if let Some(link) = agent.link {
                    agent.is_full_wanted = true;
                    let life = self.nodes[host].agent_life;
                    self.send_report(host, life, link);
                }
            }
            Effect::Reject(_) => {
                agent.has_outbox = false;
                if let Some(link) = agent.link {
                    self.close_link(link, Side::Agent);
                    self.agent_loses(link);
                }
            }
            Effect::Stop => panic!("nobody asked an agent to end"),
            Effect::Configure(_) | Effect::Warn(_) => {}
        }
    }

    pub(super) fn report_due(&mut self, host: HostIndex, life: u64, link: LinkId) {
        if self.send_report(host, life, link) {
            self.soon(self.plan.pace.report_ms, Happening::ReportDue { host, life, link });
        }
    }

    /// Reports travel on streams of their own: they overtake each other and the control stream.
    /// Whether the link is still there.
    fn send_report(&mut self, host: HostIndex, life: u64, link: LinkId) -> bool {
        let busy = self.witness.occupied(&self.nodes[host].name);
        let node = &mut self.nodes[host];
        let Some(agent) = node
            .agent
            .as_mut()
            .filter(|agent| node.agent_life == life && agent.link == Some(link))
        else {
            return false;
        };
        agent.reports += 1;
        let texts = [("np_load_avg", format!("0.{busy}0")), ("num_proc", "8".to_owned())];
        let values = texts.map(|(name, text)| (name.into(), text)).into();
        let report = LoadReport {
            sequence: agent.reports,
            full: std::mem::take(&mut agent.is_full_wanted),
            values: [(node.name.clone(), values)].into(),
            ..LoadReport::default()
        };
        if node.cut_off_until <= self.time {
            let mut delay = self.delay();
            for _ in 0..1 + u64::from(self.random.chance(self.plan.faults.user_link)) {
                self.soon(
                    delay,
                    Happening::ReportArrives {
                        link,
                        report: Box::new(report.clone()),
                    },
                );
                delay += self.delay();
            }
        }
        true
    }
}
