//! Messages to agents, collected so that one packet carries several.
//!
//! Everything here is durable already. The messages of a turn to one agent go as one batch. A
//! message that can wait, such as that a result may be forgotten, goes with the agent's next one,
//! such as a start.

use crate::connections::{Connections, OutgoingMessage};
use master_core::effect::ConnectionId;
use proto::wire::agent::MasterMessage;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long a host keeps a result or a description that it could forget, while there is no other
/// message for it.
const TIDY: Duration = Duration::from_millis(250);

/// The most messages that wait for one agent.
const BAG: usize = 256;

/// The waiting messages.
#[derive(Debug, Default)]
pub struct AgentOutbox {
    bags: BTreeMap<ConnectionId, Vec<OutgoingMessage>>,
    /// The agents whose messages leave at once.
    ready: Vec<ConnectionId>,
    /// When everything leaves at the latest.
    until: Option<Instant>,
}

impl AgentOutbox {
    /// Adds a message for an agent. It does not overtake earlier ones.
    pub fn add(&mut self, to: ConnectionId, outgoing: OutgoingMessage, now: Instant) {
        if matches!(&outgoing, OutgoingMessage::Message(message) if can_wait(message)) {
            self.until.get_or_insert(now + TIDY);
        } else {
            self.ready.push(to);
        }
        let bag = self.bags.entry(to).or_default();
        bag.push(outgoing);
        if bag.len() == BAG {
            self.ready.push(to);
        }
    }

    /// When a message leaves by itself.
    pub fn due(&self) -> Option<Instant> {
        self.until
    }

    /// Sends the messages that do not wait any longer.
    pub fn leave(&mut self, connections: &Connections, now: Instant) {
        if self.until.is_some_and(|until| until <= now) {
            return self.leave_all(connections);
        }
        let bags = self.ready.drain(..).filter_map(|to| Some((to, self.bags.remove(&to)?)));
        connections.send_all(bags);
        if self.bags.is_empty() {
            self.until = None;
        }
    }

    /// Sends all messages.
    pub fn leave_all(&mut self, connections: &Connections) {
        self.ready.clear();
        self.until = None;
        connections.send_all(std::mem::take(&mut self.bags));
    }
}

/// Whether nobody waits for a message.
pub fn can_wait(message: &MasterMessage) -> bool {
    matches!(message, MasterMessage::Forget { .. } | MasterMessage::Discard { .. })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::id::{CellId, HostName, SubmitSeq, TaskId, TaskKey};

    fn forget() -> OutgoingMessage {
        let key = TaskKey {
            cell: CellId(1),
            seq: SubmitSeq(1),
            task: TaskId(1),
            pe_task: 0,
            attempt: 1,
        };
        OutgoingMessage::Message(Box::new(MasterMessage::Forget { key }))
    }

    fn report_now() -> OutgoingMessage {
        OutgoingMessage::Message(Box::new(MasterMessage::ReportNow))
    }

    /// A post, one connected agent, and how many messages it has got.
    struct OutboxTest {
        post: AgentOutbox,
        connections: Connections,
        outbox: crate::connections::AgentReceivers,
        now: Instant,
    }

    const AGENT: ConnectionId = ConnectionId(1);

    impl OutboxTest {
        fn new() -> Self {
            let connections = Connections::default();
            let outbox = connections.enter(AGENT, HostName::new("n1"), 10);
            Self {
                post: AgentOutbox::default(),
                connections,
                outbox,
                now: Instant::now(),
            }
        }

        fn add(&mut self, outgoing: OutgoingMessage) {
            self.post.add(AGENT, outgoing, self.now);
        }

        /// What leaves `after` the begin.
        fn left(&mut self, after: Duration) -> Vec<&'static str> {
            self.post.leave(&self.connections, self.now + after);
            let mut left = Vec::new();
            while let Ok(bag) = self.outbox.outgoing.try_recv() {
                left.extend(bag.into_iter().map(|outgoing| match outgoing {
                    OutgoingMessage::Message(message) if can_wait(&message) => "forget",
                    _ => "now",
                }));
            }
            left
        }
    }

    #[test]
    fn what_can_wait_goes_with_what_cannot_and_before_it() {
        let mut office = OutboxTest::new();
        office.add(forget());
        assert!(office.left(Duration::ZERO).is_empty());
        office.add(report_now());
        assert_eq!(office.left(Duration::ZERO), ["forget", "now"]);
        assert_eq!(office.post.due(), None);
    }

    #[test]
    fn what_can_wait_goes_by_itself_in_the_end() {
        let mut office = OutboxTest::new();
        office.add(forget());
        assert_eq!(office.post.due(), Some(office.now + TIDY));
        assert!(office.left(TIDY / 2).is_empty());
        assert_eq!(office.left(TIDY), ["forget"]);
    }

    #[test]
    fn a_full_bag_leaves_at_once() {
        let mut office = OutboxTest::new();
        (1..BAG).for_each(|_| office.add(forget()));
        assert!(office.left(Duration::ZERO).is_empty());
        office.add(forget());
        assert_eq!(office.left(Duration::ZERO).len(), BAG);
    }
}
