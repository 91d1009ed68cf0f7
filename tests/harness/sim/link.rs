//! Connections between agents and the master: each direction keeps its order until the connection
//! breaks and loses what is left.

use super::agenda::{Happening, HostIndex, LinkId, Side};
use super::world::World;
use proto::diagnostic::Diagnostic;
use proto::wire::agent::{AgentHello, AgentMessage, MasterMessage, MasterWelcome};
use std::collections::VecDeque;

/// The longest silence before an end gives a connection up.
const IDLE_MS: u64 = 30_000;

/// On the way to the master.
#[derive(Clone, Debug)]
pub(super) enum UpMessage {
    Hello(Box<AgentHello>),
    Message(Box<AgentMessage>),
}

/// On the way to an agent.
#[derive(Clone, Debug)]
pub(super) enum DownMessage {
    Welcome(Box<MasterWelcome>),
    Message(Box<MasterMessage>),
    Close(Box<Diagnostic>),
}

/// One connection.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) host: HostIndex,
    pub(super) agent_life: u64,
    pub(super) master_life: u64,
    up: VecDeque<UpMessage>,
    down: VecDeque<DownMessage>,
    /// When the last message in each direction arrives, so that the next does not overtake it.
    last: [u64; 2],
    broken: bool,
    /// Which ends know that it is over.
    gone: [bool; 2],
    frozen_until: u64,
}

fn index(side: Side) -> usize {
    match side {
        Side::Master => 0,
        Side::Agent => 1,
    }
}

impl Link {
    pub(super) fn is_gone(&self, side: Side) -> bool {
        self.gone[index(side)]
    }
}

impl World {
    pub(super) fn open_link(&mut self, host: HostIndex, agent_life: u64, master_life: u64) -> LinkId {
        self.link_count += 1;
        let link = Link {
            host,
            agent_life,
            master_life,
            up: VecDeque::new(),
            down: VecDeque::new(),
            last: [self.time; 2],
            broken: false,
            gone: [false; 2],
            frozen_until: self.nodes[host].cut_off_until,
        };
        self.links.insert(self.link_count, link);
        self.link_count
    }

    pub(super) fn send_up(&mut self, id: LinkId, message: UpMessage) {
        let delay = self.delay();
        let now = self.time;
        let Some(link) = self.links.get_mut(&id).filter(|link| !link.broken) else {
            return;
        };
        link.up.push_back(message);
        link.last[0] = link.last[0].max(now + delay);
        let at = link.last[0];
        self.agenda.plan(
            at,
            Happening::Delivery {
                link: id,
                to: Side::Master,
            },
        );
    }

    pub(super) fn send_down(&mut self, id: LinkId, message: DownMessage) {
        let delay = self.delay();
        let now = self.time;
        let Some(link) = self.links.get_mut(&id).filter(|link| !link.broken) else {
            return;
        };
        link.down.push_back(message);
        link.last[1] = link.last[1].max(now + delay);
        let at = link.last[1];
        self.agenda.plan(
            at,
            Happening::Delivery {
                link: id,
                to: Side::Agent,
            },
        );
    }

    /// How long a message takes.
    pub(super) fn delay(&mut self) -> u64 {
        if !self.healed && self.random.chance(self.plan.faults.slow_message) {
            self.random.between(500, 8_000)
        } else {
            self.random.between(0, 5)
        }
    }

    pub(super) fn deliver(&mut self, id: LinkId, to: Side) {
        let now = self.time;
        let Some(link) = self.links.get_mut(&id) else { return };
        if link.is_gone(to) {
            return;
        }
        if link.frozen_until > now {
            let at = link.frozen_until;
            return self.agenda.plan(at, Happening::Delivery { link: id, to });
        }
        match to {
            Side::Master => {
                if let Some(message) = link.up.pop_front() {
                    self.master_hears(id, message);
                }
            }
            Side::Agent => {
                if let Some(message) = link.down.pop_front() {
                    self.agent_hears(id, message);
                }
            }
        }
    }

    /// The connection of a host breaks, if it has one.
    pub(super) fn link_breaks_at(&mut self, host: HostIndex) {
        if let Some(link) = self.nodes[host].agent.as_ref().and_then(|agent| agent.link) {
            self.counts.breaks += 1;
            self.trace(|| format!("link {link} of host {host} breaks"));
            self.break_link(link, 0);
        }
    }

    /// What a host sends and gets is late until then. Gives its connection.
    pub(super) fn freeze(&mut self, host: HostIndex, until: u64) -> Option<LinkId> {
        let id = self.nodes[host].agent.as_ref().and_then(|agent| agent.link)?;
        let link = self.links.get_mut(&id)?;
        link.frozen_until = link.frozen_until.max(until);
        Some(id)
    }

    /// A connection is lost with a part of what is on its way. Each end finds out by itself, no
    /// earlier than after `least` ms.
    pub(super) fn break_link(&mut self, id: LinkId, least: u64) {
        let Some(link) = self.links.get_mut(&id).filter(|link| !link.broken) else {
            return;
        };
        link.broken = true;
        let keep = self.random.below(link.up.len() as u64 + 1) as usize;
        link.up.truncate(keep);
        let keep = self.random.below(link.down.len() as u64 + 1) as usize;
        link.down.truncate(keep);
        for by in [Side::Master, Side::Agent] {
            let wait = if self.random.chance(400) {
                self.random.between(0, 20)
            } else {
                self.random.between(0, IDLE_MS)
            };
            self.soon(least + wait, Happening::Lost { link: id, by });
        }
    }

    /// One end ended the connection: what is on its way to it is not read any more, the other end
    /// reads what was sent and its end.
    pub(super) fn close_link(&mut self, id: LinkId, by: Side) {
        let Some(link) = self.links.get_mut(&id) else { return };
        link.broken = true;
        link.gone[index(by)] = true;
        let (other, last) = match by {
            Side::Master => (Side::Agent, link.last[1]),
            Side::Agent => (Side::Master, link.last[0]),
        };
        let at = last.max(link.frozen_until).max(self.time);
        self.agenda.plan(at, Happening::Lost { link: id, by: other });
    }

    pub(super) fn link_lost(&mut self, id: LinkId, by: Side) {
        let Some(link) = self.links.get_mut(&id) else { return };
        if std::mem::replace(&mut link.gone[index(by)], true) {
            return;
        }
        match by {
            Side::Master => self.master_loses(id),
            Side::Agent => self.agent_loses(id),
        }
        if self.links[&id].gone == [true; 2] {
            self.links.remove(&id);
        }
    }

    /// Breaks every connection of a process that died.
    pub(super) fn break_links_of(&mut self, side: Side, life: u64, host: Option<HostIndex>) {
        let is_its = |link: &Link| match side {
            Side::Master => link.master_life == life,
            Side::Agent => link.agent_life == life && Some(link.host) == host,
        };
        let ids: Vec<LinkId> = self
            .links
            .iter()
            .filter(|(_, link)| is_its(link))
            .map(|(id, _)| *id)
            .collect();
        for id in ids {
            self.break_link(id, 0);
            if let Some(link) = self.links.get_mut(&id) {
                link.gone[index(side)] = true;
            }
        }
    }
}
