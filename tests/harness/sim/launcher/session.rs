//! What agent and launcher say to each other over their socket.

use super::{Launcher, reread};
use crate::sim::agenda::{Happening, HostIndex};
use crate::sim::world::World;
use agent_core::core::Input;
use proto::launch::{Notice, Request, frame};

impl World {
    /// The agent finds out that its socket is closed.
    pub(super) fn session_ends(&mut self, host: HostIndex) {
        let node = &mut self.nodes[host];
        let life = node.agent_life;
        if node.agent.as_mut().is_some_and(|agent| agent.session.take().is_some()) {
            self.agent_input(host, Input::LauncherLost);
            let wait = self.random.between(20, 1_000);
            self.soon(wait, Happening::AgentSeeksLauncher { host, life });
        }
    }

    /// The agent died: what it wrote is still read, what is written to it is lost.
    pub(in crate::sim) fn agent_hangs_up(&mut self, host: HostIndex, session: u64) {
        if let Some(launcher) = self.nodes[host]
            .launcher
            .as_mut()
            .filter(|launcher| launcher.session == Some(session))
        {
            launcher.notices.clear();
        }
    }

    pub(in crate::sim) fn agent_seeks_launcher(&mut self, host: HostIndex, life: u64) {
        let now = self.time;
        let node = &mut self.nodes[host];
        let Some(agent) = node
            .agent
            .as_mut()
            .filter(|agent| node.agent_life == life && agent.session.is_none())
        else {
            return;
        };
        let Some(launcher) = &mut node.launcher else {
            let wait = self.random.between(20, 1_000);
            return self.soon(wait, Happening::AgentSeeksLauncher { host, life });
        };
        node.sessions += 1;
        agent.session = Some(node.sessions);
        *launcher = Launcher {
            session: Some(node.sessions),
            last: [now; 2],
            ..Launcher::default()
        };
        self.agent_input(host, Input::LauncherConnected);
    }

    pub(in crate::sim) fn request_leaves(&mut self, host: HostIndex, session: u64, request: Request, has_script: bool) {
        if let Request::Launch(document) = &request {
            let needs_script = matches!(document.start, proto::launch::Start::Script { .. });
            assert_eq!(
                needs_script, has_script,
                "a script comes with its launch and with nothing else"
            );
        }
        let at = self.time + self.random.between(0, 2);
        let Some(launcher) = self.nodes[host]
            .launcher
            .as_mut()
            .filter(|launcher| launcher.session == Some(session))
        else {
            return;
        };
        launcher.requests.push_back(frame(&request));
        launcher.last[0] = launcher.last[0].max(at);
        let at = launcher.last[0];
        self.agenda
            .plan(at, Happening::RequestReachesLauncher { host, session });
    }

    pub(super) fn tell(&mut self, host: HostIndex, notice: &Notice) {
        let at = self.time + self.random.between(0, 2);
        let Some(launcher) = &mut self.nodes[host].launcher else {
            return;
        };
        let Some(session) = launcher.session else { return };
        launcher.notices.push_back(frame(notice));
        launcher.last[1] = launcher.last[1].max(at);
        let at = launcher.last[1];
        self.agenda.plan(at, Happening::NoticeReachesAgent { host, session });
    }

    pub(in crate::sim) fn notice_reaches_agent(&mut self, host: HostIndex, session: u64) {
        let node = &mut self.nodes[host];
        let Some(launcher) = node
            .launcher
            .as_mut()
            .filter(|launcher| launcher.session == Some(session))
        else {
            return;
        };
        let Some(bytes) = launcher.notices.pop_front() else {
            return;
        };
        if node.agent.as_ref().is_some_and(|agent| agent.session == Some(session)) {
            let notice: Notice = reread(&bytes);
            self.trace(|| format!("host {host} launcher: {notice:?}"));
            self.agent_input(host, Input::Launcher(Box::new(notice)));
        }
    }

    pub(in crate::sim) fn request_reaches_launcher(&mut self, host: HostIndex, session: u64) {
        let Some(launcher) = self.nodes[host]
            .launcher
            .as_mut()
            .filter(|launcher| launcher.session == Some(session))
        else {
            return;
        };
        let Some(bytes) = launcher.requests.pop_front() else {
            return;
        };
        let notices = match reread::<Request>(&bytes) {
            Request::Launch(document) => self.launch(host, &document),
            Request::Signal { key, order } => self.signal(host, key, order),
            Request::Reprioritize {
                key: _,
                nice,
                cpu_weight,
            } => {
                assert!(nice.is_none_or(|nice| (0..=19).contains(&nice)), "nice value {nice:?}");
                assert!(
                    cpu_weight.is_none_or(|weight| (1..=10_000).contains(&weight)),
                    "weight {cpu_weight:?}"
                );
                self.counts.reprioritized += 1;
                Vec::new()
            }
            Request::List => {
                // Where there are thousands, looking after each is most of what happens.
                let examines = self.nodes.len() < 100;
                vec![Notice::Tasks {
                    tasks: self.summaries(host),
                    reprioritizes: true,
                    examines,
                    enforces: Vec::new(),
                }]
            }
            Request::Examine => vec![self.examine(host)],
            Request::Forget { key } => self.forget(host, key),
            Request::StartSensor(_) | Request::StopSensor { .. } => panic!("no sensor is configured"),
        };
        notices.iter().for_each(|notice| self.tell(host, notice));
    }
}
