//! Commands about many jobs, carried out some jobs at a time: what else comes is decided in
//! between.
//!
//! Which jobs are meant is found out when the command comes. It is answered when all of them have
//! been looked at; a master that ends before that has made true what it had decided, and the
//! client, which repeats its request, has the next one do the rest.

use crate::decide::jobs::select::{MissingTarget, SelectedJob};
use crate::decide::jobs::{alter, delete};
use crate::decide::requests::{self, RequestOrigin};
use crate::decide::{Caller, Turn};
use crate::effect::ReplyTo;
use crate::event::Actor;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::RequestId;
use proto::job::JobChanges;
use proto::wire::client::{Answer, Reply};
use std::collections::VecDeque;

/// Jobs that are looked at in one go: a few milliseconds.
pub(crate) const JOBS: usize = 500;

/// Events after which a go ends, where each job leads to many.
const EVENTS: usize = 4_096;

/// With so many commands on, of all users or of one, none about more than [`JOBS`] jobs is begun:
/// each keeps the list of those it has left.
const COMMANDS_MAX: usize = 64;
pub(crate) const COMMANDS_EACH: usize = 8;

/// What is to be done to each job.
#[derive(Debug)]
pub(crate) enum BulkAction {
    Delete { force: bool },
    Alter(Box<JobChanges>),
}

/// A command that has jobs left to look at.
#[derive(Debug)]
pub(crate) struct BulkCommand {
    request: RequestOrigin,
    actor: Actor,
    caller: Caller,
    deed: BulkAction,
    rest: std::vec::IntoIter<Result<SelectedJob, MissingTarget>>,
    answers: VecDeque<Answer>,
    /// Whether `rest` is in the order opposite to that of the answers.
    is_backward: bool,
    has_changed: bool,
}

/// The commands that have jobs left, the one whose turn is next in front.
#[derive(Debug, Default)]
pub(crate) struct BulkCommands(VecDeque<BulkCommand>);

impl BulkCommands {
    /// The one whose turn is next, and whose it is.
    pub(crate) fn next(&self) -> Option<(RequestId, &Caller)> {
        self.0.front().map(|command| (command.request.id, &command.caller))
    }

    /// The refusal of one more of a user, where there are as many as may be.
    fn full(&self, caller: &Caller) -> Option<Diagnostic> {
        let own = self
            .0
            .iter()
            .filter(|command| command.caller.user() == caller.user())
            .count();
        let what = if own >= COMMANDS_EACH {
            format!(
                "{own} commands of {} about many jobs are being carried out already",
                caller.user()
            )
        } else if self.0.len() >= COMMANDS_MAX {
            format!(
                "{} commands about many jobs are being carried out already",
                self.0.len()
            )
        } else {
            return None;
        };
        Some(Diagnostic::new(Code::Overloaded, what).fix("try again in a moment"))
    }

    /// Whether a request is one of them; who repeats it is then answered in place of who asked
    /// before.
    pub(crate) fn is_on(&mut self, id: RequestId, reply_to: ReplyTo) -> bool {
        let known = self.0.iter_mut().find(|command| command.request.id == id);
        known.map(|command| command.request.reply_to = reply_to).is_some()
    }
}

/// Begins a command. None if there is more to do than fits in one go: then it is answered later.
pub(crate) fn begin(
    turn: &mut Turn<'_>,
    request: RequestOrigin,
    caller: &Caller,
    deed: BulkAction,
    mut selected: Vec<Result<SelectedJob, MissingTarget>>,
) -> Option<Reply> {
    if selected.len() > JOBS
        && let Some(full) = turn.bulk_commands_mut().full(caller)
    {
        return Some(Reply::refusal(full));
    }
    // Else the end of those that run would let those start that are to be deleted in a moment, and
    // so would the end of what they wait for.
    let is_backward = selected.len() > JOBS && matches!(deed, BulkAction::Delete { .. });
    if is_backward {
        selected.reverse();
    }
    let mut command = BulkCommand {
        request,
        actor: turn.actor().clone(),
        caller: caller.clone(),
        deed,
        rest: selected.into_iter(),
        answers: VecDeque::new(),
        is_backward,
        has_changed: false,
    };
    if command.step(turn) {
        return Some(Reply::answers(command.answers.into()));
    }
    turn.bulk_commands_mut().0.push_back(command);
    None
}

/// Does a little of one of the commands that have jobs left.
pub(crate) fn go_on(turn: &mut Turn<'_>) {
    let Some(mut command) = turn.bulk_commands_mut().0.pop_front() else {
        return;
    };
    turn.acting(command.actor.clone(), Some(command.request.id), |turn| {
        if command.step(turn) {
            requests::answered(
                turn,
                command.request,
                Reply::answers(command.answers.into()),
                command.has_changed,
            );
        } else {
            turn.bulk_commands_mut().0.push_back(command);
        }
    });
}

impl BulkCommand {
    /// Looks at some jobs; true when none is left.
    fn step(&mut self, turn: &mut Turn<'_>) -> bool {
        let mut said = Vec::new();
        for selected in self.rest.by_ref().take(JOBS) {
            // It may have left since.
            if selected
                .as_ref()
                .is_ok_and(|selected| !turn.state().jobs.contains_key(&selected.seq))
            {
                continue;
            }
            match &self.deed {
                BulkAction::Delete { force } => delete::delete_one(turn, &self.caller, &selected, *force, &mut said),
                BulkAction::Alter(changes) => alter::alter_one(turn, &self.caller, &selected, changes, &mut said),
            }
            if self.is_backward {
                said.drain(..).rev().for_each(|answer| self.answers.push_front(answer));
            } else {
                self.answers.extend(said.drain(..));
            }
            if turn.events() >= EVENTS {
                break;
            }
        }
        self.has_changed |= turn.has_events();
        self.rest.len() == 0
    }
}
