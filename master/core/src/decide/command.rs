//! Commands, one line for each.

use super::requests::RequestOrigin;
use super::{Caller, Turn, objects, submit};
use crate::decide::jobs::{alter, delete, modify, resubmit};
use crate::decide::reservations;
use crate::decide::tasks::slaves;
use crate::names::Rewriter;
use proto::wire::client::{Command, Reply};

/// Decides a command. None if it is answered later: by the shell, once it has done what only it can
/// do, or when all jobs that it is about have been looked at.
pub(crate) fn decide(
    turn: &mut Turn<'_>,
    request: RequestOrigin,
    caller: &Caller,
    mut command: Command,
) -> Option<Reply> {
    let config = &turn.state().config;
    let names = config.host_names(&turn.site().naming, &caller.host);
    Rewriter {
        names,
        complex: &config.complex,
    }
    .command(&mut command);
    Some(match command {
        Command::Submit(spec) => return submit::submit(turn, request, caller, *spec),
        Command::Resubmit { jobs, changes } => return resubmit::resubmit(turn, request, caller, &jobs, &changes),
        Command::Alter { jobs, changes } => return alter::alter(turn, request, caller, &jobs, changes),
        Command::Delete { jobs, force } => return delete::delete(turn, request, caller, &jobs, force),
        Command::Reserve(spec) => reservations::reserve(turn, caller, *spec),
        Command::DeleteReservations { targets, users, force } => {
            reservations::delete(turn, caller, &targets, &users, force)
        }
        Command::Modify { action, targets, force } => modify::modify(turn, caller, action, &targets, force),
        Command::StartSlave(request) => slaves::start(turn, caller, &request),
        Command::Objects(_)
        | Command::Import(_)
        | Command::DryRun(_)
        | Command::CreateToken { .. }
        | Command::RevokeToken { .. }
        | Command::RevokeHost { .. }
        | Command::RebindHost { .. }
        | Command::SimulatedHosts { .. }
        | Command::Shutdown { .. }
        | Command::ClearUsage { .. }
        | Command::Finalize { .. }
        | Command::TriggerScheduling
        | Command::Orders(_)
        | Command::KillEventClients { .. } => return objects::decide(turn, request, caller, command),
    })
}
