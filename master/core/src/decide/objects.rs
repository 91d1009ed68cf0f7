//! Commands on everything that is not a job: configuration objects, queue states, tokens, certificates.

use super::requests::Request;
use super::{Caller, Turn};
use crate::effect::{Effect, ReplyTo};
use crate::event::Event;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::HostName;
use proto::time::Wall;
use proto::wire::client::{Command, ModifyAction, Reply};

/// A host that asks to join.
#[derive(Clone, Debug)]
pub(crate) struct Join {
    pub reply_to: ReplyTo,
    pub token_hash: String,
    pub host: HostName,
    pub serial: String,
    pub not_after: Wall,
}

/// Decides a command that is not about jobs. None if the shell answers it.
pub(crate) fn decide(turn: &mut Turn<'_>, _request: Request, caller: &Caller, command: Command) -> Option<Reply> {
    if let Err(refusal) = caller.must_be_manager() {
        return Some(Reply::refusal(refusal));
    }
    match command {
        Command::TriggerScheduling => {
            turn.effect(Effect::TriggerScheduling);
            Some(Reply::default())
        }
        Command::Objects(_) => Some(Reply::refusal(not_supported("changing configuration objects"))),
        Command::CreateToken { .. } => Some(Reply::refusal(not_supported("creating join tokens"))),
        Command::RevokeHost { .. } => Some(Reply::refusal(not_supported("revoking hosts"))),
        Command::SimulatedHosts { .. } => Some(Reply::refusal(not_supported("simulated hosts"))),
        Command::Shutdown { .. } => Some(Reply::refusal(not_supported("ending daemons"))),
        Command::Submit(_)
        | Command::Resubmit { .. }
        | Command::Alter { .. }
        | Command::Delete { .. }
        | Command::Modify { .. } => unreachable!("commands on jobs are decided elsewhere"),
    }
}

/// Changes the state of a queue instance (`qmod` on queues). None if no queue is meant by the target.
pub(crate) fn modify_queue(
    turn: &mut Turn<'_>,
    caller: &Caller,
    action: ModifyAction,
    target: &str,
    force: bool,
) -> Option<Vec<proto::wire::client::Answer>> {
    let _ = (turn, caller, action, target, force);
    None
}

/// Admits a host that joins.
pub(crate) fn join(turn: &mut Turn<'_>, join: Join) {
    turn.effect(Effect::Joined { to: join.reply_to, outcome: Err(not_supported("join")) });
}

/// A host renewed its certificate.
pub(crate) fn renewed(turn: &mut Turn<'_>, host: HostName, serial: String, not_after: Wall) {
    turn.record(Event::CertificateIssued { host, serial, not_after });
}

fn not_supported(what: &str) -> Diagnostic {
    Diagnostic::new(Code::NotSupported, format!("{what} is not supported yet"))
}
