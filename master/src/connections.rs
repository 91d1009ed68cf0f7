//! The connected agents, as the driver reaches them, and the admitted certificates.

use master_core::effect::ConnectionId;
use master_core::event::{Event, Record};
use master_core::state::State;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::HostName;
use proto::wire::agent::{MasterMessage, MasterWelcome};
use quic::{PeerIdentity, Serial, Verdict};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use tokio::sync::mpsc;

/// A message to an agent.
#[derive(Debug)]
pub enum OutgoingMessage {
    /// The answer to its hello.
    Welcome(Box<MasterWelcome>),
    /// A message of the control stream.
    Message(Box<MasterMessage>),
    /// The end of the connection, with the reason.
    Close(Diagnostic),
}

/// One connected agent.
#[derive(Debug)]
struct Agent {
    host: HostName,
    outgoing: mpsc::Sender<Vec<OutgoingMessage>>,
    /// Taken and dropped to end the connection of an agent that does not take its messages.
    overrun: tokio::sync::oneshot::Sender<Diagnostic>,
}

impl Agent {
    fn cut_off(self) {
        let why = format!("{} messages wait for it", self.outgoing.max_capacity());
        let overload = Diagnostic::new(
            Code::Overloaded,
            format!("agent {} does not take its messages", self.host),
        )
        .why(why)
        .fix("it connects again by itself; agent_queue of etc/master.toml is the limit");
        // Whoever served the connection has gone.
        let _ = self.overrun.send(overload);
    }
}

/// Every connected agent.
#[derive(Debug, Default)]
pub struct Connections {
    agents: Mutex<BTreeMap<ConnectionId, Agent>>,
}

/// The receiving ends of one agent's messages.
pub struct AgentReceivers {
    /// The messages to send, in order. A batch goes as one.
    pub outgoing: mpsc::Receiver<Vec<OutgoingMessage>>,
    /// Resolves when the agent has fallen too far behind.
    pub overrun: tokio::sync::oneshot::Receiver<Diagnostic>,
}

impl Connections {
    /// Enters a connection. A batch counts as one of the at most `limit` messages that wait for it.
    pub fn enter(&self, connection: ConnectionId, host: HostName, limit: usize) -> AgentReceivers {
        let (sender, receiver) = mpsc::channel(limit);
        let (overrun, overrun_receiver) = tokio::sync::oneshot::channel();
        self.agents().insert(
            connection,
            Agent {
                host,
                outgoing: sender,
                overrun,
            },
        );
        AgentReceivers {
            outgoing: receiver,
            overrun: overrun_receiver,
        }
    }

    /// Removes a connection that has ended.
    pub fn leave(&self, connection: ConnectionId) {
        self.agents().remove(&connection);
    }

    /// Passes a message on. An agent whose queue is full is cut off: it reconnects, and both sides
    /// compare their tasks.
    pub fn send(&self, connection: ConnectionId, outgoing: OutgoingMessage) {
        self.send_all([(connection, vec![outgoing])]);
    }

    /// Passes a batch on.
    pub fn send_all(&self, bags: impl IntoIterator<Item = (ConnectionId, Vec<OutgoingMessage>)>) {
        let mut agents = self.agents();
        for (connection, bag) in bags {
            let Some(agent) = agents.get(&connection) else { continue };
            let full = matches!(agent.outgoing.try_send(bag), Err(mpsc::error::TrySendError::Full(_)));
            if full && let Some(agent) = agents.remove(&connection) {
                agent.cut_off();
            }
        }
    }

    /// Ends every connection of a host.
    pub fn close_host(&self, host: &HostName, why: &Diagnostic) {
        let of_host = |(connection, agent): (&ConnectionId, &Agent)| (agent.host == *host).then_some(*connection);
        let connections: Vec<ConnectionId> = self.agents().iter().filter_map(of_host).collect();
        for connection in connections {
            self.send(connection, OutgoingMessage::Close(why.clone()));
        }
    }

    fn agents(&self) -> MutexGuard<'_, BTreeMap<ConnectionId, Agent>> {
        self.agents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The serials that the state admits, where the handshake can look them up without asking the core.
#[derive(Debug, Default)]
pub struct AdmittedSerials {
    serials: RwLock<BTreeMap<HostName, BTreeSet<String>>>,
}

impl AdmittedSerials {
    /// The certificates that a state admits.
    pub fn of_state(state: &State) -> Self {
        let serials = |(host, certificates): (&HostName, &BTreeMap<String, _>)| {
            (host.clone(), certificates.keys().cloned().collect())
        };
        Self {
            serials: RwLock::new(state.certificates.iter().map(serials).collect()),
        }
    }

    /// Follows events. Returns the serials that are no longer admitted.
    pub fn apply(&self, records: &[Arc<Record>]) -> Vec<Serial> {
        let mut revoked = Vec::new();
        for record in records {
            if let Event::CertificateIssued { host, serial, .. } = &record.event {
                self.write().entry(host.clone()).or_default().insert(serial.clone());
            } else if let Event::HostRevoked { host } = &record.event {
                let serials = self.write().remove(host).unwrap_or_default();
                revoked.extend(serials.iter().filter_map(|serial| serial.parse::<Serial>().ok()));
            }
        }
        revoked
    }

    /// Whether a certificate is admitted now.
    pub fn judge(&self, peer: &PeerIdentity) -> Verdict {
        let serials = self.serials.read().unwrap_or_else(PoisonError::into_inner);
        let known = serials
            .get(&peer.host)
            .is_some_and(|serials| serials.contains(&peer.serial.to_string()));
        if known {
            Verdict::Admit
        } else {
            Verdict::Refuse {
                why: format!(
                    "the certificate {} of {} was revoked or never issued",
                    peer.serial, peer.host
                ),
            }
        }
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, BTreeMap<HostName, BTreeSet<String>>> {
        self.serials.write().unwrap_or_else(PoisonError::into_inner)
    }
}
