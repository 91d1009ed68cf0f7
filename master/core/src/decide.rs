//! What each input leads to. Every decision of the master but scheduling is in this folder, one
//! module for each kind of input.

mod actor;
pub mod causes;
pub(crate) mod check;
mod command;
pub(crate) mod copy;
pub(crate) mod external;
pub mod hosts;
mod jobs;
pub(crate) mod memory;
pub mod objects;
mod orders;
mod requests;
mod reservations;
mod submit;
pub mod tasks;
#[cfg(test)]
mod tests;
mod turn;
mod verify;

pub use actor::Caller;
use hosts::agents;
use hosts::load;
use jobs::bulk_commands;
pub(crate) use reservations::next_time as next_reservation;
pub(crate) use submit::verdicts::Verdicts;
use tasks::tickets;
use tasks::usage;
pub(crate) use turn::{CellParts, Turn};

use crate::effect::Input;
use crate::event::Actor;
use hosts::agents::Agents;

/// Who is behind an input.
pub(crate) fn actor(agents: &Agents, input: &Input) -> Actor {
    match input {
        Input::Command { owner, host, .. } => Actor::User {
            user: owner.user.clone(),
            host: host.clone(),
        },
        Input::AgentConnected { host, .. } | Input::Join { host, .. } | Input::CertificateRenewed { host, .. } => {
            Actor::Agent(host.clone())
        }
        Input::AgentLost { connection }
        | Input::AgentMessage { connection, .. }
        | Input::LoadReport { connection, .. } => agents
            .host_of(*connection)
            .map_or(Actor::Master, |host| Actor::Agent(host.clone())),
        Input::Orders { scheduler, .. } => Actor::Scheduler(scheduler.clone()),
        Input::Verified { .. } | Input::Tickets(_) | Input::Tick => Actor::Master,
    }
}

/// Dispatches one input.
pub(crate) fn input(turn: &mut Turn<'_>, input: Input) {
    match input {
        Input::Command {
            reply_to,
            id,
            owner,
            host,
            entropy,
            command,
        } => {
            requests::command(
                turn,
                requests::RequestOrigin { reply_to, id, entropy },
                Caller::new(turn.state(), turn.site(), owner, host),
                *command,
            );
        }
        Input::AgentConnected {
            connection,
            host,
            hello,
        } => agents::connected(turn, connection, host, *hello),
        Input::AgentLost { connection } => agents::lost(turn, connection),
        Input::AgentMessage { connection, message } => agents::message(turn, connection, *message),
        Input::LoadReport { connection, report } => load::report(turn, connection, *report),
        Input::Orders { scheduler, orders } => orders::orders(turn, &scheduler, orders),
        Input::Join {
            reply_to,
            token_hash,
            host,
            serial,
            not_after,
        } => {
            objects::join(
                turn,
                objects::HostJoin {
                    reply_to,
                    token_hash,
                    host,
                    serial,
                    not_after,
                },
            );
        }
        Input::CertificateRenewed {
            host,
            serial,
            not_after,
        } => objects::renewed(turn, host, serial, not_after),
        Input::Verified { id, outcome } => submit::verification::verified(turn, id, outcome),
        Input::Tickets(tickets) => tickets::take(turn, &tickets),
        Input::Tick => bulk_commands::go_on(turn),
    }
}

/// Does what time has made due. Runs after every input, so that a busy core needs no ticks.
pub(crate) fn timers(turn: &mut Turn<'_>) {
    agents::timers(turn);
    submit::access::expire_users(turn);
    external::follow(turn);
    reservations::follow(turn);
    usage::follow(turn);
    turn.trigger_due_starts();
}
