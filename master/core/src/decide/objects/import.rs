//! A whole cell that is taken over, and changes that are only tried.

use super::draft::{self, Draft};
use super::supported::Origin;
use crate::decide::{Caller, Turn};
use crate::event::Event;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::JobNumber;
use proto::wire::client::{Answer, Command, Import, ObjectChange, Reply};

/// Takes over the objects and the numbers of another cell: all or nothing.
pub(super) fn import(turn: &mut Turn<'_>, caller: &Caller, import: &Import) -> Reply {
    let draft = match located(turn, caller, &import.changes) {
        Ok(draft) => draft,
        Err(refusals) => return refusals,
    };
    let Draft {
        stored, mut answers, ..
    } = draft;
    draft::commit(turn, stored);
    answers.extend(continue_numbers(turn, import));
    Reply::answers(answers)
}

/// Answers as if changes had been made.
pub(super) fn dry_run(turn: &Turn<'_>, caller: &Caller, command: &Command) -> Reply {
    let made = match command {
        Command::Objects(changes) => draft::made(turn, caller, changes, Origin::Hand),
        Command::Import(import) => located(turn, caller, &import.changes),
        Command::Submit(_)
        | Command::Resubmit { .. }
        | Command::Alter { .. }
        | Command::Delete { .. }
        | Command::Reserve(_)
        | Command::DeleteReservations { .. }
        | Command::Modify { .. }
        | Command::StartSlave(_)
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
        | Command::KillEventClients { .. } => {
            let what = "denied: only changes of configuration objects can be tried";
            Err(Reply::refusal(
                Diagnostic::new(Code::BadSyntax, what).fix("leave --dry-run out"),
            ))
        }
    };
    made.map_or_else(|refusals| refusals, |draft| Reply::answers(draft.answers))
}

/// The changes of an import on a draft. Each place names the object first, as `KIND NAME: PLACE`.
fn located<'a>(turn: &'a Turn<'_>, caller: &'a Caller, changes: &[ObjectChange]) -> Result<Draft<'a>, Reply> {
    let mut draft = draft::begin(turn, caller, Origin::Import);
    for change in changes {
        let before = draft.answers.len();
        let refused = draft::make(&mut draft, change);
        let place = |place: &str| format!("{} {}: {place}", change.kind, change.name);
        if let Err(refusals) = refused {
            let located = refusals.into_iter().map(|refusal| Diagnostic {
                place: place(&refusal.place),
                ..refusal
            });
            return Err(Reply::answers(located.map(Answer::Refused).collect()));
        }
        for answer in &mut draft.answers[before..] {
            if let Answer::Warning(warning) = answer {
                warning.place = place(&warning.place);
            }
        }
    }
    Ok(draft)
}

/// Numbers go on behind those of the other cell, never back.
fn continue_numbers(turn: &mut Turn<'_>, import: &Import) -> Vec<Answer> {
    let state = turn.state();
    let job = import.last_job.map(JobNumber).filter(|last| *last > state.last_number);
    let reservation = import.last_reservation.filter(|last| *last > state.last_reservation);
    if job.is_none() && reservation.is_none() {
        return Vec::new();
    }
    turn.record(Event::NumbersContinued { job, reservation });
    let said = |what: &str, last: u32| Answer::Done(format!("the last {what} number is {last}"));
    let job = job.map(|last| said("job", last.0));
    job.into_iter()
        .chain(reservation.map(|last| said("reservation", last)))
        .collect()
}
