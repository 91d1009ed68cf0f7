//! Users and their commands: each carries an id of its own, is repeated with the same id while no
//! answer comes, and is given up after a minute with its outcome unknown.

use super::agenda::Happening;
use super::workload::owner;
use super::world::World;
use master_core::effect::{Input, ReplyTo};
use proto::common::Common;
use proto::id::{HostName, JobNumber, RequestId, ReservationId, UserName};
use proto::job::Requests;
use proto::wire::client::{Command, Reply};
use proto::wire::view::Data;
use std::collections::BTreeMap;

/// How long a command repeats itself (ARCHITECTURE.md "Time, keys and requests").
const PATIENCE_MS: u64 = 60_000;

/// One command under way.
#[derive(Debug)]
struct Request {
    user: UserName,
    host: HostName,
    command: Command,
    since: u64,
    answer: Option<Reply>,
}

/// Everybody's commands.
#[derive(Debug, Default)]
pub(super) struct Users {
    requests: BTreeMap<RequestId, Request>,
    replies: BTreeMap<ReplyTo, RequestId>,
    tries: u64,
    /// Whether most slots were taken when somebody looked last.
    pub(super) is_crowded: bool,
    /// How many jobs waited when somebody looked last.
    pub(super) waiting: u64,
    /// What jobs ask for on a day like all others.
    pub(super) usual: Vec<Common<Requests>>,
    /// Reservations of which somebody knows.
    pub(super) reservations: Vec<ReservationId>,
    /// Jobs of which somebody knows.
    pub(super) jobs: Vec<JobNumber>,
}

impl World {
    pub(super) fn command(&mut self, user: &str, command: Command) -> RequestId {
        self.command_from("sub".into(), user, command)
    }

    pub(super) fn command_from(&mut self, host: HostName, user: &str, command: Command) -> RequestId {
        let id = RequestId(self.random.entropy());
        self.trace(|| format!("{user}: {command:?} as {:x}", id.0 & 0xffff));
        let request = Request {
            user: user.into(),
            host,
            command,
            since: self.time,
            answer: None,
        };
        self.users.requests.insert(id, request);
        self.send_command(id);
        id
    }

    fn send_command(&mut self, id: RequestId) {
        let delay = self.delay();
        self.soon(delay, Happening::CommandArrives { id });
        if !self.healed && self.random.chance(self.plan.faults.user_link) {
            let later = delay + self.delay();
            self.soon(later, Happening::CommandArrives { id });
        }
        let wait = self.random.between(2_000, 10_000);
        self.soon(wait, Happening::CommandRepeats { id });
    }

    pub(super) fn command_arrives(&mut self, id: RequestId) {
        let users = &mut self.users;
        let Some(request) = users.requests.get(&id) else { return };
        users.tries += 1;
        let reply_to = ReplyTo(users.tries);
        users.replies.insert(reply_to, id);
        let input = Input::Command {
            reply_to,
            id,
            owner: owner(request.user.as_str()),
            host: request.host.clone(),
            entropy: [0; 32],
            command: Box::new(request.command.clone()),
        };
        self.input(input);
    }

    pub(super) fn command_repeats(&mut self, id: RequestId) {
        let now = self.time;
        let Some(request) = self.users.requests.get(&id) else {
            return;
        };
        if request.answer.is_some() || now - request.since > PATIENCE_MS {
            return;
        }
        self.counts.repeated_requests += 1;
        self.send_command(id);
    }

    pub(super) fn reply_leaves(&mut self, to: ReplyTo, reply: Box<Reply>) {
        let id = self.users.replies.remove(&to).expect("each try is answered once");
        // What was refused may be tried again, and be granted; what is on record is answered alike
        // for ever.
        if let Some(durable) = self.witness.answer(id) {
            assert_eq!(*reply, *durable, "a repeat of request {:x} got another answer", id.0);
        }
        if self.healed || !self.random.chance(self.plan.faults.user_link) {
            let delay = self.delay();
            self.soon(delay, Happening::ReplyArrives { id, reply });
        }
    }

    pub(super) fn reply_arrives(&mut self, id: RequestId, reply: Reply) {
        let durable = self.witness.answer(id);
        let request = self.users.requests.get_mut(&id).expect("somebody asked");
        if let Some(Data::Submitted { number, .. }) = &reply.data {
            assert!(
                durable.is_some(),
                "{number} was acknowledged and its submission is not durable"
            );
            if request.answer.is_none() {
                self.users.jobs.push(*number);
            }
        }
        if let Some(Data::Reserved(id)) = &reply.data {
            assert!(
                durable.is_some(),
                "reservation {id} was acknowledged and is not durable"
            );
            self.users.reservations.push(*id);
        }
        request.answer.get_or_insert(reply);
    }
}
