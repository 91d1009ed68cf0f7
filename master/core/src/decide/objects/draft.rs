//! A set of changes: all of them or none. A complex alone may be changed in part, see
//! [`super::complex`].
//!
//! Each change is made on a copy of the configuration and sees those before it. Only when all are
//! good does one event make them true together.

use super::supported::Origin;
use super::{change, root_commands};
use crate::config::{Configuration, DerivedChanges};
use crate::decide::tasks::{self, TaskEnd};
use crate::decide::{Caller, Turn};
use crate::effect::MasterHost;
use crate::event::{Event, InstanceState, StoredObject};
use crate::state::State;
use proto::diagnostic::Diagnostic;
use proto::host::names::HostNames;
use proto::id::{QueueInstanceName, TaskKey};
use proto::object::{Fields, ObjectKind};
use proto::queue::InitialState;
use proto::wire::agent::TaskSignal;
use proto::wire::client::{Answer, ObjectChange, Reply};

/// Changes that are being decided.
pub(super) struct Draft<'a> {
    /// What is true now.
    pub state: &'a State,
    /// Who wants the changes.
    pub caller: &'a Caller,
    /// Where the objects come from.
    pub origin: Origin,
    /// Where the master runs.
    pub site: &'a MasterHost,
    /// The objects as the changes so far leave them, with nothing derived from them.
    pub config: Configuration,
    /// Queue instances whose tasks are to be ended.
    pub cleaned: Vec<QueueInstanceName>,
    /// What becomes true, each object once.
    pub stored: Vec<StoredObject>,
    /// What was said so far.
    pub answers: Vec<Answer>,
}

impl Draft<'_> {
    /// The hosts of the cell by every name that the caller may write.
    pub fn host_names(&self) -> HostNames<'_> {
        self.config.host_names(&self.site.naming, &self.caller.host)
    }

    /// Sets an object, or deletes it if it has no fields.
    pub fn store(&mut self, kind: ObjectKind, name: &str, fields: Option<Fields>) {
        let object = StoredObject {
            kind,
            name: name.to_owned(),
            fields,
        };
        self.config.put(&object);
        self.stored
            .retain(|earlier| (earlier.kind, &earlier.name) != (kind, &object.name));
        self.stored.push(object);
    }

    /// Adds a line to the answer. Several changes of one object are told once.
    pub fn say(&mut self, text: String) {
        let answer = Answer::Done(text);
        if !self.answers.contains(&answer) {
            self.answers.push(answer);
        }
    }

    /// Adds a warning to the answer.
    pub fn warn(&mut self, warning: Diagnostic) {
        self.answers.push(Answer::Warning(warning));
    }
}

/// Decides `Command::Objects`.
pub(super) fn change(turn: &mut Turn<'_>, caller: &Caller, changes: &[ObjectChange], origin: Origin) -> Reply {
    let Draft {
        stored,
        mut answers,
        cleaned,
        ..
    } = match made(turn, caller, changes, origin) {
        Ok(draft) => draft,
        Err(refusals) => return refusals,
    };
    let concerned = root_commands::concerned(&stored);
    commit(turn, stored);
    answers.extend(
        root_commands::warnings(turn, &concerned)
            .into_iter()
            .map(Answer::Warning),
    );
    cleaned.iter().for_each(|instance| clean(turn, caller, instance));
    Reply::answers(answers)
}

/// A draft with all the changes.
///
/// # Errors
/// The answer to a change that cannot be made.
pub(super) fn made<'a>(
    turn: &'a Turn<'_>,
    caller: &'a Caller,
    changes: &[ObjectChange],
    origin: Origin,
) -> Result<Draft<'a>, Reply> {
    let mut draft = begin(turn, caller, origin);
    for one in changes {
        make(&mut draft, one)
            .map_err(|refusals| Reply::answers(refusals.into_iter().map(Answer::Refused).collect()))?;
    }
    Ok(draft)
}

/// Makes one change on a draft. Features of a later version of the cell are refused.
///
/// # Errors
/// Everything that is wrong with it.
pub(super) fn make(draft: &mut Draft<'_>, one: &ObjectChange) -> Result<(), Vec<Diagnostic>> {
    change::change(draft, one)?;
    let version = draft.state.version;
    let features = draft.stored.iter().filter_map(StoredObject::feature);
    let refused = features
        .map(|feature| feature.must_be_open(version))
        .find(Result::is_err);
    refused.unwrap_or(Ok(())).map_err(|refusal| vec![refusal])
}

/// A draft without changes.
pub(super) fn begin<'a>(turn: &'a Turn<'_>, caller: &'a Caller, origin: Origin) -> Draft<'a> {
    let state = turn.state();
    Draft {
        state,
        caller,
        origin,
        site: turn.site(),
        config: state.config.objects(),
        cleaned: Vec::new(),
        stored: Vec::new(),
        answers: Vec::new(),
    }
}

/// Makes objects true, and gives new instances their first state. Agents get their configuration at
/// the end of the turn.
pub(super) fn commit(turn: &mut Turn<'_>, objects: Vec<StoredObject>) {
    if objects.is_empty() {
        return;
    }
    let DerivedChanges { added, .. } = turn.record(Event::ObjectsChanged(objects));
    start_instances(turn, added);
}

/// `initial_state disabled`: a new instance takes no jobs until it is enabled.
fn start_instances(turn: &mut Turn<'_>, mut added: Vec<QueueInstanceName>) {
    added.sort();
    for instance in added {
        let state = turn.state();
        if state.config.resolved[&instance].initial_state != InitialState::Disabled {
            continue;
        }
        let state = InstanceState {
            disabled: true,
            ..state.instances.get(&instance).cloned().unwrap_or_default()
        };
        turn.record(Event::InstanceChanged { instance, state });
    }
}

/// `qconf -cq`: the tasks of an instance are forgotten without waiting for their hosts.
fn clean(turn: &mut Turn<'_>, caller: &Caller, instance: &QueueInstanceName) {
    let reason = format!("{} cleaned queue {instance}", caller.at_host());
    for key in turn.state().tasks_in(instance) {
        tasks::signal(turn, key, TaskSignal::Terminate);
        let end = TaskEnd::forced(turn, key, reason.clone());
        tasks::end(turn, key, end);
    }
}

/// The first task that uses an instance, for messages.
pub(super) fn first_task_in(state: &State, instance: &QueueInstanceName) -> Option<TaskKey> {
    state.tasks_in(instance).into_iter().next()
}
