//! Commands on everything that is not a job: configuration objects, queue states, tokens,
//! certificates, daemons.

mod access;
mod change;
mod complex;
mod draft;
mod finalize;
mod hosts;
mod import;
mod kinds;
mod members;
mod queues;
mod quotas;
mod references;
mod root_commands;
mod sharetree;
mod strict;
mod supported;
mod words;

pub(crate) use hosts::{HostJoin, join, renewed};
pub(crate) use queues::modify_queue;
pub use supported::without_effect;

use super::requests::RequestOrigin;
use super::{Caller, Turn, external};
use crate::decide::tasks::usage;
use crate::effect::Effect;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::HostName;
use proto::object::ObjectKind;
use proto::wire::client::{Answer, Command, ObjectChange, Reply};
use supported::Origin;

/// Decides a command that is not about jobs. None if the shell answers it.
pub(crate) fn decide(turn: &mut Turn<'_>, request: RequestOrigin, caller: &Caller, command: Command) -> Option<Reply> {
    if let Err(refusal) = may_decide(turn, caller, &command) {
        return Some(Reply::refusal(refusal));
    }
    Some(match command {
        Command::Objects(changes) => draft::change(turn, caller, &changes, Origin::Hand),
        Command::Import(import) => import::import(turn, caller, &import),
        Command::DryRun(command) => import::dry_run(turn, caller, &command),
        Command::CreateToken {
            uses,
            valid_s,
            host_pattern,
        } => hosts::create_token(turn, request, uses, valid_s, host_pattern),
        Command::RevokeToken { id } => hosts::revoke_token(turn, &id),
        Command::RevokeHost { host } => hosts::revoke(turn, caller, &host),
        Command::RebindHost { host } => hosts::rebind(turn, caller, &host),
        Command::SimulatedHosts { count, slots } => return hosts::simulate(turn, caller, request, count, slots),
        Command::Shutdown { hosts, kill_jobs } => hosts::shutdown(turn, caller, &hosts, kill_jobs),
        Command::ClearUsage { users } => usage::clear(turn, caller, &users),
        Command::Finalize { version, is_trial } => finalize::finalize(turn, caller, version, is_trial),
        Command::TriggerScheduling => {
            turn.effect(Effect::MonitorScheduling);
            let text = format!("{} triggers scheduler monitoring", caller.at_host());
            Reply::answers(vec![Answer::Done(text)])
        }
        Command::Orders(orders) => external::command(turn, orders),
        Command::KillEventClients { ids } => {
            let is_manager = caller.is_manager();
            turn.effect(Effect::CutOff {
                to: request.reply_to,
                ids,
                is_manager,
                by: caller.at_host(),
            });
            return None;
        }
        Command::Submit(_)
        | Command::Resubmit { .. }
        | Command::Alter { .. }
        | Command::Delete { .. }
        | Command::Modify { .. }
        | Command::Reserve(_)
        | Command::DeleteReservations { .. }
        | Command::StartSlave(_) => unreachable!("commands on jobs are decided by modules of their own"),
    })
}

/// Access lists are changed by operators too, as in 8.1.9; all else takes a manager.
fn may_decide(turn: &Turn<'_>, caller: &Caller, command: &Command) -> Result<(), Diagnostic> {
    let is_of_set = |change: &ObjectChange| change.kind == ObjectKind::UserSet;
    match command {
        Command::Objects(changes) if !changes.is_empty() && changes.iter().all(is_of_set) => {
            if caller.is_manager_elsewhere(turn.state()) {
                must_administer(turn, caller)
            } else {
                caller.must_be_operator()
            }
        }
        // Whoever runs an event client may end it: who that is knows the shell.
        Command::KillEventClients { .. } => Ok(()),
        Command::TriggerScheduling if !caller.is_manager_elsewhere(turn.state()) => {
            let what = "starting scheduler monitoring requires manager privileges";
            caller.must_be_manager().map_err(|refusal| Diagnostic {
                what: what.to_owned(),
                ..refusal
            })
        }
        Command::Submit(_)
        | Command::Resubmit { .. }
        | Command::Alter { .. }
        | Command::Delete { .. }
        | Command::Modify { .. }
        | Command::Reserve(_)
        | Command::DeleteReservations { .. }
        | Command::Objects(_)
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
        | Command::StartSlave(_) => must_administer(turn, caller),
    }
}

/// Administration takes a manager and an administrative host, root the master's host. A manager
/// elsewhere is told about the host.
fn must_administer(turn: &Turn<'_>, caller: &Caller) -> Result<(), Diagnostic> {
    if !caller.is_manager_elsewhere(turn.state()) {
        return caller.must_be_manager();
    }
    let host = &caller.host;
    if !turn.state().config.admin_hosts.contains(host) {
        let what = format!("denied: host \"{host}\" is no admin host");
        let fix = format!("on an administrative host: qconf -ah {host}");
        return Err(Diagnostic::new(Code::HostNotPermitted, what).fix(fix));
    }
    let what = format!("denied: root of host \"{host}\" is no manager");
    let refusal = Diagnostic::new(Code::HostNotPermitted, what).why("root counts on the master's host alone");
    let master = turn
        .site()
        .master_host
        .as_ref()
        .map_or("the master's host", HostName::as_str);
    Err(refusal.fix(format!(
        "on {master} as root, or here as another manager: qconf -am USER adds one"
    )))
}
