//! Changing requests: each is decided once, and a repeat gets the first answer (ARCHITECTURE.md
//! "Time, keys and requests").

use super::{Caller, Turn, command};
use crate::effect::{Effect, ReplyTo};
use crate::event::Event;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::RequestId;
use proto::wire::client::{Command, Reply};
use proto::wire::view::Data;
use std::sync::Arc;

/// Where a request comes from and goes back to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestOrigin {
    /// Whom to answer.
    pub reply_to: ReplyTo,
    /// The client's id.
    pub id: RequestId,
    /// Randomness for commands that need some.
    pub entropy: [u8; 32],
}

/// Decides a command, unless it was decided before.
///
/// The answer is kept only where something changed: a refusal changes nothing, so that asking again
/// asks anew.
pub(crate) fn command(turn: &mut Turn<'_>, request: RequestOrigin, caller: Caller, command: Command) {
    if let Some(reply) = turn.state().index.answer(request.id).map(|reply| (**reply).clone()) {
        return answer(turn, request.reply_to, reply);
    }
    if turn.bulk_commands_mut().is_on(request.id, request.reply_to) {
        return;
    }
    if turn.submissions_mut().is_on(request.id, request.reply_to) {
        return;
    }
    turn.set_request(request.id);
    let Some(reply) = command::decide(turn, request, &caller, command) else {
        return;
    };
    let has_changed = turn.has_events();
    answered(turn, request, reply, has_changed);
}

/// Answers a request that has been carried out.
pub(super) fn answered(turn: &mut Turn<'_>, request: RequestOrigin, reply: Reply, has_changed: bool) {
    if has_changed {
        turn.record(Event::RequestAnswered {
            id: request.id,
            reply: Arc::new(without_secrets(&reply)),
        });
    }
    answer(turn, request.reply_to, reply);
}

/// What is kept of an answer: a secret is told once and never stored.
fn without_secrets(reply: &Reply) -> Reply {
    match &reply.data {
        Some(Data::Token(_) | Data::Certificates(_)) => {
            let what = "the answer held a secret, which is told once and not kept";
            Reply::refusal(Diagnostic::new(Code::OutcomeUnknown, what).fix("ask for another with a new command"))
        }
        Some(_) | None => reply.clone(),
    }
}

fn answer(turn: &mut Turn<'_>, to: ReplyTo, reply: Reply) {
    turn.effect(Effect::Reply {
        to,
        reply: Box::new(reply),
    });
}
